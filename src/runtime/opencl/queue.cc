#include "runtime/opencl/queue.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "base/codes/runtime.h"
#include "runtime/device_kernels.h"
#include "runtime/opencl/address_space.h"
#include "runtime/opencl/device.h"
#include "runtime/vm/bytecode.h"

namespace relay::runtime::opencl {
namespace {

// Events that are kept: who waits for an older one waits for the next that is.
constexpr size_t kMostEvents = 256;

struct ReleaseKernel {
  void operator()(Kernel kernel) const { api().clReleaseKernel(kernel); }
};
using OwnKernel = std::unique_ptr<KernelStruct, ReleaseKernel>;

// A launch of a kernel. On a processor it keeps the groups of its last size, because to choose them takes longer than a short
// launch.
struct ReadyLaunch {
  OwnKernel function;
  std::optional<GroupLimits> limits;
  std::array<int64_t, 3> items{}, group{};
};
using OpenclKernel = ReadyKernel<BuiltProgram, ReadyLaunch>;

class OpenclQueue : public DeviceQueue {
 public:
  explicit OpenclQueue(uint16_t number) : device_(open_opencl_device(number)) {
    Int error = kSuccess;
    queue_ = api().clCreateCommandQueue(device_.context(), device_.id(), 0, &error);
    check(error, "it gives no queue");
    device_.pool().open(this);
    failure_ =
        api().clCreateBuffer(device_.context(), kMemReadWrite, sizeof(kNoFailure), nullptr, &error);
    if (error == kSuccess) error = clear_failure();
    if (error != kSuccess) {
      release_all();
      check(error, "it has no memory for a queue");
    }
  }
  ~OpenclQueue() override {
    if (!device_.is_usable()) return;  // the parent process has all of it
    api().clFinish(queue_);
    release_all();
  }
  OpenclQueue(const OpenclQueue&) = delete;
  OpenclQueue& operator=(const OpenclQueue&) = delete;

  void* allocate(size_t bytes) override {
    device_.require_usable();
    const size_t wanted = bytes + kDeviceSlack;
    void* memory = wanted < bytes ? nullptr : device_.pool().allocate(this, wanted);
    if (memory == nullptr && is_busy_.load()) {
      // What the queue's work has used is free once it is done.
      check(api().clFinish(queue_), "what it was given ends with an error");
      settle();
      memory = device_.pool().allocate(this, wanted);
    }
    if (memory == nullptr) {
      check(kMemObjectAllocationFailure,
            ("it does not give memory of " + std::to_string(bytes) + " bytes").c_str());
    }
    return memory;
  }
  void release(void* memory) noexcept override {
    if (device_.is_usable()) device_.pool().release(memory, !is_busy_.load());
  }

  uint64_t copy_to_device(void* to, const void* from, size_t bytes) override {
    device_.require_usable();
    const auto [memory, offset] = AddressSpace::instance().find(to);
    Event event = nullptr;
    check(
        api().clEnqueueWriteBuffer(queue_, memory, kFalse, offset, bytes, from, 0, nullptr, &event),
        "memory cannot be copied to it");
    return given(event);
  }
  uint64_t copy_to_host(void* to, const void* from, size_t bytes) override {
    device_.require_usable();
    const auto [memory, offset] = AddressSpace::instance().find(from);
    Event event = nullptr;
    check(api().clEnqueueReadBuffer(queue_, memory, kFalse, offset, bytes, to, 0, nullptr, &event),
          "memory cannot be copied from it");
    return given(event);
  }
  uint64_t copy_within(void* to, const void* from, size_t bytes) override {
    device_.require_usable();
    const auto [target, to_offset] = AddressSpace::instance().find(to);
    const auto [source, from_offset] = AddressSpace::instance().find(from);
    check(api().clEnqueueCopyBuffer(queue_, source, target, from_offset, to_offset, bytes, 0,
                                    nullptr, nullptr),
          "memory cannot be copied");
    return next();
  }

  uint64_t launch(const KernelInfo& info, relay_kernel entry, std::span<void* const> buffers,
                  std::span<const int64_t> dims) override {
    device_.require_usable();
    OpenclKernel& kernel = ready(info, entry);
    std::vector<std::pair<Memory, int64_t>> places;
    for (const void* b : buffers) {
      const auto [memory, offset] = AddressSpace::instance().find(b);
      places.emplace_back(memory, static_cast<int64_t>(offset));
    }
    append_workspace(kernel.source, dims, places);
    is_busy_ = true;  // also where one of its launches cannot be started
    for (size_t i = 0; i < kernel.functions.size(); ++i) {
      start(kernel, i, places, dims);
    }
    return next();
  }

