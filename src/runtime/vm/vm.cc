#include "runtime/vm/vm.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/diagnostic_codes.h"
#include "runtime/cpu.h"
#include "runtime/profiler.h"

namespace relay::runtime {

namespace {

constexpr size_t kMaxStackBytes = size_t{512} << 20;

const char* kernel_error_text(int32_t code) {
  static constexpr const char* texts[RELAY_KERNEL_ERROR_COUNT] = {
      "no error",
      "an index is out of bounds",
      "an integer is divided by zero",
      "there is no memory for its workspace",
      "an internal check failed",
      "the shapes of its inputs do not fit together"};
  return code > 0 && code < RELAY_KERNEL_ERROR_COUNT ? texts[code] : "it reported an unknown error";
}

[[noreturn]] void fail(const DiagnosticCode& code, std::string message, std::string help = {}) {
  throw RuntimeError(Diagnostic(code, {}, std::move(message)).help(std::move(help)));
}

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
  if (b == 0) fail(codes::run_failed, "a shape computation divides by zero");
  if (b == -1) return wrapping(IntOp::sub, 0, a);
  int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
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
  }
  return 0;
}

DType key_dtype(int32_t key) { return DType::from_key(static_cast<uint32_t>(key)); }

}  // namespace

// One run. The context's vectors are the machine's memory; this holds what is fixed for the run.
class Interpreter {
 public:
  Interpreter(ExecutionContext& context, const Program& program,
              std::span<const relay_kernel> kernels, const RunOptions& options)
      : c_(context), program_(program), kernels_(kernels), options_(options) {
    int threads = c_.pool_->num_threads();
    if (options.num_threads > 0) threads = std::min(threads, options.num_threads);
    kernel_context_.abi_version = RELAY_KERNEL_ABI_VERSION;
    kernel_context_.num_threads = threads;
    kernel_context_.parallel_for = [](const relay_kernel_context* ctx, relay_parallel_body body,
                                      void* env, int64_t extent) -> int32_t {
      auto* self = static_cast<ExecutionContext*>(ctx->runtime);
      self->parallel_.store(true, std::memory_order_relaxed);
      return self->pool_->parallel_for(body, env, extent, ctx->num_threads);
    };
    kernel_context_.scratch = [](const relay_kernel_context* ctx, int64_t bytes) -> void* {
      return static_cast<ExecutionContext*>(ctx->runtime)->scratch_.allocate(bytes);
    };
    kernel_context_.runtime = &c_;
    bytes_before_ = thread_object_bytes();
    if (options.poison) c_.scratch_.poison(*options.poison);
  }

  ~Interpreter() {
    // After a failure frames are left; their values are let go here.
    while (!c_.frames_.empty()) pop_frame();
    for (Object* arg : c_.args_) release(arg);
    c_.args_.clear();
    c_.arena_.pop({});
    c_.scratch_.reset();
    // A deep recursion's memory is not kept for the next run.
    constexpr size_t kKeptRegisters = size_t{1} << 20;
    if (c_.registers_.capacity() > kKeptRegisters) {
      c_.registers_.shrink_to_fit();
      c_.int_registers_.shrink_to_fit();
      c_.frames_.shrink_to_fit();
      c_.arena_.trim();
    }
  }

  Value run(size_t function, std::span<const Value> args, std::span<const Tensor> outputs) {
    for (const Value& arg : args) {
      retain(arg.object());
      c_.args_.push_back(arg.object());
    }
    push_frame(program_.functions[function], 0, 0, outputs);
    return execute();
  }

 private:
  using Frame = ExecutionContext::Frame;

