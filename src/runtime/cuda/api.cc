#include "runtime/cuda/api.h"

#include <dlfcn.h>

#include <cstdlib>

#include "base/codes/runtime.h"

namespace relay::runtime::cuda {
namespace {

constexpr const char* kCudaLibrary = "libcuda.so.1";

[[noreturn]] void no_cuda(const std::string& name, const std::string& why) {
  throw RuntimeError(Diagnostic(codes::run_no_device, {}, "there is no CUDA: " + why)
                         .expected("the library of NVIDIA's driver, " + name)
                         .help("install NVIDIA's driver for the GPU, or compile for another "
                               "target"));
}

Api open_cuda() {
  const char* asked = std::getenv("RELAY_CUDA");
  const std::string name = asked != nullptr && *asked != '\0' ? asked : kCudaLibrary;
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    no_cuda(name, why != nullptr ? why : name + " cannot be opened");
  }
  Api out;
#define RELAY_CUDA_FIND(function, result, parameters)                               \
  out.function = reinterpret_cast<result(*) parameters>(dlsym(library, #function)); \
  if (out.function == nullptr) no_cuda(name, name + " has no function " #function);
  RELAY_CUDA_FUNCTIONS(RELAY_CUDA_FIND)
#undef RELAY_CUDA_FIND
  return out;
}

}  // namespace

const Api& api() {
  static const Api opened = open_cuda();
  return opened;
}

std::string name_of(Result result) {
  const char* name = nullptr;
  const char* text = nullptr;
  api().cuGetErrorName(result, &name);
  api().cuGetErrorString(result, &text);
  std::string out = name != nullptr ? name : "CUDA error";
  out += " (" + std::to_string(result) + ")";
  if (text != nullptr) out += ": " + std::string(text);
  return out;
}

}  // namespace relay::runtime::cuda
