#include "runtime/vm/ref_list.h"

#include <algorithm>
#include <new>
#include <unordered_map>
#include <vector>

#include "runtime/core/immediate.h"
#include "runtime/core/object_pool.h"

namespace relay::runtime {

// Finds the garbage among the list's references.
struct RefList::Collector {
  // Every cell that the references reach, and how many of its owners are among them.
  std::unordered_map<Cell*, uint32_t> owners;
  std::unordered_map<Cell*, bool> live;
  std::vector<Cell*> work;

  template <typename Visit>
  static void for_each_cell(Cell* cell, const Visit& visit) {
    for (uint32_t n = 0; n < cell->count; ++n) {
      Object* field = cell->fields[n];
      if (is_object(field) && field->kind != ObjectKind::tensor) visit(static_cast<Cell*>(field));
    }
  }

  void reach(const std::vector<Cell*>& refs) {
    for (Cell* ref : refs) {
      if (owners.emplace(ref, 0).second) work.push_back(ref);
    }
    while (!work.empty()) {
      Cell* cell = work.back();
      work.pop_back();
      for_each_cell(cell, [&](Cell* field) {
        auto [it, fresh] = owners.emplace(field, 0);
        ++it->second;
        if (fresh) work.push_back(field);
      });
    }
  }

  // References that other objects own live, and so does everything reachable from them.
  void mark() {
    for (auto& [cell, count] : owners) {
      if (cell->refs.load(std::memory_order_acquire) > count && live.emplace(cell, true).second) {
        work.push_back(cell);
      }
    }
    while (!work.empty()) {
      Cell* cell = work.back();
      work.pop_back();
      for_each_cell(cell, [&](Cell* field) {
        if (live.emplace(field, true).second) work.push_back(field);
      });
    }
  }
};

RefList::~RefList() {
  if (head_ == nullptr) return;
  try {
    collect(true);
  } catch (const std::bad_alloc&) {
    // Without memory to find the garbage, cycles are kept.
  }
  unlink_all_refs(head_);
  release(head_);
}

void RefList::add(Cell* ref, const Object* content) {
  auto* cell = static_cast<const Cell*>(content);
  // A value whose parts are all tensors and scalars leads to no reference.
  bool leads_on = cell->kind == ObjectKind::ref;
  for (uint32_t n = 0; n < cell->count && !leads_on; ++n) {
    const Object* field = cell->fields[n];
    leads_on = is_object(field) && field->kind != ObjectKind::tensor;
  }
  if (!leads_on) return;
  if (head_ == nullptr) head_ = make_ref_cell();
  ++added_;
  link_ref(head_, ref);
  ref->tag = 1;
}

void RefList::collect(bool always) {
  if (head_ == nullptr || (!always && added_ < limit_)) return;
  added_ = 0;
  std::vector<Cell*> refs = linked_refs(head_);
  Collector c;
  c.reach(refs);
  c.mark();
  std::vector<Cell*> dead;
  std::ranges::copy_if(refs, std::back_inserter(dead),
                       [&](Cell* ref) { return !c.live.contains(ref); });
  limit_ = std::max<size_t>(4096, 2 * (refs.size() - dead.size()));
  // Without their content the references close no cycle, and counts free the rest.
  for (Cell* ref : dead) retain(ref);
  for (Cell* ref : dead) release_value(std::exchange(ref->fields[0], nullptr));
  for (Cell* ref : dead) release(ref);
}

}  // namespace relay::runtime
