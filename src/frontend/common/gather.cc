#include "frontend/common/gather.h"

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/open_args.h"

namespace relay::frontend {
namespace {

const Dim& size_along(const Expr& e, int64_t axis) {
  return Builder::shape_of(e)[static_cast<size_t>(axis)];
}

// The last axis, which holds the coordinates, becomes the first.
Expr coordinates_first(const Builder& build, Expr places) {
  int64_t rank = Builder::rank_of(places);
  std::vector<int64_t> axes{rank - 1};
  for (int64_t a = 0; a + 1 < rank; ++a) axes.push_back(a);
  return build.transpose(std::move(places), axes);
}

// The lists of coordinates, each along the first axis; `check` says whether a run checks those that are not known here.
Expr coordinates(const Builder& build, const ValuePtr& value, const Expr& data, int64_t batch_dims,
                 bool check) {
  Expr places = build.tensor_of(value);
  int64_t rank = Builder::rank_of(places);
  if (rank < 1) build.fail(codes::type_rank, "the indices must have at least one dimension");
  int64_t depth = build.const_dim(places, rank - 1, "the length of a coordinate");
  if (depth + batch_dims > Builder::rank_of(data)) {
    build.fail(codes::type_rank, "a coordinate has more entries than the data has dimensions",
               "at most " + std::to_string(Builder::rank_of(data) - batch_dims),
               std::to_string(depth));
  }
  auto first = Builder::shape_of(data).begin() + batch_dims;
  bool inside = known_inside(build, value, {first, first + depth});
  places = coordinates_first(build, std::move(places));
  return inside || !check ? places
                          : checked_index(build, std::move(places), data, batch_dims, depth);
}

std::string word_of(Scatter how) {
  static constexpr const char* kWords[] = {"update", "add", "mul", "min", "max"};
  return kWords[static_cast<size_t>(how)];
}

}  // namespace

bool known_inside(const Builder& build, const ValuePtr& places, const std::vector<Dim>& sizes) {
  std::vector<int64_t> at;
  if (Tensor data = Builder::constant_data(places)) {
    for (int64_t i = 0; i < data.num_elements(); ++i) at.push_back(data.get_as_int(i));
  } else {
    return false;
  }
  bool all = true;
  for (size_t i = 0; i < at.size() && !sizes.empty(); ++i) {
    auto n = as_const(sizes[i % sizes.size()]);
    if (n && (at[i] < -*n || at[i] >= *n)) {
      build.fail(codes::frontend_attribute, "an index is out of range",
                 "between " + std::to_string(-*n) + " and " + std::to_string(*n - 1),
                 std::to_string(at[i]));
    }
    all &= n.has_value();
  }
  return all;
}

Expr take_along(const Builder& build, const Expr& data, const ValuePtr& places, int64_t axis) {
  auto n = as_const(size_along(data, axis));
  // One constant place is a slice.
  if (const auto& k = places->known; k && k->is_constant() && k->shape.empty() && n) {
    int64_t at = k->int_at(0);
    if (at >= -*n && at < *n) return build.select(data, axis, at < 0 ? at + *n : at);
  }
  Expr indices = build.tensor_of(places);
  if (!known_inside(build, places, {size_along(data, axis)}))
    indices = checked_index(build, indices, data, axis);
  // "fast" counts negative indices from the end, "clip" does not.
  return build.call("take", {data, indices}, {{"axis", axis}, {"mode", std::string("fast")}});
}

Expr gather_elements(const Builder& build, const Expr& data, const ValuePtr& places, int64_t axis) {
  const bool checked = !known_inside(build, places, {size_along(data, axis)});
  return build.call("gather", {data, build.tensor_of(places)},
                    {{"axis", axis}, {"checked", checked}});
}

Expr gather_nd(const Builder& build, const Expr& data, const ValuePtr& places, int64_t batch_dims) {
  Expr at = coordinates(build, places, data, batch_dims, true);
  return build.call("gather_nd", {data, at}, {{"batch_dims", batch_dims}});
}

// The operators that write check what is not known here.

Expr scatter_elements(const Builder& build, const Expr& data, const ValuePtr& places,
                      const Expr& updates, int64_t axis, Scatter how) {
  known_inside(build, places, {size_along(data, axis)});
  return build.call("scatter_elements", {data, build.tensor_of(places), updates},
                    {{"axis", axis}, {"reduction", word_of(how)}});
}

Expr scatter_nd(const Builder& build, const Expr& data, const ValuePtr& places, const Expr& updates,
                Scatter how) {
  Expr at = coordinates(build, places, data, 0, false);
  return build.call("scatter_nd", {data, at, updates}, {{"mode", word_of(how)}});
}

Expr one_hot(const Builder& build, const Expr& places, int64_t depth, const Expr& on,
             const Expr& off, int64_t axis) {
  Expr index =
      places_from_front(build, places, build.scalar(static_cast<double>(depth), DType::Int(64)));
  // The operator's axis counts the new dimension, -1 being the last.
  if (axis == Builder::rank_of(index)) axis = -1;
  return build.call("one_hot", {index, on, off},
                    {{"depth", depth}, {"axis", axis}, {"dtype", to_value(Builder::dtype_of(on))}});
}

Expr one_hot_at_run_time(const Builder& build, const Expr& places, const Expr& depth,
                         const Expr& on, const Expr& off, int64_t axis) {
  Expr index = places_from_front(build, places, depth);
  Expr numbers = open_range(build, build.scalar_like(0, depth), depth);
  Expr hit = build.call("equal", {build.expand_dims(index, axis),
                                  build.expand_dims(numbers, 1, Builder::rank_of(index) - axis)});
  return build.where(hit, on, off);
}

}  // namespace relay::frontend
