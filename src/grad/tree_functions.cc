#include "grad/tree_functions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "analysis/components.h"
#include "analysis/purity.h"
#include "ir/scope.h"
#include "node/node_map.h"
#include "node/walk.h"

namespace relay {
namespace {

constexpr uint32_t kPrograms = family::program;

struct Refused {
  Span span;
  std::string why;
};

const std::string* callee(const Expr& e) {
  auto* c = as<CallNode>(e);
  auto* g = c == nullptr ? nullptr : as<GlobalVarNode>(c->op);
  return g == nullptr ? nullptr : &g->name_hint;
}

bool any_node(const Expr& e, const std::function<bool(const Node&)>& is) {
  bool found = false;
  post_order(
      e, [&](const Node& n) { found |= is(n); }, kPrograms);
  return found;
}

bool mentions(const Expr& e, const Var& v) {
  return v && any_node(e, [&](const Node& n) { return &n == v.get(); });
}

LetChain chain_of(Expr e) {
  LetChain out;
  while (auto* l = as<LetNode>(e)) {
    out.lets.emplace_back(l->var, l->value);
    e = l->body;
  }
  if (!is_leaf(*e.get())) {
    Var v = var("result", e->type, e->span);
    out.lets.emplace_back(v, e);
    e = v;
  }
  out.result = e;
  return out;
}

// The match that is all of a function's body, and the parameter that it looks at.
std::optional<std::pair<const MatchNode*, size_t>> whole_match(const Function& f) {
  const ExprNode* body = f->body.get();
  if (auto* l = as<LetNode>(body); l != nullptr && l->body.get() == l->var.get())
    body = l->value.get();
  auto* m = as<MatchNode>(body);
  if (m == nullptr) return std::nullopt;
  for (size_t i = 0; i < f->params.size(); ++i) {
    if (f->params[i].get() == m->data.get()) return std::pair{m, i};
  }
  return std::nullopt;
}

// The names of a constructor's fields; nullopt where a pattern looks further into them.
std::optional<std::vector<Var>> field_names(const PatternConstructorNode& p) {
  std::vector<Var> out;
  for (const Pattern& field : p.patterns) {
    auto* v = as<PatternVarNode>(field);
    if (v == nullptr && !isa<PatternWildcardNode>(field)) return std::nullopt;
    out.push_back(v == nullptr ? Var() : v->var);
  }
  return out;
}

bool is_special(const Function& f) {
  return !f->attrs.empty() ||
         std::ranges::any_of(f->type_params, [](const TypeVar& v) { return v->kind != Kind::Dim; });
}

// ---- Loops over lists

std::optional<ListLoop> list_loop(const std::string& name, const Function& f) {
  auto found = whole_match(f);
  if (!found || is_special(f) || found->first->clauses.size() != 2) return std::nullopt;
  ListLoop out{.name = name, .function = f, .list = found->second};
  std::vector<Var> fields;
  for (const Clause& c : found->first->clauses) {
    auto* p = as<PatternConstructorNode>(c->lhs);
    auto names = p == nullptr ? std::nullopt : field_names(*p);
    if (!names) return std::nullopt;
    if (names->empty()) {
      out.end = c->rhs;
    } else if (names->size() == 2) {
      fields = *names;
      out.more = p->constructor;
      out.step = chain_of(c->rhs);
    }
  }
  const Var& list = f->params[out.list];
  if (!out.end || fields.empty() || out.step.lets.empty() || mentions(out.end, list))
    return std::nullopt;
  // The last thing is the call of itself on what is left.
  auto [last, value] = out.step.lets.back();
  const std::string* self = callee(value);
  if (self == nullptr || *self != name || out.step.result.get() != last.get()) return std::nullopt;
  out.step.lets.pop_back();
  out.step.result = value;
  out.again = as<CallNode>(value);
  const Expr& left = out.again->args[out.list];
  size_t rest = left.get() == fields[0].get() ? 0 : 1;
  out.element = 1 - rest;
  out.item = fields[out.element];
  if (!out.item || left.get() != fields[rest].get()) return std::nullopt;
  for (size_t i = 0; i < f->params.size(); ++i) {
    const Expr& next = out.again->args[i];
    out.unchanged.push_back(next.get() == f->params[i].get());
    if (i != out.list && (next.get() == list.get() || next.get() == fields[0].get() ||
                          next.get() == fields[1].get()))
      return std::nullopt;
  }
  for (size_t i = 0; i < out.step.lets.size(); ++i) {
    const Expr& v = out.step.lets[i].second;
    if (mentions(v, list) || mentions(v, fields[rest])) return std::nullopt;
    if (any_node(v, [&](const Node& n) {
          auto* g = as<GlobalVarNode>(&n);
          return g != nullptr && g->name_hint == name;
        }))
      return std::nullopt;
    if (!mentions(v, out.item)) continue;
    if (callee(v) == nullptr) return std::nullopt;
    out.calls.push_back(i);
  }
  if (out.calls.empty()) return std::nullopt;
  return out;
}

// ---- Families

// What of a component is what.
class FamilyReader {
 public:
  FamilyReader(const Module& mod, const Purity& purity, std::vector<std::string> names)
      : mod_(mod), purity_(purity) {
    for (const std::string& name : names) {
      inside_.insert(name);
      Function f = mod->find(name);
      std::optional<ListLoop> loop = names.size() > 1 ? list_loop(name, f) : std::nullopt;
      if (loop) {
        loop_at_[name] = out_.loops.size();
        out_.loops.push_back(std::move(*loop));
      } else {
        member_at_[name] = out_.members.size();
        out_.members.push_back({.name = name, .function = f});
      }
    }
  }

