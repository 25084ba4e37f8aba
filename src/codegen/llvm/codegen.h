// Kernels to machine code: object files, a linked shared object, or functions in this process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/target.h"
#include "runtime/core/kernel_abi.h"
#include "tir/stmt.h"

namespace relay {

// A relocatable object file.
using ObjectCode = std::string;

// Object files for lowered kernels (tir/lower_loops.h), split over threads. The split depends on
// the kernels only, so the bytes do not depend on the number of threads. Throws UserError E0404.
std::vector<ObjectCode> generate_objects(const std::vector<tir::PrimFunc>& kernels,
                                         const Target& target, int threads);

// One shared object from these objects, exporting the descriptor that lists the kernels in order
// (runtime/core/kernel_abi.h) and needing nothing but libc and libm. Equal input gives equal bytes.
std::string link_shared(const std::vector<ObjectCode>& objects,
                        const std::vector<tir::PrimFunc>& kernels, const Target& target);

// Kernels compiled into this process.
class JitModule {
 public:
  JitModule(const std::vector<tir::PrimFunc>& kernels, const Target& target);
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
