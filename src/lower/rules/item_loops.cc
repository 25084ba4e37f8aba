#include "lower/rules/item_loops.h"

#include <algorithm>

#include "tir/passes/statements.h"

namespace relay {

using tir::Block;
using tir::BlockRV;
using tir::IterKind;
using tir::LoopRV;
using tir::Schedule;

namespace {

// Whether the block computes each element from the buffer's element at the same index and no other of it.
bool reads_same_element(const Block& b, const tir::Buffer& buffer) {
  bool reads = false;
  for (const tir::Region& r : b->reads) {
    if (!(r->buffer == buffer)) continue;
    reads = true;
    if (r->mins.size() != b->iters.size()) return false;
    for (size_t i = 0; i < r->mins.size(); ++i) {
      const bool only = tir::as_int(buffer->shape[i]) == 1 && tir::as_int(r->mins[i]) == 0;
      const bool same =
          r->mins[i].get() == b->iters[i]->var.get() && tir::as_int(r->extents[i]) == 1;
      if (!only && !same) return false;
    }
  }
  return reads;
}

}  // namespace

std::optional<BlockLoops> loops_of(const Schedule& s, const BlockRV& rv) {
  const Block b = s.block(rv);
  const std::vector<LoopRV> loops = s.get_loops(rv);
  if (loops.size() != b->iters.size()) return std::nullopt;
  BlockLoops out;
  for (size_t i = 0; i < loops.size(); ++i) {
    if (b->iters[i]->kind == IterKind::Opaque) return std::nullopt;
    auto& of_kind = b->iters[i]->kind == IterKind::DataParallel ? out.parallel : out.reduction;
    of_kind.push_back(loops[i]);
  }
  return out;
}

int64_t iterations(const Schedule& s, const std::vector<LoopRV>& loops) {
  int64_t out = 1;
  for (const LoopRV& l : loops) {
    const int64_t extent = s.extent(l);
    if (extent < 0) return -1;
    out *= extent;
  }
  return out;
}

tir::StepResult<std::vector<LoopRV>> bind_loops(Schedule& s, const std::vector<LoopRV>& loops,
                                                const tir::ThreadTags& tags) {
  // Loops of one iteration vanish.
  std::vector<LoopRV> axes;
  for (const LoopRV& l : loops) {
    if (s.extent(l) != 1) axes.push_back(l);
  }
  if (axes.empty()) axes.push_back(loops.back());
  constexpr size_t kMost = std::tuple_size_v<tir::ThreadTags>;
  if (axes.size() > kMost) {
    auto last = std::ranges::find(loops, axes[axes.size() - kMost]);
    LoopRV outer = RELAY_TRY(s.fuse({loops.begin(), last + 1}));
    axes.erase(axes.begin(), axes.end() - static_cast<std::ptrdiff_t>(kMost) + 1);
    axes.insert(axes.begin(), outer);
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    RELAY_TRY(s.bind(axes[axes.size() - 1 - i], std::string(tags[i])));
  }
  return axes;
}

tir::StepResult<> order_loops(Schedule& s, const BlockRV& rv, const BlockLoops& loops) {
  std::vector<LoopRV> order = loops.parallel;
  order.insert(order.end(), loops.reduction.begin(), loops.reduction.end());
  if (order != s.get_loops(rv)) RELAY_TRY(s.reorder(order));
  return {};
}

std::optional<BlockRV> reader_of(const Schedule& s, const BlockRV& rv) {
  const std::vector<BlockRV> readers = s.consumers(rv);
  const Block b = s.block(rv);
  if (readers.size() != 1 || b->writes.size() != 1 || s.is_output(b->writes[0]->buffer)) {
    return std::nullopt;
  }
  const Block reader = s.block(readers[0]);
  auto loops = loops_of(s, readers[0]);
  const bool alone = loops && loops->reduction.empty() && !loops->parallel.empty();
  if (!alone || !reads_same_element(reader, b->writes[0]->buffer)) return std::nullopt;
  return readers[0];
}

}  // namespace relay
