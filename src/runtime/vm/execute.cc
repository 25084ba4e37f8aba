#include <algorithm>
#include <bit>

#include "base/codes/runtime.h"
#include "runtime/core/object_pool.h"
#include "runtime/vm/interpreter.h"
#include "runtime/vm/opcode_table.h"

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
  if (b == 0) fail_run(codes::run_failed, kSizeDivisionByZero);
  if (b == -1) return wrapping(IntOp::sub, 0, a);
  int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t trunc_div(int64_t a, int64_t b) {
  if (b == 0) fail_run(codes::run_failed, kDivisionByZero);
  return b == -1 ? wrapping(IntOp::sub, 0, a) : a / b;
}

int64_t int_op(IntOp op, int64_t a, int64_t b) {
  switch (op) {
    case IntOp::add:
      return wrapping(IntOp::add, a, b);
    case IntOp::sub:
      return wrapping(IntOp::sub, a, b);
    case IntOp::mul:
      return wrapping(IntOp::mul, a, b);
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
  __builtin_unreachable();
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

}  // namespace

Value Interpreter::execute() {
  Window w;
  Slot* r = nullptr;
  Slot* i = nullptr;
  const Instruction* at = nullptr;
  // Without a call or a jump backwards there is an end. Native functions count the same.
  auto spend = [&]() __attribute__((always_inline)) {
    if (--fuel_ < 0) [[unlikely]]
      out_of_fuel();
  };
  // All are inlined: their variables stay in machine registers.
  auto load = [&](const Instruction* where) __attribute__((always_inline)) {
    w = window();
    r = w.r;
    i = w.i;
    at = where;
  };
  auto enter = [&]() __attribute__((always_inline)) {
    spend();
    load(frame().function->code.data());
  };
  auto jump = [&](int32_t to) __attribute__((always_inline)) {
    const Instruction* target = w.function->code.data() + to;
    if (target <= at) spend();
    at = target;
  };
  // Leaves the frame with a result that is owned; true when the frame was the outermost.
  auto leave = [&](Object * result) __attribute__((always_inline)) {
    const Instruction* call = frame().call;
    pop_frame();
    if (c_.depth_ == 0) return true;
    load(call);
    set(r[call->dst].object, result);
    return false;
  };
  enter();

  // Instructions that set the next instruction continue the loop; the others are followed by the next one.
  for (;;) {
    const Instruction& in = *at;
    switch (in.op) {
      case Opcode::invoke_kernel:
        invoke_kernel(in, w);
        break;
      case Opcode::copy:
        copy(in, w);
        break;
      case Opcode::write_lines:
        set(r[in.dst].object, write_lines(in, w));
        break;
      case Opcode::alloc_static: {
        const TensorSpec& type = w.function->types[static_cast<size_t>(in.a)];
        new_tensor(r[in.dst], type.dtype, type.shape, type.device);
        break;
      }
      case Opcode::alloc_tensor:
        gather_dims(in, w);
        new_tensor(r[in.dst], key_dtype(in.a), c_.dims_, device_at(w, in.sub));
        break;
      case Opcode::alloc_place:
        alloc_place(in, w);
        break;
      case Opcode::to_device:
      case Opcode::to_host:
        i[in.dst].integer = static_cast<int64_t>(transfer(in, w));
        break;
      case Opcode::wait:
        wait(device_at(w, in.sub), static_cast<uint64_t>(i[in.a].integer));
        break;
      case Opcode::alloc_from_shape: {
        Tensor shape = Tensor::share(host_tensor(r[in.b]));
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
        set(r[in.dst].object, reshape(tensor(r[in.a])));
        break;
      case Opcode::shape_of: {
        const Tensor::Rep* rep = tensor(r[in.a]);
        if (in.b >= rep->rank) misuse("an axis is out of range");
        i[in.dst].integer = rep->shape[in.b];
        break;
      }
      case Opcode::rank_of:
        i[in.dst].integer = tensor(r[in.a])->rank;
        break;
      case Opcode::shape_tensor:
        set(r[in.dst].object, shape_tensor(tensor(r[in.a]), key_dtype(in.b)));
        break;
      case Opcode::load_const:
        set(r[in.dst].object, load_constant(static_cast<size_t>(in.a)));
        break;
      case Opcode::load_int:
        i[in.dst].integer = wide_number(in);
        break;
      case Opcode::load_scalar:
        i[in.dst].integer = load_scalar(in, w);
        break;
      case Opcode::box:
        set(r[in.dst].object, scalar_value(i[in.a].integer, key_dtype(in.b)));
        break;
      case Opcode::unbox:
        if (is_immediate(r[in.a].object)) [[likely]] {
          // An element of another dtype than the instruction's is a number like any other.
          i[in.dst].integer = immediate_bits(r[in.a].object);
          if ((in.sub & kLastA) != 0) r[in.a].object = nullptr;
        } else {
          i[in.dst].integer = unbox(in, r);
        }
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
      case Opcode::index_in: {
        const int64_t size = i[in.b].integer;
        int64_t place = i[in.a].integer;
        place += place < 0 ? size : 0;
        if (place < 0 || place >= size) [[unlikely]]
          no_such_index(i[in.a].integer, size, static_cast<int32_t>(in.count));
        i[in.dst].integer = place;
        break;
      }
      case Opcode::if_false: {
        bool jumps = !is_true(r[in.a]);
        if ((in.sub & kLastA) != 0) set(r[in.a].object, nullptr);
        if (!jumps) break;
        jump(in.b);
        continue;
      }
      case Opcode::if_zero:
        if (i[in.a].integer != 0) break;
        jump(in.b);
        continue;
      case Opcode::if_not_tag:
        if (tag(r[in.a].object) != static_cast<int32_t>(in.count)) {
          jump(in.b);
          continue;
        }
        break;
      case Opcode::jump:
        jump(in.b);
        continue;
      case Opcode::jump_table: {
        int64_t index = i[in.a].integer;
        if (index >= 0 && index < static_cast<int64_t>(in.count)) {
          jump(w.function->lists[static_cast<size_t>(in.b) + static_cast<size_t>(index)]);
          continue;
        }
        break;
      }
      case Opcode::call:
        if (is_native(in.a)) {
          set(r[in.dst].object, call_native(in, r));
          break;
        }
        call(program_.functions[static_cast<size_t>(in.a)], in);
        enter();
        continue;
      case Opcode::tail_call:
        if (is_native(in.a)) {
          Object* result = call_native(in, r);
          if (leave(result)) return Value::adopt(result);
          break;
        }
        tail_call(program_.functions[static_cast<size_t>(in.a)], in);
        enter();
        continue;
      case Opcode::invoke_closure:
        if (invokes_native(r[in.a].object)) {
          set(r[in.dst].object, invoke_native(in, r));
          break;
        }
        invoke_closure(in);
        enter();
        continue;
      case Opcode::tail_invoke:
        if (invokes_native(r[in.a].object)) {
          Object* result = invoke_native(in, r);
          if (leave(result)) return Value::adopt(result);
          break;
        }
        tail_invoke(in);
        enter();
        continue;
      case Opcode::ret: {
        // The frame ends here: its register is moved out of.
        Object* result = take(r[in.a], true);
        if (result == nullptr) misuse("a function returns nothing");
        if (leave(result)) return Value::adopt(result);
        break;
      }
      case Opcode::ret_scalar: {
        Object* result = scalar_value(i[in.a].integer, key_dtype(in.b));
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
        i[in.dst].integer = tag(r[in.a].object);
        break;
      case Opcode::get_field:
        set(r[in.dst].object, get_field(in, r));
        break;
      case Opcode::ref_new: {
        if (limited()) charge(sizeof(Cell));
        Cell* ref = make_ref_cell();
        ref->fields[0] = take(r[in.a], (in.sub & kLastA) != 0);
        set(r[in.dst].object, ref);
        break;
      }
      case Opcode::ref_read: {
        const bool last = (in.sub & kLastA) != 0;
        Object* content = take_field(cell(r[in.a].object, ObjectKind::ref), 0, last);
        if (last) set(r[in.a].object, nullptr);
        set(r[in.dst].object, content);
        break;
      }
      case Opcode::ref_write: {
        Cell* ref = cell(r[in.a].object, ObjectKind::ref);
        Object* content = take(r[in.b], (in.sub & kLastB) != 0);
        c_.refs_.written(ref, content);
        Object* before = std::exchange(ref->fields[0], content);
        if ((in.sub & kLastA) != 0) set(r[in.a].object, nullptr);
        release_value(before);
        break;
      }
      case Opcode::kill:
        for (uint32_t n = 0; n < in.count; ++n) {
          int32_t entry = w.function->lists[static_cast<size_t>(in.b) + n];
          set(r[entry < 0 ? ~entry : entry].object, nullptr);
        }
        break;
      case Opcode::fatal:
        fatal(in, w);
      case Opcode::match_fail:
        no_match(in.a, in.count, in.b > 0 ? r[in.b - 1].object : nullptr);
    }
    ++at;
  }
}

}  // namespace relay::runtime
