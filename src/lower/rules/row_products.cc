// Products of rows with rows: each result sums along neighbours of both operands, as nn.dense with weights that only
// the run knows.
#include <algorithm>

#include "lower/rules/choose.h"
#include "lower/rules/contraction_sum.h"
#include "lower/rules/lanes.h"
#include "lower/rules/row_loops.h"
#include "target/dot_products.h"
#include "tir/schedule/loop_tree.h"

namespace relay {

using tir::Block;
using tir::BlockRV;
using tir::LoopRV;
using tir::Schedule;

namespace {

// A tile has so many rows and columns at most: the sum of its lanes is unrolled code for each result.
constexpr int64_t kMostRows = 8;
constexpr int64_t kMostColumns = 8;
// A sum of fewer vectors costs less than the sum of its lanes.
constexpr int64_t kLeastVectors = 4;

struct RowProductsParameters : AttrsOf<RowProductsParameters> {
  bool pairs = false;
  int64_t lanes = 2;
  int64_t rows = 1;
  int64_t columns = 1;
  bool threads = false;

  static AttrsList describe() {
    return {"relay.schedule.RowProducts",
            {attribute("pairs", &Self::pairs,
                       "Whether one instruction multiplies two bfloat16 of a lane."),
             attribute("lanes", &Self::lanes, "Sums of one result in a vector."),
             attribute("rows", &Self::rows, "Rows of a tile."),
             attribute("columns", &Self::columns, "Columns of a tile."),
             attribute("threads", &Self::threads, "Whether threads share the tiles.")}};
  }
};

// A vector for each result, those of the rows or of the columns, whichever are fewer, and one of the others are registers.
int64_t columns_of_tile(int64_t rows, int64_t registers) {
  for (int64_t columns = kMostColumns; columns > 1; --columns) {
    if (rows * columns + std::min(rows, columns) + 1 <= registers) return columns;
  }
  return 1;
}

// The rows of a tile with few loads: of columns that come from memory as many as can be, so that they pass by once, while
// the products wait for them; of others four at most. On two cores of a Xeon with 2 MB of L2, 6 rows by a matrix of 1024 x 1024
// take 0.68 of the time with tiles of 3 x 8, 8 rows 0.80 of that with 4 x 6, 16 rows 0.98, 32 rows 1.02.
int64_t rows_of_tile(int64_t rows, int64_t registers, bool streamed) {
  constexpr double kSomeLoads = 1.25;
  constexpr int64_t kFewRows = 4;
  auto loads = [&](int64_t height) {
    const int64_t width = columns_of_tile(height, registers);
    return static_cast<double>((rows + height - 1) / height * (height + width)) /
           static_cast<double>(width);
  };
  int64_t best = 1;
  for (int64_t height = 2; height <= std::min(rows, kFewRows); ++height) {
    if (loads(height) < loads(best)) best = height;
  }
  if (!streamed) return best;
  int64_t tallest = std::min(rows, kMostRows);
  while (tallest > best && loads(tallest) > kSomeLoads * loads(best)) --tallest;
  return std::max(tallest, best);
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

constexpr int64_t kPair = 2;

// How lanes take a sum of so many products.
struct SumLanes {
  int64_t length = 0;
  int64_t count = 1;
  bool pairs = false;  // each lane adds two products at once; the vectors are whole
};

// Whether the block sums products of bfloat16 in float32.
bool multiplies_bfloat16(const Block& b) {
  return b->writes[0]->buffer->dtype.is_float(32) &&
         std::ranges::all_of(b->reads,
                             [](const tir::Region& r) { return r->buffer->dtype.is_bfloat16(); });
}

// Results of a tile are copies of code, each with a vector of partial sums, whose lanes are summed at the end.
tir::StepResult<> finish(Schedule& s, const Tiles& tiles, size_t depth, size_t row,
                         const SumLanes& lanes) {
  const BlockRV& sum = tiles.sum.block;
  std::vector<LoopRV> vector = RELAY_TRY(
      s.split(s.get_loops(sum).back(), lanes.pairs ? std::vector<int64_t>{-1, lanes.count, kPair}
                                                   : std::vector<int64_t>{-1, lanes.count}));
  // With the loop over vectors outside, the sum of the lanes is a nest of its own.
  std::vector<LoopRV> nest{vector[0]};
  for (const LoopRV& l : {tiles.sum.row, tiles.sum.column}) {
    if (l.var) nest.push_back(l);
  }
  if (lanes.pairs) nest.push_back(vector[2]);
  nest.push_back(vector[1]);
  RELAY_TRY(s.reorder(nest));
  RELAY_TRY(s.mask_reduction(sum));
  const BlockRV partial = RELAY_TRY(s.rfactor(sum, vector[1]));
  RELAY_TRY(s.set_scope(partial, tir::Scope::Register));
  const BlockRV zeros = RELAY_TRY(s.decompose_reduction(partial, vector[0]));
  if (lanes.pairs) RELAY_TRY(s.word_dot(partial, vector[2]));
  for (const BlockRV& rv : {zeros, sum}) RELAY_TRY(s.vectorize(s.get_loops(rv).back()));
  for (const BlockRV& rv : {zeros, partial, sum, tiles.out.block}) {
    TileBlock b = in_tile(s, rv, depth, row);
    for (const LoopRV& l : {b.row, b.column}) {
      if (l.var) RELAY_TRY(s.unroll(l));
    }
  }
  if (lanes.length % lanes.count != 0) {
    tir::Partition p = RELAY_TRY(s.partition(vector[0], lanes.length / lanes.count));
    RELAY_TRY(s.vectorize(p.copy_of(vector[1])));
  }
  return s.vectorize(vector[1]);
}

// Open rows: tiles of each height, for what those before it leave over. The loop over rows is not split yet.
tir::StepResult<> finish_open(Schedule& s, Tiles tiles, size_t depth, size_t row, int64_t height,
                              const SumLanes& lanes) {
  for (; height >= 1; height /= 2) {
    Tiles rest;
    if (height > 1) {
      tir::Partition p = RELAY_TRY(s.partition_tiles(tiles.rows, height));
      rest = {tiles.columns,
              p.tail,
              {p.copy_of(tiles.sum.block), {}, {}},
              {p.copy_of(tiles.out.block), {}, {}}};
      tiles.rows = RELAY_TRY(s.split(tiles.rows, {-1, height}))[0];
      RELAY_TRY(s.compute_at(tiles.sum.block, tiles.rows));
    }
    for (TileBlock* b : {&tiles.sum, &tiles.out}) *b = in_tile(s, b->block, depth, row);
    RELAY_TRY(finish(s, tiles, depth, row, lanes));
    tiles = rest;
  }
  return {};
}

// A sum that lanes can take, and the block that stores it.
struct Found {
  BlockRV sum, out;
  RowsByRows product;
  std::vector<LoopRV> loops;  // of the sum: the last three are over rows, columns and the sum
};

// Nullopt unless both operands are contiguous along the sum and no lanes over columns read neighbours.
tir::StepResult<std::optional<Found>> find_product(Schedule& s) {
  const std::optional<Found> none;
  std::vector<BlockRV> sums;
  Found f;
  if (!RELAY_TRY(split_output(s, f.out, sums)) || sums.size() != 1) return none;
  f.sum = sums[0];
  f.loops = s.get_loops(f.sum);
  const std::vector<LoopRV> tiled = s.get_loops(f.out);
  const auto product = rows_by_rows(s, f.sum, tiled.size());
  const DType dtype = s.block(f.sum)->writes[0]->buffer->dtype;
  if (!product || product->sum == 0 || !dtype.is_floating() || dtype.bits < 32) return none;
  const size_t row = tiled.size() - 2;
  for (size_t i = 0; i < tiled.size(); ++i) {
    const int64_t extent = s.extent(tiled[i]);
    if (extent != s.extent(f.loops[i]) || (extent == kOpen && i != row)) return none;
  }
  if (s.extent(f.loops[row]) == 1 || s.extent(f.loops[row + 1]) == 1 ||
      !is_contiguous(s, f.sum, f.loops.back()) || is_contiguous(s, f.sum, f.loops[row + 1])) {
    return none;
  }
  f.product = *product;
  if (multiplies_bfloat16(s.block(f.sum))) f.product.bytes = 2;
  return std::optional(std::move(f));
}

// Lanes along the sum: a tile of results keeps a vector of partial sums for each in registers, and takes all rows
// before the next columns are read, so that these are read once and as they lie.
Outcome schedule_row_products(Schedule& s, RowProductsParameters& parameters, Decider& decide) {
  const std::optional<Found> found = RELAY_TRY(find_product(s));
  if (!found || found->product.rows == 0) return Declined{};
  const BlockRV &sum = found->sum, &out = found->out;
  const RowsByRows& product = found->product;
  const Block b = s.block(sum);
  const std::vector<LoopRV> tiled = s.get_loops(out);
  const size_t spatial = tiled.size(), at = spatial - 2;
  const double work = static_cast<double>(product.rows) * static_cast<double>(product.columns) *
                      static_cast<double>(product.sum);
  const int64_t rows = s.extent(found->loops[at]), columns = s.extent(found->loops[at + 1]);
  const int64_t length = s.extent(found->loops.back());
  const bool open = rows == kOpen;
  const bool pairs =
      multiplies_bfloat16(b) && decide.value(parameters.pairs, [&](const Target& target) {
        return fills_vectors_of_pairs(target, length);
      });
  const int64_t count = decide.number(parameters.lanes, {2, 64},
                                      [&](const Target& target) { return lanes_of(b, target); });
  const SumLanes lanes{length, count, pairs};
  if (pairs && length % (kPair * lanes.count) != 0) {
    decide.refuse("pairs that fill no vectors");
    return Declined{};
  }
  if (length < kLeastVectors * lanes.count) return Declined{"a sum has few vectors"};
  const int64_t height =
      decide.number(parameters.rows, {1, open ? kMostRows : std::min(rows, kMostRows)},
                    [&](const Target& target) {
                      return rows_of_tile(open ? product.rows : rows, target.num_vector_registers,
                                          reads_memory(b, target));
                    });
  const int64_t width = decide.number(
      parameters.columns, {1, std::min(columns, kMostColumns)}, [&](const Target& target) {
        return std::min(columns, columns_of_tile(height, target.num_vector_registers));
      });

  std::vector<LoopRV> row{tiled[at]};
  if (!open) row = RELAY_TRY(s.split(row[0], {-1, height}));
  std::vector<LoopRV> column = RELAY_TRY(s.split(tiled[at + 1], {-1, width}));
  std::vector<LoopRV> order{column[0]};
  order.insert(order.end(), row.begin(), row.end());
  order.push_back(column[1]);
  RELAY_TRY(s.reorder(order));
  RELAY_TRY(s.compute_at(sum, row[0]));
  RELAY_TRY(s.set_scope(sum, tir::Scope::Register));
  const bool threads = decide.value(parameters.threads, [&](const Target& target) {
    return pays_threads(target, work, 16 * kMinParallelWork);
  });
  if (threads) RELAY_TRY(s.parallel(column[0]));
  const Tiles all{column[0], row[0], in_tile(s, sum, spatial, at), in_tile(s, out, spatial, at)};
  for (const Tiles& wide :
       RELAY_TRY(cut(s, all, &Tiles::columns, &TileBlock::column, columns, width))) {
    if (open) {
      RELAY_TRY(finish_open(s, wide, spatial, at, height, lanes));
      continue;
    }
    for (const Tiles& each : RELAY_TRY(cut(s, wide, &Tiles::rows, &TileBlock::row, rows, height))) {
      RELAY_TRY(finish(s, each, spatial, at, lanes));
    }
  }
  return Report{"rows by rows: " + std::to_string(lanes.count) + " lanes" +
                (pairs ? " of pairs" : "") + " along the sum, " + std::to_string(height) + "x" +
                std::to_string(width) + " register tile" + (open ? ", open rows" : "") +
                (threads ? ", threads over columns" : "")};
}

}  // namespace

std::optional<int64_t> few_rows_of_product(const tir::PrimFunc& f, const Target& target) {
  if (f->dims.size() != 1) return std::nullopt;
  Schedule s(prepared(f));
  auto step = find_product(s);
  const std::optional<Found> found = step.is_legal() ? std::move(step).take() : std::nullopt;
  if (!found) return std::nullopt;
  const std::vector<LoopRV>& loops = found->loops;
  for (size_t l = 0; l + 3 < loops.size(); ++l) {
    if (s.extent(loops[l]) != 1) return std::nullopt;
  }
  if (s.loop(loops[loops.size() - 3])->extent.get() != f->dims[0].get()) return std::nullopt;
  // Without products of pairs along the sum, 8 rows of bfloat16 by a matrix of 1024 x 784 take 0.8 of the time in panels of
  // pairs on a Zen 5.
  const auto is_bfloat16 = [&](const tir::Region& r) { return r->buffer->dtype.is_bfloat16(); };
  const Block sum = s.block(found->sum);
  if (has_bfloat16_dot(target) && std::ranges::any_of(sum->reads, is_bfloat16) &&
      !(multiplies_bfloat16(sum) && fills_vectors_of_pairs(target, found->product.sum))) {
    return std::nullopt;
  }
  const int64_t most = most_rows_as_they_lie(target, found->product);
  return most > 1 ? std::optional(most) : std::nullopt;
}

const ScheduleRule kRowProductsRule = schedule_rule<RowProductsParameters, schedule_row_products>(
    "row_products", "sums of products of rows with rows");

}  // namespace relay
