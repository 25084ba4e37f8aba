// The verifier: what it refuses, each with the reason, and that stages of a kernel pass.
#include "tir/verify.h"

#include <gtest/gtest.h>

#include <functional>

#include "tir/compute.h"
#include "tir/lower_loops.h"
#include "tir/schedule/schedule.h"
#include "tir/test/dtypes.h"

namespace relay::tir {
namespace {

struct Parts {
  Buffer in = buffer("in", f32, {index(4), index(8)});
  Buffer out = buffer("out", f32, {index(4)});
  Var i = var("i"), k = var("k");
  PrimExpr one = imm_float(f32, 1);

  PrimFunc kernel(Stmt body, std::vector<Var> dims = {}) const {
    return make<PrimFuncNode>([&](PrimFuncNode& n) {
      n.name = "kernel";
      n.params = {in, out};
      n.num_inputs = 1;
      n.dims = std::move(dims);
      n.body = std::move(body);
    });
  }
  Stmt over_i(Stmt body) const { return for_(i, index(0), index(4), std::move(body)); }
  // out[i] = sum of in[i, k], as a block that `change` may spoil.
  PrimFunc row_sum(const std::function<void(BlockNode&)>& change) const {
    Var x = var("x"), y = var("y");
    Stmt b = make<BlockNode>([&](BlockNode& n) {
      n.name = "sum";
      n.iters = {iter_var(x, index(4)), iter_var(y, index(8), IterKind::Reduce)};
      n.bindings = {i, k};
      n.reads = {element_region(in, {x, y})};
      n.writes = {element_region(out, {x})};
      n.init = store(out, {x}, imm_float(f32, 0));
      n.body = store(out, {x}, load(out, {x}) + load(in, {x, y}));
      change(n);
    });
    return kernel(over_i(for_(k, index(0), index(8), b)));
  }
};

void expect_defect(const PrimFunc& f, const std::string& reason, const std::string& text = {}) {
  try {
    verify(f);
    ADD_FAILURE() << "not refused: " << reason;
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find(reason), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  }
}

TEST(Verify, variables) {
  Parts p;
  verify(p.kernel(p.over_i(store(p.out, {p.i}, p.one))));
  expect_defect(p.kernel(store(p.out, {p.i}, p.one)), "variable i is not bound here",
                "out[i] = 1f");
  expect_defect(p.kernel(p.over_i(p.over_i(store(p.out, {p.i}, p.one)))),
                "variable i is bound inside its own scope");
  // One after the other is fine; after its loop it is gone.
  Stmt loop = p.over_i(store(p.out, {p.i}, p.one));
  verify(p.kernel(seq({loop, loop})));
  expect_defect(p.kernel(seq({loop, store(p.out, {p.i}, p.one)})), "variable i is not bound here");
  // A Let's variable ends with its body, also for what body and outside share.
  Var v = var("v", f32);
  PrimExpr shared = v * v;
  verify(p.kernel(store(p.out, {index(0)}, let(v, p.one, shared) + let(v, p.one, shared))));
  expect_defect(p.kernel(store(p.out, {index(0)}, let(v, p.one, shared) + shared)),
                "variable v is not bound here");
  expect_defect(p.kernel(store(p.out, {index(0)}, let(v, p.one, let(v, p.one, shared)))),
                "bound inside its own scope");
  Var n = var("n");
  verify(p.kernel(check(lt(n, index(4)), 1, ""), {n}));
  expect_defect(p.kernel(check(lt(n, index(4)), 1, "")), "variable n is not bound here");
}

TEST(Verify, buffers) {
  Parts p;
  Buffer mid = buffer("mid", f32, {index(4)});
  Stmt use = p.over_i(store(mid, {p.i}, p.one));
  verify(p.kernel(allocate(mid, use)));
  expect_defect(p.kernel(use), "buffer mid is not a parameter and not allocated here",
                "mid[i] = 1f");
  expect_defect(p.kernel(seq({allocate(mid, use), use})), "not allocated here");
  expect_defect(p.kernel(allocate(mid, allocate(mid, use))), "inside its own scope");
  expect_defect(p.kernel(store(p.in, {index(0), index(0)}, p.one)), "input in is stored to");
  Buffer cube = buffer("cube", f32, {index(2), index(2), index(2)});
  expect_defect(p.kernel(allocate(cube, store(cube, {index(0), index(0)}, p.one))),
                "cube of 3 dimensions is accessed with 2 indices");
  verify(p.kernel(allocate(cube, store(cube, {index(5)}, p.one))));
}

TEST(Verify, dtypes) {
  Parts p;
  // The builders refuse these, so the nodes are made by hand.
  auto stored = [&](PrimExpr value) {
    return p.kernel(make<StoreNode>([&](StoreNode& n) {
      n.buffer = p.out;
      n.indices = {index(0)};
      n.value = value;
    }));
  };
  expect_defect(stored(index(1)), "the stored value is int64, not float32");
  expect_defect(stored(make<BinaryNode>([&](BinaryNode& n) {
                  n.dtype = f32;
                  n.a = p.one;
                  n.b = index(1);
                })),
                "do not fit");
  expect_defect(stored(make<CallNode>([&](CallNode& n) {
                  n.dtype = f32;
                  n.name = "frobnicate";
                })),
                "frobnicate, which is not an intrinsic");
  expect_defect(stored(make<SelectNode>([&](SelectNode& n) {
                  n.dtype = f32;
                  n.cond = p.one;
                  n.true_value = n.false_value = p.one;
                })),
                "do not fit");
  expect_defect(stored(nullptr), "the stored value is missing");
  expect_defect(p.kernel(make<IfNode>([&](IfNode& n) {
    n.cond = p.one;
    n.then_body = evaluate(p.one);
  })),
                "the condition is float32, not bool");
}

TEST(Verify, blocks) {
  Parts p;
  verify(p.row_sum([](BlockNode&) {}));
  expect_defect(p.row_sum([](BlockNode& b) { b.bindings.pop_back(); }),
                "block sum has 1 bindings for 2 iteration variables");
  expect_defect(p.row_sum([](BlockNode& b) { b.iters[1] = iter_var(b.iters[1]->var, index(8)); }),
                "an initialisation and no reduction");
  expect_defect(p.row_sum([](BlockNode& b) { b.reads.clear(); }), "block sum reads in outside");
  expect_defect(p.row_sum([](BlockNode& b) { b.writes.clear(); }), "block sum writes out outside");
  expect_defect(p.row_sum([&](BlockNode& b) {
    b.reads = {region(p.in, {b.iters[0]->var, index(0)}, {index(1), index(7)})};
  }),
                "block sum reads in outside");
  verify(p.row_sum([&](BlockNode& b) {
    b.reads = {region(p.in, {b.iters[0]->var, index(0)}, {index(1), index(8)})};
  }));
  expect_defect(
      p.row_sum([&](BlockNode& b) { b.reads = {region(p.in, {b.iters[0]->var}, {index(1)})}; }),
      "does not fit the buffer");
}

TEST(Verify, deep_statements_and_expressions) {
  Parts p;
  Stmt s = store(p.out, {index(0)}, p.one);
  PrimExpr e = load(p.out, {index(0)});
  for (int k = 0; k < 100000; ++k) {
    s = if_(lt(load(p.out, {index(0)}), p.one), s);
    Var v = var("v", f32);
    e = let(v, e, v * p.one + e);
  }
  verify(p.kernel(seq({s, store(p.out, {index(0)}, e)})));
}

TEST(Verify, stages_of_a_kernel_pass) {
  Tensor a = placeholder("a", f32, {index(6), index(20)});
  Tensor t = compute("t", {index(6), index(22)}, [&](const Indices& i) {
    PrimExpr inside = logical_and(ge(i[1], index(1)), lt(i[1], index(21)));
    return select(inside, a(i[0], i[1] - 1), imm_float(f32, 0));
  });
  Tensor s = compute("s", {index(6)}, [&](const Indices& i) {
    return sum({index(22)}, [&](const Indices& k) { return t(i[0], k[0]); });
  });
  Schedule schedule(create_prim_func("kernel", {a}, {s}));
  verify(schedule.func());
  auto [i, k] = schedule.get_loops<2>(schedule.get_block("s"));
  auto parts = schedule.split(k, {-1, 8}).value();
  schedule.compute_at(schedule.get_block("t"), parts[0]).value();
  schedule.parallel(i).value();
  PrimFunc f = schedule.func();
  verify(f);
  for (const LoweringPass& pass : lowering_passes()) {
    f = pass.run(f);
    verify(f);
  }
}

}  // namespace
}  // namespace relay::tir
