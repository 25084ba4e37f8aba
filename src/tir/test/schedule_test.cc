// Schedule steps: what they make, that they compute the same, and what they refuse.
#include "tir/schedule/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <unordered_map>

#include "node/walk.h"
#include "tir/compute.h"
#include "tir/test/dtypes.h"

namespace relay::tir {
namespace {

// Runs a function of scalar float code with blocks, whatever the kinds of its loops. Allocated
// memory starts as NaN, so that a value that is read before it is written shows.
class BlockRunner {
 public:
  std::vector<double> run(const PrimFunc& f, uint32_t seed) {
    buffers_.clear();
    for (size_t p = 0; p < f->params.size(); ++p) {
      std::vector<double>& data = make_room(f->params[p]);
      if (static_cast<int64_t>(p) >= f->num_inputs) continue;
      for (double& v : data) {
        seed = seed * 1664525u + 1013904223u;
        v = static_cast<double>(static_cast<int>(seed >> 24) % 9 - 4);
      }
    }
    exec(f->body);
    std::vector<double> out;
    for (size_t p = static_cast<size_t>(f->num_inputs); p < f->params.size(); ++p) {
      const std::vector<double>& data = buffers_[f->params[p].get()];
      out.insert(out.end(), data.begin(), data.end());
    }
    return out;
  }

 private:
  std::vector<double>& make_room(const Buffer& b) {
    int64_t size = 1;
    for (const PrimExpr& e : b->shape) size *= *as_int(e);
    return buffers_[b.get()] = std::vector<double>(static_cast<size_t>(size),
                                                   std::numeric_limits<double>::quiet_NaN());
  }

  size_t offset(const Buffer& b, const std::vector<PrimExpr>& indices) {
    int64_t at = 0;
    for (size_t d = 0; d < indices.size(); ++d) {
      int64_t i = static_cast<int64_t>(eval(indices[d]));
      EXPECT_TRUE(i >= 0 && i < *as_int(b->shape[d]))
          << b->name << " dimension " << d << " index " << i;
      if (i < 0 || i >= *as_int(b->shape[d])) i = 0;
      at = at * *as_int(b->shape[d]) + i;
    }
    return static_cast<size_t>(at);
  }

  double eval(const PrimExpr& e) {
    if (auto* v = as<VarNode>(e)) {
      EXPECT_TRUE(vars_.contains(v)) << "unbound " << v->name;
      return vars_[v];
    }
    if (auto* v = as<IntImmNode>(e)) return static_cast<double>(v->value);
    if (auto* v = as<FloatImmNode>(e)) return v->value;
    if (auto* l = as<LoadNode>(e)) return buffers_[l->buffer.get()][offset(l->buffer, l->indices)];
    if (auto* s = as<SelectNode>(e)) {
      return eval(s->cond) != 0 ? eval(s->true_value) : eval(s->false_value);
    }
    if (auto* n = as<NotNode>(e)) return eval(n->a) == 0;
    auto* b = as<BinaryNode>(e);
    RELAY_CHECK(b != nullptr, "the test's runner does not know " + to_string(e));
    double x = eval(b->a), y = eval(b->b);
    switch (b->op) {
      case BinaryOp::Add:
        return x + y;
      case BinaryOp::Sub:
        return x - y;
      case BinaryOp::Mul:
        return x * y;
      case BinaryOp::FloorDiv:
        return std::floor(x / y);
      case BinaryOp::FloorMod:
        return x - std::floor(x / y) * y;
      case BinaryOp::Min:
        return std::min(x, y);
      case BinaryOp::Max:
        return std::max(x, y);
      case BinaryOp::Eq:
        return x == y;
      case BinaryOp::Ne:
        return x != y;
      case BinaryOp::Lt:
        return x < y;
      case BinaryOp::Le:
        return x <= y;
      case BinaryOp::Gt:
        return x > y;
      case BinaryOp::Ge:
        return x >= y;
      case BinaryOp::And:
        return x != 0 && y != 0;
      case BinaryOp::Or:
        return x != 0 || y != 0;
      default:
        internal_error(__FILE__, __LINE__, "the test's runner does not know the operator");
    }
  }

