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

Type inv_type(RelationContext& ctx) {
  return det_type(ctx) == nullptr ? nullptr : Type(ctx.tensor(0));
}

// Elimination with partial pivoting of the matrix and the identity beside it (Gauss and Jordan).
Stmt inverse(const Buffer& data, const Buffer& out, const Indices& matrix) {
  DType t = working_dtype(data->dtype);
  PrimExpr n = data->shape.back();
  Buffer a = buffer("a", t, {n, n}), b = buffer("b", t, {n, n});
  Cell best("best", kIndex), factor("factor", t);
  auto element = [&](const PrimExpr& i, const PrimExpr& j) {
    Indices at = matrix;
    at.insert(at.end(), {i, j});
    return at;
  };
  auto size = [&](const PrimExpr& i, const PrimExpr& j) {
    return tir::call("abs", t, {load(a, {i, j})});
  };
  auto in_row = [&](const std::function<Stmt(const Buffer&, const PrimExpr&)>& what) {
    return each("j", n, [&](const PrimExpr& j) { return seq({what(a, j), what(b, j)}); });
  };
  Stmt copy = each("i", n, [&](const PrimExpr& i) {
    return each("j", n, [&](const PrimExpr& j) {
      return seq({store(a, {i, j}, tir::cast(t, load(data, element(i, j)))),
                  store(b, {i, j}, select(eq(i, j), imm(t, 1), imm(t, 0)))});
    });
  });
  Stmt eliminate = each("k", n, [&](const PrimExpr& k) {
    Stmt find = each("r", n - 1 - k, [&](const PrimExpr& r) {
      PrimExpr row = k + 1 + r;
      return if_(gt(size(row, k), size(best.get(), k)), best.set(row));
    });
    Stmt swap = named("row", best.get(), [&](const PrimExpr& row) {
      Stmt rows = in_row([&](const Buffer& m, const PrimExpr& j) {
        return named("kept", load(m, {k, j}), [&](const PrimExpr& kept) {
          return seq({store(m, {k, j}, load(m, {row, j})), store(m, {row, j}, kept)});
        });
      });
      return if_(ne(row, k), rows);
    });
    Stmt scale = in_row([&](const Buffer& m, const PrimExpr& j) {
      return store(m, {k, j}, load(m, {k, j}) * factor.get());
    });
    Stmt clear = each("r", n, [&](const PrimExpr& r) {
      Stmt line = in_row([&](const Buffer& m, const PrimExpr& j) {
        return store(m, {r, j}, load(m, {r, j}) - factor.get() * load(m, {k, j}));
      });
      return if_(ne(r, k), seq({factor.set(load(a, {r, k})), line}));
    });
    Stmt pivot = factor.set(div(imm(t, 1), load(a, {k, k})));
    return seq({best.set(k), find, swap, pivot, scale, clear});
  });
  Stmt put = each("i", n, [&](const PrimExpr& i) {
    return each("j", n, [&](const PrimExpr& j) {
      return store(out, element(i, j), tir::cast(out->dtype, load(b, {i, j})));
    });
  });
  return allocate(a, allocate(b, best.in(factor.in(seq({copy, eliminate, put})))));
}

TirTensor inv(const ComputeContext& ctx) {
  auto build = [](const std::vector<Buffer>& in, const Buffer& out) {
    std::vector<PrimExpr> batch(out->shape.begin(), out->shape.end() - 2);
    return each_element(batch, [&](const Indices& m) { return inverse(in[0], out, m); });
  };
  return imperative("T_inv", ctx.outputs[0].dtype, ctx.outputs[0].shape, {ctx.inputs[0]}, build);
}

// 2 n^3 multiplications and additions for each matrix.
double inv_cost(const CallNode& call) {
  auto* x = as<TensorTypeNode>(call.args[0]->type);
  auto n = x == nullptr ? std::nullopt : as_const(x->shape.back());
  return num_elements(call.args[0]->type) * 4 * static_cast<double>(n.value_or(1));
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

// With y the inverse and g its adjoint: -y' g y'.
Adjoints inv_gradient(const GradientContext& ctx) {
  const int64_t rank = rank_of(ctx.arg(0));
  std::vector<int64_t> order;
  for (int64_t a = 0; a < rank; ++a) order.push_back(a);
  std::swap(order[static_cast<size_t>(rank - 1)], order[static_cast<size_t>(rank - 2)]);
  Expr turned = transposed(ctx.result, order);
  auto product = [&](const Expr& a, const Expr& b) {
    Expr all = apply("expand_dims", {a}, {{"axis", rank}}) *
               apply("expand_dims", {b}, {{"axis", rank - 2}});
    return sum_over(all, {rank - 1});
  };
  return {apply("negative", {product(product(turned, ctx.adjoint()), turned)})};
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
      {
          .name = "linalg.inv",
          .doc =
              "The inverses of the matrices in the last two axes; of a matrix that has none what "
              "divisions by zero give.",
          .args = {{"data", "Square matrices."}},
          .support_level = 10,
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .relation = inv_type,
          .compute = compute_rule(inv),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = inv_cost,
          .gradient = inv_gradient,
          .batching = batch_as_it_is,
          .examples = {{.args = {"Tensor[(2, 3, 3), float32]"},
                        .attrs = "",
                        .inputs = {{4, 1, 0, 1, 3, -1, 0, -1, 2, 0, -1, 3, 2, 3, 1, -4, 0.5, 1}}}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
