// No vector access points far from its buffer: the pass that makes it so, the verifier that proves
// it, and the bounds that both need.
#include <gtest/gtest.h>

#include "tir/arith/analyzer.h"
#include "tir/passes/guard_accesses.h"
#include "tir/test/dtypes.h"
#include "tir/text.h"
#include "tir/verify.h"
#include "tir/verify_accesses.h"

namespace relay::tir {
namespace {

// out[j, k] = a[j - rows, k - columns] inside, 0 outside, in vectors of 16 over k.
struct Pad {
  explicit Pad(int64_t rows, int64_t columns) {
    at = j * 64 + k * 16 - rows * 64 - columns;
    row_inside = logical_and(ge(j, index(rows)), lt(j, index(rows + 8)));
    PrimExpr column = ramp(k * 16, index(1), 16);
    lane_inside = logical_and(ge(column, broadcast(index(columns), 16)),
                              lt(column, broadcast(index(columns + 64), 16)));
    height = 8 + 2 * rows;
    width = 64 + 2 * columns;
    out = buffer("out", f32, {index(height * width)});
  }

  PrimExpr read(PrimExpr predicate = nullptr) const {
    return load(a, {ramp(at, index(1), 16)}, std::move(predicate));
  }
  PrimFunc kernel(const PrimExpr& value) const {
    Stmt write = store(out, {ramp(j * width + k * 16, index(1), 16)}, value);
    return make<PrimFuncNode>([&](PrimFuncNode& n) {
      n.name = "pad";
      n.params = {a, out};
      n.num_inputs = 1;
      n.body = for_(j, index(0), index(height), for_(k, index(0), index(width / 16), write));
    });
  }

