#include "tir/passes/narrow_indices.h"

#include <gtest/gtest.h>

#include "node/walk.h"
#include "runtime/core/kernel_abi.h"
#include "tir/interpret.h"
#include "tir/matrix_nest.h"
#include "tir/transposed_nest.h"
#include "tir/verify.h"

namespace relay::tir {
namespace {

using Data = runtime::Tensor;

PrimFunc kernel(std::vector<Buffer> params, int64_t num_inputs, std::vector<Var> dims, Stmt body) {
  return make<PrimFuncNode>([&](PrimFuncNode& n) {
    n.name = "test";
    n.params = std::move(params);
    n.num_inputs = num_inputs;
    n.dims = std::move(dims);
    n.body = std::move(body);
  });
}

PrimFunc narrowed(const PrimFunc& f) {
  PrimFunc out = narrow_indices(f);
  verify(out);
  return out;
}

TEST(NarrowIndices, loops_offsets_and_sizes_have_32_bits) {
  Var n = var("n"), i = var("i");
  const DType f32 = DType::Float(32);
  Buffer b = buffer("b", f32, {n}), a = buffer("a", f32, {n * 4});
  PrimFunc f =
      narrowed(kernel({b, a}, 1, {n}, for_(i, index(0), n, store(a, {i * 4 + 3}, load(b, {i})))));
  const std::string text = to_string(f);
  for (const char* part : {"n <= 2147483647", "n_32", "i_32"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  auto* steps = as<SeqNode>(f->body);
  ASSERT_NE(steps, nullptr);
  auto* entry = as<LetStmtNode>(steps->stmts.back());
  ASSERT_NE(entry, nullptr) << text;
  auto* loop = as<ForNode>(entry->body);
  ASSERT_NE(loop, nullptr) << text;
  EXPECT_EQ(loop->var->dtype, DType::Int(32));
  auto* s = as<StoreNode>(loop->body);
  auto* at = s == nullptr ? nullptr : as<CastNode>(s->indices[0]);
  ASSERT_NE(at, nullptr) << text;
  EXPECT_EQ(at->value->dtype, DType::Int(32));
}

// out[0] = float64(an expression of the size and the last iteration of a loop over it).
int64_t last(const std::function<PrimExpr(Var i, Var n)>& value, int64_t size, double* result) {
  Var n = var("n"), i = var("i");
  Buffer out = buffer("out", DType::Float(64), {index(1)});
  Stmt body = for_(i, max(n - 2, index(0)), index(2),
                   store(out, {index(0)}, cast(DType::Float(64), value(i, n))));
  Data data = Data::zeros(DType::Float(64), {1});
  const int64_t code = interpret(narrowed(kernel({out}, 0, {n}, body)), {data}, {size});
  *result = data.get_as_double(0);
  return code;
}

TEST(NarrowIndices, sizes_beyond_32_bits_end_the_kernel) {
  double got = 0;
  auto plain = [](const Var& i, const Var&) -> PrimExpr { return i; };
  EXPECT_EQ(last(plain, (int64_t{1} << 31) - 1, &got), RELAY_KERNEL_OK);
  EXPECT_EQ(got, static_cast<double>((int64_t{1} << 31) - 2));
  EXPECT_EQ(last(plain, int64_t{1} << 31, &got), RELAY_KERNEL_INDEX_WIDTH);
  EXPECT_EQ(last(plain, int64_t{1} << 40, &got), RELAY_KERNEL_INDEX_WIDTH);
  auto product = [](const Var& i, const Var& n) { return i * n + i; };
  EXPECT_EQ(last(product, 46340, &got), RELAY_KERNEL_OK);
  EXPECT_EQ(got, 46339.0 * 46341.0);
  EXPECT_EQ(last(product, 46342, &got), RELAY_KERNEL_INDEX_WIDTH);
  EXPECT_EQ(last(product, (int64_t{1} << 31) - 1, &got), RELAY_KERNEL_INDEX_WIDTH);
}

TEST(NarrowIndices, what_constants_exceed_stays_wide) {
  double got = 0;
  auto large = [](const Var& i, const Var&) {
    return floor_div(i * (int64_t{1} << 33), index(64));
  };
  EXPECT_EQ(last(large, 100, &got), RELAY_KERNEL_OK);
  EXPECT_EQ(got, 99.0 * (1 << 27));
}

// A loop of a nest that becomes instructions.
Stmt marked(const Var& v, int64_t extent, LoopNest nest, Stmt body) {
  Stmt loop = for_(v, index(0), index(extent), std::move(body));
  return modified(*as<ForNode>(loop), [&](ForNode& n) { n.hints.nest = nest; });
}

// The outermost loop of the function's nest, and whether any loop of the function counts in 64 bits.
std::pair<Stmt, bool> nest_of(const PrimFunc& f) {
  std::pair<Stmt, bool> out{nullptr, false};
  post_order(
      f->body,
      [&](const Node& n) {
        auto* loop = as<ForNode>(&n);
        if (loop == nullptr) return;
        out.second |= loop->var->dtype == kIndex;
        if (loop->hints.nest != LoopNest::None) out.first = Stmt(loop);
      },
      family::tir_stmt);
  return out;
}

TEST(NarrowIndices, a_nest_of_shuffles_has_32_bits_or_64_as_a_whole) {
  const DType f32 = DType::Float(32);
  for (int64_t far : {int64_t{64}, int64_t{1} << 33}) {
    Var n = var("n"), i = var("i"), row = var("row"), column = var("column");
    Buffer from = buffer("from", f32, {n * far}), to = buffer("to", f32, {n * 64});
    Stmt move = store(to, {i * 64 + row * 16 + column}, load(from, {i * far + column * n + row}));
    Stmt inner = marked(column, 16, LoopNest::Transposed, move);
    PrimFunc f = kernel({from, to}, 1, {n},
                        for_(i, index(0), n, marked(row, 4, LoopNest::Transposed, inner)));
    const auto [nest, is_wide] = nest_of(narrowed(f));
    EXPECT_EQ(is_wide, far > 64);
    auto found = transposed_nest(nest);
    ASSERT_TRUE(found) << to_string(nest);
    EXPECT_EQ(found->rows, 4);
    EXPECT_EQ(found->columns, 16);
    EXPECT_EQ(as_int(found->to_step), 16);
    EXPECT_EQ(found->from->dtype, kIndex);
    auto* first = as<CastNode>(found->from);
    EXPECT_EQ(first != nullptr && first->value->dtype == DType::Int(32), !is_wide)
        << to_string(found->from);
  }
}

TEST(NarrowIndices, columns_of_a_nest_of_shuffles_may_lie_at_distances_of_their_own) {
  const DType f32 = DType::Float(32);
  Var n = var("n"), i = var("i"), row = var("row"), column = var("column");
  Buffer from = buffer("from", f32, {n * 160}), to = buffer("to", f32, {n * 64});
  auto nest = [&](const PrimExpr& at) {
    Stmt move = store(to, {i * 64 + row * 16 + column}, load(from, {at}));
    Stmt inner = marked(column, 16, LoopNest::Transposed, move);
    PrimFunc f = kernel({from, to}, 1, {n},
                        for_(i, index(0), n, marked(row, 4, LoopNest::Transposed, inner)));
    return transposed_nest(nest_of(narrowed(f)).first);
  };
  PrimExpr third = floor_div(column + 1, index(3));
  auto found = nest(i * 160 + third * 20 + floor_mod(column + 1, index(3)) * 4 + row);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->from_columns.size(), 16U);
  EXPECT_EQ(to_string(found->from_columns[1]), "int64(i_32 * int32(160) + int32(8))");
  EXPECT_EQ(to_string(found->from_columns[2]), "int64(i_32 * int32(160) + int32(20))");
  // Rows must be neighbours.
  EXPECT_FALSE(nest(i * 160 + third * 20 + row * 2));
}

TEST(NarrowIndices, a_nest_of_a_matrix_unit_has_32_bits) {
  const DType i32 = DType::Int(32);
  Var n = var("n"), i = var("i"), row = var("row"), column = var("column"), word = var("word"),
      element = var("element");
  Buffer a = buffer("a", DType::UInt(8), {n * 1024}), b = buffer("b", DType::Int(8), {n * 1024}),
         sums = buffer("sums", i32, {index(256)});
  PrimExpr at = row * 16 + column;
  PrimExpr product = cast(i32, load(a, {i * 1024 + row * 64 + word * 4 + element})) *
                     cast(i32, load(b, {i * 1024 + word * 64 + column * 4 + element}));
  Stmt nest = store(sums, {at}, load(sums, {at}) + product);
  for (auto [v, extent] : {std::pair{element, 4}, {word, 16}, {column, 16}, {row, 16}}) {
    nest = marked(v, extent, LoopNest::Matrix, nest);
  }
  PrimFunc f = kernel({a, b, sums}, 2, {n}, for_(i, index(0), n, nest));
  const auto before = matrix_product(nest_of(f).first);
  const auto [narrow, is_wide] = nest_of(narrowed(f));
  const auto after = matrix_product(narrow);
  EXPECT_FALSE(is_wide);
  ASSERT_TRUE(before);
  ASSERT_TRUE(after) << to_string(narrow);
  EXPECT_EQ(after->words, 16);
  EXPECT_EQ(as_int(after->b.step), as_int(before->b.step));
  EXPECT_EQ(after->sums.tiles, before->sums.tiles);
  auto* first = as<CastNode>(after->a.first);
  ASSERT_NE(first, nullptr) << to_string(after->a.first);
  EXPECT_EQ(first->value->dtype, i32);
}

TEST(NarrowIndices, buffers_beyond_the_width_are_found) {
  auto beyond = [](int64_t elements, DType dtype, int index_bits, int pointer_bits) {
    Buffer b = buffer("b", dtype, {index(elements)});
    Stmt nothing = seq({});
    PrimFunc of_param = kernel({b}, 0, {}, nothing),
             of_scratch = kernel({}, 0, {}, allocate(b, nothing));
    const bool found = buffer_beyond(of_param, index_bits, pointer_bits).has_value();
    EXPECT_EQ(buffer_beyond(of_scratch, index_bits, pointer_bits).has_value(), found);
    return found;
  };
  const int64_t most = (int64_t{1} << 31) - 1;
  EXPECT_FALSE(beyond(most, DType::Int(8), 32, 32));
  EXPECT_TRUE(beyond(most + 1, DType::Int(8), 32, 32));
  EXPECT_TRUE(beyond(most + 1, DType::Int(8), 32, 64));
  EXPECT_FALSE(beyond(most, DType::Float(32), 32, 64));
  EXPECT_TRUE(beyond(most, DType::Float(32), 32, 32));
  EXPECT_FALSE(beyond(most + 1, DType::Float(32), 64, 64));
}

}  // namespace
}  // namespace relay::tir
