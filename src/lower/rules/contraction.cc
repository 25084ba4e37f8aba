#include "lower/rules/contraction.h"

#include <algorithm>
#include <optional>

#include "lower/rules/contraction_loops.h"
#include "lower/rules/contraction_matrix.h"
#include "lower/rules/lanes.h"
#include "node/walk.h"
#include "target/dot_products.h"
#include "tir/schedule/loop_tree.h"

namespace relay {

using tir::Block;
using tir::BlockRV;
using tir::LoopRV;
using tir::Schedule;

namespace {

struct ContractionParameters : AttrsOf<ContractionParameters> {
  MatrixPlan matrix;
  bool pairs = false;
  bool borders_inlined = false;
  bool operands_turned = false;
  SumCutPlan sum;
  int64_t block_columns = 0;
  bool in_panels = false;
  std::vector<TilePlan> tiles;
  std::vector<BlockPlan> blocks;
  std::vector<int64_t> copied_lanes;

  static AttrsList describe() {
    return {"relay.schedule.Contraction",
            {attribute("matrix", &Self::matrix, "The matrix unit that takes the sum."),
             attribute("pairs", &Self::pairs,
                       "Whether one instruction multiplies two bfloat16 of a lane."),
             attribute("borders_inlined", &Self::borders_inlined,
                       "Whether tiles read the operand itself and not a copy with a border."),
             attribute("operands_turned", &Self::operands_turned,
                       "Whether what follows the sum reads copies of tensors that lie across."),
             attribute("sum", &Self::sum, "The parts that a long sum is taken in."),
             attribute("block_columns", &Self::block_columns,
                       "Columns that all rows pass by before the next ones; 0: all."),
             attribute("in_panels", &Self::in_panels,
                       "Whether a matrix unit takes the tiles of several columns for each tile of "
                       "rows, of weights that stay in no cache together."),
             attribute("tiles", &Self::tiles, "The register tiles of each nest of loops."),
             attribute("blocks", &Self::blocks, "The loops of what is copied before."),
             attribute("copied_lanes", &Self::copied_lanes,
                       "Of each copy, the elements from which on a line of it is long.")}};
  }
};

// The producers that only put a border around an operand disappear: tiles inside read the operand
// itself.
tir::StepResult<> inline_borders(Schedule& s, const BlockRV& sum) {
  for (const BlockRV& rv : s.producers(sum)) {
    Block b = s.block(rv);
    auto* store = as<tir::StoreNode>(b->body);
    auto* select = store == nullptr ? nullptr : as<tir::SelectNode>(store->value);
    if (b->init || select == nullptr || s.consumers(rv).size() != 1 ||
        !isa<tir::LoadNode>(select->true_value) || !tir::as_float(select->false_value)) {
      continue;
    }
    RELAY_TRY(s.compute_inline(rv));
  }
  return {};
}

// A copy that the sum reads an element at a time (a padded image) may have its axes in any order. Where lanes over its last
// axis would be few and far apart in what it copies, the axis that is contiguous there becomes the last: of an image whose
// three colours follow each other pixel by pixel, lines of one colour are copied. Of constant lengths, plain loops copy as
// fast (ResNet, MobileNet and VGG take the same time either way).
tir::StepResult<> keep_lines_of_source(Schedule& s, const BlockRV& copy, const Sum& sum,
                                       int64_t lanes) {
  Block b = s.block(copy);
  std::vector<LoopRV> loops = s.get_loops(copy);
  if (loops.empty() || b->init || reduces(b) || b->writes.size() != 1 ||
      loops.size() != b->iters.size() || s.is_output(b->writes[0]->buffer) ||
      s.consumers(copy).size() != 1 || !(s.consumers(copy)[0] == sum.block) ||
      s.extent(loops.back()) < 2 || s.extent(loops.back()) >= lanes) {
    return {};
  }
  bool by_element = true;
  post_order(s.block(sum.block)->body, [&](const Node& n) {
    auto* l = as<tir::LoadNode>(&n);
    if (l == nullptr || !(l->buffer == b->writes[0]->buffer)) return;
    for (const tir::PrimExpr& i : l->indices) {
      by_element = by_element && !tir::uses_var(i, sum.spatial.back()->var.get());
    }
  });
  auto all = [](const std::vector<std::optional<int64_t>>& steps, auto holds) {
    return !steps.empty() && std::all_of(steps.begin(), steps.end(), holds);
  };
  if (!by_element || is_contiguous(s, copy, loops.back())) return {};
  for (size_t i = 0; i + 1 < loops.size(); ++i) {
    if (s.extent(loops[i]) != kOpen) continue;
    if (!all(read_steps(s, copy, loops[i]), [](auto step) { return step == 1; })) continue;
    // The loops stand in the order of the buffer's axes.
    for (size_t d = 0; d < loops.size(); ++d) {
      if (!(as<tir::VarNode>(b->writes[0]->mins[d]) == b->iters[d]->var.get()) ||
          !(as<tir::VarNode>(b->bindings[d]) == loops[d].var.get())) {
        return {};
      }
    }
    std::vector<tir::LayoutAxis> layout;
    for (size_t d = 0; d < loops.size(); ++d) {
      if (d != i) layout.push_back({static_cast<int64_t>(d)});
    }
    layout.push_back({static_cast<int64_t>(i)});
    RELAY_TRY(s.transform_layout(copy, layout));
    LoopRV line = loops[i];
    loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(i));
    loops.push_back(line);
    return s.reorder(loops);
  }
  return {};
}

// A tensor that what follows the sum reads across, a line for each lane, with its dimensions in the order of the sum's
// iterations. 0 bytes: as many as only a run knows.
struct Across {
  std::string buffer;
  std::vector<tir::LayoutAxis> layout;
  int64_t bytes = 0;
};
std::vector<Across> operands_across(const Schedule& s, const BlockRV& out) {
  const Block b = s.block(out);
  std::vector<const tir::LoadNode*> loads;
  post_order(b->body, [&](const Node& n) {
    if (auto* l = as<tir::LoadNode>(&n)) loads.push_back(l);
  });
  const auto steps = read_steps(s, out, s.get_loops(out).back());
  std::vector<Across> found;
  for (size_t k = 0; k < loads.size(); ++k) {
    const tir::LoadNode& l = *loads[k];
    const bool once = std::ranges::count_if(
                          loads, [&](const auto* other) { return other->buffer == l.buffer; }) == 1;
    if (steps[k] == 0 || steps[k] == 1 || l.dtype.is_bool() || !once ||
        l.indices.size() != b->iters.size()) {
      continue;
    }
    Across across{l.buffer->name, {}, tir::bytes_in_memory(*l.buffer.get()).value_or(0)};
    for (const tir::IterVar& i : b->iters) {
      for (size_t d = 0; d < l.indices.size(); ++d) {
        if (l.indices[d].get() == i->var.get()) {
          across.layout.push_back({static_cast<int64_t>(d)});
        }
      }
    }
    if (across.layout.size() == b->iters.size()) found.push_back(across);
  }
  return found;
}

// Lanes that are put together one by one wait for lines that nothing has asked for: behind a 1x1 convolution of 28 x 28 places to
// 256 channels, two tensors of 3 MB from memory make it take 2.4 ms, and copies of them 0.97, on two cores of a Zen 3. One
// tensor of 0.8 MB makes no difference.
bool are_far(const std::vector<Across>& across, const Target& target) {
  int64_t bytes = 0;
  for (const Across& a : across) bytes += a.bytes;
  return bytes > 2 * target.l2_bytes;
}

// What follows the sum reads copies of these, which lie as its result does.
tir::StepResult<> turn_operands(Schedule& s, const BlockRV& out,
                                const std::vector<Across>& across) {
  for (const Across& a : across) {
    const BlockRV turned = RELAY_TRY(s.cache_read(out, a.buffer, tir::Scope::Global));
    RELAY_TRY(s.transform_layout(turned, a.layout));
    std::vector<LoopRV> loops = s.get_loops(turned), order;
    for (const tir::LayoutAxis& axis : a.layout) {
      order.push_back(loops[static_cast<size_t>(axis.dim)]);
    }
    RELAY_TRY(s.reorder(order));
  }
  return {};
}

Outcome tile_kernel(Schedule& s, Sum sum, ContractionParameters& parameters, TilePlans& tiles,
                    BlockPlans& blocks, Decider& decide) {
  std::vector<BlockRV> consumers = s.consumers(sum.block);
  if (consumers.size() > 1) return Declined{};
  BlockRV out, copy;
  const SumCut cut = consumers.empty() ? cut_of_sum(s, sum, parameters.sum, decide) : SumCut{};
  if (cut.parts > 1) {
    out = sum.block;
    sum = RELAY_TRY(part_of_sum(s, sum, cut));
  } else if (consumers.empty()) {
    out = RELAY_TRY(s.cache_write(sum.block, tir::Scope::Register));
  } else {
    out = consumers[0];
    if (reduces(s.block(out)) || !s.consumers(out).empty()) return Declined{};
    if (sum.matrix) {
      copy = RELAY_TRY(copy_from_unit(s, sum.block));
    } else {
      RELAY_TRY(s.set_scope(sum.block, tir::Scope::Register));
    }
  }
  if (!consumers.empty() && sum.spatial.size() > 2) {
    const std::vector<Across> across = operands_across(s, out);
    if (!across.empty() && decide.value(parameters.operands_turned, [&](const Target& target) {
          return are_far(across, target);
        })) {
      RELAY_TRY(turn_operands(s, out, across));
    }
  }
  // What else there is (a padded input) gets plain loops.
  std::vector<BlockRV> others = s.get_blocks();
  std::erase_if(others,
                [&](const BlockRV& rv) { return rv == sum.block || rv == out || rv == copy; });
  PlanList<int64_t> lanes(parameters.copied_lanes, decide);
  for (const BlockRV& rv : others) {
    Block b = s.block(rv);
    if (b->writes.size() != 1) continue;
    int64_t& of_copy = lanes[lanes.next()];
    RELAY_TRY(keep_lines_of_source(
        s, rv, sum,
        decide.number(of_copy, kLanes, [&](const Target& target) { return lanes_of(b, target); })));
  }
  lanes.finish();
  bool open = sum.rows() == kOpen || sum.columns() == kOpen;
  Outcome tiled = Declined{};
  if (others.empty() && copy.name.empty()) {
    tiled = tile_column_blocks(s, sum, out, parameters.block_columns, tiles, decide);
  }
  if (!took(tiled)) {
    const bool closed_by_unit = sum.matrix && !open && sum.spatial.size() == 2;
    const bool in_panels =
        closed_by_unit && decide.value(parameters.in_panels, [&](const Target& target) {
          return pays_panels_of_unit(sum, target);
        });
    tiled = open || in_panels ? tile_open_loops(s, sum, out, tiles, decide, copy)
                              : tile_loops(s, sum, out, sum.in_parts ? 1 : 0, tiles, decide, copy);
  }
  if (!took(tiled)) return tiled;
  std::string text = text_of(tiled);
  if (sum.in_parts) text += ", the sum in " + std::to_string(cut.parts) + " parts";
  if (sum.matrix) s.require_features(parameters.matrix.features);
  for (const BlockRV& rv : others) {
    Block other = s.block(rv);
    std::vector<LoopRV> around = s.get_loops(rv);
    bool scheduled = std::any_of(around.begin(), around.end(), [&](const LoopRV& l) {
      return s.loop(l)->loop_kind != tir::ForKind::Serial;
    });
    if (scheduled || other->init || reduces(other) || around.size() != other->iters.size())
      continue;
    std::string note = RELAY_TRY(schedule_block(s, rv, blocks, decide));
    if (!note.empty()) text += "; " + rv.name + " " + note;
  }
  return Report{text};
}

// A tile of results stays in registers over the whole reduction, lanes over the last axis, and what
// follows is applied before it is stored. The tile's shape is the one with the least work among
// those that leave registers for one vector of each column and one element of a row; tiles at the
// ends that are smaller are peeled off into loops of their own. Empty when the kernel is no such
// sum.
Outcome schedule_contraction(Schedule& s, ContractionParameters& parameters, Decider& decide) {
  std::optional<Sum> sum = find_sum(s);
  if (!sum || sum->columns() == 1) return Declined{};
  TilePlans tiles(parameters.tiles, decide);
  BlockPlans blocks(parameters.blocks, decide);
  auto tiled = [&](Schedule& at) {
    Outcome out = tile_kernel(at, *sum, parameters, tiles, blocks, decide);
    if (took(out)) {
      tiles.finish();
      blocks.finish();
    }
    return out;
  };
  sum->matrix = matrix_step(s, *sum, parameters.matrix, decide);
  if (sum->matrix) return tiled(s);
  if (sum->bytes && !decide.pays([](const Target& target) { return has_byte_dot(target); }))
    return Declined{"the target multiplies no four bytes at once"};
  sum->halves = sum->pairs && decide.value(parameters.pairs, [](const Target& target) {
    return has_bfloat16_dot(target);
  });
  // Elsewhere the copy with a border costs little beside the sum, and code for every border much.
  if (sum->depthwise && sum->reduction <= 9 &&
      decide.value(parameters.borders_inlined, [](const Target&) { return true; })) {
    Schedule in_place = s;
    RELAY_TRY(inline_borders(in_place, sum->block));
    Outcome out = tiled(in_place);
    if (took(out)) {
      s = in_place;
      return out;
    }
    if (!decide.chooses()) return out;
    parameters.borders_inlined = false;
    parameters.copied_lanes.clear();
    tiles.rewind(0);
    blocks.rewind(0);
  }
  return tiled(s);
}

}  // namespace