  void exec(const Stmt& s) {
    if (auto* f = as<ForNode>(s)) {
      int64_t min = static_cast<int64_t>(eval(f->min));
      int64_t extent = static_cast<int64_t>(eval(f->extent));
      for (int64_t i = min; i < min + extent; ++i) {
        vars_[f->var.get()] = static_cast<double>(i);
        exec(f->body);
      }
    } else if (auto* q = as<SeqNode>(s)) {
      for (const Stmt& each : q->stmts) exec(each);
    } else if (auto* a = as<AllocateNode>(s)) {
      make_room(a->buffer);
      exec(a->body);
    } else if (auto* t = as<StoreNode>(s)) {
      double value = eval(t->value);
      size_t at = offset(t->buffer, t->indices);
      buffers_[t->buffer.get()][at] = value;
    } else {
      auto* b = as<BlockNode>(s);
      RELAY_CHECK(b != nullptr, "the test's runner does not know " + to_string(s));
      if (b->predicate && eval(b->predicate) == 0) return;
      bool first = true;
      std::vector<double> values;
      for (const PrimExpr& e : b->bindings) values.push_back(eval(e));
      for (size_t i = 0; i < values.size(); ++i) {
        vars_[b->iters[i]->var.get()] = values[i];
        first &= b->iters[i]->kind != IterKind::Reduce || values[i] == eval(b->iters[i]->min);
      }
      if (b->init && first) exec(b->init);
      exec(b->body);
    }
  }

