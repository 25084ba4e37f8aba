// Products of rows with rows, many of them: as nn.dense by a weight that only the run knows. The weight is transposed to
// panels of columns, each in a cache before all rows pass by it.
//
//   for columns of a few tiles:
//     panel = their rows of the weight, transposed
//     for rows of a tile: for columns of a tile: { registers = 0; for k: registers += data * panel; store }
#include <algorithm>

#include "lower/rules/contraction_loops.h"
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
  std::vector<TilePlan> tiles;
  std::vector<BlockPlan> blocks;

  static AttrsList describe() {
    return {"relay.schedule.PanelProducts",
            {attribute("tiles", &Self::tiles, "The register tiles of the sum."),
             attribute("blocks", &Self::blocks, "How panels are transposed.")}};
  }
};

// The operand that moves with the columns, (columns, sum) in memory; null where none is of that form, or where the sum reads
// it in another way, too: the copy of a tile's columns would be one of all rows.
tir::Buffer matrix_of(const Block& b) {
  const Node* column = b->iters[b->iters.size() - 2]->var.get();
  const Node* sum = b->iters.back()->var.get();
  tir::Buffer out;
  std::vector<const Node*> others;
  post_order(b->body, [&](const Node& n) {
    auto* l = as<tir::LoadNode>(&n);
    if (l == nullptr) return;
    if (l->indices.size() == 2 && l->indices[0].get() == column && l->indices[1].get() == sum) {
      out = l->buffer;
    } else {
      others.push_back(l->buffer.get());
    }
  });
  return out && std::ranges::find(others, out.get()) == others.end() ? out : tir::Buffer();
}

Outcome schedule_panel_products(Schedule& s, PanelProductsParameters& parameters, Decider& decide) {
  std::vector<BlockRV> sums;
  BlockRV out;
  if (!RELAY_TRY(split_output(s, out, sums)) || sums.size() != 1) return Declined{};
  const BlockRV rv = sums[0];
  const auto product = rows_by_rows(s, rv, s.get_loops(out).size());
  const tir::Buffer matrix = product ? matrix_of(s.block(rv)) : tir::Buffer();
  const DType dtype = s.block(rv)->writes[0]->buffer->dtype;
  if (!matrix || !dtype.is_floating() || dtype.bits < 32 || matrix->dtype != dtype) {
    return Declined{};
  }
  if (!decide.pays([&](const Target& target) {
        return matrix_order(target, *product) == MatrixOrder::ByPanel;
      })) {
    return Declined{"the matrix is read as it lies, or transposed before"};
  }
  const BlockRV made = RELAY_TRY(s.cache_read(rv, matrix->name, tir::Scope::Local));
  RELAY_TRY(s.transform_layout(made, {{1}, {0}}));
  std::optional<Sum> sum = describe_sum(s, rv);
  if (!sum) return Declined{};
  sum->rows_span_two_axes = false;
  RELAY_TRY(s.set_scope(rv, tir::Scope::Register));
  TilePlans tiles(parameters.tiles, decide);
  BlockPlans blocks(parameters.blocks, decide);
  const Outcome tiled =
      tile_made_loops(s, *sum, made, out, true, tiles, decide,
                      [&](const BlockRV& part, const LoopRV& at, const TilePlan&) -> Outcome {
                        const std::vector<LoopRV> loops = loops_below(s, part, at);
                        if (loops.size() != 2) return Declined{"columns that are one"};
                        RELAY_TRY(s.reorder({loops[1], loops[0]}));
                        BlockPlan& plan = blocks[blocks.next()];
                        return RELAY_TRY(schedule_transposition_below(s, part, at, plan, decide));
                      });
  if (!took(tiled)) return tiled;
  tiles.finish();
  blocks.finish();
  return Report{text_of(tiled) + ", columns transposed a tile at a time"};
}

}  // namespace

std::optional<RowsByRows> rows_by_rows(const Schedule& s, const BlockRV& sum, size_t spatial) {
  Block b = s.block(sum);
  const std::vector<LoopRV> loops = s.get_loops(sum);
  if (!reduces(b) || loops.size() != b->iters.size() || loops.size() != spatial + 1 ||
      spatial < 2 || b->writes.size() != 1 || !sums_products(b)) {
    return std::nullopt;
  }
  RowsByRows out{1, s.extent(loops[spatial - 1]), s.extent(loops[spatial]),
                 static_cast<int64_t>(b->writes[0]->buffer->dtype.bytes())};
  for (size_t i = 0; i < loops.size(); ++i) {
    const IterKind kind = i < spatial ? IterKind::DataParallel : IterKind::Reduce;
    const int64_t extent = s.extent(loops[i]);
    const bool row = i + 1 < spatial;
    if (b->iters[i]->kind != kind || extent == 0 || (extent == kOpen && !row)) return std::nullopt;
    if (row) out.rows *= extent == kOpen ? 0 : extent;
  }
  return out;
}

const ScheduleRule kPanelProductsRule =
    schedule_rule<PanelProductsParameters, schedule_panel_products>(
        "panel_products", "sums of products of many rows with rows");

}  // namespace relay
