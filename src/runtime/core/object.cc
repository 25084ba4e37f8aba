#include "runtime/core/object.h"

#include <pthread.h>

#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <new>

#include "base/diagnostic.h"
#include "base/fork.h"
#include "runtime/core/free_blocks.h"
#include "runtime/core/immediate.h"
#include "runtime/core/large_blocks.h"
#include "runtime/core/middle_blocks.h"
#include "runtime/core/object_pool.h"

namespace relay::runtime {

void destroy_tensor(Object* object) noexcept;

namespace {

#if defined(__SANITIZE_ADDRESS__)
// Nothing is kept: AddressSanitizer has to see every use after free.
constexpr uint32_t kMaxPooled = 0;
#else
constexpr uint32_t kMaxPooled = 4096;
#endif
constexpr size_t kCellStep = 16;
constexpr size_t kTensorStep = 64;

using detail::FreeBlocks;
using detail::kBlockSizes;
using detail::kCellSizes;
using detail::kTensorSizes;
using detail::MiddleBlocks;
using detail::pool;

// Frees the lists of a thread that ends. A key, not a variable with a destructor: registering a
// destructor ends the process if there is no memory, while creating a key reports the failure.
class PoolCloser {
 public:
  PoolCloser() : valid_(pthread_key_create(&key_, close) == 0) {}
  // The code of `close` may go away with the library.
  ~PoolCloser() {
    if (valid_) pthread_key_delete(key_);
    close(nullptr);
  }
  bool register_thread() { return valid_ && pthread_setspecific(key_, &pool) == 0; }

 private:
  static void close(void*) {
    pool.state = FreeBlocks::closed;
    delete std::exchange(pool.middle, nullptr);
    for (FreeBlocks::Block*& head : pool.heads) {
      while (head != nullptr) std::free(std::exchange(head, head->next));
    }
  }