  // Enters a function whose arguments are in args_ (owned there, moved into its registers).
  void push_frame(const Function& function, uint32_t return_pc, int32_t return_reg,
                  std::span<const Tensor> outputs = {}) {
    size_t objects = c_.registers_.size();
    size_t buffers = function.writes_outputs ? function.results.size() : 0;
    size_t registers = static_cast<size_t>(function.num_registers) + buffers;
    check_stack(registers + static_cast<size_t>(function.num_int_registers));
    ArenaStack::Mark mark = c_.arena_.mark();
    if (limited()) charge(function.arena_bytes);
    char* arena = function.arena_bytes > 0
                      ? c_.arena_.push(static_cast<size_t>(function.arena_bytes))
                      : nullptr;
    if (options_.poison && arena != nullptr) {
      std::memset(arena, *options_.poison, static_cast<size_t>(function.arena_bytes));
    }
    c_.frames_.push_back(
        {&function, return_pc, return_reg, objects, c_.int_registers_.size(), mark, arena});
    c_.registers_.resize(objects + registers, nullptr);
    c_.int_registers_.resize(c_.int_registers_.size() +
                             static_cast<size_t>(function.num_int_registers));
    std::copy(c_.args_.begin(), c_.args_.end(), c_.registers_.begin() + static_cast<long>(objects));
    c_.args_.clear();
    for (size_t n = 0; n < buffers; ++n) {
      const TensorSpec& type = function.results[n].tensor;
      if (limited() && outputs.empty()) charge(type.byte_size());
      Tensor buffer = outputs.empty() ? Tensor::empty(type.dtype, type.shape) : outputs[n];
      c_.registers_[objects + static_cast<size_t>(function.num_registers) + n] =
          std::move(buffer).take();
    }
  }

  void pop_frame() {
    const Frame& frame = c_.frames_.back();
    for (size_t n = frame.registers; n < c_.registers_.size(); ++n) release(c_.registers_[n]);
    c_.registers_.resize(frame.registers);
    c_.int_registers_.resize(frame.int_registers);
    c_.arena_.pop(frame.mark);
    c_.frames_.pop_back();
  }

  // What the frame of a function with output buffers returns.
  Value collect_outputs() {
    const Frame& frame = c_.frames_.back();
    size_t first = frame.registers + static_cast<size_t>(frame.function->num_registers);
    std::span<Object*> buffers(c_.registers_.data() + first, frame.function->results.size());
    if (!frame.function->returns_tuple) return Value::share(buffers[0]);
    Cell* tuple = Cell::make(ObjectKind::tuple, 0, static_cast<uint32_t>(buffers.size()));
    for (size_t n = 0; n < buffers.size(); ++n) {
      retain(buffers[n]);
      tuple->fields[n] = buffers[n];
    }
    return Value::adopt(tuple);
  }

  bool limited() const { return options_.memory_limit >= 0; }

  // Called before `bytes` more are taken.
  void charge(int64_t bytes) const {
    int64_t held = thread_object_bytes() - bytes_before_ +
                   static_cast<int64_t>(c_.arena_.in_use() + c_.frames_.size() * sizeof(Frame) +
                                        c_.registers_.size() * sizeof(Object*));
    if (held <= options_.memory_limit &&
        bytes <= options_.memory_limit - std::max<int64_t>(held, 0)) {
      return;
    }
    fail(codes::run_out_of_memory,
         "the run exceeds its memory limit of " + std::to_string(options_.memory_limit) + " bytes",
         "raise the limit, or look for an endless recursion or a list that grows without end");
  }

  void check_stack(size_t registers) const {
    size_t bytes = c_.frames_.size() * sizeof(Frame) + c_.registers_.size() * sizeof(Object*) +
                   c_.int_registers_.size() * sizeof(int64_t) + registers * sizeof(Object*);
    if (bytes > kMaxStackBytes) [[unlikely]] {
      fail(codes::run_out_of_memory,
           "the calls nest too deep: " + std::to_string(c_.frames_.size()) + " frames are open",
           "look for a recursion without end");
    }
    if (limited()) charge(static_cast<int64_t>(registers * sizeof(Object*) + sizeof(Frame)));
  }

  [[noreturn]] void misuse(const char* what) const {
    const Frame& frame = c_.frames_.back();
    throw UserError(
        Diagnostic(codes::bytecode_invalid, {},
                   "the bytecode of function '" + frame.function->name + "' is invalid: " + what)
            .help("the artifact is damaged or was not written by Relay; compile the "
                  "model again"));
  }

  Tensor::Rep* tensor(Object* object) const {
    if (object == nullptr || object->kind != ObjectKind::tensor) [[unlikely]] {
      misuse("a tensor is expected");
    }
    return static_cast<Tensor::Rep*>(object);
  }

  Cell* cell(Object* object, ObjectKind kind) const {
    if (object == nullptr || object->kind != kind) [[unlikely]] {
      misuse("a value of another kind is expected");
    }
    return static_cast<Cell*>(object);
  }

