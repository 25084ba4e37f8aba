// Long kernels ask whether to go on, about every few milliseconds of work, and end when they are told to.

#include "codegen/test/kernel_harness.h"
#include "node/walk.h"
#include "tir/while.h"

namespace relay::codegen_test {
namespace {

const DType i64 = DType::Int(64);
PrimExpr zero() { return index(0); }

// A nest of loops over extents around out[0] = out[0] * 3 + the innermost variable, which no optimizer shortens.
PrimFunc nest(const std::vector<PrimExpr>& extents, std::vector<Var> dims = {},
              ForKind outer = ForKind::Serial, Buffer sums = nullptr) {
  Buffer out = buffer("out", i64, {index(1)});
  Buffer to = sums ? sums : out;
  std::vector<Var> loops;
  for (size_t i = 0; i < extents.size(); ++i) loops.push_back(var("i" + std::to_string(i)));
  Stmt body = store(to, {zero()}, load(to, {zero()}) * 3 + loops.back());
  for (size_t i = extents.size(); i-- > 0;)
    body = for_(loops[i], zero(), extents[i], body, i == 0 ? outer : ForKind::Serial);
  if (sums) {
    body = allocate(sums, seq({store(sums, {zero()}, zero()), body,
                               store(out, {zero()}, load(sums, {zero()}))}));
  }
  return kernel("nest", {}, {out}, body, std::move(dims));
}

struct Answers {
  int64_t asked = 0;
  int32_t code = 0;
  int64_t jumps = 0;
};

// Counts questions, and answers the `end_at`-th with a code.
Answers run(const PrimFunc& f, const Target& target, int64_t end_at,
            const std::vector<int64_t>& dims = {}) {
  struct Counting : TestContext {
    int64_t asked = 0, end_at = 0, jumps = 0;
  } context;
  context.end_at = end_at;
  context.context.parallel_for = [](const relay_kernel_context* c, relay_parallel_body body,
                                    void* env, int64_t extent) -> int32_t {
    auto* self = static_cast<Counting*>(static_cast<TestContext*>(c->runtime));
    if (extent == 0) self->jumps += static_cast<int64_t>(reinterpret_cast<intptr_t>(env));
    if (extent == 0) return ++self->asked == self->end_at ? RELAY_KERNEL_CHECK_FAILED : 0;
    return body(env, 0, extent);
  };
  LoadedKernels jit = load_kernels({f}, target);
  int64_t out = 0;
  void* buffers[] = {&out};
  int32_t code = context.run(jit.functions()[0], buffers, dims.data());
  return {context.asked, code, context.jumps};
}

TEST(KernelPolls, a_short_kernel_does_not_ask) {
  for (const Target& target : runnable_targets())
    EXPECT_EQ(run(nest({index(1000), index(1000)}), target, -1).asked, 0);
}

TEST(KernelPolls, endless_kernels_end_with_the_answer) {
  const int64_t endless = int64_t{1} << 50;
  for (const Target& target : runnable_targets()) {
    for (const std::vector<PrimExpr>& extents :
         {std::vector<PrimExpr>{index(endless)},
          {index(endless), index(8)},
          {index(4), index(endless)},
          {index(1 << 20), index(1 << 20), index(1 << 10)}}) {
      for (ForKind outer : {ForKind::Serial, ForKind::Parallel}) {
        Answers a = run(nest(extents, {}, outer), target, 3);
        EXPECT_EQ(a.asked, 3);
        EXPECT_EQ(a.code, RELAY_KERNEL_CHECK_FAILED);
      }
    }
  }
}

TEST(KernelPolls, a_reduction_in_a_register_ends_too) {
  Buffer sums = buffer("sums", i64, {index(1)}, Scope::Register);
  Target target = runnable_targets().front();
  Answers a = run(nest({index(int64_t{1} << 50)}, {}, ForKind::Serial, sums), target, 5);
  EXPECT_EQ(a.asked, 5);
  EXPECT_EQ(a.code, RELAY_KERNEL_CHECK_FAILED);
}

TEST(KernelPolls, open_sizes_ask_by_what_they_are) {
  Var n = var("n"), m = var("m");
  Target target = runnable_targets().front();
  PrimFunc f = nest({n, m}, {n, m});
  // A thousand iterations are microseconds, however they are arranged.
  EXPECT_EQ(run(f, target, -1, {1000, 1}).asked, 0);
  EXPECT_EQ(run(f, target, -1, {1, 1000}).asked, 0);
  int64_t asked = run(f, target, -1, {100'000, 1000}).asked;
  EXPECT_GE(asked, 10);
  EXPECT_LE(asked, 1000);
  Answers a = run(f, target, 2, {int64_t{1} << 40, 1 << 10});
  EXPECT_EQ(a.code, RELAY_KERNEL_CHECK_FAILED);
}

// The nest as loops of the program, whose iterations count as jumps of the run.
PrimFunc program_nest(const std::vector<PrimExpr>& extents, std::vector<Var> dims) {
  PrimFunc f = nest(extents, std::move(dims));
  Stmt body = Stmt::unchecked(rewrite(
      f->body,
      [](const NodeRef&, NodeRef rebuilt) -> NodeRef {
        auto* l = as<tir::ForNode>(rebuilt);
        if (l == nullptr) return rebuilt;
        return tir::modified(*l, [](tir::ForNode& loop) { loop.hints.program = true; });
      },
      family::tir_stmt));
  return tir::modified(*f, [&](tir::PrimFuncNode& changed) { changed.body = body; });
}

TEST(KernelPolls, loops_of_the_program_count_their_iterations) {
  Var n = var("n"), m = var("m");
  const PrimFunc f = program_nest({n, m}, {n, m});
  const Target target = runnable_targets().front();
  EXPECT_EQ(run(f, target, -1, {1000, 1}).asked, 0);
  EXPECT_EQ(run(f, target, -1, {1, 1000}).asked, 0);
  EXPECT_EQ(run(f, target, -1, {1 << 20, 0}).asked, 0);
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{1 << 14, 1000}, {3, int64_t{1} << 23}}) {
    const Answers a = run(f, target, -1, {rows, columns});
    EXPECT_GE(a.asked, 4);
    EXPECT_LE(a.asked, 100);
    EXPECT_GE(a.jumps, rows * columns / 2);
    EXPECT_LE(a.jumps, rows * columns * 2);
  }
  for (const std::vector<int64_t>& dims :
       {std::vector<int64_t>{int64_t{1} << 40, 1 << 10}, {1, int64_t{1} << 50}}) {
    const Answers a = run(f, target, 3, dims);
    EXPECT_EQ(a.asked, 3);
    EXPECT_EQ(a.code, RELAY_KERNEL_CHECK_FAILED);
  }
}

TEST(KernelPolls, short_loops_of_the_program_count_for_those_around_them) {
  Var n = var("n"), m = var("m");
  const Target target = runnable_targets().front();
  // No more than six iterations, in every way to say so, and two short loops in each other.
  for (const auto& [inner, rows] : {std::pair<std::vector<PrimExpr>, int64_t>{{index(6)}, 1 << 22},
                                    {{min(m, index(6))}, 1 << 22},
                                    {{floor_mod(m, index(7))}, 1 << 22},
                                    {{index(6), index(5)}, 1 << 20}}) {
    std::vector<PrimExpr> extents{n};
    extents.insert(extents.end(), inner.begin(), inner.end());
    const PrimFunc f = program_nest(extents, {n, m});
    EXPECT_EQ(run(f, target, -1, {1000, 6}).asked, 0);
    const int64_t iterations = rows * 6 * (inner.size() > 1 ? 5 : 1);
    const Answers all = run(f, target, -1, {rows, 6});
    EXPECT_GE(all.asked, 4);
    EXPECT_LE(all.asked, 200);
    // What may be shorter is not counted.
    EXPECT_GE(all.jumps, (as_int(inner[0]) ? iterations : rows) / 3);
    EXPECT_LE(all.jumps, iterations * 2);
    for (int64_t shorter : {int64_t{-1}, int64_t{0}, int64_t{1}}) {
      const Answers few = run(f, target, -1, {rows, shorter});
      EXPECT_LE(few.asked, 200);
      if (!as_int(inner[0])) {
        EXPECT_LE(few.jumps, rows * 4);
      }
    }
    const Answers endless = run(f, target, 3, {int64_t{1} << 50, 6});
    EXPECT_EQ(endless.asked, 3);
    EXPECT_EQ(endless.code, RELAY_KERNEL_CHECK_FAILED);
  }
  // One that takes long in itself asks.
  EXPECT_GE(run(program_nest({index(6), n}, {n}), target, -1, {int64_t{1} << 22}).asked, 4);
}

// Adds 1 to a register as long as it is below the limit; out[0] is what it is then.
PrimFunc counting(int64_t limit) {
  Buffer out = buffer("out", i64, {index(1)});
  Buffer state = buffer("state", i64, {index(1)}, Scope::Register);
  PrimExpr now = load(state, {zero()});
  Stmt step = store(state, {zero()}, now + 1);
  // A branch that no optimizer turns into a formula.
  Stmt body = if_(eq(floor_mod(now, index(7)), index(3)), store(state, {zero()}, now + 2), step);
  return kernel(
      "counting", {}, {out},
      allocate(state, seq({store(state, {zero()}, zero()), while_(lt(now, index(limit)), body),
                           store(out, {zero()}, now)})));
}

TEST(KernelPolls, a_short_while_does_not_ask_and_an_endless_one_ends) {
  for (const Target& target : runnable_targets()) {
    EXPECT_EQ(run(counting(1000), target, -1).asked, 0);
    Answers a = run(counting(int64_t{1} << 60), target, 3);
    EXPECT_EQ(a.asked, 3);
    EXPECT_EQ(a.code, RELAY_KERNEL_CHECK_FAILED);
  }
}

}  // namespace
}  // namespace relay::codegen_test
