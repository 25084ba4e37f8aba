// Register tiles where only a run knows how many rows or columns there are, and those of sums of blocks.
#include <algorithm>

#include "lower/rules/contraction_loops.h"
#include "lower/rules/contraction_matrix.h"
#include "lower/rules/lanes.h"

namespace relay {

using tir::Block;
using tir::BlockRV;
using tir::LoopRV;
using tir::Partition;
using tir::Schedule;

std::vector<int64_t> tile_sizes_of(int64_t extent, int64_t tile, int64_t step) {
  // Tiles of so many rows are written out for every smaller number too.
  constexpr int64_t kFewRows = 6;
  std::vector<int64_t> out{tile};
  if (extent != kOpen) {
    if (extent % tile != 0) out.push_back(extent % tile);
    return out;
  }
  if (step == 1) {
    int64_t most = tile <= kFewRows ? tile - 1 : tile / 2 + 1;
    for (int64_t rest = most; rest >= 1; --rest) out.push_back(rest);
    return out;
  }
  int64_t rest = 1;
  while (step * rest < tile) rest *= step;
  for (; tile > 1 && rest >= 1; rest /= step) out.push_back(rest);
  return out;
}

namespace {

// Vectors of so many bits may have a mask at every instruction.
constexpr int64_t kMaskedBits = 512;

// The sum, the block that stores it, the one that copies it between the two, the one that has its terms and the one that
// makes the weights of its columns, where there are such, with the axes' loops around the second.
struct Copies {
  BlockRV sum, out, copy, terms, made;
  LoopRV row, column;
  LoopRV panel = {};  // over the tiles of columns whose weights are made at once
};

// The plan of tiles with these steps between the sizes of those for what larger ones leave over. `threads`: they share tiles
// of columns, and nothing else.
TilePlan choose_open_plan(const Sum& sum, int64_t row_step, int64_t column_step,
                          const Target& target, bool threads = false, const Sum* terms = nullptr) {
  TilePlan plan;
  auto share = [&](const Tile& t) {
    return threads && sum.columns() != kOpen
               ? busiest_share(sum.columns(), t.columns, target.num_cores)
               : 1;
  };
  const Tile tile =
      sum.matrix ? *choose_matrix_tile(sum) : choose_tile(terms ? *terms : sum, target, share);
  plan.rows = tile_sizes_of(sum.rows(), tile.height, row_step);
  plan.columns = tile_sizes_of(sum.columns(), tile.columns, column_step);
  plan.lanes = lanes_of(sum, target);
  plan.registers = registers_for_steps(sum, target);
  // Under a mask a multiply-add of some lanes takes as long as one of all.
  if (sum.columns() == kOpen && !sum.matrix && tile.columns >= plan.lanes &&
      target.vector_bits == kMaskedBits) {
    std::erase_if(plan.columns, [&](int64_t width) { return width < plan.lanes; });
    if (plan.columns.back() > plan.lanes) plan.columns.push_back(plan.lanes);
    plan.masked_end = true;
  }
  return plan;
}

// Whether sizes, each for what those before it leave over, end with one that leaves nothing of the extent.
bool covers(int64_t extent, const std::vector<int64_t>& sizes, int64_t most) {
  if (sizes.empty()) return false;
  int64_t rest = extent, before = most + 1;
  for (int64_t size : sizes) {
    if (size < 1 || size >= before) return false;
    before = size;
    if (rest != kOpen) rest %= size;
  }
  return rest == 0 || (rest == kOpen && before == 1);
}

// Whole tiles that a constant number of columns fills.
int64_t whole_tiles(const Sum& sum, const TilePlan& plan) {
  return sum.columns() / plan.columns[0];
}

// A result that exceeds L2 goes to memory as it is written, where pieces of rows that are far apart cost more than long ones: so
// many panels that stay in a quarter of L2 make half a page of each row. On a Sapphire Rapids, 512 x 64 x 4608 takes 0.50 of the
// time, in bfloat16 0.55; 512 x 256 x 4096 0.92 and 0.60.
int64_t panels_of_long_rows(const Sum& sum, const TilePlan& plan, const Target& target) {
  constexpr int64_t kBytesOfRow = 2048;
  const auto bytes = static_cast<int64_t>(sum.dtype.bytes());
  const double row = static_cast<double>(sum.columns() * bytes);
  if (row * static_cast<double>(sum.rows()) <= static_cast<double>(target.l2_bytes)) return 1;
  const double panel = sum.reduction * static_cast<double>(plan.columns[0] * sum.weight_bytes);
  const auto kept = static_cast<int64_t>(static_cast<double>(target.l2_bytes) / 4 / panel);
  return std::clamp<int64_t>(kBytesOfRow / (plan.columns[0] * bytes), 1,
                             std::max<int64_t>(kept, 1));
}

// The tiles of columns whose weights are made before all rows pass by: a part of all whole tiles, such that threads have the
// same number of parts. On a Zen 5 with 1 MB of L2, 1024 x 768 x 3072 by a weight that is an input takes 0.98 of the time.
int64_t panels_at_once(const Sum& sum, const TilePlan& plan, const Target& target) {
  constexpr int64_t kPartsOfThread = 4;
  const int64_t all = whole_tiles(sum, plan);
  int64_t out = std::min(all, tiles_of_block(sum, {1, plan.rows[0], plan.columns[0], 0}, target));
  out = std::min(all, std::max(out, panels_of_long_rows(sum, plan, target)));
  auto is_shared = [&](int64_t parts) {
    return parts % target.num_cores == 0 || parts >= kPartsOfThread * target.num_cores;
  };
  while (out > 1 && (all % out != 0 || !is_shared(all / out))) --out;
  return std::max<int64_t>(out, 1);
}

// What passes by a matrix unit in the order of such tiles: the weights where each row of tiles takes several panels.
Streamed streamed_by_tiles(const Sum& sum, const TilePlan& plan, bool windows,
                           const Target& target) {
  return streamed_operand(sum, {1, plan.rows[0], plan.columns[0], 0}, plan.panels == 1, windows,
                          target);
}

// Whether a given plan is one of the sum's; `several`: weights may be made for several tiles.
bool is_plan_of(const Sum& sum, const TilePlan& plan, bool several = false) {
  constexpr int64_t kMostRows = 128, kMostVectors = 128;
  if (plan.lanes < kLanes.least || plan.lanes > kLanes.most) return false;
  const bool masked = plan.masked_end && sum.columns() == kOpen && !sum.matrix;
  const bool rows = covers(sum.rows(), plan.rows, kMostRows);
  const bool columns =
      masked ? !plan.columns.empty() && plan.columns.back() == plan.lanes &&
                   std::ranges::is_sorted(plan.columns, std::greater<>())
             : !plan.masked_end && covers(sum.columns(), plan.columns, kMostRows * kLanes.most);
  if (!rows || !columns) return false;
  if (plan.panels != 1) {
    const int64_t whole = whole_tiles(sum, plan);
    if (!several || plan.panels < 1 || whole < 1 || whole % plan.panels != 0) return false;
  }
  if (plan.rows[0] * ((plan.columns[0] + plan.lanes - 1) / plan.lanes) > kMostVectors) return false;
  return !sum.matrix || std::ranges::all_of(plan.rows, [&](int64_t height) {
    return std::ranges::all_of(
        plan.columns, [&](int64_t width) { return lies_in_registers(sum, 1, height, width); });
  });
}

class OpenTiles {
 public:
  // The steps: between the sizes of the tiles for what larger ones leave over.
  OpenTiles(Schedule& s, const Sum& sum, const TilePlan& plan, const Sum* terms = nullptr)
      : s_(s), sum_(sum), terms_(terms), plan_(plan) {}

