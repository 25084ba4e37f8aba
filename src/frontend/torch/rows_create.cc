// Tensors from nothing but sizes and numbers.
#include <algorithm>
#include <cmath>

#include "base/codes/frontend.h"
#include "frontend/common/open_args.h"
#include "frontend/common/shape_args.h"
#include "frontend/torch/node_context.h"

namespace relay::frontend::torch {
namespace {

// A number everywhere in the shape of the result.
Expr filled(NodeContext& ctx, const Number& value) {
  const DType dtype = ctx.out_dtype();
  for (const char* name : {"dtype", "size", "self", "layout"}) ctx.find(name);
  const std::vector<Dim> shape = ctx.out_shape();
  check_sizes(ctx, shape);
  Expr e = ctx.number_as(value, dtype);
  if (shape.empty()) return e;
  if (std::ranges::any_of(shape, is_any)) {
    ctx.fail(codes::frontend_dynamic, "a size is known only in a run", "a term over sizes",
             to_string(tensor_type(shape, dtype)));
  }
  return ctx.call(
      "full", {e},
      {{"shape", relay::to_value(Dims(shape.begin(), shape.end()))}, {"dtype", to_value(dtype)}});
}

Values zeros(NodeContext& ctx) { return {value_of(filled(ctx, {Number::integer, {}, 0, {}}))}; }
Values ones(NodeContext& ctx) { return {value_of(filled(ctx, {Number::integer, {}, 1, {}}))}; }
Values full(NodeContext& ctx) {
  const char* name = ctx.has("fill_value") ? "fill_value" : ctx.has("s") ? "s" : "value";
  auto value = ctx.number(name);
  if (!value) ctx.fail(codes::frontend_graph, "the value is missing");
  return {value_of(filled(ctx, *value))};
}
// Elements that are not set: zeros are as good as any.
Values empty(NodeContext& ctx) {
  ctx.find("stride");
  return zeros(ctx);
}

Values fill(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  auto value = ctx.number("value");
  if (!value) ctx.fail(codes::frontend_graph, "the value is missing");
  return {value_of(
      ctx.broadcast_to(ctx.number_as(*value, Builder::dtype_of(x)), Builder::shape_of(x)))};
}
Values zero(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  return {value_of(ctx.full(0, Builder::shape_of(x), Builder::dtype_of(x)))};
}
// The elements of `src` in the shape and dtype of `self`.
Values copy(NodeContext& ctx) {
  Expr x = ctx.tensor("self"), src = ctx.tensor("src");
  return {value_of(ctx.broadcast_to(ctx.cast(src, Builder::dtype_of(x)), Builder::shape_of(x)))};
}

Values arange(NodeContext& ctx) {
  const DType dtype = ctx.out_dtype();
  for (const char* name : {"dtype", "layout"}) ctx.find(name);
  auto number = [&](const char* name, int64_t otherwise) {
    Number n = ctx.number(name).value_or(Number{Number::integer, {}, otherwise, {}});
    // A range in int64 has the whole parts of its bounds. In other integers, real bounds say how long it is.
    if (!n.value || dtype.is_floating() || dtype.bits != 64) return n;
    const int64_t whole = Tensor::scalar(*n.value, DType::Float(64)).get_as_int(0);
    return Number{Number::integer, {}, whole, {}};
  };
  const Number start = number("start", 0), step = number("step", 1), end = number("end", 0);
  if (!ctx.has("end")) ctx.fail(codes::frontend_graph, "argument 'end' is missing");
  const bool reals =
      start.kind == Number::real || end.kind == Number::real || step.kind == Number::real;
  if (reals || dtype.is_floating()) {
    if (!start.is_known() || !step.is_known() || !end.is_known())
      ctx.unsupported("a range of floats whose bounds only a run knows");
    // The elements are start + i * step, each rounded once; of integers, both are whole.
    auto term = [&](const Number& n) {
      return dtype.is_floating() ? n.as_double() : std::trunc(n.as_double());
    };
    const std::vector<Dim> shape = ctx.out_shape();
    if (shape.size() != 1 || step.as_double() == 0)
      ctx.fail(codes::frontend_attribute, "a range is impossible");
    const double count =
        std::max(0.0, std::ceil((end.as_double() - start.as_double()) / step.as_double()));
    if (dim_differs(shape[0], dim(static_cast<int64_t>(count))))
      ctx.fail(codes::frontend_graph, "the range has another length than the graph says");
    const DType wide =
        dtype.is_float(64) || !dtype.is_floating() ? DType::Float(64) : DType::Float(32);
    Expr i = ctx.cast(
        ctx.call("arange", {}, {{"stop", to_value(shape[0])}, {"dtype", to_value(DType::Int(64))}}),
        wide);
    Expr y = ctx.add(ctx.mul(i, ctx.scalar(term(step), wide)), ctx.scalar(term(start), wide));
    return {value_of(ctx.cast(y, dtype))};
  }
  // Bounds may be sizes.
  const Dim from = start.whole ? dim(*start.whole) : ctx.size("start");
  const Dim to = end.whole ? dim(*end.whole) : ctx.size("end");
  const int64_t by = step.whole ? *step.whole : ctx.integer("step");
  if (by == 0) ctx.fail(codes::frontend_attribute, "a range is impossible");
  if (is_any(from) || is_any(to)) {
    Expr y = ctx.call("dyn.arange",
                      {ctx.number_as(start, DType::Int(64)), ctx.number_as(end, DType::Int(64)),
                       ctx.scalar(static_cast<double>(by), DType::Int(64))});
    return {value_of(ctx.cast(y, dtype))};
  }
  Expr y = ctx.call("arange", {},
                    {{"start", to_value(from)},
                     {"stop", to_value(to)},
                     {"step", by},
                     {"dtype", to_value(DType::Int(64))}});
  return {value_of(ctx.cast(y, dtype))};
}

// Elements of `dtype` at even distances between the bounds, which are elements of the result.
Tensor evenly_spaced(NodeContext& ctx, DType dtype) {
  for (const char* name : {"dtype", "layout"}) ctx.find(name);
  const int64_t steps = ctx.integer("steps");
  if (steps < 0) ctx.fail(codes::frontend_attribute, "the number of steps is negative");
  ctx.charge_bytes(steps, dtype);
  Tensor t = Tensor::empty(dtype, {steps});
  const Tensor one = Tensor::empty(ctx.out_dtype(), {1});
  auto as_element = [&](double v) {
    one.set_from_double(0, v);
    return one.get_as_double(0);
  };
  // Each number is rounded to the type of the result, if the elements have it and are no integers.
  const bool rounds = dtype.is_floating() && dtype == one.dtype();
  auto rounded = [&](double v) { return rounds ? as_element(v) : v; };
  const double start = as_element(ctx.real("start")), end = as_element(ctx.real("end"));
  const double step =
      steps > 1 ? rounded(rounded(end - start) / static_cast<double>(steps - 1)) : 0;
  // From the nearer end, as PyTorch does.
  for (int64_t i = 0; i < steps; ++i) {
    const double v = i < steps / 2 || steps == 1
                         ? start + rounded(step * static_cast<double>(i))
                         : end - rounded(step * static_cast<double>(steps - 1 - i));
    t.set_from_double(i, v);
  }
  return t;
}

Values linspace(NodeContext& ctx) { return {value_of(evenly_spaced(ctx, ctx.out_dtype()))}; }

Values logspace(NodeContext& ctx) {
  const DType dtype = ctx.out_dtype(), wide = DType::Float(64);
  // Exponents are not rounded.
  Expr exponents = ctx.expr_of(value_of(evenly_spaced(ctx, wide)));
  const double base = ctx.real("base", 10);
  Expr y = ctx.call("power", {ctx.scalar(base, wide), exponents});
  return {value_of(ctx.cast(y, dtype))};
}

Values eye(NodeContext& ctx) {
  const DType dtype = ctx.out_dtype();
  for (const char* name : {"dtype", "layout", "n", "m"}) ctx.find(name);
  const std::vector<Dim> shape = ctx.out_shape();
  if (shape.size() != 2) ctx.fail(codes::frontend_graph, "the identity is a matrix");
  auto numbers = [&](const Dim& n) {
    return ctx.call("arange", {}, {{"stop", to_value(n)}, {"dtype", to_value(DType::Int(64))}});
  };
  Expr same = ctx.call("equal", {ctx.expand_dims(numbers(shape[0]), 1), numbers(shape[1])});
  return {value_of(ctx.cast(same, dtype))};
}

// The places of a triangle of a matrix: rows, then columns, in row-major order.
Values triangle_indices(NodeContext& ctx, bool upper) {
  const DType dtype = ctx.out_dtype();
  for (const char* name : {"dtype", "layout"}) ctx.find(name);
  const int64_t height = ctx.integer("row"), width = ctx.integer("col");
  if (height < 0 || width < 0) ctx.fail(codes::frontend_attribute, "a size is negative");
  ctx.charge_bytes(height, dtype);
  ctx.charge_bytes(width, dtype);
  const int64_t offset = std::clamp(ctx.integer("offset", 0), -height, width);
  auto first = [&](int64_t row) { return upper ? std::clamp(row + offset, int64_t{0}, width) : 0; };
  auto end = [&](int64_t row) {
    return upper ? width : std::clamp(row + offset + 1, int64_t{0}, width);
  };
  int64_t count = 0;
  for (int64_t row = 0; row < height; ++row) {
    const int64_t more = std::max(end(row) - first(row), int64_t{0});
    ctx.charge_bytes(2 * more, dtype);
    count += more;
  }
  Tensor t = Tensor::empty(dtype, {2, count});
  int64_t at = 0;
  for (int64_t row = 0; row < height; ++row) {
    for (int64_t column = first(row); column < end(row); ++column, ++at) {
      t.set_from_int(at, row);
      t.set_from_int(count + at, column);
    }
  }
  return {value_of(std::move(t))};
}

}  // namespace

template <>
std::span<const Row> rows<Family::Create>() {
  static constexpr Row kRows[] = {
      {"aten.zeros.default", zeros},
      {"aten.zeros_like.default", zeros},
      {"aten._efficientzerotensor.default", zeros},
      {"aten.new_zeros.default", zeros},
      {"aten.ones.default", ones},
      {"aten.ones_like.default", ones},
      {"aten.new_ones.default", ones},
      {"aten.full.default", full},
      {"aten.full_like.default", full},
      {"aten.new_full.default", full},
      {"aten.scalar_tensor.default", full},
      {"aten.empty.memory_format", empty},
      {"aten.empty_like.default", empty},
      {"aten.new_empty.default", empty},
      {"aten.empty_strided.default", empty},
      {"aten.new_empty_strided.default", empty},
      {"aten.empty_permuted.default",
       [](NodeContext& ctx) {
         ctx.find("physical_layout");
         return empty(ctx);
       }},
      {"aten.fill.Scalar", fill},
      {"aten.fill.Tensor", fill},
      {"aten.zero.default", zero},
      {"aten.copy.default", copy},
      {"aten.arange.default", arange},
      {"aten.arange.start", arange},
      {"aten.arange.start_step", arange},
      {"aten.linspace.default", linspace},
      {"aten.logspace.default", logspace},
      {"aten.eye.default", eye},
      {"aten.eye.m", eye},
      {"aten.tril_indices.default", [](NodeContext& ctx) { return triangle_indices(ctx, false); }},
      {"aten.triu_indices.default", [](NodeContext& ctx) { return triangle_indices(ctx, true); }},
  };
  return kRows;
}

}  // namespace relay::frontend::torch
