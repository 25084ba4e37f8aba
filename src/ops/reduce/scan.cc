// Running sums and products.
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

struct ScanopAttrs : AttrsOf<ScanopAttrs> {
  std::optional<int64_t> axis;
  DType dtype = kUnsetDType;
  bool exclusive = false, reverse = false;
  static AttrsList describe() {
    return {"relay.attrs.ScanopAttrs",
            {attribute("axis", &Self::axis, "Axis to run along; None: flattened."),
             attribute("dtype", &Self::dtype, "dtype of the result; unset: the input's."),
             attribute("exclusive", &Self::exclusive, "Leave out the element itself."),
             attribute("reverse", &Self::reverse, "Run from the last element to the first.")}};
  }
};

Type scan_type(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  auto& a = ctx.attrs<ScanopAttrs>();
  DType dtype = is_set(a.dtype) ? a.dtype : x->dtype;
  if (!require(ctx, !dtype.is_bool(), codes::type_dtype, "bool values cannot be accumulated",
               "a dtype of numbers, as in dtype=\"int32\"", dtype.to_string()))
    return nullptr;
  if (a.axis)
    return normal_axis(ctx, *a.axis, x->rank()) ? tensor_type(x->shape, dtype) : Type(nullptr);
  Dim n = dim(1);
  for (const Dim& d : x->shape) n = n * d;
  return tensor_type(std::vector<Dim>{n}, dtype);
}

// The index of the element at a place of the flattened tensor.
Indices unflattened(const std::vector<PrimExpr>& shape, PrimExpr place) {
  Indices at(shape.size(), index(0));
  for (size_t d = shape.size(); d-- > 0;) {
    at[d] = d == 0 ? place : floor_mod(place, shape[d]);
    place = floor_div(place, shape[d]);
  }
  return at;
}

// Which element of an axis the scan's step `k` takes.
PrimExpr place_of_step(const PrimExpr& k, const PrimExpr& size, bool reverse) {
  return reverse ? size - 1 - k : k;
}

// Running values along `axis` of a tensor whose last axis is another: of as many columns at once as
// stay in the nearest cache, in vectors. Each column's values are added in the same order as alone.
Stmt scan_columns(const Buffer& x, const Buffer& out, size_t axis, DType acc, bool product,
                  bool exclusive, bool reverse) {
  constexpr int64_t kColumns = 1024;
  size_t last = out->shape.size() - 1;
  std::vector<PrimExpr> groups = out->shape;
  groups[last] = floor_div(out->shape[last] + (kColumns - 1), index(kColumns));
  // The row before holds the values so far, where it holds all of their bits.
  bool from_row_before = acc == out->dtype;
  return each_line(groups, axis, 4 * kColumns, [&](const LineIndex& group) {
    Buffer total = buffer("total", acc, {index(kColumns)}, Scope::Local);
    PrimExpr begin = group(index(0))[last] * kColumns;
    PrimExpr count = min(index(kColumns), out->shape[last] - begin);
    auto at = [&](const PrimExpr& k, const PrimExpr& j) {
      Indices place = group(place_of_step(k, out->shape[axis], reverse));
      place[last] = begin + j;
      return place;
    };
    auto term = [&](const PrimExpr& k, const PrimExpr& j) {
      return tir::cast(acc, load(x, at(k, j)));
    };
    auto joined = [&](const PrimExpr& a, const PrimExpr& b) { return product ? a * b : a + b; };
    PrimExpr none = imm(acc, product ? 1 : 0);
    if (from_row_before) {
      PrimExpr first = index(0), rows = out->shape[axis] - 1;
      Stmt start = each_in_lanes("j", count, [&](const PrimExpr& j) {
        return store(out, at(first, j), exclusive ? none : joined(none, term(first, j)));
      });
      Stmt rest = each("k", rows, [&](const PrimExpr& k) {
        return each_in_lanes("j", count, [&](const PrimExpr& j) {
          return store(out, at(k + 1, j),
                       joined(load(out, at(k, j)), term(exclusive ? k : k + 1, j)));
        });
      });
      return if_(gt(out->shape[axis], first), seq({start, rest}));
    }
    Stmt start =
        each_in_lanes("j", count, [&](const PrimExpr& j) { return store(total, {j}, none); });
    Stmt rows = each("k", out->shape[axis], [&](const PrimExpr& k) {
      return each_in_lanes("j", count, [&](const PrimExpr& j) {
        Stmt add = store(total, {j}, joined(load(total, {j}), term(k, j)));
        Stmt put = store(out, at(k, j), tir::cast(out->dtype, load(total, {j})));
        return exclusive ? seq({put, add}) : seq({add, put});
      });
    });
    return allocate(total, seq({start, rows}));
  });
}

