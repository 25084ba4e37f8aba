// Operators that make shapes and constants, and those that only give a tensor another shape.
#include <onnx/onnx-ml.pb.h>

#include <algorithm>
#include <cmath>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/open_args.h"
#include "frontend/common/range.h"
#include "frontend/common/reshape.h"
#include "frontend/common/shape_args.h"
#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/importer.h"
#include "runtime/core/strings.h"

namespace relay::frontend::onnx {
namespace {

// ---- Shape, Size, constants --------------------------------------------------------------------

Values convert_shape(NodeContext& ctx) {
  Expr s = ctx.call("shape_of", {ctx.in(0)}, {{"dtype", to_value(DType::Int(64))}});
  int64_t rank = NodeContext::rank_of(ctx.in(0));
  int64_t start = ctx.attr("start", 0), end = ctx.attr("end", rank);
  auto clamp = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
  return {value_of(ctx.slice(s, 0, clamp(start), std::max(clamp(start), clamp(end))))};
}

Values convert_size(NodeContext& ctx) {
  return {value_of(ctx.call("ndarray_size", {ctx.in(0)}, {{"dtype", to_value(DType::Int(64))}}))};
}

Values convert_constant(NodeContext& ctx) {
  Tensor t;
  if (ctx.has_attr("value")) {
    t = ctx.attr_tensor("value");
  } else if (ctx.has_attr("value_float")) {
    t = Tensor::scalar(ctx.attr_float("value_float", 0), DType::Float(32));
  } else if (ctx.has_attr("value_int")) {
    t = Tensor::scalar(ctx.attr("value_int", 0), DType::Int(64));
  } else if (ctx.has_attr("value_floats")) {
    t = float_vector(ctx.attr_floats("value_floats"));
  } else if (ctx.has_attr("value_ints")) {
    std::vector<int64_t> v = ctx.attr_ints("value_ints");
    t = Tensor::empty(DType::Int(64), {static_cast<int64_t>(v.size())});
    std::copy(v.begin(), v.end(), t.data<int64_t>());
  } else if (auto* sparse = ctx.find_attr("sparse_value")) {
    if (!sparse->has_sparse_tensor()) ctx.fail(codes::frontend_attribute, "sparse_value is empty");
    t = read_sparse_tensor(sparse->sparse_tensor(), ctx.importer().tensors(),
                           ctx.importer().options().max_constant_bytes, ctx.span());
  } else if (ctx.has_attr("value_string")) {
    t = runtime::make_strings({}, {ctx.attr_string("value_string", "")});
  } else if (ctx.has_attr("value_strings")) {
    t = string_vector(ctx.attr_strings("value_strings"));
  } else {
    ctx.unsupported("a constant without a value");
  }
  return {value_of(std::move(t))};
}

// The scalar that ConstantOfShape repeats.
Tensor fill_of(NodeContext& ctx) {
  Tensor value = ctx.attr_tensor("value");
  if (value && value.num_elements() != 1) {
    ctx.fail(codes::frontend_attribute, "attribute 'value' must have one element", "1",
             std::to_string(value.num_elements()));
  }
  return value ? value.reshape({}) : Tensor::scalar(0.0, DType::Float(32));
}

Values constant_of_known_shape(NodeContext& ctx) {
  std::vector<Dim> shape = shape_elements(ctx, 0, "the shape");
  if (std::ranges::any_of(shape, is_any)) {
    ctx.fail(codes::frontend_dynamic, "a size is known only when the model runs");
  }
  check_sizes(ctx, shape);
  Tensor value = fill_of(ctx);
  DType dtype = value.dtype();
  Expr fill = ctx.constant(value);
  if (dtype.is_string()) return {value_of(ctx.broadcast_to(fill, shape))};
  return {value_of(ctx.call(
      "full", {fill},
      {{"shape", relay::to_value(Dims(shape.begin(), shape.end()))}, {"dtype", to_value(dtype)}}))};
}

Values convert_constant_of_shape(NodeContext& ctx) {
  return known_or_open(ctx, constant_of_known_shape, [](NodeContext& open) {
    Expr shape = int_vector(open, 0, "the shape");
    return Values{value_of(open.call("dyn.full", {open.constant(fill_of(open)), shape}))};
  });
}

// 0, 1, ... along an axis.
Expr places_of(NodeContext& ctx, const Expr& x, size_t axis) {
  const DType i64 = DType::Int(64);
  const Dim& size = NodeContext::shape_of(x)[axis];
  if (is_any(size)) {
    return open_range(ctx, ctx.scalar(0, i64),
                      ctx.select(sizes_of(ctx, x), 0, static_cast<int64_t>(axis)));
  }
  return ctx.call("arange", {},
                  {{"start", relay::to_value(dim(0))},
                   {"stop", relay::to_value(size)},
                   {"step", int64_t{1}},
                   {"dtype", to_value(i64)}});
}

Values convert_eye_like(NodeContext& ctx) {
  Expr x = ctx.in(0);
  if (NodeContext::rank_of(x) != 2) {
    ctx.fail(codes::type_rank, "the input must be a matrix", "rank 2", to_string(x->type));
  }
  const auto known_rows = as_const(NodeContext::shape_of(x)[0]);
  const auto known_columns = as_const(NodeContext::shape_of(x)[1]);
  int64_t k = ctx.attr("k", 0);
  DType dtype = ctx.attr_dtype("dtype", NodeContext::dtype_of(x));
  if (!known_rows || !known_columns) {
    // One where the column is the row + k; the difference of two places cannot overflow.
    Expr row = ctx.call("expand_dims", {places_of(ctx, x, 0)}, {{"axis", int64_t{1}}});
    Expr away = ctx.sub(places_of(ctx, x, 1), row);
    return {value_of(ctx.cast(ctx.call("equal", {away, ctx.ints({k})}), dtype))};
  }
  const int64_t rows = *known_rows, columns = *known_columns;
  ctx.charge_bytes(rows * columns, dtype);
  Tensor t = Tensor::zeros(dtype, {rows, columns});
  for (int64_t r = 0; r < rows; ++r) {
    int64_t c = 0;
    if (!__builtin_add_overflow(r, k, &c) && c >= 0 && c < columns) {
      t.set_from_double(r * columns + c, 1);
    }
  }
  return {value_of(std::move(t))};
}

Values convert_range(NodeContext& ctx) { return {range_of(ctx)}; }

// ---- Reshape and friends -----------------------------------------------------------------------

ZeroSize zero_size(NodeContext& ctx) {
  return ctx.attr("allowzero", 0) != 0 ? ZeroSize::Empty : ZeroSize::Copies;
}

// The axes of Squeeze and Unsqueeze: attribute before opset 13, input since.
std::optional<std::vector<int64_t>> given_axes(NodeContext& ctx) {
  if (ctx.has_attr("axes")) return ctx.attr_ints("axes");
  if (ctx.has(1)) return ctx.const_ints(1, "the list of axes");
  return std::nullopt;
}

Values reshape_known(NodeContext& ctx) {
  return {value_of(
      reshape_to(ctx, ctx.in(0), shape_elements(ctx, 1, "the new shape"), zero_size(ctx)))};
}

Values reshape_open(NodeContext& ctx) {
  Expr x = ctx.in(0);
  return {
      value_of(reshape_at_run_time(ctx, x, int_vector(ctx, 1, "the new shape"), zero_size(ctx)))};
}

Values convert_reshape(NodeContext& ctx) { return known_or_open(ctx, reshape_known, reshape_open); }

// The shape as an attribute, before opset 5.
Values convert_reshape_attr(NodeContext& ctx) {
  std::vector<Dim> target;
  for (int64_t d : ctx.attr_ints("shape")) target.push_back(dim(d));
  return {value_of(reshape_to(ctx, ctx.in(0), target, ZeroSize::Copies))};
}

Values convert_flatten(NodeContext& ctx) {
  Expr x = ctx.in(0);
  const std::vector<Dim>& shape = NodeContext::shape_of(x);
  auto rank = static_cast<int64_t>(shape.size());
  int64_t axis = ctx.attr("axis", 1);
  if (axis != rank) axis = ctx.axis(axis, rank);
  auto at = static_cast<size_t>(axis);
  Expr y = ctx.merge_axes(x, at, shape.size());
  return {value_of(ctx.merge_axes(y, 0, at))};
}

Values squeeze_known(NodeContext& ctx) {
  Expr x = ctx.in(0);
  auto axes = given_axes(ctx);
  return {value_of(axes ? remove_axes(ctx, x, *axes) : remove_single_axes(ctx, x))};
}

Values squeeze_open(NodeContext& ctx) {
  Expr x = ctx.in(0);
  return {value_of(remove_axes_at_run_time(ctx, x, int_vector(ctx, 1, "the list of axes")))};
}

Values convert_squeeze(NodeContext& ctx) { return known_or_open(ctx, squeeze_known, squeeze_open); }
Values convert_squeeze_attr(NodeContext& ctx) { return convert_squeeze(ctx); }

Values unsqueeze_known(NodeContext& ctx) {
  auto axes = given_axes(ctx);
  if (!axes) ctx.fail(codes::frontend_graph, "the axes are missing");
  return {value_of(insert_axes(ctx, ctx.in(0), *axes))};
}

Values unsqueeze_open(NodeContext& ctx) {
  Expr x = ctx.in(0);
  return {value_of(insert_axes_at_run_time(ctx, x, int_vector(ctx, 1, "the list of axes")))};
}

Values convert_unsqueeze(NodeContext& ctx) {
  return known_or_open(ctx, unsqueeze_known, unsqueeze_open);
}
Values convert_unsqueeze_attr(NodeContext& ctx) { return convert_unsqueeze(ctx); }

Values convert_transpose(NodeContext& ctx) {
  Expr x = ctx.in(0);
  int64_t rank = NodeContext::rank_of(x);
  std::vector<int64_t> perm = ctx.attr_ints("perm");
  if (perm.empty()) {
    for (int64_t a = rank; a-- > 0;) perm.push_back(a);
  }
  perm = ctx.axes(perm, rank);
  if (static_cast<int64_t>(perm.size()) != rank) {
    ctx.fail(codes::frontend_attribute, "attribute 'perm' has the wrong length",
             std::to_string(rank), std::to_string(perm.size()));
  }
  return {value_of(ctx.transpose(x, perm))};
}

}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Shape>() {
  static constexpr ConverterRow rows[] = {
      {kOnnx, "Constant", 1, convert_constant},
      {kOnnx, "ConstantOfShape", 9, convert_constant_of_shape},
      {kOnnx, "EyeLike", 9, convert_eye_like},
      {kOnnx, "Flatten", 1, convert_flatten},
      {kOnnx, "Range", 11, convert_range},
      {kOnnx, "Reshape", 1, convert_reshape_attr},
      {kOnnx, "Reshape", 5, convert_reshape},
      {kOnnx, "Shape", 1, convert_shape},
      {kOnnx, "Size", 1, convert_size},
      {kOnnx, "Squeeze", 1, convert_squeeze_attr},
      {kOnnx, "Squeeze", 13, convert_squeeze},
      {kOnnx, "Transpose", 1, convert_transpose},
      {kOnnx, "Unsqueeze", 1, convert_unsqueeze_attr},
      {kOnnx, "Unsqueeze", 13, convert_unsqueeze},
  };
  return rows;
}

}  // namespace relay::frontend::onnx