  TreeFamily read() {
    for (TreeFunction& m : out_.members) read_function(m);
    share();
    bool named = false;
    for (const TreeFunction& m : out_.members) named |= !m.function->type_params.empty();
    for (const ListLoop& l : out_.loops) named |= !l.function->type_params.empty();
    // Each has names of its own for them, and a loop becomes a part of the function that calls it.
    if (named && !out_.loops.empty()) {
      throw Refused{out_.members[0].function->span,
                    "it goes through lists of parts, and its sizes are known by name only"};
    }
    return std::move(out_);
  }

 private:
  void read_function(TreeFunction& m) {
    const Function& f = m.function;
    auto found = whole_match(f);
    if (!found) throw Refused{f->span, "its body is no match on a parameter"};
    if (is_special(f)) throw Refused{f->span, "it has attributes, or is for any type"};
    if (!row_types(f->body->type))
      throw Refused{
          f->span, "its result is not made of tensors of known sizes: " + to_string(f->body->type)};
    m.tree = found->second;
    const Var& tree = f->params[m.tree];
    std::set<std::string> seen;
    for (const Clause& c : found->first->clauses) {
      auto* p = as<PatternConstructorNode>(c->lhs);
      auto names = p == nullptr ? std::nullopt : field_names(*p);
      if (!names || !seen.insert(p->constructor->name_hint).second)
        throw Refused{c->lhs->span, "a clause is for more, or less, than one constructor"};
      if (mentions(c->rhs, tree))
        throw Refused{c->rhs->span, "the tree itself is used in a clause"};
      m.clauses.push_back(
          {.constructor = p->constructor, .fields = *names, .body = chain_of(c->rhs)});
      read_clause(m.clauses.back());
    }
    size_t all =
        mod_->find_type(m.clauses[0].constructor->belong_to->name_hint)->constructors.size();
    if (seen.size() != all) throw Refused{f->span, "a constructor has no clause"};
  }

  void read_clause(TreeClause& c) {
    for (size_t i = 0; i < c.body.lets.size(); ++i) {
      const Expr& value = c.body.lets[i].second;
      const std::string* name = callee(value);
      if (name != nullptr && inside_.contains(*name)) {
        bool is_loop = loop_at_.contains(*name);
        size_t of = is_loop ? loop_at_[*name] : member_at_[*name];
        (is_loop ? c.loops : c.calls).push_back({i, of, SIZE_MAX});
        continue;
      }
      if (any_node(value, [&](const Node& n) {
            auto* g = as<GlobalVarNode>(&n);
            return g != nullptr && inside_.contains(g->name_hint);
          }))
        throw Refused{value->span, "it calls itself under a condition, or within a function"};
      Effects effects = purity_.of(value);
      if ((effects | Effects::partial()) != Effects::partial())
        throw Refused{value->span, "a clause has effects"};
    }
    for (size_t k = 0; k < c.fields.size(); ++k) {
      const Var& field = c.fields[k];
      if (!field) continue;
      bool used = c.body.result.get() == field.get();
      for (size_t i = 0; i < c.body.lets.size(); ++i) {
        const Expr& value = c.body.lets[i].second;
        if (!mentions(value, field)) continue;
        bool is_part = false;
        for (std::vector<TreeClause::Part>* parts : {&c.calls, &c.loops}) {
          for (TreeClause::Part& p : *parts) {
            if (p.let != i) continue;
            size_t at = parts == &c.calls ? tree_of(p.of) : out_.loops[p.of].list;
            if (as<CallNode>(value)->args[at].get() != field.get()) continue;
            is_part = true;
            p.field = k;
          }
        }
        used |= !is_part;
      }
      if (!used) continue;
      auto* tensor = as<TensorTypeNode>(field->type);
      if (tensor == nullptr || !row_types(field->type) || !tensor->const_shape())
        throw Refused{field->span, "%" + field->name_hint +
                                       " is not a tensor of known sizes, and used "
                                       "for more than to call the function on it"};
      c.payload.push_back(k);
    }
    for (const auto* parts : {&c.calls, &c.loops}) {
      for (const TreeClause::Part& p : *parts) {
        if (p.field == SIZE_MAX)
          throw Refused{c.body.lets[p.let].second->span,
                        "it is called on what is no part of its tree"};
      }
    }
  }

