#include "frontend/common/branches.h"

#include <algorithm>

#include "base/codes/frontend.h"
#include "frontend/common/lists.h"

namespace relay::frontend {
namespace {

Expr one_or_tuple(const Builder& build, const std::vector<Expr>& parts) {
  return parts.size() == 1 ? parts[0] : build.tuple_of(parts);
}

// The expressions of values, with those of a known sequence one behind the other.
std::vector<Expr> parts_of(const Builder& build, const Values& values) {
  std::vector<Expr> out;
  for (const ValuePtr& v : values) {
    for (const ValuePtr& part : v->is_list ? v->list : Values{v})
      out.push_back(build.expr_of(part));
  }
  return out;
}

// `chosen` has the parts of values like these.
Values values_of(const Builder& build, const Expr& chosen, const Values& like, size_t count) {
  Values out;
  int64_t at = 0;
  auto next = [&] { return value_of(count == 1 ? chosen : build.item(chosen, at++)); };
  for (const ValuePtr& v : like) {
    if (!v->is_list) {
      out.push_back(next());
      continue;
    }
    Values items;
    for (size_t i = 0; i < v->list.size(); ++i) items.push_back(next());
    out.push_back(list_of(std::move(items)));
  }
  return out;
}

// A value that one branch leaves out, and what the other one has, as optionals.
void make_optional(const Builder& build, ValuePtr& a, ValuePtr& b) {
  ValuePtr &there = a->absent ? b : a, &missing = a->absent ? a : b;
  Expr e = there->is_list ? as_run_time_list(build, there) : build.expr_of(there);
  Type type = isa<TensorTypeNode>(e->type) ? opened(e->type) : e->type;
  Var v = var("there", type, build.span());
  e = let(v, e, v, build.span());
  there = value_of(library_call(build, "optional.some", {e}, {type}));
  missing = value_of(library_call(build, "optional.none", {}, {type}));
}

bool ranks_differ(const Expr& a, const Expr& b) {
  auto *x = as<TensorTypeNode>(a->type), *y = as<TensorTypeNode>(b->type);
  return x != nullptr && y != nullptr && x->rank() != y->rank() && x->dtype == y->dtype;
}

// One of two ways through the rest of a model.
struct Way {
  Scope scope;
  std::vector<Diagnostic> found;
  bool good = true;
};

Way follow(const Builder& build, const Values& values, const std::vector<std::string>& outputs,
           const Scope& around, const std::function<void(Scope& scope)>& rest) {
  ProgramBuilder& program = build.program();
  Way way;
  way.scope.parent = &around;
  way.found = program.apart([&] {
    for (size_t i = 0; i < outputs.size(); ++i) {
      program.define(way.scope, outputs[i], values[i], build.span());
    }
    rest(way.scope);
    way.good = !program.diagnostics().has_errors();
  });
  return way;
}

// What was reported before may have kept a way from its results.
bool are_sound(const Values& values) {
  return std::ranges::none_of(values, [](const ValuePtr& v) {
    return v->failed || std::ranges::any_of(v->list, &ModelValue::failed);
  });
}

}  // namespace

void import_both_ways(const Builder& build, const BranchesDiffer& branches,
                      const std::vector<std::string>& outputs, Scope& scope,
                      const std::vector<std::string>& results,
                      const std::function<void(Scope& scope)>& rest) {
  ProgramBuilder& program = build.program();
  const Span& span = build.span();
  // Of an operator that is made of others some outputs may be the same either way.
  if (branches.then_values.size() != outputs.size()) {
    throw UserError(program.open_branches(branches, span));
  }
  Way yes, no;
  program.nested(span, [&] {
    yes = follow(build, branches.then_values, outputs, scope, rest);
    no = follow(build, branches.else_values, outputs, scope, rest);
  });
  // What is a result and comes after the operator. One that no operator computes is reported where it is asked for.
  std::vector<std::string> after;
  for (const std::string& name : results) {
    bool computed = yes.scope.find(name) != nullptr && no.scope.find(name) != nullptr;
    if (scope.find(name) == nullptr && computed) after.push_back(name);
  }
  auto results_of = [&](const Way& way) {
    Values out;
    for (const std::string& name : after) out.push_back(way.scope.find(name));
    return out;
  };
  Values chosen;
  if (yes.good && no.good) {
    Values a = results_of(yes), b = results_of(no);
    if (are_sound(a) && are_sound(b)) {
      chosen = join_branches(build, branches.condition, std::move(a), std::move(b));
    }
  } else if (yes.good != no.good && are_type_errors(yes.good ? no.found : yes.found)) {
    Values values = results_of(yes.good ? yes : no);
    if (are_sound(values)) chosen = only_if(build, branches.condition, yes.good, values);
  } else {
    program.report(program.open_branches(branches, span));
    for (const Diagnostic& d : (yes.good ? no : yes).found) program.report(d);
  }
  for (size_t i = 0; i < after.size(); ++i) {
    program.define(scope, after[i], i < chosen.size() ? chosen[i] : failed_value(), span);
  }
}

Values join_branches(const Builder& build, const Expr& condition, Values a, Values b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i]->absent != b[i]->absent) make_optional(build, a[i], b[i]);
    if (a[i]->is_list == b[i]->is_list &&
        (!a[i]->is_list || a[i]->list.size() == b[i]->list.size())) {
      continue;
    }
    const ValuePtr& told = a[i]->is_list && a[i]->list.empty() ? b[i] : a[i];
    Type element = element_of(as_run_time_list(build, told)->type, "List");
    a[i] = value_of(as_run_time_list(build, a[i], element));
    b[i] = value_of(as_run_time_list(build, b[i], element));
  }
  std::vector<Expr> x = parts_of(build, a), y = parts_of(build, b);
  if (x.empty()) return a;
  for (size_t i = 0; i < x.size(); ++i) {
    if (ranks_differ(x[i], y[i])) throw BranchesDiffer{condition, a, b};
  }
  Expr chosen = if_(condition, one_or_tuple(build, x), one_or_tuple(build, y), build.span());
  return values_of(build, chosen, a, x.size());
}

Values only_if(const Builder& build, const Expr& condition, bool holds, const Values& values) {
  std::vector<Expr> parts = parts_of(build, values);
  if (parts.empty()) return values;
  Expr good = one_or_tuple(build, parts);
  Expr never = library_call(build, "branch.never", {}, {good->type});
  Expr chosen =
      holds ? if_(condition, good, never, build.span()) : if_(condition, never, good, build.span());
  return values_of(build, chosen, values, parts.size());
}

}  // namespace relay::frontend
