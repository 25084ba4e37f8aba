#include <algorithm>

#include "lower/rules/common.h"

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

}  // namespace relay