  std::unordered_map<const Node*, double> vars_;
  std::unordered_map<const Node*, std::vector<double>> buffers_;
};

// Both functions give the same numbers, and the trace leads to the same function again.
void expect_same(const PrimFunc& before, const Schedule& s) {
  std::vector<double> want = BlockRunner().run(before, 7);
  std::vector<double> got = BlockRunner().run(s.func(), 7);
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(want[i], got[i]) << "element " << i << "\n" << s.trace_text() << to_string(s.func());
  }
  EXPECT_EQ(to_string(Schedule::replay(before, s.trace_text())), to_string(s.func()));
}

void expect_refused(const std::function<void()>& step, const std::string& reason) {
  try {
    step();
    FAIL() << "not refused: " << reason;
  } catch (const UserError& e) {
    EXPECT_EQ(e.diagnostics().front().code, "E0402");
    EXPECT_NE(e.diagnostics().front().message.find(reason), std::string::npos)
        << e.diagnostics().front().message;
  }
}

// C = A B, then relu(C + bias).
PrimFunc matmul(int64_t m, int64_t n, int64_t k) {
  Tensor a = placeholder("A", f32, {index(m), index(k)});
  Tensor b = placeholder("B", f32, {index(k), index(n)});
  Tensor bias = placeholder("bias", f32, {index(n)});
  Tensor c = compute("C", {index(m), index(n)}, [&](const Indices& i) {
    return sum({index(k)}, [&](const Indices& r) { return a(i[0], r[0]) * b(r[0], i[1]); });
  });
  Tensor d = compute("D", {index(m), index(n)},
                     [&](const Indices& i) { return c(i[0], i[1]) + bias(i[1]); });
  Tensor e = compute("E", {index(m), index(n)},
                     [&](const Indices& i) { return max(d(i[0], i[1]), imm_float(f32, 0)); });
  return create_prim_func("matmul", {a, b, bias}, {e});
}

PrimFunc chain(int64_t n) {
  Tensor a = placeholder("A", f32, {index(n)});
  Tensor b = compute("B", {index(n)}, [&](const Indices& i) { return a(i) + imm_float(f32, 1); });
  Tensor c = compute("C", {index(n)}, [&](const Indices& i) { return b(i) * b(i); });
  return create_prim_func("chain", {a}, {c});
}

PrimFunc row_sum(int64_t m, int64_t n) {
  Tensor a = placeholder("A", f32, {index(m), index(n)});
  Tensor s = compute("S", {index(m)}, [&](const Indices& i) {
    return sum({index(n)}, [&](const Indices& k) { return a(i[0], k[0]); });
  });
  return create_prim_func("row_sum", {a}, {s});
}

TEST(Schedule, split_that_divides_has_no_predicate) {
  PrimFunc f = chain(12);
  Schedule s(f);
  s.split(s.get_loops(s.get_block("C"))[0], {-1, 4}).value();
  EXPECT_FALSE(s.block(s.get_block("C"))->predicate);
  expect_same(f, s);
}

TEST(Schedule, split_that_does_not_divide_guards_the_block) {
  PrimFunc f = chain(13);
  Schedule s(f);
  s.split(s.get_loops(s.get_block("C"))[0], {-1, 2, 4}).value();
  EXPECT_TRUE(s.block(s.get_block("C"))->predicate);
  expect_same(f, s);
}

TEST(Schedule, partition_peels_the_tail_and_drops_the_predicate) {
  PrimFunc f = chain(13);
  Schedule s(f);
  auto parts = s.split(s.get_loops(s.get_block("C"))[0], {-1, 4}).value();
  Partition p = s.partition(parts[0], 3).value();
  EXPECT_FALSE(s.block(s.get_block("C"))->predicate);
  EXPECT_TRUE(s.block(p.copy_of(s.get_block("C")))->predicate);
  Partition rest = s.partition(p.copy_of(parts[1]), 1).value();
  EXPECT_FALSE(rest.tail.var);  // elements past the end: nothing is left of them
  s.vectorize(parts[1]).value();
  expect_same(f, s);
}

TEST(Schedule, partition_tiles_leaves_whole_tiles_and_a_rest) {
  PrimFunc f = chain(13);
  Schedule s(f);
  Partition p = s.partition_tiles(s.get_loops(s.get_block("C"))[0], 4).value();
  EXPECT_EQ(s.extent(p.head), 12);
  EXPECT_EQ(s.extent(p.tail), 1);
  s.split(p.head, {-1, 4}).value();
  EXPECT_FALSE(s.block(s.get_block("C"))->predicate);
  expect_same(f, s);

  // Of a length that only a run knows, a tile is never cut short.
  Var n = var("n");
  Tensor a = placeholder("A", f32, {n});
  Tensor b = compute("B", {n}, [&](const Indices& i) { return a(i) + imm_float(f32, 1); });
  Schedule open(create_prim_func("add", {a}, {b}, {n}));
  LoopRV loop = open.get_loops(open.get_block("B"))[0];
  EXPECT_FALSE(open.has_whole_tiles(loop, 4));
  Partition parts = open.partition_tiles(loop, 4).value();
  open.split(parts.head, {-1, 4}).value();
  EXPECT_FALSE(open.block(open.get_block("B"))->predicate) << to_string(open.func());
  EXPECT_FALSE(open.block(parts.copy_of(open.get_block("B")))->predicate);
  Schedule whole(chain(8));
  LoopRV eight = whole.get_loops(whole.get_block("C"))[0];
  expect_refused([&] { whole.partition_tiles(eight, 4).value(); }, "leave no two parts");
  EXPECT_TRUE(whole.has_whole_tiles(eight, 4));
  EXPECT_FALSE(whole.has_whole_tiles(eight, 3));

  // Groups of 12, as many as only a run knows.
  Tensor groups = placeholder("A", f32, {n * 12});
  Tensor copied = compute("B", {n * 12}, [&](const Indices& i) { return groups(i); });
  Schedule twelve(create_prim_func("copy", {groups}, {copied}, {n}));
  LoopRV line = twelve.get_loops(twelve.get_block("B"))[0];
  EXPECT_TRUE(twelve.has_whole_tiles(line, 4));
  EXPECT_FALSE(twelve.has_whole_tiles(line, 5));
}

TEST(Schedule, fuse_and_reorder_keep_the_result) {
  PrimFunc f = matmul(5, 6, 7);
  Schedule s(f);
  auto [i, j, k] = s.get_loops<3>(s.get_block("C"));
  s.reorder({k, j, i}).value();
  auto [x, y] = s.get_loops<2>(s.get_block("E"));
  LoopRV all = s.fuse({x, y}).value();
  s.split(all, {-1, 8}).value();
  expect_same(f, s);
}

TEST(Schedule, fuse_takes_loops_over_nothing) {
  for (auto [rows, columns] : {std::pair{5, 0}, std::pair{0, 6}}) {
    PrimFunc f = matmul(rows, columns, 7);
    Schedule s(f);
    auto [x, y] = s.get_loops<2>(s.get_block("E"));
    s.fuse({x, y}).value();
    expect_same(f, s);
  }
}

TEST(Schedule, inlining_removes_the_intermediate) {
  PrimFunc f = chain(6);
  Schedule s(f);
  s.compute_inline(s.get_block("B")).value();
  EXPECT_FALSE(s.has_block("B"));
  EXPECT_EQ(to_string(s.func()).find("allocate"), std::string::npos);
  expect_same(f, s);

  Schedule r(matmul(3, 4, 5));
  r.reverse_compute_inline(r.get_block("E")).value();
  expect_same(matmul(3, 4, 5), r);
}

TEST(Schedule, inlining_what_is_used_twice_does_not_double_it) {
  Tensor first = placeholder("A", f32, {index(4)}), last = first;
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) {
    names.push_back("B" + std::to_string(i));
    last =
        compute(names.back(), {index(4)}, [&](const Indices& at) { return last(at) + last(at); });
  }
  PrimFunc f = create_prim_func("doubled", {first}, {last});
  Schedule s(f);
  names.pop_back();
  for (size_t i = names.size(); i-- > 0;) s.compute_inline(s.get_block(names[i])).value();
  int nodes = 0;
  post_order(s.func()->body, [&](const Node&) { ++nodes; });
  EXPECT_LT(nodes, 200);
  expect_same(f, s);
}

