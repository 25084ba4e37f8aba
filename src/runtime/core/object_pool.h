// Memory of run-time objects, and how many there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/core/object.h"

namespace relay::runtime {

// Objects that this thread has made, minus those that it has freed, and their bytes: the difference
// over a run is what the run keeps alive.
struct ObjectCounts {
  int64_t objects = 0;
  int64_t bytes = 0;
};
ObjectCounts thread_object_counts();

// Memory of an object, not counted yet (add_thread_object_bytes counts it), aligned to 64 bytes or
// to 16; null when memory is exhausted. Blocks below 128 KiB come from and go to lists of the thread, so
// that making one costs a few instructions; larger ones are kept for all threads.
void* allocate_object(size_t bytes, bool cache_line) noexcept;
void free_object(void* memory, size_t bytes, bool cache_line) noexcept;
// Frees what is kept of tensors of 384 bytes and more, for all threads and for this one; false when nothing is.
bool drop_kept_blocks() noexcept;
size_t kept_bytes() noexcept;

// A reference with no content, in no list; and lists of references by their first, which holds
// nothing. A reference that is freed leaves its list. Lists may be used by several threads.
Cell* make_ref_cell();
void link_ref(Cell* head, Cell* ref);
void unlink_all_refs(Cell* head);
std::vector<Cell*> linked_refs(Cell* head);

}  // namespace relay::runtime
