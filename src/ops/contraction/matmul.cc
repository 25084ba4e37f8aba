// Matrix products.
#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "base/quantities.h"
#include "ir/layout.h"
#include "ops/gradient.h"
#include "ops/quantized_forms.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

DType result_dtype(DType out, DType in) { return is_set(out) ? out : in; }

bool same_inner(RelationContext& ctx, const Dim& a, const Dim& b, const TensorTypeNode& x,
                const TensorTypeNode& y) {
  return require(ctx, ctx.equal(a, b), codes::type_shape,
                 "the inner dimensions differ: " + to_string(a) + " and " + to_string(b),
                 "equal inner dimensions", shape_text(x.shape) + " and " + shape_text(y.shape)) &&
         one_dtype_or_bytes(ctx, x, y, "the arguments have different dtypes");
}

bool at_least(RelationContext& ctx, const TensorTypeNode& t, size_t arg, int64_t rank) {
  return require(ctx, t.rank() >= rank, codes::type_rank,
                 "argument '" + std::string(ctx.op().args[arg].name) + "' has too few dimensions",
                 std::to_string(rank) + " or more", shape_text(t.shape));
}

// `units` repeats what the weight's shape says and must agree with it.
bool check_units(RelationContext& ctx, std::optional<int64_t> units, const Dim& columns,
                 const TensorTypeNode& weight) {
  return !units ||
         require(ctx, *units >= 0 && ctx.equal(columns, dim(*units)), codes::op_bad_attribute,
                 "units contradicts the weight",
                 "units=" + to_string(columns) + " for weight " + shape_text(weight.shape),
                 "units=" + std::to_string(*units));
}

struct DenseAttrs : AttrsOf<DenseAttrs> {
  std::optional<int64_t> units;
  DType out_dtype = kUnsetDType;
  static AttrsList describe() {
    return {"relay.attrs.DenseAttrs",
            {attribute("units", &Self::units, "Columns of the result."),
             attribute("out_dtype", &Self::out_dtype, "dtype of the result.")}};
  }
};

Type dense_relation(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *w = ctx.tensor(1);
  auto& a = ctx.attrs<DenseAttrs>();
  if (x == nullptr) {
    // The rows are the result's, the columns the weight's.
    const TensorTypeNode* y = ctx.wanted_result();
    if (ctx.failure() || w == nullptr || w->rank() != 2 || y == nullptr || y->rank() < 1) {
      return nullptr;
    }
    std::vector<Dim> shape = y->shape;
    shape.back() = w->shape[1];
    ctx.solve(0, tensor_type(std::move(shape), w->dtype));
    return nullptr;
  }
  if (!at_least(ctx, *x, 0, 1)) return nullptr;
  std::vector<Dim> shape = x->shape;
  if (w == nullptr) {
    if (!a.units || ctx.failure()) return nullptr;
    ctx.solve(1, tensor_type(std::vector<Dim>{dim(*a.units), x->shape.back()}, x->dtype));
    shape.back() = dim(*a.units);
    return tensor_type(std::move(shape), result_dtype(a.out_dtype, x->dtype));
  }
  if (!require(ctx, w->rank() == 2, codes::type_rank, "the weight must be a matrix (units, inputs)",
               "2 dimensions", shape_text(w->shape)))
    return nullptr;
  if (!same_inner(ctx, x->shape.back(), w->shape[1], *x, *w)) return nullptr;
  if (!check_units(ctx, a.units, w->shape[0], *w)) return nullptr;
  shape.back() = a.units ? dim(*a.units) : w->shape[0];
  return tensor_type(std::move(shape), result_dtype(a.out_dtype, x->dtype));
}

// Elements of a sum of bytes, and of 16-bit floats, that stand beside each other in a packed weight.
constexpr int64_t kBytes = 4, kHalves = 2;

