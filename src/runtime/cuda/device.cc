#include "runtime/cuda/device.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "base/codes/runtime.h"
#include "base/fork.h"

namespace relay::runtime::cuda {
namespace {

// Errors after which a context refuses every call, or the process has none any more.
constexpr std::array<Result, 17> kEndContext{4,   46,  201, 214, 220, 700, 702, 709, 710,
                                             714, 715, 716, 717, 718, 719, 721, 999};

bool ends_context(Result result) {
  return std::ranges::find(kEndContext, result) != kEndContext.end();
}

// Before there is a context.
void check_driver(Result result, const std::string& what) {
  if (result == kSuccess) return;
  throw RuntimeError(Diagnostic(codes::run_no_device, {}, "CUDA cannot be used: " + what)
                         .found(name_of(result))
                         .help("see whether nvidia-smi shows the GPU"));
}

int32_t count_devices() {
  const Result started = api().cuInit(0);
  if (started == kNoDevice) return 0;
  check_driver(started, "the driver does not start");
  int32_t count = 0;
  check_driver(api().cuDeviceGetCount(&count), "the number of devices is not told");
  return count;
}

int32_t attribute(DeviceHandle device, int32_t what) {
  int32_t out = 0;
  check_driver(api().cuDeviceGetAttribute(&out, what, device), "its properties are not told");
  return out;
}

std::string model_of(DeviceHandle device) {
  std::array<char, 256> name{};
  check_driver(api().cuDeviceGetName(name.data(), static_cast<int32_t>(name.size() - 1), device),
               "its name is not told");
  return name.data();
}

std::string capability_of(DeviceHandle device) {
  return std::to_string(attribute(device, kAttributeMajor)) + "." +
         std::to_string(attribute(device, kAttributeMinor));
}

std::string version_of_driver() {
  int32_t version = 0;
  if (api().cuDriverGetVersion(&version) != kSuccess) return "an unknown version of CUDA";
  return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

DeviceHandle handle_of(int32_t number) {
  DeviceHandle handle = 0;
  check_driver(api().cuDeviceGet(&handle, number), "a device is not told");
  return handle;
}

}  // namespace

Current::Current(OpenDevice& device) {
  device.require_usable();
  device.check(api().cuCtxPushCurrent_v2(device.context()), "its context cannot be used");
}

Current::~Current() {
  Context popped = nullptr;
  api().cuCtxPopCurrent_v2(&popped);
}

OpenDevice::OpenDevice(uint16_t number, DeviceHandle handle)
    : name_("cuda:" + std::to_string(number) + ", " + model_of(handle)),
      capability_(capability_of(handle)),
      multiprocessors_(std::max(attribute(handle, kAttributeMultiprocessors), 1)),
      generation_(fork_generation()),
      pool_(
          [this](size_t bytes) -> void* {
            Address memory = 0;
            const Result result = api().cuMemAlloc_v2(&memory, bytes);
            if (result != kOutOfMemory) check(result, "memory cannot be allocated");
            return result == kSuccess ? reinterpret_cast<void*>(memory) : nullptr;
          },
          // The memory goes with the context where that is lost.
          [](void* memory) { api().cuMemFree_v2(reinterpret_cast<Address>(memory)); }) {
  check_driver(api().cuDevicePrimaryCtxRetain(&context_, handle), name_ + " gives no context");
}

std::shared_ptr<LoadedModule> OpenDevice::load(const std::string& code) {
  return modules_.get(code, [&] { return load_new(code); });
}

std::shared_ptr<LoadedModule> OpenDevice::load_new(const std::string& code) {
  std::string log(1 << 14, '\0');
  std::array<int32_t, 2> options{kJitErrorLog, kJitErrorLogBytes};
  std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(log.size())};
  Module module = nullptr;
  const Result result = api().cuModuleLoadDataEx(&module, code.c_str(), options.size(),
                                                 options.data(), values.data());
  if (result == kSuccess) return std::make_shared<LoadedModule>(module);
  if (result == kOutOfMemory || ends_context(result)) check(result, "a kernel cannot be loaded");
  log.resize(std::strlen(log.c_str()));
  while (!log.empty() && log.back() == '\n') log.pop_back();
  refuse_kernel({.device = name_,
                 .code = code,
                 .log = log,
                 .result = name_of(result),
                 .kind = "cuda",
                 .suffix = ".ptx",
                 .help = "the GPU has compute capability " + capability_ +
                         ", and its driver knows " + version_of_driver() +
                         ": compile for these, or update the driver"});
}

void OpenDevice::check(Result result, const std::string& what) {
  if (result == kSuccess) return;
  if (result == kOutOfMemory) out_of_memory(what);
  Diagnostic d(codes::run_device_failed, {}, name_ + " fails: " + what);
  d.found(name_of(result));
  if (ends_context(result)) {
    Result none = kSuccess;
    lost_.compare_exchange_strong(none, result);
    d.help("the context of the device is lost with this: start the process again");
  }
  throw RuntimeError(std::move(d));
}

void OpenDevice::out_of_memory(const std::string& what) {
  size_t free = 0, total = 0;
  Diagnostic d(codes::run_out_of_memory, {}, name_ + " is out of memory: " + what);
  if (api().cuMemGetInfo_v2(&free, &total) == kSuccess) {
    d.found(std::to_string(free) + " bytes free of " + std::to_string(total) + "; Relay uses " +
            std::to_string(pool_.usage().in_use));
  }
  throw RuntimeError(std::move(d.help("use smaller sizes, or a device with more memory")));
}

bool OpenDevice::is_usable() const noexcept {
  return lost_.load(std::memory_order_relaxed) == kSuccess && generation_ == fork_generation();
}

void OpenDevice::require_usable() const {
  if (is_usable()) return;
  Diagnostic d(codes::run_device_failed, {}, name_ + " cannot be used any more");
  if (generation_ != fork_generation()) {
    d.found("a child of a process that has used CUDA")
        .help(
            "use the device in one of both only, or start the child without fork: "
            "multiprocessing has the method 'spawn'");
  } else {
    d.found("its context was lost: " + name_of(lost_.load(std::memory_order_relaxed)))
        .help("start the process again");
  }
  throw RuntimeError(std::move(d));
}

OpenDevice& open_cuda_device(uint16_t number) {
  static ForkSafeMutex mutex;
  // Never destroyed: programs may run until the end of the process.
  static auto* const open = new std::map<uint16_t, std::unique_ptr<OpenDevice>>;
  std::lock_guard lock(mutex);
  if (auto known = open->find(number); known != open->end()) {
    known->second->require_usable();
    return *known->second;
  }
  const int32_t count = count_devices();
  if (number >= count) {
    throw RuntimeError(
        Diagnostic(codes::run_no_device, {}, "there is no device cuda:" + std::to_string(number))
            .found(count == 0 ? "a driver without devices"
                              : std::to_string(count) + " CUDA devices, counted from 0")
            .help("see whether nvidia-smi shows the GPU and CUDA_VISIBLE_DEVICES names it, or "
                  "compile for another target"));
  }
  auto device = std::make_unique<OpenDevice>(number, handle_of(number));
  return *open->emplace(number, std::move(device)).first->second;
}

std::vector<std::string> describe_cuda_devices() {
  std::vector<std::string> out;
  const int32_t count = count_devices();
  for (int32_t i = 0; i < count; ++i) {
    const DeviceHandle handle = handle_of(i);
    size_t bytes = 0;
    check_driver(api().cuDeviceTotalMem_v2(&bytes, handle), "its memory is not told");
    char memory[32];
    std::snprintf(memory, sizeof(memory), "%.1f GiB", static_cast<double>(bytes) / (1 << 30));
    out.push_back(model_of(handle) + ", compute capability " + capability_of(handle) + ", " +
                  memory + ", " + version_of_driver());
  }
  return out;
}

}  // namespace relay::runtime::cuda
