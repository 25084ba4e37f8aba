#include "codegen/opencl/backend.h"

#include <charconv>
#include <cinttypes>
#include <cstdio>

#include "base/parallel.h"
#include "codegen/device/device_backend.h"
#include "codegen/device/lowering.h"
#include "codegen/kernel_cache.h"
#include "codegen/opencl/print_expressions.h"
#include "codegen/opencl/print_kernel.h"
#include "runtime/checksum.h"
#include "runtime/core/dlpack.h"
#include "runtime/opencl/device.h"

namespace relay::codegen {
namespace {

// Of an item in a group of the most items, on any GPU.
constexpr int64_t kGpuRegisters = 48;

constexpr const char* kBuild = "-build";

// Of the device whose driver builds the kernels; nothing for a target that does not say one.
std::optional<uint16_t> device_number(const TargetWords& words) {
  const std::string text = words.value_of(kBuild);
  uint16_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

// The binary of a kernel's code, which the cache may have.
runtime::DeviceBinary built(runtime::opencl::OpenDevice& device, const std::string& code,
                            KernelCache* cache) {
  const std::string name = device.binary_device();
  runtime::Checksum sum;
  sum.add(name.c_str(), name.size() + 1);
  sum.add(code.data(), code.size());
  const runtime::Digest digest = sum.digest();
  char key[33];
  std::snprintf(key, sizeof(key), "%016" PRIx64 "%016" PRIx64, digest.high, digest.low);
  if (cache != nullptr) {
    if (auto known = cache->find(key)) return {name, std::move(*known)};
  }
  runtime::DeviceBinary out = device.binary_of(code);
  if (cache != nullptr) cache->insert(key, out.bytes);
  return out;
}

class OpenclReader : public TargetReader {
 public:
  std::vector<std::string> names() const override { return {"opencl"}; }
  std::span<const TargetOption> options() const override {
    static constexpr TargetOption kOptions[] = {
        {"-device", "KIND",
         "any (the default), whose work items may be lanes of a processor's vectors, or gpu, where "
         "those of a group run side by side."},
        {kBuild, "NUMBER",
         "a device of this machine (0: the first), whose driver builds the kernels: compiled files "
         "have its binaries beside the source."}};
    return kOptions;
  }
  Target read(const TargetWords& words) const override {
    const std::string device = words.value_of("-device");
    if (!device.empty() && device != "any" && device != "gpu") {
      words.refuse("-device=" + device + " is no kind of device", "any, or gpu");
    }
    if (!words.value_of(kBuild).empty() && !device_number(words)) {
      words.refuse(std::string(kBuild) + "=" + words.value_of(kBuild) + " is no device",
                   "a number from 0 on, as relay doctor lists the devices");
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
  std::vector<ObjectCode> compile(const std::vector<tir::PrimFunc>& kernels, const Target& target,
                                  int threads, KernelCache* cache,
                                  const std::function<void()>& each) const override {
    std::vector<ObjectCode> out(kernels.size());
    const std::optional<uint16_t> number = device_number(TargetWords(target.name));
    runtime::opencl::OpenDevice* device =
        number ? &runtime::opencl::open_opencl_device(*number) : nullptr;
    for_each_parallel(kernels.size(), threads, [&](size_t i) {
      runtime::DeviceSource source = opencl_source(*kernels[i].get());
      if (device != nullptr) source.binaries.push_back(built(*device, source.code, cache));
      out[i] = runtime::to_bytes(source);
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
