// Kernels over the work items of a device: an item computes one element of each block, along up to three axes, and does its
// reduction alone. Groups of items compute tiles of large contractions, long reductions along the last axis of what they read,
// and whole rows where reductions and what needs them run along rows, through memory that they share. A reduction that one
// block reads element by element is done where it is read, in the item's own memory, and an item computes a small tile of a
// contraction, so that it reads each operand once for several elements. Reductions to few elements are cut into parts first,
// which items compute, where these steps are legal. Blocks without independent iterations run in one item.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "lower/rules/common.h"
#include "lower/rules/item_lanes.h"
#include "lower/rules/item_loops.h"
#include "lower/rules/work_groups.h"
#include "node/walk.h"
#include "target/item_panels.h"
#include "tir/passes/block_sums.h"
#include "tir/passes/statements.h"
#include "tir/thread_tags.h"

namespace relay {
namespace {

using tir::Block;
using tir::BlockRV;
using tir::IterKind;
using tir::LoopRV;
using tir::Schedule;

// A device has some thousands of items at work at a time. A reduction to fewer elements than that is cut, unless its parts
// would be shorter than a second launch is worth.
constexpr int64_t kManyItems = 2048, kLeastPart = 64, kMostParts = 256;

// Tiles are at most so long along an axis, and leave a device so many items.
constexpr int64_t kLongestTile = 4, kLeastItems = 512;
// Where items are lanes of a processor's vectors: elements of an item along an axis, and together.
constexpr int64_t kLongestLaneTile = 8, kLargestLaneTile = 16, kMostAxes = 8;
// At most this part of an axis, as a quotient, is computed outside of it.
constexpr int64_t kLaneTileWaste = 16;

// Items of a group that reduces an element: as many as all devices support in practice.
constexpr int64_t kReducingItems = 128;
// Rows that a group computes have at least so many elements; an item has at most so many of them before the group gets more items.
constexpr int64_t kLeastRow = 64, kLeastRowItems = 32, kRowElements = 8;
// A reduction is shared by a group from so many terms on.
constexpr int64_t kLeastShared = 512;
// A group computes an element of contractions of fewer rows. The least number of terms of a contraction for tiles, and the
// most that a group has in shared memory at a time; the largest tile of an item.
constexpr int64_t kFewRows = 8, kLeastTerms = 16, kMostDepth = 128, kLargestTile = 16;
constexpr int64_t kMostWarps = 8, kMostMatrix = 32, kMostSlots = 4;
constexpr const char* kChecks = "an item that fails a check would leave its group waiting";

struct ItemPlan {
  int64_t parts = 1;    // of a reduction; 1: it is not cut
  int64_t rows = 1;     // of an item's tile of a contraction
  int64_t columns = 1;  // of an item's tile
  int64_t depth =
      0;  // terms of a contraction that a group has in shared memory; 0: items read for themselves
  int64_t items = 1;  // of the group that reduces an element
  // The axis of neighbouring items, counted from the end (lane_axis), which has no tiles; 0: the last one, which has.
  int64_t lanes = 0;
  // Of the group, and rows and terms of the instruction by which they multiply; 0: items multiply.
  int64_t warps = 0, matrix_rows = 0, matrix_terms = 0;
  // Buffers of the terms in shared memory that take turns; 1: a group waits for its copies. Whether copies arrive there later, 1,
  // or through registers, 0.
  int64_t slots = 1, later = 0;
  int64_t exchange =
      0;  // 1: the items of a warp reduce by exchanging registers; 0: through shared memory

  static constexpr auto members() {
    return std::tuple{member("columns", &ItemPlan::columns),
                      member("depth", &ItemPlan::depth),
                      member("exchange", &ItemPlan::exchange),
                      member("items", &ItemPlan::items),
                      member("lanes", &ItemPlan::lanes),
                      member("later", &ItemPlan::later),
                      member("matrix_rows", &ItemPlan::matrix_rows),
                      member("matrix_terms", &ItemPlan::matrix_terms),
                      member("parts", &ItemPlan::parts),
                      member("rows", &ItemPlan::rows),
                      member("slots", &ItemPlan::slots),
                      member("warps", &ItemPlan::warps)};
  }
  friend bool operator==(const ItemPlan&, const ItemPlan&) = default;
};

struct WorkItemsParameters : AttrsOf<WorkItemsParameters> {
  int64_t row_items = 1, row_exchange = 0;
  std::vector<ItemPlan> blocks;

