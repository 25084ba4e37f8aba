#include "frontend/onnx/branches.h"

#include <algorithm>

#include "base/codes/frontend.h"
#include "frontend/onnx/sequences.h"

namespace relay::importer {
namespace {

Expr one_or_tuple(NodeContext& ctx, const std::vector<Expr>& parts) {
  return parts.size() == 1 ? parts[0] : ctx.tuple_of(parts);
}

// The expressions of values, with those of a known sequence one behind the other.
std::vector<Expr> parts_of(NodeContext& ctx, const Values& values) {
  std::vector<Expr> out;
  for (const ValuePtr& v : values) {
    for (const ValuePtr& part : v->is_list ? v->list : Values{v}) out.push_back(ctx.expr_of(part));
  }
  return out;
}

// `chosen` has the parts of values like these.
Values values_of(NodeContext& ctx, const Expr& chosen, const Values& like, size_t count) {
  Values out;
  int64_t at = 0;
  auto next = [&] { return value_of(count == 1 ? chosen : ctx.item(chosen, at++)); };
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
void make_optional(NodeContext& ctx, ValuePtr& a, ValuePtr& b) {
  ValuePtr &there = a->absent ? b : a, &missing = a->absent ? a : b;
  Expr e = there->is_list ? as_run_time_list(ctx, there) : ctx.expr_of(there);
  Type type = isa<TensorTypeNode>(e->type) ? opened(e->type) : e->type;
  Var v = var("there", type, ctx.span());
  e = let(v, e, v, ctx.span());
  there = value_of(library_call(ctx, "optional.some", {e}, {type}));
  missing = value_of(library_call(ctx, "optional.none", {}, {type}));
}

bool ranks_differ(const Expr& a, const Expr& b) {
  auto *x = as<TensorTypeNode>(a->type), *y = as<TensorTypeNode>(b->type);
  return x != nullptr && y != nullptr && x->rank() != y->rank() && x->dtype == y->dtype;
}

}  // namespace

Values join_branches(NodeContext& ctx, const Expr& condition, Values a, Values b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i]->absent != b[i]->absent) make_optional(ctx, a[i], b[i]);
    if (a[i]->is_list == b[i]->is_list &&
        (!a[i]->is_list || a[i]->list.size() == b[i]->list.size())) {
      continue;
    }
    const ValuePtr& told = a[i]->is_list && a[i]->list.empty() ? b[i] : a[i];
    Type element = element_of(as_run_time_list(ctx, told)->type, "List");
    a[i] = value_of(as_run_time_list(ctx, a[i], element));
    b[i] = value_of(as_run_time_list(ctx, b[i], element));
  }
  std::vector<Expr> x = parts_of(ctx, a), y = parts_of(ctx, b);
  if (x.empty()) return a;
  for (size_t i = 0; i < x.size(); ++i) {
    if (ranks_differ(x[i], y[i])) throw BranchesDiffer{condition, a, b};
  }
  Expr chosen = if_(condition, one_or_tuple(ctx, x), one_or_tuple(ctx, y), ctx.span());
  return values_of(ctx, chosen, a, x.size());
}

Values only_if(NodeContext& ctx, const Expr& condition, bool holds, const Values& values) {
  std::vector<Expr> parts = parts_of(ctx, values);
  if (parts.empty()) return values;
  Expr good = one_or_tuple(ctx, parts);
  Expr never = library_call(ctx, "branch.never", {}, {good->type});
  Expr chosen =
      holds ? if_(condition, good, never, ctx.span()) : if_(condition, never, good, ctx.span());
  return values_of(ctx, chosen, values, parts.size());
}

Diagnostic rank_is_open(const BranchesDiffer& branches, const Span& span) {
  auto types = [](const Values& values) {
    std::string out;
    for (const ValuePtr& v : values) {
      if (v->expr) out += (out.empty() ? "" : ", ") + to_string(v->expr->type);
    }
    return out;
  };
  return Diagnostic(codes::frontend_dynamic, span,
                    "how many dimensions a result has is known only when the model runs")
      .expected("branches that give values of one rank")
      .found(types(branches.then_values) + " or " + types(branches.else_values))
      .help(
          "fix the input that decides: --input NAME=SHAPE for a size, --freeze NAME=VALUE for a "
          "value");
}

bool are_type_errors(const std::vector<Diagnostic>& found) {
  return std::ranges::all_of(found, [](const Diagnostic& d) {
    return d.severity != Severity::error || std::string_view(d.code).starts_with("E02");
  });
}

}  // namespace relay::importer
