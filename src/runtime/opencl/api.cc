#include "runtime/opencl/api.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "base/codes/runtime.h"

namespace relay::runtime::opencl {
namespace {

constexpr const char* kLibrary = "libOpenCL.so.1";

[[noreturn]] void no_library(const std::string& name, const std::string& why) {
  throw RuntimeError(
      Diagnostic(codes::run_no_device, {}, "there is no OpenCL: " + why)
          .expected("the OpenCL loader " + name)
          .help("install an OpenCL driver and its loader (Debian: ocl-icd-libopencl1, and "
                "pocl-opencl-icd for processors), or compile for another target"));
}

Api open_library() {
  const char* asked = std::getenv("RELAY_OPENCL");
  const std::string name = asked != nullptr && *asked != '\0' ? asked : kLibrary;
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    no_library(name, why != nullptr ? why : name + " cannot be opened");
  }
  Api out;
#define RELAY_OPENCL_FIND(function, result, parameters)                             \
  out.function = reinterpret_cast<result(*) parameters>(dlsym(library, #function)); \
  if (out.function == nullptr) no_library(name, name + " has no function " #function);
  RELAY_OPENCL_FUNCTIONS(RELAY_OPENCL_FIND)
#undef RELAY_OPENCL_FIND
  return out;
}

}  // namespace

const Api& api() {
  static const Api opened = open_library();
  return opened;
}

bool is_out_of_memory(Int result) {
  return result == kMemObjectAllocationFailure || result == kOutOfResources ||
         result == kOutOfHostMemory || result == kInvalidBufferSize;
}

void check(Int result, const char* what) {
  if (result == kSuccess) return;
  if (is_out_of_memory(result)) {
    throw RuntimeError(Diagnostic(codes::run_out_of_memory, {},
                                  "the OpenCL device is out of memory: " + std::string(what))
                           .found("OpenCL error " + std::to_string(result))
                           .help("use smaller sizes, or a device with more memory"));
  }
  throw RuntimeError(
      Diagnostic(codes::run_device_failed, {}, "the OpenCL device fails: " + std::string(what))
          .found("OpenCL error " + std::to_string(result)));
}

}  // namespace relay::runtime::opencl
