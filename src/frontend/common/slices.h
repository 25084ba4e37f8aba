// Slices, splits and pads by numbers that are known, or by terms over open dimensions.
#pragma once

#include <string>
#include <vector>

#include "frontend/common/builder.h"

namespace relay::frontend {

// Elements starts, starts + steps, ... up to ends, which are left out. Negative bounds count from the end, and bounds
// outside of the tensor are its ends. Without axes they are the first ones, without steps all steps are 1.
struct SliceSpec {
  std::vector<Dim> starts, ends;
  std::vector<int64_t> axes, steps;
};
// E0505 for bounds of which only a run knows on which side of 0 they are.
Expr strided_slice(const Builder& build, Expr x, SliceSpec spec);

// The parts of these sizes along an axis, whose size they are together; a run checks one that is open.
std::vector<Expr> split_into(const Builder& build, Expr x, const std::vector<int64_t>& sizes,
                             int64_t axis);

// `x` with pads[i] elements before axis i and pads[i + rank] behind it; negative ones are cut off first. The mode is
// "constant" (of `fill`), "edge", "reflect" or "wrap".
Expr pad(const Builder& build, Expr x, const std::vector<int64_t>& pads, const std::string& mode,
         Expr fill);

}  // namespace relay::frontend