  static AttrsList describe() {
    return {"relay.schedule.WorkItems",
            {attribute("row_items", &Self::row_items,
                       "The items of the group that computes a row of the result; 1: blocks are "
                       "scheduled by themselves."),
             attribute("row_exchange", &Self::row_exchange,
                       "1: the items of a warp reduce a row by exchanging registers; 0: through "
                       "shared memory."),
             attribute("blocks", &Self::blocks, "The items of each block.")}};
  }
};

int64_t parts_of(int64_t elements, int64_t length) {
  if (elements < 0 || length < 0 || elements >= kManyItems) return 1;
  return std::clamp<int64_t>(std::min(length / kLeastPart, kManyItems / elements), 1, kMostParts);
}

// The number of axes of items that compute an element each.
tir::StepResult<size_t> bind_elements(Schedule& s, const BlockRV& rv) {
  auto loops = loops_of(s, rv);
  if (!loops || loops->parallel.empty()) return size_t{0};
  RELAY_TRY(order_loops(s, rv, *loops));
  return RELAY_TRY(bind_loops(s, loops->parallel, tir::kGlobalTags)).size();
}

// The parallel loops that have tiles, the innermost first.
std::vector<size_t> tile_axes(const Schedule& s, const std::vector<LoopRV>& loops, int64_t lanes) {
  std::vector<size_t> out;
  const size_t lane = lanes > 0 ? loops.size() - static_cast<size_t>(lanes) : loops.size();
  for (size_t i = loops.size(); i-- > 0;) {
    if (i != lane && (lanes == 0 || s.extent(loops[i]) != 1)) out.push_back(i);
  }
  return out;
}

// The reduction in the items of `reader`, which compute a tile each.
tir::StepResult<> reduce_where_read(Schedule& s, const BlockRV& rv, const BlockRV& reader,
                                    const ItemPlan& plan) {
  std::vector<LoopRV> outer = loops_of(s, reader)->parallel, inner;
  if (static_cast<size_t>(plan.lanes) > outer.size()) return tir::Illegal{"it has fewer axes"};
  const std::vector<size_t> axes = tile_axes(s, outer, plan.lanes);
  const std::array lengths = {plan.columns, plan.rows};
  for (size_t i = 0; i < std::min(axes.size(), lengths.size()); ++i) {
    if (lengths[i] == 1) continue;
    LoopRV& loop = outer[axes[i]];
    const std::vector<LoopRV> parts = RELAY_TRY(s.split(loop, {-1, lengths[i]}));
    loop = parts[0];
    inner.insert(inner.begin(), parts[1]);
  }
  if (plan.lanes > 0) {
    const auto lane = outer.end() - plan.lanes;
    std::rotate(lane, lane + 1, outer.end());
    const int64_t length = s.extent(outer.back());
    if (length > kItemPanel && length % kItemPanel == 0) {
      const std::vector<LoopRV> parts = RELAY_TRY(s.split(outer.back(), {-1, kItemPanel}));
      outer.back() = parts[0];
      outer.push_back(parts[1]);
    }
  }
  std::vector<LoopRV> order = outer;
  order.insert(order.end(), inner.begin(), inner.end());
  RELAY_TRY(s.reorder(order));
  const LoopRV at = RELAY_TRY(bind_loops(s, outer, tir::kGlobalTags)).back();
  for (const LoopRV& l : inner) RELAY_TRY(s.unroll(l));
  RELAY_TRY(s.compute_at(rv, at));
  RELAY_TRY(s.set_scope(rv, tir::Scope::Register));
  if (inner.empty()) return {};
  // Each operand is read once for the tile.
  const Block b = s.block(rv);
  const std::vector<LoopRV> all = s.get_loops(rv);
  std::vector<LoopRV> tile, reduction;
  std::vector<size_t> along;  // of each reduction
  for (auto l = std::ranges::find(all, at) + 1; l != all.end(); ++l) {
    bool reduces = false;
    for (size_t i = 0; i < b->iters.size(); ++i) {
      if (b->iters[i]->kind != IterKind::Reduce || !tir::uses(b->bindings[i], l->var.get())) {
        continue;
      }
      reduces = true;
      if (plan.lanes == 0) continue;
      // Of an image, the taps inside the channels: they are near each other.
      const size_t axis = axis_of_reduction(b, b->iters[i]->var);
      const auto place = std::ranges::upper_bound(along, axis);
      reduction.insert(reduction.begin() + (place - along.begin()), *l);
      along.insert(place, axis);
      break;
    }
    if (!reduces) tile.push_back(*l);
    if (reduces && plan.lanes == 0) reduction.push_back(*l);
  }
  if (reduction.empty()) return tir::Illegal{"the reduction has one term"};
  std::vector<LoopRV> turned = reduction;
  turned.insert(turned.end(), tile.begin(), tile.end());
  RELAY_TRY(s.reorder(turned));
  const BlockRV init = RELAY_TRY(s.decompose_reduction(rv, reduction[0]));
  for (const LoopRV& l : tile) RELAY_TRY(s.unroll(l));
  const int64_t longest = plan.lanes > 0 ? kLongestLaneTile : kLongestTile;
  const std::vector<LoopRV> around = s.get_loops(init);
  for (const LoopRV& l : around) {
    const int64_t extent = s.extent(l);
    if (extent > 1 && extent <= longest && s.loop(l)->loop_kind == tir::ForKind::Serial) {
      RELAY_TRY(s.unroll(l));
    }
  }
  return {};
}

// The longest tile of lanes along an axis that divides it. Where that is short, the tile whose last one has the fewest elements
// outside of the axis, if these are few.
int64_t lane_tile_of(int64_t extent, int64_t most) {
  most = std::min(most, kLongestLaneTile);
  int64_t out = most;
  while (out > 1 && (extent < 0 || extent % out != 0)) --out;
  if (extent < 0 || out >= kLongestTile) return out;
  int64_t least = extent / kLaneTileWaste + 1;
  for (int64_t tile = most; tile >= kLongestTile; --tile) {
    const int64_t outside = (extent + tile - 1) / tile * tile - extent;
    if (outside >= least) continue;
    least = outside;
    out = tile;
  }
  return out;
}

// The longest tile along an axis that divides it.
int64_t tile_of(int64_t extent) {
  int64_t out = kLongestTile;
  while (extent < 0 || extent % out != 0) {
    if (extent < 0) return 1;
    out /= 2;
  }
  return out;
}

// Items compute parts of the reduction, which the block then reduces; the number of axes of these items.
tir::StepResult<size_t> cut_reduction(Schedule& s, const BlockRV& rv, const BlockLoops& loops,
                                      int64_t parts) {
  RELAY_TRY(order_loops(s, rv, loops));
  const LoopRV all =
      loops.reduction.size() == 1 ? loops.reduction[0] : RELAY_TRY(s.fuse(loops.reduction));
  // Neighbouring items read neighbouring elements. All loops inside the one over parts are the parts' own.
  const std::vector<LoopRV> cut = RELAY_TRY(s.split(all, {-1, parts}));
  std::vector<LoopRV> outer{cut[1]};
  outer.insert(outer.end(), loops.parallel.begin(), loops.parallel.end());
  std::vector<LoopRV> order = outer;
  order.push_back(cut[0]);
  RELAY_TRY(s.reorder(order));
  RELAY_TRY(s.mask_reduction(rv));
  const BlockRV of_parts = RELAY_TRY(s.rfactor(rv, cut[1]));
  outer = s.get_loops(of_parts);
  outer.pop_back();
  return RELAY_TRY(bind_loops(s, outer, tir::kGlobalTags)).size();
}

int64_t bytes_of(tir::DType d) { return static_cast<int64_t>(d.element().bytes()); }

class ItemsSchedule {
 public:
  ItemsSchedule(Schedule& s, WorkItemsParameters& parameters, Decider& decide)
      : s_(s),
        row_items_(parameters.row_items),
        row_exchange_(parameters.row_exchange),
        plans_(parameters.blocks, decide),
        decide_(decide) {}

