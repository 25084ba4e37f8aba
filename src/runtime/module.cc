#include "runtime/module.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/budget.h"
#include "base/codes/runtime.h"
#include "base/fork.h"
#include "runtime/donations.h"
#include "runtime/loaded_program.h"
#include "runtime/value_leaves.h"

namespace relay::runtime {

namespace {

std::string value_text(const Value& value) {
  if (!value) return "nothing";
  switch (value.kind()) {
    case ObjectKind::tensor: {
      Tensor t = value.tensor();
      return type_string(t.dtype(), t.shape());
    }
    case ObjectKind::adt:
      return "a value of a data type";
    case ObjectKind::tuple:
      return "a tuple of " + std::to_string(value.num_fields());
    case ObjectKind::closure:
      return "a function";
    case ObjectKind::ref:
      return "a reference";
  }
  return "?";
}

// Checks tensors against a function's parameters or results; symbolic dimensions of one name have
// to agree.
class SignatureCheck {
 public:
  SignatureCheck(const Function& function, const char* what) : function_(function), what_(what) {}

  void count(size_t got, size_t expected) {
    if (got == expected) return;
    add("function '" + function_.name + "' is called with " + std::to_string(got) + " " + what_ +
            "s",
        std::to_string(expected), std::to_string(got), signature());
  }

  void value(const Slot& slot, const Value& value) {
    if (!slot.is_tensor) {
      if (!value || value.is_tensor()) return mismatch(slot, value_text(value));
      if (!slot.parts.empty()) parts(slot, value);
    } else if (!value.is_tensor()) {
      mismatch(slot, value_text(value));
    } else {
      tensor(slot, value.tensor());
    }
  }

  void tensor(const Slot& slot, const Tensor& tensor) {
    if (!tensor) return mismatch(slot, "nothing");
    const TensorSpec& spec = slot.tensor;
    bool fits = tensor.dtype() == spec.dtype && tensor.shape().size() == spec.shape.size();
    for (size_t axis = 0; fits && axis < spec.shape.size(); ++axis) {
      fits = spec.shape[axis] < 0 || spec.shape[axis] == tensor.dim(axis);
    }
    if (!fits) return mismatch(slot, type_string(tensor.dtype(), tensor.shape()));
    for (size_t axis = 0; axis < spec.symbols.size(); ++axis) {
      if (spec.shape[axis] < 0 && !spec.symbols[axis].empty()) symbol(slot, tensor, axis);
    }
  }

  void raise() {
    if (!errors_.empty()) throw UserError(std::move(errors_));
  }

  void add(std::string message, std::string expected, std::string found, std::string help = {}) {
    errors_.push_back(Diagnostic(codes::run_input, {}, std::move(message))
                          .expected(std::move(expected))
                          .found(std::move(found))
                          .help(std::move(help)));
  }

 private:
  // Values in the preorder of the type, each with its position in the tuple.
  void parts(const Slot& slot, const Value& whole) {
    std::vector<std::pair<Value, std::string>> open{{whole, slot.name}};
    for (const TypePart& part : slot.parts) {
      auto [value, name] = std::move(open.back());
      open.pop_back();
      if (part.kind == TypePart::tensor) {
        Slot leaf{name, true, part.spec, {}};
        this->value(leaf, value);
      } else if (part.kind == TypePart::tuple) {
        if (!value.is_tuple() || value.num_fields() != part.fields) {
          return mismatch(slot, value_text(value) + " as '" + name + "'");
        }
        for (size_t i = part.fields; i-- > 0;) {
          open.emplace_back(value.field(i), name + "." + std::to_string(i));
        }
      } else if (!value || value.is_tensor()) {
        return mismatch(slot, value_text(value) + " as '" + name + "'");
      }
    }
  }

  void mismatch(const Slot& slot, std::string found) {
    add(std::string(what_) + " '" + escape_for_terminal(slot.name, 200) + "' of function '" +
            function_.name + "' has the wrong type",
        slot.type_string(), std::move(found));
  }

