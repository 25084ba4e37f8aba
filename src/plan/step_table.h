// The steps of a plan: one row each. The verifier, the text and docs/plan.md come from it.
//
// What a step takes and gives are signatures, one letter for each value; one that ends in `*` has
// any number of the kind before it, none included:
//   o  an object                      s  a scalar
//   t  what a kernel can read: a tensor or scalar, wherever it is
//   w  what a kernel can write: an object, a buffer of the arena, an output, memory for open sizes
//   m  that, or a scalar             p  memory for open sizes
//   c  a constant                     a  anything
#pragma once

#include <span>
#include <string>

#include "plan/plan.h"

namespace relay::plan {

// What a step does to the way through the function.
enum class StepFlow : uint8_t {
  next,   // the step after it is next
  leave,  // what follows, up to the next else, clause or end, is never reached
  open,   // opens a part that ends with `end`
  part,   // begins the next part: else, clause
  close,  // end
};

// What Step::number is.
enum class NumberRole : uint8_t { none, kernel, function, axis, tag, field, number, bits };

struct StepRow {
  StepKind kind;
  const char* name;
  // The step as text, without what it gives: {list} stands for the operands, {0}, {1} and {rest} for
  // the first, the second and all but the first, {number}, {dtype}, {op} and {text} for its fields.
  const char* text;
  const char* results;
  const char* operands;
  StepFlow flow;
  NumberRole number;
  const char* effect;  // for people
};

std::span<const StepRow> step_rows();
const StepRow& step_row(StepKind kind);

// Whether every transfer is over before the step: other functions, and the ways through this one, know nothing of what goes
// on.
bool ends_transfers(StepKind kind);

// The table as the text of docs/plan.md.
std::string step_reference();

}  // namespace relay::plan
