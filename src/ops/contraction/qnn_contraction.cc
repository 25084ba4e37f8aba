// Sums of products of the quantised dialect, exact in 32-bit integers:
//
//   sum of (x - zx)(w - zw) = sum of xw - zx * sum of w - zw * sum of x + n * zx * zw
//
// The product itself stays one of bytes, which machines have instructions for; the sum over a
// constant weight is a constant. What the result stands for has the scale x_scale * w_scale.
#include <algorithm>

#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ir/layout.h"
#include "ops/common.h"
#include "ops/contraction/qnn.h"
#include "ops/expressions.h"
#include "ops/image/window.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using relay::Type;

// The places of the arguments, which all operators of this file share.
struct Place {
  enum : size_t { kData, kWeight, kDataZero, kWeightZero, kDataScale, kWeightScale };
};

// The attributes for the operator that is summed with: int32 is said where nothing is.
Attrs integer_attrs(const OpInfo& row, const Attrs& attrs, const Span& span,
                    std::vector<std::pair<std::string, AttrValue>> more = {}) {
  std::vector<std::pair<std::string, AttrValue>> values = attr_values(attrs);
  std::erase_if(values, [](auto& v) { return v.first == "out_dtype"; });
  values.emplace_back("out_dtype", std::string("int32"));
  for (auto& [name, value] : more) {
    std::erase_if(values, [&](auto& v) { return v.first == name; });
    values.emplace_back(name, std::move(value));
  }
  return make_attrs(*row.attrs, values, row.name, span);
}

// The type of the sum by the relation of `op`; the weight's scales are along `axis` of it.
Type sum_type(RelationContext& ctx, const char* op, Attrs attrs, int64_t weight_axis) {
  const TensorTypeNode *x = ctx.tensor(Place::kData), *w = ctx.tensor(Place::kWeight);
  if (x == nullptr) return nullptr;
  for (const TensorTypeNode* t : {x, w}) {
    if (t != nullptr &&
        !require(ctx, t->dtype.is_integer() && t->dtype.bits == 8, codes::type_dtype,
                 "the quantised dtype is not supported", "int8 or uint8", t->dtype.to_string()))
      return nullptr;
  }
  DType out = attr_as<DType>(ctx.attrs_ref(), "out_dtype");
  if (!require(ctx, !is_set(out) || out == kInt, codes::op_bad_attribute,
               "out_dtype is not supported", "int32", is_set(out) ? out.to_string() : ""))
    return nullptr;
  Type result =
      ctx.by_relation(*operator_row(op), {Place::kData, Place::kWeight}, std::move(attrs));
  if (!result || w == nullptr || ctx.failure()) return nullptr;
  if (!check_quantization(ctx, Place::kDataScale, Place::kDataZero, {}, -1) ||
      !check_quantization(ctx, Place::kWeightScale, Place::kWeightZero, w->shape, weight_axis))
    return nullptr;
  return result;
}

// The operands of a sum of products of bytes. A weight of uint8 around 128 is one of int8 around 0.
struct ProductOperands {
  Expr x, w, zx, zw;

  explicit ProductOperands(const CallNode& c)
      : x(c.args[Place::kData]),
        w(c.args[Place::kWeight]),
        zx(number(c.args[Place::kDataZero])),
        zw(c.args[Place::kWeightZero]) {
    check_constants(c, c.args[Place::kDataScale], zx, type_of(x).dtype);
    check_constants(c, c.args[Place::kWeightScale], zw, type_of(w).dtype);
    shift();
  }
  ProductOperands(Expr x, Expr w, const Expr& zx, Expr zw)
      : x(std::move(x)), w(std::move(w)), zx(number(zx)), zw(std::move(zw)) {
    shift();
  }

 private:
  void shift() {
    if (type_of(w).dtype != DType::UInt(8) || !all_are(zw, 128)) return;
    w = cast_to(cast_to(w, kInt) - scalar(128, zw), DType::Int(8));
    zw = scalar(0, zw);
  }
  static Expr number(const Expr& e) { return rank_of(e) == 0 ? e : reshape_to(e, {}); }
  static bool all_are(const Expr& e, double value) {
    auto* c = as<ConstantNode>(e);
    if (c == nullptr) return false;
    for (int64_t i = 0; i < c->data.num_elements(); ++i) {
      if (c->data.get_as_double(i) != value) return false;
    }
    return true;
  }
};

