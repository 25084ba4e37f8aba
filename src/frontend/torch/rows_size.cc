// Integers and truth values of the program: sizes, arithmetic on what only a run knows, and checks.
//
// An integer that is a term over sizes of inputs has no operator: the importer reads it from the graph.
#include <limits>

#include "base/codes/frontend.h"
#include "frontend/common/open_args.h"
#include "frontend/torch/node_context.h"

namespace relay::frontend::torch {
namespace {

Values sym_size(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const int64_t axis = ctx.axis_of("dim", Builder::rank_of(x), std::nullopt);
  return {value_of(ctx.select(sizes_of(ctx, x), 0, axis))};
}

// The one element of a tensor.
Values item(NodeContext& ctx) {
  return {value_of(ctx.reshape(ctx.tensor("self"), std::vector<int64_t>{}))};
}

// Operands of Python's operators, in order: whole numbers as int64, others as float64.
Expr operand(NodeContext& ctx, size_t i) {
  const Argument& a = ctx.at(i);
  if (a.is_list || a.elements.size() != 1)
    ctx.fail(codes::frontend_attribute, "a number is needed");
  return ctx.expr_of(ctx.value_of_element(a.elements[0]));
}

Values arithmetic(NodeContext& ctx) {
  Expr a = operand(ctx, 0), b = operand(ctx, 1);
  const bool real = Builder::dtype_of(a).is_floating() || Builder::dtype_of(b).is_floating() ||
                    ctx.relay_op() == "divide";
  const DType dtype = real ? DType::Float(64) : kI64;
  return {value_of(ctx.call(ctx.relay_op(), {ctx.cast(a, dtype), ctx.cast(b, dtype)}))};
}

Values logical(NodeContext& ctx) {
  Expr a = ctx.cast(operand(ctx, 0), DType::Bool()), b = ctx.cast(operand(ctx, 1), DType::Bool());
  return {value_of(ctx.call(ctx.relay_op(), {a, b}))};
}

Values number_as(NodeContext& ctx, DType dtype) {
  return {value_of(ctx.cast(operand(ctx, 0), dtype))};
}

// A condition that is known is checked here, any other by the run.
void require(NodeContext& ctx, const ValuePtr& condition, const std::string& message) {
  if (condition->known && condition->known->is_constant() && condition->known->size() == 1) {
    if (condition->known->float_at(0) != 0) return;
    ctx.fail(codes::frontend_attribute, message);
  }
  Expr holds = ctx.cast(ctx.reshape(ctx.expr_of(condition), std::vector<int64_t>{}), DType::Bool());
  ctx.importer().require(holds, message, ctx.span());
}

Values assert_scalar(NodeContext& ctx) {
  const std::string message = ctx.text("assert_msg", "an assertion fails");
  const Argument* a = ctx.find("self");
  if (a != nullptr && !a->is_list) require(ctx, ctx.value_of_element(a->elements[0]), message);
  return {};
}
Values assert_async(NodeContext& ctx) {
  const std::string message = ctx.text("assert_msg", "an assertion fails");
  require(ctx, ctx.known_tensor("self"), message);
  return {};
}
Values no_value(NodeContext& ctx) {
  for (const auto& [name, argument] : ctx.node().inputs) ctx.find(name);
  return {};
}

}  // namespace

template <>
std::span<const Row> rows<Family::Size>() {
  static constexpr Row kRows[] = {
      {"aten.sym_size.int", sym_size},
      {"aten.item.default", item},
      {"aten._local_scalar_dense.default", item},
      {"_operator.add", arithmetic, "add"},
      {"_operator.sub", arithmetic, "subtract"},
      {"_operator.mul", arithmetic, "multiply"},
      {"_operator.floordiv", arithmetic, "floor_divide"},
      {"_operator.mod", arithmetic, "floor_mod"},
      {"_operator.truediv", arithmetic, "divide"},
      {"_operator.pow", arithmetic, "power"},
      {"_operator.eq", arithmetic, "equal"},
      {"_operator.ne", arithmetic, "not_equal"},
      {"_operator.lt", arithmetic, "less"},
      {"_operator.le", arithmetic, "less_equal"},
      {"_operator.gt", arithmetic, "greater"},
      {"_operator.ge", arithmetic, "greater_equal"},
      {"_operator.and_", logical, "logical_and"},
      {"_operator.or_", logical, "logical_or"},
      {"torch.sym_max", arithmetic, "maximum"},
      {"torch.sym_min", arithmetic, "minimum"},
      {"torch.sym_ite",
       [](NodeContext& ctx) {
         Expr c = ctx.cast(operand(ctx, 0), DType::Bool());
         return Values{value_of(ctx.where(c, operand(ctx, 1), operand(ctx, 2)))};
       }},
      {"_operator.neg",
       [](NodeContext& ctx) { return Values{value_of(ctx.call("negative", {operand(ctx, 0)}))}; }},
      {"_operator.pos", [](NodeContext& ctx) { return Values{value_of(operand(ctx, 0))}; }},
      {"torch.sym_not",
       [](NodeContext& ctx) {
         Expr a = ctx.cast(operand(ctx, 0), DType::Bool());
         return Values{value_of(ctx.call("logical_not", {a}))};
       }},
      {"torch.sym_int", [](NodeContext& ctx) { return number_as(ctx, kI64); }},
      {"math.trunc", [](NodeContext& ctx) { return number_as(ctx, kI64); }},
      {"torch.sym_float", [](NodeContext& ctx) { return number_as(ctx, DType::Float(64)); }},
      {"aten._assert_scalar.default", assert_scalar},
      {"aten._assert_async.msg", assert_async},
      {"aten._assert_async.default", assert_async},
      {"aten._assert_tensor_metadata.default", no_value},
      {"aten.sym_constrain_range.default", no_value},
      {"aten.sym_constrain_range_for_size.default", no_value},
  };
  return kRows;
}

}  // namespace relay::frontend::torch
