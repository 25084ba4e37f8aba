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
  // Pool size class of VM objects; unused by tensors.
  uint8_t size_class = 0;
  // Constructor tag of an ADT value, function index of a closure.
  uint16_t reserved = 0;

  explicit Object(ObjectKind k) : kind(k) {}
};

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
