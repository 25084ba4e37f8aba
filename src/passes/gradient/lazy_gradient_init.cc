#include "passes/gradient/lazy_gradient_init.h"

#include "analysis/purity.h"
#include "analysis/uses.h"
#include "grad/grad_cell.h"
#include "node/node_map.h"
#include "node/walk.h"

namespace relay {
namespace {

// A tensor of zeros, made anew.
const CallNode* zeros_in(const Expr& e) {
  auto* c = as<CallNode>(e);
  return is_call_to(e, "zeros") || is_call_to(e, "zeros_like") ? c : nullptr;
}

// The references of a function that hold zeros first and are only read and written: their variables,
// with the zeros.
class LazyCells {
 public:
  explicit LazyCells(const Function& f) {
    post_order(
        f,
        [&](const Node& n) {
          auto* l = as<LetNode>(&n);
          auto* r = l == nullptr ? nullptr : as<RefCreateNode>(l->value);
          const CallNode* zeros = r == nullptr ? nullptr : zeros_in(r->value);
          if (zeros != nullptr && isa<TensorTypeNode>(zeros->type)) zeros_[l->var.get()] = zeros;
        },
        family::program);
    if (zeros_.size() == 0) return;
    post_order(
        f,
        [&](const Node& n) {
          auto* let = as<LetNode>(&n);
          auto* read = as<RefReadNode>(&n);
          auto* write = as<RefWriteNode>(&n);
          const ExprNode* taken = read != nullptr    ? read->ref.get()
                                  : write != nullptr ? write->ref.get()
                                                     : nullptr;
          bool first = true;
          for_each_child(n, [&](const NodeRef& child) {
            bool bound = let != nullptr && child.get() == let->var.get();
            // The reference itself is the first child.
            if (!bound && !(first && child.get() == taken)) escaped_.insert(child.get());
            first = false;
          });
        },
        family::program);
  }

  // The zeros of a variable's reference; null for others.
  const CallNode* of(const Node* variable) const {
    const CallNode* const* found = zeros_.find(variable);
    return found == nullptr || escaped_.contains(variable) ? nullptr : *found;
  }
  bool any() const { return zeros_.size() > 0; }

 private:
  NodeMap<const CallNode*> zeros_;
  NodeSet escaped_;
};

class Rewrite {
 public:
  Rewrite(const Function& f, const GradCell& cell, const Purity& purity)
      : f_(f), cells_(f), uses_(f), cell_(cell), purity_(purity) {}

  Function run() {
    if (!cells_.any()) return f_;
    post_order(
        f_, [&](const Node& n) { visit(n); }, family::program);
    return cast<FunctionNode>(now(f_));
  }

 private:
  void visit(const Node& n) {
    if (isa<VarNode>(&n)) return;
    if (auto* l = as<LetNode>(&n); l != nullptr && cells_.of(l->var.get()) != nullptr) {
      Type tensor = cells_.of(l->var.get())->type;
      made_[l] = let(variable(l->var), ref_create(cell_.none(tensor), l->value->span),
                     expr(l->body), l->span);
      return;
    }
    auto* read = as<RefReadNode>(&n);
    if (const CallNode* zeros = read == nullptr ? nullptr : cells_.of(read->ref.get())) {
      // Made where they are needed: shared, they would be made before.
      std::vector<Expr> args;
      for (const Expr& a : zeros->args) args.push_back(expr(a));
      Expr made = call(zeros->op, std::move(args), zeros->attrs, zeros->span);
      made_[read] =
          cell_.choose(variable(read->ref), made, [](const Expr& value) { return value; });
      return;
    }
    auto* write = as<RefWriteNode>(&n);
    if (write != nullptr && cells_.of(write->ref.get()) != nullptr) {
      Var place = variable(write->ref);
      if (const Expr* more = added(*write)) {
        made_[write] = cell_.accumulate(place, expr(*more));
      } else {
        made_[write] = ref_write(place, cell_.some(expr(write->value)), write->span);
      }
      return;
    }
    std::vector<NodeRef> children = children_of(n);
    for (NodeRef& c : children) c = now(c);
    made_[&n] = with_children(NodeRef(&n), children);
  }

  // What a write adds to what it has just read from the same reference; null when it does not.
  const Expr* added(const RefWriteNode& write) const {
    auto* sum = as<CallNode>(write.value);
    if (!is_call_to(write.value, "add") || uses_.of(write.value) != 1) return nullptr;
    auto* read = as<RefReadNode>(sum->args[0]);
    bool same = read != nullptr && read->ref == write.ref && uses_.of(sum->args[0]) == 1;
    return same && purity_.of(sum->args[1]).pure() ? &sum->args[1] : nullptr;
  }

  Var variable(const Expr& v) {
    NodeRef& known = made_[v.get()];
    if (!known) {
      Type cell = ref_type(cell_.of(cells_.of(v.get())->type));
      known = var(as<VarNode>(v)->name_hint, cell, v->span);
    }
    return cast<VarNode>(known);
  }
  NodeRef now(const NodeRef& n) const {
    const NodeRef* found = n ? made_.find(n.get()) : nullptr;
    return found == nullptr ? n : *found;
  }
  Expr expr(const Expr& e) const { return Expr::unchecked(now(e)); }

  const Function& f_;
  LazyCells cells_;
  UseCounts uses_;
  const GradCell& cell_;
  const Purity& purity_;
  NodeMap<NodeRef> made_;
};

Module run_lazy_gradient_init(const Module& mod, PassContext&) {
  Purity purity(mod);
  GradCell known = known_cell(mod), cell = known;
  if (!cell.data) {
    FreshNames names(mod);
    cell = new_cell(names);
  }
  Module out = map_functions(mod, [&](const GlobalVar&, const Function& f) {
    return f->is_primitive() ? f : Rewrite(f, cell, purity).run();
  });
  if (out == mod || known.data) return out;
  std::vector<TypeData> types = mod->type_definitions;
  types.push_back(cell.data);
  return make_module(out->global_vars, out->functions, std::move(types), mod->attrs);
}

}  // namespace

const Pass kLazyGradientInit{"LazyGradientInit",
                             2,
                             Form::any,
                             Form::any,
                             "Fills cells for adjoints when something arrives, not with zeros.",
                             run_lazy_gradient_init};

}  // namespace relay
