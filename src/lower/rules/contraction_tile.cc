#include "lower/rules/contraction_tile.h"

#include <algorithm>
#include <limits>
#include <set>
#include <span>

#include "node/walk.h"
#include "target/word_products.h"
#include "tir/arith/analyzer.h"
#include "tir/schedule/loop_tree.h"

namespace relay {

using tir::Block;
using tir::IterKind;
using tir::LoopRV;

namespace {

// Open rows are compared at these numbers: fewer wait for the weights in tiles of any shape.
constexpr int64_t kLikelyRows[] = {4, 8, 16, 32, 64, 128};
// Those of an image are its lines, which networks halve from 224 or from a power of two.
constexpr int64_t kLikelyLines[] = {7, 8, 14, 16, 28, 32, 56, 64};

// Cycles for one step of the reduction over tiles of rows x columns: multiply-adds, or their
// latency when there are too few to hide it, and loads. `widening`: instructions before a vector of weights can be multiplied.
double step_cost(int64_t rows, int64_t columns, int64_t lanes, double widening) {
  if (rows == 0 || columns == 0) return 0;
  constexpr double kLatency = 8;
  double vectors = static_cast<double>((columns + lanes - 1) / lanes);
  double r = static_cast<double>(rows);
  return std::max((r + widening) * vectors, kLatency) + 0.5 * vectors + 0.15 * r + 1;
}

// Registers of vectors that are few.
constexpr int64_t kFewRegisters = 16;

// Registers of 16 that a tile of so many vectors leaves free. Loads move ahead of the multiply-adds before them: with no register
// to spare, an accumulator is spilled at every step. One vector of columns uses each element of a row once, so that elements take
// half of the registers. On a Zen 5 in vectors of 256 bits, 4x24 and 14x8 tiles of float32 reach 0.6 of the rate of 6x16 tiles.
// Of 32 registers, tiles of several vectors leave one free as it is, and vectors of 512 bits are multiplied by the element in
// memory where there is one of them.
int64_t spare_registers(const Sum& sum, int64_t vectors, const Target& target) {
  if (target.num_vector_registers > kFewRegisters || sum.depthwise || sum.widening > 0 ||
      sum.word_elements() > 1) {
    return 0;
  }
  return vectors > 1 ? 1 : target.num_vector_registers / 2 - 2;
}

}  // namespace

bool has_outer_axis(const Sum& sum) {
  return sum.spatial.size() > 2 && sum.extents[sum.extents.size() - 3] != kOpen;
}

int64_t registers_for_steps(const Sum& sum, const Target& target) {
  const bool few = target.num_vector_registers <= kFewRegisters;
  return few && sum.rows_overlap && !sum.matrix ? target.num_vector_registers : 0;
}

double busiest_share(int64_t extent, int64_t tile, int64_t threads) {
  const int64_t rounds = (extent / tile + threads - 1) / threads;
  return static_cast<double>(rounds * tile + extent % tile) / static_cast<double>(extent);
}

std::pair<ColumnLoop, double> loop_of_columns(const Sum& sum, const Tile& tile,
                                              const Target& target, bool threads) {
  const double weights = sum.depthwise ? 0
                                       : sum.reduction * static_cast<double>(sum.columns()) *
                                             static_cast<double>(sum.weight_bytes);
  const bool rows_outside = weights <= static_cast<double>(target.l2_bytes) / 2;
  const bool tile_has_outer = has_outer_axis(sum);
  const bool few_rows = tile_has_outer && sum.extents[sum.extents.size() - 3] < 14;
  ColumnLoop loop = !rows_outside || few_rows          ? ColumnLoop::Outermost
                    : !sum.depthwise && tile_has_outer ? ColumnLoop::Between
                                                       : ColumnLoop::Innermost;
  const bool one_matrix =
      std::all_of(sum.extents.begin(), sum.extents.end() - 2, [](int64_t e) { return e == 1; });
  if (!threads || !one_matrix || sum.is_open()) return {loop, 1};
  const double by_rows = busiest_share(sum.rows(), tile.height, target.num_cores);
  const double by_columns = busiest_share(sum.columns(), tile.columns, target.num_cores);
  // Weights that do not stay in half of L2 come from farther away for every row of tiles.
  constexpr double kClearly = 0.9, kMuch = 0.67;
  if (by_columns < kClearly * by_rows) loop = ColumnLoop::Outermost;
  if (by_rows < (rows_outside ? kClearly : kMuch) * by_columns) loop = ColumnLoop::Innermost;
  return {loop, loop == ColumnLoop::Outermost ? by_columns : by_rows};
}

Tile choose_tile(const Sum& sum, const Target& target, const TileShare& share) {
  int64_t lanes = lanes_of(sum, target);
  auto length = [](int64_t extent) { return extent == kOpen ? kManyTiles : extent; };
  int64_t rows = length(sum.rows()), columns = length(sum.columns());
  int64_t before = sum.extents.size() > 2 ? length(sum.extents[sum.extents.size() - 3]) : 1;
  Tile best;
  double least = 0;
  auto step = [&](int64_t r, int64_t c) {
    if (!sum.depthwise) return step_cost(r, c, lanes, sum.widening);
    // A vector of weights for each step, and of elements for each row and the rows beside it; where a sum is long, its steps
    // wait for each other.
    constexpr double kLatency = 40, kLong = 64;
    const auto work = static_cast<double>((c + lanes - 1) / lanes * (4 * r + 5));
    return r == 0 ? 0 : sum.reduction > kLong ? std::max(work, kLatency) : work;
  };
  auto consider = [&](const Tile& t) {
    if (sum.whole_rows && rows % t.height != 0) return;
    int64_t height = t.outer * t.height;
    double all = 0;
    auto over_columns = [&](int64_t r) {
      return static_cast<double>(columns / t.columns) * step(r, t.columns) +
             step(r, columns % t.columns);
    };
    if (sum.streamed) {
      // As many rows are taken to be likely as twice as many.
      const std::span<const int64_t> likely =
          sum.rows_span_two_axes ? std::span<const int64_t>(kLikelyLines) : kLikelyRows;
      for (int64_t r : likely) {
        auto tiles = static_cast<double>(r / t.height);
        all +=
            (tiles * over_columns(t.height) + over_columns(r % t.height)) / static_cast<double>(r);
      }
    } else {
      all = static_cast<double>((before / t.outer) * (rows / t.height)) * over_columns(height);
      all += static_cast<double>(before / t.outer) * over_columns(t.outer * (rows % t.height));
      all += static_cast<double>(rows / t.height) * over_columns(before % t.outer * t.height);
    }
    // Rows a multiple of 4 KB apart lie in one set of L1: more than its eight lines
    // drive each other out at every step.
    if (sum.row_stride % 4096 == 0 && height > 8 && !sum.depthwise) all *= 1.3;
    if (share) all *= share(t);
    if (least == 0 || all < least * 0.999) {
      least = all;
      best = t;
      // Two multiply-adds a cycle, of a word each.
      best.cycles = all / static_cast<double>(2 * sum.word_elements());
    }
  };
  WordProductTile words;
  if (sum.bytes) words = word_product_tile(target, MatrixFactors::Byte);
  if (sum.halves) words = word_product_tile(target, MatrixFactors::BFloat16);
  for (int64_t vectors = 1; vectors <= 8; ++vectors) {
    int64_t width = std::min(columns, vectors * lanes);
    if (vectors > 1 && width <= (vectors - 1) * lanes) break;
    // Groups that do not fill their last vector are tiles of their own.
    if (sum.group > (vectors - 1) * lanes && sum.group < vectors * lanes) width = sum.group;
    if (sum.group != 0 && sum.group % width != 0) continue;
    if (sum.whole_columns && columns % width != 0) continue;
    if (sum.panel != 0 && width != columns && width % sum.panel != 0 && sum.panel % width != 0) {
      continue;
    }
    // Words of weights of few bits, and their zero points, stay in registers beside the factors made of them.
    int64_t beside = (sum.widening > 0 ? 3 : 1) * vectors + 1;
    beside += words.each_weight * vectors + words.constant;
    beside += spare_registers(sum, vectors, target);
    int64_t most = (target.num_vector_registers - beside) / vectors;
    // What neighbouring results share stays in registers too: as many elements as results.
    if (sum.depthwise) most = std::max<int64_t>(1, most / 2);
    for (int64_t h = std::min(most, rows); h >= 1; --h) {
      if (h % words.rows == 0 || h == rows || h < words.rows) consider({1, h, width, 0});
    }
    if (sum.rows_span_two_axes && !sum.streamed) {
      for (int64_t o = 2; o <= std::min(before, most / std::max<int64_t>(rows, 1)); ++o) {
        consider({o, rows, width, 0});
      }
    }
  }
  return best;
}

Interior interior_of(const Block& b, const tir::IterVar& axis) {
  std::vector<tir::PrimExpr> conditions;
  post_order(b->body, [&](const Node& n) {
    auto* select = as<tir::SelectNode>(&n);
    if (select == nullptr) return;
    for (const tir::PrimExpr& e : tir::conjuncts(select->cond)) {
      if (tir::uses_var(e, axis->var.get())) conditions.push_back(e);
    }
  });
  Interior out;
  auto extent = tir::as_int(axis->extent);
  if (!extent) {
    // Nothing is decided, however many values there are.
    if (conditions.empty()) out.high = std::numeric_limits<int64_t>::max();
    return out;
  }
  out.high = *extent;
  std::vector<tir::IterVar> sums;
  for (const tir::IterVar& i : b->iters) {
    bool used = std::any_of(conditions.begin(), conditions.end(),
                            [&](const tir::PrimExpr& e) { return tir::uses_var(e, i->var.get()); });
    if (used && i->kind == IterKind::Reduce) {
      sums.push_back(i);
      out.sums.push_back(i->var);
    }
  }
  tir::Analyzer analyzer;
  for (const tir::IterVar& i : sums) analyzer.bind(i->var, i->min, i->extent);
  auto holds = [&](int64_t value) {
    return std::all_of(conditions.begin(), conditions.end(), [&](const tir::PrimExpr& e) {
      return analyzer.can_prove(tir::PrimExpr::unchecked(
          substitute(e, {{axis->var.get(), tir::index(value)}}, family::tir_expr)));
    });
  };
  while (out.low < out.high && !holds(out.low)) ++out.low;
  while (out.high > out.low && !holds(out.high - 1)) --out.high;
  return out;
}

TileAxis make_axis(const LoopRV& outer, const LoopRV& inner, int64_t extent, int64_t tile,
                   const Interior& interior) {
  TileAxis out{outer, inner, extent, tile, {}, 0, 0, interior.sums, 0};
  out.low = (interior.low + tile - 1) / tile;
  out.high = interior.high == extent ? out.tiles() : interior.high / tile;
  if (out.high <= out.low) out.low = out.high = out.tiles();
  std::set<int64_t> cuts;
  // Each tile at the border is on its own, so that its conditions are known.
  for (int64_t t = 1; t <= out.low; ++t) cuts.insert(t);
  for (int64_t t = out.high; t < out.tiles(); ++t) cuts.insert(t);
  if (extent % tile != 0) cuts.insert(extent / tile);
  for (int64_t t : cuts) {
    if (t > 0 && t < out.tiles()) out.cuts.push_back(t);
  }
  return out;
}

}  // namespace relay