  std::string schedule() {
    decide_.number(row_items_, {1, kReducingItems},
                   [&](const Target& t) { return items_of_rows(t.limits.items); });
    const GroupReduction by = reduction_of(row_items_, row_exchange_);
    if (by.items > 1) {
      auto rows = tir::attempt(s_, [&](Schedule& at) { return rows_in_groups(at, by); });
      if (rows.is_legal()) {
        plans_.finish();
        return "items: rows of the result in groups of " + std::to_string(by.items) +
               " items, which compute all blocks" + in_words(by);
      }
      give_up(row_items_, 1, " not scheduled by rows: " + rows.why().reason);
      row_exchange_ = 0;
    }
    std::vector<BlockRV> blocks = s_.get_blocks();
    // What only moves elements disappears into the groups that read it.
    std::ranges::stable_partition(
        blocks, [&](const BlockRV& rv) { return s_.block(rv)->contraction != nullptr; });
    for (const BlockRV& rv : blocks) {
      if (std::ranges::find(done_, rv) != done_.end() || !s_.has_block(rv.name)) continue;
      const std::string text = block(rv);
      text_ += (text_.empty() ? "items: " : "; ") + rv.name + " " + text;
    }
    plans_.finish();
    return text_;
  }

 private:
  // Of so many items; 1: there is no group.
  GroupReduction reduction_of(int64_t items, int64_t& exchange) {
    decide_.number(exchange, {0, 1}, [&](const Target& t) {
      return int64_t{items > 1 && t.limits.items.exchanges && items % tir::kWarpItems == 0};
    });
    if (exchange == 1 && items % tir::kWarpItems != 0) {
      give_up(exchange, 0, " for " + std::to_string(items) + " items, which are no whole warps");
    }
    return {items, exchange == 1};
  }
  static std::string in_words(const GroupReduction& by) {
    return by.exchange ? " and exchange registers in warps" : "";
  }