  void symbol(const Slot& slot, const Tensor& tensor, size_t axis) {
    const std::string& name = slot.tensor.symbols[axis];
    auto it = std::ranges::find(symbols_, name, &Bound::name);
    if (it == symbols_.end()) {
      symbols_.push_back({name, tensor.dim(axis), slot.name});
      return;
    }
    if (it->value == tensor.dim(axis)) return;
    add(std::string(what_) + " '" + escape_for_terminal(slot.name, 200) +
            "' disagrees about dimension '" + name + "'",
        name + " = " + std::to_string(it->value) + ", as in '" + it->slot + "'",
        name + " = " + std::to_string(tensor.dim(axis)));
  }

  std::string signature() const {
    std::string text = "the " + std::string(what_) + "s are ";
    const std::vector<Slot>& slots =
        std::string_view(what_) == "input" ? function_.params : function_.results;
    for (size_t n = 0; n < slots.size(); ++n) {
      text += (n > 0 ? ", " : "") + escape_for_terminal(slots[n].name, 200) + ": " +
              slots[n].type_string();
    }
    return text;
  }

  struct Bound {
    std::string name;
    int64_t value;
    std::string slot;
  };

  const Function& function_;
  const char* what_;
  std::vector<Bound> symbols_;
  std::vector<Diagnostic> errors_;
};

// Tensors of callers are copied to where a function takes them; those in data are not.
void check_data_on_host(const Function& f) {
  for (const auto* slots : {&f.params, &f.results}) {
    for (const Slot& s : *slots) {
      if (s.is_tensor || s.tensor.device.is_host()) continue;
      throw UserError(
          Diagnostic(codes::run_input, {},
                     "function '" + escape_for_terminal(f.name, 200) + "' takes or gives data on " +
                         s.tensor.device.to_string())
              .found("'" + escape_for_terminal(s.name, 200) + "': " + s.type_string())
              .help(
                  "run a function whose values other than tensors are on the host, such as main"));
    }
  }
}

// The limits of a run.
BudgetLimits budget_of(const RunOptions& options) {
  BudgetLimits out;
  out.seconds = options.time_limit;
  out.memory_bytes = std::max<int64_t>(options.memory_limit, 0);
  out.kind = BudgetKind::run;
  return out;
}

}  // namespace

struct Module::Impl {
  std::shared_ptr<const LoadedProgram> loaded;
  int num_threads = 1;

  ForkSafeMutex mutex;
  std::shared_ptr<ThreadPool> pool;
  std::vector<std::unique_ptr<ExecutionContext>> idle;
  size_t num_contexts = 0;  // idle and borrowed

  // A context that no other run uses; made when all are in use. After a fork the pool of the
  // parent process is replaced.
  std::unique_ptr<ExecutionContext> borrow() {
    std::lock_guard lock(mutex);
    if (!pool->usable()) pool = ThreadPool::shared(num_threads);
    if (idle.empty()) {
      auto made = std::make_unique<ExecutionContext>(pool);
      // Room for each that there is: to give one back cannot fail.
      idle.reserve(num_contexts + 1);
      ++num_contexts;
      return made;
    }
    std::unique_ptr<ExecutionContext> context = std::move(idle.back());
    idle.pop_back();
    if (context->pool() != pool) context->set_pool(pool);
    return context;
  }
  void give_back(std::unique_ptr<ExecutionContext> context) noexcept {
    std::lock_guard lock(mutex);
    idle.push_back(std::move(context));
  }

  Value execute(const Function& function, std::span<const Value> inputs,
                std::span<const Tensor> outputs, const RunOptions& options) {
    struct Borrowed {
      Impl& impl;
      std::unique_ptr<ExecutionContext> context;
      ~Borrowed() { impl.give_back(std::move(context)); }
    } borrowed{*this, borrow()};
    const Program& program = loaded->program;
    size_t index = static_cast<size_t>(&function - program.functions.data());
    loaded->require_machine();
    if (loaded->uses_devices) check_data_on_host(function);
    check_donated(function, inputs);
    loaded->require_constants();
    Value result =
        borrowed.context->run(program, loaded->kernels, loaded->natives, *loaded->device_constants,
                              index, inputs, outputs, options, loaded->info.denormals);
    loaded->require_constants();
    return in_donated_memory(function, inputs, std::move(result));
  }

