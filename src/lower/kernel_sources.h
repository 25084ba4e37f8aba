// Sources of kernels that hold for every compilation of the process: what external backends and operators from outside
// register, an open list.
#pragma once

#include <memory>
#include <vector>

namespace relay {

class KernelSource;  // lower/kernel_body.h

// A compilation asks them in the order of their registration, behind those of its own options.
void register_kernel_source(std::shared_ptr<const KernelSource> source);
std::vector<std::shared_ptr<const KernelSource>> kernel_sources();

}  // namespace relay
