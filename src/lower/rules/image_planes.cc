// Convolutions of each channel by itself, or of all channels to a few results, in layouts where the channels' images lie
// one after the other (NCHW).
#include <algorithm>
#include <optional>

#include "lower/rules/contraction_tile.h"
#include "lower/rules/lanes.h"
#include "node/walk.h"
#include "tir/arith/analyzer.h"
#include "tir/block_contraction.h"
#include "tir/schedule/loop_tree.h"

namespace relay {

using tir::Block;
using tir::BlockRV;
using tir::IterKind;
using tir::IterVar;
using tir::LoopRV;
using tir::PrimExpr;
using tir::Schedule;

namespace {

// Results of one channel: so many rows and vectors of columns in registers.
struct PlaneTile {
  int64_t rows = 1;
  int64_t vectors = 1;
};

struct Planes {
  BlockRV sum;
  Ref<tir::LoadNode> data;
  size_t channel = 0;  // among the spatial iterations; what follows it is a channel's image
  std::vector<IterVar> spatial, windows;
  bool to_few = false;                    // every result reads all channels
  std::optional<IterVar> summed;          // the channels, where they are several
  int64_t row_step = 1, column_step = 1;  // from a result's window to its neighbour's

  int64_t extent(const IterVar& i) const { return *tir::as_int(i->extent); }
  int64_t columns() const { return extent(spatial.back()); }
  bool has_rows() const { return channel + 2 < spatial.size(); }
  int64_t rows() const { return has_rows() ? extent(spatial[spatial.size() - 2]) : 1; }
};

bool uses(const tir::LoadNode& l, const IterVar& i) {
  return std::ranges::any_of(l.indices,
                             [&](const PrimExpr& e) { return tir::uses_var(e, i->var.get()); });
}

// How far an index moves with an iteration; nullopt when it is not a constant.
std::optional<int64_t> step_of(const PrimExpr& e, const IterVar& i) {
  PrimExpr next = PrimExpr::unchecked(substitute(e, {{i->var.get(), i->var + 1}}));
  return tir::Analyzer().constant_difference(next, e);
}

// A sum over windows of products of an image's elements and weights: the image moves with the last
// iteration and with the channel - of the result, or the one that is summed - and the weights with the channel alone.
std::optional<Planes> find_planes(const Schedule& s) {
  Planes out;
  bool found = false;
  for (const BlockRV& rv : s.get_blocks()) {
    if (!s.block(rv)->init || !reduces(s.block(rv))) continue;
    if (found) return std::nullopt;
    found = true;
    out.sum = rv;
  }
  if (!found) return std::nullopt;
  Block b = s.block(out.sum);
  int64_t taps = 1;
  for (const IterVar& i : b->iters) {
    auto extent = tir::as_int(i->extent);
    if (!extent || *extent == 0 || i->kind == IterKind::Opaque) return std::nullopt;
    if (i->kind == IterKind::DataParallel) {
      out.spatial.push_back(i);
    } else if (role_of(*b, i->var) == ContractionRole::Window) {
      out.windows.push_back(i);
      taps *= *extent;
    } else if (*extent != 1) {
      if (out.summed || role_of(*b, i->var) != ContractionRole::Reduced) return std::nullopt;
      out.summed = i;
    }
  }
  size_t first = out.spatial.size();
  while (first > 0 && role_of(*b, out.spatial[first - 1]->var) == ContractionRole::Row) --first;
  if (first == 0 || first == out.spatial.size() || out.windows.empty() || taps == 1) {
    return std::nullopt;
  }
  out.channel = first - 1;
  const tir::DType dtype = b->writes[0]->buffer->dtype;
  if (!sums_products(b) || !dtype.is_floating() || dtype.bits < 32) return std::nullopt;
  int weights = 0;
  post_order(b->body, [&](const Node& n) {
    auto* l = as<tir::LoadNode>(&n);
    if (l == nullptr || l->buffer == b->writes[0]->buffer) return;
    bool moves = std::any_of(out.spatial.begin() + static_cast<std::ptrdiff_t>(first),
                             out.spatial.end(), [&](const IterVar& i) { return uses(*l, i); });
    if (moves && !out.data) {
      out.data = ref(*l);
    } else {
      weights += moves ? 2 : 1;
    }
  });
  if (!out.data || weights != 1 || out.data->indices.size() != out.spatial.size()) {
    return std::nullopt;
  }
  out.to_few = !uses(*out.data, out.spatial[out.channel]);
  if (out.summed && (!out.to_few || !uses(*out.data, *out.summed))) return std::nullopt;
  auto column = step_of(out.data->indices.back(), out.spatial.back());
  if (!column || *column < 1) return std::nullopt;
  out.column_step = *column;
  if (out.has_rows()) {
    size_t row = out.spatial.size() - 2;
    auto step = step_of(out.data->indices[row], out.spatial[row]);
    if (!step || *step < 1) return std::nullopt;
    out.row_step = *step;
  }
  return out;
}

// The tile that takes the fewest cycles: two multiply-adds in each, and one vector of the image, which lies across two lines
// of the cache. Rows that a window shares with those of its neighbours stay in registers, as the results do.
PlaneTile choose_plane_tile(const Planes& p, int64_t lanes, const Target& target) {
  constexpr int64_t kMostRows = 8;
  // Reads are not hidden behind the arithmetic altogether.
  constexpr double kReadShare = 0.25;
  const int64_t columns = (p.columns() + lanes - 1) / lanes;
  int64_t taps = 1, along = p.extent(p.windows.back()), across = 1;
  for (const IterVar& i : p.windows) taps *= p.extent(i);
  if (p.has_rows()) across = p.extent(p.windows[p.windows.size() - 2]);
  PlaneTile best;
  double least = 0;
  for (int64_t vectors = 1; vectors <= columns; ++vectors) {
    for (int64_t rows = 1; rows <= std::min(p.rows(), kMostRows); ++rows) {
      int64_t shared = std::min(p.row_step, across), lines = (rows - 1) * p.row_step + across;
      if ((shared + 1) * rows * vectors + vectors + 1 > target.num_vector_registers) break;
      auto tiles =
          static_cast<double>(((p.rows() + rows - 1) / rows) * ((columns + vectors - 1) / vectors));
      int64_t loads = taps / (along * across) * vectors * std::min(lines, rows * across) * along;
      double reads = static_cast<double>(loads) + static_cast<double>(taps) / 2;
      double cycles = tiles * (std::max(static_cast<double>(rows * vectors * taps) / 2, reads) +
                               kReadShare * reads);
      if (least == 0 || cycles < least * 0.999) {
        least = cycles;
        best = {rows, vectors};
      }
    }
  }
  return best;
}

// The loop of the block that an iteration follows, unchanged; null when it is another function of the loops.
LoopRV loop_of(const Schedule& s, const BlockRV& rv, size_t iter) {
  Block b = s.block(rv);
  for (const LoopRV& l : s.get_loops(rv)) {
    if (as<tir::VarNode>(b->bindings[iter]) == l.var.get()) return l;
  }
  return {};
}

// A loop in pieces: [0, low), [low, high), [high, extent).
struct Piece {
  BlockRV block;
  LoopRV loop;
  bool inside;
};
tir::StepResult<std::vector<Piece>> cut(Schedule& s, const BlockRV& rv, const LoopRV& loop,
                                        int64_t low, int64_t high) {
  std::vector<Piece> out;
  Piece rest{rv, loop, true};
  const int64_t extent = s.extent(loop);
  if (low > 0) {
    tir::Partition p = RELAY_TRY(s.partition(loop, low));
    out.push_back({rv, p.head, false});
    rest = {p.copy_of(rv), p.tail, true};
  }
  if (high < extent) {
    tir::Partition p = RELAY_TRY(s.partition(rest.loop, high - low));
    out.push_back({p.copy_of(rest.block), p.tail, false});
    rest.loop = p.head;
  }
  out.push_back(rest);
  return out;
}

// A channel's image with its border, line by line. Elements that lie `step` apart become neighbours, as a vector of results
// reads them.
tir::StepResult<> copy_plane(Schedule& s, const BlockRV& copy, int64_t step, int64_t lanes) {
  Block b = s.block(copy);
  const size_t last = b->iters.size() - 1;
  Interior columns = interior_of(b, b->iters[last]);
  LoopRV column = loop_of(s, copy, last), row = last > 0 ? loop_of(s, copy, last - 1) : LoopRV{};
  if (!column.var) return {};
  LoopRV phase;
  if (step > 1) {
    std::vector<LoopRV> parts = RELAY_TRY(s.split(column, {-1, step}));
    RELAY_TRY(s.reorder({parts[1], parts[0]}));
    phase = parts[1];
    column = parts[0];
    columns.low = (columns.low + step - 1) / step;
    columns.high = columns.high / step;
  } else {
    columns.high = std::min(columns.high, s.extent(column));
  }
  std::vector<Piece> lines{{copy, row, true}};
  if (row.var && s.extent(row) > 1) {
    Interior rows = interior_of(b, b->iters[last - 1]);
    rows.high = std::min(rows.high, s.extent(row));
    if (rows.low < rows.high) lines = RELAY_TRY(cut(s, copy, row, rows.low, rows.high));
  }
  for (const Piece& line : lines) {
    std::vector<LoopRV> loops = s.get_loops(line.block);
    LoopRV x = loops.back(), phases = loops.size() > 1 ? loops[loops.size() - 2] : LoopRV{};
    std::vector<Piece> pieces{{line.block, x, true}};
    if (line.inside && columns.low < columns.high) {
      pieces = RELAY_TRY(cut(s, line.block, x, columns.low, columns.high));
    }
    for (const Piece& piece : pieces) {
      if (s.extent(piece.loop) < lanes / 2) {
        RELAY_TRY(s.unroll(piece.loop));
      } else {
        RELAY_TRY(few_copies(s, piece.block, RELAY_TRY(vectorize_elements(s, piece.loop, lanes))));
      }
    }
    if (phase.var) RELAY_TRY(s.unroll(phases));
  }
  return {};
}

// What is done for a tile: zeros, the sum, or what follows it.
struct TilePart {
  BlockRV block;
  LoopRV row, column;
};

// The loop below `at` of the block's last spatial iteration but `back`; null where it has one value.
LoopRV inside_of(const Schedule& s, const BlockRV& rv, const LoopRV& at, size_t back) {
  Block b = s.block(rv);
  std::vector<size_t> spatial;
  for (size_t i = 0; i < b->iters.size(); ++i) {
    if (b->iters[i]->kind == IterKind::DataParallel) spatial.push_back(i);
  }
  const PrimExpr& binding = b->bindings[spatial[spatial.size() - 1 - back]];
  for (const LoopRV& l : loops_below(s, rv, at)) {
    if (tir::uses_var(binding, l.var.get())) return l;
  }
  return {};
}

// A loop over tiles along an axis, and those inside the tiles.
struct Tiles {
  LoopRV loop;
  LoopRV TilePart::*inside;
  int64_t extent, size;
};

// Rows of a tile are copies, and so are its vectors; the end of a line that fills no vector is a vector of its own.
tir::StepResult<> finish_tile(Schedule& s, const TilePart& part, int64_t lanes) {
  if (part.row.var) RELAY_TRY(s.unroll(part.row));
  const int64_t extent = s.extent(part.column), rest = extent % lanes;
  if (extent > lanes && rest != 0)
    RELAY_TRY(s.vectorize(RELAY_TRY(s.partition(part.column, extent - rest)).tail));
  if (extent < lanes) {
    RELAY_TRY(s.vectorize(part.column));
  } else {
    RELAY_TRY(vectors(s, part.column, lanes));
  }
  return {};
}

// Less than a whole tile at the end of an axis is a loop of its own: no tile tests anything.
tir::StepResult<> finish_tiles(Schedule& s, std::vector<Tiles> axes,
                               const std::vector<TilePart>& parts, int64_t lanes) {
  std::erase_if(axes, [](const Tiles& a) { return !a.loop.var || a.extent % a.size == 0; });
  if (axes.empty()) {
    for (const TilePart& part : parts) RELAY_TRY(finish_tile(s, part, lanes));
    return {};
  }
  const Tiles axis = axes[0];
  axes.erase(axes.begin());
  tir::Partition p = RELAY_TRY(s.partition(axis.loop, axis.extent / axis.size));
  std::vector<TilePart> tail = parts;
  for (TilePart& part : tail) {
    part.block = p.copy_of(part.block);
    if (part.row.var) part.row = p.copy_of(part.row);
    part.column = p.copy_of(part.column);
    if ((part.*axis.inside).var) RELAY_TRY(s.partition(part.*axis.inside, axis.extent % axis.size));
  }
  std::vector<Tiles> tail_axes = axes;
  for (Tiles& a : tail_axes) a.loop = p.copy_of(a.loop);
  RELAY_TRY(finish_tiles(s, axes, parts, lanes));
  RELAY_TRY(finish_tiles(s, tail_axes, tail, lanes));
  return {};
}

struct ImagePlanesParameters : AttrsOf<ImagePlanesParameters> {
  int64_t lanes = 1;
  int64_t rows = 1;
  int64_t vectors = 1;
  bool threads = false;

