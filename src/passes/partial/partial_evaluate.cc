#include "passes/partial/partial_evaluate.h"

#include <algorithm>
#include <unordered_set>

#include "analysis/primitives.h"
#include "node/walk.h"
#include "passes/partial/machine.h"
#include "passes/structure/entry_functions.h"
#include "passes/structure/to_a_normal_form.h"

namespace relay {
namespace {

int64_t option(const PassContext& ctx, std::string_view name, int64_t otherwise) {
  auto* v = ctx.asked<int64_t>(kPartialEvaluate, name);
  return v == nullptr ? otherwise : *v;
}

// Small programs may do that much: about a tenth of a second here, and a second in what compiles
// the result.
constexpr int64_t kFreeBindings = 2'000;
constexpr int64_t kFreeSteps = 50'000;
// And for each expression of the program.
constexpr int64_t kBindingsPerNode = 4;
constexpr int64_t kStepsPerNode = 50;
// Of the places where the limits ended an evaluation, so many are named.
constexpr size_t kNamedStops = 4;

// The function with an attribute that says what was not done.
Function with_note(const Function& f, const std::vector<partial::Stop>& stops) {
  std::string text;
  for (size_t i = 0; i < std::min(stops.size(), kNamedStops); ++i) {
    std::string where = stops[i].where.describe();
    text += (text.empty() ? "" : "; ") + (where.empty() ? "the call" : "the call at " + where) +
            " is not unrolled (further): " + stops[i].why;
  }
  if (stops.size() > kNamedStops) {
    text += "; and " + std::to_string(stops.size() - kNamedStops) + " more";
  }
  Dict attrs = f->attrs;
  attrs[kPartialEvaluation] = AttrValue(text);
  return function(f->params, f->body, f->ret_type, f->type_params, std::move(attrs), f->span);
}

// The functions that the entry functions reach.
struct Reached {
  std::unordered_set<const Node*> functions;
  size_t size = 0;
  // Something in them that only this pass compiles away.
  bool structured = false;
};

Reached reach(const Module& mod, const PassContext& ctx) {
  Reached out;
  bool calls = false, branches = false;
  std::vector<Function> work = entry_functions(mod, ctx);
  for (const Function& f : work) out.functions.insert(f.get());
  while (!work.empty()) {
    Function f = work.back();
    work.pop_back();
    post_order_if(
        f, [](const Node& n) { return as_primitive(&n) == nullptr; },
        [&](const Node& n) {
          ++out.size;
          switch (n.kind()) {
            case ExprKind::GlobalVar: {
              Function callee = mod->find(static_cast<const GlobalVarNode&>(n).name_hint);
              if (callee && out.functions.insert(callee.get()).second) work.push_back(callee);
              calls |= callee && !callee->is_primitive();
              return;
            }
            case ExprKind::If:
              branches = true;
              return;
            case ExprKind::Function:
              out.structured |= &n != f.get();
              return;
            case ExprKind::Match:
            case ExprKind::Constructor:
            case ExprKind::RefCreate:
            case ExprKind::RefRead:
            case ExprKind::RefWrite:
              out.structured = true;
              return;
            default:
              return;
          }
        },
        family::program);
  }
  // Perhaps a recursion; functions that are only called often are for Inline to judge.
  out.structured |= calls && (branches || ctx.option<bool>(kPartialEvaluate, "calls"));
  return out;
}

// What a loop over a counter may write out: about six steps of an LSTM. Each is a kernel to compile,
// while a step of a loop costs 100 ns (measured on an LSTM of 50 steps, whose times are the same).
constexpr int64_t kMaxUnrolledTensors = 96;

Module run_partial_evaluate(const Module& mod, PassContext& ctx) {
  Reached reached = reach(mod, ctx);
  if (!reached.structured) return mod;
  // What is reached by name, in the form that the machine reads.
  std::unordered_set<std::string> names;
  for (size_t i = 0; i < mod->functions.size(); ++i) {
    if (reached.functions.contains(mod->functions[i].get())) {
      names.insert(mod->global_vars[i]->name_hint);
    }
  }
  Module named = map_functions(mod, [&](const GlobalVar& name, const Function& f) {
    return names.contains(name->name_hint) && !f->is_primitive() ? to_a_normal_form(f) : f;
  });
  LazyPurity purity(named);
  partial::Folding folding(ctx.evaluate);
  auto size = static_cast<int64_t>(reached.size);
  partial::Limits limits{option(ctx, "max_bindings", kFreeBindings + kBindingsPerNode * size),
                         option(ctx, "max_steps", kFreeSteps + kStepsPerNode * size)};
  partial::EvaluationContext program{named, purity, folding, limits};
  partial::Unroller unroller(named, ctx.option<int64_t>(kPartialEvaluate, "max_unroll"),
                             ctx.option<int64_t>(kPartialEvaluate, "max_unrolled_tensors"));
  return map_functions(mod, [&](const GlobalVar& name, const Function& f) {
    if (!names.contains(name->name_hint) || f->is_primitive()) return f;
    std::vector<partial::Stop> stops;
    Function done = partial::evaluate(program, unroller, named->find(name->name_hint), stops);
    if (!done) return f;
    return stops.empty() ? done : with_note(done, stops);
  });
}

}  // namespace

const Pass kPartialEvaluate{
    "PartialEvaluate",
    3,
    Form::any,
    Form::any,
    "Does what the program's own structure decides: known calls, matches, "
    "branches and references.",
    run_partial_evaluate,
    {{"max_bindings", PassOption::Type::integer, AttrValue(),
      "Most values that the result names; without, by the size of the program."},
     {"max_steps", PassOption::Type::integer, AttrValue(),
      "Most steps of the evaluation; without, by the size of the program."},
     {"max_unroll", PassOption::Type::integer, AttrValue(int64_t{256}),
      "Most times that a loop is unrolled."},
     {"max_unrolled_tensors", PassOption::Type::integer, AttrValue(kMaxUnrolledTensors),
      "Most tensors that an unrolled loop computes."},
     {"calls", PassOption::Type::boolean, AttrValue(false),
      "Puts functions where they are called also in programs that have nothing else to do."}}};

}  // namespace relay