  size_t tree_of(size_t member) const {
    auto found = whole_match(out_.members[member].function);
    if (!found)
      throw Refused{out_.members[member].function->span, "its body is no match on a parameter"};
    return found->second;
  }

  // Finds the order of what is the same at all nodes, from the first function on.
  void share() {
    TreeFunction& first = out_.members[0];
    for (size_t i = 0; i < first.function->params.size(); ++i) {
      if (i != first.tree) first.shared.push_back(i);
    }
    reached_.assign(out_.members.size(), false);
    reached_[0] = true;
    std::vector<size_t> todo{0};
    while (!todo.empty()) {
      size_t at = todo.back();
      todo.pop_back();
      for (const TreeClause& c : out_.members[at].clauses) {
        for (const TreeClause::Part& p : c.calls)
          pass_on(at, *as<CallNode>(c.body.lets[p.let].second), p.of, nullptr, todo);
        for (const TreeClause::Part& p : c.loops) {
          const ListLoop& loop = out_.loops[p.of];
          for (size_t let : loop.calls) {
            auto* call = as<CallNode>(loop.step.lets[let].second);
            auto member = member_at_.find(*callee(Expr(call)));
            if (member == member_at_.end())
              throw Refused{call->span, "a loop over its parts calls another function on them"};
            LoopCall around{&loop, as<CallNode>(c.body.lets[p.let].second)};
            pass_on(at, *call, member->second, &around, todo);
          }
        }
      }
    }
    for (size_t m = 0; m < out_.members.size(); ++m) {
      if (!reached_[m])
        throw Refused{out_.members[m].function->span, "it is not called from the others' clauses"};
    }
  }

  struct LoopCall {
    const ListLoop* loop;
    const CallNode* call;
  };

  void pass_on(size_t caller, const CallNode& c, size_t to, const LoopCall* around,
               std::vector<size_t>& todo) {
    const TreeFunction& from = out_.members[caller];
    TreeFunction& m = out_.members[to];
    std::vector<size_t> order;
    for (size_t shared : from.shared) {
      const Node* param = from.function->params[shared].get();
      std::optional<size_t> position;
      for (size_t i = 0; i < c.args.size(); ++i) {
        if (i != m.tree && argument(c.args[i], around) == param) position = i;
      }
      if (!position) break;
      order.push_back(*position);
    }
    if (order.size() + 1 != m.function->params.size() || order.size() != from.shared.size())
      throw Refused{c.span,
                    "what @" + m.name + " is given besides its tree is not the same at all nodes"};
    if (!reached_[to]) {
      reached_[to] = true;
      m.shared = order;
      todo.push_back(to);
    } else if (m.shared != order) {
      throw Refused{c.span,
                    "what @" + m.name + " is given besides its tree is not the same at all nodes"};
    }
  }

  // The argument of a call, or what a loop around it was given for it.
  static const Node* argument(const Expr& arg, const LoopCall* around) {
    if (around == nullptr) return arg.get();
    const Function& f = around->loop->function;
    for (size_t i = 0; i < f->params.size(); ++i) {
      if (f->params[i].get() == arg.get() && around->loop->unchanged[i])
        return around->call->args[i].get();
    }
    return nullptr;
  }

