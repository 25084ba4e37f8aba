// CUDA queues over a driver without a device (mock_cuda.c): calls, order, memory, graphs, and faults.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>
#include <sstream>

#include "runtime/cuda/geometry.h"
#include "runtime/device_driver.h"
#include "runtime/device_pool.h"
#include "runtime/test/device_kernel_bytes.h"
#include "runtime/test/mock_cuda.h"
#include "runtime/vm/bytecode.h"

namespace relay::runtime {
namespace {

constexpr Device kCuda{kDLCUDA, 0};

class CudaQueues : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { setenv("RELAY_CUDA", RELAY_MOCK_CUDA, 1); }
  void SetUp() override {
    void* library = dlopen(RELAY_MOCK_CUDA, RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    auto state = reinterpret_cast<mock_cuda_function>(dlsym(library, MOCK_CUDA_STATE));
    ASSERT_NE(state, nullptr);
    mock_ = state();
    mock_->fault_after = -1;
    mock_->threads = 1024;
    mock_->refuses_modules = 0;
    mock_->memory = size_t{1} << 30;
    mock_->launches = mock_->graph_launches = mock_->loads = 0;
    mock_->journal[0] = '\0';
  }
  void TearDown() override { expect_nothing_left("at the end"); }

  void expect_nothing_left(const std::string& when) {
    EXPECT_EQ(mock_->blocks, 0) << when;
    EXPECT_EQ(mock_->bytes, 0u) << when;
    EXPECT_EQ(mock_->pinned, 0) << when;
    EXPECT_EQ(mock_->streams, 0) << when;
    EXPECT_EQ(mock_->events, 0) << when;
    EXPECT_EQ(mock_->graphs, 0) << when;
    EXPECT_EQ(mock_->contexts_on_stack, 0) << when;
  }

  // A kernel whose module has the code "params N", of its buffers, one size, the failure word and the number.
  static std::string kernel(const std::string& name, const std::string& workspace = "",
                            std::array<int64_t, 3> group = {0, 0, 0}) {
    return kernel_bytes(name, std::string("// params ") + (workspace.empty() ? "4" : "5") + "\n",
                        workspace, group);
  }

  mock_cuda* mock_ = nullptr;
  KernelInfo info_{};
  int64_t size_ = 5;
};

TEST_F(CudaQueues, kernels_get_their_arguments_in_order) {
  const std::string adds = kernel("adds", "d0 4 *"), exp = kernel("exp");
  auto queue = open_device(kCuda);
  char* memory = static_cast<char*>(queue->allocate(256));
  void* buffer = memory + 64;
  int32_t in = 42, out = 0;
  queue->copy_to_device(buffer, &in, sizeof(in));
  queue->launch(info_, entry_of(adds), one(buffer), one(size_));
  queue->copy_within(memory, buffer, sizeof(out));
  queue->launch(info_, entry_of(exp), one(buffer), one(size_));
  const uint64_t event = queue->copy_to_host(&out, memory, sizeof(out));
  EXPECT_EQ(out, 0) << "it arrives when it is waited for";
  EXPECT_FALSE(queue->wait(event).has_value());
  EXPECT_EQ(out, 43);
  EXPECT_STREQ(mock_->journal, "d adds w exp h ");
  EXPECT_EQ(mock_->parameters[0], reinterpret_cast<uint64_t>(buffer));
  EXPECT_EQ(mock_->parameters[1], 5u);
  EXPECT_EQ(mock_->parameters[3], 1u) << "the second kernel of the queue";
  EXPECT_EQ(mock_->block[0], 16u) << "10 items";
  EXPECT_EQ(mock_->grid[0], 1u);
  const int64_t none = 0;
  queue->wait(queue->launch(info_, entry_of(exp), one(buffer), one(none)));
  EXPECT_EQ(mock_->launches, 2) << "no item, no launch";
  queue->release(memory);
}

TEST_F(CudaQueues, copies_keep_what_was_there_when_they_were_asked_for) {
  auto queue = open_device(kCuda);
  // Through pinned memory, by the driver, and more than the pinned memory holds.
  for (size_t count : {size_t{1}, size_t{1} << 18, size_t{1} << 14}) {
    std::vector<int32_t> in(count), out(count);
    std::iota(in.begin(), in.end(), 7);
    const size_t bytes = count * sizeof(int32_t);
    void* memory = queue->allocate(bytes);
    uint64_t event = 0;
    for (int i = 0; i < 40; ++i) {
      queue->copy_to_device(memory, in.data(), bytes);
      event = queue->copy_to_host(out.data(), memory, bytes);
    }
    EXPECT_FALSE(queue->wait(event).has_value());
    EXPECT_EQ(in, out) << count;
    queue->release(memory);
  }
}

TEST_F(CudaQueues, lists_that_come_again_are_graphs) {
  const std::string adds = kernel("adds");
  auto queue = open_device(kCuda);
  void* memory = queue->allocate(64);
  const int32_t zero = 0;
  auto run = [&](int count) {
    queue->copy_to_device(memory, &zero, sizeof(zero));
    for (int i = 0; i < count; ++i) queue->launch(info_, entry_of(adds), one(memory), one(size_));
    int32_t out = 0;
    queue->wait(queue->copy_to_host(&out, memory, sizeof(out)));
    return out;
  };
  for (int i = 0; i < 5; ++i) EXPECT_EQ(run(6), 6);
  EXPECT_EQ(mock_->graph_launches, 4);
  EXPECT_EQ(mock_->launches, 30);
  EXPECT_EQ(run(7), 7);
  size_ = 6;
  EXPECT_EQ(run(6), 6);
  EXPECT_EQ(mock_->graph_launches, 4) << "of other lists there is none";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run(3), 3);
  EXPECT_EQ(mock_->graph_launches, 4) << "a list of few kernels needs none";
  EXPECT_EQ(run(6), 6);
  EXPECT_EQ(mock_->graph_launches, 5);
  // A graph of the list that was forgotten is freed.
  for (int i = 8; i < 60; ++i) EXPECT_EQ(run(i), i);
  EXPECT_EQ(mock_->graphs, 0);
  queue->release(memory);
  setenv("RELAY_CUDA_GRAPHS", "0", 1);
  queue = open_device(kCuda);
  unsetenv("RELAY_CUDA_GRAPHS");
  memory = queue->allocate(64);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run(6), 6);
  EXPECT_EQ(mock_->graph_launches, 5);
  queue->release(memory);
}