TEST(Schedule, register_tile_of_a_matrix_product) {
  // Row and column counts that do and do not divide.
  for (auto [m, n, k] : {std::array<int64_t, 3>{28, 64, 9}, {29, 40, 5}, {3, 33, 8}, {1, 7, 1}}) {
    PrimFunc f = matmul(m, n, k);
    Schedule s(f);
    s.compute_inline(s.get_block("D")).value();
    auto [i, j] = s.get_loops<2>(s.get_block("E"));
    auto rows = s.split(i, {-1, 14}).value();
    auto columns = s.split(j, {-1, 32}).value();
    s.reorder({rows[0], columns[0], rows[1], columns[1]}).value();
    s.compute_at(s.get_block("C"), columns[0]).value();
    s.set_scope(s.get_block("C"), Scope::Register).value();
    std::vector<LoopRV> inner = s.get_loops(s.get_block("C"));
    for (const LoopRV& l : inner) {
      if (s.loop(l)->body.get()->kind() == StmtKind::Block && k > 1) {
        std::vector<LoopRV> order{l};
        for (size_t x = 2; x + 1 < inner.size(); ++x) order.push_back(inner[x]);
        s.reorder(order).value();
        s.decompose_reduction(s.get_block("C"), l).value();
      }
    }
    s.parallel(rows[0]).value();
    expect_same(f, s);
  }
}

TEST(Schedule, compute_at_computes_overlapping_windows) {
  Tensor a = placeholder("A", f32, {index(10)});
  Tensor b = compute("B", {index(10)}, [&](const Indices& i) { return a(i) * a(i); });
  Tensor c = compute("C", {index(8)},
                     [&](const Indices& i) { return b(i[0]) + b(i[0] + 1) + b(i[0] + 2); });
  PrimFunc f = create_prim_func("window", {a}, {c});
  Schedule s(f);
  auto parts = s.split(s.get_loops(s.get_block("C"))[0], {-1, 3}).value();
  s.compute_at(s.get_block("B"), parts[0]).value();
  EXPECT_EQ(s.extent(s.get_loops(s.get_block("B"))[1]), 5);
  expect_same(f, s);
}

TEST(Schedule, reverse_compute_at_moves_the_consumer) {
  PrimFunc f = matmul(6, 8, 4);
  Schedule s(f);
  auto [i, j, k] = s.get_loops<3>(s.get_block("C"));
  auto rows = s.split(i, {-1, 4}).value();
  s.reverse_compute_at(s.get_block("D"), rows[0]).value();
  expect_same(f, s);
  expect_refused([&] { s.reverse_compute_at(s.get_block("E"), k).value(); }, "no producer");
}

TEST(Schedule, caches_copy_in_and_out) {
  PrimFunc f = matmul(6, 8, 4);
  Schedule s(f);
  BlockRV in = s.cache_read(s.get_block("C"), "B", Scope::Local).value();
  s.transform_layout(in, {{1, 4, 0}, {0, 1, 0}, {1, 1, 4}}).value();
  s.cache_write(s.get_block("E"), Scope::Local).value();
  expect_same(f, s);
  EXPECT_EQ(s.block(in)->writes[0]->buffer->shape.size(), 3u);
}