  pthread_key_t key_{};
  bool valid_;
};

// Whether this thread keeps blocks, from its first one on.
bool open_pool() {
  static PoolCloser closer;
  if (pool.state == FreeBlocks::unused && closer.register_thread()) pool.state = FreeBlocks::open;
  return pool.state == FreeBlocks::open;
}

size_t cell_bytes(ObjectKind kind, uint32_t count) {
  if (kind == ObjectKind::ref) count += 2;  // its links
  size_t fields = count > 1 ? count - 1 : 0;
  return (sizeof(Cell) + fields * sizeof(Object*) + kCellStep - 1) / kCellStep * kCellStep;
}

// The list for blocks of that size; kBlockSizes when there is none.
size_t class_of(size_t bytes, bool cache_line) {
  if (cache_line) {
    size_t size_class = bytes / kTensorStep;
    return size_class < kTensorSizes ? kCellSizes + size_class : kBlockSizes;
  }
  size_t size_class = bytes / kCellStep;
  return size_class < kCellSizes ? size_class : kBlockSizes;
}

// A block of one of the first `classes` sizes; null where the thread keeps none of it.
void* take_block(size_t size_class, size_t classes) {
  if (size_class >= classes || pool.heads[size_class] == nullptr) return nullptr;
  --pool.counts[size_class];
  return std::exchange(pool.heads[size_class], pool.heads[size_class]->next);
}

// Whether the thread keeps the block.
bool keep_block(void* memory, size_t size_class, size_t classes) {
  if (size_class >= classes || pool.counts[size_class] >= kMaxPooled ||
      (pool.state != FreeBlocks::open && !open_pool())) {
    return false;
  }
  auto* block = static_cast<FreeBlocks::Block*>(memory);
  block->next = pool.heads[size_class];
  pool.heads[size_class] = block;
  ++pool.counts[size_class];
  return true;
}

// Whether memory of a tensor is kept between that of single sizes and that of all threads.
bool is_middle(size_t bytes, bool cache_line) {
  static_assert(kTensorSizes * kTensorStep > MiddleBlocks::kBelow);
  return kMaxPooled > 0 && cache_line && bytes >= kTensorSizes * kTensorStep &&
         bytes < kSmallestLargeBlock;
}

void keep_middle_block(void* memory, size_t bytes) {
  if (pool.middle == nullptr && (pool.state == FreeBlocks::open || open_pool())) {
    pool.middle = new (std::nothrow) MiddleBlocks;
  }
  if (pool.middle == nullptr) return std::free(memory);
  pool.middle->keep(memory, bytes);
}

// A dead cell waits in a list that is threaded through its count and tag, which is not read any
// more: the two hold the halves of the pointer to the next.
void set_next(Cell* cell, Cell* next) {
  const uint64_t bits = reinterpret_cast<uintptr_t>(next);
  cell->refs.store(static_cast<uint32_t>(bits), std::memory_order_relaxed);
  cell->tag = static_cast<int32_t>(static_cast<uint32_t>(bits >> 32));
}

Cell* get_next(const Cell* cell) {
  uint64_t low = cell->refs.load(std::memory_order_relaxed);
  uint64_t high = static_cast<uint32_t>(cell->tag);
  return reinterpret_cast<Cell*>(static_cast<uintptr_t>(low | high << 32));
}

// A reference has two links after its content; null while it is in no list.
constexpr uint32_t kNext = 1, kPrevious = 2;
constinit ForkSafeMutex ref_mutex;

// One owner fewer; true when it was the last. A sole owner needs no locked instruction.
bool drop(Object* object) {
  return object->refs.load(std::memory_order_acquire) == 1 ||
         object->refs.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

Cell* link_of(const Cell* ref, uint32_t link) { return static_cast<Cell*>(ref->fields[link]); }

void unlink_ref(Cell* ref) {
  // A link holds its reference, so a dying reference without links cannot be linked again.
  if (ref->fields[kNext] == nullptr) return;
  std::lock_guard lock(ref_mutex);
  if (ref->fields[kNext] == nullptr) return;
  link_of(ref, kNext)->fields[kPrevious] = link_of(ref, kPrevious);
  link_of(ref, kPrevious)->fields[kNext] = link_of(ref, kNext);
  ref->fields[kNext] = ref->fields[kPrevious] = nullptr;
}

}  // namespace

ObjectCounts thread_object_counts() { return pool.live; }
int64_t thread_object_bytes() { return pool.live.bytes; }
void add_thread_object_bytes(int64_t bytes) {
  pool.live.objects += bytes > 0 ? 1 : -1;
  pool.live.bytes += bytes;
}

void* allocate_object(size_t bytes, bool cache_line) noexcept {
  void* memory = take_block(class_of(bytes, cache_line), kBlockSizes);
  if (memory == nullptr) {
    if (is_middle(bytes, cache_line)) {
      if (pool.middle != nullptr) memory = pool.middle->take(bytes);
      bytes = MiddleBlocks::block_bytes(bytes);
    } else if (cache_line && bytes >= kSmallestLargeBlock) {
      memory = take_large_block(bytes);
    }
    if (memory != nullptr) return memory;
    auto allocate = [&] {
      if (cache_line) return std::aligned_alloc(kTensorStep, bytes);
      // On machines of 32 bits the system's blocks are less aligned.
      if constexpr (alignof(std::max_align_t) < kCellStep)
        return std::aligned_alloc(kCellStep, bytes);
      return std::malloc(bytes);
    };
    memory = allocate();
    if (memory == nullptr && drop_kept_blocks()) memory = allocate();
    if (memory == nullptr) return nullptr;
  }
  return memory;
}

void free_object(void* memory, size_t bytes, bool cache_line) noexcept {
  if (is_middle(bytes, cache_line)) return keep_middle_block(memory, bytes);
  if (cache_line && bytes >= kSmallestLargeBlock) return keep_large_block(memory, bytes);
  if (!keep_block(memory, class_of(bytes, cache_line), kBlockSizes)) std::free(memory);
}

bool drop_kept_blocks() noexcept {
  const bool middle = pool.middle != nullptr && pool.middle->drop();
  return drop_large_blocks() || middle;
}

size_t kept_bytes() noexcept {
  return kept_large_bytes() + (pool.middle == nullptr ? 0 : pool.middle->total());
}

Cell* Cell::make(ObjectKind kind, int32_t tag, uint32_t count) {
  size_t bytes = cell_bytes(kind, count);
  void* memory = take_block(bytes / kCellStep, kCellSizes);
  if (memory == nullptr) memory = allocate_object(bytes, false);
  if (memory == nullptr) throw std::bad_alloc();
  add_thread_object_bytes(static_cast<int64_t>(bytes));
  Cell* cell = new (memory) Cell(kind);
  cell->tag = tag;
  cell->count = count;
  for (uint32_t i = 0; i < count; ++i) cell->fields[i] = nullptr;
  if (kind == ObjectKind::ref) cell->fields[kNext] = cell->fields[kPrevious] = nullptr;
  return cell;
}

const Cell& empty_cell(const Object* word) {
  // Kept for good, and so counted for no thread.
  auto make = [](ObjectKind kind, int32_t tag) {
    Cell* cell = Cell::make(kind, tag, 0);
    add_thread_object_bytes(-static_cast<int64_t>(cell_bytes(kind, 0)));
    return cell;
  };
  static const auto& cells = *new const std::vector<const Cell*>([&] {
    std::vector<const Cell*> all{make(ObjectKind::tuple, 0)};
    for (int32_t tag = 0; tag < kEmptyCellTags; ++tag) all.push_back(make(ObjectKind::adt, tag));
    return all;
  }());
  RELAY_CHECK(is_empty_cell(word), "a scalar is no cell");
  if (kind_of(word) == ObjectKind::tuple) return *cells[0];
  return *cells.at(1 + static_cast<size_t>(empty_cell_tag(word)));
}

Cell* make_ref_cell() { return Cell::make(ObjectKind::ref, 0, 1); }

void link_ref(Cell* head, Cell* ref) {
  std::lock_guard lock(ref_mutex);
  if (head->fields[kNext] == nullptr) head->fields[kNext] = head->fields[kPrevious] = head;
  ref->fields[kNext] = head->fields[kNext];
  ref->fields[kPrevious] = head;
  link_of(head, kNext)->fields[kPrevious] = ref;
  head->fields[kNext] = ref;
}

void unlink_all_refs(Cell* head) {
  std::lock_guard lock(ref_mutex);
  for (Cell* at = head; at->fields[kNext] != nullptr;) {
    Cell* next = link_of(at, kNext);
    at->fields[kNext] = at->fields[kPrevious] = nullptr;
    at = next;
  }
}

std::vector<Cell*> linked_refs(Cell* head) {
  std::lock_guard lock(ref_mutex);
  std::vector<Cell*> refs;
  for (Cell* at = link_of(head, kNext); at != nullptr && at != head; at = link_of(at, kNext)) {
    refs.push_back(at);
  }
  return refs;
}

void destroy_object(Object* object) noexcept {
  if (object->kind == ObjectKind::tensor) return destroy_tensor(object);
  Cell* dead = static_cast<Cell*>(object);
  set_next(dead, nullptr);
  while (dead != nullptr) {
    Cell* cell = dead;
    dead = get_next(cell);
    for (uint32_t i = 0; i < cell->count; ++i) {
      Object* field = cell->fields[i];
      if (!is_object(field) || !drop(field)) continue;
      if (field->kind == ObjectKind::tensor) {
        destroy_tensor(field);
      } else {
        set_next(static_cast<Cell*>(field), dead);
        dead = static_cast<Cell*>(field);
      }
    }
    if (cell->kind == ObjectKind::ref) unlink_ref(cell);
    size_t bytes = cell_bytes(cell->kind, cell->count);
    add_thread_object_bytes(-static_cast<int64_t>(bytes));
    if (!keep_block(cell, bytes / kCellStep, kCellSizes)) std::free(cell);
  }
}

}  // namespace relay::runtime
