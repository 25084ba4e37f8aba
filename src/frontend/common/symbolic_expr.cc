// Expressions for what a front end knows only symbolically: sizes of open dimensions, computed
// from the shapes of @main's parameters.
#include "analysis/calls.h"
#include "base/codes/frontend.h"
#include "frontend/common/builder.h"
#include "node/walk.h"

namespace relay::frontend {

Expr ProgramBuilder::known_expr(const KnownValue& known, const Span& span) {
  if (known.is_constant()) return constant(tensor_from(known), span);
  std::vector<Expr> elements;
  for (const Dim& d : known.ints) {
    Expr e = dim_expr(d, span);
    if (known.dtype != DType::Int(64)) {
      e = make_call("cast", {e}, {{"dtype", to_value(known.dtype)}}, span);
    }
    elements.push_back(std::move(e));
  }
  if (known.shape.empty()) return elements[0];
  Expr flat = make_call("stack", {tuple(std::move(elements), span)}, {{"axis", int64_t{0}}}, span);
  if (known.shape.size() == 1) return flat;
  return make_call("reshape", {flat}, {{"newshape", to_value(known.shape)}}, span);
}

// The value of a dimension at run time, an int64 scalar.
Expr ProgramBuilder::dim_expr(const Dim& d, const Span& span) {
  std::unordered_map<const Node*, Expr> done;
  auto get = [&](const Dim& part) { return done.at(part.get()); };
  post_order(
      d,
      [&](const Node& n) {
        Expr e;
        if (auto* c = as<DimConstNode>(&n)) {
          e = constant(Tensor::scalar(c->value, DType::Int(64)), span);
        } else if (auto* v = as<DimVarNode>(&n)) {
          const auto& [param, axis] = dim_sources_.at(v->var.get());
          Expr shape = make_call("shape_of", {param}, {{"dtype", to_value(DType::Int(64))}}, span);
          e = make_call("take", {shape, constant(Tensor::scalar(axis, DType::Int(64)), span)},
                        {{"axis", int64_t{0}}}, span);
        } else if (auto* op = as<DimOpNode>(&n)) {
          Expr a = get(op->a), b = get(op->b);
          switch (op->op) {
            case DimOpKind::Add:
              e = call("add", {a, b}, nullptr, span);
              break;
            case DimOpKind::Sub:
              e = call("subtract", {a, b}, nullptr, span);
              break;
            case DimOpKind::Mul:
              e = call("multiply", {a, b}, nullptr, span);
              break;
            case DimOpKind::FloorDiv:
              e = call("floor_divide", {a, b}, nullptr, span);
              break;
            case DimOpKind::CeilDiv: {
              // ceil(a / b) = -floor(-a / b).
              Expr minus = call("negative", {a}, nullptr, span);
              e = call("negative", {call("floor_divide", {minus, b}, nullptr, span)}, nullptr,
                       span);
              break;
            }
            case DimOpKind::Mod:
              e = call("floor_mod", {a, b}, nullptr, span);
              break;
            case DimOpKind::Max:
              e = call("maximum", {a, b}, nullptr, span);
              break;
            case DimOpKind::Min:
              e = call("minimum", {a, b}, nullptr, span);
              break;
            case DimOpKind::Broadcast: {
              Expr one = constant(Tensor::scalar(int64_t{1}, DType::Int(64)), span);
              e = call("where", {call("equal", {a, one}, nullptr, span), b, a}, nullptr, span);
              break;
            }
          }
        } else {
          throw UserError(Diagnostic(codes::frontend_dynamic, span,
                                     "the value of an unknown dimension is needed"));
        }
        done.emplace(&n, std::move(e));
      },
      family::dim);
  return done.at(d.get());
}

}  // namespace relay::frontend