  std::string block(const BlockRV& rv) {
    ItemPlan& plan = plans_[plans_.next()];
    auto loops = loops_of(s_, rv);
    const bool reduces = loops && !loops->reduction.empty();
    const int64_t elements = reduces ? iterations(s_, loops->parallel) : -1;
    const GroupChoice sharing = reduces ? sharing_items(rv, *loops, elements) : GroupChoice{1};
    decide_.number(plan.lanes, {0, kMostAxes}, [&](const Target& t) {
      const bool may_be_lanes = reduces && !runs_side_by_side(t.limits.items);
      return may_be_lanes ? std::min(lane_axis(s_.block(rv)), kMostAxes) : 0;
    });
    if (plan.lanes > 0 && (!reduces || !s_.block(rv)->contraction)) {
      give_up(plan.lanes, 0, " no contraction, whose items are lanes");
    } else if (plan.lanes > 0 && static_cast<size_t>(plan.lanes) > loops->parallel.size()) {
      give_up(plan.lanes, 0, " of fewer axes");
    }
    const TileChoice tile = !reduces         ? TileChoice{}
                            : plan.lanes > 0 ? TileChoice{{}, "items are lanes of vectors"}
                                             : group_tile(rv, *loops);
    std::string why_not;
    for (const std::string& why : {sharing.why_not, tile.why_not}) {
      if (!why.empty()) why_not += " (not in groups: " + why + ")";
    }
    if (!no_matrix_.empty()) why_not += " (no tensor cores: " + no_matrix_ + ")";
    const int64_t items = decide_.number(plan.items, {1, kReducingItems},
                                         [&](const Target&) { return sharing.number; });
    const GroupReduction by = reduction_of(items, plan.exchange);
    if (items > 1) {
      auto shared = tir::attempt(s_, [&](Schedule& at) { return reduce_in_groups(at, rv, by); });
      if (shared.is_legal()) {
        const int64_t bytes =
            by.shared_elements() * bytes_of(s_.block(rv)->writes[0]->buffer->dtype);
        return "groups of " + std::to_string(items) + " items, " + std::to_string(bytes) +
               " bytes of shared memory" +
               (by.exchange ? ", by exchanging registers in warps" : "");
      }
      why_not = " (not in groups: " + shared.why().reason + ")";
      give_up(plan.items, 1, why_not);
      plan.exchange = 0;
    }
    decide_.number(plan.depth, {0, kMostDepth},
                   [&](const Target&) { return tile.tile ? tile.tile->depth : 0; });
    if (plan.depth > 0) {
      if (auto text = in_groups(rv, plan, tile, why_not)) return *text;
      give_up(plan.depth, 0, why_not);
    }
    const int64_t parts = decide_.number(plan.parts, {1, kMostParts}, [&](const Target&) {
      return reduces && plan.lanes == 0 ? parts_of(elements, iterations(s_, loops->reduction)) : 1;
    });
    item_tile(rv, loops, elements, plan);
    if (!reduces) return bound(rv);
    if (parts > 1) {
      auto cut =
          tir::attempt(s_, [&](Schedule& at) { return cut_reduction(at, rv, *loops, parts); });
      if (cut.is_legal()) {
        const size_t axes = std::move(cut).take();
        return std::to_string(parts) + " parts over " + counted(axes) + ", then " + bound(rv) +
               why_not;
      }
      why_not += " (not in parts: " + cut.why().reason + ")";
    }
    if (auto text = where_read(rv, plan, why_not)) return *text + why_not;
    return bound(rv) + why_not;
  }

