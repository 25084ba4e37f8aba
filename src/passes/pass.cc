#include "passes/pass.h"

#include <algorithm>

#include "base/budget.h"
#include "base/codes/passes.h"
#include "base/suggest.h"
#include "ir/op.h"
#include "passes/external/external_functions.h"
#include "passes/pass_list.h"
#include "types/verify.h"

namespace relay {

std::string_view to_string(PassOption::Type type) {
  switch (type) {
    case PassOption::Type::boolean:
      return "boolean";
    case PassOption::Type::integer:
      return "integer";
    case PassOption::Type::text:
      return "text";
    case PassOption::Type::names:
      return "list of names";
  }
  return "";
}

std::vector<PassOption> Pass::all_options() const {
  std::vector<PassOption> out = options;
  if (operator_options != nullptr) {
    for (PassOption& o : operator_options()) out.push_back(std::move(o));
  }
  return out;
}

std::optional<PassOption> Pass::find_option(std::string_view option) const {
  for (PassOption& o : all_options()) {
    if (o.name == option) return std::move(o);
  }
  return std::nullopt;
}

bool PassContext::enabled(const Pass& pass) const {
  if (disabled_pass.contains(pass.name)) return false;
  return required_pass.contains(pass.name) || opt_level >= pass.opt_level;
}

namespace {

// A pass from outside, or none of ours at all: what it gives is checked always.
bool is_from_outside(const Pass& pass) { return pass.name.find('.') != std::string::npos; }

bool is_of_type(const AttrValue& value, PassOption::Type type) {
  switch (type) {
    case PassOption::Type::boolean:
      return value.get_if<bool>() != nullptr;
    case PassOption::Type::integer:
      return value.get_if<int64_t>() != nullptr;
    case PassOption::Type::text:
      return value.get_if<std::string>() != nullptr;
    case PassOption::Type::names: {
      auto* list = value.get_if<ValueList>();
      return list != nullptr && std::all_of(list->begin(), list->end(), [](const AttrValue& v) {
               return v.get_if<std::string>() != nullptr;
             });
    }
  }
  return false;
}

// The passes that give the form to any program.
std::vector<const Pass*> givers(Form form) {
  std::vector<const Pass*> out;
  for (const Pass* p : all_passes()) {
    if (has(p->out, form) && p->in == Form::any) out.push_back(p);
  }
  return out;
}

void check_gives(const Module& mod, const Pass& pass, Form held) {
  auto defect = find_form_defect(mod, pass.out | held);
  if (!defect) return;
  throw UserError(
      Diagnostic(codes::pass_form, defect->span,
                 "after pass " + pass.name + " the program is not in the form that is promised")
          .expected("a program in the form " + to_string(defect->form))
          .found(defect->detail)
          .help("--disable-pass " + pass.name + " goes around it"));
}

}  // namespace

void check_takes(const Module& mod, Form form, const std::string& who, const PassContext& ctx) {
  auto defect = find_form_defect(mod, form);
  if (!defect) return;
  std::string names;
  for (const Pass* p : givers(defect->form)) {
    if (ctx.disabled_pass.contains(p->name)) {
      throw UserError(
          Diagnostic(codes::pass_needed, defect->span,
                     "pass " + p->name + " cannot be skipped: " + who +
                         " needs its result, which is a program in the form " +
                         to_string(defect->form))
              .help("optimisation level 0 runs the passes that are needed and few others"));
    }
    names += (names.empty() ? "" : " or ") + p->name;
  }
  throw UserError(Diagnostic(codes::pass_form, defect->span, who + " does not take this program")
                      .expected("a program in the form " + to_string(defect->form))
                      .found(defect->detail)
                      .help("run " + names + " before it"));
}

void check_config(const Dict& config) {
  std::vector<const Pass*> passes;
  if (!config.empty()) passes = all_passes();
  for (const auto& [key, value] : config) {
    const Pass* owner = nullptr;
    std::string rest;
    for (const Pass* p : passes) {
      std::string prefix = "relay." + p->name + ".";
      if (key.starts_with(prefix)) {
        owner = p;
        rest = key.substr(prefix.size());
      }
    }
    const auto option = owner == nullptr ? std::nullopt : owner->find_option(rest);
    if (!option) {
      std::vector<std::string> known;
      for (const Pass* p : passes) {
        if (owner != nullptr && p != owner) continue;
        for (const PassOption& o : p->all_options())
          known.push_back("relay." + p->name + "." + o.name);
      }
      std::string list;
      for (const std::string& k : known) list += (list.empty() ? "" : ", ") + k;
      throw UserError(
          Diagnostic(codes::pass_option, {}, "there is no option '" + key + "'")
              .expected(list.empty() ? owner->name + " has no options" : "one of " + list)
              .help(suggest(key, std::vector<std::string_view>(known.begin(), known.end()))));
    }
    if (!is_of_type(value, option->type)) {
      throw UserError(
          Diagnostic(codes::pass_option, {}, "the option '" + key + "' has a value of another type")
              .expected(std::string(to_string(option->type)))
              .found(to_string(value)));
    }
  }
}

Module bring_into(Form form, Module mod, PassContext& ctx) {
  for (const Pass* p : builtin_passes()) {
    if (p->in == Form::any && (p->out & form) != Form::any &&
        find_form_defect(mod, p->out & form)) {
      mod = run_pass(mod, *p, ctx);
    }
  }
  return mod;
}

Module run_pass(const Module& mod, const Pass& pass, PassContext& ctx, Form held, bool* skipped) {
  check_budget_now();
  check_config(ctx.config);
  for (PassInstrument* i : ctx.instruments) {
    if (i->should_run(pass, mod)) continue;
    if (skipped != nullptr) *skipped = true;
    return mod;
  }
  check_takes(mod, pass.in, "pass " + pass.name, ctx);
  for (PassInstrument* i : ctx.instruments) i->before(pass, mod);
  auto start = std::chrono::steady_clock::now();
  Module result = pass.run(mod, ctx);
  if (!is_from_outside(pass) && pass.keeps_meaning) result = with_external_bodies(mod, result);
  auto time = std::chrono::steady_clock::now() - start;
  for (PassInstrument* i : ctx.instruments) result = i->replace(pass, mod, result);
  bool checked = ctx.verify || is_from_outside(pass);
  if (checked && !(result == mod)) {
    if (auto problem = find_ill_formed(result)) {
      throw UserError(Diagnostic(codes::pass_broke_invariant, problem->span,
                                 "pass " + pass.name + " broke the program: " + problem->message)
                          .expected(problem->expected_text)
                          .found(problem->found_text)
                          .help("report this; --disable-pass " + pass.name + " goes around it"));
    }
  }
  if (checked) check_gives(result, pass, held);
  for (PassInstrument* i : ctx.instruments) i->after(pass, mod, result, time);
  return result;
}

Module run_passes(Module mod, std::span<const Pass* const> passes, PassContext& ctx) {
  for (const Pass* pass : passes) {
    if (ctx.enabled(*pass)) mod = run_pass(mod, *pass, ctx);
  }
  return mod;
}

void PassTiming::after(const Pass& pass, const Module& before, const Module& after,
                       std::chrono::nanoseconds time) {
  rows_.push_back({pass.name, std::chrono::duration<double>(time).count(), !(before == after)});
}

}  // namespace relay
