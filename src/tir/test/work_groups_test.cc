// Groups of work items: what passes make of their memory, and races that the interpreter finds.
#include <gtest/gtest.h>

#include <utility>

#include "tir/passes/flatten_buffers.h"
#include "tir/passes/insert_barriers.h"
#include "tir/passes/separate_items.h"
#include "tir/schedule/schedule.h"
#include "tir/test/invented_inputs.h"
#include "tir/text.h"
#include "tir/thread_nests.h"
#include "tir/verify.h"

namespace relay::tir {
namespace {

constexpr int64_t kItems = 4, kSteps = 3;

Stmt bound(const Var& v, int64_t extent, std::string_view tag, Stmt body) {
  return modified(*as<ForNode>(for_(v, index(0), index(extent), std::move(body))), [&](ForNode& n) {
    n.loop_kind = ForKind::ThreadBound;
    n.thread_tag = tag;
  });
}
Stmt over_items(const Var& v, Stmt body, int64_t extent = kItems) {
  return bound(v, extent, kItemTags[0], std::move(body));
}

// Two groups of items that copy a tile in each step and add the tile backwards to registers of theirs, or to registers
// of others.
PrimFunc reversed_sums(bool own = true) {
  Var b = var("b"), k = var("k"), t = var("t"), u = var("u"), v = var("v"), w = var("w");
  Buffer a = buffer("a", f32, {index(2), index(kSteps), index(kItems)}),
         out = buffer("out", f32, {index(2), index(kItems)}),
         tile = buffer("tile", f32, {index(kItems)}, Scope::Shared),
         acc = buffer("acc", f32, {index(2 * kItems)}, Scope::Register);
  const PrimExpr mine = u * 2 + 1, other = (index(kItems - 1) - u) * 2 + 1;
  Stmt step = seq({over_items(t, store(tile, {t}, load(a, {b, k, t}))),
                   over_items(u, store(acc, {own ? mine : other},
                                       load(acc, {own ? mine : other}) +
                                           load(tile, {index(kItems - 1) - u})))});
  Stmt group = seq({over_items(v, store(acc, {v * 2 + 1}, imm_float(f32, 0))),
                    for_(k, index(0), index(kSteps), step),
                    over_items(w, store(out, {b, w}, load(acc, {w * 2 + 1})))});
  return kernel({a}, {out}, bound(b, 2, kGroupTags[0], allocate(acc, allocate(tile, group))));
}

std::string race_of(const PrimFunc& f) {
  std::vector<Data> buffers;
  for (const Buffer& p : f->params) {
    buffers.push_back(Data::zeros(p->dtype, runtime::Shape(shape_of(f, p, {}))));
  }
  KernelInterpreter run(f, {}, {.find_races = true});
  EXPECT_EQ(run.run(buffers), 0);
  return run.race();
}

TEST(WorkGroups, barriers_stand_between_phases_that_share_memory) {
  const PrimFunc f = insert_barriers(separate_items(reversed_sums()));
  verify(f);
  EXPECT_EQ(text_of(f), R"(def k(a: float32[2, 3, 4]) -> (out: float32[2, 4]):
  for b in thread_bound(2, blockIdx.x):
    allocate acc: float32[4, 2] in register
    allocate tile: float32[4] in shared
    for v in thread_bound(4, threadIdx.x):
      acc[v, 1] = 0f
    for k in range(3):
      barrier()
      for t in thread_bound(4, threadIdx.x):
        tile[t] = a[b, k, t]
      barrier()
      for u in thread_bound(4, threadIdx.x):
        acc[u, 1] = acc[u, 1] + tile[3 - u]
    for w in thread_bound(4, threadIdx.x):
      out[b, w] = acc[w, 1]
)");
  // Registers of items keep the axis that counts them.
  EXPECT_NE(text_of(flatten_buffers(f)).find("acc[u, 1]"), std::string::npos);
  expect_equal(run(reversed_sums()), run(f), "with barriers");
  EXPECT_EQ(race_of(f), "");
}

TEST(WorkGroups, must_find_a_missing_barrier) {
  EXPECT_EQ(race_of(reversed_sums()),
            "tile[3] is written by item (3, 0, 0) of group (0, 0, 0) and read by item (0, 0, 0) of "
            "group (0, 0, 0)");
  // One between the copy and the sum is not enough: the next copy is in no order with the sum.
  const PrimFunc f = insert_barriers(reversed_sums());
  bool first = true;
  const NodeRef without_one = rewrite(
      f->body,
      [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
        auto* e = as<EvaluateNode>(rebuilt);
        if (e == nullptr || !std::exchange(first, false)) return rebuilt;
        return evaluate(imm(DType::Int(32), 0));
      },
      family::tir_stmt);
  const std::string race =
      race_of(modified(*f, [&](PrimFuncNode& n) { n.body = Stmt::unchecked(without_one); }));
  EXPECT_NE(race.find("is read by item"), std::string::npos) << race;
}

TEST(WorkGroups, must_find_items_that_write_the_same_element) {
  Var i = var("i"), j = var("j");
  Buffer a = buffer("a", f32, {index(4)}), out = buffer("out", f32, {index(2)});
  auto writes = [&](std::string_view tag, const PrimExpr& at) {
    return kernel({a}, {out}, bound(i, 4, tag, store(out, {at}, load(a, {i}))));
  };
  const std::string race = race_of(writes(kGlobalTags[0], floor_div(i, index(2))));
  EXPECT_NE(race.find("out[0] is written by"), std::string::npos) << race;
  // Groups are in no order, whatever barriers they have.
  EXPECT_NE(race_of(writes(kGroupTags[0], floor_div(i, index(2)))), "");
  // Launches are.
  const PrimFunc two = kernel(
      {a}, {out},
      seq({bound(i, 2, kGlobalTags[0], store(out, {i}, load(a, {i}))),
           bound(j, 2, kGlobalTags[0], store(out, {index(1) - j}, load(out, {index(1) - j})))}));
  EXPECT_EQ(race_of(two), "");
}

TEST(WorkGroups, must_refuse_registers_of_another_item) {
  const PrimFunc f = reversed_sums(/*own=*/false);
  EXPECT_NE(race_of(insert_barriers(f)), "");
  try {
    separate_items(f);
    ADD_FAILURE() << text_of(separate_items(f));
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("E0401"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("registers of acc"), std::string::npos) << e.what();
  }
}

TEST(WorkGroups, must_fail_to_bind_to_an_unknown_axis) {
  Tensor x = placeholder("x", f32, {index(8)});
  Schedule s(create_prim_func(
      "f", {x}, {compute("y", {index(8)}, [&](const Indices& i) { return x(i[0]); })}));
  const LoopRV loop = s.get_loops(s.get_block("y"))[0];
  auto step = s.bind(loop, "warpIdx.x");
  ASSERT_FALSE(step.is_legal());
  EXPECT_NE(step.why().reason.find("there is no axis \"warpIdx.x\""), std::string::npos)
      << step.why().reason;
  s.bind(loop, "blockIdx.z").value();
}

}  // namespace
}  // namespace relay::tir
