#include "passes/pattern/dataflow_pattern.h"

#include <algorithm>
#include <unordered_set>

#include "ir/op.h"
#include "ir/scope.h"

namespace relay {

enum class DFKind { Any, Constant, Var, Same, Op, Call, Tuple, GetItem, Or, Condition, Dominator };

struct DFPattern::Node {
  DFKind kind = DFKind::Any;
  std::vector<DFPattern> parts;  // callee and arguments, fields, alternatives, ...
  std::vector<std::string> names;
  int64_t index = -1;
  Expr expr;
  std::function<bool(const Expr&)> condition;
  std::function<bool(const OpInfo&)> op_condition;
};

namespace {

DFPattern build(DFKind kind, const std::function<void(DFPattern::Node&)>& fill) {
  auto node = std::make_shared<DFPattern::Node>();
  node->kind = kind;
  fill(*node);
  return DFPattern(std::move(node));
}

DFPattern build(DFKind kind, std::vector<DFPattern> parts) {
  return build(kind, [&](DFPattern::Node& n) { n.parts = std::move(parts); });
}

}  // namespace

// ---- Building

DFPattern DFPattern::operator()(std::vector<DFPattern> args) const {
  args.insert(args.begin(), *this);
  return build(DFKind::Call, std::move(args));
}

DFPattern DFPattern::operator|(const DFPattern& other) const {
  return build(DFKind::Or, std::vector<DFPattern>{*this, other});
}

DFPattern DFPattern::with(std::function<bool(const Expr&)> condition) const {
  return build(DFKind::Condition, [&](Node& n) {
    n.parts = {*this};
    n.condition = std::move(condition);
  });
}

DFPattern DFPattern::has_attr(std::string name, AttrValue value) const {
  return with([name = std::move(name), value = std::move(value)](const Expr& e) {
    auto* c = as<CallNode>(e);
    if (c == nullptr || !c->attrs || c->attrs.get()->info().find(name) == nullptr) return false;
    return attr_value(c->attrs, name) == value;
  });
}

DFPattern DFPattern::has_dtype(DType dtype) const {
  return with([dtype](const Expr& e) {
    auto* t = as<TensorTypeNode>(e->type);
    return t != nullptr && t->dtype == dtype;
  });
}

DFPattern DFPattern::has_shape(std::vector<int64_t> shape) const {
  return with([shape = std::move(shape)](const Expr& e) {
    auto* t = as<TensorTypeNode>(e->type);
    return t != nullptr && t->const_shape() == shape;
  });
}

DFPattern wildcard() { return build(DFKind::Any, std::vector<DFPattern>{}); }
DFPattern is_constant() { return build(DFKind::Constant, std::vector<DFPattern>{}); }
DFPattern is_var(std::string name) {
  return build(DFKind::Var, [&](DFPattern::Node& n) { n.names = {std::move(name)}; });
}
DFPattern is_expr(Expr expr) {
  return build(DFKind::Same, [&](DFPattern::Node& n) { n.expr = std::move(expr); });
}
DFPattern is_any_op(std::vector<std::string> names) {
  return build(DFKind::Op, [&](DFPattern::Node& n) { n.names = std::move(names); });
}
DFPattern is_op(std::string name) { return is_any_op({std::move(name)}); }
DFPattern is_op_where(std::function<bool(const OpInfo&)> condition) {
  return build(DFKind::Op, [&](DFPattern::Node& n) { n.op_condition = std::move(condition); });
}
DFPattern is_tuple(std::vector<DFPattern> fields) {
  return build(DFKind::Tuple, std::move(fields));
}
DFPattern is_tuple_get_item(DFPattern tuple, int64_t index) {
  return build(DFKind::GetItem, [&](DFPattern::Node& n) {
    n.parts = {std::move(tuple)};
    n.index = index;
  });
}
DFPattern either_order(const DFPattern& op, const DFPattern& a, const DFPattern& b) {
  return op(a, b) | op(b, a);
}
DFPattern dominates(DFPattern parent, DFPattern path, DFPattern child) {
  return build(DFKind::Dominator,
               std::vector<DFPattern>{std::move(parent), std::move(path), std::move(child)});
}

std::vector<std::string> DFPattern::root_operators() const {
  switch (node_->kind) {
    case DFKind::Call:
      return node_->parts[0].get()->names;
    case DFKind::Condition:
      return node_->parts[0].root_operators();
    case DFKind::Dominator:
      return node_->parts[2].root_operators();
    case DFKind::Or: {
      std::vector<std::string> all;
      for (const DFPattern& p : node_->parts) {
        std::vector<std::string> some = p.root_operators();
        if (some.empty()) return {};
        for (std::string& name : some) {
          if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(std::move(name));
        }
      }
      return all;
    }
    default:
      return {};
  }
}

// ---- Matching

bool DFMatch::matches(const DFPattern& pattern, const Expr& e) {
  bound_.clear();
  return match(*pattern.get(), e);
}

Expr DFMatch::find(const DFPattern& part) const {
  for (const auto& [node, e] : bound_) {
    if (node == part.get()) return e;
  }
  return nullptr;
}

const Expr& DFMatch::operator[](const DFPattern& part) const {
  auto it = std::find_if(bound_.begin(), bound_.end(),
                         [&](const auto& entry) { return entry.first == part.get(); });
  RELAY_CHECK(it != bound_.end(), "a part of a pattern took no part in the match");
  return it->second;
}

// As deep as the pattern, which is written by hand; never as deep as the program.
bool DFMatch::match(const DFPattern::Node& p, const Expr& e) {
  for (const auto& [node, known] : bound_) {
    if (node == &p) return known == e;
  }
  size_t mark = bound_.size();
  bool ok = false;
  auto all = [&](auto begin, auto end, const std::vector<Expr>& operands) {
    if (static_cast<size_t>(end - begin) != operands.size()) return false;
    return std::equal(begin, end, operands.begin(),
                      [&](const DFPattern& part, const Expr& o) { return match(*part.get(), o); });
  };
  switch (p.kind) {
    case DFKind::Any:
      ok = true;
      break;
    case DFKind::Constant:
      ok = isa<ConstantNode>(e);
      break;
    case DFKind::Var: {
      auto* v = as<VarNode>(e);
      ok = v != nullptr && (p.names[0].empty() || v->name_hint == p.names[0]);
      break;
    }
    case DFKind::Same:
      ok = e == p.expr;
      break;
    case DFKind::Op: {
      auto* op = as<OpNode>(e);
      ok = op != nullptr &&
           (p.op_condition ? p.op_condition(*op->row)
                           : std::find(p.names.begin(), p.names.end(), op->name) != p.names.end());
      break;
    }
    case DFKind::Call: {
      auto* c = as<CallNode>(e);
      ok = c != nullptr && match(*p.parts[0].get(), c->op) &&
           all(p.parts.begin() + 1, p.parts.end(), c->args);
      break;
    }
    case DFKind::Tuple: {
      auto* t = as<TupleNode>(e);
      ok = t != nullptr && all(p.parts.begin(), p.parts.end(), t->fields);
      break;
    }
    case DFKind::GetItem: {
      auto* g = as<TupleGetItemNode>(e);
      ok = g != nullptr && (p.index < 0 || p.index == g->index) &&
           match(*p.parts[0].get(), g->tuple);
      break;
    }
    case DFKind::Or:
      for (const DFPattern& alternative : p.parts) {
        ok = match(*alternative.get(), e);
        if (ok) break;
        bound_.resize(mark);
      }
      break;
    case DFKind::Condition:
      ok = match(*p.parts[0].get(), e) && p.condition(e);
      break;
    case DFKind::Dominator:
      ok = match_dominated(p, e);
      break;
  }
  if (!ok) {
    bound_.resize(mark);
    return false;
  }
  bound_.emplace_back(&p, e);
  return true;
}

bool DFMatch::match_dominated(const DFPattern::Node& p, const Expr& child) {
  if (!match(*p.parts[2].get(), child)) return false;
  std::vector<Expr> work{child};
  std::unordered_set<const Node*> seen;
  Expr parent;
  while (!work.empty()) {
    Expr at = work.back();
    work.pop_back();
    auto* c = as<CallNode>(at);
    if (c == nullptr) return false;
    for (const Expr& operand : c->args) {
      if (operand == parent || !seen.insert(operand.get()).second) continue;
      // The parts of a path are many expressions: each is matched on its own.
      DFMatch alone;
      if (!parent && alone.matches(p.parts[0], operand)) {
        parent = operand;
      } else if (alone.matches(p.parts[1], operand)) {
        work.push_back(operand);
      } else if (!is_leaf(*operand)) {
        return false;
      }
    }
  }
  return parent && match(*p.parts[0].get(), parent);
}

}  // namespace relay