TirTensor scan(const ComputeContext& ctx, bool product) {
  auto& a = ctx.attrs<ScanopAttrs>();
  TirTensor x = ctx.inputs[0];
  const auto& result = ctx.outputs[0];
  size_t axis = a.axis ? static_cast<size_t>(from_front(*a.axis, x->rank())) : 0;
  DType acc = working_dtype(result.dtype);
  bool flat = !a.axis, exclusive = a.exclusive, reverse = a.reverse;
  // Fewer columns do not fill a vector.
  constexpr int64_t kFewColumns = 8;
  bool columns = axis + 1 < result.shape.size() &&
                 as_int(result.shape.back()).value_or(kFewColumns) >= kFewColumns;
  return tir::imperative(
      std::string(product ? "T_cumprod" : "T_cumsum") + (columns ? "_of_columns" : ""),
      result.dtype, result.shape, {x}, [=](const std::vector<Buffer>& in, const Buffer& out) {
        if (columns) return scan_columns(in[0], out, axis, acc, product, exclusive, reverse);
        return each_line(out->shape, axis, 4, [&](const LineIndex& at) {
          Cell total("total", acc);
          Stmt step = each("k", out->shape[axis], [&](const PrimExpr& number) {
            const PrimExpr k = place_of_step(number, out->shape[axis], reverse);
            PrimExpr v = load(in[0], flat ? unflattened(in[0]->shape, k) : at(k));
            // 16-bit floats are accumulated in float32, like the input of a wider result.
            PrimExpr term = tir::cast(acc, v);
            Stmt add = total.set(product ? total.get() * term : total.get() + term);
            Stmt put = store(out, at(k), tir::cast(out->dtype, total.get()));
            return exclusive ? seq({put, add}) : seq({add, put});
          });
          return total.in(seq({total.set(imm(acc, product ? 1 : 0)), step}));
        });
      });
}

double scan_cost(const CallNode& c) { return num_elements(c.args[0]->type); }

// ---- Gradients

// The data as lines along an axis: as it is, or flattened.
struct Lines {
  Expr x;
  int64_t axis;

