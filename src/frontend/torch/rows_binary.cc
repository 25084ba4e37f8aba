// Functions of two elements and more: arithmetic, comparison, bits, selection.
#include <limits>

#include "base/codes/frontend.h"
#include "frontend/common/power.h"
#include "frontend/common/step_loop.h"
#include "frontend/torch/node_context.h"

namespace relay::frontend::torch {
namespace {

// A number or a tensor.
Expr number_or_tensor(NodeContext& ctx, std::string_view name, DType dtype) {
  const Argument* a = ctx.find(name);
  if (a == nullptr) return nullptr;
  if (a->name() != nullptr) return ctx.cast(ctx.tensor(name), dtype);
  return ctx.number_as(*ctx.number(name), dtype);
}

// `other` times alpha, in its dtype.
Expr times_alpha(NodeContext& ctx, Expr e, DType dtype) {
  auto alpha = ctx.number("alpha");
  if (!alpha || (alpha->is_known() && alpha->as_double() == 1)) return e;
  return ctx.mul(std::move(e), ctx.number_as(*alpha, dtype));
}

bool both_bool(const NodeContext::Pair& p) { return p.dtype.is_bool(); }

Values add(NodeContext& ctx) {
  auto p = ctx.pair();
  Expr b = times_alpha(ctx, p.b, p.dtype);
  // A sum of truth values is their disjunction.
  return {value_of(ctx.call(both_bool(p) ? "logical_or" : "add", {p.a, b}))};
}
Values sub(NodeContext& ctx) {
  auto p = ctx.pair();
  return {value_of(ctx.sub(p.a, times_alpha(ctx, p.b, p.dtype)))};
}
Values rsub(NodeContext& ctx) {
  auto p = ctx.pair();
  return {value_of(ctx.sub(p.b, times_alpha(ctx, p.a, p.dtype)))};
}
Values mul(NodeContext& ctx) {
  auto p = ctx.pair();
  return {value_of(ctx.call(both_bool(p) ? "logical_and" : "multiply", {p.a, p.b}))};
}

// A quotient of integers is a float; the other forms keep the type.
NodeContext::Pair as_floats(NodeContext& ctx, NodeContext::Pair p) {
  if (p.dtype.is_floating()) return p;
  const DType f32 = DType::Float(32);
  return {ctx.cast(p.a, f32), ctx.cast(p.b, f32), f32};
}

Values true_div(NodeContext& ctx) {
  auto p = as_floats(ctx, ctx.pair());
  return {value_of(ctx.div(p.a, p.b))};
}

Expr floor_quotient(NodeContext& ctx, const NodeContext::Pair& p) {
  if (!p.dtype.is_floating()) return ctx.call("floor_divide", {p.a, p.b});
  // The quotient of what leaves no remainder: a rounded quotient may reach the next whole number.
  Expr remainder = ctx.call("trunc_mod", {p.a, p.b}), zero = ctx.scalar(0, p.dtype);
  Expr whole = ctx.div(ctx.sub(p.a, remainder), p.b);
  Expr crosses =
      ctx.call("logical_and", {ctx.call("not_equal", {remainder, zero}),
                               ctx.call("not_equal", {ctx.call("less", {remainder, zero}),
                                                      ctx.call("less", {p.b, zero})})});
  Expr lower = ctx.sub(whole, ctx.cast(crosses, p.dtype));
  Expr rounded = ctx.call("round", {lower});
  Expr by_zero = ctx.call("equal", {p.b, zero});
  return ctx.call("where", {by_zero, ctx.div(p.a, p.b), rounded});
}

Values floor_div_row(NodeContext& ctx) { return {value_of(floor_quotient(ctx, ctx.pair()))}; }

Values div_mode(NodeContext& ctx) {
  const std::string mode = ctx.text("rounding_mode", "");
  auto p = ctx.pair();
  if (mode == "floor") return {value_of(floor_quotient(ctx, p))};
  if (mode == "trunc") {
    if (!p.dtype.is_floating()) return {value_of(ctx.call("trunc_divide", {p.a, p.b}))};
    return {value_of(ctx.call("trunc", {ctx.div(p.a, p.b)}))};
  }
  if (!mode.empty()) {
    ctx.fail(codes::frontend_attribute, "argument 'rounding_mode' has an unknown value",
             "floor or trunc", shorten(mode));
  }
  p = as_floats(ctx, p);
  return {value_of(ctx.div(p.a, p.b))};
}

Values same_type(NodeContext& ctx) {
  auto p = ctx.pair();
  return {value_of(ctx.call(ctx.relay_op(), {p.a, p.b}))};
}

Values pow_row(NodeContext& ctx) {
  auto exponent = ctx.node().inputs.size() > 1 && ctx.node().inputs[1].second.name() == nullptr
                      ? ctx.number("exponent")
                      : std::nullopt;
  auto p = ctx.pair("self", "exponent");
  // Small whole exponents are products, of 16-bit floats in float32.
  const DType out = ctx.out_dtype();
  const bool keeps =
      p.dtype == out || (p.dtype.is_float(32) && out.is_floating() && out.bits == 16);
  if (exponent && exponent->is_known() && keeps) {
    const double n = exponent->as_double();
    if (Expr y = short_power(ctx, p.a, n)) return {value_of(y)};
    if (n == -0.5 && p.dtype.is_floating()) return {value_of(ctx.call("rsqrt", {p.a}))};
  }
  return {value_of(ctx.call("power", {p.a, p.b}))};
}

Values extreme(NodeContext& ctx) {
  auto p = ctx.pair();
  const bool greatest = ctx.relay_op() == "maximum";
  if (both_bool(p))
    return {value_of(ctx.call(greatest ? "logical_or" : "logical_and", {p.a, p.b}))};
  return {value_of(ctx.call(ctx.relay_op(), {p.a, p.b}))};
}
// The other operand where one is NaN.
Values extreme_number(NodeContext& ctx) {
  auto p = ctx.pair();
  Expr y = ctx.call(ctx.relay_op(), {p.a, p.b});
  if (!p.dtype.is_floating()) return {value_of(y)};
  y = ctx.call("where", {ctx.call("isnan", {p.a}), p.b, y});
  return {value_of(ctx.call("where", {ctx.call("isnan", {p.b}), p.a, y}))};
}

Values comparison(NodeContext& ctx) {
  auto p = ctx.pair();
  return {value_of(ctx.call(ctx.relay_op(), {p.a, p.b}))};
}

Values logical(NodeContext& ctx) {
  auto p = ctx.pair();
  return {value_of(
      ctx.call(ctx.relay_op(), {ctx.cast(p.a, DType::Bool()), ctx.cast(p.b, DType::Bool())}))};
}

// The operator is that of integers, behind "bitwise_".
Values bitwise(NodeContext& ctx) {
  auto p = ctx.pair();
  const std::string prefix = both_bool(p) ? "logical_" : "bitwise_";
  return {value_of(ctx.call(prefix + std::string(ctx.relay_op()), {p.a, p.b}))};
}

Values angle(NodeContext& ctx) {
  auto p = as_floats(ctx, ctx.pair());
  return {value_of(atan2(ctx, p.a, p.b))};
}

Values hypot(NodeContext& ctx) {
  auto p = as_floats(ctx, ctx.pair());
  return {value_of(ctx.call("sqrt", {ctx.add(ctx.mul(p.a, p.a), ctx.mul(p.b, p.b))}))};
}

// x * log(y), and 0 where x is 0 unless y is NaN.
Values xlogy(NodeContext& ctx) {
  auto p = as_floats(ctx, ctx.pair());
  Expr product = ctx.mul(p.a, ctx.call("log", {p.b}));
  Expr zero = ctx.call("logical_and", {ctx.call("equal", {p.a, ctx.scalar(0, p.dtype)}),
                                       ctx.call("logical_not", {ctx.call("isnan", {p.b})})});
  return {value_of(ctx.call("where", {zero, ctx.scalar(0, p.dtype), product}))};
}

Values logaddexp(NodeContext& ctx) {
  auto p = as_floats(ctx, ctx.pair());
  Expr greatest = ctx.call("maximum", {p.a, p.b});
  Expr apart = ctx.call("negative", {ctx.call("abs", {ctx.sub(p.a, p.b)})});
  Expr log = ctx.call("log", {ctx.add(ctx.call("exp", {apart}), ctx.scalar(1, p.dtype))});
  Expr same = ctx.call("equal", {p.a, p.b});
  Expr two = ctx.scalar(0.6931471805599453, p.dtype);
  return {value_of(ctx.add(greatest, ctx.call("where", {same, two, log})))};
}

Values logaddexp2(NodeContext& ctx) {
  auto p = as_floats(ctx, ctx.pair());
  Expr apart = ctx.call("negative", {ctx.call("abs", {ctx.sub(p.a, p.b)})});
  Expr power = ctx.call("power", {ctx.scalar(2, p.dtype), apart});
  Expr log = ctx.call("log2", {ctx.add(power, ctx.scalar(1, p.dtype))});
  Expr same = ctx.call("equal", {p.a, p.b});
  return {value_of(ctx.add(ctx.maximum(p.a, p.b), ctx.where(same, ctx.scalar(1, p.dtype), log)))};
}

// self * 2 ** other
Values ldexp(NodeContext& ctx) {
  const DType dtype = ctx.out_dtype();
  Expr a = ctx.cast(ctx.tensor("self"), dtype), b = ctx.cast(ctx.tensor("other"), dtype);
  return {value_of(ctx.mul(a, ctx.call("power", {ctx.scalar(2, dtype), b})))};
}

Values copysign(NodeContext& ctx) {
  auto p = as_floats(ctx, ctx.pair());
  Expr zero = ctx.scalar(0, p.dtype), one = ctx.scalar(1, p.dtype);
  Expr sign = ctx.call("where", {ctx.call("equal", {p.b, zero}), ctx.div(one, p.b), p.b});
  Expr size = ctx.call("abs", {p.a});
  return {value_of(
      ctx.call("where", {ctx.call("less", {sign, zero}), ctx.call("negative", {size}), size}))};
}

// a * b + c
Values multiply_add(NodeContext& ctx) {
  Expr a = ctx.tensor("a"), b = ctx.tensor("b"), c = ctx.tensor("c");
  const DType dtype = ctx.out_dtype();
  return {value_of(ctx.add(ctx.mul(ctx.cast(a, dtype), ctx.cast(b, dtype)), ctx.cast(c, dtype)))};
}

// The next representable number from one towards another: one more or less as an integer of the same bits.
Values nextafter(NodeContext& ctx) {
  auto p = ctx.pair();
  const DType bits = DType::Int(p.dtype.bits);
  auto as = [&](const Expr& e, DType d) {
    return ctx.call("reinterpret", {e}, {{"dtype", to_value(d)}});
  };
  auto test = [&](const char* op, const Expr& a, const Expr& b) { return ctx.call(op, {a, b}); };
  Expr zero = ctx.scalar(0, p.dtype), one = ctx.scalar(1, bits);
  Expr least = as(ctx.broadcast_to(one, ctx.out_shape()), p.dtype);
  Expr a = ctx.broadcast_to(p.a, ctx.out_shape()), b = ctx.broadcast_to(p.b, ctx.out_shape());
  Expr away = test("equal", test("greater", b, a), test("greater", a, zero));
  Expr whole = as(a, bits);
  Expr next = as(ctx.where(away, ctx.add(whole, one), ctx.sub(whole, one)), p.dtype);
  Expr from_zero = ctx.where(test("less", b, zero), ctx.call("negative", {least}), least);
  Expr out = ctx.where(test("equal", a, zero), from_zero, next);
  out = ctx.where(test("equal", a, b), b, out);
  Expr nan = ctx.call("logical_or", {ctx.call("isnan", {a}), ctx.call("isnan", {b})});
  return {value_of(ctx.where(nan, ctx.add(a, b), out))};
}

// Euclid's algorithm on all elements, as long as one of them has a remainder.
Expr greatest_common_divisor(NodeContext& ctx, const Expr& a, const Expr& b) {
  const std::vector<int64_t> all = Builder::all_axes(Builder::rank_of(a));
  auto goes_on = [&](const Expr& rest) {
    return ctx.reduce("any", ctx.call("not_equal", {rest, ctx.scalar_like(0, rest)}), all, false);
  };
  StepLoop loop;
  loop.initial = {a, b};
  loop.go = goes_on(b);
  const StepResults done =
      run_steps(ctx, loop, [&](const Expr&, const Expr&, const std::vector<Expr>& states) -> Step {
        Expr ends = ctx.call("equal", {states[1], ctx.scalar_like(0, b)});
        Expr divisor = ctx.where(ends, ctx.scalar_like(1, b), states[1]);
        Expr rest = ctx.call("trunc_mod", {states[0], divisor});
        Expr next = ctx.where(ends, ctx.scalar_like(0, b), rest);
        return {{ctx.where(ends, states[0], states[1]), next}, {}, goes_on(next)};
      });
  return ctx.call("abs", {done.states[0]});
}

NodeContext::Pair integers(NodeContext& ctx) {
  auto p = ctx.pair();
  return {ctx.broadcast_to(p.a, ctx.out_shape()), ctx.broadcast_to(p.b, ctx.out_shape()), p.dtype};
}
Values gcd(NodeContext& ctx) {
  auto p = integers(ctx);
  return {value_of(greatest_common_divisor(ctx, p.a, p.b))};
}
Values lcm(NodeContext& ctx) {
  auto p = integers(ctx);
  Expr divisor = greatest_common_divisor(ctx, p.a, p.b);
  divisor = ctx.maximum(divisor, ctx.scalar_like(1, divisor));
  return {value_of(ctx.call("abs", {ctx.mul(ctx.call("trunc_divide", {p.a, divisor}), p.b)}))};
}

// self + value * a (op) b
Values fused_step(NodeContext& ctx) {
  Expr x = ctx.tensor("self"), a = ctx.tensor("tensor1"), b = ctx.tensor("tensor2");
  DType dtype = ctx.promoted({x, a, b});
  if (ctx.relay_op() == "divide" && !dtype.is_floating()) dtype = DType::Float(32);
  Expr step = ctx.call(ctx.relay_op(), {ctx.cast(a, dtype), ctx.cast(b, dtype)});
  auto value = ctx.number("value");
  if (value && !(value->is_known() && value->as_double() == 1))
    step = ctx.mul(step, ctx.number_as(*value, dtype));
  return {value_of(ctx.add(ctx.cast(x, dtype), step))};
}

// Exact at both ends: from the nearer one.
Values lerp(NodeContext& ctx) {
  Expr a = ctx.tensor("self"), b = ctx.tensor("end");
  const DType dtype = ctx.promoted({a, b});
  Expr w = number_or_tensor(ctx, "weight", dtype);
  if (w == nullptr) ctx.fail(codes::frontend_graph, "argument 'weight' is missing");
  Expr apart = ctx.sub(b, a);
  Expr near_a = ctx.add(a, ctx.mul(w, apart));
  Expr near_b = ctx.sub(b, ctx.mul(apart, ctx.sub(ctx.scalar(1, dtype), w)));
  Expr first = ctx.call("less", {ctx.call("abs", {w}), ctx.scalar(0.5, dtype)});
  return {value_of(ctx.call("where", {first, near_a, near_b}))};
}

// ---- Clamps and selection ----------------------------------------------------------------------

Values clamp(NodeContext& ctx) {
  const DType dtype = ctx.out_dtype();
  Expr x = ctx.cast(ctx.tensor("self"), dtype);
  auto number = [&](std::string_view name) -> std::optional<double> {
    const Argument* a = ctx.find(name);
    if (a == nullptr || a->name() != nullptr) return std::nullopt;
    return ctx.number(name)->as_double();
  };
  auto low = number("min"), high = number("max");
  if (dtype.is_floating() && low && high && *low <= *high)
    return {value_of(ctx.call("clip", {x}, {{"a_min", *low}, {"a_max", *high}}))};
  if (Expr least = number_or_tensor(ctx, "min", dtype)) x = ctx.call("maximum", {x, least});
  if (Expr greatest = number_or_tensor(ctx, "max", dtype)) x = ctx.call("minimum", {x, greatest});
  return {value_of(x)};
}

Values where(NodeContext& ctx) {
  auto p = ctx.pair("self", "other");
  Expr c = ctx.cast(ctx.tensor("condition"), DType::Bool());
  const DType dtype = ctx.out_dtype();
  return {value_of(ctx.call("where", {c, ctx.cast(p.a, dtype), ctx.cast(p.b, dtype)}))};
}

Values masked_fill(NodeContext& ctx) {
  Expr x = ctx.tensor("self"), mask = ctx.cast(ctx.tensor("mask"), DType::Bool());
  const DType dtype = Builder::dtype_of(x);
  Expr by = number_or_tensor(ctx, "value", dtype);
  if (by == nullptr) ctx.fail(codes::frontend_graph, "argument 'value' is missing");
  return {value_of(ctx.call("where", {mask, by, x}))};
}

Values isclose(NodeContext& ctx) {
  auto p = ctx.pair();
  if (!p.dtype.is_floating()) p = as_floats(ctx, p);
  auto c = [&](double v) { return ctx.scalar(v, p.dtype); };
  Expr allowed = ctx.add(c(ctx.real("atol", 1e-8)),
                         ctx.mul(c(ctx.real("rtol", 1e-5)), ctx.call("abs", {p.b})));
  Expr apart = ctx.call("abs", {ctx.sub(p.a, p.b)});
  Expr near = ctx.call("logical_and",
                       {ctx.call("less_equal", {apart, allowed}), ctx.call("isfinite", {apart})});
  Expr out = ctx.call("logical_or", {near, ctx.call("equal", {p.a, p.b})});
  if (ctx.truth("equal_nan", false)) {
    Expr both = ctx.call("logical_and", {ctx.call("isnan", {p.a}), ctx.call("isnan", {p.b})});
    out = ctx.call("logical_or", {out, both});
  }
  return {value_of(out)};
}

Values heaviside(NodeContext& ctx) {
  auto p = ctx.pair("self", "values");
  Expr zero = ctx.scalar(0, p.dtype), one = ctx.scalar(1, p.dtype);
  Expr step = ctx.call("where", {ctx.call("less", {p.a, zero}), zero, one});
  Expr y = ctx.call("where", {ctx.call("equal", {p.a, zero}), p.b, step});
  if (p.dtype.is_floating()) y = ctx.call("where", {ctx.call("isnan", {p.a}), p.a, y});
  return {value_of(y)};
}

}  // namespace

template <>
std::span<const Row> rows<Family::Binary>() {
  static constexpr Row kRows[] = {
      {"aten.add.Tensor", add},
      {"aten.add.Scalar", add},
      {"aten.sub.Tensor", sub},
      {"aten.sub.Scalar", sub},
      {"aten.subtract.Tensor", sub},
      {"aten.rsub.Tensor", rsub},
      {"aten.rsub.Scalar", rsub},
      {"aten.mul.Tensor", mul},
      {"aten.mul.Scalar", mul},
      {"aten.multiply.Tensor", mul},
      {"aten.div.Tensor", true_div},
      {"aten.div.Scalar", true_div},
      {"aten.divide.Tensor", true_div},
      {"aten.true_divide.Tensor", true_div},
      {"aten.true_divide.Scalar", true_div},
      {"aten.div.Tensor_mode", div_mode},
      {"aten.div.Scalar_mode", div_mode},
      {"aten.divide.Tensor_mode", div_mode},
      {"aten.floor_divide.default", floor_div_row},
      {"aten.floor_divide.Scalar", floor_div_row},
      {"aten.remainder.Tensor", same_type, "floor_mod"},
      {"aten.remainder.Scalar", same_type, "floor_mod"},
      {"aten.fmod.Tensor", same_type, "trunc_mod"},
      {"aten.fmod.Scalar", same_type, "trunc_mod"},
      {"aten.pow.Tensor_Tensor", pow_row, kInFloat32},
      {"aten.pow.Tensor_Scalar", pow_row, kInFloat32},
      {"aten.pow.Scalar", pow_row, kInFloat32},
      {"aten.float_power.Tensor_Tensor",
       [](NodeContext& ctx) {
         auto p = ctx.pair("self", "exponent");
         const DType f64 = DType::Float(64);
         return Values{value_of(ctx.call("power", {ctx.cast(p.a, f64), ctx.cast(p.b, f64)}))};
       }},
      {"aten.maximum.default", extreme, "maximum"},
      {"aten.minimum.default", extreme, "minimum"},
      {"aten.max.other", extreme, "maximum"},
      {"aten.min.other", extreme, "minimum"},
      {"aten.fmax.default", extreme_number, "maximum"},
      {"aten.fmin.default", extreme_number, "minimum"},
      {"aten.eq.Tensor", comparison, "equal"},
      {"aten.eq.Scalar", comparison, "equal"},
      {"aten.ne.Tensor", comparison, "not_equal"},
      {"aten.ne.Scalar", comparison, "not_equal"},
      {"aten.lt.Tensor", comparison, "less"},
      {"aten.lt.Scalar", comparison, "less"},
      {"aten.le.Tensor", comparison, "less_equal"},
      {"aten.le.Scalar", comparison, "less_equal"},
      {"aten.gt.Tensor", comparison, "greater"},
      {"aten.gt.Scalar", comparison, "greater"},
      {"aten.ge.Tensor", comparison, "greater_equal"},
      {"aten.ge.Scalar", comparison, "greater_equal"},
      {"aten.greater.Tensor", comparison, "greater"},
      {"aten.greater_equal.Tensor", comparison, "greater_equal"},
      {"aten.less.Tensor", comparison, "less"},
      {"aten.less_equal.Tensor", comparison, "less_equal"},
      {"aten.not_equal.Tensor", comparison, "not_equal"},
      {"aten.logical_and.default", logical, "logical_and"},
      {"aten.logical_or.default", logical, "logical_or"},
      {"aten.logical_xor.default", logical, "logical_xor"},
      {"aten.bitwise_and.Tensor", bitwise, "and"},
      {"aten.bitwise_and.Scalar", bitwise, "and"},
      {"aten.bitwise_or.Tensor", bitwise, "or"},
      {"aten.bitwise_or.Scalar", bitwise, "or"},
      {"aten.bitwise_xor.Tensor", bitwise, "xor"},
      {"aten.bitwise_xor.Scalar", bitwise, "xor"},
      {"aten.__and__.Tensor", bitwise, "and"},
      {"aten.__and__.Scalar", bitwise, "and"},
      {"aten.__or__.Tensor", bitwise, "or"},
      {"aten.__or__.Scalar", bitwise, "or"},
      {"aten.__xor__.Tensor", bitwise, "xor"},
      {"aten.__xor__.Scalar", bitwise, "xor"},
      {"aten.bitwise_left_shift.Tensor", same_type, "left_shift"},
      {"aten.bitwise_left_shift.Tensor_Scalar", same_type, "left_shift"},
      {"aten.bitwise_right_shift.Tensor", same_type, "right_shift"},
      {"aten.bitwise_right_shift.Tensor_Scalar", same_type, "right_shift"},
      {"aten.__lshift__.Tensor", same_type, "left_shift"},
      {"aten.__lshift__.Scalar", same_type, "left_shift"},
      {"aten.__rshift__.Tensor", same_type, "right_shift"},
      {"aten.__rshift__.Scalar", same_type, "right_shift"},
      {"aten.atan2.default", angle, kInFloat32},
      {"aten.arctan2.default", angle, kInFloat32},
      {"aten.hypot.default", hypot, kInFloat32},
      {"aten.xlogy.Tensor", xlogy, kInFloat32},
      {"aten.xlogy.Scalar_Other", xlogy, kInFloat32},
      {"aten.xlogy.Scalar_Self", xlogy, kInFloat32},
      {"aten.logaddexp.default", logaddexp, kInFloat32},
      {"aten.logaddexp2.default", logaddexp2, kInFloat32},
      {"aten.ldexp.Tensor", ldexp},
      {"aten.copysign.Tensor", copysign},
      {"aten.copysign.Scalar", copysign},
      {"aten.addcmul.default", fused_step, "multiply", kInFloat32},
      {"aten.addcdiv.default", fused_step, "divide", kInFloat32},
      {"aten.lerp.Scalar", lerp, kInFloat32},
      {"aten.lerp.Tensor", lerp, kInFloat32},
      {"aten.clamp.default", clamp},
      {"aten.clamp.Tensor", clamp},
      {"aten.clip.default", clamp},
      {"aten.clip.Tensor", clamp},
      {"aten.clamp_min.default", clamp},
      {"aten.clamp_min.Tensor", clamp},
      {"aten.clamp_max.default", clamp},
      {"aten.clamp_max.Tensor", clamp},
      {"aten.where.self", where},
      {"aten.where.ScalarSelf", where},
      {"aten.where.ScalarOther", where},
      {"aten.where.Scalar", where},
      {"aten.masked_fill.Scalar", masked_fill},
      {"aten.masked_fill.Tensor", masked_fill},
      {"aten.isclose.default", isclose},
      {"aten.heaviside.default", heaviside},
      {"aten.nextafter.default", nextafter},
      {"aten.gcd.default", gcd},
      {"aten.lcm.default", lcm},
      {"prims.fma.default", multiply_add, kInFloat32},
  };
  return kRows;
}

}  // namespace relay::frontend::torch
