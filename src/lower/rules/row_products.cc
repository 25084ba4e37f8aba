// Products of rows with rows: each result sums along neighbours of both operands, as nn.dense with weights that only
// the run knows.
#include <algorithm>

#include "lower/rules/lanes.h"
#include "lower/rules/row_loops.h"
#include "tir/schedule/loop_tree.h"

namespace relay {

using tir::Block;
using tir::BlockRV;
using tir::LoopRV;
using tir::Schedule;

namespace {

// A tile has so many rows and columns at most: the sum of its lanes is unrolled code for each result.
constexpr int64_t kMostRows = 4;
constexpr int64_t kMostColumns = 8;
// A sum of fewer vectors costs less than the sum of its lanes.
constexpr int64_t kLeastVectors = 4;

struct RowProductsParameters : AttrsOf<RowProductsParameters> {
  int64_t lanes = 2;
  int64_t rows = 1;
  int64_t columns = 1;
  bool threads = false;

  static AttrsList describe() {
    return {
        "relay.schedule.RowProducts",
        {attribute("lanes", &Self::lanes, "Products of one result that are summed in a vector."),
         attribute("rows", &Self::rows, "Rows of a tile."),
         attribute("columns", &Self::columns, "Columns of a tile."),
         attribute("threads", &Self::threads, "Whether threads share the tiles.")}};
  }
};

// The rows of a tile with the fewest loads: a vector for each result, each of its rows and one of its columns are
// registers.
int64_t columns_of_tile(int64_t rows, int64_t registers) {
  return std::clamp<int64_t>((registers - 1 - rows) / rows, 1, kMostColumns);
}
int64_t rows_of_tile(int64_t rows, int64_t registers) {
  int64_t best = 1;
  auto loads = [&](int64_t height) {
    const int64_t width = columns_of_tile(height, registers);
    return static_cast<double>((rows + height - 1) / height * (height + width)) /
           static_cast<double>(width);
  };
  for (int64_t height = 2; height <= std::min(rows, kMostRows); ++height) {
    if (loads(height) < loads(best)) best = height;
  }
  return best;
}

// A block of a tile with its loops over rows and columns; null where it has none.
struct TileBlock {
  BlockRV block;
  LoopRV row, column;
};

// `row` is the block's iteration over rows, which the columns follow; the tile is inside `depth` loops.
TileBlock in_tile(const Schedule& s, const BlockRV& rv, size_t depth, size_t row) {
  TileBlock out{rv, {}, {}};
  Block b = s.block(rv);
  std::vector<LoopRV> loops = s.get_loops(rv);
  for (size_t l = depth; l < loops.size(); ++l) {
    if (tir::uses_var(b->bindings[row], loops[l].var.get())) out.row = loops[l];
    if (tir::uses_var(b->bindings[row + 1], loops[l].var.get())) out.column = loops[l];
  }
  return out;
}

// Tiles of one size: the loops over them, what sums and what stores.
struct Tiles {
  LoopRV columns, rows;
  TileBlock sum, out;
};

// Full tiles of the axis, and what is left behind them as tiles of their own.
tir::StepResult<std::vector<Tiles>> cut(Schedule& s, const Tiles& full, LoopRV Tiles::*over,
                                        LoopRV TileBlock::*inside, int64_t extent, int64_t tile) {
  if (extent % tile == 0) return std::vector<Tiles>{full};
  tir::Partition p = RELAY_TRY(s.partition(full.*over, extent / tile));
  auto copied = [&](const LoopRV& l) {
    for (const auto& [head, tail] : p.loops) {
      if (head == l) return tail;
    }
    return l;
  };
  Tiles rest{copied(full.columns), copied(full.rows), full.sum, full.out};
  rest.*over = p.tail;
  for (TileBlock* b : {&rest.sum, &rest.out}) {
    *b = {p.copy_of(b->block), copied(b->row), copied(b->column)};
    RELAY_TRY(s.partition(b->*inside, extent % tile));
  }
  return std::vector<Tiles>{full, rest};
}

// Results of a tile are copies of code, each with a vector of partial sums, whose lanes are summed at the end.
tir::StepResult<> finish(Schedule& s, const Tiles& tiles, size_t depth, size_t row, int64_t length,
                         int64_t lanes) {
  const BlockRV& sum = tiles.sum.block;
  std::vector<LoopRV> vector = RELAY_TRY(s.split(s.get_loops(sum).back(), {-1, lanes}));
  // With the loop over vectors outside, the sum of the lanes is a nest of its own.
  std::vector<LoopRV> nest{vector[0]};
  for (const LoopRV& l : {tiles.sum.row, tiles.sum.column}) {
    if (l.var) nest.push_back(l);
  }
  nest.push_back(vector[1]);
  RELAY_TRY(s.reorder(nest));
  RELAY_TRY(s.mask_reduction(sum));
  const BlockRV partial = RELAY_TRY(s.rfactor(sum, vector[1]));
  RELAY_TRY(s.set_scope(partial, tir::Scope::Register));
  const BlockRV zeros = RELAY_TRY(s.decompose_reduction(partial, vector[0]));
  for (const BlockRV& rv : {zeros, sum}) RELAY_TRY(s.vectorize(s.get_loops(rv).back()));
  for (const BlockRV& rv : {zeros, partial, sum, tiles.out.block}) {
    TileBlock b = in_tile(s, rv, depth, row);
    for (const LoopRV& l : {b.row, b.column}) {
      if (l.var) RELAY_TRY(s.unroll(l));
    }
  }
  if (length % lanes != 0) {
    tir::Partition p = RELAY_TRY(s.partition(vector[0], length / lanes));
    RELAY_TRY(s.vectorize(p.copy_of(vector[1])));
  }
  return s.vectorize(vector[1]);
}

// Lanes along the sum: a tile of results keeps a vector of partial sums for each in registers, and takes all rows
// before the next columns are read, so that these are read once and as they lie. Declined unless both operands are
// contiguous along the sum and no lanes over columns read neighbours.
Outcome schedule_row_products(Schedule& s, RowProductsParameters& parameters, Decider& decide) {
  std::vector<BlockRV> sums;
  BlockRV out;
  if (!RELAY_TRY(split_output(s, out, sums)) || sums.size() != 1) return Declined{};
  const BlockRV sum = sums[0];
  Block b = s.block(sum);
  const std::vector<LoopRV> loops = s.get_loops(sum), tiled = s.get_loops(out);
  const size_t spatial = tiled.size();
  const auto product = rows_by_rows(s, sum, spatial);
  const DType dtype = b->writes[0]->buffer->dtype;
  if (!product || product->rows == 0 || !dtype.is_floating() || dtype.bits < 32) return Declined{};
  for (size_t i = 0; i < spatial; ++i) {
    if (s.extent(tiled[i]) != s.extent(loops[i])) return Declined{};
  }
  const double work = static_cast<double>(product->rows) * static_cast<double>(product->columns) *
                      static_cast<double>(product->sum);
  const int64_t rows = s.extent(loops[spatial - 2]), columns = s.extent(loops[spatial - 1]);
  const int64_t length = s.extent(loops.back());
  if (rows == 1 || columns == 1 || !is_contiguous(s, sum, loops.back()) ||
      is_contiguous(s, sum, loops[spatial - 1])) {
    return Declined{};
  }
  const int64_t lanes = decide.number(parameters.lanes, {2, 64},
                                      [&](const Target& target) { return lanes_of(b, target); });
  if (length < kLeastVectors * lanes) return Declined{"a sum has few vectors"};
  const int64_t height = decide.number(
      parameters.rows, {1, std::min(rows, kMostRows)},
      [&](const Target& target) { return rows_of_tile(rows, target.num_vector_registers); });
  const int64_t width = decide.number(
      parameters.columns, {1, std::min(columns, kMostColumns)}, [&](const Target& target) {
        return std::min(columns, columns_of_tile(height, target.num_vector_registers));
      });

  std::vector<LoopRV> row = RELAY_TRY(s.split(tiled[spatial - 2], {-1, height}));
  std::vector<LoopRV> column = RELAY_TRY(s.split(tiled[spatial - 1], {-1, width}));
  RELAY_TRY(s.reorder({column[0], row[0], row[1], column[1]}));
  RELAY_TRY(s.compute_at(sum, row[0]));
  RELAY_TRY(s.set_scope(sum, tir::Scope::Register));
  const bool threads = decide.value(parameters.threads, [&](const Target& target) {
    return pays_threads(target, work, 16 * kMinParallelWork);
  });
  if (threads) RELAY_TRY(s.parallel(column[0]));
  const size_t at = spatial - 2;
  const Tiles all{column[0], row[0], in_tile(s, sum, spatial, at), in_tile(s, out, spatial, at)};
  for (const Tiles& wide :
       RELAY_TRY(cut(s, all, &Tiles::columns, &TileBlock::column, columns, width))) {
    for (const Tiles& each : RELAY_TRY(cut(s, wide, &Tiles::rows, &TileBlock::row, rows, height))) {
      RELAY_TRY(finish(s, each, spatial, at, length, lanes));
    }
  }
  return Report{"rows by rows: " + std::to_string(lanes) + " lanes along the sum, " +
                std::to_string(height) + "x" + std::to_string(width) + " register tile" +
                (threads ? ", threads over columns" : "")};
}

}  // namespace

const ScheduleRule kRowProductsRule = schedule_rule<RowProductsParameters, schedule_row_products>(
    "row_products", "sums of products of rows with rows");

}  // namespace relay
