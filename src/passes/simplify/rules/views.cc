// Changes of the order of axes that, with the reshape between them, change the order of no element.
#include <algorithm>

#include "ir/dim_fields.h"
#include "ir/layout.h"
#include "ir/op.h"
#include "ir/views.h"
#include "passes/simplify/rules/rule.h"

namespace relay::simplify {
namespace {

using Places = std::vector<size_t>;

// For each axis of the result the axis of the operand; empty where axes are cut or sizes open.
Places order_of(const CallNode& c) {
  auto* from = tensor_of(c.args[0]);
  Places out;
  if (from == nullptr) return out;
  if (as<OpNode>(c.op)->name == "layout_transform") {
    Layout src = Layout::of(text_attr(c, "src_layout")),
           dst = Layout::of(text_attr(c, "dst_layout"));
    if (src.primal_axes() != src.to_string() || dst.primal_axes() != dst.to_string()) return out;
    for (const Layout::Axis& a : dst.axes())
      out.push_back(static_cast<size_t>(src.index_of(a.name)));
    return out;
  }
  auto axes = ints_attr(c, "axes");
  for (int64_t d = 0; d < from->rank(); ++d) {
    int64_t axis = axes && !axes->empty() ? (*axes)[static_cast<size_t>(d)] : -1 - d;
    out.push_back(static_cast<size_t>(axis < 0 ? axis + from->rank() : axis));
  }
  return out;
}

// Axes of both sides of a reshape that hold the same elements in the same order.
struct Group {
  Places before, after;
};

Dim product(const std::vector<Dim>& shape, const Places& axes) {
  Dim out = dim(1);
  for (size_t a : axes) out = out * shape[a];
  return out;
}

// The finest groups, without axes of one element. Where sizes do not tell, what is left of both sides
// is one; empty when that is nothing on one of them.
std::vector<Group> groups_of(const std::vector<Dim>& before, const std::vector<Dim>& after) {
  auto longer_than_one = [](const std::vector<Dim>& shape) {
    Places out;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (as_const(shape[i]) != 1) out.push_back(i);
    }
    return out;
  };
  const Places a = longer_than_one(before), b = longer_than_one(after);
  std::vector<Group> groups;
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    Group found;
    for (size_t total = 2; found.before.empty() && total <= a.size() - i + b.size() - j; ++total) {
      for (size_t m = 1; m < total; ++m) {
        size_t n = total - m;
        if (i + m > a.size() || j + n > b.size()) continue;
        Group g{{a.begin() + static_cast<std::ptrdiff_t>(i),
                 a.begin() + static_cast<std::ptrdiff_t>(i + m)},
                {b.begin() + static_cast<std::ptrdiff_t>(j),
                 b.begin() + static_cast<std::ptrdiff_t>(j + n)}};
        if (!dim_equal(product(before, g.before), product(after, g.after))) continue;
        found = std::move(g);
        break;
      }
    }
    if (found.before.empty()) {
      found = {{a.begin() + static_cast<std::ptrdiff_t>(i), a.end()},
               {b.begin() + static_cast<std::ptrdiff_t>(j), b.end()}};
    }
    i += found.before.size();
    j += found.after.size();
    groups.push_back(std::move(found));
  }
  return i == a.size() && j == b.size() ? groups : std::vector<Group>{};
}

// Whether all axes longer than one come in the order of the operand.
bool keeps_order(const CallNode& first, const CallNode& reshape, const CallNode& second) {
  const Places in = order_of(first), out = order_of(second);
  const auto& before = tensor_of(reshape.args[0])->shape;
  const auto& after = tensor_of(second.args[0])->shape;
  if (in.size() != before.size() || out.size() != after.size()) return false;
  std::vector<Group> groups = groups_of(before, after);
  if (groups.empty()) return false;
  // The groups as the result has them, each whole, and so the axes of the operand.
  Places axes;
  for (size_t at = 0; at < out.size();) {
    auto g =
        std::ranges::find_if(groups, [&](const Group& each) { return each.after[0] == out[at]; });
    if (g == groups.end()) {
      if (as_const(after[out[at]]) != 1) return false;
      ++at;
      continue;
    }
    for (size_t axis : g->after) {
      while (at < out.size() && as_const(after[out[at]]) == 1) ++at;
      if (at == out.size() || out[at++] != axis) return false;
    }
    for (size_t axis : g->before) axes.push_back(in[axis]);
  }
  return std::ranges::is_sorted(axes);
}

}  // namespace

Rule permuted_view_rule() {
  auto permutes = [](const OpInfo& row) {
    return row.name == "transpose" || row.name == "layout_transform";
  };
  DFPattern x = wildcard(), first = is_op_where(permutes)(x),
            view = is_op_where(only_reshapes)(first);
  return {"permuted_view", is_op_where(permutes)(view),
          [=](const DFMatch& m, const CallNode& root) -> Expr {
            auto* type = as<TensorTypeNode>(root.type);
            if (type == nullptr || type->shape_var ||
                std::ranges::count_if(type->shape, is_any) > 1 ||
                !keeps_order(*as<CallNode>(m[first]), *as<CallNode>(m[view]), root)) {
              return nullptr;
            }
            Dims shape(type->shape.begin(), type->shape.end());
            // A zero in newshape copies a size of the input, and -1 is what is left.
            if (std::ranges::any_of(shape, [](const Dim& d) { return as_const(d) == 0; }))
              return nullptr;
            std::ranges::replace_if(shape, is_any, dim(-1));
            return make_call("reshape", {m[x]}, {{"newshape", to_value(shape)}}, root);
          }};
}

}  // namespace relay::simplify
