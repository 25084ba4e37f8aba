// Run-time values for random programs: drawing them, and comparing two.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/random.h"
#include "ir/module.h"
#include "runtime/core/value.h"

namespace relay::fuzz {

// Elements in [low, high]; floats are no integers, so that rounding seldom decides a comparison.
void fill(const Tensor& tensor, double low, double high, Random& random);

// Arguments for a function's parameters: tensors (a named dimension has one size everywhere),
// tuples and finite values of data types. The same for the same seed.
std::vector<runtime::Value> draw_arguments(const Module& mod, const FunctionNode& f, uint64_t seed);

// The value with every float replaced, in the order in which they stand in it. References are copied
// once each.
runtime::Value map_floats(const runtime::Value& value, const std::function<double(double)>& change);

// The value with every float moved by up to `relative` of itself; numbers that are no floats stay.
// References are copied once each.
runtime::Value perturb(const runtime::Value& value, double relative, Random& random);

// How far two tensors' elements may be apart, by dtype.
struct Tolerance {
  double relative;
  double absolute;
};
Tolerance tolerance_of(DType dtype);

// How far apart two values of one shape are, in units of the tolerance, leaf by leaf in the order
// of first_difference; infinite where kinds, tags, shapes or integers differ.
std::vector<double> distances(const runtime::Value& got, const runtime::Value& want);
// The same as parts of the greater number: 0 for numbers that are not floats, infinity beside a number that is not finite.
std::vector<double> relative_changes(const runtime::Value& got, const runtime::Value& want);

// Where two values differ by more than the tolerance, as a sentence; nullopt when they agree. NaN
// agrees with NaN. Closures are compared by kind only. Iterative.
std::optional<std::string> first_difference(const runtime::Value& got, const runtime::Value& want);

}  // namespace relay::fuzz
