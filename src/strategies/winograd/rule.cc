// Convolutions by minimal filtering (the operator nn.contrib_conv2d_winograd_*): tiles of results
// in groups, so that the transformed data of a group stays in L2 while all
// transformed weights pass by; or, where the weights are many and the tiles few, all tiles at
// once, phase after phase. Groups of images of open size are whole lines of tiles.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "lower/rules/contraction_loops.h"
#include "lower/rules/lanes.h"
#include "strategies/winograd/tiles.h"
#include "tir/schedule/loop_tree.h"

namespace relay {

using tir::Block;
using tir::BlockRV;
using tir::LoopRV;
using tir::Schedule;
using winograd::kKernel;
using winograd::kPoints;
using winograd::kTile;

namespace {

// The blocks of the operator by their part, and the block that writes the kernel's output.
struct Parts {
  BlockRV pad, data_rows, data, product, result_rows, result, out;
};

std::optional<Parts> find_parts(const Schedule& s) {
  std::map<std::string, BlockRV> found;
  BlockRV out;
  for (const BlockRV& rv : s.get_blocks()) {
    Block b = s.block(rv);
    if (b->role.algorithm == "winograd" && !found.emplace(b->role.part, rv).second)
      return std::nullopt;
    if (b->writes.size() == 1 && s.is_output(b->writes[0]->buffer)) {
      if (!out.name.empty()) return std::nullopt;
      out = rv;
    }
  }
  if (found.size() != 6 || out.name.empty()) return std::nullopt;
  return Parts{found.at("pad"),
               found.at("data_rows"),
               found.at("data"),
               found.at("product"),
               found.at("result_rows"),
               found.at("result"),
               out};
}

// The iterations of the product.
enum Iteration { kBatch = 2, kLine, kColumn, kChannel, kSum };

// The sizes of the product: for each of the 36 points, `tiles` rows by `outputs` columns, summed
// over `inputs`. An open batch counts as one image, and open lines or columns as one.
struct Sizes {
  int64_t batch, rows, columns, inputs, outputs;
  bool open;        // the batch
  bool open_image;  // the lines or columns of tiles
  bool open_columns;
  int64_t tiles() const { return batch * rows * columns; }
  int64_t weight_bytes() const { return kPoints * kPoints * inputs * outputs * 4; }
  // Of the transformed data and the products.
  int64_t bytes_of(int64_t count) const {
    return kPoints * kPoints * count * (inputs + outputs) * 4;
  }
};

std::optional<Sizes> sizes_of(const Block& product) {
  std::vector<int64_t> extents;
  auto is_open = [&](size_t i) { return !tir::as_int(product->iters[i]->extent); };
  for (const tir::IterVar& i : product->iters) {
    const bool of_tiles = extents.size() >= kBatch && extents.size() <= kColumn;
    if (!tir::as_int(i->extent) && !of_tiles) return std::nullopt;
    extents.push_back(tir::as_int(i->extent).value_or(1));
  }
  return Sizes{.batch = extents[kBatch],
               .rows = extents[kLine],
               .columns = extents[kColumn],
               .inputs = extents[kSum],
               .outputs = extents[kChannel],
               .open = is_open(kBatch),
               .open_image = is_open(kLine) || is_open(kColumn),
               .open_columns = is_open(kColumn)};
}

// Tiles that are transformed, multiplied and transformed back together: `rows` lines of
// `columns`.
struct Group {
  static constexpr int64_t kWholeLine = 0;  // in place of a number of columns

