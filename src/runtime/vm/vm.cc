#include "runtime/vm/vm.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/budget.h"
#include "base/codes/runtime.h"
#include "runtime/core/data_text.h"
#include "runtime/core/object_pool.h"
#include "runtime/core/print.h"
#include "runtime/core/strings.h"
#include "runtime/cpu.h"
#include "runtime/profiler.h"
#include "runtime/vm/interpreter.h"

namespace relay::runtime {

namespace {

constexpr size_t kMaxStackBytes = NativeStack::kBytes;
// Calls that an error lists.
constexpr size_t kMaxCallers = 4;

}  // namespace

void fail_run(const DiagnosticCode& code, std::string message, std::string help) {
  throw RuntimeError(Diagnostic(code, {}, std::move(message)).help(std::move(help)));
}

Interpreter::Interpreter(ExecutionContext& context, const Program& program,
                         std::span<const relay_kernel> kernels,
                         std::span<const relay_native_function> natives, const RunOptions& options)
    : c_(context),
      program_(program),
      kernels_(kernels),
      natives_(options.native ? natives : std::span<const relay_native_function>()),
      options_(options),
      budgeted_(current_budget() != nullptr),
      fuel_left_(options.fuel >= 0 ? options.fuel : std::numeric_limits<int64_t>::max()) {
  c_.interpreter_ = this;
  refuel();
  int threads = c_.pool_->num_threads();
  if (options.num_threads > 0) threads = std::min(threads, options.num_threads);
  kernel_context_.abi_version = RELAY_KERNEL_ABI_VERSION;
  kernel_context_.num_threads = threads;
  kernel_context_.error = &kernel_error_;
  kernel_context_.parallel_for = [](const relay_kernel_context* ctx, relay_parallel_body body,
                                    void* env, int64_t extent) -> int32_t {
    auto* self = static_cast<ExecutionContext*>(ctx->runtime);
    if (extent == 0) return self->may_go_on(reinterpret_cast<intptr_t>(env));
    self->parallel_.store(true, std::memory_order_relaxed);
    auto waiting = [](void* context) { static_cast<ExecutionContext*>(context)->may_go_on(0); };
    return self->pool_->parallel_for(body, env, extent, ctx->num_threads, waiting, self);
  };
  kernel_context_.scratch = [](const relay_kernel_context* ctx, int64_t bytes) -> void* {
    return static_cast<ExecutionContext*>(ctx->runtime)->scratch_.allocate(bytes);
  };
  kernel_context_.strings = string_functions();
  kernel_context_.keep = [](const relay_kernel_context* ctx, int64_t bytes) -> void* {
    return static_cast<ExecutionContext*>(ctx->runtime)->strings_.allocate(bytes);
  };
  kernel_context_.runtime = &c_;
  bytes_before_ = thread_object_bytes();
  if (options.poison) c_.scratch_.poison(*options.poison);
  c_.scratch_.limit(options.memory_limit);
  c_.strings_.limit(options.memory_limit);
  // Memory that earlier runs have freed must not count as theirs and this run's at once.
  if (limited()) drop_kept_blocks();
}

Interpreter::~Interpreter() {
  // What still goes on reads and writes the memory of frames.
  drain_devices();
  // After a failure frames are left; their values are let go here.
  while (c_.depth_ > 0) pop_frame();
  for (Object* arg : c_.args_) release_value(arg);
  c_.args_.clear();
  if (native_stack_bytes_ > 0) c_.native_stack_->trim();
  c_.arena_.pop({});
  c_.scratch_.reset();
  c_.strings_.clear();
  // A deep recursion's memory is not kept for the next run.
  constexpr size_t kKeptSlots = size_t{1} << 20;
  if (c_.slots_.size() > kKeptSlots) {
    c_.slots_ = {};
    c_.arena_.trim();
  }
}

Value Interpreter::run(size_t function, std::span<const Value> args,
                       std::span<const Tensor> outputs) {
  const Function& f = program_.functions[function];
  push_frame(f, nullptr);
  if (f.writes_outputs) {
    std::vector<Tensor> places(outputs.begin(), outputs.end());
    for (const Donation& d : f.donations) {
      if (!d.in_place) continue;
      places.resize(f.results.size());
      places[static_cast<size_t>(d.output)] = args[static_cast<size_t>(d.param)].tensor();
    }
    make_outputs(f, places);
  }
  Slot* r = window().r;
  for (size_t n = 0; n < args.size(); ++n) {
    retain_value(args[n].object());
    r[n].object = args[n].object();
  }
  if (!is_native(static_cast<int64_t>(function))) return execute();
  native_args_.clear();
  for (size_t n = 0; n < args.size(); ++n) {
    native_args_.push_back(std::exchange(r[n].object, nullptr));
  }
  Object* result = call_native(function, native_args_);
  pop_frame();
  return Value::adopt(result);
}

void Interpreter::grow(size_t slots) {
  constexpr size_t kMaxSlots = kMaxStackBytes / sizeof(Slot);
  if (slots > kMaxSlots) {
    too_deep(kMaxStackBytes);
  }
  constexpr size_t kMinSlots = 1024;
  // The old ones exist until they are copied.
  if (limited()) charge(static_cast<int64_t>(slots * sizeof(Slot)));
  c_.slots_.resize(std::min(std::max({slots, 2 * c_.slots_.size(), kMinSlots}), kMaxSlots));
}

char* Interpreter::push_arena(const Function& function) {
  char* arena = c_.arena_.push(static_cast<size_t>(function.arena_bytes));
  if (options_.poison) {
    std::memset(arena, *options_.poison, static_cast<size_t>(function.arena_bytes));
  }
  return arena;
}

void Interpreter::make_outputs(const Function& function, std::span<const Tensor> outputs) {
  Slot* r = window().r + function.num_registers;
  for (size_t n = 0; n < function.results.size(); ++n) {
    const TensorSpec& type = function.results[n].tensor;
    bool given = !outputs.empty() && outputs[n];
    if (limited() && !given) charge(type.byte_size());
    made_strings_ |= type.dtype.is_string();
    Tensor buffer = given ? outputs[n] : Tensor::empty(type.dtype, type.shape);
    r[n].object = std::move(buffer).take();
  }
}

Object* Interpreter::collect_outputs() {
  const Function& function = *frame().function;
  Slot* buffers = window().r + function.num_registers;
  if (!function.returns_tuple) return take(buffers[0], true);
  auto count = static_cast<uint32_t>(function.results.size());
  Cell* tuple = Cell::make(ObjectKind::tuple, 0, count);
  for (uint32_t n = 0; n < count; ++n) tuple->fields[n] = take(buffers[n], true);
  return tuple;
}

int64_t Interpreter::held() const {
  int64_t held = thread_object_bytes() - bytes_before_ +
                 static_cast<int64_t>(c_.arena_.in_use() + c_.top_ * sizeof(Slot)) +
                 native_stack_bytes_;
  return std::max<int64_t>(held, 0);
}

void Interpreter::limit_kernel() {
  c_.scratch_.limit(std::max<int64_t>(options_.memory_limit - held(), 0));
}

void Interpreter::charge(int64_t bytes) const {
  const int64_t held = this->held();
  if (held <= options_.memory_limit && bytes <= options_.memory_limit - held) return;
  fail_run(
      codes::run_out_of_memory,
      "the run exceeds its memory limit of " + std::to_string(options_.memory_limit) + " bytes",
      "raise the limit, or look for an endless recursion or a list that grows without end");
}

void Interpreter::misuse(const char* what) {
  throw UserError(
      Diagnostic(codes::bytecode_invalid, {},
                 "the bytecode of function '" + frame().function->name + "' is invalid: " + what)
          .help("the artifact is damaged or was not written by Relay; compile the "
                "model again"));
}

void Interpreter::refuel() {
  // Some tens of microseconds of the shortest instructions.
  constexpr int64_t kBetweenLooks = 4096;
  const bool looks = budgeted_ || options_.fuel >= 0;
  fuel_ = looks ? std::min(fuel_left_.load(), kBetweenLooks) : fuel_left_.load();
  fuel_left_ -= fuel_;
}

void Interpreter::charge_jumps(int64_t jumps) {
  if (options_.fuel < 0 || (fuel_left_ -= jumps) >= 0) return;
  fail_run(codes::run_out_of_fuel,
           "the run exceeds its limit of " + std::to_string(options_.fuel) + " calls and jumps",
           "raise the limit, or look for a loop without end");
}

void Interpreter::out_of_fuel() {
  if (fuel_left_ <= 0) charge_jumps(1);
  check_budget_after_work();
  refuel();
  --fuel_;
}

void Interpreter::stop(std::string message, int32_t place, std::string found) const {
  std::string where = text(place);
  if (!where.empty()) message += ", at " + where;
  throw RuntimeError(Diagnostic(codes::run_failed, {}, std::move(message)).found(std::move(found)));
}

void Interpreter::fatal(const Instruction& in, const Window& w) const {
  std::string found;
  if (in.dst > 0) found = std::to_string(w.i[in.dst - 1].integer);
  if (in.count > 0) found += " and " + std::to_string(w.i[in.count - 1].integer);
  stop(text(in.a), in.b, std::move(found));
}

void Interpreter::no_match(int32_t place, int64_t constructors, const Object* value) const {
  std::string where = text(place);
  if (!where.empty()) where = ", at " + where;
  throw RuntimeError(Diagnostic(codes::run_failed, {}, kNoMatch + where)
                         .found(data_text(value, text(static_cast<int32_t>(constructors - 1))))
                         .help("add a clause for it, or `_` for all others"));
}

int32_t Interpreter::place_of(const Function& caller, const Instruction& call) {
  if ((call.sub & kPlaced) == 0) return -1;
  return caller.lists[static_cast<size_t>(call.b) + call.count];
}

void Interpreter::note_caller(const Function& caller, int32_t place) {
  if (num_failed_calls_++ >= kMaxCallers) return;
  try {
    const std::string where = text(place);
    // A name that begins with an underscore is a library's own; the place is the user's.
    std::string call = caller.name.starts_with('_') ? "called" : "called by @" + caller.name;
    failed_calls_.push_back(where.empty() ? call : call + " at " + where);
  } catch (const std::bad_alloc&) {
    // The failure itself is told.
  }
}

RuntimeError Interpreter::with_callers(const RuntimeError& error) {
  size_t depth = c_.depth_;
  for (size_t at = c_.frame_; depth > 1; --depth) {
    const auto& callee = *reinterpret_cast<const Frame*>(c_.slots_.data() + at);
    at = callee.caller;
    const Function& caller = *reinterpret_cast<const Frame*>(c_.slots_.data() + at)->function;
    note_caller(caller, place_of(caller, *callee.call));
  }
  try {
    Diagnostic d = error.diagnostics().front();
    for (const std::string& call : failed_calls_) d.note({}, call);
    if (num_failed_calls_ > kMaxCallers)
      d.note({}, "and " + std::to_string(num_failed_calls_ - kMaxCallers) + " more calls");
    return RuntimeError(std::move(d));
  } catch (const std::bad_alloc&) {
    return error;
  }
}

void Interpreter::too_deep(size_t bytes) const {
  fail_run(codes::run_out_of_memory,
           "the calls nest too deep: they need more than " + std::to_string(bytes >> 20) +
               " MiB of stack",
           "look for a recursion without end");
}

void Interpreter::no_such_index(int64_t index, int64_t size, int32_t place) const {
  fail_run(codes::run_kernel_failed, index_failure(index, size, text(place)));
}

int32_t ExecutionContext::may_go_on(int64_t jumps) {
  if (ending_.load(std::memory_order_relaxed)) return RELAY_KERNEL_CHECK_FAILED;
  try {
    interpreter_->charge_jumps(jumps);
    // Threads of the pool have no other limits of their own.
    if (current_budget() != nullptr) check_budget_after_work();
  } catch (...) {
    // Nothing is thrown through a kernel.
    ended_for_ = std::current_exception();
    ending_.store(true, std::memory_order_relaxed);
    return RELAY_KERNEL_CHECK_FAILED;
  }
  return RELAY_KERNEL_OK;
}

ExecutionContext::ExecutionContext(std::shared_ptr<ThreadPool> pool) : pool_(std::move(pool)) {}

ExecutionContext::~ExecutionContext() = default;

Value ExecutionContext::run(const Program& program, std::span<const relay_kernel> kernels,
                            std::span<const relay_native_function> natives,
                            DeviceConstants& constants, size_t function,
                            std::span<const Value> args, std::span<const Tensor> outputs,
                            const RunOptions& options, Denormals denormals) {
  DenormalScope scope(denormals);
  int64_t begin = options.profiler != nullptr ? Profiler::now_ns() : 0;
  ThreadPool::Session session(*pool_, parallel_.exchange(false, std::memory_order_relaxed));
  std::optional<BudgetScope> budget;
  if (options.time_limit > 0) {
    BudgetLimits limits;
    limits.seconds = options.time_limit;
    limits.kind = BudgetKind::run;
    budget.emplace(std::move(limits));
  }
  arena_.forget_peak();
  device_constants_ = &constants;
  // Copies of arguments, which live until the interpreter has drained the devices.
  std::vector<Value> placed;
  const std::span<const Value> given = args;
  Interpreter interpreter(*this, program, kernels, natives, options);
  // The result outlives the run, and so do the current contents of references in arguments.
  auto own_arguments = [&] {
    if (!interpreter.made_strings()) return;
    for (const Value& arg : given) own_strings(arg);
  };
  try {
    if (interpreter.is_elsewhere(function, args)) {
      placed = interpreter.placed(function, args);
      args = placed;
    }
    Value result = interpreter.run(function, args, outputs);
    if (!options.keeps_on_devices) result = interpreter.on_host(function, std::move(result));
    interpreter.finish_devices();
    if (interpreter.made_strings()) own_strings(result);
    own_arguments();
    refs_.collect(false);
    if (options.profiler != nullptr) {
      options.profiler->record_run(begin, Profiler::now_ns());
      options.profiler->record_memory(static_cast<int64_t>(arena_.peak()));
    }
    return result;
  } catch (const RuntimeError& error) {
    own_arguments();
    throw interpreter.with_callers(error);
  } catch (const std::bad_alloc&) {
    fail_run(codes::run_out_of_memory, "the run is out of memory");
  } catch (...) {
    own_arguments();
    throw;
  }
}

}  // namespace relay::runtime
