// Programs on devices that are mocks: what a run makes of failures there, and when a device begins.
#include <dlfcn.h>

#include <cstdlib>
#include <deque>
#include <string>

#include "runtime/profiler.h"
#include "runtime/test/device_kernel_bytes.h"
#include "runtime/test/mock_cuda.h"
#include "runtime/test/vm_program.h"

namespace relay::runtime {
namespace {

class VmDevices : public VmTest {
 protected:
  static void SetUpTestSuite() {
    setenv("RELAY_OPENCL", RELAY_MOCK_OPENCL, 1);
    setenv("RELAY_CUDA", RELAY_MOCK_CUDA, 1);
  }

  // A kernel of the device with one buffer of 32 bytes and one size.
  int32_t device_kernel(const std::string& name, Device device) {
    const bool is_cuda = device.type == kDLCUDA;
    bytes_.push_back(kernel_bytes(name, is_cuda ? "// params 4\n" : "kernel void " + name + "\n"));
    KernelInfo info{name, "", {32}, 0, 1, 0, 0};
    info.device = device;
    return add(info, entry_of(bytes_.back()));
  }
  int32_t add(KernelInfo info, relay_kernel entry) {
    program.kernels.push_back(std::move(info));
    kernels.push_back(entry);
    return static_cast<int32_t>(kernels.size()) - 1;
  }

 private:
  std::deque<std::string> bytes_;  // which stay where they are
};

// The first copy of a constant waits for the device: a failure that comes to light there is the run's.
TEST_F(VmDevices, a_failure_before_the_first_use_of_a_constant_E0605) {
  for (const Device device : {Device{kDLOpenCL, 0}, Device{kDLCUDA, 0}}) {
    program = {};
    kernels.clear();
    const int32_t failing = device_kernel("fails", device), next = device_kernel("exp", device),
                  c = constant(vector8(1));
    program.constant_devices = {device};
    FunctionBuilder f("main");
    f.result("y", kScalar);
    f.device(device, 32);
    const int32_t n = f.int_reg();
    f.load_int(n, 4);
    f.invoke_kernel(failing, {Operand::arena(0, 32), Operand::dim(n)});
    f.invoke_kernel(next, {Operand::constant(c), Operand::dim(n)});
    f.ret_scalar(n, DType::Int(64));
    put(std::move(f));
    fails("E0605");
  }
}

mock_cuda* mock = nullptr;
int given_before = 0;
void looks(void* const*, const int64_t*, const relay_kernel_context*) {
  given_before = mock->given;
}

TEST_F(VmDevices, a_device_works_while_a_kernel_of_the_host_runs) {
  void* library = dlopen(RELAY_MOCK_CUDA, RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  mock = reinterpret_cast<mock_cuda_function>(dlsym(library, MOCK_CUDA_STATE))();
  const Device device{kDLCUDA, 0};
  const int32_t adds = device_kernel("adds", device);
  for (const int64_t bytes : {int64_t{1} << 20, int64_t{8}}) {
    program.functions.clear();
    const int32_t host = add({"looks", "", {}, 0, 0, 0, bytes}, looks);
    FunctionBuilder f("main");
    f.result("y", kScalar);
    f.device(device, 32);
    const int32_t n = f.int_reg();
    f.load_int(n, 4);
    f.invoke_kernel(adds, {Operand::arena(0, 32), Operand::dim(n)});
    f.invoke_kernel(host, {});
    f.ret_scalar(n, DType::Int(64));
    put(std::move(f));
    const runtime::Module ready = module();
    ready.run("main", {});
    mock->launches = mock->given = 0;
    ready.run("main", {});
    EXPECT_EQ(mock->launches, 1);
    EXPECT_EQ(given_before, bytes > 8 ? 1 : 0) << "a small kernel ends before the device begins";
    Profiler profiler;
    RunOptions profiled;
    profiled.profiler = &profiler;
    mock->launches = mock->given = 0;
    ready.run("main", {}, profiled);
    EXPECT_EQ(given_before, 1) << "a profile waits for each kernel";
    EXPECT_EQ(profiler.rows(ready.program()).size(), 2u);
  }
}

}  // namespace
}  // namespace relay::runtime
