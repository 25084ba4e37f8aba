#include <algorithm>
#include <cstring>

#include "base/codes/runtime.h"
#include "runtime/vm/interpreter.h"

namespace relay::runtime {

namespace {

// Whether the object is a tensor that owns its memory and has no other reference.
bool exclusive(const Object* object) {
  if (!is_object(object) || object->kind != ObjectKind::tensor ||
      object->refs.load(std::memory_order_acquire) != 1) {
    return false;
  }
  auto* rep = static_cast<const Tensor::Rep*>(object);
  auto* begin = reinterpret_cast<const char*>(rep);
  auto* data = static_cast<const char*>(rep->data);
  bool own = data >= begin && data < begin + rep->own_bytes;
  return own && rep->owner == nullptr && !rep->read_only;
}

Shape shape_of(const Tensor::Rep* rep) { return Shape(rep->shape, static_cast<size_t>(rep->rank)); }

// Whether the register's tensor can serve as a new one of that type.
bool reusable(const Object* object, DType dtype, Shape shape) {
  if (!exclusive(object)) return false;
  auto* rep = static_cast<const Tensor::Rep*>(object);
  return rep->dtype == dtype && std::ranges::equal(shape_of(rep), shape);
}

}  // namespace

bool Interpreter::becomes_output(const Slot& result, const Slot& output) {
  // Memory that the caller has given has another owner, as have constants and arguments.
  if (!exclusive(output.object)) return false;
  auto* place = static_cast<const Tensor::Rep*>(output.object);
  return !place->dtype.is_string() && reusable(result.object, place->dtype, shape_of(place));
}

void Interpreter::new_tensor(Slot& slot, DType dtype, Shape shape, Device device) {
  if (device != Device::cpu()) [[unlikely]]
    return set(slot.object, new_device_tensor(dtype, shape, device));
  if (!reusable(slot.object, dtype, shape)) {
    set(slot.object, nullptr);
    if (limited()) {
      charge(checked_num_elements(dtype, shape) * static_cast<int64_t>(dtype.bytes()));
    }
    made_strings_ |= dtype.is_string();
    slot.object = Tensor::empty(dtype, shape).take();
  }
  auto* rep = static_cast<Tensor::Rep*>(slot.object);
  if (options_.poison) std::memset(rep->data, *options_.poison, tensor_bytes(rep));
}

Object* Interpreter::box(int64_t bits, DType dtype) {
  if (limited()) charge(sizeof(Tensor::Rep));
  return box_scalar(bits, dtype).take();
}

Object* Interpreter::new_cell(ObjectKind kind, int32_t tag, const Instruction& in,
                              const Window& w) {
  if (in.count == 0 && has_empty_form(kind, tag)) return make_empty_cell(kind, tag);
  if (limited()) charge(static_cast<int64_t>(sizeof(Cell) + in.count * sizeof(Object*)));
  Cell* made = Cell::make(kind, tag, in.count);
  const int32_t* list = w.function->lists.data() + in.b;
  for (uint32_t n = 0; n < in.count; ++n) made->fields[n] = take_entry(w.r, list[n]);
  return made;
}

void Interpreter::gather_dims(const Instruction& in, const Window& w) {
  c_.dims_.clear();
  for (uint32_t n = 0; n < in.count; ++n) {
    c_.dims_.push_back(w.i[w.function->lists[static_cast<size_t>(in.b) + n]].integer);
  }
}

void Interpreter::alloc_place(const Instruction& in, const Window& w) {
  gather_dims(in, w);
  const DType dtype = key_dtype(in.a);
  const int64_t bytes = checked_num_elements(dtype, c_.dims_) * static_cast<int64_t>(dtype.bytes());
  Slot* place = w.p + 2 * in.dst;
  made_strings_ |= dtype.is_string();
  if (place->integer != 0 && bytes <= place[1].integer) return;
  if (limited()) charge(bytes);
  const Device device = device_at(w, in.sub);
  const bool on_host = device == Device::cpu();
  ArenaStack& arena = on_host ? c_.arena_ : device_state(device).arena;
  char* memory = arena.push(static_cast<size_t>(bytes));
  if (options_.poison && on_host) std::memset(memory, *options_.poison, static_cast<size_t>(bytes));
  place->integer = static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory));
  place[1].integer = bytes;
}

Object* Interpreter::reshape(Tensor::Rep* rep) {
  Tensor source = Tensor::share(rep);
  if (checked_num_elements(source.dtype(), c_.dims_) != source.num_elements()) {
    fail_run(codes::run_failed, "a tensor of shape " + shape_to_string(source.shape()) +
                                    " cannot be reshaped to " + shape_to_string(c_.dims_));
  }
  return source.reshape(Shape(c_.dims_)).take();
}

