// What the code generators of devices share: a kernel's launches, with their items, their buffers and their working memory.
//
//   DeviceKernel kernel(f, "PTX");
//   for (const LaunchPart& part : kernel.parts()) {
//     kernel.begin_launch(part);
//     ...                              // writes the function launch().name, whose arguments are launch_buffers()
//   }
//   DeviceSource source = kernel.take(code);
#pragma once

#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codegen/device/launches.h"
#include "runtime/device_source.h"
#include "tir/stmt.h"

namespace relay::codegen {

// A buffer that a launch takes.
struct LaunchBuffer {
  const tir::BufferNode* buffer;
  size_t number;   // in DeviceLaunch::buffers
  bool is_stored;  // the launch writes it
};

class DeviceKernel {
 public:
  // `language` is what code is written in, for messages.
  DeviceKernel(const tir::PrimFuncNode& f, std::string language);

  // Throws UserError E0401.
  [[noreturn]] void unsupported(const std::string& what) const;

  // A kernel that does nothing has an empty one.
  const std::vector<LaunchPart>& parts() const { return parts_; }

  // Counts the items of a launch, and finds its buffers. Throws UserError E0401 for what no device can run.
  void begin_launch(const LaunchPart& part);
  // Of the launch that was begun last.
  const runtime::DeviceLaunch& launch() const { return source_.launches.back(); }
  const std::vector<LaunchBuffer>& launch_buffers() const { return buffers_; }
  // Whether the launch has nothing to do behind a failure of an earlier one, which may have left wrong indices. All items of a
  // group reach its barriers, so a group goes on.
  bool ends_after_failure() const { return ends_after_failure_; }
  // Whether an axis may have fewer items than iterations.
  bool loops(size_t axis) const { return loops_[axis]; }
  // The items of each axis that have working memory of their own, at most; nothing where none needs any.
  std::optional<int64_t> most_items() const;

  // With its code. Called once.
  runtime::DeviceSource take(std::string code);

  // Nothing for a large number, or one that is not a constant.
  static std::optional<int64_t> constant_elements(const tir::BufferNode& b);
  // Whether the buffer is an item's own memory.
  static bool is_small(const tir::BufferNode& b);

 private:
  // The expression as a formula of the call's sizes; nothing for one that is none.
  std::optional<std::string> formula(const tir::PrimExpr& e) const;
  runtime::SizeFormula bytes_of(const tir::BufferNode& b) const;
  void find_buffers(const LaunchPart& part);
  void count_items(const LaunchPart& part);
  void count_groups(const LaunchPart& part);

  const tir::PrimFuncNode& f_;
  std::string language_;
  std::vector<LaunchPart> parts_;
  runtime::DeviceSource source_;
  std::unordered_map<const tir::BufferNode*, size_t> numbers_;
  std::unordered_set<const tir::BufferNode*> group_registers_;
  // Of the launch that was begun last.
  std::vector<LaunchBuffer> buffers_;
  std::unordered_set<const tir::BufferNode*> slices_;
  std::array<bool, 3> loops_{};
  bool ends_after_failure_ = false;
};

}  // namespace relay::codegen
