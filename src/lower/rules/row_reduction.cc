// Reductions over the last axes and what surrounds them: softmax, layer normalisation, means.
#include <algorithm>

#include "base/quantities.h"
#include "lower/rules/lanes.h"
#include "node/structural.h"
#include "node/walk.h"
#include "tir/arith/analyzer.h"

namespace relay {

using tir::Block;
using tir::BlockRV;
using tir::IterKind;
using tir::LoopRV;
using tir::PrimExpr;
using tir::Schedule;

namespace {

bool is_one(const PrimExpr& e) { return tir::as_int(e) == 1; }

// Whether some load of the block moves with every one of its iterations, so that nothing is read
// twice: sums of products do so, and are better tiled.
bool reads_each_element_once(const Block& b) {
  bool found = false;
  post_order(b->body, [&](const Node& n) {
    auto* l = as<tir::LoadNode>(&n);
    if (l == nullptr || l->buffer == b->writes[0]->buffer) return;
    found |= std::all_of(b->iters.begin(), b->iters.end(), [&](const tir::IterVar& i) {
      if (is_one(i->extent)) return true;
      bool used = false;
      for (const PrimExpr& e : l->indices) {
        post_order(e, [&](const Node& x) { used |= &x == i->var.get(); });
      }
      return used;
    });
  });
  return found;
}

// Whether lanes along a window take half as many vectors as lanes along the axis of the windows, because the former are long
// and the latter few.
bool is_few_long_windows(int64_t windows, int64_t size, int64_t lanes) {
  auto vectors = [&](int64_t n) { return (n + lanes - 1) / lanes; };
  return size >= 2 * lanes && 2 * windows * vectors(size) <= size * vectors(windows);
}

// Whether windows along an axis overlap and are not few long ones, or their lines have fewer than `few` elements: lanes along
// the axis read them all.
bool is_over_windows(const Block& b, int64_t few, int64_t lanes) {
  const tir::IterVarNode* line = nullptr;
  for (const tir::IterVar& i : b->iters) {
    if (i->kind == IterKind::Reduce && !is_one(i->extent)) line = i.get();
  }
  tir::Analyzer analyzer;
  auto step = [&](const PrimExpr& e, const tir::IterVar& i) {
    return analyzer.constant_difference(
        PrimExpr::unchecked(substitute(e, {{i->var.get(), i->var + 1}})), e);
  };
  bool found = false;
  post_order(b->body, [&](const Node& n) {
    auto* l = as<tir::LoadNode>(&n);
    if (l == nullptr) return;
    for (const tir::IterVar& axis : b->iters) {
      if (axis->kind != IterKind::DataParallel || is_one(axis->extent)) continue;
      for (const tir::IterVar& window : b->iters) {
        auto size = tir::as_int(window->extent);
        if (window->kind != IterKind::Reduce || !size || *size == 1) continue;
        for (const PrimExpr& e : l->indices) {
          auto along = step(e, axis), inside = step(e, window);
          if (!along || !inside || *along == 0 || *inside == 0) continue;
          const bool overlap =
              std::abs(*along) < std::abs(*inside) * *size &&
              !is_few_long_windows(tir::as_int(axis->extent).value_or(lanes), *size, lanes);
          found |= (window.get() == line && *size < few) || overlap;
        }
      }
    }
  });
  return found;
}

// The loops as one where that keeps neighbours, else the innermost.
tir::StepResult<LoopRV> innermost(Schedule& s, const BlockRV& rv,
                                  const std::vector<LoopRV>& loops) {
  if (loops.size() > 1) {
    Schedule attempt = s;
    LoopRV fused = RELAY_TRY(attempt.fuse(loops));
    if (is_contiguous(attempt, rv, fused)) {
      s = attempt;
      return fused;
    }
  }
  return loops.back();
}

// The leading loops of the output that count the rows, as one loop where their extents are
// constants; threads share `outer`, and `inner` holds one row. Null handles when there is a single
// row and no loop for it. Nothing when the output is not made of such rows.
struct Rows {
  LoopRV outer;
  LoopRV inner;
};
tir::StepResult<std::optional<Rows>> row_loops(Schedule& s, const BlockRV& out,
                                               const std::vector<PrimExpr>& rows) {
  std::vector<LoopRV> loops = s.get_loops(out), taken;
  size_t at = 0;
  for (const PrimExpr& extent : rows) {
    while (at < loops.size() && s.extent(loops[at]) == 1) taken.push_back(loops[at++]);
    if (at == loops.size()) return std::nullopt;
    PrimExpr have = s.loop(loops[at])->extent;
    auto n = tir::as_int(extent), m = tir::as_int(have);
    if (n && m && *m > *n && *m % *n == 0) {
      // Groups of an axis.
      std::vector<LoopRV> parts = RELAY_TRY(s.split(loops[at], {*n, -1}));
      loops[at] = parts[1];
      taken.push_back(parts[0]);
      continue;
    }
    if (!structural_equal(have, extent) && !(n && n == m)) return std::nullopt;
    taken.push_back(loops[at++]);
  }
  if (rows.empty() && !loops.empty() && s.extent(loops[0]) == 1) taken.push_back(loops[0]);
  if (taken.empty()) return Rows{};
  bool constant =
      std::all_of(taken.begin(), taken.end(), [&](const LoopRV& l) { return s.extent(l) >= 0; });
  if (!constant) return Rows{taken.front(), taken.back()};
  LoopRV row = RELAY_TRY(s.fuse(taken));
  return Rows{row, row};
}

// The reduction's axes that have more than one element.
int64_t num_sums(const Block& b) {
  return std::ranges::count_if(b->iters, [](const tir::IterVar& i) {
    return i->kind == IterKind::Reduce && !is_one(i->extent);
  });
}

// What a reduction reads of its largest operand for one result; 0 where that is open.
int64_t bytes_of_row(const Block& b) {
  int64_t elements = 1, bytes = 1;
  for (const tir::IterVar& i : b->iters) {
    if (i->kind == IterKind::Reduce) elements *= tir::as_int(i->extent).value_or(0);
  }
  for (const tir::Region& r : b->reads) bytes = std::max<int64_t>(bytes, r->buffer->dtype.bytes());
  return elements * bytes;
}

constexpr int64_t kMostRowsAtOnce = 8;
// Shorter rows are one stream together.
constexpr int64_t kBytesOfStream = 2048;

struct RowReductionParameters : AttrsOf<RowReductionParameters> {
  int64_t vector_bytes = 8;
  int64_t rows = 1;
  bool threads = false;

