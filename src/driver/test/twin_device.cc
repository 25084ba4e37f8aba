#include "driver/test/twin_device.h"

#include <sys/mman.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "codegen/llvm/backend.h"
#include "codegen/targets.h"
#include "lower/rules/rules.h"
#include "runtime/core/denormals.h"
#include "runtime/core/string_functions.h"
#include "runtime/device_driver.h"
#include "target/target_kind.h"
#include "tir/lower_loops.h"

namespace relay::driver_test {
namespace {

using runtime::DeviceFailure;
using runtime::DeviceQueue;

std::atomic<int64_t> launches, to_device, to_host, foreign, allocated_bytes;

constexpr size_t kPage = 4096;

// What the kernels of the device ask for.
struct KernelContext : relay_kernel_context {
  KernelContext() : relay_kernel_context{} {
    abi_version = RELAY_KERNEL_ABI_VERSION;
    num_threads = 1;
    error = &code;
    runtime = this;
    parallel_for = [](const relay_kernel_context*, relay_parallel_body body, void* env,
                      int64_t extent) -> int32_t { return extent == 0 ? 0 : body(env, 0, extent); };
    strings = runtime::string_functions();
    keep = [](const relay_kernel_context*, int64_t) -> void* { return nullptr; };
    scratch = [](const relay_kernel_context* ctx, int64_t bytes) -> void* {
      auto* self = static_cast<KernelContext*>(ctx->runtime);
      self->memory.emplace_back(static_cast<size_t>(bytes) + 64);
      auto address = reinterpret_cast<uintptr_t>(self->memory.back().data());
      return reinterpret_cast<void*>((address + 63) / 64 * 64);
    };
  }
  int32_t code = 0;
  std::deque<std::vector<char>> memory;
};

// The memory of a device, for all its queues: accessible while one of them is at work.
class TwinMemory {
 public:
  static TwinMemory& of(uint16_t id) {
    static std::mutex mutex;
    static auto* const all = new std::map<uint16_t, TwinMemory>;
    std::lock_guard lock(mutex);
    return (*all)[id];
  }

  void* allocate(size_t bytes) {
    const size_t size = (bytes + kPage - 1) / kPage * kPage;
    std::lock_guard lock(mutex_);
    void* memory = mmap(nullptr, size, access(), MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    allocated_bytes += static_cast<int64_t>(size);
    blocks_[static_cast<char*>(memory)] = size;
    return memory;
  }
  void release(void* memory) {
    std::lock_guard lock(mutex_);
    auto block = blocks_.find(static_cast<char*>(memory));
    allocated_bytes -= static_cast<int64_t>(block->second);
    munmap(memory, block->second);
    blocks_.erase(block);
  }
  bool contains(const void* address) {
    std::lock_guard lock(mutex_);
    auto* at = static_cast<char*>(const_cast<void*>(address));
    auto block = blocks_.upper_bound(at);
    if (block == blocks_.begin()) return false;
    --block;
    return at < block->first + block->second;
  }
  // A queue begins to work (1), or ends it (-1).
  void note_work(int change) {
    std::lock_guard lock(mutex_);
    const int before = access();
    at_work_ += change;
    if (access() == before) return;
    for (const auto& [memory, bytes] : blocks_) mprotect(memory, bytes, access());
  }

 private:
  int access() const { return at_work_ > 0 ? PROT_READ | PROT_WRITE : PROT_NONE; }

  std::mutex mutex_;
  std::map<char*, size_t> blocks_;
  int at_work_ = 0;
};

class TwinQueue : public DeviceQueue {
 public:
  explicit TwinQueue(uint16_t id) : memory_(TwinMemory::of(id)), thread_([this] { work(); }) {}
  ~TwinQueue() override {
    put(nullptr, /*last=*/true);
    thread_.join();
  }

  void* allocate(size_t bytes) override { return memory_.allocate(bytes); }
  void release(void* memory) noexcept override {
    put([this, memory] { memory_.release(memory); });
  }

