#include "lower/rules/tiled_sum.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <span>

#include "node/walk.h"
#include "tir/arith/analyzer.h"
#include "tir/schedule/loop_tree.h"

namespace relay {

using tir::Block;
using tir::BlockRV;
using tir::IterKind;
using tir::LoopRV;
using tir::PrimExpr;
using tir::Schedule;

namespace {

bool uses(const tir::PrimExpr& e, const tir::Var& v) { return tir::uses_var(e, v.get()); }

// What the rule has to know of a sum.
struct Sum {
  BlockRV block;
  // Spatial iterations before those in `spatial`: fixed by loops that stay around the tiles.
  size_t fixed = 0;
  // Tiles divide the rows, or the columns, which are a part of all: none may reach over the end.
  bool whole_rows = false, whole_columns = false;
  std::vector<tir::IterVar> spatial;
  std::vector<int64_t> extents;  // of the spatial iterations
  int64_t reduction = 1;         // products in one sum
  bool depthwise = false;        // every operand has the columns: there is nothing to reuse
  // The operand with the columns (the weights) is the same for all of the second last but one axis,
  // so that a tile may span several of its values.
  bool rows_span_two_axes = false;
  int64_t panel = 0;       // columns that packed weights hold together, 0: not packed
  int64_t group = 0;       // columns that read the same elements, 0: all
  int64_t row_stride = 0;  // bytes between neighbouring rows of the other operand