  int64_t rows;
  int64_t columns;
};

// Register tiles of the product: `height` images, lines of tiles, or parts of one line.
struct Tile {
  Iteration divided;
  int64_t height;
  int64_t rows;  // of the product in a tile
};

constexpr int64_t kVectors = 2;  // of columns, in a tile

// The axis that the tiles divide is cut in equal parts as far as possible.
Tile choose_tile(int64_t images, int64_t lines, int64_t columns, const Target& target) {
  const int64_t most = (target.num_vector_registers - kVectors - 1) / kVectors;
  const bool whole_images = lines * columns <= most && images > 1;
  const bool whole_lines = columns <= most && lines > 1;
  const Iteration divided = whole_images ? kBatch : whole_lines ? kLine : kColumn;
  const int64_t unit = whole_images ? lines * columns : whole_lines ? columns : 1;
  const int64_t extent = whole_images ? images : whole_lines ? lines : columns;
  const int64_t tiles = (extent * unit + most - 1) / most;
  const int64_t height = std::max<int64_t>(1, std::min(most / unit, (extent + tiles - 1) / tiles));
  return {divided, height, height * unit};
}

// Whether the transformed weights stay in L2 beside the data and products of the tiles of a register.
bool group_fits(const Sizes& sizes, const Target& target) {
  constexpr int64_t kTiles = 14;
  return sizes.weight_bytes() + sizes.bytes_of(kTiles) <= target.l2_bytes;
}

// Whether all tiles are transformed before the first product. Weights that L2 does not hold come from L3 again for each
// group, which is more than what all tiles write there and read back: on a Xeon with 2 MB of L2, 28x28x128 took 489 us in
// groups of 7 and 245 all at once, 14x14x256 777 and 334; eight images 2.7 ms and 1.9, 4.0 and 2.2. Weights that L2 holds go
// the other way: 56x56x64 took 1.3 ms in groups and 1.95 all at once on a Xeon with 1 MB of L2.
bool all_at_once(const Sizes& sizes, const Target& target) {
  // Working memory, beside what else a program keeps for an image and for all.
  constexpr int64_t kMostForImage = int64_t{16} << 20, kMostBytes = int64_t{64} << 20;
  if (sizes.weight_bytes() > target.l3_bytes / 2) return true;
  if (sizes.open_image) return !sizes.open_columns || !group_fits(sizes, target);
  const int64_t working = sizes.bytes_of(sizes.tiles());
  return !sizes.open && !group_fits(sizes, target) && working <= sizes.batch * kMostForImage &&
         working <= std::min(kMostBytes, target.l3_bytes / 2);
}

// nullopt: all tiles at once. A group's data stay in the caches while all weights pass by, once
// for each group. Eight images of 56x56x64 of open size took 2.45 ms by lines on a Zen 5 with 1 MB of
// L2, and 4.43 all at once.
std::optional<Group> choose_group(const Sizes& sizes, const Target& target) {
  constexpr int64_t kLeastRows = 7;
  if (all_at_once(sizes, target)) return std::nullopt;
  if (sizes.open_image) return Group{1, Group::kWholeLine};
  std::optional<Group> best;
  for (int64_t columns = 1; columns <= sizes.columns; ++columns) {
    if (sizes.columns % columns != 0) continue;
    for (int64_t rows = 1; rows <= sizes.rows && rows * columns <= 4 * kLeastRows; ++rows) {
      int64_t count = rows * columns;
      Tile tile = choose_tile(1, rows, columns, target);
      // No tile ends outside its group.
      if (sizes.rows % rows != 0 || tile.rows < kLeastRows || count % tile.rows != 0 ||
          sizes.tiles() / count < target.num_cores || sizes.bytes_of(count) > target.l2_bytes) {
        continue;
      }
      if (!best || count < best->rows * best->columns) best = Group{rows, columns};
    }
  }
  return best;
}

tir::StepResult<> unroll_all(Schedule& s, const std::vector<LoopRV>& loops) {
  for (const LoopRV& l : loops) RELAY_TRY(s.unroll(l));
  return {};
}

// The block's loops inside `outer` loops of its nest.
std::vector<LoopRV> loops_inside(const Schedule& s, const BlockRV& rv, size_t outer) {
  std::vector<LoopRV> all = s.get_loops(rv);
  return {all.begin() + static_cast<std::ptrdiff_t>(outer), all.end()};
}

struct WinogradParameters : AttrsOf<WinogradParameters> {
  int64_t lanes = 1;
  std::vector<int64_t> group;
  std::vector<int64_t> tile;
  bool threads = false;

