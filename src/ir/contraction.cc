#include "ir/contraction.h"

#include <algorithm>

#include "ir/op.h"

namespace relay {

bool Contraction::Axis::has(size_t dim) const { return std::ranges::find(dims, dim) != dims.end(); }

size_t Contraction::count(ContractionRole role) const {
  return static_cast<size_t>(
      std::ranges::count_if(dims, [&](const Dimension& d) { return d.role == role; }));
}

std::optional<size_t> Contraction::only(ContractionRole role) const {
  if (count(role) != 1) return std::nullopt;
  auto it = std::ranges::find_if(dims, [&](const Dimension& d) { return d.role == role; });
  return static_cast<size_t>(it - dims.begin());
}

std::vector<size_t> Contraction::axes_of(const Tensor& tensor, size_t dim) const {
  std::vector<size_t> out;
  for (size_t a = 0; a < tensor.size(); ++a) {
    if (tensor[a].has(dim)) out.push_back(a);
  }
  return out;
}

bool Contraction::transposed() const {
  return std::ranges::any_of(result, [](const Axis& a) { return a.window.has_value(); });
}

ContractionRole Contraction::role_of(const Axis& axis) const {
  if (axis.dims.empty()) return ContractionRole::Batch;
  ContractionRole first = dims[axis.dims[0]].role;
  if (first != ContractionRole::Group || axis.dims.size() == 1) return first;
  const Dimension& last = dims[axis.dims.back()];
  return as_const(last.extent) == 1 ? first : last.role;
}

std::vector<ContractionRole> Contraction::iteration_roles() const {
  std::vector<ContractionRole> out;
  for (const Axis& a : result) out.push_back(role_of(a));
  for (const Dimension& d : dims) {
    if (is_summed(d.role)) out.push_back(d.role);
  }
  return out;
}

std::optional<Contraction> contraction_of(const CallNode& c) {
  auto* op = as<OpNode>(c.op);
  if (op == nullptr || !op->row->contraction || !c.type) return std::nullopt;
  return op->row->contraction(c);
}

double contraction_cost(const CallNode& c) {
  auto contraction = contraction_of(c);
  if (!contraction) return 0;
  double total = static_cast<double>(contraction->operands.size());
  for (const Contraction::Dimension& d : contraction->dims) {
    auto size = as_const(d.extent);
    total *= size ? static_cast<double>(*size) : 0;
  }
  return total;
}

}  // namespace relay