// ---- Convolutions

Type conv2d_relation(RelationContext& ctx) {
  const OpInfo& row = *operator_row("nn.conv2d");
  auto kernel = Layout::parse(attr_as<std::string>(ctx.attrs_ref(), "kernel_layout"));
  return sum_type(ctx, "nn.conv2d", integer_attrs(row, ctx.attrs_ref(), {}),
                  kernel ? kernel->index_of('O') : 0);
}

Type conv2d_transpose_relation(RelationContext& ctx) {
  const OpInfo& row = *operator_row("nn.conv2d_transpose");
  auto kernel = Layout::parse(attr_as<std::string>(ctx.attrs_ref(), "kernel_layout"));
  return sum_type(ctx, "nn.conv2d_transpose", integer_attrs(row, ctx.attrs_ref(), {}),
                  kernel ? kernel->index_of('O') : 0);
}

// The data with its zero point around it, which stands for the zeros of the border. Padding is before each axis, then after.
Expr bordered(const Expr& x, const Expr& zero, const Layout& layout, const Ints& pad) {
  if (std::ranges::all_of(pad, [](int64_t p) { return p == 0; })) return x;
  const size_t dims = pad.size() / 2;
  ValueList widths(static_cast<size_t>(layout.rank()), to_value(Ints{0, 0}));
  for (size_t d = 0; d < dims; ++d) {
    widths[static_cast<size_t>(layout.index_of(spatial_axes(dims)[d]))] =
        to_value(Ints{pad[d], pad[dims + d]});
  }
  return apply("nn.pad", {x, cast_to(zero, type_of(x).dtype)},
               {{"pad_width", AttrValue(std::move(widths))}});
}

// A convolution, or a transposed one.
Expr convolution(const OpInfo& row, const Attrs& attrs, const Span& span,
                 const ProductOperands& o) {
  const Layout data = Layout::of(attr_as<std::string>(attrs, "data_layout")),
               kernel = Layout::of(attr_as<std::string>(attrs, "kernel_layout"));
  const size_t dims = data.primal_axes().size() - 2;
  const bool transposed = row.attrs->find("output_padding") != nullptr,
             blocked = data.rank() != static_cast<int64_t>(dims) + 2 ||
                       kernel.rank() != static_cast<int64_t>(dims) + 2;
  auto sum = [&](const Expr& x, const Expr& w,
                 std::vector<std::pair<std::string, AttrValue>> changes) {
    return call(row.name, {x, w}, integer_attrs(row, attrs, span, std::move(changes)), span);
  };
  if (is_zero(o.zw) && is_zero(o.zx)) return sum(o.x, o.w, {});
  auto shape = static_shape(o.x);
  // What a zero point adds to a transposed convolution differs from place to place: it is known before a run, or not worth a
  // product of its own.
  const bool known = !transposed || (isa<ConstantNode>(o.w) && shape);
  if (!is_zero(o.zw) || blocked || !known) {
    return sum(centred(o.x, o.zx, -1), centred(o.w, o.zw, kernel.index_of('O')), {});
  }
  if (transposed) {
    Ints one = *shape;
    one[static_cast<size_t>(data.index_of('N'))] = 1;
    Tensor ones = Tensor::empty(type_of(o.x).dtype, one);
    for (int64_t i = 0; i < ones.num_elements(); ++i) ones.set_from_int(i, 1);
    return sum(o.x, o.w, {}) - sum(constant(ones, span), o.w, {}) * o.zx;
  }
  Expr x = bordered(o.x, o.zx, data, *full_padding(attr_as<Ints>(attrs, "padding"), dims));
  Expr weights = sum_over_all_but(cast_to(o.w, kInt), kernel.index_of('O'));
  std::string out = attr_as<std::string>(attrs, "out_layout");
  const Layout result = out.empty() ? data : Layout::of(out);
  return sum(x, o.w, {{"padding", to_value(Ints(dims, 0))}}) -
         along(weights * o.zx, result.index_of('C'), result.rank());
}

Expr conv2d(const CallNode& c) {
  return convolution(*operator_row("nn.conv2d"), c.attrs, c.span, ProductOperands(c));
}