  static AttrsList describe() {
    return {
        "relay.schedule.Winograd",
        {attribute("lanes", &Self::lanes, "Channels in a vector."),
         attribute("group", &Self::group,
                   "Lines and columns of tiles that are transformed, multiplied and transformed "
                   "back together, 0 columns for a whole line of open size; "
                   "empty: all tiles at once."),
         attribute("tile", &Self::tile,
                   "The iteration of the product that register tiles divide - 2 images, 3 lines, 4 "
                   "columns - and "
                   "how many of it are in a tile; empty for the transform of a weight."),
         attribute("threads", &Self::threads, "Whether threads share the groups, or each phase.")}};
  }
};

class Winograd {
 public:
  Winograd(Schedule& s, int64_t lanes, WinogradParameters& parameters, Decider& decide, Parts parts,
           const Sizes& sizes)
      : s_(s),
        parameters_(parameters),
        decide_(decide),
        parts_(std::move(parts)),
        sizes_(sizes),
        lanes_(lanes) {
    threads_ =
        decide.value(parameters.threads, [](const Target& target) { return target.num_cores > 1; });
  }

  Outcome run() {
    const std::vector<int64_t> sides =
        decide_.value(parameters_.group, [&](const Target& target) -> std::vector<int64_t> {
          const std::optional<Group> best = choose_group(sizes_, target);
          if (!best) return {};
          return {best->rows, best->columns};
        });
    std::optional<Group> group;
    if (sides.size() == 2) group = Group{sides[0], sides[1]};
    const bool whole = !group || (sizes_.open_image ? sizes_.open_columns && group->rows == 1 &&
                                                          group->columns == Group::kWholeLine
                                                    : group->rows > 0 && group->columns > 0 &&
                                                          sizes_.rows % group->rows == 0 &&
                                                          sizes_.columns % group->columns == 0);
    if (!whole || (!group && !sides.empty())) {
      return Declined{"groups do not divide the lines and columns of tiles"};
    }
    if (!(parts_.result == parts_.out)) RELAY_TRY(s_.compute_inline(parts_.result));
    BlockRV stored = RELAY_TRY(s_.cache_write(parts_.product, tir::Scope::Register));
    std::vector<LoopRV> outside = RELAY_TRY(results(group, stored));
    size_t outer = group ? outside.size() : 0;
    RELAY_TRY(data(outer));
    const Outcome tile = sizes_.open_image ? open_product(outer, stored) : product(outer, stored);
    if (!took(tile)) return tile;
    // Last: an index of an open batch that is a quotient is not seen to be below the batch.
    RELAY_TRY(share_tiles(outside));
    std::string text = "winograd: ";
    text += sizes_.open_image ? "open tiles, " : std::to_string(sizes_.tiles()) + " tiles, ";
    if (group) {
      text += sizes_.open_image ? "by lines"
                                : "groups of " + std::to_string(group->rows * group->columns);
      if (threads_) text += sizes_.open_image ? ", threads over lines" : ", threads over groups";
    } else {
      text += "all at once";
      if (threads_) text += ", threads in each phase";
    }
    return Report{text + "; product in " + text_of(tile)};
  }

 private:
  // Threads over perfectly nested loops.
  tir::StepResult<> share(const std::vector<LoopRV>& loops) {
    if (!threads_) return {};
    RELAY_TRY(s_.parallel(loops.size() > 1 ? RELAY_TRY(s_.fuse(loops)) : loops[0]));
    return {};
  }

  // The same for loops over images, lines and columns, of which threads share the
  // lines alone where images have open sizes, as a quotient by an open size is not seen to be in its range.
  tir::StepResult<> share_tiles(const std::vector<LoopRV>& loops) {
    return share(sizes_.open_image ? std::vector{loops[1]} : loops);
  }

