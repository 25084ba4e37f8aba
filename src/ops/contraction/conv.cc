// Convolutions and transposed convolutions in one to three dimensions, any layout.
#include "ops/contraction/conv.h"
#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ops/image/window.h"
#include "ops/quantized_forms.h"
#include "ops/rows.h"

#include <algorithm>
#include <cctype>
#include <map>

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

struct Conv1DAttrs : AttrsOf<Conv1DAttrs, ConvAttrs> {
  Conv1DAttrs() : AttrsOf(1, "NCW", "OIW") {}
  static AttrsList describe() { return {"relay.attrs.Conv1DAttrs", conv_fields<Self>()}; }
};
struct Conv2DAttrs : AttrsOf<Conv2DAttrs, ConvAttrs> {
  Conv2DAttrs() : AttrsOf(2, "NCHW", "OIHW") {}
  static AttrsList describe() { return {"relay.attrs.Conv2DAttrs", conv_fields<Self>()}; }
};
struct Conv3DAttrs : AttrsOf<Conv3DAttrs, ConvAttrs> {
  Conv3DAttrs() : AttrsOf(3, "NCDHW", "OIDHW") {}
  static AttrsList describe() { return {"relay.attrs.Conv3DAttrs", conv_fields<Self>()}; }
};

struct ConvTransposeAttrs : ConvAttrs {
  Ints output_padding;

 protected:
  ConvTransposeAttrs(const NodeInfo& info, size_t dims, const char* data, const char* kernel)
      : ConvAttrs(info, dims, data, kernel), output_padding(dims, 0) {}
};
template <class T>
std::vector<Field> conv_transpose_fields() {
  std::vector<Field> fields = conv_fields<T>();
  fields.push_back(attribute("output_padding", &T::output_padding,
                             "Extra size at the end of each spatial axis."));
  return fields;
}
struct Conv1DTransposeAttrs : AttrsOf<Conv1DTransposeAttrs, ConvTransposeAttrs> {
  Conv1DTransposeAttrs() : AttrsOf(1, "NCW", "IOW") {}
  static AttrsList describe() {
    return {"relay.attrs.Conv1DTransposeAttrs", conv_transpose_fields<Self>()};
  }
};
struct Conv2DTransposeAttrs : AttrsOf<Conv2DTransposeAttrs, ConvTransposeAttrs> {
  Conv2DTransposeAttrs() : AttrsOf(2, "NCHW", "IOHW") {}
  static AttrsList describe() {
    return {"relay.attrs.Conv2DTransposeAttrs", conv_transpose_fields<Self>()};
  }
};
struct Conv3DTransposeAttrs : AttrsOf<Conv3DTransposeAttrs, ConvTransposeAttrs> {
  Conv3DTransposeAttrs() : AttrsOf(3, "NCDHW", "IODHW") {}
  static AttrsList describe() {
    return {"relay.attrs.Conv3DTransposeAttrs", conv_transpose_fields<Self>()};
  }
};

// The layouts of a call, checked; fails in `ctx`.
struct Layouts {
  Layout data, kernel, out;
};

std::optional<Layouts> layouts_of(RelationContext& ctx, const ConvAttrs& a, size_t dims) {
  auto data = Layout::parse(a.data_layout), kernel = Layout::parse(a.kernel_layout),
       out = Layout::parse(a.out_layout.empty() ? a.data_layout : a.out_layout);
  auto has = [&](const std::optional<Layout>& l, std::string names) {
    if (!l) return false;
    std::string primal = l->primal_axes();
    std::sort(primal.begin(), primal.end());
    std::sort(names.begin(), names.end());
    return primal == names;
  };
  std::string spatial(spatial_axes(dims));
  if (!require(ctx,
               has(data, "NC" + spatial) && has(out, "NC" + spatial) && has(kernel, "OI" + spatial),
               codes::op_bad_attribute, "a layout is not supported",
               "data NC" + spatial + " and kernel OI" + spatial + " in any order",
               a.data_layout + ", " + a.kernel_layout))
    return std::nullopt;
  bool blocked = data->rank() != static_cast<int64_t>(dims) + 2 || out->rank() != data->rank();
  if (!require(ctx, !blocked, codes::op_bad_attribute, "blocked data layouts are not supported",
               "NC" + spatial + " in any order", a.data_layout + ", " + a.out_layout))
    return std::nullopt;
  for (char axis : spatial_axes(dims)) {
    if (!require(ctx, kernel->block_of(axis) == 1, codes::op_bad_attribute,
                 "blocks of a kernel's spatial axes are not supported", "blocks of O and I",
                 a.kernel_layout))
      return std::nullopt;
  }
  return Layouts{*data, *kernel, *out};
}

