#include "tir/transposed_nest.h"

#include "node/walk.h"
#include "tir/arith/analyzer.h"
#include "tir/constant_nest.h"

namespace relay::tir {

bool in_transposed_nest(const ForNode& loop) { return loop.hints.nest == LoopNest::Transposed; }

namespace {

// The nest whose columns are read at distances of their own.
std::optional<TransposedNest> with_own_columns(const ConstantNest& nest, const LoadNode& load,
                                               const LinearIndex& to) {
  if (nest.loops.size() != 2) return std::nullopt;
  const size_t column = as_int(to.steps[0]) == 1 ? 0 : 1, row = 1 - column;
  const ForNode &rows = *nest.loops[row], &columns = *nest.loops[column];
  auto along = step_along(load.indices[0], nest, rows);
  if (as_int(to.steps[column]) != 1 || !along || as_int(*along) != 1) return std::nullopt;
  TransposedNest out{nest.store,    &load, nest.extents[row], nest.extents[column], 1, to.first, {},
                     to.steps[row], {}};
  for (int64_t c = 0; c < out.columns; ++c) {
    const PrimExpr at = columns.min + c;
    out.from_columns.push_back(Analyzer().simplify(PrimExpr::unchecked(
        substitute(load.indices[0], {{rows.var.get(), rows.min}, {columns.var.get(), at}},
                   family::tir_expr))));
  }
  return out;
}

}  // namespace

std::optional<TransposedNest> transposed_nest(const Stmt& s) {
  auto nest = constant_nest(s, LoopNest::Transposed);
  if (!nest || nest->loops.size() < 2 || nest->loops.size() > 3) return std::nullopt;
  auto* load = as<LoadNode>(nest->store->value);
  if (load == nullptr || load->predicate || load->indices.size() != 1 ||
      load->buffer == nest->store->buffer || load->buffer->dtype != nest->store->buffer->dtype) {
    return std::nullopt;
  }
  auto to = linear_index(nest->store->indices[0], *nest),
       from = linear_index(load->indices[0], *nest);
  if (!to) return std::nullopt;
  if (!from) return with_own_columns(*nest, *load, *to);
  int64_t elements = 1;
  if (nest->loops.size() == 3) {
    if (as_int(from->steps[2]) != 1 || as_int(to->steps[2]) != 1) return std::nullopt;
    elements = nest->extents[2];
  }
  const size_t row = as_int(from->steps[0]) == elements ? 0 : 1, column = 1 - row;
  if (as_int(from->steps[row]) != elements || as_int(to->steps[column]) != elements) {
    return std::nullopt;
  }
  return TransposedNest{nest->store,           load,           nest->extents[row],
                        nest->extents[column], elements,       to->first,
                        from->first,           to->steps[row], from->steps[column]};
}

}  // namespace relay::tir
