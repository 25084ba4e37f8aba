#include "ir/slot_names.h"

namespace relay {

std::string result_name(const FunctionNode& f, size_t i) {
  auto it = f.attrs.find(attr::kOutputNames);
  if (it != f.attrs.end()) {
    auto* names = it->second.get_if<ValueList>();
    auto* name =
        names != nullptr && i < names->size() ? (*names)[i].get_if<std::string>() : nullptr;
    if (name != nullptr) return *name;
  }
  return "output" + std::to_string(i);
}

std::string parameter_name(const FunctionNode& f, const VarNode& param) {
  auto it = f.attrs.find(attr::kInputNames);
  auto* pairs = it == f.attrs.end() ? nullptr : it->second.get_if<ValueList>();
  if (pairs == nullptr) return param.name_hint;
  auto text = [](const AttrValue& pair, size_t i) -> const std::string* {
    auto* names = pair.get_if<ValueList>();
    return names != nullptr && i < names->size() ? (*names)[i].get_if<std::string>() : nullptr;
  };
  for (const AttrValue& pair : *pairs) {
    const std::string *from = text(pair, 0), *to = text(pair, 1);
    if (from != nullptr && to != nullptr && *from == param.name_hint) return *to;
  }
  return param.name_hint;
}

std::vector<std::string> parameter_names(const FunctionNode& f) {
  std::vector<std::string> out;
  for (const Var& p : f.params) out.push_back(parameter_name(f, *p.get()));
  return out;
}

std::vector<std::string> result_names(const FunctionNode& f) {
  std::vector<std::string> out;
  auto leaves = flatten_tensor_types(f.body->type);
  for (size_t i = 0; leaves && i < leaves->size(); ++i) out.push_back(result_name(f, i));
  return out;
}

}  // namespace relay
