#include "frontend/common/open_args.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/codes/frontend.h"

namespace relay::frontend {
namespace {

const DType kI64 = DType::Int(64);

Expr any_vector(const Operands& build, size_t input, const char* what, DType dtype) {
  Expr v = build.cast(build.in(input), dtype);
  if (Builder::rank_of(v) == 0) v = build.reshape(v, std::vector<int64_t>{1});
  if (Builder::rank_of(v) != 1) {
    build.fail(codes::frontend_attribute, std::string(what) + " must be a list", "1 dimension",
               to_string(v->type));
  }
  return v;
}

Expr vector_of(const Operands& build, size_t input, const char* what, DType dtype, int64_t length) {
  Expr v = any_vector(build, input, what, dtype);
  if (auto n = as_const(Builder::shape_of(v)[0]); n && *n != length) {
    build.fail(codes::frontend_attribute, std::string(what) + " has the wrong length",
               std::to_string(length), std::to_string(*n));
  }
  return build.reshape(v, std::vector<int64_t>{length});
}

}  // namespace

bool are_open(const UserError& error) {
  return std::ranges::all_of(error.diagnostics(), [](const Diagnostic& d) {
    return d.code == codes::frontend_dynamic.id;
  });
}

Expr int_vector(const Operands& build, size_t input, const char* what, int64_t most) {
  Expr v = any_vector(build, input, what, kI64);
  if (has_open_length(v)) {
    build.fail(codes::frontend_dynamic, std::string(what) + " has a length that is open",
               "a known length, which decides how many dimensions there are", to_string(v->type),
               "give the shape of the input that it comes from, as in --input NAME=2");
  }
  if (int64_t length = length_of_vector(v); length > most) {
    build.fail(codes::frontend_limit, std::string(what) + " is too long",
               "at most " + std::to_string(most) + " entries", std::to_string(length));
  }
  return v;
}

Expr int_vector_of(const Operands& build, size_t input, const char* what, int64_t length) {
  return vector_of(build, input, what, kI64, length);
}
Expr float_vector_of(const Operands& build, size_t input, const char* what, int64_t length) {
  return vector_of(build, input, what, DType::Float(64), length);
}
Expr int_list(const Operands& build, size_t input, const char* what) {
  return any_vector(build, input, what, kI64);
}
bool has_open_length(const Expr& vector) { return !as_const(Builder::shape_of(vector)[0]); }

Expr one_number(const Operands& build, size_t input, DType dtype) {
  Expr v = build.cast(build.in(input), dtype);
  return Builder::rank_of(v) == 0 ? v : build.reshape(v, std::vector<int64_t>{});
}

int64_t length_of_vector(const Expr& vector) { return *as_const(Builder::shape_of(vector)[0]); }

Expr sizes_of(const Builder& build, const Expr& x) {
  return build.call("shape_of", {x}, {{"dtype", to_value(kI64)}});
}

Expr checked_index(const Builder& build, Expr indices, const Expr& data, int64_t first,
                   std::optional<int64_t> count) {
  const std::vector<Dim>& shape = Builder::shape_of(data);
  std::vector<int64_t> axes(static_cast<size_t>(count.value_or(1))), fixed;
  std::iota(axes.begin(), axes.end(), first);
  for (int64_t axis : axes) {
    if (auto n = as_const(shape[static_cast<size_t>(axis)])) fixed.push_back(*n);
  }
  Expr sizes =
      fixed.size() == axes.size()
          ? build.ints(fixed)
          : build.call("take", {sizes_of(build, data), build.ints(axes)}, {{"axis", int64_t{0}}});
  if (!count) sizes = build.select(sizes, 0, 0);
  return build.call("checked_index", {std::move(indices), std::move(sizes)});
}

Expr places_from_front(const Builder& build, const Expr& places, const Expr& size) {
  Expr at = build.cast(places, kI64);
  Expr below = build.call("less", {at, build.scalar_like(0, at)});
  return build.where(below, build.add(at, size), at);
}

Expr length_at_run_time(const Builder& build, const Expr& vector) {
  if (!has_open_length(vector)) return build.ints({length_of_vector(vector)});
  return sizes_of(build, vector);
}

Expr ones_for(const Builder& build, const Expr& vector) {
  if (!has_open_length(vector)) return build.full(1, {dim(length_of_vector(vector))}, kI64);
  return build.call("dyn.full", {build.scalar(1, kI64), sizes_of(build, vector)});
}

Expr as_long_as(const Builder& build, const Expr& values, const Expr& like) {
  const Dim &own = Builder::shape_of(values)[0], &wanted = Builder::shape_of(like)[0];
  if (dim_equal(own, wanted) && !is_any(own)) return values;
  return open_reshape(build, values, sizes_of(build, like));
}

Expr numbers_below(const Builder& build, int64_t n) {
  build.charge_bytes(n, kI64);
  std::vector<int64_t> all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return build.ints(all);
}

Expr places_along(const Builder& build, const Expr& x, int64_t axis) {
  if (auto n = as_const(Builder::shape_of(x)[static_cast<size_t>(axis)])) {
    if (*n <= kMaxKnownElements) return numbers_below(build, *n);
  }
  return open_range(build, build.scalar(0, kI64), build.select(sizes_of(build, x), 0, axis));
}

Expr axes_from_front(const Builder& build, const Expr& axes, int64_t rank) {
  Expr below = build.call("less", {axes, build.scalar(0, kI64)});
  Expr moved = build.add(axes, build.scalar(static_cast<double>(rank), kI64));
  return build.call("where", {below, moved, axes});
}

Expr spread(const Builder& build, const Expr& otherwise, const Expr& axes, const Expr& values) {
  return build.call("scatter_elements", {otherwise, axes, as_long_as(build, values, axes)},
                    {{"axis", int64_t{0}}, {"reduction", std::string("update")}});
}

Expr other_axes(const Builder& build, const Expr& axes, int64_t rank) {
  int64_t k = length_of_vector(axes);
  Expr taken = spread(build, build.full(0, {dim(rank)}, kI64), axes, build.full(1, {dim(k)}, kI64));
  // The order is stable: first those that are not taken.
  Expr order = build.call("argsort", {taken}, {{"axis", int64_t{0}}, {"dtype", to_value(kI64)}});
  return entries(build, order, 0, rank - k);
}

Expr with_size(const Builder& build, const Expr& x, int64_t axis, const Dim& size) {
  std::vector<Dim> sizes = Builder::shape_of(x);
  Dim& own = sizes[static_cast<size_t>(axis)];
  if (is_any(size) || dim_equal(own, size)) return x;
  own = size;
  return build.reshape(x, sizes);
}

Expr entries(const Builder& build, const Expr& vector, int64_t begin, int64_t end) {
  return build.slice(vector, 0, begin, end);
}

Expr along_open_axis(const Builder& build, const Expr& x, const Expr& axis, bool keeps_size,
                     const std::function<Expr(const Expr&)>& along) {
  int64_t rank = Builder::rank_of(x);
  Expr last = axes_from_front(build, build.reshape(axis, std::vector<int64_t>{1}), rank);
  Expr order = build.concat({other_axes(build, last, rank), last}, 0);
  Expr y = along(build.call("dyn.transpose", {x, order}));
  y = build.call("dyn.transpose", {y, build.call("invert_permutation", {order})});
  const std::vector<Dim>& sizes = Builder::shape_of(x);
  bool named = std::ranges::none_of(sizes, is_any);
  return keeps_size && named ? build.reshape(y, sizes) : y;
}

Expr open_reshape(const Builder& build, const Expr& x, const Expr& sizes) {
  return build.call("dyn.reshape", {x, sizes}, {{"allowzero", true}});
}

Expr open_slice(const Builder& build, const Expr& x, const Expr& begin, const Expr& end,
                const Expr& steps, const std::vector<int64_t>& axes, bool strict) {
  return build.call("dyn.strided_slice", {x, begin, end, steps},
                    {{"axes", to_value(axes)}, {"strict", strict}});
}

Expr open_range(const Builder& build, const Expr& first, const Expr& end) {
  return build.call("dyn.arange", {first, end, build.scalar(1, Builder::dtype_of(end))});
}

}  // namespace relay::frontend