// Whether `axis` of a weight holds `size` entries; with blocks the last one may be part full.
bool holds(RelationContext& ctx, const TensorTypeNode& w, const Layout& l, char axis,
           const Dim& size) {
  return ctx.equal(w.shape[axis_of(l, axis)], ceil_div(size, dim(l.block_of(axis))));
}

// The attributes that repeat what the weight's shape says must agree with it. `may_be_open`: sizes may be known to a run only,
// where the outputs, which lanes run over, are neighbours.
bool check_kernel(RelationContext& ctx, const ConvAttrs& a, const TensorTypeNode& w,
                  const Layout& kernel, size_t dims, const Dim& out_channels, bool may_be_open) {
  const bool open = may_be_open && kernel.index_of('O') + 1 == kernel.rank();
  if (a.channels && !require(ctx, *a.channels >= 0 && ctx.equal(dim(*a.channels), out_channels),
                             codes::op_bad_attribute, "channels contradicts the weight",
                             "channels=" + to_string(out_channels) + " for weight " +
                                 shape_text(w.shape) + " in " + kernel.to_string(),
                             "channels=" + std::to_string(*a.channels)))
    return false;
  if (a.kernel_size && !check_list(ctx, *a.kernel_size, dims, 1, "kernel_size")) return false;
  for (size_t i = 0; i < dims; ++i) {
    const Dim& size = w.shape[axis_of(kernel, spatial_axes(dims)[i])];
    if (a.kernel_size &&
        !require(ctx, ctx.equal(dim((*a.kernel_size)[i]), size), codes::op_bad_attribute,
                 "kernel_size contradicts the weight",
                 std::to_string((*a.kernel_size)[i]) + " along " + spatial_axes(dims)[i],
                 to_string(size) + " in weight " + shape_text(w.shape) + ", " + kernel.to_string()))
      return false;
    auto known = as_const(size);
    const bool usable = known ? *known >= 1 && *known <= int64_t{1} << 31 : open && !is_any(size);
    if (!require(ctx, usable, codes::type_shape, "the kernel's size must be known and not zero",
                 open          ? "a constant from 1, or a size with a name"
                 : may_be_open ? "a constant from 1; other sizes in a kernel_layout that ends in O"
                               : "a constant from 1",
                 shape_text(w.shape) + ", " + kernel.to_string()))
      return false;
  }
  return true;
}

// The type of a weight without annotation, from the attributes.
void solve_weight(RelationContext& ctx, const ConvAttrs& a, const Layout& kernel, size_t dims,
                  std::optional<int64_t> out, const Dim& in, DType dtype) {
  if (!out || !a.kernel_size || kernel.rank() != static_cast<int64_t>(dims) + 2 ||
      !check_list(ctx, *a.kernel_size, dims, 1, "kernel_size") ||
      !require(ctx, *out >= 1, codes::op_bad_attribute, "channels must be at least 1", "1 or more",
               std::to_string(*out)))
    return;
  std::vector<Dim> shape(dims + 2);
  shape[axis_of(kernel, 'O')] = dim(*out);
  shape[axis_of(kernel, 'I')] = in;
  for (size_t i = 0; i < dims; ++i)
    shape[axis_of(kernel, spatial_axes(dims)[i])] = dim((*a.kernel_size)[i]);
  ctx.solve(1, tensor_type(std::move(shape), dtype));
}

