#include "lower/interface/compute_rule.h"

#include <unordered_map>

#include "base/diagnostic_codes.h"
#include "node/walk.h"

namespace relay {

std::shared_ptr<const ComputeRule> compute_rule(
    std::function<tir::Tensor(const ComputeContext&)> build) {
  return compute_rule_multi([build = std::move(build)](const ComputeContext& ctx) {
    return std::vector<tir::Tensor>{build(ctx)};
  });
}

std::shared_ptr<const ComputeRule> compute_rule_multi(
    std::function<std::vector<tir::Tensor>(const ComputeContext&)> build) {
  return std::make_shared<const ComputeRule>(ComputeRule{std::move(build), nullptr});
}

std::shared_ptr<const ComputeRule> compute_rule_with_shape(
    std::function<tir::Tensor(const ComputeContext&)> shape,
    std::function<tir::Tensor(const ComputeContext&)> build) {
  auto one = [](std::function<tir::Tensor(const ComputeContext&)> f) {
    return
        [f = std::move(f)](const ComputeContext& ctx) { return std::vector<tir::Tensor>{f(ctx)}; };
  };
  return std::make_shared<const ComputeRule>(
      ComputeRule{one(std::move(build)), one(std::move(shape))});
}

bool data_decides_shape(const OpInfo& op) {
  return op.compute != nullptr && op.compute->shape != nullptr;
}

tir::PrimExpr DimScope::lower(const Dim& d) {
  std::unordered_map<const Node*, tir::PrimExpr> done;
  post_order(
      d,
      [&](const Node& n) {
        switch (n.kind()) {
          case TypeKind::DimConst:
            done[&n] = tir::index(static_cast<const DimConstNode&>(n).value);
            return;
          case TypeKind::DimVar: {
            const TypeVar& v = static_cast<const DimVarNode&>(n).var;
            for (const auto& [type_var, tir_var] : dims) {
              if (type_var == v) {
                done[&n] = tir_var;
                return;
              }
            }
            dims.emplace_back(v, tir::var(v->name_hint));
            done[&n] = dims.back().second;
            return;
          }
          case TypeKind::DimOp: {
            auto& o = static_cast<const DimOpNode&>(n);
            tir::PrimExpr a = done.at(o.a.get()), b = done.at(o.b.get());
            switch (o.op) {
              case DimOpKind::Add:
                done[&n] = a + b;
                return;
              case DimOpKind::Sub:
                done[&n] = a - b;
                return;
              case DimOpKind::Mul:
                done[&n] = a * b;
                return;
              case DimOpKind::FloorDiv:
                done[&n] = tir::floor_div(a, b);
                return;
              case DimOpKind::CeilDiv:
                done[&n] = tir::floor_div(a + b - 1, b);
                return;
              case DimOpKind::Mod:
                done[&n] = tir::floor_mod(a, b);
                return;
              case DimOpKind::Max:
                done[&n] = tir::max(a, b);
                return;
              case DimOpKind::Min:
                done[&n] = tir::min(a, b);
                return;
            }
            return;
          }
          default:
            throw UserError(Diagnostic(codes::lower_unsupported, {},
                                       "a kernel cannot be made for a dimension that only data "
                                       "decides")
                                .expected("constant or named dimensions")
                                .found("?")
                                .help("give the shape, or name the dimension"));
        }
      },
      family::dim);
  return done.at(d.get());
}

std::vector<tir::PrimExpr> DimScope::lower(const std::vector<Dim>& shape) {
  std::vector<tir::PrimExpr> out;
  out.reserve(shape.size());
  for (const Dim& d : shape) out.push_back(lower(d));
  return out;
}

namespace {

// All but the shapes of the outputs.
ComputeContext context_of(const CallNode& call, const std::vector<tir::Tensor>& inputs) {
  ComputeContext ctx;
  ctx.attrs_ref = call.attrs;
  ctx.inputs = inputs;
  ctx.out_type = call.type;
  for (const Expr& arg : call.args) ctx.arg_types.push_back(arg->type);
  auto outputs = flatten_tensor_types(call.type);
  RELAY_CHECK(outputs.has_value(), to_string(call.type));
  for (const TensorType& t : *outputs) ctx.outputs.push_back({{}, t->dtype});
  return ctx;
}

}  // namespace

std::vector<tir::Tensor> compute_call(const CallNode& call, const std::vector<tir::Tensor>& inputs,
                                      DimScope& dims) {
  auto* op = as<OpNode>(call.op);
  RELAY_CHECK(op != nullptr && call.type);
  if (op->row->compute == nullptr) {
    throw UserError(Diagnostic(codes::lower_unsupported, call.span,
                               "operator " + op->name + " cannot be compiled by itself")
                        .help(std::string(to_string(op->row->compute.reason()))));
  }
  ComputeContext ctx = context_of(call, inputs);
  auto outputs = flatten_tensor_types(call.type);
  for (size_t i = 0; i < outputs->size(); ++i) {
    ctx.outputs[i].shape = dims.lower((*outputs)[i]->shape);
  }
  std::vector<tir::Tensor> result = op->row->compute->build(ctx);
  RELAY_CHECK(result.size() == outputs->size(), op->name);
  return result;
}

std::vector<tir::Tensor> compute_call_shapes(const CallNode& call,
                                             const std::vector<tir::Tensor>& inputs) {
  auto* op = as<OpNode>(call.op);
  RELAY_CHECK(op != nullptr && call.type && data_decides_shape(*op->row));
  ComputeContext ctx = context_of(call, inputs);
  std::vector<tir::Tensor> result = op->row->compute->shape(ctx);
  RELAY_CHECK(result.size() == ctx.outputs.size(), op->name);
  return result;
}

}  // namespace relay