  static size_t tensor_bytes(const Tensor::Rep* rep) {
    return static_cast<size_t>(rep->num_elements) * rep->dtype.bytes();
  }

  struct Place {
    void* data;
    size_t bytes;
  };
  Place resolve(const Operand& o, Object** r, const Function& function, char* arena) const {
    switch (o.kind) {
      case Operand::kArena:
        return {arena + o.index, static_cast<size_t>(o.bytes)};
      case Operand::kConstant: {
        const Tensor::Rep* rep = program_.constants[static_cast<size_t>(o.index)].rep();
        return {rep->data, tensor_bytes(rep)};
      }
      case Operand::kOutput: {
        const Tensor::Rep* rep = tensor(r[function.num_registers + o.index]);
        return {rep->data, tensor_bytes(rep)};
      }
      default: {
        const Tensor::Rep* rep = tensor(r[o.index]);
        return {rep->data, tensor_bytes(rep)};
      }
    }
  }

  void invoke_kernel(const Instruction& in, const Function& function, Object** r,
                     const int64_t* ints, char* arena) {
    const KernelInfo& kernel = program_.kernels[static_cast<size_t>(in.a)];
    const Operand* operands = function.operands.data() + in.b;
    size_t buffers = kernel.buffer_bytes.size();
    if (c_.buffers_.size() < buffers) c_.buffers_.resize(buffers);
    for (size_t n = 0; n < buffers; ++n) {
      Place place = resolve(operands[n], r, function, arena);
      if (static_cast<int64_t>(place.bytes) < kernel.buffer_bytes[n]) [[unlikely]] {
        misuse("a buffer is smaller than the kernel needs");
      }
      c_.buffers_[n] = place.data;
    }
    if (c_.dims_.size() < kernel.num_dims) c_.dims_.resize(kernel.num_dims);
    for (size_t n = 0; n < kernel.num_dims; ++n) c_.dims_[n] = ints[operands[buffers + n].index];
    if (options_.poison) poison_outputs(kernel, operands, r, function, arena);

    int32_t code;
    if (options_.profiler == nullptr) [[likely]] {
      code = kernels_[static_cast<size_t>(in.a)](c_.buffers_.data(), c_.dims_.data(),
                                                 &kernel_context_);
    } else {
      int64_t begin = Profiler::now_ns();
      code = kernels_[static_cast<size_t>(in.a)](c_.buffers_.data(), c_.dims_.data(),
                                                 &kernel_context_);
      options_.profiler->record(in.a, begin, Profiler::now_ns());
    }
    c_.scratch_.reset();
    if (code != 0) [[unlikely]]
      kernel_failed(kernel, code);
  }

  [[noreturn]] static void kernel_failed(const KernelInfo& kernel, int32_t code) {
    std::string where = kernel.origin.empty() ? std::string() : " (" + kernel.origin + ")";
    fail(code == RELAY_KERNEL_OUT_OF_MEMORY ? codes::run_out_of_memory : codes::run_kernel_failed,
         "kernel '" + kernel.name + "'" + where + " failed: " + kernel_error_text(code),
         code == RELAY_KERNEL_INDEX_OUT_OF_BOUNDS ? "check the indices in the input data" : "");
  }

  // Fills the outputs, but not where they share memory with an input (in-place operation).
  void poison_outputs(const KernelInfo& kernel, const Operand* operands, Object** r,
                      const Function& function, char* arena) const {
    size_t buffers = kernel.buffer_bytes.size();
    size_t inputs = buffers - kernel.num_outputs;
    for (size_t n = inputs; n < buffers; ++n) {
      Place out = resolve(operands[n], r, function, arena);
      auto begin = reinterpret_cast<uintptr_t>(out.data);
      bool shared = false;
      for (size_t m = 0; m < inputs; ++m) {
        Place place = resolve(operands[m], r, function, arena);
        auto other = reinterpret_cast<uintptr_t>(place.data);
        shared = shared || (other < begin + out.bytes && begin < other + place.bytes);
      }
      if (!shared) std::memset(out.data, *options_.poison, out.bytes);
    }
  }

  void copy(const Instruction& in, const Function& function, Object** r, char* arena) const {
    const Operand* operands = function.operands.data() + in.b;
    Place to = resolve(operands[0], r, function, arena);
    Place from = resolve(operands[1], r, function, arena);
    if (to.bytes != from.bytes) misuse("a copy of unequal sizes");
    if (to.bytes > 0) std::memmove(to.data, from.data, to.bytes);
  }