Expr conv2d_transpose(const CallNode& c) {
  return convolution(*operator_row("nn.conv2d_transpose"), c.attrs, c.span, ProductOperands(c));
}

// ---- Matrix products

// The products of bytes, and what the zero points take from them. `x` and `w` are reduced along their
// last axes; the result has the rows of x, then those of w.
Expr product(const ProductOperands& o, Expr sum) {
  auto rows = [](const Expr& e) {
    return apply("sum", {cast_to(e, kInt)}, {{"axis", to_value(Ints{-1})}, {"keepdims", false}});
  };
  int64_t rank = rank_of(sum);
  Expr zw =
      rank_of(o.zw) == 1 && as_const(type_of(o.zw).shape[0]) == 1 ? reshape_to(o.zw, {}) : o.zw;
  if (!is_zero(o.zx)) {
    Expr of_w = rows(o.w);
    if (!is_zero(zw)) {
      const Dim& depth = type_of(o.w).shape.back();
      of_w = of_w - zw * (is_any(depth) ? rows(ones_like(o.w)) : size_as(depth, zw));
    }
    // (n,), or (batch, n) beside (batch, m, n).
    if (rank_of(of_w) == 2)
      of_w = apply("expand_dims", {of_w}, {{"axis", int64_t{1}}, {"num_newaxis", int64_t{1}}});
    sum = sum - of_w * o.zx;
  }
  if (!is_zero(zw)) {
    Expr of_x =
        apply("expand_dims", {rows(o.x)}, {{"axis", rank - 1}, {"num_newaxis", int64_t{1}}});
    sum = sum - of_x * zw;
  }
  return sum;
}

Type dense_relation(RelationContext& ctx) {
  const OpInfo& row = *operator_row("nn.dense");
  return sum_type(ctx, "nn.dense", integer_attrs(row, ctx.attrs_ref(), {}), 0);
}

Expr dense(const CallNode& c) {
  const OpInfo& row = *operator_row("nn.dense");
  ProductOperands o(c);
  return product(o, call(row.name, {o.x, o.w}, integer_attrs(row, c.attrs, c.span), c.span));
}

Type dense_pack_relation(RelationContext& ctx) {
  const OpInfo& row = *operator_row("nn.contrib_dense_pack");
  Type out = sum_type(ctx, "nn.contrib_dense_pack", integer_attrs(row, ctx.attrs_ref(), {}), 0);
  if (!out) return nullptr;
  // Scales along a packed axis have no place in it.
  return check_quantization(ctx, Place::kWeightScale, Place::kWeightZero, {}, -1) ? out : nullptr;
}

Expr dense_pack(const CallNode& c) {
  const OpInfo& row = *operator_row("nn.contrib_dense_pack");
  ProductOperands o(c);
  return call(row.name, {centred(o.x, o.zx, -1), centred(o.w, o.zw, -1)},
              integer_attrs(row, c.attrs, c.span), c.span);
}

struct QnnBatchMatmulAttrs : AttrsOf<QnnBatchMatmulAttrs> {
  DType out_dtype = kInt;
  static AttrsList describe() {
    return {"relay.attrs.qnn.BatchMatmulAttrs",
            {attribute("out_dtype", &Self::out_dtype, "int32.")}};
  }
};

Attrs batch_attrs(const Span& span) {
  const OpInfo& row = *operator_row("nn.batch_matmul");
  return make_attrs(*row.attrs,
                    {{"out_dtype", std::string("int32")}, {"transpose_b", AttrValue(true)}},
                    row.name, span);
}

Type batch_matmul_relation(RelationContext& ctx) {
  return sum_type(ctx, "nn.batch_matmul", batch_attrs({}), 1);
}

Expr batch_matmul(const CallNode& c) {
  ProductOperands o(c);
  return product(o, call("nn.batch_matmul", {o.x, o.w}, batch_attrs(c.span), c.span));
}

// ---- Rows

