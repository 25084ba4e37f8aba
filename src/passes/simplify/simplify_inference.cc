#include "passes/simplify/simplify_inference.h"

#include "analysis/calls.h"
#include "ir/op.h"
#include "node/walk.h"

namespace relay {
namespace {

// A vector of length C as a tensor that broadcasts against axis `axis` of a rank-`rank` tensor.
Expr along_axis(const Expr& vector, int64_t axis, int64_t rank, const Span& span) {
  int64_t behind = rank - axis - 1;
  if (behind == 0) return vector;
  return make_call("expand_dims", {vector},
                   {{"axis", AttrValue(int64_t{1})}, {"num_newaxis", AttrValue(behind)}}, span);
}

Expr simplify_batch_norm(const CallNode& c) {
  auto* data_type = as<TensorTypeNode>(c.args[0]->type);
  int64_t rank = data_type->rank();
  int64_t axis = int_attr(c, "axis");
  if (axis < 0) axis += rank;
  const Span& at = c.span;
  const Expr &gamma = c.args[1], &beta = c.args[2], &mean = c.args[3], &variance = c.args[4];
  DType dtype = as<TensorTypeNode>(variance->type)->dtype;
  Expr scale =
      call("rsqrt",
           {call("add", {variance, constant(float_attr(c, "epsilon"), dtype, at)}, nullptr, at)},
           nullptr, at);
  if (bool_attr(c, "scale")) {
    scale = call("multiply", {scale, gamma}, nullptr, at);
  }
  Expr shift = call("negative", {call("multiply", {mean, scale}, nullptr, at)}, nullptr, at);
  if (bool_attr(c, "center")) shift = call("add", {shift, beta}, nullptr, at);
  Expr scaled = call("multiply", {c.args[0], along_axis(scale, axis, rank, at)}, nullptr, at);
  return call("add", {scaled, along_axis(shift, axis, rank, at)}, nullptr, at);
}

Module run_simplify_inference(const Module& mod, PassContext&) {
  return map_functions(mod, [](const GlobalVar&, const Function& f) {
    return cast<FunctionNode>(rewrite(
        f,
        [](const NodeRef&, NodeRef rebuilt) -> NodeRef {
          Expr e = Expr::unchecked(rebuilt);
          if (is_call_to(e, "stop_gradient") || is_call_to(e, "annotation.derivative_of"))
            return as<CallNode>(rebuilt)->args[0];
          auto* get = as<TupleGetItemNode>(rebuilt);
          if (get == nullptr || get->index != 0) return rebuilt;
          if (is_call_to(get->tuple, "nn.batch_norm")) {
            return simplify_batch_norm(*as<CallNode>(get->tuple));
          }
          if (is_call_to(get->tuple, "nn.dropout")) return as<CallNode>(get->tuple)->args[0];
          return rebuilt;
        },
        family::program));
  });
}

}  // namespace

const Pass kSimplifyInference{
    "SimplifyInference",   0, Form::any, Form::any, "Replaces operators that only training needs.",
    run_simplify_inference};

}  // namespace relay
