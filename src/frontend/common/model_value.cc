#include "frontend/common/model_value.h"

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

}  // namespace relay::frontend
