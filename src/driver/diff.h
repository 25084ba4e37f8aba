// A compiled program beside a reference: whether their results agree, and if not, what is wrong.
//
//   DiffReport report = diff(mod, arguments, options);
//   report.fault    // DiffFault::pass
//   report.pass     // "FoldScaleAxis"
//   report.node     // "conv1 (Conv)"
//
// The stages of the compiler are examined one by one. A kernel is wrong if the evaluator computes another result from the
// very inputs that the kernel had, so what its inputs' differences explain is not held against it. A pass is wrong if the
// program before it gives the reference's result and the program after it does not: bisection finds the first one. The
// front end is wrong if the program as it was read does not give the result of a reference from outside.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "driver/trace.h"

namespace relay {

enum class DiffFault {
  none,       // the results agree
  front_end,  // the program as it was read is another one than the reference
  kernel,     // the code of a kernel
  pass,       // a pass over the program
  plan,       // what is between kernels: memory, order, scalar steps
  rounding,   // every stage agrees with the one before it: small differences add up
};

struct DiffOptions {
  CompileOptions compile;
  std::string function = "main";
  Tolerances tolerances;
  // The reference is the program compiled at level 0 instead of the evaluator: faster, less independent.
  bool against_level_0 = false;
  WatchLimits limits;
  std::string source_name;
};

struct DiffReport {
  DiffFault fault = DiffFault::none;
  std::vector<Tensor> results, expected;  // of the compiled program, and of the reference
  // The first node that is wrong, in the model's or source's own names; empty where there is none.
  std::string node;
  std::string origin;     // of a kernel: all its nodes
  std::string operation;  // the operator, or the kernel's name
  std::string pass;       // of a pass
  // The first wrong value and what it should be; null where there is none to show.
  Tensor got, want;
  // What reproduces it: a program with its inputs by their names. Null: the program itself, with these inputs.
  Module program = nullptr;
  std::vector<std::pair<std::string, Tensor>> inputs;
};

// `outside`: the results of a reference from outside, with its steps where they are known; null: the reference is as the
// options say. Errors: those of the compiler and of runs; UserError E0702 where a result is not made of tensors.
DiffReport diff(const Module& mod, const std::vector<runtime::Value>& args,
                const DiffOptions& options, const Trace* outside = nullptr);

}  // namespace relay