template <size_t kDims>
Type conv_relation(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *w = ctx.tensor(1);
  if (x == nullptr) return nullptr;
  auto& a = ctx.attrs<ConvAttrs>();
  auto l = layouts_of(ctx, a, kDims);
  if (!l || !check_list(ctx, a.strides, kDims, 1, "strides") ||
      !check_list(ctx, a.dilation, kDims, 1, "dilation"))
    return nullptr;
  auto pad = full_padding(a.padding, kDims);
  if (!require(
          ctx, pad.has_value(), codes::op_bad_attribute, "padding is out of range",
          "1, " + std::to_string(kDims) + " or " + std::to_string(2 * kDims) + " numbers from 0") ||
      !require(ctx, a.groups >= 1, codes::op_bad_attribute, "groups must be at least 1",
               "1 or more", std::to_string(a.groups)) ||
      !require(ctx, x->rank() == l->data.rank(), codes::type_rank,
               "the data does not have the layout's dimensions", a.data_layout,
               shape_text(x->shape)))
    return nullptr;
  Dim in_channels = x->shape[axis_of(l->data, 'C')];
  Dim per_group = floor_div(in_channels, dim(a.groups));
  if (w == nullptr) {
    std::optional<int64_t> channels = a.channels;
    const TensorTypeNode* y = ctx.wanted_result();
    if (!channels && y != nullptr && y->rank() == l->data.rank()) {
      channels = as_const(y->shape[axis_of(l->data, 'C')]);
    }
    if (!ctx.failure()) solve_weight(ctx, a, l->kernel, kDims, channels, per_group, x->dtype);
    return nullptr;
  }
  if (!require(ctx, w->rank() == l->kernel.rank(), codes::type_rank,
               "the weight does not have the layout's dimensions", a.kernel_layout,
               shape_text(w->shape)) ||
      !one_dtype_or_bytes(ctx, *x, *w, "data and weight have different dtypes"))
    return nullptr;
  if (!require(ctx,
               ctx.equal(per_group * dim(a.groups), in_channels) &&
                   holds(ctx, *w, l->kernel, 'I', per_group),
               codes::type_shape, "the data's channels do not fit the weight's",
               to_string(w->shape[axis_of(l->kernel, 'I')] * dim(l->kernel.block_of('I'))) +
                   " for each of " + std::to_string(a.groups) + " groups",
               to_string(in_channels) + " in data " + shape_text(x->shape) + ", weight " +
                   shape_text(w->shape)))
    return nullptr;
  // A block of O may be part full; `channels` then says how far.
  Dim out_channels = w->shape[axis_of(l->kernel, 'O')] * dim(l->kernel.block_of('O'));
  if (l->kernel.block_of('O') > 1 && a.channels && *a.channels >= 1 &&
      holds(ctx, *w, l->kernel, 'O', dim(*a.channels)))
    out_channels = dim(*a.channels);
  if (!check_kernel(ctx, a, *w, l->kernel, kDims, out_channels, true) ||
      !require(ctx, ctx.equal(floor_div(out_channels, dim(a.groups)) * dim(a.groups), out_channels),
               codes::op_bad_attribute, "groups does not divide the output channels",
               "a divisor of " + to_string(out_channels), std::to_string(a.groups)))
    return nullptr;
  std::vector<Dim> shape(kDims + 2);
  shape[axis_of(l->out, 'N')] = x->shape[axis_of(l->data, 'N')];
  shape[axis_of(l->out, 'C')] = out_channels;
  for (size_t i = 0; i < kDims; ++i) {
    char axis = spatial_axes(kDims)[i];
    auto size =
        window_size(ctx, x->shape[axis_of(l->data, axis)], w->shape[axis_of(l->kernel, axis)],
                    a.strides[i], a.dilation[i], (*pad)[i], (*pad)[kDims + i], false);
    if (!size) return nullptr;
    shape[axis_of(l->out, axis)] = *size;
  }
  return tensor_type(std::move(shape), is_set(a.out_dtype) ? a.out_dtype : x->dtype);
}

// The input with zeros around its spatial axes (`lead`, `trail`), `gap` zeros between elements.
TirTensor pad_spatial(const TirTensor& x, const Layout& l, size_t dims, const Ints& lead,
                      const Ints& trail, const Ints& gap) {
  bool plain = true;
  for (size_t i = 0; i < dims; ++i) plain = plain && lead[i] == 0 && trail[i] == 0 && gap[i] == 1;
  if (plain) return x;
  std::vector<PrimExpr> shape = x->shape();
  for (size_t i = 0; i < dims; ++i) {
    PrimExpr& s = shape[axis_of(l, spatial_axes(dims)[i])];
    s = (s - 1) * gap[i] + 1 + lead[i] + trail[i];
  }
  return tir::compute("pad", shape, [&](const Indices& i) {
    Indices at = i;
    PrimExpr inside = boolean(true);
    for (size_t d = 0; d < dims; ++d) {
      size_t axis = axis_of(l, spatial_axes(dims)[d]);
      PrimExpr p = i[axis] - lead[d];
      PrimExpr size = (x->shape()[axis] - 1) * gap[d] + 1;
      if (lead[d] != 0) inside = logical_and(inside, ge(p, index(0)));
      if (trail[d] != 0 || lead[d] != 0) inside = logical_and(inside, lt(p, size));
      if (gap[d] != 1) inside = logical_and(inside, eq(floor_mod(p, index(gap[d])), index(0)));
      at[axis] = gap[d] == 1 ? p : floor_div(p, index(gap[d]));
    }
    return select(inside, x(at), imm(x->dtype, 0));
  });
}

