// Programs of complex tensors as programs of real ones.
//
// Relay's numbers are real. A complex value `x` becomes two real values, `x.re` and `x.im`, and an operator of complex
// values becomes operators of their parts:
//
//   z = aten.mul.Tensor(x, y)    z.re = x.re * y.re - x.im * y.im    z.im = x.re * y.im + x.im * y.re
//   z = aten.flip.default(x)     z.re = flip(x.re)                   z.im = flip(x.im)
//
// Inputs, weights and outputs that are complex become real tensors whose last axis, of size 2, holds the real and the
// imaginary part, which is how PyTorch stores them (torch.view_as_real).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "frontend/torch/schema.h"

namespace relay::frontend::torch {

// The ScalarType of the parts of a complex one; nullopt for a type that is real.
std::optional<int64_t> type_of_parts(int64_t scalar_type);

// The program without complex values. An operator that cannot be written so becomes a node that says why
// (Node::refusal). A program without complex values is returned as it is.
Program without_complex_values(Program program);

// The operators of complex values that are not operators of real ones, sorted.
const std::vector<std::string_view>& complex_operators();

}  // namespace relay::frontend::torch
