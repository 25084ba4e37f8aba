// SimplifyExpr's rules for numbers, bits and truth values.
#include <cmath>

#include "ir/op.h"
#include "passes/simplify/rule.h"

namespace relay::simplify {
namespace {

// Constants with more elements are not searched.
constexpr int64_t kMaxSearched = 1 << 16;

// The value that all elements of a constant have, to the bit.
std::optional<double> uniform(const Expr& e) {
  auto* c = as<ConstantNode>(e);
  if (c == nullptr || c->data.num_elements() == 0 || c->data.num_elements() > kMaxSearched) {
    return std::nullopt;
  }
  double first = c->data.get_as_double(0);
  for (int64_t i = 1; i < c->data.num_elements(); ++i) {
    double v = c->data.get_as_double(i);
    if (v != first || std::signbit(v) != std::signbit(first)) return std::nullopt;
  }
  return first;
}

bool is_uniform(const Expr& e, double value) {
  auto v = uniform(e);
  return v && *v == value && std::signbit(*v) == std::signbit(value);
}

bool is_integer(const Expr& e) { return tensor_of(e) && tensor_of(e)->dtype.is_integer(); }
bool is_floating(const Expr& e) { return tensor_of(e) && tensor_of(e)->dtype.is_floating(); }
bool is_bool(const Expr& e) { return tensor_of(e) && tensor_of(e)->dtype.is_bool(); }

// The operand, when an operand that does nothing to its values leaves its shape alone too: a
// constant of several elements might spread an axis of unknown size.
Expr unchanged(const Expr& x, const Expr& c) {
  auto* data = as<ConstantNode>(c);
  bool one = data != nullptr && data->data.num_elements() == 1;
  return one || static_shape(x) ? x : nullptr;
}

// op(x, c) is x when every element of the constant is `value`, for dtypes that `when` accepts.
Rule neutral(std::string_view name, std::string op, double value, bool commutes,
             bool (*when)(const Expr&)) {
  DFPattern x = wildcard(), c = is_constant();
  DFPattern pattern = commutes ? either_order(is_op(op), x, c) : is_op(op)(x, c);
  return {name, pattern, [=](const DFMatch& m, const CallNode&) -> Expr {
            return when(m[x]) && is_uniform(m[c], value) ? unchanged(m[x], m[c]) : nullptr;
          }};
}

bool always(const Expr&) { return true; }

// f(f(x)) is x.
Rule involution(std::string_view name, std::string op) {
  DFPattern x = wildcard();
  return {name, is_op(op)(is_op(op)(x)), [=](const DFMatch& m, const CallNode&) { return m[x]; }};
}

void add_neutral_operands(std::vector<Rule>& rules) {
  rules.push_back(neutral("add_zero", "add", 0, true, is_integer));
  // -0.0 + 0.0 is 0.0, but x + -0.0 and x - 0.0 are x for every x.
  rules.push_back(neutral("add_negative_zero", "add", -0.0, true, is_floating));
  rules.push_back(neutral("subtract_zero", "subtract", 0, false, always));
  rules.push_back(neutral("multiply_one", "multiply", 1, true, always));
  rules.push_back(neutral("divide_one", "divide", 1, false, always));
  rules.push_back(neutral("floor_divide_one", "floor_divide", 1, false, is_integer));
  rules.push_back(neutral("trunc_divide_one", "trunc_divide", 1, false, is_integer));
  rules.push_back(neutral("power_one", "power", 1, false, is_floating));
  rules.push_back(neutral("left_shift_zero", "left_shift", 0, false, is_integer));
  rules.push_back(neutral("right_shift_zero", "right_shift", 0, false, is_integer));
  rules.push_back(neutral("bitwise_or_zero", "bitwise_or", 0, true, is_integer));
  rules.push_back(neutral("bitwise_xor_zero", "bitwise_xor", 0, true, is_integer));
  rules.push_back(neutral("logical_and_true", "logical_and", 1, true, is_bool));
  rules.push_back(neutral("logical_or_false", "logical_or", 0, true, is_bool));
}

void add_repetitions(std::vector<Rule>& rules) {
  DFPattern x = wildcard();
  auto taken = [=](const DFMatch& m, const CallNode&) { return m[x]; };
  rules.push_back(involution("negative_negative", "negative"));
  rules.push_back(involution("logical_not_not", "logical_not"));
  rules.push_back(involution("bitwise_not_not", "bitwise_not"));
  for (const char* op : {"abs", "nn.relu", "sign"}) {
    DFPattern inner = is_op(op)(x);
    rules.push_back({std::string_view(op) == "abs"    ? "abs_abs"
                     : std::string_view(op) == "sign" ? "sign_sign"
                                                      : "relu_relu",
                     is_op(op)(inner),
                     [=](const DFMatch& m, const CallNode&) { return m[inner]; }});
  }
  rules.push_back(
      {"abs_negative", is_op("abs")(is_op("negative")(x)),
       [=](const DFMatch& m, const CallNode& root) { return make_call("abs", {m[x]}, {}, root); }});
  // What is an integer stays when it is rounded.
  const std::vector<std::string> kRound{"ceil", "floor", "round", "trunc"};
  DFPattern rounded = is_any_op(kRound)(x);
  rules.push_back({"round_rounded", is_any_op(kRound)(rounded),
                   [=](const DFMatch& m, const CallNode&) { return m[rounded]; }});
  rules.push_back({"round_integer", is_any_op(kRound)(x), [=](const DFMatch& m, const CallNode&) {
                     return is_integer(m[x]) ? m[x] : Expr();
                   }});
  rules.push_back({"same_operands",
                   is_any_op({"maximum", "minimum", "logical_and", "logical_or", "bitwise_and",
                              "bitwise_or"})(x, x),
                   taken});
  rules.push_back({"copy", is_op("copy")(x), taken});
  DFPattern y = wildcard();
  rules.push_back({"not_equal", is_op("logical_not")(is_op("equal")(x, y)),
                   [=](const DFMatch& m, const CallNode& root) {
                     return make_call("not_equal", {m[x], m[y]}, {}, root);
                   }});
  rules.push_back({"equal", is_op("logical_not")(is_op("not_equal")(x, y)),
                   [=](const DFMatch& m, const CallNode& root) {
                     return make_call("equal", {m[x], m[y]}, {}, root);
                   }});
}

// The interval that both clips leave; null when they have no number in common or when it depends on
// the order whether a bound is 0.0 or -0.0.
Expr clip_both(const Expr& x, double low, double high, double other_low, double other_high,
               const CallNode& root) {
  double a = std::max(low, other_low), b = std::min(high, other_high);
  auto mixed = [](double p, double q) {
    return p == 0 && q == 0 && std::signbit(p) != std::signbit(q);
  };
  if (!(a <= b) || mixed(low, other_low) || mixed(high, other_high)) return nullptr;
  return make_call("clip", {x}, {{"a_min", Value(a)}, {"a_max", Value(b)}}, root);
}

void add_limits(std::vector<Rule>& rules) {
  DFPattern x = wildcard();
  DFPattern clipped = is_op("clip")(x), positive = is_op("nn.relu")(x);
  rules.push_back(
      {"clip_clip", is_op("clip")(clipped), [=](const DFMatch& m, const CallNode& root) {
         auto& inner = *as<CallNode>(m[clipped]);
         return clip_both(m[x], float_attr(inner, "a_min"), float_attr(inner, "a_max"),
                          float_attr(root, "a_min"), float_attr(root, "a_max"), root);
       }});
  rules.push_back(
      {"clip_relu", is_op("clip")(positive), [=](const DFMatch& m, const CallNode& root) {
         double low = float_attr(root, "a_min"), high = float_attr(root, "a_max");
         if (low < 0 || std::signbit(low)) return Expr();
         return clip_both(m[x], 0.0, HUGE_VAL, low, high, root);
       }});
}

// The sum or product of two integer constants; computed here when they are single numbers, so that
// a long chain folds in one go.
Expr fold_integers(bool sum, const Expr& a, const Expr& b, const CallNode& at) {
  const Tensor &x = as<ConstantNode>(a)->data, &y = as<ConstantNode>(b)->data;
  if (x.num_elements() != 1 || !same_shape(a, b)) {
    return make_call(sum ? "add" : "multiply", {a, b}, {}, at);
  }
  auto p = static_cast<uint64_t>(x.get_as_int(0)), q = static_cast<uint64_t>(y.get_as_int(0));
  Tensor out = Tensor::empty(x.dtype(), x.shape());
  out.set_from_int(0, static_cast<int64_t>(sum ? p + q : p * q));
  return constant(std::move(out), at.span);
}

void add_constants(std::vector<Rule>& rules) {
  DFPattern x = wildcard(), c = is_constant(), d = is_constant();
  // Integers wrap, so their sums and products may be regrouped; floats round.
  for (const char* op : {"add", "multiply"}) {
    bool sum = std::string_view(op) == "add";
    DFPattern inner = either_order(is_op(op), x, c);
    rules.push_back({sum ? "add_add_constants" : "multiply_multiply_constants",
                     either_order(is_op(op), inner, d),
                     [=](const DFMatch& m, const CallNode& root) -> Expr {
                       if (!is_integer(m[x]) || isa<ConstantNode>(m[x])) return nullptr;
                       Expr both = fold_integers(sum, m[c], m[d], root);
                       return call(root.op, {m[x], both}, root.attrs, root.span);
                     }});
  }
  rules.push_back({"multiply_zero", either_order(is_op("multiply"), x, c),
                   [=](const DFMatch& m, const CallNode& root) -> Expr {
                     auto shape = static_shape(Expr(&root));
                     if (!is_integer(m[x]) || !is_uniform(m[c], 0) || !shape) return nullptr;
                     return make_call("zeros", {},
                                      {{"shape", to_value(*shape)},
                                       {"dtype", Value(tensor_of(m[x])->dtype.to_string())}},
                                      root);
                   },
                   true});
  // Both are correctly rounded, and the product is the cheaper.
  rules.push_back(
      {"divide_power_of_two", is_op("divide")(x, c),
       [=](const DFMatch& m, const CallNode& root) -> Expr {
         auto v = uniform(m[c]);
         DType dtype = tensor_of(m[c])->dtype;
         if (!v || !(dtype.is_float(32) || dtype.is_float(64))) return nullptr;
         int exponent = 0;
         if (std::abs(std::frexp(*v, &exponent)) != 0.5 || std::abs(exponent) > 100 ||
             exponent == 1 || !unchanged(m[x], m[c])) {
           return nullptr;
         }
         return make_call("multiply", {m[x], constant(1 / *v, dtype, m[c]->span)}, {}, root);
       }});
  rules.push_back(
      {"power_two", is_op("power")(x, c), [=](const DFMatch& m, const CallNode& root) -> Expr {
         if (!is_floating(m[x]) || !is_uniform(m[c], 2) || !unchanged(m[x], m[c])) {
           return nullptr;
         }
         return make_call("multiply", {m[x], m[x]}, {}, root);
       }});
}

void add_choices(std::vector<Rule>& rules) {
  DFPattern c = wildcard(), x = wildcard(), y = wildcard();
  rules.push_back({"where_constant", is_op("where")(c, x, y),
                   [=](const DFMatch& m, const CallNode&) -> Expr {
                     auto v = uniform(m[c]);
                     if (!v) return nullptr;
                     const Expr& taken = *v != 0 ? m[x] : m[y];
                     return static_shape(taken) ? taken : nullptr;
                   },
                   true});
  rules.push_back(
      {"where_same", is_op("where")(c, x, x),
       [=](const DFMatch& m, const CallNode&) { return static_shape(m[x]) ? m[x] : Expr(); },
       true});
}

}  // namespace

std::vector<Rule> arithmetic_rules() {
  std::vector<Rule> rules;
  add_neutral_operands(rules);
  add_repetitions(rules);
  add_limits(rules);
  add_constants(rules);
  add_choices(rules);
  return rules;
}

}  // namespace relay::simplify