  Expr running(const char* op, const Expr& e, bool exclusive, bool reverse) const {
    return apply(op, {e}, {{"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}});
  }
  Expr reversed(const Expr& e) const { return apply("reverse", {e}, {{"axis", axis}}); }
};

Lines lines_of(const GradientContext& ctx) {
  auto& a = ctx.attrs<ScanopAttrs>();
  const Expr& x = ctx.arg(0);
  Expr data = cast_to(x, type_of(ctx.result).dtype);
  if (a.axis) return {data, from_front(*a.axis, rank_of(x))};
  return {apply("reshape", {data}, {{"newshape", to_value(Ints{-1})}}), 0};
}

Adjoints as_data(const GradientContext& ctx, const Expr& lines) {
  return {cast_to(reshape_like(lines, ctx.arg(0)), type_of(ctx.arg(0)).dtype)};
}

// Each element counts in all results from its own on, in the direction of the scan.
Adjoints cumsum_gradient(const GradientContext& ctx) {
  if (!type_of(ctx.arg(0)).dtype.is_floating()) return {};
  auto& a = ctx.attrs<ScanopAttrs>();
  return as_data(ctx, lines_of(ctx).running("cumsum", ctx.adjoint(), a.exclusive, !a.reverse));
}

// The product before an element, times the sum over the later results of what they multiply that
// with: a matrix of products, which is right for zeros, too.
Adjoints cumprod_gradient(const GradientContext& ctx) {
  if (!type_of(ctx.arg(0)).dtype.is_floating()) return {};
  Lines lines = lines_of(ctx);
  const bool exclusive = ctx.attrs<ScanopAttrs>().exclusive;
  auto forward = [&](const Expr& e) {
    return ctx.attrs<ScanopAttrs>().reverse ? lines.reversed(e) : e;
  };
  const Dim size = type_of(lines.x).shape[static_cast<size_t>(lines.axis)];
  if (is_any(size)) no_gradient(ctx, "only the data tells the size of the axis");
  int64_t last = rank_of(lines.x) - 1;
  Expr x = move_axis(forward(lines.x), lines.axis, last),
       g = move_axis(forward(ctx.adjoint()), lines.axis, last);
  auto row = [&](const Expr& e) { return apply("expand_dims", {e}, {{"axis", last}}); };
  Expr place = iota(size), from = apply("expand_dims", {place}, {{"axis", int64_t{1}}});
  Expr behind = is_greater(place, from);
  Expr factors = choose(behind, row(x), scalar(1, x));
  Expr products = apply("cumprod", {factors}, {{"axis", last + 1}, {"exclusive", exclusive}});
  Expr counts = exclusive ? behind : apply("greater_equal", {place, from});
  Expr later = sum_over(kept(counts, products * row(g)), {last + 1});
  Expr before = apply("cumprod", {x}, {{"axis", last}, {"exclusive", true}});
  return as_data(ctx, forward(move_axis(before * later, last, lines.axis)));
}

// ---- Batching

Expr batch_scan(const BatchingContext& ctx) {
  auto& a = ctx.attrs<ScanopAttrs>();
  if (a.axis) return with_attrs(ctx.call, ctx.args, {{"axis", behind_lanes(*a.axis)}});
  if (!has_named_sizes(ctx.arg(0))) return nullptr;
  return with_attrs(ctx.call, {reshape_to(ctx.arg(0), shape_in_lanes(ctx))},
                    {{"axis", int64_t{1}}});
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Scan>() {
  static const OpInfo rows[] = {
      {
          .name = "cumsum",
          .doc = "Sums of all elements up to each, along an axis.",
          .args = {{"data", "The input."}},
          .attrs = &ScanopAttrs::static_info(),
          .support_level = 3,
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .relation = scan_type,
          .compute = compute_rule([](const ComputeContext& ctx) { return scan(ctx, false); }),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = scan_cost,
          .gradient = cumsum_gradient,
          .batching = batch_scan,
          .examples = {{{"Tensor[(3, 4), float32]"}, "axis=1"},
                       {{"Tensor[(3, 4), int32]"}, "axis=-2, exclusive=True, dtype=\"int64\""},
                       {{"Tensor[(3, 9), float32]"}, "axis=0, reverse=True"},
                       {{"Tensor[(3, 4), float32]"}, "axis=1, exclusive=True, reverse=True"},
                       {{"Tensor[(2, 3), float32]"}, ""}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "cumprod",
          .doc = "Products of all elements up to each, along an axis.",
          .args = {{"data", "The input."}},
          .attrs = &ScanopAttrs::static_info(),
          .support_level = 3,
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .relation = scan_type,
          .compute = compute_rule([](const ComputeContext& ctx) { return scan(ctx, true); }),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = scan_cost,
          .gradient = cumprod_gradient,
          .batching = batch_scan,
          .examples = {{{"Tensor[(3, 4), float32]"}, "axis=1"},
                       {{"Tensor[(3, 4), int32]"}, "axis=-2, exclusive=True, dtype=\"int64\""},
                       {{"Tensor[(3, 9), float32]"}, "axis=0, reverse=True"},
                       {{"Tensor[(3, 4), float32]"}, "axis=1, exclusive=True, reverse=True"},
                       {{"Tensor[(2, 3), float32]"}, ""}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
