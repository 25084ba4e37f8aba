// Sums over blocks of sums: products by weights of few bits, whose blocks have a scale of their own.
//
//   for columns: for rows:                        a tile
//     sums = 0
//     for block:
//       terms = 0
//       for word: for element of it: terms += data * widened weight
//       sums += scale * terms
//
// The weights are widened in registers, a word once for all rows of a tile. For many rows they come as one sum, and the
// columns of a tile are widened in memory before all rows pass by.
#include <algorithm>

#include "lower/rules/contraction_loops.h"
#include "node/walk.h"
#include "tir/block_contraction.h"
#include "tir/schedule/loop_tree.h"

namespace relay {

using tir::BlockRV;
using tir::Schedule;

namespace {

// Instructions that make a vector of float32 factors of a word: shift, mask, less the zero point; of words of four bytes that
// are multiplied at once: shift and mask.
constexpr double kFloatWidening = 3, kByteWidening = 2;

// The block that sums what each block of the sum adds up to; null name where the kernel has no such two.
struct SumBlocks {
  BlockRV sum, terms;
};

std::optional<SumBlocks> find_blocks(const Schedule& s) {
  std::optional<SumBlocks> out;
  for (const BlockRV& rv : s.get_blocks()) {
    tir::Block b = s.block(rv);
    // What it is of the result's: an index more, the block of the sum.
    if (!b->init || !reduces(b) || b->iters.empty() ||
        role_of(*b, b->iters[0]->var) != ContractionRole::Batch) {
      continue;
    }
    std::vector<BlockRV> consumers = s.consumers(rv);
    if (consumers.size() != 1) continue;
    tir::Block sum = s.block(consumers[0]);
    auto spatial = [](const tir::Block& of) {
      return std::count_if(of->iters.begin(), of->iters.end(),
                           [](const tir::IterVar& i) { return i->kind != tir::IterKind::Reduce; });
    };
    if (!sum->init || !reduces(sum) ||
        role_of(*sum, sum->iters.back()->var) != ContractionRole::Reduced ||
        spatial(sum) + 1 != spatial(b)) {
      continue;
    }
    if (out) return std::nullopt;
    out = SumBlocks{consumers[0], rv};
  }
  return out;
}

// The block that stores the sum: its only consumer, or a new one. Null name where no tile can end with it.
tir::StepResult<BlockRV> end_of(Schedule& s, const BlockRV& sum) {
  std::vector<BlockRV> consumers = s.consumers(sum);
  if (consumers.empty()) return s.cache_write(sum, tir::Scope::Register);
  if (consumers.size() > 1 || reduces(s.block(consumers[0])) ||
      !s.consumers(consumers[0]).empty()) {
    return BlockRV{};
  }
  RELAY_TRY(s.set_scope(sum, tir::Scope::Register));
  return consumers[0];
}

// Many rows: weights that are written down as float32, some columns after the others.
Outcome schedule_widened(Schedule& s, TilePlans& tiles, Decider& decide) {
  for (const BlockRV& rv : s.get_blocks()) {
    tir::Block b = s.block(rv);
    if (b->role.algorithm != "widened") continue;
    const int64_t in_word = b->role.number;
    std::vector<BlockRV> consumers = s.consumers(rv);
    std::optional<Sum> sum = consumers.size() == 1 ? describe_sum(s, consumers[0]) : std::nullopt;
    if (!sum || !reduces(s.block(consumers[0])) || sum->columns() < 2) return Declined{};
    // Their words' columns must be neighbours, too.
    const tir::Var& column = b->iters.back()->var;
    bool in_panels = true;
    post_order(b->body, [&](const Node& n) {
      auto* l = as<tir::LoadNode>(&n);
      if (l != nullptr && l->indices.size() == 2) {
        in_panels = in_panels && !tir::uses_var(l->indices[0], column.get());
      }
    });
    if (!in_panels || s.get_blocks().size() > 3) return Declined{};
    sum->rows_span_two_axes = false;
    BlockRV out = RELAY_TRY(end_of(s, consumers[0]));
    if (out.name.empty()) return Declined{};
    RELAY_TRY(s.set_scope(rv, tir::Scope::Local));
    const Outcome tiled = tile_made_loops(
        s, *sum, rv, out, false, tiles, decide,
        [&](const BlockRV& part, const tir::LoopRV&, const TilePlan& plan) -> Outcome {
          const std::vector<tir::LoopRV> around = s.get_loops(part);
          const std::vector<tir::LoopRV> words =
              RELAY_TRY(s.split(around[around.size() - 2], {-1, in_word}));
          RELAY_TRY(Tiling(s, *sum, plan).finish({}, {part, {words[1], around.back()}, {}}));
          return Report{};
        });
    if (!took(tiled)) return tiled;
    tiles.finish();
    return Report{text_of(tiled) + ", weights widened in memory"};
  }
  return Declined{};
}

struct BlockContractionParameters : AttrsOf<BlockContractionParameters> {
  std::vector<TilePlan> tiles;
  std::vector<BlockPlan> blocks;

  static AttrsList describe() {
    return {"relay.schedule.BlockContraction",
            {attribute("tiles", &Self::tiles, "The register tiles of the sum."),
             attribute("blocks", &Self::blocks, "The loops of what is computed before.")}};
  }
};

Outcome schedule_blocks(Schedule& s, BlockContractionParameters& parameters, Decider& decide) {
  TilePlans tiles(parameters.tiles, decide);
  BlockPlans blocks(parameters.blocks, decide);
  auto found = find_blocks(s);
  if (!found) return schedule_widened(s, tiles, decide);
  std::optional<Sum> sum = describe_sum(s, found->sum), terms = describe_sum(s, found->terms);
  // With nothing to sum there is no such tile.
  if (!sum || !terms || sum->columns() < 2 || sum->reduction < 2 || terms->reduction < 2 ||
      sum->dtype.bits != terms->dtype.bits) {
    return Declined{};
  }
  terms->widening = terms->dtype.is_floating() ? kFloatWidening : kByteWidening;
  terms->rows_span_two_axes = false;
  terms->streamed = sum->rows() == kOpen;
  BlockRV out = RELAY_TRY(end_of(s, found->sum));
  if (out.name.empty()) return Declined{};
  RELAY_TRY(s.set_scope(found->terms, tir::Scope::Register));
  std::vector<BlockRV> others = s.get_blocks();
  std::erase_if(others, [&](const BlockRV& rv) {
    return rv == found->sum || rv == found->terms || rv == out;
  });
  const Outcome tiled = tile_block_loops(s, *sum, *terms, out, tiles, decide);
  if (!took(tiled)) return tiled;
  std::string text = text_of(tiled);
  text += terms->dtype.is_floating() ? ", weights widened in registers"
                                     : ", blocks by dot products of four bytes";
  for (const BlockRV& rv : others) {
    // A sum of words of a row, by one instruction each, is fast as it is.
    if (reduces(s.block(rv))) continue;
    std::string note = RELAY_TRY(schedule_block(s, rv, blocks, decide));
    if (!note.empty()) text += "; " + rv.name + " " + note;
  }
  tiles.finish();
  blocks.finish();
  return Report{text};
}

}  // namespace

const ScheduleRule kBlockContractionRule =
    schedule_rule<BlockContractionParameters, schedule_blocks>(
        "block contraction", "a sum over blocks of sums with neighbouring columns");

}  // namespace relay
