#include "eval/evaluator.h"
#include "base/quantities.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <span>

#include "analysis/definitions.h"
#include "base/budget.h"
#include "base/codes/runtime.h"
#include "eval/arguments.h"
#include "eval/assumed_sizes.h"
#include "eval/eval_observer.h"
#include "eval/eval_plan.h"
#include "eval/op_call.h"
#include "ir/type_params.h"
#include "runtime/core/data_text.h"
#include "types/match.h"

namespace relay {

using runtime::Cell;
using runtime::Object;
using runtime::ObjectKind;

namespace {

constexpr int64_t kMaxStackBytes = int64_t{512} << 20;
// Callers that an error names.
constexpr size_t kMaxNotes = 4;

// What memory that nothing has written may hold (attr::kUnwritten): not what the function computes.
runtime::Value unwritten(const runtime::Value& computed) {
  constexpr int kAnything = 0x5a;
  const Object* object = computed.object();
  if (object == nullptr || runtime::kind_of(object) != ObjectKind::tensor) return computed;
  Tensor like(computed.tensor());
  if (like.dtype().is_string()) return computed;
  Tensor out = Tensor::empty(like.dtype(), like.shape());
  std::memset(out.data(), like.dtype().is_bool() ? 1 : kAnything, out.byte_size());
  return runtime::Value(out);
}

}  // namespace

// A stack machine. `slots_` holds the frames contiguously; `waiting_` holds the continuations of
// open blocks.
class Evaluator::Machine {
 public:
  Machine(Module mod, EvalOptions options)
      : store_(std::move(mod)), options_(std::move(options)), ops_(op_options()) {}

  EvalPlanStore& store() { return store_; }
  const EvalPlanStore& store() const { return store_; }
  int64_t steps() const { return steps_; }

  // Runs a closure to its end. Whatever happens, the machine is empty afterwards.
  runtime::Value run(const runtime::Value& callee, std::vector<runtime::Value> args) {
    steps_ = 0;
    bytes_before_ = runtime::thread_object_bytes();
    struct Clear {
      Machine& m;
      ~Clear() {
        m.slots_.clear();
        m.waiting_.clear();
        m.depth_ = 0;
        m.plan_ = nullptr;
        m.step_ = nullptr;
      }
    } clear{*this};
    try {
      runtime::Value result;
      if (enter(callee, std::move(args), false, -1, result)) result = execute();
      return result;
    } catch (const std::bad_alloc&) {
      fail(codes::run_out_of_memory, "there is no memory left");
    } catch (const RuntimeError& e) {
      Diagnostic d = e.diagnostics().front();
      add_callers(d);
      throw RuntimeError(std::move(d));
    }
  }

  void observe(EvalObserver* observer) { observer_ = observer; }

  void set_limits(int64_t fuel, int64_t memory_limit) {
    options_.fuel = fuel;
    options_.memory_limit = memory_limit;
  }

 private:
  // The continuation of a block, and the slot of its value.
  struct Waiting {
    const EvalPlan* plan;
    const EvalBlock* block;
    size_t next;
    size_t base;
    int32_t dest;
    bool is_call;  // a function's frame ends there, not a branch
  };

  OpCallOptions op_options() {
    OpCallOptions out;
    out.wide_floats = options_.wide_floats;
    out.denormals = options_.denormals;
    out.compile_kernel = options_.compile_kernel;
    out.reserve = [this](int64_t bytes) { check_memory(bytes); };
    return out;
  }

  [[noreturn]] void fail(const DiagnosticCode& code, std::string message, std::string help = {}) {
    throw RuntimeError(
        Diagnostic(code, step_ != nullptr ? step_->expr->span : Span(), std::move(message))
            .help(std::move(help)));
  }

  void add_callers(Diagnostic& d) const {
    size_t base = base_;
    for (auto w = waiting_.rbegin(); w != waiting_.rend() && d.notes.size() < kMaxNotes; ++w) {
      if (w->base == base || w->next == 0) continue;
      base = w->base;
      d.note(w->block->steps[w->next - 1].expr->span, "called from here");
    }
  }

