// The references through which a context may have closed a cycle and that still live, so that cycles
// can be freed. All values but references are immutable and hold what is older, and so does a
// reference when it is made: a cycle goes through one to which a value with parts was written.
//
// A reference is freed by its count like any value and then leaves the list by itself. What counts
// cannot free is found by `collect`: by trial deletion (Bacon and Rajan, "Concurrent Cycle
// Collection in Reference Counted Systems", 2001), from the references of the list.
#pragma once

#include <cstddef>

#include "runtime/core/immediate.h"
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

  // To be called when the content is written to the reference, which is in no list at first.
  void written(Cell* ref, const Object* content) {
    if (is_object(content) && content->kind != ObjectKind::tensor && !in_list(ref))
      add(ref, content);
  }

  // Frees the cycles that nothing outside holds, if many references have come to the list since the
  // last time; `always` does not ask. No run may change one of the references meanwhile.
  void collect(bool always);

 private:
  struct Collector;

  // The tag of a reference says whether it has ever been in a list.
  static bool in_list(const Cell* ref) { return ref->tag != 0; }
  void add(Cell* ref, const Object* content);

  Cell* head_ = nullptr;  // made with the first reference
  size_t added_ = 0;      // since the last collection
  size_t limit_ = 4096;
};

}  // namespace relay::runtime
