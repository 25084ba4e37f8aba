#include "passes/fusion/outline_loops.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "analysis/calls.h"
#include "analysis/primitives.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "node/walk.h"
#include "passes/structure/to_a_normal_form.h"

namespace relay {
namespace {

constexpr uint32_t kFamilies = family::expr | family::pattern;
// Kernels are nests of statements, which lowering descends; deeper programs are not written by hand.
constexpr int kMostDepth = 48;
// Below this many expressions a kernel is compiled in well under a second.
constexpr size_t kMostNodes = 4000;
// A tensor of so many elements is computed as fast by a plain loop as by a kernel of its own.
constexpr int64_t kFewElements = 16;

// Numbers whose sizes a kernel knows when it is called.
std::string defect_of(const Type& type) {
  auto tensors = flatten_tensor_types(type);
  if (!tensors) return "it carries a value of type " + to_string(type);
  for (const TensorType& t : *tensors) {
    if (std::ranges::any_of(t->shape, [](const Dim& d) { return as_const(d) == 0; }))
      return "it carries a tensor without elements";
    if (std::ranges::any_of(t->shape, is_any))
      return "a size of " + to_string(Type(t)) + " is open";
    if (t->dtype.is_only_moved() || t->dtype.is_string())
      return "it carries elements of dtype " + t->dtype.to_string();
  }
  return {};
}

bool is_few(const TensorTypeNode& t) {
  auto shape = t.const_shape();
  if (!shape) return false;
  int64_t count = 1;
  for (int64_t d : *shape) count *= std::min<int64_t>(d, kFewElements + 1);
  return count <= kFewElements;
}

bool is_of_scalars(const CallNode& c) {
  auto is_scalar = [](const Type& type) {
    auto tensors = flatten_tensor_types(type);
    return tensors &&
           std::ranges::all_of(*tensors, [](const TensorType& t) { return t->shape.empty(); });
  };
  return is_scalar(c.type) &&
         std::ranges::all_of(c.args, [&](const Expr& a) { return is_scalar(a->type); });
}

// Operators that replace elements of their first operand.
bool writes_over(const CallNode& c) {
  const Expr e = ref(c);
  return is_call_to(e, "update_slice") || is_call_to(e, "scatter_nd") ||
         is_call_to(e, "scatter_elements");
}

// Why a kernel of a loop does not compute the call of an operator; empty: it does.
std::string defect_of(const CallNode& c) {
  const OpInfo& row = *as<OpNode>(c.op)->row;
  if (row.effect != Effect::Pure) return row.name + " has an effect";
  std::string defect = defect_of(c.type);
  for (const Expr& a : c.args) {
    if (defect.empty()) defect = defect_of(a->type);
  }
  if (!defect.empty()) return defect;
  if (row.compute == nullptr) return row.name + " is no kernel";
  if (is_of_scalars(c) || writes_over(c)) return {};
  auto* t = as<TensorTypeNode>(c.type);
  const bool by_element = row.fusion <= FusionClass::Injective;
  const bool moves = by_element && row.fusion == FusionClass::Injective;
  if (t != nullptr && by_element && (t->shape.empty() || moves || is_few(*t))) return {};
  return row.name + " computes " + to_string(c.type) + " in each iteration";
}

// One loop, with the loops inside it: whether it can be a kernel, and what it is made of.
class LoopNest {
 public:
  // `outside`: whether an expression below the loop is computed before the loop begins.
  LoopNest(const LetNode& l, const std::function<bool(const Node&)>& outside) : outside_(outside) {
    auto* entry = as<CallNode>(l.body);
    if (entry == nullptr || !(entry->op == l.var)) {
      reason_ = "it is not called where it is defined";
      span_ = l.value->span;
      return;
    }
    for (const Expr& a : entry->args) {
      if (mentions(a, l.var.get())) fail(entry->span, "it calls itself in its own arguments");
    }
    find_invariants(l.value);
    add_loop(l, -1);
    while (!work_.empty() && reason_.empty()) {
      Work w = work_.back();
      work_.pop_back();
      visit(w);
    }
  }