// out[n, oc, s...] = sum over k..., ic of padded[n, group*I + ic, s*stride + k*dilation] *
// weight(oc, ic, k).
// The innermost loops are those over the kernel's places (`by_place`) or over ic.
TirTensor convolve(const std::string& name, const ComputeContext& ctx, const TirTensor& x,
                   const Layout& data, const Layout& out, size_t dims, const Ints& strides,
                   const Ints& dilation, int64_t groups, const std::vector<PrimExpr>& kernel_sizes,
                   const PrimExpr& in_per_group, bool by_place,
                   const std::function<PrimExpr(const PrimExpr& oc, const PrimExpr& ic,
                                                const Indices& k)>& weight) {
  const std::vector<PrimExpr>& out_shape = ctx.outputs[0].shape;
  std::vector<PrimExpr> extents = kernel_sizes;
  extents.insert(by_place ? extents.begin() : extents.end(), in_per_group);
  return sum_of_products(name, ctx, extents, [&](const Indices& i, const Indices& k) {
    const size_t first_place = by_place ? 1 : 0;
    PrimExpr oc = i[axis_of(out, 'C')], ic = k[by_place ? 0 : dims], channel = ic;
    Indices at(static_cast<size_t>(data.rank()));
    at[axis_of(data, 'N')] = i[axis_of(out, 'N')];
    if (groups > 1) {
      PrimExpr per_group = floor_div(out_shape[axis_of(out, 'C')], index(groups));
      PrimExpr group = is_one(per_group) ? oc : floor_div(oc, per_group);
      channel = group * in_per_group + ic;
    }
    at[axis_of(data, 'C')] = channel;
    Indices offsets;
    for (size_t d = 0; d < dims; ++d) {
      char axis = spatial_axes(dims)[d];
      at[axis_of(data, axis)] =
          i[axis_of(out, axis)] * strides[d] + k[first_place + d] * dilation[d];
      offsets.push_back(k[first_place + d]);
    }
    return std::vector<PrimExpr>{x(at), weight(oc, ic, offsets)};
  });
}

// The weight's element; blocks of O and I are found by division.
PrimExpr kernel_element(const TirTensor& w, const Layout& l, size_t dims, const PrimExpr& o,
                        const PrimExpr& i, const Indices& k) {
  Indices at;
  for (const Layout::Axis& a : l.axes()) {
    char primal = static_cast<char>(std::toupper(a.name));
    PrimExpr v = primal == 'O' ? o : primal == 'I' ? i : PrimExpr();
    for (size_t d = 0; d < dims; ++d) {
      if (spatial_axes(dims)[d] == primal) v = k[d];
    }
    int64_t block = l.block_of(primal);
    if (a.block > 0)
      v = floor_mod(v, index(a.block));
    else if (block > 1)
      v = floor_div(v, index(block));
    at.push_back(v);
  }
  return w(at);
}

template <size_t kDims>
std::shared_ptr<const ComputeRule> conv_rule() {
  return compute_rule([](const ComputeContext& ctx) {
    auto& a = ctx.attrs<ConvAttrs>();
    Layout data = Layout::of(a.data_layout), kernel = Layout::of(a.kernel_layout),
           out = Layout::of(a.out_layout.empty() ? a.data_layout : a.out_layout);
    Ints pad = *full_padding(a.padding, kDims);
    TirTensor x = pad_spatial(ctx.inputs[0], data, kDims, Ints(pad.begin(), pad.begin() + kDims),
                              Ints(pad.begin() + kDims, pad.end()), Ints(kDims, 1));
    TirTensor w = ctx.inputs[1];
    std::vector<PrimExpr> sizes;
    for (char axis : spatial_axes(kDims)) sizes.push_back(w->shape()[axis_of(kernel, axis)]);
    PrimExpr in_per_group = floor_div(x->shape()[axis_of(data, 'C')], index(a.groups));
    return convolve("conv" + std::to_string(kDims) + "d", ctx, x, data, out, kDims, a.strides,
                    a.dilation, a.groups, sizes, in_per_group, kernel.index_of('I') == 0,
                    [&](const PrimExpr& oc, const PrimExpr& ic, const Indices& k) {
                      return kernel_element(w, kernel, kDims, oc, ic, k);
                    });
  });
}

