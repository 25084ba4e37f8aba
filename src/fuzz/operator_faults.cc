// Faults of passes over Relay that replace operators: well-typed programs that compute something
// else.
#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_set>

#include "fuzz/faults.h"
#include "fuzz/module_edits.h"
#include "ir/devices.h"
#include "ir/external.h"
#include "ir/op.h"
#include "node/structural.h"
#include "node/walk.h"

namespace relay::fuzz {
namespace {

bool is_one_of(const Expr& e, std::initializer_list<std::string_view> ops) {
  const OpNode* op = called_op(e);
  return op != nullptr && std::find(ops.begin(), ops.end(), op->name) != ops.end();
}

// ---- Arithmetic --------------------------------------------------------------------------------

// Constants that the pass made: `spoil` writes into a copy.
Module spoil_new_constants(const Module& before, const Module& after,
                           const std::function<void(const Tensor&)>& spoil) {
  std::unordered_set<const void*> old;
  visit(before, [&](const Node& n) {
    if (auto* c = as<ConstantNode>(&n)) old.insert(c->data.data());
  });
  return edited(after, [&](const Expr& e) -> Expr {
    auto* c = as<ConstantNode>(e);
    if (c == nullptr || old.contains(c->data.data()) || c->data.num_elements() == 0) return nullptr;
    Tensor data = c->data.copy();
    spoil(data);
    return constant(data, c->span, c->name_hint);
  });
}

Module folds_wrong_last_element(const Module& before, const Module& after) {
  return spoil_new_constants(before, after, [](const Tensor& t) {
    const int64_t last = t.num_elements() - 1;
    t.set_from_double(last,
                      t.dtype().is_bool() ? 1 - t.get_as_double(last) : t.get_as_double(last) + 1);
  });
}

Module folds_without_sign(const Module& before, const Module& after) {
  return spoil_new_constants(before, after, [](const Tensor& t) {
    for (int64_t i = 0; i < t.num_elements(); ++i)
      t.set_from_double(i, std::abs(t.get_as_double(i)));
  });
}

Module swaps_operands(const Module& before, const Module&) {
  return edited(before, [](const Expr& e) -> Expr {
    if (!is_one_of(e, {"subtract", "divide", "power", "floor_divide", "mod", "less", "greater",
                       "less_equal", "greater_equal", "left_shift", "right_shift"})) {
      return nullptr;
    }
    return swap_args(*as<CallNode>(e));
  });
}

Module takes_less_for_less_equal(const Module& before, const Module&) {
  return edited(before, [](const Expr& e) -> Expr {
    if (is_one_of(e, {"less"})) return call("less_equal", as<CallNode>(e)->args);
    if (is_one_of(e, {"less_equal"})) return call("less", as<CallNode>(e)->args);
    return nullptr;
  });
}

// f(f(x)) -> f(x), which holds for relu and not for exp.
Module takes_operators_for_idempotent(const Module& before, const Module&) {
  return edited(before, [](const Expr& e) -> Expr {
    const OpNode* op = called_op(e);
    auto* outer = as<CallNode>(e);
    if (op == nullptr || outer->args.size() != 1 || called_op(outer->args[0]) != op) return nullptr;
    return same_type(e, outer->args[0]) ? outer->args[0] : nullptr;
  });
}

// cast(cast(x, A), B) -> cast(x, B), also where A holds less than x.
Module merges_casts(const Module& before, const Module&) {
  return edited(before, [](const Expr& e) -> Expr {
    if (!is_one_of(e, {"cast"})) return nullptr;
    auto* outer = as<CallNode>(e);
    if (!is_one_of(outer->args[0], {"cast"})) return nullptr;
    return with_args(*outer, {as<CallNode>(outer->args[0])->args[0]});
  });
}

// f(x) -> x for every operator whose result has the type of its only operand.
Module drops(const Module& mod, std::initializer_list<std::string_view> ops) {
  return edited(mod, [&](const Expr& e) -> Expr {
    if (!is_one_of(e, ops)) return nullptr;
    const Expr& x = as<CallNode>(e)->args[0];
    return same_type(e, x) ? x : nullptr;
  });
}

Module drops_transposes(const Module& before, const Module&) {
  return drops(before, {"transpose", "reverse", "layout_transform"});
}

Module takes_clipping_for_nothing(const Module& before, const Module&) {
  return drops(before, {"clip", "nn.relu", "abs", "nn.leaky_relu"});
}

// ---- Sharing -----------------------------------------------------------------------------------

// Merges operator calls for which `same` holds, as if they were one. `same` sees to it that the
// operands of the first are in scope at the second.
Module merge_calls(const Module& mod,
                   const std::function<bool(const CallNode& a, const CallNode& b)>& same) {
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    std::vector<Call> seen;
    auto post = [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
      auto* c = as<CallNode>(rebuilt);
      if (c == nullptr || !isa<OpNode>(c->op)) return rebuilt;
      for (const Call& other : seen) {
        if (same_type(other, ref(*c)) && same(*other, *c)) return other;
      }
      seen.push_back(ref(*c));
      return rebuilt;
    };
    return cast<FunctionNode>(rewrite(f, post, family::program));
  });
}