struct DensePackAttrs : AttrsOf<DensePackAttrs> {
  std::optional<int64_t> units;
  DType out_dtype = kUnsetDType;
  std::string weight_layout = "NC";
  static AttrsList describe() {
    return {"relay.attrs.DensePackAttrs",
            {attribute("units", &Self::units, "Columns of the result."),
             attribute("out_dtype", &Self::out_dtype, "dtype of the result."),
             attribute("weight_layout", &Self::weight_layout,
                       "Layout of the weight, NC<block>n, NC<block>n2c or NC<block>n4c.")}};
  }
};

Type dense_pack_relation(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *w = ctx.tensor(1);
  if (x == nullptr || w == nullptr) return nullptr;
  auto& a = ctx.attrs<DensePackAttrs>();
  auto layout = Layout::parse(a.weight_layout);
  bool fits = layout && layout->primal_axes() == "NC" && layout->block_of('N') > 1 &&
              layout->index_of('n') == 2;
  const int64_t word = fits && layout->rank() == 4 ? layout->block_of('C') : 1;
  bool in_words = word == kBytes || word == kHalves;
  if (!require(ctx, fits && (layout->rank() == 3 || in_words), codes::op_bad_attribute,
               "weight_layout is not supported", "NC<block>n, NC<block>n2c or NC<block>n4c",
               a.weight_layout))
    return nullptr;
  if (!require(ctx, w->rank() == layout->rank() && x->rank() >= 1 && a.units && *a.units >= 0,
               codes::type_rank,
               "the packed weight has the layout's dimensions, and units is given",
               counted(layout->rank(), "dimension"), shape_text(w->shape)))
    return nullptr;
  Dim inner = in_words ? w->shape[1] * dim(word) : w->shape[1];
  if (!same_inner(ctx, x->shape.back(), inner, *x, *w)) return nullptr;
  if (in_words && !require(ctx, ctx.equal(w->shape[3], dim(word)), codes::type_shape,
                           "the weight's last dimension is not what weight_layout says",
                           std::to_string(word), shape_text(w->shape)))
    return nullptr;
  Dim block = dim(layout->block_of('N'));
  if (!require(ctx, ctx.equal(w->shape[2], block), codes::type_shape,
               "the weight's panels are not as wide as weight_layout says", to_string(block),
               shape_text(w->shape)) ||
      !require(ctx, ctx.equal(w->shape[0], ceil_div(dim(*a.units), block)), codes::type_shape,
               "the packed weight does not hold `units` columns", "", shape_text(w->shape)))
    return nullptr;
  std::vector<Dim> shape = x->shape;
  shape.back() = dim(*a.units);
  return tensor_type(std::move(shape), result_dtype(a.out_dtype, x->dtype));
}

struct MatmulAttrs : AttrsOf<MatmulAttrs> {
  std::optional<int64_t> units;
  DType out_dtype = kUnsetDType;
  bool transpose_a = false, transpose_b = false;
  static AttrsList describe() {
    return {"relay.attrs.MatmulAttrs",
            {attribute("units", &Self::units, "Columns of the result."),
             attribute("out_dtype", &Self::out_dtype, "dtype of the result."),
             attribute("transpose_a", &Self::transpose_a, "The first matrix is transposed."),
             attribute("transpose_b", &Self::transpose_b, "The second matrix is transposed.")}};
  }
};

Type matmul_relation(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *w = ctx.tensor(1);
  if (x == nullptr || w == nullptr) return nullptr;
  auto& a = ctx.attrs<MatmulAttrs>();
  if (!at_least(ctx, *x, 0, a.transpose_a ? 2 : 1) ||
      !require(ctx, w->rank() == 2, codes::type_rank, "the second argument must be a matrix",
               "2 dimensions", shape_text(w->shape)))
    return nullptr;
  std::vector<Dim> shape = x->shape;
  if (a.transpose_a) std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  if (!same_inner(ctx, shape.back(), w->shape[a.transpose_b ? 1 : 0], *x, *w)) return nullptr;
  shape.back() = w->shape[a.transpose_b ? 0 : 1];
  if (!check_units(ctx, a.units, shape.back(), *w)) return nullptr;
  return tensor_type(std::move(shape), result_dtype(a.out_dtype, x->dtype));
}