template <size_t kDims>
Type conv_transpose_relation(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *w = ctx.tensor(1);
  if (x == nullptr) return nullptr;
  auto& a = ctx.attrs<ConvTransposeAttrs>();
  auto l = layouts_of(ctx, a, kDims);
  if (!l || !check_list(ctx, a.strides, kDims, 1, "strides") ||
      !check_list(ctx, a.dilation, kDims, 1, "dilation") ||
      !check_list(ctx, a.output_padding, kDims, 0, "output_padding"))
    return nullptr;
  for (size_t i = 0; i < kDims; ++i) {
    if (!require(ctx, a.output_padding[i] < std::max(a.strides[i], a.dilation[i]),
                 codes::op_bad_attribute, "output_padding is too large",
                 "less than strides or dilation, " +
                     std::to_string(std::max(a.strides[i], a.dilation[i])) + " along " +
                     spatial_axes(kDims)[i],
                 std::to_string(a.output_padding[i])))
      return nullptr;
  }
  auto pad = full_padding(a.padding, kDims);
  if (!require(
          ctx, pad.has_value(), codes::op_bad_attribute, "padding is out of range",
          "1, " + std::to_string(kDims) + " or " + std::to_string(2 * kDims) + " numbers from 0") ||
      !require(ctx, a.groups >= 1, codes::op_bad_attribute, "groups must be at least 1",
               "1 or more", std::to_string(a.groups)) ||
      !require(ctx, x->rank() == l->data.rank() && l->kernel.rank() == l->data.rank(),
               codes::type_rank, "the data does not have the layout's dimensions", a.data_layout,
               shape_text(x->shape)))
    return nullptr;
  const Dim& in_channels = x->shape[axis_of(l->data, 'C')];
  if (w == nullptr) {
    std::optional<int64_t> per_group;
    if (a.channels && *a.channels % a.groups == 0) per_group = *a.channels / a.groups;
    if (!ctx.failure()) solve_weight(ctx, a, l->kernel, kDims, per_group, in_channels, x->dtype);
    return nullptr;
  }
  if (!require(ctx, w->rank() == l->kernel.rank(), codes::type_rank,
               "the weight does not have the layout's dimensions", a.kernel_layout,
               shape_text(w->shape)) ||
      !one_dtype_or_bytes(ctx, *x, *w, "data and weight have different dtypes") ||
      !require(ctx, ctx.equal(in_channels, w->shape[axis_of(l->kernel, 'I')]), codes::type_shape,
               "the data's channels do not fit the weight's",
               to_string(w->shape[axis_of(l->kernel, 'I')]), to_string(in_channels)) ||
      !require(ctx, ctx.equal(floor_div(in_channels, dim(a.groups)) * dim(a.groups), in_channels),
               codes::op_bad_attribute, "groups does not divide the data's channels",
               "a divisor of " + to_string(in_channels), std::to_string(a.groups)))
    return nullptr;
  Dim out_channels = w->shape[axis_of(l->kernel, 'O')] * dim(a.groups);
  if (!check_kernel(ctx, a, *w, l->kernel, kDims, out_channels, false)) return nullptr;
  std::vector<Dim> shape(kDims + 2);
  shape[axis_of(l->out, 'N')] = x->shape[axis_of(l->data, 'N')];
  shape[axis_of(l->out, 'C')] = out_channels;
  for (size_t i = 0; i < kDims; ++i) {
    char axis = spatial_axes(kDims)[i];
    const Dim& in = x->shape[axis_of(l->data, axis)];
    Dim reach = (w->shape[axis_of(l->kernel, axis)] - dim(1)) * dim(a.dilation[i]) + dim(1);
    Dim whole = (in - dim(1)) * dim(a.strides[i]) + reach + dim(a.output_padding[i]);
    Dim cut = dim((*pad)[i] + (*pad)[kDims + i]);
    if (!require(ctx, ctx.at_least(in, dim(1)), codes::type_shape,
                 "the data is empty along " + std::string(1, axis), "1 or more",
                 shape_text(x->shape)) ||
        !require(ctx, ctx.at_least(whole, cut), codes::type_shape,
                 "padding cuts off more than the result has",
                 "at most " + to_string(whole) + " along " + std::string(1, axis), to_string(cut)))
      return nullptr;
    shape[axis_of(l->out, axis)] = whole - cut;
  }
  return tensor_type(std::move(shape), is_set(a.out_dtype) ? a.out_dtype : x->dtype);
}

