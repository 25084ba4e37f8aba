// Composes the compute rules of a primitive function's operators into one kernel.
#pragma once

#include <string>
#include <vector>

#include "ir/expr.h"
#include "ir/op.h"
#include "lower/kernel_signature.h"
#include "tir/stmt.h"

namespace relay {

// A primitive function as a kernel that is not scheduled yet.
struct ComposedKernel {
  tir::PrimFunc func;
  // The sizes behind func->dims, in that order.
  std::vector<Dim> dims;
  // Floating point operations of a call with static types, 0 when unknown.
  double flops = 0;
  // Bytes read and written once each, 0 when a size is symbolic.
  double bytes = 0;
  // The inputs, by their place among func->params, that may be the same memory as an output.
  std::vector<InPlace> in_place;
};

// One buffer for each tensor of each parameter (tuples flattened), then one for each tensor of the
// result. A result that is a parameter, or the same as another result, is a copy. The body must be
// operator calls, tuples, projections and scalar constants over the parameters. Throws UserError
// E0401 for an operator without a compute rule and for `?` dimensions.
ComposedKernel compose(const FunctionNode& primitive, const std::string& name,
                       KernelOf what = KernelOf::result);

// The kernel for buffers of which some lie in larger tensors: for each of func->params the shape of
// that tensor, or none. Returns the kernel itself when there is none at all.
ComposedKernel in_larger_tensors(ComposedKernel kernel,
                                 const std::vector<std::vector<int64_t>>& within);

// The kernel under another name.
ComposedKernel renamed(ComposedKernel kernel, const std::string& name);

// The sizes of which a run of the function must find that they are equal or that one of them is 1.
std::vector<DimAssumption> broadcasts_of(const FunctionNode& primitive);

// A readable kernel name from the operators, "fused_nn_conv2d_add_nn_relu", at most 60 characters;
// "copy" when there are none.
std::string kernel_name(const FunctionNode& primitive);

}  // namespace relay
