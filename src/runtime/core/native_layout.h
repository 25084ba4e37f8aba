// Where native functions find the parts of objects, in bytes from their start. There are native functions on machines with
// words of 64 bits alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core/object.h"

namespace relay::runtime {

struct NativeLayout {
  static constexpr uint64_t kRefs = 0;  // uint32
  static constexpr uint64_t kKind = 4;  // uint8, an ObjectKind
  static constexpr uint64_t kTag = 8;   // int32, of a cell as what follows
  static constexpr uint64_t kCount = 12;
  static constexpr uint64_t kFields = 16;
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
static_assert(offsetof(Object, refs) == NativeLayout::kRefs && sizeof(Object::refs) == 4);
static_assert(offsetof(Object, kind) == NativeLayout::kKind && sizeof(Object::kind) == 1);
static_assert(offsetof(Cell, tag) == NativeLayout::kTag && sizeof(Cell::tag) == 4);
static_assert(offsetof(Cell, count) == NativeLayout::kCount && sizeof(Cell::count) == 4);
static_assert(offsetof(Cell, fields) == NativeLayout::kFields);
#pragma GCC diagnostic pop

}  // namespace relay::runtime
