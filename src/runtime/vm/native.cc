// The interpreter and native functions: the way in, and what they ask for.
#include "base/budget.h"
#include "base/codes/runtime.h"
#include "runtime/core/native_layout.h"
#include "runtime/core/object_pool.h"
#include "runtime/vm/interpreter.h"

namespace relay::runtime {

namespace {

int64_t word_of(Object* object) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(object));
}
Object* object_of(int64_t word) { return reinterpret_cast<Object*>(static_cast<uintptr_t>(word)); }

relay_native_result result_of(Object* object) { return {word_of(object), 0}; }

DType dtype_of(int64_t key) { return DType::from_key(static_cast<uint32_t>(key)); }

}  // namespace

// What a helper does on the C stack.
struct Interpreter::NativeRequest {
  enum Kind { stack, fuel, fail, box, unbox, constant, destroy, ref_new, ref_read, ref_write };

  Kind kind;
  int64_t a = 0, b = 0, c = 0, d = 0;
};

relay_native_result Interpreter::serve_native(void* context, const void* request) {
  auto& self = *static_cast<Interpreter*>(context);
  try {
    return self.serve(*static_cast<const NativeRequest*>(request));
  } catch (...) {
    return self.keep_native_error();
  }
}

// Nothing is thrown through native code. What fails after the first error, while values are released, is due to it.
relay_native_result Interpreter::keep_native_error() {
  if (native_error_ == nullptr) native_error_ = std::current_exception();
  return {0, 1};
}

relay_native_result Interpreter::serve(const NativeRequest& r) {
  switch (r.kind) {
    case NativeRequest::stack:
      more_native_stack();
      return {0, 0};
    case NativeRequest::fuel:
      fuel_ = native_.fuel;
      out_of_fuel();
      native_.fuel = fuel_;
      return {0, 0};
    case NativeRequest::fail:
      if (r.a == RELAY_NATIVE_CALLED) {
        note_caller(program_.functions[static_cast<size_t>(r.b)], static_cast<int32_t>(r.c));
        return {0, 1};
      }
      fail_native(r.a, r.b, r.c, r.d);
    case NativeRequest::box:
      return result_of(box(r.a, dtype_of(r.b)));
    case NativeRequest::unbox: {
      // An immediate never gets here.
      Slot slot{object_of(r.a)};
      const Tensor::Rep* rep = tensor(slot);
      return {element({rep->data, tensor_bytes(rep)}, dtype_of(r.b)), 0};
    }
    case NativeRequest::constant:
      return result_of(Tensor(program_.constants[static_cast<size_t>(r.a)]).take());
    case NativeRequest::destroy:
      destroy_object(object_of(r.a));
      return {0, 0};
    case NativeRequest::ref_new: {
      Value content = Value::adopt(object_of(r.a));
      if (limited()) charge(sizeof(Cell));
      Cell* ref = make_ref_cell();
      ref->fields[0] = std::move(content).take();
      return result_of(ref);
    }
    case NativeRequest::ref_read:
      return result_of(take_field(cell(object_of(r.a), ObjectKind::ref), 0, false));
    case NativeRequest::ref_write: {
      Value content = Value::adopt(object_of(r.b));
      Cell* ref = cell(object_of(r.a), ObjectKind::ref);
      c_.refs_.written(ref, content.object());
      release_value(std::exchange(ref->fields[0], std::move(content).take()));
      return {0, 0};
    }
  }
  __builtin_unreachable();
}

void Interpreter::fail_native(int64_t kind, int64_t a, int64_t b, int64_t c) {
  switch (kind) {
    case RELAY_NATIVE_DIVISION:
      fail_run(codes::run_failed, kDivisionByZero);
    case RELAY_NATIVE_SIZE_DIVISION:
      fail_run(codes::run_failed, kSizeDivisionByZero);
    case RELAY_NATIVE_CHECK:
      stop(text(static_cast<int32_t>(a)), static_cast<int32_t>(b));
    case RELAY_NATIVE_NO_MATCH:
      no_match(static_cast<int32_t>(a), b, object_of(c));
    case RELAY_NATIVE_INDEX:
      no_such_index(a, b, static_cast<int32_t>(c));
    case RELAY_NATIVE_NOT_A_FUNCTION:
      misuse("a closure is called with a wrong number of arguments");
    default:
      misuse("a value of another kind is expected");
  }
}

void Interpreter::more_native_stack() {
  NativeStack& stack = *c_.native_stack_;
  const auto granted = static_cast<size_t>(stack.top() - native_.stack_limit);
  char* limit = stack.limit(2 * granted);
  if (limit == native_.stack_limit) too_deep(stack.bytes());
  const int64_t more = native_.stack_limit - limit;
  if (limited()) charge(more);
  native_.stack_limit = limit;
  native_stack_bytes_ += more;
}