  // The output's loops, and everything under the loop over groups. The loops around the tiles of a
  // group, without groups those over all tiles.
  tir::StepResult<std::vector<LoopRV>> results(const std::optional<Group>& group,
                                               const BlockRV& stored) {
    std::vector<LoopRV> l = s_.get_loops(parts_.out);
    std::vector<LoopRV> row = RELAY_TRY(s_.split(l[1], {-1, kTile})),
                        column = RELAY_TRY(s_.split(l[2], {-1, kTile}));
    std::vector<LoopRV> channel = RELAY_TRY(s_.split(l[3], {-1, lanes_}));
    std::vector<LoopRV> outside{l[0], row[0], column[0]}, tiles;
    if (group && sizes_.open_image) {
      tiles = {column[0]};
      outside.pop_back();
    } else if (group) {
      std::vector<LoopRV> rows = RELAY_TRY(s_.split(row[0], {-1, group->rows}));
      std::vector<LoopRV> columns = RELAY_TRY(s_.split(column[0], {-1, group->columns}));
      outside = {l[0], rows[0], columns[0]};
      tiles = {rows[1], columns[1]};
    }
    std::vector<LoopRV> order = outside;
    order.insert(order.end(), tiles.begin(), tiles.end());
    order.insert(order.end(), {channel[0], row[1], column[1], channel[1]});
    RELAY_TRY(s_.reorder(order));
    RELAY_TRY(s_.compute_at(parts_.result_rows, channel[0]));
    RELAY_TRY(s_.set_scope(parts_.result_rows, tir::Scope::Register));
    if (group) {
      for (const BlockRV& rv :
           {stored, parts_.product, parts_.data, parts_.data_rows, parts_.pad}) {
        RELAY_TRY(s_.compute_at(rv, outside.back()));
      }
      for (const BlockRV& rv : {stored, parts_.data, parts_.pad}) {
        RELAY_TRY(s_.set_scope(rv, tir::Scope::Local));
      }
    }
    size_t inside = outside.size() + tiles.size() + 1;
    std::vector<LoopRV> lines = loops_inside(s_, parts_.result_rows, inside);
    RELAY_TRY(s_.vectorize(lines.back()));
    lines.pop_back();
    RELAY_TRY(unroll_all(s_, lines));
    RELAY_TRY(s_.vectorize(channel[1]));
    RELAY_TRY(unroll_all(s_, {row[1], column[1]}));
    return outside;
  }

  tir::StepResult<> data(size_t outer) {
    std::vector<LoopRV> border = loops_inside(s_, parts_.pad, outer);
    RELAY_TRY(s_.vectorize(RELAY_TRY(s_.split(border.back(), {-1, lanes_}))[1]));
    std::vector<LoopRV> l = loops_inside(s_, parts_.data, outer);
    std::vector<LoopRV> points(l.begin(), l.begin() + 2), tiles(l.begin() + 2, l.end() - 1);
    std::vector<LoopRV> channel = RELAY_TRY(s_.split(l.back(), {-1, lanes_}));
    std::vector<LoopRV> order = tiles;
    order.insert(order.end(), {channel[0], points[0], points[1], channel[1]});
    RELAY_TRY(s_.reorder(order));
    RELAY_TRY(s_.compute_at(parts_.data_rows, channel[0]));
    RELAY_TRY(s_.set_scope(parts_.data_rows, tir::Scope::Register));
    std::vector<LoopRV> lines = loops_inside(s_, parts_.data_rows, outer + tiles.size() + 1);
    RELAY_TRY(s_.reorder({lines[1], lines[0], lines[2]}));
    RELAY_TRY(unroll_all(s_, {lines[0], lines[1]}));
    RELAY_TRY(s_.vectorize(lines[2]));
    RELAY_TRY(unroll_all(s_, points));
    RELAY_TRY(s_.vectorize(channel[1]));
    if (outer == 0) {
      RELAY_TRY(share_tiles({border[0], border[1]}));
      RELAY_TRY(share_tiles(tiles));
    }
    return {};
  }

