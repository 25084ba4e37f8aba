// The bodies of kernels, and how they are made: for what turns them into machine code. The plan and
// the virtual machine do not include this header.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/expr.h"
#include "lower/kernel_signature.h"
#include "target/target.h"
#include "tir/stmt.h"

namespace relay {

// A function of tensor IR at the stages of its way to machine code.
struct TirLaunch {
  tir::PrimFunc composed{};   // blocks as the operators' rules gave them
  tir::PrimFunc scheduled{};  // blocks in the loops of a schedule rule
  tir::PrimFunc lowered{};    // loops and stores, what code generation takes
};

// Code that Relay generates, a function for each launch of the signature, in its order of buffers.
struct TirKernel {
  std::vector<TirLaunch> launches;
};

// A function of a library beside the runtime; of one launch.
struct ExternalCall {
  std::string library;  // a file name (runtime/core/library_names.h): "librelay_dnnl.so"
  std::string symbol;   // a relay_kernel (runtime/core/kernel_abi.h)
};

// A function that the process which runs the program registers (runtime/external_kernels.h).
struct HostFunction {
  std::string name;
};

struct KernelBody : std::variant<TirKernel, ExternalCall, HostFunction> {
  using variant::variant;
};

// A kernel that a source has for a primitive function, for dense buffers in the order of the
// function's parameters and results.
struct OfferedKernel {
  KernelBody body;
  // As in KernelSignature. Tensor IR that may write in place is one launch, which writes the result
  // alone.
  std::vector<Dim> sizes{};
  std::vector<size_t> in_place{};
  std::vector<TensorType> workspace{};  // see KernelWorkspace
  // Of a body of tensor IR; without any there is one that reads the inputs and writes the rest.
  std::vector<KernelLaunch> launches{};
  double flops = 0;
  double bytes = 0;
  std::string how{};  // what it is, for reports
};

// Has kernels for some primitive functions, in place of those that are composed of operators.
class KernelSource {
 public:
  virtual ~KernelSource() = default;
  virtual std::string_view name() const = 0;
  // nullopt for a function that it has no kernel for. The parameters' types name every size.
  virtual std::optional<OfferedKernel> offer(const FunctionNode& primitive,
                                             const Target& target) const = 0;
};

// Gets a kernel after "compose", "schedule", each of the lowering passes of the target's kind, and
// "index_width" where the target's indices are narrower than those of the passes, and returns what the
// next stage gets. Called from several threads at once.
using KernelObserver = std::function<tir::PrimFunc(std::string_view stage, tir::PrimFunc f)>;

struct ProviderOptions {
  // Of the host, and of the program's devices.
  Target target{};
  std::vector<std::pair<runtime::Device, Target>> devices{};
  // 0: kernels stay as they are composed.
  int opt_level = 0;
  // Checks each kernel after every stage.
  bool verify = false;
  KernelObserver observer = nullptr;
  // Threads that schedule.
  int threads = 1;
  // Asked in this order; the first that has a kernel gives it.
  std::vector<std::shared_ptr<const KernelSource>> sources{};
};

}  // namespace relay