OpInfo row(const char* name, const char* doc, const char* of, AttrsInfo attrs,
           TypeRelation relation, DefinitionRule definition, std::vector<OpExample> examples) {
  const OpInfo& plain = *operator_row(of);
  OpInfo out =
      quantized_row(name, doc,
                    {{"data", "int8 or uint8."},
                     {"weight", "int8 or uint8, laid out as for " + std::string(of) + "."},
                     {"input_zero_point", "int32, a number."},
                     {"kernel_zero_point", "int32, a number or one for each output channel."},
                     {"input_scale", "float32, a number."},
                     {"kernel_scale", "float32, a number or one for each output channel."}},
                    std::move(attrs), std::move(relation), std::move(definition), plain.cost.get(),
                    std::move(examples));
  if (plain.layout != nullptr) out.layout = layout_rule_of(plain);
  return out;
}

// Arguments of a sum; scales and zero points are drawn, like the data, from `low` to `high`.
OpExample example(const char* data, const char* weight, const char* zeros, const char* scales,
                  const char* attrs) {
  OpExample out{{data, weight, "Tensor[(), int32]", zeros, "Tensor[(), float32]", scales}, attrs};
  out.low = 1;
  out.high = 120;
  return out;
}

}  // namespace

Expr integer_convolution(const OpInfo& row, const Attrs& attrs, const Span& span, const Expr& x,
                         const Expr& w, const Expr& x_zero, const Expr& w_zero) {
  return convolution(row, attrs, span, ProductOperands(x, w, x_zero, w_zero));
}

template <>
std::span<const OpInfo> rows_of<Family::QnnContraction>() {
  const char *zero = "Tensor[(), int32]", *scale = "Tensor[(), float32]";
  static const OpInfo rows[] = {
      row("qnn.conv2d", "nn.conv2d of what the integers are without their zero points.",
          "nn.conv2d", operator_row("nn.conv2d")->attrs, conv2d_relation, conv2d,
          {example("Tensor[(1, 4, 6, 5), uint8]", "Tensor[(3, 4, 3, 3), int8]", zero, scale,
                   "padding=[1, 0, 2, 1]"),
           example("Tensor[(1, 6, 5, 4), int8]", "Tensor[(3, 3, 2, 4), int8]",
                   "Tensor[(4,), int32]", "Tensor[(4,), float32]",
                   "strides=[2, 1], groups=2, data_layout=\"NHWC\", kernel_layout=\"HWIO\", "
                   "out_dtype=\"int32\"")}),
      row("qnn.conv2d_transpose",
          "nn.conv2d_transpose of what the integers are without their zero points.",
          "nn.conv2d_transpose", operator_row("nn.conv2d_transpose")->attrs,
          conv2d_transpose_relation, conv2d_transpose,
          {example("Tensor[(1, 2, 4, 4), uint8]", "Tensor[(2, 3, 3, 3), int8]", zero, scale,
                   "strides=[2, 2], padding=[1, 1]")}),
      row("qnn.dense", "nn.dense of what the integers are without their zero points.", "nn.dense",
          operator_row("nn.dense")->attrs, dense_relation, dense,
          {example("Tensor[(3, 5), uint8]", "Tensor[(4, 5), int8]", zero, scale, ""),
           example("Tensor[(2, 3, 5), uint8]", "Tensor[(4, 5), uint8]", "Tensor[(4,), int32]",
                   "Tensor[(4,), float32]", "units=4, out_dtype=\"int32\"")}),
      row("qnn.contrib_dense_pack",
          "nn.contrib_dense_pack of what the integers are without their zero points.",
          "nn.contrib_dense_pack", operator_row("nn.contrib_dense_pack")->attrs,
          dense_pack_relation, dense_pack,
          {example("Tensor[(3, 5), uint8]", "Tensor[(2, 5, 8), int8]", zero, scale,
                   "units=13, weight_layout=\"NC8n\"")}),
      row("qnn.batch_matmul",
          "Products of the matrices (m, k) and transposed (n, k) of a batch, of what the integers "
          "are "
          "without their zero points.",
          "nn.batch_matmul", &QnnBatchMatmulAttrs::static_info(), batch_matmul_relation,
          batch_matmul,
          {example("Tensor[(2, 3, 5), uint8]", "Tensor[(2, 4, 5), int8]", zero, scale, ""),
           example("Tensor[(2, 3, 5), int8]", "Tensor[(1, 4, 5), int8]", zero, scale, "")}),
  };
  return rows;
}

}  // namespace relay::ops