  // One product after the other, each in register tiles: whole lines of tiles, or parts of one.
  Outcome product(size_t outer, const BlockRV& stored) {
    std::vector<LoopRV> points = loops_inside(s_, stored, outer);
    // Those that the tiles are divided along, the outermost first.
    std::vector<std::pair<Iteration, LoopRV>> axes;
    std::vector<int64_t> extents;
    for (Iteration axis : {kBatch, kLine, kColumn}) {
      LoopRV l = loop_of(stored, axis, outer);
      extents.push_back(l.var && (axis != kBatch || !sizes_.open) ? s_.extent(l) : 1);
      if (l.var) axes.emplace_back(axis, l);
    }
    const std::vector<int64_t> wanted =
        decide_.value(parameters_.tile, [&](const Target& target) -> std::vector<int64_t> {
          const Tile best = choose_tile(extents[0], extents[1], extents[2], target);
          return {best.divided, best.height};
        });
    if (wanted.size() != 2 || wanted[0] < kBatch || wanted[0] > kColumn) {
      return Declined{"a tile divides none of images, lines and columns"};
    }
    const auto divided = static_cast<Iteration>(wanted[0]);
    const int64_t height = wanted[1], extent = extents[static_cast<size_t>(divided - kBatch)];
    int64_t rows_of_tile = height;
    for (size_t i = static_cast<size_t>(divided - kBatch) + 1; i < extents.size(); ++i) {
      rows_of_tile *= extents[i];
    }
    if (height < 1 || height > extent || !loop_of(stored, divided, outer).var) {
      return Declined{"a tile is higher than the axis that it divides"};
    }
    std::vector<LoopRV> rows = RELAY_TRY(s_.split(loop_of(stored, divided, outer), {-1, height}));
    std::vector<LoopRV> channels =
        RELAY_TRY(s_.split(loop_of(stored, kChannel, outer), {-1, kVectors * lanes_}));
    std::vector<LoopRV> order{points[0], points[1], channels[0]};
    for (const auto& [axis, loop] : axes) {
      if (axis < divided) order.push_back(loop);
    }
    order.push_back(rows[0]);
    size_t inside = outer + order.size();
    order.push_back(rows[1]);
    for (const auto& [axis, loop] : axes) {
      if (axis > divided) order.push_back(loop);
    }
    order.push_back(channels[1]);
    RELAY_TRY(s_.reorder(order));
    RELAY_TRY(s_.compute_at(parts_.product, rows[0]));
    const std::vector<BlockRV> blocks = RELAY_TRY(with_zeros(parts_.product, stored, inside));
    int64_t rest = extent % height;
    if (rest != 0) {
      tir::Partition cut = RELAY_TRY(s_.partition(rows[0], extent / height));
      for (size_t i = 0; i < 3; ++i) {
        BlockRV copy = cut.copy_of(blocks[i]);
        LoopRV reaching = loop_of(copy, divided, inside);
        if (reaching.var) RELAY_TRY(s_.partition(reaching, rest));
        RELAY_TRY(in_registers(copy, inside));
      }
    }
    for (const BlockRV& rv : blocks) RELAY_TRY(in_registers(rv, inside));
    if (outer == 0) RELAY_TRY(share({points[0], points[1], channels[0]}));
    return Report{std::to_string(rows_of_tile) + "x" + std::to_string(kVectors * lanes_) +
                  " register tiles"};
  }

