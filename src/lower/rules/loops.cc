#include <algorithm>

#include "lower/rules/common.h"
#include "lower/rules/lanes.h"
#include "lower/rules/transposition.h"

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

}  // namespace

std::string schedule_block(Schedule& s, const BlockRV& rv, const Target& target) {
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
  std::string note = schedule_transposition(s, rv, target);
  if (!note.empty()) return note;
  int64_t lanes =
      target.vector_bits / 8 / static_cast<int64_t>(b->writes[0]->buffer->dtype.bytes());
  LoopRV last = parallel.back();
  int64_t extent = s.extent(last);
  // The end of a row that lanes do not divide is a vector with a mask; a row that is shorter than a
  // vector is cut into what divides it.
  int64_t width = lanes;
  const bool open = extent < 0;
  while (!open && extent < lanes && width > 1 && extent % width != 0) width /= 2;
  if (extent != 0 && width > 1) {
    if (!reduction.empty()) {
      std::vector<LoopRV> order(parallel.begin(), parallel.end() - 1);
      order.insert(order.end(), reduction.begin(), reduction.end());
      order.push_back(last);
      s.reorder(order);
    }
    constexpr int64_t kLineBytes = 64;
    int64_t line = kLineBytes / static_cast<int64_t>(b->writes[0]->buffer->dtype.bytes());
    LoopRV across = reduction.empty() ? transposed_loop(s, rv, parallel, line) : LoopRV{};
    LoopRV inner = last;
    if (open) {
      // Whole vectors apart from the end, as a mask makes a branch of every lane that reads far.
      s.vectorize(s.split(s.partition_tiles(last, width).tail, {-1, width})[1]);
    }
    if (extent != width) {
      std::vector<LoopRV> parts = s.split(last, {-1, width});
      parallel.back() = parts[0];
      inner = parts[1];
    } else {
      parallel.pop_back();
    }
    note = std::to_string(width) + " lanes";
    if (across.var) {
      // As many rows as a line has elements, so that each line is used up while it is at hand.
      const int64_t count = s.extent(across);
      std::vector<LoopRV> rows = s.split(across, {-1, count < 0 ? line : std::min(line, count)});
      std::replace(parallel.begin(), parallel.end(), across, rows[0]);
      std::vector<LoopRV> order = parallel;
      order.insert(order.end(), {rows[1], inner});
      s.reorder(order);
      note += " in blocks of " + std::to_string(s.extent(rows[1])) + " rows";
    }
    s.vectorize(inner);
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
