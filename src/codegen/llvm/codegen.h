// Kernels to machine code with LLVM: what llvm_backend() is made of. Others include codegen/backend.h.
#pragma once

#include <string>
#include <vector>

#include "codegen/backend.h"
#include "codegen/llvm/llvm_machine.h"

namespace relay::codegen {

std::vector<ObjectCode> generate_objects(const std::vector<tir::PrimFunc>& kernels,
                                         const Target& target, int threads, KernelCache* cache,
                                         const std::function<void()>& each);

std::string link_shared(const std::vector<ObjectCode>& objects,
                        const std::vector<tir::PrimFunc>& kernels, const Target& target);

LoadedKernels load_objects(const std::vector<ObjectCode>& objects,
                           const std::vector<tir::PrimFunc>& kernels, const Target& target);

// The object that has the table of the kernels.
ObjectCode descriptor_object(const std::vector<tir::PrimFunc>& kernels, const Target& target);

// An object that has the bytes under the kernel's symbol.
ObjectCode embedding_object(const tir::PrimFunc& kernel, const std::string& bytes,
                            const Target& target);

std::string code_text(const std::vector<tir::PrimFunc>& kernels, const Target& target,
                      CodeForm form);

}  // namespace relay::codegen
