// Maps and sets with nodes as keys, by identity.
//
//   NodeSet seen;
//   if (!seen.insert(&node)) return;   // met before
//
// One block of memory for all entries (open addressing, linear probing): walks over large programs
// spend their time here, and a table with an allocation for each entry costs several times as much.
// The map does not keep its keys alive. Entries are not removed one by one; a reference to a value
// holds until the next insertion.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "node/node.h"

namespace relay {

template <class V>
class NodeMap {
 public:
  NodeMap() = default;
  NodeMap(const NodeMap&) = delete;
  NodeMap& operator=(const NodeMap&) = delete;

  size_t size() const { return size_; }
  bool contains(const Node* key) const { return find(key) != nullptr; }

  // The value of a key, or null.
  V* find(const Node* key) {
    if (capacity_ == 0) return nullptr;
    Entry& e = slots_[slot(key)];
    return e.key == nullptr ? nullptr : &e.value;
  }
  const V* find(const Node* key) const { return const_cast<NodeMap*>(this)->find(key); }

  // The value of a key, which is not null, made if it is not there; and whether it was made.
  std::pair<V&, bool> emplace(const Node* key) {
    if (size_ * 4 >= capacity_ * 3) grow();
    Entry& e = slots_[slot(key)];
    bool fresh = e.key == nullptr;
    e.key = key;
    size_ += fresh;
    return {e.value, fresh};
  }
  V& operator[](const Node* key) { return emplace(key).first; }

  void clear() {
    slots_.reset();
    capacity_ = size_ = 0;
  }

 private:
  struct Entry {
    const Node* key = nullptr;
    [[no_unique_address]] V value{};
  };
  static constexpr size_t kFirst = 8;

  // Where the key is or would be.
  size_t slot(const Node* key) const {
    // The high bits of a product with 2^64 divided by the golden ratio are well spread.
    uint64_t mixed = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(key)) * 0x9E3779B97F4A7C15u;
    for (size_t at = mixed >> shift_;; at = (at + 1) & (capacity_ - 1)) {
      if (slots_[at].key == key || slots_[at].key == nullptr) return at;
    }
  }

  void grow() {
    std::unique_ptr<Entry[]> before = std::move(slots_);
    size_t count = capacity_;
    capacity_ = count == 0 ? kFirst : count * 2;
    shift_ = count == 0 ? 64 - 3 : shift_ - 1;
    slots_ = std::make_unique<Entry[]>(capacity_);
    for (size_t i = 0; i < count; ++i) {
      if (before[i].key != nullptr) slots_[slot(before[i].key)] = std::move(before[i]);
    }
  }

  std::unique_ptr<Entry[]> slots_;
  size_t capacity_ = 0;  // a power of two
  size_t size_ = 0;
  int shift_ = 64;
};

class NodeSet {
 public:
  // Whether the node was not there before.
  bool insert(const Node* n) { return entries_.emplace(n).second; }
  bool contains(const Node* n) const { return entries_.contains(n); }
  size_t size() const { return entries_.size(); }
  void clear() { entries_.clear(); }

 private:
  struct Nothing {};
  NodeMap<Nothing> entries_;
};

}  // namespace relay
