// A rule and a kernel: choosing its parameters, and applying them.
//
//   tir::Schedule s(prepared(composed));
//   Choice choice = choose(rule, s, target);
//   if (auto* decision = std::get_if<Decision>(&choice)) {
//     std::string text = parameters_text(decision->parameters);     // kept somewhere
//     apply(rule, s, parse_parameters(rule, text));                 // the same loops, on any machine
//   }
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "lower/rules/common.h"

namespace relay {

// What a rule decided of a kernel.
struct Decision {
  Attrs parameters;
  std::string report;
  // The kernel with the parameters applied: whether all steps are legal is known when they were taken.
  tir::PrimFunc scheduled;
};
using Choice = std::variant<Decision, Declined>;

// The kernel as rules look at it: cheap producers inlined, quotients and rows simplified.
tir::PrimFunc prepared(const tir::PrimFunc& composed);

// The rule's parameters for the target; the schedule stays as it is. A declined kernel always has a reason.
Choice choose(const ScheduleRule& rule, const tir::Schedule& s, const Target& target);

// Takes the steps that parameters of the rule stand for. Any parameters of its struct may be given: those that do not fit the
// kernel are declined with the reason, and the schedule then stays as it was.
std::optional<Declined> apply(const ScheduleRule& rule, tir::Schedule& s, const Attrs& parameters);

// The parameters that are not defaults, as text: `lanes=8, threads=True`.
std::string parameters_text(const Attrs& parameters);
// Reads it back. Throws UserError E0106 for a name that the rule does not have and for a value of another type.
Attrs parse_parameters(const ScheduleRule& rule, const std::string& text);

}  // namespace relay
