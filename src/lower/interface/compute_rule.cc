#include "lower/interface/compute_rule.h"

#include <algorithm>
#include <unordered_map>

#include "base/codes/lowering.h"
#include "ir/type_params.h"
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

namespace {

bool mentions(const Dim& d, const Node* name) {
  bool found = false;
  post_order(d, [&](const Node& n) { found |= &n == name; });
  return found;
}

// A size that a kernel is given as a number.
bool is_parameter(const Node& n) {
  auto* op = as<DimOpNode>(&n);
  return n.kind() == TypeKind::DimVar || (op != nullptr && op->op == DimOpKind::Broadcast);
}

}  // namespace

Dim DimScope::known(const Dim& d) const {
  Dim out = dim_argument(with_type_params(Type::unchecked(d), names_));
  for (const auto& [from, to] : expressions_) {
    if (dim_equal(from, out)) out = to;
  }
  return out;
}

void DimScope::make_equal(const Dim& a, const Dim& b) {
  Dim x = known(a), y = known(b);
  if (dim_equal(x, y)) return;
  if (!isa<DimVarNode>(x)) std::swap(x, y);
  auto* name = as<DimVarNode>(x);
  if (name == nullptr) {
    expressions_.emplace_back(as_const(x) ? y : x, as_const(x) ? x : y);
  } else if (!mentions(y, name->var.get())) {
    TypeParams one{{name->var.get(), y}};
    for (auto& [node, value] : names_) value = with_type_params(Type::unchecked(value), one);
    names_.emplace(name->var.get(), y);
  }
}

tir::PrimExpr DimScope::lower(const Dim& given) {
  Dim d = known(given);
  std::unordered_map<const Node*, tir::PrimExpr> done;
  auto parameter = [&](const Node& n) {
    Dim size(static_cast<const DimNode*>(&n));
    auto it = std::ranges::find_if(dims_, [&](const auto& d) { return dim_equal(d.first, size); });
    if (it == dims_.end()) {
      auto* name = as<DimVarNode>(size);
      std::string hint =
          name != nullptr ? name->var->name_hint : "b" + std::to_string(dims_.size());
      it = dims_.emplace(dims_.end(), size, tir::var(hint));
    }
    return it->second;
  };
  post_order_if(
      d,
      [&](const Node& n) {
        if (is_parameter(n)) done[&n] = parameter(n);
        return !is_parameter(n);
      },
      [&](const Node& n) {
        switch (n.kind()) {
          case TypeKind::DimConst:
            done[&n] = tir::index(static_cast<const DimConstNode&>(n).value);
            return;
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
              case DimOpKind::Broadcast:
                return;  // a parameter
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
ComputeContext context_of(const CallNode& call, const std::vector<tir::Tensor>& inputs,
                          DimScope& dims) {
  ComputeContext ctx;
  ctx.size = [&dims](const Dim& d) { return dims.lower(d); };
  ctx.attrs_ref = call.attrs;
  ctx.inputs = inputs;
  ctx.out_type = call.type;
  ctx.contraction = contraction_of(call);
  for (const Expr& arg : call.args) ctx.arg_types.push_back(arg->type);
  auto outputs = flatten_tensor_types(call.type);
  RELAY_CHECK(outputs.has_value(), to_string(call.type));
  for (const TensorType& t : *outputs) ctx.outputs.push_back({{}, t->dtype.storage()});
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
  ComputeContext ctx = context_of(call, inputs, dims);
  auto outputs = flatten_tensor_types(call.type);
  for (size_t i = 0; i < outputs->size(); ++i) {
    ctx.outputs[i].shape = dims.lower((*outputs)[i]->shape);
  }
  std::vector<tir::Tensor> result = op->row->compute->build(ctx);
  RELAY_CHECK(result.size() == outputs->size(), op->name);
  return result;
}

std::vector<tir::Tensor> compute_call_shapes(const CallNode& call,
                                             const std::vector<tir::Tensor>& inputs,
                                             DimScope& dims) {
  auto* op = as<OpNode>(call.op);
  RELAY_CHECK(op != nullptr && call.type && data_decides_shape(*op->row));
  ComputeContext ctx = context_of(call, inputs, dims);
  std::vector<tir::Tensor> result = op->row->compute->shape(ctx);
  RELAY_CHECK(result.size() == ctx.outputs.size(), op->name);
  return result;
}

}  // namespace relay
