// Kernels to machine code: object files, a linked shared object, or functions in this process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/kernel_cache.h"
#include "codegen/target.h"
#include "runtime/core/kernel_abi.h"
#include "tir/stmt.h"

namespace relay {

// A relocatable object file.
using ObjectCode = std::string;

// An object file for each lowered kernel (tir/lower_loops.h), made on that many threads. What
// `cache` (may be null) holds is taken from there, and the rest is put there. The bytes depend on
// the kernel and the target only. Throws UserError E0404.
std::vector<ObjectCode> generate_objects(const std::vector<tir::PrimFunc>& kernels,
                                         const Target& target, int threads,
                                         KernelCache* cache = nullptr);

// One shared object from these objects, exporting the descriptor that lists the kernels in order
// (runtime/core/kernel_abi.h) and needing nothing but libc and libm. Equal input gives equal bytes.
std::string link_shared(const std::vector<ObjectCode>& objects,
                        const std::vector<tir::PrimFunc>& kernels, const Target& target);

// Kernels compiled into this process.
class JitModule {
 public:
  JitModule(const std::vector<tir::PrimFunc>& kernels, const Target& target,
            KernelCache* cache = nullptr);
  ~JitModule();
  JitModule(JitModule&&) noexcept;
  JitModule& operator=(JitModule&&) noexcept;
  // In the order of the kernels.
  const std::vector<relay_kernel>& functions() const { return functions_; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::vector<relay_kernel> functions_;
};

// What the objects are made from and to, for people.
std::string llvm_ir_text(const std::vector<tir::PrimFunc>& kernels, const Target& target);
std::string assembly_text(const std::vector<tir::PrimFunc>& kernels, const Target& target);

}  // namespace relay
