// Products of rows with rows, many of them: as nn.dense by a weight that only the run knows. The weight is transposed to
// panels of columns, each in a cache before all rows pass by it; one that has its columns last, as of nn.matmul, is copied.
// Where the target multiplies pairs of bfloat16, panels hold these side by side, also those of the matrices of a batch, and where
// it has a matrix unit, the words of that.
//
//   for columns of a few tiles:
//     panel = their rows of the weight, transposed, or their columns, or their pairs of factors
//     for rows of a tile: for columns of a tile: { registers = 0; for k: registers += data * panel; store }
#include <algorithm>
#include <array>

#include "lower/rules/choose.h"
#include "lower/rules/contraction_loops.h"
#include "lower/rules/contraction_matrix.h"
#include "lower/rules/lanes.h"
#include "lower/rules/row_loops.h"
#include "lower/rules/transposition.h"
#include "node/walk.h"
#include "tir/schedule/loop_tree.h"

namespace relay {

using tir::Block;
using tir::BlockRV;
using tir::IterKind;
using tir::LoopRV;
using tir::Schedule;

namespace {

struct PanelProductsParameters : AttrsOf<PanelProductsParameters> {
  MatrixPlan matrix;
  std::vector<TilePlan> tiles;
  std::vector<BlockPlan> blocks;