  // The same for lines or columns of open size: a part of one line, or of several where a line has one tile.
  //
  //   for point: for channels: for image: for line: for columns of a tile: { registers = 0; for k: registers += a * b; store }
  Outcome open_product(size_t outer, const BlockRV& stored) {
    const std::vector<LoopRV> points = loops_inside(s_, stored, outer);
    const Iteration divided = loop_of(stored, kColumn, outer).var ? kColumn : kLine;
    const std::vector<int64_t> wanted =
        decide_.value(parameters_.tile, [&](const Target& target) -> std::vector<int64_t> {
          const auto many = std::numeric_limits<int32_t>::max();
          return {divided, choose_tile(1, 1, many, target).height};
        });
    constexpr int64_t kMostHeight = 128;
    if (wanted.size() != 2 || wanted[0] != divided || wanted[1] < 1 || wanted[1] > kMostHeight) {
      return Declined{"tiles of an open size divide its lines or columns"};
    }
    const std::vector<LoopRV> channels =
        RELAY_TRY(s_.split(loop_of(stored, kChannel, outer), {-1, kVectors * lanes_}));
    std::vector<LoopRV> order{points[0], points[1], channels[0]};
    for (Iteration axis : {kBatch, kLine, kColumn}) {
      if (const LoopRV l = loop_of(stored, axis, outer); l.var) order.push_back(l);
    }
    LoopRV row = order.back();
    const size_t inside = outer + order.size();
    order.push_back(channels[1]);
    RELAY_TRY(s_.reorder(order));
    BlockRV out = stored, sum = parts_.product;
    RELAY_TRY(s_.compute_at(sum, row));
    for (int64_t height : tile_sizes_of(kOpen, wanted[1], 1)) {
      const int64_t extent = s_.extent(row);
      if (extent >= 0 && extent < height) continue;
      BlockRV rest_out, rest_sum;
      LoopRV rest_row;
      const bool whole = s_.has_whole_tiles(row, height);
      if (!whole) {
        const tir::Partition cut = RELAY_TRY(s_.partition_tiles(row, height));
        rest_out = cut.copy_of(out);
        rest_sum = cut.copy_of(sum);
        rest_row = cut.tail;
      }
      if (height > 1) row = RELAY_TRY(s_.split(row, {-1, height}))[0];
      RELAY_TRY(s_.compute_at(sum, row));
      for (const BlockRV& rv : RELAY_TRY(with_zeros(sum, out, inside))) {
        RELAY_TRY(in_registers(rv, inside));
      }
      if (whole) break;
      out = rest_out;
      sum = rest_sum;
      row = rest_row;
    }
    if (outer == 0) RELAY_TRY(share({points[0], points[1], channels[0]}));
    return Report{std::to_string(wanted[1]) + "x" + std::to_string(kVectors * lanes_) +
                  " register tiles"};
  }

  // The product and its copy inside `inside` loops: zeros, the sum with its loop outside, and the copy. The blocks, in order.
  tir::StepResult<std::vector<BlockRV>> with_zeros(const BlockRV& sum, const BlockRV& stored,
                                                   size_t inside) {
    std::vector<LoopRV> tile = loops_inside(s_, sum, inside);
    std::rotate(tile.begin(), tile.end() - 1, tile.end());
    RELAY_TRY(s_.reorder(tile));
    const BlockRV zeros = RELAY_TRY(s_.decompose_reduction(sum, tile[0]));
    return std::vector<BlockRV>{zeros, sum, stored};
  }

  // The loop inside `outer` others that counts an iteration of a block; null for one value.
  LoopRV loop_of(const BlockRV& rv, Iteration at, size_t outer) {
    Block b = s_.block(rv);
    for (const LoopRV& l : loops_inside(s_, rv, outer)) {
      if (tir::uses_var(b->bindings[at], l.var.get())) return l;
    }
    return LoopRV{};
  }

  // The tile's loops: copies, and lanes over the channels. The sum's loop, outside them, stays.
  tir::StepResult<> in_registers(const BlockRV& rv, size_t inside) {
    std::vector<LoopRV> loops = loops_inside(s_, rv, inside);
    if (!s_.block(rv)->init && reduces(s_.block(rv))) loops.erase(loops.begin());
    std::vector<LoopRV> columns = RELAY_TRY(s_.split(loops.back(), {-1, lanes_}));
    loops.pop_back();
    RELAY_TRY(unroll_all(s_, loops));
    RELAY_TRY(s_.unroll(columns[0]));
    RELAY_TRY(s_.vectorize(columns[1]));
    return {};
  }