  // The loops over tiles of columns, one for each part; outside of all others (`outermost`) or of the last rows.
  tir::StepResult<std::vector<LoopRV>> build(const BlockRV& out, bool outermost,
                                             const BlockRV& copy = {}, const BlockRV& made = {}) {
    std::vector<LoopRV> order = s_.get_loops(out);
    LoopRV column = order.back();
    order.pop_back();
    order.insert(outermost ? order.begin() : order.end() - 1, column);
    // Of a part of a kernel, what is around need be no perfect nest.
    RELAY_TRY(s_.reorder(outermost ? order : std::vector<LoopRV>(order.end() - 2, order.end())));
    Copies all{sum_.block, out,          copy,  terms_ ? terms_->block : BlockRV{},
               made,       order.back(), column};
    RELAY_TRY(sink(all, all.column));
    if (!made.name.empty()) RELAY_TRY(s_.compute_at(made, all.column));
    around_ = order.size() - 2;
    lines_.assign(order.begin() + 1, order.end() - 1);
    if (!outermost) lines_.clear();
    std::vector<LoopRV> tiles;
    bool left = true;
    for (int64_t size : plan_.columns) {
      if (!fits(all.column, size)) continue;
      const bool whole = s_.has_whole_tiles(all.column, size);
      Copies rest = whole ? Copies{} : RELAY_TRY(cut(all, all.column, size));
      tiles.push_back(RELAY_TRY(columns(all, size)));
      left = !whole;
      if (whole) break;
      all = rest;
    }
    if (plan_.masked_end && left) tiles.push_back(RELAY_TRY(columns(all, plan_.lanes)));
    return tiles;
  }

