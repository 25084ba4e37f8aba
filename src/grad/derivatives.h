// Derivatives made of the two modes: by name, as functions of a module.
#pragma once

#include <string_view>

#include "grad/higher_order.h"

namespace relay {

// What is made of `f`, a function of arguments xs:
enum class DerivativeKind {
  gradient,           // fn (xs) -> (f(xs), gradients): of the sum of all floats of the result
  gradient_of_first,  // the same, of the first part of the result, which is a tuple
  vjp,                // fn (xs, w) -> (f(xs), gradients): of the result weighted by w, of its type
  jvp,                // fn (xs, ds) -> (f(xs), how it changes along ds)
  hvp,       // fn (xs, ds) -> how the gradients change along ds: the second derivative times ds
  jacobian,  // fn (xs) -> for each x the derivatives of each element of the result: sizes of the
             // result, then those of x; the result is one tensor, and so is each x
  hessian,   // fn (xs) -> for each x those of its gradient: the sizes of x twice
};
std::string_view to_string(DerivativeKind kind);
// Null for a name that is none.
const DerivativeKind* find_derivative(std::string_view name);

// With respect to the first `count` parameters; forward mode (jvp, hvp) has tangents for all. Throws
// what `reverse_mode` and `forward_mode` do, and E1007 for a jacobian or hessian of anything but
// tensors of known or named sizes.
Derivative derivative(const Module& mod, const Function& f, DerivativeKind kind,
                      size_t count = kAllParams);

}  // namespace relay
