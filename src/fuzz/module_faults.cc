// Faults of passes over Relay that move effects, control and functions: well-typed programs that
// mean something else.
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "analysis/calls.h"
#include "analysis/purity.h"
#include "fuzz/faults.h"
#include "fuzz/module_edits.h"
#include "node/structural.h"
#include "node/walk.h"

namespace relay::fuzz {
namespace {

bool calls_function(const CallNode& c) { return isa<GlobalVarNode>(c.op) || isa<VarNode>(c.op); }

// How often variables are used, not counting where they are bound.
std::unordered_map<const Node*, int> uses_of(const Module& mod) {
  std::unordered_map<const Node*, int> uses;
  auto use = [&](const Expr& e) {
    if (isa<VarNode>(e)) ++uses[e.get()];
  };
  visit(mod, [&](const Node& n) {
    if (auto* l = as<LetNode>(&n)) {
      use(l->value);
      use(l->body);
    } else if (auto* f = as<FunctionNode>(&n)) {
      use(f->body);
    } else if (auto* c = as<ClauseNode>(&n)) {
      use(c->rhs);
    } else if (isa<ExprNode>(&n)) {
      for_each_child(n, [&](const NodeRef& child) {
        if (auto* e = as<ExprNode>(child)) use(ref(*e));
      });
    }
  });
  return uses;
}

// ---- Effects -----------------------------------------------------------------------------------

Module loses_a_write(const Module&, const Module& after) {
  return edited(after, [](const Expr& e) -> Expr {
    return isa<RefWriteNode>(e) ? Expr(tuple({})) : nullptr;
  });
}

Module drops_unused_calls(const Module&, const Module& after) {
  auto uses = uses_of(after);
  return edited(after, [&](const Expr& e) -> Expr {
    auto* l = as<LetNode>(e);
    auto* c = l == nullptr ? nullptr : as<CallNode>(l->value);
    return c != nullptr && calls_function(*c) && uses[l->var.get()] == 0 ? l->body : nullptr;
  });
}

// let x = v; let y = w; b -> let y = w; let x = v; b, of two values with effects.
Module swaps_effects(const Module&, const Module& after) {
  Purity purity(after);
  auto uses = [](const Expr& e, const Var& v) {
    bool found = false;
    post_order(
        e, [&](const Node& n) { found |= &n == v.get(); }, family::program);
    return found;
  };
  std::unordered_set<const Node*> swappable;
  visit(after, [&](const Node& n) {
    auto* first = as<LetNode>(&n);
    auto* second = first == nullptr ? nullptr : as<LetNode>(first->body);
    if (second == nullptr || purity.of(first->value).pure() || purity.of(second->value).pure())
      return;
    if (!uses(second->value, first->var)) swappable.insert(second->var.get());
  });
  return edited(after, [&](const Expr& e) -> Expr {
    auto* first = as<LetNode>(e);
    auto* second = first == nullptr ? nullptr : as<LetNode>(first->body);
    if (second == nullptr || !swappable.contains(second->var.get())) return nullptr;
    return let(second->var, second->value, let(first->var, first->value, second->body));
  });
}

// let x = f(y); b -> let x = (f(y); f(y)); b
Module evaluates_twice(const Module&, const Module& after) {
  return edited(after, [](const Expr& e) -> Expr {
    auto* l = as<LetNode>(e);
    auto* c = l == nullptr ? nullptr : as<CallNode>(l->value);
    if (c == nullptr || !calls_function(*c)) return nullptr;
    Var once = var("again", c->type);
    return let(once, l->value, let(l->var, with_args(*c, c->args), l->body));
  });
}

// let x = ref_read(r); b -> b[ref_read(r)/x]
Module moves_reads(const Module& before, const Module&) {
  return edited(before, [](const Expr& e) -> Expr {
    auto* l = as<LetNode>(e);
    if (l == nullptr || !isa<RefReadNode>(l->value)) return nullptr;
    return cast<ExprNode>(substitute(l->body, {{l->var.get(), l->value}}, family::program));
  });
}

// ref_read(r) -> the value with which r was made.
Module reads_what_was_first(const Module& before, const Module&) {
  std::unordered_map<const Node*, Expr> made;
  visit(before, [&](const Node& n) {
    auto* l = as<LetNode>(&n);
    auto* r = l == nullptr ? nullptr : as<RefCreateNode>(l->value);
    if (r != nullptr && (isa<ConstantNode>(r->value) || isa<VarNode>(r->value))) {
      made[l->var.get()] = r->value;
    }
  });
  return edited(before, [&](const Expr& e) -> Expr {
    auto* r = as<RefReadNode>(e);
    auto it = r == nullptr ? made.end() : made.find(r->ref.get());
    return it == made.end() ? nullptr : it->second;
  });
}

// A reference that is written gets copies: one for each write.
Module copies_references(const Module& before, const Module&) {
  std::unordered_map<const Node*, Expr> made;
  visit(before, [&](const Node& n) {
    auto* l = as<LetNode>(&n);
    auto* r = l == nullptr ? nullptr : as<RefCreateNode>(l->value);
    if (r != nullptr && (isa<ConstantNode>(r->value) || isa<VarNode>(r->value))) {
      made[l->var.get()] = r->value;
    }
  });
  return edited(before, [&](const Expr& e) -> Expr {
    auto* w = as<RefWriteNode>(e);
    auto it = w == nullptr ? made.end() : made.find(w->ref.get());
    return it == made.end() ? nullptr : Expr(ref_write(ref_create(it->second), w->value));
  });
}

// ---- Control and data --------------------------------------------------------------------------

Module swaps_branches(const Module& before, const Module&) {
  return edited(before, [](const Expr& e) -> Expr {
    auto* i = as<IfNode>(e);
    return i == nullptr ? nullptr : Expr(if_(i->cond, i->false_branch, i->true_branch, i->span));
  });
}

// if (c) { a } else { let x = v; b } -> let x = v; if (c) { a } else { b }
Module hoists_out_of_branches(const Module&, const Module& after) {
  return edited(after, [](const Expr& e) -> Expr {
    auto* i = as<IfNode>(e);
    auto* l = i == nullptr ? nullptr : as<LetNode>(i->false_branch);
    if (l == nullptr) return nullptr;
    return let(l->var, l->value, if_(i->cond, i->true_branch, l->body, i->span));
  });
}

Module takes_the_last_clause_first(const Module& before, const Module&) {
  return edited(before, [](const Expr& e) -> Expr {
    auto* m = as<MatchNode>(e);
    if (m == nullptr || m->clauses.size() < 2) return nullptr;
    return match(m->data, {m->clauses.rbegin(), m->clauses.rend()}, m->complete, m->span);
  });
}

// Sums of floats in kernels of loops, which ends them where they would have ended.
Module subtracts_in_loops(const Module&, const Module& after) {
  return edited(after, [](const Expr& e) -> Expr {
    auto* f = as<FunctionNode>(e);
    if (f == nullptr || !f->is_primitive() || !isa<LetNode>(f->body)) return nullptr;
    Expr body = cast<ExprNode>(rewrite(
        f->body,
        [](const NodeRef&, NodeRef rebuilt) -> NodeRef {
          auto* c = as<CallNode>(rebuilt);
          auto* t = c == nullptr ? nullptr : as<TensorTypeNode>(c->type);
          if (t == nullptr || !t->dtype.is_floating() || !is_call_to(ref(*c), "add"))
            return rebuilt;
          return call("subtract", c->args, nullptr, c->span);
        },
        family::program));
    if (body == f->body) return nullptr;
    return function(f->params, body, f->ret_type, f->type_params, f->attrs, f->span);
  });
}

// A clause of one constructor is taken for that of another with equal fields.
Module confuses_constructors(const Module& before, const Module&) {
  return edited(before, [](const Expr& e) -> Expr {
    auto* m = as<MatchNode>(e);
    if (m == nullptr || m->clauses.size() < 2) return nullptr;
    std::vector<Clause> clauses = m->clauses;
    for (size_t i = 0; i + 1 < clauses.size(); ++i) {
      auto* a = as<PatternConstructorNode>(clauses[i]->lhs);
      auto* b = as<PatternConstructorNode>(clauses[i + 1]->lhs);
      if (a == nullptr || b == nullptr || !a->patterns.empty() || !b->patterns.empty()) continue;
      clauses[i] = clause(m->clauses[i]->lhs, m->clauses[i + 1]->rhs);
      clauses[i + 1] = clause(m->clauses[i + 1]->lhs, m->clauses[i]->rhs);
      return match(m->data, clauses, m->complete, m->span);
    }
    return nullptr;
  });
}

// Cons(a, b) and (a, b) in patterns bind the fields the wrong way round.
Module swaps_pattern_fields(const Module& before, const Module&) {
  return map_functions(before, [](const GlobalVar&, const Function& f) {
    auto post = [](const NodeRef&, NodeRef rebuilt) -> NodeRef {
      auto variables = [](const std::vector<Pattern>& list) -> std::optional<std::vector<Pattern>> {
        for (size_t i = 0; i + 1 < list.size(); ++i) {
          auto* a = as<PatternVarNode>(list[i]);
          auto* b = as<PatternVarNode>(list[i + 1]);
          if (a == nullptr || b == nullptr || !same_type(a->var, b->var)) continue;
          std::vector<Pattern> out = list;
          std::swap(out[i], out[i + 1]);
          return out;
        }
        return std::nullopt;
      };
      if (auto* p = as<PatternConstructorNode>(rebuilt)) {
        auto list = variables(p->patterns);
        if (!list) return rebuilt;
        return make<PatternConstructorNode>([&](PatternConstructorNode& n) {
          n.constructor = p->constructor;
          n.patterns = *list;
          n.span = p->span;
        });
      }
      if (auto* p = as<PatternTupleNode>(rebuilt)) {
        auto list = variables(p->patterns);
        if (!list) return rebuilt;
        return make<PatternTupleNode>([&](PatternTupleNode& n) {
          n.patterns = *list;
          n.span = p->span;
        });
      }
      return rebuilt;
    };
    return cast<FunctionNode>(rewrite(f, post, family::program));
  });
}

Module takes_another_field(const Module&, const Module& after) {
  return edited(after, [](const Expr& e) -> Expr {
    auto* get = as<TupleGetItemNode>(e);
    auto* type = get == nullptr ? nullptr : as<TupleTypeNode>(get->tuple->type);
    if (type == nullptr) return nullptr;
    for (size_t i = 0; i < type->fields.size(); ++i) {
      if (static_cast<int64_t>(i) == get->index || !structural_equal(type->fields[i], get->type)) {
        continue;
      }
      return tuple_get_item(get->tuple, static_cast<int64_t>(i), get->span);
    }
    return nullptr;
  });
}

Module swaps_tuple_fields(const Module&, const Module& after) {
  return edited(after, [](const Expr& e) -> Expr {
    auto* t = as<TupleNode>(e);
    auto fields = t == nullptr ? std::nullopt : swapped(t->fields);
    return fields ? Expr(tuple(*fields, t->span)) : nullptr;
  });
}

// ---- Functions ---------------------------------------------------------------------------------

Module swaps_arguments_of_functions(const Module& before, const Module&) {
  return edited(before, [](const Expr& e) -> Expr {
    auto* c = as<CallNode>(e);
    return c != nullptr && calls_function(*c) ? swap_args(*c) : nullptr;
  });
}

Module swaps_constructor_fields(const Module&, const Module& after) {
  return edited(after, [](const Expr& e) -> Expr {
    auto* c = as<CallNode>(e);
    return c != nullptr && isa<ConstructorNode>(c->op) ? swap_args(*c) : nullptr;
  });
}

Module swaps_parameters_of_closures(const Module&, const Module& after) {
  return edited(after, [](const Expr& e) -> Expr {
    auto* f = as<FunctionNode>(e);
    if (f == nullptr || f->params.size() < 2 || f->is_primitive()) return nullptr;
    std::vector<Expr> params(f->params.begin(), f->params.end());
    auto list = swapped(params);
    if (!list) return nullptr;
    std::vector<Var> vars;
    for (const Expr& p : *list) vars.push_back(cast<VarNode>(p));
    return function(vars, f->body, f->ret_type, f->type_params, f->attrs, f->span);
  });
}

// Calls of a global reach another one of the same type.
Module calls_another_function(const Module&, const Module& after) {
  return edited(after, [&](const Expr& e) -> Expr {
    auto* c = as<CallNode>(e);
    if (c == nullptr || !isa<GlobalVarNode>(c->op)) return nullptr;
    for (const GlobalVar& other : after->global_vars) {
      if (structural_equal(other, c->op) || !same_type(other, c->op)) continue;
      return call(other, c->args, c->attrs, c->span, c->type_args);
    }
    return nullptr;
  });
}

// ---- The list ----------------------------------------------------------------------------------

constexpr Fault kModuleFaults[] = {
    {"loses_a_write", "DeadCodeElimination", "A write whose result is unused is dead.",
     loses_a_write},
    {"drops_unused_calls", "DeadCodeElimination",
     "A call of a function is taken to have no effect.", drops_unused_calls},
    {"drops_unused_calls_in_a_normal_form", "ToANormalForm",
     "Only what is used gets a name, and the rest is lost.", drops_unused_calls},
    {"swaps_effects", "ToANormalForm", "Operands are evaluated from right to left.", swaps_effects},
    {"swaps_effects_of_blocks", "ToBasicBlockNormalForm",
     "Values are named in the order of a hash map.", swaps_effects},
    {"evaluates_twice", "Inline", "An argument with effects is copied to each of its uses.",
     evaluates_twice},
    {"moves_reads", "ToGraphNormalForm",
     "A read has no name and happens where it is used, behind writes.", moves_reads},
    {"reads_what_was_first", "FoldConstant", "A reference is taken to hold what it was made with.",
     reads_what_was_first},
    {"copies_references", "ToGraphNormalForm", "A new reference is copied to each of its uses.",
     copies_references},
    {"swaps_branches", "SimplifyExpr", "A negated condition leaves the branches as they were.",
     swaps_branches},
    {"hoists_out_of_branches", "ToBasicBlockNormalForm",
     "The scope of a value is too wide: it is computed whichever branch is taken.",
     hoists_out_of_branches},
    {"takes_the_last_clause_first", "DeadCodeElimination",
     "Clauses are rebuilt in the wrong order.", takes_the_last_clause_first},
    {"confuses_constructors", "EtaExpand",
     "A constructor is told by its fields and not by its tag.", confuses_constructors},
    {"swaps_pattern_fields", "Inline", "Renamed variables of a pattern are matched up wrongly.",
     swaps_pattern_fields},
    {"takes_another_field", "DeadCodeElimination", "Fields of a tuple are renumbered.",
     takes_another_field},
    {"swaps_tuple_fields", "ToANormalForm", "Fields of a tuple are put back in another order.",
     swaps_tuple_fields},
    {"swaps_arguments_of_functions", "Inline", "Arguments are bound to the wrong parameters.",
     swaps_arguments_of_functions},
    {"swaps_constructor_fields", "EtaExpand",
     "A constructor's fields are bound in the wrong order.", swaps_constructor_fields},
    {"swaps_parameters_of_closures", "EtaExpand",
     "New parameters are in another order than the old.", swaps_parameters_of_closures},
    {"calls_another_function", "RemoveUnusedFunctions",
     "Functions of one type are taken for equal.", calls_another_function},
    {"forgets_writes_of_calls", "PartialEvaluate", "What a called function writes is not seen.",
     reads_what_was_first},
    {"takes_the_wrong_branch", "PartialEvaluate",
     "A condition that is known is taken for its opposite.", swaps_branches},
    {"passes_captured_values_swapped", "LambdaLift",
     "What a function captures is passed in another order.", swaps_parameters_of_closures},
    {"swaps_effects_of_continuations", "ToCPS", "The continuation runs ahead of what it waits for.",
     swaps_effects},
    {"continues_with_the_other_branch", "ToCPS", "Branches get each other's continuation.",
     swaps_branches},
    {"subtracts_in_loops", "OutlineLoops", "A kernel of a loop takes the rule of another operator.",
     subtracts_in_loops},
    {"tests_the_last_clause_first", "CompileMatch", "Rows of the matrix lose their order.",
     takes_the_last_clause_first},
    {"confuses_tags", "CompileMatch", "A switch goes to the next constructor's clause.",
     confuses_constructors},
    {"adds_nothing_to_cells", "LazyGradientInit", "What arrives at a cell is lost.", loses_a_write},
    {"gives_results_to_other_parts", "BatchTrees",
     "What the parts of a node have computed goes back to them in another order.",
     swaps_pattern_fields},
    {"keeps_captured_values_swapped", "Defunctionalization",
     "What a function captures is kept in another order than it is read.",
     swaps_constructor_fields},
};

}  // namespace

std::span<const Fault> module_faults() { return kModuleFaults; }

}  // namespace relay::fuzz