bool Interpreter::make_native_stack() {
  if (c_.native_stack_ == nullptr) c_.native_stack_ = NativeStack::make();
  if (c_.native_stack_ == nullptr) {
    natives_ = {};
    return false;
  }
  native_.helpers = native_helpers();
  native_.runtime = this;
  // What every run has, like the interpreter's first frames.
  constexpr size_t kFirstStack = size_t{64} << 10;
  native_.stack_limit = c_.native_stack_->limit(kFirstStack);
  return true;
}

Object* Interpreter::call_native(size_t function, std::span<Object* const> args) {
  native_.fuel = fuel_;
  const relay_native_result out =
      call_on_stack(c_.native_stack_->top(), reinterpret_cast<StackFunction>(natives_[function]),
                    &native_, args.data(), &c_stack_);
  fuel_ = native_.fuel;
  if (out.failed != 0) [[unlikely]] {
    if (native_error_ == nullptr) misuse("a native function fails without a reason");
    std::rethrow_exception(std::exchange(native_error_, nullptr));
  }
  return object_of(out.value);
}

Object* Interpreter::call_native(const Instruction& in, Slot* r) {
  stage_args(in, r);
  // The callee takes them over.
  native_args_.clear();
  native_args_.swap(c_.args_);
  return call_native(in, static_cast<size_t>(in.a), native_args_);
}

Object* Interpreter::call_native(const Instruction& in, size_t function,
                                 std::span<Object* const> args) {
  try {
    return call_native(function, args);
  } catch (...) {
    // A call that leaves the frame is none of its callers.
    const bool stays = in.op == Opcode::call || in.op == Opcode::invoke_closure;
    const Function& caller = *frame().function;
    if (stays) note_caller(caller, place_of(caller, in));
    throw;
  }
}

Object* Interpreter::invoke_native(const Instruction& in, Slot* r) {
  const bool last = (in.sub & kLastA) != 0;
  Value held;
  Cell* closure = cell(r[in.a].object, ObjectKind::closure);
  const auto function = static_cast<size_t>(closure->tag);
  callee_of(*closure, in);
  const int32_t* list = frame().function->lists.data() + in.b;
  std::vector<Object*>& args = native_args_;
  args.clear();
  args.reserve(closure->count + in.count);
  // An argument may be the closure, too.
  if (last) held = Value::adopt(take(r[in.a], true));
  for (uint32_t n = 0; n < closure->count; ++n) args.push_back(take_field(closure, n, last));
  for (uint32_t n = 0; n < in.count; ++n) args.push_back(take_entry(r, list[n]));
  held = {};
  return call_native(in, function, args);
}

const relay_native_helpers* Interpreter::native_helpers() {
  using Context = relay_native_context;
  static constexpr auto ask = [](Context* ctx, NativeRequest::Kind kind, int64_t a = 0,
                                 int64_t b = 0, int64_t c = 0, int64_t d = 0) {
    auto& self = *static_cast<Interpreter*>(ctx->runtime);
    const NativeRequest request{kind, a, b, c, d};
    const auto below = reinterpret_cast<uintptr_t>(self.c_stack_) - kRedZone;
    char* unused = nullptr;
    return call_on_stack(reinterpret_cast<char*>(below & ~uintptr_t{63}), serve_native, &self,
                         &request, &unused);
  };
  using R = NativeRequest;
  static constexpr relay_native_helpers helpers{
      .more_stack = [](Context* ctx) { return ask(ctx, R::stack); },
      .out_of_fuel = [](Context* ctx) { return ask(ctx, R::fuel); },
      .fail = [](Context* ctx, int64_t kind, int64_t a, int64_t b,
                 int64_t c) { return ask(ctx, R::fail, kind, a, b, c); },
      .box = [](Context* ctx, int64_t bits,
                int64_t dtype) { return ask(ctx, R::box, bits, dtype); },
      .unbox = [](Context* ctx, int64_t word,
                  int64_t dtype) { return ask(ctx, R::unbox, word, dtype); },
      .constant = [](Context* ctx, int64_t index) { return ask(ctx, R::constant, index); },
      .cell = [](Context* ctx, int64_t kind, int64_t tag, int64_t count) -> relay_native_result {
        auto& self = *static_cast<Interpreter*>(ctx->runtime);
        try {
          if (self.limited()) {
            self.charge(static_cast<int64_t>(sizeof(Cell)) +
                        count * static_cast<int64_t>(sizeof(Object*)));
          }
          return result_of(Cell::make(static_cast<ObjectKind>(kind), static_cast<int32_t>(tag),
                                      static_cast<uint32_t>(count)));
        } catch (...) {
          return self.keep_native_error();
        }
      },
      .destroy = [](Context* ctx, int64_t word) { ask(ctx, R::destroy, word); },
      .ref_new = [](Context* ctx, int64_t content) { return ask(ctx, R::ref_new, content); },
      .ref_read = [](Context* ctx, int64_t ref) { return ask(ctx, R::ref_read, ref); },
      .ref_write = [](Context* ctx, int64_t ref,
                      int64_t content) { return ask(ctx, R::ref_write, ref, content); },
  };
  return &helpers;
}

}  // namespace relay::runtime
