#include "tir/arith/inside.h"

namespace relay::tir {

PrimExpr inside_condition(Analyzer& analyzer, const std::vector<PrimExpr>& indices,
                          const Buffer& buffer) {
  PrimExpr all;
  for (size_t d = 0; d < indices.size(); ++d) {
    PrimExpr from = ge(indices[d], index(0)), to = lt(indices[d], buffer->shape[d]);
    if (analyzer.can_prove(from) && analyzer.can_prove(to)) continue;
    PrimExpr inside = logical_and(from, to);
    all = all ? logical_and(all, inside) : inside;
  }
  return all;
}

}  // namespace relay::tir