  void check_memory(int64_t more) {
    int64_t stack = static_cast<int64_t>(slots_.size() * sizeof(runtime::Value) +
                                         waiting_.size() * sizeof(Waiting));
    if (stack > kMaxStackBytes) {
      fail(codes::run_out_of_memory,
           "the calls nest too deep: " + std::to_string(waiting_.size()) + " wait for a result",
           "look for a recursion without end");
    }
    if (options_.memory_limit <= 0) return;
    int64_t held = runtime::thread_object_bytes() - bytes_before_ + stack;
    if (more <= options_.memory_limit && held <= options_.memory_limit - more) return;
    fail(codes::run_out_of_memory,
         "the run exceeds its memory limit of " + std::to_string(options_.memory_limit) + " bytes",
         "raise the limit, or look for an endless recursion or a list that grows without end");
  }

  void check_limits() {
    ++steps_;
    if (options_.fuel > 0 && steps_ > options_.fuel) {
      fail(codes::run_out_of_fuel,
           "the run exceeds its limit of " + std::to_string(options_.fuel) + " steps",
           "raise the limit, or look for a recursion without end");
    }
    if (options_.memory_limit > 0) check_memory(0);
    check_budget();
  }

  const Object* peek(const EvalOperand& o) const {
    return o.index < 0 ? store_.constant(~o.index).object()
                       : slots_[base_ + static_cast<size_t>(o.index)].object();
  }
  runtime::Value take(const EvalOperand& o) {
    if (o.index < 0) return store_.constant(~o.index);
    runtime::Value& slot = slots_[base_ + static_cast<size_t>(o.index)];
    return o.last ? std::move(slot) : slot;
  }
  std::vector<runtime::Value> take_all(std::span<const EvalOperand> operands) {
    std::vector<runtime::Value> out;
    out.reserve(operands.size());
    for (const EvalOperand& o : operands) out.push_back(take(o));
    return out;
  }
  void put(int32_t dest, runtime::Value value) {
    if (dest >= 0) slots_[base_ + static_cast<size_t>(dest)] = std::move(value);
  }
  void drop(const std::vector<int32_t>& dead) {
    for (int32_t slot : dead) slots_[base_ + static_cast<size_t>(slot)] = {};
  }

  const Cell& cell(const Object* object, ObjectKind kind, const char* what) {
    if (object == nullptr || runtime::kind_of(object) != kind) {
      fail(codes::run_failed, std::string("this value is no ") + what);
    }
    return runtime::cell_of(object);
  }

  bool enter(const runtime::Value& callee, std::vector<runtime::Value> args, bool replace,
             int32_t dest, runtime::Value& result);
  void go_into(const EvalStep& step, size_t which);
  bool fits(const std::vector<PatternStep>& pattern, const Object* value);
  void match(const EvalStep& step);
  [[noreturn]] void no_clause(const EvalStep& step, const Object* value);
  runtime::Value apply(const OpNode& op, const Attrs& attrs, std::span<const runtime::Value> args,
                       const Span& span);
  Attrs with_sizes(const CallNode& c, const EvalStep& step,
                   const std::vector<runtime::Value>& operands);
  runtime::Value compute(const EvalStep& step);
  runtime::Value execute();

