// Tensor layouts: the order and blocking of named axes, "NCHW", "NHWC", "OIHW16i32o".
//
// An upper-case letter is a primal axis. A number with a lower-case letter is a block of that
// primal axis: in "NCHW16c" axis C is split into an outer axis C of ceil(C/16) and an inner one
// of 16. A size that the block does not divide is padded with zeros.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/type.h"

namespace relay {

class Layout {
 public:
  struct Axis {
    char name;      // 'C' for the primal axis, 'c' for a block of it
    int64_t block;  // size of a block; 0 for a primal axis
  };

  // Undefined: no layout is known.
  Layout() = default;
  // nullopt for a text that is no layout (a block without its primal axis, an axis twice, ...).
  static std::optional<Layout> parse(std::string_view text);
  // For texts written in the source; a defect of Relay when wrong.
  static Layout of(std::string_view text);

  bool defined() const { return !axes_.empty(); }
  const std::vector<Axis>& axes() const { return axes_; }
  int64_t rank() const { return static_cast<int64_t>(axes_.size()); }
  // Position of an axis ('C' or 'c'), -1 if absent.
  int64_t index_of(char axis) const;
  // Product of the blocks of a primal axis; 1 if not blocked.
  int64_t block_of(char primal) const;
  // Primal axes in the order in which they appear.
  std::string primal_axes() const;
  std::string to_string() const;
  friend bool operator==(const Layout& a, const Layout& b) {
    return a.to_string() == b.to_string();
  }

  // The shape in this layout of a tensor whose shape in `from` (same primal axes) is `shape`.
  std::vector<Dim> convert_shape(const std::vector<Dim>& shape, const Layout& from) const;

 private:
  std::vector<Axis> axes_;
};

}  // namespace relay