const ScheduleRule kContractionRule = schedule_rule<ContractionParameters, schedule_contraction>(
    "contraction", "one sum of products of 32-bit or wider numbers with neighbouring columns");

Outcome tile_sum(Schedule& s, const BlockRV& rv, const BlockRV& out, size_t around,
                 bool whole_tiles, TilePlans& plans, Decider& decide) {
  std::optional<Sum> sum = describe_sum(s, rv);
  std::vector<LoopRV> loops = s.get_loops(out);
  if (!sum || loops.size() != around + 2) return Declined{};
  sum->fixed = sum->spatial.size() - 2;
  sum->spatial.erase(sum->spatial.begin(), sum->spatial.end() - 2);
  sum->roles.erase(sum->roles.begin(), sum->roles.end() - 2);
  std::vector<int64_t> part{s.extent(loops[around]), s.extent(loops[around + 1])};
  sum->whole_rows = whole_tiles && part[0] != sum->rows();
  sum->whole_columns = whole_tiles && part[1] != sum->columns();
  sum->extents = part;
  sum->rows_span_two_axes = false;
  RELAY_TRY(s.set_scope(rv, tir::Scope::Register));
  return sum->is_open() ? tile_open_part(s, *sum, out, plans, decide)
                        : tile_loops(s, *sum, out, around, plans, decide);
}

}  // namespace relay