Module merges_calls_of_swapped_operands(const Module& before, const Module&) {
  return merge_calls(before, [](const CallNode& a, const CallNode& b) {
    return a.op == b.op && a.args.size() == 2 && b.args.size() == 2 && a.args != b.args &&
           a.args[0] == b.args[1] && a.args[1] == b.args[0];
  });
}

Module merges_calls_by_first_operand(const Module& before, const Module&) {
  return merge_calls(before, [](const CallNode& a, const CallNode& b) {
    return a.op == b.op && a.args.size() == 2 && b.args.size() == 2 && a.args[0] == b.args[0] &&
           a.args[1] != b.args[1] && isa<ConstantNode>(a.args[1]);
  });
}

Module merges_calls_with_other_attributes(const Module& before, const Module&) {
  return merge_calls(before, [](const CallNode& a, const CallNode& b) {
    return a.op == b.op && a.args == b.args && !structural_equal(a.attrs, b.attrs);
  });
}

// What becomes of the operator calls that the pass made.
Module edit_new_calls(const Module& before, const Module& after,
                      const std::function<Expr(const CallNode&, std::string_view op)>& edit) {
  std::unordered_set<const Node*> old;
  visit(before, [&](const Node& n) { old.insert(&n); });
  return edited(after, [&](const Expr& e) -> Expr {
    const OpNode* op = called_op(e);
    return op == nullptr || old.contains(e.get()) ? nullptr : edit(*as<CallNode>(e), op->name);
  });
}

// ---- Convolutions ------------------------------------------------------------------------------

Module keeps_the_old_layout(const Module&, const Module& after) {
  return drops(after, {"layout_transform"});
}

// f(x, w) -> f(x, reverse(w)), of the calls that the pass made.
Module mirrors_weights(const Module& before, const Module& after, std::string_view name,
                       size_t operand) {
  return edit_new_calls(before, after, [&](const CallNode& c, std::string_view op) -> Expr {
    if (op != name) return nullptr;
    std::vector<Expr> args = c.args;
    const OpNode& reverse = *OpRegistry::global().get("reverse");
    args[operand] =
        call("reverse", {args[operand]},
             make_attrs(*reverse.row->attrs, {{"axis", AttrValue(int64_t{2})}}, "reverse", {}));
    return with_args(c, std::move(args));
  });
}

Module stacks_windows_backwards(const Module& before, const Module& after) {
  return edit_new_calls(before, after, [](const CallNode& c, std::string_view op) -> Expr {
    if (op != "stack") return nullptr;
    const OpNode& reverse = *OpRegistry::global().get("reverse");
    return call("reverse", {call(c.op, c.args, c.attrs)},
                make_attrs(*reverse.row->attrs, {{"axis", AttrValue(int64_t{1})}}, "reverse", {}));
  });
}

Module mirrors_taps(const Module& before, const Module& after) {
  return mirrors_weights(before, after, "nn.conv2d", 1);
}

