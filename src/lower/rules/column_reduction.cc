// Reductions over other axes than the last: pooling, means over space with channels last.
#include <algorithm>

#include "lower/rules/contraction_loops.h"
#include "lower/rules/lanes.h"
#include "node/structural.h"
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

// Rows of a border that are peeled, at most.
constexpr int64_t kMaxBorder = 8;

// How many iterations at the start and the end of the loop have to be peeled so that for the others
// every condition on it alone, of those that the block's values are chosen by, holds.
std::pair<int64_t, int64_t> border(const Schedule& s, const BlockRV& rv, const LoopRV& loop,
                                   const std::vector<LoopRV>& others) {
  Block b = s.block(rv);
  std::unordered_map<const Node*, NodeRef> values;
  for (size_t i = 0; i < b->iters.size(); ++i) values[b->iters[i]->var.get()] = b->bindings[i];
  std::vector<PrimExpr> conditions;
  post_order(b->body, [&](const Node& n) {
    auto* choice = as<tir::SelectNode>(&n);
    if (choice == nullptr) return;
    std::vector<PrimExpr> work{PrimExpr::unchecked(substitute(choice->cond, values))};
    while (!work.empty()) {
      PrimExpr e = work.back();
      work.pop_back();
      auto* both = as<tir::BinaryNode>(e);
      if (both != nullptr && both->op == tir::BinaryOp::And) {
        work.push_back(both->a);
        work.push_back(both->b);
        continue;
      }
      bool about = false, about_others = false;
      post_order(e, [&](const Node& x) {
        about |= &x == loop.var.get();
        for (const LoopRV& other : others) {
          about_others |= &x == other.var.get() && !(other == loop);
        }
      });
      if (about && !about_others) conditions.push_back(e);
    }
  });
  int64_t extent = s.extent(loop);
  auto all_hold = [&](int64_t low, int64_t high) {
    tir::Analyzer analyzer;
    for (const LoopRV& l : s.get_loops(rv)) {
      if (!(l == loop)) analyzer.bind(l.var, s.loop(l)->min, s.loop(l)->extent);
    }
    analyzer.bind(loop.var, tir::Bounds{low, extent - high - 1});
    return std::all_of(conditions.begin(), conditions.end(),
                       [&](const PrimExpr& e) { return analyzer.can_prove(e); });
  };
  if (conditions.empty()) return {0, 0};
  for (int64_t total = 0; total <= 2 * kMaxBorder && total < extent; ++total) {
    for (int64_t low = std::min(total, kMaxBorder); low >= 0; --low) {
      if (total - low <= kMaxBorder && all_hold(low, total - low)) return {low, total - low};
    }
  }
  return {0, 0};
}

// The elements of the tensor; 0 where a size is open.
int64_t count_of(const tir::Buffer& buffer) {
  int64_t out = 1;
  for (const PrimExpr& extent : buffer->shape) out *= tir::as_int(extent).value_or(0);
  return out;
}

// Whether the block reads no element of the load twice. Of open sizes: every iteration moves it.
bool reads_once(const Block& b, const tir::LoadNode& l) {
  if (const int64_t all = iterations_of(b); all > 0) return count_of(l.buffer) == all;
  return std::ranges::all_of(b->iters, [&](const tir::IterVar& i) {
    return tir::as_int(i->extent) == 1 || std::ranges::any_of(l.indices, [&](const PrimExpr& e) {
             return tir::uses_var(e, i->var.get());
           });
  });
}

// Whether no factor of the block's products is in two of them: a sum of products of elements, not a contraction, which has
// tiles to keep factors in.
bool uses_factors_once(const Block& b) {
  auto loads = [](const PrimExpr& e) {
    std::vector<const tir::LoadNode*> out;
    post_order(e, [&](const Node& n) {
      if (auto* l = as<tir::LoadNode>(&n)) out.push_back(l);
    });
    return out;
  };
  auto once = [&](const std::vector<const tir::LoadNode*>& side) {
    return std::ranges::any_of(side, [&](const tir::LoadNode* l) { return reads_once(b, *l); });
  };
  bool all = true;
  post_order(b->body, [&](const Node& n) {
    auto* m = as<tir::BinaryNode>(&n);
    if (m == nullptr || m->op != tir::BinaryOp::Mul || m->dtype == tir::kIndex) return;
    auto left = loads(m->a), right = loads(m->b);
    all = all && (left.empty() || right.empty() || (once(left) && once(right)));
  });
  return all;
}