// A convolution with the flipped kernel over the input with gaps between its elements.
template <size_t kDims>
std::shared_ptr<const ComputeRule> conv_transpose_rule() {
  return compute_rule([](const ComputeContext& ctx) {
    auto& a = ctx.attrs<ConvTransposeAttrs>();
    Layout data = Layout::of(a.data_layout), kernel = Layout::of(a.kernel_layout),
           out = Layout::of(a.out_layout.empty() ? a.data_layout : a.out_layout);
    TirTensor w = ctx.inputs[1];
    Ints pad = *full_padding(a.padding, kDims), lead, trail;
    std::vector<PrimExpr> sizes;
    for (size_t i = 0; i < kDims; ++i) {
      sizes.push_back(w->shape()[axis_of(kernel, spatial_axes(kDims)[i])]);
      int64_t reach = (*as_int(sizes.back()) - 1) * a.dilation[i];
      lead.push_back(reach - pad[i]);
      trail.push_back(reach - pad[kDims + i] + a.output_padding[i]);
    }
    TirTensor x = pad_spatial(ctx.inputs[0], data, kDims, lead, trail, a.strides);
    PrimExpr in_per_group = floor_div(x->shape()[axis_of(data, 'C')], index(a.groups));
    PrimExpr out_per_group = w->shape()[axis_of(kernel, 'O')];
    return convolve("conv" + std::to_string(kDims) + "d_transpose", ctx, x, data, out, kDims,
                    Ints(kDims, 1), a.dilation, a.groups, sizes, in_per_group, false,
                    [&](const PrimExpr& oc, const PrimExpr& ic, const Indices& k) {
                      Indices flipped;
                      for (size_t d = 0; d < kDims; ++d) flipped.push_back(sizes[d] - 1 - k[d]);
                      PrimExpr o = a.groups == 1 ? oc : floor_mod(oc, out_per_group);
                      PrimExpr i =
                          a.groups == 1 ? ic : floor_div(oc, out_per_group) * in_per_group + ic;
                      return kernel_element(w, kernel, kDims, o, i, flipped);
                    });
  });
}

// Data in the desired layout (or as offered), and the weight in the layout in which it is offered.
template <class A>
std::optional<LayoutDecision> conv_layout(const CallNode& call, std::span<const Layout> offered,
                                          const Layout& desired) {
  auto& a = static_cast<const A&>(*call.attrs.get());
  LayoutDecision out;
  Layout data = Layout::of(a.data_layout);
  Layout want = desired.defined()                          ? desired
                : !offered.empty() && offered[0].defined() ? offered[0]
                                                           : data;
  std::string x = want.primal_axes(), y = data.primal_axes();
  std::sort(x.begin(), x.end());
  std::sort(y.begin(), y.end());
  if (x != y || !a.out_layout.empty()) return std::nullopt;
  // A kernel of symbolic sizes has the layout that lets it be read as it lies.
  const Layout now = Layout::of(a.kernel_layout);
  for (char place : want.primal_axes()) {
    if (place == 'N' || place == 'C') continue;
    if (!as_const(as<TensorTypeNode>(call.args[1]->type)->shape[axis_of(now, place)]))
      return std::nullopt;
  }
  const Layout kernel =
      offered.size() > 1 && offered[1].defined() ? offered[1] : Layout::of(a.kernel_layout);
  out.inputs = {want, kernel};
  out.outputs = {want};
  out.attrs = make<A>([&](A& n) {
    n.strides = a.strides;
    n.padding = a.padding;
    n.dilation = a.dilation;
    n.groups = a.groups;
    n.channels = a.channels;
    n.kernel_size = a.kernel_size;
    n.kernel_layout = kernel.to_string();
    n.out_dtype = a.out_dtype;
    n.data_layout = want.to_string();
    if constexpr (requires { n.output_padding; }) n.output_padding = a.output_padding;
  });
  return out;
}

