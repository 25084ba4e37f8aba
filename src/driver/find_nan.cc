#include "driver/find_nan.h"

#include "driver/native_kernels.h"

namespace relay {
namespace {

using runtime::Value;

NotFinite sum_of(std::span<const Tensor> tensors) {
  NotFinite out;
  for (const Tensor& t : tensors) {
    const NotFinite one = not_finite(t);
    out.nans += one.nans;
    out.infinities += one.infinities;
  }
  return out;
}

NotFinite sum_of_value(const Value& value) {
  std::vector<Tensor> tensors;
  runtime::flatten_tensors(value, tensors);
  return sum_of(tensors);
}

class Watcher : public CallWatcher {
 public:
  Watcher(NanReport& report, const std::string& source) : report_(report), source_(source) {}

  void before(const WatchedCall& c) override {
    ++report_.calls;
    given_ = sum_of(c.inputs);
    // A kernel may write over its inputs.
    kept_.clear();
    if (!c.primitive || complete()) return;
    for (const Tensor& t : c.inputs) kept_.push_back(t ? t.copy() : t);
  }

  void after(const WatchedCall& c) override {
    if (complete()) return;
    const NotFinite made = sum_of(c.outputs);
    if (made.nans > 0 && given_.nans == 0 && !has_[1]) add(c, true);
    if (made.infinities > 0 && given_.infinities == 0 && !has_[0]) add(c, false);
  }

 private:
  bool complete() const { return has_[0] && has_[1]; }

  void add(const WatchedCall& c, bool is_nan) {
    has_[is_nan ? 1 : 0] = true;
    NanEvent& e = report_.events.emplace_back();
    e.is_nan = is_nan;
    e.operation = c.operation;
    e.node = c.node;
    e.origin = c.origin;
    e.index = c.index;
    if (c.primitive) {
      e.inputs = kept_;
    } else {
      e.inputs.assign(c.inputs.begin(), c.inputs.end());
    }
    for (size_t i = 0; i < e.inputs.size(); ++i) {
      if (!e.inputs[i] && i < c.inputs.size() && c.inputs[i]) e.inputs[i] = c.inputs[i].copy();
    }
    for (const Tensor& t : c.outputs) e.outputs.push_back(t && c.primitive ? t.copy() : t);
    if (c.call != nullptr) e.program = module_of_call(*c.call, e.inputs);
    if (c.primitive) name_operator(c, e);
  }

  // The operator of the kernel that makes it, on the evaluator.
  void name_operator(const WatchedCall& c, NanEvent& e) const {
    e.kernel = c.operation;
    for (const Tensor& t : e.inputs) {
      if (!t) return;
    }
    const Module mod = module_of_primitive(*c.primitive.get());
    e.program = mod;
    if (!mod) return;
    NanReport inner;
    EvalOptions options;
    options.compile_kernel = NativeKernels().compiler();
    try {
      inner = find_nan(*watch_evaluator(mod, options, source_), "main",
                       std::vector<Value>(e.inputs.begin(), e.inputs.end()), source_);
    } catch (const Error&) {
      return;  // it has an operator that the evaluator cannot compute: the kernel is what is known
    }
    for (const NanEvent& one : inner.events) {
      if (one.is_nan != e.is_nan) continue;
      e.operation = one.operation;
      // A kernel that several calls share has the places of one of them.
      const bool shared = c.origin.find(one.node) == std::string::npos;
      if (!one.node.empty() && !shared) e.node = one.node;
      e.inputs = one.inputs;
      e.outputs = one.outputs;
      if (one.program) e.program = one.program;
      return;
    }
    e.kernel_only = true;
  }

  NanReport& report_;
  const std::string& source_;
  NotFinite given_;
  std::vector<Tensor> kept_;
  bool has_[2] = {false, false};  // an infinity, a NaN
};

}  // namespace

NanReport find_nan(WatchedProgram& program, const std::string& function,
                   const std::vector<Value>& args, const std::string& source_name) {
  NanReport report;
  for (const Value& v : args) {
    const NotFinite one = sum_of_value(v);
    report.arguments.nans += one.nans;
    report.arguments.infinities += one.infinities;
  }
  Watcher watcher(report, source_name);
  report.results = sum_of_value(program.run(function, args, watcher));
  return report;
}

}  // namespace relay
