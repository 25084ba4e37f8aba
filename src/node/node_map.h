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

#include <bit>
#include <cstdint>
#include <memory>
#include <utility>

#include "node/node.h"

namespace relay {

template <class V>
class NodeMap {
 public:
  NodeMap() = default;
  NodeMap(NodeMap&& other) noexcept { swap(other); }
  NodeMap& operator=(NodeMap&& other) noexcept {
    swap(other);
    return *this;
  }

  size_t size() const { return size_; }
  bool contains(const Node* key) const { return find(key) != nullptr; }

  // The value of a key, or null.
  V* find(const Node* key) {
    if (capacity_ == 0) return nullptr;
    Entry& e = slots_[slot(key)];
    return e.key == nullptr ? nullptr : &e.value;
  }
  const V* find(const Node* key) const { return const_cast<NodeMap*>(this)->find(key); }

  // The value of a key that is there.
  const V& at(const Node* key) const {
    const V* found = find(key);
    RELAY_CHECK(found != nullptr, "the node is not in the map");
    return *found;
  }

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

  // Room for that many keys in all.
  void reserve(size_t count) {
    size_t capacity = kFirst;
    while (count * 4 >= capacity * 3) capacity *= 2;
    if (capacity > capacity_) resize(capacity);
  }

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
  // Blocks of 1 KB hold about as many nodes as they have places.
  static constexpr int kBlockBits = 10, kPlaceBits = 6;

  // Where the key is or would be.
  size_t slot(const Node* key) const {
    // Nodes that were made one after the other are near in memory and are walked one after the
    // other: those of one block get places near each other, which the processor fetches together,
    // and the blocks are spread. The high bits of a product with 2^64 divided by the golden ratio
    // are well spread.
    auto address = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(key));
    uint64_t mixed = (address >> kBlockBits) * 0x9E3779B97F4A7C15u;
    size_t inside = (address >> kPlaceBits) & ((1u << (kBlockBits - kPlaceBits)) - 1);
    for (size_t at = ((mixed >> shift_) + inside) & (capacity_ - 1);;
         at = (at + 1) & (capacity_ - 1)) {
      if (slots_[at].key == key || slots_[at].key == nullptr) return at;
    }
  }

  void grow() { resize(capacity_ == 0 ? kFirst : capacity_ * 2); }

  void resize(size_t capacity) {
    std::unique_ptr<Entry[]> before = std::move(slots_);
    size_t count = std::exchange(capacity_, capacity);
    shift_ = 64 - std::countr_zero(capacity);
    slots_ = std::make_unique<Entry[]>(capacity_);
    for (size_t i = 0; i < count; ++i) {
      if (before[i].key != nullptr) slots_[slot(before[i].key)] = std::move(before[i]);
    }
  }

  void swap(NodeMap& other) {
    std::swap(slots_, other.slots_);
    std::swap(capacity_, other.capacity_);
    std::swap(size_, other.size_);
    std::swap(shift_, other.shift_);
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
  void reserve(size_t count) { entries_.reserve(count); }
  void clear() { entries_.clear(); }

 private:
  struct Nothing {};
  NodeMap<Nothing> entries_;
};

}  // namespace relay
