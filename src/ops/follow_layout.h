// The layout rule of operators that compute each channel in the same way, in any layout.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "ir/op.h"

namespace relay::ops {

// The attribute `layout` is the desired one, else follows the data: whatever order of the same axes is offered is taken.
template <class A>
std::optional<LayoutDecision> follow_layout(const relay::CallNode& call,
                                            std::span<const Layout> offered,
                                            const Layout& desired) {
  auto& a = static_cast<const A&>(*call.attrs.get());
  Layout now = Layout::of(a.layout);
  Layout want = desired.defined()                          ? desired
                : !offered.empty() && offered[0].defined() ? offered[0]
                                                           : now;
  std::string x = want.primal_axes(), y = now.primal_axes();
  std::sort(x.begin(), x.end());
  std::sort(y.begin(), y.end());
  if (x != y || want.rank() != now.rank()) return std::nullopt;
  LayoutDecision out;
  out.inputs = out.outputs = {want};
  Node* copy = a.info().clone(a);
  NodeRef owner(copy);
  static_cast<A*>(copy)->layout = want.to_string();
  out.attrs = Attrs::unchecked(owner);
  return out;
}

}  // namespace relay::ops