  const Module& mod_;
  const Purity& purity_;
  std::set<std::string> inside_;
  std::map<std::string, size_t> member_at_, loop_at_;
  std::vector<bool> reached_;
  TreeFamily out_;
};

bool branches(const TreeFamily& f) {
  return std::ranges::any_of(f.members, [](const TreeFunction& m) {
    return std::ranges::any_of(m.clauses, [](const TreeClause& c) {
      return c.calls.size() + c.loops.size() > 1 || !c.loops.empty();
    });
  });
}

size_t calls_of(const Function& f, const std::vector<std::string>& names) {
  size_t count = 0;
  post_order(
      f,
      [&](const Node& n) {
        auto* c = as<CallNode>(&n);
        const std::string* name = c == nullptr ? nullptr : callee(Expr(c));
        count += name != nullptr && std::ranges::find(names, *name) != names.end();
      },
      kPrograms);
  return count;
}

// Whether a loop sees its element only as the tree of a function of a family, with all else the same for
// all elements.
bool is_over_trees(const ListLoop& loop, const std::map<std::string, const TreeFunction*>& known) {
  return std::ranges::all_of(loop.calls, [&](size_t let) {
    auto* call = as<CallNode>(loop.step.lets[let].second);
    auto f = known.find(*callee(Expr(call)));
    if (f == known.end()) return false;
    for (size_t i = 0; i < call->args.size(); ++i) {
      const Node* arg = call->args[i].get();
      bool same = isa<ConstantNode>(arg);
      for (size_t k = 0; k < loop.unchanged.size(); ++k)
        same |= loop.unchanged[k] && loop.function->params[k].get() == arg;
      if (i == f->second->tree ? arg != loop.item.get() : !same) return false;
    }
    return true;
  });
}

}  // namespace

std::optional<std::vector<TensorType>> row_types(const Type& type) {
  auto tensors = flatten_tensor_types(type);
  if (!tensors || tensors->empty()) return std::nullopt;
  for (const TensorType& t : *tensors) {
    if (t->shape_var || t->dtype_var || t->dtype.is_string() ||
        std::ranges::any_of(t->shape, is_any))
      return std::nullopt;
  }
  return tensors;
}

TreeFunctions find_tree_functions(const Module& mod) {
  TreeFunctions out;
  std::map<std::string, size_t> number;
  for (size_t i = 0; i < mod->functions.size(); ++i) number[mod->global_vars[i]->name_hint] = i;
  NumberLists edges;
  std::vector<bool> calls_itself;
  for (const Function& f : mod->functions) {
    std::set<size_t> to;
    post_order(
        f,
        [&](const Node& n) {
          auto* g = as<GlobalVarNode>(&n);
          auto it = g == nullptr ? number.end() : number.find(g->name_hint);
          if (it != number.end()) to.insert(it->second);
        },
        kPrograms);
    for (size_t t : to) edges.add(t);
    calls_itself.push_back(to.contains(calls_itself.size()));
    edges.close();
  }
  Purity purity(mod);
  std::set<std::string> wanted;
  std::vector<ListLoop> loops;
  for (size_t i = 0; i < mod->functions.size(); ++i) {
    auto loop = list_loop(mod->global_vars[i]->name_hint, mod->functions[i]);
    if (!loop) continue;
    for (size_t let : loop->calls) wanted.insert(*callee(loop->step.lets[let].second));
    loops.push_back(std::move(*loop));
  }
  NumberLists components = strong_components(edges);
  for (size_t k = 0; k < components.size(); ++k) {
    std::vector<std::string> names;
    bool recursive = components[k].size() > 1, data = false, any_type = false;
    for (size_t i : components[k]) {
      const Function& f = mod->functions[i];
      names.push_back(mod->global_vars[i]->name_hint);
      recursive |= calls_itself[i];
      for (const Var& p : f->params)
        data |= isa<TypeCallNode>(p->type) || isa<GlobalTypeVarNode>(p->type);
      for (const TypeVar& v : f->type_params) any_type |= v->kind == Kind::Type;
    }
    std::ranges::sort(names);
    bool in_loops =
        std::ranges::any_of(names, [&](const std::string& n) { return wanted.contains(n); });
    // A loop over a list by itself is no family.
    bool is_loop = names.size() == 1 && std::ranges::any_of(loops, [&](const ListLoop& l) {
                     return l.name == names[0];
                   });
    if (!recursive || !data || any_type || is_loop) continue;
    try {
      TreeFamily family = FamilyReader(mod, purity, names).read();
      if (!branches(family) && !in_loops) continue;
      out.families.push_back(std::move(family));
    } catch (const Refused& r) {
      // A function that calls itself once goes along a list, which has one node at each depth; one
      // that gives data or references computes little at a node.
      bool many = in_loops || std::ranges::any_of(components[k], [&](size_t i) {
                    return calls_of(mod->functions[i], names) > 1;
                  });
      bool tensors = std::ranges::all_of(components[k], [&](size_t i) {
        return flatten_tensor_types(mod->functions[i]->body->type).has_value();
      });
      if (many && tensors) out.left.push_back({r.span, "@" + names[0], r.why});
    }
  }
  std::map<std::string, const TreeFunction*> known;
  for (const TreeFamily& family : out.families) {
    for (const TreeFunction& m : family.members) known[m.name] = &m;
  }
  for (ListLoop& loop : loops) {
    if (is_over_trees(loop, known)) out.loops.push_back(std::move(loop));
  }
  return out;
}

}  // namespace relay
