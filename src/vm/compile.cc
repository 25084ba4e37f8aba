#include "vm/compile.h"

#include "vm/program_builder.h"

namespace relay {

runtime::TensorSpec spec_of(const TensorTypeNode& t) {
  runtime::TensorSpec spec;
  spec.dtype = t.dtype;
  bool named = false;
  for (const Dim& d : t.shape) {
    auto value = as_const(d);
    spec.shape.push_back(value.value_or(-1));
    spec.symbols.push_back(value || is_any(d) ? "" : to_string(d));
    named |= !spec.symbols.back().empty();
  }
  if (!named) spec.symbols.clear();
  return spec;
}

std::vector<runtime::TypePart> parts_of(const Type& type) {
  // Types are graphs; what is behind the last part counts as it is.
  constexpr size_t kMaxParts = 10000;
  using runtime::TypePart;
  std::vector<TypePart> out;
  if (!isa<TupleTypeNode>(type)) return out;
  std::vector<Type> open{type};
  while (!open.empty()) {
    Type t = std::move(open.back());
    open.pop_back();
    auto* tuple = as<TupleTypeNode>(t);
    if (auto* tensor = as<TensorTypeNode>(t)) {
      out.push_back({TypePart::tensor, 0, spec_of(*tensor)});
    } else if (tuple != nullptr && out.size() + open.size() < kMaxParts) {
      out.push_back({TypePart::tuple, static_cast<uint32_t>(tuple->fields.size()), {}});
      open.insert(open.end(), tuple->fields.rbegin(), tuple->fields.rend());
    } else {
      out.push_back({TypePart::other, 0, {}});
    }
  }
  return out;
}

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
  auto text = [](const Value& pair, size_t i) -> const std::string* {
    auto* names = pair.get_if<ValueList>();
    return names != nullptr && i < names->size() ? (*names)[i].get_if<std::string>() : nullptr;
  };
  for (const Value& pair : *pairs) {
    const std::string *from = text(pair, 0), *to = text(pair, 1);
    if (from != nullptr && to != nullptr && *from == param.name_hint) return *to;
  }
  return param.name_hint;
}

Bytecode compile_to_bytecode(const Module& mod, LoweredProgram& lowered) {
  return vm::ProgramBuilder(mod, lowered).run();
}

Bytecode compile_to_bytecode(const Module& mod) {
  LoweredProgram lowered(mod);
  return compile_to_bytecode(mod, lowered);
}

}  // namespace relay