  void item_tile(const BlockRV& rv, const std::optional<BlockLoops>& loops, int64_t elements,
                 ItemPlan& plan) {
    const bool tiles = loops && elements >= kLeastItems && s_.block(rv)->contraction &&
                       !loops->parallel.empty() && !loops->reduction.empty();
    if (plan.lanes > 0) return lane_tile(*loops, tiles ? elements : 0, plan);
    decide_.number(plan.columns, {1, kLongestTile}, [&](const Target&) {
      const int64_t most = tiles ? tile_of(s_.extent(loops->parallel.back())) : 1;
      return tiles && elements / most >= kLeastItems ? most : 1;
    });
    decide_.number(plan.rows, {1, kLongestTile}, [&](const Target&) {
      if (!tiles || loops->parallel.size() < 2) return int64_t{1};
      const int64_t most = tile_of(s_.extent(loops->parallel[loops->parallel.size() - 2]));
      return elements / plan.columns / most >= kLeastItems ? most : 1;
    });
  }

  // As many elements as registers hold, along the two axes beside that of the lanes. `elements`: 0 where there are no tiles.
  void lane_tile(const BlockLoops& loops, int64_t elements, ItemPlan& plan) {
    const std::vector<size_t> axes = tile_axes(s_, loops.parallel, plan.lanes);
    auto along = [&](size_t axis, int64_t most) {
      if (axis >= axes.size() || elements == 0) return int64_t{1};
      int64_t out = lane_tile_of(s_.extent(loops.parallel[axes[axis]]), most);
      while (out > 1 && elements / out < kLeastItems) out /= 2;
      return lane_tile_of(s_.extent(loops.parallel[axes[axis]]), out);
    };
    decide_.number(plan.columns, {1, kLongestLaneTile},
                   [&](const Target&) { return along(0, kLongestLaneTile); });
    decide_.number(plan.rows, {1, kLongestLaneTile},
                   [&](const Target&) { return along(1, kLargestLaneTile / plan.columns); });
  }

  // Items of the group that computes a row: where several blocks run along rows, one of which reduces, and all fit into shared
  // memory.
  int64_t items_of_rows(const WorkItemLimits& limits) const {
    const std::vector<BlockRV> blocks = s_.get_blocks();
    const auto result = loops_of(s_, blocks.back());
    if (!runs_side_by_side(limits) || blocks.size() < 2 || !result || !result->reduction.empty() ||
        result->parallel.size() < 2 || may_fail()) {
      return 1;
    }
    const int64_t length = s_.extent(result->parallel.back());
    const int64_t rows = iterations(s_, {result->parallel.begin(), result->parallel.end() - 1});
    if (length < kLeastRow || (rows >= 0 && rows < kLeastGroups)) return 1;
    bool reduces = false;
    int64_t bytes = 0;
    for (const BlockRV& rv : blocks) {
      const auto loops = loops_of(s_, rv);
      const Block b = s_.block(rv);
      if (!loops || b->writes.size() != 1 || b->contraction) return 1;
      const int64_t element = bytes_of(b->writes[0]->buffer->dtype);
      if (!loops->reduction.empty()) {
        // Of each row the last axis is reduced.
        if (iterations(s_, loops->reduction) != length) return 1;
        reduces = true;
        bytes += (GroupReduction{kReducingItems}.shared_elements() + 1) * element;
      } else if (!(rv == blocks.back())) {
        bytes += length * element;
      }
    }
    if (!reduces || bytes > limits.shared_bytes) return 1;
    int64_t items = kLeastRowItems;
    while (items < kReducingItems && items * kRowElements < length) items *= 2;
    return items;
  }

