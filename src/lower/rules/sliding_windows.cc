// Pools that reduce their windows along one axis after the other (ops/image/pool.cc).
#include <algorithm>
#include <bit>

#include "lower/rules/lanes.h"

#include "base/quantities.h"

namespace relay {

using tir::Block;
using tir::BlockRV;
using tir::LoopRV;
using tir::Schedule;

namespace {

// The accumulators of one of the reductions.
struct Accumulators {
  int64_t lanes = 1;
  int64_t vectors = 1;

  static constexpr auto members() {
    return std::tuple{member("lanes", &Accumulators::lanes),
                      member("vectors", &Accumulators::vectors)};
  }
  friend bool operator==(const Accumulators&, const Accumulators&) = default;
};

struct SlidingWindowsParameters : AttrsOf<SlidingWindowsParameters> {
  std::vector<Accumulators> accumulators;
  int64_t lines = 1;
  bool threads = false;

  static AttrsList describe() {
    return {"relay.schedule.SlidingWindows",
            {attribute("accumulators", &Self::accumulators,
                       "Lanes and vectors of each reduction, the last axis first, then from the "
                       "inner axes to the outer ones."),
             attribute("lines", &Self::lines, "Lines that are made before the first is read."),
             attribute("threads", &Self::threads, "Whether threads share the lines.")}};
  }
};

// The vectors of the block's last loop in groups, and its reduction `sums` for a group in
// registers. False when it has another shape.
tir::StepResult<bool> reduce_in_registers(Schedule& s, const BlockRV& out, const BlockRV& sums,
                                          PlanList<Accumulators>& plans, Decider& decide) {
  LoopRV last = s.get_loops(out).back();
  Accumulators& plan = plans[plans.next()];
  const int64_t lanes = decide.number(plan.lanes, kLanes, [&](const Target& target) {
    const auto columns = static_cast<uint64_t>(std::max<int64_t>(s.extent(last), 2));
    // Windows with a stride are gathered lane by lane, including lanes without a column: short rows get short vectors.
    return std::min(lanes_of(s.block(sums), target), static_cast<int64_t>(std::bit_ceil(columns)));
  });
  const int64_t chunk =
      lanes * decide.number(plan.vectors, kVectorsAtOnce, [&](const Target& target) {
        return vectors_at_once((s.extent(last) + lanes - 1) / lanes, target);
      });
  std::vector<LoopRV> parts = RELAY_TRY(s.split(last, {-1, chunk}));
  RELAY_TRY(s.compute_at(sums, parts[0]));
  RELAY_TRY(s.set_scope(sums, tir::Scope::Register));
  if (!RELAY_TRY(sum_columns(s, sums, parts[0], lanes))) return false;
  RELAY_TRY(vectors(s, parts[1], lanes));
  return true;
}

size_t axis_of(const Block& b) { return static_cast<size_t>(b->role.number); }

// Lines along the axis `next` that lie in the nearest cache together; of the numbers of the same size, one that leaves the
// least of the last group empty, whose lines cost as much as others.
int64_t lines_at_once(const Schedule& s, const std::vector<LoopRV>& axes, size_t next) {
  constexpr int64_t kMost = 16, kBytes = 16384;
  int64_t line = 4, extent = s.extent(axes[next]);
  for (size_t i = next + 1; i < axes.size(); ++i) line *= s.extent(axes[i]);
  int64_t most = std::clamp<int64_t>(kBytes / std::max<int64_t>(line, 1), 1, kMost);
  if (extent <= most) return extent;
  auto empty = [&](int64_t n) { return (extent + n - 1) / n * n - extent; };
  int64_t best = most;
  for (int64_t n = most; n > most / 2; --n) {
    if (empty(n) < empty(best)) best = n;
  }
  return best;
}

// For each place along the axis that is reduced first, what is reduced along it is a line in a
// thread's own memory, border and all; the next axis reads it without a test.
Outcome schedule_sliding_windows(Schedule& s, SlidingWindowsParameters& parameters,
                                 Decider& decide) {
  std::vector<BlockRV> parts, others;
  double work = 1;
  for (const BlockRV& rv : s.get_blocks()) {
    Block b = s.block(rv);
    if (b->role.algorithm == "windows") parts.push_back(rv);
    for (const tir::IterVar& i : b->iters) {
      if (i->kind == tir::IterKind::Opaque || !tir::as_int(i->extent)) return Declined{};
    }
  }
  BlockRV out;
  if (parts.empty() || !RELAY_TRY(split_output(s, out, others))) return Declined{};
  // The parts, then the reduction of the last axis, and nothing else.
  if (others.size() != parts.size() + 1 || !reduces(s.block(others.back()))) return Declined{};
  if (!std::equal(parts.begin(), parts.end(), others.begin())) return Declined{};
  std::vector<LoopRV> axes = s.get_loops(out);
  for (const LoopRV& loop : axes) work *= static_cast<double>(s.extent(loop));
  size_t first = axis_of(s.block(parts[0])), next = axis_of(s.block(parts.back()));
  if (next + 1 >= axes.size()) return Declined{};
  // A line is read at places that lie across the vectors that were stored, which waits for the
  // stores: so some lines are made before the first is read.
  std::vector<LoopRV> around = axes;
  PlanList<Accumulators> plans(parameters.accumulators, decide);
  const int64_t at_once =
      decide.number(parameters.lines, {1, std::max<int64_t>(1, s.extent(axes[next]))},
                    [&](const Target&) { return lines_at_once(s, axes, next); });
  std::vector<LoopRV> lines = RELAY_TRY(s.split(axes[next], {-1, at_once}));
  around[next] = lines[0];
  if (!RELAY_TRY(reduce_in_registers(s, out, others.back(), plans, decide))) return Declined{};
  for (size_t i = parts.size(); i-- > 0;) {
    size_t axis = axis_of(s.block(parts[i]));
    BlockRV line = RELAY_TRY(s.cache_write(parts[i], tir::Scope::Register));
    RELAY_TRY(s.compute_at(line, around[axis]));
    RELAY_TRY(s.set_scope(line, tir::Scope::Local));
    if (!RELAY_TRY(reduce_in_registers(s, line, parts[i], plans, decide))) return Declined{};
  }
  std::string text = "windows: " + counted(parts.size() + 1, "axis") + " one after the other, " +
                     std::to_string(parameters.accumulators[0].lanes) + " lanes";
  plans.finish();
  const bool threads = decide.value(
      parameters.threads, [&](const Target& target) { return pays_threads(target, work * 4); });
  if (threads) {
    LoopRV shared =
        first > 0
            ? RELAY_TRY(s.fuse({axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(first)}))
            : around[0];
    if (s.extent(shared) == 1) shared = around[first];
    RELAY_TRY(s.parallel(shared));
    text += ", threads over " + shared.var->name;
  }
  return Report{text};
}

}  // namespace

const ScheduleRule kSlidingWindowsRule =
    schedule_rule<SlidingWindowsParameters, schedule_sliding_windows>(
        "sliding_windows", "pools that reduce one axis after the other");

}  // namespace relay
