#include "ops/elementwise/fixed_point.h"

#include "ops/common.h"
#include "ops/composed.h"

namespace relay::ops {
namespace {

constexpr const char* kRoundingDoc =
    "ONCE: the exact product, halves up. TWICE: first without the negative part of the shift, "
    "halves up, then shifted, halves away from zero, as gemmlowp rounds.";

struct FixedPointAttrs : AttrsOf<FixedPointAttrs> {
  int64_t multiplier = 1 << 30, shift = 1;
  std::string rounding = "ONCE";
  static AttrsList describe() {
    return {"relay.attrs.FixedPointMultiplyAttrs",
            {attribute("multiplier", &Self::multiplier, "The factor times 2^31, below 2^31."),
             attribute("shift", &Self::shift, "Powers of two that it is further multiplied by."),
             attribute("rounding", &Self::rounding, kRoundingDoc)}};
  }
};

struct FixedPointPerAxisAttrs : AttrsOf<FixedPointPerAxisAttrs> {
  bool is_lshift_required = false, is_rshift_required = false;
  Ints axes;
  std::string rounding = "ONCE";
  static AttrsList describe() {
    return {"relay.attrs.FixedPointMultiplyPerAxisAttrs",
            {attribute("is_lshift_required", &Self::is_lshift_required,
                       "Whether left_shift has entries other than 0."),
             attribute("is_rshift_required", &Self::is_rshift_required,
                       "Whether right_shift has entries other than 0."),
             attribute("axes", &Self::axes, "The axes of data that the factors are along."),
             attribute("rounding", &Self::rounding, kRoundingDoc)}};
  }
};

const DType kInt32 = DType::Int(32);

Expr number(int64_t v) { return indices_constant({v}, {}); }

void check(const CallNode& call, const std::string& rounding) {
  for (const Expr& e : call.args) {
    demand(call, type_of(e).dtype == kInt32, "takes int32", "int32", type_of(e).dtype.to_string());
  }
  demand(call, rounding == "ONCE" || rounding == "TWICE", "rounding is not known", "ONCE or TWICE",
         rounding);
}

Expr shifted_left(const Expr& a, const Expr& by) { return apply("left_shift", {a, by}); }
Expr shifted_right(const Expr& a, const Expr& by) { return apply("right_shift", {a, by}); }
Expr product(const Expr& a, const Expr& b) { return apply("fixed_point_product", {a, b}); }

// Shifted, halves away from zero; `by` is int32 and 0 or more, `a` above the least number where `by` is above 0.
Expr shifted_away(const Expr& a, const Expr& by, bool always_shifts) {
  // One more place is shifted out behind the first: there are places for the sum of the half.
  Expr last = always_shifts ? scalar(1, a) : apply("minimum", {by, scalar(1, by)});
  Expr below = shifted_right(a, scalar(31, a));  // -1 for negative numbers, whose halves go down
  if (!always_shifts) below = apply("bitwise_and", {below, negative(last)});
  return shifted_right(shifted_right(a + below, by - last) + last, last);
}

// Whether each element of a constant is above 0.
bool is_positive(const Expr& e) {
  auto* c = as<ConstantNode>(e);
  if (c == nullptr) return false;
  for (int64_t i = 0; i < c->data.num_elements(); ++i) {
    if (c->data.get_as_int(i) <= 0) return false;
  }
  return true;
}

// (wide * multiplier) / 2^31, halves up, in int64.
Expr scaled(const Expr& wide, const Expr& multiplier) {
  return shifted_right(wide * multiplier + number(int64_t{1} << 30), number(31));
}

Expr fixed_point_multiply(const CallNode& call) {
  auto& a = attrs_of<FixedPointAttrs>(call);
  check(call, a.rounding);
  demand(call,
         a.shift >= -31 && a.shift <= 31 && a.multiplier > -(int64_t{1} << 31) &&
             a.multiplier < int64_t{1} << 31,
         "the factor is out of range", "below 2^31, and a shift of 31 at the most",
         std::to_string(a.multiplier));
  const Expr& x = call.args[0];
  if (a.shift > 0) {
    Expr wide = shifted_left(as_index(x), number(a.shift));
    return cast_to(scaled(wide, number(a.multiplier)), kInt32);
  }
  const int64_t away = -a.shift;
  if (a.rounding == "TWICE" || away == 0) {
    Expr y = product(x, scalar(static_cast<double>(a.multiplier), x));
    return away == 0 ? y : shifted_away(y, scalar(static_cast<double>(away), y), true);
  }
  Expr wide = as_index(x);
  wide = wide * number(a.multiplier) + number(int64_t{1} << (30 + away));
  return cast_to(shifted_right(wide, number(31 + away)), kInt32);
}

Expr fixed_point_multiply_per_axis(const CallNode& call) {
  auto& a = attrs_of<FixedPointPerAxisAttrs>(call);
  check(call, a.rounding);
  const Expr& x = call.args[0];
  const int64_t rank = rank_of(x);
  // The factors along their axes, with axes of size 1 between and behind them.
  auto along_axes = [&](const Expr& e) {
    demand(call, rank_of(e) == static_cast<int64_t>(a.axes.size()),
           "the factors do not have the axes", std::to_string(a.axes.size()) + " axes",
           to_string(e->type));
    std::vector<Dim> shape(static_cast<size_t>(rank), dim(1));
    int64_t before = -1;
    for (size_t i = 0; i < a.axes.size(); ++i) {
      const int64_t at = axis_in(call, a.axes[i], rank);
      demand(call, at > before, "the axes do not ascend", "ascending axes");
      before = at;
      shape[static_cast<size_t>(at)] = type_of(e).shape[i];
    }
    return reshape_to(e, shape);
  };
  const bool once_shifted = a.is_rshift_required && a.rounding == "ONCE";
  if (!a.is_lshift_required && !once_shifted) {
    // At least -(2^31 - 1): no product is below.
    Expr y = product(x, along_axes(call.args[1]));
    return a.is_rshift_required
               ? shifted_away(y, along_axes(call.args[3]), is_positive(call.args[3]))
               : y;
  }
  Expr multiplier = as_index(along_axes(call.args[1])), wide = as_index(x);
  if (a.is_lshift_required) wide = shifted_left(wide, as_index(along_axes(call.args[2])));
  if (!a.is_rshift_required) return cast_to(scaled(wide, multiplier), kInt32);
  Expr right = along_axes(call.args[3]);
  if (a.rounding == "TWICE") {
    Expr y = cast_to(scaled(wide, multiplier), kInt32);
    // Shifted, the least number gives what its neighbour gives. Elements that are not shifted keep it.
    const bool always_shifts = is_positive(call.args[3]);
    Expr least = scalar(-2147483647, y);
    if (!always_shifts) {
      least = apply("minimum", {right, scalar(1, right)}) + scalar(-2147483648.0, y);
    }
    return shifted_away(apply("maximum", {y, least}), right, always_shifts);
  }
  Expr all = as_index(right) + number(31);
  Expr half = shifted_left(number(1), all - number(1));
  return cast_to(shifted_right(wide * multiplier + half, all), kInt32);
}

}  // namespace

OpInfo fixed_point_row() {
  OpExample drawn{.args = {"Tensor[(5,), int32]"}, .attrs = "shift=-1", .low = -90, .high = 90};
  OpExample twice = drawn;
  twice.attrs = "multiplier=1395864371, shift=-3, rounding=\"TWICE\"";
  return composed_row("fixed_point_multiply",
                      "Integers by multiplier * 2^(shift - 31), rounded, halves up.",
                      {{"data", "The input."}}, &FixedPointAttrs::static_info(),
                      fixed_point_multiply, {drawn, twice});
}

OpInfo fixed_point_per_axis_row() {
  std::vector<OpExample> examples;
  for (const char* rounding : {"ONCE", "TWICE"}) {
    OpExample e{.args = {"Tensor[(2, 3), int32]", "Tensor[(3,), int32]", "Tensor[(3,), int32]",
                         "Tensor[(3,), int32]"},
                .attrs = "is_lshift_required=True, is_rshift_required=True, axes=[1], rounding=\"" +
                         std::string(rounding) + "\""};
    e.inputs = {
        {-90, -1, 0, 7, 90, 1001}, {1073741824, 1395864371, 2147483647}, {0, 1, 0}, {3, 0, 1}};
    examples.push_back(std::move(e));
  }
  return composed_row(
      "fixed_point_multiply_per_axis",
      "Integers by fp_multiplier * 2^(left_shift - right_shift - 31) of their place along axes.",
      {{"data", "The input, int32."},
       {"fp_multiplier", "The factors times 2^31, int32."},
       {"left_shift", "Powers of two, 0 or more, int32."},
       {"right_shift", "Powers of two that are divided by, 0 or more, int32."}},
      &FixedPointPerAxisAttrs::static_info(), fixed_point_multiply_per_axis, std::move(examples));
}

}  // namespace relay::ops
