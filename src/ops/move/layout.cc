// Changes of layout.
#include "ir/layout.h"

#include <algorithm>
#include <cctype>

#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ops/batching.h"
#include "ops/gradient.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

struct LayoutTransformAttrs : AttrsOf<LayoutTransformAttrs> {
  std::string src_layout, dst_layout;
  static AttrsList describe() {
    return {"relay.attrs.LayoutTransformAttrs",
            {attribute("src_layout", &Self::src_layout, "Layout of the input."),
             attribute("dst_layout", &Self::dst_layout, "Layout of the result.")}};
  }
};

Type layout_transform_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  auto& a = ctx.attrs<LayoutTransformAttrs>();
  auto src = Layout::parse(a.src_layout), dst = Layout::parse(a.dst_layout);
  if (!require(ctx, src && dst, codes::op_bad_attribute, "a layout cannot be read",
               "such as NCHW or OHWI32o", a.src_layout + " and " + a.dst_layout))
    return nullptr;
  std::string p = src->primal_axes(), q = dst->primal_axes();
  std::sort(p.begin(), p.end());
  std::sort(q.begin(), q.end());
  if (!require(ctx, p == q, codes::op_bad_attribute, "the layouts have different axes",
               a.src_layout, a.dst_layout) ||
      !require(ctx, x->rank() == src->rank(), codes::type_rank,
               "the data does not have the layout's dimensions", a.src_layout,
               shape_text(x->shape)))
    return nullptr;
  return tensor_type(dst->convert_shape(x->shape, *src), x->dtype);
}

TirTensor layout_transform_compute(const ComputeContext& ctx) {
  auto& a = ctx.attrs<LayoutTransformAttrs>();
  Layout src = Layout::of(a.src_layout), dst = Layout::of(a.dst_layout);
  TirTensor x = ctx.inputs[0];
  return tir::compute("T_layout_trans", ctx.outputs[0].shape, [&](const Indices& i) {
    PrimExpr inside = boolean(true);
    Indices at;
    auto primal = [&](char axis) {
      PrimExpr v = i[static_cast<size_t>(dst.index_of(axis))];
      int64_t block = dst.block_of(axis);
      if (block > 1)
        v = v * block + i[static_cast<size_t>(dst.index_of(static_cast<char>(std::tolower(axis))))];
      return v;
    };
    for (const Layout::Axis& s : src.axes()) {
      char axis = static_cast<char>(std::toupper(s.name));
      int64_t block = src.block_of(axis);
      PrimExpr v = primal(axis);
      if (s.block > 0)
        v = floor_mod(v, index(s.block));
      else if (block > 1)
        v = floor_div(v, index(block));
      at.push_back(v);
      // Only a result padded beyond the input reads outside.
      if (s.block == 0 && dst.block_of(axis) > 1) {
        PrimExpr size = x->shape()[at.size() - 1] * block;
        auto n = as_int(size);
        if (!n || *n % dst.block_of(axis) != 0)
          inside = logical_and(inside, lt(primal(axis), size));
      }
    }
    return as_int(inside) == 1 ? x(at) : select(inside, x(at), imm(x->dtype, 0));
  });
}

// Back into the first layout; padding is dropped.
Adjoints layout_transform_gradient(const GradientContext& ctx) {
  auto& a = ctx.attrs<LayoutTransformAttrs>();
  if (std::ranges::any_of(type_of(ctx.arg(0)).shape, is_any))
    no_gradient(ctx, "only the data tells a size");
  Expr back = apply("layout_transform", {ctx.adjoint()},
                    {{"src_layout", a.dst_layout}, {"dst_layout", a.src_layout}});
  const std::vector<Dim>& shape = type_of(ctx.arg(0)).shape;
  for (size_t d = 0; d < shape.size(); ++d)
    back = slice_axis(back, static_cast<int64_t>(d), dim(0), shape[d]);
  return {back};
}

// ---- Batching

// Lanes are more rows where both layouts begin with these.
Expr batch_layout_transform(const BatchingContext& ctx) {
  auto& a = ctx.attrs<LayoutTransformAttrs>();
  bool rows = a.src_layout.starts_with('N') && a.dst_layout.starts_with('N') &&
              a.src_layout.rfind('n') == std::string::npos &&
              a.dst_layout.rfind('n') == std::string::npos;
  return rows ? batch_rows_of_first(ctx) : nullptr;
}

// Blocks are padded with zeros.
bool moves_only(const CallNode& c) {
  auto has_blocks = [&](const char* name) {
    Layout l = Layout::of(text_attr(c, name));
    return l.primal_axes().size() != static_cast<size_t>(l.rank());
  };
  return !has_blocks("src_layout") && !has_blocks("dst_layout");
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Layout>() {
  static const OpInfo rows[] = {
      {
          .name = "layout_transform",
          .doc = "The same tensor in another layout; blocks that a size does not fill are padded "
                 "with zeros.",
          .args = {{"data", "The input, in src_layout."}},
          .attrs = &LayoutTransformAttrs::static_info(),
          .support_level = 5,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .relation = layout_transform_relation,
          .compute = compute_rule(layout_transform_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = layout_transform_gradient,
          .batching = batch_layout_transform,
          .moves = ElementMoves{.when = moves_only},
          .examples = {{{"Tensor[(1, 3, 4, 5), float32]"},
                        "src_layout=\"NCHW\", dst_layout=\"NHWC\""},
                       {{"Tensor[(5, 3, 2, 2), float32]"},
                        "src_layout=\"OIHW\", dst_layout=\"OHWI4o\""}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
