#include "lower/rules/work_groups.h"

#include <algorithm>
#include <limits>

#include "lower/rules/item_loops.h"
#include "lower/rules/lanes.h"
#include "node/walk.h"
#include "tir/passes/block_sums.h"
#include "tir/passes/pad_shared_rows.h"
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

// Terms in shared memory at a time, and the fewest of a part of a sum.
constexpr int64_t kDepth = 16, kLeastPartTerms = 64;
constexpr int64_t kMostSumParts = 64;
// Neighbouring elements that an item has: what one vector load reads.
constexpr int64_t kRun = 4;
// Results for each multiprocessor, in tiles of 16 for an item: below that, it has work for two warps.
constexpr int64_t kFewItems = 1024;
// Rows or columns where their number is symbolic.
constexpr int64_t kAssumedExtent = 1024;

int64_t ceil_of(int64_t n, int64_t by) { return (n + by - 1) / by; }

// The loop in runs that items have, `items` of them side by side: over groups, over the runs of an item, over items, and
// over a run.
StepResult<std::vector<LoopRV>> split_tile(Schedule& s, const LoopRV& loop, int64_t items,
                                           int64_t elements) {
  const int64_t run = std::min(elements, kRun);
  return s.split(loop, {-1, elements / run, items, run});
}

// The copy of an operand to shared memory inside `at`, by all items: neighbouring items copy neighbouring elements.
StepResult<> copy_to_shared(Schedule& s, const BlockRV& copy, const LoopRV& at, bool terms_adjoin,
                            const GroupTile& tile) {
  // Items read neighbouring rows, or columns.
  const auto rank = static_cast<int64_t>(s.block(copy)->iters.size());
  std::vector<tir::LayoutAxis> layout;
  for (int64_t d = 0; d + 2 < rank; ++d) layout.push_back({d});
  layout.insert(layout.end(), {{rank - 1}, {rank - 2}});
  RELAY_TRY(s.transform_layout(copy, layout));
  RELAY_TRY(s.compute_at(copy, at));
  RELAY_TRY(s.set_scope(copy, tir::Scope::Shared));
  std::vector<LoopRV> loops = loops_below(s, copy, at);
  if (loops.size() != 2) return tir::Illegal{"a tile of an operand has other axes than two"};
  if (!terms_adjoin) {
    std::swap(loops[0], loops[1]);
    RELAY_TRY(s.reorder(loops));
  }
  const LoopRV all = RELAY_TRY(s.fuse(loops));
  const std::vector<LoopRV> parts =
      RELAY_TRY(s.split(all, {-1, tile.row_items, tile.column_items}));
  RELAY_TRY(s.reorder({parts[1], parts[2], parts[0]}));
  RELAY_TRY(s.bind(parts[1], kItemsY));
  RELAY_TRY(s.bind(parts[2], kItemsX));
  return {};
}

// Producers that only move elements, as borders around an image do, are computed where the operand is copied.
void inline_moves(Schedule& s, const BlockRV& copy) {
  for (const BlockRV& made : s.producers(copy)) {
    const Block b = s.block(made);
    bool cheap = !b->init && s.consumers(made).size() == 1;
    post_order(b->body, [&](const Node& n) {
      auto* op = as<tir::BinaryNode>(&n);
      cheap &= n.kind() != tir::ExprKind::Call;
      cheap &= op == nullptr || op->op != tir::BinaryOp::Div;
    });
    // Where it is not legal, it stays a loop of its own.
    if (cheap) static_cast<void>(s.compute_inline(made));
  }
}

}  // namespace

bool sums_side_by_side(const Block& b) {
  if (!b->contraction) return false;
  const tir::BlockContractionNode& c = *b->contraction;
  return std::ranges::all_of(c.operands, [&](const auto& operand) {
    size_t last = operand->axes.size();
    while (last > 0 && tir::as_int(operand->buffer->shape[last - 1]) == 1) --last;
    bool sums = false, moves = false;
    for (const tir::IterVar& iter : b->iters) {
      if (last == 0 || tir::as_int(iter->extent) == 1 ||
          !tir::uses_iteration(c, operand->axes[last - 1], iter->var)) {
        continue;
      }
      (iter->kind == IterKind::Reduce ? sums : moves) = true;
    }
    return sums && !moves;
  });
}

