#include "grad/asked_factor.h"

#include <algorithm>

#include "analysis/calls.h"
#include "grad/call_gradient.h"
#include "ir/op.h"
#include "node/walk.h"

namespace relay {
namespace {

using Ints = std::vector<int64_t>;

int64_t rank_of(const Expr& e) { return static_cast<int64_t>(tensor_of(e)->shape.size()); }

bool is_one(const Dim& d) {
  const auto known = as_const(d);
  return known && *known == 1;
}

// One dimension for each axis of both, as it is.
bool by_dimension(const Contraction::Tensor& tensor) {
  return std::ranges::all_of(tensor, [](const Contraction::Axis& a) {
    return a.dims.size() <= 1 && !a.window && !a.blocked();
  });
}

Expr by_axes(const Contraction::Tensor& result, const Contraction::Tensor& operand, Expr mask) {
  const size_t before = result.size() - static_cast<size_t>(rank_of(mask));
  Ints dropped;
  std::vector<size_t> kept;  // of the axes of the mask that stay, those of the operand
  for (size_t j = before; j < result.size(); ++j) {
    auto to = std::ranges::find_if(operand, [&](const Contraction::Axis& a) {
      return !result[j].dims.empty() && a.dims == result[j].dims;
    });
    if (to == operand.end() || is_one(tensor_of(mask)->shape[j - before])) {
      dropped.push_back(static_cast<int64_t>(j - before));
    } else {
      kept.push_back(static_cast<size_t>(to - operand.begin()));
    }
  }
  if (!dropped.empty()) mask = make_call("any", {mask}, {{"axis", to_value(dropped)}}, Span{});
  if (!std::ranges::is_sorted(kept)) {
    Ints order(kept.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    std::ranges::sort(order, {}, [&](int64_t i) { return kept[static_cast<size_t>(i)]; });
    mask = make_call("transpose", {mask}, {{"axes", to_value(order)}}, Span{});
  }
  if (kept.empty()) return mask;
  const size_t first = *std::ranges::min_element(kept);
  for (size_t i = first; i < operand.size(); ++i) {
    if (std::ranges::find(kept, i) != kept.end()) continue;
    const auto place = static_cast<int64_t>(i - first);
    mask = make_call("expand_dims", {mask}, {{"axis", place}}, Span{});
  }
  return mask;
}

// A tensor of one number.
Expr filled(const Expr& number, const Expr& like) {
  const auto& shape = tensor_of(like)->shape;
  if (std::ranges::any_of(shape, is_any)) return call("broadcast_to_like", {number, like});
  return make_call("broadcast_to", {number},
                   {{"shape", to_value(Dims(shape.begin(), shape.end()))}}, Span{});
}

// The adjoint of a product with ones, where ones are asked for.
Expr by_windows(const CallNode& of, size_t k, const std::vector<Expr>& args, const Expr& mask) {
  const DType dtype = tensor_of(args[k])->dtype;
  Rewriter ones(family::expr);
  for (const Expr& a : args) ones.set(a, filled(constant(1, tensor_of(a)->dtype), a));
  Expr same = ones.apply(Expr(ref(of)));
  const DType result = as<TensorTypeNode>(of.type)->dtype;
  Expr adjoint =
      filled(make_call("cast", {mask}, {{"dtype", result.to_string()}}, Span{}), Expr(ref(of)));
  Expr found = call_gradient(*as<CallNode>(same), same, {adjoint})[k];
  return call("greater", {found, constant(0, dtype)});
}

}  // namespace

Expr asked_factor(const CallNode& call, const Contraction& sum, size_t k,
                  const std::vector<Expr>& args, const Expr& mask) {
  if (by_dimension(sum.result) && by_dimension(sum.operands[k]))
    return by_axes(sum.result, sum.operands[k], mask);
  return by_windows(call, k, args, mask);
}

}  // namespace relay
