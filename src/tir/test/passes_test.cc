// Lowering passes: a program before and after each, and one that each must leave alone.
#include <gtest/gtest.h>

#include <cmath>

#include "tir/compute.h"
#include "tir/interpret.h"
#include "tir/lower_loops.h"
#include "tir/passes/block_sums.h"
#include "tir/passes/compact_buffers.h"
#include "tir/passes/flatten_buffers.h"
#include "tir/passes/insert_prefetches.h"
#include "tir/passes/lower_blocks.h"
#include "tir/passes/partition_loops.h"
#include "tir/passes/simplify.h"
#include "tir/passes/unroll_loops.h"
#include "tir/passes/vectorize_loops.h"
#include "tir/schedule/schedule.h"
#include "tir/test/dtypes.h"
#include "tir/text.h"
#include "tir/verify.h"

namespace relay::tir {
namespace {

PrimFunc func(std::vector<Buffer> params, size_t inputs, Stmt body, std::vector<Var> dims = {}) {
  return make<PrimFuncNode>([&](PrimFuncNode& n) {
    n.name = "f";
    n.params = std::move(params);
    n.num_inputs = static_cast<int64_t>(inputs);
    n.dims = std::move(dims);
    n.body = std::move(body);
  });
}

// The body's text, from its first line on.
std::string body_of(const PrimFunc& f) {
  std::string text = text_of(f);
  return text.substr(text.find('\n'));
}

struct Loops {
  Var i = var("i"), j = var("j"), k = var("k");
  Buffer a = buffer("a", f32, {index(64)});
  Buffer out = buffer("out", f32, {index(64)});
};

// The row sums of a 4 x 8 matrix.
PrimFunc row_sums() {
  Tensor a = placeholder("a", f32, {index(4), index(8)});
  Tensor s = compute("s", {index(4)}, [&](const Indices& i) {
    return sum({index(8)}, [&](const Indices& k) { return a(i[0], k[0]); });
  });
  return create_prim_func("f", {a}, {s});
}

TEST(TirLowerBlocks, initialisation_stands_before_the_reduction) {
  EXPECT_EQ(body_of(lower_blocks(row_sums())), R"(
  for i in range(4):
    s[i] = 0f
    for r in range(8):
      s[i] = s[i] + a[i, r]
)");
}

TEST(TirLowerBlocks, a_predicate_guards_the_initialisation_too) {
  Schedule s(row_sums());
  std::vector<LoopRV> loops = s.get_loops(s.get_block("s"));
  s.split(loops[0], {-1, 3}).value();
  EXPECT_EQ(body_of(lower_blocks(s.func())), R"(
  for i_0 in range(2):
    for i_1 in range(3):
      if i_0 * 3 + i_1 < 4:
        s[i_0 * 3 + i_1] = 0f
      for r in range(8):
        if i_0 * 3 + i_1 < 4:
          s[i_0 * 3 + i_1] = s[i_0 * 3 + i_1] + a[i_0 * 3 + i_1, r]
)");
}

TEST(TirLowerBlocks, a_guard_of_the_reduction_does_not_hold_back_the_initialisation) {
  Schedule s(row_sums());
  std::vector<LoopRV> loops = s.get_loops(s.get_block("s"));
  s.split(loops[1], {-1, 3}).value();
  EXPECT_EQ(body_of(lower_blocks(s.func())), R"(
  for i in range(4):
    s[i] = 0f
    for r_0 in range(3):
      for r_1 in range(3):
        if r_0 * 3 + r_1 < 8:
          s[i] = s[i] + a[i, r_0 * 3 + r_1]
)");
}

// The sums of open columns over open rows, in whole tiles of columns and what is left over.
PrimFunc column_sums_in_tiles() {
  Var n = var("n"), m = var("m");
  Tensor a = placeholder("a", f32, {n, m});
  Tensor t = compute("t", {m}, [&](const Indices& i) {
    return sum({n}, [&](const Indices& k) { return a(k[0], i[0]); });
  });
  Schedule s(create_prim_func("f", {a}, {t}, {n, m}));
  std::vector<LoopRV> loops = s.get_loops(s.get_block("t"));
  s.reorder({loops[1], loops[0]}).value();
  s.partition_tiles(loops[0], 4).value();
  return s.func();
}

// Its first iteration may not run.
TEST(TirLowerBlocks, an_open_reduction_is_initialised_in_front_of_loops_that_are_no_plain_nest) {
  EXPECT_EQ(body_of(lower_blocks(column_sums_in_tiles())), R"(
  for i_init in range(m // 4 * 4):
    t[i_init] = 0f
  for i_1_init in range(m - m // 4 * 4):
    t[m // 4 * 4 + i_1_init] = 0f
  for r in range(n):
    for i in range(m // 4 * 4):
      t[i] = t[i] + a[r, i]
    for i_1 in range(m - m // 4 * 4):
      t[m // 4 * 4 + i_1] = t[m // 4 * 4 + i_1] + a[r, m // 4 * 4 + i_1]
)");
}

TEST(TirLowerBlocks, a_reduction_over_nothing_gives_its_initial_value_at_every_stage) {
  const PrimFunc scheduled = column_sums_in_tiles();
  for (const PrimFunc& f : {scheduled, lower_blocks(scheduled), lower_loops(scheduled)}) {
    for (int64_t columns : {0, 1, 7}) {
      runtime::Tensor a = runtime::Tensor::zeros(f32, {0, columns});
      runtime::Tensor out = runtime::Tensor::empty(f32, {columns});
      for (int64_t i = 0; i < columns; ++i) out.set_from_double(i, 5);
      KernelInterpreter run(f, {0, columns}, {.find_undefined = true});
      EXPECT_EQ(run.run({a, out}), 0);
      EXPECT_EQ(run.undefined(), "") << text_of(f);
      for (int64_t i = 0; i < columns; ++i) EXPECT_EQ(out.get_as_double(i), 0) << text_of(f);
    }
  }
}

TEST(TirCompactBuffers, what_the_next_iteration_reads_stays_outside) {
  Loops l;
  Buffer best = buffer("best", f32, {index(1)}, Scope::Local);
  PrimExpr now = load(best, {index(0)}), mine = load(l.a, {l.j});
  Stmt body = allocate(
      best,
      for_(l.i, index(0), index(8),
           seq({store(best, {index(0)}, load(l.a, {l.i})),
                for_(l.j, index(0), index(4),
                     if_(gt(mine, now), seq({store(best, {index(0)}, mine),
                                             store(l.out, {l.i}, load(best, {index(0)}))})))})));
  EXPECT_EQ(body_of(compact_buffers(func({l.a, l.out}, 1, body))), R"(
  for i in range(8):
    allocate best: float32[1] in local
    best[0] = a[i]
    for j in range(4):
      if a[j] > best[0]:
        best[0] = a[j]
        out[i] = best[0]
)");
  // All accesses in the inner loop, which begins with a load: outside of it, though not of both.
  Stmt carried = allocate(
      best, for_(l.i, index(0), index(8),
                 for_(l.j, index(0), index(4),
                      if_(logical_or(eq(l.j, index(0)), gt(mine, now)),
                          seq({store(best, {index(0)}, mine), store(l.out, {l.i}, mine)})))));
  EXPECT_EQ(body_of(compact_buffers(func({l.a, l.out}, 1, carried))), R"(
  allocate best: float32[1] in local
  for i in range(8):
    for j in range(4):
      if j == 0 or a[j] > best[0]:
        best[0] = a[j]
        out[i] = a[j]
)");
}

TEST(TirCompactBuffers, a_tile_is_as_large_as_one_visit) {
  Loops l;
  Buffer acc = buffer("acc", f32, {index(8), index(8)}, Scope::Register);
  Var t = var("t");
  Stmt body = allocate(acc, for_(l.i, index(0), index(8),
                                 for_(l.j, index(0), index(2),
                                      seq({for_(l.k, index(0), index(4),
                                                store(acc, {l.i, l.j * 4 + l.k}, load(l.a, {l.k}))),
                                           for_(t, index(0), index(4),
                                                store(l.out, {l.i * 8 + l.j * 4 + t},
                                                      load(acc, {l.i, l.j * 4 + t})))}))));
  EXPECT_EQ(body_of(compact_buffers(func({l.a, l.out}, 1, body))), R"(
  for i in range(8):
    for j in range(2):
      allocate acc: float32[1, 4] in register
      for k in range(4):
        acc[0, k] = a[k]
      for t in range(4):
        out[i * 8 + j * 4 + t] = acc[0, t]
)");
}

// A batch of one leaves loops of one iteration in the consumer, and constants in the producer.
TEST(TirCompactBuffers, loops_of_one_iteration_are_constants) {
  Loops l;
  Buffer acc = buffer("acc", f32, {index(1), index(64)}, Scope::Register);
  Stmt body = allocate(acc, for_(l.i, index(0), index(1),
                                 for_(l.j, index(0), index(64),
                                      seq({store(acc, {index(0), l.j}, load(l.a, {l.j})),
                                           store(l.out, {l.j}, load(acc, {l.i, l.j}))}))));
  EXPECT_EQ(body_of(compact_buffers(func({l.a, l.out}, 1, body))), R"(
  for i in range(1):
    for j in range(64):
      allocate acc: float32[1, 1] in register
      acc[0, 0] = a[j]
      out[j] = acc[i, 0]
)");
}

TEST(TirCompactBuffers, what_is_touched_below_the_first_access_counts) {
  Loops l;
  Buffer window = buffer("window", f32, {index(64)}, Scope::Local);
  Stmt body = allocate(
      window,
      for_(l.i, index(0), index(32),
           seq({store(window, {l.i + 2}, load(l.a, {l.i})), store(window, {l.i}, load(l.a, {l.i})),
                store(l.out, {l.i}, load(window, {l.i + 2}) + load(window, {l.i}))})));
  EXPECT_EQ(body_of(compact_buffers(func({l.a, l.out}, 1, body))), R"(
  for i in range(32):
    allocate window: float32[3] in local
    window[2] = a[i]
    window[0] = a[i]
    out[i] = window[2] + window[0]
)");
}

TEST(TirCompactBuffers, what_lives_through_a_loop_stays_outside) {
  Loops l;
  Buffer acc = buffer("acc", f32, {index(1)}, Scope::Register);
  Stmt body =
      allocate(acc, for_(l.i, index(0), index(8),
                         seq({if_(eq(l.i, index(0)), store(acc, {index(0)}, imm_float(f32, 0))),
                              store(acc, {index(0)}, load(acc, {index(0)}) + load(l.a, {l.i})),
                              store(l.out, {l.i}, load(acc, {index(0)}))})));
  PrimFunc f = func({l.a, l.out}, 1, body);
  EXPECT_EQ(body_of(compact_buffers(f)), body_of(f));
}

TEST(TirCompactBuffers, indices_from_memory_keep_the_dimension_whole) {
  Loops l;
  Buffer table = buffer("table", f32, {index(64)}, Scope::Local);
  Buffer at = buffer("at", kIndex, {index(64)});
  Stmt body = allocate(table, for_(l.i, index(0), index(8),
                                   seq({store(table, {load(at, {l.i})}, load(l.a, {l.i})),
                                        store(l.out, {l.i}, load(table, {load(at, {l.i})}))})));
  EXPECT_EQ(body_of(compact_buffers(func({l.a, at, l.out}, 2, body))), R"(
  for i in range(8):
    allocate table: float32[64] in local
    table[at[i]] = a[i]
    out[i] = table[at[i]]
)");
}

TEST(TirFlattenBuffers, accesses_have_one_index) {
  Loops l;
  Buffer in = buffer("in", f32, {index(4), index(8)});
  Buffer out = buffer("out", f32, {index(8), index(4)});
  Stmt body = for_(l.i, index(0), index(8),
                   for_(l.j, index(0), index(4), store(out, {l.i, l.j}, load(in, {l.j, l.i}))));
  EXPECT_EQ(body_of(flatten_buffers(func({in, out}, 1, body))), R"(
  for i in range(8):
    for j in range(4):
      out[i * 4 + j] = in[j * 8 + i]
)");
}

TEST(TirFlattenBuffers, a_part_of_an_array_keeps_the_places_that_it_has_there) {
  Loops l;
  Buffer in = buffer("in", f32, {index(4), index(8)});
  Buffer out = make<BufferNode>([](BufferNode& n) {
    n.name = "out";
    n.shape = {index(4), index(8)};
    n.within = {index(4), index(20)};
  });
  Stmt body = for_(l.i, index(0), index(4),
                   for_(l.j, index(0), index(8), store(out, {l.i, l.j}, load(in, {l.i, l.j}))));
  PrimFunc f = func({in, out}, 1, body);
  EXPECT_NE(to_string(f).find("out: float32[4, 8] within [4, 20]"), std::string::npos);
  EXPECT_EQ(bytes_in_memory(*out.get()), (3 * 20 + 8) * 4);
  EXPECT_EQ(body_of(flatten_buffers(f)), R"(
  for i in range(4):
    for j in range(8):
      out[i * 20 + j] = in[i * 8 + j]
)");
  // Before and after alike, and what is around it stays as it was.
  for (const PrimFunc& stage : {f, flatten_buffers(f)}) {
    verify(stage);
    runtime::Tensor x = runtime::Tensor::empty(f32, {4, 8}),
                    y = runtime::Tensor::empty(f32, {4, 20});
    for (int64_t k = 0; k < 32; ++k) x.set_from_double(k, static_cast<double>(k));
    for (int64_t k = 0; k < 80; ++k) y.set_from_double(k, -1);
    EXPECT_EQ(interpret(stage, {x, y}, {}), 0);
    for (int64_t k = 0; k < 80; ++k) {
      int64_t row = k / 20, column = k % 20;
      EXPECT_EQ(y.get_as_double(k), column < 8 ? static_cast<double>(row * 8 + column) : -1);
    }
  }
}

TEST(TirFlattenBuffers, one_index_stays_as_it_is) {
  Loops l;
  PrimFunc f =
      func({l.a, l.out}, 1, for_(l.i, index(0), index(8), store(l.out, {l.i}, load(l.a, {l.i}))));
  EXPECT_EQ(flatten_buffers(f), f);
}

TEST(TirSimplify, loops_of_one_iteration_and_decided_conditions_vanish) {
  Loops l;
  Stmt body =
      for_(l.i, index(0), index(8),
           for_(l.j, index(0), index(1),
                if_(lt(l.i + l.j, index(8)),
                    store(l.out, {l.i + l.j}, load(l.a, {floor_div(l.i * 4 + l.j, index(4))})))));
  EXPECT_EQ(body_of(simplify(func({l.a, l.out}, 1, body))), R"(
  for i in range(8):
    out[i] = a[i]
)");
}

TEST(TirSimplify, a_condition_holds_in_its_body_only) {
  Loops l;
  Stmt inner = if_(lt(l.i, index(6)), store(l.out, {l.i}, load(l.a, {l.i})));
  Stmt body = for_(l.i, index(0), index(8), seq({if_(lt(l.i, index(4)), inner), inner}));
  EXPECT_EQ(body_of(simplify(func({l.a, l.out}, 1, body))), R"(
  for i in range(8):
    if i < 4:
      out[i] = a[i]
    if i < 6:
      out[i] = a[i]
)");
}

// The body after the pass and what Simplify makes of it.
std::string partitioned(std::vector<Buffer> params, Stmt body) {
  size_t inputs = params.size() - 1;
  return body_of(simplify(partition_loops(func(std::move(params), inputs, std::move(body)))));
}

PrimExpr inside(const PrimExpr& i, int64_t from, int64_t to) {
  return logical_and(ge(i, index(from)), lt(i, index(to)));
}

TEST(TirPartitionLoops, the_border_stands_apart) {
  Loops l;
  Stmt body =
      for_(l.i, index(0), index(10),
           store(l.out, {l.i}, select(inside(l.i, 1, 9), load(l.a, {l.i - 1}), imm_float(f32, 0))));
  EXPECT_EQ(partitioned({l.a, l.out}, body), R"(
  out[0] = 0f
  for i in range(1, 9):
    out[i] = a[i - 1]
  out[9] = 0f
)");
}

TEST(TirPartitionLoops, an_inner_variable_counts_with_all_its_values) {
  Loops l;
  PrimExpr at = l.i * 2 + l.j - 1;
  Stmt body = for_(l.i, index(0), index(8),
                   for_(l.j, index(0), index(3),
                        store(l.out, {l.i * 3 + l.j},
                              select(inside(at, 0, 14), load(l.a, {at}), imm_float(f32, 0)))));
  EXPECT_EQ(partitioned({l.a, l.out}, body), R"(
  for j in range(3):
    out[j] = select(j >= 1, a[j - 1], 0f)
  for i in range(1, 7):
    for j in range(3):
      out[j + i * 3] = a[j + i * 2 - 1]
  for j in range(3):
    out[j + 21] = select(j < 1, a[j + 13], 0f)
)");
}

TEST(TirPartitionLoops, both_dimensions_of_a_border_and_falling_conditions) {
  Loops l;
  PrimExpr in = logical_and(ge(index(6), l.i), inside(l.j, 1, 8));
  Stmt body = for_(l.i, index(0), index(8),
                   for_(l.j, index(0), index(8),
                        store(l.out, {l.i * 8 + l.j},
                              select(in, load(l.a, {l.i * 8 + l.j - 1}), imm_float(f32, 0)))));
  EXPECT_EQ(partitioned({l.a, l.out}, body), R"(
  for i in range(7):
    out[i * 8] = 0f
    for j in range(1, 8):
      out[i * 8 + j] = a[i * 8 + j - 1]
  for j_1 in range(8):
    out[j_1 + 56] = 0f
)");
}

TEST(TirPartitionLoops, an_if_over_a_part_of_a_tile) {
  Loops l;
  Stmt body = for_(
      l.i, index(0), index(5),
      for_(l.j, index(0), index(4),
           if_(lt(l.i * 4 + l.j, index(18)), store(l.out, {l.i * 4 + l.j}, load(l.a, {l.i})))));
  EXPECT_EQ(partitioned({l.a, l.out}, body), R"(
  for i in range(4):
    for j in range(4):
      out[i * 4 + j] = a[i]
  for j_1 in range(2):
    out[j_1 + 16] = a[4]
)");
}

TEST(TirPartitionLoops, no_cut_where_it_does_not_pay_or_is_not_known) {
  Loops l;
  auto copy = [&](const PrimExpr& cond, ForKind kind = ForKind::Serial, int64_t copies = 1) {
    Stmt s = store(l.out, {l.i}, select(cond, load(l.a, {l.i}), imm_float(f32, 0)));
    s = for_(l.k, index(0), index(copies), s, ForKind::Unrolled);
    PrimFunc f = func({l.a, l.out}, 1, for_(l.i, index(0), index(32), s, kind));
    return partition_loops(f) == f;
  };
  EXPECT_TRUE(copy(ge(l.i, index(20)))) << "holds in less than half";
  EXPECT_TRUE(copy(ge(l.i, index(40)))) << "never holds";
  EXPECT_TRUE(copy(eq(floor_mod(l.i, index(3)), index(0)))) << "no comparison of sizes";
  EXPECT_TRUE(copy(ge(floor_mod(l.i * 5, index(32)), index(1)))) << "not affine";
  EXPECT_TRUE(copy(lt(load(l.a, {l.i}), imm_float(f32, 0)))) << "depends on data";
  EXPECT_TRUE(copy(ge(l.i, index(1)), ForKind::Parallel)) << "a parallel loop";
  EXPECT_TRUE(copy(ge(l.i, index(1)), ForKind::Serial, 1000)) << "too much code";
  EXPECT_FALSE(copy(ge(l.i, index(1)))) << "the rest is no reason";
}

TEST(TirPartitionLoops, tiles_of_an_open_length_end_where_the_last_is_not_full) {
  Var n = var("n"), i = var("i"), j = var("j");
  Buffer a = buffer("a", f32, {n}), out = buffer("out", f32, {n});
  PrimExpr at = i * 8 + j;
  auto tiles = [&](const PrimExpr& extent, const PrimExpr& cond) {
    Stmt inner = for_(j, index(0), index(8), if_(cond, store(out, {at}, load(a, {at}))),
                      ForKind::Vectorized);
    return func({a, out}, 1, for_(i, index(0), extent, inner), {n});
  };
  PrimFunc f = tiles(floor_div(n + 7, index(8)), lt(at, n));
  EXPECT_EQ(body_of(simplify(partition_loops(f))), R"(
  for i in range(n // 8):
    for j in vectorized(8):
      out[i * 8 + j] = a[i * 8 + j]
  for i_tail in range(n // 8, n // 8 + ((n + 7) // 8 - n // 8)):
    for j in vectorized(8):
      if j + i_tail * 8 < n:
        out[j + i_tail * 8] = a[j + i_tail * 8]
)");
  // What is not about how far the loop reaches, or is unknown out here, cuts nothing.
  for (const PrimExpr& cond :
       {ge(at, index(3)), lt(at, n - 3), lt(j, n), lt(load(a, {at}), imm_float(f32, 0))}) {
    f = tiles(floor_div(n + 7, index(8)), cond);
    EXPECT_EQ(partition_loops(f), f) << to_string(cond);
  }
  f = tiles(n, lt(at, n));
  EXPECT_EQ(partition_loops(f), f) << "a loop over more than the tiles";
}

TEST(TirPartitionLoops, lines_of_an_open_image_are_asked_for_once) {
  Var n = var("n"), i = var("i"), j = var("j"), k = var("k");
  Buffer a = buffer("a", f32, {n}), out = buffer("out", f32, {n});
  auto lines = [&](const PrimExpr& cond, const PrimExpr& size) {
    PrimExpr value = select(cond, load(a, {i + j + k}), imm_float(f32, 0));
    Stmt inner = for_(k, index(0), index(8), store(out, {k}, load(out, {k}) + value));
    Stmt body = for_(i, index(0), size, for_(j, index(0), index(3), inner));
    return func({a, out}, 1, body, {n});
  };
  PrimFunc f = lines(logical_and(lt(i + j, n), lt(k, n)), n);
  EXPECT_EQ(body_of(simplify(partition_loops(f))), R"(
  for i in range(n):
    for j in range(3):
      if i + j < n:
        for k in range(8):
          out[k] = out[k] + select(k < n, a[i + j + k], 0f)
      else:
        for k in range(8):
          out[k] = out[k] + select(i + j < n and k < n, a[i + j + k], 0f)
)");
  // What the loop inside changes, a condition that is data-dependent, and what is known when the kernel is compiled.
  for (const PrimExpr& cond :
       {lt(i + k, n), lt(load(a, {i + j}), imm_float(f32, 0)), lt(i + j, index(40))}) {
    f = lines(cond, index(1000));
    EXPECT_EQ(body_of(partition_loops(f)).find("else"), std::string::npos) << to_string(cond);
  }
}

TEST(TirVectorizeLoops, the_variable_becomes_lanes) {
  Loops l;
  Stmt body =
      for_(l.j, index(0), index(8),
           for_(l.i, index(0), index(8),
                store(l.out, {l.j * 8 + l.i}, load(l.a, {l.j * 8 + l.i}) * load(l.a, {l.j})),
                ForKind::Vectorized));
  EXPECT_EQ(body_of(vectorize_loops(func({l.a, l.out}, 1, body))), R"(
  for j in range(8):
    out[j * 8:1:x8] = a[j * 8:1:x8] * x8(a[j])
)");
}

// A name for what differs between lanes names a vector, and what is stored under it varies; any other name stays as it is.
TEST(TirVectorizeLoops, names_of_lanes_name_vectors) {
  Loops l;
  Var v = var("v", f32), w = var("w", f32);
  auto named = [&](const Stmt& body) {
    return body_of(vectorize_loops(
        func({l.a, l.out}, 1,
             for_(l.j, index(0), index(8),
                  for_(l.i, index(0), index(8),
                       let_stmt(w, load(l.a, {l.j}), let_stmt(v, load(l.a, {l.i}) * w, body)),
                       ForKind::Vectorized)))));
  };
  EXPECT_EQ(named(seq({store(l.out, {l.i}, max(v, w)), store(l.out, {l.j * 8 + l.i}, v)})), R"(
  for j in range(8):
    let w = a[j]
    let v = a[0:1:x8] * x8(w)
    out[0:1:x8] = max(v, x8(w))
    out[j * 8:1:x8] = v
)");
  EXPECT_NE(named(store(l.out, {l.j}, v)).find("for i in range(8)"), std::string::npos);
}

TEST(TirVectorizeLoops, lanes_that_meet_stay_a_loop) {
  Loops l;
  Stmt body = for_(l.i, index(0), index(8), store(l.out, {index(0)}, load(l.a, {l.i})),
                   ForKind::Vectorized);
  EXPECT_EQ(body_of(vectorize_loops(func({l.a, l.out}, 1, body))), R"(
  for i in range(8):
    out[0] = a[i]
)");
}

TEST(TirVectorizeLoops, a_condition_on_the_lane_stays_a_loop) {
  Loops l;
  Stmt body =
      for_(l.i, index(0), index(8),
           if_(lt(load(l.a, {l.i}), imm_float(f32, 0)), store(l.out, {l.i}, load(l.a, {l.i}))),
           ForKind::Vectorized);
  EXPECT_EQ(body_of(vectorize_loops(func({l.a, l.out}, 1, body))), R"(
  for i in range(8):
    if a[i] < 0f:
      out[i] = a[i]
)");
}

// The part of a condition that all lanes share is a branch, and the other one a mask; two that differ between lanes are neither.
TEST(TirVectorizeLoops, a_condition_on_rows_and_lanes_is_a_branch_and_a_mask) {
  Loops l;
  auto under = [&](const PrimExpr& also) {
    Stmt body = for_(l.j, index(0), index(8),
                     for_(l.i, index(0), index(8),
                          if_(logical_and(also, lt(l.j * 8 + l.i, index(60))),
                              store(l.out, {l.j * 8 + l.i}, load(l.a, {l.i}))),
                          ForKind::Vectorized));
    return body_of(vectorize_loops(func({l.a, l.out}, 1, body)));
  };
  EXPECT_EQ(under(lt(l.j, index(5))), R"(
  for j in range(8):
    if j < 5 and j * 8 < 60:
      out[j * 8:1:x8 if j * 8:1:x8 < x8(60)] = a[0:1:x8 if j * 8:1:x8 < x8(60)]
)");
  EXPECT_NE(under(lt(l.i, index(5))).find("for i in range(8)"), std::string::npos);
}

// A part behind the one on lanes may read what is there only where that one holds.
TEST(TirVectorizeLoops, parts_of_a_condition_keep_their_order) {
  Loops l;
  const PrimExpr at = l.j * 8 + l.i;
  const PrimExpr inside = lt(at, index(60)), holds = lt(load(l.a, {l.j}), imm_float(f32, 0));
  Stmt body = for_(l.j, index(0), index(8),
                   for_(l.i, index(0), index(8),
                        if_(logical_and(logical_and(lt(l.j, index(7)), inside), holds),
                            store(l.out, {at}, load(l.a, {l.i}))),
                        ForKind::Vectorized));
  EXPECT_EQ(body_of(vectorize_loops(func({l.a, l.out}, 1, body))), R"(
  for j in range(8):
    if j < 7 and j * 8 < 60 and a[j] < 0f:
      out[j * 8:1:x8 if j * 8:1:x8 < x8(60)] = a[0:1:x8 if j * 8:1:x8 < x8(60)]
)");
}

TEST(TirUnrollLoops, copies_and_groups_of_copies) {
  Loops l;
  Stmt grouped = make<ForNode>([&](ForNode& n) {
    n.var = l.j;
    n.min = index(1);
    n.extent = index(5);
    n.hints.prefetch = 64;
    n.hints.unroll = 2;
    n.body = store(l.out, {l.j}, load(l.a, {l.j}));
  });
  Stmt body =
      seq({for_(l.i, index(0), index(2), store(l.out, {l.i}, load(l.a, {l.i})), ForKind::Unrolled),
           grouped});
  EXPECT_EQ(body_of(simplify(unroll_loops(func({l.a, l.out}, 1, body)))), R"(
  out[0] = a[0]
  out[1] = a[1]
  for j in range(2):  # prefetch = 64
    out[j * 2 + 1] = a[j * 2 + 1]
    out[j * 2 + 2] = a[j * 2 + 2]
  out[5] = a[5]
)");
}

// A loop that adds rows of 16 lanes of `a`, of `width` elements each, with the note or without.
PrimFunc adds_rows(int64_t width, bool noted) {
  Loops l;
  Buffer a = buffer("a", f32, {index(4 * width)});
  PrimExpr lanes = ramp(index(0), index(1), 16);
  auto row = [&](int64_t at) { return load(a, {ramp(l.k * width + at, index(1), 16)}); };
  Stmt body = store(l.out, {lanes}, load(l.out, {lanes}) + row(0) + row(4) + row(0));
  return func({a, l.out}, 1, make<ForNode>([&](ForNode& n) {
                n.var = l.k;
                n.min = index(0);
                n.extent = index(4);
                if (noted) n.hints.prefetch = 256;
                n.body = body;
              }));
}

TEST(TirInsertPrefetches, each_line_once_ahead) {
  EXPECT_EQ(body_of(insert_prefetches(adds_rows(16, true))), R"(
  for k in range(4):  # prefetch = 256
    prefetch(a[k * 16 + 64])
    out[0:1:x16] = out[0:1:x16] + a[k * 16:1:x16] + a[k * 16 + 4:1:x16] + a[k * 16:1:x16]
)");
}

TEST(TirInsertPrefetches, nothing_without_a_note_or_within_a_line) {
  for (const PrimFunc& f : {adds_rows(16, false), adds_rows(8, true)}) {
    EXPECT_EQ(insert_prefetches(f), f) << text_of(insert_prefetches(f));
  }
}

// Panels of 128 elements are copied; a tile's two rows of `length` elements, with other tiles `stride` apart, are read.
PrimFunc multiplies_panels(NextOperand next, const PrimExpr& length, const std::vector<Var>& dims) {
  Var p = var("p"), c = var("c"), i = var("i"), k = var("k");
  Buffer w = buffer("w", f32, {index(1024)}), x = buffer("x", f32, {length * 32});
  Buffer cache = buffer("cache", f32, {index(128)}, Scope::Local);
  Buffer out = buffer("out", f32, {index(2)});
  auto add = [&](int64_t row) {
    return store(
        out, {index(row)},
        load(out, {index(row)}) + load(x, {(i * 2 + row) * length + k}) * load(cache, {k}));
  };
  Stmt sum = make<ForNode>([&](ForNode& n) {
    n.var = k;
    n.min = index(0);
    n.extent = length;
    if (next == NextOperand::Read) {
      n.hints.next = next;
      n.hints.next_rows = 2;
    }
    n.body = seq({add(0), add(1)});
  });
  Stmt tiles = make<ForNode>([&](ForNode& n) {
    n.var = i;
    n.min = index(0);
    n.extent = index(16);
    if (next == NextOperand::Copied) n.hints.next = next;
    n.body = sum;
  });
  Stmt copy = for_(c, index(0), index(128), store(cache, {c}, load(w, {p * 128 + c})));
  return func({w, x, out}, 2, allocate(cache, for_(p, index(0), index(8), seq({copy, tiles}))),
              dims);
}

TEST(TirInsertPrefetches, what_the_next_iteration_copies_while_tiles_are_multiplied) {
  EXPECT_EQ(
      body_of(simplify(insert_prefetches(multiplies_panels(NextOperand::Copied, index(128), {})))),
      R"(
  allocate cache: float32[128] in local
  for p in range(8):
    for c in range(128):
      cache[c] = w[p * 128 + c]
    for i in range(16):  # next = copied
      if i < 1:
        for i_line in range(8):
          prefetch(w[p * 128 + 128 + i * 2048 + i_line * 16])
      for k in range(128):
        out[0] = out[0] + x[i * 256 + k] * cache[k]
        out[1] = out[1] + x[i * 256 + k + 128] * cache[k]
)");
}

TEST(TirInsertPrefetches, the_rows_that_the_next_tile_reads_of_any_length) {
  Var n = var("n");
  const std::string text =
      body_of(simplify(insert_prefetches(multiplies_panels(NextOperand::Read, n, {n}))));
  EXPECT_NE(
      text.find(
          "    for i in range(16):\n      for k in range(n):  # next = read  # next_rows = 2\n"
          "        prefetch(x[n * 2 + i * n * 2 + k * 2])\n"),
      std::string::npos)
      << text;
}

TEST(TirInsertPrefetches, nothing_that_no_loop_around_moves) {
  for (NextOperand next : {NextOperand::Copied, NextOperand::Read}) {
    for (bool inside : {false, true}) {
      Loops l;
      Stmt noted = make<ForNode>([&](ForNode& n) {
        n.var = l.k;
        n.min = index(0);
        n.extent = index(4);
        n.hints.next = next;
        n.hints.next_rows = 1;
        n.body = store(l.out, {l.k}, load(l.a, {l.k}));
      });
      Stmt body = inside ? for_(l.i, index(0), index(8), noted) : noted;
      PrimFunc f = func({l.a, l.out}, 1, body);
      EXPECT_EQ(insert_prefetches(f), f);
    }
  }
}

// out[0] is the sum of so many elements of `a`, each times one of `b` where there is one.
PrimFunc long_sum(const PrimExpr& length, DType dtype = f32, bool product = false) {
  Var k = var("k");
  Buffer a = buffer("a", dtype, {length}), b = buffer("b", dtype, {length});
  Buffer out = buffer("out", dtype, {index(1)});
  PrimExpr term = load(a, {k});
  if (product) term = term * load(b, {k});
  Stmt add = store(out, {index(0)}, load(out, {index(0)}) + term);
  std::vector<Var> dims;
  if (auto* n = as<VarNode>(length)) dims.push_back(Var(n));
  return func({a, b, out}, 2, for_(k, index(0), length, add), dims);
}

TEST(TirBlockSums, a_long_sum_is_cut) {
  EXPECT_EQ(body_of(block_sums(long_sum(index(4096)))), R"(
  allocate out_total: float64[1] in register
  allocate out_block: float32[1] in register
  out_total[0] = float64(out[0])
  for k_block in range(128):
    out_block[0] = 0f
    for k in range(k_block * 32, k_block * 32 + 32):
      out_block[0] = out_block[0] + a[k]
    out_total[0] = out_total[0] + float64(out_block[0])
  out[0] = float32(out_total[0])
)");
}

TEST(TirBlockSums, a_run_decides_whether_an_open_sum_is_long) {
  std::string text = body_of(block_sums(long_sum(var("n"))));
  EXPECT_NE(text.find("if n < 65:\n    for k in range(n):"), std::string::npos) << text;
  EXPECT_NE(text.find("min(n - k_block * 32, 32)"), std::string::npos) << text;
}

TEST(TirBlockSums, short_sums_products_and_wide_floats_stay) {
  for (const PrimFunc& f :
       {long_sum(index(64)), long_sum(index(4096), DType::Float(64)),
        long_sum(index(4096), DType::Int(32)), long_sum(index(8192), f32, true)}) {
    EXPECT_EQ(block_sums(f), f) << text_of(block_sums(f));
  }
  EXPECT_NE(body_of(block_sums(long_sum(index(8193), f32, true))).find("_block"),
            std::string::npos);
}

// Words of bfloat16 are products, too.
TEST(TirBlockSums, dot_products_of_words_are_products) {
  for (int64_t length : {8192, 8193}) {
    Var k = var("k");
    const DType bf16 = DType::BFloat16();
    Buffer a = buffer("a", bf16, {index(2 * length)}), b = buffer("b", bf16, {index(2 * length)});
    Buffer out = buffer("out", f32, {index(1)});
    auto word = [&](const Buffer& of) {
      return call("load_word", DType::Int(32), {load(of, {k * 2})});
    };
    Stmt add = store(out, {index(0)},
                     load(out, {index(0)}) + call("bfloat16_dot", f32, {word(a), word(b)}));
    PrimFunc f = func({a, b, out}, 2, for_(k, index(0), index(length), add));
    EXPECT_EQ(block_sums(f) == f, length == 8192) << text_of(block_sums(f));
  }
}

TEST(TirBlockSums, an_accumulator_that_is_read_elsewhere_stays) {
  Loops l;
  Buffer sum = buffer("sum", f32, {index(1)});
  // Running sums.
  Stmt body = for_(l.k, index(0), index(64),
                   for_(l.j, index(0), index(64),
                        seq({store(sum, {index(0)}, load(sum, {index(0)}) + load(l.a, {l.j})),
                             store(l.out, {l.j}, load(sum, {index(0)}))})));
  PrimFunc f = func({l.a, sum, l.out}, 1, body);
  EXPECT_EQ(block_sums(f), f);
}

// Loops of sums of all shapes, in registers and in memory: whatever the order of the loops, the error stays below that of a
// block, and the sums of small integers are exact.
TEST(TirBlockSums, keeps_digits_in_any_nest) {
  for (int64_t rows : {1, 3, 40, 700}) {
    for (int64_t columns : {1, 5, 33, 200}) {
      for (bool columns_inside : {false, true}) {
        for (Scope scope : {Scope::Global, Scope::Register}) {
          for (bool by_column : {false, true}) {
            Var i = var("i"), j = var("j"), v = var("v"), w = var("w");
            const int64_t count = by_column ? columns : 1;
            Buffer a = buffer("a", f32, {index(rows * columns)});
            Buffer out = buffer("out", f32, {index(count)});
            Buffer sums = scope == Scope::Global ? out : buffer("sums", f32, {index(count)}, scope);
            PrimExpr at = by_column ? PrimExpr(j) : index(0);
            Stmt add = store(sums, {at}, load(sums, {at}) + load(a, {i * columns + j}));
            Stmt nest =
                columns_inside
                    ? for_(i, index(0), index(rows), for_(j, index(0), index(columns), add))
                    : for_(j, index(0), index(columns), for_(i, index(0), index(rows), add));
            std::vector<Stmt> steps{
                for_(v, index(0), index(count), store(sums, {v}, imm_float(f32, 0))), nest};
            if (scope == Scope::Register) {
              steps.push_back(for_(w, index(0), index(count), store(out, {w}, load(sums, {w}))));
            }
            Stmt body = seq(steps);
            if (scope == Scope::Register) body = allocate(sums, body);
            PrimFunc f = func({a, out}, 1, body), cut = block_sums(f);
            verify(cut);
            const int64_t terms = by_column ? rows : rows * columns;
            // What moves with a loop inside the sum is cut only where it is the kernel's own.
            bool moves = by_column && columns_inside && scope == Scope::Global;
            EXPECT_EQ(cut != f, terms > kShortSum && !moves) << text_of(cut);
            for (float value : {0.1f, 3.0f}) {
              runtime::Tensor x = runtime::Tensor::empty(f32, {rows * columns});
              runtime::Tensor y = runtime::Tensor::empty(f32, {count});
              std::fill_n(x.data<float>(), rows * columns, value);
              ASSERT_EQ(interpret(cut, {x, y}, {}), 0);
              const double want = static_cast<double>(value) * static_cast<double>(terms);
              const double most = value == 3 ? 0 : moves ? 1e-4 : 2e-6;
              for (int64_t c = 0; c < count; ++c) {
                EXPECT_LE(std::abs(y.data<float>()[c] / want - 1), most) << text_of(cut);
              }
            }
          }
        }
      }
    }
  }
}

TEST(TirUnrollLoops, long_loops_stay) {
  Loops l;
  Stmt body = for_(l.i, index(0), index(5000), store(l.out, {index(0)}, load(l.a, {index(0)})),
                   ForKind::Unrolled);
  EXPECT_EQ(body_of(unroll_loops(func({l.a, l.out}, 1, body))), R"(
  for i in range(5000):
    out[0] = a[0]
)");
}

// Lanes that are not neighbours are loads of their own: 20 * 15 * 16 of them make no block.
TEST(TirUnrollLoops, loops_whose_copies_are_a_large_block_stay) {
  for (int64_t stride : {1, 10}) {
    Loops l;
    Stmt lanes = store(l.out, {ramp(l.j * 16, index(1), 16)},
                       load(l.a, {ramp(l.i + l.j * 160, index(stride), 16)}));
    Stmt body = for_(l.i, index(0), index(20),
                     for_(l.j, index(0), index(15), lanes, ForKind::Unrolled), ForKind::Unrolled);
    std::string text = body_of(unroll_loops(func({l.a, l.out}, 1, body)));
    EXPECT_EQ(text.find("for i in range(20)") != std::string::npos, stride == 10) << text;
    EXPECT_EQ(text.find("for j"), std::string::npos) << text;
  }
}

// state[0] = in[0], then `body`, which writes state[1], and out[0] = state[1].
int64_t run_with_state(const std::function<Stmt(const Buffer& state)>& body, int64_t given) {
  const DType i64 = DType::Int(64);
  Buffer in = buffer("in", i64, {index(1)}), out = buffer("out", i64, {index(1)});
  Buffer state = buffer("state", i64, {index(2)});
  PrimFunc f = func({in, out}, 1,
                    allocate(state, seq({store(state, {index(0)}, load(in, {index(0)})),
                                         store(state, {index(1)}, index(0)), body(state),
                                         store(out, {index(0)}, load(state, {index(1)}))})));
  runtime::Tensor x = runtime::Tensor::empty(i64, {1}), y = runtime::Tensor::empty(i64, {1});
  x.set_from_int(0, given);
  EXPECT_EQ(interpret(lower_loops(f), {x, y}, {}), 0);
  return y.get_as_int(0);
}

TEST(TirSimplify, a_condition_on_an_element_that_its_branch_stores_is_asked_again) {
  auto body = [](const Buffer& s) {
    PrimExpr n = load(s, {index(0)});
    return if_(lt(n, index(9)), seq({store(s, {index(0)}, n + 1),
                                     if_(lt(n, index(9)), store(s, {index(1)}, index(1)))}));
  };
  EXPECT_EQ(run_with_state(body, 7), 1);
  EXPECT_EQ(run_with_state(body, 8), 0);
}

TEST(TirSimplify, what_a_check_says_holds_behind_it_only) {
  Var n = tir::var("n");
  Buffer y = buffer("y", DType::Int(64), {index(8)});
  Stmt write = store(y, {max(min(n, index(7)), index(0))}, index(1));
  Stmt in_bounds = check(logical_and(ge(n, index(0)), lt(n, index(8))), 1, "outside");
  auto text = [&](Stmt body) {
    return body_of(
        simplify(func({y}, 0, let_stmt(n, load(buffer("x", DType::Int(64), {}), {}), body))));
  };
  const std::string known = text(seq({in_bounds, write}));
  EXPECT_NE(known.find("y[n] = 1"), std::string::npos) << known;
  const std::string unknown = text(seq({write, in_bounds}));
  EXPECT_EQ(unknown.find("y[n] = 1"), std::string::npos) << unknown;
}

TEST(TirSimplify, an_extent_that_its_loop_stores_bounds_nothing) {
  auto body = [](const Buffer& s) {
    Var i = var("i");
    PrimExpr n = load(s, {index(0)});
    return for_(i, index(0), n,
                seq({if_(lt(i, n), store(s, {index(1)}, load(s, {index(1)}) + 1)),
                     store(s, {index(0)}, index(2))}));
  };
  EXPECT_EQ(run_with_state(body, 5), 2);
  EXPECT_EQ(run_with_state(body, 1), 1);
}

}  // namespace
}  // namespace relay::tir