  // The blocks that make weights, one for each part of the columns.
  const std::vector<BlockRV>& made() const { return made_; }
  // The loop over the largest tiles of rows, of the first part of the columns.
  const LoopRV& large_tiles() const { return large_tiles_; }

  // "14x32 register tile, column loop outermost, open rows by 14, 8, 4, 2, 1".
  std::string text() const {
    auto list = [](const std::vector<int64_t>& sizes) {
      std::string out;
      for (int64_t size : sizes) out += (out.empty() ? "" : ", ") + std::to_string(size);
      return out;
    };
    std::string out = std::to_string(plan_.rows[0]) + "x" + std::to_string(plan_.columns[0]) +
                      " register tile, column loop outermost";
    if (sum_.rows() == kOpen) out += ", open rows by " + list(plan_.rows);
    if (sum_.columns() == kOpen) out += ", open columns by " + list(plan_.columns);
    if (plan_.masked_end) out += " and a mask";
    if (plan_.panels > 1) out += ", " + std::to_string(plan_.panels) + " tiles of columns at once";
    return out;
  }

 private:
  // Whether the loop may be as long as a tile.
  bool fits(const LoopRV& loop, int64_t size) const {
    int64_t extent = s_.extent(loop);
    return extent < 0 || extent >= size;
  }

  // What is stored is computed inside the loop, where it stands around that or inside.
  tir::StepResult<> sink(const Copies& c, const LoopRV& loop) {
    if (!c.copy.name.empty()) RELAY_TRY(s_.compute_at(c.copy, loop));
    RELAY_TRY(s_.compute_at(c.sum, loop));
    if (terms_) RELAY_TRY(s_.compute_at(c.terms, loop));
    return {};
  }
  tir::StepResult<> lift(const Copies& c, const LoopRV& loop) {
    if (terms_) RELAY_TRY(s_.compute_at(c.terms, loop));
    RELAY_TRY(s_.compute_at(c.sum, loop));
    if (!c.copy.name.empty()) RELAY_TRY(s_.compute_at(c.copy, loop));
    return {};
  }

  // The loop keeps what fills tiles of the size; the copies have the rest.
  tir::StepResult<Copies> cut(const Copies& c, const LoopRV& loop, int64_t size) {
    Partition p = RELAY_TRY(s_.partition_tiles(loop, size));
    Copies rest{p.copy_of(c.sum), p.copy_of(c.out), {}, {}, c.made, {}, {}};
    if (!c.made.name.empty() && loop == c.column) rest.made = p.copy_of(c.made);
    if (!c.copy.name.empty()) rest.copy = p.copy_of(c.copy);
    if (terms_) rest.terms = p.copy_of(c.terms);
    rest.row = loop == c.row ? p.tail : p.copy_of(c.row);
    if (c.panel.var) rest.panel = p.copy_of(c.panel);
    rest.column = loop == c.column ? p.tail : p.copy_of(c.column);
    return rest;
  }

  // The loop over tiles of one part of the columns.
  tir::StepResult<LoopRV> columns(Copies c, int64_t size) {
    const bool together = plan_.panels > 1 && size == plan_.columns[0];
    std::vector<LoopRV> tiles =
        RELAY_TRY(s_.split(c.column, together ? std::vector<int64_t>{-1, plan_.panels, size}
                                              : std::vector<int64_t>{-1, size}));
    c.column = tiles.back();
    if (!c.made.name.empty()) RELAY_TRY(s_.compute_at(c.made, tiles[0]));
    RELAY_TRY(lift(c, tiles[0]));
    std::vector<LoopRV> order = lines_;
    order.push_back(c.row);
    if (together) order.push_back(c.panel = tiles[1]);
    order.push_back(c.column);
    RELAY_TRY(s_.reorder(order));
    RELAY_TRY(sink(c, c.row));
    for (int64_t size : plan_.rows) {
      if (!fits(c.row, size)) continue;
      bool whole = s_.has_whole_tiles(c.row, size);
      Copies rest = whole ? Copies{} : RELAY_TRY(cut(c, c.row, size));
      RELAY_TRY(rows(c, size));
      if (whole) break;
      c = rest;
    }
    if (!c.made.name.empty()) made_.push_back(c.made);
    return tiles[0];
  }

