// OpenCL queues over a library without a device (mock_opencl.cc): calls, order, memory, and faults.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <fstream>
#include <sstream>

#include "runtime/device_driver.h"
#include "runtime/device_source.h"
#include "runtime/opencl/address_space.h"
#include "runtime/opencl/device.h"
#include "runtime/test/device_kernel_bytes.h"
#include "runtime/test/mock_opencl.h"
#include "runtime/vm/bytecode.h"

namespace relay::runtime {
namespace {

class DeviceQueues : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { setenv("RELAY_OPENCL", RELAY_MOCK_OPENCL, 1); }
  void SetUp() override {
    void* library = dlopen(RELAY_MOCK_OPENCL, RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    auto state = reinterpret_cast<mock_opencl_function>(dlsym(library, MOCK_OPENCL_STATE));
    ASSERT_NE(state, nullptr);
    mock_ = state();
    mock_->refuses_programs = mock_->is_lost = 0;
    mock_->is_gpu = 0;
    mock_->binary = kMockGoodBinary;
    mock_->driver = "1.0";
    mock_->memory = size_t{1} << 30;
    mock_->launches = mock_->builds = mock_->from_binaries = 0;
  }

  static std::string kernel(const std::string& name, const std::string& workspace = "") {
    return kernel_bytes(name, "kernel void " + name + "(...)\n", workspace);
  }

  mock_opencl* mock_ = nullptr;
  KernelInfo info_{};
};

TEST_F(DeviceQueues, formulas) {
  const std::vector<int64_t> sizes{7, 3};
  EXPECT_EQ(SizeFormula("d0 4 * d1 +").evaluate(sizes), 31);
  EXPECT_EQ(SizeFormula("0 d0 - 2 /").evaluate(sizes), -4);
  EXPECT_EQ(SizeFormula("0 d0 - 2 %").evaluate(sizes), 1);
  EXPECT_EQ(SizeFormula("d0 d1 min d0 d1 max -").evaluate(sizes), -4);
  for (const char* wrong : {"", "d2", "+", "1 2", "1 x", "1 2 ^"}) {
    EXPECT_NE(error_of([&] { SizeFormula(wrong).evaluate(sizes); }).find("E0608"),
              std::string::npos)
        << wrong;
  }
}

TEST_F(DeviceQueues, sources_are_read_as_they_were_written) {
  const DeviceSource source = read_device_source(entry_of(kernel("exp", "d0 4 *")));
  ASSERT_EQ(source.launches.size(), 1u);
  EXPECT_EQ(source.launches[0].name, "exp");
  EXPECT_EQ(source.launches[0].buffers, (std::vector<size_t>{0, 1}));
  EXPECT_EQ(source.launches[0].items[0].text(), "d0 2 *");
  EXPECT_EQ(source.launches[0].items[2].text(), "1");
  EXPECT_EQ(source.workspace[0].text(), "d0 4 *");
  EXPECT_EQ(source.code, "kernel void exp(...)\n");
  EXPECT_NE(
      error_of([] { read_device_source(entry_of("no kernel, but some text")); }).find("E0608"),
      std::string::npos);
}

TEST_F(DeviceQueues, kernels_get_their_arguments_and_nothing_is_left) {
  const std::string bytes = kernel("exp", "d0 4 *");
  {
    auto queue = open_device({kDLOpenCL, 0});
    char* memory = static_cast<char*>(queue->allocate(256));
    const int32_t in = 42;
    queue->copy_to_device(memory + 64, &in, sizeof(in));
    void* buffer = memory + 64;
    const int64_t size = 5;
    for (int i = 0; i < 3; ++i) queue->launch(info_, entry_of(bytes), one(buffer), one(size));
    int32_t out = 0;
    queue->copy_within(memory, memory + 64, sizeof(out));
    EXPECT_FALSE(queue->wait(queue->copy_to_host(&out, memory, sizeof(out))).has_value());
    EXPECT_EQ(out, 42);
    EXPECT_EQ(mock_->launches, 3);
    EXPECT_EQ(mock_->builds, 1);
    EXPECT_STREQ(mock_->kernel, "exp");
    EXPECT_EQ(mock_->items[0], 10u);
    EXPECT_EQ(mock_->items[1], 1u);
    // Two buffers with their places, a size, the failure word and the kernel's number.
    EXPECT_EQ(mock_->arguments, 7u);
    EXPECT_EQ(mock_->first_offset, 64);
    const int64_t none = 0;
    queue->launch(info_, entry_of(bytes), one(buffer), one(none));
    EXPECT_EQ(mock_->launches, 3) << "no item, no launch";
    queue->release(memory);
  }
  EXPECT_EQ(mock_->buffers, 0);
  EXPECT_EQ(mock_->bytes, 0u);
  EXPECT_EQ(mock_->kernels, 0);
  EXPECT_EQ(mock_->queues, 0);
  EXPECT_EQ(mock_->events, 0);
}

using Sizes = std::array<int64_t, 3>;

TEST(OpenclGroups, groups_are_long_and_divide_the_items) {
  using opencl::group_of;
  const opencl::GroupLimits one{1, 8192, {8192, 8192, 8192}};
  EXPECT_EQ(group_of({64, 112, 112}, one), (Sizes{64, 56, 1}));
  EXPECT_EQ(group_of({16, 2, 4096}, one), (Sizes{16, 2, 128}));
  EXPECT_EQ(group_of({802816, 1, 1}, one), (Sizes{4096, 1, 1}));
  EXPECT_EQ(group_of({1000, 4, 1}, one), (Sizes{500, 1, 1}));
  EXPECT_EQ(group_of({1009, 64, 1}, one), (Sizes{1009, 4, 1}));
  EXPECT_EQ(group_of({10007, 1, 1}, one), (Sizes{1, 1, 1}));
  EXPECT_EQ(group_of({1, 1, 1}, one), (Sizes{1, 1, 1}));
}

TEST(OpenclGroups, every_unit_has_groups_within_the_limits) {
  using opencl::group_of;
  EXPECT_EQ(group_of({64, 112, 112}, {64, 8192, {8192, 8192, 8192}}), (Sizes{64, 16, 1}));
  // A vector is not divided.
  EXPECT_EQ(group_of({16, 8, 4}, {64, 8192, {8192, 8192, 8192}}), (Sizes{16, 1, 1}));
  EXPECT_EQ(group_of({64, 112, 112}, {1, 128, {8192, 8192, 8192}}), (Sizes{64, 2, 1}));
  EXPECT_EQ(group_of({64, 112, 112}, {1, 8192, {32, 8, 2}}), (Sizes{32, 8, 2}));
}

TEST_F(DeviceQueues, launches_of_processors_have_groups) {
  auto queue = open_device({kDLOpenCL, 0});
  void* memory = queue->allocate(64);
  auto group = [&](const std::string& bytes, int64_t size) {
    queue->launch(info_, entry_of(bytes), one(memory), one(size));
    return Sizes{static_cast<int64_t>(mock_->group[0]), static_cast<int64_t>(mock_->group[1]),
                 static_cast<int64_t>(mock_->group[2])};
  };
  // `size` * 2 items; 2 units get 8 groups each.
  const std::string any = kernel("any_groups"), small = kernel("small_groups");
  EXPECT_EQ(group(any, 512), (Sizes{64, 1, 1}));
  EXPECT_EQ(group(any, 4096), (Sizes{512, 1, 1}));
  EXPECT_EQ(group(any, 512), (Sizes{64, 1, 1}));
  EXPECT_EQ(group(small, 4096), (Sizes{64, 1, 1}));
  const std::string own = kernel_bytes("in_groups", "kernel void in_groups(...)\n", "", {8, 1, 1});
  EXPECT_EQ(group(own, 4096), (Sizes{8, 1, 1})) << "a launch with groups keeps them";
  queue->release(memory);
}

TEST_F(DeviceQueues, memory_is_kept_for_what_follows) {
  auto queue = open_device({kDLOpenCL, 0}), other = open_device({kDLOpenCL, 0});
  const int32_t value = 1;
  void* memory = queue->allocate(1000);
  const int buffers = mock_->buffers;
  queue->copy_to_device(memory, &value, sizeof(value));
  queue->release(memory);
  void* of_other = other->allocate(1000);
  EXPECT_NE(of_other, memory) << "the first queue has work that may use it";
  EXPECT_EQ(queue->allocate(990), memory) << "what follows in the queue comes later";
  EXPECT_EQ(mock_->buffers, buffers + 1);
  queue->release(memory);
  queue->wait(queue->last());
  EXPECT_EQ(other->allocate(1000), memory);
  other->release(memory);
  other->release(of_other);
  // What is idle goes back before the device is out of memory.
  mock_->memory = mock_->bytes;
  void* large = queue->allocate(1500);
  queue->release(large);
}

TEST(OpenclAddresses, a_view_without_elements_begins_behind_the_last_byte) {
  auto& space = opencl::AddressSpace::instance();
  int owner = 0;
  auto* const memory = reinterpret_cast<opencl::Memory>(&owner);
  char* const begin = static_cast<char*>(space.insert(memory, 4096));
  ASSERT_NE(begin, nullptr);
  EXPECT_EQ(space.find(begin + 4096), std::pair(memory, size_t{4096}));
  EXPECT_EQ(space.remove(begin), memory);
}

TEST_F(DeviceQueues, a_kernel_that_fails_is_told_once) {
  const std::string bytes = kernel("fails");
  auto queue = open_device({kDLOpenCL, 0});
  void* memory = queue->allocate(64);
  const int64_t size = 5;
  auto failure = queue->wait(queue->launch(info_, entry_of(bytes), one(memory), one(size)));
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->kernel, &info_);
  EXPECT_EQ(failure->code, RELAY_KERNEL_INDEX_OUT_OF_BOUNDS);
  EXPECT_FALSE(queue->wait(queue->last()).has_value());
  queue->release(memory);
}

TEST_F(DeviceQueues, out_of_memory_says_how_much_of_what_E0604) {
  auto queue = open_device({kDLOpenCL, 0});
  mock_->memory = 1000;
  const std::string alone = error_of([&] { queue->allocate(4096); });
  EXPECT_NE(alone.find("E0604"), std::string::npos) << alone;
  EXPECT_NE(alone.find("memory of 4096 bytes"), std::string::npos) << alone;
  const std::string bytes = kernel("exp", "d0 1000000 *");
  void* memory = queue->allocate(64);
  const int64_t size = 5;
  const std::string working =
      error_of([&] { queue->launch(info_, entry_of(bytes), one(memory), one(size)); });
  EXPECT_NE(working.find("E0604"), std::string::npos) << working;
  EXPECT_NE(working.find("working memory of 5000000 bytes"), std::string::npos) << working;
  mock_->memory = size_t{1} << 30;
  queue->launch(info_, entry_of(bytes), one(memory), one(size));
  EXPECT_EQ(mock_->launches, 1);
  queue->release(memory);
}

TEST_F(DeviceQueues, the_source_of_a_refused_kernel_is_kept_E0621) {
  auto queue = open_device({kDLOpenCL, 0});
  const std::string bytes = kernel("refused");
  void* memory = queue->allocate(64);
  const int64_t size = 5;
  mock_->refuses_programs = 1;
  const std::string text =
      error_of([&] { queue->launch(info_, entry_of(bytes), one(memory), one(size)); });
  EXPECT_NE(text.find("E0621"), std::string::npos) << text;
  EXPECT_NE(text.find("the mock refuses"), std::string::npos) << text;
  const std::string path = path_in(text, ".cl");
  ASSERT_NE(path, "") << text;
  std::ifstream file(path);
  std::ostringstream kept;
  kept << file.rdbuf();
  EXPECT_NE(kept.str().find("kernel void refused"), std::string::npos) << path;
  std::remove(path.c_str());
  mock_->refuses_programs = 0;
  queue->launch(info_, entry_of(bytes), one(memory), one(size));
  EXPECT_EQ(mock_->launches, 1);
  queue->release(memory);
}

TEST_F(DeviceQueues, a_binary_is_used_where_device_and_driver_are_its_own) {
  opencl::OpenDevice& device = opencl::open_opencl_device(0);
  const DeviceBinary binary = device.binary_of("kernel void any(...)\n");
  EXPECT_TRUE(binary.device.starts_with("a mock, driver 1.0, -cl-std")) << binary.device;
  const DeviceBinary other{"another device", "its program"};
  auto queue = open_device({kDLOpenCL, 0});
  void* memory = queue->allocate(64);
  const int64_t size = 5;
  std::deque<std::string> entries;  // a queue knows kernels by their addresses
  // How many programs a launch of a kernel of this name makes of binaries. It builds `most` programs.
  auto programs = [&](const std::string& name, std::vector<DeviceBinary> binaries, int most = 1) {
    const int before = mock_->from_binaries, builds = mock_->builds, live = mock_->programs;
    const std::string& bytes = entries.emplace_back(
        kernel_bytes(name, "kernel void " + name + "(...)\n", "", {0, 0, 0}, std::move(binaries)));
    EXPECT_EQ(read_device_source(entry_of(bytes)).code, "kernel void " + name + "(...)\n");
    queue->launch(info_, entry_of(bytes), one(memory), one(size));
    EXPECT_STREQ(mock_->kernel, name.c_str());
    EXPECT_EQ(mock_->builds - builds, most) << "a program of a binary is built, too";
    EXPECT_EQ(mock_->programs - live, 1);
    return mock_->from_binaries - before;
  };
  EXPECT_EQ(programs("own", {other, binary}), 1);
  EXPECT_EQ(programs("foreign", {other}), 0);
  EXPECT_EQ(programs("damaged", {{binary.device, "its program"}}), 0);
  mock_->binary = kMockRefusedBinary;
  EXPECT_EQ(programs("not_taken", {binary}), 0);
  mock_->binary = kMockInvalidBinary;
  EXPECT_EQ(programs("invalid", {binary}), 1);
  mock_->binary = kMockNoKernelsBinary;
  EXPECT_EQ(programs("without_kernels", {binary}, 2), 1);
  mock_->binary = kMockEmptyBinary;
  const std::string none = error_of([&] { device.binary_of("kernel void none(...)\n"); });
  EXPECT_NE(none.find("E0622"), std::string::npos) << none;
  EXPECT_NE(none.find("leave out -build"), std::string::npos) << none;
  mock_->binary = kMockGoodBinary;
  mock_->driver = "1.1";
  EXPECT_EQ(programs("another_driver", {binary}), 0);
  queue->release(memory);
  std::string cut = kernel_bytes("cut", "", "", {0, 0, 0}, {binary});
  const size_t at = cut.find("//binary ") + 9;
  cut.replace(at, 1, "9");
  EXPECT_NE(error_of([&] { read_device_source(entry_of(cut)); }).find("E0608"), std::string::npos);
}

TEST_F(DeviceQueues, a_lost_device_ends_the_run_E0622) {
  auto queue = open_device({kDLOpenCL, 0});
  void* memory = queue->allocate(64);
  int32_t out = 0;
  const uint64_t event = queue->copy_to_host(&out, memory, sizeof(out));
  mock_->is_lost = 1;
  const std::string text = error_of([&] { queue->wait(event); });
  EXPECT_NE(text.find("E0622"), std::string::npos) << text;
  mock_->is_lost = 0;
  queue->wait(event);
  queue->release(memory);
}

TEST_F(DeviceQueues, there_is_no_second_device_E0620) {
  const std::string text = error_of([] { open_device({kDLOpenCL, 1}); });
  EXPECT_NE(text.find("E0620"), std::string::npos) << text;
  EXPECT_NE(text.find("opencl:1"), std::string::npos) << text;
}

}  // namespace
}  // namespace relay::runtime
