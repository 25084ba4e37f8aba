#include "runtime/opencl/device.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/codes/runtime.h"
#include "base/fork.h"
#include "runtime/opencl/address_space.h"

namespace relay::runtime::opencl {
namespace {

std::string text_of(DeviceId id, UInt what) {
  size_t size = 0;
  check(api().clGetDeviceInfo(id, what, 0, nullptr, &size), "its name is not told");
  std::string out(size, '\0');
  check(api().clGetDeviceInfo(id, what, size, out.data(), nullptr), "its name is not told");
  while (!out.empty() && out.back() == '\0') out.pop_back();
  return out;
}
std::string name_of(DeviceId id) { return text_of(id, kDeviceName); }

Flags type_of(DeviceId id) {
  Flags type = 0;
  check(api().clGetDeviceInfo(id, kDeviceType, sizeof(type), &type, nullptr),
        "its type is not told");
  return type;
}

int rank_of(DeviceId id) {
  const Flags type = type_of(id);
  return (type & kDeviceTypeGpu) != 0 ? 0 : (type & kDeviceTypeCpu) != 0 ? 2 : 1;
}

std::vector<DeviceId> all_devices() {
  UInt count = 0;
  std::vector<DeviceId> out;
  // A loader without a driver reports an error of its own.
  if (api().clGetPlatformIDs(0, nullptr, &count) != kSuccess || count == 0) return out;
  std::vector<Platform> platforms(count);
  check(api().clGetPlatformIDs(count, platforms.data(), nullptr), "the platforms are not told");
  for (Platform p : platforms) {
    UInt devices = 0;
    const Int result = api().clGetDeviceIDs(p, kDeviceTypeAll, 0, nullptr, &devices);
    if (result == kDeviceNotFound || devices == 0) continue;
    check(result, "the devices of a platform are not told");
    const size_t before = out.size();
    out.resize(before + devices);
    check(api().clGetDeviceIDs(p, kDeviceTypeAll, devices, out.data() + before, nullptr),
          "the devices of a platform are not told");
  }
  std::ranges::stable_sort(out, {}, rank_of);
  return out;
}

std::optional<GroupLimits> limits_of_groups(DeviceId id) {
  if ((type_of(id) & kDeviceTypeCpu) == 0) return std::nullopt;
  UInt units = 0;
  size_t items = 0, bytes = 0;
  check(api().clGetDeviceInfo(id, kDeviceMaxComputeUnits, sizeof(units), &units, nullptr),
        "its number of units is not told");
  check(api().clGetDeviceInfo(id, kDeviceMaxWorkGroupSize, sizeof(items), &items, nullptr),
        "the size of its groups is not told");
  check(api().clGetDeviceInfo(id, kDeviceMaxWorkItemSizes, 0, nullptr, &bytes),
        "the sizes of its groups are not told");
  // Devices may have more axes than launches.
  std::vector<size_t> axes(bytes / sizeof(size_t));
  check(api().clGetDeviceInfo(id, kDeviceMaxWorkItemSizes, bytes, axes.data(), nullptr),
        "the sizes of its groups are not told");
  GroupLimits out{std::max<int64_t>(units, 1), static_cast<int64_t>(items), {1, 1, 1}};
  std::copy_n(axes.begin(), std::min(axes.size(), out.axes.size()), out.axes.begin());
  return out;
}

// Null where the device has none, or the process no addresses for it.
void* new_memory(Context context, size_t bytes) {
  Int error = kSuccess;
  Memory memory = api().clCreateBuffer(context, kMemReadWrite, bytes, nullptr, &error);
  if (is_out_of_memory(error)) return nullptr;
  check(error, "it does not give memory");
  void* address = AddressSpace::instance().insert(memory, bytes);
  if (address == nullptr) api().clReleaseMemObject(memory);
  return address;
}

bool has_kernels(Program program, const DeviceSource& source) {
  return std::ranges::all_of(source.launches, [&](const DeviceLaunch& launch) {
    Int error = kSuccess;
    const Kernel kernel = api().clCreateKernel(program, launch.name.c_str(), &error);
    if (error == kSuccess) api().clReleaseKernel(kernel);
    return error == kSuccess;
  });
}

}  // namespace

OpenDevice::OpenDevice(DeviceId id, Context context)
    : id_(id),
      context_(context),
      generation_(fork_generation()),
      pool_(
          [context](size_t bytes) { return new_memory(context, bytes); },
          [](void* memory) { api().clReleaseMemObject(AddressSpace::instance().remove(memory)); }) {
  name_ = name_of(id);
  group_limits_ = limits_of_groups(id);
  Flags single = 0;
  check(api().clGetDeviceInfo(id, kDeviceSingleFpConfig, sizeof(single), &single, nullptr),
        "its arithmetic is not told");
  options_ = "-cl-std=CL1.2 -w";
  if ((single & kFpCorrectlyRoundedDivideSqrt) != 0) {
    options_ += " -cl-fp32-correctly-rounded-divide-sqrt";
  }
}

void OpenDevice::require_usable() const {
  if (is_usable()) return;
  throw RuntimeError(
      Diagnostic(codes::run_device_failed, {}, "'" + name_ + "' cannot be used any more")
          .found("a child of a process that has used the OpenCL device")
          .help("use the device in one of both only, or start the child without fork: "
                "multiprocessing has the method 'spawn'"));
}

std::string OpenDevice::build_log(Program program) const {
  size_t size = 0;
  if (api().clGetProgramBuildInfo(program, id_, kProgramBuildLog, 0, nullptr, &size) != kSuccess) {
    return "";
  }
  std::string out(size, '\0');
  if (api().clGetProgramBuildInfo(program, id_, kProgramBuildLog, size, out.data(), nullptr) !=
      kSuccess) {
    return "";
  }
  while (!out.empty() && (out.back() == '\0' || out.back() == '\n')) out.pop_back();
  return out;
}

std::string OpenDevice::binary_device() const {
  std::string out = name_ + ", driver " + text_of(id_, kDriverVersion) + ", " + options_;
  std::ranges::replace(out, '\n', ' ');
  return out;
}

DeviceBinary OpenDevice::binary_of(const std::string& code) const {
  const std::shared_ptr<BuiltProgram> built = from_code(code);
  size_t size = 0;
  check(api().clGetProgramInfo(built->get(), kProgramBinarySizes, sizeof(size), &size, nullptr),
        "the size of a program is not told");
  if (size == 0) {
    throw RuntimeError(
        Diagnostic(codes::run_device_failed, {}, "the driver of '" + name_ + "' gives no binaries")
            .help("leave out -build: the driver builds the source when the program "
                  "is loaded"));
  }
  std::string bytes(size, '\0');
  char* into = bytes.data();
  check(api().clGetProgramInfo(built->get(), kProgramBinaries, sizeof(into), &into, nullptr),
        "a program is not given");
  return {binary_device(), std::move(bytes)};
}

std::shared_ptr<BuiltProgram> OpenDevice::from_binary(const DeviceSource& source) const {
  if (source.binaries.empty()) return nullptr;
  const std::string here = binary_device();
  for (const DeviceBinary& b : source.binaries) {
    if (b.device != here) continue;
    const auto* bytes = reinterpret_cast<const unsigned char*>(b.bytes.data());
    const size_t size = b.bytes.size();
    Int error = kSuccess, status = kSuccess;
    const Program program =
        api().clCreateProgramWithBinary(context_, 1, &id_, &size, &bytes, &status, &error);
    if (program == nullptr) continue;
    auto made = std::make_shared<BuiltProgram>(program);
    if (error == kSuccess && status == kSuccess &&
        api().clBuildProgram(program, 1, &id_, options_.c_str(), nullptr, nullptr) == kSuccess &&
        has_kernels(program, source)) {
      return made;
    }
  }
  return nullptr;
}

std::shared_ptr<BuiltProgram> OpenDevice::from_code(const std::string& code) const {
  const char* text = code.c_str();
  const size_t size = code.size();
  Int error = kSuccess;
  auto made = std::make_shared<BuiltProgram>(
      api().clCreateProgramWithSource(context_, 1, &text, &size, &error));
  check(error, "a program cannot be made");
  const Int result = api().clBuildProgram(made->get(), 1, &id_, options_.c_str(), nullptr, nullptr);
  if (result == kSuccess) return made;
  if (result == kOutOfHostMemory) check(result, "a program cannot be built");
  refuse_kernel({.device = name_,
                 .code = code,
                 .log = build_log(made->get()),
                 .result = "OpenCL error " + std::to_string(result),
                 .kind = "opencl",
                 .suffix = ".cl",
                 .help = ""});
}

std::shared_ptr<BuiltProgram> OpenDevice::build(const DeviceSource& source) {
  return programs_.get(source.code, [&] {
    auto made = from_binary(source);
    return made != nullptr ? made : from_code(source.code);
  });
}

OpenDevice& open_opencl_device(uint16_t number) {
  static ForkSafeMutex mutex;
  // Never destroyed: programs may run until the end of the process.
  static auto* const open = new std::map<uint16_t, std::unique_ptr<OpenDevice>>;
  std::lock_guard lock(mutex);
  std::unique_ptr<OpenDevice>& device = (*open)[number];
  if (device) {
    device->require_usable();
    return *device;
  }
  const std::vector<DeviceId> all = all_devices();
  if (number >= all.size()) {
    throw RuntimeError(
        Diagnostic(codes::run_no_device, {}, "there is no device opencl:" + std::to_string(number))
            .found(all.empty() ? "an OpenCL loader without devices"
                               : std::to_string(all.size()) + " OpenCL devices, counted from 0")
            .help(
                "install an OpenCL driver (Debian: pocl-opencl-icd for processors), or compile for "
                "another target"));
  }
  Int error = kSuccess;
  Context context = api().clCreateContext(nullptr, 1, &all[number], nullptr, nullptr, &error);
  check(error, "it cannot be opened");
  device = std::make_unique<OpenDevice>(all[number], context);
  return *device;
}

std::vector<std::string> describe_opencl_devices() {
  std::vector<std::string> out;
  for (DeviceId id : all_devices()) out.push_back(name_of(id));
  return out;
}

}  // namespace relay::runtime::opencl