std::optional<ProductExtents> product_extents(const Block& b) {
  if (!b->contraction || b->contraction->operands.size() != 2 || b->writes.size() != 1) {
    return std::nullopt;
  }
  const tir::BlockContractionNode& c = *b->contraction;
  ProductExtents out;
  bool has_rows = false, has_columns = false, symbolic = false;
  for (const tir::IterVar& iter : b->iters) {
    const auto extent = tir::as_int(iter->extent);
    if (extent == 1) continue;
    const bool in_first = tir::uses_iteration(c, *c.operands[0].get(), iter->var),
               in_second = tir::uses_iteration(c, *c.operands[1].get(), iter->var);
    if (iter->kind == IterKind::Opaque || (!in_first && !in_second)) return std::nullopt;
    int64_t& count = iter->kind == IterKind::Reduce ? out.terms
                     : in_first && in_second        ? out.batch
                     : in_first                     ? out.rows
                                                    : out.columns;
    has_rows |= &count == &out.rows;
    has_columns |= &count == &out.columns;
    symbolic |= !extent && &count == &out.terms;
    count *= extent.value_or(&count == &out.batch ? 1 : kAssumedExtent);
  }
  if (!has_rows || !has_columns) return std::nullopt;
  if (symbolic) out.terms = -1;
  auto bytes = [&](size_t i) {
    return static_cast<int64_t>(c.operands[i]->buffer->dtype.element().bytes());
  };
  out.row_bytes = bytes(0);
  out.column_bytes = bytes(1);
  // As Schedule::as_product has them: the result's neighbours lie along the columns.
  for (size_t d = b->writes[0]->mins.size(); d-- > 0;) {
    const tir::PrimExpr& last = b->writes[0]->mins[d];
    auto iter = std::ranges::find_if(b->iters, [&](const tir::IterVar& i) {
      return last.get() == i->var.get() && tir::as_int(i->extent) != 1;
    });
    if (iter == b->iters.end()) continue;
    if (!tir::uses_iteration(c, *c.operands[1].get(), (*iter)->var)) {
      std::swap(out.rows, out.columns);
      std::swap(out.row_bytes, out.column_bytes);
    }
    break;
  }
  return out;
}

int64_t shared_bytes_of(const ProductExtents& product, const GroupTile& tile) {
  return tile.depth * (tir::padded_row_bytes(tile.group_rows(), product.row_bytes) +
                       tir::padded_row_bytes(tile.group_columns(), product.column_bytes));
}

TileChoice choose_tile(const ProductExtents& product, const WorkItemLimits& limits) {
  TileChoice out;
  double least = std::numeric_limits<double>::max();
  std::string why = "a group of the device has too few items or registers";
  // Tiles of items would be too few for the device; parts of the sum are not.
  const bool is_small = runs_side_by_side(limits) &&
                        product.batch * product.rows * product.columns < kFewItems * limits.units;
  const int64_t emptiest = is_small ? 4 : 2;
  for (int64_t rows = 8; rows >= 4; rows /= 2) {
    for (int64_t columns = 8; columns >= 4; columns /= 2) {
      GroupTile tile{.rows = rows, .columns = columns, .depth = kDepth};
      if (tile.row_items * tile.column_items > limits.group_items ||
          4 * (rows * columns + rows + columns) > 3 * limits.item_registers ||
          shared_bytes_of(product, tile) > limits.shared_bytes) {
        continue;
      }
      const std::pair<int64_t, int64_t> sides[] = {{product.rows, tile.group_rows()},
                                                   {product.columns, tile.group_columns()}};
      auto empty =
          std::ranges::find_if(sides, [&](const auto& e) { return emptiest * e.first < e.second; });
      if (empty != std::end(sides)) {
        why = "an extent of " + std::to_string(empty->first) + " leaves most of a tile of " +
              std::to_string(empty->second) + " empty";
        continue;
      }
      const int64_t groups = product.batch * ceil_of(product.rows, tile.group_rows()) *
                             ceil_of(product.columns, tile.group_columns());
      // Sums of so many terms are added in one go.
      const int64_t fewest = ceil_of(product.terms, tir::kShortProductSum);
      if (fewest > 1) {
        why = std::to_string(product.terms) + " terms are more than " +
              std::to_string(tir::kShortProductSum);
      }
      for (int64_t parts = fewest; parts <= kMostSumParts; parts *= 2) {
        if (parts > 1 && !runs_side_by_side(limits)) break;
        const int64_t part = ceil_of(product.terms, parts);
        if (parts > fewest && (part < kLeastPartTerms || groups * parts > 4 * limits.units)) break;
        if (groups * parts < kLeastGroups) {
          why = std::to_string(groups) + " groups are fewer than " + std::to_string(kLeastGroups);
          continue;
        }
        // A unit hides the latency of one group behind the work of another. The items of a later launch add the parts.
        const double waves = static_cast<double>(ceil_of(groups * parts, limits.units)) + 0.5;
        const auto term = static_cast<double>(rows * columns + rows + columns + 2);
        double time = waves * term * static_cast<double>(part + kDepth);
        if (parts > 1) {
          const auto results = static_cast<double>(product.batch * product.rows * product.columns);
          time += 2 * static_cast<double>(kLeastPartTerms) * term / 8 +
                  8 * results * static_cast<double>(parts + 1) /
                      static_cast<double>(limits.units * tile.row_items * tile.column_items);
        }
        if (time >= least) continue;
        least = time;
        tile.parts = parts;
        out.tile = tile;
      }
    }
  }
  if (!out.tile) out.why_not = why;
  return out;
}

