#include "frontend/common/model_value.h"

#include "base/plain_name.h"
#include "frontend/common/unique_names.h"

namespace relay::frontend {

ValuePtr value_of(Expr expr) {
  auto v = std::make_shared<ModelValue>();
  v->expr = std::move(expr);
  return v;
}

ValuePtr value_of(KnownValue known) {
  auto v = std::make_shared<ModelValue>();
  v->known = std::move(known);
  return v;
}

ValuePtr value_of(Tensor data) {
  auto v = std::make_shared<ModelValue>();
  v->known = known_from(data);
  v->data = std::move(data);
  return v;
}

ValuePtr list_of(Values items) {
  auto v = std::make_shared<ModelValue>();
  v->is_list = true;
  v->list = std::move(items);
  return v;
}

ValuePtr absent_value() {
  auto v = std::make_shared<ModelValue>();
  v->absent = true;
  return v;
}

ValuePtr failed_value() {
  auto v = std::make_shared<ModelValue>();
  v->failed = true;
  return v;
}

ValuePtr Scope::find(const std::string& name) const {
  for (const Scope* s = this; s != nullptr; s = s->parent) {
    if (auto it = s->values.find(name); it != s->values.end()) return it->second;
  }
  return nullptr;
}

std::string shorten(const std::string& name) {
  return name.size() <= kMaxLabel ? name : name.substr(0, kMaxLabel) + "...";
}

// ---- unique_names.h

std::string identifier(const std::string& name) {
  return plain_name(std::string_view(name).substr(0, kMaxLabel));
}

std::string UniqueNames::take(const std::string& name) {
  const auto [entry, is_new] = next_.try_emplace(name, 1);
  if (is_new) return name;
  int& next = entry->second;
  std::string candidate;
  do {
    candidate = name + "_" + std::to_string(next++);
  } while (next_.contains(candidate));
  next_.emplace(candidate, 1);
  return candidate;
}

}  // namespace relay::frontend
