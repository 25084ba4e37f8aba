#include "fuzz/module_edits.h"

#include "node/structural.h"
#include "node/walk.h"

namespace relay::fuzz {

Module edited(const Module& mod, const Edit& edit) {
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    auto post = [&](const NodeRef&, NodeRef rebuilt) {
      if (!isa<ExprNode>(rebuilt)) return rebuilt;
      Expr changed = edit(Ref<ExprNode>::unchecked(rebuilt));
      return changed ? NodeRef(changed) : rebuilt;
    };
    return cast<FunctionNode>(rewrite(f, post, family::program));
  });
}

void visit(const Module& mod, const std::function<void(const Node&)>& f) {
  post_order(mod, f, family::module | family::program);
}

bool same_type(const Expr& a, const Expr& b) { return structural_equal(a->type, b->type); }

Call with_args(const CallNode& c, std::vector<Expr> args) {
  return call(c.op, std::move(args), c.attrs, c.span, c.type_args);
}

std::optional<std::vector<Expr>> swapped(std::vector<Expr> list) {
  for (size_t i = 0; i + 1 < list.size(); ++i) {
    if (list[i] == list[i + 1] || !same_type(list[i], list[i + 1])) continue;
    std::swap(list[i], list[i + 1]);
    return list;
  }
  return std::nullopt;
}

Expr swap_args(const CallNode& c) {
  auto args = swapped(c.args);
  return args ? Expr(with_args(c, *args)) : nullptr;
}

}  // namespace relay::fuzz
