#include "grad/checkpoints.h"

#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analysis/fresh_names.h"
#include "grad/call_gradient.h"
#include "grad/lift.h"
#include "ir/op.h"
#include "ir/open_types.h"
#include "node/walk.h"

namespace relay {
namespace {

const OpNode* op_of(const Expr& e) {
  auto* c = as<CallNode>(e);
  return c == nullptr ? nullptr : as<OpNode>(c->op);
}

// What is computed again with the expression around it.
std::vector<Expr> parts_of(const Expr& e) {
  const OpNode* op = op_of(e);
  if (op != nullptr && op->row->effect.get() == Effect::Pure) return as<CallNode>(e)->args;
  if (auto* t = as<TupleNode>(e)) return t->fields;
  if (auto* g = as<TupleGetItemNode>(e)) return {g->tuple};
  return {};
}

class Outliner {
 public:
  explicit Outliner(const Module& mod) : mod_(mod), names_(mod) {}

  Function run(const Function& f) {
    return cast<FunctionNode>(rewrite(
        f,
        [this](const NodeRef&, NodeRef rebuilt) -> NodeRef {
          auto* call = as<CallNode>(rebuilt);
          const OpNode* op = call == nullptr ? nullptr : as<OpNode>(call->op);
          if (op == nullptr || op->name != kCheckpointMark) return rebuilt;
          return outlined(call->args[0]);
        },
        family::program));
  }

  void run_on_module() {
    // A function's type stays, so that calls of it do.
    for (size_t i = 0; i < mod_->functions.size(); ++i) {
      Function f = mod_->functions[i], made = run(f);
      if (made != f) changed_.emplace_back(mod_->global_vars[i], made);
    }
  }

  Module module() const {
    Module out = mod_;
    for (const auto& [name, f] : changed_) out = with_function(out, name, f);
    return out;
  }

 private:
  Expr outlined(const Expr& e) {
    std::vector<Expr> leaves, open{e};
    std::unordered_set<const Node*> met{e.get()};
    while (!open.empty()) {
      Expr next = open.back();
      open.pop_back();
      std::vector<Expr> parts = parts_of(next);
      bool is_part = !parts.empty() || isa<ConstantNode>(next) || op_of(next) != nullptr;
      if (!is_part || (op_of(next) != nullptr && op_of(next)->row->effect.get() != Effect::Pure))
        leaves.push_back(next);
      for (const Expr& p : parts) {
        if (met.insert(p.get()).second) open.push_back(p);
      }
    }
    if (parts_of(e).empty() || !is_floating(e->type)) return e;
    std::vector<Var> params;
    std::unordered_map<const Node*, NodeRef> by_leaf;
    for (const Expr& leaf : leaves) {
      if (!flatten_tensor_types(leaf->type)) return e;
      params.push_back(var("p", leaf->type));
      by_leaf.emplace(leaf.get(), params.back());
    }
    Expr body = Expr::unchecked(substitute(e, by_leaf, family::expr));
    Function f = function(std::move(params), body, body->type, {},
                          {{kCheckpoint, AttrValue(int64_t{1})}}, e->span);
    if (!free_type_vars(f).empty()) return e;
    GlobalVar name = global_var(names_.fresh("checkpoint"), f->type);
    changed_.emplace_back(name, f);
    return call(name, std::move(leaves), nullptr, e->span);
  }

  Module mod_;
  FreshNames names_;
  std::vector<std::pair<GlobalVar, Function>> changed_;
};

}  // namespace

Checkpoints with_checkpoints(const Module& mod, const Function& f) {
  Outliner outliner(mod);
  outliner.run_on_module();
  Function own = outliner.run(f);
  return {outliner.module(), own};
}

}  // namespace relay
