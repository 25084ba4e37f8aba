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

std::string result_name(const FunctionNode& f, size_t i) {
  auto it = f.attrs.find("output_names");
  if (it != f.attrs.end()) {
    auto* names = it->second.get_if<ValueList>();
    auto* name =
        names != nullptr && i < names->size() ? (*names)[i].get_if<std::string>() : nullptr;
    if (name != nullptr) return *name;
  }
  return "output" + std::to_string(i);
}
Bytecode compile_to_bytecode(const Module& mod) { return vm::ProgramBuilder(mod).run(); }

}  // namespace relay
