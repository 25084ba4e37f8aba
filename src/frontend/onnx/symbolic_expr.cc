// Expressions for what the importer knows only symbolically: sizes of open dimensions, computed
// from the shapes of @main's parameters.
#include "analysis/calls.h"
#include "frontend/onnx/graph_importer.h"
#include "node/walk.h"

namespace relay::importer {

Expr Importer::known_expr(const KnownValue& known, const Span& span) {
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

namespace {

// The named dimensions that a size is, or is broadcast from; none where it is something else.
std::vector<const DimVarNode*> names_in(const Dim& size) {
  std::vector<const DimVarNode*> out;
  std::vector<Dim> open{size};
  while (!open.empty()) {
    Dim d = std::move(open.back());
    open.pop_back();
    auto* op = as<DimOpNode>(d);
    if (auto* name = as<DimVarNode>(d)) {
      out.push_back(name);
    } else if (op != nullptr && op->op == DimOpKind::Broadcast) {
      open.push_back(op->a);
      open.push_back(op->b);
    } else {
      return {};
    }
  }
  return out;
}

}  // namespace

Expr Importer::witness(const std::vector<Dim>& shape, const Span& span) {
  std::vector<int64_t> sizes;
  Expr sum;
  for (size_t a = 0; a < shape.size(); ++a) {
    sizes.push_back(as_const(shape[a]).value_or(1));
    if (as_const(shape[a])) continue;
    std::vector<const DimVarNode*> names = names_in(shape[a]);
    if (names.empty()) {
      throw UserError(Diagnostic(codes::frontend_dynamic, span,
                                 "a tensor is expanded to a dimension that is not one of an input")
                          .expected("an input's dimension, or a number")
                          .found(to_string(shape[a]))
                          .help("give fixed input shapes, as in --input NAME=1x3x224x224"));
    }
    for (const DimVarNode* name : names) {
      const auto& [param, axis] = dim_sources_.at(name->var.get());
      // The first line of the input along that axis, as a row of zeros in the right place.
      Expr line = param;
      for (int64_t other = as<TensorTypeNode>(param->type)->rank(); other-- > 0;) {
        if (other == axis) continue;
        line =
            make_call("take", {line, constant(0.0, DType::Int(64), span)}, {{"axis", other}}, span);
      }
      line = make_call("zeros_like", {line}, {}, span);
      line = make_call("cast", {line}, {{"dtype", to_value(DType::Int(32))}}, span);
      auto after = static_cast<int64_t>(shape.size() - a) - 1;
      if (after > 0)
        line =
            make_call("expand_dims", {line}, {{"axis", int64_t{1}}, {"num_newaxis", after}}, span);
      sum = sum ? Expr(call("add", {sum, line}, nullptr, span)) : line;
    }
  }
  Expr zeros = make_call("full", {constant(0.0, DType::Int(32), span)},
                         {{"shape", to_value(sizes)}, {"dtype", to_value(DType::Int(32))}}, span);
  return call("add", {sum, zeros}, nullptr, span);
}

// The value of a dimension at run time, an int64 scalar.
Expr Importer::dim_expr(const Dim& d, const Span& span) {
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

}  // namespace relay::importer
