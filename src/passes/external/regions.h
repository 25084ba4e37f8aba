// The regions of a function: what lies between the marks of one external code generator (ir/external.h).
#pragma once

#include <string>
#include <vector>

#include "ir/expr.h"
#include "node/node_map.h"

namespace relay {

struct Region {
  std::string compiler;
  // The marks at its border, operands before users.
  std::vector<const CallNode*> begins;
  std::vector<const CallNode*> ends;
};

// The regions of a function, "default" among them: calls that are next to each other without a mark between them belong to one.
// Throws UserError E0318 where a mark begins a region of one name in a region of another. Iterative, linear.
class Regions {
 public:
  explicit Regions(const FunctionNode& f);

  const std::vector<Region>& all() const { return regions_; }
  // The region that an expression is in, marks included; negative for those outside.
  int of(const Node* e) const {
    const int* part = part_of_.find(e);
    return part == nullptr ? -1 : region_of_part_[static_cast<size_t>(*part)];
  }

 private:
  NodeMap<int> part_of_;
  std::vector<int> region_of_part_;
  std::vector<Region> regions_;
};

}  // namespace relay