  tir::StepResult<> rows(Copies c, int64_t size) {
    LoopRV tiles = c.row;
    LoopRV inside;
    if (size > 1) {
      std::vector<LoopRV> split = RELAY_TRY(s_.split(c.row, {-1, size}));
      tiles = split[0];
      inside = split[1];
    }
    if (!large_tiles_.var) large_tiles_ = tiles;
    RELAY_TRY(lift(c, tiles));
    size_t depth = around_ + 2;
    if (c.panel.var) {
      if (inside.var) RELAY_TRY(s_.reorder({c.panel, inside}));
      RELAY_TRY(sink(c, c.panel));
      ++depth;
    }
    std::vector<TilePart> parts = RELAY_TRY(sum_parts(s_, sum_, c.sum, depth, 2));
    const bool copies = !c.copy.name.empty();
    if (copies) {
      parts.push_back(tile_part(s_, sum_, c.copy, depth, 2));
      parts.back().by_matrix_unit = true;
    }
    parts.push_back({c.out, {inside, c.column}, {}, sum_.matrix && !copies});
    Tiling tiling(s_, sum_, plan_);
    if (terms_) {
      const LoopRV blocks = parts[1].sums.back().second;
      RELAY_TRY(s_.compute_at(c.terms, blocks));
      for (const TilePart& p : RELAY_TRY(sum_parts(s_, *terms_, c.terms, around_ + 3, 2))) {
        RELAY_TRY(Tiling(s_, *terms_, plan_).finish({}, p));
      }
    }
    // The rows of the next tile and the weights of the next panel come while these are multiplied.
    if (!c.made.name.empty() && size == plan_.rows[0] && parts.size() > 2 && !sum_.matrix) {
      const bool batch = sum_.roles[0] == ContractionRole::Batch;
      if (batch) {
        RELAY_TRY(s_.prefetch_next(parts[1].sums.back().second, tir::NextOperand::Read, size));
      } else {
        RELAY_TRY(s_.prefetch_next(tiles, tir::NextOperand::Copied));
      }
    }
    for (const TilePart& p : parts) RELAY_TRY(tiling.finish({}, p));
    return {};
  }