  void submit() override {
    device_.require_usable();
    check(api().clFlush(queue_), "its work cannot be started");
  }
  std::optional<DeviceFailure> wait(uint64_t event) override {
    device_.require_usable();
    auto known = std::ranges::find_if(events_, [&](const auto& e) { return e.first >= event; });
    const Int result =
        known == events_.end() ? api().clFinish(queue_) : api().clWaitForEvents(1, &known->second);
    check(result, "what it was given ends with an error");
    while (!events_.empty() && events_.front().first <= event) drop_event();
    if (event >= given_) settle();
    if (!may_have_failed_) return std::nullopt;
    may_have_failed_ = false;
    Int failure[2] = {};
    check(api().clEnqueueReadBuffer(queue_, failure_, kTrue, 0, sizeof(failure), failure, 0,
                                    nullptr, nullptr),
          "its failures cannot be read");
    const auto failed = kernels_.failure(failure);
    if (failed) check(clear_failure(), "its failures cannot be cleared");
    return failed;
  }
  uint64_t last() const override { return given_; }

 private:
  static constexpr Int kNoFailure[2] = {0, 0};

  Memory new_memory(size_t bytes, const std::string& what) {
    Int error = kSuccess;
    Memory memory = api().clCreateBuffer(device_.context(), kMemReadWrite, bytes, nullptr, &error);
    check(error, ("it does not give " + what).c_str());
    return memory;
  }

  Int clear_failure() {
    return api().clEnqueueWriteBuffer(queue_, failure_, kTrue, 0, sizeof(kNoFailure), kNoFailure, 0,
                                      nullptr, nullptr);
  }

  // The event of work that was put into the queue.
  uint64_t next() {
    is_busy_ = true;
    return ++given_;
  }
  // All is done.
  void settle() {
    is_busy_ = false;
    device_.pool().settle(this);
  }

  uint64_t given(Event event) {
    events_.emplace_back(next(), event);
    if (events_.size() > kMostEvents) drop_event();
    api().clFlush(queue_);
    return given_;
  }
  void drop_event() {
    api().clReleaseEvent(events_.front().second);
    events_.pop_front();
  }

  OpenclKernel& ready(const KernelInfo& info, relay_kernel entry) {
    return kernels_.get(
        info, entry, [&](const DeviceSource& source) { return device_.build(source); },
        [&](BuiltProgram& program, const DeviceLaunch& launch) {
          Int error = kSuccess;
          ReadyLaunch out{
              OwnKernel(api().clCreateKernel(program.get(), launch.name.c_str(), &error)),
              device_.group_limits()};
          check(error, ("it has no kernel " + launch.name).c_str());
          if (out.limits) {
            size_t items = 0;
            check(api().clGetKernelWorkGroupInfo(out.function.get(), device_.id(),
                                                 kKernelWorkGroupSize, sizeof(items), &items,
                                                 nullptr),
                  "the size of a kernel's groups is not told");
            out.limits->items = std::min(out.limits->items, static_cast<int64_t>(items));
          }
          return out;
        });
  }

  // Working memory of the kernel, behind its buffers. The queue works in order, so all its kernels share one block.
  void append_workspace(const DeviceSource& source, std::span<const int64_t> dims,
                        std::vector<std::pair<Memory, int64_t>>& places) {
    if (source.workspace.empty()) return;
    const WorkspaceLayout layout = layout_workspace(source, dims, "an OpenCL device");
    if (layout.bytes + kDeviceSlack > workspace_bytes_ || workspace_ == nullptr) {
      const size_t wanted = layout.bytes + kDeviceSlack;
      Memory larger = new_memory(
          wanted, "working memory of " + std::to_string(layout.bytes) + " bytes for a kernel");
      if (workspace_ != nullptr) api().clReleaseMemObject(workspace_);
      workspace_ = larger;
      workspace_bytes_ = wanted;
    }
    for (int64_t offset : layout.offsets) places.emplace_back(workspace_, offset);
  }

