// Tensors on devices outside of runs, and what programs make of them, over mocks of CUDA and OpenCL: copies, DLPack, lifetimes.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <numeric>

#include "runtime/device_driver.h"
#include "runtime/device_tensor.h"
#include "runtime/profiler.h"
#include "runtime/test/device_kernel_bytes.h"
#include "runtime/test/mock_cuda.h"
#include "runtime/test/mock_opencl.h"
#include "runtime/test/vm_program.h"

namespace relay::runtime {
namespace {

constexpr Device kMockCuda{kDLCUDA, 0}, kMockOpencl{kDLOpenCL, 0};

class DeviceTensors : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("RELAY_CUDA", RELAY_MOCK_CUDA, 1);
    setenv("RELAY_OPENCL", RELAY_MOCK_OPENCL, 1);
  }
  template <class State>
  static State* state_of(const char* library, const char* function) {
    void* opened = dlopen(library, RTLD_NOW);
    EXPECT_NE(opened, nullptr) << dlerror();
    return reinterpret_cast<State* (*)()>(dlsym(opened, function))();
  }
  void SetUp() override {
    cuda_ = state_of<mock_cuda>(RELAY_MOCK_CUDA, MOCK_CUDA_STATE);
    opencl_ = state_of<mock_opencl>(RELAY_MOCK_OPENCL, MOCK_OPENCL_STATE);
    cuda_->fault_after = -1;
    cuda_->tells_other_context = opencl_->tells_other_context = opencl_->is_lost = 0;
    cuda_->memory = opencl_->memory = size_t{1} << 30;
  }
  void TearDown() override { expect_nothing_left("at the end"); }

  void expect_nothing_left(const std::string& when) {
    EXPECT_EQ(cuda_->blocks, 0) << when;
    EXPECT_EQ(cuda_->streams, 0) << when;
    EXPECT_EQ(cuda_->pinned, 0) << when;
    EXPECT_EQ(opencl_->buffers, 0) << when;
    EXPECT_EQ(opencl_->queues, 0) << when;
  }

  static Tensor numbers(int64_t n) {
    Tensor out = Tensor::empty(DType::Float(32), {n});
    std::iota(out.data<float>(), out.data<float>() + n, 1.0f);
    return out;
  }

  mock_cuda* cuda_ = nullptr;
  mock_opencl* opencl_ = nullptr;
};

TEST_F(DeviceTensors, go_there_and_come_back) {
  const Tensor here = numbers(5), none = Tensor::empty(DType::Int(8), {3, 0});
  for (const Device device : {kMockCuda, kMockOpencl}) {
    const Tensor there = to_device(here, device), empty = to_device(none, device);
    EXPECT_EQ(there.device(), device);
    EXPECT_TRUE(to_device(there, device).same_as(there));
    EXPECT_TRUE(bit_equal(to_host(there), here));
    EXPECT_TRUE(
        bit_equal(to_host(to_device(there, device == kMockCuda ? kMockOpencl : kMockCuda)), here));
    EXPECT_TRUE(bit_equal(to_host(device_exchange().copy(there)), here));
    EXPECT_EQ(to_host(empty).dim(0), 3);
  }
  EXPECT_TRUE(to_host(here).same_as(here));
}

TEST_F(DeviceTensors, errors_of_devices_are_told_E0604_E0620) {
  EXPECT_NE(error_of([] {
              to_device(numbers(4), Device{kDLCUDA, 7});
            }).find("E0620"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              to_device(numbers(4), Device{kDLVulkan, 0});
            }).find("E0620"),
            std::string::npos);
  EXPECT_NE(
      error_of([] { to_device(Tensor::zeros(DType::String(), {2}), kMockOpencl); }).find("E0602"),
      std::string::npos);
  opencl_->memory = 4096;
  EXPECT_NE(error_of([] { to_device(numbers(8192), kMockOpencl); }).find("E0604"),
            std::string::npos);
}

template <class Managed>
Managed* given(const Tensor& t) {
  if constexpr (std::is_same_v<Managed, DLManagedTensor>) {
    return to_dlpack(t, device_exchange());
  } else {
    return to_dlpack_versioned(t, device_exchange());
  }
}