  static AttrsList describe() {
    return {
        "relay.schedule.RowReduction",
        {attribute("vector_bytes", &Self::vector_bytes,
                   "Bytes that are computed at once: the lanes of each block times its elements'."),
         attribute("rows", &Self::rows, "Rows that are reduced at once."),
         attribute("threads", &Self::threads, "Whether threads share the rows.")}};
  }
};

// One loop over rows; in it every block for that row, intermediate rows in a thread's own memory.
// A reduction keeps four vectors of partial results, which are combined at the row's end; rows of
// any length end in masked lanes. Empty when no reduction walks neighbouring elements, each read
// once.
Outcome schedule_row_reduction(Schedule& s, RowReductionParameters& parameters, Decider& decide) {
  const int64_t bytes = decide.number(parameters.vector_bytes, {8, 256},
                                      [](const Target& target) { return target.vector_bits / 8; });
  auto lanes_of = [&](const Block& b) {
    return std::max<int64_t>(2, bytes / b->writes[0]->buffer->dtype.bytes());
  };
  auto walks_elements = [](const Schedule& at, const BlockRV& rv) {
    return reads_each_element_once(at.block(rv)) && is_contiguous(at, rv, at.get_loops(rv).back());
  };
  // The exponentials of a log-softmax are summed without a row of their own.
  inline_elements(s, [&](const Schedule& at, const BlockRV& rv) {
    Block b = at.block(rv);
    return walks_elements(at, rv) && !is_over_windows(b, lanes_of(b) + 1, lanes_of(b));
  });
  std::vector<BlockRV> blocks = s.get_blocks(), reductions;
  std::vector<PrimExpr> rows;
  for (const BlockRV& rv : blocks) {
    Block b = s.block(rv);
    if (!reduces(b)) continue;
    std::vector<PrimExpr> mine;
    for (const tir::IterVar& i : b->iters) {
      if (i->kind == IterKind::Opaque) return Declined{};
      if (i->kind == IterKind::DataParallel && !is_one(i->extent)) mine.push_back(i->extent);
    }
    if (is_over_windows(b, 0, lanes_of(b))) return Declined{};
    if (!walks_elements(s, rv)) return Declined{};
    bool same = mine.size() == rows.size();
    for (size_t i = 0; same && i < mine.size(); ++i) same = structural_equal(mine[i], rows[i]);
    if (!reductions.empty() && !same) return Declined{};
    rows = mine;
    reductions.push_back(rv);
  }
  if (reductions.empty()) return Declined{};
  // Of several (the statistics of a small group) the elements are read again.
  Block first = s.block(reductions[0]);
  if (decide.chooses() && reductions.size() == 1 &&
      is_over_windows(first, lanes_of(first) + 1, lanes_of(first)))
    return Declined{};
  BlockRV out;
  if (!RELAY_TRY(split_output(s, out, blocks))) return Declined{};
  std::optional<Rows> loops_of_rows = RELAY_TRY(row_loops(s, out, rows));
  if (!loops_of_rows) return Declined{};
  auto [shared, row] = *loops_of_rows;
  // Of long rows in memory several at once, each with a stream of its own: a core has more lines under way, and what all rows are
  // multiplied with is read once. On a Zen of the first generation, 4 rows of 4 KB come at 15 GB/s, one after the other at 9.8.
  LoopRV together;
  const bool is_only_sums = row.var && s.extent(row) > 0 && blocks.size() == 1 &&
                            num_sums(first) == 1 &&
                            std::ranges::all_of(loops_below(s, out, row),
                                                [&](const LoopRV& l) { return s.extent(l) == 1; });
  if (is_only_sums) {
    const int64_t count = s.extent(row);
    const int64_t rows_at_once =
        decide.number(parameters.rows, {1, kMostRowsAtOnce}, [&](const Target& target) {
          if (!reads_memory(first, target) || bytes_of_row(first) < kBytesOfStream)
            return int64_t{1};
          return count % 4 == 0 ? int64_t{4} : count % 2 == 0 ? int64_t{2} : int64_t{1};
        });
    if (rows_at_once > 1 && count > rows_at_once && count % rows_at_once == 0) {
      std::vector<LoopRV> parts = RELAY_TRY(s.split(row, {-1, rows_at_once}));
      shared = row = parts[0];
      together = parts[1];
    }
  }
  if (row.var) {
    for (size_t i = blocks.size(); i-- > 0;) RELAY_TRY(s.compute_at(blocks[i], row));
  }

  double work = 0;
  blocks.push_back(out);
  for (const BlockRV& rv : blocks) {
    Block b = s.block(rv);
    std::vector<LoopRV> loops = loops_below(s, rv, row);
    double elements = 1;
    for (const LoopRV& l : loops) {
      elements *= static_cast<double>(typical_extent(s.extent(l)));
    }
    work += elements;
    bool sums = reduces(b);
    auto iterating = std::count_if(loops.begin(), loops.end(),
                                   [&](const LoopRV& l) { return s.extent(l) != 1; });
    // The statistics of more than one row: the leading loops were not the rows.
    if (sums && iterating != num_sums(b) + (together.var ? 1 : 0)) return Declined{};
    if (!(rv == out)) {
      bool one = sums || elements == 1;
      RELAY_TRY(s.set_scope(rv, one ? tir::Scope::Register : tir::Scope::Local));
    }
    if (loops.empty() || elements == 1) continue;
    if (together.var) {
      // The sum's loop over the rows is next to the innermost.
      RELAY_TRY(rv == out ? s.unroll(together)
                          : vectorize_reduction(s, rv, loops.back(), lanes_of(b),
                                                loops[loops.size() - 2]));
      continue;
    }
    LoopRV inner = RELAY_TRY(innermost(s, rv, loops));
    if (sums) {
      RELAY_TRY(vectorize_reduction(s, rv, inner, lanes_of(b)));
    } else {
      RELAY_TRY(few_copies(s, rv, RELAY_TRY(vectorize_elements(s, inner, lanes_of(b)))));
    }
  }
  std::string text = "rows: " + counted(static_cast<int64_t>(reductions.size()), "reduction") +
                     ", " + std::to_string(lanes_of(s.block(reductions[0]))) + " lanes";
  if (together.var) text += ", " + std::to_string(s.extent(together)) + " rows at once";
  if (row.var) {
    for (const PrimExpr& extent : rows) {
      work *= static_cast<double>(tir::as_int(extent).value_or(kTypicalExtent));
    }
    const bool threads = decide.value(parameters.threads, [&](const Target& target) {
      return s.extent(shared) != 1 && pays_threads(target, work);
    });
    if (threads) {
      RELAY_TRY(s.parallel(shared));
      text += ", threads over rows";
    }
  }
  return Report{text};
}

}  // namespace

const ScheduleRule kRowReductionRule =
    schedule_rule<RowReductionParameters, schedule_row_reduction>(
        "row_reduction", "reductions of the last axes that read each element once");

}  // namespace relay
