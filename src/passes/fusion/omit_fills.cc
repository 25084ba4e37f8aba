#include "passes/fusion/omit_fills.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analysis/calls.h"
#include "analysis/primitives.h"
#include "analysis/read_counts.h"
#include "ir/op.h"
#include "node/walk.h"

namespace relay {
namespace {

// A sum of variables and sizes, each some times, and a number; modulo 2^64, as programs add.
struct Affine {
  std::map<const Node*, uint64_t> of;
  uint64_t number = 0;

  void add(const Affine& other, uint64_t times) {
    number += times * other.number;
    for (const auto& [v, count] : other.of) {
      if ((of[v] += times * count) == 0) of.erase(v);
    }
  }
  friend bool operator==(const Affine&, const Affine&) = default;
};

using Bindings = std::unordered_map<const Node*, Expr>;

void bind_all(const Expr& chain, Bindings& bound) {
  Expr at = chain;
  for (auto* l = as<LetNode>(at); l != nullptr; l = as<LetNode>(at)) {
    bound.emplace(l->var.get(), l->value);
    at = l->body;
  }
}

Expr end_of(const Expr& chain) {
  Expr at = chain;
  while (auto* l = as<LetNode>(at)) at = l->body;
  return at;
}

// What the variable is bound to, through other names.
Expr value_of(Expr e, const Bindings& bound) {
  for (auto it = bound.find(e.get()); it != bound.end(); it = bound.find(e.get())) e = it->second;
  return e;
}

// What the operator that a kernel consists of is called with; null for anything else.
const CallNode* only_operator(const Expr& value) {
  auto* c = as<CallNode>(value);
  auto* f = c == nullptr ? nullptr : primitive_of(*c);
  auto* inner = f == nullptr ? nullptr : as<CallNode>(f->body);
  return inner != nullptr && isa<OpNode>(inner->op) ? inner : nullptr;
}

// An argument of the operator inside of a kernel, as the call of that kernel has it.
Expr outside(const Expr& arg, const CallNode& kernel) {
  const FunctionNode& f = *primitive_of(kernel);
  for (size_t i = 0; i < f.params.size(); ++i) {
    if (f.params[i] == arg) return kernel.args[i];
  }
  return arg;
}

// How often the operators of a kernel read an argument of its call.
int reads_of(const CallNode& kernel, const Expr& arg) {
  const FunctionNode& f = *primitive_of(kernel);
  std::unordered_set<const Node*> params;
  for (size_t i = 0; i < f.params.size(); ++i) {
    if (kernel.args[i] == arg) params.insert(f.params[i].get());
  }
  int out = 0;
  post_order(
      f.body,
      [&](const Node& n) {
        for_each_child(n, [&](const NodeRef& child) { out += params.contains(child.get()); });
      },
      family::expr);
  return out;
}

// A size, where it is a number or has a name.
std::optional<Affine> affine_of(const Dim& size) {
  Affine out;
  if (auto n = as_const(size)) {
    out.number = static_cast<uint64_t>(*n);
  } else if (auto* v = as<DimVarNode>(size)) {
    out.of[v->var.get()] = 1;
  } else {
    return std::nullopt;
  }
  return out;
}

// The value of a scalar in terms of what nothing here computes; nullopt where other operators do. Kernels of scalars are
// a few operators each.
std::optional<Affine> affine_of(const Expr& e, const Bindings& bound) {
  struct Term {
    Expr e;
    uint64_t times;
    const CallNode* kernel;  // that it is inside of
  };
  Affine out;
  std::vector<Term> open{{e, 1, nullptr}};
  for (int steps = 0; !open.empty(); ++steps) {
    constexpr int kMostSteps = 64;
    if (steps == kMostSteps) return std::nullopt;
    auto [term, times, kernel] = open.back();
    open.pop_back();
    if (kernel != nullptr) {
      const Expr arg = outside(term, *kernel);
      if (arg != term) {
        term = arg;
        kernel = nullptr;
      }
    }
    if (kernel == nullptr) term = value_of(term, bound);
    if (auto* k = as<ConstantNode>(term)) {
      if (k->data.rank() != 0 || k->data.dtype() != DType::Int(64)) return std::nullopt;
      out.number += times * static_cast<uint64_t>(k->data.get_as_int(0));
    } else if (isa<VarNode>(term)) {
      Affine one;
      one.of[term.get()] = 1;
      out.add(one, times);
    } else if (auto* c = as<CallNode>(term)) {
      if (auto* f = primitive_of(*c)) {
        if (kernel != nullptr) return std::nullopt;
        open.push_back({f->body, times, c});
        continue;
      }
      if (is_call_to(term, "ndarray_size")) {
        auto* vector = as<TensorTypeNode>(c->args[0]->type);
        const auto size = vector != nullptr && vector->shape.size() == 1
                              ? affine_of(vector->shape[0])
                              : std::nullopt;
        if (!size) return std::nullopt;
        out.add(*size, times);
        continue;
      }
      const bool sum = is_call_to(term, "add"), difference = is_call_to(term, "subtract");
      if (!sum && !difference) return std::nullopt;
      open.push_back({c->args[0], times, kernel});
      open.push_back({c->args[1], sum ? times : uint64_t{0} - times, kernel});
    } else {
      return std::nullopt;
    }
  }
  return out;
}

Affine times_one(const Var& v) {
  Affine out;
  out.of[v.get()] = 1;
  return out;
}

// A loop that counts, by ones, as long as it is less than `count`; and its parameters of which each step writes one line, with
// the number of that line. Numbers are in terms of the counter and of parameters that stay what they are.
struct CountedLoop {
  struct Stack {
    size_t parameter;
    Affine line;
  };
  const FunctionNode* function;
  size_t counter = 0;
  Affine count;
  std::vector<Stack> stacks;

