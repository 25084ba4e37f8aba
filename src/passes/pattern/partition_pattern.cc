#include "passes/pattern/partition_pattern.h"

#include <algorithm>

#include "base/budget.h"
#include "ir/bindings.h"
#include "ir/scope.h"
#include "node/walk.h"
#include "passes/pattern/pattern_node.h"

namespace relay {
namespace {

constexpr uint32_t kProgram = family::program;
// Functions of earlier matches, in which nothing is matched again.
constexpr const char* kPartitioned = "PartitionedFromPattern";

struct Group {
  std::unordered_set<const Node*> inner;  // what the function computes
  std::vector<Expr> inputs;               // in the order in which the function reads them
  std::unordered_set<const Node*> bound;  // variables that lets and functions in it bind
  std::string name;
};

class Partitioner {
 public:
  Partitioner(const DFPattern& pattern, const Expr& expr,
              const std::function<bool(const Expr&)>& check) {
    std::vector<Expr> order;
    post_order_if(
        expr,
        [](const Node& n) {
          auto* f = as<FunctionNode>(&n);
          return f == nullptr || !f->has_attr(kPartitioned);
        },
        [&](const Node& n) {
          std::unordered_set<const Node*> once;
          for_each_child(n, [&](const NodeRef& c) {
            if (once.insert(c.get()).second) ++uses_[c.get()];
          });
          if (n.info().family == family::expr)
            order.push_back(Expr(static_cast<const ExprNode*>(&n)));
        },
        kProgram);
    for (size_t i = order.size(); i-- > 0;) {
      check_budget();
      const Expr& e = order[i];
      if (taken_.contains(e.get()) || is_leaf(*e)) continue;
      if (!match_.matches(pattern, e)) continue;
      Group group = read_match(e);
      if (group.inner.empty() || !stands_alone(group, e) || (check && !check(e))) continue;
      taken_.insert(group.inner.begin(), group.inner.end());
      groups_.emplace(e.get(), std::move(group));
    }
  }

  Expr apply(const Expr& expr, const Dict& attrs) {
    // An expression becomes a call; what it is inside the function is made of the original.
    class Apply : public Rewriter {
     public:
      Apply(const Partitioner& of, const Dict& attrs)
          : Rewriter(kProgram), of_(of), attrs_(attrs) {}
      NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
        auto it = of_.groups_.find(original.get());
        if (it == of_.groups_.end()) return rebuilt;
        const Group& group = it->second;
        std::vector<Expr> args;
        for (const Expr& input : group.inputs) {
          NodeRef now = lookup(input.get());
          args.push_back(now ? Expr::unchecked(now) : input);
        }
        Span span = as<ExprNode>(original)->span;
        return call(make_function(group, Expr::unchecked(original), attrs_), std::move(args),
                    nullptr, span);
      }

     private:
      const Partitioner& of_;
      const Dict& attrs_;
    };
    return Expr::unchecked(Apply(*this, attrs).run(expr));
  }

 private:
  // The operators by name, parts before wholes, as Relay names such a function.
  Group read_match(const Expr& root) {
    Group group;
    std::unordered_set<const Node*> constants;
    match_.for_each([&](const DFPattern::Node& part, const Expr& e) {
      if (is_composite(part)) group.inner.insert(e.get());
      if (is_constant_part(part)) constants.insert(e.get());
    });
    std::unordered_set<const Node*> seen;
    std::unordered_set<const Node*>& bound = group.bound;
    for (const Node* n : group.inner) {
      if (auto* l = as<LetNode>(n)) bound.insert(l->var.get());
      if (auto* f = as<FunctionNode>(n))
        for (const Var& v : f->params) bound.insert(v.get());
    }
    post_order_if(
        root, [&](const Node& n) { return group.inner.contains(&n); },
        [&](const Node& n) {
          if (auto* c = as<CallNode>(&n)) {
            auto* op = as<OpNode>(c->op);
            group.name += (op == nullptr ? "function" : op->name) + "_";
          }
          if (isa<IfNode>(&n)) group.name += "if_";
          if (isa<LetNode>(&n)) group.name += "let_";
          for_each_operand(static_cast<const ExprNode&>(n), [&](const Expr& o, bool opens_scope) {
            if (group.inner.contains(o.get())) return;
            // A branch or a body stays where it is evaluated, as does what reads a variable of the group.
            std::vector<Var> free;
            if (opens_scope || !bound.empty()) free = free_vars(o);
            auto is_bound = [&](const Var& v) { return bound.contains(v.get()); };
            if (!opens_scope && std::ranges::none_of(free, is_bound)) {
              add_input(group, constants, seen, o);
              return;
            }
            for (const Var& v : free)
              if (!is_bound(v)) add_input(group, constants, seen, v);
          });
        },
        kProgram);
    return group;
  }

  static void add_input(Group& group, const std::unordered_set<const Node*>& constants,
                        std::unordered_set<const Node*>& seen, const Expr& e) {
    if (group.inner.contains(e.get()) || constants.contains(e.get()) || isa<GlobalVarNode>(e) ||
        isa<ConstructorNode>(e) || isa<OpNode>(e)) {
      return;
    }
    if (seen.insert(e.get()).second) group.inputs.push_back(e);
  }

  // Whether only its own parts use what is computed on the way to the root, and no other function has them.
  bool stands_alone(const Group& group, const Expr& root) const {
    std::unordered_map<const Node*, uint32_t> inside;
    for (const Node* n : group.inner) {
      if (taken_.contains(n)) return false;
      std::unordered_set<const Node*> once;
      for_each_child(*n, [&](const NodeRef& c) {
        if (once.insert(c.get()).second) ++inside[c.get()];
      });
    }
    for (const Node* n : group.inner) {
      if (n != root.get() && inside[n] != uses_.at(n)) return false;
    }
    // A variable that is bound within and read where it is not is not an argument.
    return group.bound.empty() || std::ranges::none_of(free_vars(root), [&](const Var& v) {
             return group.bound.contains(v.get());
           });
  }

  static Function make_function(const Group& group, const Expr& root, const Dict& attrs) {
    std::unordered_map<const Node*, NodeRef> parameters;
    std::vector<Var> params;
    for (const Expr& input : group.inputs) {
      params.push_back(var("p" + std::to_string(params.size()), input->type, input->span));
      parameters[input.get()] = params.back();
    }
    Expr body = Expr::unchecked(substitute(root, parameters, kProgram));
    Dict all = attrs;
    all.try_emplace(kPartitioned, group.name);
    return function(std::move(params), body, root->type, {}, std::move(all), root->span);
  }

  std::unordered_map<const Node*, uint32_t> uses_;
  std::unordered_set<const Node*> taken_;
  std::unordered_map<const Node*, Group> groups_;
  DFMatch match_;
};

}  // namespace

Expr partition_pattern(const DFPattern& pattern, const Expr& expr, const Dict& attrs,
                       const std::function<bool(const Expr& root)>& check) {
  return Partitioner(pattern, expr, check).apply(expr, attrs);
}

}  // namespace relay