Module packs_weights_mirrored(const Module& before, const Module& after) {
  return mirrors_weights(before, after, "layout_transform", 0);
}

Module rearranges_backwards(const Module& before, const Module& after) {
  return edit_new_calls(before, after, [](const CallNode& c, std::string_view op) -> Expr {
    if (op != "transpose") return nullptr;
    const OpNode& reverse = *OpRegistry::global().get("reverse");
    return call("reverse", {call(c.op, c.args, c.attrs)},
                make_attrs(*reverse.row->attrs, {{"axis", AttrValue(int64_t{0})}}, "reverse", {}));
  });
}

// f(x, w * s) + b * s -> f(x, w * s) + b
Module leaves_biases_unscaled(const Module& before, const Module& after) {
  return edit_new_calls(before, after, [](const CallNode& c, std::string_view op) -> Expr {
    if (op != "add" || !is_call_to(c.args[1], "multiply")) return nullptr;
    return with_args(c, {c.args[0], as<CallNode>(c.args[1])->args[0]});
  });
}

// ---- Operators that are replaced ----------------------------------------------------------------

// The call with other attributes; null where these give another type, or are refused.
Expr with_attr_values(const CallNode& c, const std::map<std::string, AttrValue>& changes) {
  auto values = attr_values(c.attrs);
  for (auto& [name, value] : values) {
    if (auto change = changes.find(name); change != changes.end()) value = change->second;
  }
  const OpInfo& row = *as<OpNode>(c.op)->row;
  try {
    Call out = call(c.op, c.args, make_attrs(*row.attrs, values, row.name, c.span), c.span);
    return same_type(out, ref(c)) ? Expr(out) : nullptr;
  } catch (const UserError&) {
    return nullptr;
  }
}

Module multiplies_by_divisors(const Module& before, const Module& after) {
  return spoil_new_constants(before, after, [](const Tensor& t) {
    for (int64_t i = 0; i < t.num_elements(); ++i) t.set_from_double(i, 1 / t.get_as_double(i));
  });
}

Module takes_another_approximation(const Module& before, const Module& after) {
  return edit_new_calls(before, after, [](const CallNode& c, std::string_view op) -> Expr {
    if (op == "fast_erf") return call("fast_tanh", c.args);
    return op == "fast_tanh" ? Expr(call("fast_erf", c.args)) : nullptr;
  });
}

Module joins_in_another_order(const Module& before, const Module& after) {
  return edit_new_calls(before, after, [](const CallNode& c, std::string_view op) -> Expr {
    auto* parts = op == "concatenate" ? as<TupleNode>(c.args[0]) : nullptr;
    if (parts == nullptr || parts->fields.front()->type != parts->fields.back()->type)
      return nullptr;
    std::vector<Expr> fields(parts->fields.rbegin(), parts->fields.rend());
    return call(c.op, {tuple(std::move(fields))}, c.attrs);
  });
}

Module slices_from_the_first(const Module& before, const Module& after) {
  return edit_new_calls(before, after, [](const CallNode& c, std::string_view op) -> Expr {
    if (op != "strided_slice") return nullptr;
    const AttrValue begin = attr_value(c.attrs, "begin"), end = attr_value(c.attrs, "end");
    ValueList lengths = *end.get_if<ValueList>(), zeros;
    for (size_t i = 0; i < lengths.size(); ++i) {
      auto *last = lengths[i].get_if<int64_t>(),
           *first = (*begin.get_if<ValueList>())[i].get_if<int64_t>();
      if (last == nullptr || first == nullptr) return nullptr;
      lengths[i] = *last - *first;
      zeros.emplace_back(int64_t{0});
    }
    return with_attr_values(c, {{"begin", AttrValue(zeros)}, {"end", AttrValue(lengths)}});
  });
}

Module pads_the_other_side(const Module& before, const Module& after) {
  return edit_new_calls(before, after, [](const CallNode& c, std::string_view op) -> Expr {
    if (op != "nn.conv2d") return nullptr;
    const AttrValue padding = attr_value(c.attrs, "padding");
    ValueList ends = *padding.get_if<ValueList>();
    if (ends.size() != 4) return nullptr;
    std::rotate(ends.begin(), ends.begin() + 2, ends.end());
    return with_attr_values(c, {{"padding", AttrValue(ends)}});
  });
}

