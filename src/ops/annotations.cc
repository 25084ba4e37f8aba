// Operators that say something about a value to the compiler and give it as it is.
#include <algorithm>

#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ir/devices.h"
#include "ir/external.h"
#include "ops/batching.h"
#include "ops/common.h"
#include "ops/gradient.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

TirTensor same(const ComputeContext& ctx) {
  const TirTensor& x = ctx.inputs[0];
  return tir::compute("T_same", x->shape(), [&](const Indices& i) { return x(i); });
}

Type both_alike(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *like = ctx.tensor(1);
  if (x == nullptr || like == nullptr) return nullptr;
  const bool alike = x->dtype == like->dtype && x->shape.size() == like->shape.size() &&
                     std::ranges::equal(x->shape, like->shape, [](const Dim& a, const Dim& b) {
                       return is_any(a) || is_any(b) || dim_equal(a, b);
                     });
  if (!require(ctx, alike, codes::type_shape, "the arguments have different types",
               to_string(Type(x)), to_string(Type(like))))
    return nullptr;
  return Type(x);
}

// Whether an attribute names a device; else the relation fails.
bool require_device(RelationContext& ctx, const char* attribute, const std::string& text) {
  if (runtime::Device::parse(text)) return true;
  ctx.fail(codes::op_bad_attribute,
           std::string("there is no device '") + text + "' (" + attribute + ")",
           "a device, with a number or without: " + runtime::Device::names(), text,
           std::string(attribute) + "=\"cpu\", or \"cuda:1\"");
  return false;
}

Type device_copy_relation(RelationContext& ctx) {
  const auto& attrs = ctx.attrs<DeviceCopyAttrs>();
  const std::string& from = attrs.src_virtual_device;
  if (!from.empty() && !require_device(ctx, "src_virtual_device", from)) return nullptr;
  if (!require_device(ctx, "dst_virtual_device", attrs.dst_virtual_device)) return nullptr;
  return identity(ctx);
}

Type on_device_relation(RelationContext& ctx) {
  if (!require_device(ctx, "virtual_device", ctx.attrs<OnDeviceAttrs>().virtual_device))
    return nullptr;
  return identity(ctx);
}

Adjoints passed_on(const GradientContext& ctx) { return {ctx.adjoint()}; }

OpInfo annotation_row(const char* name, const char* doc, FusionClass fusion) {
  return {
      .name = name,
      .doc = doc,
      .args = {{"data", "The values."}},
      .support_level = 10,
      .fusion = fusion,
      .effect = Effect::Pure,
      .reshape_only = true,
      .takes_narrow = true,
      .relation = identity,
      .compute = compute_rule(same),
      .layout = follow_layout,
      .memory = Absent::OnePiece,
      .precision = Precision::Follow,
      .cost = Absent::NoArithmetic,
      .gradient = passed_on,
      .batching = batch_as_it_is,
      .examples = {{{"Tensor[(2, 3), float32]"}, ""}},
      .expected = Absent::ByNumPy,
  };
}

// The adjoint of the copy comes from where the copy is.
Adjoints copied_back(const GradientContext& ctx) {
  const auto& attrs = ctx.attrs<DeviceCopyAttrs>();
  if (attrs.src_virtual_device.empty()) return {ctx.adjoint()};
  return {device_copy(ctx.adjoint(), known_device(attrs.dst_virtual_device),
                      known_device(attrs.src_virtual_device))};
}

OpInfo device_row(const char* name, const char* doc, const NodeInfo* attrs, TypeRelation relation,
                  GradientRule gradient, const char* example) {
  OpInfo row = annotation_row(name, doc, FusionClass::Opaque);
  row.attrs = attrs;
  row.reshape_only = false;
  row.relation = std::move(relation);
  row.gradient = std::move(gradient);
  row.examples = {{{"Tensor[(2, 3), float32]"}, example}};
  return row;
}

Type compiler_relation(RelationContext& ctx) {
  if (!require(ctx, !ctx.attrs<CompilerAttrs>().compiler.empty(), codes::op_bad_attribute,
               "the external code generator has no name", "a name, such as \"dnnl\"", "\"\""))
    return nullptr;
  return identity(ctx);
}

// The border of what an external code generator takes. A region that was not made a function is Relay's.
OpInfo compiler_row(const char* name, const char* doc) {
  OpInfo row = annotation_row(name, doc, FusionClass::ElemWise);
  row.attrs = &CompilerAttrs::static_info();
  row.relation = compiler_relation;
  row.examples = {{{"Tensor[(2, 3), float32]"}, "compiler=\"default\""}};
  return row;
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Annotations>() {
  static const OpInfo rows[] = {
      annotation_row("annotation.stop_fusion",
                     "The same values, in memory: no kernel reaches from before to behind it.",
                     FusionClass::Opaque),
      annotation_row(
          "annotation.checkpoint",
          "The same values. A gradient in reverse mode does not keep what they are computed "
          "from, and computes them again from the names in the expression.",
          FusionClass::ElemWise),
      compiler_row(kCompilerBegin,
                   "The same values, an input of a region that the external code generator "
                   "`compiler` takes."),
      compiler_row(kCompilerEnd,
                   "The same values, a result of a region that the external code generator "
                   "`compiler` takes."),
      device_row(kDeviceCopy, "The same values in the memory of a device: dst_virtual_device.",
                 &DeviceCopyAttrs::static_info(), device_copy_relation, copied_back,
                 "dst_virtual_device=\"cpu\""),
      device_row(kOnDevice,
                 "The same values. What the argument is computed by runs on the device; the pass "
                 "PlanDevices makes copies where values are used elsewhere.",
                 &OnDeviceAttrs::static_info(), on_device_relation, passed_on,
                 "virtual_device=\"cpu\""),
      {
          .name = "annotation.derivative_of",
          .doc =
              "The values of the first argument with the derivative of the second: where both are "
              "the same, in ways of which only one has a derivative everywhere.",
          .args = {{"data", "The values."}, {"like", "What is differentiated."}},
          .support_level = 10,
          .fusion = FusionClass::ElemWise,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = both_alike,
          .compute = compute_rule(same),
          .layout = follow_layout,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = [](const GradientContext& ctx) -> Adjoints {
            return {nullptr, ctx.adjoint()};
          },
          .batching = batch_as_it_is,
          .examples = {{{"Tensor[(2, 3), float32]", "Tensor[(2, 3), float32]"}, ""}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
