// Derivatives of random programs: reverse mode, forward mode and finite differences say one thing.
//
// What is compared are numbers: the slope of the sum of all floats of @main's result along a random
// direction of its arguments. Finite differences need every float to be a float64.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/module.h"
#include "passes/pass.h"
#include "runtime/core/value.h"

namespace relay::fuzz {

// The program with every float a float64; null where an operator does not take it.
Module in_doubles(const Module& mod);

// @main becomes fn (args) { (@main(args), gradients) } or fn (args, tangents) { (@main(args), how
// the result changes along them) }. Passes, so that what is planted in them takes their place.
extern const Pass kReverseMode;
extern const Pass kForwardMode;

// Reverse mode's program before anything of it is cleaned up.
Module reverse_mode_as_made(const Module& mod);

// Whether forward mode is for such functions: of tensors and tuples of them.
bool has_tangents(const Function& f);

// A direction in which the arguments of @main move: the same numbers in every use of one seed.
class Direction {
 public:
  explicit Direction(uint64_t seed) : seed_(seed) {}

  // The arguments, moved.
  std::vector<runtime::Value> from(const std::vector<runtime::Value>& args, double step) const;
  // The direction itself, as forward mode takes it.
  std::vector<runtime::Value> tangents(const Function& f,
                                       const std::vector<runtime::Value>& args) const;
  // The slope that gradients, a tuple, say there is.
  double slope(const runtime::Value& gradients) const;

 private:
  uint64_t seed_;
};

// The sum of all floats of a value.
double sum_of_floats(const runtime::Value& value);

// The slope of the sum of the floats of @main's result at the arguments; nullopt where it has none
// that differences can tell: at a kink, a step or a pole, or where the program fails beside them.
std::optional<double> measured_slope(const Module& mod, const std::vector<runtime::Value>& args,
                                     const Direction& direction, int64_t fuel);

// Whether slopes of different origin agree; those that are no numbers agree with any, since a zero
// adjoint of an infinite slope is one.
bool slopes_agree(double a, double b, double tolerance);

}  // namespace relay::fuzz
