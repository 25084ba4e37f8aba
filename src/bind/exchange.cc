#include "bind/exchange.h"

#include "bind/data_values.h"
#include "bind/functions.h"

namespace relay::bind {

Reference* Exchange::of_object(nb::handle ref) {
  auto found = by_object_.find(ref.ptr());
  return found == by_object_.end() ? nullptr : found->second;
}

Reference* Exchange::of_cell(const runtime::Object* cell) {
  auto found = by_cell_.find(cell);
  return found == by_cell_.end() ? nullptr : found->second;
}

Reference& Exchange::add(nb::object object, runtime::Value cell, Type type) {
  Reference& made = *all_.emplace_back(std::make_unique<Reference>(
      Reference{std::move(object), std::move(cell), runtime::Value(), std::move(type)}));
  by_object_[made.object.ptr()] = &made;
  by_cell_[made.cell.object()] = &made;
  return made;
}

bool Exchange::take_references(const FunctionValue& function) {
  for (const Reference& r : function.captured) {
    Reference* known = of_object(r.object);
    if (known == nullptr) {
      captured_.push_back(&add(r.object, r.cell, r.type));
    } else if (known->cell.object() != r.cell.object()) {
      return false;
    }
  }
  return true;
}

void Exchange::read_captured(const Module& mod) {
  // What is read may hold functions, which bring more.
  while (!captured_.empty()) {
    Reference& r = *captured_.back();
    captured_.pop_back();
    auto* type = as<RefTypeNode>(r.type);
    if (type == nullptr) continue;
    r.given = to_run_value(nb::cast<RefValue&>(r.object).value, "what a RefValue refers to",
                           type->value, mod, *this);
    runtime::Object*& content = static_cast<runtime::Cell*>(r.cell.object())->fields[0];
    runtime::Value before = runtime::Value::adopt(content);
    content = runtime::Value(r.given).take();
  }
}

nb::object Exchange::function(const runtime::Value& value, const Type& type) {
  KnownFunction& known = functions_[value.object()];
  if (!known.object.is_valid()) known.object = make_function_value(owner_, value, type, sizes_);
  return known.object;
}

void Exchange::add_function(nb::object object, const runtime::Value& value) {
  functions_[value.object()] = {std::move(object), true};
}

nb::object Exchange::result(const runtime::Value& value, const Type& type, const Module& mod) {
  nb::object out = from_run_value(value, type, mod, *this);
  write_back(mod);
  return out;
}

void Exchange::write_back(const Module& mod) {
  for (size_t i = 0; i < all_.size(); ++i) {
    Reference& r = *all_[i];
    runtime::Value content = r.cell.field(0);
    if (content.object() == r.given.object()) continue;
    auto* type = as<RefTypeNode>(r.type);
    nb::object value = from_run_value(content, type ? type->value : nullptr, mod, *this);
    nb::cast<RefValue&>(r.object).value = std::move(value);
  }
  for (auto& [cell, known] : functions_) {
    if (known.given) continue;
    auto& captured = nb::cast<FunctionValue&>(known.object).captured;
    for (const auto& r : all_) captured.push_back({r->object, r->cell, {}, r->type});
  }
}

}  // namespace relay::bind
