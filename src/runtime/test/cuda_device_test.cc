// CUDA queues on a real device, with kernels in PTX: in a process of its own, as the last of them ends the context.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "runtime/device_driver.h"
#include "runtime/test/device_kernel_bytes.h"
#include "runtime/vm/bytecode.h"

namespace relay::runtime {
namespace {

// adds: each of 2 n int32 becomes one more. fails: writes the failure word. wild: writes to no memory.
constexpr const char* kPtx = R"(.version 6.4
.target sm_75
.address_size 64
.visible .entry adds(.param .u64 b0, .param .s64 n, .param .u64 failure, .param .s32 number) {
  .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<8>;
  ld.param.u64 %d1, [b0];
  ld.param.s64 %d2, [n];
  shl.b64 %d2, %d2, 1;
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mov.u32 %r4, %nctaid.x;
  mul.wide.u32 %d3, %r1, %r2;
  cvt.u64.u32 %d4, %r3;
  add.s64 %d3, %d3, %d4;
  mul.wide.u32 %d5, %r4, %r2;
next:
  setp.ge.s64 %p1, %d3, %d2;
  @%p1 bra end;
  shl.b64 %d6, %d3, 2;
  add.s64 %d6, %d1, %d6;
  ld.global.u32 %r5, [%d6];
  add.u32 %r5, %r5, 1;
  st.global.u32 [%d6], %r5;
  add.s64 %d3, %d3, %d5;
  bra next;
end:
  ret;
}
.visible .entry fails(.param .u64 b0, .param .s64 n, .param .u64 failure, .param .s32 number) {
  .reg .b32 %r<3>; .reg .b64 %d<2>;
  ld.param.u64 %d1, [failure];
  ld.param.s32 %r1, [number];
  mov.u32 %r2, 1;
  st.global.u32 [%d1], %r2;
  st.global.u32 [%d1+4], %r1;
  ret;
}
.visible .entry wild(.param .u64 b0, .param .s64 n, .param .u64 failure, .param .s32 number) {
  .reg .b32 %r<2>; .reg .b64 %d<2>;
  mov.u64 %d1, 64;
  mov.u32 %r1, 1;
  st.global.u32 [%d1], %r1;
  ret;
}
)";

[[noreturn]] void end_test(const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
  std::exit(text == "all is right" ? 0 : 1);
}
void require(bool is_right, const std::string& what) {
  if (!is_right) end_test(what);
}

void test_device() {
  const std::string adds = kernel_bytes("adds", kPtx), fails = kernel_bytes("fails", kPtx),
                    wild = kernel_bytes("wild", kPtx),
                    refused = kernel_bytes("adds", ".version 6.4\n.target sm_75\nno instruction\n");
  KernelInfo info{};
  auto queue = open_device({kDLCUDA, 0});
  // Copies through pinned memory and by the driver; some runs by a graph.
  for (const int64_t half : {int64_t{1}, int64_t{3000}, int64_t{5'000'000}}) {
    const auto count = static_cast<size_t>(2 * half);
    std::vector<int32_t> in(count), out(count);
    std::iota(in.begin(), in.end(), 1);
    for (int run = 0; run < 4; ++run) {
      void* memory = queue->allocate(count * 4);
      void* copy = queue->allocate(count * 4);
      queue->copy_to_device(memory, in.data(), count * 4);
      for (int i = 0; i < 6; ++i) queue->launch(info, entry_of(adds), one(memory), one(half));
      queue->copy_within(copy, memory, count * 4);
      out.assign(count, 0);
      const auto failed = queue->wait(queue->copy_to_host(out.data(), copy, count * 4));
      require(!failed, "a kernel fails");
      for (size_t i = 0; i < count; ++i) {
        require(out[i] == in[i] + 6, "element " + std::to_string(i) + " of " +
                                         std::to_string(count) + " in run " + std::to_string(run) +
                                         " is " + std::to_string(out[i]));
      }
      queue->release(memory);
      queue->release(copy);
    }
  }
  void* memory = queue->allocate(64);
  const int64_t size = 2;
  const auto failure = queue->wait(queue->launch(info, entry_of(fails), one(memory), one(size)));
  require(failure && failure->code == 1 && failure->kernel == &info, "the failure is not told");
  require(!queue->wait(queue->launch(info, entry_of(adds), one(memory), one(size))),
          "the failure is told twice");
  const std::string memory_error = error_of([&] { queue->allocate(size_t{1} << 46); });
  require(memory_error.find("E0604") != memory_error.npos &&
              memory_error.find("bytes free of") != memory_error.npos,
          memory_error);
  const std::string code_error =
      error_of([&] { queue->launch(info, entry_of(refused), one(memory), one(size)); });
  const std::string path = path_in(code_error, ".ptx");
  require(code_error.find("E0621") != code_error.npos && !path.empty(), code_error);
  std::remove(path.c_str());
  queue->wait(queue->launch(info, entry_of(adds), one(memory), one(size)));
  const std::string lost =
      error_of([&] { queue->wait(queue->launch(info, entry_of(wild), one(memory), one(size))); });
  require(lost.find("E0622") != lost.npos && lost.find("(700)") != lost.npos, lost);
  const std::string again = error_of([] { open_device({kDLCUDA, 0}); });
  require(again.find("context was lost") != again.npos, again);
  queue->release(memory);
  queue.reset();
  end_test("all is right");
}

TEST(CudaDevice, runs_kernels_fails_and_is_lost) {
  if (access("/dev/nvidiactl", F_OK) != 0) GTEST_SKIP() << "this machine has no NVIDIA driver";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(test_device(), ::testing::ExitedWithCode(0), "all is right");
}

}  // namespace
}  // namespace relay::runtime
