// Runs PrimFuncs compiled in this process on buffers that end, or begin, at an unmapped page.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "codegen/backend.h"
#include "codegen/targets.h"
#include "codegen/test/runnable_targets.h"
#include "runtime/core/kernel_abi.h"
#include "runtime/cpu.h"
#include "tir/stmt.h"

namespace relay::codegen_test {

using namespace tir;  // NOLINT: tests are about nothing else

// Memory between two pages that cannot be touched.
class GuardedMemory {
 public:
  enum class Side { Left, Right };

  GuardedMemory(size_t bytes, Side side) {
    size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    size_t inside = std::max<size_t>((bytes + page - 1) / page, 1) * page;
    total_ = inside + 2 * page;
    base_ =
        static_cast<char*>(mmap(nullptr, total_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + page, inside, PROT_READ | PROT_WRITE);
    data_ = side == Side::Left ? base_ + page : base_ + page + inside - bytes;
  }
  ~GuardedMemory() { munmap(base_, total_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  void* data() const { return data_; }

 private:
  char* base_;
  char* data_;
  size_t total_;
};

// A context that runs a parallel loop in two chunks, one after the other.
struct TestContext {
  TestContext() {
    context.abi_version = RELAY_KERNEL_ABI_VERSION;
    context.num_threads = 2;
    context.error = &error;
    context.parallel_for = [](const relay_kernel_context*, relay_parallel_body body, void* env,
                              int64_t extent) -> int32_t {
      int64_t half = (extent + 1) / 2;
      int32_t code = half > 0 ? body(env, 0, half) : 0;
      if (code == 0 && half < extent) code = body(env, half, extent);
      return code;
    };
    context.scratch = [](const relay_kernel_context* c, int64_t bytes) -> void* {
      auto* self = static_cast<TestContext*>(c->runtime);
      self->scratch_calls++;
      void* p = std::aligned_alloc(64, static_cast<size_t>((bytes + 63) / 64 * 64));
      self->memory.emplace_back(p, &std::free);
      return p;
    };
    context.runtime = this;
  }
  TestContext(const TestContext&) = delete;
  TestContext& operator=(const TestContext&) = delete;
  // Calls a kernel and returns its error code.
  int32_t run(relay_kernel kernel, void* const* buffers, const int64_t* dims = nullptr) {
    error = RELAY_KERNEL_OK;
    kernel(buffers, dims, &context);
    return error;
  }
  relay_kernel_context context{};
  int32_t error = RELAY_KERNEL_OK;
  int scratch_calls = 0;
  std::vector<std::unique_ptr<void, void (*)(void*)>> memory;
};

inline PrimFunc kernel(std::string name, std::vector<Buffer> inputs, std::vector<Buffer> outputs,
                       Stmt body, std::vector<tir::Var> dims = {}) {
  return make<PrimFuncNode>([&](PrimFuncNode& n) {
    n.name = std::move(name);
    n.num_inputs = static_cast<int64_t>(inputs.size());
    n.params = std::move(inputs);
    n.params.insert(n.params.end(), outputs.begin(), outputs.end());
    n.dims = std::move(dims);
    n.body = std::move(body);
  });
}

}  // namespace relay::codegen_test