Object* Interpreter::write_lines(const Instruction& in, const Window& w) {
  const Operand* operands = w.function->operands.data() + in.b;
  Tensor::Rep* rep = host_tensor(w.r[in.a]);
  const size_t bytes = tensor_bytes(rep);
  const Place lines = resolve(operands[1], w);
  const size_t line =
      rep->rank > 0 && rep->shape[0] > 0 ? bytes / static_cast<size_t>(rep->shape[0]) : 0;
  if (lines.bytes > bytes || (line == 0 ? lines.bytes > 0 : lines.bytes % line != 0)) {
    misuse("lines that do not fit are written");
  }
  bool last = (in.sub & kLastA) != 0, given_up = (in.sub & kGivenUp) != 0;
  Object* out = nullptr;
  if (given_up || (last && exclusive(rep))) {
    if (rep->read_only) misuse("a read-only tensor is written to");
    out = take(w.r[in.a], last);
  } else {
    Slot made{};
    if (limited()) charge(static_cast<int64_t>(bytes));
    made_strings_ |= rep->dtype.is_string();
    made.object = Tensor::empty(rep->dtype, shape_of(rep)).take();
    if (bytes > 0) std::memcpy(tensor(made)->data, rep->data, bytes);
    out = made.object;
  }
  if (lines.bytes > 0) {
    auto room = static_cast<int64_t>((bytes - lines.bytes) / line);
    int64_t start = std::clamp<int64_t>(w.i[operands[0].index].integer, 0, room);
    char* to = static_cast<char*>(static_cast<Tensor::Rep*>(out)->data);
    std::memmove(to + static_cast<size_t>(start) * line, lines.data, lines.bytes);
  }
  if (last) set(w.r[in.a].object, nullptr);
  return out;
}

Object* Interpreter::shape_tensor(const Tensor::Rep* rep, DType dtype) {
  Tensor shape = Tensor::empty(dtype, {rep->rank});
  for (int n = 0; n < rep->rank; ++n) shape.set_from_int(n, rep->shape[n]);
  return std::move(shape).take();
}

Object* Interpreter::get_field(const Instruction& in, Slot* r) {
  Object* object = r[in.a].object;
  if (!is_object(object) || (object->kind != ObjectKind::adt && object->kind != ObjectKind::tuple))
      [[unlikely]] {
    misuse("a value with fields is expected");
  }
  Cell* source = static_cast<Cell*>(object);
  if (static_cast<uint32_t>(in.b) >= source->count) misuse("a field is out of range");
  bool last = (in.sub & kLastA) != 0;
  // The field of a value that dies here is moved out of it.
  Object* field = take_field(source, static_cast<uint32_t>(in.b), in.sub != 0);
  if (last) set(r[in.a].object, nullptr);
  return field;
}

bool Interpreter::is_true(Slot& slot) {
  Tensor::Rep* rep = host_tensor(slot);
  if (rep->num_elements != 1) misuse("a scalar is expected");
  if (rep->dtype.is_bool()) return *static_cast<const uint8_t*>(rep->data) != 0;
  return Tensor::share(rep).get_as_double(0) != 0;
}

void Interpreter::call(const Function& callee, const Instruction& in) {
  const int32_t* list = frame().function->lists.data() + in.b;
  size_t caller = c_.frame_;
  push_frame(callee, &in);
  if (callee.writes_outputs) make_outputs(callee);
  Slot* from = c_.slots_.data() + caller + kFrameSlots;
  Slot* to = c_.slots_.data() + c_.frame_ + kFrameSlots;
  for (uint32_t n = 0; n < in.count; ++n) to[n].object = take_entry(from, list[n]);
}

void Interpreter::invoke_closure(const Instruction& in) {
  Window w = window();
  Cell* closure = cell(w.r[in.a].object, ObjectKind::closure);
  const Function& callee = callee_of(*closure, in);
  size_t caller = c_.frame_;
  push_frame(callee, &in);
  if (callee.writes_outputs) make_outputs(callee);
  Slot* from = c_.slots_.data() + caller + kFrameSlots;
  Slot* to = c_.slots_.data() + c_.frame_ + kFrameSlots;
  const bool last = (in.sub & kLastA) != 0;
  for (uint32_t n = 0; n < closure->count; ++n) (to++)->object = take_field(closure, n, last);
  const int32_t* list = w.function->lists.data() + in.b;
  for (uint32_t n = 0; n < in.count; ++n) to[n].object = take_entry(from, list[n]);
  if (last) set(from[in.a].object, nullptr);
}

void Interpreter::stage_args(const Instruction& in, Slot* r) {
  const int32_t* list = frame().function->lists.data() + in.b;
  // Reserve first: a value that is moved out of a register must have a place.
  c_.args_.reserve(c_.args_.size() + in.count);
  for (uint32_t n = 0; n < in.count; ++n) c_.args_.push_back(take_entry(r, list[n]));
}

void Interpreter::unstage_args(Slot* to) {
  for (Object* arg : c_.args_) (to++)->object = arg;
  c_.args_.clear();
}

Interpreter::Slot* Interpreter::replace_frame(const Function& callee) {
  const Instruction* call = frame().call;
  pop_frame();
  push_frame(callee, call);
  if (callee.writes_outputs) make_outputs(callee);
  return c_.slots_.data() + c_.frame_ + kFrameSlots;
}

void Interpreter::tail_call(const Function& callee, const Instruction& in) {
  stage_args(in, window().r);
  unstage_args(replace_frame(callee));
}

const Function& Interpreter::callee_of(const Cell& closure, const Instruction& in) {
  const Function& callee = program_.functions[static_cast<size_t>(closure.tag)];
  if (callee.params.size() != size_t{closure.count} + in.count) {
    misuse("a closure is called with a wrong number of arguments");
  }
  return callee;
}

void Interpreter::tail_invoke(const Instruction& in) {
  Slot* r = window().r;
  Cell* closure = cell(r[in.a].object, ObjectKind::closure);
  const Function& callee = callee_of(*closure, in);
  // Held while its frame is removed; an argument may be the closure, too.
  Value held = Value::adopt(take(r[in.a], (in.sub & kLastA) != 0));
  stage_args(in, r);
  Slot* to = replace_frame(callee);
  for (uint32_t n = 0; n < closure->count; ++n) (to++)->object = take_field(closure, n, true);
  unstage_args(to);
}

}  // namespace relay::runtime
