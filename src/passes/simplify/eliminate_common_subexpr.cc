#include "passes/simplify/eliminate_common_subexpr.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "analysis/purity.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "node/node_map.h"
#include "node/structural.h"
#include "node/walk.h"

namespace relay {
namespace {

// Constants up to this many bytes are compared by their bits.
constexpr size_t kSmallConstant = 256;

// Scopes as intervals: a scope is around another when it holds its first number.
class Nesting {
 public:
  explicit Nesting(const ScopeTree& tree) {
    const size_t n = tree.scopes.size();
    std::vector<size_t> size(n, 1), next(n);
    for (size_t i = n; i-- > 1;) size[parent(tree, i)] += size[i];
    first_.resize(n);
    end_.resize(n);
    for (size_t i = 0; i < n; ++i) {
      if (i > 0) {
        first_[i] = next[parent(tree, i)];
        next[parent(tree, i)] += size[i];
      }
      next[i] = first_[i] + 1;
      end_[i] = first_[i] + size[i];
    }
  }
  size_t first(int scope) const { return first_[static_cast<size_t>(scope)]; }
  bool is_around(int outer, int inner) const {
    return first(outer) <= first(inner) && first(inner) < end_[static_cast<size_t>(outer)];
  }

 private:
  static size_t parent(const ScopeTree& tree, size_t i) {
    return static_cast<size_t>(tree.scopes[i].parent);
  }
  std::vector<size_t> first_, end_;
};

class Eliminator {
 public:
  Eliminator(const Function& f, const Purity& purity, const std::function<bool(const Expr&)>& keeps)
      : f_(f),
        purity_(purity),
        keeps_(keeps),
        scopes_(analyze_scopes(*f.get())),
        nesting_(scopes_) {}

  Function run() {
    number();
    if (!any_equal_) return f_;
    choose();
    rebuild();
    std::vector<NodeRef> children = children_of(*f_.get());
    for (NodeRef& c : children) c = now(c);
    return cast<FunctionNode>(with_children(f_, children));
  }

 private:
  // ---- Classes of equal expressions ------------------------------------------------------------

  // A class's number comes after those of its members' operands.
  void number() {
    for (const ExprNode* e : scopes_.order) {
      if (auto* l = as<LetNode>(e)) bound_[l->var.get()] = l->value.get();
    }
    for (const ExprNode* e : scopes_.order) {
      if (!scopes_.scope_of.contains(e) && !isa<ConstantNode>(e)) continue;
      if (inside_primitive(*e) || !may_merge(*e) || (keeps_ && isa<CallNode>(e) && keeps_(Expr(e))))
        continue;
      uint64_t h = key_hash(*e);
      auto [first, last] = by_key_.equal_range(h);
      auto same = std::find_if(first, last, [&](const auto& entry) {
        return same_key(*e, *classes_[entry.second].front());
      });
      if (same != last) {
        class_of_[e] = same->second;
        classes_[same->second].push_back(e);
        any_equal_ |= !isa<ConstantNode>(e);
      } else {
        class_of_[e] = classes_.size();
        by_key_.emplace(h, classes_.size());
        classes_.push_back({e});
      }
    }
  }

  bool may_merge(const ExprNode& e) const {
    switch (e.kind()) {
      case ExprKind::Tuple:
      case ExprKind::TupleGetItem:
      case ExprKind::Constant:
        return true;
      case ExprKind::Call: {
        auto& c = static_cast<const CallNode&>(e);
        return !isa<FunctionNode>(c.op) && purity_.of_node(Expr(&e)).pure();
      }
      default:
        return false;
    }
  }

  bool inside_primitive(const ExprNode& e) const {
    const int* scope = scopes_.scope_of.find(&e);
    return scope != nullptr && scopes_.scopes[static_cast<size_t>(*scope)].primitive;
  }

  // What stands for an operand in a key: the first of its class, or itself.
  const Node* operand(const Node* n) const {
    while (const Node* const* value = bound_.find(n)) {
      // A variable is its value, unless the value is still being looked at or a function.
      if (!isa<VarNode>(*value) && !class_of_.contains(*value)) break;
      n = *value;
    }
    if (const size_t* of = class_of_.find(n)) return classes_[*of].front();
    if (auto* g = as<GlobalVarNode>(n)) return any_global(*g);
    return n;
  }

  // Names of one function are one operand: its first.
  const Node* any_global(const GlobalVarNode& g) const {
    return globals_.try_emplace(g.name_hint, &g).first->second;
  }

  uint64_t key_hash(const ExprNode& e) const {
    uint64_t h = static_cast<uint64_t>(e.kind());
    auto add = [&](const Node* n) { h = hash_combine(h, reinterpret_cast<uintptr_t>(n)); };
    switch (e.kind()) {
      case ExprKind::Constant: {
        const Tensor& t = static_cast<const ConstantNode&>(e).data;
        return t.byte_size() <= kSmallConstant
                   ? hash_combine(h, FieldTraits<Tensor>::ops.hash(&t))
                   : hash_combine(h, reinterpret_cast<uintptr_t>(t.data()));
      }
      case ExprKind::TupleGetItem: {
        auto& g = static_cast<const TupleGetItemNode&>(e);
        add(operand(g.tuple.get()));
        return hash_combine(h, static_cast<uint64_t>(g.index));
      }
      case ExprKind::Tuple:
        for (const Expr& field : static_cast<const TupleNode&>(e).fields) add(operand(field.get()));
        return h;
      default: {
        auto& c = static_cast<const CallNode&>(e);
        add(operand(c.op.get()));
        for (const Expr& a : c.args) add(operand(a.get()));
        return c.attrs ? hash_combine(h, structural_hash(c.attrs)) : h;
      }
    }
  }

