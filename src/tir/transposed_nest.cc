#include "tir/transposed_nest.h"

#include "tir/constant_nest.h"

namespace relay::tir {

bool in_transposed_nest(const ForNode& loop) { return loop.hints.nest == LoopNest::Transposed; }

std::optional<TransposedNest> transposed_nest(const Stmt& s) {
  auto nest = constant_nest(s, LoopNest::Transposed);
  if (!nest || nest->loops.size() != 2) return std::nullopt;
  auto* load = as<LoadNode>(nest->store->value);
  if (load == nullptr || load->predicate || load->indices.size() != 1 ||
      load->buffer == nest->store->buffer || load->buffer->dtype != nest->store->buffer->dtype) {
    return std::nullopt;
  }
  auto to = linear_index(nest->store->indices[0], *nest),
       from = linear_index(load->indices[0], *nest);
  if (!to || !from) return std::nullopt;
  const size_t row = as_int(from->steps[0]) == 1 ? 0 : 1, column = 1 - row;
  if (as_int(from->steps[row]) != 1 || as_int(to->steps[column]) != 1) return std::nullopt;
  return TransposedNest{nest->store, load,        nest->extents[row], nest->extents[column],
                        to->first,   from->first, to->steps[row],     from->steps[column]};
}

}  // namespace relay::tir