  // What was chosen is not legal for the block; parameters that say it are of another kernel.
  void give_up(int64_t& parameter, int64_t otherwise, const std::string& why) {
    if (!decide_.chooses()) decide_.refuse("a block is" + why);
    parameter = otherwise;
  }

  // An item that ends the run leaves its group waiting.
  bool may_fail() const {
    bool found = false;
    post_order(
        s_.func()->body,
        [&](const Node& n) {
          auto* c = as<tir::CallNode>(&n);
          found |= n.kind() == tir::StmtKind::Check || (c != nullptr && c->name == "index_in");
        },
        family::tir);
    return found;
  }

  // A number of the group, or of its memory, and where it is that of no group: why.
  struct GroupChoice {
    int64_t number;
    std::string why_not = {};
  };

  // Items of a group for each element of a reduction: where neighbouring terms lie side by side, and the driver has
  // groups enough.
  GroupChoice sharing_items(const BlockRV& rv, const BlockLoops& loops, int64_t elements) const {
    const Block b = s_.block(rv);
    const int64_t length = iterations(s_, loops.reduction);
    // Where these are no group's, group_tile decides.
    if (b->contraction) return {items_of_few_rows(b, length, elements)};
    if (loops.parallel.empty()) return {1, "it has one result"};
    if (length >= 0 && length < kLeastShared) {
      return {1, std::to_string(length) + " terms are fewer than " + std::to_string(kLeastShared)};
    }
    if (may_fail()) return {1, kChecks};
    if (elements >= 0 && elements < kLeastGroups) {
      return {1,
              std::to_string(elements) + " groups are fewer than " + std::to_string(kLeastGroups)};
    }
    auto along_last = [&](const tir::Region& r) {
      return !r->mins.empty() && std::ranges::any_of(b->iters, [&](const tir::IterVar& iter) {
        return iter->kind == IterKind::Reduce && tir::uses(r->mins.back(), iter->var.get());
      });
    };
    if (!std::ranges::any_of(b->reads, along_last)) {
      return {1, "neighbouring terms do not lie side by side"};
    }
    return {kReducingItems};
  }

  // Items of a group for each element of a contraction of few rows, whose tiles would be empty.
  int64_t items_of_few_rows(const Block& b, int64_t length, int64_t elements) const {
    int64_t items = 1;
    decide_.pays([&](const Target& t) {
      const auto product = product_extents(b);
      const bool few = !product || std::min(product->rows, product->columns) < kFewRows;
      if (!runs_side_by_side(t.limits.items) || !few || !sums_side_by_side(b) || may_fail() ||
          length < kLeastRow || (elements >= 0 && elements < kLeastGroups)) {
        return true;
      }
      items = kLeastRowItems;
      while (items < kReducingItems && items * kRowElements < length) items *= 2;
      return true;
    });
    return items;
  }

  // The tiles of a contraction that groups compute; nothing where it is too small for groups.
  TileChoice group_tile(const BlockRV& rv, const BlockLoops& loops) {
    const Block b = s_.block(rv);
    no_matrix_.clear();
    if (!b->contraction) return {};  // sharing_items decides
    auto product = product_extents(b);
    const int64_t terms = iterations(s_, loops.reduction);
    if (!product) return {{}, "it is no product of rows and columns"};
    if (terms < 0) return {{}, "its number of terms is symbolic"};
    if (terms < kLeastTerms) {
      return {{}, std::to_string(terms) + " terms are fewer than " + std::to_string(kLeastTerms)};
    }
    if (may_fail()) return {{}, kChecks};
    if (b->writes[0]->buffer->dtype.bits > 32) return {{}, "its sums have 64 bits"};
    // Neighbouring items with tiles that divide the result read neighbouring elements where they lie.
    const bool items_have_tiles = loops.parallel.size() > 1 &&
                                  tile_of(s_.extent(loops.parallel.back())) > 1 &&
                                  tile_of(s_.extent(loops.parallel[loops.parallel.size() - 2])) > 1;
    TileChoice out;
    decide_.pays([&](const Target& t) {
      if (has_matrix_instructions(t)) {
        const MatrixChoice matrix = matrix_instruction_of(b, t);
        if (matrix.instruction) {
          if (t.limits.items.copies_later) find_later_copies(s_, rv, /*by_warps=*/true, *product);
          out = choose_warp_tile(*product, t.limits.items, *matrix.instruction);
          if (out.tile) return true;
        }
        no_matrix_ = matrix.instruction ? out.why_not : matrix.why_not;
      }
      if (!sums_side_by_side(b) && items_have_tiles && !runs_side_by_side(t.limits.items)) {
        out.why_not = "items compute tiles of their own, and the device may be a processor";
      } else {
        if (t.limits.items.copies_later) find_later_copies(s_, rv, /*by_warps=*/false, *product);
        out = choose_tile(*product, t.limits.items);
      }
      return true;
    });
    return out;
  }