// The axes of a layout: `dims` has the dimensions that run along each of its letters.
Contraction::Tensor axes_in(const Layout& layout, const std::map<char, std::vector<size_t>>& dims) {
  Contraction::Tensor out;
  for (const Layout::Axis& axis : layout.axes()) {
    char primal = static_cast<char>(std::toupper(axis.name));
    Contraction::Axis a{dims.at(primal)};
    int64_t block = layout.block_of(primal);
    if (axis.block > 0) {
      a.modulo = block;
    } else {
      a.divide = block;
    }
    out.push_back(std::move(a));
  }
  return out;
}

// A convolution, or a transposed one, whose windows are on the result.
template <size_t kDims, bool kTransposed>
std::optional<Contraction> conv_contraction(const CallNode& c) {
  using Role = ContractionRole;
  auto& a = static_cast<const ConvAttrs&>(*c.attrs.get());
  Layout data = Layout::of(a.data_layout), kernel = Layout::of(a.kernel_layout),
         out = Layout::of(a.out_layout.empty() ? a.data_layout : a.out_layout);
  auto *x = as<TensorTypeNode>(c.args[0]->type), *w = as<TensorTypeNode>(c.args[1]->type),
       *y = as<TensorTypeNode>(c.type);
  // Positions are those of the tensor without windows.
  const TensorTypeNode& plain = kTransposed ? *x : *y;
  const Layout& plain_layout = kTransposed ? data : out;
  Ints pad = *full_padding(a.padding, kDims);
  Contraction p;
  auto add = [&](Role role, const Dim& extent) {
    p.dims.push_back({role, extent});
    return p.dims.size() - 1;
  };
  const Dim groups = dim(a.groups);
  size_t n = add(Role::Row, x->shape[axis_of(data, 'N')]);
  std::vector<size_t> channels, inputs, weight_in, weight_out;
  if (a.groups != 1) channels = {add(Role::Group, groups)};
  inputs = channels;
  (kTransposed ? weight_in : weight_out) = channels;
  channels.push_back(add(Role::Column, floor_div(y->shape[axis_of(out, 'C')], groups)));
  weight_out.push_back(channels.back());
  std::map<char, std::vector<size_t>> at_data, at_kernel, at_out;
  std::map<char, Contraction::Window> windows;
  std::vector<size_t> positions;
  for (char axis : spatial_axes(kDims))
    positions.push_back(add(Role::Row, plain.shape[axis_of(plain_layout, axis)]));
  for (size_t d = 0; d < kDims; ++d) {
    char axis = spatial_axes(kDims)[d];
    size_t tap = add(Role::Window, w->shape[axis_of(kernel, axis)]);
    at_kernel[axis] = {tap};
    (kTransposed ? at_data : at_out)[axis] = {positions[d]};
    (kTransposed ? at_out : at_data)[axis] = {positions[d], tap};
    windows[axis] = {a.strides[d], a.dilation[d], pad[d]};
  }
  size_t ic = add(Role::Reduced, floor_div(x->shape[axis_of(data, 'C')], groups));
  inputs.push_back(ic);
  weight_in.push_back(ic);
  at_data['N'] = at_out['N'] = {n};
  at_data['C'] = inputs;
  at_out['C'] = channels;
  at_kernel['O'] = weight_out;
  at_kernel['I'] = weight_in;
  p.operands = {axes_in(data, at_data), axes_in(kernel, at_kernel)};
  p.result = axes_in(out, at_out);
  Contraction::Tensor& windowed = kTransposed ? p.result : p.operands[0];
  const Layout& layout = kTransposed ? out : data;
  for (const auto& [axis, window] : windows) windowed[axis_of(layout, axis)].window = window;
  return p;
}

// What all convolutions say alike.
OpInfo conv_row(const char* name, const char* doc, const NodeInfo& attrs, TypeRelation relation,
                std::shared_ptr<const ComputeRule> compute, ContractionRule contraction,
                LayoutRule layout, GradientRule gradient, std::vector<OpExample> examples) {
  return {
      .name = name,
      .doc = doc,
      .args = {{"data", "The input, in data_layout."}, {"weight", "The kernel, in kernel_layout."}},
      .attrs = &attrs,
      .support_level = 2,
      .fusion = FusionClass::OutEWiseFusable,
      .effect = Effect::Pure,
      .relation = std::move(relation),
      .compute = std::move(compute),
      .contraction = std::move(contraction),
      .layout = std::move(layout),
      .memory = Absent::OnePiece,
      .precision = Precision::Always,
      .cost = contraction_cost,
      .gradient = std::move(gradient),
      .quantized = quantized_convolution,
      .examples = std::move(examples),
      .expected = Absent::ByNumPy,
  };
}