  static AttrsList describe() {
    return {"relay.schedule.ImagePlanes",
            {attribute("lanes", &Self::lanes, "Columns in a vector."),
             attribute("rows", &Self::rows, "Rows of a register tile."),
             attribute("vectors", &Self::vectors, "Vectors of columns of a register tile."),
             attribute("threads", &Self::threads, "Whether threads share the channels.")}};
  }
};

// The image of one channel after the other: its lines with their border are copied into the nearest cache, neighbours in a
// vector of results beside each other, and read from there without a test. Lanes over the columns; the results of some rows
// stay in registers over the whole window, one column of which after the other is multiplied with all of them. Where all
// channels are summed, their images are copied first, and the registers hold the sums over all of them.
Outcome schedule_image_planes(Schedule& s, ImagePlanesParameters& parameters, Decider& decide) {
  std::optional<Planes> p = find_planes(s);
  if (!p) return Declined{};
  const int64_t lanes = decide.number(parameters.lanes, kLanes, [&](const Target& target) {
    return lanes_of(s.block(p->sum), target);
  });
  if (p->columns() < lanes / 2) return Declined{};
  // Of more results, lanes over the results fill more of a vector than they waste.
  if (p->to_few && 2 * p->extent(p->spatial[p->channel]) > lanes) return Declined{};
  // What is copied: the image with a border, or where neighbouring results read no neighbours.
  BlockRV copy;
  for (const BlockRV& rv : s.get_blocks()) {
    if (s.block(rv)->writes[0]->buffer == p->data->buffer) copy = rv;
  }
  std::vector<BlockRV> producers = s.producers(p->sum);
  if (producers.size() > 1 || (producers.size() == 1 && !(producers[0] == copy))) return Declined{};
  double bytes = p->data->dtype.bytes();
  for (size_t d = p->channel + 1; d < p->data->indices.size(); ++d) {
    bytes *= static_cast<double>(tir::as_int(p->data->buffer->shape[d]).value_or(0));
  }
  const bool fits = p->to_few || decide.pays([&](const Target& target) {
    return bytes <= static_cast<double>(target.l2_bytes) / 2;
  });
  if (!fits) return Declined{"the image of a channel does not fit into half of L2"};
  if (!copy.name.empty() && (reduces(s.block(copy)) || s.consumers(copy).size() != 1))
    return Declined{};
  if (copy.name.empty() && p->column_step > 1) {
    copy = RELAY_TRY(s.cache_read(p->sum, p->data->buffer->name, tir::Scope::Global));
  }
  const bool by_channel = !copy.name.empty() && !p->to_few;
  if (by_channel) RELAY_TRY(s.set_scope(copy, tir::Scope::Local));

  std::vector<BlockRV> consumers = s.consumers(p->sum);
  if (consumers.size() > 1) return Declined{};
  BlockRV out;
  if (consumers.empty()) {
    out = RELAY_TRY(s.cache_write(p->sum, tir::Scope::Register));
  } else {
    out = consumers[0];
    if (reduces(s.block(out)) || !s.consumers(out).empty()) return Declined{};
    RELAY_TRY(s.set_scope(p->sum, tir::Scope::Register));
  }
  if (s.get_blocks().size() != (copy.name.empty() ? 2U : 3U)) return Declined{};
  std::vector<LoopRV> loops = s.get_loops(out);
  if (loops.size() != p->spatial.size()) return Declined{};
  for (size_t i = 0; i < loops.size(); ++i) {
    if (s.extent(loops[i]) != p->extent(p->spatial[i])) return Declined{};
  }
  PlaneTile tile;
  tile.rows = decide.number(parameters.rows, {1, p->rows()}, [&](const Target& target) {
    return choose_plane_tile(*p, lanes, target).rows;
  });
  tile.vectors = decide.number(parameters.vectors, kVectorsAtOnce, [&](const Target& target) {
    return choose_plane_tile(*p, lanes, target).vectors;
  });
  const LoopRV channel = loops[p->channel];
  std::vector<LoopRV> order(loops.begin(), loops.end() - (p->has_rows() ? 2 : 1)), inside;
  LoopRV rows;
  if (p->has_rows()) {
    std::vector<LoopRV> parts = RELAY_TRY(s.split(loops[loops.size() - 2], {-1, tile.rows}));
    rows = parts[0];
    order.push_back(parts[0]);
    inside.push_back(parts[1]);
  }
  const int64_t width = std::min(p->columns(), tile.vectors * lanes);
  std::vector<LoopRV> parts = RELAY_TRY(s.split(loops.back(), {-1, width}));
  LoopRV columns = parts[0];
  order.push_back(columns);
  inside.push_back(parts[1]);
  order.insert(order.end(), inside.begin(), inside.end());
  RELAY_TRY(s.reorder(order));
  RELAY_TRY(s.compute_at(p->sum, columns));
  if (by_channel) RELAY_TRY(s.compute_at(copy, channel));
  if (p->column_step > 1) {
    std::vector<tir::LayoutAxis> layout;
    const auto last = static_cast<int64_t>(p->spatial.size()) - 1;
    for (int64_t d = 0; d < last; ++d) layout.push_back({d});
    layout.push_back({last, 1, p->column_step});
    layout.push_back({last, p->column_step, 0});
    RELAY_TRY(s.transform_layout(copy, layout));
  }

  // Channels that are summed are the outer loop, then the window's columns, its rows, and the tile. Vectors are whole ones of
  // accumulators.
  std::vector<LoopRV> nest, tile_loops, window;
  LoopRV channels;
  for (const LoopRV& l : loops_below(s, p->sum, columns)) {
    Block b = s.block(p->sum);
    bool sums = false;
    for (size_t i = 0; i < b->iters.size(); ++i) {
      if (!tir::uses_var(b->bindings[i], l.var.get())) continue;
      sums |= b->iters[i]->kind == IterKind::Reduce;
      if (p->summed && b->iters[i]->var == (*p->summed)->var) channels = l;
    }
    if (!(l == channels)) (sums ? window : tile_loops).push_back(l);
  }
  // Of one product each, the channels of a group.
  std::erase_if(window, [&](const LoopRV& l) { return s.extent(l) == 1; });
  if (window.empty() || tile_loops.empty()) return Declined{};
  if (channels.var) nest.push_back(channels);
  const size_t first = nest.size();
  nest.push_back(window.back());
  nest.insert(nest.end(), window.begin(), window.end() - 1);
  nest.insert(nest.end(), tile_loops.begin(), tile_loops.end());
  RELAY_TRY(s.reorder(nest));
  BlockRV zeros = RELAY_TRY(s.decompose_reduction(p->sum, nest[0]));
  for (size_t i = first + 1; i < nest.size() - tile_loops.size(); ++i) {
    RELAY_TRY(s.unroll(nest[i]));
  }
  // Which of the copied lines is read follows from the column of the window.
  if (p->column_step > 1 || s.extent(nest[first]) <= kSmallLoop) RELAY_TRY(s.unroll(nest[first]));
  std::vector<TilePart> tile_parts;
  for (const BlockRV& rv : {zeros, p->sum, out}) {
    tile_parts.push_back({rv, p->has_rows() ? inside_of(s, rv, columns, 1) : LoopRV{},
                          inside_of(s, rv, columns, 0)});
    if (!tile_parts.back().column.var) return Declined{};
  }
  if (!copy.name.empty()) RELAY_TRY(copy_plane(s, copy, p->column_step, lanes));

  double work = 1;
  for (const IterVar& i : p->spatial) work *= static_cast<double>(p->extent(i));
  for (const IterVar& i : p->windows) work *= static_cast<double>(p->extent(i));
  if (p->summed) work *= static_cast<double>(p->extent(*p->summed));
  std::string text = "planes: " + std::to_string(tile.rows) + "x" + std::to_string(width) +
                     " register tile in each channel" + (p->to_few ? " of the results" : "");
  const bool threads = decide.value(parameters.threads, [&](const Target& target) {
    return pays_threads(target, work, 4 * kMinParallelWork);
  });
  if (threads) {
    // The loops down to that over the channels.
    auto share = [&](std::vector<LoopRV> outer) -> tir::StepResult<> {
      outer.resize(p->channel + 1);
      return s.parallel(outer.size() > 1 ? RELAY_TRY(s.fuse(outer)) : outer[0]);
    };
    if (p->to_few) {
      if (!copy.name.empty()) RELAY_TRY(share(s.get_loops(copy)));
      RELAY_TRY(s.parallel(p->has_rows() ? rows : columns));
      text += ", threads over tiles";
    } else {
      RELAY_TRY(share(loops));
      text += ", threads over channels";
    }
  }
  RELAY_TRY(finish_tiles(s,
                         {{rows, &TilePart::row, p->rows(), std::min(p->rows(), tile.rows)},
                          {columns, &TilePart::column, p->columns(), width}},
                         tile_parts, lanes));
  return Report{text};
}

}  // namespace

const ScheduleRule kImagePlanesRule = schedule_rule<ImagePlanesParameters, schedule_image_planes>(
    "image_planes",
    "convolutions of constant sizes with columns last, of each channel by itself or to few "
    "channels");

}  // namespace relay
