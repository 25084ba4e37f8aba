#include "passes/fusion/defuse_ops.h"

#include <unordered_map>

#include "analysis/primitives.h"
#include "node/walk.h"

namespace relay {
namespace {

Module run_defuse_ops(const Module& mod, PassContext&) {
  return map_functions(mod, [](const GlobalVar&, const Function& f) {
    return cast<FunctionNode>(rewrite(
        f,
        [](const NodeRef&, NodeRef rebuilt) -> NodeRef {
          auto* c = as<CallNode>(rebuilt);
          auto* kernel = c == nullptr ? nullptr : primitive_of(*c);
          if (kernel == nullptr || kernel->has_attr(attr::kCompiler)) {
            return rebuilt;
          }
          std::unordered_map<const Node*, NodeRef> arguments;
          for (size_t i = 0; i < c->args.size(); ++i) {
            arguments.emplace(kernel->params[i].get(), c->args[i]);
          }
          return substitute(kernel->body, arguments, family::program);
        },
        family::program));
  });
}

}  // namespace

const Pass kDefuseOps{"DefuseOps",   3, Form::any, Form::any, "Takes fused kernels apart again.",
                      run_defuse_ops};

}  // namespace relay
