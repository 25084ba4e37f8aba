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

// The producers that only put a border around an operand disappear: tiles inside read the operand
// itself.
void inline_borders(Schedule& s, const BlockRV& sum) {
  for (const BlockRV& rv : s.producers(sum)) {
    Block b = s.block(rv);
    auto* store = as<tir::StoreNode>(b->body);
    auto* select = store == nullptr ? nullptr : as<tir::SelectNode>(store->value);
    if (b->init || select == nullptr || s.consumers(rv).size() != 1 ||
        !isa<tir::LoadNode>(select->true_value) || !tir::as_float(select->false_value)) {
      continue;
    }
    s.compute_inline(rv);
  }
}

// A copy that the sum reads an element at a time (a padded image) may have its axes in any order. Where lanes over its last
// axis would be few and far apart in what it copies, the axis that is contiguous there becomes the last: of an image whose
// three colours follow each other pixel by pixel, lines of one colour are copied. Of constant lengths, plain loops copy as
// fast (ResNet, MobileNet and VGG take the same time either way).
void keep_lines_of_source(Schedule& s, const BlockRV& copy, const Sum& sum, const Target& target) {
  Block b = s.block(copy);
  std::vector<LoopRV> loops = s.get_loops(copy);
  if (loops.empty() || b->init || reduces(b) || b->writes.size() != 1 ||
      loops.size() != b->iters.size() || s.is_output(b->writes[0]->buffer) ||
      s.consumers(copy).size() != 1 || !(s.consumers(copy)[0] == sum.block) ||
      s.extent(loops.back()) < 2 || s.extent(loops.back()) >= lanes_of(b, target)) {
    return;
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
  if (!by_element || is_contiguous(s, copy, loops.back())) return;
  for (size_t i = 0; i + 1 < loops.size(); ++i) {
    if (s.extent(loops[i]) != kOpen) continue;
    if (!all(read_steps(s, copy, loops[i]), [](auto step) { return step == 1; })) continue;
    // The loops stand in the order of the buffer's axes.
    for (size_t d = 0; d < loops.size(); ++d) {
      if (!(as<tir::VarNode>(b->writes[0]->mins[d]) == b->iters[d]->var.get()) ||
          !(as<tir::VarNode>(b->bindings[d]) == loops[d].var.get())) {
        return;
      }
    }
    std::vector<tir::LayoutAxis> layout;
    for (size_t d = 0; d < loops.size(); ++d) {
      if (d != i) layout.push_back({static_cast<int64_t>(d)});
    }
    layout.push_back({static_cast<int64_t>(i)});
    s.transform_layout(copy, layout);
    LoopRV line = loops[i];
    loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(i));
    loops.push_back(line);
    s.reorder(loops);
    return;
  }
}

std::string tile_kernel(Schedule& s, Sum sum, const Target& target) {
  std::vector<BlockRV> consumers = s.consumers(sum.block);
  if (consumers.size() > 1) return "";
  BlockRV out, copy;
  const SumCut cut = consumers.empty() ? cut_of_sum(s, sum, target) : SumCut{};
  if (cut.parts > 1) {
    out = sum.block;
    sum = part_of_sum(s, sum, cut);
  } else if (consumers.empty()) {
    out = s.cache_write(sum.block, tir::Scope::Register);
  } else {
    out = consumers[0];
    if (reduces(s.block(out)) || !s.consumers(out).empty()) return "";
    if (sum.matrix) {
      // What follows takes the sums from memory.
      copy = s.cache_write(sum.block, tir::Scope::Register);
      s.set_scope(copy, tir::Scope::Local);
    } else {
      s.set_scope(sum.block, tir::Scope::Register);
    }
  }
  // What else there is (a padded input) gets plain loops.
  std::vector<BlockRV> others = s.get_blocks();
  std::erase_if(others,
                [&](const BlockRV& rv) { return rv == sum.block || rv == out || rv == copy; });
  for (const BlockRV& rv : others) keep_lines_of_source(s, rv, sum, target);
  bool open = sum.rows() == kOpen || sum.columns() == kOpen;
  std::string text =
      others.empty() && copy.name.empty() ? tile_column_blocks(s, sum, out, target) : "";
  if (text.empty()) {
    text = open ? tile_open_loops(s, sum, out, target, copy)
                : tile_loops(s, sum, out, sum.in_parts ? 1 : 0, target, copy);
  }
  if (text.empty()) return "";
  if (sum.in_parts) text += ", the sum in " + std::to_string(cut.parts) + " parts";
  if (sum.matrix) s.require_features(matrix_features(target, sum.matrix->factors));
  for (const BlockRV& rv : others) {
    Block other = s.block(rv);
    std::vector<LoopRV> around = s.get_loops(rv);
    bool scheduled = std::any_of(around.begin(), around.end(), [&](const LoopRV& l) {
      return s.loop(l)->loop_kind != tir::ForKind::Serial;
    });
    if (scheduled || other->init || reduces(other) || around.size() != other->iters.size())
      continue;
    std::string note = schedule_block(s, rv, target);
    if (!note.empty()) text += "; " + rv.name + " " + note;
  }
  return text;
}

// A tile of results stays in registers over the whole reduction, lanes over the last axis, and what
// follows is applied before it is stored. The tile's shape is the one with the least work among
// those that leave registers for one vector of each column and one element of a row; tiles at the
// ends that are smaller are peeled off into loops of their own. Empty when the kernel is no such
// sum.
std::string schedule_contraction(Schedule& s, const Target& target) {
  std::optional<Sum> sum = find_sum(s);
  if (!sum || sum->columns() == 1) return "";
  sum->matrix = matrix_step(s, *sum, target);
  if (sum->matrix) return tile_kernel(s, *sum, target);
  if (sum->bytes && !has_byte_dot(target)) return "";
  // Elsewhere the copy with a border costs little beside the sum, and code for every border much.
  if (sum->depthwise && sum->reduction <= 9) {
    Schedule in_place = s;
    inline_borders(in_place, sum->block);
    std::string text = tile_kernel(in_place, *sum, target);
    if (!text.empty()) {
      s = in_place;
      return text;
    }
  }
  return tile_kernel(s, *sum, target);
}

}  // namespace

const ScheduleRule kContractionRule{
    "contraction", "one sum of products of 32-bit or wider numbers with neighbouring columns",
    schedule_contraction};

std::string tile_sum(Schedule& s, const BlockRV& rv, const BlockRV& out, size_t around,
                     bool whole_tiles, const Target& target) {
  std::optional<Sum> sum = describe_sum(s, rv);
  std::vector<LoopRV> loops = s.get_loops(out);
  if (!sum || loops.size() != around + 2) return "";
  sum->fixed = sum->spatial.size() - 2;
  sum->spatial.erase(sum->spatial.begin(), sum->spatial.end() - 2);
  std::vector<int64_t> part{s.extent(loops[around]), s.extent(loops[around + 1])};
  sum->whole_rows = whole_tiles && part[0] != sum->rows();
  sum->whole_columns = whole_tiles && part[1] != sum->columns();
  sum->extents = part;
  sum->rows_span_two_axes = false;
  s.set_scope(rv, tir::Scope::Register);
  return sum->is_open() ? tile_open_part(s, *sum, out, target)
                        : tile_loops(s, *sum, out, around, target);
}

}  // namespace relay
