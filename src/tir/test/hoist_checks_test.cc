// Checks of indices before a loop: which leave it, and what each version computes.
#include "tir/passes/hoist_checks.h"

#include <gtest/gtest.h>

#include "tir/interpret.h"
#include "tir/lower_loops.h"
#include "tir/text.h"
#include "tir/verify.h"

namespace relay::tir {
namespace {

const DType i64 = DType::Int(64);

// for i in range(count): out[given[0] + i * by] = i, where a negative index counts from the end.
struct Stores {
  Var n = var("n"), i = var("i");
  Buffer given = buffer("given", i64, {index(2)}), out = buffer("out", i64, {n});
  Var shift = var("shift"), place = var("place");

  Stmt checked(const PrimExpr& at) const {
    const PrimExpr inside = logical_and(ge(place, index(0)), lt(place, n));
    return let_stmt(
        place, select(lt(at, index(0)), at + n, at),
        seq({check(inside, 7, "outside"), store(out, {min(max(place, index(0)), n - 1)}, i)}));
  }
  PrimFunc loop(const Stmt& body) const {
    Stmt loop = make<ForNode>([&](ForNode& f) {
      f.var = i;
      f.min = index(0);
      f.extent = load(given, {index(1)});
      f.body = body;
      f.hints.program = true;
    });
    const Var count = var("count");
    loop = let_stmt(count, load(given, {index(1)}), with_extent(loop, count));
    return make<PrimFuncNode>([&](PrimFuncNode& f) {
      f.name = "f";
      f.params = {given, out};
      f.num_inputs = 1;
      f.dims = {n};
      f.body = let_stmt(shift, load(given, {index(0)}), loop);
    });
  }
  static Stmt with_extent(const Stmt& loop, const Var& count) {
    return modified(*as<ForNode>(loop), [&](ForNode& f) { f.extent = count; });
  }
};

struct Result {
  int64_t code;
  std::vector<int64_t> out;
  bool operator==(const Result&) const = default;
};

Result run(const PrimFunc& f, int64_t shift, int64_t count, int64_t n) {
  runtime::Tensor given = runtime::Tensor::empty(i64, {2}), out = runtime::Tensor::empty(i64, {n});
  given.set_from_int(0, shift);
  given.set_from_int(1, count);
  for (int64_t k = 0; k < n; ++k) out.set_from_int(k, -1);
  Result r{interpret(f, {given, out}, {n}), {}};
  for (int64_t k = 0; k < n; ++k) r.out.push_back(out.get_as_int(k));
  return r;
}

TEST(HoistChecks, a_loop_in_bounds_makes_no_check) {
  Stores s;
  const PrimFunc f = hoist_checks(s.loop(s.checked(s.i + s.shift)));
  verify(f);
  const std::string text = text_of(f);
  const size_t fast = text.find("for i in"), slow = text.find("for i in", fast + 1);
  ASSERT_NE(slow, std::string::npos) << text;
  const std::string first = text.substr(fast, slow - fast);
  EXPECT_EQ(first.find("check"), std::string::npos) << text;
  EXPECT_NE(first.find("out[i + shift] = i"), std::string::npos) << text;
  EXPECT_NE(text.find("check", slow), std::string::npos) << text;
}

TEST(HoistChecks, both_versions_compute_the_same) {
  Stores s;
  for (const PrimExpr& at : {s.i + s.shift, s.shift - s.i, s.i * 3 + s.shift, s.i * s.shift}) {
    const PrimFunc f = s.loop(s.checked(at));
    const PrimFunc hoisted = hoist_checks(f);
    EXPECT_NE(hoisted, f);
    for (int64_t shift : {-6, -5, -1, 0, 1, 3, 4, 5}) {
      for (int64_t count : {-1, 0, 1, 2, 5, 6}) {
        const Result want = run(f, shift, count, 5);
        EXPECT_EQ(run(hoisted, shift, count, 5), want) << shift << " " << count;
        EXPECT_EQ(run(lower_loops(f), shift, count, 5), want) << shift << " " << count;
      }
    }
  }
}

TEST(HoistChecks, steps_and_counts_that_might_wrap_are_part_of_the_condition) {
  Stores s;
  const std::string text = text_of(hoist_checks(s.loop(s.checked(s.i * s.shift))));
  EXPECT_NE(text.find("count < 1099511627777"), std::string::npos) << text;
  EXPECT_NE(text.find("shift < 1048577"), std::string::npos) << text;
  // 4 * 2^62 is 0 where sums wrap: the loop is not in bounds.
  const PrimFunc f = s.loop(s.checked(s.i * 4 + s.shift));
  EXPECT_EQ(run(hoist_checks(f), 0, int64_t{1} << 62, 5).code, 7);
}

TEST(HoistChecks, what_is_not_affine_stays) {
  Stores s;
  for (const PrimExpr& at : {load(s.out, {s.i}), s.i * s.i, floor_div(s.i, index(2))}) {
    const PrimFunc f = s.loop(s.checked(at));
    EXPECT_EQ(hoist_checks(f)->body, f->body);
  }
}

TEST(HoistChecks, a_check_below_a_condition_only_selects_the_version) {
  Stores s;
  const PrimFunc f = s.loop(if_(lt(s.i, index(3)), s.checked(s.i + s.shift)));
  for (int64_t count : {2, 4, 9}) EXPECT_EQ(run(hoist_checks(f), 2, count, 5), run(f, 2, count, 5));
  EXPECT_EQ(run(hoist_checks(f), 2, 9, 5).code, 0);
}

TEST(HoistChecks, loops_around_loops_and_short_ones_stay) {
  Stores s;
  const PrimFunc outer = s.loop(for_(var("k"), index(0), s.n, s.checked(s.i + s.shift)));
  EXPECT_EQ(hoist_checks(outer)->body, outer->body);
  Stmt few = modified(
      *as<ForNode>(as<LetStmtNode>(as<LetStmtNode>(s.loop(s.checked(s.i))->body)->body)->body),
      [&](ForNode& f) { f.extent = index(3); });
  const PrimFunc f =
      modified(*s.loop(s.checked(s.i)).get(), [&](PrimFuncNode& g) { g.body = few; });
  EXPECT_EQ(hoist_checks(f)->body, f->body);
}

}  // namespace
}  // namespace relay::tir
