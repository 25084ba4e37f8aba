#include "runtime/external_kernels.h"

#include <map>
#include <mutex>

#include "base/codes/kernels.h"
#include "base/diagnostic.h"
#include "base/fork.h"
#include "runtime/core/library_names.h"
#include "runtime/core/string_functions.h"

namespace relay::runtime {
namespace {

struct HostKernels {
  // Never destroyed: programs may be loaded until the end of the process.
  static HostKernels& instance() {
    static auto* const kernels = new HostKernels;
    return *kernels;
  }
  ForkSafeMutex mutex;
  std::map<std::string, relay_kernel, std::less<>> by_name;
};

relay_kernel find(const KernelInfo& kernel) {
  if (kernel.linkage == KernelLinkage::library) {
    if (!is_library_name(kernel.library)) return nullptr;
    return reinterpret_cast<relay_kernel>(find_beside(kernel.library, kernel.symbol));
  }
  HostKernels& host = HostKernels::instance();
  std::lock_guard lock(host.mutex);
  auto it = host.by_name.find(kernel.symbol);
  return it == host.by_name.end() ? nullptr : it->second;
}

// A library may depend on others that are not part of Relay: relay_library_fault returns why it cannot run, or null.
void check_library(const KernelInfo& kernel) {
  if (kernel.linkage != KernelLinkage::library || !is_library_name(kernel.library)) return;
  auto fault =
      reinterpret_cast<const char* (*)()>(find_beside(kernel.library, "relay_library_fault"));
  const char* reason = fault == nullptr ? nullptr : fault();
  if (reason == nullptr) return;
  throw UserError(Diagnostic(codes::kernel_missing, {},
                             "the kernel " + escape_for_terminal(kernel.name, 200) + " needs " +
                                 escape_for_terminal(kernel.library, 200) + ", which cannot run")
                      .found(escape_for_terminal(reason, 400)));
}

}  // namespace

void register_host_kernel(const std::string& name, relay_kernel function) {
  HostKernels& host = HostKernels::instance();
  std::lock_guard lock(host.mutex);
  if (function == nullptr) {
    host.by_name.erase(name);
  } else {
    host.by_name.insert_or_assign(name, function);
  }
}

std::vector<relay_kernel> with_external_kernels(const Program& program,
                                                std::span<const relay_kernel> generated) {
  std::vector<relay_kernel> out;
  out.reserve(program.kernels.size());
  size_t next = 0;
  for (const KernelInfo& kernel : program.kernels) {
    if (kernel.linkage == KernelLinkage::generated) {
      out.push_back(generated[next++]);
      continue;
    }
    check_library(kernel);
    out.push_back(find(kernel));
    if (out.back() != nullptr) continue;
    const bool library = kernel.linkage == KernelLinkage::library;
    const std::string symbol = escape_for_terminal(kernel.symbol, 200);
    throw UserError(Diagnostic(codes::kernel_missing, {},
                               "the kernel " + escape_for_terminal(kernel.name, 200) +
                                   " is the function " + symbol +
                                   (library ? " of " + escape_for_terminal(kernel.library, 200) +
                                                  ", which is not beside the runtime"
                                            : ", which this process has not registered"))
                        .help(library ? "copy the library to the folder of the runtime"
                                      : "register the function before the program is loaded"));
  }
  return out;
}

}  // namespace relay::runtime