Module adds_the_mean(const Module& before, const Module& after) {
  return edit_new_calls(before, after, [](const CallNode& c, std::string_view op) -> Expr {
    return op == "negative" ? c.args[0] : nullptr;
  });
}

Module transforms_weights_mirrored(const Module& before, const Module& after) {
  return mirrors_weights(before, after, "nn.contrib_conv2d_winograd_weight_transform", 0);
}

Module confuses_flags(const Module&, const Module& after) {
  return edited(after, [](const Expr& e) -> Expr {
    const OpNode* op = called_op(e);
    auto* c = as<CallNode>(e);
    if (op == nullptr || !c->attrs) return nullptr;
    for (const auto& [name, value] : attr_values(c->attrs)) {
      if (auto* flag = value.get_if<bool>()) {
        if (Expr other = with_attr_values(*c, {{name, AttrValue(!*flag)}})) return other;
      }
    }
    return nullptr;
  });
}

// Weights of the keys that sum to their number instead of one.
Module forgets_to_divide_weights(const Module&, const Module& after) {
  return edited(after, [](const Expr& e) -> Expr {
    if (!is_one_of(e, {"nn.attention"})) return nullptr;
    auto* values = as<TensorTypeNode>(as<CallNode>(e)->args[2]->type);
    const int64_t keys = values->const_shape()->at(2);
    return call("multiply", {e, constant(static_cast<double>(keys), values->dtype)});
  });
}

// ---- Fusion ------------------------------------------------------------------------------------

// What stands inside primitive functions.
Module edit_groups(const Module& mod, const std::function<Expr(const FunctionNode&)>& edit) {
  return edited(mod, [&](const Expr& e) -> Expr {
    auto* f = as<FunctionNode>(e);
    return f != nullptr && f->is_primitive() ? edit(*f) : nullptr;
  });
}

Module loses_the_end_of_groups(const Module&, const Module& after) {
  return edit_groups(after, [](const FunctionNode& f) -> Expr {
    auto* last = as<CallNode>(f.body);
    if (last == nullptr) return nullptr;
    for (const Expr& a : last->args) {
      if (isa<CallNode>(a) && same_type(a, f.body)) {
        return function(f.params, a, f.ret_type, f.type_params, f.attrs, f.span);
      }
    }
    return nullptr;
  });
}

Module swaps_operands_in_groups(const Module&, const Module& after) {
  return edit_groups(after, [](const FunctionNode& f) -> Expr {
    auto* last = as<CallNode>(f.body);
    Expr body = last == nullptr ? nullptr : swap_args(*last);
    return body ? Expr(function(f.params, body, f.ret_type, f.type_params, f.attrs, f.span))
                : nullptr;
  });
}

Module swaps_inputs_of_groups(const Module&, const Module& after) {
  return edited(after, [](const Expr& e) -> Expr {
    auto* c = as<CallNode>(e);
    auto* f = c == nullptr ? nullptr : as<FunctionNode>(c->op);
    return f != nullptr && f->is_primitive() ? swap_args(*c) : nullptr;
  });
}

// A kernel that is new has its inputs in another order.
Module swaps_inputs_of_new_groups(const Module& before, const Module& after) {
  return before == after ? after : swaps_inputs_of_groups(before, after);
}

// ---- External code generators -------------------------------------------------------------------

// Of a call that the pass has made, or has found.
Module swap_operands(const Module& before, const Module& after,
                     const std::function<bool(const CallNode&)>& of) {
  if (before == after) return after;
  return edited(after, [&](const Expr& e) -> Expr {
    auto* c = as<CallNode>(e);
    return c != nullptr && of(*c) ? swap_args(*c) : nullptr;
  });
}

// What is marked as another's operand is this one's.
Module marks_operands_in_another_order(const Module& before, const Module& after) {
  return swap_operands(before, after, [](const CallNode& c) {
    return !c.args.empty() && compiler_begin_of(c.args[0]) != nullptr;
  });
}

