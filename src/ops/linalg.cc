// Linear algebra of small matrices.
#include "base/codes/types.h"
#include "ops/batching.h"
#include "ops/gradient.h"
#include "ops/loops.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

Type det_type(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  if (!require(ctx, x->dtype.is_floating(), codes::type_dtype, "needs a floating dtype", "float32",
               x->dtype.to_string()) ||
      !require(ctx, x->rank() >= 2 && ctx.equal(x->shape.back(), x->shape[x->shape.size() - 2]),
               codes::type_shape, "the last two axes must be square matrices", "(..., n, n)",
               shape_text(x->shape)))
    return nullptr;
  return tensor_type(std::vector<Dim>(x->shape.begin(), x->shape.end() - 2), x->dtype);
}

// Elimination with partial pivoting: the product of what ends on the diagonal, its sign changed by
// each exchange of rows.
Stmt determinant(const Buffer& data, const Buffer& out, const Indices& matrix) {
  DType t = working_dtype(data->dtype);
  PrimExpr n = data->shape.back();
  Buffer a = buffer("a", t, {n, n});
  Cell det("det", t), best("best", kIndex), factor("factor", t);
  auto at = [&](const PrimExpr& i, const PrimExpr& j) { return load(a, {i, j}); };
  auto size = [&](const PrimExpr& v) { return tir::call("abs", t, {v}); };
  Stmt copy = each("i", n, [&](const PrimExpr& i) {
    return each("j", n, [&](const PrimExpr& j) {
      Indices from = matrix;
      from.push_back(i);
      from.push_back(j);
      return store(a, {i, j}, tir::cast(t, load(data, from)));
    });
  });
  Stmt eliminate = each("k", n, [&](const PrimExpr& k) {
    PrimExpr rest = n - 1 - k;
    Stmt find = each("r", rest, [&](const PrimExpr& r) {
      PrimExpr row = k + 1 + r;
      return if_(gt(size(at(row, k)), size(at(best.get(), k))), best.set(row));
    });
    Stmt swap = named("row", best.get(), [&](const PrimExpr& row) {
      Stmt rows = each("j", n, [&](const PrimExpr& j) {
        return named("kept", at(k, j), [&](const PrimExpr& kept) {
          return seq({store(a, {k, j}, at(row, j)), store(a, {row, j}, kept)});
        });
      });
      return if_(ne(row, k), seq({rows, det.set(imm(t, 0) - det.get())}));
    });
    Stmt clear = each("r", rest, [&](const PrimExpr& r) {
      PrimExpr row = k + 1 + r;
      Stmt line = each("c", rest, [&](const PrimExpr& c) {
        PrimExpr j = k + 1 + c;
        return store(a, {row, j}, at(row, j) - factor.get() * at(k, j));
      });
      return seq({factor.set(div(at(row, k), at(k, k))), line});
    });
    return seq({best.set(k), find, swap, det.set(det.get() * at(k, k)),
                if_(ne(at(k, k), imm(t, 0)), clear)});
  });
  Stmt put = store(out, matrix, tir::cast(out->dtype, det.get()));
  return allocate(a, det.in(best.in(factor.in(seq({copy, det.set(imm(t, 1)), eliminate, put})))));
}

TirTensor det(const ComputeContext& ctx) {
  return imperative("T_det", ctx.outputs[0].dtype, ctx.outputs[0].shape, {ctx.inputs[0]},
                    [](const std::vector<Buffer>& in, const Buffer& out) {
                      return each_element(out->shape, [&](const Indices& matrix) {
                        return determinant(in[0], out, matrix);
                      });
                    });
}

// n^3 / 3 multiplications and additions for each matrix.
double det_cost(const CallNode& call) {
  auto* x = as<TensorTypeNode>(call.args[0]->type);
  auto n = x == nullptr ? std::nullopt : as_const(x->shape.back());
  return num_elements(call.args[0]->type) * 2 * static_cast<double>(n.value_or(1)) / 3;
}

// ---- Gradients

// The cofactors: of each element the determinant of the matrix whose row is 1 there and else 0. Right
// for matrices without an inverse, too; n^2 determinants for each.
Adjoints det_gradient(const GradientContext& ctx) {
  const Expr& x = ctx.arg(0);
  const Dim& size = type_of(x).shape.back();
  if (is_any(size)) no_gradient(ctx, "only the data tells a size");
  // Axes (element's row, element's column, row, column).
  auto axis = [](const Expr& e, int64_t at) { return apply("expand_dims", {e}, {{"axis", at}}); };
  Expr ones = identity_matrix(size, x);
  Expr is_row = is_greater(axis(axis(ones, 1), 3), 0), line = axis(ones, 1);
  Expr whole = apply("expand_dims", {x}, {{"axis", rank_of(x) - 2}, {"num_newaxis", int64_t{2}}});
  Expr cofactors = apply("linalg.det", {choose(is_row, line, whole)});
  Expr g = apply("expand_dims", {ctx.adjoint()},
                 {{"axis", rank_of(ctx.adjoint())}, {"num_newaxis", int64_t{2}}});
  return {g * cofactors};
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Linalg>() {
  static const OpInfo rows[] = {
      {
          .name = "linalg.det",
          .doc = "The determinants of the matrices in the last two axes.",
          .args = {{"data", "Square matrices."}},
          .support_level = 10,
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .relation = det_type,
          .compute = compute_rule(det),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = det_cost,
          .gradient = det_gradient,
          .batching = batch_as_it_is,
          .examples = {{{"Tensor[(2, 3, 3), float32]"}, ""}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
