// NVPTX: PTX for NVIDIA's devices.
#include <llvm/Support/TargetSelect.h>

#include "codegen/llvm/architecture.h"

namespace relay::codegen {
namespace {

// LLVM has no parser of PTX.
void initialize_nvptx() {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
}

// Its processors are CudaReader's.
std::optional<std::string> nvptx_features_of(std::string_view) { return std::nullopt; }

}  // namespace

extern const LlvmArchitecture kLlvmNVPTX;
const LlvmArchitecture kLlvmNVPTX{.name = "nvptx64",
                                  .initialize = initialize_nvptx,
                                  .features_of = nvptx_features_of,
                                  .scale = nullptr,
                                  .gathers = false,
                                  .libm = {},
                                  .divides_integers = true};

}  // namespace relay::codegen