StepResult<BlockRV> contract_in_groups(Schedule& s, const BlockRV& rv,
                                       const std::optional<BlockRV>& reader,
                                       const GroupTile& tile) {
  const tir::ProductBlocks blocks = RELAY_TRY(
      s.as_product(rv, {tile.group_rows(), tile.group_columns(), tile.depth, tile.parts}));
  inline_moves(s, blocks.row_operand);
  inline_moves(s, blocks.column_operand);
  if (reader) RELAY_TRY(s.reverse_compute_inline(*reader));
  // Tiles of groups, and in them of items.
  std::vector<LoopRV> order = blocks.batch;
  order.insert(order.end(), blocks.rows.begin(), blocks.rows.end());
  order.insert(order.end(), blocks.columns.begin(), blocks.columns.end());
  if (order.size() > 1) RELAY_TRY(s.reorder(order));
  const std::vector<LoopRV> rows =
      RELAY_TRY(split_tile(s, RELAY_TRY(s.fuse(blocks.rows)), tile.row_items, tile.rows));
  const std::vector<LoopRV> columns =
      RELAY_TRY(split_tile(s, RELAY_TRY(s.fuse(blocks.columns)), tile.column_items, tile.columns));
  std::vector<LoopRV> groups = blocks.batch;
  groups.insert(groups.end(), {rows[0], columns[0]});
  // Nothing stands between the loops that are bound and the items.
  std::ranges::stable_partition(groups, [&](const LoopRV& l) { return s.extent(l) == 1; });
  order = groups;
  order.insert(order.end(), {rows[2], columns[2], rows[1], rows[3], columns[1], columns[3]});
  RELAY_TRY(s.reorder(order));
  const LoopRV at = RELAY_TRY(bind_loops(s, groups, tir::kGroupTags)).back();
  RELAY_TRY(s.bind(rows[2], kItemsY));
  RELAY_TRY(s.bind(columns[2], kItemsX));
  for (const LoopRV& l : {rows[1], rows[3], columns[1], columns[3]}) RELAY_TRY(s.unroll(l));
  // The sum, in registers of the items.
  RELAY_TRY(s.compute_at(blocks.product, at));
  RELAY_TRY(s.set_scope(blocks.product, tir::Scope::Register));
  const std::vector<LoopRV> inside = loops_below(s, blocks.product, at);
  if (inside.size() != 3) {
    return tir::Illegal{"a tile has other loops than rows, columns and terms"};
  }
  const std::vector<LoopRV> r = RELAY_TRY(split_tile(s, inside[0], tile.row_items, tile.rows)),
                            c = RELAY_TRY(
                                split_tile(s, inside[1], tile.column_items, tile.columns)),
                            k = RELAY_TRY(s.split(inside[2], {-1, tile.depth}));
  RELAY_TRY(s.reorder({r[0], c[0], k[0], r[2], c[2], k[1], r[1], r[3], c[1], c[3]}));
  for (const LoopRV& l : {r[1], r[3], c[1], c[3]}) RELAY_TRY(s.unroll(l));
  const BlockRV init = RELAY_TRY(s.decompose_reduction(blocks.product, k[0]));
  RELAY_TRY(s.bind(r[2], kItemsY));
  RELAY_TRY(s.bind(c[2], kItemsX));
  const std::vector<LoopRV> of_init = loops_below(s, init, c[0]);
  if (of_init.size() != 6) return tir::Illegal{"a tile starts in other loops"};
  RELAY_TRY(s.bind(of_init[0], kItemsY));
  RELAY_TRY(s.bind(of_init[1], kItemsX));
  for (size_t i = 2; i < of_init.size(); ++i) RELAY_TRY(s.unroll(of_init[i]));
  RELAY_TRY(copy_to_shared(s, blocks.row_operand, k[0], blocks.row_terms_adjoin, tile));
  RELAY_TRY(copy_to_shared(s, blocks.column_operand, k[0], blocks.column_terms_adjoin, tile));
  return blocks.result;
}

