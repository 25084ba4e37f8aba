// The references that a context has made and that still live, so that cycles through them can be
// freed: nothing but a reference can close a cycle, since all other values are immutable.
//
// A reference is freed by its count like any value and then leaves the list by itself. What counts
// cannot free is found by `collect`: by trial deletion (Bacon and Rajan, "Concurrent Cycle
// Collection in Reference Counted Systems", 2001), from the references of the list.
#pragma once

#include <cstddef>

#include "runtime/core/object.h"

namespace relay::runtime {

class RefList {
 public:
  RefList() = default;
  // Frees the cycles. References that are held from outside live on, in no list: a cycle among them
  // is never freed.
  ~RefList();
  RefList(const RefList&) = delete;
  RefList& operator=(const RefList&) = delete;

  // A new reference, without content yet.
  Cell* make();

  // Frees the cycles that nothing outside holds, if many references have been made since the last
  // time; `always` does not ask. No run may change one of the references meanwhile.
  void collect(bool always);

 private:
  struct Collector;

  Cell* head_ = nullptr;  // made with the first reference
  size_t made_ = 0;       // since the last collection
  size_t limit_ = 4096;
};

}  // namespace relay::runtime