  const Node* counter_var() const { return function->params[counter].get(); }
};

std::optional<size_t> place_of(const Node* param, const FunctionNode& f) {
  for (size_t i = 0; i < f.params.size(); ++i) {
    if (f.params[i].get() == param) return i;
  }
  return std::nullopt;
}

std::optional<CountedLoop> counted_loop(const GlobalVar& name, const FunctionNode& f) {
  Bindings bound;
  bind_all(f.body, bound);
  const Expr result = value_of(end_of(f.body), bound);
  auto* branch = as<IfNode>(result);
  if (branch == nullptr) return std::nullopt;
  bind_all(branch->true_branch, bound);
  const Expr last = value_of(end_of(branch->true_branch), bound);
  auto* next = as<CallNode>(last);
  auto* called = next == nullptr ? nullptr : as<GlobalVarNode>(next->op);
  if (called == nullptr || called->name_hint != name->name_hint) return std::nullopt;
  const Expr test = value_of(branch->cond, bound);
  const CallNode* less = only_operator(test);
  if (less == nullptr || !is_call_to(Expr(less), "less")) return std::nullopt;
  const CallNode& kernel = *as<CallNode>(test);
  const Expr counter = value_of(outside(less->args[0], kernel), bound);
  const auto at = place_of(counter.get(), f);
  const auto count = affine_of(outside(less->args[1], kernel), bound);
  if (!at || !count) return std::nullopt;
  CountedLoop out{&f, *at, *count, {}};
  const auto after = affine_of(next->args[*at], bound);
  Affine expected = times_one(f.params[*at]);
  expected.number = 1;
  if (after != expected) return std::nullopt;
  // Whether it has one value in all steps, with the counter so many times.
  constexpr uint64_t kBackwards = ~uint64_t{0};  // -1
  auto is_steady = [&](const Affine& e, uint64_t times) {
    auto of_counter = e.of.find(counter.get());
    if ((of_counter == e.of.end() ? 0 : of_counter->second) != times) return false;
    return std::ranges::all_of(e.of, [&](const auto& part) {
      const auto i = place_of(part.first, f);
      return part.first == counter.get() || (i && value_of(next->args[*i], bound) == f.params[*i]);
    });
  };
  if (!is_steady(*count, 0)) return std::nullopt;
  std::unordered_map<const Node*, int> reads = read_counts(f.body);
  const Expr end = value_of(end_of(branch->false_branch), [&] {
    Bindings there = bound;
    bind_all(branch->false_branch, there);
    return there;
  }());
  for (size_t i = 0; i < f.params.size(); ++i) {
    const Expr written = value_of(next->args[i], bound);
    const CallNode* update = only_operator(written);
    if (update == nullptr || !is_call_to(Expr(update), "update_slice")) continue;
    const CallNode& call = *as<CallNode>(written);
    if (outside(update->args[0], call) != f.params[i] || reads_of(call, f.params[i]) != 1) continue;
    auto* line = as<TensorTypeNode>(update->args[1]->type);
    if (line == nullptr || line->shape.empty() || as_const(line->shape[0]) != 1) continue;
    const auto start = affine_of(outside(update->args[2], call), bound);
    if (!start || (!is_steady(*start, 1) && !is_steady(*start, kBackwards))) continue;
    // The write reads it, and what the loop gives.
    int given = end == f.params[i];
    if (auto* t = as<TupleNode>(end)) {
      for (const Expr& field : t->fields) given += field == f.params[i];
    }
    if (reads[f.params[i].get()] == 1 + given) out.stacks.push_back({i, *start});
  }
  return out.stacks.empty() ? std::nullopt : std::optional(std::move(out));
}

class Omission {
 public:
  explicit Omission(const Module& mod) {
    for (size_t i = 0; i < mod->functions.size(); ++i) {
      const GlobalVar& name = mod->global_vars[i];
      const Function& f = mod->functions[i];
      if (f->is_primitive()) continue;
      if (auto loop = counted_loop(name, *f.get())) loops_.emplace(name->name_hint, *loop);
    }
  }