// The memory comes back with its numbers and without a copy, and is freed once, by whoever has it last.
template <class Managed>
void expect_round_trip(const Device& device, const Tensor& here) {
  Tensor there = to_device(here, device);
  const void* data = there.data();
  auto* managed = given<Managed>(there);
  EXPECT_EQ(managed->dl_tensor.device.device_type, device.type);
  if (device == kMockCuda) {
    EXPECT_EQ(managed->dl_tensor.data, data);
  }
  there = nullptr;
  const Tensor again = from_dlpack(managed, device_exchange());
  EXPECT_EQ(again.device(), device);
  EXPECT_TRUE(bit_equal(to_host(again), here));
  // The form that a view of it has: a place behind the begin.
  auto* view = given<Managed>(again.reshape({here.num_elements(), 1}));
  view->dl_tensor.byte_offset += 4;
  int64_t less[1] = {here.num_elements() - 1};
  view->dl_tensor.shape = less;
  view->dl_tensor.ndim = 1;
  const Tensor part = from_dlpack(view, device_exchange());
  EXPECT_EQ(to_host(part).get_as_double(0), 2);
}

TEST_F(DeviceTensors, dlpack_shares_memory_in_both_directions) {
  for (const Device device : {kMockCuda, kMockOpencl}) {
    expect_round_trip<DLManagedTensor>(device, numbers(6));
    expect_round_trip<DLManagedTensorVersioned>(device, numbers(6));
    expect_nothing_left(device.to_string());
  }
}

TEST_F(DeviceTensors, cuda_memory_waits_for_work_of_others) {
  const Tensor there = to_device(numbers(4), kMockCuda);
  DLManagedTensor* managed = to_dlpack(there, device_exchange());
  cuda_->context_waits = 0;
  Tensor again = from_dlpack(managed, device_exchange());
  EXPECT_EQ(cuda_->context_waits, 1) << "what writes it is done";
  again = nullptr;
  EXPECT_EQ(cuda_->context_waits, 2) << "what reads it is done before the pool has it again";
}

// Others may have work in their queues that uses the memory, and may have retained it.
TEST_F(DeviceTensors, opencl_memory_of_others_is_not_used_again) {
  const auto kept = ready_for_copies(kMockOpencl);
  Tensor mine = to_device(numbers(4), kMockOpencl), lent = to_device(numbers(4), kMockOpencl);
  const int buffers = opencl_->buffers;
  DLManagedTensor* managed =
      to_dlpack(lent.reshape({2, 2}), device_exchange());  // another tensor over the memory
  managed->deleter(managed);
  EXPECT_EQ(opencl_->buffers, buffers);
  lent = nullptr;
  EXPECT_EQ(opencl_->buffers, buffers - 1) << "it goes back to the driver";
  mine = nullptr;
  EXPECT_EQ(opencl_->buffers, buffers - 1) << "nobody else has had it";
}

TEST_F(DeviceTensors, read_only_tensors_stay_so) {
  for (const Device device : {kMockCuda, kMockOpencl}) {
    Tensor there = to_device(numbers(3), device);
    there.rep()->read_only = true;
    const Tensor same =
        from_dlpack(to_dlpack_versioned(there, device_exchange()), device_exchange());
    EXPECT_TRUE(same.read_only());
    // The legacy form cannot say it, and gives a copy.
    const Tensor copy = from_dlpack(to_dlpack(there, device_exchange()), device_exchange());
    EXPECT_FALSE(copy.read_only());
    EXPECT_TRUE(bit_equal(to_host(copy), numbers(3)));
  }
}

TEST_F(DeviceTensors, must_fail_memory_that_cannot_be_used_E0602) {
  auto refused = [](Device device, const std::function<void(DLTensor&)>& damage) {
    DLManagedTensor* managed = to_dlpack(to_device(numbers(6), device), device_exchange());
    damage(managed->dl_tensor);
    const std::string error = error_of([&] { from_dlpack(managed, device_exchange()); });
    EXPECT_NE(error.find("E0602"), std::string::npos) << error;
    return error;
  };
  int64_t strides[1] = {2};
  for (const Device device : {kMockCuda, kMockOpencl}) {
    EXPECT_NE(refused(device,
                      [&](DLTensor& t) {
                        t.strides = strides;
                        t.shape[0] = 3;
                      })
                  .find("not contiguous"),
              std::string::npos);
    EXPECT_NE(refused(device, [](DLTensor& t) { t.byte_offset += 2; }).find("not aligned"),
              std::string::npos);
    EXPECT_NE(refused(device, [](DLTensor& t) { t.dtype.lanes = 4; }).find("dtype"),
              std::string::npos);
    EXPECT_NE(refused(device, [](DLTensor& t) { t.data = nullptr; }).find("no data"),
              std::string::npos);
    expect_nothing_left(device.to_string());
  }
  refused(kMockOpencl, [](DLTensor& t) { t.shape[0] = 1 << 20; });
  refused(kMockCuda, [](DLTensor& t) { t.data = &t; });
  cuda_->tells_other_context = opencl_->tells_other_context = 1;
  EXPECT_NE(refused(kMockOpencl, [](DLTensor&) {}).find("another OpenCL context"),
            std::string::npos);
  EXPECT_NE(refused(kMockCuda, [](DLTensor&) {}).find("is not of cuda:0"), std::string::npos);
  // Without the drivers nothing of a device is taken.
  cuda_->tells_other_context = opencl_->tells_other_context = 0;
  const Tensor there = to_device(numbers(6), kMockCuda);
  EXPECT_NE(error_of([&] {
              from_dlpack(to_dlpack(there, device_exchange()));
            }).find("not in the CPU's memory"),
            std::string::npos);
}

