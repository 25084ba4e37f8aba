#include "analysis/uses.h"

#include "node/walk.h"

namespace relay {

UseCounts::UseCounts(const Expr& root) {
  post_order(
      root,
      [&](const Node& n) {
        for_each_child(n, [&](const NodeRef& child) { ++counts_[child.get()]; });
      },
      family::program);
}

}  // namespace relay
