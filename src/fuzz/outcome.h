// What running a program came to: a value, or an error.
#pragma once

#include <functional>
#include <string>

#include "ir/module.h"
#include "runtime/core/value.h"

namespace relay::fuzz {

struct Outcome {
  enum Kind { value, user_error, defect } kind = value;
  runtime::Value result;
  std::string code;  // of a user's error, "E0607"
  std::string text;
};

// Runs `work`; whatever it throws becomes an outcome.
Outcome outcome_of(const std::function<runtime::Value()>& work);

// The program on the reference evaluator. A program that is not through after `fuel` expressions
// ends with E0606.
Outcome evaluate_main(const Module& mod, const std::vector<runtime::Value>& args, int64_t fuel);

// Whether rounding explains how `got` differs from `want`, the result of `mod`: the difference is
// of the size that appears when the results of all operators, and the arguments, are moved by a few
// of the last bits of the coarsest float type in the program.
bool explained_by_rounding(const Module& mod, const std::vector<runtime::Value>& args,
                           const runtime::Value& got, const runtime::Value& want, int64_t fuel);

}  // namespace relay::fuzz