  static AttrsList describe() {
    return {"relay.schedule.PanelProducts",
            {attribute("matrix", &Self::matrix, "The matrix unit that takes the sum."),
             attribute("tiles", &Self::tiles, "The register tiles of the sum."),
             attribute("blocks", &Self::blocks, "How panels are transposed.")}};
  }
};

// The operand that moves with the columns.
struct Matrix {
  tir::Buffer buffer;
  bool has_columns_last = false;  // (sum, column) in memory, rather than (column, sum)
  bool batched = false;           // one of several, behind whose number it is
  bool selected = false;          // that number comes from memory
};

// Whether the operand that moves with the rows has the sum along its last axis. Rows that are neighbours there are far apart from
// one product to the next, whose matrices are read in place together or not at all.
bool has_sum_last(const Block& b, const tir::Buffer& matrix) {
  bool out = false;
  post_order(b->body, [&](const Node& n) {
    auto* l = as<tir::LoadNode>(&n);
    out |= l != nullptr && !(l->buffer == matrix) && !l->indices.empty() &&
           l->indices.back().get() == b->iters.back()->var.get();
  });
  return out;
}

// Null where no operand is of such a form, or where the sum reads it in another way, too: the copy of a tile's columns would
// be one of all rows.
Matrix matrix_of(const Block& b) {
  const size_t iters = b->iters.size();
  const Node *row = b->iters[iters - 3]->var.get(), *column = b->iters[iters - 2]->var.get(),
             *sum = b->iters.back()->var.get();
  Matrix out;
  std::vector<const Node*> others;
  post_order(b->body, [&](const Node& n) {
    auto* l = as<tir::LoadNode>(&n);
    if (l == nullptr) return;
    const size_t rank = l->indices.size();
    const bool three = rank == 3 && iters == 4;
    const bool selected = three && std::ranges::none_of(std::array{row, column, sum}, [&](auto* v) {
                            return tir::uses_var(l->indices[0], v);
                          });
    const bool batched = three && l->indices[0].get() == b->iters[0]->var.get();
    auto ends_in = [&](const Node* before, const Node* last) {
      return (rank == 2 || batched || selected) && l->indices[rank - 2].get() == before &&
             l->indices[rank - 1].get() == last;
    };
    if (ends_in(column, sum) || ends_in(sum, column)) {
      out = {l->buffer, l->indices.back().get() == column, batched || selected,
             selected && !batched};
    } else {
      others.push_back(l->buffer.get());
    }
  });
  return out.buffer && std::ranges::find(others, out.buffer.get()) == others.end() ? out : Matrix{};
}

// The product by a matrix with its columns last, whose panels are copied as they lie; nullopt for any other.
std::optional<RowsByRows> rows_by_columns(const Schedule& s, const BlockRV& sum, size_t spatial) {
  auto product = rows_by_rows(s, sum, spatial);
  const Block b = s.block(sum);
  const Matrix matrix = product ? matrix_of(b) : Matrix{};
  if (!matrix.buffer || !matrix.has_columns_last || matrix.batched || product->columns == 0 ||
      product->sum == 0 || !has_sum_last(b, matrix.buffer)) {
    return std::nullopt;
  }
  const DType dtype = b->writes[0]->buffer->dtype;
  if (!dtype.is_floating() || dtype.bits < 32 || matrix.buffer->dtype != dtype) return std::nullopt;
  product->columns_last = true;
  return product;
}

// Whether few rows have a kernel of their own beside one for any number: the rows are the function's one open size.
bool has_kernel_for_few_rows(const Schedule& s, const BlockRV& sum) {
  const std::vector<LoopRV> loops = s.get_loops(sum);
  const tir::PrimFuncNode& f = *s.func().get();
  if (loops.size() < 3 || f.dims.size() != 1) return false;
  for (size_t l = 0; l + 3 < loops.size(); ++l) {
    if (s.extent(loops[l]) != 1) return false;
  }
  return s.loop(loops[loops.size() - 3])->extent.get() == f.dims[0].get();
}

// The columns of a tile in pairs of factors: words that change places, or two rows that are interleaved. What does not fill
// a block is copied by elements.
Outcome schedule_pairs(Schedule& s, const BlockRV& part, const LoopRV& at, bool columns_last) {
  constexpr int64_t kSide = 16, kPair = 2;
  std::vector<LoopRV> loops;
  for (const LoopRV& l : loops_below(s, part, at)) {
    if (s.extent(l) != 1) loops.push_back(l);
  }
  if (loops.size() != 2) return Declined{"columns that are one"};
  LoopRV column = loops[columns_last ? 1 : 0];
  const LoopRV sum = loops[columns_last ? 0 : 1];
  const int64_t columns = s.extent(column), whole = columns - columns % kSide;
  if (whole == 0) return Report{};
  RELAY_TRY(s.reorder({column, sum}));
  if (whole != columns) column = RELAY_TRY(s.partition(column, whole)).head;
  const std::vector<LoopRV> c = RELAY_TRY(s.split(column, {-1, kSide}));
  std::vector<LoopRV> nest;
  if (columns_last) {
    const std::vector<LoopRV> k = RELAY_TRY(s.split(sum, {-1, kPair}));
    RELAY_TRY(s.reorder({k[0], c[0], k[1], c[1]}));
    nest = {k[1], c[1]};
  } else {
    int64_t words = kSide;
    while (!s.has_whole_tiles(sum, kPair * words)) words /= 2;
    const std::vector<LoopRV> k = RELAY_TRY(s.split(sum, {-1, words, kPair}));
    RELAY_TRY(s.reorder({c[0], k[0], k[1], c[1], k[2]}));
    nest = {k[1], c[1], k[2]};
  }
  for (const LoopRV& l : nest) RELAY_TRY(s.nest(l, tir::LoopNest::Transposed));
  return Report{};
}

// The panel: its columns are the last dimension; pairs of factors, where there are such, stand beside each other in each.
std::vector<tir::LayoutAxis> panel_layout(const Matrix& matrix, bool pairs) {
  constexpr int64_t kPair = 2;
  const int64_t first = matrix.batched ? 1 : 0;
  const int64_t column = first + (matrix.has_columns_last ? 1 : 0), sum = 2 * first + 1 - column;
  std::vector<tir::LayoutAxis> out;
  if (matrix.batched) out.push_back({0});
  if (!pairs) {
    out.insert(out.end(), {{sum}, {column}});
  } else {
    out.insert(out.end(), {{sum, kPair, 0}, {column}, {sum, 1, kPair}});
  }
  return out;
}

Outcome schedule_panel_products(Schedule& s, PanelProductsParameters& parameters, Decider& decide) {
  std::vector<BlockRV> sums = s.get_blocks();
  BlockRV out, copy;
  const bool stores_sum = !sums.empty() && reduces(s.block(sums.back()));
  if (!RELAY_TRY(split_output(s, out, sums)) || sums.size() != 1) return Declined{};
  const BlockRV rv = sums[0];
  auto product = rows_by_rows(s, rv, s.get_loops(out).size());
  const Matrix matrix = product ? matrix_of(s.block(rv)) : Matrix{};
  const DType dtype = s.block(rv)->writes[0]->buffer->dtype;
  if (!matrix.buffer || !dtype.is_floating() || dtype.bits < 32) return Declined{};
  const bool pairs = dtype.is_float(32) && matrix.buffer->dtype.is_bfloat16();
  const bool open = product->columns == 0;
  const auto by_columns = rows_by_columns(s, rv, s.get_loops(out).size());
  const bool copied = by_columns.has_value();
  if (!pairs && (matrix.buffer->dtype != dtype || (matrix.batched && !matrix.selected) ||
                 matrix.has_columns_last != copied || open || product->sum == 0)) {
    return Declined{};
  }
  if (copied && by_columns->rows == 0 && !has_kernel_for_few_rows(s, rv)) {
    return Declined{"rows may be few"};
  }
  product->columns_last = copied;
  product->bytes = static_cast<int64_t>(matrix.buffer->dtype.bytes());
  const std::vector<tir::IterVar> axes = s.block(rv)->iters;
  product->selected = matrix.selected;
  if (matrix.batched) product->rows = tir::as_int(axes[1]->extent).value_or(0);
  if (!decide.pays([&](const Target& target) {
        const bool pays =
            !pairs || words_in_panels(target, *product) || pairs_in_panels(target, *product);
        return pays && ((pairs && matrix.batched) ||
                        (!(pairs && matrix.has_columns_last) &&
                         matrix_order(target, *product) == MatrixOrder::ByPanel));
      })) {
    return Declined{"the matrix is read as it lies, or transposed before"};
  }
  // Open columns are whole tiles of one size.
  constexpr int64_t kLargest = 64, kLeast = 4;
  int64_t open_tile = kLargest;
  const LoopRV column = s.get_loops(rv)[axes.size() - 2];
  while (open && open_tile >= kLeast && !s.has_whole_tiles(column, open_tile)) open_tile /= 2;
  if (open_tile < kLeast) return Declined{"open columns may not fill tiles"};
  const BlockRV made = RELAY_TRY(s.cache_read(rv, matrix.buffer->name, tir::Scope::Local));
  if (!copied) RELAY_TRY(s.transform_layout(made, panel_layout(matrix, pairs)));
  std::optional<Sum> sum = describe_sum(s, rv);
  if (!sum || sum->pairs != pairs) return Declined{};
  if (open) sum->extents.back() = open_tile;
  sum->rows_span_two_axes = false;
  if (pairs) sum->matrix = matrix_step(s, *sum, parameters.matrix, decide);
  sum->halves = pairs && !sum->matrix;
  if (sum->matrix && (open || !stores_sum)) {
    // The unit stores no rows that are as long as only a run knows.
    copy = RELAY_TRY(copy_from_unit(s, rv));
  } else {
    RELAY_TRY(s.set_scope(rv, tir::Scope::Register));
  }
  TilePlans tiles(parameters.tiles, decide);
  BlockPlans blocks(parameters.blocks, decide);
  // A matrix of a batch has few columns, whose panels stay in L1 one after the other. On a Zen 5, 32 x 512 x 512 by 32 x 512 x 64
  // takes 0.86 of the time.
  const bool several = !matrix.batched;
  const Outcome tiled = tile_made_loops(
      s, *sum, made, out, several, tiles, decide,
      [&](const BlockRV& part, const LoopRV& at, const TilePlan& tile) -> Outcome {
        if (pairs) return schedule_pairs(s, part, at, matrix.has_columns_last);
        const std::vector<LoopRV> loops = loops_below(s, part, at);
        // One column that is left over lies in the panel as it does in the matrix.
        if (loops.size() != 2) return Report{};
        if (copied) {
          RELAY_TRY(vectorize_elements(s, loops[1], tile.lanes));
          return Report{};
        }
        RELAY_TRY(s.reorder({loops[1], loops[0]}));
        BlockPlan& plan = blocks[blocks.next()];
        return RELAY_TRY(schedule_transposition_below(s, part, at, plan, decide));
      },
      copy);
  if (!took(tiled)) return tiled;
  if (sum->matrix) s.require_features(parameters.matrix.features);
  tiles.finish();
  blocks.finish();
  return Report{text_of(tiled) + (pairs    ? ", columns written as pairs a tile at a time"
                                  : copied ? ", columns copied a tile at a time"
                                           : ", columns transposed a tile at a time")};
}

// 0 where none is known.
int64_t greatest_extent(const Schedule& s, const LoopRV& loop) {
  const tir::PrimFuncNode& f = *s.func().get();
  for (size_t d = 0; d < f.at_most.size(); ++d) {
    if (f.dims[d].get() == s.loop(loop)->extent.get()) return f.at_most[d];
  }
  return 0;
}

}  // namespace

std::optional<int64_t> few_rows_beside_panels(const tir::PrimFunc& f, const Target& target) {
  Schedule s(prepared(f));
  std::vector<BlockRV> sums;
  BlockRV out;
  auto step = split_output(s, out, sums);
  if (!step.is_legal() || !std::move(step).take() || sums.size() != 1 ||
      !has_kernel_for_few_rows(s, sums[0])) {
    return std::nullopt;
  }
  const auto product = rows_by_columns(s, sums[0], s.get_loops(out).size());
  if (!product || product->rows != 0 || matrix_order(target, *product) != MatrixOrder::ByPanel) {
    return std::nullopt;
  }
  return kMostRowsBesideColumns;
}

std::optional<RowsByRows> rows_by_rows(const Schedule& s, const BlockRV& sum, size_t spatial) {
  Block b = s.block(sum);
  const std::vector<LoopRV> loops = s.get_loops(sum);
  if (!reduces(b) || loops.size() != b->iters.size() || loops.size() != spatial + 1 ||
      spatial < 2 || b->writes.size() != 1 || !sums_products(b)) {
    return std::nullopt;
  }
  auto or_open = [&](size_t loop) { return std::max<int64_t>(s.extent(loops[loop]), 0); };
  RowsByRows out{1, or_open(spatial - 1), or_open(spatial),
                 static_cast<int64_t>(b->writes[0]->buffer->dtype.bytes())};
  for (size_t i = 0; i < loops.size(); ++i) {
    const IterKind kind = i < spatial ? IterKind::DataParallel : IterKind::Reduce;
    const int64_t extent = s.extent(loops[i]);
    const bool row = i + 1 < spatial;
    if (b->iters[i]->kind != kind || extent == 0) return std::nullopt;
    if (row) out.rows *= extent == kOpen ? greatest_extent(s, loops[i]) : extent;
  }
  return out;
}

const ScheduleRule kPanelProductsRule =
    schedule_rule<PanelProductsParameters, schedule_panel_products>(
        "panel_products", "sums of products of many rows with rows");

}  // namespace relay
