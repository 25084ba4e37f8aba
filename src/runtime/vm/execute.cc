#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "runtime/core/object_pool.h"
#include "runtime/vm/interpreter.h"

namespace relay::runtime {

namespace {

int64_t wrapping(IntOp op, int64_t a, int64_t b) {
  uint64_t x = static_cast<uint64_t>(a);
  uint64_t y = static_cast<uint64_t>(b);
  switch (op) {
    case IntOp::add:
      return static_cast<int64_t>(x + y);
    case IntOp::sub:
      return static_cast<int64_t>(x - y);
    default:
      return static_cast<int64_t>(x * y);
  }
}

int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) fail_run(codes::run_failed, "a shape computation divides by zero");
  if (b == -1) return wrapping(IntOp::sub, 0, a);
  int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t trunc_div(int64_t a, int64_t b) {
  if (b == 0) fail_run(codes::run_failed, "an integer is divided by zero");
  return b == -1 ? wrapping(IntOp::sub, 0, a) : a / b;
}

int64_t int_op(IntOp op, int64_t a, int64_t b) {
  switch (op) {
    case IntOp::add:
    case IntOp::sub:
    case IntOp::mul:
      return wrapping(op, a, b);
    case IntOp::floor_div:
      return floor_div(a, b);
    case IntOp::floor_mod:
      return wrapping(IntOp::sub, a, wrapping(IntOp::mul, floor_div(a, b), b));
    case IntOp::min:
      return std::min(a, b);
    case IntOp::max:
      return std::max(a, b);
    case IntOp::eq:
      return a == b;
    case IntOp::ne:
      return a != b;
    case IntOp::lt:
      return a < b;
    case IntOp::le:
      return a <= b;
    case IntOp::both:
      return a != 0 && b != 0;
    case IntOp::either:
      return a != 0 || b != 0;
    case IntOp::div:
      return trunc_div(a, b);
    case IntOp::mod:
      return wrapping(IntOp::sub, a, wrapping(IntOp::mul, trunc_div(a, b), b));
    case IntOp::bit_and:
      return a & b;
    case IntOp::bit_or:
      return a | b;
    case IntOp::bit_xor:
      return a ^ b;
    case IntOp::shift_left:
      return static_cast<int64_t>(static_cast<uint64_t>(a) << (b & 63));
    case IntOp::shift_right:
      return a >> (b & 63);
  }
  return 0;
}

// A float32 is kept sign-extended like an int32, so that a scalar has one form in its register.
float as_float(int64_t bits) { return std::bit_cast<float>(static_cast<int32_t>(bits)); }
double as_double(int64_t bits) { return std::bit_cast<double>(bits); }
int64_t bits_of(float value) { return std::bit_cast<int32_t>(value); }
int64_t bits_of(double value) { return std::bit_cast<int64_t>(value); }

template <typename T>
int64_t float_op(FloatOp op, T a, T b) {
  switch (op) {
    case FloatOp::add:
      return bits_of(a + b);
    case FloatOp::sub:
      return bits_of(a - b);
    case FloatOp::mul:
      return bits_of(a * b);
    case FloatOp::div:
      return bits_of(a / b);
    case FloatOp::eq:
      return a == b;
    case FloatOp::ne:
      return a != b;
    case FloatOp::lt:
      return a < b;
    case FloatOp::le:
      return a <= b;
  }
  return 0;
}

int64_t convert(ScalarConversion conversion, int64_t a) {
  switch (conversion) {
    case ScalarConversion::int_to_float32:
      return bits_of(static_cast<float>(a));
    case ScalarConversion::int_to_float64:
      return bits_of(static_cast<double>(a));
    case ScalarConversion::float32_to_float64:
      return bits_of(static_cast<double>(as_float(a)));
    case ScalarConversion::float64_to_float32:
      return bits_of(static_cast<float>(as_double(a)));
  }
  return 0;
}

// Whether the register's tensor can serve as a new one: of that type, with memory of its own, and
// nobody else's.
bool reusable(const Object* object, DType dtype, Shape shape) {
  if (object == nullptr || object->kind != ObjectKind::tensor ||
      object->refs.load(std::memory_order_acquire) != 1) {
    return false;
  }
  auto* rep = static_cast<const Tensor::Rep*>(object);
  auto* begin = reinterpret_cast<const char*>(rep);
  auto* data = static_cast<const char*>(rep->data);
  bool own = data >= begin && data < begin + rep->own_bytes;
  return own && rep->owner == nullptr && !rep->read_only && rep->dtype == dtype &&
         std::ranges::equal(Shape(rep->shape, static_cast<size_t>(rep->rank)), shape);
}

}  // namespace

