#include "plan/memory.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace relay::plan {
namespace {

constexpr int64_t kAlignment = 64;

int64_t aligned(int64_t bytes) {
  return std::max<int64_t>(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
}

}  // namespace

void place_buffers(PlanFunction& f) {
  // What is not part of another buffer has memory of its own.
  std::vector<BufferLifetime> wholes;
  for (const PlanBuffer& b : f.buffers) {
    if (b.whole < 0) wholes.push_back({b.bytes, b.life.first, b.life.last});
  }
  ArenaLayout layout = lay_out(wholes);
  f.arena_bytes = layout.arena_bytes;
  f.lower_bound = layout.lower_bound;
  size_t next = 0;
  for (PlanBuffer& b : f.buffers) {
    b.position = b.whole < 0 ? layout.offsets[next++] : f.buffer(b.whole).position + b.offset;
  }
}

ArenaLayout lay_out(const std::vector<BufferLifetime>& buffers) {
  ArenaLayout layout;
  layout.offsets.resize(buffers.size());
  std::map<int64_t, int64_t> change;  // bytes that begin or end to live at a step
  for (const BufferLifetime& b : buffers) {
    change[b.first] += aligned(b.bytes);
    change[b.last + 1] -= aligned(b.bytes);
  }
  int64_t alive = 0;
  for (const auto& [step, bytes] : change) {
    alive += bytes;
    layout.lower_bound = std::max(layout.lower_bound, alive);
  }
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  // Buffers placed so far, by the step at which they begin; lives are short, so those that overlap
  // a given one are found among the neighbours in time.
  int64_t longest = 0;
  for (const BufferLifetime& b : buffers) longest = std::max(longest, b.last - b.first);
  std::multimap<int64_t, size_t> placed;
  std::vector<std::pair<int64_t, int64_t>> busy;
  for (size_t i : order) {
    const BufferLifetime& b = buffers[i];
    busy.clear();
    auto end = placed.upper_bound(b.last);
    for (auto it = placed.lower_bound(b.first - longest); it != end; ++it) {
      const BufferLifetime& other = buffers[it->second];
      if (other.last < b.first) continue;
      int64_t offset = layout.offsets[it->second];
      busy.emplace_back(offset, offset + aligned(other.bytes));
    }
    std::sort(busy.begin(), busy.end());
    int64_t size = aligned(b.bytes), best = -1, best_gap = 0, at = 0;
    for (const auto& [from, to] : busy) {
      int64_t gap = from - at;
      if (gap >= size && (best < 0 || gap < best_gap)) {
        best = at;
        best_gap = gap;
      }
      at = std::max(at, to);
    }
    layout.offsets[i] = best >= 0 ? best : at;
    layout.arena_bytes = std::max(layout.arena_bytes, layout.offsets[i] + size);
    placed.emplace(b.first, i);
  }
  return layout;
}

}  // namespace relay::plan