struct BatchMatmulAttrs : AttrsOf<BatchMatmulAttrs> {
  DType out_dtype = kUnsetDType;
  bool transpose_a = false, transpose_b = false;
  static AttrsList describe() {
    return {"relay.attrs.BatchMatmulAttrs",
            {attribute("out_dtype", &Self::out_dtype, "dtype of the result."),
             attribute("transpose_a", &Self::transpose_a, "The first matrices are transposed."),
             attribute("transpose_b", &Self::transpose_b, "The second matrices are transposed.")}};
  }
};

Type batch_matmul_relation(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *y = ctx.tensor(1);
  if (x == nullptr || y == nullptr) return nullptr;
  auto& a = ctx.attrs<BatchMatmulAttrs>();
  if (!require(ctx, x->rank() == 3 && y->rank() == 3, codes::type_rank,
               "both arguments must have a batch and two matrix dimensions", "3 dimensions",
               shape_text(x->shape) + " and " + shape_text(y->shape)))
    return nullptr;
  if (!same_inner(ctx, x->shape[a.transpose_a ? 1 : 2], y->shape[a.transpose_b ? 2 : 1], *x, *y))
    return nullptr;
  auto batch = broadcast_shapes(ctx, {x->shape[0]}, {y->shape[0]});
  if (!batch) return nullptr;
  return tensor_type(
      {(*batch)[0], x->shape[a.transpose_a ? 2 : 1], y->shape[a.transpose_b ? 1 : 2]},
      result_dtype(a.out_dtype, x->dtype));
}

// ---- Contraction

using Role = ContractionRole;
using Axis = Contraction::Axis;

// The product of a matrix for each index of the leading axes and one matrix: rows, one column, one sum. `data` and
// `weight` have the axes of the sum at these places.
Contraction product_of(const CallNode& c, size_t data_sum, std::vector<Axis> weight,
                       const Dim& inner) {
  auto* out = as<TensorTypeNode>(c.type);
  size_t rows = out->shape.size() - 1;
  Contraction p;
  for (size_t d = 0; d < rows; ++d) p.dims.push_back({Role::Row, out->shape[d]});
  p.dims.push_back({Role::Column, out->shape[rows]});
  p.dims.push_back({Role::Reduced, inner});
  Contraction::Tensor data;
  for (size_t d = 0; d <= rows; ++d) {
    p.result.push_back({{d}});
    if (d < rows) data.push_back({{d}});
  }
  data.insert(data.begin() + static_cast<std::ptrdiff_t>(data_sum), Axis{{rows + 1}});
  p.operands = {std::move(data), std::move(weight)};
  return p;
}

// A weight whose two axes are the columns and the sum, in this order unless transposed.
std::vector<Axis> weight_of(const CallNode& c, bool transposed) {
  size_t column = as<TensorTypeNode>(c.type)->shape.size() - 1;
  std::vector<Axis> out{{{column}}, {{column + 1}}};
  if (transposed) std::swap(out[0], out[1]);
  return out;
}

std::optional<Contraction> dense_contraction(const CallNode& c) {
  auto *x = as<TensorTypeNode>(c.args[0]->type), *w = as<TensorTypeNode>(c.args[1]->type);
  return product_of(c, x->shape.size() - 1, weight_of(c, false), w->shape[1]);
}

std::optional<Contraction> dense_pack_contraction(const CallNode& c) {
  auto& a = static_cast<const DensePackAttrs&>(*c.attrs.get());
  auto *x = as<TensorTypeNode>(c.args[0]->type), *w = as<TensorTypeNode>(c.args[1]->type);
  size_t column = x->shape.size() - 1;
  int64_t block = Layout::of(a.weight_layout).block_of('N');
  Axis number{{column}}, place{{column}}, sum{{column + 1}};
  number.divide = place.modulo = block;
  if (w->shape.size() == 3) return product_of(c, column, {number, sum, place}, w->shape[1]);
  const int64_t word = Layout::of(a.weight_layout).block_of('C');
  Axis element = sum;
  sum.divide = element.modulo = word;
  return product_of(c, column, {number, sum, place, element}, w->shape[1] * dim(word));
}

