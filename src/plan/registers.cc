#include "plan/registers.h"

#include <algorithm>
#include <queue>

namespace relay::plan {
namespace {

bool allocates(StepKind kind) {
  return kind == StepKind::alloc || kind == StepKind::alloc_sized ||
         kind == StepKind::alloc_from_shape;
}

void share(PlanFunction& f, Place place, int32_t& count) {
  const std::vector<Lifetime> lives = register_lives(f, place);
  const auto params = place == Place::object ? static_cast<int32_t>(f.params.size()) : 0;
  std::vector<int32_t> order;
  for (int32_t r = params; r < count; ++r) order.push_back(r);
  std::ranges::stable_sort(order, {},
                           [&](int32_t r) { return lives[static_cast<size_t>(r)].first; });
  using Taken = std::pair<int32_t, int32_t>;  // the last step, the register
  std::priority_queue<Taken, std::vector<Taken>, std::greater<>> taken;
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> free;
  std::vector<int32_t> renamed(static_cast<size_t>(count));
  int32_t next = params;
  for (int32_t r : order) {
    const Lifetime& life = lives[static_cast<size_t>(r)];
    for (; !taken.empty() && taken.top().first < life.first; taken.pop()) {
      free.push(taken.top().second);
    }
    int32_t to = next;
    if (free.empty()) {
      ++next;
    } else {
      to = free.top();
      free.pop();
    }
    renamed[static_cast<size_t>(r)] = to;
    taken.emplace(std::max(life.first, life.last), to);
  }
  for (PlanValue& v : f.values) {
    if (v.place == place && v.index >= params) v.index = renamed[static_cast<size_t>(v.index)];
  }
  count = next;
}

}  // namespace

std::vector<Lifetime> register_lives(const PlanFunction& f, Place place) {
  const int32_t count = place == Place::object ? f.num_objects : f.num_scalars;
  std::vector<Lifetime> lives(static_cast<size_t>(count));
  for (const PlanValue& v : f.values) {
    if (v.place == place) lives[static_cast<size_t>(v.index)].include(v.life);
  }
  auto loop = std::ranges::find(f.steps, StepKind::loop, &Step::kind);
  if (loop == f.steps.end()) return lives;
  const auto begin = static_cast<int32_t>(loop - f.steps.begin()),
             end = static_cast<int32_t>(f.steps.size()) - 1;
  for (const Step& s : f.steps) {
    if (!allocates(s.kind)) continue;
    const PlanValue& made = f.value(s.results[0]);
    if (made.place == place) lives[static_cast<size_t>(made.index)].include({0, end});
  }
  for (Lifetime& life : lives) {
    if (life.first < begin && life.last > begin) life.last = end;
  }
  return lives;
}

void share_registers(PlanFunction& f) {
  share(f, Place::object, f.num_objects);
  share(f, Place::scalar, f.num_scalars);
}

}  // namespace relay::plan
