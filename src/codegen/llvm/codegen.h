// Kernels to machine code with LLVM: what llvm_backend() is made of. Others include codegen/backend.h.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/backend.h"
#include "codegen/llvm/llvm_machine.h"

namespace relay::codegen {

// How kernels become code.
struct KernelWriter {
  // Fills an empty module with the kernel, which has this number among those given.
  std::function<void(llvm::Module& module, const tir::PrimFunc& f, size_t number)> build;
  std::function<CodePasses(const tir::PrimFunc& f)> passes;
  CodeForm form = CodeForm::object;
};

// The code of each kernel.
std::vector<std::string> generate_code(const std::vector<tir::PrimFunc>& kernels,
                                       const Target& target, const KernelWriter& writer,
                                       int threads, KernelCache* cache,
                                       const std::function<void()>& each);

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

// The same for people, with names; on this thread, from no cache.
std::vector<std::string> code_texts(const std::vector<tir::PrimFunc>& kernels, const Target& target,
                                    const KernelWriter& writer);

std::string code_text(const std::vector<tir::PrimFunc>& kernels, const Target& target,
                      CodeForm form);

}  // namespace relay::codegen
