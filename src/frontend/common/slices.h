// Slices, splits and pads by numbers that are known, or by terms over open dimensions.
#pragma once

#include <optional>
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

// The same by int64 vectors of one length, which may be open.
struct OpenSlice {
  Expr begin, end;
  Expr steps = nullptr;  // null for 1
  Expr which = nullptr;  // the axes, which may be negative; null for the first ones
  std::optional<std::vector<int64_t>> axes =
      std::nullopt;     // the same, in [0, rank), where they are known
  bool forward = true;  // whether all steps are known to be positive
};
Expr slice_at_run_time(const Builder& build, const Expr& x, const OpenSlice& slice);

// The parts of these sizes along an axis, whose size they are together (E0203); a run checks one that is open. This and
// the following refuse no parts (E0504).
std::vector<Expr> split_into(const Builder& build, Expr x, const std::vector<int64_t>& sizes,
                             int64_t axis);
// Parts of one size; the last is smaller when the size of the axis does not divide. E0505 for an open one that may not.
std::vector<Expr> split_evenly(const Builder& build, const Expr& x, int64_t parts, int64_t axis);
// As many parts as a vector has sizes; and such sizes of parts that are even.
std::vector<Expr> split_at_run_time(const Builder& build, const Expr& x, const Expr& sizes,
                                    int64_t axis);
Expr even_sizes(const Builder& build, const Expr& x, int64_t parts, int64_t axis);

// `x` with pads[i] elements before axis i and pads[i + rank] behind it; negative ones are cut off first. The mode is
// "constant" (of `fill`), "edge", "reflect" or "wrap".
Expr pad(const Builder& build, Expr x, const std::vector<int64_t>& pads, const std::string& mode,
         Expr fill);

}  // namespace relay::frontend