std::optional<Contraction> matmul_contraction(const CallNode& c) {
  auto& a = static_cast<const MatmulAttrs&>(*c.attrs.get());
  auto *x = as<TensorTypeNode>(c.args[0]->type), *w = as<TensorTypeNode>(c.args[1]->type);
  return product_of(c, x->shape.size() - (a.transpose_a ? 2 : 1), weight_of(c, !a.transpose_b),
                    w->shape[a.transpose_b ? 1 : 0]);
}

std::optional<Contraction> batch_matmul_contraction(const CallNode& c) {
  auto& a = static_cast<const BatchMatmulAttrs&>(*c.attrs.get());
  auto *x = as<TensorTypeNode>(c.args[0]->type), *y = as<TensorTypeNode>(c.args[1]->type),
       *out = as<TensorTypeNode>(c.type);
  Contraction p;
  p.dims = {{Role::Batch, out->shape[0]},
            {Role::Row, out->shape[1]},
            {Role::Column, out->shape[2]},
            {Role::Reduced, x->shape[a.transpose_a ? 1 : 2]}};
  auto operand = [&](const TensorTypeNode& t, size_t first, size_t second) {
    bool repeated = as_const(t.shape[0]) == 1 && as_const(out->shape[0]) != 1;
    return Contraction::Tensor{repeated ? Axis{} : Axis{{0}}, {{first}}, {{second}}};
  };
  p.operands = {a.transpose_a ? operand(*x, 3, 1) : operand(*x, 1, 3),
                a.transpose_b ? operand(*y, 2, 3) : operand(*y, 3, 2)};
  p.result = {{{0}}, {{1}}, {{2}}};
  return p;
}

// ---- Compute

// The sum over one dimension of a(i, k) * b(i, k).
TirTensor product(const std::string& name, const ComputeContext& ctx, const PrimExpr& inner,
                  const std::function<PrimExpr(const Indices& i, const PrimExpr& k)>& a,
                  const std::function<PrimExpr(const Indices& i, const PrimExpr& k)>& b) {
  return sum_of_products(name, ctx, {inner}, [&](const Indices& i, const Indices& k) {
    return std::vector<PrimExpr>{a(i, k[0]), b(i, k[0])};
  });
}

// The row of `x` that belongs to an element of the result, at k.
PrimExpr along_row(const TirTensor& x, const Indices& i, const PrimExpr& k) {
  Indices at = i;
  at.back() = k;
  return x(at);
}

TirTensor dense_compute(const ComputeContext& ctx) {
  TirTensor x = ctx.inputs[0], w = ctx.inputs[1];
  return product(
      "T_dense", ctx, w->shape()[1],
      [&](const Indices& i, const PrimExpr& k) { return along_row(x, i, k); },
      [&](const Indices& i, const PrimExpr& k) { return w(i.back(), k); });
}

TirTensor dense_pack_compute(const ComputeContext& ctx) {
  TirTensor x = ctx.inputs[0], w = ctx.inputs[1];
  PrimExpr block = w->shape()[2];
  const PrimExpr word = w->rank() == 4 ? w->shape()[3] : nullptr;
  return product(
      "T_dense_pack", ctx, word ? w->shape()[1] * word : w->shape()[1],
      [&](const Indices& i, const PrimExpr& k) { return along_row(x, i, k); },
      [&](const Indices& i, const PrimExpr& k) {
        PrimExpr panel = floor_div(i.back(), block), column = floor_mod(i.back(), block);
        if (!word) return w(panel, k, column);
        return w(panel, floor_div(k, word), column, floor_mod(k, word));
      });
}

