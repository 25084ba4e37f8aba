#include "driver/evaluate.h"

#include "base/codes/runtime.h"
#include "ir/slot_names.h"
#include "ir/text/print_value.h"
#include "vm/compile.h"

namespace relay {
namespace {

Function find(const Module& mod, std::string_view name) {
  Function f = mod->find(name);
  if (f) return f;
  throw UserError(
      Diagnostic(codes::run_no_function, {}, "the program has no function @" + std::string(name)));
}

}  // namespace

runtime::Slot slot_of(std::string name, const Type& type) {
  runtime::Slot slot;
  slot.name = std::move(name);
  auto* tensor = as<TensorTypeNode>(type);
  slot.is_tensor = tensor != nullptr;
  if (tensor != nullptr) {
    slot.tensor = spec_of(*tensor);
  } else {
    slot.type_text = type ? to_string(type) : "?";
  }
  return slot;
}

runtime::Function signature_of(const Module& mod, std::string_view name) {
  Function f = find(mod, name);
  runtime::Function out;
  out.name = std::string(name);
  for (const Var& p : f->params)
    out.params.push_back(slot_of(parameter_name(*f.get(), *p.get()), p->type));
  const Type& type = f->body->type;
  auto leaves = flatten_tensor_types(type);
  out.returns_tuple = leaves.has_value() && isa<TupleTypeNode>(type);
  if (!leaves) {
    out.results.push_back(slot_of(result_name(*f.get(), 0), type));
    return out;
  }
  for (const TensorType& t : *leaves) {
    out.results.push_back(slot_of(result_name(*f.get(), out.results.size()), t));
  }
  return out;
}

std::string result_text(const Module& mod, std::string_view function, const runtime::Value& result,
                        const std::function<std::string(int32_t tag)>& closure_name) {
  PrintValueOptions options;
  options.closure_name = closure_name;
  return print_value(result, find(mod, function)->body->type, mod, options);
}

}  // namespace relay
