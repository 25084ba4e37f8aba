// SimplifyExpr's rules for sums of products.
#include <algorithm>

#include "ir/contraction.h"
#include "ir/op.h"
#include "passes/simplify/rules/rule.h"

namespace relay::simplify {
namespace {

using Ints = std::vector<int64_t>;

// The only dimension of more than one element along an axis. Windows of one element are moved by one from each position to the
// next.
std::optional<size_t> line_of(const Contraction& product, const Contraction::Axis& axis) {
  if (axis.blocked() || (axis.window && (axis.window->stride != 1 || axis.window->padding != 0))) {
    return std::nullopt;
  }
  std::optional<size_t> line;
  for (size_t dim : axis.dims) {
    if (as_const(product.dims[dim].extent) == 1) continue;
    if (line) return std::nullopt;
    line = dim;
  }
  return line;
}

// The shape of an operand with its axes where the result has them, which is a reshape of it;
// nullopt where an axis is read in another way than by an index of the result, or the elements come
// in another order.
std::optional<Ints> spread_like_result(const Contraction& product, size_t operand,
                                       const Ints& shape) {
  Ints out(product.result.size(), 1);
  size_t next = 0;
  for (size_t a = 0; a < shape.size(); ++a) {
    if (shape[a] == 1) continue;
    auto line = line_of(product, product.operands[operand][a]);
    if (!line || as_const(product.dims[*line].extent) != shape[a]) return std::nullopt;
    std::vector<size_t> at = product.axes_of(product.result, *line);
    if (at.size() != 1 || at[0] < next || product.result[at[0]].window ||
        line_of(product, product.result[at[0]]) != line) {
      return std::nullopt;
    }
    out[at[0]] = shape[a];
    next = at[0] + 1;
  }
  return out;
}

int64_t elements(const Ints& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

// A sum of one product, of a tensor and of what is no larger than a line of it: the gradient of a
// dot product, or a convolution of single pixels, each channel by itself. It fuses with what is around it. Larger ones, as of a column by a row, stay: sums of
// them become one product (CombineSummands).
Expr scaled(const CallNode& root) {
  auto product = contraction_of(root);
  auto *x = tensor_of(root.args[0]), *y = tensor_of(root.args[1]),
       *out = as<TensorTypeNode>(root.type);
  auto a = static_shape(root.args[0]), b = static_shape(root.args[1]),
       all = static_shape(Expr(&root));
  if (!product || product->operands.size() != 2 || !a || !b || !all) return nullptr;
  bool one_dtype = x->dtype == out->dtype && y->dtype == out->dtype &&
                   (x->dtype.is_float(32) || x->dtype.is_float(64));
  for (const Contraction::Dimension& d : product->dims) {
    bool summed = d.role == ContractionRole::Reduced || d.role == ContractionRole::Window;
    if (summed && as_const(d.extent) != 1) return nullptr;
  }
  int64_t count = elements(*all);
  if (!one_dtype || count == 0 || count != std::max(elements(*a), elements(*b))) return nullptr;
  auto left = spread_like_result(*product, 0, *a), right = spread_like_result(*product, 1, *b);
  if (!left || !right) return nullptr;
  auto operand = [&](size_t i, const Ints& shape) {
    return static_shape(root.args[i]) == shape
               ? root.args[i]
               : make_call("reshape", {root.args[i]}, {{"newshape", to_value(shape)}}, root);
  };
  Expr found = make_call("multiply", {operand(0, *left), operand(1, *right)}, {}, root);
  // A sum begins with 0.0, which takes the sign from -0.0.
  Tensor zero = Tensor::empty(out->dtype, {});
  zero.set_from_double(0, 0);
  return make_call("add", {found, constant(std::move(zero), root.span)}, {}, root);
}

}  // namespace

std::vector<Rule> product_rules() {
  auto sums = [](const OpInfo& row) {
    return static_cast<bool>(row.contraction) && row.args.size() == 2;
  };
  return {{"sum_of_one_product", is_op_where(sums)(wildcard(), wildcard()),
           [](const DFMatch&, const CallNode& root) { return scaled(root); }}};
}

}  // namespace relay::simplify