  Schedule& s_;
  WinogradParameters& parameters_;
  Decider& decide_;
  Parts parts_;
  Sizes sizes_;
  int64_t lanes_;
  bool threads_ = false;
};

// The transform of a weight in panels, whose last axis fills vectors: all 36 points of a vector from registers.
tir::StepResult<Outcome> transform_weight(Schedule& s, int64_t lanes,
                                          WinogradParameters& parameters, Decider& decide) {
  constexpr size_t kPanelRank = 5;
  std::vector<BlockRV> blocks = s.get_blocks();
  if (blocks.size() != 2) return Declined{};
  Block rows = s.block(blocks[0]);
  std::vector<LoopRV> l = s.get_loops(blocks[1]);
  if (rows->role != tir::BlockRole{"winograd", "weight_rows"} || l.size() != kPanelRank ||
      s.extent(l[4]) % lanes != 0) {
    return Declined{};
  }
  std::vector<LoopRV> columns = RELAY_TRY(s.split(l[4], {-1, lanes}));
  RELAY_TRY(s.reorder({l[2], l[3], columns[0], l[0], l[1], columns[1]}));
  RELAY_TRY(s.compute_at(blocks[0], columns[0]));
  RELAY_TRY(s.set_scope(blocks[0], tir::Scope::Register));
  std::vector<LoopRV> line = loops_inside(s, blocks[0], 3);
  RELAY_TRY(s.vectorize(line.back()));
  line.pop_back();
  RELAY_TRY(unroll_all(s, line));
  RELAY_TRY(s.vectorize(columns[1]));
  RELAY_TRY(unroll_all(s, {l[0], l[1]}));
  std::string text = "winograd: weights, " + std::to_string(lanes) + " lanes";
  const auto work = static_cast<double>(s.extent(l[2]) * s.extent(l[3]) * s.extent(columns[0]) *
                                        lanes * kPoints * kPoints);
  const bool threads = decide.value(parameters.threads, [&](const Target& target) {
    return pays_threads(target, work, 4 * kMinParallelWork);
  });
  if (threads) {
    RELAY_TRY(s.parallel(RELAY_TRY(s.fuse({l[2], l[3]}))));
    text += ", threads over panels";
  }
  return Report{text};
}

Outcome schedule_winograd(Schedule& s, WinogradParameters& parameters, Decider& decide) {
  const int64_t lanes = decide.number(parameters.lanes, kLanes,
                                      [](const Target& target) { return target.lanes(32); });
  const Outcome weight = RELAY_TRY(transform_weight(s, lanes, parameters, decide));
  if (took(weight)) return weight;
  std::optional<Parts> parts = find_parts(s);
  if (!parts) return Declined{};
  std::optional<Sizes> sizes = sizes_of(s.block(parts->product));
  Block out = s.block(parts->out);
  // What follows the convolution has its loops.
  if (!sizes || sizes->inputs % lanes != 0 || sizes->outputs % (2 * lanes) != 0 ||
      s.get_loops(parts->out).size() != 4 || reduces(out)) {
    return Declined{};
  }
  return Winograd(s, lanes, parameters, decide, *parts, *sizes).run();
}

}  // namespace

// Products for each result and pair of channels: 36 for 16 results, of 9 each.
constexpr double kArithmetic =
    double{kPoints * kPoints} / double{kTile * kTile * kKernel * kKernel};

const ScheduleRule kWinogradRule = schedule_rule<WinogradParameters, schedule_winograd>(
    "winograd", "convolutions by minimal filtering with whole vectors of channels", kArithmetic);

}  // namespace relay
