#include "passes/pass.h"

#include "base/budget.h"
#include "base/diagnostic_codes.h"
#include "ir/op.h"
#include "types/verify.h"

namespace relay {

std::string_view to_string(Form form) {
  return form == Form::graph ? "graph" : form == Form::anf ? "A-normal" : "any";
}

bool PassContext::enabled(const Pass& pass) const {
  if (disabled_pass.contains(pass.name)) return false;
  return required_pass.contains(pass.name) || opt_level >= pass.opt_level;
}

Module run_pass(const Module& mod, const Pass& pass, PassContext& ctx) {
  check_budget_now();
  for (PassInstrument* i : ctx.instruments) {
    if (!i->should_run(pass, mod)) return mod;
  }
  for (PassInstrument* i : ctx.instruments) i->before(pass, mod);
  auto start = std::chrono::steady_clock::now();
  Module result = pass.run(mod, ctx);
  auto time = std::chrono::steady_clock::now() - start;
  for (PassInstrument* i : ctx.instruments) result = i->replace(pass, mod, result);
  if (ctx.verify && !(result == mod)) {
    if (auto problem = find_ill_formed(result)) {
      throw UserError(
          Diagnostic(codes::pass_broke_invariant, problem->span,
                     "pass " + std::string(pass.name) + " broke the program: " + problem->message)
              .expected(problem->expected_text)
              .found(problem->found_text)
              .help("report this; --disable-pass " + std::string(pass.name) + " goes around it"));
    }
  }
  for (PassInstrument* i : ctx.instruments) i->after(pass, mod, result, time);
  return result;
}

Module run_passes(Module mod, std::span<const Pass* const> passes, PassContext& ctx) {
  for (const Pass* pass : passes) {
    if (ctx.enabled(*pass)) mod = run_pass(mod, *pass, ctx);
  }
  return mod;
}

const Pass& find_pass(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Pass* pass : all_passes()) {
    if (pass->name == name) return *pass;
    known.push_back(pass->name);
  }
  std::string list;
  for (std::string_view k : known) list += (list.empty() ? "" : ", ") + std::string(k);
  throw UserError(
      Diagnostic(codes::pass_unknown, {}, "there is no pass '" + std::string(name) + "'")
          .expected("one of " + list)
          .help(suggest(name, known)));
}

void PassTiming::after(const Pass& pass, const Module& before, const Module& after,
                       std::chrono::nanoseconds time) {
  rows_.push_back({pass.name, std::chrono::duration<double>(time).count(), !(before == after)});
}

}  // namespace relay
