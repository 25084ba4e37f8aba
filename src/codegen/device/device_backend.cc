#include "codegen/device/device_backend.h"

#include "base/codes/lowering.h"

namespace relay::codegen {

void DeviceBackend::needs_host(const Target& target) {
  throw UserError(
      Diagnostic(codes::codegen_failed, {},
                 "kernels of '" + target.name + "' cannot run without a host")
          .help("compile a program for a host and the device: \"native; " + target.kind + "\""));
}

std::string DeviceBackend::link(const std::vector<ObjectCode>&, const std::vector<tir::PrimFunc>&,
                                const Target& target) const {
  needs_host(target);
}

LoadedKernels DeviceBackend::load(const std::vector<tir::PrimFunc>&, const Target& target,
                                  KernelCache*) const {
  needs_host(target);
}

}  // namespace relay::codegen