  uint64_t copy_to_device(void* to, const void* from, size_t bytes) override {
    to_device += static_cast<int64_t>(bytes);
    return copy(to, from, bytes);
  }
  uint64_t copy_to_host(void* to, const void* from, size_t bytes) override {
    to_host += static_cast<int64_t>(bytes);
    return copy(to, from, bytes);
  }
  uint64_t copy_within(void* to, const void* from, size_t bytes) override {
    return copy(to, from, bytes);
  }
  uint64_t launch(const runtime::KernelInfo& kernel, relay_kernel entry,
                  std::span<void* const> buffers, std::span<const int64_t> dims) override {
    ++launches;
    std::vector<void*> given(buffers.begin(), buffers.end());
    std::vector<int64_t> sizes(dims.begin(), dims.end());
    return put([this, &kernel, entry, given, sizes] {
      for (const void* b : given) foreign += memory_.contains(b) ? 0 : 1;
      KernelContext context;
      entry(given.data(), sizes.data(), &context);
      if (context.code == 0) return;
      std::lock_guard lock(mutex_);
      if (!failure_) failure_ = DeviceFailure{&kernel, context.code};
    });
  }

  std::optional<DeviceFailure> wait(uint64_t event) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= event; });
    return std::exchange(failure_, std::nullopt);
  }
  uint64_t last() const override {
    std::lock_guard lock(mutex_);
    return given_;
  }

 private:
  uint64_t copy(void* to, const void* from, size_t bytes) {
    return put([to, from, bytes] { std::memcpy(to, from, bytes); });
  }

  uint64_t put(std::function<void()> job, bool last = false) {
    std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    ending_ = ending_ || last;
    changed_.notify_all();
    return ++given_;
  }

  void work() {
    runtime::DenormalScope denormals(runtime::Denormals::flush);
    uint32_t state = 1;
    for (;;) {
      std::function<void()> job;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !jobs_.empty(); });
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
      if (job) {
        // Who does not wait is mostly too early.
        state = state * 1664525u + 1013904223u;
        if ((state >> 24) % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
        memory_.note_work(1);
        job();
        memory_.note_work(-1);
      }
      std::lock_guard lock(mutex_);
      ++done_;
      changed_.notify_all();
      if (ending_ && jobs_.empty()) return;
    }
  }

  TwinMemory& memory_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  uint64_t given_ = 0, done_ = 0;
  bool ending_ = false;
  std::optional<DeviceFailure> failure_;
  std::thread thread_;
};

class TwinReader : public TargetReader {
 public:
  std::vector<std::string> names() const override { return {"twin"}; }
  std::span<const TargetOption> options() const override { return {}; }
  Target read(const TargetWords& words) const override {
    Target t = native_target();
    t.name = words.name();
    t.num_cores = 1;
    return t;
  }
};

// LLVM's code under another name of target.
class TwinBackend : public Backend {
 public:
  std::string_view name() const override { return llvm().name(); }
  bool supports(const Target& t) const override { return llvm().supports(t); }
  const TargetReader& reader() const override { return reader_; }
  bool has_intrinsic(const tir::Intrinsic& i) const override { return llvm().has_intrinsic(i); }
  std::vector<ObjectCode> compile(const std::vector<tir::PrimFunc>& kernels, const Target& target,
                                  int threads, KernelCache* cache,
                                  const std::function<void()>& each) const override {
    return llvm().compile(kernels, target, threads, cache, each);
  }
  std::string link(const std::vector<ObjectCode>& objects,
                   const std::vector<tir::PrimFunc>& kernels, const Target& target) const override {
    return llvm().link(objects, kernels, target);
  }
  LoadedKernels load(const std::vector<tir::PrimFunc>& kernels, const Target& target,
                     KernelCache* cache) const override {
    return llvm().load(kernels, target, cache);
  }
  std::string text(CodeText form, const std::vector<tir::PrimFunc>& kernels,
                   const Target& target) const override {
    return llvm().text(form, kernels, target);
  }

 private:
  static const Backend& llvm() { return codegen::llvm_backend(); }
  TwinReader reader_;
};

const Backend& twin_backend() {
  static const TwinBackend backend;
  return backend;
}

}  // namespace

void TwinDevice::install() {
  static std::once_flag once;
  std::call_once(once, [] {
    TargetKind kind;
    kind.name = "twin";
    kind.backend = twin_backend;
    kind.rules = processor_rules;
    kind.lowering = tir::lowering_passes;
    kind.device = kDLExtDev;
    register_target_kind(kind);
    runtime::register_device_driver(
        {kDLExtDev, [](uint16_t id) { return std::make_shared<TwinQueue>(id); }});
  });
}

runtime::Device TwinDevice::device(uint16_t id) { return {kDLExtDev, id}; }

TwinDevice::Counts TwinDevice::counts() { return {launches, to_device, to_host, foreign}; }

void TwinDevice::forget() {
  launches = 0;
  to_device = 0;
  to_host = 0;
  foreign = 0;
}

int64_t TwinDevice::allocated() { return allocated_bytes; }

}  // namespace relay::driver_test
