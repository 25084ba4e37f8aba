// A plan: what happens between the kernels of a program, step by step, and where each value is.
//
//   PlanProgram p = make_plan(mod, lowered);   // plan/make_plan.h
//   to_string(p)                               // relay show --plan
//   verify(p);                                 // plan/verify.h
//
// A function's steps are a flat list. Control flow is structured: `if`, `else`, `end`; `match`,
// `clause`, `end`; at most one `loop`, to whose start `next` goes. The rows of plan/step_table.h say
// what each kind of step takes and gives.
//
// A value has a place for its whole life: an object of its own, a scalar in a register, a buffer of
// the function's arena, memory for values of open sizes, a constant, or an output that the caller has allocated. Several values may
// be in one place: views share their memory, and a result may take that of an operand which nothing
// reads any more.
//
// Memory is the host's, or that of a device. What is on a device is read and written by the device's
// kernels alone. A `transfer` copies between the host and a device: it begins there, and ends before the
// `wait` for its event, so that nothing may use the value, or write over what is copied, in between. A device does what
// it is given in order; kernels and transfers of one device need no `wait` between each other.
//
// The plan says nothing of an instruction set: bytecode is written from it (vm/emit.h), and so can be
// anything else that calls the kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/type.h"
#include "lower/lower_program.h"
#include "runtime/core/device.h"
#include "runtime/core/tensor.h"

namespace relay::plan {

using runtime::Device;
using runtime::Tensor;

// The place of a value among PlanFunction::values; -1: none.
using ValueId = int32_t;

enum class Place : uint8_t {
  object,    // an object register: a tensor of its own, data, a tuple, a closure or a reference
  scalar,    // an integer register: an element, or a size
  arena,     // a buffer of the function's arena
  constant,  // a constant of the program
  output,    // an output of the function, which the caller has allocated
  open,      // memory of the function for values of a size that a run tells (plan/places.h)
};

// The steps from the first to the last that mention a value; last < first: none does.
struct Lifetime {
  int32_t first = 0;
  int32_t last = -1;

  bool empty() const { return last < first; }
  // Makes the lifetime contain the step, or another lifetime.
  void include(int32_t step);
  void include(const Lifetime& other);
  friend bool operator==(const Lifetime&, const Lifetime&) = default;
};

struct PlanValue {
  Place place = Place::object;
  // The register, buffer, constant, output or place.
  int32_t index = 0;
  // Null for what has no name in the language: a size, a tag, a part of a closure.
  Type type;
  // As the program has it; empty when it has none there.
  std::string name;
  Device device{};
  Lifetime life{};
};

// Memory of the arena.
struct PlanBuffer {
  int64_t bytes = 0;
  // A sub-buffer: the buffer, of lower index, that it lies in, and where. -1: memory of its own.
  int32_t whole = -1;
  int64_t offset = 0;
  // The shape of the tensor around, where its own elements do not follow one another; else empty.
  std::vector<int64_t> within{};
  // The memory of a kernel's operand, `whole`, that nothing reads any more.
  bool in_place = false;
  // Of all values in it, and of the buffers inside it.
  Lifetime life{};
  // Bytes from the start of its device's arena; -1: not decided yet.
  int64_t position = -1;
  Device device{};
};

// The arena of a device other than the host.
struct DeviceArena {
  Device device;
  int64_t bytes = 0;
  // The most bytes alive at any step.
  int64_t lower_bound = 0;
};

// Memory for values of open sizes that are not alive at once: as much as a tensor of the type takes.
struct OpenPlace {
  TensorType type;
  Device device{};
};

enum class StepKind : uint8_t {
  kernel,
  copy,
  alloc,
  alloc_sized,
  alloc_from_shape,
  view,
  alias,
  join,
  update,
  size,
  number,
  load,
  box,
  constant,
  set,
  set_scalar,
  swap,
  int_op,
  float_op,
  convert,
  check,
  if_,
  else_,
  match,
  clause,
  tag,
  end,
  field,
  call,
  tail_call,
  invoke,
  tail_invoke,
  closure,
  data,
  tuple,
  ref_new,
  ref_read,
  ref_write,
  return_value,
  return_scalar,
  return_outputs,
  loop,
  next,
  place,
  index,
  transfer,
  wait,
};
inline constexpr int kStepKindCount = static_cast<int>(StepKind::wait) + 1;

struct Step {
  StepKind kind = StepKind::end;
  // An IntOp, FloatOp or ScalarConversion.
  uint8_t op = 0;
  // A kernel, function, tag, field, axis, number or width in bits, as the kind's row says.
  int64_t number = 0;
  // Of what is loaded, boxed, returned or allocated.
  runtime::DType dtype{};
  // Strings of the program: a message, and the place in the source that it is about. -1: none. For
  // the call of a kernel `text` is the number of its site, for a match the constructors of the
  // value, where it may have no clause.
  int32_t text = -1;
  int32_t where = -1;
  std::vector<ValueId> results{};
  std::vector<ValueId> operands{};
};

// A parameter or result: its name, and its type. Of a type that is not known, or too long for
// people, there is a text or nothing.
struct PlanSlot {
  std::string name;
  Type type;
  std::string text;
  Device device{};
};

// A parameter whose memory an output takes. In place: a step writes over the parameter, whose register
// its result is in. Otherwise the caller copies the output there when the run is over.
struct Donation {
  int32_t param = 0;
  int32_t output = 0;
  bool in_place = false;
  // Why it is not in place, for people.
  std::string reason{};

