#include "plan/memory.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <numeric>
#include <set>

namespace relay::plan {
namespace {

// What a buffer takes, one without bytes, too.
int64_t piece(int64_t bytes) { return std::max(kAlignment, aligned(bytes)); }

// Overlaps in time up to which buffers are placed by size: a quarter of a second's work (measured).
constexpr int64_t kMostPairs = int64_t{16} << 20;

// What begins and ends to live at a step.
struct Change {
  int64_t bytes = 0;
  int64_t begin = 0, end = 0;  // how many buffers
};

// The indices of the buffers, those that come first by `before` first.
template <class F>
std::vector<size_t> in_order(const std::vector<BufferLifetime>& buffers, const F& before) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return before(buffers[a], buffers[b]); });
  return order;
}

// Larger buffers first, each into the smallest gap that is free during its whole life.
std::vector<int64_t> by_size(const std::vector<BufferLifetime>& buffers) {
  std::vector<int64_t> offsets(buffers.size());
  // Buffers placed so far, by how long they live, to a power of two, and the step at which they begin: those that
  // overlap a given one are found among the neighbours in time.
  std::array<std::multimap<int64_t, size_t>, 64> placed;
  std::vector<std::pair<int64_t, int64_t>> busy;
  for (size_t i : in_order(buffers, [](auto&a, auto&b) { return a.bytes > b.bytes; })) {
    const BufferLifetime& b = buffers[i];
    busy.clear();
    for (size_t length = 0; length < placed.size(); ++length) {
      if (placed[length].empty()) continue;
      auto end = placed[length].upper_bound(b.last);
      for (auto it = placed[length].lower_bound(b.first - (int64_t{1} << length)); it != end;
           ++it) {
        const BufferLifetime& other = buffers[it->second];
        if (other.last < b.first) continue;
        busy.emplace_back(offsets[it->second], offsets[it->second] + piece(other.bytes));
      }
    }
    std::sort(busy.begin(), busy.end());
    int64_t size = piece(b.bytes), best = -1, best_gap = 0, at = 0;
    for (const auto& [from, to] : busy) {
      int64_t gap = from - at;
      if (gap >= size && (best < 0 || gap < best_gap)) {
        best = at;
        best_gap = gap;
      }
      at = std::max(at, to);
    }
    offsets[i] = best >= 0 ? best : at;
    const auto length =
        static_cast<size_t>(std::bit_width(static_cast<uint64_t>(b.last - b.first)));
    placed[length].emplace(b.first, i);
  }
  return offsets;
}

// The memory that is free at a step.
class FreeMemory {
 public:
  // The smallest piece that is large enough, else the end.
  int64_t take(int64_t size) {
    auto best = by_size_.lower_bound({size, 0});
    if (best == by_size_.end()) {
      int64_t at = end_;
      // What is free in front of the end is part of it.
      if (!pieces_.empty() && pieces_.rbegin()->first + pieces_.rbegin()->second == end_) {
        at = pieces_.rbegin()->first;
        remove(std::prev(pieces_.end()));
      }
      end_ = at + size;
      return at;
    }
    auto [bytes, at] = *best;
    remove(pieces_.find(at));
    if (bytes > size) add(at + size, bytes - size);
    return at;
  }
  void give(int64_t at, int64_t size) {
    auto next = pieces_.lower_bound(at);
    if (next != pieces_.end() && next->first == at + size) {
      size += next->second;
      next = remove(next);
    }
    if (next != pieces_.begin()) {
      auto before = std::prev(next);
      if (before->first + before->second == at) {
        at = before->first;
        size += before->second;
        remove(before);
      }
    }
    add(at, size);
  }

 private:
  using Pieces = std::map<int64_t, int64_t>;  // bytes by offset

  void add(int64_t at, int64_t bytes) {
    pieces_.emplace(at, bytes);
    by_size_.emplace(bytes, at);
  }
  Pieces::iterator remove(Pieces::iterator it) {
    by_size_.erase({it->second, it->first});
    return pieces_.erase(it);
  }

  Pieces pieces_;
  std::set<std::pair<int64_t, int64_t>> by_size_;  // bytes, offset
  int64_t end_ = 0;
};

// In the order in which they begin, each into the smallest piece that is free then.
std::vector<int64_t> by_time(const std::vector<BufferLifetime>& buffers) {
  std::vector<int64_t> offsets(buffers.size());
  auto ends_first = [](auto& a, auto& b) { return a.last < b.last; };
  auto begins_first = [](auto& a, auto& b) {
    return a.first != b.first ? a.first < b.first : a.bytes > b.bytes;
  };
  const std::vector<size_t> ending = in_order(buffers, ends_first);
  FreeMemory free;
  auto done = ending.begin();
  for (size_t i : in_order(buffers, begins_first)) {
    for (; done != ending.end() && buffers[*done].last < buffers[i].first; ++done)
      free.give(offsets[*done], piece(buffers[*done].bytes));
    offsets[i] = free.take(piece(buffers[i].bytes));
  }
  return offsets;
}

}  // namespace

namespace {

// What is not part of another buffer has memory of its own.
ArenaLayout place_wholes(PlanFunction& f, Device device) {
  auto is_whole = [&](const PlanBuffer& b) { return b.whole < 0 && b.device == device; };
  std::vector<BufferLifetime> wholes;
  for (const PlanBuffer& b : f.buffers) {
    if (is_whole(b)) wholes.push_back({b.bytes, b.life.first, b.life.last});
  }
  ArenaLayout layout = lay_out(wholes);
  size_t next = 0;
  for (PlanBuffer& b : f.buffers) {
    if (is_whole(b)) b.position = layout.offsets[next++];
  }
  return layout;
}

}  // namespace

void place_buffers(PlanFunction& f) {
  const ArenaLayout host = place_wholes(f, Device::cpu());
  f.arena_bytes = host.arena_bytes;
  f.lower_bound = host.lower_bound;
  f.device_arenas.clear();
  for (const PlanBuffer& b : f.buffers) {
    const bool known =
        b.device == Device::cpu() ||
        std::ranges::find(f.device_arenas, b.device, &DeviceArena::device) != f.device_arenas.end();
    if (known) continue;
    const ArenaLayout layout = place_wholes(f, b.device);
    f.device_arenas.push_back({b.device, layout.arena_bytes, layout.lower_bound});
  }
  for (PlanBuffer& b : f.buffers) {
    if (b.whole >= 0) b.position = f.buffer(b.whole).position + b.offset;
  }
}

ArenaLayout lay_out(const std::vector<BufferLifetime>& buffers) {
  ArenaLayout layout;
  std::map<int64_t, Change> changes;
  for (const BufferLifetime& b : buffers) {
    Change &begins = changes[b.first], &ends = changes[b.last + 1];
    begins.bytes += piece(b.bytes);
    ends.bytes -= piece(b.bytes);
    ++begins.begin;
    ++ends.end;
  }
  int64_t bytes = 0, alive = 0, pairs = 0;
  for (const auto& [step, change] : changes) {
    bytes += change.bytes;
    layout.lower_bound = std::max(layout.lower_bound, bytes);
    alive -= change.end;
    pairs += change.begin * (alive + change.begin);
    alive += change.begin;
  }
  layout.offsets = pairs <= kMostPairs ? by_size(buffers) : by_time(buffers);
  for (size_t i = 0; i < buffers.size(); ++i) {
    layout.arena_bytes = std::max(layout.arena_bytes, layout.offsets[i] + piece(buffers[i].bytes));
  }
  return layout;
}

}  // namespace relay::plan
