// Operators that are nothing but others: a row whose definition says all.
//
// Type, kernels, gradient and batching follow from the operators that the definition is made of. A definition that takes
// sizes as numbers or names alone is tried with a name for each `?`, in a function of its own.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "ops/expressions.h"

namespace relay::ops {

// The row. The definition throws `misused` for arguments and attributes that are wrong.
OpInfo composed_row(std::string name, std::string doc, std::vector<ArgInfo> args, AttrsInfo attrs,
                    DefinitionRule definition, std::vector<OpExample> examples);

// The same definition with float16 and bfloat16 computed in float32 and rounded once, where two operators or more would
// round to them. Operators that only move elements do not count.
DefinitionRule in_float32(DefinitionRule definition);

// Throws UserError E0801: a call's attributes or arguments are wrong.
[[noreturn]] void misused(const relay::CallNode& call, const std::string& message,
                          const std::string& expected = {}, const std::string& found = {});
void demand(const relay::CallNode& call, bool condition, const std::string& message,
            const std::string& expected = {}, const std::string& found = {});

template <class A>
const A& attrs_of(const relay::CallNode& call) {
  return *static_cast<const A*>(call.attrs.get());
}

inline constexpr int64_t kAnyRank = std::numeric_limits<int64_t>::max();
// An argument with another number of axes is refused; from `least` to `most`.
void demand_rank(const relay::CallNode& call, size_t argument, int64_t least, int64_t most);
inline void demand_rank(const relay::CallNode& call, size_t argument, int64_t rank) {
  demand_rank(call, argument, rank, rank);
}
// So is a definition that would be too large: `parts` constants' elements, or operators, are written out one by one.
void demand_few(const relay::CallNode& call, double parts, double most, const std::string& what);
inline constexpr double kMostElements = 1 << 26, kMostOperators = 4096;
double element_count(const Ints& sizes);
// What an axis or a step may be, so that products of a few are no overflow.
inline constexpr int64_t kLargestStep = 1 << 20;

// A size that has to be a number; `what` is it of.
int64_t number_of(const relay::CallNode& call, const Dim& size, const std::string& what);
std::vector<int64_t> numbers_of(const relay::CallNode& call, const std::vector<Dim>& shape,
                                const std::string& what);
// The axis counted from the front.
int64_t axis_in(const relay::CallNode& call, int64_t axis, int64_t rank);

// ---- Expressions

// Integers of a shape that is known, as int64.
Expr indices_constant(const Ints& values, const Ints& shape);
Expr mask_constant(const std::vector<bool>& values, const Ints& shape);
Expr taken(const Expr& e, const Expr& indices, int64_t axis);
Expr sliced(const Expr& e, const Ints& axes, const Ints& begin, const Ints& end,
            const Ints& strides);
Expr padded(const Expr& e, const std::vector<Ints>& widths, const Expr& value);
Expr expanded(const Expr& e, int64_t axis, int64_t count = 1);
Expr reshaped(const Expr& e, const Ints& shape);
Expr joined(std::vector<Expr> parts, int64_t axis);
Expr stacked(std::vector<Expr> parts, int64_t axis);
// The places of the elements in ascending order, stable, as int64.
Expr order_of(const Expr& e, int64_t axis);
// Everywhere the value, of a shape and dtype.
Expr filled(double value, const std::vector<Dim>& shape, DType dtype);
// Integers from numbers to places: casts to int64.
Expr as_index(const Expr& e);

}  // namespace relay::ops