TEST_F(CudaQueues, runs_get_the_memory_of_the_run_before) {
  auto queue = open_device(kCuda), other = open_device(kCuda);
  void* memory = queue->allocate(1000);
  queue->copy_to_device(memory, &size_, sizeof(size_));
  queue->release(memory);
  void* of_other = other->allocate(1000);
  EXPECT_NE(of_other, memory) << "the first queue has work that may use it";
  EXPECT_EQ(queue->allocate(990), memory) << "what follows in the queue comes later";
  queue->release(memory);
  queue->wait(queue->last());
  void* settled = other->allocate(1000);
  EXPECT_EQ(settled, memory);
  other->release(settled);
  other->release(of_other);
}

TEST_F(CudaQueues, a_pool_keeps_no_more_than_was_used) {
  size_t taken = 0, given = 0;
  int queue = 0;
  std::vector<std::unique_ptr<char[]>> blocks;
  DevicePool pool(
      [&](size_t) {
        ++taken;
        return blocks.emplace_back(new char[1]).get();
      },
      [&](void*) { ++given; });
  pool.open(&queue);
  constexpr size_t kBlock = size_t{40} << 20;
  for (size_t i = 1; i <= 8; ++i) pool.release(pool.allocate(&queue, i * kBlock), true);
  pool.settle(&queue);
  EXPECT_EQ(pool.usage().in_use, 0u);
  EXPECT_LE(pool.usage().idle, 8 * kBlock) << "the largest that was in use at once";
  EXPECT_GT(given, 0u);
  pool.close(&queue);
  EXPECT_EQ(given, taken);
}

