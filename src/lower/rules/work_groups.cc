#include "lower/rules/work_groups.h"

#include <algorithm>

#include "lower/rules/item_loops.h"
#include "lower/rules/lanes.h"
#include "tir/block_contraction.h"
#include "tir/passes/statements.h"

namespace relay {

using tir::Block;
using tir::BlockRV;
using tir::IterKind;
using tir::LoopRV;
using tir::Schedule;
using tir::StepResult;

namespace {

const std::string kItemsX(tir::kItemTags[0]), kItemsY(tir::kItemTags[1]);

// The loop of these that the iteration is bound to; nothing where it has one value.
std::optional<LoopRV> loop_of_iter(const Schedule& s, const BlockRV& rv, const tir::Var& iter,
                                   const std::vector<LoopRV>& loops) {
  const Block b = s.block(rv);
  for (size_t i = 0; i < b->iters.size(); ++i) {
    if (b->iters[i]->var.get() != iter.get()) continue;
    for (const LoopRV& l : loops) {
      if (tir::uses(b->bindings[i], l.var.get())) return l;
    }
  }
  return std::nullopt;
}

// The copy of an operand to shared memory inside `at`, by all items. What items of a row, or of a column, read side by
// side lies side by side.
StepResult<> copy_to_shared(Schedule& s, const BlockRV& copy, const LoopRV& at, size_t last,
                            const GroupTile& tile) {
  const size_t rank = s.block(copy)->iters.size();
  if (last + 1 != rank) {
    std::vector<tir::LayoutAxis> layout;
    for (size_t d = 0; d < rank; ++d) {
      if (d != last) layout.push_back({static_cast<int64_t>(d)});
    }
    layout.push_back({static_cast<int64_t>(last)});
    RELAY_TRY(s.transform_layout(copy, layout));
  }
  RELAY_TRY(s.compute_at(copy, at));
  const std::vector<LoopRV> loops = loops_below(s, copy, at);
  if (loops.size() != 2) return tir::Illegal{"a tile of an operand has other axes than two"};
  // Neighbouring items copy neighbouring elements. Each axis has bounds of its own.
  const std::vector<LoopRV> lines = RELAY_TRY(s.split(loops[0], {-1, tile.row_items}));
  const std::vector<LoopRV> elements = RELAY_TRY(s.split(loops[1], {-1, tile.column_items}));
  RELAY_TRY(s.reorder({lines[1], elements[1], lines[0], elements[0]}));
  RELAY_TRY(s.bind(lines[1], kItemsY));
  RELAY_TRY(s.bind(elements[1], kItemsX));
  return {};
}

// The axis of the operand that the iteration alone indexes; nothing where it does not.
std::optional<size_t> axis_along(const tir::BlockContractionNode& c,
                                 const tir::BlockOperandNode& operand, const tir::Var& iter) {
  std::optional<size_t> out;
  for (size_t d = 0; d < operand.axes.size(); ++d) {
    if (operand.axes[d].irregular) return std::nullopt;
    if (!tir::uses_iteration(c, operand.axes[d], iter)) continue;
    if (out || operand.axes[d].terms.size() != 1) return std::nullopt;
    out = d;
  }
  return out;
}

}  // namespace

std::optional<GroupAxes> group_axes(const Block& b) {
  if (!b->contraction || b->contraction->operands.size() != 2 || b->writes.size() != 1) {
    return std::nullopt;
  }
  const tir::BlockContractionNode& c = *b->contraction;
  if (c.operands[0]->buffer == c.operands[1]->buffer) return std::nullopt;
  GroupAxes out;
  bool has_row = false, has_column = false;
  size_t parallel = 0, summed = 0;
  for (const tir::IterVar& iter : b->iters) {
    if (iter->kind == IterKind::Opaque) return std::nullopt;
    if (iter->kind == IterKind::Reduce) {
      summed += tir::as_int(iter->extent) != 1;
      continue;
    }
    const bool single = tir::as_int(iter->extent) == 1;
    const auto role = tir::role_of(c, iter->var);
    if (!single && role == ContractionRole::Row) {
      out.row = parallel;
      has_row = true;
    }
    if (!single && role == ContractionRole::Column) {
      out.column = parallel;
      has_column = true;
    }
    ++parallel;
  }
  if (!has_row || !has_column || summed != 1) return std::nullopt;
  return out;
}

StepResult<> contract_in_groups(Schedule& s, const BlockRV& rv, const BlockRV& reader,
                                const GroupAxes& axes, const GroupTile& tile) {
  Block b = s.block(rv);
  std::vector<tir::Var> parallel, reduced;
  for (const tir::IterVar& iter : b->iters) {
    if (iter->kind == IterKind::DataParallel) parallel.push_back(iter->var);
    if (iter->kind == IterKind::Reduce && tir::as_int(iter->extent) != 1) {
      reduced.push_back(iter->var);
    }
  }
  const tir::Var row = parallel[axes.row], column = parallel[axes.column];
  // The operands, with the axis that items read side by side.
  std::vector<std::pair<BlockRV, size_t>> copies;
  for (const tir::BlockOperand& operand : tir::contraction_of(*b)->operands) {
    auto along = axis_along(*b->contraction, *operand.get(), row);
    if (!along) along = axis_along(*b->contraction, *operand.get(), column);
    if (!along) return tir::Illegal{"operand " + operand->buffer->name + " is read irregularly"};
    copies.emplace_back(RELAY_TRY(s.cache_read(rv, operand->buffer->name, tir::Scope::Shared)),
                        *along);
  }
  // Tiles of groups, and in them of items.
  const BlockLoops outside = *loops_of(s, reader);
  if (outside.parallel.size() != parallel.size()) return tir::Illegal{"its reader has other loops"};
  const std::vector<LoopRV> rows =
      RELAY_TRY(s.split(outside.parallel[axes.row], {-1, tile.row_items, tile.rows}));
  const std::vector<LoopRV> columns =
      RELAY_TRY(s.split(outside.parallel[axes.column], {-1, tile.column_items, tile.columns}));
  std::vector<LoopRV> groups;
  for (size_t i = 0; i < parallel.size(); ++i) {
    if (i != axes.row && i != axes.column) groups.push_back(outside.parallel[i]);
  }
  groups.insert(groups.end(), {rows[0], columns[0]});
  // Nothing stands between the loops that are bound and the items.
  std::ranges::stable_partition(groups, [&](const LoopRV& l) { return s.extent(l) == 1; });
  std::vector<LoopRV> order = groups;
  order.insert(order.end(), {rows[1], columns[1], rows[2], columns[2]});
  RELAY_TRY(s.reorder(order));
  const LoopRV at = RELAY_TRY(bind_loops(s, groups, tir::kGroupTags)).back();
  RELAY_TRY(s.bind(rows[1], kItemsY));
  RELAY_TRY(s.bind(columns[1], kItemsX));
  RELAY_TRY(s.unroll(rows[2]));
  RELAY_TRY(s.unroll(columns[2]));
  // The sum, in registers of the items.
  RELAY_TRY(s.compute_at(rv, at));
  RELAY_TRY(s.set_scope(rv, tir::Scope::Register));
  const std::vector<LoopRV> inside = loops_below(s, rv, at);
  const auto row_loop = loop_of_iter(s, rv, row, inside),
             column_loop = loop_of_iter(s, rv, column, inside),
             sum_loop = loop_of_iter(s, rv, reduced[0], inside);
  if (!row_loop || !column_loop || !sum_loop || inside.size() != 3) {
    return tir::Illegal{"a tile has other loops than rows, columns and terms"};
  }
  const std::vector<LoopRV> r = RELAY_TRY(s.split(*row_loop, {-1, tile.rows}));
  const std::vector<LoopRV> c = RELAY_TRY(s.split(*column_loop, {-1, tile.columns}));
  const std::vector<LoopRV> k = RELAY_TRY(s.split(*sum_loop, {-1, tile.depth}));
  RELAY_TRY(s.reorder({k[0], r[0], c[0], k[1], r[1], c[1]}));
  for (const LoopRV& l : {r[1], c[1]}) RELAY_TRY(s.unroll(l));
  const BlockRV init = RELAY_TRY(s.decompose_reduction(rv, k[0]));
  const std::vector<LoopRV> of_init = loops_below(s, init, at);
  if (of_init.size() != 4) return tir::Illegal{"a tile starts in other loops"};
  RELAY_TRY(s.bind(r[0], kItemsY));
  RELAY_TRY(s.bind(c[0], kItemsX));
  RELAY_TRY(s.bind(of_init[0], kItemsY));
  RELAY_TRY(s.bind(of_init[1], kItemsX));
  RELAY_TRY(s.unroll(of_init[2]));
  RELAY_TRY(s.unroll(of_init[3]));
  for (const auto& [copy, last] : copies) RELAY_TRY(copy_to_shared(s, copy, k[0], last, tile));
  return {};
}

int64_t few_of(int64_t items) {
  int64_t few = 1;
  while (few * few < items) few *= 2;
  return few;
}

StepResult<> reduce_in_groups(Schedule& s, const BlockRV& rv, int64_t items) {
  const BlockLoops loops = *loops_of(s, rv);
  RELAY_TRY(order_loops(s, rv, loops));
  const LoopRV all =
      loops.reduction.size() == 1 ? loops.reduction[0] : RELAY_TRY(s.fuse(loops.reduction));
  const std::vector<LoopRV> terms = RELAY_TRY(s.split(all, {-1, items}));
  RELAY_TRY(s.mask_reduction(rv));
  const BlockRV first = RELAY_TRY(s.rfactor(rv, terms[1]));
  const std::vector<LoopRV> halves =
      RELAY_TRY(s.split(s.get_loops(rv).back(), {-1, few_of(items)}));
  const BlockRV second = RELAY_TRY(s.rfactor(rv, halves[1]));
  std::vector<LoopRV> groups = s.get_loops(rv);
  groups.pop_back();
  const LoopRV at = RELAY_TRY(bind_loops(s, groups, tir::kGroupTags)).back();
  for (const BlockRV& part : {second, first}) {
    RELAY_TRY(s.compute_at(part, at));
    RELAY_TRY(s.set_scope(part, tir::Scope::Shared));
    const std::vector<LoopRV> inside = loops_below(s, part, at);
    if (inside.empty()) return tir::Illegal{"a part has no loop over items"};
    RELAY_TRY(s.bind(inside[0], kItemsX));
  }
  return {};
}

}  // namespace relay