  static void set(Object*& slot, Object* object) { release(std::exchange(slot, object)); }

  Object* new_tensor(DType dtype, Shape shape) const {
    if (limited()) {
      charge(checked_num_elements(dtype, shape) * static_cast<int64_t>(dtype.bytes()));
    }
    Tensor t = Tensor::empty(dtype, shape);
    if (options_.poison) std::memset(t.data(), *options_.poison, t.byte_size());
    return std::move(t).take();
  }

  Object* new_cell(ObjectKind kind, int32_t tag, const Instruction& in, const Function& function,
                   Object** r) const {
    if (limited()) charge(static_cast<int64_t>(sizeof(Cell) + in.count * sizeof(Object*)));
    Cell* made = Cell::make(kind, tag, in.count);
    for (uint32_t n = 0; n < in.count; ++n) {
      Object* field = r[function.lists[static_cast<size_t>(in.b) + n]];
      retain(field);
      made->fields[n] = field;
    }
    return made;
  }

  void gather_dims(const Instruction& in, const Function& function, const int64_t* ints) {
    c_.dims_.clear();
    for (uint32_t n = 0; n < in.count; ++n) {
      c_.dims_.push_back(ints[function.lists[static_cast<size_t>(in.b) + n]]);
    }
  }

  Object* reshape(Tensor::Rep* rep) const {
    Tensor source = Tensor::share(rep);
    if (checked_num_elements(source.dtype(), c_.dims_) != source.num_elements()) {
      fail(codes::run_failed, "a tensor of shape " + shape_to_string(source.shape()) +
                                  " cannot be reshaped to " + shape_to_string(c_.dims_));
    }
    return source.reshape(Shape(c_.dims_)).take();
  }

  void push_args(const Instruction& in, const Function& function, Object** r) {
    for (uint32_t n = 0; n < in.count; ++n) {
      Object* arg = r[function.lists[static_cast<size_t>(in.b) + n]];
      retain(arg);
      c_.args_.push_back(arg);
    }
  }

  // Puts a closure's captured values and the call's arguments into args_.
  const Function& enter_closure(const Instruction& in, const Function& function, Object** r) {
    Cell* closure = cell(r[in.a], ObjectKind::closure);
    const Function& callee = program_.functions[static_cast<size_t>(closure->tag)];
    if (callee.params.size() != size_t{closure->count} + in.count) {
      misuse("a closure is called with a wrong number of arguments");
    }
    for (uint32_t n = 0; n < closure->count; ++n) {
      retain(closure->fields[n]);
      c_.args_.push_back(closure->fields[n]);
    }
    push_args(in, function, r);
    return callee;
  }

  static bool is_true(const Tensor::Rep* rep) {
    if (rep->dtype.is_bool()) return *static_cast<const uint8_t*>(rep->data) != 0;
    return Tensor::share(const_cast<Tensor::Rep*>(rep)).get_as_double(0) != 0;
  }

  const Tensor::Rep* one_element(Object* object) const {
    const Tensor::Rep* rep = tensor(object);
    if (rep->num_elements != 1) misuse("a scalar is expected");
    return rep;
  }

  std::string text(int32_t index) const {
    return index >= 0 ? program_.strings[static_cast<size_t>(index)] : std::string();
  }
  [[noreturn]] void stop(std::string message, int32_t place) const {
    std::string where = text(place);
    if (!where.empty()) message += ", at " + where;
    fail(codes::run_failed, std::move(message));
  }

  Value execute();

  ExecutionContext& c_;
  const Program& program_;
  std::span<const relay_kernel> kernels_;
  const RunOptions& options_;
  relay_kernel_context kernel_context_{};
  int64_t bytes_before_ = 0;
};

