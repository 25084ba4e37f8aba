#include "runtime/opencl/device.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/codes/runtime.h"
#include "base/fork.h"

namespace relay::runtime::opencl {
namespace {

// Lines of a driver's log that a message has.
constexpr size_t kLogLines = 12;

std::string head(const std::string& log) {
  size_t end = 0;
  for (size_t line = 0; line < kLogLines && end != log.npos; ++line) {
    end = log.find('\n', end);
    if (end != log.npos) ++end;
  }
  return escape_for_terminal(log.substr(0, end), 2000);
}

// The path of a new file with the code and the log; empty where none can be written.
std::string keep(const std::string& code, const std::string& log) {
  const char* folder = std::getenv("TMPDIR");
  std::string path = std::string(folder != nullptr && *folder != '\0' ? folder : "/tmp") +
                     "/relay-opencl-XXXXXX.cl";
  constexpr int kSuffix = 3;
  const int file = mkstemps(path.data(), kSuffix);
  if (file < 0) return "";
  const std::string text = code + "\n/* The driver says:\n" + log + "\n*/\n";
  bool written = true;
  for (size_t at = 0; at < text.size() && written;) {
    const ssize_t n = write(file, text.data() + at, text.size() - at);
    written = n > 0;
    at += written ? static_cast<size_t>(n) : 0;
  }
  close(file);
  return written ? path : "";
}

int rank_of(DeviceId id) {
  Flags type = 0;
  check(api().clGetDeviceInfo(id, kDeviceType, sizeof(type), &type, nullptr),
        "its type is not told");
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

}  // namespace

struct OpenDevice::Programs {
  ForkSafeMutex mutex;
  std::unordered_map<std::string, std::shared_ptr<BuiltProgram>> built;
};

OpenDevice::OpenDevice(DeviceId id, Context context)
    : id_(id), context_(context), programs_(std::make_shared<Programs>()) {
  name_ = info(kDeviceName);
  Flags single = 0;
  check(api().clGetDeviceInfo(id, kDeviceSingleFpConfig, sizeof(single), &single, nullptr),
        "its arithmetic is not told");
  options_ = "-cl-std=CL1.2 -w";
  if ((single & kFpCorrectlyRoundedDivideSqrt) != 0) {
    options_ += " -cl-fp32-correctly-rounded-divide-sqrt";
  }
}

std::string OpenDevice::info(UInt what) const {
  size_t size = 0;
  check(api().clGetDeviceInfo(id_, what, 0, nullptr, &size), "its properties are not told");
  std::string out(size, '\0');
  check(api().clGetDeviceInfo(id_, what, size, out.data(), nullptr), "its properties are not told");
  while (!out.empty() && out.back() == '\0') out.pop_back();
  return out;
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

std::shared_ptr<BuiltProgram> OpenDevice::build(const std::string& code) {
  std::lock_guard lock(programs_->mutex);
  std::shared_ptr<BuiltProgram>& built = programs_->built[code];
  if (built) return built;
  const char* text = code.c_str();
  const size_t size = code.size();
  Int error = kSuccess;
  auto made = std::make_shared<BuiltProgram>(
      api().clCreateProgramWithSource(context_, 1, &text, &size, &error));
  check(error, "a program cannot be made");
  const Int result = api().clBuildProgram(made->get(), 1, &id_, options_.c_str(), nullptr, nullptr);
  if (result == kSuccess) return built = std::move(made);
  if (result == kOutOfHostMemory) check(result, "a program cannot be built");
  const std::string log = build_log(made->get());
  const std::string path = keep(code, log);
  throw RuntimeError(
      Diagnostic(codes::run_device_code, {}, "the driver of " + name_ + " refuses a kernel")
          .found(log.empty() ? "OpenCL error " + std::to_string(result) : head(log))
          .help(path.empty()
                    ? "set TMPDIR to a folder that can be written, to keep the kernel's source"
                    : "the kernel's source is in " + path));
}

OpenDevice& open_opencl_device(uint16_t number) {
  static ForkSafeMutex mutex;
  // Never destroyed: programs may run until the end of the process.
  static auto* const open = new std::map<uint16_t, std::unique_ptr<OpenDevice>>;
  std::lock_guard lock(mutex);
  std::unique_ptr<OpenDevice>& device = (*open)[number];
  if (device) return *device;
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

}  // namespace relay::runtime::opencl
