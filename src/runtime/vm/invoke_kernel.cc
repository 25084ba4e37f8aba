#include <cstring>
#include <utility>

#include "base/budget.h"
#include "base/codes/runtime.h"
#include "runtime/core/kernel_errors.h"
#include "runtime/core/print.h"
#include "runtime/profiler.h"
#include "runtime/vm/interpreter.h"

namespace relay::runtime {

namespace {

// Bytes and operations of about a microsecond.
constexpr int64_t kSmallWork = 4096;

bool is_small(const KernelInfo& kernel) {
  return kernel.bytes > 0 && kernel.bytes + kernel.flops < kSmallWork;
}

}  // namespace

void Interpreter::kernel_failed(const KernelInfo& kernel, int32_t code) {
  std::optional<std::string> said = take_failure();
  const bool external = kernel.linkage != KernelLinkage::generated;
  if (said && code == RELAY_KERNEL_CHECK_FAILED && !external) {
    Diagnostic d(codes::run_assertion, {}, *said);
    if (!kernel.origin.empty()) d.note({}, "in " + kernel.origin);
    throw RuntimeError(std::move(d));
  }
  // An error without a source location comes from a model, whose node the kernel names.
  if (said && !external && said->ends_with(')')) fail_run(kernel_error_code(code), *said);
  // The kernel's name is the compiler's; its origin is the program's. One from elsewhere is known to who made it by its function.
  std::string where = kernel.origin.empty() ? std::string() : ", in " + kernel.origin;
  if (external) {
    where += ", in the external kernel " + escape_for_terminal(kernel.name, 200) + ": " +
             escape_for_terminal(kernel.symbol, 200) +
             (kernel.library.empty() ? "" : " of " + escape_for_terminal(kernel.library, 200));
  }
  fail_run(kernel_error_code(code), (said ? *said : std::string(kernel_error_text(code))) + where,
           kernel_error_help(code));
}

Interpreter::Place Interpreter::resolve(const Operand& o, const Window& w) {
  const Tensor::Rep* rep = nullptr;
  switch (o.kind) {
    case Operand::kArena:
      return {w.arena + o.index, static_cast<size_t>(o.bytes)};
    case Operand::kPlace: {
      const Slot* place = w.p + 2 * o.index;
      if (place->integer == 0) [[unlikely]]
        misuse("a place without memory");
      return {place_memory(*place), static_cast<size_t>(place[1].integer)};
    }
    case Operand::kScalar:
      // Little-endian: an element of any width is at the front of its register.
      return {&w.i[o.index].integer, sizeof(int64_t)};
    case Operand::kConstant:
      rep = program_.constants[static_cast<size_t>(o.index)].rep();
      break;
    case Operand::kOutput:
      rep = tensor(w.r[w.function->num_registers + o.index]);
      break;
    default:
      rep = host_tensor(w.r[o.index]);
  }
  return {rep->data, tensor_bytes(rep)};
}

void Interpreter::invoke_kernel(const Instruction& in, const Window& w) {
  const KernelInfo& kernel = program_.kernels[static_cast<size_t>(in.a)];
  if (kernel.device != Device::cpu()) [[unlikely]]
    return launch(in, w);
  const Operand* operands = w.function->operands.data() + in.b;
  size_t buffers = kernel.buffer_bytes.size();
  if (c_.buffers_.size() < buffers) c_.buffers_.resize(buffers);
  for (size_t n = 0; n < buffers; ++n) {
    const Operand& o = operands[n];
    Place place =
        o.kind == Operand::kScalar ? Place{&w.i[o.index].integer, sizeof(int64_t)} : resolve(o, w);
    if (static_cast<int64_t>(place.bytes) < kernel.buffer_bytes[n]) [[unlikely]] {
      misuse("a buffer is smaller than the kernel needs");
    }
    c_.buffers_[n] = place.data;
  }
  if (c_.dims_.size() < kernel.num_dims) c_.dims_.resize(kernel.num_dims);
  for (size_t n = 0; n < kernel.num_dims; ++n) {
    c_.dims_[n] = w.i[operands[buffers + n].index].integer;
  }
  if (!c_.devices_.empty() && !is_small(kernel)) [[unlikely]]
    submit_devices();
  if (options_.poison) poison_outputs(kernel, operands, w);
  if (limited()) [[unlikely]]
    limit_kernel();

  if (options_.profiler == nullptr) [[likely]] {
    kernels_[static_cast<size_t>(in.a)](c_.buffers_.data(), c_.dims_.data(), &kernel_context_);
  } else {
    profiled_call(in, w);
  }
  c_.scratch_.reset();
  if (c_.ending_.load(std::memory_order_relaxed)) [[unlikely]] {
    c_.ending_.store(false, std::memory_order_relaxed);
    std::rethrow_exception(std::exchange(c_.ended_for_, nullptr));
  }
  if (kernel_error_ != RELAY_KERNEL_OK) [[unlikely]] {
    if (kernel_error_ == RELAY_KERNEL_INDEX_OUT_OF_BOUNDS && kernel_context_.num_threads > 1) {
      // Errors of other threads are lost: the index is computed again on this one.
      kernel_context_.num_threads = 1;
      take_failure();
      kernels_[static_cast<size_t>(in.a)](c_.buffers_.data(), c_.dims_.data(), &kernel_context_);
    }
    kernel_failed(kernel, kernel_error_);
  }
  if (budgeted_) {
    // To read the clock takes as long as a kernel on scalars.
    is_small(kernel) ? check_budget() : check_budget_after_work();
  }
}

void Interpreter::profiled_call(const Instruction& in, const Window& w) {
  const KernelInfo& kernel = program_.kernels[static_cast<size_t>(in.a)];
  const std::span<const int64_t> dims = std::span(c_.dims_).first(kernel.num_dims);
  KernelObserver* observer = options_.profiler->observer();
  std::vector<size_t> bytes;
  const size_t buffers = observer == nullptr ? 0 : kernel.buffer_bytes.size();
  const Operand* operands = w.function->operands.data() + in.b;
  for (size_t n = 0; n < buffers; ++n) {
    bytes.push_back(operands[n].kind == Operand::kScalar ? sizeof(int64_t)
                                                         : resolve(operands[n], w).bytes);
  }
  const KernelCall call{*w.function,
                        static_cast<size_t>(&in - w.function->code.data()),
                        in.a,
                        c_.depth_,
                        std::span(c_.buffers_).first(buffers),
                        bytes,
                        dims};
  if (observer != nullptr) observer->before(call);
  const int64_t begin = Profiler::now_ns();
  kernels_[static_cast<size_t>(in.a)](c_.buffers_.data(), c_.dims_.data(), &kernel_context_);
  options_.profiler->record(in.a, begin, Profiler::now_ns(), dims);
  const bool failed =
      kernel_error_ != RELAY_KERNEL_OK || c_.ending_.load(std::memory_order_relaxed);
  if (observer == nullptr || failed) return;
  c_.scratch_.reset();  // an exception leaves nothing behind
  observer->after(call);
}

// Fills the outputs, except where they share memory with an input (in-place operation), or with
// other tensors that lie in their gaps.
void Interpreter::poison_outputs(const KernelInfo& kernel, const Operand* operands,
                                 const Window& w) {
  size_t buffers = kernel.buffer_bytes.size();
  size_t inputs = buffers - kernel.num_outputs;
  if (kernel.has_gaps) return;
  for (size_t n = inputs; n < buffers; ++n) {
    Place out = resolve(operands[n], w);
    auto begin = reinterpret_cast<uintptr_t>(out.data);
    bool shared = false;
    for (size_t m = 0; m < inputs; ++m) {
      Place place = resolve(operands[m], w);
      auto other = reinterpret_cast<uintptr_t>(place.data);
      shared = shared || (other < begin + out.bytes && begin < other + place.bytes);
    }
    if (!shared) std::memset(out.data, *options_.poison, out.bytes);
  }
}

size_t Interpreter::copied_bytes(const Operand* operands, const Place& to, const Place& from) {
  // The tensor may be the first part of a place or a register.
  auto holds = [](const Operand& o) {
    return o.kind == Operand::kScalar || o.kind == Operand::kPlace;
  };
  const bool spare_to = holds(operands[0]), spare_from = holds(operands[1]);
  if ((!spare_to && to.bytes > from.bytes) || (!spare_from && from.bytes > to.bytes)) {
    misuse("a copy of unequal sizes");
  }
  return std::min(to.bytes, from.bytes);
}

bool Interpreter::is_at_end(const Instruction& in, const Function& function) {
  if (&in >= end_begin_ && &in < end_) return true;
  const Instruction* at = &in;
  auto copies_result = [&](const Instruction& i) {
    return i.op == Opcode::copy &&
           function.operands[static_cast<size_t>(i.b)].kind == Operand::kOutput;
  };
  while (copies_result(*at)) ++at;
  if (at->op != Opcode::ret_outputs) return false;
  end_begin_ = &in;
  end_ = at;
  return true;
}

void Interpreter::copy(const Instruction& in, const Window& w) {
  if (in.sub != 0) return copy_within(in, w);
  const Operand* operands = w.function->operands.data() + in.b;
  if (operands[0].kind == Operand::kOutput && operands[1].kind == Operand::kRegister) {
    Slot& output = w.r[w.function->num_registers + operands[0].index];
    const Slot& result = w.r[operands[1].index];
    if (becomes_output(result, output) && is_at_end(in, *w.function)) {
      retain_own(result.object);
      return set(output.object, result.object);
    }
  }
  Place to = resolve(operands[0], w);
  Place from = resolve(operands[1], w);
  const size_t bytes = copied_bytes(operands, to, from);
  if (bytes > 0) std::memmove(to.data, from.data, bytes);
}

int64_t Interpreter::element(const Place& place, DType t) {
  if (place.bytes != t.bytes()) [[unlikely]]
    misuse("a scalar is expected");
  if (t.is_bool()) return *static_cast<const uint8_t*>(place.data) != 0;
  if (t.bits == 64) {
    int64_t value;
    std::memcpy(&value, place.data, sizeof(value));
    return value;
  }
  int32_t value;
  std::memcpy(&value, place.data, sizeof(value));
  return value;
}

int64_t Interpreter::load_scalar(const Instruction& in, const Window& w) {
  return element(resolve(w.function->operands[static_cast<size_t>(in.b)], w), key_dtype(in.a));
}

int64_t Interpreter::unbox(const Instruction& in, Slot* r) {
  const Tensor::Rep* rep = host_tensor(r[in.a]);
  int64_t value = element({rep->data, tensor_bytes(rep)}, key_dtype(in.b));
  if ((in.sub & kLastA) != 0) set(r[in.a].object, nullptr);
  return value;
}

}  // namespace relay::runtime