  int64_t columns() const { return extents.back(); }
  int64_t rows() const { return extents[extents.size() - 2]; }
};

// Columns at the last index of `l`, or in the last two as panel and place in the panel. Sets the
// panel; false when neighbouring columns are no neighbours in memory.
bool columns_are_contiguous(const tir::LoadNode& l, const tir::Var& column, int64_t& panel) {
  for (size_t d = 0; d + 1 < l.indices.size(); ++d) {
    if (!uses(l.indices[d], column)) continue;
    auto* quotient = as<tir::BinaryNode>(l.indices[d]);
    if (quotient == nullptr || quotient->op != tir::BinaryOp::FloorDiv) return false;
    auto width = tir::as_int(quotient->b);
    if (!width || (panel != 0 && panel != *width)) return false;
    panel = *width;
  }
  return true;
}

// The columns in one group when the operand moves with its columns by their group only, as the data
// of a grouped convolution do; 0 when it moves otherwise.
int64_t columns_in_group(const tir::LoadNode& l, const tir::Var& column) {
  int64_t width = 0;
  bool only = true;
  // Below a quotient nothing is looked at.
  post_order_if(
      ref(l),
      [&](const Node& n) {
        auto* quotient = as<tir::BinaryNode>(&n);
        if (quotient == nullptr || quotient->op != tir::BinaryOp::FloorDiv ||
            quotient->a.get() != column.get()) {
          return true;
        }
        auto by = tir::as_int(quotient->b);
        only = only && by && (width == 0 || width == *by);
        if (by) width = *by;
        return false;
      },
      [&](const Node& n) { only = only && &n != column.get(); });
  return only ? width : 0;
}

// A sum whose shape is constant and where lanes over the last axis read neighbouring elements or
// one element.
std::optional<Sum> describe_sum(const Schedule& s, const BlockRV& rv) {
  Sum out;
  out.block = rv;
  Block b = s.block(rv);
  for (const tir::IterVar& i : b->iters) {
    auto extent = tir::as_int(i->extent);
    if (!extent || *extent == 0 || i->kind == IterKind::Opaque) return std::nullopt;
    if (i->kind == IterKind::Reduce) {
      out.reduction *= *extent;
    } else {
      out.spatial.push_back(i);
      out.extents.push_back(*extent);
    }
  }
  if (out.spatial.size() < 2 || b->writes.size() != 1 ||
      !b->writes[0]->buffer->dtype.is_float(32)) {
    return std::nullopt;
  }
  const tir::Var& column = out.spatial.back()->var;
  const tir::Var& row = out.spatial[out.spatial.size() - 2]->var;
  bool legal = true;
  int operands = 0, with_columns = 0;
  if (out.spatial.size() > 2) out.rows_span_two_axes = true;
  post_order(b->body, [&](const Node& n) {
    auto* l = as<tir::LoadNode>(&n);
    if (l == nullptr || l->buffer == b->writes[0]->buffer) return;
    ++operands;
    bool has_columns = false;
    for (const tir::PrimExpr& e : l->indices) has_columns |= uses(e, column);
    if (int64_t width = has_columns ? columns_in_group(*l, column) : 0; width != 0) {
      out.group = out.group == 0 ? width : std::gcd(out.group, width);
      has_columns = false;
    } else {
      legal = legal && columns_are_contiguous(*l, column, out.panel);
    }
    with_columns += has_columns;
    if (has_columns && out.rows_span_two_axes) {
      for (const tir::PrimExpr& e : l->indices) {
        bool here = uses(e, out.spatial[out.spatial.size() - 3]->var);
        if (here && !uses(l->indices[0], row)) out.rows_span_two_axes = false;
      }
    }
    if (has_columns) return;
    int64_t stride = l->buffer->dtype.bytes();
    for (size_t d = l->indices.size(); d-- > 0;) {
      if (uses(l->indices[d], row)) {
        PrimExpr next = PrimExpr::unchecked(substitute(l->indices[d], {{row.get(), row + 1}}));
        auto step = tir::Analyzer().constant_difference(next, l->indices[d]);
        out.row_stride = stride * (step ? *step : 1);
      }
      auto extent = tir::as_int(l->buffer->memory_shape()[d]);
      stride *= extent ? *extent : 1;
    }
  });
  if (!legal) return std::nullopt;
  out.depthwise = with_columns == operands;
  return out;
}

// The kernel's only sum.
std::optional<Sum> find_sum(const Schedule& s) {
  std::optional<BlockRV> found;
  for (const BlockRV& rv : s.get_blocks()) {
    if (!s.block(rv)->init || !reduces(s.block(rv))) continue;
    if (found) return std::nullopt;
    found = rv;
  }
  return found ? describe_sum(s, *found) : std::nullopt;
}

// A register tile: `height` values of the second last spatial axis for each of `outer` values of
// the one before, by `columns`.
struct Tile {
  int64_t outer = 1;
  int64_t height = 1;
  int64_t columns = 1;
};

// Cycles for one step of the reduction over tiles of rows x columns: multiply-adds, or their
// latency when there are too few to hide it, and loads.
double step_cost(int64_t rows, int64_t columns, int64_t lanes) {
  if (rows == 0 || columns == 0) return 0;
  constexpr double kLatency = 8;
  double vectors = static_cast<double>((columns + lanes - 1) / lanes);
  double r = static_cast<double>(rows);
  return std::max(r * vectors, kLatency) + 0.5 * vectors + 0.15 * r + 1;
}

// The tile with the least work, by performance.md's rule: as many results as there are registers
// beside one vector for each column and one for a row's element.
Tile choose_tile(const Sum& sum, const Target& target) {
  int64_t lanes = target.vector_bits / 32;
  int64_t rows = sum.rows(), columns = sum.columns();
  int64_t before = sum.extents.size() > 2 ? sum.extents[sum.extents.size() - 3] : 1;
  Tile best;
  double least = 0;
  auto step = [&](int64_t r, int64_t c) {
    if (!sum.depthwise) return step_cost(r, c, lanes);
    // A vector of weights for each step, and of elements for each row and the rows beside it.
    return r == 0 ? 0 : static_cast<double>((c + lanes - 1) / lanes * (4 * r + 5));
  };
  auto consider = [&](const Tile& t) {
    if (sum.whole_rows && rows % t.height != 0) return;
    int64_t height = t.outer * t.height;
    double all = 0;
    auto over_columns = [&](int64_t r) {
      return static_cast<double>(columns / t.columns) * step(r, t.columns) +
             step(r, columns % t.columns);
    };
    all = static_cast<double>((before / t.outer) * (rows / t.height)) * over_columns(height);
    all += static_cast<double>(before / t.outer) * over_columns(t.outer * (rows % t.height));
    all += static_cast<double>(rows / t.height) * over_columns(before % t.outer * t.height);
    // Rows a multiple of 4 KB apart lie in one set of L1: more than its eight lines
    // drive each other out at every step.
    if (sum.row_stride % 4096 == 0 && height > 8 && !sum.depthwise) all *= 1.3;
    if (least == 0 || all < least * 0.999) {
      least = all;
      best = t;
    }
  };
  for (int64_t vectors = 1; vectors <= 8; ++vectors) {
    int64_t width = std::min(columns, vectors * lanes);
    if (vectors > 1 && width <= (vectors - 1) * lanes) break;
    if (sum.group != 0 && sum.group % width != 0) continue;
    if (sum.whole_columns && columns % width != 0) continue;
    if (sum.panel != 0 && width != columns && width % sum.panel != 0 && sum.panel % width != 0) {
      continue;
    }
    int64_t most = (target.num_vector_registers - vectors - 1) / vectors;
    // What neighbouring results share stays in registers too: as many elements as results.
    if (sum.depthwise) most = std::max<int64_t>(1, most / 2);
    for (int64_t h = std::min(most, rows); h >= 1; --h) consider({1, h, width});
    if (sum.rows_span_two_axes) {
      for (int64_t o = 2; o <= std::min(before, most / std::max<int64_t>(rows, 1)); ++o) {
        consider({o, rows, width});
      }
    }
  }
  return best;
}

// Where a select that fills the border of an operand decides, for one spatial iteration: values in
// [low, high) read no border, whatever the reduction does.
struct Interior {
  int64_t low = 0;
  int64_t high = 0;
  std::vector<tir::Var> sums;  // the reduction's iterations in the same conditions
};

// For conditions that are linear in the iterations; they hold at all values if at the extreme ones.
Interior interior_of(const Block& b, const tir::IterVar& axis) {
  std::vector<tir::PrimExpr> conditions;
  post_order(b->body, [&](const Node& n) {
    auto* select = as<tir::SelectNode>(&n);
    if (select == nullptr) return;
    for (const tir::PrimExpr& e : tir::conjuncts(select->cond)) {
      if (uses(e, axis->var)) conditions.push_back(e);
    }
  });
  Interior out;
  out.high = *tir::as_int(axis->extent);
  std::vector<tir::IterVar> sums;
  for (const tir::IterVar& i : b->iters) {
    bool used = std::any_of(conditions.begin(), conditions.end(),
                            [&](const tir::PrimExpr& e) { return uses(e, i->var); });
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

// An axis of the tile in one nest: the loop over tiles and the loop inside a tile (none for tiles
// of one value).
struct Axis {
  LoopRV outer;
  LoopRV inner;
  int64_t extent;
  int64_t tile;
  // Tiles before which the loop is cut, in order: code on both sides differs.
  std::vector<int64_t> cuts;
  // Tiles in [low, high) read no border; the others decide for each element.
  int64_t low = 0;
  int64_t high = 0;
  std::vector<tir::Var> sums;
  int64_t begin = 0;  // the first tile of this nest

  int64_t tiles() const { return (extent + tile - 1) / tile; }
};

Axis make_axis(const LoopRV& outer, const LoopRV& inner, int64_t extent, int64_t tile,
               const Interior& interior) {
  Axis out{outer, inner, extent, tile, {}, 0, 0, interior.sums, 0};
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

// A block of a tile, with its loops over the tile's axes in order (rows, then columns); an axis of
// one value has none.
struct Part {
  BlockRV block;
  std::vector<LoopRV> loops;
  std::vector<std::pair<tir::Var, LoopRV>> sums;  // loops over the reduction
};

class Tiling {
 public:
  Tiling(Schedule& s, const Target& target, bool reuse_along_sums)
      : s_(s), lanes_(target.vector_bits / 32), reuse_along_sums_(reuse_along_sums) {}

  // Cuts the loops over tiles and finishes each kind of tile. `nesting` has the axes in the order
  // of their loops, outermost first: what is inside a loop is copied with it.
  void peel(std::vector<Axis> axes, std::vector<Part> parts, std::span<const size_t> nesting) {
    while (!nesting.empty() && axes[nesting[0]].cuts.empty()) nesting = nesting.subspan(1);
    if (nesting.empty()) {
      for (const Part& p : parts) finish(axes, p);
      return;
    }
    size_t a = nesting[0];
    tir::Partition cut = s_.partition(axes[a].outer, axes[a].cuts[0] - axes[a].begin);
    auto copied = [&](const LoopRV& l) {
      for (const auto& [head, tail] : cut.loops) {
        if (head == l) return tail;
      }
      return l;
    };
    std::vector<Axis> tail_axes = axes;
    for (Axis& x : tail_axes) x.outer = copied(x.outer);
    tail_axes[a].outer = cut.tail;
    tail_axes[a].begin = axes[a].cuts[0];
    tail_axes[a].cuts.erase(tail_axes[a].cuts.begin());
    axes[a].cuts.clear();
    std::vector<Part> tail_parts = parts;
    for (Part& p : tail_parts) {
      p.block = cut.copy_of(p.block);
      for (LoopRV& l : p.loops) {
        if (l.var) l = copied(l);
      }
      for (auto& [var, loop] : p.sums) loop = copied(loop);
    }
    int64_t rest = axes[a].extent % axes[a].tile;
    if (rest != 0 && tail_axes[a].begin == axes[a].extent / axes[a].tile) {
      for (const Part& p : tail_parts) s_.partition(p.loops[a], rest);
    }
    peel(std::move(axes), std::move(parts), nesting.subspan(1));
    peel(std::move(tail_axes), std::move(tail_parts), nesting);
  }

 private:
  // Rows are copies, columns are lanes: whole vectors, then one shorter vector.
  void finish(const std::vector<Axis>& axes, const Part& p) {
    for (const auto& [var, loop] : p.sums) {
      bool border = std::any_of(axes.begin(), axes.end(), [&](const Axis& x) {
        bool inside = x.begin >= x.low && x.begin < x.high;
        return !inside && std::find(x.sums.begin(), x.sums.end(), var) != x.sums.end();
      });
      bool last = &var == &p.sums.back().first;
      if (border || (last && reuse_along_sums_)) s_.unroll(loop);
    }
    for (size_t i = 0; i + 1 < p.loops.size(); ++i) {
      if (p.loops[i].var) s_.unroll(p.loops[i]);
    }
    LoopRV column = p.loops.back();
    int64_t extent = s_.extent(column), rest = extent % lanes_;
    if (extent > lanes_ && rest != 0) {
      tir::Partition cut = s_.partition(column, extent - rest);
      s_.vectorize(cut.tail);
      extent -= rest;
    }
    if (extent > lanes_) {
      std::vector<LoopRV> parts = s_.split(column, {-1, lanes_});
      s_.unroll(parts[0]);
      column = parts[1];
    }
    s_.vectorize(column);
  }

  Schedule& s_;
  int64_t lanes_;
  bool reuse_along_sums_;  // neighbouring results read the same elements at other places of the sum
};

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

// Kinds of tiles that a kernel may have: the code of each is its own.
constexpr int64_t kMaxKinds = 30;

// Tiles over the loops of `out`, which stores the sum, but for its `around` outermost ones.
std::string tile_loops(Schedule& s, const Sum& sum, const BlockRV& out, size_t around,
                       const Target& target) {
  std::vector<LoopRV> loops = s.get_loops(out);
  if (loops.size() != around + sum.spatial.size()) return "";
  loops.erase(loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(around));

  // The tile's axes: columns, rows, and the axis before the rows when one line of rows is short or
  // its ends read a border.
  Tile tile = choose_tile(sum, target);
  Block b = s.block(sum.block);
  std::vector<int64_t> sizes{tile.height, tile.columns};
  if (sum.spatial.size() > 2) sizes.insert(sizes.begin(), tile.outer);
  size_t first = loops.size() - sizes.size();
  std::vector<Axis> axes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const tir::IterVar& iter = sum.spatial[first + i];
    std::vector<LoopRV> parts{loops[first + i], LoopRV{}};
    if (sizes[i] > 1 || i > 0) parts = s.split(loops[first + i], {-1, sizes[i]});
    axes.push_back(
        make_axis(parts[0], parts[1], sum.extents[first + i], sizes[i], interior_of(b, iter)));
  }
  int64_t kinds = 1;
  for (const Axis& a : axes) kinds *= static_cast<int64_t>(a.cuts.size()) + 1;
  if (kinds > kMaxKinds) return "";
  // One panel of weights serves all rows before the next is read, unless all weights stay in half
  // of L2: then a row is read once. Few rows leave the threads the columns.
  int64_t weights = sum.depthwise ? 0 : sum.reduction * sum.columns() * 4;
  bool rows_outside = weights <= target.l2_bytes / 2;
  bool few_rows = axes.size() > 2 && axes[0].extent < 14;
  std::vector<LoopRV> order(loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(first));
  LoopRV columns = axes.back().outer;
  if (!rows_outside || few_rows) order.insert(order.begin(), columns);
  if (axes.size() > 2) order.push_back(axes[0].outer);
  if (rows_outside && !few_rows && !sum.depthwise && axes.size() > 2) order.push_back(columns);
  order.push_back(axes[axes.size() - 2].outer);
  if (std::find(order.begin(), order.end(), columns) == order.end()) order.push_back(columns);
  size_t outside = order.size();
  std::vector<size_t> nesting;
  for (const LoopRV& l : order) {
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i].outer == l) nesting.push_back(i);
    }
  }
  for (const Axis& a : axes) {
    if (a.inner.var) order.push_back(a.inner);
  }
  s.reorder(order);
  s.compute_at(sum.block, order[outside - 1]);

