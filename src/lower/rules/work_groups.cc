#include "lower/rules/work_groups.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "lower/rules/item_loops.h"
#include "lower/rules/lanes.h"
#include "node/walk.h"
#include "tir/arith/analyzer.h"
#include "tir/block_contraction.h"
#include "tir/copied_value.h"
#include "tir/passes/block_sums.h"
#include "tir/passes/pad_shared_rows.h"
#include "tir/passes/statements.h"
#include "tir/warp_nest.h"

namespace relay {

using tir::Block;
using tir::BlockRV;
using tir::IterKind;
using tir::LoopRV;
using tir::Schedule;
using tir::StepResult;

namespace {

const std::string kItemsX(tir::kItemTags[0]);

// Terms in shared memory at a time, and the fewest of a part of a sum.
constexpr int64_t kDepth = 16, kLeastPartTerms = 64;
constexpr int64_t kMostSumParts = 64;
// Neighbouring elements that an item has: what one vector load reads.
constexpr int64_t kRun = 4;
// Results for each multiprocessor, in tiles of 16 for an item: below that, it has work for two warps.
constexpr int64_t kFewItems = 1024;
// Registers of an item in a warp for other things than operands and sums. Of a tile of a group of warps, elements and sides
// that take as long as 256 multiply-adds of items: they are not measured.
constexpr int64_t kWarpRegisters = 48;
constexpr double kWarpArea = 2048, kWarpSide = 16;
// In which a group waits for the terms that it copies, and for its items alone.
constexpr double kWarpStep = 200, kWarpBarrier = 20;
// Copies run ahead in sums of so many steps, and so many steps at most.
constexpr int64_t kLeastSteps = 3, kSlotsAhead = 3;
// Bytes of the terms of a row in shared memory, at least.
constexpr int64_t kLeastWarpRow = 32;
// What one copy that arrives later has, at most and at least.
constexpr int64_t kLongestCopy = 16, kShortestCopy = 4;
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

// The loops over the items of a group: the last one is over neighbours.
StepResult<> bind_items(Schedule& s, const std::vector<LoopRV>& items) {
  for (size_t i = 0; i < items.size(); ++i) {
    RELAY_TRY(s.bind(items[items.size() - 1 - i], std::string(tir::kItemTags[i])));
  }
  return {};
}

// Terms in front of rows, or columns: items read neighbouring ones.
StepResult<> swap_terms(Schedule& s, const BlockRV& copy) {
  const auto rank = static_cast<int64_t>(s.block(copy)->iters.size());
  std::vector<tir::LayoutAxis> layout;
  for (int64_t d = 0; d + 2 < rank; ++d) layout.push_back({d});
  layout.insert(layout.end(), {{rank - 1}, {rank - 2}});
  RELAY_TRY(s.transform_layout(copy, layout));
  return {};
}

// Neighbouring elements of an operand that arrive later at a time, of which the group has `own` rows or columns; 0: the copy goes
// through registers, as it converts, or its elements are smaller than any such copy.
int64_t later_run(const Schedule& s, const BlockRV& copy, bool terms_adjoin, const GroupTile& tile,
                  int64_t own) {
  const Block b = s.block(copy);
  auto* store = as<tir::StoreNode>(b->body);
  if (!tile.later || store == nullptr || store->predicate) return 0;
  const tir::CopiedValue copied = tir::copied_value(store->value);
  const tir::LoadNode* from = copied.from;
  if (from == nullptr || from->indices.empty()) return 0;
  const auto bytes = static_cast<int64_t>(store->buffer->dtype.element().bytes());
  const tir::IterVar along = b->iters[b->iters.size() - (terms_adjoin ? 1 : 2)];
  // The iteration is `turn * run + i`: elements are side by side where their place follows i, one by one, from a multiple of the
  // run on.
  auto is_run = [&](int64_t run) {
    // All items have as many runs.
    if ((terms_adjoin ? tile.depth : own) % run != 0 ||
        own * tile.depth % (tile.items() * run) != 0) {
      return false;
    }
    tir::Analyzer analyzer;
    for (const tir::IterVar& iter : b->iters) analyzer.bind(iter->var, iter->min, iter->extent);
    const tir::Var turn = tir::var("turn", tir::kIndex), i = tir::var("i", tir::kIndex);
    analyzer.bind(turn, tir::index(0), tir::floor_div(along->extent + (run - 1), tir::index(run)));
    analyzer.bind(i, tir::index(0), tir::index(run));
    auto at = [&](const tir::PrimExpr& e, const tir::PrimExpr& place) {
      return analyzer.simplify(tir::replace(e, {{along->var.get(), turn * run + place}}));
    };
    const tir::PrimExpr place = tir::element_offset(*from->buffer.get(), from->indices),
                        first = at(place, tir::index(0));
    const auto [modulus, remainder] = analyzer.modular(first);
    return analyzer.constant_difference(at(place, i), first + i) == 0 && modulus % run == 0 &&
           remainder % run == 0 && !(copied.inside && tir::uses(at(copied.inside, i), i.get()));
  };
  // Terms are neighbours in shared memory for warps alone.
  for (int64_t run = kLongestCopy / bytes; run * bytes >= kShortestCopy; run /= 2) {
    if (terms_adjoin == (tile.warps > 0) && is_run(run)) return run;
  }
  return bytes == kShortestCopy ? 1 : 0;
}

// The copy of an operand to shared memory inside `at`, by all items: neighbouring items copy neighbouring elements, or runs of
// them that arrive later. Of the operand, a group has `own` rows or columns.
StepResult<> copy_to_shared(Schedule& s, const BlockRV& copy, const LoopRV& at, bool terms_adjoin,
                            const GroupTile& tile, int64_t own) {
  const int64_t run = later_run(s, copy, terms_adjoin, tile, own);
  if (tile.warps == 0) RELAY_TRY(swap_terms(s, copy));
  RELAY_TRY(s.compute_at(copy, at));
  RELAY_TRY(s.set_scope(copy, tir::Scope::Shared));
  std::vector<LoopRV> loops = loops_below(s, copy, at);
  if (loops.size() != 2) return tir::Illegal{"a tile of an operand has other axes than two"};
  if (!terms_adjoin) {
    std::swap(loops[0], loops[1]);
    RELAY_TRY(s.reorder(loops));
  }
  // Elements of a run stay neighbours.
  if (run > 1) loops[1] = RELAY_TRY(s.split(loops[1], {-1, run}))[0];
  const LoopRV all = RELAY_TRY(s.fuse(loops));
  const std::vector<int64_t> items =
      tile.warps == 0 ? std::vector{tile.row_items, tile.column_items}
                      : std::vector{tile.warps, tir::kWarpRows, tir::kWarpColumns};
  std::vector<int64_t> extents{-1};
  extents.insert(extents.end(), items.begin(), items.end());
  std::vector<LoopRV> parts = RELAY_TRY(s.split(all, extents));
  std::ranges::rotate(parts, parts.begin() + 1);
  RELAY_TRY(s.reorder(parts));
  // Registers have places that are known.
  if (tile.slots > 1) RELAY_TRY(s.unroll(parts.back()));
  parts.pop_back();
  RELAY_TRY(bind_items(s, parts));
  if (run > 0) RELAY_TRY(s.nest(parts.back(), tir::LoopNest::Copy));
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

void find_later_copies(const Schedule& s, const BlockRV& rv, bool by_warps,
                       ProductExtents& product) {
  // Of all tiles, one of the shortest rows in shared memory.
  GroupTile tile{.rows = 4, .columns = 4, .depth = kDepth, .slots = 2, .later = true};
  if (by_warps) {
    tile.depth = kLeastWarpRow / std::max(product.row_bytes, product.column_bytes);
    tile.warps = 4;
    tile.matrix_rows = 2 * tir::kWarpRows;
  }
  Schedule tried = s;
  auto blocks = tried.as_product(rv, {tile.group_rows(), tile.group_columns(), tile.depth, 1});
  if (!blocks.is_legal()) return;
  const tir::ProductBlocks b = std::move(blocks).take();
  auto is_later = [&](const BlockRV& copy, bool terms_adjoin, int64_t own) {
    inline_moves(tried, copy);
    return later_run(tried, copy, terms_adjoin, tile, own) > 0;
  };
  product.row_later = is_later(b.row_operand, b.row_terms_adjoin, tile.group_rows());
  product.column_later = is_later(b.column_operand, b.column_terms_adjoin, tile.group_columns());
}

int64_t shared_bytes_of(const ProductExtents& product, const GroupTile& tile) {
  // Items read neighbouring rows and columns, warps neighbouring terms.
  auto bytes = [&](int64_t elements, int64_t element_bytes) {
    return tile.warps > 0 ? elements * tir::padded_row_bytes(tile.depth, element_bytes)
                          : tile.depth * tir::padded_row_bytes(elements, element_bytes);
  };
  return tile.slots * (bytes(tile.group_rows(), product.row_bytes) +
                       bytes(tile.group_columns(), product.column_bytes));
}

MatrixOperand matrix_operand_of(const Block& b) {
  using Operand = MatrixInstruction::Operand;
  auto* store = as<tir::StoreNode>(b->body);
  const auto sum = store == nullptr ? std::nullopt : tir::sum_of_products(*store);
  if (!sum) return {{}, "it sums more than products of its operands"};
  const tir::DType x = sum->a->dtype, y = sum->b->dtype, sums = store->buffer->dtype;
  auto is_byte = [](tir::DType d) { return d.is_integer() && d.bits == 8; };
  MatrixOperand out;
  std::optional<Operand>& operand = out.operand;
  if (x == y && sums.is_float(32)) {
    if (x.is_float(16)) operand = Operand::Float16;
    if (x.is_bfloat16()) operand = Operand::BFloat16;
    if (x.is_float(32)) operand = Operand::Float32;
  } else if (is_byte(x) && is_byte(y) && sums == tir::DType::Int(32)) {
    operand = Operand::Bytes;
  }
  out.why_not = "the device has no instruction for " + x.to_string() +
                (x == y ? "" : " by " + y.to_string()) + " in " + sums.to_string();
  return out;
}

MatrixChoice matrix_instruction_of(const Block& b, const Target& target) {
  const MatrixOperand of = matrix_operand_of(b);
  MatrixChoice out;
  if (of.operand) out.instruction = matrix_instruction(target, *of.operand);
  if (out.instruction) return out;
  out.why_not = of.operand == MatrixInstruction::Operand::Float32
                    ? "the target keeps all bits of float32; +" + std::string(kTf32) + " rounds"
                    : of.why_not;
  return out;
}

namespace {

// Looks for the tile for which the device takes the least time.
class TileSearch {
 public:
  TileSearch(const ProductExtents& product, const WorkItemLimits& limits)
      : product_(product), limits_(limits) {
    // Tiles of items would be too few for the device; parts of the sum are not.
    const bool is_small = runs_side_by_side(limits) &&
                          product.batch * product.rows * product.columns < kFewItems * limits.units;
    emptiest_ = is_small ? 4 : 2;
  }

  // A tile without its parts and slots, of which a group takes so long for a term: steps of 256 multiply-adds.
  void consider(const GroupTile& tile, int64_t registers, double term) {
    // Of equal times, the one with copies that run ahead.
    for (int64_t slots = runs_side_by_side(limits_) ? kSlotsAhead : 1; slots >= 1; --slots) {
      GroupTile with = tile;
      with.slots = slots;
      with.later =
          slots > 1 && limits_.copies_later && (product_.row_later || product_.column_later);
      // One step ahead is as far as registers reach.
      if (slots > 2 && !with.later) continue;
      consider_slots(with, registers + (slots > 1 ? copied_registers(with) : 0), term);
    }
  }

  TileChoice take() const { return {best_, best_ ? std::string() : why_}; }

 private:
  // Of an item: what it copies stays in them until the terms before are multiplied, beside an address of 64 bits for each.
  int64_t copied_registers(const GroupTile& tile) const {
    auto of = [&](int64_t own, bool later) {
      constexpr int64_t kCopied = 3;
      return tile.later && later ? 0 : kCopied * ceil_of(own * tile.depth, tile.items());
    };
    return of(tile.group_rows(), product_.row_later) +
           of(tile.group_columns(), product_.column_later);
  }

  void consider_slots(GroupTile tile, int64_t registers, double term) {
    const int64_t resident = std::max<int64_t>(1, limits_.group_items / tile.items());
    if (tile.items() > limits_.group_items || registers > resident * limits_.item_registers ||
        shared_bytes_of(product_, tile) > limits_.shared_bytes) {
      return;
    }
    const std::pair<int64_t, int64_t> sides[] = {{product_.rows, tile.group_rows()},
                                                 {product_.columns, tile.group_columns()}};
    auto empty =
        std::ranges::find_if(sides, [&](const auto& e) { return emptiest_ * e.first < e.second; });
    if (empty != std::end(sides)) {
      why_ = "an extent of " + std::to_string(empty->first) + " leaves most of a tile of " +
             std::to_string(empty->second) + " empty";
      return;
    }
    const int64_t groups = product_.batch * ceil_of(product_.rows, tile.group_rows()) *
                           ceil_of(product_.columns, tile.group_columns());
    // Sums of so many terms are added in one go.
    const int64_t fewest = ceil_of(product_.terms, tir::kShortProductSum);
    if (fewest > 1) {
      why_ = std::to_string(product_.terms) + " terms are more than " +
             std::to_string(tir::kShortProductSum);
    }
    for (int64_t parts = fewest; parts <= kMostSumParts; parts *= 2) {
      if (parts > 1 && !runs_side_by_side(limits_)) break;
      const int64_t part = ceil_of(product_.terms, parts);
      if (parts > fewest && (part < kLeastPartTerms || groups * parts > 4 * limits_.units)) break;
      if (tile.slots > 1 && ceil_of(part, tile.depth) < kLeastSteps) break;
      if (groups * parts < kLeastGroups) {
        why_ = std::to_string(groups) + " groups are fewer than " + std::to_string(kLeastGroups);
        continue;
      }
      // A unit hides the latency of one group behind the work of another. The items of a later launch add the parts.
      const double waves =
          static_cast<double>(ceil_of(groups * parts, limits_.units * resident)) + 0.5;
      double time = waves * term * static_cast<double>(part + tile.depth);
      if (tile.warps > 0) {
        const auto steps = static_cast<double>(ceil_of(part, tile.depth));
        const double step = term * static_cast<double>(tile.depth);
        // Copies that run ahead arrive while the terms before them are multiplied; registers reach one step ahead.
        const bool all_later = tile.later && product_.row_later && product_.column_later;
        const double ahead = all_later ? static_cast<double>(tile.slots - 1) : 1;
        const double wait =
            tile.slots == 1 ? kWarpStep : std::max(kWarpBarrier, kWarpStep - ahead * step);
        time = waves * (step * steps + wait * steps + kWarpStep);
      }
      if (parts > 1) {
        const auto results = static_cast<double>(product_.batch * product_.rows * product_.columns);
        time += 2 * static_cast<double>(kLeastPartTerms) * term / 8 +
                8 * results * static_cast<double>(parts + 1) /
                    static_cast<double>(limits_.units * tile.items());
      }
      if (time >= least_) continue;
      least_ = time;
      tile.parts = parts;
      best_ = tile;
    }
  }

  const ProductExtents& product_;
  const WorkItemLimits& limits_;
  int64_t emptiest_ = 2;
  double least_ = std::numeric_limits<double>::max();
  std::optional<GroupTile> best_;
  std::string why_ = "a group of the device has too few items or registers";
};

}  // namespace

TileChoice choose_tile(const ProductExtents& product, const WorkItemLimits& limits) {
  TileSearch search(product, limits);
  for (int64_t rows = 8; rows >= 4; rows /= 2) {
    for (int64_t columns = 8; columns >= 4; columns /= 2) {
      // A quarter of the registers has addresses.
      const int64_t registers = 4 * (rows * columns + rows + columns) / 3;
      search.consider({.rows = rows, .columns = columns, .depth = kDepth}, registers,
                      static_cast<double>(rows * columns + rows + columns + 2));
    }
  }
  return search.take();
}

bool fits_warps(const GroupTile& tile) {
  return tile.matrix_rows > 0 && tile.matrix_rows % tir::kWarpRows == 0 && tile.matrix_terms > 0 &&
         tile.depth % tile.matrix_terms == 0;
}

TileChoice choose_warp_tile(const ProductExtents& product, const WorkItemLimits& limits,
                            const MatrixInstruction& matrix) {
  TileSearch search(product, limits);
  const int64_t element = std::max(product.row_bytes, product.column_bytes);
  for (int64_t warps : {8, 4}) {
    for (int64_t rows : {2, 1}) {
      for (int64_t columns : {16, 8, 4}) {
        for (int64_t row_bytes : {4 * kLeastWarpRow, 2 * kLeastWarpRow, kLeastWarpRow}) {
          const GroupTile tile{.rows = rows,
                               .columns = columns,
                               .depth = row_bytes / element,
                               .warps = warps,
                               .matrix_rows = matrix.rows,
                               .matrix_terms = matrix.terms};
          const int64_t sums =
              rows * columns * matrix.rows * MatrixInstruction::kColumns / tir::kWarpItems;
          const auto side = static_cast<double>(tile.group_rows() + tile.group_columns()),
                     area = static_cast<double>(tile.group_rows() * tile.group_columns());
          // The instructions do eight times as much as those of items; copies to shared memory take longer.
          const double resident =
              static_cast<double>(limits.group_items) / static_cast<double>(tile.items());
          search.consider(tile, sums + 4 * rows + 2 * columns + kWarpRegisters,
                          resident * (area / kWarpArea + side / kWarpSide));
        }
      }
    }
  }
  return search.take();
}

namespace {

// A loop over rows or columns: over tiles of groups, those over items, and those of an item.
struct TileLoops {
  LoopRV group;
  std::vector<LoopRV> items, own;
};

StepResult<TileLoops> split_rows(Schedule& s, const LoopRV& loop, const GroupTile& tile) {
  if (tile.warps == 0) {
    const std::vector<LoopRV> l = RELAY_TRY(split_tile(s, loop, tile.row_items, tile.rows));
    return TileLoops{l[0], {l[2]}, {l[1], l[3]}};
  }
  const std::vector<LoopRV> l = RELAY_TRY(s.split(
      loop, {-1, tile.warps, tile.rows, tile.matrix_rows / tir::kWarpRows, tir::kWarpRows}));
  return TileLoops{l[0], {l[1], l[4]}, {l[2], l[3]}};
}

StepResult<TileLoops> split_columns(Schedule& s, const LoopRV& loop, const GroupTile& tile) {
  const std::vector<LoopRV> l =
      tile.warps == 0
          ? RELAY_TRY(split_tile(s, loop, tile.column_items, tile.columns))
          : RELAY_TRY(s.split(loop, {-1, tile.columns, tir::kWarpColumns, tir::kItemColumns}));
  return TileLoops{l[0], {l[2]}, {l[1], l[3]}};
}

std::vector<LoopRV> joined_loops(std::initializer_list<std::vector<LoopRV>> all) {
  std::vector<LoopRV> out;
  for (const auto& some : all) out.insert(out.end(), some.begin(), some.end());
  return out;
}

}  // namespace

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
  const TileLoops rows = RELAY_TRY(split_rows(s, RELAY_TRY(s.fuse(blocks.rows)), tile)),
                  columns = RELAY_TRY(split_columns(s, RELAY_TRY(s.fuse(blocks.columns)), tile));
  std::vector<LoopRV> groups = blocks.batch;
  groups.insert(groups.end(), {rows.group, columns.group});
  // Nothing stands between the loops that are bound and the items.
  std::ranges::stable_partition(groups, [&](const LoopRV& l) { return s.extent(l) == 1; });
  const std::vector<LoopRV> items = joined_loops({rows.items, columns.items}),
                            own = joined_loops({rows.own, columns.own});
  RELAY_TRY(s.reorder(joined_loops({groups, items, own})));
  const LoopRV at = RELAY_TRY(bind_loops(s, groups, tir::kGroupTags)).back();
  RELAY_TRY(bind_items(s, items));
  for (const LoopRV& l : own) RELAY_TRY(s.unroll(l));
  // The sum, in registers of the items.
  RELAY_TRY(s.compute_at(blocks.product, at));
  RELAY_TRY(s.set_scope(blocks.product, tir::Scope::Register));
  const std::vector<LoopRV> inside = loops_below(s, blocks.product, at);
  if (inside.size() != 3) {
    return tir::Illegal{"a tile has other loops than rows, columns and terms"};
  }
  const TileLoops r = RELAY_TRY(split_rows(s, inside[0], tile)),
                  c = RELAY_TRY(split_columns(s, inside[1], tile));
  const std::vector<LoopRV> k = RELAY_TRY(s.split(inside[2], {-1, tile.depth}));
  const std::vector<LoopRV> of_product = joined_loops({r.items, c.items});
  std::vector<LoopRV> turned{k[1]}, unrolled = joined_loops({r.own, c.own}), nest;
  if (tile.warps > 0) {
    const std::vector<LoopRV> steps = RELAY_TRY(s.split(k[1], {-1, tile.matrix_terms}));
    nest = {steps[1], r.own[1], c.own[1]};
    turned.clear();
    unrolled = {steps[0], r.own[0], c.own[0]};
  }
  RELAY_TRY(
      s.reorder(joined_loops({{r.group, c.group, k[0]}, of_product, turned, unrolled, nest})));
  for (const LoopRV& l : unrolled) RELAY_TRY(s.unroll(l));
  const BlockRV init = RELAY_TRY(s.decompose_reduction(blocks.product, k[0]));
  RELAY_TRY(bind_items(s, of_product));
  for (const LoopRV& l : nest) RELAY_TRY(s.nest(l, tir::LoopNest::Matrix));
  const std::vector<LoopRV> of_init = loops_below(s, init, c.group);
  const auto starts = static_cast<std::ptrdiff_t>(of_product.size());
  if (of_init.size() != of_product.size() + 4) return tir::Illegal{"a tile starts in other loops"};
  RELAY_TRY(bind_items(s, {of_init.begin(), of_init.begin() + starts}));
  for (auto l = of_init.begin() + starts; l != of_init.end(); ++l) RELAY_TRY(s.unroll(*l));
  RELAY_TRY(copy_to_shared(s, blocks.row_operand, k[0], blocks.row_terms_adjoin, tile,
                           tile.group_rows()));
  RELAY_TRY(copy_to_shared(s, blocks.column_operand, k[0], blocks.column_terms_adjoin, tile,
                           tile.group_columns()));
  if (tile.slots > 1) RELAY_TRY(s.pipeline(k[0], tile.slots));
  return blocks.result;
}

int64_t GroupReduction::few() const {
  int64_t few = 1;
  while (few * few < items) few *= 2;
  return few;
}

namespace {

// The loop over as many iterations as a group has items, bound to these.
StepResult<> bind_group(Schedule& s, const LoopRV& loop, const GroupReduction& by) {
  if (!by.exchange || by.warps() == 1) {
    RELAY_TRY(s.bind(loop, kItemsX));
    return {};
  }
  return bind_items(s, RELAY_TRY(s.split(loop, {by.warps(), tir::kWarpItems})));
}

// The reduction of a block in steps before it, the later one first: by all items, and by some, or the warps.
StepResult<std::vector<BlockRV>> cut_for_items(Schedule& s, const BlockRV& rv,
                                               const GroupReduction& by) {
  const BlockLoops loops = *loops_of(s, rv);
  RELAY_TRY(order_loops(s, rv, loops));
  const LoopRV all =
      loops.reduction.size() == 1 ? loops.reduction[0] : RELAY_TRY(s.fuse(loops.reduction));
  const std::vector<LoopRV> terms = RELAY_TRY(s.split(all, {-1, by.items}));
  RELAY_TRY(s.mask_reduction(rv));
  const BlockRV first = RELAY_TRY(s.rfactor(rv, terms[1]));
  if (by.exchange && by.warps() == 1) return std::vector<BlockRV>{first};
  const std::vector<LoopRV> halves =
      RELAY_TRY(s.split(s.get_loops(rv).back(), {-1, by.exchange ? tir::kWarpItems : by.few()}));
  const BlockRV second = RELAY_TRY(s.rfactor(rv, by.exchange ? halves[0] : halves[1]));
  return std::vector<BlockRV>{second, first};
}

// The parts of the reduction `rv`, which stands inside `at`.
StepResult<> reduce_parts_at(Schedule& s, const BlockRV& rv, const std::vector<BlockRV>& parts,
                             const LoopRV& at, const GroupReduction& by) {
  for (const BlockRV& part : parts) {
    // What an item has for the others of its warp is its own.
    const bool own = by.exchange && part == parts.back();
    RELAY_TRY(s.compute_at(part, at));
    RELAY_TRY(s.set_scope(part, own ? tir::Scope::Register : tir::Scope::Shared));
    const std::vector<LoopRV> inside = loops_below(s, part, at);
    if (inside.empty()) return tir::Illegal{"a part has no loop over items"};
    if (own || !by.exchange) {
      RELAY_TRY(bind_group(s, inside[0], by));
    } else {
      if (inside.size() != 2) return tir::Illegal{"warps reduce along several axes"};
      RELAY_TRY(s.bind(inside[0], std::string(tir::kItemTags[1])));
      RELAY_TRY(s.reduce_lanes(inside[1]));
    }
  }
  if (by.exchange && by.warps() == 1) RELAY_TRY(s.reduce_lanes(s.get_loops(rv).back()));
  return {};
}

// The loop over a row, its elements dealt out to the items.
StepResult<> deal_out(Schedule& s, const LoopRV& row, const GroupReduction& by) {
  const std::vector<LoopRV> parts = RELAY_TRY(s.split(row, {-1, by.items}));
  RELAY_TRY(s.reorder({parts[1], parts[0]}));
  return bind_group(s, parts[1], by);
}

}  // namespace

StepResult<> reduce_in_groups(Schedule& s, const BlockRV& rv, const GroupReduction& by) {
  const std::vector<BlockRV> parts = RELAY_TRY(cut_for_items(s, rv, by));
  std::vector<LoopRV> groups = s.get_loops(rv);
  groups.pop_back();
  const LoopRV at = RELAY_TRY(bind_loops(s, groups, tir::kGroupTags)).back();
  return reduce_parts_at(s, rv, parts, at, by);
}

StepResult<> rows_in_groups(Schedule& s, const GroupReduction& by) {
  std::vector<BlockRV> blocks = s.get_blocks();
  const BlockRV last = blocks.back();
  blocks.pop_back();
  std::vector<LoopRV> groups = s.get_loops(last);
  if (groups.size() < 2) return tir::Illegal{"its result is one row"};
  const LoopRV row = groups.back();
  groups.pop_back();
  const LoopRV at = RELAY_TRY(bind_loops(s, groups, tir::kGroupTags)).back();
  RELAY_TRY(deal_out(s, row, by));
  for (size_t i = blocks.size(); i-- > 0;) {
    const BlockRV& rv = blocks[i];
    const auto loops = loops_of(s, rv);
    if (!loops) return tir::Illegal{"block " + rv.name + " runs in an order"};
    std::vector<BlockRV> parts;
    if (!loops->reduction.empty()) parts = RELAY_TRY(cut_for_items(s, rv, by));
    RELAY_TRY(s.compute_at(rv, at));
    RELAY_TRY(s.set_scope(rv, tir::Scope::Shared));
    const size_t reductions = parts.empty() ? 0 : 1;
    const std::vector<LoopRV> inside = loops_below(s, rv, at);
    if (inside.size() > 1 + reductions || (!parts.empty() && inside.size() != 1)) {
      return tir::Illegal{"block " + rv.name +
                          " computes more than a row for each row of the result"};
    }
    if (parts.empty() && !inside.empty()) RELAY_TRY(deal_out(s, inside[0], by));
    if (!parts.empty()) RELAY_TRY(reduce_parts_at(s, rv, parts, at, by));
  }
  return {};
}

}  // namespace relay