TEST(Schedule, a_cache_holds_what_an_index_from_memory_selects) {
  Tensor at = placeholder("at", DType::Int(64), {index(2)});
  Tensor x = placeholder("x", f32, {index(9), index(3)});
  Tensor y = compute("Y", {index(2), index(3)}, [&](const Indices& i) {
    return x({max(min(at({i[0]}), index(8)), index(0)), i[1]}) * imm_float(f32, 2);
  });
  PrimFunc f = create_prim_func("selects", {at, x}, {y});
  Schedule s(f);
  BlockRV copy = s.cache_read(s.get_block("Y"), "x", Scope::Local).value();
  EXPECT_EQ(as_int(s.block(copy)->writes[0]->buffer->shape[0]), 2);
  expect_same(f, s);
  // The indices themselves are cached as a whole.
  BlockRV all = s.cache_read(copy, "at", Scope::Local).value();
  EXPECT_EQ(as_int(s.block(all)->writes[0]->buffer->shape[0]), 2);
}

TEST(Schedule, layouts_of_open_dimensions) {
  Var n = var("n");
  Tensor x = placeholder("x", f32, {n, index(3)});
  Tensor a = compute("A", x->shape(), [&](const Indices& i) { return x(i) + imm_float(f32, 1); });
  Tensor b = compute("B", x->shape(), [&](const Indices& i) { return a(i) * a(i); });
  Schedule s(create_prim_func("open", {x}, {b}, {n}));
  BlockRV copy = s.get_block("A");
  s.transform_layout(copy, {{1, 1, 0}, {0, 1, 0}}).value();
  const auto& shape = s.block(copy)->writes[0]->buffer->shape;
  EXPECT_EQ(as_int(shape[0]), 3);
  EXPECT_EQ(shape[1].get(), n.get());
  expect_refused([&] { s.transform_layout(copy, {{0, 1, 0}}).value(); }, "share a place");
  expect_refused(
      [&] {
        s.transform_layout(copy, {{0, 1, 0}, {1, 1, 4}}).value();
      },
      "share a place");
  s.transform_layout(copy, {{1, 4, 0}, {0, 1, 0}, {1, 1, 4}}).value();
  const auto& blocks = s.block(copy)->writes[0]->buffer->shape;
  EXPECT_EQ(to_string(blocks[0]), "(n + 3) // 4");
  EXPECT_EQ(as_int(blocks[2]), 4);
}

TEST(Schedule, rfactor_splits_a_reduction_into_lanes) {
  for (int64_t n : {16, 21, 8}) {
    PrimFunc f = row_sum(5, n);
    Schedule s(f);
    auto [i, k] = s.get_loops<2>(s.get_block("S"));
    auto parts = s.split(k, {-1, 8}).value();
    BlockRV partial = s.rfactor(s.get_block("S"), parts[1]).value();
    s.decompose_reduction(partial, parts[0]).value();
    s.vectorize(parts[1]).value();
    expect_same(f, s);
  }
  // Lanes that no element falls to would stay without a value.
  Schedule s(row_sum(5, 3));
  auto parts = s.split(s.get_loops(s.get_block("S"))[1], {-1, 8}).value();
  expect_refused([&] { s.rfactor(s.get_block("S"), parts[1]).value(); }, "may run for no element");
}

TEST(Schedule, masked_reductions_run_for_all_lanes) {
  for (int64_t n : {3, 8, 21}) {
    PrimFunc f = row_sum(5, n);
    Schedule s(f);
    auto parts = s.split(s.get_loops(s.get_block("S"))[1], {-1, 8}).value();
    s.mask_reduction(s.get_block("S")).value();
    EXPECT_FALSE(s.block(s.get_block("S"))->predicate);
    BlockRV partial = s.rfactor(s.get_block("S"), parts[1]).value();
    s.decompose_reduction(partial, parts[0]).value();
    s.vectorize(parts[1]).value();
    s.vectorize(s.get_loops(s.get_block("S")).back()).value();
    expect_same(f, s);
  }
}

