#include "lower/kernel_sources.h"

#include <algorithm>
#include <mutex>

#include "base/fork.h"
#include "lower/kernel_body.h"

namespace relay {
namespace {

struct Sources {
  ForkSafe<std::mutex> mutex;
  std::vector<std::shared_ptr<const KernelSource>> rows;
};

Sources& all() {
  static Sources sources;
  return sources;
}

// The dimensions of the tensors of a type, behind those that are there; false where a size is not known by name.
bool add_dimensions(const Type& type, std::vector<Dim>& out) {
  const auto tensors = flatten_tensor_types(type);
  if (!tensors) return false;
  for (const TensorType& t : *tensors) {
    if (std::ranges::any_of(t->shape, is_any)) return false;
    out.insert(out.end(), t->shape.begin(), t->shape.end());
  }
  return true;
}

}  // namespace

void register_kernel_source(std::shared_ptr<const KernelSource> source) {
  Sources& sources = all();
  std::lock_guard lock(sources.mutex);
  sources.rows.push_back(std::move(source));
}

std::vector<std::shared_ptr<const KernelSource>> kernel_sources() {
  Sources& sources = all();
  std::lock_guard lock(sources.mutex);
  return sources.rows;
}

std::optional<std::vector<Dim>> dimensions_of_operands(const FunctionNode& primitive) {
  std::vector<Dim> out;
  for (const Var& p : primitive.params) {
    if (!add_dimensions(p->type, out)) return std::nullopt;
  }
  if (!add_dimensions(primitive.body->type, out)) return std::nullopt;
  return out;
}

}  // namespace relay
