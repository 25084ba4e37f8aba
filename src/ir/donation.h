// Inputs that are donated to outputs: the caller gives a tensor up, and the result is written into
// its memory.
//
//   def @main(%cache: Tensor[(2048, 64), float32], %line: Tensor[(1, 64), float32], %at: int64,
//             donate=[["cache", 0]]) { update_slice(%cache, %line, %at) }
//
// It changes nothing about what the function computes, only where: how the memory is written is
// decided in the plan (plan/donations.h). A pair is the name of a parameter and the number of a
// tensor among those of the result, a tuple's leaves in order.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/module.h"

namespace relay {

namespace attr {
inline constexpr const char* kDonate = "donate";
}

struct DonatedInput {
  size_t param = 0;
  size_t output = 0;

  friend bool operator==(const DonatedInput&, const DonatedInput&) = default;
};

// What the function's attribute says, in its order. Throws UserError: E1201 for a parameter or
// result that is not there, or an attribute of another form; E1202 for one that is donated twice;
// E1203 where the types differ or are no tensors of numbers; E1204 where the function has a
// parameter that could hold on to the tensor, a reference or function.
std::vector<DonatedInput> donated_inputs(const FunctionNode& f, const Module& mod);

// Throws as above, for all functions of the module.
void check_donations(const Module& mod);

// The module with inputs of @main donated: pairs of the input's name, as callers know it, and the
// name or number of an output. Throws as above.
Module with_donations(const Module& mod,
                      const std::vector<std::pair<std::string, std::string>>& pairs);

}  // namespace relay
