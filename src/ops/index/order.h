// The order of the elements of a line: keys that are compared as whole numbers, and sorting them.
//
// Values become unsigned keys whose order is that of the values: NaN behind everything in either
// direction, zeros of either sign alike. Equal keys keep the order of their places, so every sort
// is stable and its result does not depend on how it is done.
#pragma once

#include "ops/loops.h"

namespace relay::ops {

// The dtype of the keys of values of a dtype: 32 bits where they are enough, else 64.
runtime::DType order_key_dtype(runtime::DType data);
// The key of a value, or of each lane of a vector of them.
PrimExpr order_key(const PrimExpr& value, bool ascending);

// (key, place) pairs inside a kernel: room for `size` of them. Where both fit they are one word,
// which halves what a sort moves.
class Entries {
 public:
  // Places are below `places`.
  Entries(const std::string& name, runtime::DType key, const PrimExpr& size,
          const PrimExpr& places);
  // The statement in which they exist.
  tir::Stmt in(tir::Stmt body) const;
  tir::Stmt put(const PrimExpr& at, const PrimExpr& key, const PrimExpr& place) const;
  // This one's entry `at` becomes that of `other`.
  tir::Stmt take(const PrimExpr& at, const Entries& other, const PrimExpr& from) const;
  PrimExpr key(const PrimExpr& at) const;
  PrimExpr place(const PrimExpr& at) const;
  // Whether the entry at `a` comes before the one at `b`. They lie in the order of their places where their keys are equal, and it
  // may be known which of them lies first.
  enum class Order { First, Second, Any };
  PrimExpr precedes(const PrimExpr& a, const PrimExpr& b, Order order) const;
  // Whether an entry is one word.
  bool packed() const { return !places_; }

  runtime::DType key_dtype() const { return key_; }
  const PrimExpr& size() const { return keys_->shape[0]; }

 private:
  runtime::DType key_;
  tir::Buffer keys_, places_;  // packed: the keys with their places in the low bits, and null
};

// Sorts the first `n` entries, which lie in the order of their places where their keys are equal.
// `other` has as much room; the entries in it are lost. `parts` of more than one are counted and
// moved on as many threads. A stable radix sort, least digit first (Knuth, The Art of Computer
// Programming, volume 3, 5.2.5), without the digits above those that differ; in a room of up to 64
// each entry goes behind as many as come before it.
tir::Stmt sort_entries(const Entries& entries, const Entries& other, const PrimExpr& n,
                       int64_t parts);

// The first `n` entries in order, one by one, without sorting all of them, which stay as they are: the least key of each block of
// entries is kept, and those of the block whose entry was taken are compared again. Where an eighth of the entries is taken,
// sorting takes as long.
class EntryQueue {
 public:
  // At most `room` entries, all of which have keys below the greatest.
  EntryQueue(const Entries& entries, const PrimExpr& n, const PrimExpr& room);

  // The statement in which it exists.
  tir::Stmt in(tir::Stmt body) const;
  tir::Stmt fill() const;
  // Takes the first entry that is left, which there is one of, and runs the body with its place.
  tir::Stmt take(const std::function<tir::Stmt(const PrimExpr& place)>& body) const;

 private:
  PrimExpr blocks() const;
  // The entries of a block.
  PrimExpr size_of(const PrimExpr& block) const;
  tir::Stmt refresh(const PrimExpr& block) const;

  const Entries& entries_;
  PrimExpr n_;
  tir::Buffer keys_, least_;  // of what is left, and the least of each block
  Cell key_, block_, at_;
};

// The places 0 .. n - 1 in order, as the content of `places`; `other` has as much room. `precedes` sets a cell to 1 where the element
// at one place comes strictly before the element at another, else to 0. A stable merge sort from pairs upwards (Knuth, volume 3,
// 5.2.4), for elements whose keys do not always decide: about n log2(n) comparisons.
using Precedes =
    std::function<tir::Stmt(const Cell& precedes, const PrimExpr& place, const PrimExpr& other)>;
tir::Stmt sort_places(const tir::Buffer& places, const tir::Buffer& other, const PrimExpr& n,
                      const Precedes& precedes);

// The first `k` in order of the elements at(0) .. at(n - 1) of `data`, n >= k, as the first entries
// of `kept`, which like `other` has select_room(k). Elements that come before the k-th of those
// seen are collected, and the rest is passed over a vector at a time; when the room is full it is
// sorted and cut. When the order is random, about k log2(n / k) elements are collected.
int64_t select_room(int64_t k);
tir::Stmt select_first(const tir::Buffer& data, const LineIndex& at, const PrimExpr& n, int64_t k,
                       bool ascending, const Entries& kept, const Entries& other);

// The same for few of a line of known length: each lane keeps the first `k` of its elements, and the first of all lanes are taken one
// by one. No branch depends on an element. `kept` has room for `k` entries.
bool selects_in_lanes(std::optional<int64_t> n, std::optional<int64_t> k);
tir::Stmt select_in_lanes(const tir::Buffer& data, const LineIndex& at, int64_t n, int64_t k,
                          bool ascending, const Entries& kept);

}  // namespace relay::ops