  Var j = var("j"), k = var("k");
  Buffer a = buffer("a", f32, {index(8), index(64)}), out;
  PrimExpr at, row_inside, lane_inside, zero = broadcast(imm_float(f32, 0), 16);
  int64_t height = 0, width = 0;
};

std::string defect_of(const PrimFunc& f, Accesses which = Accesses::All) {
  try {
    verify_accesses(f, which);
    return {};
  } catch (const InternalError& e) {
    return e.what();
  }
}

std::string body_of(const PrimFunc& f) {
  std::string text = text_of(f);
  return text.substr(text.find('\n'));
}

TEST(TirGuardAccesses, rows_that_are_masked_as_a_whole_become_a_branch) {
  Pad p(2, 0);
  PrimFunc f = p.kernel(select(broadcast(p.row_inside, 16), p.read(), p.zero));
  EXPECT_NE(defect_of(f, Accesses::Masked).find("points far from it"), std::string::npos);
  PrimFunc guarded = guard_accesses(f);
  EXPECT_EQ(body_of(guarded), R"(
  for j in range(12):
    for k in range(4):
      out[j * 64 + k * 16:1:x16] = select(j >= 2 and j < 10, a[j * 64 + k * 16 - 128:1:x16], x16(0f))
)");
  EXPECT_EQ(defect_of(guarded), "");
  verify(guarded);
}

TEST(TirGuardAccesses, lanes_far_outside_are_read_only_when_one_is_inside) {
  Pad p(0, 128);
  PrimFunc f = p.kernel(select(p.lane_inside, p.read(), p.zero));
  EXPECT_NE(defect_of(f, Accesses::Masked).find("points far from it"), std::string::npos);
  PrimFunc guarded = guard_accesses(f);
  EXPECT_NE(text_of(guarded).find("select(reduce_or("), std::string::npos) << text_of(guarded);
  EXPECT_EQ(defect_of(guarded), "");
  verify(guarded);
}

TEST(TirGuardAccesses, a_row_and_its_lanes) {
  Pad p(2, 128);
  PrimExpr inside = logical_and(broadcast(p.row_inside, 16), p.lane_inside);
  for (const PrimExpr& value : {select(inside, p.read(), p.zero),
                                select(logical_not(inside), p.zero, p.read()), p.read(inside)}) {
    EXPECT_NE(defect_of(p.kernel(value), Accesses::Masked), "");
    PrimFunc guarded = guard_accesses(p.kernel(value));
    EXPECT_EQ(defect_of(guarded), "") << text_of(guarded);
    verify(guarded);
  }
}

TEST(TirGuardAccesses, a_store_far_outside_is_done_only_for_lanes) {
  Pad p(2, 0);
  Stmt write =
      store(p.out, {ramp(p.j * 64 - 128, index(1), 16)}, p.zero, broadcast(p.row_inside, 16));
  PrimFunc f = make<PrimFuncNode>([&](PrimFuncNode& n) {
    n.name = "store";
    n.params = {p.out};
    n.body = for_(p.j, index(0), index(12), write);
  });
  EXPECT_NE(defect_of(f), "");
  EXPECT_EQ(defect_of(guard_accesses(f)), "");
}

// One element, the same for all lanes, is read where its row is inside, or some lane is; without need no guard is added.
TEST(TirGuardAccesses, one_element_for_all_lanes_is_read_in_its_buffer_only) {
  Pad p(2, 128);
  auto first_of = [&](const PrimExpr& row) { return broadcast(load(p.a, {row * 64}), 16); };
  PrimExpr row = broadcast(p.row_inside, 16);
  for (const PrimExpr& value :
       {select(row, first_of(p.j - 2), p.zero),
        select(logical_and(row, p.lane_inside), first_of(p.j - 2), p.zero)}) {
    EXPECT_NE(defect_of(p.kernel(value)).find("not proved to lie in it"), std::string::npos);
    PrimFunc guarded = guard_accesses(p.kernel(value));
    EXPECT_EQ(defect_of(guarded), "") << text_of(guarded);
    verify(guarded);
  }
  PrimFunc inside = p.kernel(select(p.lane_inside, first_of(index(7)), p.zero));
  EXPECT_EQ(guard_accesses(inside), inside);
}

// Within a vector of the buffer nothing is to be gained.
TEST(TirGuardAccesses, what_stays_near_is_left_alone) {
  Pad p(0, 16);
  PrimFunc f = p.kernel(select(p.lane_inside, p.read(), p.zero));
  EXPECT_EQ(guard_accesses(f), f);
  EXPECT_EQ(defect_of(f), "");
}

// The end of a row of open length: the vector begins in the row, wherever the row is.
TEST(TirGuardAccesses, a_vector_whose_first_lane_is_on_needs_no_guard) {
  Var n = var("n"), i = var("i"), c = var("c");
  Buffer a = buffer("a", DType::Float(32), {n, n}), out = buffer("out", DType::Float(32), {n, n});
  PrimExpr first = floor_div(n, index(16)) * 16 + c * 16;
  auto kernel = [&](const PrimExpr& end) {
    PrimExpr mask = lt(ramp(first, index(1), 16), broadcast(end, 16));
    PrimExpr at = ramp(i * n + first, index(1), 16);
    Stmt write = store(out, {at}, load(a, {at}, mask), mask);
    return make<PrimFuncNode>([&](PrimFuncNode& f) {
      f.name = "ends";
      f.params = {a, out};
      f.dims = {n};
      f.body = for_(
          i, index(0), n,
          for_(c, index(0), floor_div(n - floor_div(n, index(16)) * 16 + 15, index(16)), write));
    });
  };
  PrimFunc f = kernel(n);
  EXPECT_EQ(guard_accesses(f), f) << text_of(guard_accesses(f));
  EXPECT_EQ(defect_of(f, Accesses::Masked), "");
  f = kernel(n - 1);
  EXPECT_NE(defect_of(f, Accesses::Masked).find("points far from it"), std::string::npos);
  EXPECT_EQ(defect_of(guard_accesses(f), Accesses::Masked), "");
}

TEST(TirGuardAccesses, what_is_read_anyway_needs_no_guard) {
  Pad p(0, 0);
  PrimFunc f = p.kernel(p.read() + p.read());
  EXPECT_EQ(guard_accesses(f), f);
}

TEST(VerifyAccesses, places_that_loops_decide_lie_in_their_buffers) {
  Pad p(0, 0);
  EXPECT_EQ(defect_of(p.kernel(p.read())), "");
  Pad beyond(1, 0);
  EXPECT_NE(defect_of(beyond.kernel(beyond.read())).find("not proved to lie in it: -64 to"),
            std::string::npos);
  EXPECT_EQ(defect_of(beyond.kernel(beyond.read()), Accesses::Masked), "");
}

TEST(VerifyAccesses, several_conditions_count_together) {
  Analyzer analyzer;
  Var i0 = var("i0"), i1 = var("i1"), j0 = var("j0"), j1 = var("j1");
  for (const Var& v : {i0, i1, j0, j1}) analyzer.bind(v, index(0), index(16));
  auto rows = analyzer.assume(lt(i0 * 16 + i1, index(41)));
  auto columns = analyzer.assume(lt(j0 * 8 + j1, index(23)));
  EXPECT_EQ(analyzer.bounds(i0 * 16 + j0 * 328 + i1 + j1 * 41).max, 23 * 41 - 1);
  auto low = analyzer.assume(ge(j1, index(3)));
  EXPECT_EQ(analyzer.bounds(j1 * 5 + i1).min, 15);
  EXPECT_EQ(analyzer.bounds(i1 - floor_mod(i1, index(4)) + 1).min, 1);
  EXPECT_EQ(analyzer.bounds(i1 - floor_mod(i1, index(4)) + 1).max, 13);
}

// A window over the rows of one loop: the condition is about the place in the row, the access about
// the place in the buffer.
TEST(VerifyAccesses, conditions_on_remainders_bound_what_they_are_remainders_of) {
  Analyzer analyzer;
  Var at = var("at"), offset = var("offset");
  analyzer.bind(at, index(0), index(8));
  analyzer.bind(offset, index(0), index(3));
  PrimExpr column = floor_mod(at, index(4)) + offset;
  EXPECT_EQ(analyzer.bounds(at + offset - 1).min, -1);
  auto inside = analyzer.assume(logical_and(ge(column, index(1)), lt(column, index(5))));
  EXPECT_EQ(analyzer.bounds(at + offset - 1).min, 0);
  EXPECT_EQ(analyzer.bounds(at + offset - 1).max, 7);
  EXPECT_EQ(analyzer.bounds(floor_mod(at, index(4)) - at).min, -4);
}

// The same of images, one behind the other, whose rows and columns are merged with their number.
TEST(VerifyAccesses, conditions_on_the_digits_of_a_number_bound_it) {
  Analyzer analyzer;
  Var at = var("at"), row = var("row"), column = var("column");
  analyzer.bind(at, index(0), index(2 * 4 * 5));
  analyzer.bind(row, index(0), index(3));
  analyzer.bind(column, index(0), index(3));
  const PrimExpr y = floor_mod(floor_div(at, index(5)), index(4)) + row,
                 x = floor_mod(at, index(5)) + column, place = at + row * 5 + column - 6;
  EXPECT_EQ(analyzer.bounds(place).min, -6);
  auto rows = analyzer.assume(logical_and(ge(y, index(1)), lt(y, index(5))));
  EXPECT_LT(analyzer.bounds(place).min, 0);
  auto columns = analyzer.assume(logical_and(ge(x, index(1)), lt(x, index(6))));
  EXPECT_EQ(analyzer.bounds(place).min, 0);
  EXPECT_EQ(analyzer.bounds(place).max, 2 * 4 * 5 - 1);
}

}  // namespace
}  // namespace relay::tir