TEST(Schedule, masked_tiles_reach_over_the_edge_of_a_larger_buffer) {
  PrimFunc f = matmul(6, 7, 4);
  Schedule s(f);
  BlockRV c = s.get_block("C");
  s.compute_inline(s.get_block("D")).value();
  auto columns = s.split(s.get_loops(s.get_block("E"))[1], {-1, 4}).value();
  s.compute_at(c, columns[0]).value();
  EXPECT_TRUE(s.block(c)->predicate);
  s.mask_reduction(c).value();
  EXPECT_FALSE(s.block(c)->predicate);
  EXPECT_EQ(as_int(s.block(c)->writes[0]->buffer->shape[1]), 8);
  expect_same(f, s);
}

TEST(Schedule, a_guarded_reduction_is_not_vectorised_before_it_is_masked) {
  Schedule s(row_sum(5, 21));
  auto parts = s.split(s.get_loops(s.get_block("S"))[1], {-1, 8}).value();
  expect_refused([&] { s.vectorize(parts[1]).value(); }, "is guarded");
}

// An image with channels first and a border, windows of 2x3, two images.
PrimFunc convolution() {
  Tensor x = placeholder("X", f32, {index(2), index(3), index(5), index(6)}),
         w = placeholder("W", f32, {index(4), index(3), index(2), index(3)});
  Tensor y = compute("Y", {index(2), index(4), index(4), index(2)}, [&](const Indices& i) {
    return sum({index(2), index(3), index(3)}, [&](const Indices& r) {
      return x(i[0], r[2], i[2] + r[0], i[3] * 2 + r[1]) * w(i[1], r[2], r[0], r[1]);
    });
  });
  Tensor z = compute("Z", {index(2), index(4), index(4), index(2)}, [&](const Indices& i) {
    return max(y(i[0], i[1], i[2], i[3]), imm_float(f32, 0));
  });
  return create_prim_func("convolution", {x, w}, {z});
}

// The weights' rows in their order in memory, and the windows of both images as columns.
TEST(Schedule, a_convolution_becomes_a_product_of_matrices) {
  const PrimFunc before = convolution();
  for (int64_t parts : {1, 3}) {
    Schedule s(before);
    const ProductBlocks made = s.as_product(s.get_block("Y"), {8, 16, 4, parts}).value();
    expect_same(before, s);
    const std::string text = to_string(s.func());
    // 4 rows, 16 columns and 18 terms.
    for (const std::string& said :
         {"W_matrix: float32[8, " + std::to_string(parts == 1 ? 20 : 24) + "]",
          "X_matrix: float32[16, " + std::to_string(parts == 1 ? 20 : 24) + "]",
          "Y_sums: float32[" + std::string(parts == 1 ? "" : "3, ") + "8, 16]"}) {
      EXPECT_NE(text.find(said), std::string::npos) << said << text;
    }
    EXPECT_TRUE(made.row_terms_adjoin && !made.column_terms_adjoin);
    EXPECT_EQ(s.block(made.product)->contraction->operands.size(), 2u);
  }
}

TEST(Schedule, a_matrix_product_whose_operands_fit_is_not_padded) {
  const PrimFunc before = matmul(8, 12, 4);
  Schedule s(before);
  const ProductBlocks made = s.as_product(s.get_block("C"), {4, 4, 2, 1}).value();
  expect_same(before, s);
  EXPECT_EQ(to_string(s.func()).find("select"), std::string::npos);
  EXPECT_TRUE(made.row_terms_adjoin && !made.column_terms_adjoin);
}

TEST(Schedule, must_refuse_products_that_are_none) {
  Schedule s(row_sum(5, 6));
  expect_refused([&] { s.as_product(s.get_block("S"), {}).value(); }, "does not read two operands");
  Tensor a = placeholder("A", f32, {index(5), index(6)}),
         b = placeholder("B", f32, {index(4), index(6)});
  Tensor c = compute("C", {index(5), index(4)}, [&](const Indices& i) {
    return sum({index(6)}, [&](const Indices& k) { return max(a(i[0], k[0]), b(i[1], k[0])); });
  });
  Schedule other(create_prim_func("f", {a, b}, {c}));
  expect_refused(
      [&] {
        other.as_product(other.get_block("C"), {1, 1, 4, 1}).value();
      },
      "terms cannot be added");
  other.as_product(other.get_block("C"), {1, 1, 3, 1}).value();
}

