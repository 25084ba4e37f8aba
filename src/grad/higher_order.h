// Gradients of whole programs: functions, closures, recursion, branches, data types, references.
//
// Reverse mode by references and back-propagators (Roesch et al., "Relay: A High-Level IR for Deep
// Learning", 2019; Pearlmutter and Siskind, 2008; Wang et al., "Demystifying Differentiable
// Programming: Shift/Reset the Penultimate Backpropagator", 2019):
//
//   fn (%x: float32) { multiply(%x, %x) }
//
//   fn (%x: float32) {
//     let %tape = ref(fn () { () });
//     let %a = ref(Zero);                            the cell for the adjoint of %x
//     let %v = multiply(%x, %x);
//     let %c = ref(Zero);
//     let %before = ref_read(%tape);
//     ref_write(%tape, fn () {                       what %v does to %x, then what came before
//       match (ref_read(%c)) { Zero => (), Raw(%g) => { %a += %g * %x; %a += %g * %x } };
//       %before() });
//     %c += 1; ref_read(%tape)();
//     (%v, (ref_read(%a),)) }
//
// Operators that follow each other are one entry of the tape (grad/dataflow_runs.h, grad/tape_entry.h), which has
// cells only for what leaves it. A cell holds `Zero` until something arrives, so adjoints of zeros are never made, and what nothing
// depends on computes nothing. The result is an ordinary program of the language: differentiated
// again, or partially evaluated, which leaves no cell and no closure of a program without recursion
// over data.
#pragma once

#include <cstddef>

#include "ir/module.h"

namespace relay {

struct Derivative {
  Module module;  // the functions and data types that it needs, besides those of the program
  Function function;
};

// What a derivative is weighted with.
enum class Weights {
  Ones,   // gradient: of the sum of all floats of the result
  First,  // gradient: of the floats of the first part of the result, which is a tuple
  Given,  // vjp: the function has one more parameter, of the result's type
};

// Of all parameters.
inline constexpr size_t kAllParams = static_cast<size_t>(-1);

// fn (args) { (f(args), (the gradient of each of the first `count` arguments)) }. A gradient has the type of the argument;
// what holds no floats has the empty tuple, in lists and other data too. `f` may call functions of the
// module. Throws UserError E1001 when the result holds no floats, E1005 for a write to a reference
// that `f` captures, E1007 for what cannot be differentiated (a parameter that is a function), and
// what operators' gradients throw.
Derivative reverse_mode(const Module& mod, const Function& f, Weights weights = Weights::Ones,
                        size_t count = kAllParams);

// fn (args, tangents) { (f(args), how the result changes along the tangents) }, for functions of
// tensors and tuples of them; a tensor without floats has the empty tuple for its tangent.
Derivative forward_mode(const Module& mod, const Function& f);

}  // namespace relay