// The loop over the last axis in groups of `chunk`, outside the loops that the reductions do not
// have; `outer` are those that they have. Empty handle when the output is of another shape.
struct Columns {
  LoopRV groups;
  LoopRV group;
  std::vector<LoopRV> outer;
};
tir::StepResult<std::optional<Columns>> columns_of(Schedule& s, const BlockRV& out,
                                                   const std::vector<PrimExpr>& wanted,
                                                   int64_t chunk) {
  std::vector<LoopRV> loops = s.get_loops(out), inner;
  if (loops.empty() || !structural_equal(s.loop(loops.back())->extent, wanted.back())) {
    return std::nullopt;
  }
  Columns out_loops;
  size_t at = 0;
  for (size_t i = 0; i + 1 < loops.size(); ++i) {
    PrimExpr extent = s.loop(loops[i])->extent;
    bool mine = at + 1 < wanted.size() && structural_equal(extent, wanted[at]);
    at += mine;
    (mine || tir::as_int(extent) == 1 ? out_loops.outer : inner).push_back(loops[i]);
  }
  if (at + 1 != wanted.size()) return std::nullopt;
  std::vector<LoopRV> parts = RELAY_TRY(s.split(loops.back(), {-1, chunk}));
  out_loops.groups = parts[0];
  out_loops.group = parts[1];
  std::vector<LoopRV> order = out_loops.outer;
  order.push_back(parts[0]);
  order.insert(order.end(), inner.begin(), inner.end());
  order.push_back(parts[1]);
  RELAY_TRY(s.reorder(order));
  return out_loops;
}

// The stage that sums `others` in registers for the groups of columns of `out`, which stores them. Nullopt when the output is of
// another shape, or a sum is none of columns.
struct Stage {
  Columns columns;
  double elements = 0;  // that each column sums
};
tir::StepResult<std::optional<Stage>> sum_in_registers(Schedule& s, const BlockRV& out,
                                                       const std::vector<BlockRV>& others,
                                                       const std::vector<PrimExpr>& wanted,
                                                       int64_t lanes, int64_t chunk) {
  std::optional<Columns> columns = RELAY_TRY(columns_of(s, out, wanted, chunk));
  if (!columns) return std::nullopt;
  for (size_t i = others.size(); i-- > 0;) RELAY_TRY(s.compute_at(others[i], columns->groups));
  Stage stage{*columns};
  for (const BlockRV& rv : others) {
    bool sums = reduces(s.block(rv));
    double each = 1;
    std::vector<LoopRV> below = loops_below(s, rv, columns->groups);
    for (const LoopRV& l : below) {
      each *= static_cast<double>(typical_extent(s.extent(l)));
    }
    stage.elements += each / static_cast<double>(chunk);
    RELAY_TRY(s.set_scope(rv, sums ? tir::Scope::Register : tir::Scope::Local));
    if (sums) {
      if (!RELAY_TRY(sum_columns(s, rv, columns->groups, lanes))) return std::nullopt;
    } else if (!below.empty()) {
      RELAY_TRY(vectors(s, below.back(), lanes));
    }
  }
  RELAY_TRY(vectors(s, columns->group, lanes));
  return stage;
}

struct ColumnReductionParameters : AttrsOf<ColumnReductionParameters> {
  int64_t lanes = 1;
  int64_t vectors = 1;
  int64_t shared = -1;
  SumCutPlan rows;

  static AttrsList describe() {
    return {
        "relay.schedule.ColumnReduction",
        {attribute("lanes", &Self::lanes, "Columns in a vector."),
         attribute("vectors", &Self::vectors, "Vectors of accumulators."),
         attribute("shared", &Self::shared,
                   "The loop that threads share, counted from outside; -1: none."),
         attribute("rows", &Self::rows,
                   "The rows that each of several threads sums by itself, before their sums are "
                   "added.")}};
  }
};

// Threads that share the rows.
constexpr int64_t kMostParts = 1024;

// The extent; a typical one where a run gives it.
double count_or_typical(const PrimExpr& extent) {
  return static_cast<double>(tir::as_int(extent).value_or(64));
}

// Threads share the rows rather than the columns, of which there may be too few: the outermost loop that they divide, for as many of
// them as can be. Kernels around share rows, so each thread then reads what it wrote before. On a Sapphire Rapids the sum of
// 512 rows of 1,024 floats takes 0.38 of the time, the mean of 16,384 rows of 16 0.18, and what follows it 0.23.
SumCutPlan choose_rows(const Block& b, int64_t columns, const Target& target) {
  // Beside which the sums of the parts are little.
  constexpr int64_t kLeastRows = 16;
  double all = 1;
  for (const tir::IterVar& i : b->iters) all *= count_or_typical(i->extent);
  if (!pays_threads(target, all) ||
      all < static_cast<double>(columns * kLeastRows * target.num_cores)) {
    return {};
  }
  SumCutPlan open;
  for (int64_t parts = std::min<int64_t>(target.num_cores, kMostParts); parts > 1; --parts) {
    for (size_t i = 0; i < b->iters.size(); ++i) {
      const tir::IterVar& iter = b->iters[i];
      if (iter->kind != IterKind::Reduce) continue;
      const auto extent = tir::as_int(iter->extent);
      if (extent && *extent % parts == 0) return {static_cast<int64_t>(i), parts};
      if (!extent && open.parts == 1) open = {static_cast<int64_t>(i), parts};
    }
    // Parts of an open number of rows may be of different lengths.
    if (open.parts != 1) return open;
  }
  return {};
}