TEST(Schedule, golden_text_of_a_tiled_row_sum) {
  Schedule s(row_sum(4, 8));
  auto [i, k] = s.get_loops<2>(s.get_block("S"));
  auto parts = s.split(k, {-1, 4}).value();
  s.decompose_reduction(s.get_block("S"), parts[0]).value();
  s.unroll(parts[1]).value();
  s.parallel(i).value();
  EXPECT_EQ(s.trace_text(), R"(split(r, [-1, 4]) -> r_0, r_1
decompose_reduction(S, r_0) -> S_init
unroll(r_1, 0)
parallel(i)
)");
  EXPECT_EQ(to_string(s.func()), R"(def row_sum(A: float32[4, 8]) -> (S: float32[4]):
  for i in parallel(4):
    block S_init(i_1 = i):
      writes S[i_1]
      S[i_1] = 0f
    for r_0 in range(2):
      for r_1 in unrolled(4):
        block S(i_2 = i, r: reduce = r_0 * 4 + r_1):
          reads A[i_2, r]
          writes S[i_2]
          S[i_2] = S[i_2] + A[i_2, r]
)");
}

TEST(Schedule, illegal_steps_say_why_and_change_nothing) {
  Schedule s(matmul(6, 8, 4));
  BlockRV c = s.get_block("C"), d = s.get_block("D"), e = s.get_block("E");
  auto [i, j, k] = s.get_loops<3>(c);
  auto [x, y] = s.get_loops<2>(e);
  PrimFunc before = s.func();
  expect_refused([&, k = k] { s.parallel(k).value(); }, "reduction loop of block C");
  expect_refused([&] { s.mask_reduction(e).value(); }, "not a reduction");
  expect_refused([&, i = i] { s.vectorize(i).value(); }, "not an innermost loop");
  expect_refused([&, i = i] { s.split(i, {2, 2}).value(); }, "do not cover");
  expect_refused([&, i = i] { s.split(i, {-1, 0}).value(); }, "out of range");
  expect_refused([&, i = i] { s.split(i, {4}).value(); }, "two factors");
  expect_refused([&, i = i] { s.partition(i, 6).value(); }, "not inside loop");
  expect_refused([&, k = k] { s.partition(k, 2).value(); }, "initialisation");
  expect_refused([&, i = i, k = k] { s.fuse({i, k}).value(); }, "not directly inside");
  expect_refused(
      [&, j = j, k = k] {
        s.fuse({j, k}).value();
      },
      "a reduction and a data-parallel loop");
  expect_refused([&, i = i, x = x] { s.reorder({i, x}).value(); }, "is not in the nest");
  expect_refused([&, i = i] { s.reorder({i, i}).value(); }, "named twice");
  expect_refused([&] { s.compute_inline(c).value(); }, "is a reduction");
  expect_refused([&] { s.compute_inline(e).value(); }, "writes an output");
  expect_refused([&] { s.reverse_compute_inline(d).value(); }, "producer C is a reduction");
  expect_refused([&, x = x] { s.compute_at(c, x).value(); }, "is not inside loop");
  expect_refused([&, x = x] { s.compute_at(e, x).value(); }, "writes an output");
  expect_refused([&, k = k] { s.reverse_compute_at(d, k).value(); }, "complete only after");
  expect_refused([&] { s.cache_read(c, "nothing", Scope::Local).value(); },
                 "does not read a buffer");
  expect_refused([&] { s.set_scope(e, Scope::Local).value(); }, "parameter");
  expect_refused([&] { s.transform_layout(c, {{0, 1, 0}, {1, 1, 2}}).value(); }, "share a place");
  expect_refused([&, x = x] { s.decompose_reduction(e, x).value(); }, "no initialisation");
  expect_refused([&, x = x] { s.decompose_reduction(c, x).value(); }, "is not around");
  expect_refused([&, i = i] { s.rfactor(c, i).value(); }, "not a reduction loop");
  expect_refused([&] { s.get_block("nothing"); }, "no block nothing");
  EXPECT_EQ(s.func(), before);
  EXPECT_TRUE(s.trace().empty());
  s.reorder({k, j}).value();
  expect_refused([&, j = j] { s.decompose_reduction(c, j).value(); }, "is around loop");
  expect_refused([&] { Schedule::replay(before, "split(i, [-1, x])"); }, "not a number");
  expect_refused([&] { Schedule::replay(before, "explode(i)"); }, "no step");
  s.parallel(i).value();
  expect_refused([&, j = j] { s.parallel(j).value(); }, "parallel already");
}

}  // namespace
}  // namespace relay::tir
