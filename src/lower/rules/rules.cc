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

}  // namespace

tir::PrimFunc schedule_kernel(const tir::PrimFunc& composed, const TargetInfo& target,
                              int opt_level) {
  if (opt_level == 0) return composed;
  Schedule s(composed);
  int inlined = inline_producers(s);
  std::string text = "loops: ";
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
