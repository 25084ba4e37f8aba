// SimplifyExpr's rules for numbers, bits and truth values.
#include <cmath>

#include "ir/op.h"
#include "node/structural.h"
#include "passes/simplify/rules/rule.h"

namespace relay::simplify {

std::optional<double> uniform(const Expr& e) {
  if (is_call_to(e, "zeros")) return 0;
  if (is_call_to(e, "ones")) return 1;
  if (is_call_to(e, "full")) {
    const Expr& value = as<CallNode>(e)->args[0];
    bool converts = tensor_of(value)->dtype != tensor_of(e)->dtype;
    return converts || !isa<ConstantNode>(value) ? std::nullopt : uniform(value);
  }
  // Constants with more elements are not searched.
  constexpr int64_t kMaxSearched = 1 << 16;
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

namespace {

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

// What `uniform` may answer for.
DFPattern is_filled() {
  return is_constant() | is_any_op({"zeros", "ones"})(std::vector<DFPattern>{}) |
         is_op("full")(is_constant());
}

// op(x, c) is x when every element of c is `value`, for dtypes that `when` accepts.
Rule neutral(std::string_view name, std::string op, double value, bool commutes,
             bool (*when)(const Expr&)) {
  DFPattern x = wildcard(), c = is_filled();
  DFPattern pattern = commutes ? either_order(is_op(op), x, c) : is_op(op)(x, c);
  return {name, pattern, [=](const DFMatch& m, const CallNode&) -> Expr {
            return when(m[x]) && is_uniform(m[c], value) ? unchanged(m[x], m[c]) : nullptr;
          }};
}

bool always(const Expr&) { return true; }

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
  auto of_two = [](const OpInfo& row) { return row.algebra.idempotent && row.args.size() == 2; };
  auto of_one = [](const OpInfo& row) { return row.algebra.idempotent && row.args.size() == 1; };
  auto undone = [](const OpInfo& row) { return row.algebra.involution; };
  auto rounds = [](const OpInfo& row) { return row.algebra.rounds; };
  DFPattern inner = is_op_where(of_one)(x), twice = is_op_where(undone)(x),
            rounded = is_op_where(rounds)(x);
  auto repeats = [](const Expr& e, const CallNode& root) {
    auto& c = *as<CallNode>(e);
    return c.op == root.op && (c.attrs == root.attrs || structural_equal(c.attrs, root.attrs));
  };
  rules.push_back(
      {"involution", is_op_where(undone)(twice), [=](const DFMatch& m, const CallNode& root) {
         return repeats(m[twice], root) ? m[x] : Expr();
       }});
  rules.push_back(
      {"idempotent", is_op_where(of_one)(inner), [=](const DFMatch& m, const CallNode& root) {
         return repeats(m[inner], root) ? m[inner] : Expr();
       }});
  rules.push_back({"abs_negative", is_op("abs")(is_op("negative")(x)),
                   [=](const DFMatch& m, const CallNode& root) {
                     // Of unsigned numbers the negative wraps, and is its own magnitude.
                     const bool is_signed = tensor_of(m[x]) && !tensor_of(m[x])->dtype.is_uint();
                     return is_signed ? make_call("abs", {m[x]}, {}, root) : Expr();
                   }});
  rules.push_back({"round_rounded", is_op_where(rounds)(rounded),
                   [=](const DFMatch& m, const CallNode&) { return m[rounded]; }});
  rules.push_back({"round_integer", is_op_where(rounds)(x), [=](const DFMatch& m, const CallNode&) {
                     return is_integer(m[x]) ? m[x] : Expr();
                   }});
  rules.push_back({"same_operands", is_op_where(of_two)(x, x),
                   [=](const DFMatch& m, const CallNode&) { return m[x]; }});
  rules.push_back(
      {"copy", is_op("copy")(x), [=](const DFMatch& m, const CallNode&) { return m[x]; }});
}

void add_comparisons(std::vector<Rule>& rules) {
  DFPattern x = wildcard(), y = wildcard();
  // NaN is neither less nor greater nor equal: only equality can be turned round for floats.
  auto opposite = [&](std::string op, std::string_view other, bool (*when)(const Expr&)) {
    rules.push_back(
        {other, is_op("logical_not")(is_op(op)(x, y)), [=](const DFMatch& m, const CallNode& root) {
           return when(m[x]) ? make_call(other, {m[x], m[y]}, {}, root) : Expr();
         }});
  };
  opposite("equal", "not_equal", always);
  opposite("not_equal", "equal", always);
  opposite("less", "greater_equal", is_integer);
  opposite("greater_equal", "less", is_integer);
  opposite("greater", "less_equal", is_integer);
  opposite("less_equal", "greater", is_integer);
  // x against itself is known but for NaN.
  for (bool holds : {false, true}) {
    DFPattern op =
        is_op_where([holds](const OpInfo& row) { return row.algebra.of_itself == holds; });
    rules.push_back({holds ? "holds_of_itself" : "never_holds_of_itself", op(x, x),
                     [=](const DFMatch& m, const CallNode& root) -> Expr {
                       auto shape = static_shape(m[x]);
                       if (is_floating(m[x]) || !shape) return nullptr;
                       return make_call(holds ? "ones" : "zeros", {},
                                        {{"shape", to_value(*shape)}, {"dtype", AttrValue("bool")}},
                                        root);
                     },
                     true});
  }
}

void add_signs(std::vector<Rule>& rules) {
  DFPattern x = wildcard(), y = wildcard(), c = is_filled();
  DFPattern minus_y = is_op("negative")(y);
  rules.push_back({"add_negative", either_order(is_op("add"), x, minus_y),
                   [=](const DFMatch& m, const CallNode& root) {
                     // Truth values are added, but not subtracted.
                     return is_bool(m[y]) ? Expr() : make_call("subtract", {m[x], m[y]}, {}, root);
                   }});
  rules.push_back({"subtract_negative", is_op("subtract")(x, minus_y),
                   [=](const DFMatch& m, const CallNode& root) {
                     return make_call("add", {m[x], m[y]}, {}, root);
                   }});
  // Of equal floats either difference is 0.0, not -0.0.
  rules.push_back(
      {"negative_subtract", is_op("negative")(is_op("subtract")(x, y)),
       [=](const DFMatch& m, const CallNode& root) {
         return is_integer(m[x]) ? make_call("subtract", {m[y], m[x]}, {}, root) : Expr();
       }});
  rules.push_back({"multiply_negatives", is_op("multiply")(is_op("negative")(x), minus_y),
                   [=](const DFMatch& m, const CallNode& root) {
                     return make_call("multiply", {m[x], m[y]}, {}, root);
                   }});
  rules.push_back({"multiply_minus_one", either_order(is_op("multiply"), x, c),
                   [=](const DFMatch& m, const CallNode& root) -> Expr {
                     if (!is_uniform(m[c], -1) || !unchanged(m[x], m[c])) return nullptr;
                     return make_call("negative", {m[x]}, {}, root);
                   }});
  rules.push_back({"subtract_itself", is_any_op({"subtract", "bitwise_xor"})(x, x),
                   [=](const DFMatch& m, const CallNode& root) -> Expr {
                     auto shape = static_shape(m[x]);
                     if (!is_integer(m[x]) || !shape) return nullptr;  // inf - inf is NaN
                     return make_call("zeros", {},
                                      {{"shape", to_value(*shape)},
                                       {"dtype", AttrValue(tensor_of(m[x])->dtype.to_string())}},
                                      root);
                   },
                   true});
}

// The interval that both clips leave; null when they have no number in common or when it depends on
// the order whether a bound is 0.0 or -0.0.
Expr clip_both(const Expr& x, double low, double high, double other_low, double other_high,
               const CallNode& root) {
  double a = std::max(low, other_low), b = std::min(high, other_high);
  auto* type = as<TensorTypeNode>(root.type);
  if (type == nullptr) return nullptr;
  if (!type->dtype.is_floating()) {
    // Between 0.5 and 0.5 lies no whole number.
    a = std::ceil(a);
    b = std::floor(b);
  }
  auto mixed = [](double p, double q) {
    return p == 0 && q == 0 && std::signbit(p) != std::signbit(q);
  };
  if (!(a <= b) || mixed(low, other_low) || mixed(high, other_high)) return nullptr;
  return make_call("clip", {x}, {{"a_min", AttrValue(a)}, {"a_max", AttrValue(b)}}, root);
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
  rules.push_back(
      {"relu_clip", is_op("nn.relu")(clipped), [=](const DFMatch& m, const CallNode& root) {
         auto& inner = *as<CallNode>(m[clipped]);
         double low = float_attr(inner, "a_min"), high = float_attr(inner, "a_max");
         if (high < 0 || std::signbit(high)) return Expr();
         return clip_both(m[x], low, high, 0.0, HUGE_VAL, root);
       }});
  rules.push_back({"clip_nothing", clipped, [=](const DFMatch& m, const CallNode& root) {
                     return covers(float_attr(root, "a_min"), float_attr(root, "a_max"),
                                   tensor_of(m[x])->dtype)
                                ? m[x]
                                : Expr();
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
                                       {"dtype", AttrValue(tensor_of(m[x])->dtype.to_string())}},
                                      root);
                   },
                   true});
  rules.push_back({"power_zero", is_op("power")(x, c),
                   [=](const DFMatch& m, const CallNode& root) -> Expr {
                     auto shape = static_shape(Expr(&root));
                     // One for every x, NaN too.
                     if (!is_floating(m[x]) || !(uniform(m[c]) == 0.0) || !shape) return nullptr;
                     return make_call("ones", {},
                                      {{"shape", to_value(*shape)},
                                       {"dtype", AttrValue(tensor_of(m[x])->dtype.to_string())}},
                                      root);
                   },
                   true});
  // Both compute the quotient of the rounded root; narrower floats round it once only.
  rules.push_back({"rsqrt", is_op("divide")(c, is_op("sqrt")(x)),
                   [=](const DFMatch& m, const CallNode& root) -> Expr {
                     DType dtype = tensor_of(m[x])->dtype;
                     if (!is_uniform(m[c], 1) || !(dtype.is_float(32) || dtype.is_float(64)) ||
                         !unchanged(m[x], m[c])) {
                       return nullptr;
                     }
                     return make_call("rsqrt", {m[x]}, {}, root);
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
  rules.push_back({"where_same", is_op("where")(c, x, x),
                   [=](const DFMatch& m, const CallNode& root) {
                     return same_shape(m[x]->type, root.type) ? m[x] : Expr();
                   },
                   true});
  rules.push_back({"where_not", is_op("where")(is_op("logical_not")(c), x, y),
                   [=](const DFMatch& m, const CallNode& root) {
                     return make_call("where", {m[c], m[y], m[x]}, {}, root);
                   }});
}

}  // namespace

bool covers(double low, double high, DType dtype) {
  if (dtype.is_floating()) return low == -HUGE_VAL && high == HUGE_VAL;
  double least = dtype.is_int() ? -std::ldexp(1.0, dtype.bits - 1) : 0;
  double beyond = std::ldexp(1.0, dtype.is_int() ? dtype.bits - 1 : dtype.bits);
  // The greatest of 64 bits is no double.
  return low <= least && high >= (dtype.bits < 64 ? beyond - 1 : beyond);
}

std::vector<Rule> arithmetic_rules() {
  std::vector<Rule> rules;
  add_neutral_operands(rules);
  add_repetitions(rules);
  add_comparisons(rules);
  add_signs(rules);
  add_limits(rules);
  add_constants(rules);
  add_choices(rules);
  return rules;
}

}  // namespace relay::simplify
