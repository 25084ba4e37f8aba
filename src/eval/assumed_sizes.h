// What the types of an operator's call take for granted about named sizes, checked as it runs.
//
//   def @f[n: Dim](%x: Tensor[(n, 4), float32], %y: Tensor[(5, 4), float32]) { add(%x, %y) }
//
// `n` stands for one size, 5 or 1; and so does a `?`.
// Compiled code counts on that, so the meaning of the language is the same.
#pragma once

#include <span>
#include <vector>

#include "ir/op.h"
#include "runtime/core/value.h"

namespace relay {

struct AssumedSizes {
  // Of the call's arguments, with a name for each size that is `?`.
  std::vector<Type> args;
  std::vector<DimAssumption> assumptions;
};

// What only a run can check; no assumptions when all sizes of the arguments are known.
AssumedSizes assumed_sizes(const CallNode& call);

// Throws RuntimeError E0607 when these arguments break one of the call's assumptions.
void check_assumed_sizes(const CallNode& call, const AssumedSizes& assumed,
                         std::span<const runtime::Value> args);

}  // namespace relay