template <size_t kDims>
OpInfo windowed(OpInfo row, Window::Border border) {
  return with_window(std::move(row), kDims, "data_layout", border);
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Conv>() {
  static const OpInfo rows[] = {
      windowed<1>(
          conv_row(
              "nn.conv1d", "Convolution over one spatial axis.", Conv1DAttrs::static_info(),
              conv_relation<1>, conv_rule<1>(), conv_contraction<1, false>,
              conv_layout<Conv1DAttrs>, conv_gradient(1, false),
              {{{"Tensor[(1, 2, 7), float32]", "Tensor[(3, 2, 3), float32]"}, "padding=[1, 1]"}}),
          Window::Border::Zeros),
      with_quantized_form(
          windowed<2>(
              conv_row("nn.conv2d", "Convolution over two spatial axes.",
                       Conv2DAttrs::static_info(), conv_relation<2>, conv_rule<2>(),
                       conv_contraction<2, false>, conv_layout<Conv2DAttrs>,
                       conv_gradient(2, false),
                       {{{"Tensor[(1, 4, 7, 6), float32]", "Tensor[(6, 4, 3, 3), float32]"},
                         "padding=[1, 1]"},
                        {{"Tensor[(1, 4, 7, 6), float32]", "Tensor[(8, 1, 3, 3), float32]"},
                         "groups=4, strides=[2, 2], dilation=[2, 1], padding=[2, 1, 0, 1]"}}),
              Window::Border::Zeros),
          quantized_conv2d),
      windowed<3>(
          conv_row("nn.conv3d", "Convolution over three spatial axes.", Conv3DAttrs::static_info(),
                   conv_relation<3>, conv_rule<3>(), conv_contraction<3, false>,
                   conv_layout<Conv3DAttrs>, conv_gradient(3, false),
                   {{{"Tensor[(1, 2, 4, 5, 5), float32]", "Tensor[(3, 2, 2, 3, 3), float32]"},
                     "padding=[0, 1, 1]"}}),
          Window::Border::Zeros),
      windowed<1>(
          conv_row("nn.conv1d_transpose",
                   "The gradient of a convolution over one axis, as an operator; the zeros that it "
                   "puts between and around elements take part in the sums.",
                   Conv1DTransposeAttrs::static_info(), conv_transpose_relation<1>,
                   conv_transpose_rule<1>(), conv_contraction<1, true>,
                   conv_layout<Conv1DTransposeAttrs>, conv_gradient(1, true),
                   {{{"Tensor[(1, 2, 5), float32]", "Tensor[(2, 3, 3), float32]"},
                     "strides=[2], padding=[1, 1]"}}),
          Window::Border::Cropped),
      windowed<2>(
          conv_row("nn.conv2d_transpose",
                   "The gradient of a convolution over two axes, as an operator; the zeros that it "
                   "puts between and around elements take part in the sums.",
                   Conv2DTransposeAttrs::static_info(), conv_transpose_relation<2>,
                   conv_transpose_rule<2>(), conv_contraction<2, true>,
                   conv_layout<Conv2DTransposeAttrs>, conv_gradient(2, true),
                   {{{"Tensor[(1, 4, 4, 5), float32]", "Tensor[(4, 3, 4, 4), float32]"},
                     "strides=[2, 2], padding=[1, 1]"}}),
          Window::Border::Cropped),
      windowed<3>(
          conv_row(
              "nn.conv3d_transpose",
              "The gradient of a convolution over three axes, as an operator; the zeros that it "
              "puts between and around elements take part in the sums.",
              Conv3DTransposeAttrs::static_info(), conv_transpose_relation<3>,
              conv_transpose_rule<3>(), conv_contraction<3, true>,
              conv_layout<Conv3DTransposeAttrs>, conv_gradient(3, true),
              {{{"Tensor[(1, 2, 3, 3, 3), float32]", "Tensor[(2, 2, 2, 2, 2), float32]"},
                "strides=[2, 2, 2]"}}),
          Window::Border::Cropped),
  };
  return rows;
}

}  // namespace relay::ops