Value Interpreter::execute() {
  const Function* function = nullptr;
  const Instruction* code = nullptr;
  Object** r = nullptr;
  int64_t* i = nullptr;
  char* arena = nullptr;
  uint32_t pc = 0;
  // Frames move when the stack grows: the cached pointers are renewed at each call and return.
  auto load_frame = [&] {
    const Frame& frame = c_.frames_.back();
    function = frame.function;
    code = function->code.data();
    r = c_.registers_.data() + frame.registers;
    i = c_.int_registers_.data() + frame.int_registers;
    arena = frame.arena;
  };
  // Leaves the frame; true when it was the outermost.
  auto leave = [&](Value& result) {
    Frame frame = c_.frames_.back();
    pop_frame();
    if (c_.frames_.empty()) return true;
    load_frame();
    pc = frame.return_pc;
    set(r[frame.return_reg], std::move(result).take());
    return false;
  };
  // Replaces the frame by one of `callee`, whose arguments are in args_.
  auto replace = [&](const Function& callee) {
    Frame frame = c_.frames_.back();
    pop_frame();
    push_frame(callee, frame.return_pc, frame.return_reg);
    load_frame();
    pc = 0;
  };
  load_frame();
  int64_t fuel = options_.fuel >= 0 ? options_.fuel : std::numeric_limits<int64_t>::max();

  for (;;) {
    if (--fuel < 0) [[unlikely]] {
      fail(codes::run_out_of_fuel,
           "the run exceeds its limit of " + std::to_string(options_.fuel) + " instructions",
           "raise the limit, or look for a loop without end");
    }
    const Instruction& in = code[pc++];
    switch (in.op) {
      case Opcode::invoke_kernel:
        invoke_kernel(in, *function, r, i, arena);
        break;
      case Opcode::copy:
        copy(in, *function, r, arena);
        break;
      case Opcode::alloc_static: {
        const TensorSpec& type = function->types[static_cast<size_t>(in.a)];
        set(r[in.dst], new_tensor(type.dtype, type.shape));
        break;
      }
      case Opcode::alloc_tensor:
        gather_dims(in, *function, i);
        set(r[in.dst], new_tensor(key_dtype(in.a), c_.dims_));
        break;
      case Opcode::alloc_from_shape: {
        Tensor shape = Tensor::share(tensor(r[in.b]));
        if (shape.num_elements() > 1024) misuse("a rank out of range");
        c_.dims_.clear();
        for (int64_t n = 0; n < shape.num_elements(); ++n) {
          c_.dims_.push_back(shape.get_as_int(n));
        }
        set(r[in.dst], new_tensor(key_dtype(in.a), c_.dims_));
        break;
      }
      case Opcode::reshape:
        gather_dims(in, *function, i);
        set(r[in.dst], reshape(tensor(r[in.a])));
        break;
      case Opcode::shape_of: {
        const Tensor::Rep* rep = tensor(r[in.a]);
        if (in.b >= rep->rank) misuse("an axis is out of range");
        i[in.dst] = rep->shape[in.b];
        break;
      }
      case Opcode::rank_of:
        i[in.dst] = tensor(r[in.a])->rank;
        break;
      case Opcode::shape_tensor: {
        Tensor source = Tensor::share(tensor(r[in.a]));
        Tensor shape = Tensor::empty(key_dtype(in.b), {source.rank()});
        for (int n = 0; n < source.rank(); ++n) {
          shape.set_from_int(n, source.dim(static_cast<size_t>(n)));
        }
        set(r[in.dst], std::move(shape).take());
        break;
      }
      case Opcode::load_const:
        set(r[in.dst], Tensor(program_.constants[static_cast<size_t>(in.a)]).take());
        break;
      case Opcode::load_int:
        i[in.dst] = static_cast<int64_t>(static_cast<uint64_t>(static_cast<uint32_t>(in.a)) |
                                         static_cast<uint64_t>(static_cast<uint32_t>(in.b)) << 32);
        break;
      case Opcode::int_to_tensor:
        set(r[in.dst], Tensor::scalar(i[in.a], key_dtype(in.b)).take());
        break;
      case Opcode::tensor_to_int:
        one_element(r[in.a]);
        i[in.dst] = Tensor::share(tensor(r[in.a])).get_as_int(0);
        break;
      case Opcode::move:
        retain(r[in.a]);
        set(r[in.dst], r[in.a]);
        break;
      case Opcode::move_int:
        i[in.dst] = i[in.a];
        break;
      case Opcode::int_op:
        i[in.dst] = int_op(static_cast<IntOp>(in.sub), i[in.a], i[in.b]);
        break;
      case Opcode::if_false:
        if (!is_true(one_element(r[in.a]))) pc = static_cast<uint32_t>(in.b);
        break;
      case Opcode::if_zero:
        if (i[in.a] == 0) pc = static_cast<uint32_t>(in.b);
        break;
      case Opcode::jump:
        pc = static_cast<uint32_t>(in.b);
        break;
      case Opcode::jump_table:
        if (i[in.a] >= 0 && i[in.a] < static_cast<int64_t>(in.count)) {
          pc = static_cast<uint32_t>(
              function->lists[static_cast<size_t>(in.b) + static_cast<size_t>(i[in.a])]);
        }
        break;
      case Opcode::call:
        push_args(in, *function, r);
        push_frame(program_.functions[static_cast<size_t>(in.a)], pc, in.dst);
        load_frame();
        pc = 0;
        break;
      case Opcode::tail_call:
        push_args(in, *function, r);
        replace(program_.functions[static_cast<size_t>(in.a)]);
        break;
      case Opcode::invoke_closure:
        push_frame(enter_closure(in, *function, r), pc, in.dst);
        load_frame();
        pc = 0;
        break;
      case Opcode::tail_invoke:
        replace(enter_closure(in, *function, r));
        break;
      case Opcode::ret: {
        if (r[in.a] == nullptr) misuse("a function returns nothing");
        Value result = Value::share(r[in.a]);
        if (leave(result)) return result;
        break;
      }
      case Opcode::ret_outputs: {
        Value result = collect_outputs();
        if (leave(result)) return result;
        break;
      }
      case Opcode::alloc_closure:
        set(r[in.dst], new_cell(ObjectKind::closure, in.a, in, *function, r));
        break;
      case Opcode::alloc_adt:
        set(r[in.dst], new_cell(ObjectKind::adt, in.a, in, *function, r));
        break;
      case Opcode::alloc_tuple:
        set(r[in.dst], new_cell(ObjectKind::tuple, 0, in, *function, r));
        break;
      case Opcode::get_tag:
        i[in.dst] = cell(r[in.a], ObjectKind::adt)->tag;
        break;
      case Opcode::get_field: {
        Object* object = r[in.a];
        if (object == nullptr ||
            (object->kind != ObjectKind::adt && object->kind != ObjectKind::tuple)) {
          misuse("a value with fields is expected");
        }
        Cell* source = static_cast<Cell*>(object);
        if (static_cast<uint32_t>(in.b) >= source->count) misuse("a field is out of range");
        Object* field = source->fields[in.b];
        retain(field);
        set(r[in.dst], field);
        break;
      }
      case Opcode::ref_new: {
        if (limited()) charge(sizeof(Cell));
        Cell* ref = Cell::make(ObjectKind::ref, 0, 1);
        retain(r[in.a]);
        ref->fields[0] = r[in.a];
        set(r[in.dst], ref);
        break;
      }
      case Opcode::ref_read: {
        Object* content = cell(r[in.a], ObjectKind::ref)->fields[0];
        retain(content);
        set(r[in.dst], content);
        break;
      }
      case Opcode::ref_write: {
        Cell* ref = cell(r[in.a], ObjectKind::ref);
        retain(r[in.b]);
        set(ref->fields[0], r[in.b]);
        break;
      }
      case Opcode::kill:
        set(r[in.a], nullptr);
        break;
      case Opcode::fatal:
        stop(text(in.a), in.b);
      case Opcode::match_fail:
        stop("no pattern matches the value", in.a);
    }
  }
}

ExecutionContext::ExecutionContext(std::shared_ptr<ThreadPool> pool) : pool_(std::move(pool)) {}

ExecutionContext::~ExecutionContext() = default;

Value ExecutionContext::run(const Program& program, std::span<const relay_kernel> kernels,
                            size_t function, std::span<const Value> args,
                            std::span<const Tensor> outputs, const RunOptions& options) {
  FlushDenormals flush;
  int64_t begin = options.profiler != nullptr ? Profiler::now_ns() : 0;
  ThreadPool::Session session(*pool_, parallel_.exchange(false, std::memory_order_relaxed));
  Interpreter interpreter(*this, program, kernels, options);
  try {
    Value result = interpreter.run(function, args, outputs);
    if (options.profiler != nullptr) {
      options.profiler->record_run(begin, Profiler::now_ns());
    }
    return result;
  } catch (const std::bad_alloc&) {
    fail(codes::run_out_of_memory, "the run is out of memory");
  }
}

}  // namespace relay::runtime
