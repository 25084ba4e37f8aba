#include "runtime/cuda/queue.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/codes/runtime.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/geometry.h"
#include "runtime/cuda/pinned_memory.h"
#include "runtime/cuda/work_list.h"
#include "runtime/vm/bytecode.h"

namespace relay::runtime::cuda {
namespace {

// Events that are kept: who waits for an older one waits for the next that is.
constexpr size_t kMostCudaEvents = 256;
// The largest copy through memory that is pinned already; the driver pins parts of a larger one itself.
constexpr size_t kMostPinnedCopy = size_t{256} << 10;
constexpr size_t kPinnedBytes = size_t{2} << 20;
// Commands that are put off at most.
constexpr size_t kMostPutOff = 4096;

Address address_of(const void* memory) { return reinterpret_cast<Address>(memory); }

struct LimitedFunction {
  Function function = nullptr;
  FunctionLimits limits;
};

struct CudaKernel : ReadyKernel<LoadedModule, LimitedFunction> {
  // Of the last sizes; by launch.
  std::vector<int64_t> dims;
  std::vector<std::optional<Geometry>> geometries;
  WorkspaceLayout workspace;
};

class CudaQueue : public DeviceQueue {
 public:
  explicit CudaQueue(uint16_t number) : device_(open_cuda_device(number)), graphs_(device_) {
    const Current current(device_);
    device_.pool().open(this);
    try {
      device_.check(api().cuStreamCreate(&stream_, kStreamNonBlocking), "it gives no queue");
      pinned_.emplace(device_, kPinnedBytes);
      failure_copy_ = static_cast<int32_t*>(pinned_->take(kFailureBytes));
      failure_ = address_of(allocate(kFailureBytes));
      clear_failure();
    } catch (...) {
      release_all();
      throw;
    }
  }
  ~CudaQueue() override {
    if (!device_.is_usable()) return;  // all of it went with the context
    try {
      const Current current(device_);
      api().cuStreamSynchronize(stream_);
      release_all();
    } catch (const Error&) {
      // The context was lost meanwhile.
    }
  }
  CudaQueue(const CudaQueue&) = delete;
  CudaQueue& operator=(const CudaQueue&) = delete;

  void* allocate(size_t bytes) override {
    return allocate_for(bytes, "no memory of " + std::to_string(bytes) + " bytes");
  }
  void release(void* memory) noexcept override {
    if (device_.is_usable()) device_.pool().release(memory, !is_busy_.load());
  }

  uint64_t copy_to_device(void* to, const void* from, size_t bytes) override {
    const Current current(device_);
    flush();
    const void* source = from;
    if (void* pinned = pinned_for(from, bytes); pinned != nullptr) {
      std::memcpy(pinned, from, bytes);
      source = pinned;
    }
    device_.check(api().cuMemcpyHtoDAsync_v2(address_of(to), source, bytes, stream_),
                  "memory cannot be copied to it");
    return given();
  }
  uint64_t copy_to_host(void* to, const void* from, size_t bytes) override {
    const Current current(device_);
    flush();
    void* pinned = pinned_for(to, bytes);
    device_.check(api().cuMemcpyDtoHAsync_v2(pinned != nullptr ? pinned : to, address_of(from),
                                             bytes, stream_),
                  "memory cannot be copied from it");
    const uint64_t event = given();
    if (pinned != nullptr) landings_.push_back({event, to, pinned, bytes});
    return event;
  }
  uint64_t copy_within(void* to, const void* from, size_t bytes) override {
    put_off().add_copy(address_of(to), address_of(from), bytes);
    return ++given_;
  }