  void start(OpenclKernel& kernel, size_t which,
             const std::vector<std::pair<Memory, int64_t>>& places, std::span<const int64_t> dims) {
    const DeviceLaunch& launch = kernel.source.launches[which];
    const std::optional<LaunchSize> size = size_of(launch, dims);
    if (!size) return;
    ReadyLaunch& ready = kernel.functions[which];
    const bool chooses = !size->has_groups && ready.limits;
    if (chooses && ready.items != size->items) {
      ready.items = size->items;
      ready.group = group_of(size->items, *ready.limits);
    }
    size_t items[3], group[3];
    std::ranges::copy(size->items, items);
    std::ranges::copy(chooses ? ready.group : size->group, group);
    const Kernel function = ready.function.get();
    UInt at = 0;
    Int error = kSuccess;
    auto pass = [&](const void* value, size_t bytes) {
      const Int result = api().clSetKernelArg(function, at++, bytes, value);
      if (error == kSuccess) error = result;
    };
    for (size_t b : launch.buffers) {
      RELAY_CHECK(b < places.size(), "a launch of a buffer that the kernel does not have");
      pass(&places[b].first, sizeof(Memory));
      pass(&places[b].second, sizeof(int64_t));
    }
    for (const int64_t& d : dims) pass(&d, sizeof(d));
    pass(&failure_, sizeof(Memory));
    pass(&kernel.number, sizeof(kernel.number));
    check(error, ("kernel " + launch.name + " does not take its arguments").c_str());
    check(api().clEnqueueNDRangeKernel(queue_, function, 3, nullptr, items,
                                       size->has_groups || chooses ? group : nullptr, 0, nullptr,
                                       nullptr),
          ("kernel " + launch.name + " cannot be started").c_str());
    may_have_failed_ |= launch.may_fail;
  }

  void release_all() noexcept {
    while (!events_.empty()) drop_event();
    kernels_.clear();
    if (workspace_ != nullptr) api().clReleaseMemObject(workspace_);
    if (failure_ != nullptr) api().clReleaseMemObject(failure_);
    device_.pool().close(this);
    api().clReleaseCommandQueue(queue_);
  }

  OpenDevice& device_;
  Queue queue_ = nullptr;
  Memory failure_ = nullptr, workspace_ = nullptr;
  size_t workspace_bytes_ = 0;
  uint64_t given_ = 0;
  std::atomic<bool> is_busy_ = false;
  std::deque<std::pair<uint64_t, Event>> events_;
  ReadyKernels<OpenclKernel> kernels_;
  bool may_have_failed_ = false;
};

template <class T>
T told(Memory memory, UInt what) {
  T out{};
  check(api().clGetMemObjectInfo(memory, what, sizeof(out), &out, nullptr),
        "the DLPack tensor's memory is not told");
  return out;
}

std::shared_ptr<void> take_memory(uint16_t number, DeviceExchange::Place place, size_t bytes,
                                  std::shared_ptr<void> owner) {
  const OpenDevice& device = open_opencl_device(number);
  auto* memory = static_cast<Memory>(place.data);
  auto refuse = [](const std::string& what, const std::string& found, const std::string& help) {
    throw UserError(
        Diagnostic(codes::tensor_dlpack, {}, "the DLPack tensor " + what).found(found).help(help));
  };
  if (told<Context>(memory, kMemContext) != device.context()) {
    refuse(
        "is of another OpenCL context than Relay's on opencl:" + std::to_string(number),
        "a cl_mem of a context of its own",
        "create it in the context of a tensor that Relay gave (CL_MEM_CONTEXT), or copy it to the "
        "CPU first");
  }
  if (told<UInt>(memory, kMemType) != kMemObjectBuffer) {
    refuse("is no buffer", "an image or a pipe", "copy it to a buffer");
  }
  const auto size = told<size_t>(memory, kMemSize);
  if (place.offset > size || bytes > size - place.offset) {
    refuse("does not fit its memory",
           std::to_string(bytes) + " bytes from byte " + std::to_string(place.offset) +
               " on in a buffer of " + std::to_string(size),
           "its shape or its byte_offset is wrong");
  }
  check(api().clRetainMemObject(memory), "the DLPack tensor's memory cannot be kept");
  void* range = AddressSpace::instance().insert(memory, size);
  if (range == nullptr) {
    api().clReleaseMemObject(memory);
    throw RuntimeError(
        Diagnostic(codes::run_out_of_memory, {},
                   "no addresses for " + std::to_string(size) + " bytes of an OpenCL device"));
  }
  return {static_cast<char*>(range) + place.offset, [range, owner = std::move(owner)](void*) {
            api().clReleaseMemObject(AddressSpace::instance().remove(range));
          }};
}

DeviceExchange::Place give_memory(uint16_t number, void* address) {
  const auto [memory, offset] = AddressSpace::instance().find(address);
  open_opencl_device(number).pool().lend(static_cast<char*>(address) - offset);
  return {memory, offset};
}

}  // namespace

DeviceDriver opencl_driver() {
  return {.type = kDLOpenCL,
          .open = [](uint16_t id) { return std::make_shared<OpenclQueue>(id); },
          .describe = describe_opencl_devices,
          .memory = {.take = take_memory, .give = give_memory}};
}

}  // namespace relay::runtime::opencl