TEST_F(DeviceTensors, a_lost_device_is_told_E0622) {
  const Tensor there = to_device(numbers(4), kMockOpencl);
  opencl_->is_lost = 1;
  EXPECT_NE(error_of([&] { to_host(there); }).find("E0622"), std::string::npos);
  opencl_->is_lost = 0;
}

TEST_F(DeviceTensors, a_child_of_fork_is_told_E0622) {
  for (const Device device : {kMockCuda, kMockOpencl}) {
    Tensor there = to_device(numbers(4), device);
    const pid_t child = fork();
    if (child == 0) {
      opencl_->queues = 0;
      auto is_told = [](const std::string& error) {
        return error.find("E0622") != std::string::npos &&
               error.find("a child of a process") != std::string::npos;
      };
      const bool all = is_told(error_of([&] { to_host(there); })) &&
                       is_told(error_of([&] { to_device(numbers(4), device); })) &&
                       is_told(error_of([&] { to_dlpack(there, device_exchange()); }));
      there = nullptr;  // the parent has the memory and the queue
      _exit(all && opencl_->queues == 0 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 0) << device.to_string();
  }
}

// Programs that take and give tensors on a device.
class DevicePrograms : public VmTest {
 protected:
  static void SetUpTestSuite() {
    setenv("RELAY_CUDA", RELAY_MOCK_CUDA, 1);
    setenv("RELAY_OPENCL", RELAY_MOCK_OPENCL, 1);
  }

  // y = x, both there.
  void identity_on(Device device) {
    program = {};
    kernels.clear();
    TensorSpec spec{DType::Float(32), {8}, {}, device};
    FunctionBuilder f("main");
    const int32_t x = f.param("x", spec);
    f.result("y", spec);
    f.ret(x);
    put(std::move(f));
  }
  static Profiler::Copies copies_of(const Module& ready, const Tensor& x, bool keeps,
                                    std::vector<Tensor>& results) {
    Profiler profiler;
    RunOptions options;
    options.profiler = &profiler;
    options.keeps_on_devices = keeps;
    results = ready.run("main", {x}, options);
    return profiler.copies();
  }
};

TEST_F(DevicePrograms, copy_what_is_elsewhere_and_count_it) {
  const Tensor here = vector8(3);
  for (const Device device : {kMockCuda, kMockOpencl}) {
    identity_on(device);
    std::vector<Tensor> results;
    const Module ready = module();
    EXPECT_EQ(copies_of(ready, here, false, results), (Profiler::Copies{32, 32}));
    EXPECT_TRUE(bit_equal(results[0], here));
    EXPECT_EQ(copies_of(ready, here, true, results), (Profiler::Copies{32, 0}));
    EXPECT_EQ(results[0].device(), device);
    const Tensor there = results[0];
    EXPECT_EQ(copies_of(ready, there, true, results), (Profiler::Copies{0, 0}));
    EXPECT_EQ(results[0].data(), there.data());
    const Device other = device == kMockCuda ? kMockOpencl : kMockCuda;
    EXPECT_EQ(copies_of(ready, to_device(here, other), true, results), (Profiler::Copies{32, 32}));
    EXPECT_TRUE(bit_equal(to_host(results[0]), here));
    const Tensor place = Tensor::zeros(DType::Float(32), {8});
    ready.run_into("main", std::span(&there, 1), std::span(&place, 1));
    EXPECT_TRUE(bit_equal(place, here));
    EXPECT_NE(error_of([&] {
                ready.run_into("main", std::span(&there, 1), std::span(&there, 1));
              }).find("memory of the host"),
              std::string::npos);
  }
}

TEST_F(DevicePrograms, results_outlive_the_program) {
  const Tensor here = vector8(5);
  for (const Device device : {kMockCuda, kMockOpencl}) {
    Tensor result;
    {
      identity_on(device);
      std::vector<Tensor> results;
      copies_of(module(), here, true, results);
      result = results[0];
    }
    EXPECT_TRUE(bit_equal(to_host(result), here));
  }
}

}  // namespace
}  // namespace relay::runtime