  EvalPlanStore store_;
  EvalOptions options_;
  OpCaller ops_;
  std::vector<runtime::Value> slots_;
  std::vector<Waiting> waiting_;
  // The current frame and block.
  const EvalPlan* plan_ = nullptr;
  const EvalBlock* block_ = nullptr;
  const EvalStep* step_ = nullptr;  // for errors
  size_t next_ = 0;
  size_t base_ = 0;
  int64_t steps_ = 0;
  int64_t bytes_before_ = 0;
  size_t depth_ = 0;  // open frames
  EvalObserver* observer_ = nullptr;
  // Kept to save their allocation.
  std::vector<const Object*> parts_;
  std::vector<std::pair<int32_t, const Object*>> bound_;
};

// Opens the frame of a call; true if there is one. Operators and constructors have none: their
// result is available immediately. `replace`: the current frame is dead.
bool Evaluator::Machine::enter(const runtime::Value& callee, std::vector<runtime::Value> args,
                               bool replace, int32_t dest, runtime::Value& result) {
  const Cell& closure = cell(callee.object(), ObjectKind::closure, "function");
  RELAY_CHECK(static_cast<size_t>(closure.tag) < store_.size(), "a closure of another evaluator");
  const EvalPlan& plan = store_.plan(closure.tag);
  if (auto* op = as<OpNode>(plan.builtin)) {
    auto* call = step_ != nullptr ? as<CallNode>(step_->expr) : nullptr;
    result = apply(*op, call != nullptr ? call->attrs : nullptr, args,
                   call != nullptr ? call->span : Span());
    return false;
  }
  if (auto* constructor = as<ConstructorNode>(plan.builtin)) {
    result = runtime::Value::adt(static_cast<int32_t>(constructor->tag), args);
    return false;
  }
  if (args.size() != plan.function->params.size()) {
    fail(codes::run_failed, "a function of " + counted(plan.function->params.size(), "parameter") +
                                " is called with " + counted(args.size(), "argument"));
  }
  if (plan.body == nullptr) store_.prepare(closure.tag);
  if (replace) {
    slots_.resize(base_);
  } else {
    if (plan_ != nullptr) waiting_.push_back({plan_, block_, next_, base_, dest, true});
    base_ = slots_.size();
    ++depth_;
  }
  if (observer_ != nullptr) {
    observer_->entered(*plan.function, plan.name, args, step_ != nullptr ? step_->expr : nullptr,
                       depth_);
  }
  slots_.resize(base_ + static_cast<size_t>(plan.num_slots));
  std::move(args.begin(), args.end(), slots_.begin() + static_cast<std::ptrdiff_t>(base_));
  for (size_t i = 0; i < plan.capture_slots.size(); ++i) {
    put(plan.capture_slots[i], runtime::Value::share(closure.fields[i]));
  }
  put(plan.self_slot, callee);
  drop(plan.dead);
  plan_ = &plan;
  block_ = plan.body;
  next_ = 0;
  if (!replace) check_memory(0);
  return true;
}

// Goes on in a branch. Its value is that of the block around it, or the step's.
void Evaluator::Machine::go_into(const EvalStep& step, size_t which) {
  if (!step.gives_result) waiting_.push_back({plan_, block_, next_, base_, step.dest, false});
  block_ = step.blocks[which];
  next_ = 0;
  drop(block_->dead);
}

// Whether the value has the pattern's form; the variables' values are left in `bound_`.
bool Evaluator::Machine::fits(const std::vector<PatternStep>& pattern, const Object* value) {
  bound_.clear();
  parts_.assign(1, value);
  for (const PatternStep& p : pattern) {
    const Object* part = parts_.back();
    parts_.pop_back();
    if (p.kind == PatternStep::skip) continue;
    if (p.kind == PatternStep::bind) {
      bound_.emplace_back(p.value, part);
      continue;
    }
    bool is_tuple = p.kind == PatternStep::tuple;
    const Cell& c = cell(part, is_tuple ? ObjectKind::tuple : ObjectKind::adt,
                         is_tuple ? "tuple" : "value of a data type");
    if (!is_tuple && c.tag != p.value) return false;
    if (c.count != p.count) fail(codes::run_failed, "a pattern has another number of fields");
    for (uint32_t i = c.count; i-- > 0;) parts_.push_back(c.fields[i]);
  }
  return true;
}

void Evaluator::Machine::match(const EvalStep& step) {
  // Owns the unbound parts of the clause until the variables are set.
  runtime::Value value = take(step.operands[0]);
  for (size_t i = 0; i < step.patterns.size(); ++i) {
    if (!fits(step.patterns[i], value.object())) continue;
    for (const auto& [slot, part] : bound_) {
      put(slot, runtime::Value::share(const_cast<Object*>(part)));
    }
    return go_into(step, i);
  }
  no_clause(step, value.object());
}

void Evaluator::Machine::no_clause(const EvalStep& step, const Object* value) {
  auto& m = static_cast<const MatchNode&>(*step.expr);
  throw RuntimeError(
      Diagnostic(codes::run_failed, m.span, "no clause of the match fits the value")
          .found(runtime::data_text(value, constructors_text(m.data->type, store_.module())))
          .help("add a clause for it, or `_` for all others"));
}

// The attributes of an operator's call with the sizes that they name.
Attrs Evaluator::Machine::with_sizes(const CallNode& c, const EvalStep& step,
                                     const std::vector<runtime::Value>& operands) {
  TypeParams sizes;
  for (const EvalSize& s : step.sizes) {
    const Object* at = operands[s.operand].object();
    for (size_t field : s.fields) at = cell(at, ObjectKind::tuple, "tuple").fields[field];
    if (at == nullptr || runtime::kind_of(at) != ObjectKind::tensor) {
      fail(codes::run_failed, "this value is not a tensor");
    }
    Tensor tensor = runtime::tensor_of(const_cast<Object*>(at));
    if (s.axis >= static_cast<size_t>(tensor.rank())) {
      fail(codes::run_failed, "a tensor has another number of dimensions");
    }
    sizes[s.name] = dim(tensor.shape()[s.axis]);
  }
  try {
    return with_type_params(c.attrs, sizes);
  } catch (const UserError& e) {
    Diagnostic d = e.diagnostics().front();
    d.span = c.span;
    throw RuntimeError(std::move(d));
  }
}

runtime::Value Evaluator::Machine::apply(const OpNode& op, const Attrs& attrs,
                                         std::span<const runtime::Value> args, const Span& span) {
  if (observer_ == nullptr) [[likely]]
    return ops_.call(op, attrs, args, span);
  const EvalOpCall call{op, step_ != nullptr ? step_->expr : nullptr, args, depth_};
  observer_->before(call);
  runtime::Value made = ops_.call(op, attrs, args, span);
  observer_->after(call, made);
  return made;
}

// The value of a step that neither calls a function nor enters a branch.
runtime::Value Evaluator::Machine::compute(const EvalStep& step) {
  switch (step.kind) {
    case EvalStep::call_op: {
      auto& c = static_cast<const CallNode&>(*step.expr);
      std::vector<runtime::Value> args = take_all(step.operands);
      Attrs attrs = step.sizes.empty() ? c.attrs : with_sizes(c, step, args);
      args.resize(c.args.size());
      runtime::Value made = apply(static_cast<const OpNode&>(*c.op), attrs, args, c.span);
      check_assumed_sizes(c, step.assumed, args);
      return made;
    }
    case EvalStep::construct:
      return runtime::Value::adt(step.value, take_all(step.operands));
    case EvalStep::tuple:
      return runtime::Value::tuple(take_all(step.operands));
    case EvalStep::closure: {
      size_t count = step.operands.size();
      Cell* made = Cell::make(ObjectKind::closure, step.value, static_cast<uint32_t>(count));
      for (size_t i = 0; i < count; ++i) made->fields[i] = take(step.operands[i]).take();
      return runtime::Value::adopt(made);
    }
    case EvalStep::get_item: {
      runtime::Value tuple = take(step.operands[0]);
      const Cell& c = cell(tuple.object(), ObjectKind::tuple, "tuple");
      if (step.value < 0 || static_cast<uint32_t>(step.value) >= c.count) {
        fail(codes::run_failed, "the tuple has no field " + std::to_string(step.value));
      }
      return runtime::Value::share(c.fields[step.value]);
    }
    case EvalStep::ref_create:
      return runtime::Value::ref(take(step.operands[0]));
    case EvalStep::ref_read: {
      runtime::Value reference = take(step.operands[0]);
      return runtime::Value::share(
          cell(reference.object(), ObjectKind::ref, "reference").fields[0]);
    }
    case EvalStep::ref_write: {
      runtime::Value reference = take(step.operands[0]);
      // The reference itself changes; the old content is released.
      auto& c = const_cast<Cell&>(cell(reference.object(), ObjectKind::ref, "reference"));
      runtime::release_value(std::exchange(c.fields[0], take(step.operands[1]).take()));
      return runtime::Value::tuple({});
    }
    default:
      RELAY_CHECK(false, "a step of another kind");
  }
  return {};
}

runtime::Value Evaluator::Machine::execute() {
  for (;;) {
    if (next_ == block_->steps.size()) {
      runtime::Value result = take(block_->result);
      if (waiting_.empty()) return result;
      if (waiting_.back().is_call && plan_->unwritten) {
        result = unwritten(result);
      }
      Waiting back = waiting_.back();
      waiting_.pop_back();
      if (back.is_call) --depth_;
      plan_ = back.plan;
      block_ = back.block;
      next_ = back.next;
      base_ = back.base;
      // A no-op unless the block was a function's.
      slots_.resize(base_ + static_cast<size_t>(plan_->num_slots));
      put(back.dest, std::move(result));
      continue;
    }
    const EvalStep& step = block_->steps[next_++];
    step_ = &step;
    check_limits();
    switch (step.kind) {
      case EvalStep::call: {
        runtime::Value callee = take(step.operands[0]);
        std::vector<runtime::Value> args = take_all(std::span(step.operands).subspan(1));
        runtime::Value result;
        if (!enter(callee, std::move(args), step.is_tail, step.dest, result)) {
          put(step.dest, std::move(result));
        }
        break;
      }
      case EvalStep::branch: {
        const Object* cond = peek(step.operands[0]);
        if (cond == nullptr || runtime::kind_of(cond) != ObjectKind::tensor) {
          fail(codes::run_failed, "the condition is not a tensor");
        }
        bool yes = Tensor(take(step.operands[0]).tensor()).get_as_int(0) != 0;
        go_into(step, yes ? 0 : 1);
        break;
      }
      case EvalStep::match:
        match(step);
        break;
      default:
        put(step.dest, compute(step));
    }
  }
}

Evaluator::Evaluator(Module mod, EvalOptions options)
    : machine_(std::make_unique<Machine>(mod ? expand_definitions(mod) : mod, std::move(options))) {
}
Evaluator::~Evaluator() = default;
Evaluator::Evaluator(Evaluator&&) noexcept = default;
Evaluator& Evaluator::operator=(Evaluator&&) noexcept = default;

void Evaluator::set_limits(int64_t fuel, int64_t memory_limit) {
  machine_->set_limits(fuel, memory_limit);
}

void Evaluator::observe(EvalObserver* observer) { machine_->observe(observer); }

runtime::Value Evaluator::call(std::string_view global, std::vector<runtime::Value> args) {
  std::string name(global);
  runtime::Value callee = machine_->store().global(name);
  if (!callee) {
    throw UserError(Diagnostic(codes::run_no_function, {}, "the program has no function @" + name));
  }
  check_arguments(*machine_->store().module()->find(name).get(), name, args);
  return machine_->run(callee, std::move(args));
}

runtime::Value Evaluator::evaluate(const Expr& expr) {
  Function f = make<FunctionNode>([&](FunctionNode& n) {
    n.body = expand_definitions(expr);
    n.span = expr->span;
  });
  return machine_->run(machine_->store().closed(f, ""), {});
}

runtime::Value Evaluator::apply(const runtime::Value& closure, std::vector<runtime::Value> args) {
  return machine_->run(closure, std::move(args));
}

std::string Evaluator::closure_name(int32_t tag) const {
  const EvalPlanStore& store = machine_->store();
  return tag >= 0 && static_cast<size_t>(tag) < store.size() ? store.plan(tag).name : "";
}

int64_t Evaluator::steps() const { return machine_->steps(); }

}  // namespace relay
