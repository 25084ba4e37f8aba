#include "analysis/lanes.h"

#include <algorithm>
#include <numeric>

#include "analysis/calls.h"
#include "base/codes/batching.h"

namespace relay {
namespace {

const std::vector<Dim>& shape_of(const Expr& e) { return tensor_of(e)->shape; }

Expr reshaped(const Expr& e, const std::vector<Dim>& shape) {
  return make_call("reshape", {e},
                   {{"newshape", to_value(Dims(shape.begin(), shape.end()))}, {"allowzero", true}},
                   e->span);
}

}  // namespace

Expr with_axis_moved(const Expr& e, size_t from, size_t to) {
  if (from == to) return e;
  std::vector<int64_t> axes(shape_of(e).size());
  std::iota(axes.begin(), axes.end(), 0);
  axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(from));
  axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(to), static_cast<int64_t>(from));
  return make_call("transpose", {e}, {{"axes", to_value(axes)}}, e->span);
}

bool has_named_sizes(const Expr& e) { return std::ranges::none_of(shape_of(e), is_any); }

Expr fold_lanes(const Expr& e, size_t axis) {
  Expr m = with_axis_moved(e, 0, axis);
  std::vector<Dim> shape = shape_of(m);
  Dim merged = shape[axis] * shape[axis + 1];
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  shape[axis] = merged;
  return reshaped(m, shape);
}

Expr unfold_lanes(const Expr& e, size_t axis, const Dim& lanes, const Type& lane) {
  std::vector<Dim> shape = as<TensorTypeNode>(lane)->shape;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), lanes);
  return with_axis_moved(reshaped(e, shape), axis, 0);
}

Expr in_all_lanes(const Expr& e, const Dim& lanes) {
  const std::vector<Dim>& own = shape_of(e);
  if (has_named_sizes(e)) {
    Dims shape(own.begin(), own.end());
    shape.insert(shape.begin(), lanes);
    return make_call("broadcast_to", {e}, {{"shape", to_value(shape)}}, e->span);
  }
  auto count = as_const(lanes);
  if (!count) {
    throw UserError(Diagnostic(codes::batch_ragged, e->span,
                               "a tensor is repeated for lanes whose number is not known")
                        .expected("known sizes, or a known number of lanes")
                        .found(to_string(e->type)));
  }
  Expr one = make_call("expand_dims", {e}, {{"axis", int64_t{0}}}, e->span);
  return make_call("repeat", {one}, {{"repeats", *count}, {"axis", int64_t{0}}}, e->span);
}

Expr lanes_of_rank(const Expr& e, int64_t rank) {
  int64_t missing = rank + 1 - tensor_of(e)->rank();
  if (missing == 0) return e;
  return make_call("expand_dims", {e}, {{"axis", int64_t{1}}, {"num_newaxis", missing}}, e->span);
}

}  // namespace relay
