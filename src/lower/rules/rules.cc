#include "lower/rules/rules.h"

#include <algorithm>

#include "node/walk.h"
#include "tir/schedule/schedule.h"

namespace relay {
namespace {

using tir::Block;
using tir::BlockRV;
using tir::IterKind;
using tir::LoopRV;
using tir::Schedule;

// One-core work below which a second thread costs more than it saves: about 5 us.
constexpr double kMinParallelWork = 20000;

bool reduces(const Block& b) {
  return std::any_of(b->iters.begin(), b->iters.end(),
                     [](const tir::IterVar& i) { return i->kind == IterKind::Reduce; });
}

// Worth computing again at every use: reads and index arithmetic only.
bool is_cheap(const Block& b) {
  bool cheap = true;
  post_order(b->body, [&](const Node& n) {
    cheap &= n.kind() != tir::ExprKind::Call && n.kind() != tir::ExprKind::Select;
    if (n.kind() == tir::ExprKind::Binary) {
      auto& op = static_cast<const tir::BinaryNode&>(n);
      cheap &= op.op != tir::BinaryOp::Div || op.dtype.is_integer();
    }
  });
  return cheap;
}

// Producers disappear into their consumers where that costs little.
int inline_producers(Schedule& s) {
  int count = 0;
  for (const BlockRV& rv : s.get_blocks()) {
    if (!s.has_block(rv.name)) continue;
    Block b = s.block(rv);
    if (b->init || reduces(b) || b->writes.size() != 1 || s.is_output(b->writes[0]->buffer))
      continue;
    std::vector<BlockRV> consumers = s.consumers(rv);
    bool into_reduction = std::any_of(consumers.begin(), consumers.end(),
                                      [&](const BlockRV& c) { return reduces(s.block(c)); });
    if (consumers.empty() || ((into_reduction || consumers.size() > 1) && !is_cheap(b))) continue;
    try {
      s.compute_inline(rv);
      ++count;
    } catch (const UserError&) {
      // Not legal here (an opaque block reads it); it stays a loop of its own.
    }
  }
  return count;
}

// Data-parallel loops outside, reductions inside; lanes over the last data-parallel loop, which
// then stands innermost; threads over the outermost.
std::string schedule_block(Schedule& s, const BlockRV& rv, const TargetInfo& target) {
  Block b = s.block(rv);
  std::vector<LoopRV> loops = s.get_loops(rv);
  if (loops.size() != b->iters.size() || loops.empty()) return "";
  std::vector<LoopRV> parallel, reduction;
  double work = 1;
  for (size_t i = 0; i < loops.size(); ++i) {
    int64_t extent = s.extent(loops[i]);
    work *= extent > 0 ? static_cast<double>(extent) : 64;
    if (b->iters[i]->kind == IterKind::DataParallel) {
      parallel.push_back(loops[i]);
    } else if (b->iters[i]->kind == IterKind::Reduce) {
      reduction.push_back(loops[i]);
    } else {
      return "";
    }
  }
  if (parallel.empty()) return "";
  std::string note;
  int64_t lanes =
      target.vector_bits / 8 / static_cast<int64_t>(b->writes[0]->buffer->dtype.bytes());
  LoopRV last = parallel.back();
  int64_t extent = s.extent(last);
  int64_t width = lanes;
  while (width > 1 && extent % width != 0) width /= 2;
  if (extent > 0 && width > 1) {
    if (!reduction.empty()) {
      std::vector<LoopRV> order(parallel.begin(), parallel.end() - 1);
      order.insert(order.end(), reduction.begin(), reduction.end());
      order.push_back(last);
      s.reorder(order);
    }
    LoopRV inner = extent == width ? last : s.split(last, {-1, width})[1];
    s.vectorize(inner);
    note = std::to_string(width) + " lanes";
  }
  LoopRV outer = s.get_loops(rv).front();
  bool outer_is_parallel = outer == parallel.front() || parallel.size() == 1;
  if (target.num_cores > 1 && work >= kMinParallelWork && parallel.size() > 1 &&
      outer_is_parallel) {
    // Axes of size one in front hold no work to share.
    std::vector<LoopRV> fused{parallel.front()};
    for (size_t i = 1; i + 1 < parallel.size() && s.extent(fused.back()) == 1; ++i)
      fused.push_back(parallel[i]);
    LoopRV shared = fused.size() > 1 ? s.fuse(fused) : fused[0];
    if (s.extent(shared) != 1) {
      s.parallel(shared);
      note += std::string(note.empty() ? "" : ", ") + "threads over " + shared.var->name;
    }
  }
  return note;
}

// ---- Tiled sums
// --------------------------------------------------------------------------------------

// The largest divisor of n that is at most `limit`.
int64_t divisor_at_most(int64_t n, int64_t limit) {
  for (int64_t d = std::min(n, limit); d > 1; --d) {
    if (n % d == 0) return d;
  }
  return 1;
}

// True when lanes over `var` read neighbouring elements or one element, in every load of the block.
bool lanes_are_contiguous(const Block& b, const tir::Var& var) {
  bool ok = true;
  post_order(b->body, [&](const Node& n) {
    auto* l = as<tir::LoadNode>(&n);
    if (l == nullptr) return;
    for (size_t d = 0; d < l->indices.size(); ++d) {
      bool used = false;
      post_order(l->indices[d], [&](const Node& x) { used |= &x == var.get(); });
      // Packed weights hold a column's panel first and its place in the panel last.
      auto* quotient = as<tir::BinaryNode>(l->indices[d]);
      bool panel = quotient != nullptr && quotient->op == tir::BinaryOp::FloorDiv;
      if (used && d + 1 != l->indices.size() && !panel) ok = false;
    }
  });
  return ok;
}

// Sums (matrix products, convolutions, depthwise ones): a tile of MR x NR results stays in
// registers over the whole reduction, lanes over the last axis, and what follows is applied before
// it is stored. MR * NR/lanes + NR/lanes + 1 registers at most. Null text when the kernel is no
// such sum.
std::string schedule_tiled_sum(Schedule& s, const TargetInfo& target) {
  BlockRV sum;
  for (const BlockRV& rv : s.get_blocks()) {
    Block b = s.block(rv);
    if (!b->init || !reduces(b)) continue;
    if (!sum.name.empty()) return "";
    sum = rv;
  }
  if (sum.name.empty()) return "";
  Block b = s.block(sum);
  std::vector<tir::IterVar> spatial;
  int64_t reduction = 1;
  for (const tir::IterVar& i : b->iters) {
    auto extent = tir::as_int(i->extent);
    if (!extent) return "";
    if (i->kind == IterKind::DataParallel)
      spatial.push_back(i);
    else if (i->kind == IterKind::Reduce)
      reduction *= *extent;
    else
      return "";
  }
  if (spatial.size() < 2 || b->writes.size() != 1 || !b->writes[0]->buffer->dtype.is_float(32))
    return "";
  if (!lanes_are_contiguous(b, spatial.back()->var)) return "";
  int64_t lanes = target.vector_bits / 32;
  int64_t columns = *tir::as_int(spatial.back()->extent);
  int64_t rows = *tir::as_int(spatial[spatial.size() - 2]->extent);
  int64_t nr = 2 * lanes;
  while (nr > 4 && columns % nr != 0) nr /= 2;
  if (columns % nr != 0) return "";
  int64_t vectors = std::max<int64_t>(1, nr / lanes);
  int64_t mr = divisor_at_most(rows, (target.num_vector_registers - vectors - 1) / vectors);
  if (mr > 14 && rows % 14 == 0) mr = 14;

  std::vector<BlockRV> consumers = s.consumers(sum);
  if (consumers.size() > 1) return "";
  bool stores_itself = consumers.empty();
  BlockRV out = stores_itself ? s.cache_write(sum, tir::Scope::Register) : consumers[0];
  if (!stores_itself) {
    Block c = s.block(out);
    if (reduces(c) || !s.consumers(out).empty() || s.get_loops(out).size() != spatial.size())
      return "";
    s.set_scope(sum, tir::Scope::Register);
  }
  std::vector<LoopRV> loops = s.get_loops(out);
  if (loops.size() != spatial.size()) return "";
  LoopRV column = loops.back(), row = loops[loops.size() - 2];
  std::vector<LoopRV> row_parts = s.split(row, {-1, mr}), column_parts = s.split(column, {-1, nr});
  // Columns outside, so that one panel of weights serves all rows before the next is read.
  std::vector<LoopRV> order{column_parts[0]};
  order.insert(order.end(), loops.begin(), loops.end() - 2);
  order.push_back(row_parts[0]);
  order.push_back(row_parts[1]);
  order.push_back(column_parts[1]);
  s.reorder(order);
  s.compute_at(sum, row_parts[0]);
  auto lanes_over = [&](const LoopRV& inner) {
    int64_t width = std::min(nr, lanes);
    if (nr == width) {
      s.vectorize(inner);
      return;
    }
    std::vector<LoopRV> parts = s.split(inner, {-1, width});
    s.unroll(parts[0]);
    s.vectorize(parts[1]);
  };
  s.unroll(row_parts[1]);
  lanes_over(column_parts[1]);

  // The sum's own loops: reduction outside, the tile inside.
  b = s.block(sum);
  std::vector<LoopRV> inner = s.get_loops(sum);
  auto under = std::find(inner.begin(), inner.end(), row_parts[0]);
  inner.erase(inner.begin(), under + (under == inner.end() ? 0 : 1));
  std::vector<LoopRV> tile, sums;
  for (const LoopRV& loop : inner) {
    bool sums_over = false;
    for (size_t i = 0; i < b->iters.size(); ++i) {
      if (b->iters[i]->kind != IterKind::Reduce) continue;
      post_order(b->bindings[i], [&](const Node& n) { sums_over |= &n == loop.var.get(); });
    }
    (sums_over ? sums : tile).push_back(loop);
  }
  if (tile.empty() || sums.empty()) return "";
  std::vector<LoopRV> nest = sums;
  nest.insert(nest.end(), tile.begin(), tile.end());
  s.reorder(nest);
  for (size_t i = 0; i + 1 < tile.size(); ++i) s.unroll(tile[i]);
  lanes_over(tile.back());

  double work = static_cast<double>(reduction);
  for (const tir::IterVar& i : spatial) work *= static_cast<double>(*tir::as_int(i->extent));
  std::string text =
      "sum: " + std::to_string(mr) + "x" + std::to_string(nr) + " register tile, columns outside";
  if (target.num_cores > 1 && work >= 4 * kMinParallelWork) {
    std::vector<LoopRV> outer(order.begin(), order.end() - 2);
    LoopRV shared = outer.size() > 1 ? s.fuse(outer) : outer[0];
    s.parallel(shared);
    text += ", threads over tiles";
  }
  // What else there is (a padded input) gets plain loops.
  for (const BlockRV& rv : s.get_blocks()) {
    Block other = s.block(rv);
    if (rv == sum || rv == out || other->init || reduces(other) ||
        s.get_loops(rv).size() != other->iters.size())
      continue;
    std::string note = schedule_block(s, rv, target);
    if (!note.empty()) text += "; " + rv.name + " " + note;
  }
  return text;
}

}  // namespace

tir::PrimFunc schedule_kernel(const tir::PrimFunc& composed, const TargetInfo& target,
                              int opt_level) {
  if (opt_level == 0) return composed;
  Schedule s(composed);
  int inlined = inline_producers(s);
  std::string why_not;
  {
    Schedule tiled = s;
    try {
      std::string text = schedule_tiled_sum(tiled, target);
      if (!text.empty()) {
        tiled.annotate_func("schedule", text);
        return tiled.func();
      }
    } catch (const UserError& e) {
      // A step is not legal for this kernel; the general rule takes it.
      why_not = e.diagnostics().front().message + ": " + e.diagnostics().front().found_text;
    }
  }
  std::string text = why_not.empty() ? "loops: " : "loops (no register tile, " + why_not + "): ";
  if (inlined > 0) text += std::to_string(inlined) + " producers inlined; ";
  for (const BlockRV& rv : s.get_blocks()) {
    Schedule before = s;
    std::string note;
    try {
      note = schedule_block(s, rv, target);
    } catch (const UserError& e) {
      s = before;
      note = std::string("as composed (") + e.diagnostics().front().message + ")";
    }
    text += rv.name + (note.empty() ? "" : " " + note) + "; ";
  }
  text.resize(text.size() - 2);
  s.annotate_func("schedule", text);
  return s.func();
}

}  // namespace relay
