// What the interpreter executes: instructions on 64-bit slots, and the memory of buffers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/string_functions.h"
#include "runtime/core/tensor.h"
#include "tir/stmt.h"

namespace relay::tir::interpret_detail {

// One lane of a value. Integers are sign- or zero-extended to 64 bits, a bool is 0 or 1. In narrow
// mode float32 and the 16-bit floats are `f`; float64, and every float in wide mode, is `d`.
union Slot {
  int64_t i;
  uint64_t u;
  double d;
  float f;
};

struct Machine;
struct Instr;
// Does the instruction's work and returns the next one; null ends the program.
using Handler = const Instr* (*)(const Instr* pc, Machine& m);

struct Instr {
  Handler run = nullptr;
  int32_t dst = 0;  // slots
  int32_t a = 0;
  int32_t b = 0;
  int32_t c = 0;
  // What a vector instruction repeats: the lanes, and whether a, b and c go along (1) or stay (0).
  struct Lanes {
    uint16_t count = 1;
    uint8_t step_a = 1;
    uint8_t step_b = 1;
    uint8_t step_c = 1;
  };
  union {
    Lanes lanes;
    int64_t number;  // distance of a jump, error of a check, mask of a bit count
    float (*narrow)(float, float, float);
    double (*wide)(double, double, double);
  };
  Instr() : lanes() {}
};

// Which work item does something, and between which barriers.
struct ItemState {
  using Axes = std::array<int64_t, 3>;
  int64_t launch = 0;
  int64_t phase = 0;
  Axes group{}, item{};
  int64_t lot =
      0;  // of a store that arrives later: the number of its lot of copies, from 1 on; 0: it arrives at once
};

// The accesses of an element that later ones may race with: the last write, and the reads since. Several readers are as
// good as the last one and a note of how they differ.
struct Touch {
  ItemState write, read;  // launch 0: none
  bool read_by_groups = false;
  bool read_by_items = false;  // of the group, in the phase of the last read
};

// A buffer while the program runs.
struct Memory {
  Buffer buffer;
  std::byte* data = nullptr;
  uint64_t elements = 0;
  std::vector<uint64_t> extents;
  std::vector<uint64_t> pitches;  // the extents of the array that the buffer lies in
  std::vector<int32_t> shape_slots;
  std::vector<int32_t> memory_slots;  // as shape_slots, for pitches
  size_t element_bytes = 0;
  runtime::Tensor tensor;      // of a parameter
  std::vector<std::byte> own;  // of an Allocate
  // Where the run finds undefined elements: of each, whether it is written. Empty for inputs.
  bool tracked = false;
  std::vector<bool> written;
  // Where the run finds races: of each element. Empty for memory that one item has for itself.
  bool contended = false;
  std::vector<Touch> touches;
};

// Where one lane of a Load or Store goes.
struct Access {
  int32_t memory = 0;
  bool is_store = false;
  std::vector<int32_t> indices;  // slots
};

struct Machine {
  std::vector<Slot> slots;
  std::vector<Memory> memories;
  std::vector<Access> accesses;
  int64_t result = 0;
  int64_t steps_left = INT64_MAX;
  // What functions on strings are given; the strings that they make live until the next run.
  runtime::StringMemory made_strings;
  relay_kernel_context context{};
  int32_t error = 0;
  std::optional<uint8_t> poison;
  std::string undefined;  // the first element that was read before it was written
  std::string race;       // the first element that items access in no order
  ItemState items;
  int64_t lanes = 0;  // open loops in which the items of a warp combine what they have
  int64_t ended_lots = 0;
  // Of each lot of copies that items have waited for, the phase in which they did.
  std::vector<int64_t> arrivals;

