// Forms of programs: what may be relied on between passes, as properties that can be checked.
//
// Every program may be read in graph form, where sharing means "computed once", so that has no flag: it is Form::any.
#pragma once

#include <optional>
#include <string>

#include "ir/module.h"

namespace relay {

// A set of properties. What is inside primitive functions does not count.
enum class Form : unsigned {
  any = 0,  // no demand
  anf = 1,  // every operand, and the result of every block, is a leaf or a primitive function
  basic_blocks = 2,  // no expression is used in another block than its own
  fused = 4,         // every operator call is in a primitive function
  lifted = 8  // a function inside another is a primitive one or what a function with Closure gives
};

constexpr Form operator|(Form a, Form b) { return Form(unsigned(a) | unsigned(b)); }
constexpr Form operator&(Form a, Form b) { return Form(unsigned(a) & unsigned(b)); }
// Whether all of `what` is in `form`.
constexpr bool has(Form form, Form what) { return (form & what) == what; }

// "anf, fused"; "any".
std::string to_string(Form form);

struct FormDefect {
  Form form;  // the one that the program is not in
  Span span;
  std::string detail;  // "nn.relu is called outside a primitive function"
};

// Why the program is not in the form, or nothing. Iterative; linear for each property.
std::optional<FormDefect> find_form_defect(const Module& mod, Form form);

}  // namespace relay