  Schedule& s_;
  const Sum& sum_;
  const Sum* terms_;  // null: what is summed are products
  const TilePlan& plan_;
  size_t around_ = 0;          // loops around those of rows and columns
  std::vector<LoopRV> lines_;  // those of them that stand between columns and rows
  std::vector<BlockRV> made_;
  LoopRV large_tiles_;
};

// Whether tiles of columns can stand outside of all rows: they are of one kind, and every line of rows has the same weights.
bool columns_may_be_outermost(const Sum& sum, const TilePlan& plan) {
  auto is_row = [](ContractionRole role) { return role == ContractionRole::Row; };
  return plan.columns.size() == 1 && std::all_of(sum.roles.begin(), sum.roles.end() - 1, is_row);
}

Outcome refuse_plan(Decider& decide) {
  decide.refuse("tiles do not fit their sum");
  return Declined{};
}

bool is_worth_threads(const Sum& sum, double terms) {
  double work = sum.reduction * terms;
  for (int64_t e : sum.extents) work *= static_cast<double>(typical_extent(e));
  return work >= 4 * kMinParallelWork;
}

// Threads share the tiles of columns and the lines around them; of columns in tiles of several widths the lines alone, and where
// there are none one width after the other. Of one tile's columns they share `rows`, the large tiles of rows. The end of the
// rule's sentence.
tir::StepResult<std::string> share_tiles(Schedule& s, const Sum& sum, std::vector<LoopRV> around,
                                         const std::vector<LoopRV>& columns, bool outermost,
                                         const LoopRV& rows = {}) {
  if (rows.var && around.empty() && columns.size() == 1 && s.extent(columns[0]) == 1) {
    RELAY_TRY(s.parallel(rows));
    return std::string(", threads over rows");
  }
  const bool lines = std::ranges::any_of(around, [&](const LoopRV& l) { return s.extent(l) != 1; });
  const bool batch = lines && sum.roles[around.size() - 1] == ContractionRole::Batch;
  if (columns.size() == 1) around.insert(outermost ? around.begin() : around.end(), columns[0]);
  if (columns.size() == 1 || lines) {
    RELAY_TRY(s.parallel(around.size() > 1 ? RELAY_TRY(s.fuse(around)) : around[0]));
  } else {
    for (const LoopRV& l : columns) {
      if (s.extent(l) != 1) RELAY_TRY(s.parallel(l));
    }
  }
  return std::string(", threads over ") + (batch ? "the batch" : "tiles");
}

}  // namespace

Outcome tile_open_part(Schedule& s, const Sum& sum, const BlockRV& out, TilePlans& plans,
                       Decider& decide) {
  const size_t at = plans.next();
  const TilePlan plan = decide.value(
      plans[at], [&](const Target& target) { return choose_open_plan(sum, 4, 4, target); });
  if (!decide.chooses() && !is_plan_of(sum, plan)) return refuse_plan(decide);
  OpenTiles tiles(s, sum, plan);
  RELAY_TRY(tiles.build(out, false));
  return Report{"sum: " + arithmetic_of(sum, decide) + ", " + tiles.text()};
}

namespace {

// A product of two axes whose rows only a run knows, from which blocks of so many tiles of rows are taken first. Few columns
// divide unequally among threads, and tiles for few rows, whose weights come from far, are not those of the least work. On two
// cores of a Sapphire Rapids, 1024 rows by a packed matrix of 256 x 144 take 0.5 of the time, 768 x 224 0.81.
constexpr int64_t kTilesOfBlock = 4;
double bytes_of_weights(const Sum& sum) {
  return sum.reduction * static_cast<double>(sum.columns() * sum.weight_bytes);
}
bool has_blocks_of_rows(const Sum& sum) {
  return sum.spatial.size() == 2 && sum.rows() == kOpen && sum.columns() != kOpen &&
         !sum.depthwise && !sum.matrix;
}

// The plan of their tiles; one without rows where blocks do not pay. Weights that do not stay in half of L2 pass by once for all
// blocks, which only a better division among threads is worth: 300 rows by 768 x 768 take 1.12 of the time in blocks. So are rows
// that whole tiles fill, which leave none over.
TilePlan plan_of_blocks(const Schedule& s, const Sum& sum, const LoopRV& rows,
                        const Target& target) {
  constexpr double kUnequal = 1.15;
  constexpr int64_t kVectorsOfTile = 3;
  TilePlan out = choose_open_plan(sum, 1, 2, target);
  out.rows.resize(1);
  out.threads = target.num_cores > 1;
  const double busiest = busiest_share(sum.columns(), out.columns[0], target.num_cores);
  const bool unequal = busiest * static_cast<double>(target.num_cores) > kUnequal;
  const bool near = bytes_of_weights(sum) <= static_cast<double>(target.l2_bytes) / 2;
  if (!near) out.column_loop = ColumnLoop::Outermost;
  const bool better = sum.panel != 0 && !s.has_whole_tiles(rows, out.rows[0]);
  const bool pays = near ? unequal || better : unequal && out.columns.size() == 1;
  // Of so few columns threads share the rows of one tile.
  if (!pays || sum.columns() <= kVectorsOfTile * out.lanes) out.rows.clear();
  return out;
}

// The blocks, which threads share, and then `sum` and `out` are what is left over, inside a loop of one iteration; nothing where
// they do not pay.
tir::StepResult<Outcome> tile_blocks_of_rows(Schedule& s, Sum& sum, BlockRV& out, TilePlans& plans,
                                             Decider& decide) {
  const LoopRV rows = s.get_loops(out)[0];
  const size_t at = plans.next();
  const TilePlan plan = decide.value(
      plans[at], [&](const Target& target) { return plan_of_blocks(s, sum, rows, target); });
  if (plan.rows.empty()) return Outcome(Report{});
  Sum block = sum;
  block.extents[0] = plan.rows[0] * kTilesOfBlock;
  if (!decide.chooses() && !is_plan_of(block, plan)) return refuse_plan(decide);
  RELAY_TRY(s.compute_at(sum.block, rows));
  const Partition p = RELAY_TRY(s.partition_tiles(rows, block.rows()));
  sum.block = p.copy_of(sum.block);
  const std::vector<LoopRV> blocks = RELAY_TRY(s.split(p.head, {-1, block.rows()}));
  RELAY_TRY(s.compute_at(block.block, blocks[0]));
  RELAY_TRY(s.compute_at(sum.block, RELAY_TRY(s.split(p.tail, {1, -1}))[0]));
  OpenTiles tiles(s, block, plan);
  const std::vector<LoopRV> columns = RELAY_TRY(tiles.build(out, false));
  out = p.copy_of(out);
  if (plan.threads) {
    std::vector<LoopRV> shared{blocks[0]};
    if (columns.size() == 1) shared.push_back(columns[0]);
    if (shared.size() == 2 && plan.column_loop == ColumnLoop::Outermost) {
      std::swap(shared[0], shared[1]);
      RELAY_TRY(s.reorder(shared));
    }
    RELAY_TRY(s.parallel(shared.size() == 2 ? RELAY_TRY(s.fuse(shared)) : shared[0]));
  }
  return Outcome(Report{std::to_string(block.rows()) + " rows by " + std::to_string(plan.rows[0]) +
                        "x" + std::to_string(plan.columns[0]) + " register tiles, then "});
}

}  // namespace

Outcome tile_open_loops(Schedule& s, const Sum& all, const BlockRV& result, TilePlans& plans,
                        Decider& decide, const BlockRV& copy) {
  std::vector<LoopRV> loops = s.get_loops(result);
  if (loops.size() != all.spatial.size()) return Declined{};
  Sum sum = all;
  BlockRV out = result;
  std::string blocks;
  if (has_blocks_of_rows(sum)) {
    const Outcome tiled = RELAY_TRY(tile_blocks_of_rows(s, sum, out, plans, decide));
    if (!took(tiled)) return tiled;
    blocks = text_of(tiled);
  }
  size_t around = loops.size() - 2;
  // Every size of rows by every size of columns is code of its own.
  bool both = sum.rows() == kOpen && sum.columns() == kOpen;
  // Few rows do not hide where the weights come from.
  Sum streamed = sum;
  const size_t at = plans.next();
  const TilePlan plan = decide.value(plans[at], [&](const Target& target) {
    streamed.streamed = sum.rows() == kOpen && sum.panel != 0 && !sum.depthwise && !sum.matrix;
    // The unit takes as long for a few rows as for half of a register.
    TilePlan chosen = choose_open_plan(streamed,
                                       both         ? 4
                                       : sum.matrix ? 2
                                                    : 1,
                                       both ? 4 : 2, target,
                                       target.num_cores > 1 && around == 0 && !streamed.streamed);
    chosen.prefetch = streamed.streamed;
    if (sum.matrix) {
      Block b = s.block(sum.block);
      const bool windows =
          std::count_if(b->iters.begin(), b->iters.end(), [](const tir::IterVar& i) {
            return i->kind == tir::IterKind::Reduce && tir::as_int(i->extent) != 1;
          }) > 1;
      // The unit waits for rows that are read again for each tile of columns: 4096 x 256 x 1024 took 1.7 times as long.
      if (around == 0 && !both && sum.columns() != kOpen && !windows) {
        chosen.panels = panels_at_once(sum, chosen, target);
      }
      chosen.streamed = streamed_by_tiles(sum, chosen, windows, target);
    }
    // Weights that do not stay in half of L2 pass by once for all lines, not once for each.
    if (around > 0 && bytes_of_weights(sum) > static_cast<double>(target.l2_bytes) / 2 &&
        columns_may_be_outermost(sum, chosen)) {
      chosen.column_loop = ColumnLoop::Outermost;
    }
    chosen.threads = target.num_cores > 1;
    return chosen;
  });
  const bool may_have_panels = sum.matrix && around == 0;
  if (!decide.chooses() && !is_plan_of(sum, plan, may_have_panels)) return refuse_plan(decide);
  streamed.streamed = plan.prefetch;
  if (sum.matrix) streamed.matrix->streamed = plan.streamed;
  const bool outermost = plan.column_loop == ColumnLoop::Outermost;
  if (outermost && (around == 0 || !columns_may_be_outermost(sum, plan)))
    return refuse_plan(decide);
  OpenTiles tiles(s, streamed, plan);
  std::vector<LoopRV> columns = RELAY_TRY(tiles.build(out, outermost, copy));
  std::string text = "sum: " + arithmetic_of(sum, decide) + ", " + blocks + tiles.text();
  if (plan.prefetch) text += ", weights prefetched";
  if (!plan.threads) return Report{text};
  loops.resize(around);
  return Report{text +
                RELAY_TRY(share_tiles(s, sum, loops, columns, outermost, tiles.large_tiles()))};
}

Outcome tile_block_loops(Schedule& s, const Sum& sum, const Sum& terms, const BlockRV& out,
                         TilePlans& plans, Decider& decide) {
  std::vector<LoopRV> loops = s.get_loops(out);
  if (loops.size() != sum.spatial.size()) return Declined{};
  const size_t at = plans.next();
  const TilePlan plan = decide.value(plans[at], [&](const Target& target) {
    TilePlan chosen = choose_open_plan(sum, 1, 2, target, false, &terms);
    if (loops.size() > 2 && columns_may_be_outermost(sum, chosen)) {
      chosen.column_loop = ColumnLoop::Outermost;
    }
    chosen.threads = target.num_cores > 1 && is_worth_threads(sum, terms.reduction);
    return chosen;
  });
  const bool outermost = plan.column_loop == ColumnLoop::Outermost;
  const bool may_be_outermost = loops.size() > 2 && columns_may_be_outermost(sum, plan);
  if (!decide.chooses() && (!is_plan_of(sum, plan) || (outermost && !may_be_outermost))) {
    return refuse_plan(decide);
  }
  OpenTiles tiles(s, sum, plan, &terms);
  std::vector<LoopRV> columns = RELAY_TRY(tiles.build(out, outermost));
  std::string text = "sum: " + arithmetic_of(sum, decide) + ", " + tiles.text();
  if (!plan.threads) return Report{text};
  loops.resize(loops.size() - 2);
  return Report{text +
                RELAY_TRY(share_tiles(s, sum, loops, columns, outermost, tiles.large_tiles()))};
}

Outcome tile_made_loops(Schedule& s, const Sum& sum, const BlockRV& made, const BlockRV& out,
                        bool several, TilePlans& plans, Decider& decide, const FinishMade& finish,
                        const BlockRV& copy) {
  std::vector<LoopRV> loops = s.get_loops(out);
  if (loops.size() != sum.spatial.size()) return Declined{};
  const size_t at = plans.next();
  const TilePlan plan = decide.value(plans[at], [&](const Target& target) {
    const bool threads = target.num_cores > 1 && is_worth_threads(sum, 1);
    TilePlan chosen =
        choose_open_plan(sum, sum.matrix ? 2 : 1, 2, target, threads && loops.size() == 2);
    chosen.threads = threads;
    if (several) chosen.panels = panels_at_once(sum, chosen, target);
    if (sum.matrix) {
      chosen.streamed = streamed_by_tiles(sum, chosen, false, target);
    }
    return chosen;
  });
  if (!decide.chooses() && !is_plan_of(sum, plan, several)) return refuse_plan(decide);
  Sum streamed = sum;
  if (sum.matrix) streamed.matrix->streamed = plan.streamed;
  OpenTiles tiles(s, streamed, plan);
  // Every matrix of a batch has weights of its own.
  const bool batch = loops.size() == 3 && sum.roles[0] == ContractionRole::Batch;
  if (loops.size() > 2 && !batch && !columns_may_be_outermost(sum, plan)) return Declined{};
  const bool outermost = loops.size() > 2 && !batch;
  std::vector<LoopRV> columns = RELAY_TRY(tiles.build(out, outermost, copy, made));
  for (size_t i = 0; i < columns.size(); ++i) {
    const Outcome finished = finish(tiles.made()[i], columns[i], plan);
    if (!took(finished)) return finished;
  }
  std::string text = "sum: " + arithmetic_of(sum, decide) + ", " + tiles.text();
  if (!plan.threads) return Report{text};
  loops.resize(loops.size() - 2);
  return Report{text + RELAY_TRY(share_tiles(s, sum, loops, columns, outermost))};
}

}  // namespace relay