  // Empty: it can.
  const std::string& reason() const { return reason_; }
  const Span& span() const { return span_; }
  // What the kernel is given: expressions that are computed once, outside of the loop.
  const std::vector<Expr>& parameters() const { return parameters_; }

 private:
  // A loop; `around`: the loop in whose tail position it is called, which its leaves may go on with.
  struct Loop {
    int around;
    int depth;
  };
  // An expression, and the loop in whose tail position it is; -1: in none.
  struct Work {
    Expr e;
    int tail;
    int depth;
  };

  static bool mentions(const Expr& e, const Node* what) {
    bool found = false;
    post_order(
        e, [&](const Node& n) { found |= &n == what; }, kFamilies);
    return found;
  }

  void fail(const Span& span, std::string why) {
    if (!reason_.empty()) return;
    reason_ = std::move(why);
    span_ = span;
  }

  // Expressions in which nothing changes from iteration to iteration.
  void find_invariants(const Expr& loop) {
    auto changes = [&](const Node& n) {
      bool changes = false;
      for_each_child(n, [&](const NodeRef& c) { changes |= changing_.contains(c.get()); });
      return changes;
    };
    // Binders come before what they bind is used.
    post_order(
        loop,
        [&](const Node& n) {
          if (auto* f = as<FunctionNode>(&n))
            for (const Var& p : f->params) changing_.insert(p.get());
          if (auto* l = as<LetNode>(&n)) changing_.insert(l->var.get());
        },
        kFamilies);
    post_order(
        loop,
        [&](const Node& n) {
          if (changes(n)) changing_.insert(&n);
        },
        kFamilies);
  }

  // Whether an operator's call, whose operands do not change, may be computed before the loop.
  bool is_invariant(const CallNode& c) const {
    if (changing_.contains(&c) || is_of_scalars(c)) return false;
    bool pure = true;
    post_order(
        ref(c),
        [&](const Node& n) {
          auto* inner = as<CallNode>(&n);
          auto* op = inner == nullptr ? nullptr : as<OpNode>(inner->op);
          if (inner == nullptr) return;
          pure = pure && op != nullptr && op->row->effect == Effect::Pure && !may_end_run(*inner);
        },
        kFamilies);
    return pure;
  }

  void parameter(const Expr& e) {
    if (std::string d = defect_of(e->type); !d.empty()) return fail(e->span, d);
    parameters_.push_back(e);
  }

  // The function that a Let binds and its body calls.
  void add_loop(const LetNode& l, int around) {
    auto& f = *as<FunctionNode>(l.value);
    const auto index = static_cast<int>(loops_.size());
    const int depth = around < 0 ? 0 : loops_[static_cast<size_t>(around)].depth + 1;
    loops_.push_back({around, depth});
    index_.emplace(l.var.get(), index);
    for (const Var& p : f.params) {
      if (std::string defect = defect_of(p->type); !defect.empty()) fail(p->span, defect);
    }
    if (std::string defect = defect_of(f.body->type); !defect.empty()) fail(f.body->span, defect);
    if (!f.type_params.empty()) fail(f.span, "it is polymorphic");
    work_.push_back({f.body, index, depth + 1});
  }

  // Expressions that nothing but leaves follows are visited once each: sharing below a branch is fine.
  void visit(const Work& w) {
    const bool seen = w.tail < 0 && !seen_.insert(w.e.get()).second;
    if (seen) return;
    if (auto* v = as<VarNode>(w.e)) {
      if (index_.contains(v)) return fail(v->span, "a loop is used as a value");
      return changing_.contains(v) ? void() : parameter(w.e);
    }
    if (!is_leaf(*w.e.get()) && outside_(*w.e.get())) return parameter(w.e);
    if (++count_ > kMostNodes) return fail(w.e->span, "it is longer than a kernel may be");
    if (w.depth > kMostDepth) return fail(w.e->span, "it is nested deeper than a kernel may be");
    auto inside = [&](const Expr& e) { work_.push_back({e, -1, w.depth}); };
    switch (w.e->kind()) {
      case ExprKind::Constant:
        return as<ConstantNode>(w.e)->data.rank() > 0 ? parameter(w.e) : void();
      case ExprKind::If: {
        auto& i = *as<IfNode>(w.e);
        if (std::string d = defect_of(i.type); !d.empty()) fail(i.span, d);
        inside(i.cond);
        work_.push_back({i.true_branch, w.tail, w.depth + 1});
        work_.push_back({i.false_branch, w.tail, w.depth + 1});
        return;
      }
      case ExprKind::Tuple:
        for (const Expr& f : as<TupleNode>(w.e)->fields) inside(f);
        return;
      case ExprKind::TupleGetItem:
        return inside(as<TupleGetItemNode>(w.e)->tuple);
      case ExprKind::Let:
        return let(*as<LetNode>(w.e), w);
      case ExprKind::Call:
        return call(*as<CallNode>(w.e), w);
      default:
        return fail(w.e->span, "it holds a " + std::string(w.e->info().name));
    }
  }