int64_t few_of(int64_t items) {
  int64_t few = 1;
  while (few * few < items) few *= 2;
  return few;
}

namespace {

// The reduction of a block in two steps before it: by `items` items, and by few_of(items) of them; the later one first.
StepResult<std::vector<BlockRV>> cut_for_items(Schedule& s, const BlockRV& rv, int64_t items) {
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
  return std::vector<BlockRV>{second, first};
}

StepResult<> reduce_parts_at(Schedule& s, const std::vector<BlockRV>& parts, const LoopRV& at) {
  for (const BlockRV& part : parts) {
    RELAY_TRY(s.compute_at(part, at));
    RELAY_TRY(s.set_scope(part, tir::Scope::Shared));
    const std::vector<LoopRV> inside = loops_below(s, part, at);
    if (inside.empty()) return tir::Illegal{"a part has no loop over items"};
    RELAY_TRY(s.bind(inside[0], kItemsX));
  }
  return {};
}

// The loop over a row, its elements dealt out to the items.
StepResult<> deal_out(Schedule& s, const LoopRV& row, int64_t items) {
  const std::vector<LoopRV> parts = RELAY_TRY(s.split(row, {-1, items}));
  RELAY_TRY(s.reorder({parts[1], parts[0]}));
  RELAY_TRY(s.bind(parts[1], kItemsX));
  return {};
}

}  // namespace

StepResult<> reduce_in_groups(Schedule& s, const BlockRV& rv, int64_t items) {
  const std::vector<BlockRV> parts = RELAY_TRY(cut_for_items(s, rv, items));
  std::vector<LoopRV> groups = s.get_loops(rv);
  groups.pop_back();
  const LoopRV at = RELAY_TRY(bind_loops(s, groups, tir::kGroupTags)).back();
  return reduce_parts_at(s, parts, at);
}

StepResult<> rows_in_groups(Schedule& s, int64_t items) {
  std::vector<BlockRV> blocks = s.get_blocks();
  const BlockRV last = blocks.back();
  blocks.pop_back();
  std::vector<LoopRV> groups = s.get_loops(last);
  if (groups.size() < 2) return tir::Illegal{"its result is one row"};
  const LoopRV row = groups.back();
  groups.pop_back();
  const LoopRV at = RELAY_TRY(bind_loops(s, groups, tir::kGroupTags)).back();
  RELAY_TRY(deal_out(s, row, items));
  for (size_t i = blocks.size(); i-- > 0;) {
    const BlockRV& rv = blocks[i];
    const auto loops = loops_of(s, rv);
    if (!loops) return tir::Illegal{"block " + rv.name + " runs in an order"};
    std::vector<BlockRV> parts;
    if (!loops->reduction.empty()) parts = RELAY_TRY(cut_for_items(s, rv, items));
    RELAY_TRY(s.compute_at(rv, at));
    RELAY_TRY(s.set_scope(rv, tir::Scope::Shared));
    const size_t reductions = parts.empty() ? 0 : 1;
    const std::vector<LoopRV> inside = loops_below(s, rv, at);
    if (inside.size() > 1 + reductions || (!parts.empty() && inside.size() != 1)) {
      return tir::Illegal{"block " + rv.name +
                          " computes more than a row for each row of the result"};
    }
    if (parts.empty() && !inside.empty()) RELAY_TRY(deal_out(s, inside[0], items));
    RELAY_TRY(reduce_parts_at(s, parts, at));
  }
  return {};
}

}  // namespace relay