TEST_F(CudaQueues, a_kernel_that_fails_is_told_once) {
  const std::string first = kernel("exp"), bytes = kernel("fails");
  auto queue = open_device(kCuda);
  void* memory = queue->allocate(64);
  KernelInfo failing{};
  queue->launch(info_, entry_of(first), one(memory), one(size_));
  auto failure = queue->wait(queue->launch(failing, entry_of(bytes), one(memory), one(size_)));
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->kernel, &failing);
  EXPECT_EQ(failure->code, RELAY_KERNEL_INDEX_OUT_OF_BOUNDS);
  EXPECT_FALSE(queue->wait(queue->last()).has_value());
  EXPECT_FALSE(queue->wait(queue->launch(info_, entry_of(first), one(memory), one(size_))));
  queue->release(memory);
}

TEST_F(CudaQueues, out_of_memory_says_how_much_of_what_E0604) {
  const std::string bytes = kernel("exp", "d0 1000000 *");
  auto queue = open_device(kCuda);
  void* memory = queue->allocate(64);
  mock_->memory = mock_->bytes + 100000;
  const std::string alone = error_of([&] { queue->allocate(1 << 20); });
  EXPECT_NE(alone.find("E0604"), std::string::npos) << alone;
  EXPECT_NE(alone.find("no memory of 1048576 bytes"), std::string::npos) << alone;
  EXPECT_NE(alone.find("100000 bytes free of"), std::string::npos) << alone;
  const std::string working =
      error_of([&] { queue->launch(info_, entry_of(bytes), one(memory), one(size_)); });
  EXPECT_NE(working.find("no working memory of 5000000 bytes"), std::string::npos) << working;
  // What is idle, and what work still uses, goes back to the driver before it is said.
  mock_->memory = mock_->bytes + (1 << 20);
  void* large = queue->allocate(800000);
  queue->copy_to_device(large, &size_, sizeof(size_));
  queue->release(large);
  large = queue->allocate(400000);
  queue->release(large);
  mock_->memory = size_t{1} << 30;
  queue->wait(queue->launch(info_, entry_of(bytes), one(memory), one(size_)));
  EXPECT_EQ(mock_->launches, 1);
  queue->release(memory);
}

TEST_F(CudaQueues, the_code_of_a_refused_kernel_is_kept_E0621) {
  auto queue = open_device(kCuda);
  const std::string bytes = kernel_bytes("refused", "// refused, params 4\n");
  void* memory = queue->allocate(64);
  mock_->refuses_modules = 1;
  const std::string text =
      error_of([&] { queue->launch(info_, entry_of(bytes), one(memory), one(size_)); });
  EXPECT_NE(text.find("E0621"), std::string::npos) << text;
  EXPECT_NE(text.find("ptxas of the mock refuses it"), std::string::npos) << text;
  EXPECT_NE(text.find("compute capability 9.0"), std::string::npos) << text;
  EXPECT_NE(text.find("CUDA 12.8"), std::string::npos) << text;
  const std::string path = path_in(text, ".ptx");
  ASSERT_NE(path, "") << text;
  std::ostringstream kept;
  kept << std::ifstream(path).rdbuf();
  EXPECT_NE(kept.str().find("// refused"), std::string::npos) << path;
  std::remove(path.c_str());
  mock_->refuses_modules = 0;
  queue->wait(queue->launch(info_, entry_of(bytes), one(memory), one(size_)));
  EXPECT_EQ(mock_->launches, 1);
  queue->release(memory);
}