  static std::shared_ptr<Impl> make(std::shared_ptr<const LoadedProgram> loaded,
                                    const LoadOptions& options) {
    auto impl = std::make_shared<Impl>();
    impl->loaded = std::move(loaded);
    impl->pool = ThreadPool::shared(options.num_threads);
    impl->num_threads = impl->pool->num_threads();
    return impl;
  }
};

Module Module::load(const std::string& path, const LoadOptions& options) {
  return Module(Impl::make(
      LoadedProgram::from_file(path, options.verify_constants, options.version), options));
}

Module Module::from_bytes(std::string_view artifact, const LoadOptions& options) {
  return Module(Impl::make(
      LoadedProgram::from_bytes(artifact, options.verify_constants, options.version), options));
}

Module Module::from_elf(std::string_view elf, Program program, std::string metadata,
                        ArtifactInfo info, const LoadOptions& options) {
  return Module(Impl::make(
      LoadedProgram::from_elf(elf, std::move(program), std::move(metadata), std::move(info)),
      options));
}

Module Module::from_kernels(Program program, std::vector<relay_kernel> kernels,
                            std::string metadata, std::shared_ptr<void> keep_alive,
                            const LoadOptions& options, Denormals denormals) {
  return Module(
      Impl::make(LoadedProgram::from_kernels(std::move(program), std::move(kernels),
                                             std::move(metadata), std::move(keep_alive), denormals),
                 options));
}

const Program& Module::program() const { return impl_->loaded->program; }
const std::string& Module::metadata() const { return impl_->loaded->metadata; }
const ArtifactInfo& Module::info() const { return impl_->loaded->info; }
void Module::copy_artifact(const std::string& from, const std::string& to, bool overwrite) const {
  impl_->loaded->copy_artifact(from, to, overwrite);
}
int Module::num_threads() const { return impl_->num_threads; }

std::vector<std::string> Module::function_names() const {
  std::vector<std::string> names;
  for (const Function& f : impl_->loaded->program.functions) {
    if (!f.internal) names.push_back(f.name);
  }
  return names;
}

const Function& Module::function(std::string_view name) const {
  for (const Function& f : impl_->loaded->program.functions) {
    if (!f.internal && f.name == name) return f;
  }
  std::string names;
  for (const std::string& known : function_names()) names += (names.empty() ? "" : ", ") + known;
  throw UserError(Diagnostic(codes::run_no_function, {},
                             "the module has no function '" + escape_for_terminal(name, 200) + "'")
                      .expected(names.empty() ? "the module has no functions" : "one of " + names));
}

Value Module::run_values(std::string_view name, std::span<const Value> inputs,
                         const RunOptions& options) const {
  const Function& f = function(name);
  SignatureCheck check(f, "input");
  check.count(inputs.size(), f.params.size());
  for (size_t n = 0; n < std::min(inputs.size(), f.params.size()); ++n) {
    check.value(f.params[n], inputs[n]);
  }
  check.raise();
  return impl_->execute(f, inputs, {}, options);
}

Value Module::call(const Value& function, std::span<const Value> inputs,
                   const RunOptions& options) const {
  const Program& program = impl_->loaded->program;
  RELAY_CHECK(function && function.kind() == ObjectKind::closure);
  auto index = static_cast<size_t>(function.tag());
  RELAY_CHECK(index < program.functions.size());
  const Function& f = program.functions[index];
  std::vector<Value> values;
  for (size_t i = 0; i < function.num_fields(); ++i) values.push_back(function.field(i));
  values.insert(values.end(), inputs.begin(), inputs.end());
  SignatureCheck check(f, "input");
  check.count(values.size(), f.params.size());
  // The captured values bind the names of sizes; they fit by their types, and so do values other than tensors.
  for (size_t n = 0; n < std::min(values.size(), f.params.size()); ++n) {
    if (f.params[n].is_tensor) check.value(f.params[n], values[n]);
  }
  check.raise();
  return impl_->execute(f, values, {}, options);
}

Module Module::apart() const {
  LoadOptions options;
  options.num_threads = impl_->num_threads;
  return Module(Impl::make(impl_->loaded, options));
}

std::vector<Tensor> Module::run(std::string_view name, std::span<const Tensor> inputs,
                                const RunOptions& options) const {
  std::vector<Value> values(inputs.begin(), inputs.end());
  Value result = run_values(name, values, options);
  std::vector<Tensor> outputs;
  BudgetScope budget(budget_of(options));
  if (!flatten_tensors(result, outputs)) {
    throw UserError(
        Diagnostic(codes::run_input, {},
                   "the result of function '" + std::string(name) + "' is not made of tensors only")
            .found(value_text(result))
            .help("run it through the interface for general values"));
  }
  return outputs;
}

void Module::run_into(std::string_view name, std::span<const Tensor> inputs,
                      std::span<const Tensor> outputs, const RunOptions& options) const {
  const Function& f = function(name);
  SignatureCheck check(f, "input");
  check.count(inputs.size(), f.params.size());
  std::vector<Value> values(inputs.begin(), inputs.end());
  for (size_t n = 0; n < std::min(inputs.size(), f.params.size()); ++n) {
    check.value(f.params[n], values[n]);
  }
  check.raise();
  SignatureCheck output_check(f, "output");
  output_check.count(outputs.size(), f.results.size());
  for (size_t n = 0; n < std::min(outputs.size(), f.results.size()); ++n) {
    output_check.tensor(f.results[n], outputs[n]);
    if (!outputs[n]) continue;
    if (!outputs[n].device().is_host()) {
      output_check.add("output '" + f.results[n].name + "' cannot be written into the given tensor",
                       "memory of the host", "memory on " + outputs[n].device().to_string(),
                       "take the outputs that the run makes");
      continue;
    }
    if (outputs[n].dtype().is_string()) {
      output_check.add("output '" + f.results[n].name + "' cannot be written into the given tensor",
                       "a dtype of numbers", "strings, whose size only the run tells",
                       "take the outputs that the run makes");
      continue;
    }
    if (const Donation* d = donation_of_result(f, n)) {
      const Tensor& input = values[static_cast<size_t>(d->param)].tensor();
      if (input.data() == outputs[n].data()) continue;
      output_check.add("output '" + f.results[n].name + "' cannot be written into the given tensor",
                       "the memory of input '" + f.params[static_cast<size_t>(d->param)].name +
                           "', which is donated to it",
                       "other memory");
      continue;
    }
    bool bad = outputs[n].read_only();
    for (const Tensor& input : inputs) bad = bad || overlap(outputs[n], input);
    for (size_t m = 0; m < n; ++m) bad = bad || (outputs[m] && overlap(outputs[n], outputs[m]));
    if (bad) {
      output_check.add("output '" + f.results[n].name + "' cannot be written into the given tensor",
                       "writable memory that no input and no other output uses",
                       outputs[n].read_only() ? "a read-only tensor" : "shared memory");
    }
  }
  output_check.raise();
  if (f.writes_outputs) {
    impl_->execute(f, values, outputs, options);
    return;
  }
  std::vector<Tensor> results;
  Value result = impl_->execute(f, values, {}, options);
  BudgetScope budget(budget_of(options));
  bool tensors = flatten_tensors(result, results);
  SignatureCheck result_check(f, "output");
  if (!tensors || results.size() != outputs.size()) {
    result_check.add("the result of function '" + f.name + "' is not made of tensors only",
                     std::to_string(outputs.size()) + " tensors", "something else");
  }
  for (size_t n = 0; n < std::min(results.size(), outputs.size()); ++n) {
    if (!std::ranges::equal(results[n].shape(), outputs[n].shape()) ||
        results[n].dtype() != outputs[n].dtype()) {
      result_check.add("output '" + f.results[n].name + "' does not fit the given tensor",
                       type_string(results[n].dtype(), results[n].shape()),
                       type_string(outputs[n].dtype(), outputs[n].shape()));
    }
  }
  result_check.raise();
  for (size_t n = 0; n < results.size(); ++n) {
    if (outputs[n].data() == results[n].data()) continue;
    std::memcpy(outputs[n].data(), results[n].data(), results[n].byte_size());
  }
}

}  // namespace relay::runtime