Module gives_regions_other_inputs(const Module& before, const Module& after) {
  return swap_operands(before, after, [](const CallNode& c) {
    auto* g = as<GlobalVarNode>(c.op);
    return g != nullptr && g->name_hint.starts_with("tvmgen_");
  });
}

Module binds_parameters_in_another_order(const Module& before, const Module& after) {
  return swap_operands(before, after, [](const CallNode& c) { return isa<OpNode>(c.op); });
}

// What is placed is taken to be what it is computed from.
Module loses_what_is_placed(const Module& before, const Module& after) {
  const Module spoiled = edited(before, [](const Expr& e) -> Expr {
    auto* c = as<CallNode>(e);
    auto* placed = c == nullptr || as_on_device(*c) == nullptr ? nullptr : as<CallNode>(c->args[0]);
    const bool alike = placed != nullptr && isa<OpNode>(placed->op) && !placed->args.empty() &&
                       same_type(placed->args[0], e);
    return alike ? placed->args[0] : nullptr;
  });
  return spoiled == before ? after : spoiled;
}

// A kernel that is told its place is told the first.
Module forgets_places(const Module& before, const Module& after) {
  if (before == after) return after;
  return edited(after, [](const Expr& e) -> Expr {
    auto* c = as<CallNode>(e);
    auto* f = c == nullptr ? nullptr : as<FunctionNode>(c->op);
    if (f == nullptr || !f->is_primitive() || c->args.empty()) return nullptr;
    auto* place = as<ConstantNode>(c->args.back());
    if (place == nullptr || place->data.dtype() != DType::Int(64) || place->data.rank() != 0) {
      return nullptr;
    }
    std::vector<Expr> args = c->args;
    args.back() = constant(Tensor::zeros(DType::Int(64), {}), c->span);
    return call(c->op, std::move(args), c->attrs, c->span, c->type_args);
  });
}

// Of a kernel that runs backwards.
Module swaps_inputs_of_backward_kernels(const Module&, const Module& after) {
  return edited(after, [&](const Expr& e) -> Expr {
    auto* c = as<CallNode>(e);
    auto* f = c == nullptr ? nullptr : as<FunctionNode>(c->op);
    return f != nullptr && f->attrs.contains(attr::kBackward) ? swap_args(*c) : nullptr;
  });
}

// Of a kernel that has several results since.
Module swaps_inputs_of_joined_kernels(const Module& before, const Module& after) {
  return before == after ? after : edited(after, [](const Expr& e) -> Expr {
    auto* c = as<CallNode>(e);
    auto* f = c == nullptr ? nullptr : as<FunctionNode>(c->op);
    return f != nullptr && f->is_primitive() && isa<TupleNode>(f->body) ? swap_args(*c) : nullptr;
  });
}

// As if every tensor that a kernel makes of nothing were written by a loop.
Module omits_fills_that_are_read(const Module&, const Module& after) {
  return edited(after, [](const Expr& e) -> Expr {
    auto* c = as<CallNode>(e);
    auto* f = c == nullptr ? nullptr : as<FunctionNode>(c->op);
    if (f == nullptr || !f->is_primitive() || !c->args.empty() || !isa<TensorTypeNode>(e->type)) {
      return nullptr;
    }
    Dict attrs = f->attrs;
    attrs[attr::kUnwritten] = AttrValue(int64_t{1});
    return call(function(f->params, f->body, f->ret_type, {}, std::move(attrs), f->span), {});
  });
}

// ---- The list ----------------------------------------------------------------------------------

// ---- Quantised programs and half precision -----------------------------------------------------

Module forgets_zero_points(const Module& before, const Module& after) {
  if (before == after) return after;
  return edited(after, [](const Expr& e) -> Expr {
    return is_one_of(e, {"subtract"}) ? as<CallNode>(e)->args[0] : nullptr;
  });
}

