// Runs of operators: what stands between calls of functions, branches and references, in pieces that
// are differentiated as one.
//
//   let %a = sin(%x); let %b = multiply(%a, %y); let %c = @f(%b); ...
//   let %b = @run(%x, %y); let %c = @f(%b); ...          run: %a = sin(%x); %b = multiply(%a, %y)
//
// `@run` is not a function of the module: `find` knows what stands for it. Programs in A-normal form
// have runs; operators that are operands of others stay what they are.
#pragma once

#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/module.h"

namespace relay {

// Calls of operators that have a gradient or give no floats, tuples of tensors and their fields, in
// order. Operands are variables and constants.
struct DataflowRun {
  std::vector<Var> inputs;
  std::vector<std::pair<Var, Expr>> lets;
  std::vector<Var> results;  // of the run: one is its value, several are a tuple of them
};

class DataflowRuns {
 public:
  // The function with a call for each run of more than one operator. Iterative; linear.
  Function outlined(const Function& f);
  // The run that a call stands for; null when it is another call.
  const DataflowRun* find(const CallNode& c) const;

 private:
  std::deque<DataflowRun> runs_;
  std::unordered_map<const Node*, const DataflowRun*> by_name_;
  std::vector<GlobalVar> names_;  // the keys
};

}  // namespace relay
