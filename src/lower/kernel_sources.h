// Sources of kernels that hold for every compilation of the process: what external backends and operators from outside
// register, an open list.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ir/expr.h"

namespace relay {

class KernelSource;  // lower/kernel_body.h

// A compilation asks them in the order of their registration, behind those of its own options.
void register_kernel_source(std::shared_ptr<const KernelSource> source);
std::vector<std::shared_ptr<const KernelSource>> kernel_sources();

// The dimensions of a primitive function's parameters and results, in their order: what functions of libraries and of the process get
// behind the buffers. Nullopt where one of them has no name.
std::optional<std::vector<Dim>> dimensions_of_operands(const FunctionNode& primitive);

}  // namespace relay