  uint64_t launch(const KernelInfo& info, relay_kernel entry, std::span<void* const> buffers,
                  std::span<const int64_t> dims) override {
    WorkList& work = put_off();
    CudaKernel& kernel = ready(info, entry);
    if (!std::ranges::equal(kernel.dims, dims) || kernel.geometries.empty()) {
      fit(kernel, dims);
    }
    const auto workspace = static_cast<char*>(workspace_for(kernel.workspace));
    for (size_t i = 0; i < kernel.functions.size(); ++i) {
      if (!kernel.geometries[i]) continue;
      const DeviceLaunch& launch = kernel.source.launches[i];
      parameters_.clear();
      for (size_t b : launch.buffers) {
        const size_t part = b - std::min(b, buffers.size());
        RELAY_CHECK(b < buffers.size() || part < kernel.workspace.offsets.size(),
                    "a launch of a buffer that the kernel does not have");
        parameters_.push_back(address_of(
            b < buffers.size() ? buffers[b] : workspace + kernel.workspace.offsets[part]));
      }
      for (int64_t d : dims) parameters_.push_back(static_cast<uint64_t>(d));
      parameters_.push_back(failure_);
      parameters_.push_back(static_cast<uint32_t>(kernel.number));
      work.add_launch(kernel.functions[i].function, *kernel.geometries[i], parameters_);
      may_have_failed_ |= launch.may_fail;
    }
    return ++given_;
  }

  void submit() override {
    if (list_.empty()) return;
    const Current current(device_);
    flush();
  }
  std::optional<DeviceFailure> wait(uint64_t event) override {
    device_.require_usable();
    if (!is_busy_.load()) return std::nullopt;
    const Current current(device_);
    try {
      return finish(event);
    } catch (...) {
      // The memory where copies should arrive may be gone before the next call.
      landings_.clear();
      throw;
    }
  }
  uint64_t last() const override { return given_; }

 private:
  static constexpr size_t kFailureBytes = 2 * sizeof(int32_t);

  // What arrives in pinned memory and belongs elsewhere.
  struct Landing {
    uint64_t event;
    void* to;
    const void* pinned;
    size_t bytes;
  };

  void* allocate_for(size_t bytes, const std::string& what) {
    const Current current(device_);
    const size_t wanted = bytes + kDeviceSlack;
    void* memory = wanted < bytes ? nullptr : device_.pool().allocate(this, wanted);
    if (memory == nullptr && is_busy_.load()) {
      // What the queue's work has used is free once it is done.
      flush();
      device_.check(api().cuStreamSynchronize(stream_), "what it was given ends with an error");
      device_.pool().settle(this);
      memory = device_.pool().allocate(this, wanted);
    }
    if (memory == nullptr) device_.out_of_memory(what);
    return memory;
  }

  void clear_failure() {
    is_busy_ = true;
    device_.check(api().cuMemsetD32Async(failure_, 0, 2, stream_),
                  "its failures cannot be cleared");
  }

  // Null where the memory is pinned itself, or where the driver should copy.
  void* pinned_for(const void* memory, size_t bytes) {
    return bytes > kMostPinnedCopy || is_pinned(memory) ? nullptr : pinned_->take(bytes);
  }

  std::optional<DeviceFailure> finish(uint64_t event) {
    flush();
    const bool reads_failure = std::exchange(may_have_failed_, false);
    if (reads_failure) {
      device_.check(api().cuMemcpyDtoHAsync_v2(failure_copy_, failure_, kFailureBytes, stream_),
                    "its failures cannot be read");
    }
    auto mark = std::ranges::find_if(marks_, [&](const auto& m) { return m.first >= event; });
    const bool is_last = reads_failure || event >= given_ || mark == marks_.end();
    device_.check(
        is_last ? api().cuStreamSynchronize(stream_) : api().cuEventSynchronize(mark->second),
        "what it was given ends with an error");
    land(is_last ? given_ : mark->first);
    const int32_t word[2] = {failure_copy_[0], failure_copy_[1]};
    if (is_last) settle();
    if (!reads_failure) return std::nullopt;
    const auto failed = kernels_.failure(word);
    if (failed) clear_failure();
    return failed;
  }

