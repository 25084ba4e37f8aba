#include "codegen/cuda/backend.h"

#include <algorithm>
#include <string>

#include "codegen/cuda/cuda_kernel.h"
#include "codegen/device/device_backend.h"
#include "codegen/device/lowering.h"
#include "codegen/llvm/codegen.h"
#include "codegen/llvm/machine.h"
#include "runtime/core/dlpack.h"
#include "target/matrix_instructions.h"

namespace relay::codegen {
namespace {

// The architectures, as LLVM and ptxas name them. PTX of one runs on every later one, except that sm_90a is for devices of
// 9.0 alone.
constexpr std::string_view kArchitectures[] = {"sm_75", "sm_80", "sm_86",
                                               "sm_89", "sm_90", "sm_90a"};

class CudaReader : public TargetReader {
 public:
  std::vector<std::string> names() const override { return {"cuda"}; }
  std::span<const TargetOption> options() const override {
    static constexpr TargetOption kOptions[] = {
        {"-arch", "ARCH",
         "The least device that runs the code: sm_75 (the default: code for it runs on every later "
         "device), sm_80, sm_86, sm_89, sm_90, or sm_90a for devices of 9.0 alone."},
        {"-mattr", "+tf32",
         "Products of matrices of float32 round their operands to 10 bits of mantissa, on tensor "
         "cores: from sm_80 on."}};
    return kOptions;
  }
  Target read(const TargetWords& words) const override {
    std::string arch = words.value_of("-arch");
    if (arch.empty()) arch = kArchitectures[0];
    if (std::ranges::find(kArchitectures, arch) == std::end(kArchitectures)) {
      std::vector<std::string> known(std::begin(kArchitectures), std::end(kArchitectures));
      words.refuse("-arch=" + arch + " is no architecture that there is code for", joined(known));
    }
    Target t;
    t.name = words.text();
    t.arch = "nvptx64";
    t.triple = "nvptx64-nvidia-cuda";
    t.cpu = arch;
    t.vector_bits = 32;
    t.has_fma = true;
    t.converts_float16 = true;
    t.has_blocked_kernels = false;
    // "sm_90a" is compute capability 90.
    const int capability = std::stoi(arch.substr(3));
    t.limits.items = nvidia_items(capability);
    t.features = nvidia_matrix_features(capability);
    // PTX of LLVM's default version for it has no instructions for matrices.
    if (capability == 75) t.features += ",+ptx65";
    const std::string word = words.value_of("-mattr"), tf32 = "+" + std::string(kTf32);
    if (!word.empty() && word != tf32) {
      words.refuse(word + " is no feature of cuda", tf32);
    }
    if (!word.empty() && capability < 80) {
      words.refuse(arch + " has no products of tf32", "-arch=sm_80 or a later one");
    }
    if (!word.empty()) t.features += "," + word;
    return t;
  }
};

class CudaBackend : public DeviceBackend {
 public:
  std::string_view name() const override { return "cuda"; }
  bool supports(const Target& target) const override {
    return target.kind == "cuda" && target.arch == "nvptx64";
  }
  void check_installed(const Target& target) const override { check_code_generator(target.triple); }
  const TargetReader& reader() const override { return reader_; }
  // Strings, images and print are the host's.
  bool has_intrinsic(const tir::Intrinsic& intrinsic) const override {
    return intrinsic.rule != tir::IntrinsicRule::String || intrinsic.name == "index_in" ||
           intrinsic.name == "print_mark";
  }
  std::vector<ObjectCode> compile(const std::vector<tir::PrimFunc>& kernels, const Target& target,
                                  int threads, KernelCache* cache,
                                  const std::function<void()>& each) const override {
    Sources sources(kernels.size());
    const auto code = generate_code(kernels, target, writer(target, CodeForm::assembly, sources),
                                    threads, cache, each);
    std::vector<ObjectCode> out;
    for (size_t i = 0; i < kernels.size(); ++i) {
      sources[i].code = code[i];
      out.push_back(runtime::to_bytes(sources[i]));
    }
    return out;
  }
  std::string text(CodeText form, const std::vector<tir::PrimFunc>& kernels,
                   const Target& target) const override {
    Sources sources(kernels.size());
    const auto code = code_texts(
        kernels, target,
        writer(target, form == CodeText::Intermediate ? CodeForm::intermediate : CodeForm::assembly,
               sources));
    std::string out;
    for (size_t i = 0; i < kernels.size(); ++i) {
      sources[i].code = code[i];
      out += "// " + kernels[i]->name + "\n" + runtime::to_text(sources[i]) + "\n";
    }
    return out;
  }

 private:
  using Sources = std::vector<runtime::DeviceSource>;

  static KernelWriter writer(const Target& target, CodeForm form, Sources& sources) {
    return {[&target, &sources](llvm::Module& module, const tir::PrimFunc& f, size_t number) {
              sources[number] = build_cuda_kernel(module, f, target);
            },
            [](const tir::PrimFunc&) { return CodePasses::device; }, form};
  }

  CudaReader reader_;
};

const Backend& cuda_backend() {
  static const CudaBackend backend;
  return backend;
}

}  // namespace

TargetKind cuda_kind() {
  TargetKind kind;
  kind.name = "cuda";
  kind.backend = cuda_backend;
  kind.lowering = device_lowering;
  kind.device = kDLCUDA;
  return kind;
}

}  // namespace relay::codegen