Module dequantizes_from_zero(const Module& before, const Module& after) {
  if (before == after) return after;
  return edited(after, [](const Expr& e) -> Expr {
    if (!is_one_of(e, {"qnn.dequantize"})) return nullptr;
    auto* c = as<CallNode>(e);
    if (isa<ConstantNode>(c->args[2])) return nullptr;
    return call(c->op, {c->args[0], c->args[1], constant(0, DType::Int(32))}, c->attrs, c->span);
  });
}

Module loses_the_sign_of_sums(const Module& before, const Module& after) {
  if (before == after) return after;
  return edited(after, [](const Expr& e) -> Expr {
    if (!is_one_of(e, {"cast"})) return nullptr;
    auto* c = as<CallNode>(e);
    if (!is_one_of(c->args[0], {"nn.dense", "nn.conv2d", "nn.matmul", "nn.batch_matmul"}))
      return nullptr;
    return call(c->op, {call("abs", {c->args[0]})}, c->attrs, c->span);
  });
}

constexpr Fault kOperatorFaults[] = {
    {"folds_wrong_last_element", "FoldConstant",
     "The last element of a folded constant is not written.", folds_wrong_last_element},
    {"folds_without_sign", "FoldConstant", "A folded constant goes through an unsigned type.",
     folds_without_sign},
    {"swaps_operands", "SimplifyExpr",
     "Subtraction and its like are put in canonical order as if they commuted.", swaps_operands},
    {"takes_less_for_less_equal", "SimplifyExpr", "A comparison is negated without its equality.",
     takes_less_for_less_equal},
    {"takes_operators_for_idempotent", "SimplifyExpr", "f(f(x)) is taken for f(x).",
     takes_operators_for_idempotent},
    {"merges_casts", "SimplifyExpr", "Of two casts only the outer one is left.", merges_casts},
    {"drops_transposes", "SimplifyExpr", "A transpose of a square is taken for nothing.",
     drops_transposes},
    {"takes_clipping_for_nothing", "SimplifyExpr", "A range is taken to be inside the bounds.",
     takes_clipping_for_nothing},
    {"merges_calls_of_swapped_operands", "EliminateCommonSubexpr",
     "Every operator is taken to commute.", merges_calls_of_swapped_operands},
    {"merges_calls_by_first_operand", "EliminateCommonSubexpr",
     "The hash sees the first operand only.", merges_calls_by_first_operand},
    {"merges_calls_with_other_attributes", "EliminateCommonSubexpr", "Attributes are not compared.",
     merges_calls_with_other_attributes},
    {"keeps_the_old_layout", "ConvertLayout", "A value is taken to be in the new layout already.",
     keeps_the_old_layout},
    {"packs_weights_mirrored", "AlterOpLayout", "Packed rows are in the wrong order.",
     packs_weights_mirrored},
    {"rearranges_backwards", "HoistLayouts", "Lines of what is moved are in the wrong order.",
     rearranges_backwards},
    {"leaves_biases_unscaled", "FoldScaleAxis", "A bias is not scaled with the weights.",
     leaves_biases_unscaled},
    {"mirrors_taps", "SubPixelConvolution", "Taps are in the order of the transposed convolution.",
     mirrors_taps},
    {"stacks_windows_backwards", "Im2Col", "The places of a window are in the opposite order.",
     stacks_windows_backwards},
    {"mirrors_taps_of_parts", "SkipBorder", "Taps of a part are in the opposite order.",
     mirrors_taps},
    {"multiplies_by_divisors", "DivToMul", "The reciprocal is forgotten.", multiplies_by_divisors},
    {"takes_another_approximation", "FastMath", "Rows of the table change places.",
     takes_another_approximation},
    {"joins_in_another_order", "CombineSummands", "One operand's parts are joined backwards.",
     joins_in_another_order},
    {"joins_lines_in_another_order", "CombineUpdates", "Lines are joined backwards.",
     joins_in_another_order},
    {"slices_products_from_the_first", "CombineParallelDense",
     "Every branch gets the first one's columns.", slices_from_the_first},
    {"slices_batches_from_the_first", "CombineParallelBatchMatmul",
     "Every branch gets the first one's columns.", slices_from_the_first},
    {"slices_channels_from_the_first", "CombineParallelConv2D",
     "Every branch gets the first one's channels.", slices_from_the_first},
    {"slices_from_the_first", "DynamicToStatic", "Only the length of a slice is seen.",
     slices_from_the_first},
    {"pads_the_other_side", "FoldExplicitPadding", "Begins and ends of a border are swapped.",
     pads_the_other_side},
    {"adds_the_mean", "SimplifyInference", "A mean is added that is to be subtracted.",
     adds_the_mean},
    {"transforms_weights_mirrored", "WinogradConvolution", "Rows of a window are upside down.",
     transforms_weights_mirrored},
    {"forgets_to_divide_weights", "FuseAttention",
     "The weights of the keys are not divided by their sum.", forgets_to_divide_weights},
    {"marks_operands_in_another_order", "AnnotateTarget", "Two marked operands change places.",
     marks_operands_in_another_order},
    {"joins_regions_by_other_operands", "MergeCompilerRegions",
     "Operands of a region change places when another joins it.", marks_operands_in_another_order},
    {"gives_regions_other_inputs", "PartitionGraph", "Arguments are in the order of the marks.",
     gives_regions_other_inputs},
    {"gives_compiled_regions_other_inputs", "CompileExternalFunctions",
     "Arguments change places when a function is compiled.", gives_regions_other_inputs},
    {"places_kernels_with_other_inputs", "PlaceExternalFunctions",
     "Arguments change places when a function becomes a kernel.", swaps_inputs_of_new_groups},
    {"binds_parameters_in_another_order", "InlineCompilerFunctionsBoundTo",
     "Parameters are bound to the arguments behind.", binds_parameters_in_another_order},
    {"forgets_zero_points", "CanonicalizeOps", "A zero point is not subtracted.",
     forgets_zero_points},
    {"dequantizes_from_zero", "FakeQuantizationToInteger",
     "A zero point is lost where an operator moves.", dequantizes_from_zero},
    {"loses_the_sign_of_sums", "WidenHalfPrecision", "A sum is taken for its absolute value.",
     loses_the_sign_of_sums},
    {"confuses_flags", "InferType", "A flag of an operator is read the wrong way round.",
     confuses_flags},
    {"swaps_inputs_of_backward_kernels", "AlternateOrder",
     "A kernel that runs backwards reads its inputs the wrong way round.",
     swaps_inputs_of_backward_kernels},
    {"recomputes_from_other_inputs", "RecomputeValues",
     "A value that is computed again has its inputs in another order.", swaps_inputs_of_new_groups},
    {"joins_kernels_of_other_inputs", "JoinKernels",
     "A kernel that is part of another one has its inputs in another order.",
     swaps_inputs_of_joined_kernels},
    {"omits_fills_that_are_read", "OmitFills", "A tensor that is read as it begins is not filled.",
     omits_fills_that_are_read},
    {"loses_what_is_placed", "PlanDevices",
     "An annotated operator is taken away with its annotation.", loses_what_is_placed},
    {"swaps_inputs_of_placed_kernels", "PlaceKernels",
     "The call of a kernel on a device has its inputs in another order.", swaps_inputs_of_groups},
    {"swaps_inputs_of_chosen_kernels", "ChooseDevices",
     "The call of a kernel that may go to a device has its inputs in another order.",
     swaps_inputs_of_groups},
    {"forgets_places", "ShareKernels", "Every call of a shared kernel is for the first place.",
     forgets_places},
    {"loses_the_end_of_groups", "FuseOps", "A group ends before its last operator.",
     loses_the_end_of_groups},
    {"swaps_operands_in_groups", "DefuseOps", "Operands are replaced in the wrong order.",
     swaps_operands},
    {"swaps_inputs_of_groups", "FuseOps",
     "A group's inputs are in another order than its parameters.", swaps_inputs_of_groups},
    {"swaps_operands_of_groups", "FuseOps", "A group's last operator gets its operands swapped.",
     swaps_operands_in_groups},
};

}  // namespace

std::span<const Fault> operator_faults() { return kOperatorFaults; }

}  // namespace relay::fuzz