TirTensor matmul_compute(const ComputeContext& ctx) {
  auto& a = ctx.attrs<MatmulAttrs>();
  TirTensor x = ctx.inputs[0], w = ctx.inputs[1];
  return product(
      "T_matmul", ctx, w->shape()[a.transpose_b ? 1 : 0],
      [&](const Indices& i, const PrimExpr& k) {
        Indices at = i;
        at.back() = k;
        if (a.transpose_a) std::swap(at[at.size() - 1], at[at.size() - 2]);
        return x(at);
      },
      [&](const Indices& i, const PrimExpr& k) {
        return a.transpose_b ? w(i.back(), k) : w(k, i.back());
      });
}

TirTensor batch_matmul_compute(const ComputeContext& ctx) {
  auto& a = ctx.attrs<BatchMatmulAttrs>();
  TirTensor x = ctx.inputs[0], y = ctx.inputs[1];
  const PrimExpr& batch = ctx.outputs[0].shape[0];
  return product(
      "T_batch_matmul", ctx, x->shape()[a.transpose_a ? 1 : 2],
      [&](const Indices& i, const PrimExpr& k) {
        PrimExpr b = broadcast_index(i[0], x->shape()[0], batch);
        return a.transpose_a ? x(b, k, i[1]) : x(b, i[1], k);
      },
      [&](const Indices& i, const PrimExpr& k) {
        PrimExpr b = broadcast_index(i[0], y->shape()[0], batch);
        return a.transpose_b ? y(b, i[2], k) : y(b, k, i[2]);
      });
}

// ---- Gradients

// Of a matrix product a * b, either transposed: the factors' adjoints, as products again.
struct Factors {
  Expr a, b;
};

// `multiply(x, transposed, y, transposed)`.
template <class F>
Factors product_gradient(const Expr& g, const Expr& a, const Expr& b, bool transpose_a,
                         bool transpose_b, const F& multiply) {
  return {transpose_a ? multiply(b, transpose_b, g, true) : multiply(g, false, b, !transpose_b),
          transpose_b ? multiply(g, true, a, transpose_a) : multiply(a, !transpose_a, g, false)};
}

// The rows of all leading axes as those of one matrix.
Expr as_matrix(const Expr& e) { return rank_of(e) == 2 ? e : join_leading(e, rank_of(e) - 1); }

Expr matmul(const Expr& x, bool transpose_x, const Expr& y, bool transpose_y) {
  return apply("nn.matmul", {x, y}, {{"transpose_a", transpose_x}, {"transpose_b", transpose_y}});
}

Adjoints dense_gradient(const GradientContext& ctx) {
  const Expr &x = ctx.arg(0), &w = ctx.arg(1);
  Expr g = cast_to(ctx.adjoint(), type_of(x).dtype);
  Expr rows = as_matrix(g);
  return {reshape_like(matmul(rows, false, w, false), x), matmul(rows, true, as_matrix(x), false)};
}

Adjoints matmul_gradient(const GradientContext& ctx) {
  auto& a = ctx.attrs<MatmulAttrs>();
  const Expr &x = ctx.arg(0), &w = ctx.arg(1);
  Expr g = cast_to(ctx.adjoint(), type_of(x).dtype);
  // With one matrix on each side; of several on the left, each is multiplied with the one.
  Expr left = x;
  if (a.transpose_a && rank_of(x) > 2) left = move_axis(x, rank_of(x) - 2, rank_of(x) - 1);
  bool turned = a.transpose_a && rank_of(x) == 2;
  Factors f = product_gradient(as_matrix(g), as_matrix(left), w, turned, a.transpose_b, matmul);
  Expr dx = reshape_like(f.a, left);
  if (a.transpose_a && rank_of(x) > 2) dx = move_axis(dx, rank_of(x) - 2, rank_of(x) - 1);
  return {dx, f.b};
}

