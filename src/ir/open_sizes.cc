#include "ir/open_sizes.h"

#include <vector>

namespace relay {

Type with_sizes_named(const Type& type, const std::function<Dim(size_t, size_t)>& name) {
  size_t count = 0;
  auto named = [&](const Type& part) -> Type {
    auto* tensor = as<TensorTypeNode>(part);
    if (tensor == nullptr || tensor->shape_var) return part;
    std::vector<Dim> shape = tensor->shape;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (is_any(shape[axis])) shape[axis] = name(count, axis);
    }
    ++count;
    return tensor_type(std::move(shape), tensor->dtype);
  };
  auto* tuple = as<TupleTypeNode>(type);
  if (tuple == nullptr) return named(type);
  std::vector<Type> fields;
  for (const Type& f : tuple->fields) fields.push_back(named(f));
  return tuple_type(std::move(fields));
}

}  // namespace relay