  void let(const LetNode& l, const Work& w) {
    if (isa<FunctionNode>(l.value)) {
      auto* entry = as<CallNode>(l.body);
      if (as_primitive(l.value.get()) != nullptr || entry == nullptr || !(entry->op == l.var))
        return fail(l.value->span, "a function in it is not called where it is defined");
      for (const Expr& a : entry->args) {
        if (mentions(a, l.var.get())) fail(entry->span, "a loop calls itself in its own arguments");
        work_.push_back({a, -1, w.depth});
      }
      add_loop(l, w.tail);
      // One that is not in tail position returns to where it is called.
      loops_.back().depth = w.depth + 1;
      return;
    }
    work_.push_back({l.value, -1, w.depth});
    work_.push_back({l.body, w.tail, w.depth});
  }

  void call(const CallNode& c, const Work& w) {
    if (isa<OpNode>(c.op) && is_invariant(c)) return parameter(w.e);
    for (const Expr& a : c.args) work_.push_back({a, -1, w.depth});
    if (isa<OpNode>(c.op)) {
      if (std::string d = defect_of(c); !d.empty()) fail(c.span, d);
      return;
    }
    auto called = index_.find(c.op.get());
    if (called == index_.end()) {
      return fail(c.span, isa<GlobalVarNode>(c.op)
                              ? "it calls @" + as<GlobalVarNode>(c.op)->name_hint
                              : "it calls a function that is a value");
    }
    for (int at = w.tail; at >= 0; at = loops_[static_cast<size_t>(at)].around) {
      if (at == called->second) return;
    }
    fail(c.span, "it calls itself where something follows");
  }

