// Groups of work items: what passes make of their memory, and races that the interpreter finds.
#include <gtest/gtest.h>

#include <utility>

#include "node/structural.h"
#include "node/walk.h"
#include "tir/arith/analyzer.h"
#include "tir/passes/flatten_buffers.h"
#include "tir/passes/insert_barriers.h"
#include "tir/passes/lower_blocks.h"
#include "tir/passes/pad_shared_rows.h"
#include "tir/passes/separate_items.h"
#include "tir/passes/statements.h"
#include "tir/schedule/schedule.h"
#include "tir/test/invented_inputs.h"
#include "tir/text.h"
#include "tir/thread_nests.h"
#include "tir/verify.h"
#include "tir/warp_nest.h"
#include "tir/while.h"

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

// A phase in which each item stores to some buffers, and adds what another item has stored to others.
Stmt exchange(const Buffer& acc, const std::vector<Buffer>& writes,
              const std::vector<Buffer>& reads) {
  Var t = var("t");
  std::vector<Stmt> out;
  for (const Buffer& b : writes) out.push_back(store(b, {t}, cast(f32, t)));
  PrimExpr sum = load(acc, {t});
  for (const Buffer& b : reads) sum = sum + load(b, {index(kItems - 1) - t});
  out.push_back(store(acc, {t}, sum));
  return over_items(t, seq(out));
}

// Two groups, `b`, whose items give what `body` leaves in their registers `acc`.
PrimFunc sums(const Var& b, const Buffer& acc, const std::vector<Buffer>& shared, Stmt body) {
  Var v = var("v"), w = var("w");
  Buffer out = buffer("out", f32, {index(2), index(kItems)});
  Stmt group = seq({over_items(v, store(acc, {v}, imm_float(f32, 0))), std::move(body),
                    over_items(w, store(out, {b, w}, load(acc, {w})))});
  for (const Buffer& s : shared) group = allocate(s, group);
  return kernel({}, {out}, bound(b, 2, kGroupTags[0], allocate(acc, group)));
}

Buffer of_items(const std::string& name, Scope scope = Scope::Shared, DType dtype = f32) {
  return buffer(name, dtype, {index(kItems)}, scope);
}

// With barriers it has no race, and it has one without them.
void expect_barriers(const PrimFunc& f, size_t count) {
  EXPECT_NE(race_of(f), "");
  const PrimFunc with = insert_barriers(f);
  EXPECT_EQ(race_of(with), "") << text_of(with);
  const std::string text = text_of(with), word = "barrier()";
  size_t found = 0;
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size()) ++found;
  EXPECT_EQ(found, count) << text;
}

// The barriers of an iteration depend on the accesses at the end of the one before. The third walk of this body is the
// first that starts from all of them.
TEST(WorkGroups, barriers_of_a_loop_hold_for_every_iteration) {
  Var b = var("b"), k = var("k");
  const Buffer acc = of_items("acc", Scope::Register), b13 = of_items("b13"), b14 = of_items("b14"),
               b24 = of_items("b24"), b25 = of_items("b25"), b35 = of_items("b35");
  const Stmt step = seq({exchange(acc, {b13, b14}, {}), exchange(acc, {b24, b25}, {}),
                         exchange(acc, {b35}, {b13}), exchange(acc, {}, {b14, b24}),
                         exchange(acc, {}, {b25, b35})});
  const std::vector<Buffer> shared{b13, b14, b24, b25, b35};
  Stmt body = for_(k, index(0), index(kSteps), step);
  expect_barriers(sums(b, acc, shared, body), 3);
  // The time that the pass takes does not double with each loop around the phases.
  for (int depth = 0; depth < 40; ++depth) body = for_(var("n"), index(0), index(1), body);
  expect_barriers(sums(b, acc, shared, body), 3);
}

TEST(WorkGroups, barriers_of_both_branches) {
  Var b = var("b");
  const Buffer acc = of_items("acc", Scope::Register), x = of_items("x"), y = of_items("y");
  expect_barriers(sums(b, acc, {x, y},
                       seq({exchange(acc, {x}, {}),
                            if_(eq(b, index(0)), exchange(acc, {y}, {x}), exchange(acc, {}, {x})),
                            if_(eq(b, index(0)), exchange(acc, {}, {y}))})),
                  3);
}

