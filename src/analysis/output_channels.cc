#include "analysis/output_channels.h"

#include "analysis/calls.h"
#include "ir/contraction.h"
#include "ir/op.h"

namespace relay {

std::optional<OutputChannels> output_channels(const CallNode& c) {
  auto contraction = contraction_of(c);
  if (!contraction || c.args.size() != 2 || contraction->operands.size() != 2) return std::nullopt;
  auto weight = static_shape(c.args[1]);
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
