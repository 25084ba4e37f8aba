#include "ir/external.h"

namespace relay {
namespace {

const std::string* annotated(const Expr& e, std::string_view name) {
  auto* c = as<CallNode>(e);
  auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
  if (op == nullptr || op->name != name) return nullptr;
  return &static_cast<const CompilerAttrs*>(c->attrs.get())->compiler;
}

}  // namespace

AttrsList CompilerAttrs::describe() {
  return {"relay.attrs.CompilerAttrs",
          {attribute("compiler", &Self::compiler, "The name of the external code generator.")}};
}

const std::string* compiler_begin_of(const Expr& e) { return annotated(e, kCompilerBegin); }
const std::string* compiler_end_of(const Expr& e) { return annotated(e, kCompilerEnd); }

const std::string* compiler_of(const FunctionNode& f) {
  auto found = f.attrs.find(attr::kCompiler);
  return found == f.attrs.end() ? nullptr : found->second.get_if<std::string>();
}

}  // namespace relay