// Each item counts down; all of them look at the count of the last one.
TEST(WorkGroups, conditions_around_phases_wait) {
  Var b = var("b"), t = var("t"), u = var("u"), v = var("v");
  const Buffer acc = of_items("acc", Scope::Register), left = of_items("left", Scope::Shared, i64);
  expect_barriers(
      sums(b, acc, {left},
           seq({over_items(t, store(left, {t}, index(kSteps))),
                while_(gt(load(left, {index(kItems - 1)}), index(0)),
                       over_items(u, store(left, {u}, load(left, {u}) - index(1)))),
                over_items(v, store(acc, {v}, cast(f32, load(left, {index(kItems - 1) - v}))))})),
      3);
}

TEST(WorkGroups, bindings_around_phases_wait) {
  Var b = var("b"), u = var("u"), last = var("last", f32);
  const Buffer acc = of_items("acc", Scope::Register), x = of_items("x");
  expect_barriers(
      sums(b, acc, {x},
           seq({exchange(acc, {x}, {}),
                let_stmt(last, load(x, {index(kItems - 1)}), over_items(u, store(x, {u}, last))),
                exchange(acc, {}, {x})})),
      3);
}

// Registers that only phases along one axis of the group access are those of its first items along the other axis.
TEST(WorkGroups, registers_of_phases_of_fewer_axes) {
  Var b = var("b"), r = var("r"), t = var("t"), u = var("u"), v = var("v");
  Buffer a = buffer("a", f32, {index(2), index(kItems)}),
         out = buffer("out", f32, {index(2), index(kItems)}),
         tile = buffer("tile", f32, {index(2), index(kItems)}, Scope::Shared),
         acc = of_items("acc", Scope::Register);
  Stmt copy = bound(r, 2, kItemTags[1], over_items(t, store(tile, {r, t}, load(a, {b, t}))));
  Stmt group =
      seq({over_items(v, store(acc, {v}, load(a, {b, v}))), copy,
           over_items(u, store(out, {b, u},
                               load(acc, {u}) + load(tile, {index(1), index(kItems - 1) - u})))});
  const PrimFunc f =
      kernel({a}, {out}, bound(b, 2, kGroupTags[0], allocate(acc, allocate(tile, group))));
  const PrimFunc separated = insert_barriers(separate_items(f));
  verify(separated);
  EXPECT_NE(text_of(separated).find("acc[0, v, 0] = a[b, v]"), std::string::npos)
      << text_of(separated);
  EXPECT_EQ(race_of(separated), "");
  expect_equal(run(f), run(separated), "with registers of items");
}

// Each item has two runs of 3 elements; between them are those of the other items.
TEST(WorkGroups, registers_of_items_that_alternate) {
  Var b = var("b"), t = var("t"), u = var("u"), h = var("h"), v = var("v"), i = var("i"),
      j = var("j");
  Buffer a = buffer("a", f32, {index(2), index(6 * kItems)}),
         out = buffer("out", f32, {index(2), index(6 * kItems)}),
         acc = buffer("acc", f32, {index(6 * kItems)}, Scope::Register);
  auto element = [](const Var& half, const Var& item, const Var& of_run) {
    return (half * kItems + item) * 3 + of_run;
  };
  auto runs = [](const Var& half, const Var& of_run, Stmt body) {
    return for_(half, index(0), index(2), for_(of_run, index(0), index(3), std::move(body)));
  };
  const Stmt group = seq(
      {over_items(t, runs(h, v, store(acc, {element(h, t, v)}, load(a, {b, element(h, t, v)})))),
       over_items(u, runs(i, j,
                          store(out, {b, element(i, u, j)},
                                load(acc, {element(i, u, j)}) + imm_float(f32, 1))))});
  const PrimFunc f = kernel({a}, {out}, bound(b, 2, kGroupTags[0], allocate(acc, group)));
  const PrimFunc separated = separate_items(f);
  verify(separated);
  EXPECT_NE(text_of(separated).find("acc: float32[4, 6] in register"), std::string::npos)
      << text_of(separated);
  EXPECT_NE(text_of(separated).find("acc[t, v + h * 3] ="), std::string::npos)
      << text_of(separated);
  expect_equal(run(f), run(separated), "with registers of items");
  EXPECT_EQ(race_of(separated), "");
}

// A change of a nest that two warps multiply with.
struct WarpChange {
  int64_t rows = 8, columns = 4, own_columns = 2;      // items along y and x, and columns of each
  bool in_registers = false, under_condition = false;  // an operand; the nest
  int a_by_column = 0, b_by_row = 0;  // elements of an operand that the other's index selects
  BinaryOp op = BinaryOp::Mul;
  DType sums = f32, rounded = f32;  // of the products; by which an operand goes to them
  int64_t terms = 8;
};