Adjoints batch_matmul_gradient(const GradientContext& ctx) {
  auto& a = ctx.attrs<BatchMatmulAttrs>();
  Expr g = cast_to(ctx.adjoint(), type_of(ctx.arg(0)).dtype);
  Factors f =
      product_gradient(g, ctx.arg(0), ctx.arg(1), a.transpose_a, a.transpose_b,
                       [](const Expr& x, bool transpose_x, const Expr& y, bool transpose_y) {
                         return apply("nn.batch_matmul", {x, y},
                                      {{"transpose_a", transpose_x}, {"transpose_b", transpose_y}});
                       });
  return {unbroadcast(f.a, ctx.arg(0)), unbroadcast(f.b, ctx.arg(1))};
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Matmul>() {
  static const OpInfo rows[] = {
      {
          .name = "nn.dense",
          .doc = "data times the transposed weight: (..., inputs) and (units, inputs) give (..., "
                 "units).",
          .args = {{"data", "(..., inputs)."}, {"weight", "(units, inputs)."}},
          .attrs = &DenseAttrs::static_info(),
          .fusion = FusionClass::OutEWiseFusable,
          .effect = Effect::Pure,
          .relation = dense_relation,
          .compute = compute_rule(dense_compute),
          .contraction = dense_contraction,
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Always,
          .cost = contraction_cost,
          .gradient = dense_gradient,
          .quantized = quantized_dense,
          .examples = {{{"Tensor[(3, 5), float32]", "Tensor[(4, 5), float32]"}, ""},
                       {{"Tensor[(2, 3, 5), float32]", "Tensor[(4, 5), float32]"}, "units=4"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "nn.contrib_dense_pack",
          .doc = "nn.dense with the weight in panels of columns: (units/b, inputs, b).",
          .args = {{"data", "(..., inputs)."}, {"weight", "(ceil(units/b), inputs, b)."}},
          .attrs = &DensePackAttrs::static_info(),
          .fusion = FusionClass::OutEWiseFusable,
          .effect = Effect::Pure,
          .relation = dense_pack_relation,
          .compute = compute_rule(dense_pack_compute),
          .contraction = dense_pack_contraction,
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Always,
          .cost = contraction_cost,
          .gradient = Absent::MadeByPasses,
          .examples = {{{"Tensor[(3, 5), float32]", "Tensor[(2, 5, 8), float32]"},
                        "units=13, weight_layout=\"NC8n\""}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "nn.matmul",
          .doc = "Matrix product, either side transposed by attribute.",
          .args = {{"tensor_a", "(..., m, k), or (..., k, m) transposed."},
                   {"tensor_b", "(k, n), or (n, k) transposed."}},
          .attrs = &MatmulAttrs::static_info(),
          .fusion = FusionClass::OutEWiseFusable,
          .effect = Effect::Pure,
          .relation = matmul_relation,
          .compute = compute_rule(matmul_compute),
          .contraction = matmul_contraction,
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Always,
          .cost = contraction_cost,
          .gradient = matmul_gradient,
          .quantized = quantized_matmul,
          .examples = {{{"Tensor[(3, 5), float32]", "Tensor[(5, 4), float32]"}, ""},
                       {{"Tensor[(5, 3), float32]", "Tensor[(4, 5), float32]"},
                        "transpose_a=True, transpose_b=True"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "nn.batch_matmul",
          .doc =
              "A matrix product for each index of the batch; either side transposed by attribute.",
          .args = {{"tensor_a", "(b, m, k), or (b, k, m) transposed."},
                   {"tensor_b", "(b, k, n), or (b, n, k) transposed."}},
          .attrs = &BatchMatmulAttrs::static_info(),
          .fusion = FusionClass::OutEWiseFusable,
          .effect = Effect::Pure,
          .relation = batch_matmul_relation,
          .compute = compute_rule(batch_matmul_compute),
          .contraction = batch_matmul_contraction,
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Always,
          .cost = contraction_cost,
          .gradient = batch_matmul_gradient,
          .quantized = quantized_batch_matmul,
          .examples = {{{"Tensor[(2, 3, 5), float32]", "Tensor[(2, 5, 4), float32]"},
                        "transpose_b=False"},
                       {{"Tensor[(2, 3, 5), float32]", "Tensor[(1, 4, 5), float32]"},
                        "transpose_b=True"}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
