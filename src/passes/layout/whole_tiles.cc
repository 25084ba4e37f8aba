#include "passes/layout/whole_tiles.h"

#include <algorithm>
#include <numeric>

#include "analysis/calls.h"
#include "ir/dim_fields.h"
#include "passes/layout/matrix_products.h"
#include "target/rows_by_rows.h"

namespace relay {
namespace {

const std::vector<Dim>& shape_of(const Expr& e) { return tensor_of(e)->shape; }
// Whether all sizes have a value or a name, as those that a reshape states.
bool is_named(const Expr& e) { return std::ranges::none_of(shape_of(e), is_any); }

// The matrices [b, k, n] before their last axes were swapped, as [b, n, k]; null where they were not.
Expr before_swap(const Expr& matrices) {
  const bool reshaped = is_call_to(matrices, "reshape");
  const Expr swapped = reshaped ? as<CallNode>(matrices)->args[0] : matrices;
  if (!is_call_to(swapped, "transpose") || !is_named(matrices)) return nullptr;
  auto* transpose = as<CallNode>(swapped);
  const std::vector<Dim>&shape = shape_of(matrices), &from = shape_of(swapped);
  std::vector<int64_t> axes(from.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (axes.size() < 2) return nullptr;
  std::swap(axes[axes.size() - 2], axes.back());
  if (ints_attr(*transpose, "axes") != axes || !dim_equal(from.back(), shape[2]) ||
      !dim_equal(from[from.size() - 2], shape[1])) {
    return nullptr;
  }
  if (!reshaped) return transpose->args[0];
  return make_call("reshape", {transpose->args[0]},
                   {{"newshape", to_value(Dims{shape[0], shape[2], shape[1]})}}, *transpose);
}

// With so many zeros behind what lies along the axis.
Expr padded(const Expr& e, size_t axis, const Dim& count, const Span& at) {
  if (as_const(count) == 0) return e;
  ValueList widths;
  for (size_t a = 0; a < shape_of(e).size(); ++a) {
    widths.push_back(to_value(Dims{dim(0), a == axis ? count : dim(0)}));
  }
  return make_call("nn.pad", {e, constant(0, tensor_of(e)->dtype, at)},
                   {{"pad_width", AttrValue(widths)}}, at);
}

// With zeros behind the last axis, in front of reshapes that keep it: the kernel of a softmax writes them.
Expr with_longer_rows(const Expr& e, const Dim& zeros, const Span& at) {
  if (as_const(zeros) == 0) return e;
  std::vector<const CallNode*> behind;
  Expr rows = e;
  while (is_call_to(rows, "reshape")) {
    auto* c = as<CallNode>(rows);
    if (shape_of(c->args[0]).empty() || !is_named(rows) ||
        !dim_equal(shape_of(rows).back(), shape_of(c->args[0]).back())) {
      break;
    }
    behind.push_back(c);
    rows = c->args[0];
  }
  Expr out = padded(rows, shape_of(rows).size() - 1, zeros, at);
  for (auto c = behind.rbegin(); c != behind.rend(); ++c) {
    Dims shape;
    shape.assign(shape_of(Expr(*c)).begin(), shape_of(Expr(*c)).end());
    shape.back() = shape_of(out).back();
    out = with_attrs(**c, {out}, {{"newshape", to_value(shape)}});
  }
  return out;
}

}  // namespace

Expr in_whole_tiles(const CallNode& c, const Contraction& product, const Target& target) {
  constexpr int64_t kBits = 16;
  const int64_t panel = panel_columns(target, kBits);
  const size_t sum = *product.only(ContractionRole::Reduced),
               column = *product.only(ContractionRole::Column);
  // What a symbolic size is short of a whole number of panels.
  auto missing = [&](const Dim& size) { return ceil_div(size, dim(panel)) * dim(panel) - size; };
  const Dim &length = product.dims[sum].extent, &width = product.dims[column].extent;
  const auto known = as_const(length);
  const Dim terms = known ? dim(whole_sum(c, product, target, *known) - *known) : missing(length);
  const Dim columns = as_const(width) ? dim(0) : missing(width);
  bool columns_last = product.operands[1].back().has(column);
  Expr matrices = c.args[1];
  std::vector<std::pair<std::string, AttrValue>> changes;
  if (Expr rows = columns_last ? before_swap(matrices) : nullptr;
      rows && is_call_to(Expr(&c), "nn.batch_matmul")) {
    matrices = rows;
    columns_last = false;
    changes.emplace_back("transpose_b", AttrValue(true));
  }
  matrices = padded(matrices, columns_last ? 1 : 2, terms, c.span);
  matrices = padded(matrices, columns_last ? 2 : 1, columns, c.span);
  const Expr rows = with_longer_rows(c.args[0], terms, c.span);
  if (rows == c.args[0] && matrices == c.args[1]) return Expr(&c);
  return with_attrs(c, {rows, matrices}, std::move(changes));
}

Expr without_padding(const Expr& product, const CallNode& c) {
  const std::vector<Dim>& shape = shape_of(Expr(&c));
  if (dim_equal(shape.back(), shape_of(product).back())) return product;
  const auto last = static_cast<int64_t>(shape.size()) - 1;
  return make_call("strided_slice", {product},
                   {{"begin", to_value(Dims{dim(0)})},
                    {"end", to_value(Dims{shape.back()})},
                    {"axes", to_value(std::vector<int64_t>{last})}},
                   c);
}

}  // namespace relay
