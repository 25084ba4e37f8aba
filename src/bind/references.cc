#include "bind/references.h"

#include "bind/data_values.h"

namespace relay::bind {

Reference* References::of_object(nb::handle ref) {
  auto found = by_object_.find(ref.ptr());
  return found == by_object_.end() ? nullptr : found->second;
}

Reference* References::of_cell(const runtime::Object* cell) {
  auto found = by_cell_.find(cell);
  return found == by_cell_.end() ? nullptr : found->second;
}

Reference& References::add(nb::object object, runtime::Value cell, Type type) {
  Reference& made = *all_.emplace_back(std::make_unique<Reference>(
      Reference{std::move(object), std::move(cell), runtime::Value(), std::move(type)}));
  by_object_[made.object.ptr()] = &made;
  by_cell_[made.cell.object()] = &made;
  return made;
}

void References::write_back(const Module& mod) {
  for (size_t i = 0; i < all_.size(); ++i) {
    Reference& r = *all_[i];
    runtime::Value content = r.cell.field(0);
    if (content.object() == r.given.object()) continue;
    auto* type = as<RefTypeNode>(r.type);
    nb::object value = from_run_value(content, type ? type->value : nullptr, mod, *this);
    nb::cast<RefValue&>(r.object).value = std::move(value);
  }
}

}  // namespace relay::bind