// acc[m, n] += a[m, k] * b[n, k] by warps below each other, and the kernel that gives acc.
PrimFunc products_of_warps(const WarpChange& change = {}) {
  Var g = var("g"), z = var("z"), y = var("y"), x = var("x"), k = var("k"), i = var("i"),
      j = var("j"), z2 = var("z2"), y2 = var("y2"), x2 = var("x2"), i2 = var("i2"), j2 = var("j2"),
      z3 = var("z3"), y3 = var("y3"), x3 = var("x3"), i3 = var("i3"), j3 = var("j3");
  Buffer a = buffer("a", f32, {index(40), index(8)}), b = buffer("b", f32, {index(40), index(8)}),
         own = buffer("own", f32, {index(40), index(8)}, Scope::Register),
         out = buffer("out", f32, {index(32), index(8)}),
         acc = buffer("acc", change.sums, {index(32), index(8)}, Scope::Register);
  auto phase = [&](const Var& warp, const Var& row, const Var& column, Stmt body) {
    return bound(warp, 2, kItemTags[2],
                 bound(row, change.rows, kItemTags[1],
                       bound(column, change.columns, kItemTags[0], std::move(body))));
  };
  auto loop = [](const Var& v, int64_t extent, Stmt body, bool in_nest) {
    return modified(
        *as<ForNode>(for_(v, index(0), index(extent), std::move(body))),
        [&](ForNode& f) { f.hints.nest = in_nest ? LoopNest::Matrix : LoopNest::None; });
  };
  auto tile = [&](const Var& rows, const Var& columns, Stmt body, bool in_nest) {
    return loop(rows, 2, loop(columns, change.own_columns, std::move(body), in_nest), in_nest);
  };
  auto row = [](const Var& warp, const Var& half, const Var& item) {
    return warp * 16 + half * 8 + item;
  };
  const PrimExpr r = row(z, i, y), c = x * 2 + j;
  const Buffer& from = change.in_registers ? own : a;
  auto factor = [&](const PrimExpr& e) { return cast(change.sums, cast(change.rounded, e)); };
  const PrimExpr first = factor(load(from, {r + c * change.a_by_column, k})),
                 second = factor(load(b, {c + y * change.b_by_row, k}));
  Stmt nest = loop(
      k, change.terms,
      tile(i, j, store(acc, {r, c}, load(acc, {r, c}) + binary(change.op, first, second)), true),
      true);
  if (change.under_condition) nest = if_(lt(y, index(3)), nest);
  Stmt group =
      seq({phase(z2, y2, x2,
                 tile(i2, j2, store(acc, {row(z2, i2, y2), x2 * 2 + j2}, imm_float(change.sums, 0)),
                      false)),
           phase(z, y, x, nest),
           phase(z3, y3, x3,
                 tile(i3, j3,
                      store(out, {row(z3, i3, y3), x3 * 2 + j3},
                            cast(f32, load(acc, {row(z3, i3, y3), x3 * 2 + j3}))),
                      false))});
  if (change.in_registers) group = allocate(own, group);
  return kernel({a, b}, {out}, bound(g, 1, kGroupTags[0], allocate(acc, group)));
}

