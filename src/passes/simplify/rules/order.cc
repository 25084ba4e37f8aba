// SimplifyExpr's rules for scans, selections and copies that others write faster.
#include <algorithm>
#include <limits>

#include "passes/simplify/rules/rule.h"

namespace relay::simplify {
namespace {

using Shape = std::vector<int64_t>;

bool has_zero(const Shape& shape) { return std::ranges::find(shape, 0) != shape.end(); }

Expr reshaped(const Expr& x, const Shape& shape, const CallNode& root) {
  return make_call("reshape", {x}, {{"newshape", to_value(shape)}}, root);
}

// The axis that a call's attribute names, from the front; nullopt where there is none.
std::optional<size_t> axis_of(const CallNode& root, size_t rank) {
  const AttrValue value = attr_value(root.attrs, "axis");
  auto* axis = value.get_if<int64_t>();
  if (axis == nullptr) return std::nullopt;
  const auto size = static_cast<int64_t>(rank);
  return static_cast<size_t>(*axis < 0 ? *axis + size : *axis);
}

// Scans run beside each other in vectors along the last axis: those behind the axis become one, so that a short last axis
// fills vectors, too.
Rule scan_columns() {
  DFPattern x = wildcard();
  return {"scan_columns", is_any_op({"cumsum", "cumprod"})(x),
          [=](const DFMatch& m, const CallNode& root) -> Expr {
            auto shape = static_shape(m[x]);
            if (!shape || has_zero(*shape)) return nullptr;
            auto axis = axis_of(root, shape->size());
            if (!axis || *axis + 2 >= shape->size()) return nullptr;
            Shape joined(shape->begin(), shape->begin() + static_cast<std::ptrdiff_t>(*axis) + 1);
            int64_t columns = 1;
            for (size_t d = *axis + 1; d < shape->size(); ++d) columns *= (*shape)[d];
            joined.push_back(columns);
            Expr scan = with_attrs(root, {reshaped(m[x], joined, root)},
                                   {{"axis", static_cast<int64_t>(*axis)}});
            return reshaped(scan, *shape, root);
          }};
}

// The first of an order is a reduction: the greatest or least, then the first place that holds it. NaN is behind every
// number; where there is nothing else, nothing equals the greatest, and the first place is the answer. The value is read at
// the place, so that its bits are those of the element.
Rule topk_one() {
  DFPattern x = wildcard();
  return {
      "topk_one", is_op("topk")(x), [=](const DFMatch& m, const CallNode& root) -> Expr {
        auto shape = static_shape(m[x]);
        const AttrValue k = attr_value(root.attrs, "k");
        auto* count_wanted = k.get_if<int64_t>();
        if (!shape || (count_wanted != nullptr && *count_wanted != 1)) return nullptr;
        auto axis = axis_of(root, shape->size());
        if (!axis || (*shape)[*axis] < 1 || (*shape)[*axis] > INT32_MAX) return nullptr;
        const DType dtype = tensor_of(m[x])->dtype, place = DType::Int(32);
        if (!dtype.is_floating() && !dtype.is_integer()) return nullptr;
        const bool least = bool_attr(root, "is_ascend");
        auto best_of = [&](const Expr& e, bool of_least) {
          return make_call(of_least ? "min" : "max", {e},
                           {{"axis", to_value(Shape{static_cast<int64_t>(*axis)})},
                            {"keepdims", AttrValue(true)}},
                           root);
        };
        Expr numbers = m[x];
        if (dtype.is_floating()) {
          const double infinity = std::numeric_limits<double>::infinity();
          Expr behind = constant(least ? infinity : -infinity, dtype, root.span);
          numbers =
              make_call("where", {make_call("isnan", {m[x]}, {}, root), behind, m[x]}, {}, root);
        }
        Shape along(shape->size(), 1);
        along[*axis] = (*shape)[*axis];
        const auto count = static_cast<double>(along[*axis]);
        Expr places = make_call(
            "arange", {},
            {{"stop", AttrValue(along[*axis])}, {"dtype", AttrValue(place.to_string())}}, root);
        Expr none = constant(count, place, root.span);
        Expr holds = make_call("equal", {m[x], best_of(numbers, least)}, {}, root);
        Expr first = best_of(
            make_call("where", {holds, reshaped(places, along, root), none}, {}, root), true);
        Expr at = make_call(
            "where",
            {make_call("equal", {first, none}, {}, root), constant(0, place, root.span), first}, {},
            root);
        Expr value = make_call("gather", {m[x], at},
                               {{"axis", AttrValue(static_cast<int64_t>(*axis))}}, root);
        const std::string gives = text_attr(root, "ret_type");
        if (gives == "values") return value;
        const Type& type = gives == "indices" ? root.type : as<TupleTypeNode>(root.type)->fields[1];
        Expr index =
            make_call("cast", {at},
                      {{"dtype", AttrValue(as<TensorTypeNode>(type)->dtype.to_string())}}, root);
        return gives == "indices" ? index : Expr(tuple({value, index}, root.span));
      }};
}

// Bytes of a run below which vectors would be copied in pieces, and of a result that a second kernel is worth.
constexpr int64_t kShortRun = 64, kLongResult = int64_t{1} << 14;

// The tensor of `shape` as often along each axis as `times` says, with an axis for the copies in front of each axis that has some.
Expr copied(const Expr& x, const Shape& shape, const Shape& times, const CallNode& root) {
  Shape from, to;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (times[d] > 1 && shape[d] > 1) {
      from.push_back(1);
      to.push_back(times[d]);
    }
    from.push_back(shape[d]);
    to.push_back(shape[d] > 1 ? shape[d] : times[d]);
  }
  return make_call("broadcast_to", {reshaped(x, from, root)}, {{"shape", to_value(to)}}, root);
}

// Copies beside each other are a new axis of the result: runs of elements, not a remainder for each. Where the innermost axis
// that is repeated has short runs and others are repeated, too, its copies are made first and stored: the others then copy
// long runs. 2x3x569x2 by 1x30x1x2 took 9 times as long element by element.
Rule tile_broadcast() {
  DFPattern x = wildcard();
  return {"tile_broadcast", is_op("tile")(x), [=](const DFMatch& m, const CallNode& root) -> Expr {
            auto shape = static_shape(m[x]), result = static_shape(Expr(&root));
            if (!shape || !result || has_zero(*result)) return nullptr;
            shape->insert(shape->begin(), result->size() - shape->size(), 1);
            Shape outer, inner(result->size(), 1);
            size_t last = 0;
            int64_t run = tensor_of(m[x])->dtype.bytes(), bytes = run;
            for (size_t d = 0; d < result->size(); ++d) {
              outer.push_back((*result)[d] / (*shape)[d]);
              if (outer[d] > 1) last = d;
              bytes *= (*result)[d];
            }
            for (size_t d = last; d < result->size(); ++d) run *= (*shape)[d];
            const bool several =
                std::ranges::count_if(outer, [](int64_t times) { return times > 1; }) > 1;
            if (!several || run >= kShortRun || bytes < kLongResult) {
              return reshaped(copied(m[x], *shape, outer, root), *result, root);
            }
            std::swap(inner[last], outer[last]);
            auto stored = [&](const Expr& e) {
              return make_call("annotation.stop_fusion", {e}, {}, root);
            };
            // What no other copies lie between is one axis, so that a run is one loop.
            Shape runs, times;
            for (size_t d = 0; d < shape->size(); ++d) {
              if (d == 0 || outer[d] > 1) {
                runs.push_back(1);
                times.push_back(outer[d]);
              }
              runs.back() *= (*shape)[d] * inner[d];
            }
            // Each step writes its copies as they lie, and reads rows of an array: reshapes are views between them.
            Expr copies = stored(copied(m[x], *shape, inner, root));
            copies = copied(stored(reshaped(copies, runs, root)), runs, times, root);
            return reshaped(stored(copies), *result, root);
          }};
}

}  // namespace

std::vector<Rule> order_rules() { return {scan_columns(), topk_one(), tile_broadcast()}; }

}  // namespace relay::simplify
