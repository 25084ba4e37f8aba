// Matrix products, Einsum among them.
#include "base/codes/types.h"
#include "frontend/common/einsum.h"
#include "frontend/onnx/converters.h"

namespace relay::frontend::onnx {

Expr general_product(NodeContext& ctx) {
  auto check = [&](const Type& type, size_t rank, const char* which) {
    if (rank == 2) return;
    ctx.fail(codes::type_rank, std::string("the ") + which + " operand must be a matrix", "rank 2",
             to_string(type));
  };
  Expr a = ctx.in(0);
  check(a->type, NodeContext::shape_of(a).size(), "first");
  if (ctx.attr("transA", 0) != 0) a = ctx.transpose(a, {1, 0});
  Expr y;
  if (ctx.attr("transB", 0) != 0) {
    // A weight with one row per output is what nn.dense takes.
    Expr b = ctx.in(1);
    check(b->type, NodeContext::shape_of(b).size(), "second");
    y = ctx.call("nn.dense", {a, b});
  } else {
    y = ctx.matmul_input(a, 1);
    check(y->type, NodeContext::shape_of(y).size(), "second");
  }
  double alpha = ctx.attr_float("alpha", 1), beta = ctx.attr_float("beta", 1);
  if (alpha != 1) y = ctx.mul(y, ctx.scalar_like(alpha, y));
  if (ctx.has(2) && beta != 0) {
    Expr c = ctx.in(2);
    if (beta != 1) c = ctx.mul(c, ctx.scalar_like(beta, c));
    bool row = NodeContext::rank_of(c) == 1 &&
               dim_equal(NodeContext::shape_of(c)[0], NodeContext::shape_of(y)[1]);
    y = row ? ctx.call("nn.bias_add", {y, c}, {{"axis", int64_t{-1}}}) : ctx.add(y, c);
  }
  return y;
}

namespace {

Values convert_gemm(NodeContext& ctx) { return {value_of(general_product(ctx))}; }

Values convert_det(NodeContext& ctx) { return {value_of(ctx.call("linalg.det", {ctx.in(0)}))}; }

Values convert_matmul(NodeContext& ctx) { return {value_of(ctx.matmul_input(ctx.in(0), 1))}; }

Values convert_einsum(NodeContext& ctx) {
  return {value_of(einsum(ctx, ctx.attr_string("equation", ""), ctx.all()))};
}
}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Product>() {
  static constexpr ConverterRow rows[] = {
      {kOnnx, "Det", 11, convert_det},
      {kOnnx, "Einsum", 12, convert_einsum},
      {kOnnx, "Gemm", 1, convert_gemm},
      {kOnnx, "MatMul", 1, convert_matmul},
  };
  return rows;
}

}  // namespace relay::frontend::onnx
