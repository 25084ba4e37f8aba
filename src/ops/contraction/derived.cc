#include "ops/contraction/derived.h"

#include <algorithm>

#include "ir/contraction.h"
#include "ops/gradient.h"
#include "ops/quantized_forms.h"

namespace relay::ops {
namespace {

using tir::PrimExpr;

// The value of each dimension at an element of the result and of what is summed over.
std::vector<PrimExpr> dimension_values(const Contraction& c, const ComputeContext& ctx,
                                       const Indices& i, const Indices& k) {
  std::vector<PrimExpr> out(c.dims.size());
  for (size_t a = 0; a < c.result.size(); ++a) {
    PrimExpr rest = i[a];
    for (size_t d = c.result[a].dims.size(); d-- > 0;) {
      const size_t dim = c.result[a].dims[d];
      PrimExpr extent = ctx.size(c.dims[dim].extent);
      out[dim] = d == 0 ? rest : tir::floor_mod(rest, extent);
      if (d > 0) rest = tir::floor_div(rest, extent);
    }
  }
  size_t at = 0;
  for (size_t d = 0; d < c.dims.size(); ++d) {
    if (is_summed(c.dims[d].role)) out[d] = k[at++];
  }
  return out;
}

// The index along an axis.
PrimExpr index_along(const Contraction& c, const ComputeContext& ctx, const Contraction::Axis& axis,
                     const std::vector<PrimExpr>& values) {
  if (axis.dims.empty()) return tir::index(0);
  PrimExpr out = values[axis.dims[0]];
  if (axis.window) {
    RELAY_CHECK(axis.dims.size() == 2, "a window is a position and a tap");
    return out * axis.window->stride + values[axis.dims[1]] * axis.window->dilation -
           axis.window->padding;
  }
  for (size_t d = 1; d < axis.dims.size(); ++d) {
    out = out * ctx.size(c.dims[axis.dims[d]].extent) + values[axis.dims[d]];
  }
  if (axis.divide != 1) out = tir::floor_div(out, tir::index(axis.divide));
  if (axis.modulo != 0) out = tir::floor_mod(out, tir::index(axis.modulo));
  return out;
}

PrimExpr element(const Contraction& c, const ComputeContext& ctx, size_t operand,
                 const std::vector<PrimExpr>& values) {
  const TirTensor& x = ctx.inputs[operand];
  Indices at;
  PrimExpr inside = tir::imm(DType::Bool(), 1);
  for (size_t a = 0; a < c.operands[operand].size(); ++a) {
    const Contraction::Axis& axis = c.operands[operand][a];
    at.push_back(index_along(c, ctx, axis, values));
    if (!axis.window) continue;
    inside = tir::logical_and(inside, tir::logical_and(tir::ge(at.back(), tir::index(0)),
                                                       tir::lt(at.back(), x->shape()[a])));
  }
  if (is_one(inside)) return x(at);
  return tir::select(inside, x(at), tir::imm(x->dtype, 0));
}

// The labels of a tensor's dimensions, and the sizes of its axes by dimension.
struct Labelled {
  std::string labels;
  std::vector<Dim> shape;
};

char letter(size_t dim) { return static_cast<char>(dim < 26 ? 'a' + dim : 'A' + (dim - 26)); }
constexpr size_t kLetters = 52;

Labelled labelled(const GradientContext& ctx, const Contraction& c, const Contraction::Tensor& t) {
  Labelled out;
  for (const Contraction::Axis& a : t) {
    if (a.window || a.blocked()) no_gradient(ctx, "it has windows or blocks");
    for (size_t d : a.dims) {
      out.labels += letter(d);
      out.shape.push_back(c.dims[d].extent);
    }
  }
  return out;
}

}  // namespace

std::shared_ptr<const ComputeRule> contraction_rule(const std::string& name) {
  return compute_rule([name](const ComputeContext& ctx) {
    RELAY_CHECK(ctx.contraction && ctx.contraction->operands.size() == ctx.inputs.size(), name);
    const Contraction& c = *ctx.contraction;
    std::vector<PrimExpr> extents;
    for (const Contraction::Dimension& d : c.dims) {
      if (is_summed(d.role)) extents.push_back(ctx.size(d.extent));
    }
    return sum_of_products(name, ctx, extents, [&](const Indices& i, const Indices& k) {
      const std::vector<PrimExpr> values = dimension_values(c, ctx, i, k);
      std::vector<PrimExpr> out;
      for (size_t o = 0; o < c.operands.size(); ++o) out.push_back(element(c, ctx, o, values));
      return out;
    });
  });
}

std::vector<Expr> contraction_gradient(const GradientContext& ctx) {
  const auto c = contraction_of(ctx.call);
  if (!c) no_gradient(ctx, "these attributes make it no sum of products");
  if (c->dims.size() > kLetters) no_gradient(ctx, "it has more dimensions than there are letters");
  for (const Contraction::Dimension& d : c->dims) {
    if (is_any(d.extent)) no_gradient(ctx, "only the data tells a size");
  }
  const Labelled result = labelled(ctx, *c, c->result);
  std::vector<Labelled> terms;
  std::vector<Expr> operands;
  for (size_t o = 0; o < c->operands.size(); ++o) {
    terms.push_back(labelled(ctx, *c, c->operands[o]));
    operands.push_back(reshape_to(ctx.arg(o), terms.back().shape));
  }
  Expr g = reshape_to(ctx.adjoint(), result.shape);
  std::vector<Expr> out;
  for (size_t o = 0; o < operands.size(); ++o) {
    std::vector<Expr> factors{cast_to(g, type_of(operands[o]).dtype)};
    std::string equation = result.labels;
    for (size_t other = 0; other < operands.size(); ++other) {
      if (other == o) continue;
      factors.push_back(operands[other]);
      equation += "," + terms[other].labels;
    }
    for (size_t d = 0; d < terms[o].labels.size(); ++d) {
      // What only this operand is summed over has the same adjoint everywhere.
      if (equation.find(terms[o].labels[d]) != std::string::npos) continue;
      factors.push_back(apply("ones", {},
                              {{"shape", to_value(Dims{terms[o].shape[d]})},
                               {"dtype", type_of(operands[o]).dtype.to_string()}}));
      equation += std::string(",") + terms[o].labels[d];
    }
    Expr adjoint =
        apply("einsum", {tuple(factors)}, {{"equation", equation + "->" + terms[o].labels}});
    out.push_back(reshape_like(adjoint, ctx.arg(o)));
  }
  return out;
}

OpInfo contraction_row(OpInfo row) {
  auto fill = [](auto& column, auto value) {
    if (column.unsaid()) column = std::move(value);
  };
  fill(row.fusion, FusionClass::OutEWiseFusable);
  fill(row.effect, Effect::Pure);
  fill(row.compute, contraction_rule("T_contraction"));
  fill(row.layout, Absent::AxesAsWritten);
  fill(row.memory, Absent::OnePiece);
  fill(row.precision, Precision::Always);
  fill(row.cost, CostRule(contraction_cost));
  fill(row.gradient, GradientRule(contraction_gradient));
  if (row.quantized == nullptr) row.quantized = quantized_contraction;
  return row;
}

}  // namespace relay::ops