  // By groups, with the block that reads it; nothing where that is not legal.
  std::optional<std::string> in_groups(const BlockRV& rv, ItemPlan& plan, const TileChoice& choice,
                                       std::string& why_not) {
    const auto product = product_extents(s_.block(rv));
    if (!product) return std::nullopt;
    GroupTile tile;
    tile.depth = plan.depth;
    const GroupTile chosen = choice.tile.value_or(tile);
    tile.rows =
        decide_.number(plan.rows, {1, kLargestTile}, [&](const Target&) { return chosen.rows; });
    tile.columns = decide_.number(plan.columns, {1, kLargestTile},
                                  [&](const Target&) { return chosen.columns; });
    tile.parts =
        decide_.number(plan.parts, {1, kMostParts}, [&](const Target&) { return chosen.parts; });
    tile.warps =
        decide_.number(plan.warps, {0, kMostWarps}, [&](const Target&) { return chosen.warps; });
    tile.matrix_rows = decide_.number(plan.matrix_rows, {0, kMostMatrix},
                                      [&](const Target&) { return chosen.matrix_rows; });
    tile.matrix_terms = decide_.number(plan.matrix_terms, {0, kMostMatrix},
                                       [&](const Target&) { return chosen.matrix_terms; });
    tile.slots =
        decide_.number(plan.slots, {1, kMostSlots}, [&](const Target&) { return chosen.slots; });
    tile.later = decide_.number(plan.later, {0, 1},
                                [&](const Target&) { return int64_t{chosen.later}; }) == 1;
    if (tile.slots == 1 && tile.later) {
      decide_.refuse("copies that arrive later in one buffer");
      return std::nullopt;
    }
    if (tile.slots > 1 && product->terms <= tile.depth * tile.parts) {
      decide_.refuse(std::to_string(tile.slots) + " buffers for the terms of one step");
      return std::nullopt;
    }
    if (tile.warps > 0) {
      const MatrixOperand operand = matrix_operand_of(s_.block(rv));
      if (!operand.operand) {
        give_up(plan.warps, 0, " not for tensor cores: " + operand.why_not);
        return std::nullopt;
      }
      if (!is_matrix_instruction(*operand.operand, tile.matrix_rows, tile.matrix_terms)) {
        give_up(plan.warps, 0,
                " for no instruction of " + std::to_string(tile.matrix_rows) + " rows and " +
                    std::to_string(tile.matrix_terms) + " terms");
        return std::nullopt;
      }
    }
    if (tile.warps > 0 && !fits_warps(tile)) {
      decide_.refuse("an instruction of " + std::to_string(tile.matrix_rows) + " rows and " +
                     std::to_string(tile.matrix_terms) + " terms for a depth of " +
                     std::to_string(tile.depth));
      return std::nullopt;
    }
    std::optional<BlockRV> reader = reader_of(s_, rv);
    if (tile.parts > 1 || (reader && std::ranges::find(done_, *reader) != done_.end()))
      reader.reset();
    std::string with;
    auto steps = tir::attempt(s_, [&](Schedule& at) -> tir::StepResult<> {
      RELAY_TRY(contract_in_groups(at, rv, reader, tile));
      return {};
    });
    if (steps.is_legal()) {
      with = reader ? " with " + reader->name : "";
    } else if (reader) {
      // The reader has other producers, too.
      steps = tir::attempt(s_, [&](Schedule& at) -> tir::StepResult<> {
        RELAY_TRY(contract_in_groups(at, rv, std::nullopt, tile));
        return {};
      });
      if (steps.is_legal()) reader.reset();
    }
    if (!steps.is_legal()) {
      why_not += " (not in groups: " + steps.why().reason + ")";
      return std::nullopt;
    }
    if (reader) done_.push_back(*reader);
    std::string text = "in groups of ";
    if (tile.warps > 0) {
      text += std::to_string(tile.warps) + " warps" + with + " on tensor cores: m" +
              std::to_string(tile.matrix_rows) + "n" + std::to_string(MatrixInstruction::kColumns) +
              "k" + std::to_string(tile.matrix_terms) + ", tiles of " +
              std::to_string(tile.group_rows()) + "x" + std::to_string(tile.group_columns());
    } else {
      text += std::to_string(tile.row_items) + "x" + std::to_string(tile.column_items) + " items" +
              with + ", tiles of " + std::to_string(tile.rows) + "x" + std::to_string(tile.columns);
    }
    text += ", " + std::to_string(tile.depth) + " terms in " +
            std::to_string(shared_bytes_of(*product, tile)) + " bytes of shared memory";
    if (tile.slots > 1) {
      text += ", copied while the ones before are multiplied, in " + std::to_string(tile.slots) +
              " buffers";
    }
    if (!no_matrix_.empty()) text += " (no tensor cores: " + no_matrix_ + ")";
    if (tile.parts == 1) return text;
    text += ", " + std::to_string(tile.parts) + " parts, then ";
    std::string ignored;
    if (auto where = where_read(rv, ItemPlan{}, ignored)) return text + *where;
    return text + bound(rv);
  }

