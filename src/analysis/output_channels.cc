#include "analysis/output_channels.h"

#include "analysis/calls.h"
#include "ir/contraction.h"
#include "ir/op.h"

namespace relay {

std::vector<Expr> factors_of(const CallNode& c) {
  std::vector<Expr> out = c.args;
  auto* t = out.size() == 1 ? as<TupleNode>(out[0]) : nullptr;
  if (t != nullptr) out = t->fields;
  return out.size() == 2 ? out : std::vector<Expr>{};
}

Expr with_factors(const CallNode& c, std::vector<Expr> factors) {
  if (c.args.size() == 1) factors = {tuple(std::move(factors), c.args[0]->span)};
  return call(c.op, std::move(factors), c.attrs, c.span);
}

std::optional<OutputChannels> output_channels(const CallNode& c) {
  return c.args.size() == 2 ? channels_of_factors(c) : std::nullopt;
}

std::optional<OutputChannels> channels_of_factors(const CallNode& c) {
  auto contraction = contraction_of(c);
  const std::vector<Expr> factors = factors_of(c);
  if (!contraction || factors.empty() || contraction->operands.size() != 2) return std::nullopt;
  auto weight = static_shape(factors[1]);
  auto column = contraction->only(ContractionRole::Column);
  if (!weight || !column) return std::nullopt;
  std::vector<size_t> at = contraction->axes_of(contraction->result, *column);
  std::vector<size_t> weight_at = contraction->axes_of(contraction->operands[1], *column);
  if (at.size() != 1 || weight_at.size() != 1) return std::nullopt;
  const Contraction::Axis& channels = contraction->result[at[0]];
  const Contraction::Axis& rows = contraction->operands[1][weight_at[0]];
  if (channels.blocked() || rows.blocked() || channels.dims != rows.dims) return std::nullopt;
  OutputChannels out{static_cast<int64_t>(at[0]),
                     static_cast<int64_t>(weight_at[0]),
                     (*weight)[weight_at[0]],
                     {},
                     channels.dims.size() > 1};
  for (const Field& f : as<OpNode>(c.op)->row->attrs->fields) {
    if (f.name == "units" || f.name == "channels") out.attribute = f.name;
  }
  return out;
}

}  // namespace relay
