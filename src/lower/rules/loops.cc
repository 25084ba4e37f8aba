#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>

#include "lower/rules/common.h"
#include "lower/rules/lanes.h"
#include "lower/rules/row_ends.h"
#include "lower/rules/transposition.h"
#include "node/walk.h"

namespace relay {

using tir::Block;
using tir::BlockRV;
using tir::IterKind;
using tir::LoopRV;
using tir::Schedule;

bool reduces(const Block& b) {
  return std::any_of(b->iters.begin(), b->iters.end(),
                     [](const tir::IterVar& i) { return i->kind == IterKind::Reduce; });
}

namespace {

// A loop along which some tensor is read element after element, while lanes over the last loop
// would each read a line of the cache of their own; null when there is none.
LoopRV transposed_loop(const Schedule& s, const BlockRV& rv, const std::vector<LoopRV>& loops,
                       int64_t line) {
  auto across = read_steps(s, rv, loops.back());
  for (size_t i = loops.size() - 1; i-- > 0;) {
    if (s.extent(loops[i]) == 1) continue;
    auto along = read_steps(s, rv, loops[i]);
    for (size_t k = 0; k < along.size(); ++k) {
      bool far = !across[k] || std::abs(*across[k]) >= line;
      if (along[k] == 1 && far) return loops[i];
    }
  }
  return {};
}

// Whether an iteration that computes the block does so much that the processor, which looks ahead of it by some hundred
// instructions, asks for few lines at a time: functions that are polynomials.
bool computes_long(const Block& b) {
  bool found = false;
  post_order(b->body, [&](const Node& n) { found = found || is_polynomial(n); });
  return found;
}

// Iterations at the start and the end of the loop, at most kMostBorder each, between which it reads neighbours: what is
// beside them is mirrored there or repeats an edge. Nothing when all of it does, and when nothing helps. In a short row
// the border is at most half of it, and its elements cost less than a gather unless much is computed.
constexpr int64_t kMostBorder = 8;
std::pair<int64_t, int64_t> border(const Schedule& s, const BlockRV& rv, const LoopRV& loop) {
  const int64_t extent = s.extent(loop);
  auto neighbours = [&](int64_t low, int64_t high) {
    auto steps = read_steps_within(s, rv, loop, low, extent - 1 - high);
    return std::all_of(steps.begin(), steps.end(),
                       [](const auto& step) { return step == 0 || step == 1; });
  };
  const int64_t most = std::min(kMostBorder, (extent - 1) / 2);
  const bool is_short = extent < 4 * kMostBorder;
  if (most < 1 || (is_short && computes_long(s.block(rv))) || !neighbours(most, most)) {
    return {0, 0};
  }
  // Fewer at one end are found whatever there is at the other.
  std::pair<int64_t, int64_t> out{0, 0};
  while (!neighbours(out.first, most)) ++out.first;
  while (!neighbours(most, out.second)) ++out.second;
  return is_short && 2 * (out.first + out.second) > extent ? std::pair<int64_t, int64_t>{0, 0}
                                                           : out;
}

// Whether the block sums floats: in memory, terms would be added to each element one after the other, however many there are.
bool sums_floats(const Block& b) {
  auto* store = as<tir::StoreNode>(b->body);
  auto* sum = store == nullptr ? nullptr : as<tir::BinaryNode>(store->value);
  return b->init && sum != nullptr && sum->op == tir::BinaryOp::Add && sum->dtype.is_floating();
}

// Columns whose number only a run knows, each summed over all rows before the next ones: of whole vectors as many at once as
// accumulators have room, then vector by vector with a mask for the last. The loop over the former.
tir::StepResult<LoopRV> sum_open_columns(Schedule& s, const LoopRV& last,
                                         const std::vector<LoopRV>& reduction, int64_t lanes,
                                         int64_t vectors) {
  LoopRV whole = last;
  auto innermost = [&](std::vector<LoopRV> outer, const std::vector<LoopRV>& sums,
                       const std::vector<LoopRV>& inner) -> tir::StepResult<> {
    outer.insert(outer.end(), sums.begin(), sums.end());
    outer.insert(outer.end(), inner.begin(), inner.end());
    return s.reorder(outer);
  };
  if (!s.has_whole_tiles(last, lanes * vectors)) {
    tir::Partition p = RELAY_TRY(s.partition_tiles(last, lanes * vectors));
    std::vector<LoopRV> sums;
    for (const LoopRV& l : reduction) sums.push_back(p.copy_of(l));
    std::vector<LoopRV> rest = RELAY_TRY(s.split(p.tail, {-1, lanes}));
    RELAY_TRY(innermost({rest[0]}, sums, {rest[1]}));
    RELAY_TRY(s.vectorize(rest[1]));
    whole = p.head;
  }
  std::vector<LoopRV> parts = RELAY_TRY(s.split(whole, {-1, vectors, lanes}));
  RELAY_TRY(innermost({parts[0]}, reduction, {parts[1], parts[2]}));
  RELAY_TRY(s.unroll(parts[1]));
  RELAY_TRY(s.vectorize(parts[2]));
  return parts[0];
}

// What lies in memory is asked for a page ahead, line by line: the processor's own prefetching starts anew at each page. The
// gradient of a GELU of 8 MB that was kept since the forward pass took 2.5 ms, and takes 0.9 (two cores of a Xeon).
constexpr int64_t kPageBytes = 4096;
// Whether it reads more than half of what L2 holds, whose other half is written, or what a run may make as large. 2 MB of a GELU's
// gradient and 2 MB that were kept took 0.49 ms, and take 0.17.
bool may_read_memory(const Block& b, const Target& target) {
  double all = 0;
  for (const tir::Region& r : b->reads) {
    const auto bytes = tir::bytes_in_memory(*r->buffer.get());
    if (!bytes) return true;
    all += static_cast<double>(*bytes);
  }
  return all > static_cast<double>(target.l2_bytes) / 2;
}

// Rows that lanes across them may be computed for at once.
constexpr int64_t kMostRows = 64;

// The second to last loop where it goes from one row of a tensor to the next, a page away, of which the last loop reads a short
// part that the loop before both continues, as a matrix is read to panels of its columns; null when there is none.
LoopRV far_rows_loop(const Schedule& s, const BlockRV& rv, const std::vector<LoopRV>& loops,
                     int64_t bytes) {
  constexpr int64_t kShortBytes = 256;
  if (loops.size() < 3) return {};
  const LoopRV &next = loops[loops.size() - 3], &row = loops[loops.size() - 2],
               &last = loops.back();
  const int64_t length = s.extent(last);
  if (length < 1 || length * bytes > kShortBytes || s.extent(next) == 1) return {};
  const auto along = read_steps(s, rv, last), down = read_steps(s, rv, row),
             beside = read_steps(s, rv, next);
  for (size_t k = 0; k < along.size(); ++k) {
    const bool far = down[k] && std::abs(*down[k]) * bytes >= kPageBytes;
    if (along[k] == 1 && far && beside[k] == length) return row;
  }
  return {};
}

// The parts of some such rows at once, so that each row is read on before its page is given up: the matrix of 512 x 1024 floats
// takes 0.57 of the time within a program (two cores of a Zen 3).
tir::StepResult<std::string> read_far_rows_together(Schedule& s, const BlockRV& rv,
                                                    std::vector<LoopRV>& loops, int64_t bytes,
                                                    BlockPlan& plan, Decider& decide) {
  constexpr int64_t kRowsAtOnce = 8;
  const LoopRV row = far_rows_loop(s, rv, loops, bytes);
  const int64_t count = row.var ? s.extent(row) : 0;
  if (count < 2) return "";
  const int64_t at_once = decide.number(
      plan.rows, {1, count}, [&](const Target&) { return std::gcd(kRowsAtOnce, count); });
  if (at_once < 2 || count % at_once != 0) return "";
  const LoopRV next = loops[loops.size() - 3];
  const std::vector<LoopRV> rows = RELAY_TRY(s.split(row, {-1, at_once}));
  RELAY_TRY(s.reorder({rows[0], next, rows[1]}));
  loops.erase(loops.end() - 3, loops.end() - 1);
  loops.insert(loops.end() - 1, {rows[0], next, rows[1]});
  return ", " + std::to_string(at_once) + " far rows at once";
}

}  // namespace

tir::StepResult<std::string> schedule_block(Schedule& s, const BlockRV& block, BlockPlans& plans,
                                            Decider& decide) {
  BlockRV rv = block;
  Block b = s.block(rv);
  std::vector<LoopRV> loops = s.get_loops(rv);
  if (loops.size() != b->iters.size() || loops.empty()) return "";
  std::vector<LoopRV> parallel, reduction;
  double work = 1;
  for (size_t i = 0; i < loops.size(); ++i) {
    int64_t extent = s.extent(loops[i]);
    work *= static_cast<double>(typical_extent(extent));
    if (b->iters[i]->kind == IterKind::DataParallel) {
      parallel.push_back(loops[i]);
    } else if (b->iters[i]->kind == IterKind::Reduce) {
      reduction.push_back(loops[i]);
    } else {
      return "";
    }
  }
  if (parallel.empty()) return "";
  BlockPlan& plan = plans[plans.next()];
  const Outcome transposed = RELAY_TRY(schedule_transposition(s, rv, plan, decide));
  if (took(transposed)) return text_of(transposed);
  std::string note;
  const auto bytes = static_cast<int64_t>(b->writes[0]->buffer->dtype.bytes());
  const int64_t lanes = decide.number(
      plan.lanes, kLanes, [&](const Target& target) { return target.vector_bits / 8 / bytes; });
  // Rows that fill no whole vectors end once, not each.
  const bool maps = reduction.empty() && !b->init;
  bool joined_rows = false;
  while (maps && parallel.size() > 1 && s.extent(parallel.back()) % lanes != 0) {
    const LoopRV &rows = parallel[parallel.size() - 2], &row = parallel.back();
    if (!maps_elements_along(s, rv, rows) || !maps_elements_along(s, rv, row) ||
        !rows_follow(s, rv, rows, row)) {
      break;
    }
    LoopRV joined = RELAY_TRY(s.fuse({rows, row}));
    parallel.pop_back();
    parallel.back() = joined;
    joined_rows = true;
  }
  LoopRV last = parallel.back();
  std::string ends;
  if (maps) {
    if (decide.chooses()) std::tie(plan.first, plan.last) = border(s, rv, last);
    const int64_t low = plan.first, high = plan.last;
    if (low > 0) {
      tir::Partition p = RELAY_TRY(s.partition(last, low));
      RELAY_TRY(s.unroll(p.head));
      rv = p.copy_of(rv);
      last = p.tail;
    }
    if (high > 0) {
      tir::Partition p = RELAY_TRY(s.partition(last, s.extent(last) - high));
      RELAY_TRY(s.unroll(p.tail));
      last = p.head;
    }
    if (low + high > 0) ends = ", ends peeled";
    parallel.back() = last;
  }
  int64_t extent = s.extent(last);
  // The end of a row that lanes do not divide is a vector with a mask; a row that is shorter than a
  // vector is cut into equal vectors, or into falling powers of two where those are fewer: 14 elements into 8, 4 and 2.
  int64_t width = lanes;
  const bool open = extent < 0;
  while (!open && extent < lanes && width > 1 && extent % width != 0) width /= 2;
  const bool ragged = maps && extent > 1 && lanes > 1 && extent % lanes != 0 &&
                      !transposed_loop(s, rv, parallel, kCacheLineBytes / bytes).var;
  // A tensor of the kernel's own is written by one block, which may move to where it is read.
  const bool once = computes_long(b) || !s.is_output(b->writes[0]->buffer);
  const bool fewer =
      extent > 0 && extent < lanes && std::popcount(static_cast<uint64_t>(extent)) < extent / width;
  const bool halves = ragged && (fewer || !masks_lanes(b, lanes * bytes, once));
  const std::vector<int64_t> cuts =
      maps && extent > 0 ? joints_along(s, rv, last) : std::vector<int64_t>{};
  // Whether a loop around vectors is left to be shared.
  bool has_outer = false;
  if (open && width > 1 && !reduction.empty() && sums_floats(b)) {
    const int64_t vectors = decide.number(plan.vectors, kVectorsAtOnce, [](const Target& target) {
      return vectors_at_once(target.num_vector_registers, target);
    });
    parallel.back() = RELAY_TRY(sum_open_columns(s, last, reduction, width, vectors));
    note = std::to_string(vectors) + "x" + std::to_string(width) + " lanes over all rows";
  } else if (!cuts.empty() && width > 1) {
    RELAY_TRY(vectorize_between(s, last, cuts, lanes));
    parallel.pop_back();
    has_outer = !parallel.empty();
    note = std::to_string(lanes) + " lanes, " + std::to_string(cuts.size() + 1) + " tensors joined";
    if (parallel.empty()) return note;
  } else if (halves) {
    LoopRV vectors = RELAY_TRY(vectorize_in_halves(s, last, lanes));
    note = std::to_string(std::min(lanes, extent)) + " lanes and fewer" + ends;
    parallel.pop_back();
    has_outer = !parallel.empty() || joined_rows;
    if (parallel.empty()) {
      if (!vectors.var) return note;
      parallel.push_back(vectors);
    }
  } else if (extent != 0 && width > 1) {
    if (!reduction.empty()) {
      std::vector<LoopRV> order(parallel.begin(), parallel.end() - 1);
      order.insert(order.end(), reduction.begin(), reduction.end());
      order.push_back(last);
      RELAY_TRY(s.reorder(order));
    }
    const int64_t line = kCacheLineBytes / bytes;
    LoopRV across = reduction.empty() ? transposed_loop(s, rv, parallel, line) : LoopRV{};
    if (maps && !across.var)
      ends += RELAY_TRY(read_far_rows_together(s, rv, parallel, bytes, plan, decide));
    LoopRV inner = last;
    if (open && !across.var && !s.has_whole_tiles(last, width)) {
      // Whole vectors apart from the end, as a mask makes a branch of every lane that reads far: where some do, the end stays a
      // loop over elements. With rows inside the loop over vectors, that is cut when all is lowered (PartitionLoops).
      const auto steps = read_steps(s, rv, last);
      const bool near =
          std::ranges::all_of(steps, [](const auto& step) { return step == 0 || step == 1; });
      const LoopRV tail = RELAY_TRY(s.partition_tiles(last, width)).tail;
      if (near) RELAY_TRY(s.vectorize(RELAY_TRY(s.split(tail, {-1, width}))[1]));
    }
    if (extent != width) {
      std::vector<LoopRV> parts = RELAY_TRY(s.split(last, {-1, width}));
      parallel.back() = parts[0];
      inner = parts[1];
      const bool far = decide.value(plan.prefetch, [&](const Target& target) {
        return reduction.empty() && !across.var && width >= line && may_read_memory(b, target) &&
               computes_long(b);
      });
      if (far) {
        RELAY_TRY(s.prefetch(parts[0], kPageBytes));
        ends += ", operands prefetched";
      }
    } else {
      parallel.pop_back();
    }
    note = std::to_string(width) + " lanes" + ends;
    if (across.var) {
      // As many rows as a line has elements, so that each line is used up while it is in L1.
      const int64_t count = s.extent(across);
      const int64_t at_once =
          decide.number(plan.rows, {1, count < 0 ? kMostRows : std::max<int64_t>(count, 1)},
                        [&](const Target&) { return count < 0 ? line : std::min(line, count); });
      std::vector<LoopRV> rows = RELAY_TRY(s.split(across, {-1, at_once}));
      std::replace(parallel.begin(), parallel.end(), across, rows[0]);
      std::vector<LoopRV> order = parallel;
      order.insert(order.end(), {rows[1], inner});
      RELAY_TRY(s.reorder(order));
      note += " in blocks of " + std::to_string(s.extent(rows[1])) + " rows";
    }
    RELAY_TRY(s.vectorize(inner));
  }
  LoopRV outer = s.get_loops(rv).front();
  has_outer = has_outer || parallel.size() > 1 || (joined_rows && !parallel.empty());
  const bool shareable = has_outer && (outer == parallel.front() || parallel.size() == 1);
  const bool threads = decide.value(
      plan.threads, [&](const Target& target) { return pays_threads(target, work) && shareable; });
  if (threads && shareable) {
    // Axes of size one in front hold no work to share.
    std::vector<LoopRV> fused{parallel.front()};
    for (size_t i = 1; i + 1 < parallel.size() && s.extent(fused.back()) == 1; ++i)
      fused.push_back(parallel[i]);
    LoopRV shared = fused.size() > 1 ? RELAY_TRY(s.fuse(fused)) : fused[0];
    if (s.extent(shared) != 1) {
      RELAY_TRY(s.parallel(shared));
      note += std::string(note.empty() ? "" : ", ") + "threads over " + shared.var->name;
    }
  }
  return note;
}

namespace {

struct LoopsParameters : AttrsOf<LoopsParameters> {
  std::vector<BlockPlan> blocks;

  static AttrsList describe() {
    return {"relay.schedule.Loops",
            {attribute("blocks", &Self::blocks, "The loops of each block.")}};
  }
};

// Each block by itself; one that no loops fit stays as it was composed.
Outcome schedule_loops(Schedule& s, LoopsParameters& parameters, Decider& decide) {
  BlockPlans plans(parameters.blocks, decide);
  std::string text;
  for (const BlockRV& rv : s.get_blocks()) {
    auto loops =
        tir::attempt(s, [&](Schedule& at) { return schedule_block(at, rv, plans, decide); });
    const std::string note =
        loops.is_legal() ? std::move(loops).take() : "as composed (" + loops.why().reason + ")";
    text += (text.empty() ? "loops: " : "; ") + rv.name + (note.empty() ? "" : " " + note);
  }
  plans.finish();
  return Report{text};
}

}  // namespace

const ScheduleRule kLoopsRule =
    schedule_rule<LoopsParameters, schedule_loops>("loops", "every kernel");

}  // namespace relay
