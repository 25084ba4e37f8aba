// Which outputs are written over the parameters that are donated to them (ir/donation.h).
//
//   def @main(%cache, %line, %at, donate=[["cache", 0]]) {
//     let %new = update(%cache, %line, %at);     %new is written into the memory of %cache,
//     (%new, attention(%new))                    where the old lines are already
//   }
//
// Legal for the result of a kernel, or of an update, that this function calls itself when nothing
// reads the old value afterwards, and the kernel reads each element of it just before it writes the
// one at the same place - or not at all (Aliasing::written_over). What reads the old value later is
// put before the write where that changes nothing else: such a step of the function is moved behind
// the last read. Every other donation is a copy at the end of the run, which knows the reason.
//
// A function that the program calls itself gets values that others may have: no caller gave them up,
// so nothing in it is written over.
#pragma once

#include <unordered_map>

#include "ir/donation.h"
#include "lower/lower_program.h"
#include "plan/joins.h"
#include "plan/plan.h"

namespace relay::plan {

struct Donations {
  std::vector<Donation> rows;
  // By the variable that is written over a parameter: the row.
  std::unordered_map<const Node*, size_t> written;
};

// The function with the bindings that are written over parameters behind the last reads of these.
Function with_late_updates(const Function& f, const Module& mod);

// `is_called`: the program calls the function, or has it as a value. `writes_outputs`: see
// plan/outputs.h.
Donations find_donations(const FunctionNode& f, const Module& mod, bool is_called,
                         bool writes_outputs, const VarSet& escapes, const Joins& joins,
                         const LoweredProgram& lowered);

}  // namespace relay::plan