  // The sum's own loops: reduction outside, the tile inside, and zeros before them.
  b = s.block(sum.block);
  std::vector<LoopRV> all = s.get_loops(sum.block);
  std::vector<LoopRV> reduction;
  Part update{sum.block, std::vector<LoopRV>(axes.size()), {}};
  size_t spatial = 0;
  for (size_t i = 0; i < b->iters.size(); ++i) {
    bool sums = b->iters[i]->kind == IterKind::Reduce;
    for (size_t l = around + outside; l < all.size(); ++l) {
      if (!uses(b->bindings[i], all[l].var)) continue;
      if (sums) {
        reduction.push_back(all[l]);
        update.sums.emplace_back(b->iters[i]->var, all[l]);
      } else if (spatial >= sum.fixed + first) {
        update.loops[spatial - sum.fixed - first] = all[l];
      }
    }
    if (!sums) ++spatial;
  }
  if (reduction.empty()) return "";
  std::vector<LoopRV> nest = reduction;
  for (const LoopRV& l : update.loops) {
    if (l.var) nest.push_back(l);
  }
  s.reorder(nest);
  Part zeros{s.decompose_reduction(sum.block, reduction[0]), std::vector<LoopRV>(axes.size()), {}};
  std::vector<LoopRV> zero_loops = s.get_loops(zeros.block);
  for (size_t i = axes.size(), at = zero_loops.size(); i-- > 0;) {
    if (update.loops[i].var) zeros.loops[i] = zero_loops[--at];
  }
  Part epilogue{out, {}, {}};
  for (const Axis& a : axes) epilogue.loops.push_back(a.inner);

