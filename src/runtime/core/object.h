// Reference-counted run-time objects: tensors, and the values of the virtual machine.
//
// Every object starts with the same header, so that a value of any kind is one pointer. The count
// is intrusive and atomic. Destruction is iterative: freeing a list of a million cells uses
// constant stack.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace relay::runtime {

enum class ObjectKind : uint8_t { tensor, adt, tuple, closure, ref };

struct Object {
  std::atomic<uint32_t> refs{1};
  ObjectKind kind;

  explicit Object(ObjectKind k) : kind(k) {}
};

// Every kind but the tensor: a number and fields. The fields are owned and may be null.
struct Cell : Object {
  // The constructor's tag of an ADT value, the function's index of a closure.
  int32_t tag = 0;
  uint32_t count = 0;
  Object* fields[1] = {nullptr};  // `count` entries

  // A cell with `count` null fields.
  static Cell* make(ObjectKind kind, int32_t tag, uint32_t count);

 private:
  explicit Cell(ObjectKind k) : Object(k) {}
};

// Bytes of objects that this thread has allocated, minus what it has freed: the difference over a
// run is what the run keeps alive.
int64_t thread_object_bytes();
void add_thread_object_bytes(int64_t bytes);

inline void retain(Object* object) {
  if (object != nullptr) object->refs.fetch_add(1, std::memory_order_relaxed);
}

// Frees an object whose count has reached zero, and everything that dies with it.
void destroy_object(Object* object) noexcept;

inline void release(Object* object) noexcept {
  if (object == nullptr) return;
  // A sole owner needs no locked instruction.
  if (object->refs.load(std::memory_order_acquire) == 1 ||
      object->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    destroy_object(object);
  }
}

}  // namespace relay::runtime
