#include "runtime/core/object.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace relay::runtime {

void destroy_tensor(Object* object) noexcept;

namespace {

// Small cells are kept in lists of their thread, by size in steps of 16 bytes. A list is bounded,
// so that a thread which only frees returns the memory. Under AddressSanitizer nothing is kept:
// it has to see every use after free.
#if defined(__SANITIZE_ADDRESS__)
constexpr uint32_t kMaxPooled = 0;
#else
constexpr uint32_t kMaxPooled = 4096;
#endif
constexpr size_t kClassBytes = 16;
constexpr size_t kClasses = 9;  // up to 128 bytes

struct FreeCell {
  FreeCell* next;
};

struct Pool {
  FreeCell* heads[kClasses];
  uint32_t counts[kClasses];
  int64_t object_bytes;
  bool closed;
};

// Zero-initialised and trivially destructible: objects may still be freed while the thread's
// other variables are being destroyed.
thread_local constinit Pool pool{};

struct PoolCloser {
  bool used = false;
  ~PoolCloser() {
    pool.closed = true;
    for (FreeCell*& head : pool.heads) {
      while (head != nullptr) std::free(std::exchange(head, head->next));
    }
  }
};
thread_local PoolCloser pool_closer;

size_t cell_bytes(uint32_t count) {
  size_t fields = count > 1 ? count - 1 : 0;
  return (sizeof(Cell) + fields * sizeof(Object*) + kClassBytes - 1) / kClassBytes * kClassBytes;
}

void* allocate(size_t bytes) {
  size_t size_class = bytes / kClassBytes;
  pool.object_bytes += static_cast<int64_t>(bytes);
  if (size_class < kClasses && pool.heads[size_class] != nullptr) {
    --pool.counts[size_class];
    return std::exchange(pool.heads[size_class], pool.heads[size_class]->next);
  }
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void deallocate(void* memory, size_t bytes) noexcept {
  size_t size_class = bytes / kClassBytes;
  pool.object_bytes -= static_cast<int64_t>(bytes);
  if (size_class >= kClasses || pool.closed || pool.counts[size_class] >= kMaxPooled) {
    std::free(memory);
    return;
  }
  // The first touch registers the closer with this thread.
  pool_closer.used = true;
  auto* cell = static_cast<FreeCell*>(memory);
  cell->next = pool.heads[size_class];
  pool.heads[size_class] = cell;
  ++pool.counts[size_class];
}

// A dead cell waits in a list that is threaded through its count and tag, which nobody reads any
// more: the two hold the halves of the pointer to the next.
void set_next(Cell* cell, Cell* next) {
  auto bits = reinterpret_cast<uintptr_t>(next);
  cell->refs.store(static_cast<uint32_t>(bits), std::memory_order_relaxed);
  cell->tag = static_cast<int32_t>(static_cast<uint32_t>(bits >> 32));
}

Cell* get_next(const Cell* cell) {
  uint64_t low = cell->refs.load(std::memory_order_relaxed);
  uint64_t high = static_cast<uint32_t>(cell->tag);
  return reinterpret_cast<Cell*>(static_cast<uintptr_t>(low | high << 32));
}

}  // namespace

int64_t thread_object_bytes() { return pool.object_bytes; }
void add_thread_object_bytes(int64_t bytes) { pool.object_bytes += bytes; }

Cell* Cell::make(ObjectKind kind, int32_t tag, uint32_t count) {
  Cell* cell = new (allocate(cell_bytes(count))) Cell(kind);
  cell->tag = tag;
  cell->count = count;
  for (uint32_t i = 0; i < count; ++i) cell->fields[i] = nullptr;
  return cell;
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
      if (field == nullptr || field->refs.fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
      if (field->kind == ObjectKind::tensor) {
        destroy_tensor(field);
      } else {
        set_next(static_cast<Cell*>(field), dead);
        dead = static_cast<Cell*>(field);
      }
    }
    deallocate(cell, cell_bytes(cell->count));
  }
}

}  // namespace relay::runtime
