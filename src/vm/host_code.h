// A plan to host code: the functions that become machine code beside their bytecode.
//
// A function is native if host code holds each of its steps and all that it may call is native (hostcode/code.h says
// why). It is built from the values of the plan and not from the registers that these share: a value has one type for
// its whole life, so a scalar that the program passes, returns or selects is a scalar in host code, too, and takes the
// form of a value only where data, closures and references hold it.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "hostcode/code.h"
#include "plan/plan.h"

namespace relay {

struct HostCode {
  hostcode::Program program;
  // Of each function of the plan, why it is interpreted; empty for native functions, and for all functions of a program
  // without control flow.
  std::vector<std::string> reasons;
};

// Which functions may be native.
struct NativeLimits {
  // Why the program has no native code at all, which is the reason of all functions that host code holds; empty if it may
  // have some.
  std::string refused{};
  // Of functions, and of closures that they call, as the target's convention for tail calls takes them.
  size_t most_params = std::numeric_limits<size_t>::max();
};

// Counts are inserted.
HostCode build_host_code(const plan::PlanProgram& plan, const NativeLimits& limits);

}  // namespace relay