  // The list that the next command goes to.
  WorkList& put_off() {
    device_.require_usable();
    if (list_.size() >= kMostPutOff) {
      const Current current(device_);
      flush();
    }
    is_busy_ = true;
    return list_;
  }
  void flush() {
    is_busy_ = true;
    if (list_.empty()) return;
    // What cannot be submitted is not tried again.
    std::swap(list_, submitted_);
    list_.clear();
    graphs_.submit(submitted_, stream_);
  }

  uint64_t given() {
    Event event = nullptr;
    if (!spare_events_.empty()) {
      event = spare_events_.back();
      spare_events_.pop_back();
    } else {
      device_.check(api().cuEventCreate(&event, kEventWithoutTime), "it gives no event");
    }
    const Result result = api().cuEventRecord(event, stream_);
    if (result != kSuccess) spare_events_.push_back(event);
    device_.check(result, "an event cannot be recorded");
    marks_.emplace_back(++given_, event);
    if (marks_.size() > kMostCudaEvents) drop_mark();
    return given_;
  }
  void drop_mark() {
    spare_events_.push_back(marks_.front().second);
    marks_.pop_front();
  }

  // All up to the event is done.
  void land(uint64_t event) {
    for (const Landing& l : landings_) {
      if (l.event <= event) std::memcpy(l.to, l.pinned, l.bytes);
    }
    std::erase_if(landings_, [&](const Landing& l) { return l.event <= event; });
    while (!marks_.empty() && marks_.front().first <= event) drop_mark();
  }
  // All is done.
  void settle() {
    pinned_->reset();
    failure_copy_ = static_cast<int32_t*>(pinned_->take(kFailureBytes));
    is_busy_ = false;
    device_.pool().settle(this);
  }

  CudaKernel& ready(const KernelInfo& info, relay_kernel entry) {
    return kernels_.get(
        info, entry,
        [&](const DeviceSource& source) {
          const Current current(device_);
          return device_.load(source.code);
        },
        [&](const LoadedModule& module, const DeviceLaunch& launch) {
          const Current current(device_);
          return find(module, launch.name);
        });
  }
  LimitedFunction find(const LoadedModule& module, const std::string& name) {
    LimitedFunction out;
    device_.check(api().cuModuleGetFunction(&out.function, module.get(), name.c_str()),
                  "it has no kernel " + name);
    int32_t threads = 0, blocks = 0;
    device_.check(api().cuFuncGetAttribute(&threads, kFunctionMaxThreads, out.function),
                  "the threads of kernel " + name + " are not told");
    out.limits.multiprocessors = static_cast<uint32_t>(device_.multiprocessors());
    out.limits.threads = static_cast<uint32_t>(std::max(threads, 1));
    const auto block = static_cast<int32_t>(std::min(out.limits.threads, kThreads));
    device_.check(
        api().cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, out.function, block, 0),
        "the blocks of kernel " + name + " are not told");
    out.limits.resident_blocks =
        static_cast<uint32_t>(std::max(blocks, 1) * device_.multiprocessors());
    return out;
  }

  void fit(CudaKernel& kernel, std::span<const int64_t> dims) {
    // The kernel keeps what it has until all of the new is there: each of these may throw.
    std::vector<std::optional<Geometry>> geometries;
    for (size_t i = 0; i < kernel.functions.size(); ++i) {
      geometries.push_back(
          geometry_of(kernel.source.launches[i], dims, kernel.functions[i].limits, device_.name()));
    }
    WorkspaceLayout workspace = layout_workspace(kernel.source, dims, "a CUDA device");
    std::vector<int64_t> sizes(dims.begin(), dims.end());
    kernel.geometries = std::move(geometries);
    kernel.workspace = std::move(workspace);
    kernel.dims = std::move(sizes);
  }

