// Resizing images.
#include <algorithm>
#include <cctype>
#include "ir/layout.h"

#include "ops/attrs.h"
#include "ops/common.h"
#include "ops/families.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

std::optional<Layout> image_layout(const std::string& text) {
  auto l = Layout::parse(text);
  if (!l || l->rank() != 4) return std::nullopt;
  std::string p = l->primal_axes();
  std::sort(p.begin(), p.end());
  return p == "CHNW" ? l : std::nullopt;
}

// Where an output position lies in the input, in float32.
PrimExpr source_position(const PrimExpr& i, const PrimExpr& in, const PrimExpr& out,
                         const std::string& mode) {
  DType f = DType::Float(32);
  PrimExpr x = tir::cast(f, i);
  double size = static_cast<double>(*as_int(in)), target = static_cast<double>(*as_int(out));
  double scale = size / target;
  if (mode == "align_corners") return x * imm_float(f, target > 1 ? (size - 1) / (target - 1) : 0);
  if (mode == "asymmetric") return x * imm_float(f, scale);
  if (mode == "pytorch_half_pixel" && target <= 1) return imm_float(f, 0);
  return (x + imm_float(f, 0.5)) * imm_float(f, scale) - imm_float(f, 0.5);
}

PrimExpr nearest(const PrimExpr& p, const std::string& rounding) {
  DType f = p->dtype;
  auto call = [&](const char* name, const PrimExpr& v) { return tir::call(name, f, {v}); };
  // A little is added against positions that rounding has put just below a border.
  PrimExpr r = rounding == "floor"                ? call("floor", p + imm_float(f, 1e-5))
               : rounding == "ceil"               ? call("ceil", p - imm_float(f, 1e-5))
               : rounding == "round_prefer_floor" ? call("ceil", p - imm_float(f, 0.50001))
               : rounding == "round"              ? call("round", p)
                                                  : call("floor", p + imm_float(f, 0.5));
  return tir::cast(kIndex, r);
}

}  // namespace

void add_resize(OpRegistry& registry) {
  OpInfo op;
  op.name = "image.resize2d";
  op.doc = "An image at another size, by nearest neighbour or linear interpolation.";
  op.args = {{"data", "The image, in `layout`."}};
  op.attrs = &Resize2DAttrs::static_info();
  op.fusion = FusionClass::Injective;
  op.support_level = 5;
  op.relation = [](RelationContext& ctx) -> Type {
    const TensorTypeNode* x = ctx.tensor(0);
    if (x == nullptr) return nullptr;
    auto& a = ctx.attrs<Resize2DAttrs>();
    auto l = image_layout(a.layout);
    auto known = [](const std::string& v, std::initializer_list<const char*> list) {
      return std::find(list.begin(), list.end(), v) != list.end();
    };
    if (!require(ctx, l && x->rank() == 4, codes::op_bad_attribute, "layout is not supported",
                 "NCHW or NHWC", a.layout) ||
        !require(ctx, a.size.size() == 2 && a.size[0] >= 1 && a.size[1] >= 1,
                 codes::op_bad_attribute, "size must be a height and a width") ||
        !require(ctx, known(a.method, {"nearest_neighbor", "linear"}), codes::op_bad_attribute,
                 "method is not supported", "nearest_neighbor or linear", a.method) ||
        !require(ctx,
                 known(a.coordinate_transformation_mode,
                       {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"}),
                 codes::op_bad_attribute, "coordinate_transformation_mode is not supported",
                 "half_pixel, align_corners, asymmetric or pytorch_half_pixel",
                 a.coordinate_transformation_mode) ||
        !require(ctx,
                 known(a.rounding_method,
                       {"", "round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil"}),
                 codes::op_bad_attribute, "rounding_method is not supported",
                 "round, floor, ceil, round_prefer_floor or round_prefer_ceil", a.rounding_method))
      return nullptr;
    std::vector<Dim> shape = x->shape;
    for (size_t k = 0; k < 2; ++k) {
      size_t axis = static_cast<size_t>(l->index_of(k == 0 ? 'H' : 'W'));
      if (!require(ctx, as_const(shape[axis]).value_or(0) >= 1, codes::type_shape,
                   "height and width must be known and not zero", "constants",
                   shape_text(x->shape)))
        return nullptr;
      shape[axis] = dim(a.size[k]);
    }
    return tensor_type(std::move(shape), is_set(a.out_dtype) ? a.out_dtype : x->dtype);
  };
  op.examples = {{{"Tensor[(1, 2, 4, 5), float32]"}, "size=[8, 7], method=\"linear\""},
                 {{"Tensor[(1, 2, 4, 5), float32]"},
                  "size=[8, 10], method=\"nearest_neighbor\", "
                  "coordinate_transformation_mode=\"asymmetric\", rounding_method=\"floor\""}};
  op.layout = [](const CallNode& call, std::span<const Layout> offered,
                 const Layout&) -> std::optional<LayoutDecision> {
    auto& a = static_cast<const Resize2DAttrs&>(*call.attrs.get());
    Layout now = Layout::of(a.layout);
    Layout want = !offered.empty() && offered[0].defined() ? offered[0] : now;
    if (!image_layout(want.to_string())) return std::nullopt;
    LayoutDecision out;
    out.inputs = out.outputs = {want};
    Node* copy = a.info().clone(a);
    NodeRef owner(copy);
    static_cast<Resize2DAttrs*>(copy)->layout = want.to_string();
    out.attrs = Attrs::unchecked(owner);
    return out;
  };
  op.compute = compute_rule([](const ComputeContext& ctx) {
    auto& a = ctx.attrs<Resize2DAttrs>();
    Layout l = Layout::of(a.layout);
    TirTensor x = ctx.inputs[0];
    size_t axes[2] = {static_cast<size_t>(l.index_of('H')), static_cast<size_t>(l.index_of('W'))};
    DType out = ctx.outputs[0].dtype, f = DType::Float(32);
    return tir::compute("T_resize", ctx.outputs[0].shape, [&](const Indices& i) {
      auto clamp = [&](const PrimExpr& p, size_t axis) {
        return min(max(p, index(0)), x->shape()[axis] - 1);
      };
      PrimExpr p[2];
      for (size_t k = 0; k < 2; ++k)
        p[k] = source_position(i[axes[k]], x->shape()[axes[k]], ctx.outputs[0].shape[axes[k]],
                               a.coordinate_transformation_mode);
      auto read = [&](const PrimExpr& y, const PrimExpr& z) {
        Indices at = i;
        at[axes[0]] = clamp(y, axes[0]);
        at[axes[1]] = clamp(z, axes[1]);
        return x(at);
      };
      if (a.method == "nearest_neighbor")
        return tir::cast(out,
                         read(nearest(p[0], a.rounding_method), nearest(p[1], a.rounding_method)));
      PrimExpr low[2], part[2];
      for (size_t k = 0; k < 2; ++k) {
        PrimExpr floor = tir::call("floor", f, {p[k]});
        low[k] = tir::cast(kIndex, floor);
        part[k] = p[k] - floor;
      }
      auto blend = [&](const PrimExpr& u, const PrimExpr& v, const PrimExpr& t) {
        return u + (v - u) * t;
      };
      auto value = [&](int64_t dy, int64_t dx) {
        return tir::cast(f, read(low[0] + dy, low[1] + dx));
      };
      PrimExpr top = blend(value(0, 0), value(0, 1), part[1]),
               bottom = blend(value(1, 0), value(1, 1), part[1]);
      return tir::cast(out, blend(top, bottom, part[0]));
    });
  });
  registry.add(op);
}

}  // namespace relay::ops