  // Done by the items of the block that reads it, or of a copy of a tile; nothing where neither is legal.
  std::optional<std::string> where_read(const BlockRV& rv, const ItemPlan& plan,
                                        std::string& why_not) {
    std::optional<BlockRV> reader = reader_of(s_, rv);
    if (!reader && plan.rows * plan.columns == 1 && plan.lanes == 0) return std::nullopt;
    if (reader && std::ranges::find(done_, *reader) != done_.end()) return std::nullopt;
    auto steps = tir::attempt(s_, [&](Schedule& at) -> tir::StepResult<BlockRV> {
      const BlockRV by = reader ? *reader : RELAY_TRY(at.cache_write(rv, tir::Scope::Register));
      RELAY_TRY(reduce_where_read(at, rv, by, plan));
      return by;
    });
    if (!steps.is_legal()) {
      why_not += " (not where it is read: " + steps.why().reason + ")";
      return std::nullopt;
    }
    done_.push_back(std::move(steps).take());
    std::string out = "in the items of " + done_.back().name;
    if (plan.rows * plan.columns > 1) {
      out += ", tiles of " + std::to_string(plan.rows) + "x" + std::to_string(plan.columns);
    }
    return out;
  }

  std::string bound(const BlockRV& rv) {
    auto axes = tir::attempt(s_, [&](Schedule& at) { return bind_elements(at, rv); });
    const size_t count = axes.is_legal() ? std::move(axes).take() : 0;
    return counted(count);
  }

  static std::string counted(size_t axes) {
    if (axes == 0) return "one item";
    return std::to_string(axes) + (axes == 1 ? " axis" : " axes");
  }

  Schedule& s_;
  int64_t &row_items_, &row_exchange_;
  PlanList<ItemPlan> plans_;
  Decider& decide_;
  std::vector<BlockRV> done_;  // scheduled with an earlier block
  std::string text_;
  std::string
      no_matrix_;  // why the contraction is not one of matrix instructions, on a device that has any
};

Outcome schedule_items(Schedule& s, WorkItemsParameters& parameters, Decider& decide) {
  return Report{ItemsSchedule(s, parameters, decide).schedule()};
}

constexpr ScheduleRule kWorkItemsRule =
    schedule_rule<WorkItemsParameters, schedule_items>("work_items", "every kernel");

}  // namespace

std::span<const ScheduleRule* const> work_item_rules() {
  static const ScheduleRule* const all[] = {&kWorkItemsRule};
  return all;
}

}  // namespace relay