  // The queue works in order, so all its kernels share one block.
  void* workspace_for(const WorkspaceLayout& layout) {
    if (layout.bytes <= workspace_bytes_) return workspace_;
    void* larger =
        allocate_for(layout.bytes, "no working memory of " + std::to_string(layout.bytes) +
                                       " bytes for a kernel");
    if (workspace_ != nullptr) release(workspace_);
    workspace_ = larger;
    workspace_bytes_ = layout.bytes;
    return workspace_;
  }

  // The context is current, and all work is done.
  void release_all() noexcept {
    graphs_.clear();
    while (!marks_.empty()) drop_mark();
    for (Event e : spare_events_) api().cuEventDestroy_v2(e);
    for (void* memory : {workspace_, reinterpret_cast<void*>(failure_)}) {
      if (memory != nullptr) device_.pool().release(memory, true);
    }
    device_.pool().close(this);
    if (pinned_) pinned_->free();
    if (stream_ != nullptr) api().cuStreamDestroy_v2(stream_);
  }

  OpenDevice& device_;
  Stream stream_ = nullptr;
  std::optional<PinnedMemory> pinned_;
  Address failure_ = 0;
  int32_t* failure_copy_ = nullptr;  // in pinned memory
  void* workspace_ = nullptr;
  size_t workspace_bytes_ = 0;
  uint64_t given_ = 0;
  std::deque<std::pair<uint64_t, Event>> marks_;
  std::vector<Event> spare_events_;
  std::vector<Landing> landings_;
  ReadyKernels<CudaKernel> kernels_;
  WorkList list_, submitted_;
  WorkGraphs graphs_;
  std::vector<uint64_t> parameters_;
  bool may_have_failed_ = false;
  // Whether it was given work since all was done last. Other threads read it: they release memory.
  std::atomic<bool> is_busy_{false};
};

// Whether kernels of the device's context may use the address. What the driver allocates from pools, or maps, has no context.
bool is_usable_by(const OpenDevice& device, uint16_t number, Address address) {
  uint32_t type = 0;
  int32_t ordinal = -1;
  Context context = nullptr;
  if (api().cuPointerGetAttribute(&type, kPointerMemoryType, address) != kSuccess ||
      type != kMemoryOfDevice ||
      api().cuPointerGetAttribute(&ordinal, kPointerDevice, address) != kSuccess ||
      ordinal != number) {
    return false;
  }
  const Result told = api().cuPointerGetAttribute(&context, kPointerContext, address);
  return told != kSuccess || context == nullptr || context == device.context();
}

// Streams of others are not known: all of them have done their work when this returns.
std::shared_ptr<void> take_memory(uint16_t number, DeviceExchange::Place place, size_t,
                                  std::shared_ptr<void> owner) {
  OpenDevice& device = open_cuda_device(number);
  const Current current(device);
  const Address address = address_of(place.data) + place.offset;
  if (!is_usable_by(device, number, address)) {
    throw UserError(
        Diagnostic(codes::tensor_dlpack, {},
                   "the DLPack tensor's memory is not of " + device.name())
            .expected("memory of the device's primary context")
            .help("libraries that use the CUDA runtime, such as PyTorch, allocate there"));
  }
  device.check(device.synchronize(), "the work of another library ends with an error");
  return {std::move(owner), reinterpret_cast<void*>(address)};
}

void settle_memory(uint16_t number) {
  OpenDevice& device = open_cuda_device(number);
  const Current current(device);
  device.synchronize();
}

}  // namespace

DeviceDriver cuda_driver() {
  return {.type = kDLCUDA,
          .open = [](uint16_t id) { return std::make_shared<CudaQueue>(id); },
          .describe = describe_cuda_devices,
          .memory = {.take = take_memory,
                     .give =
                         [](uint16_t number, void* address) {
                           open_cuda_device(number);  // throws unless it is usable
                           return DeviceExchange::Place{address, 0};
                         },
                     .settle = settle_memory}};
}

}  // namespace relay::runtime::cuda