// Sums each part of the rows by a thread; the block sums the parts afterwards. Refused where the rows have no such parts.
tir::StepResult<bool> sum_parts_of_rows(Schedule& s, const BlockRV& rv, const SumCutPlan& rows,
                                        const PrimExpr& columns, int64_t lanes, int64_t chunk) {
  // Inside of the reduction's loops all loops are those of the parts.
  const std::vector<LoopRV> loops = s.get_loops(rv);
  const LoopRV loop = loops[static_cast<size_t>(rows.iteration)];
  std::vector<LoopRV> order{loop};
  for (const bool reduced : {true, false}) {
    for (size_t i = 0; i < loops.size(); ++i) {
      const bool is_reduced = s.block(rv)->iters[i]->kind == IterKind::Reduce;
      if (is_reduced == reduced && !(loops[i] == loop)) order.push_back(loops[i]);
    }
  }
  RELAY_TRY(s.reorder(order));
  const LoopRV part = RELAY_TRY(s.split(loop, {rows.parts, -1}))[0];
  RELAY_TRY(s.mask_reduction(rv));  // a part of an open number of rows may be shorter, or none
  const BlockRV partial = RELAY_TRY(s.rfactor(rv, part));
  const auto rank = static_cast<int64_t>(s.block(partial)->writes[0]->buffer->shape.size());
  std::vector<tir::LayoutAxis> parts_first{{rank - 1}};
  for (int64_t d = 0; d + 1 < rank; ++d) parts_first.push_back({d});
  RELAY_TRY(s.transform_layout(partial, parts_first));
  const BlockRV out = RELAY_TRY(s.cache_write(partial, tir::Scope::Register));
  const auto stage = RELAY_TRY(
      sum_in_registers(s, out, {partial}, {tir::index(rows.parts), columns}, lanes, chunk));
  if (!stage) return false;
  RELAY_TRY(s.parallel(stage->columns.outer[0]));
  return true;
}