TEST(WorkGroups, a_warp_multiplies_by_loops_of_its_items) {
  const PrimFunc f = products_of_warps();
  verify(f);
  const PrimFunc separated = insert_barriers(flatten_buffers(separate_items(f)));
  verify(separated);
  const std::string text = text_of(separated);
  // An item has two rows, between which are those of seven others, of its warp.
  for (const char* line :
       {"acc: float32[2, 8, 4, 2, 2] in register", "for k in range(8):  # nest = matrix",
        "acc[z, y, x, i, j] = acc[z, y, x, i, j] + a[(z * 16 + i * 8 + y) * 8 + k] *"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
  EXPECT_EQ(race_of(separated), "");
  expect_equal(run(f), run(separated), "with registers of items");
}

// What an instruction reads for an item is what the item's loops read.
TEST(WorkGroups, elements_of_a_warps_product) {
  const PrimFunc f = products_of_warps();
  bool found = false;
  map_groups(f->body, [&](const ThreadNest& group) {
    for_each_phase(group.body, [&](const ThreadNest& phase) {
      auto* nest = as<ForNode>(phase.body);
      if (nest == nullptr || nest->hints.nest != LoopNest::Matrix) return;
      found = true;
      const auto product = std::get<WarpProduct>(warp_product(*nest, phase));
      EXPECT_EQ(product.terms(), 8);
      EXPECT_EQ(product.item_rows(), 2);
      Analyzer analyzer;
      auto number = [&](const PrimExpr& e) {
        return as_int(analyzer.simplify(replace(e, {{phase.axes[2]->var.get(), index(1)}})));
      };
      for (int64_t at = 0; at < 8; ++at) {
        EXPECT_EQ(number(product.a_at(index(1), index(at), index(3))[0]), 24 + at);
        EXPECT_EQ(number(product.b_at(index(3), index(at))[0]), at);
        EXPECT_EQ(number(product.b_at(index(at), index(0))[1]), at);
      }
    });
    return group.body;
  });
  EXPECT_TRUE(found);
}

TEST(WorkGroups, must_fail_matrix_nests_that_no_warp_can_do) {
  const std::pair<WarpChange, const char*> wrong[] = {
      {{.rows = 4}, "no loops over 8 x 4 items"},
      {{.columns = 2}, "no loops over 8 x 4 items"},
      {{.own_columns = 1}, "has not two columns"},
      {{.in_registers = true}, "its sums alone lie in registers"},
      {{.under_condition = true}, "not all items of a group reach"},
      {{.a_by_column = 1}, "its rows depend on columns"},
      {{.b_by_row = 1}, "its columns depend on rows"},
      {{.op = BinaryOp::Sub}, "no sum of products"},
      {{.rounded = DType::Float(16)}, "no sum of products"},
      {{.sums = DType::Float(64)}, "8 terms of float32 and float32 to float64"},
      {{.terms = 4}, "no instruction adds products of 16 rows and 4 terms"}};
  for (const auto& [change, why] : wrong) {
    try {
      verify(products_of_warps(change));
      ADD_FAILURE() << why;
    } catch (const InternalError& e) {
      EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
    }
  }
}

TEST(WorkGroups, rows_of_whole_banks_are_padded) {
  EXPECT_EQ(padded_row_bytes(128, 4), 528);
  EXPECT_EQ(padded_row_bytes(64, 2), 144);
  EXPECT_EQ(padded_row_bytes(16, 2), 48);
  EXPECT_EQ(padded_row_bytes(44, 4), 176);
  Var b = var("b"), t = var("t"), u = var("u");
  Buffer out = buffer("out", f32, {index(2), index(32)}),
         tile = buffer("tile", f32, {index(2), index(32)}, Scope::Shared);
  const PrimFunc f = kernel(
      {}, {out},
      bound(b, 2, kGroupTags[0],
            allocate(tile,
                     seq({over_items(t, store(tile, {index(1), t}, cast(f32, t)), 32),
                          over_items(u, store(out, {b, u}, load(tile, {index(1), index(31) - u})),
                                     32)}))));
  const PrimFunc padded = pad_shared_rows(f);
  verify(padded);
  EXPECT_NE(text_of(padded).find("tile: float32[2, 36] in shared"), std::string::npos)
      << text_of(padded);
  expect_equal(run(f), run(padded), "with padded rows");
  EXPECT_EQ(pad_shared_rows(padded), padded);
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

TEST(WorkGroups, a_schedule_reduces_across_a_warp) {
  Tensor x = placeholder("x", f32, {index(8), index(32)});
  const PrimFunc f =
      create_prim_func("f", {x}, {compute("y", {index(8)}, [&](const Indices& i) {
                         return sum({index(32)}, [&](const Indices& k) { return x(i[0], k[0]); });
                       })});
  Schedule s(f);
  const std::vector<LoopRV> loops = s.get_loops(s.get_block("y"));
  auto refused = [](Schedule& at, const LoopRV& loop, const std::string& why) {
    auto step = at.reduce_lanes(loop);
    ASSERT_FALSE(step.is_legal()) << why;
    EXPECT_NE(step.why().reason.find(why), std::string::npos) << step.why().reason;
  };
  refused(s, loops[0], "is not over the 32 items of a warp");
  s.bind(loops[0], "blockIdx.x").value();
  s.reduce_lanes(loops[1]).value();
  EXPECT_NE(text_of(s.func()).find("thread_bound(32, threadIdx.x):  # nest = lanes"),
            std::string::npos)
      << text_of(s.func());
  EXPECT_TRUE(structural_equal(Schedule::replay(f, s.trace_text()), s.func(), true));
  refused(s, loops[1], "is not serial any more");
  const PrimFunc lowered = insert_barriers(lower_blocks(s.func()));
  EXPECT_EQ(race_of(lowered), "") << text_of(lowered);
  expect_equal(run(f), run(lowered), text_of(lowered));
  // What reduces nothing.
  Tensor z = placeholder("z", f32, {index(32)});
  Schedule copy(create_prim_func(
      "copy", {z}, {compute("y", {index(32)}, [&](const Indices& i) { return z(i[0]); })}));
  EXPECT_FALSE(copy.reduce_lanes(copy.get_loops(copy.get_block("y"))[0]).is_legal());
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
