// What the type parameters of a polymorphic type stand for.
//
//   f : fn [n: Dim](Tensor[(n, 4), float32]) -> Tensor[(n + 1,), float32]
//   solve_type_params(f, {Tensor[(3, 4), float32]})      n is 3
//   with_type_params(f->ret_type, {n: 3})                Tensor[(4,), float32]
//
// What stands for a parameter of kind Dim is a dimension; of kind Shape, a tensor type of that
// shape; of kind BaseType, the scalar type of that dtype; and a type variable stands for one of its
// own kind.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>

#include "ir/type.h"

namespace relay {

// By type variable.
using TypeParams = std::unordered_map<const Node*, NodeRef>;

// A type argument that is a dimension, or a variable for one; null for any other.
Dim dim_argument(const NodeRef& t);
// A type argument that is a tensor, or a variable for a shape or base type, as a tensor that has
// just that; null for any other.
TensorType tensor_argument(const NodeRef& t);

// The type with values in the place of variables of any kind; dimensions are computed. The
// identical handle when it has none of the variables.
Type with_type_params(const Type& type, const TypeParams& values);

// The same for the sizes in attributes; throws UserError E0801 when one of them would be below zero.
Attrs with_type_params(const Attrs& attrs, const TypeParams& values);

// Matches the argument types of a function with the types that are given to it; a known size may be
// given where `?` is wanted. What only the result type has is not in the answer. Nullopt when the
// types do not fit; `misfit` is then the index of the first argument that does not.
std::optional<TypeParams> solve_type_params(const FuncTypeNode& f, std::span<const Type> given,
                                            size_t* misfit = nullptr);

}  // namespace relay