// Lanes over the last axis, the accumulators of up to eight vectors in registers over the whole
// reduction, and what follows applied before they are stored. Windows that may reach over the
// border are peeled, so that inside no element is tested. Empty for sums of products, and when the
// last axis does not walk neighbouring elements.
Outcome schedule_column_reduction(Schedule& s, ColumnReductionParameters& parameters,
                                  Decider& decide) {
  // The loop over the columns; none where the reduction has no such loop.
  auto columns_loop = [](const Schedule& at, const BlockRV& rv) -> std::optional<LoopRV> {
    Block b = at.block(rv);
    std::vector<LoopRV> loops = at.get_loops(rv);
    for (size_t i = std::min(loops.size(), b->iters.size()); i-- > 0;) {
      if (b->iters[i]->kind == IterKind::DataParallel && at.extent(loops[i]) != 1) return loops[i];
    }
    return std::nullopt;
  };
  inline_elements(s, [&](const Schedule& at, const BlockRV& rv) {
    std::optional<LoopRV> last = columns_loop(at, rv);
    return last && is_contiguous(at, rv, *last);
  });
  std::vector<PrimExpr> wanted;
  std::vector<BlockRV> reductions, others;
  for (const BlockRV& rv : s.get_blocks()) {
    Block b = s.block(rv);
    if (!reduces(b)) continue;
    std::vector<LoopRV> loops = s.get_loops(rv);
    if (loops.size() != b->iters.size() || (sums_products(b) && !uses_factors_once(b)))
      return Declined{};
    std::vector<PrimExpr> mine;
    for (size_t i = 0; i < loops.size(); ++i) {
      if (b->iters[i]->kind == IterKind::Opaque) return Declined{};
      if (b->iters[i]->kind != IterKind::DataParallel || s.extent(loops[i]) == 1) continue;
      mine.push_back(b->iters[i]->extent);
    }
    if (mine.empty() || !is_contiguous(s, rv, *columns_loop(s, rv))) return Declined{};
    bool same = mine.size() == wanted.size();
    for (size_t i = 0; same && i < mine.size(); ++i) same = structural_equal(mine[i], wanted[i]);
    if (!reductions.empty() && !same) return Declined{};
    wanted = mine;
    reductions.push_back(rv);
  }
  if (reductions.empty()) return Declined{};
  auto channels = tir::as_int(wanted.back());
  BlockRV out;
  if (!channels || !RELAY_TRY(split_output(s, out, others))) return Declined{};
  const int64_t lanes = decide.number(parameters.lanes, kLanes, [&](const Target& target) {
    return lanes_of(s.block(reductions[0]), target);
  });
  const int64_t chunk =
      lanes * decide.number(parameters.vectors, kVectorsAtOnce, [&](const Target& target) {
        return vectors_at_once((*channels + lanes - 1) / lanes, target);
      });
  std::string text = "columns: " + std::to_string(chunk / lanes) + "x" + std::to_string(lanes) +
                     " lanes in registers";
  const bool may_cut = wanted.size() == 1 && reductions.size() == 1 && others == reductions &&
                       std::ranges::none_of(s.block(others[0])->iters, [](const tir::IterVar& i) {
                         return tir::as_int(i->extent) == 0;
                       });
  const SumCutPlan rows = decide.value(parameters.rows, [&](const Target& target) {
    return may_cut ? choose_rows(s.block(others[0]), *channels, target) : SumCutPlan{};
  });
  if (rows.parts != 1) {
    const std::vector<tir::IterVar>& iters = s.block(others[0])->iters;
    const bool inside = rows.iteration >= 0 && rows.iteration < static_cast<int64_t>(iters.size());
    const tir::IterVar at = inside ? iters[static_cast<size_t>(rows.iteration)] : nullptr;
    if (!may_cut || !at || at->kind != IterKind::Reduce || rows.parts < 1 ||
        rows.parts > kMostParts || tir::as_int(at->extent).value_or(0) % rows.parts != 0) {
      decide.refuse("rows cannot be cut in " + std::to_string(rows.parts) + " parts");
      return Declined{};
    }
    if (!RELAY_TRY(sum_parts_of_rows(s, others[0], rows, wanted.back(), lanes, chunk))) {
      return Declined{};
    }
    text += ", threads over " + std::to_string(rows.parts) + " parts of the rows";
  }
  const auto stage = RELAY_TRY(sum_in_registers(s, out, others, wanted, lanes, chunk));
  if (!stage) return Declined{};
  const Columns* columns = &stage->columns;

  double work = static_cast<double>(*channels);
  for (const LoopRV& l : columns->outer) {
    work *= static_cast<double>(typical_extent(s.extent(l)));
  }
  work *= std::max(stage->elements, 1.0);

  LoopRV groups = columns->groups;
  BlockRV windows = reductions[0];
  if (*channels % chunk != 0 && *channels > chunk) {
    groups = RELAY_TRY(s.partition(groups, *channels / chunk)).head;
  }
  // Borders, outermost first; inside the outer border all is as it was.
  std::vector<LoopRV> outer = columns->outer;
  bool peeled = false;
  for (size_t i = 0; i < outer.size(); ++i) {
    if (s.extent(outer[i]) <= 0) continue;
    auto [low, high] = border(s, windows, outer[i], outer);
    if (low > 0) {
      tir::Partition p = RELAY_TRY(s.partition(outer[i], low));
      windows = p.copy_of(windows);
      groups = p.copy_of(groups);
      for (size_t j = i + 1; j < outer.size(); ++j) outer[j] = p.copy_of(outer[j]);
      outer[i] = p.tail;
    }
    if (high > 0) outer[i] = RELAY_TRY(s.partition(outer[i], s.extent(outer[i]) - high)).head;
    peeled |= low + high > 0;
  }
  if (peeled) text += ", borders peeled";
  // The groups stand inside the others.
  outer.push_back(groups);
  const int64_t last = static_cast<int64_t>(outer.size()) - 1;
  const int64_t which =
      decide.number(parameters.shared, {-1, last}, [&](const Target& target) -> int64_t {
        if (!pays_threads(target, work)) return -1;
        auto wide = std::find_if(outer.begin(), outer.end() - 1, [&](const LoopRV& l) {
          return s.extent(l) < 0 || s.extent(l) >= 2 * target.num_cores;
        });
        return s.extent(*wide) == 1 ? -1 : wide - outer.begin();
      });
  if (which >= 0) {
    const LoopRV& shared = outer[static_cast<size_t>(which)];
    RELAY_TRY(s.parallel(shared));
    text += ", threads over " + shared.var->name;
  }
  return Report{text};
}

}  // namespace

const ScheduleRule kColumnReductionRule =
    schedule_rule<ColumnReductionParameters, schedule_column_reduction>(
        "column_reduction", "reductions of leading axes");

}  // namespace relay
