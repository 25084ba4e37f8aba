#include "passes/layout/alternate_order.h"

#include <unordered_map>
#include <unordered_set>

#include "analysis/primitives.h"
#include "node/walk.h"

namespace relay {
namespace {

// Every second one of the calls that read the same weight, in the order of their execution.
std::unordered_set<const Node*> second_calls(const Function& f, int64_t least, int64_t most) {
  std::unordered_map<const void*, size_t> readers;
  std::unordered_set<const Node*> out;
  post_order(
      f,
      [&](const Node& n) {
        auto* c = as<CallNode>(&n);
        if (c == nullptr || primitive_of(*c) == nullptr) return;
        const void* weight = nullptr;
        for (const Expr& a : c->args) {
          auto* k = as<ConstantNode>(a);
          if (k == nullptr) continue;
          int64_t bytes = static_cast<int64_t>(k->data.byte_size());
          if (bytes >= least && bytes <= most) weight = k->data.data();
        }
        if (weight != nullptr && readers[weight]++ % 2 == 1) out.insert(c);
      },
      family::program);
  return out;
}

Module run_alternate_order(const Module& mod, PassContext& ctx) {
  constexpr int64_t kMostCaches = 16;
  int64_t least = ctx.target.l2_bytes, most = kMostCaches * ctx.target.l2_bytes;
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    std::unordered_set<const Node*> backward = second_calls(f, least, most);
    if (backward.empty()) return f;
    return cast<FunctionNode>(rewrite(
        f,
        [&](const NodeRef& original, NodeRef rebuilt) -> NodeRef {
          if (!backward.contains(original.get())) return rebuilt;
          auto* c = as<CallNode>(rebuilt);
          const FunctionNode& kernel = *primitive_of(*c);
          Dict attrs = kernel.attrs;
          attrs[attr::kBackward] = AttrValue(int64_t{1});
          Function other = function(kernel.params, kernel.body, kernel.ret_type, kernel.type_params,
                                    std::move(attrs), kernel.span);
          return call(other, c->args, c->attrs, c->span, c->type_args);
        },
        family::program));
  });
}

}  // namespace

const Pass kAlternateOrder{"AlternateOrder",
                           2,
                           Form::anf,
                           Form::anf,
                           "Reads a large weight forwards and backwards in turn.",
                           run_alternate_order};

}  // namespace relay
