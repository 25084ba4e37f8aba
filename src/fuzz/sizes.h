// Every operator at sizes of 0, 1, 2 and a prime.
//
// A program is a row's example with other sizes: equal sizes of its arguments change together, some
// become open, and the operator's relation says which calls there are. Elementwise operators or a
// reduction may stand around the call, to be fused with it. An open program runs for several
// choices of its sizes.
//
// The evaluator says what the program means. The compiled program - passes, plan, virtual machine,
// kernels scheduled for a target and lowered - is run with its kernels interpreted
// (fuzz/interpreted_kernels.h), twice, on memory full of two patterns: both runs give the evaluator's
// answer and the same bits, no kernel reads what nothing has written, and none leaves an element of
// its own result unwritten. Of some programs machine code is made, for this machine, and compared
// likewise.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "driver/compile.h"

namespace relay::fuzz {

struct SizesOptions {
  uint64_t seed = 0;
  // Programs drawn of each example of a row.
  int programs = 3;
  // Choices of the sizes that a program leaves open.
  int runs = 6;
  // One program in so many becomes machine code; 0: none.
  int compiled = 24;
  // Only rows whose name begins so.
  std::string rows;
  // Present at every compilation: tests plant faults.
  std::vector<StageObserver*> observers;
};

struct SizesResult {
  int64_t programs = 0;
  int64_t open = 0;  // of these, with open sizes
  int64_t compiled = 0;
  std::map<std::string, int64_t> compared;  // by row: runs that gave values
  std::map<std::string, int64_t> errors;    // by code: runs that end with it
  std::map<std::string, int64_t> rules;     // by schedule rule: kernels
  std::map<std::string, int64_t> refused;   // by message: programs that are not compiled
  std::vector<std::string> findings;        // seed, program, sizes and what went wrong
};

SizesResult check_sizes(const SizesOptions& options);

}  // namespace relay::fuzz
