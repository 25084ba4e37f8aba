#include "codegen/opencl/backend.h"

#include "base/parallel.h"
#include "codegen/device/device_backend.h"
#include "codegen/device/lowering.h"
#include "codegen/opencl/print_expressions.h"
#include "codegen/opencl/print_kernel.h"
#include "runtime/core/dlpack.h"

namespace relay::codegen {
namespace {

// Of an item in a group of the most items, on any GPU.
constexpr int64_t kGpuRegisters = 48;

class OpenclReader : public TargetReader {
 public:
  std::vector<std::string> names() const override { return {"opencl"}; }
  std::span<const TargetOption> options() const override {
    static constexpr TargetOption kOptions[] = {
        {"-device", "KIND",
         "any (the default), whose work items may be lanes of a processor's vectors, or gpu, where "
         "those of a group run side by side."}};
    return kOptions;
  }
  Target read(const TargetWords& words) const override {
    const std::string device = words.value_of("-device");
    if (!device.empty() && device != "any" && device != "gpu") {
      words.refuse("-device=" + device + " is no kind of device", "any, or gpu");
    }
    Target t;
    t.name = words.text();
    t.vector_bits = 32;
    t.has_blocked_kernels = false;
    if (device == "gpu") t.limits.items.item_registers = kGpuRegisters;
    return t;
  }
};

class OpenclBackend : public DeviceBackend {
 public:
  std::string_view name() const override { return "opencl"; }
  bool supports(const Target& target) const override {
    return target.kind == "opencl" && target.arch.empty();
  }
  const TargetReader& reader() const override { return reader_; }
  bool has_intrinsic(const tir::Intrinsic& intrinsic) const override {
    return has_opencl_form(intrinsic);
  }
  std::vector<ObjectCode> compile(const std::vector<tir::PrimFunc>& kernels, const Target&,
                                  int threads, KernelCache*,
                                  const std::function<void()>& each) const override {
    std::vector<ObjectCode> out(kernels.size());
    for_each_parallel(kernels.size(), threads, [&](size_t i) {
      out[i] = runtime::to_bytes(opencl_source(*kernels[i].get()));
      if (each) each();
    });
    return out;
  }
  std::string text(CodeText, const std::vector<tir::PrimFunc>& kernels,
                   const Target&) const override {
    std::string out;
    for (const tir::PrimFunc& f : kernels) {
      out += "// " + f->name + "\n" + runtime::to_text(opencl_source(*f.get())) + "\n";
    }
    return out;
  }

 private:
  OpenclReader reader_;
};

const Backend& opencl_backend() {
  static const OpenclBackend backend;
  return backend;
}

}  // namespace

TargetKind opencl_kind() {
  TargetKind kind;
  kind.name = "opencl";
  kind.backend = opencl_backend;
  kind.lowering = device_lowering;
  kind.device = kDLOpenCL;
  return kind;
}

}  // namespace relay::codegen
