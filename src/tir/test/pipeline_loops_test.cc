// Copies to shared memory that run ahead: what the pass makes of a loop, and the races that are left where it is done wrong.
#include <gtest/gtest.h>

#include <utility>

#include "node/structural.h"
#include "node/walk.h"
#include "tir/copied_value.h"
#include "tir/passes/insert_barriers.h"
#include "tir/passes/pipeline_loops.h"
#include "tir/passes/separate_items.h"
#include "tir/passes/simplify.h"
#include "tir/passes/statements.h"
#include "tir/schedule/schedule.h"
#include "tir/test/invented_inputs.h"
#include "tir/text.h"
#include "tir/thread_nests.h"
#include "tir/verify.h"

namespace relay::tir {
namespace {

constexpr int64_t kItems = 4, kSteps = 5;

Stmt over_items(const Var& v, Stmt body, LoopNest nest = LoopNest::None) {
  return modified(*as<ForNode>(for_(v, index(0), index(kItems), std::move(body))), [&](ForNode& n) {
    n.loop_kind = ForKind::ThreadBound;
    n.thread_tag = kItemTags[0];
    n.hints.nest = nest;
  });
}

// Two groups of items that copy a tile of two elements each in each step, and add the tile backwards.
PrimFunc reversed_sums(int64_t slots, LoopNest nest, int64_t steps = kSteps) {
  Var b = var("b"), k = var("k"), t = var("t"), i = var("i"), u = var("u"), v = var("v"),
      w = var("w");
  Buffer a = buffer("a", f32, {index(2), index(steps), index(2 * kItems)}),
         out = buffer("out", f32, {index(2), index(kItems)}),
         tile = buffer("tile", f32, {index(2 * kItems)}, Scope::Shared),
         acc = buffer("acc", f32, {index(kItems)}, Scope::Register);
  const PrimExpr at = i * kItems + t;
  Stmt step = seq(
      {over_items(t, for_(i, index(0), index(2), store(tile, {at}, load(a, {b, k, at}))), nest),
       over_items(u, store(acc, {u}, load(acc, {u}) + load(tile, {index(2 * kItems - 1) - u})))});
  Stmt loop = modified(*as<ForNode>(for_(k, index(0), index(steps), allocate(tile, step))),
                       [&](ForNode& n) { n.hints.pipeline = slots; });
  Stmt group = seq({over_items(v, store(acc, {v}, imm_float(f32, 0))), loop,
                    over_items(w, store(out, {b, w}, load(acc, {w})))});
  Stmt groups =
      modified(*as<ForNode>(for_(b, index(0), index(2), allocate(acc, group))), [&](ForNode& n) {
        n.loop_kind = ForKind::ThreadBound;
        n.thread_tag = kGroupTags[0];
      });
  return kernel({a}, {out}, groups);
}

PrimFunc lowered(const PrimFunc& f) {
  return insert_barriers(simplify(pipeline_loops(separate_items(f))));
}

std::string race_of(const PrimFunc& f, const std::vector<int64_t>& dims = {}) {
  std::vector<Data> buffers;
  for (const Buffer& p : f->params) {
    buffers.push_back(Data::zeros(p->dtype, runtime::Shape(shape_of(f, p, dims))));
  }
  KernelInterpreter run(f, dims, {.find_races = true});
  EXPECT_EQ(run.run(buffers), 0);
  return run.race();
}

size_t count(const std::string& text, const std::string& word) {
  size_t out = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++out;
  return out;
}

PrimFunc with_calls(const PrimFunc& f, const std::function<Stmt(const CallNode&)>& change) {
  return modified(*f, [&](PrimFuncNode& n) {
    n.body = Stmt::unchecked(rewrite(
        f->body,
        [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
          auto* e = as<EvaluateNode>(rebuilt);
          auto* c = e == nullptr ? nullptr : as<CallNode>(e->value);
          const Stmt changed = c == nullptr ? nullptr : change(*c);
          return changed ? NodeRef(changed) : rebuilt;
        },
        family::tir_stmt));
  });
}

TEST(PipelineLoops, copies_go_through_registers) {
  const PrimFunc f = lowered(reversed_sums(2, LoopNest::None));
  verify(f);
  EXPECT_EQ(text_of(f), R"(def k(a: float32[2, 5, 8]) -> (out: float32[2, 4]):
  for b in thread_bound(2, blockIdx.x):
    allocate acc: float32[4, 1] in register
    for v in thread_bound(4, threadIdx.x):
      acc[v, 0] = 0f
    allocate tile: float32[2, 8] in shared
    for t in thread_bound(4, threadIdx.x):
      for i in range(2):
        tile[0, t + i * 4] = a[b, 0, t + i * 4]
    for k in range(5):  # pipeline = 2
      allocate tile_next: float32[4, 2] in register
      barrier()
      if k < 4:
        for t in thread_bound(4, threadIdx.x):
          for i in range(2):
            tile_next[t, i] = a[b, k + 1, t + i * 4]
      for u in thread_bound(4, threadIdx.x):
        acc[u, 0] = acc[u, 0] + tile[k %% 2, u * -1 + 7]
      if k < 4:
        for t in thread_bound(4, threadIdx.x):
          for i in range(2):
            tile[(k + 1) %% 2, t + i * 4] = tile_next[t, i]
    for w in thread_bound(4, threadIdx.x):
      out[b, w] = acc[w, 0]
)");
}

TEST(PipelineLoops, copies_arrive_later) {
  const std::string text = text_of(lowered(reversed_sums(3, LoopNest::Copy)));
  EXPECT_NE(text.find(R"(
    end_copies()
    for k in range(5):  # pipeline = 3
      wait_copies(int32(1))
      barrier()
      if k < 3:
        for t in thread_bound(4, threadIdx.x):  # nest = copy
          for i in range(2):
            tile[(k + 2) %% 3, t + i * 4] = a[b, k + 2, t + i * 4]
      end_copies()
      for u in thread_bound(4, threadIdx.x):
        acc[u, 0] = acc[u, 0] + tile[k %% 3, u * -1 + 7]
)"),
            std::string::npos)
      << text;
  EXPECT_EQ(count(text, "end_copies()"), 3U) << text;
  EXPECT_EQ(count(text, "register"), 1U) << text;
}

// One barrier in each step, where a loop that is not pipelined has two; the results are the same, also where there are fewer
// steps than buffers.
TEST(PipelineLoops, one_barrier_in_a_step) {
  for (int64_t steps : {1, 2, 3, 7}) {
    const PrimFunc plain = reversed_sums(0, LoopNest::None, steps);
    EXPECT_EQ(count(text_of(lowered(plain)), "barrier()"), steps == 1 ? 1U : 2U);
    for (int64_t slots : {2, 3, 4}) {
      for (LoopNest nest : {LoopNest::None, LoopNest::Copy}) {
        const PrimFunc f = lowered(reversed_sums(slots, nest, steps));
        verify(f);
        EXPECT_EQ(count(text_of(f), "barrier()"), 1U) << text_of(f);
        EXPECT_EQ(race_of(f), "") << text_of(f);
        expect_equal(run(plain), run(f), text_of(f));
      }
    }
  }
}

// Two groups that add, twice over `n` steps, products of a tile, whose copies arrive as `nest` says, and of one with elements for
// all items but the last, whose copies go through registers.
PrimFunc guarded_products(int64_t slots, LoopNest nest) {
  Var n = var("n"), b = var("b"), r = var("r"), k = var("k"), t = var("t"), i = var("i"),
      s = var("s"), u = var("u"), v = var("v"), w = var("w");
  Buffer x = buffer("x", f32, {index(2), n, index(2 * kItems)}),
         y = buffer("y", f32, {n, index(kItems - 1)}),
         out = buffer("out", f32, {index(2), index(kItems)}),
         tile = buffer("tile", f32, {index(2 * kItems)}, Scope::Shared),
         other = buffer("other", f32, {index(kItems)}, Scope::Shared),
         acc = buffer("acc", f32, {index(kItems)}, Scope::Register);
  const PrimExpr at = i * kItems + t;
  Stmt step = seq(
      {over_items(t, for_(i, index(0), index(2), store(tile, {at}, load(x, {b, k, at}))), nest),
       over_items(s, if_(lt(s, index(kItems - 1)), store(other, {s}, load(y, {k, s})))),
       over_items(u, store(acc, {u},
                           load(acc, {u}) + load(tile, {index(2 * kItems - 1) - u}) *
                                                load(other, {floor_mod(u, index(kItems - 1))})))});
  Stmt loop = modified(*as<ForNode>(for_(k, index(0), n, allocate(tile, allocate(other, step)))),
                       [&](ForNode& node) { node.hints.pipeline = slots; });
  Stmt group =
      seq({over_items(v, store(acc, {v}, imm_float(f32, 0))), for_(r, index(0), index(2), loop),
           over_items(w, store(out, {b, w}, load(acc, {w})))});
  Stmt groups =
      modified(*as<ForNode>(for_(b, index(0), index(2), allocate(acc, group))), [&](ForNode& node) {
        node.loop_kind = ForKind::ThreadBound;
        node.thread_tag = kGroupTags[0];
      });
  return kernel({x, y}, {out}, groups, {n});
}

TEST(PipelineLoops, any_number_of_steps_and_several_copies) {
  const PrimFunc plain = guarded_products(0, LoopNest::None);
  for (int64_t slots : {2, 3, 4}) {
    for (LoopNest nest : {LoopNest::None, LoopNest::Copy}) {
      const PrimFunc f = lowered(guarded_products(slots, nest));
      verify(f);
      for (int64_t steps : {0, 1, 2, 3, 6}) {
        expect_equal(run(plain, 1, {steps}), run(f, 1, {steps}), text_of(f));
        EXPECT_EQ(race_of(f, {steps}), "") << steps << " steps\n" << text_of(f);
      }
    }
  }
}

// No item waits for the copies of a loop that is not pipelined, or that is none any more.
TEST(PipelineLoops, other_copies_arrive_at_once) {
  const PrimFunc plain = reversed_sums(0, LoopNest::Copy),
                 once = simplify(reversed_sums(2, LoopNest::Copy, 1));
  for (const PrimFunc& f : {plain, once}) {
    ASSERT_EQ(count(text_of(f), "nest = copy"), 1U);
    EXPECT_EQ(count(text_of(lowered(f)), "nest = copy"), 0U);
    EXPECT_EQ(race_of(lowered(f)), "");
  }
}

TEST(PipelineLoops, a_loop_without_the_hint_stays) {
  const PrimFunc f = separate_items(reversed_sums(0, LoopNest::None));
  EXPECT_EQ(pipeline_loops(f), f);
}

TEST(PipelineLoops, must_refuse_loops_that_no_copies_begin_E0401) {
  const PrimFunc f = separate_items(reversed_sums(2, LoopNest::None));
  auto refused = [&](const std::function<Stmt(const ForNode&)>& change, const std::string& why) {
    const PrimFunc changed = modified(*f, [&](PrimFuncNode& n) {
      n.body = Stmt::unchecked(rewrite(
          f->body,
          [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
            auto* loop = as<ForNode>(rebuilt);
            return loop == nullptr || loop->hints.pipeline == 0 ? rebuilt : change(*loop);
          },
          family::tir_stmt));
    });
    try {
      pipeline_loops(changed);
      ADD_FAILURE() << text_of(changed);
    } catch (const UserError& e) {
      EXPECT_NE(std::string(e.what()).find("E0401"), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
    }
  };
  auto inside = [](const ForNode& loop) { return as<AllocateNode>(loop.body); };
  refused(
      [&](const ForNode& loop) {
        return with_body(loop, as<SeqNode>(inside(loop)->body)->stmts[1]);
      },
      "does not begin with copies");
  refused(
      [&](const ForNode& loop) {
        return allocate(inside(loop)->buffer, with_body(loop, inside(loop)->body));
      },
      "leaves what it copies to statements behind it");
  refused(
      [&](const ForNode& loop) {
        const Stmt& copy = as<SeqNode>(inside(loop)->body)->stmts[0];
        return with_body(loop, allocate(inside(loop)->buffer, seq({inside(loop)->body, copy})));
      },
      "stores to what it copies");
}

TEST(PipelineLoops, must_find_buffers_that_take_no_turns) {
  for (LoopNest nest : {LoopNest::None, LoopNest::Copy}) {
    const PrimFunc f = lowered(reversed_sums(2, nest));
    // All steps in the first buffer.
    const PrimFunc one = modified(*f, [&](PrimFuncNode& n) {
      n.body = Stmt::unchecked(rewrite(
          f->body,
          [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
            auto first = [](std::vector<PrimExpr> indices) {
              indices[0] = index(0);
              return indices;
            };
            if (auto* l = as<LoadNode>(rebuilt); l != nullptr && l->buffer->name == "tile") {
              return load(l->buffer, first(l->indices));
            }
            if (auto* s = as<StoreNode>(rebuilt); s != nullptr && s->buffer->name == "tile") {
              return store(s->buffer, first(s->indices), s->value);
            }
            return rebuilt;
          },
          family::tir_code));
    });
    EXPECT_NE(race_of(one).find("tile["), std::string::npos) << text_of(one);
    // Barriers help where no item would have to wait for what it has only begun.
    EXPECT_EQ(race_of(insert_barriers(one)).empty(), nest == LoopNest::None);
  }
}

TEST(PipelineLoops, must_find_copies_that_no_item_waits_for) {
  const PrimFunc f = lowered(reversed_sums(2, LoopNest::Copy));
  const PrimFunc waits_not = with_calls(
      f, [](const CallNode& c) { return c.name == "wait_copies" ? seq({}) : Stmt(nullptr); });
  EXPECT_NE(race_of(waits_not).find("is written by item"), std::string::npos);
  // For all but the last lot, which is the one that the step needs.
  const PrimFunc too_early = with_calls(f, [](const CallNode& c) {
    return c.name == "wait_copies"
               ? evaluate(call("wait_copies", DType::Int(32), {imm(DType::Int(32), 1)}))
               : Stmt(nullptr);
  });
  EXPECT_NE(race_of(too_early), "");
  // What an item has waited for is its own; others see it behind a barrier.
  const PrimFunc without_barrier = with_calls(
      f, [](const CallNode& c) { return c.name == "barrier" ? seq({}) : Stmt(nullptr); });
  EXPECT_NE(race_of(without_barrier), "");
}

TEST(CopiedValue, an_element_or_zero) {
  Buffer x = buffer("x", f32, {index(8)}), at = buffer("at", kIndex, {index(8)});
  Var i = var("i");
  const PrimExpr inside = lt(i, index(8)), element = load(x, {i}), zero = imm_float(f32, 0),
                 gathered = load(x, {load(at, {i})});
  EXPECT_EQ(copied_value(element).from, element.get());
  EXPECT_EQ(copied_value(gathered).from, gathered.get());
  const CopiedValue bordered = copied_value(select(inside, element, zero));
  EXPECT_EQ(bordered.from, element.get());
  EXPECT_TRUE(structural_equal(bordered.inside, inside));
  // What a copy reads for its place, it reads wherever it is.
  EXPECT_EQ(copied_value(select(inside, gathered, zero)).from, nullptr);
  EXPECT_EQ(copied_value(select(inside, element, imm_float(f32, -0.0))).from, nullptr);
  EXPECT_EQ(copied_value(select(inside, element, imm_float(f32, 1))).from, nullptr);
  EXPECT_EQ(copied_value(element + zero).from, nullptr);
}

// y[i] += x[k] * z[i], with the part of x that a step needs in shared memory.
PrimFunc scaled_sums() {
  Tensor x = placeholder("x", f32, {index(16)}), z = placeholder("z", f32, {index(8)});
  return create_prim_func("f", {x, z}, {compute("y", {index(8)}, [&](const Indices& i) {
                            return sum({index(16)},
                                       [&](const Indices& k) { return x(k[0]) * z(i[0]); });
                          })});
}
LoopRV stage(Schedule& s) {
  const BlockRV y = s.get_block("y"), copy = s.cache_read(y, "x", Scope::Shared).value();
  const std::vector<LoopRV> loops = s.get_loops(y);
  const std::vector<LoopRV> steps = s.split(loops[1], {-1, 4}).value();
  s.reorder({steps[0], loops[0], steps[1]}).value();
  s.decompose_reduction(y, steps[0]).value();
  s.compute_at(copy, steps[0]).value();
  return steps[0];
}

TEST(PipelineLoops, a_schedule_marks_the_loop) {
  Schedule s(scaled_sums());
  const LoopRV step = stage(s);
  s.pipeline(step, 2).value();
  EXPECT_NE(text_of(s.func()).find("# pipeline = 2"), std::string::npos) << text_of(s.func());
  EXPECT_TRUE(structural_equal(Schedule::replay(scaled_sums(), s.trace_text()), s.func(), true))
      << s.trace_text();
}

TEST(PipelineLoops, must_fail_to_pipeline_other_loops) {
  auto refused = [](Schedule& s, const LoopRV& loop, int64_t slots, const std::string& why) {
    const PrimFunc before = s.func();
    auto step = s.pipeline(loop, slots);
    ASSERT_FALSE(step.is_legal()) << why;
    EXPECT_NE(step.why().reason.find(why), std::string::npos) << step.why().reason;
    EXPECT_EQ(s.func(), before);
  };
  Schedule s(scaled_sums());
  const LoopRV step = stage(s);
  refused(s, step, 1, "fewer than two buffers");
  const std::vector<LoopRV> loops = s.get_loops(s.get_block("y"));
  refused(s, loops[2], 2, "writes to shared memory");
  s.bind(loops[1], "threadIdx.x").value();
  refused(s, loops[1], 2, "is not serial any more");
  // A copy of what the loop computes.
  Tensor x = placeholder("x", f32, {index(4), index(4)});
  Tensor y = compute("y", {index(4), index(4)},
                     [&](const Indices& i) { return x(i[0], i[1]) + imm_float(f32, 1); });
  Tensor z = compute("z", {index(4), index(4)},
                     [&](const Indices& i) { return y(i[0], i[1]) * imm_float(f32, 2); });
  Tensor out = compute("out", {index(4), index(4)},
                       [&](const Indices& i) { return z(i[0], i[1]) - imm_float(f32, 3); });
  Schedule chain(create_prim_func("chain", {x}, {out}));
  const LoopRV row = chain.get_loops(chain.get_block("out"))[0];
  for (const char* name : {"z", "y"}) {
    chain.compute_at(chain.get_block(name), row).value();
    chain.set_scope(chain.get_block(name), Scope::Shared).value();
  }
  refused(chain, row, 2, "block z reads y");
}

}  // namespace
}  // namespace relay::tir
