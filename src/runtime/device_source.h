// A kernel as source code that the driver of a device compiles: the bytes behind a kernel's entry in an artifact, which a
// backend writes and the queue of the device reads.
//
//   DeviceSource s;                           // one kernel: launches in their order, and the code of all
//   std::string bytes = to_bytes(s);          // readable: a comment for each launch, then the code
//   const DeviceSource t = read_device_source(entry);
//
// A launch is a function of the code. Its arguments are, for each of its buffers, the memory and the first byte in it, then
// the sizes of the call as int64, the failure word (two int32: a code of runtime/core/kernel_abi.h, 0 while nothing has
// failed, and the number of the kernel that failed), and the number of this kernel.
//
// Of CUDA the code is PTX, a launch is an entry of it, and the argument of a buffer is one, the address of its first byte. A
// launch without groups is right for any number of threads along each axis, also for more than it has items; one with
// groups has blocks of exactly `group` threads, and as many as its items say.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/kernel_abi.h"

namespace relay::runtime {

// A number that depends on the sizes of a call, in postfix: "d0 4 * 7 +" is d0 * 4 + 7.
class SizeFormula {
 public:
  SizeFormula() = default;
  explicit SizeFormula(std::string text) : text_(std::move(text)) {}
  explicit SizeFormula(int64_t number) : text_(std::to_string(number)) {}

  const std::string& text() const { return text_; }
  // Operators: + - * / % (the last two round towards minus infinity, and give 0 for a divisor of 0), min, max.
  // Throws UserError E0608 for a text that is no formula.
  int64_t evaluate(std::span<const int64_t> sizes) const;

 private:
  std::string text_;
};

struct DeviceLaunch {
  std::string name;
  // Of the kernel's buffers, then of its working memory.
  std::vector<size_t> buffers;
  // Work items along x, y and z. None runs where one is 0.
  std::array<SizeFormula, 3> items{SizeFormula(1), SizeFormula(1), SizeFormula(1)};
  // Work items of a group along each; 0: as the driver likes.
  std::array<int64_t, 3> group{0, 0, 0};
  // Whether it may write the failure word.
  bool may_fail = false;
};

// The work items of a launch in a call, along x, y and z.
struct LaunchSize {
  std::array<int64_t, 3> items{};
  std::array<int64_t, 3> group{};  // items of one; 1 along an axis where the driver may choose
  bool has_groups = false;         // whether the launch says the group along any axis
};
// Nothing where no item runs.
std::optional<LaunchSize> size_of(const DeviceLaunch& launch, std::span<const int64_t> sizes);

// A program that a driver has built from the code.
struct DeviceBinary {
  std::string device;  // one line: the device, the version of the driver, the options of the build
  std::string bytes;
};

struct DeviceSource {
  std::vector<SizeFormula> workspace;  // bytes of each
  std::vector<DeviceLaunch> launches;
  std::string code;
  std::vector<DeviceBinary> binaries = {};
};

// The text and the binaries, behind their length.
std::string to_bytes(const DeviceSource& source);
// The text without the length and the binaries, as people read it.
std::string to_text(const DeviceSource& source);

// Of the bytes at a kernel's entry. Throws UserError E0608 for others.
DeviceSource read_device_source(relay_kernel entry);
DeviceSource parse_device_source(std::string_view text);

}  // namespace relay::runtime