  const std::function<bool(const Node&)>& outside_;
  std::vector<Expr> parameters_;
  std::unordered_set<const Node*> changing_;
  std::vector<Loop> loops_;
  std::unordered_map<const Node*, int> index_;  // of the variable of a loop
  std::vector<Work> work_;
  std::unordered_set<const Node*> seen_;
  size_t count_ = 0;
  std::string reason_;
  Span span_;
};

bool is_loop_definition(const LetNode& l) {
  auto* f = as<FunctionNode>(l.value);
  if (f == nullptr || f->is_primitive()) return false;
  bool recursive = false;
  post_order(
      f->body, [&](const Node& n) { recursive |= &n == l.var.get(); }, kFamilies);
  return recursive;
}

// Lines that are written are slices: rules for these write elements, and nothing else.
Expr with_starts(const Expr& loop) {
  return cast<ExprNode>(rewrite(
      loop,
      [](const NodeRef&, NodeRef rebuilt) -> NodeRef {
        auto* c = as<CallNode>(rebuilt);
        auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
        if (op == nullptr || op->row->memory == nullptr || op->row->memory(*c) != Memory::Updated)
          return rebuilt;
        return call(c->op, {c->args[0], c->args[1], tuple({c->args[2]})}, c->attrs, c->span);
      },
      kFamilies));
}

// The call of the kernel for a loop that is one.
Expr outlined(const LetNode& l, const LoopNest& nest) {
  auto& entry = *as<CallNode>(l.body);
  std::vector<Var> params;
  std::vector<Expr> args;
  auto parameter = [&](const Expr& value) {
    Var p = var("p" + std::to_string(params.size()), value->type, value->span);
    params.push_back(p);
    args.push_back(value);
    return p;
  };
  std::unordered_map<const Node*, NodeRef> inside;
  for (const Expr& e : nest.parameters()) {
    if (!inside.contains(e.get())) inside.emplace(e.get(), parameter(e));
  }
  std::vector<Expr> first;
  for (const Expr& a : entry.args) {
    auto* c = as<ConstantNode>(a);
    first.push_back(c != nullptr && c->data.rank() == 0 ? a : Expr(parameter(a)));
  }
  Expr loop = with_starts(cast<ExprNode>(substitute(l.value, inside, kFamilies)));
  Expr whole = let(l.var, loop, call(l.var, std::move(first), nullptr, entry.span), l.span);
  Function f = to_a_normal_form(function(params, whole, l.body->type, {}, {}, l.value->span));
  Function kernel = function(f->params, f->body, f->ret_type, {},
                             Dict{{attr::kPrimitive, AttrValue(int64_t{1})}}, l.value->span);
  return call(kernel, std::move(args), nullptr, entry.span);
}

// The loops of a function in program order, each with what is computed outside of it; those inside a
// loop for which `visit` gives true are not visited.
void for_each_loop(const Function& f,
                   const std::function<bool(const LetNode& l, const LoopNest& nest)>& visit) {
  const ScopeTree scopes = analyze_scopes(*f.get());
  post_order_if(
      f->body,
      [&](const Node& n) {
        if (as_primitive(&n) != nullptr) return false;
        auto* l = as<LetNode>(&n);
        if (l == nullptr || !is_loop_definition(*l)) return true;
        const int body =
            scopes.opened(*as<FunctionNode>(l->value), as<FunctionNode>(l->value)->body.get());
        auto outside = [&](const Node& e) {
          const int* scope = scopes.scope_of.find(&e);
          return scope != nullptr && scopes.common(*scope, body) != body;
        };
        return !visit(*l, LoopNest(*l, outside));
      },
      [](const Node&) {}, kFamilies);
}

// Why a loop stays one, and where that is.
std::string reason_of(const LoopNest& nest) {
  return nest.reason() + (nest.span() ? " (" + nest.span().describe() + ")" : "");
}

// One loop after the other: what a loop is given may hold others.
Function outline(Function f) {
  for (bool found = true; found;) {
    found = false;
    std::unordered_map<const Node*, NodeRef> changes;
    for_each_loop(f, [&](const LetNode& l, const LoopNest& nest) {
      if (found || !nest.reason().empty()) return found;
      found = true;
      changes.emplace(&l, outlined(l, nest));
      return true;
    });
    if (found) f = cast<FunctionNode>(substitute(f, changes, kFamilies));
  }
  std::unordered_map<const Node*, std::string> reasons;
  for_each_loop(f, [&](const LetNode& l, const LoopNest& nest) {
    auto& loop = *as<FunctionNode>(l.value);
    if (!loop.has_attr(kInterpreted)) reasons.emplace(&loop, reason_of(nest));
    return false;
  });
  if (reasons.empty()) return f;
  return cast<FunctionNode>(rewrite(
      f,
      [&](const NodeRef& original, NodeRef rebuilt) -> NodeRef {
        auto reason = reasons.find(original.get());
        if (reason == reasons.end()) return rebuilt;
        auto& loop = *as<FunctionNode>(rebuilt);
        Dict attrs = loop.attrs;
        attrs[kInterpreted] = AttrValue(reason->second);
        return function(loop.params, loop.body, loop.ret_type, loop.type_params, std::move(attrs),
                        loop.span);
      },
      kFamilies));
}

Module run(const Module& mod, PassContext&) {
  return map_functions(
      mod, [](const GlobalVar&, const Function& f) { return f->is_primitive() ? f : outline(f); });
}

}  // namespace

const Pass kOutlineLoops{"OutlineLoops",
                         2,
                         Form::any,
                         Form::any,
                         "Makes one kernel of a loop whose iterations compute single numbers.",
                         run};

}  // namespace relay
