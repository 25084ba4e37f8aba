#include "passes/simplify/fold_explicit_padding.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/calls.h"
#include "ir/layout.h"
#include "ir/op.h"
#include "node/structural.h"
#include "passes/simplify/rewrite_calls.h"

namespace relay {
namespace {

using Ints = std::vector<int64_t>;

// The windows of a call, where a border of the data can be one of theirs.
const Window* windows_of(const CallNode& c) {
  auto* op = as<OpNode>(c.op);
  if (op == nullptr || !op->row->window) return nullptr;
  const Window& w = *op->row->window;
  return w.border == Window::Border::Cropped ? nullptr : &w;
}

// Begins then ends, of the three ways to write it: one number, one for each axis, or all.
Ints full_padding(const Ints& padding, size_t dims) {
  if (padding.size() == 2 * dims) return padding;
  Ints out;
  for (size_t i = 0; i < 2 * dims; ++i) {
    out.push_back(padding.size() == 1 ? padding[0] : padding[i % dims]);
  }
  return out;
}

bool is_own_border(const Expr& value, bool least) {
  auto* c = as<ConstantNode>(value);
  if (c == nullptr || c->data.num_elements() != 1) return false;
  if (!least) return c->data.get_as_double(0) == 0;
  DType dtype = c->data.dtype();
  if (dtype.is_floating()) return c->data.get_as_double(0) == -HUGE_VAL;
  return c->data.get_as_int(0) ==
         (dtype.is_int() ? std::numeric_limits<int64_t>::min() >> (64 - dtype.bits) : 0);
}

// The widths of a pad along the spatial axes of a layout, begins then ends; nullopt when it cuts,
// or pads another axis.
std::optional<Ints> spatial_widths(const CallNode& pad, const Layout& layout) {
  AttrValue attr = attr_value(pad.attrs, "pad_width");
  auto* widths = attr.get_if<ValueList>();
  if (widths == nullptr || static_cast<int64_t>(widths->size()) != layout.rank()) {
    return std::nullopt;
  }
  Ints begins, ends;
  for (size_t axis = 0; axis < widths->size(); ++axis) {
    auto* pair = (*widths)[axis].get_if<ValueList>();
    if (pair == nullptr || pair->size() != 2) return std::nullopt;
    auto *begin = (*pair)[0].get_if<int64_t>(), *end = (*pair)[1].get_if<int64_t>();
    if (begin == nullptr || end == nullptr || *begin < 0 || *end < 0) return std::nullopt;
    char name = layout.axes()[axis].name;
    if (std::string_view("DHW").find(name) == std::string_view::npos) {
      if (*begin != 0 || *end != 0) return std::nullopt;
    }
  }
  // Windows take the spatial axes in this order, whatever the layout's is.
  for (char name : std::string_view("DHW")) {
    int64_t axis = layout.index_of(name);
    if (axis < 0) continue;
    const ValueList& pair = *(*widths)[static_cast<size_t>(axis)].get_if<ValueList>();
    begins.push_back(*pair[0].get_if<int64_t>());
    ends.push_back(*pair[1].get_if<int64_t>());
  }
  begins.insert(begins.end(), ends.begin(), ends.end());
  return begins;
}

// The call without the pad before it, or null.
Expr without_pad(const CallNode& c) {
  const Window* windows = windows_of(c);
  if (windows == nullptr || !is_call_to(c.args[0], "nn.pad")) return nullptr;
  auto& pad = *as<CallNode>(c.args[0]);
  auto widths = spatial_widths(pad, Layout::of(text_attr(c, windows->layout)));
  if (!widths || text_attr(pad, "pad_mode") != "constant" ||
      !is_own_border(pad.args[1], windows->border == Window::Border::Least)) {
    return nullptr;
  }
  size_t dims = widths->size() / 2;
  Ints padding = full_padding(*ints_attr(c, "padding"), dims);
  const bool average = windows->border == Window::Border::Counted;
  bool has_own = std::any_of(padding.begin(), padding.end(), [](int64_t w) { return w != 0; });
  if (average && has_own && !bool_attr(c, "count_include_pad")) {
    return nullptr;
  }
  for (size_t i = 0; i < padding.size(); ++i) padding[i] += (*widths)[i];
  if (windows->pools()) {
    Ints size = *ints_attr(c, "pool_size"), dilation = *ints_attr(c, "dilation");
    for (size_t i = 0; i < padding.size(); ++i) {
      if (padding[i] > (size[i % dims] - 1) * dilation[i % dims]) return nullptr;
    }
  }
  std::vector<std::pair<std::string, AttrValue>> changes{{"padding", to_value(padding)}};
  if (average) changes.emplace_back("count_include_pad", AttrValue(true));
  std::vector<Expr> args = c.args;
  args[0] = pad.args[0];
  Expr folded = with_attrs(c, std::move(args), std::move(changes));
  return structural_equal(folded->type, c.type) ? folded : nullptr;
}

Module run_fold_explicit_padding(const Module& mod, PassContext&) {
  return map_functions(
      mod, [](const GlobalVar&, const Function& f) { return rewrite_calls(f, without_pad); });
}

}  // namespace

const Pass kFoldExplicitPadding{"FoldExplicitPadding",
                                0,
                                Form::any,
                                Form::any,
                                "Moves a pad into the convolution or pool that reads it.",
                                run_fold_explicit_padding};

}  // namespace relay
