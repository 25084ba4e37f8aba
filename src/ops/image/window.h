// Windows over spatial axes: what convolutions and pools share.
#pragma once

#include "ir/layout.h"
#include "ops/common.h"

namespace relay::ops {

// Padding in full form: begins then ends. The lists accept one number, one for each axis, or all.
std::optional<Ints> full_padding(const Ints& padding, size_t dims);

// Checks that a list has `dims` entries of at least `least`.
bool check_list(RelationContext& ctx, const Ints& list, size_t dims, int64_t least,
                const char* name);

// Letters of the spatial axes: "W", "HW" or "DHW".
inline std::string_view spatial_axes(size_t dims) {
  return dims == 1 ? "W" : dims == 2 ? "HW" : "DHW";
}

// The row of an operator that slides a window; `layout` is the attribute that names the layout of its data.
inline OpInfo with_window(OpInfo row, size_t dims, const char* layout, Window::Border border) {
  row.window = Window{std::string(spatial_axes(dims)), layout, border};
  return row;
}

// The size along one axis of a sliding window's result; fails in `ctx` when the window is larger
// than the padded input (with `ceil_mode`: by a stride or more, so that there is no window at all).
std::optional<Dim> window_size(RelationContext& ctx, const Dim& in, const Dim& kernel,
                               int64_t stride, int64_t dilation, int64_t pad_begin, int64_t pad_end,
                               bool ceil_mode);

// The layout's axis position, for compute rules.
inline size_t axis_of(const Layout& layout, char name) {
  return static_cast<size_t>(layout.index_of(name));
}

}  // namespace relay::ops