  Slot& operator[](int32_t at) { return slots[static_cast<size_t>(at)]; }
};

// How floats are held: in wide mode those in slots are doubles, and so are the elements of buffers
// that are not a parameter.
struct Storage {
  bool wide_slots = false;
  bool wide_memory = false;
};
size_t element_bytes(DType dtype, const Storage& storage);

// ---- Handlers by meaning -----------------------------------------------------------------------
// Those that take `lanes` handle vectors; the others are emitted lane by lane.

// dst = a op b; a narrow dtype wants round_handler afterwards, except for comparisons.
Handler binary_handler(BinaryOp op, DType dtype, bool wide, int lanes);
// dst = a as the dtype holds it; null for dtypes whose slots hold nothing else.
Handler round_handler(DType dtype, bool wide, int lanes);
Handler cast_handler(DType from, DType to, bool wide, int lanes);
Handler not_handler(int lanes);
// dst = a ? b : c.
Handler pick_handler(int lanes);
Handler move_handler(int lanes);
// dst = a and b.
Handler and_handler(int lanes);

// The function in `narrow` or `wide` of a, b and c; a test gives a bool.
Handler function_handler(DType dtype, bool wide, bool test);
Handler abs_int_handler();
Handler power_int_handler(DType dtype);
Handler count_bits_handler();  // of a & number
Handler to_bits_handler(DType from, bool wide);
Handler from_bits_handler(DType to, bool wide);
Handler string_handler();  // the string function `number` of a, b and c; ends with its error
Handler ramp_handler();    // dst = a + number * b

// dst = the element that accesses[a] names; when `guarded`, zero unless slot c is true.
Handler load_handler(DType dtype, const Storage& storage, size_t indices, bool guarded);
// The elements from accesses[a] on, lanes.count of them.
Handler load_run_handler(DType dtype, const Storage& storage);
// The element that accesses[a] names = slot b; when `guarded`, only if slot c is true.
Handler store_handler(DType dtype, const Storage& storage, size_t indices, bool guarded);

// Before the load of lanes.count elements from accesses[a] on: they have been written; when `b`,
// only if slot c is true.
const Instr* note_read(const Instr* pc, Machine& m);
// After the store to the element that accesses[a] names; when `b`, only if slot c is true.
const Instr* note_write(const Instr* pc, Machine& m);
// The access of lanes.count elements from accesses[a] on, by the current item; when `b`, only if slot c is true. When `dst`, it
// arrives with the lot of copies that is begun.
const Instr* note_access(const Instr* pc, Machine& m);
// A launch begins, or what is behind one.
const Instr* begin_launch(const Instr* pc, Machine& m);
// The item, or group, is that of slot a along an axis; `number` is the axis, and 3 more for a group.
const Instr* enter_item(const Instr* pc, Machine& m);
// It is the first one again.
const Instr* leave_items(const Instr* pc, Machine& m);
// The items of a warp begin, or have ended, to combine what they have: what they do to memory, their first one does.
const Instr* begin_lanes(const Instr* pc, Machine& m);
const Instr* end_lanes(const Instr* pc, Machine& m);
const Instr* pass_barrier(const Instr* pc, Machine& m);
// The lot of copies that is begun ends; all but the last `number` ones arrive.
const Instr* end_copies(const Instr* pc, Machine& m);
const Instr* wait_copies(const Instr* pc, Machine& m);
// Says of the memory, an output, which element is not written.
void note_unwritten(Machine& m, const Memory& memory);

const Instr* jump(const Instr* pc, Machine& m);
const Instr* jump_back(const Instr* pc, Machine& m);    // to the next iteration
const Instr* jump_unless(const Instr* pc, Machine& m);  // unless a
// dst = a, c = a + b; jumps when there is no iteration.
const Instr* loop_begin(const Instr* pc, Machine& m);
// dst + 1; jumps while below c.
const Instr* loop_next(const Instr* pc, Machine& m);
// One Store of max_steps.
const Instr* count_step(const Instr* pc, Machine& m);
// Ends with `number` unless a.
const Instr* check(const Instr* pc, Machine& m);
// Memory a, whose extents are in its shape slots.
const Instr* allocate(const Instr* pc, Machine& m);
const Instr* bind_parameter(const Instr* pc, Machine& m);
const Instr* end(const Instr* pc, Machine& m);

}  // namespace relay::tir::interpret_detail
