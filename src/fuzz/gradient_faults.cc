// Faults of derivatives: rules of operators that say another slope than the operator has, and
// programs in which adjoints go astray.
//
// A wrong rule is planted in the program that is differentiated: a call f(x) becomes
// g(x) + stop_gradient(f(x) - g(x)), whose value is that of f and whose slope is that of g. The rules
// of the registry stay as they are.
#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "driver/compile.h"
#include "fuzz/faults.h"
#include "fuzz/gradients.h"
#include "fuzz/module_edits.h"
#include "ir/op.h"
#include "types/infer.h"

namespace relay::fuzz {
namespace {

const CallNode* call_of(const Expr& e, std::initializer_list<std::string_view> ops) {
  const OpNode* op = called_op(e);
  const bool found = op != nullptr && std::ranges::find(ops, op->name) != ops.end();
  return found ? as<CallNode>(e) : nullptr;
}

bool is_double(const Expr& e) {
  auto* t = as<TensorTypeNode>(e->type);
  return t != nullptr && t->dtype == DType::Float(64);
}

Expr stopped(const Expr& e) { return call("stop_gradient", {e}); }

// The value of one expression with the slope of another; null where they cannot be added.
Expr with_slope_of(const Expr& value, const Expr& slope) {
  if (!slope || !is_double(value) || !same_type(value, slope)) return nullptr;
  return call("add", {slope, stopped(call("subtract", {value, slope}))});
}

// The call with an operand that passes nothing back.
Expr stops_at(const CallNode& c, size_t operand) {
  if (operand >= c.args.size() || !is_double(c.args[operand])) return nullptr;
  std::vector<Expr> args = c.args;
  args[operand] = stopped(args[operand]);
  return with_args(c, std::move(args));
}

// What a mode gives of a program in which rules are wrong.
template <const Pass& mode>
Module derived(const Module& before, const Module& after, const Edit& wrong_rule) {
  Module spoiled = edited(before, wrong_rule);
  if (spoiled == before) return after;
  CompileOptions options;
  PassContext ctx = pass_context(options);
  return mode.run(infer_types(spoiled), ctx);
}

// ---- Rules -------------------------------------------------------------------------------------

template <const Pass& mode>
Module forgets_the_second_factor(const Module& before, const Module& after) {
  return derived<mode>(before, after, [](const Expr& e) -> Expr {
    auto* c = call_of(e, {"multiply"});
    return c != nullptr ? stops_at(*c, 1) : nullptr;
  });
}

template <const Pass& mode>
Module forgets_the_inner_slope(const Module& before, const Module& after) {
  return derived<mode>(before, after, [](const Expr& e) -> Expr {
    auto* c = call_of(e, {"exp", "log", "sqrt", "tanh", "sigmoid", "sin", "cos", "erf", "atan"});
    return c != nullptr ? with_slope_of(e, c->args[0]) : nullptr;
  });
}

Module adds_what_is_subtracted(const Module& before, const Module& after) {
  return derived<kReverseMode>(before, after, [](const Expr& e) -> Expr {
    auto* c = call_of(e, {"subtract"});
    return c != nullptr ? with_slope_of(e, call("add", c->args)) : nullptr;
  });
}

Module forgets_the_divisor(const Module& before, const Module& after) {
  return derived<kReverseMode>(before, after, [](const Expr& e) -> Expr {
    auto* c = call_of(e, {"divide"});
    return c != nullptr ? stops_at(*c, 1) : nullptr;
  });
}

Module passes_through_what_is_cut(const Module& before, const Module& after) {
  return derived<kReverseMode>(before, after, [](const Expr& e) -> Expr {
    auto* c = call_of(e, {"nn.relu", "clip", "abs", "nn.leaky_relu"});
    return c != nullptr ? with_slope_of(e, c->args[0]) : nullptr;
  });
}

Module gives_to_the_smaller(const Module& before, const Module& after) {
  return derived<kReverseMode>(before, after, [](const Expr& e) -> Expr {
    auto* c = call_of(e, {"maximum", "minimum"});
    if (c == nullptr) return nullptr;
    const bool maximum = called_op(e)->name == "maximum";
    return with_slope_of(e, call(maximum ? "minimum" : "maximum", c->args));
  });
}

Module gives_to_the_other_side(const Module& before, const Module& after) {
  return derived<kReverseMode>(before, after, [](const Expr& e) -> Expr {
    auto* c = call_of(e, {"where"});
    if (c == nullptr) return nullptr;
    return with_slope_of(e, with_args(*c, {c->args[0], c->args[2], c->args[1]}));
  });
}

Module forgets_to_divide_by_the_count(const Module& before, const Module& after) {
  return derived<kReverseMode>(before, after, [](const Expr& e) -> Expr {
    auto* c = call_of(e, {"mean"});
    return c != nullptr ? with_slope_of(e, call("sum", c->args, c->attrs)) : nullptr;
  });
}

Module gives_to_all_and_not_the_largest(const Module& before, const Module& after) {
  return derived<kReverseMode>(before, after, [](const Expr& e) -> Expr {
    auto* c = call_of(e, {"max", "min"});
    return c != nullptr ? with_slope_of(e, call("mean", c->args, c->attrs)) : nullptr;
  });
}

Module forgets_weights(const Module& before, const Module& after) {
  return derived<kReverseMode>(before, after, [](const Expr& e) -> Expr {
    auto* c = call_of(e, {"nn.dense", "nn.matmul", "nn.batch_matmul", "nn.conv2d",
                          "nn.conv2d_transpose", "nn.conv1d"});
    return c != nullptr ? stops_at(*c, 1) : nullptr;
  });
}

Module forgets_what_the_sum_takes(const Module& before, const Module& after) {
  return derived<kReverseMode>(before, after, [](const Expr& e) -> Expr {
    auto* c = call_of(e, {"nn.softmax", "nn.log_softmax"});
    return c != nullptr ? with_slope_of(e, c->args[0]) : nullptr;
  });
}

// Rows that are taken, cut out or shifted, as if the first had been the last.
Module gives_to_mirrored_rows(const Module& before, const Module& after) {
  return derived<kReverseMode>(before, after, [](const Expr& e) -> Expr {
    auto* c = call_of(e, {"take", "strided_slice", "gather", "gather_nd", "dyn.strided_slice"});
    auto* t = c == nullptr ? nullptr : as<TensorTypeNode>(c->args[0]->type);
    if (t == nullptr || t->rank() == 0 || !is_double(c->args[0])) return nullptr;
    std::vector<Expr> args = c->args;
    auto attrs = make_attrs(*OpRegistry::global().get("reverse")->row->attrs,
                            {{"axis", AttrValue(int64_t{0})}}, "reverse", {});
    args[0] = call("reverse", {args[0]}, attrs);
    return with_slope_of(e, with_args(*c, std::move(args)));
  });
}

Module gives_to_neighbours(const Module& before, const Module& after) {
  return derived<kReverseMode>(before, after, [](const Expr& e) -> Expr {
    auto* c = call_of(e, {"concatenate", "stack"});
    auto* t = c == nullptr ? nullptr : as<TupleNode>(c->args[0]);
    auto fields = t == nullptr ? std::nullopt : swapped(t->fields);
    return fields ? with_slope_of(e, with_args(*c, {tuple(*fields)})) : nullptr;
  });
}

Module forgets_to_permute(const Module& before, const Module& after) {
  return derived<kReverseMode>(before, after, [](const Expr& e) -> Expr {
    auto* c = call_of(e, {"transpose", "reverse"});
    return c != nullptr ? with_slope_of(e, c->args[0]) : nullptr;
  });
}

// ---- Programs ----------------------------------------------------------------------------------

// What is used twice gets the adjoint of one use.
Module counts_one_use(const Module& before, const Module& after) {
  return derived<kReverseMode>(before, after, [](const Expr& e) -> Expr {
    auto* c = as<CallNode>(e);
    if (c == nullptr || called_op(e) == nullptr || c->args.size() != 2) return nullptr;
    const bool twice = c->args[0] == c->args[1] && isa<VarNode>(c->args[0]);
    return twice ? stops_at(*c, 1) : nullptr;
  });
}

// A value that is written to a reference passes nothing back.
Module forgets_what_was_written(const Module& before, const Module& after) {
  return derived<kReverseMode>(before, after, [](const Expr& e) -> Expr {
    auto* w = as<RefWriteNode>(e);
    return w != nullptr && is_double(w->value) ? Expr(ref_write(w->ref, stopped(w->value)))
                                               : nullptr;
  });
}

// Adjoints stop at calls of functions that call themselves.
Module stops_at_calls(const Module& before, const Module& after) {
  return derived<kReverseMode>(before, after, [](const Expr& e) -> Expr {
    auto* c = as<CallNode>(e);
    const bool own = c != nullptr && (isa<VarNode>(c->op) || isa<GlobalVarNode>(c->op));
    if (!own) return nullptr;
    for (size_t i = 0; i < c->args.size(); ++i) {
      if (Expr out = stops_at(*c, i)) return out;
    }
    return nullptr;
  });
}

// The parts of a constructor get their adjoints in another order.
Module forgets_parts_of_data(const Module& before, const Module& after) {
  return derived<kReverseMode>(before, after, [](const Expr& e) -> Expr {
    auto* c = as<CallNode>(e);
    return c != nullptr && isa<ConstructorNode>(c->op) ? stops_at(*c, 0) : nullptr;
  });
}

Module gives_to_other_parameters(const Module&, const Module& after) {
  return edited(after, [](const Expr& e) -> Expr {
    auto* t = as<TupleNode>(e);
    auto fields = t == nullptr ? std::nullopt : swapped(t->fields);
    return fields ? Expr(tuple(*fields, t->span)) : nullptr;
  });
}

constexpr Fault kGradientFaults[] = {
    {"forgets_the_second_factor", "ReverseMode", "Only one factor of a product has an adjoint.",
     forgets_the_second_factor<kReverseMode>},
    {"forgets_the_inner_slope", "ReverseMode", "The slope of a function of one number is left out.",
     forgets_the_inner_slope<kReverseMode>},
    {"forgets_a_tangent", "ForwardMode", "Only one factor of a product has a tangent.",
     forgets_the_second_factor<kForwardMode>},
    {"forgets_the_slope_of_a_tangent", "ForwardMode",
     "The slope of a function of one number is left out.", forgets_the_inner_slope<kForwardMode>},
    {"adds_what_is_subtracted", "ReverseMode", "The sign of what is subtracted is lost.",
     adds_what_is_subtracted},
    {"forgets_the_divisor", "ReverseMode", "A divisor is taken for a constant.",
     forgets_the_divisor},
    {"passes_through_what_is_cut", "ReverseMode",
     "What is cut off at a bound, or turned round, gets the adjoint as it is.",
     passes_through_what_is_cut},
    {"gives_to_the_smaller", "ReverseMode", "The comparison of a maximum is the wrong way round.",
     gives_to_the_smaller},
    {"gives_to_the_other_side", "ReverseMode", "The condition of a choice is negated.",
     gives_to_the_other_side},
    {"forgets_to_divide_by_the_count", "ReverseMode", "A mean is taken for a sum.",
     forgets_to_divide_by_the_count},
    {"gives_to_all_and_not_the_largest", "ReverseMode", "A maximum is taken for a mean.",
     gives_to_all_and_not_the_largest},
    {"forgets_weights", "ReverseMode", "The second operand of a contraction has no adjoint.",
     forgets_weights},
    {"forgets_what_the_sum_takes", "ReverseMode", "A softmax is taken for its exponent alone.",
     forgets_what_the_sum_takes},
    {"gives_to_mirrored_rows", "ReverseMode", "Adjoints of rows are counted from the end.",
     gives_to_mirrored_rows},
    {"gives_to_neighbours", "ReverseMode", "Parts of a whole get each other's adjoints.",
     gives_to_neighbours},
    {"forgets_to_permute", "ReverseMode", "The adjoint of a transpose of a square is not turned.",
     forgets_to_permute},
    {"counts_one_use", "ReverseMode", "An adjoint overwrites the one that is there.",
     counts_one_use},
    {"forgets_what_was_written", "ReverseMode", "A reference has a cell of its own.",
     forgets_what_was_written},
    {"stops_at_calls", "ReverseMode", "A function gets no cells for its arguments.",
     stops_at_calls},
    {"forgets_parts_of_data", "ReverseMode", "A constructor makes new cells for its parts.",
     forgets_parts_of_data},
    {"gives_to_other_parameters", "ReverseMode", "Gradients are in another order than parameters.",
     gives_to_other_parameters},
};

}  // namespace

std::span<const Fault> gradient_faults() { return kGradientFaults; }

}  // namespace relay::fuzz