  bool empty() const { return loops_.empty(); }

  Function in(const Function& f) const {
    Bindings bound;
    std::unordered_map<const Node*, int> reads = read_counts(f->body);
    post_order_outside_primitives(f->body, [&](const Node& n) {
      if (auto* l = as<LetNode>(&n)) bound.emplace(l->var.get(), l->value);
    });
    // Of each call of a loop, its arguments that need no fill.
    std::unordered_map<const Node*, std::vector<size_t>> unfilled;
    for (const auto& [v, value] : bound) {
      auto* c = as<CallNode>(value);
      auto* g = c == nullptr ? nullptr : as<GlobalVarNode>(c->op);
      auto loop = g == nullptr ? loops_.end() : loops_.find(g->name_hint);
      if (loop == loops_.end() || unfilled.contains(c)) continue;
      for (const CountedLoop::Stack& stack : loop->second.stacks) {
        if (!fills_in_vain(*c, stack, loop->second, bound)) continue;
        unfilled[c].push_back(stack.parameter);
        --reads[c->args[stack.parameter].get()];
      }
    }
    if (unfilled.empty()) return f;
    return Rewrite(unfilled, bound, reads).apply(f);
  }

 private:
  class Rewrite : public RewriterOutsidePrimitives {
   public:
    Rewrite(const std::unordered_map<const Node*, std::vector<size_t>>& unfilled,
            const Bindings& bound, const std::unordered_map<const Node*, int>& reads)
        : unfilled_(unfilled) {
      for (const auto& [call, args] : unfilled) {
        for (size_t i : args) {
          const Node* v = as<CallNode>(call)->args[i].get();
          values_.emplace(v, bound.at(v));
          if (reads.at(v) == 0) unread_.insert(v);
        }
      }
    }

    NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
      auto* before = as<LetNode>(original);
      if (before == nullptr) return rebuilt;
      auto* l = as<LetNode>(rebuilt);
      if (unread_.contains(l->var.get())) return l->body;
      auto it = unfilled_.find(before->value.get());
      if (it == unfilled_.end()) return rebuilt;
      auto& c = *as<CallNode>(l->value);
      std::vector<Expr> args(c.args.begin(), c.args.end());
      std::vector<std::pair<Var, Expr>> made;
      for (size_t i : it->second) {
        auto& fill = *as<CallNode>(values_.at(args[i].get()));
        const FunctionNode& kernel = *primitive_of(fill);
        Dict attrs = kernel.attrs;
        attrs[attr::kUnwritten] = AttrValue(int64_t{1});
        // Each function binds variables of its own.
        std::vector<Var> params;
        std::unordered_map<const Node*, NodeRef> renamed;
        for (const Var& p : kernel.params) {
          params.push_back(var(p->name_hint, p->type, p->span));
          renamed.emplace(p.get(), params.back());
        }
        Expr body = Expr::unchecked(substitute(kernel.body, renamed, family::expr));
        Function none =
            function(std::move(params), body, body->type, {}, std::move(attrs), kernel.span);
        Var v = var("unwritten", args[i]->type, fill.span);
        made.emplace_back(v, call(none, fill.args, nullptr, fill.span));
        args[i] = v;
      }
      Expr out = let(l->var, call(c.op, args, c.attrs, c.span, c.type_args), l->body, l->span);
      for (size_t i = made.size(); i-- > 0;) {
        out = let(made[i].first, made[i].second, out, made[i].second->span);
      }
      return out;
    }

   private:
    const std::unordered_map<const Node*, std::vector<size_t>>& unfilled_;
    Bindings values_;                         // the fills
    std::unordered_set<const Node*> unread_;  // those that nothing else reads
  };

  // Whether a kernel makes the argument, and the call of the loop writes all of its lines.
  bool fills_in_vain(const CallNode& c, const CountedLoop::Stack& stack, const CountedLoop& loop,
                     const Bindings& bound) const {
    const Expr& filled = c.args[stack.parameter];
    auto fill = bound.find(filled.get());
    auto* made = fill == bound.end() ? nullptr : as<CallNode>(fill->second);
    auto* kernel = made == nullptr ? nullptr : primitive_of(*made);
    auto* type = as<TensorTypeNode>(filled->type);
    if (kernel == nullptr || type == nullptr || type->dtype.is_string() ||
        kernel->attrs.contains(attr::kUnwritten) || kernel->attrs.contains(attr::kDevice)) {
      return false;
    }
    const auto lines = affine_of(type->shape[0]);
    const auto count = at_call(loop.count, c, loop, bound);
    const auto line = at_call(stack.line, c, loop, bound);
    if (!lines || count != lines || !line) return false;
    // The first line is 0, or the last; the counter begins at 0.
    const auto begin = affine_of(c.args[loop.counter], bound);
    if (begin != Affine{}) return false;
    if (*line == Affine{}) return stack.line.of.at(loop.counter_var()) == 1;
    Affine last = *lines;
    last.number -= 1;
    return *line == last && stack.line.of.at(loop.counter_var()) == ~uint64_t{0};
  }

  // What is in terms of a loop's parameters, in terms of what a call gives for them.
  static std::optional<Affine> at_call(const Affine& e, const CallNode& c, const CountedLoop& loop,
                                       const Bindings& bound) {
    Affine out;
    out.number = e.number;
    for (const auto& [v, times] : e.of) {
      const auto value = affine_of(c.args[place_of(v, *loop.function).value()], bound);
      if (!value) return std::nullopt;
      out.add(*value, times);
    }
    return out;
  }

  std::unordered_map<std::string, CountedLoop> loops_;
};

Module run_omit_fills(const Module& mod, PassContext&) {
  const Omission omission(mod);
  if (omission.empty()) return mod;
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    return f->is_primitive() ? f : omission.in(f);
  });
}

}  // namespace

const Pass kOmitFills{"OmitFills",
                      2,
                      Form::anf,
                      Form::anf,
                      "Leaves out fills of tensors that a loop writes line by line.",
                      run_omit_fills};

}  // namespace relay