  friend bool operator==(const Donation&, const Donation&) = default;
};

struct PlanFunction {
  std::string name;
  // Parameter i is value i, and an object.
  std::vector<PlanSlot> params;
  // The tensors of the result, a tuple's leaves in order; one slot of another type otherwise.
  std::vector<PlanSlot> results;
  bool returns_tuple = false;
  // Not offered to callers of the program: a local function.
  bool internal = false;
  std::vector<Donation> donations;
  std::vector<PlanValue> values;
  std::vector<PlanBuffer> buffers;
  std::vector<OpenPlace> places;
  std::vector<Step> steps;
  int32_t num_objects = 0;  // object registers
  int32_t num_scalars = 0;  // integer registers
  // Of the host's arena.
  int64_t arena_bytes = 0;
  // The most bytes alive at any step: no arrangement needs fewer.
  int64_t lower_bound = 0;
  std::vector<DeviceArena> device_arenas;

  const PlanValue& value(ValueId id) const { return values[static_cast<size_t>(id)]; }
  PlanValue& value(ValueId id) { return values[static_cast<size_t>(id)]; }
  const PlanBuffer& buffer(int64_t index) const { return buffers[static_cast<size_t>(index)]; }
  PlanBuffer& buffer(int64_t index) { return buffers[static_cast<size_t>(index)]; }
  // The buffer with memory of its own that a buffer lies in, and where; 0 for itself.
  std::pair<int32_t, int64_t> memory_of(int32_t index) const;
};

// Whether the value is in the register of a parameter that is donated in place to that output, so
// that the two are one place.
bool is_donated(const PlanFunction& f, ValueId value, ValueId output);

// A kernel that the program calls: a variant of the program's provider.
struct ProgramKernel {
  int32_t variant = -1;
  KernelSignature signature;
  Function primitive;
  std::vector<KernelSite> sites;

  const std::string& name() const { return signature.name; }
};

struct PlanProgram {
  // What makes the code of the kernels.
  std::shared_ptr<KernelProvider> provider;
  std::vector<PlanFunction> functions;
  std::vector<ProgramKernel> kernels;
  std::vector<Tensor> constants;
  // Where each constant is used; empty: all on the host. Its data is the host's, and copied when a program is loaded.
  std::vector<Device> constant_devices;
  std::vector<std::string> strings;

  Device device_of_constant(size_t index) const {
    return index < constant_devices.size() ? constant_devices[index] : Device::cpu();
  }
};

// The plan as text, one step a line, with what each gives, where that is and how long.
std::string to_string(const PlanProgram& program, const PlanFunction& function);
std::string to_string(const PlanProgram& program);

}  // namespace relay::plan
