// Functions of one element, casts and copies.
#include <cmath>
#include <limits>
#include <numbers>

#include "frontend/torch/node_context.h"
#include "frontend/torch/special.h"

namespace relay::frontend::torch {
namespace {

Values unary(NodeContext& ctx) {
  return {value_of(ctx.call(ctx.relay_op(), {ctx.tensor("self")}))};
}

// Of integers in the default float type, which the result has.
Expr as_result(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  return Builder::dtype_of(x).is_floating() ? x : ctx.cast(x, DType::Float(32));
}

Values float_unary(NodeContext& ctx) {
  return {value_of(ctx.call(ctx.relay_op(), {as_result(ctx)}))};
}

// Integers are whole already.
Values rounding(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  if (!Builder::dtype_of(x).is_floating()) return {value_of(x)};
  return {value_of(ctx.call(ctx.relay_op(), {x}))};
}

Values round_decimals(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const double scale = std::pow(10.0, std::abs(static_cast<double>(ctx.integer("decimals", 0))));
  if (!Builder::dtype_of(x).is_floating()) return {value_of(x)};
  Expr by = ctx.scalar_like(scale, x);
  if (ctx.integer("decimals", 0) < 0)
    return {value_of(ctx.mul(ctx.call("round", {ctx.div(x, by)}), by))};
  return {value_of(ctx.div(ctx.call("round", {ctx.mul(x, by)}), by))};
}

Values frac(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  return {value_of(ctx.sub(x, ctx.call("trunc", {x})))};
}

Values exp2(NodeContext& ctx) {
  Expr x = as_result(ctx);
  return {value_of(ctx.call("power", {ctx.scalar_like(2, x), x}))};
}

// exp(x) - 1 = tanh(x / 2) * (exp(x) + 1), which is exact near 0; 1 less is nothing where exp(x) is large.
Values expm1(NodeContext& ctx) {
  Expr x = as_result(ctx), e = ctx.call("exp", {x}), one = ctx.scalar_like(1, x);
  Expr half = ctx.call("tanh", {ctx.mul(x, ctx.scalar_like(0.5, x))});
  Expr large = ctx.call("greater", {ctx.call("abs", {x}), one});
  return {value_of(ctx.call("where", {large, ctx.sub(e, one), ctx.mul(half, ctx.add(e, one))}))};
}

Values log1p(NodeContext& ctx) { return {value_of(log_one_plus(ctx, as_result(ctx)))}; }

Values square(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  return {value_of(ctx.mul(x, x))};
}

Values reciprocal(NodeContext& ctx) {
  Expr x = as_result(ctx);
  return {value_of(ctx.div(ctx.scalar_like(1, x), x))};
}

Values erfc(NodeContext& ctx) {
  Expr x = as_result(ctx);
  return {value_of(ctx.sub(ctx.scalar_like(1, x), ctx.call("erf", {x})))};
}

Values logit(NodeContext& ctx) {
  Expr x = as_result(ctx), one = ctx.scalar_like(1, x);
  if (auto eps = ctx.number("eps"))
    x = ctx.call("clip", {x}, {{"a_min", eps->as_double()}, {"a_max", 1 - eps->as_double()}});
  return {value_of(ctx.call("log", {ctx.div(x, ctx.sub(one, x))}))};
}

// The angle of a real number: 0, or pi below 0.
Values angle(NodeContext& ctx) {
  Expr x = as_result(ctx);
  Expr y = ctx.where(ctx.call("less", {x, ctx.scalar_like(0, x)}),
                     ctx.scalar_like(std::numbers::pi, x), ctx.scalar_like(0, x));
  return {value_of(ctx.where(ctx.call("isnan", {x}), x, y))};
}

// sin(pi * x) / (pi * x)
Values sinc(NodeContext& ctx) {
  Expr x = as_result(ctx), scaled = ctx.mul(x, ctx.scalar_like(std::numbers::pi, x));
  Expr none = ctx.call("equal", {x, ctx.scalar_like(0, x)}), one = ctx.scalar_like(1, x);
  Expr by = ctx.where(none, one, scaled);
  return {value_of(ctx.where(none, one, ctx.div(ctx.call("sin", {scaled}), by)))};
}

// Of -0 the reciprocal is below 0.
Values signbit(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const DType dtype = Builder::dtype_of(x);
  if (dtype.is_bool()) return {value_of(ctx.full(0, Builder::shape_of(x), DType::Bool()))};
  Expr zero = ctx.scalar_like(0, x), sign = x;
  if (dtype.is_floating()) {
    sign = ctx.where(ctx.call("equal", {x, zero}), ctx.div(ctx.scalar_like(1, x), x), x);
  }
  return {value_of(ctx.call("less", {sign, zero}))};
}

// Giles' approximation of the inverse error function (GPU Computing Gems 2, chapter 10), and two steps of Newton's method.
Values erfinv(NodeContext& ctx) {
  Expr x = as_result(ctx);
  auto c = [&](double v) { return ctx.scalar_like(v, x); };
  auto polynomial = [&](const Expr& w, std::initializer_list<double> coefficients) {
    Expr y;
    for (double k : coefficients) y = y ? ctx.add(ctx.mul(y, w), c(k)) : c(k);
    return y;
  };
  Expr one = c(1);
  Expr w = ctx.call("negative", {ctx.call("log", {ctx.mul(ctx.sub(one, x), ctx.add(one, x))})});
  Expr middle = polynomial(
      ctx.sub(w, c(2.5)), {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06,
                           0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941});
  Expr tail = polynomial(ctx.sub(ctx.call("sqrt", {ctx.maximum(w, c(5))}), c(3)),
                         {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844,
                          0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682});
  Expr y = ctx.mul(ctx.where(ctx.call("less", {w, c(5)}), middle, tail), x);
  for (int i = 0; i < 2; ++i) {
    Expr slope = ctx.mul(c(2 / std::sqrt(std::numbers::pi)),
                         ctx.call("exp", {ctx.call("negative", {ctx.mul(y, y)})}));
    y = ctx.sub(y, ctx.div(ctx.sub(ctx.call("erf", {y}), x), slope));
  }
  Expr size = ctx.call("abs", {x});
  Expr infinite = ctx.mul(x, c(std::numeric_limits<double>::infinity()));
  return {value_of(ctx.where(ctx.call("equal", {size, one}), infinite, y))};
}

// What only floats can be.
Values float_test(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  if (!Builder::dtype_of(x).is_floating()) {
    const double all = ctx.relay_op() == "isfinite" ? 1 : 0;
    return {value_of(ctx.full(all, Builder::shape_of(x), DType::Bool()))};
  }
  return {value_of(ctx.call(ctx.relay_op(), {x}))};
}

Values is_infinity(NodeContext& ctx, double value) {
  Expr x = ctx.tensor("self");
  if (!Builder::dtype_of(x).is_floating())
    return {value_of(ctx.full(0, Builder::shape_of(x), DType::Bool()))};
  return {value_of(ctx.call("equal", {x, ctx.scalar_like(value, x)}))};
}

Values logical_not(NodeContext& ctx) {
  return {value_of(ctx.call("logical_not", {ctx.cast(ctx.tensor("self"), DType::Bool())}))};
}

Values bitwise_not(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const char* op = Builder::dtype_of(x).is_bool() ? "logical_not" : "bitwise_not";
  return {value_of(ctx.call(op, {x}))};
}

Values scaled(NodeContext& ctx, double factor) {
  Expr x = as_result(ctx);
  return {value_of(ctx.mul(x, ctx.scalar_like(factor, x)))};
}

Values nan_to_num(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const DType dtype = Builder::dtype_of(x);
  if (!dtype.is_floating()) return {value_of(x)};
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double greatest = dtype.is_bfloat16() ? 3.3895313892515355e38
                          : dtype.bits == 16  ? 65504.0
                          : dtype.bits == 32  ? std::numeric_limits<float>::max()
                                              : std::numeric_limits<double>::max();
  auto replace = [&](const Expr& test, double by) {
    x = ctx.call("where", {test, ctx.scalar(by, dtype), x});
  };
  Expr given = x;
  auto is = [&](double v) { return ctx.call("equal", {given, ctx.scalar(v, dtype)}); };
  replace(ctx.call("isnan", {given}), ctx.real("nan", 0));
  replace(is(kInf), ctx.real("posinf", greatest));
  replace(is(-kInf), ctx.real("neginf", -greatest));
  return {value_of(x)};
}

// A number of size 1/2 to 1 and the power of two by which it is multiplied, from the bits of the exponent.
Values frexp(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const DType dtype = Builder::dtype_of(x), i32 = DType::Int(32);
  const DType bits = DType::Int(dtype.bits == 64 ? 64 : 32);
  const int fraction = dtype.bits == 64 ? 52 : 23;
  const double bias = dtype.bits == 64 ? 1022 : 126;
  auto power_of_two = [&](int n) { return ctx.scalar(std::ldexp(1.0, n), bits); };
  Expr size = ctx.call("abs", {x}), zero = ctx.scalar_like(0, x);
  // Numbers without an exponent of their own are scaled first.
  constexpr int kScale = 60;
  Expr tiny =
      ctx.call("less", {size, ctx.scalar_like(std::ldexp(1.0, 2 - static_cast<int>(bias)), x)});
  size = ctx.where(tiny, ctx.mul(size, ctx.scalar_like(std::ldexp(1.0, kScale), x)), size);
  Expr whole = ctx.call("reinterpret", {size}, {{"dtype", to_value(bits)}});
  Expr exponent = ctx.call("floor_divide", {whole, power_of_two(fraction)});
  // The same fraction with the exponent of 1/2.
  Expr rest = ctx.sub(whole, ctx.mul(exponent, power_of_two(fraction)));
  Expr half = ctx.mul(ctx.scalar(bias, bits), power_of_two(fraction));
  Expr mantissa = ctx.call("reinterpret", {ctx.add(rest, half)}, {{"dtype", to_value(dtype)}});
  mantissa = ctx.where(ctx.call("less", {x, zero}), ctx.call("negative", {mantissa}), mantissa);
  Expr power = ctx.sub(ctx.cast(exponent, i32), ctx.scalar(bias, i32));
  power = ctx.where(tiny, ctx.sub(power, ctx.scalar(kScale, i32)), power);
  Expr plain = ctx.call("logical_or", {ctx.call("equal", {x, zero}),
                                       ctx.call("logical_not", {ctx.call("isfinite", {x})})});
  return {value_of(ctx.where(plain, x, mantissa)),
          value_of(ctx.where(plain, ctx.scalar(0, i32), power))};
}

Values copy(NodeContext& ctx) { return {value_of(ctx.tensor("self"))}; }

Values cast_copy(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  return {value_of(ctx.cast(x, ctx.dtype().value_or(Builder::dtype_of(x))))};
}

}  // namespace

template <>
std::span<const Row> rows<Family::Unary>() {
  static constexpr Row kRows[] = {
      {"aten.abs.default", unary, "abs"},
      {"aten.absolute.default", unary, "abs"},
      {"aten.neg.default", unary, "negative"},
      {"aten.negative.default", unary, "negative"},
      {"aten.sign.default", unary, "sign"},
      {"aten.sgn.default", unary, "sign"},
      {"aten.ceil.default", rounding, "ceil"},
      {"aten.floor.default", rounding, "floor"},
      {"aten.round.default", rounding, "round"},
      {"aten.round.decimals", round_decimals, kInFloat32},
      {"aten.trunc.default", rounding, "trunc"},
      {"aten.fix.default", rounding, "trunc"},
      {"aten.frac.default", frac},
      {"aten.exp.default", float_unary, "exp"},
      {"aten.exp2.default", exp2, kInFloat32},
      {"aten.special_exp2.default", exp2, kInFloat32},
      {"aten.expm1.default", expm1, kInFloat32},
      {"aten.special_expm1.default", expm1, kInFloat32},
      {"aten.log.default", float_unary, "log"},
      {"aten.log2.default", float_unary, "log2"},
      {"aten.log10.default", float_unary, "log10"},
      {"aten.log1p.default", log1p, kInFloat32},
      {"aten.special_log1p.default", log1p, kInFloat32},
      {"aten.sqrt.default", float_unary, "sqrt"},
      {"aten.rsqrt.default", float_unary, "rsqrt"},
      {"aten.square.default", square},
      {"aten.reciprocal.default", reciprocal},
      {"aten.sin.default", float_unary, "sin"},
      {"aten.cos.default", float_unary, "cos"},
      {"aten.tan.default", float_unary, "tan"},
      {"aten.asin.default", float_unary, "asin"},
      {"aten.arcsin.default", float_unary, "asin"},
      {"aten.acos.default", float_unary, "acos"},
      {"aten.arccos.default", float_unary, "acos"},
      {"aten.atan.default", float_unary, "atan"},
      {"aten.arctan.default", float_unary, "atan"},
      {"aten.sinh.default", float_unary, "sinh"},
      {"aten.cosh.default", float_unary, "cosh"},
      {"aten.tanh.default", float_unary, "tanh"},
      {"aten.asinh.default", float_unary, "asinh"},
      {"aten.arcsinh.default", float_unary, "asinh"},
      {"aten.acosh.default", float_unary, "acosh"},
      {"aten.arccosh.default", float_unary, "acosh"},
      {"aten.atanh.default", float_unary, "atanh"},
      {"aten.arctanh.default", float_unary, "atanh"},
      {"aten.sigmoid.default", float_unary, "sigmoid"},
      {"aten.special_expit.default", float_unary, "sigmoid"},
      {"aten.erf.default", float_unary, "erf"},
      {"aten.special_erf.default", float_unary, "erf"},
      {"aten.erfc.default", erfc, kInFloat32},
      {"aten.special_erfc.default", erfc, kInFloat32},
      {"aten.logit.default", logit, kInFloat32},
      {"aten.special_logit.default", logit, kInFloat32},
      {"aten.isnan.default", float_test, "isnan"},
      {"aten.isinf.default", float_test, "isinf"},
      {"aten.isfinite.default", float_test, "isfinite"},
      {"aten.isposinf.default",
       [](NodeContext& ctx) { return is_infinity(ctx, std::numeric_limits<double>::infinity()); }},
      {"aten.isneginf.default",
       [](NodeContext& ctx) { return is_infinity(ctx, -std::numeric_limits<double>::infinity()); }},
      {"aten.angle.default", angle},
      {"aten.sinc.default", sinc, kInFloat32},
      {"aten.special_sinc.default", sinc, kInFloat32},
      {"aten.signbit.default", signbit},
      {"aten.erfinv.default", erfinv, kInFloat32},
      {"aten.special_erfinv.default", erfinv, kInFloat32},
      {"aten.logical_not.default", logical_not},
      {"aten.bitwise_not.default", bitwise_not},
      {"aten.deg2rad.default",
       [](NodeContext& ctx) { return scaled(ctx, std::numbers::pi / 180); }},
      {"aten.rad2deg.default",
       [](NodeContext& ctx) { return scaled(ctx, 180 / std::numbers::pi); }},
      {"aten.nan_to_num.default", nan_to_num},
      {"aten.frexp.Tensor", frexp, kInFloat32},
      {"aten.clone.default", copy},
      {"aten.lift_fresh_copy.default", copy},
      {"aten.alias_copy.default", copy},
      {"aten.detach_copy.default", copy},
      {"aten._to_copy.default", cast_copy},
      {"prims.convert_element_type.default",
       [](NodeContext& ctx) { return Values{value_of(ctx.cast(ctx.tensor("a"), *ctx.dtype()))}; }},
  };
  return kRows;
}

}  // namespace relay::frontend::torch