  double work = static_cast<double>(sum.reduction);
  for (int64_t e : sum.extents) work *= static_cast<double>(e);
  bool bordered = std::any_of(axes.begin(), axes.end(),
                              [](const Axis& a) { return a.low > 0 || a.high < a.tiles(); });
  std::string text = "sum: " + std::to_string(tile.outer * tile.height) + "x" +
                     std::to_string(tile.columns) + " register tile, " +
                     (order[0] == axes.back().outer ? "columns" : "rows") + " outside";
  if (bordered) text += ", border in tiles of its own";
  if (around == 0 && target.num_cores > 1 && work >= 4 * kMinParallelWork) {
    // Loops that are not cut share the work in fine portions; pieces of one that is are shared
    // each.
    std::vector<LoopRV> shared;
    int64_t portions = 1;
    for (size_t i = 0; i < outside; ++i) {
      bool cut = std::any_of(axes.begin(), axes.end(),
                             [&](const Axis& a) { return a.outer == order[i] && !a.cuts.empty(); });
      if (cut && portions > 1) break;
      if (cut) shared.clear();
      shared.push_back(order[i]);
      portions *= s.extent(order[i]);
      if (cut) break;
    }
    s.parallel(shared.size() > 1 ? s.fuse(shared) : shared[0]);
    text += ", threads over tiles";
  }
  Tiling(s, target, sum.depthwise).peel(axes, {zeros, update, epilogue}, nesting);
  return text;
}

std::string tile_kernel(Schedule& s, const Sum& sum, const Target& target) {
  std::vector<BlockRV> consumers = s.consumers(sum.block);
  if (consumers.size() > 1) return "";
  BlockRV out;
  if (consumers.empty()) {
    out = s.cache_write(sum.block, tir::Scope::Register);
  } else {
    out = consumers[0];
    if (reduces(s.block(out)) || !s.consumers(out).empty()) return "";
    s.set_scope(sum.block, tir::Scope::Register);
  }
  std::string text = tile_loops(s, sum, out, 0, target);
  if (text.empty()) return "";
  // What else there is (a padded input) gets plain loops.
  for (const BlockRV& rv : s.get_blocks()) {
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
std::string schedule_tiled_sum(Schedule& s, const Target& target) {
  std::optional<Sum> sum = find_sum(s);
  if (!sum || sum->columns() == 1) return "";
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

const ScheduleRule kTiledSumRule{
    "tiled_sum", "one float32 sum of products with constant sizes and neighbouring columns",
    schedule_tiled_sum};

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
  return tile_loops(s, *sum, out, around, target);
}

}  // namespace relay