TEST_F(CudaQueues, groups_are_blocks_and_have_a_limit_E0621) {
  const std::string bytes = kernel("grouped", "", {5, 1, 1});
  auto queue = open_device(kCuda);
  void* memory = queue->allocate(64);
  size_ = 10;
  queue->wait(queue->launch(info_, entry_of(bytes), one(memory), one(size_)));
  EXPECT_EQ(mock_->block[0], 5u);
  EXPECT_EQ(mock_->grid[0], 4u);
  queue->release(memory);
  DeviceLaunch launch;
  launch.name = "f";
  launch.items = {SizeFormula("d0"), SizeFormula("d1"), SizeFormula(3)};
  cuda::FunctionLimits limits{.multiprocessors = 4, .threads = 256, .resident_blocks = 8};
  auto fit = [&](int64_t x, int64_t y) {
    const std::array<int64_t, 2> dims{x, y};
    return *cuda::geometry_of(launch, dims, limits, "a device");
  };
  using Three = std::array<uint32_t, 3>;
  EXPECT_EQ(fit(1000, 2).block, (Three{256, 1, 1}));
  EXPECT_EQ(fit(1000, 2).grid, (Three{4, 2, 3}));
  EXPECT_EQ(fit(7, 1000).block, (Three{8, 32, 1}));
  EXPECT_EQ(fit(7, 1000).grid, (Three{1, 32, 3}));
  EXPECT_EQ(fit(int64_t{1} << 40, 5).grid, (Three{128, 1, 1})) << "each thread takes several";
  limits.multiprocessors = 20;
  EXPECT_EQ(fit(1000, 1).block, (Three{64, 1, 1})) << "few items keep many multiprocessors busy";
  EXPECT_EQ(fit(1000, 1).grid, (Three{16, 1, 3}));
  launch.group = {32, 32, 1};
  const std::string large = error_of([&] { fit(64, 64); });
  EXPECT_NE(large.find("E0621"), std::string::npos) << large;
  EXPECT_NE(large.find("groups of 1024 work items"), std::string::npos) << large;
  launch.group = {1, 1, 1};
  EXPECT_EQ(fit(1, 70000).grid, (Three{1, 65535, 3})) << "each group takes several";
  const std::string many = error_of([&] { fit(int64_t{1} << 31, 1); });
  EXPECT_NE(many.find("2147483648 groups along axis 0"), std::string::npos) << many;
}

// What a launch of other sizes throws leaves the kernel as it was: sizes that it had before, and others, are right.
TEST_F(CudaQueues, sizes_that_are_refused_change_nothing) {
  const std::string grouped = kernel("grouped", "", {2, 1, 1}),
                    works = kernel("works", std::to_string(int64_t{1} << 44) + " d0 *");
  auto queue = open_device(kCuda);
  void* memory = queue->allocate(64);
  auto launch = [&](const std::string& bytes, int64_t size) {
    return error_of([&] { queue->launch(info_, entry_of(bytes), one(memory), one(size)); });
  };
  EXPECT_EQ(launch(grouped, 5), "nothing");
  queue->wait(queue->last());
  mock_->launches = 0;
  for (int again = 0; again < 2; ++again) {
    const std::string refused = launch(grouped, int64_t{1} << 31);
    EXPECT_NE(refused.find("E0621"), std::string::npos) << refused;
    const std::string no_memory = launch(works, 16);
    EXPECT_NE(no_memory.find("E0604"), std::string::npos) << no_memory;
  }
  EXPECT_EQ(launch(grouped, 5), "nothing");
  queue->wait(queue->last());
  EXPECT_EQ(mock_->launches, 1);
  EXPECT_EQ(mock_->grid[0], 5u);
  EXPECT_EQ(launch(works, 0), "nothing");
  queue->wait(queue->last());
  EXPECT_EQ(mock_->launches, 1) << "no item, no launch";
  queue->release(memory);
}

TEST_F(CudaQueues, there_is_no_second_device_E0620) {
  const std::string text = error_of([] { open_device({kDLCUDA, 1}); });
  EXPECT_NE(text.find("E0620"), std::string::npos) << text;
  EXPECT_NE(text.find("cuda:1"), std::string::npos) << text;
  bool found = false;
  for (const DeviceDriver& driver : device_drivers()) {
    if (driver.type != kDLCUDA) continue;
    found = true;
    EXPECT_EQ(driver.describe(),
              std::vector<std::string>{"a mock, compute capability 9.0, 1.0 GiB, CUDA 12.8"});
  }
  EXPECT_TRUE(found);
}

