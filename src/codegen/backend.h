// What a code generator is: lowered kernels in, machine code out. The driver, the constant evaluator and the tests see
// this and no code generator. A kind of target names its own (target/target_kind.h).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/kernel_cache.h"
#include "runtime/core/kernel_abi.h"
#include "target/target_text.h"
#include "tir/intrinsics.h"
#include "tir/stmt.h"

namespace relay {

namespace hostcode {
struct Program;
}

// A relocatable object file.
using ObjectCode = std::string;

// Kernels in this process; copies share their code, which goes with the last.
class LoadedKernels {
 public:
  LoadedKernels(std::vector<relay_kernel> functions, std::shared_ptr<void> code)
      : functions_(std::move(functions)), code_(std::move(code)) {}
  // In the order in which they were given.
  const std::vector<relay_kernel>& functions() const { return functions_; }

 private:
  std::vector<relay_kernel> functions_;
  std::shared_ptr<void> code_;
};

// What a kernel is made to, for people.
enum class CodeText {
  Intermediate,  // the code generator's own language
  Assembly,
};

// Kernels are lowered (tir/lower_loops.h). All functions may be called from several threads, and throw UserError E0404
// where code cannot be made.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  // Whether it makes code for the target.
  virtual bool supports(const Target& target) const = 0;
  // Throws UserError E1506 or E1507 where the part that makes code for a supported target is not installed.
  virtual void check_installed(const Target&) const {}
  // What it reads of target strings.
  virtual const TargetReader& reader() const = 0;
  // Whether it makes code for a call of the intrinsic.
  virtual bool has_intrinsic(const tir::Intrinsic& intrinsic) const = 0;

  // False: `compile` makes bytes that the driver of a device compiles when the program runs, and the host's backend embeds
  // them (runtime/device_source.h).
  virtual bool makes_objects() const { return true; }

  // An object file for each kernel, made on that many threads. What `cache` (may be null) holds is taken from there, and
  // the rest is put there. The bytes depend on the kernel and the target only. `each` (may be null) is called behind each
  // kernel, by the thread that made it.
  virtual std::vector<ObjectCode> compile(const std::vector<tir::PrimFunc>& kernels,
                                          const Target& target, int threads, KernelCache* cache,
                                          const std::function<void()>& each = nullptr) const = 0;
  // One shared object from these objects, exporting the descriptor that lists the kernels in order
  // (runtime/core/kernel_abi.h) and needing nothing but libc and libm. Equal input gives equal bytes.
  virtual std::string link(const std::vector<ObjectCode>& objects,
                           const std::vector<tir::PrimFunc>& kernels,
                           const Target& target) const = 0;
  // The kernels in this process, which the target must be able to run.
  virtual LoadedKernels load(const std::vector<tir::PrimFunc>& kernels, const Target& target,
                             KernelCache* cache) const = 0;
  // How many parameters a function between kernels may have for code to be made for it; nullopt where all of them are
  // interpreted.
  virtual std::optional<size_t> most_host_params(const Target& target) const;
  // An object file with all functions of host code, which exports their descriptor (runtime/core/native_abi.h), for `link`.
  virtual ObjectCode compile_host(const hostcode::Program& program, const Target& target,
                                  KernelCache* cache) const;
  // An object file that has the bytes at the entry of the kernel.
  virtual ObjectCode embed(const tir::PrimFunc& kernel, const std::string& bytes,
                           const Target& target) const;
  virtual std::string text(CodeText form, const std::vector<tir::PrimFunc>& kernels,
                           const Target& target) const = 0;
};

// That of the target's kind. Throws UserError E0403, which lists the architectures that there is code for, when it does not
// support the target.
const Backend& backend_of(const Target& target);

// Features that code of the kernels uses beside those that all code for the target may use: what their schedules wrote
// into their `features`.
std::vector<std::string> features_of(const std::vector<tir::PrimFunc>& kernels);

// The libraries beside the runtime that the kernels call, by file name (runtime/core/string_functions.h).
std::vector<std::string> libraries_of(const std::vector<tir::PrimFunc>& kernels);

// The kernels in this process, by the target's backend. Throws UserError E0610 when this machine cannot run them.
LoadedKernels load_kernels(const std::vector<tir::PrimFunc>& kernels, const Target& target,
                           KernelCache* cache = nullptr);

// An intrinsic that the kernel calls and the backend makes no code for; null where it has all.
const tir::Intrinsic* missing_intrinsic(const Backend& backend, const tir::PrimFunc& kernel);

// Throws UserError E0401, naming kernel and intrinsic, when a kernel calls what the backend makes no code for.
void check_intrinsics(const Backend& backend, const std::vector<tir::PrimFunc>& kernels);

}  // namespace relay
