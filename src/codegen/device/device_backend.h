// What the backends of devices have in common: the driver of the device compiles their kernels when a program runs, and the
// host's backend embeds them (runtime/device_source.h).
#pragma once

#include "codegen/backend.h"
#include "runtime/device_source.h"

namespace relay::codegen {

class DeviceBackend : public Backend {
 public:
  bool makes_objects() const override { return false; }
  std::string link(const std::vector<ObjectCode>&, const std::vector<tir::PrimFunc>&,
                   const Target& target) const override;
  LoadedKernels load(const std::vector<tir::PrimFunc>&, const Target& target,
                     KernelCache*) const override;

 private:
  [[noreturn]] static void needs_host(const Target& target);
};

}  // namespace relay::codegen