// Of all calls of some runs each fails once: a run ends with a numbered error or is right, nothing is left, and the next is
// right.
TEST_F(CudaQueues, each_call_may_fail) {
  const std::string adds = kernel("adds"), fails = kernel("fails"),
                    works = kernel("works", "d0 4096 *");
  auto run = [&] {
    auto queue = open_device(kCuda);
    std::shared_ptr<void> memory = device_memory(queue, 64);
    for (int again = 0; again < 3; ++again) {
      int32_t value = 1;
      queue->wait(queue->copy_to_device(memory.get(), &value, sizeof(value)));
      void* buffer = memory.get();
      std::shared_ptr<void> more = device_memory(queue, 100000);
      for (int i = 0; i < 4; ++i) {
        queue->launch(info_, entry_of(adds), one(buffer), one(size_));
      }
      queue->launch(info_, entry_of(works), one(buffer), one(size_));
      queue->copy_within(more.get(), memory.get(), sizeof(value));
      value = 0;
      queue->wait(queue->copy_to_host(&value, more.get(), sizeof(value)));
      if (value != 5) return value;
      if (!queue->wait(queue->launch(info_, entry_of(fails), one(buffer), one(size_)))) return -1;
    }
    return 5;
  };
  ASSERT_EQ(run(), 5);
  int failed = 0, calls = 0;
  for (const int fault : {2, 1}) {
    for (calls = 0;; ++calls) {
      ASSERT_LT(calls, 2000);
      mock_->fault = fault;
      mock_->fault_after = calls;
      const std::string text = error_of([&] { EXPECT_EQ(run(), 5) << "call " << calls; });
      const bool is_over = mock_->fault_after >= 0;
      mock_->fault_after = -1;
      if (text != "nothing") {
        ++failed;
        EXPECT_TRUE(text.find("E0604") != text.npos || text.find("E0622") != text.npos ||
                    text.find("E0621") != text.npos)
            << text;
        if (const std::string kept = path_in(text, ".ptx"); !kept.empty()) {
          std::remove(kept.c_str());
        }
      }
      expect_nothing_left("after a fault in call " + std::to_string(calls));
      ASSERT_EQ(run(), 5) << "after a fault in call " << calls;
      if (is_over) break;
    }
  }
  EXPECT_GT(failed, calls / 2);
}

TEST_F(CudaQueues, a_child_of_fork_is_told_E0622) {
  auto queue = open_device(kCuda);
  void* memory = queue->allocate(64);
  const pid_t child = fork();
  if (child == 0) {
    const std::string used = error_of([&] { queue->allocate(64); }),
                      opened = error_of([] { open_device(kCuda); });
    const bool is_said = used.find("E0622") != used.npos && opened.find("spawn") != opened.npos;
    queue->release(memory);
    queue.reset();
    _exit(is_said ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  queue->release(memory);
}

// In a process of its own, as there is no way back.
TEST_F(CudaQueues, a_lost_context_ends_this_run_and_the_next_E0622) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto lose = [&] {
    const std::string wild = kernel("wild");
    auto queue = open_device(kCuda), other = open_device(kCuda);
    void* memory = queue->allocate(64);
    int32_t out = 0;
    queue->launch(info_, entry_of(wild), one(memory), one(size_));
    const uint64_t event = queue->copy_to_host(&out, memory, sizeof(out));
    const std::vector<std::string> errors{
        error_of([&] { queue->wait(event); }), error_of([&] { queue->wait(event); }),
        error_of([&] { other->allocate(64); }), error_of([] { open_device(kCuda); })};
    queue->release(memory);
    queue.reset();
    other.reset();
    for (const std::string& e : errors) {
      const std::string expected = &e == errors.data() ? "ends with an error" : "context was lost";
      if (e.find("E0622") == e.npos || e.find(expected) == e.npos) {
        std::fprintf(stderr, "%s", e.c_str());
        _exit(1);
      }
    }
    std::fprintf(stderr, "all of them");
    // What a lost context holds goes with the process: it is no leak.
    _exit(0);
  };
  EXPECT_EXIT(lose(), ::testing::ExitedWithCode(0), "all of them");
}

}  // namespace
}  // namespace relay::runtime