  bool same_operands(const std::vector<Expr>& a, const std::vector<Expr>& b) const {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const Expr& x, const Expr& y) {
      return operand(x.get()) == operand(y.get());
    });
  }

  bool same_key(const ExprNode& a, const ExprNode& b) const {
    if (a.kind() != b.kind()) return false;
    switch (a.kind()) {
      case ExprKind::Constant: {
        const Tensor &x = static_cast<const ConstantNode&>(a).data,
                     &y = static_cast<const ConstantNode&>(b).data;
        if (x.byte_size() <= kSmallConstant) return bit_equal(x, y);
        return x.data() == y.data() && x.dtype() == y.dtype() &&
               std::equal(x.shape().begin(), x.shape().end(), y.shape().begin(), y.shape().end());
      }
      case ExprKind::TupleGetItem: {
        auto &x = static_cast<const TupleGetItemNode&>(a),
             &y = static_cast<const TupleGetItemNode&>(b);
        return x.index == y.index && operand(x.tuple.get()) == operand(y.tuple.get());
      }
      case ExprKind::Tuple:
        return same_operands(static_cast<const TupleNode&>(a).fields,
                             static_cast<const TupleNode&>(b).fields);
      default: {
        auto &x = static_cast<const CallNode&>(a), &y = static_cast<const CallNode&>(b);
        return operand(x.op.get()) == operand(y.op.get()) && same_operands(x.args, y.args) &&
               (x.attrs == y.attrs || structural_equal(x.attrs, y.attrs)) &&
               structural_equal(a.type, b.type);
      }
    }
  }

  // ---- Who stays

  // Each member refers to the outermost member in a scope around its own.
  void choose() {
    for (std::vector<const ExprNode*>& members : classes_) {
      if (members.size() < 2 || isa<ConstantNode>(members.front())) continue;
      std::vector<const ExprNode*> sorted = members;
      std::stable_sort(sorted.begin(), sorted.end(), [&](const ExprNode* a, const ExprNode* b) {
        return nesting_.first(scopes_.scope_of.at(a)) < nesting_.first(scopes_.scope_of.at(b));
      });
      const ExprNode* stays = nullptr;
      for (const ExprNode* e : sorted) {
        if (stays != nullptr &&
            nesting_.is_around(scopes_.scope_of.at(stays), scopes_.scope_of.at(e))) {
          stands_for_[e] = stays;
        } else {
          stays = e;
        }
      }
    }
  }

  // ---- Rewriting -------------------------------------------------------------------------------

  NodeRef now(const NodeRef& n) const {
    const NodeRef* found = rebuilt_.find(n.get());
    return found == nullptr ? n : *found;
  }

  // An expression that stays may come later in the program's order than one that refers to it, but
  // its operands do not: they are in classes with smaller numbers.
  void rebuild() {
    std::vector<bool> done(classes_.size(), false);
    for (const ExprNode* e : scopes_.order) {
      const size_t* of = class_of_.find(e);
      if (of == nullptr) {
        rebuild_one(*e);
        continue;
      }
      if (isa<ConstantNode>(e) || done[*of]) continue;
      done[*of] = true;
      for (const ExprNode* member : classes_[*of]) {
        if (!stands_for_.contains(member)) rebuild_one(*member);
      }
      for (const ExprNode* member : classes_[*of]) {
        if (const ExprNode** other = stands_for_.find(member)) {
          rebuilt_[member] = now(NodeRef(*other));
        }
      }
    }
  }

  void rebuild_one(const ExprNode& e) {
    std::vector<NodeRef> children = children_of(e);
    bool changed = false;
    for (NodeRef& c : children) {
      NodeRef before = c;
      if (auto* clause_node = as<ClauseNode>(c)) {
        NodeRef rhs = now(clause_node->rhs);
        if (!(rhs == clause_node->rhs)) c = clause(clause_node->lhs, Expr::unchecked(rhs));
      } else if (c) {
        c = now(c);
      }
      changed |= !(c == before);
    }
    if (changed) rebuilt_[&e] = with_children(NodeRef(&e), children);
  }

  Function f_;
  const Purity& purity_;
  const std::function<bool(const Expr&)>& keeps_;
  ScopeTree scopes_;
  Nesting nesting_;
  NodeMap<const Node*> bound_;  // a Let's variable to its value
  mutable std::unordered_map<std::string, const Node*> globals_;
  std::unordered_multimap<uint64_t, size_t> by_key_;
  std::vector<std::vector<const ExprNode*>> classes_;
  NodeMap<size_t> class_of_;
  bool any_equal_ = false;
  NodeMap<const ExprNode*> stands_for_;
  NodeMap<NodeRef> rebuilt_;
};

Module run_eliminate_common_subexpr(const Module& mod, PassContext&) {
  return eliminate_common_subexpr(mod, nullptr);
}

}  // namespace

Module eliminate_common_subexpr(const Module& mod, const std::function<bool(const Expr&)>& keeps) {
  Purity purity(mod);
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    return f->is_primitive() ? f : Eliminator(f, purity, keeps).run();
  });
}

const Pass kEliminateCommonSubexpr{
    "EliminateCommonSubexpr",    3, Form::any, Form::any, "Computes equal expressions once.",
    run_eliminate_common_subexpr};

}  // namespace relay