void Interpreter::new_tensor(Slot& slot, DType dtype, Shape shape) {
  if (!reusable(slot.object, dtype, shape)) {
    set(slot.object, nullptr);
    if (limited()) {
      charge(checked_num_elements(dtype, shape) * static_cast<int64_t>(dtype.bytes()));
    }
    slot.object = Tensor::empty(dtype, shape).take();
  }
  auto* rep = static_cast<Tensor::Rep*>(slot.object);
  if (options_.poison) std::memset(rep->data, *options_.poison, tensor_bytes(rep));
}

Object* Interpreter::box(int64_t scalar, DType dtype) {
  if (limited()) charge(sizeof(Tensor::Rep));
  auto* rep = static_cast<Tensor::Rep*>(new_scalar(dtype));
  // Little-endian: the element's bytes are the first ones of the register.
  if (dtype.bits == 64) {
    std::memcpy(rep->data, &scalar, 8);
  } else if (dtype.bits == 32) {
    std::memcpy(rep->data, &scalar, 4);
  } else {
    *static_cast<uint8_t*>(rep->data) = scalar != 0;
  }
  return rep;
}

Object* Interpreter::new_cell(ObjectKind kind, int32_t tag, const Instruction& in,
                              const Window& w) {
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

Object* Interpreter::reshape(Tensor::Rep* rep) {
  Tensor source = Tensor::share(rep);
  if (checked_num_elements(source.dtype(), c_.dims_) != source.num_elements()) {
    fail_run(codes::run_failed, "a tensor of shape " + shape_to_string(source.shape()) +
                                    " cannot be reshaped to " + shape_to_string(c_.dims_));
  }
  return source.reshape(Shape(c_.dims_)).take();
}

Object* Interpreter::shape_tensor(const Tensor::Rep* rep, DType dtype) {
  Tensor shape = Tensor::empty(dtype, {rep->rank});
  for (int n = 0; n < rep->rank; ++n) shape.set_from_int(n, rep->shape[n]);
  return std::move(shape).take();
}

Object* Interpreter::get_field(const Instruction& in, Slot* r) {
  Object* object = r[in.a].object;
  if (object == nullptr || (object->kind != ObjectKind::adt && object->kind != ObjectKind::tuple))
      [[unlikely]] {
    misuse("a value with fields is expected");
  }
  Cell* source = static_cast<Cell*>(object);
  if (static_cast<uint32_t>(in.b) >= source->count) misuse("a field is out of range");
  bool last = (in.sub & kLastA) != 0;
  // The field of a value that dies here is moved out of it.
  if (last && source->refs.load(std::memory_order_acquire) == 1) {
    Object* field = std::exchange(source->fields[in.b], nullptr);
    set(r[in.a].object, nullptr);
    return field;
  }
  Object* field = source->fields[in.b];
  retain(field);
  if (last) set(r[in.a].object, nullptr);
  return field;
}

bool Interpreter::is_true(Object* object) {
  Tensor::Rep* rep = tensor(object);
  if (rep->num_elements != 1) misuse("a scalar is expected");
  if (rep->dtype.is_bool()) return *static_cast<const uint8_t*>(rep->data) != 0;
  return Tensor::share(rep).get_as_double(0) != 0;
}

void Interpreter::call(const Function& callee, const Instruction& in, uint32_t return_pc) {
  const int32_t* list = frame().function->lists.data() + in.b;
  size_t caller = c_.frame_;
  push_frame(callee, return_pc, in.dst);
  if (callee.writes_outputs) make_outputs(callee);
  Slot* from = c_.slots_.data() + caller + kFrameSlots;
  Slot* to = c_.slots_.data() + c_.frame_ + kFrameSlots;
  for (uint32_t n = 0; n < in.count; ++n) to[n].object = take_entry(from, list[n]);
}

void Interpreter::invoke_closure(const Instruction& in, uint32_t return_pc) {
  Window w = window();
  Cell* closure = cell(w.r[in.a].object, ObjectKind::closure);
  const Function& callee = program_.functions[static_cast<size_t>(closure->tag)];
  if (callee.params.size() != size_t{closure->count} + in.count) {
    misuse("a closure is called with a wrong number of arguments");
  }
  size_t caller = c_.frame_;
  push_frame(callee, return_pc, in.dst);
  if (callee.writes_outputs) make_outputs(callee);
  Slot* from = c_.slots_.data() + caller + kFrameSlots;
  Slot* to = c_.slots_.data() + c_.frame_ + kFrameSlots;
  for (uint32_t n = 0; n < closure->count; ++n) {
    retain(closure->fields[n]);
    (to++)->object = closure->fields[n];
  }
  const int32_t* list = w.function->lists.data() + in.b;
  for (uint32_t n = 0; n < in.count; ++n) to[n].object = take_entry(from, list[n]);
  if ((in.sub & kLastA) != 0) set(from[in.a].object, nullptr);
}

void Interpreter::stage_args(const Instruction& in, Slot* r) {
  const int32_t* list = frame().function->lists.data() + in.b;
  for (uint32_t n = 0; n < in.count; ++n) c_.args_.push_back(take_entry(r, list[n]));
}

const Function& Interpreter::stage_closure(const Instruction& in, Slot* r) {
  Cell* closure = cell(r[in.a].object, ObjectKind::closure);
  const Function& callee = program_.functions[static_cast<size_t>(closure->tag)];
  if (callee.params.size() != size_t{closure->count} + in.count) {
    misuse("a closure is called with a wrong number of arguments");
  }
  for (uint32_t n = 0; n < closure->count; ++n) {
    retain(closure->fields[n]);
    c_.args_.push_back(closure->fields[n]);
  }
  stage_args(in, r);
  return callee;
}

void Interpreter::replace_frame(const Function& callee) {
  uint32_t return_pc = frame().return_pc;
  int32_t return_reg = frame().return_reg;
  pop_frame();
  push_frame(callee, return_pc, return_reg);
  if (callee.writes_outputs) make_outputs(callee);
  Slot* r = c_.slots_.data() + c_.frame_ + kFrameSlots;
  for (Object* arg : c_.args_) (r++)->object = arg;
  c_.args_.clear();
}

Value Interpreter::execute() {
  Window w;
  Slot* r = nullptr;
  Slot* i = nullptr;
  const Instruction* code = nullptr;
  uint32_t pc = 0;
  // Both are inlined: what they change stays in machine registers.
  auto load = [&](uint32_t at) __attribute__((always_inline)) {
    w = window();
    r = w.r;
    i = w.i;
    code = w.function->code.data();
    pc = at;
  };
  // Leaves the frame with a result that is owned; true when the frame was the outermost.
  auto leave = [&](Object * result) __attribute__((always_inline)) {
    uint32_t return_pc = frame().return_pc;
    int32_t return_reg = frame().return_reg;
    pop_frame();
    if (c_.depth_ == 0) return true;
    load(return_pc);
    set(r[return_reg].object, result);
    return false;
  };
  load(0);
  int64_t fuel = options_.fuel >= 0 ? options_.fuel : std::numeric_limits<int64_t>::max();

  for (;;) {
    if (--fuel < 0) [[unlikely]] {
      fail_run(codes::run_out_of_fuel,
               "the run exceeds its limit of " + std::to_string(options_.fuel) + " instructions",
               "raise the limit, or look for a loop without end");
    }
    const Instruction& in = code[pc++];
    switch (in.op) {
      case Opcode::invoke_kernel:
        invoke_kernel(in, w);
        break;
      case Opcode::copy:
        copy(in, w);
        break;
      case Opcode::alloc_static: {
        const TensorSpec& type = w.function->types[static_cast<size_t>(in.a)];
        new_tensor(r[in.dst], type.dtype, type.shape);
        break;
      }
      case Opcode::alloc_tensor:
        gather_dims(in, w);
        new_tensor(r[in.dst], key_dtype(in.a), c_.dims_);
        break;
      case Opcode::alloc_from_shape: {
        Tensor shape = Tensor::share(tensor(r[in.b].object));
        if (shape.num_elements() > 1024) misuse("a rank out of range");
        c_.dims_.clear();
        for (int64_t n = 0; n < shape.num_elements(); ++n) {
          c_.dims_.push_back(shape.get_as_int(n));
        }
        new_tensor(r[in.dst], key_dtype(in.a), c_.dims_);
        break;
      }
      case Opcode::reshape:
        gather_dims(in, w);
        set(r[in.dst].object, reshape(tensor(r[in.a].object)));
        break;
      case Opcode::shape_of: {
        const Tensor::Rep* rep = tensor(r[in.a].object);
        if (in.b >= rep->rank) misuse("an axis is out of range");
        i[in.dst].integer = rep->shape[in.b];
        break;
      }
      case Opcode::rank_of:
        i[in.dst].integer = tensor(r[in.a].object)->rank;
        break;
      case Opcode::shape_tensor:
        set(r[in.dst].object, shape_tensor(tensor(r[in.a].object), key_dtype(in.b)));
        break;
      case Opcode::load_const:
        set(r[in.dst].object, Tensor(program_.constants[static_cast<size_t>(in.a)]).take());
        break;
      case Opcode::load_int:
        i[in.dst].integer =
            static_cast<int64_t>(static_cast<uint64_t>(static_cast<uint32_t>(in.a)) |
                                 static_cast<uint64_t>(static_cast<uint32_t>(in.b)) << 32);
        break;
      case Opcode::load_scalar:
        i[in.dst].integer = load_scalar(in, w);
        if ((in.sub & kLastA) != 0) {
          const Operand& from = w.function->operands[static_cast<size_t>(in.b)];
          if (from.kind == Operand::kRegister) set(r[from.index].object, nullptr);
        }
        break;
      case Opcode::box:
        set(r[in.dst].object, box(i[in.a].integer, key_dtype(in.b)));
        break;
      case Opcode::move:
        set(r[in.dst].object, take(r[in.a], (in.sub & kLastA) != 0));
        break;
      case Opcode::swap:
        std::swap(r[in.dst].object, r[in.a].object);
        break;
      case Opcode::move_int:
        i[in.dst].integer = i[in.a].integer;
        break;
      case Opcode::int_op: {
        int64_t value = int_op(static_cast<IntOp>(in.sub), i[in.a].integer, i[in.b].integer);
        i[in.dst].integer = in.count == 32 ? static_cast<int32_t>(value) : value;
        break;
      }
      case Opcode::float_op: {
        auto op = static_cast<FloatOp>(in.sub);
        int64_t a = i[in.a].integer, b = i[in.b].integer;
        i[in.dst].integer = in.count == 32 ? float_op(op, as_float(a), as_float(b))
                                           : float_op(op, as_double(a), as_double(b));
        break;
      }
      case Opcode::convert:
        i[in.dst].integer = convert(static_cast<ScalarConversion>(in.sub), i[in.a].integer);
        break;
      case Opcode::if_false:
        if (!is_true(r[in.a].object)) pc = static_cast<uint32_t>(in.b);
        if ((in.sub & kLastA) != 0) set(r[in.a].object, nullptr);
        break;
      case Opcode::if_zero:
        if (i[in.a].integer == 0) pc = static_cast<uint32_t>(in.b);
        break;
      case Opcode::if_not_tag:
        if (cell(r[in.a].object, ObjectKind::adt)->tag != static_cast<int32_t>(in.count)) {
          pc = static_cast<uint32_t>(in.b);
        }
        break;
      case Opcode::jump:
        pc = static_cast<uint32_t>(in.b);
        break;
      case Opcode::jump_table: {
        int64_t index = i[in.a].integer;
        if (index >= 0 && index < static_cast<int64_t>(in.count)) {
          pc = static_cast<uint32_t>(
              w.function->lists[static_cast<size_t>(in.b) + static_cast<size_t>(index)]);
        }
        break;
      }
      case Opcode::call:
        call(program_.functions[static_cast<size_t>(in.a)], in, pc);
        load(0);
        break;
      case Opcode::tail_call: {
        const Function& callee = program_.functions[static_cast<size_t>(in.a)];
        stage_args(in, r);
        replace_frame(callee);
        load(0);
        break;
      }
      case Opcode::invoke_closure:
        invoke_closure(in, pc);
        load(0);
        break;
      case Opcode::tail_invoke:
        replace_frame(stage_closure(in, r));
        load(0);
        break;
      case Opcode::ret: {
        // The frame ends here: its register is moved out of.
        Object* result = take(r[in.a], true);
        if (result == nullptr) misuse("a function returns nothing");
        if (leave(result)) return Value::adopt(result);
        break;
      }
      case Opcode::ret_outputs: {
        Object* result = collect_outputs();
        if (leave(result)) return Value::adopt(result);
        break;
      }
      case Opcode::alloc_closure:
        set(r[in.dst].object, new_cell(ObjectKind::closure, in.a, in, w));
        break;
      case Opcode::alloc_adt:
        set(r[in.dst].object, new_cell(ObjectKind::adt, in.a, in, w));
        break;
      case Opcode::alloc_tuple:
        set(r[in.dst].object, new_cell(ObjectKind::tuple, 0, in, w));
        break;
      case Opcode::get_tag:
        i[in.dst].integer = cell(r[in.a].object, ObjectKind::adt)->tag;
        break;
      case Opcode::get_field:
        set(r[in.dst].object, get_field(in, r));
        break;
      case Opcode::ref_new: {
        if (limited()) charge(sizeof(Cell));
        Cell* ref = c_.refs_.make();
        ref->fields[0] = take(r[in.a], (in.sub & kLastA) != 0);
        set(r[in.dst].object, ref);
        break;
      }
      case Opcode::ref_read: {
        Object* content = cell(r[in.a].object, ObjectKind::ref)->fields[0];
        retain(content);
        if ((in.sub & kLastA) != 0) set(r[in.a].object, nullptr);
        set(r[in.dst].object, content);
        break;
      }
      case Opcode::ref_write: {
        Cell* ref = cell(r[in.a].object, ObjectKind::ref);
        // Held while its content changes: the two registers may be one.
        retain(ref);
        set(ref->fields[0], take(r[in.b], (in.sub & kLastB) != 0));
        if ((in.sub & kLastA) != 0) set(r[in.a].object, nullptr);
        release(ref);
        break;
      }
      case Opcode::kill:
        for (uint32_t n = 0; n < in.count; ++n) {
          int32_t entry = w.function->lists[static_cast<size_t>(in.b) + n];
          set(r[entry < 0 ? ~entry : entry].object, nullptr);
        }
        break;
      case Opcode::fatal:
        stop(text(in.a), in.b);
      case Opcode::match_fail:
        stop("no pattern matches the value", in.a);
    }
  }
}

}  // namespace relay::runtime
