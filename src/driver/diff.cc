#include "driver/diff.h"

#include <algorithm>
#include <cmath>

#include "base/codes/passes.h"
#include "base/codes/runtime.h"
#include "codegen/targets.h"
#include "driver/native_kernels.h"
#include "ir/slot_names.h"

namespace relay {
namespace {

using runtime::Value;

// A difference of this many times what float64 arithmetic changes in the evaluator's result is rounding.
constexpr double kSlack = 16;

// A difference of more units than this is not tried to be explained by rounding.
constexpr double kFewUnits = 64;

std::vector<Value> values_of(std::span<const Tensor> tensors) {
  return {tensors.begin(), tensors.end()};
}

// The programs between the passes that changed something.
class Snapshots : public PassInstrument {
 public:
  struct Step {
    std::string pass;
    Module before, after;
  };
  void after(const Pass& pass, const Module& before, const Module& after,
             std::chrono::nanoseconds) override {
    if (!(before == after)) steps.push_back({pass.name, before, after});
  }
  std::vector<Step> steps;
};

// Whether a run or a compilation ended since it reached a limit: that says nothing about the program.
bool is_limit(const Error& e) {
  for (const Diagnostic& d : e.diagnostics()) {
    for (const DiagnosticCode* code :
         {&codes::compile_time_limit, &codes::compile_memory_limit, &codes::run_out_of_memory,
          &codes::run_out_of_fuel, &codes::run_time_limit}) {
      if (d.code == code->id) return true;
    }
  }
  return false;
}

EvalOptions evaluator_options(const DiffOptions& o, const NativeKernels& native) {
  EvalOptions out;
  out.compile_kernel = native.compiler();
  out.fuel = o.limits.fuel;
  out.memory_limit = o.limits.memory_limit;
  out.denormals = denormals_of(parse_program_target(o.compile.target).host);
  return out;
}

// Compares each kernel with the evaluator, on the inputs that the kernel has; ends the run at the first that is wrong.
class KernelCheck : public CallWatcher {
 public:
  struct Found {};

  KernelCheck(const DiffOptions& options, const NativeKernels& native, const ValueIndex& known,
              DiffReport& report)
      : options_(options), native_(native), known_(known), report_(report) {}

  void before(const WatchedCall& c) override {
    inputs_.clear();
    // A kernel may write over its inputs.
    for (const Tensor& t : c.inputs) inputs_.push_back(t ? t.copy() : t);
  }

  void after(const WatchedCall& c) override {
    const bool expected =
        std::ranges::all_of(c.outputs, [&](const Tensor& t) { return t && known_.contains(t); });
    if (expected || !c.primitive) return;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i] && c.inputs[i]) inputs_[i] = c.inputs[i];
      if (!inputs_[i]) return;
    }
    const Module mod = module_of_primitive(*c.primitive.get());
    if (!mod) return;
    const std::vector<Tensor> want = compute(mod, false);
    for (size_t i = 0; i < std::min(want.size(), c.outputs.size()); ++i) {
      if (!c.outputs[i]) continue;
      const Difference found = difference(c.outputs[i], want[i], options_.tolerances);
      if (!found.differs() || !found.same_type || is_rounding(mod, c.outputs[i], want[i], i))
        continue;
      report_.fault = DiffFault::kernel;
      report_.node = c.node;
      report_.origin = c.origin;
      report_.operation = c.operation;
      report_.got = c.outputs[i].copy();
      report_.want = want[i];
      report_.program = mod;
      const Function main = mod->find("main");
      for (size_t p = 0; p < main->params.size(); ++p)
        report_.inputs.emplace_back(main->params[p]->name_hint, inputs_[p].copy());
      throw Found();
    }
  }

 private:
  // Nothing for what the evaluator cannot compute: an operator from outside that has no rule, say.
  std::vector<Tensor> compute(const Module& mod, bool wide) const {
    EvalOptions options = evaluator_options(options_, native_);
    options.wide_floats = wide;
    std::vector<Tensor> out;
    try {
      runtime::flatten_tensors(Evaluator(mod, options).call("main", values_of(inputs_)), out);
    } catch (const Error& e) {
      if (is_limit(e)) throw;
      out.clear();
    }
    return out;
  }

  // Whether the evaluator's own rounding is about as large as the difference.
  bool is_rounding(const Module& mod, const Tensor& got, const Tensor& want, size_t i) const {
    if (!want.dtype().is_floating()) return false;
    const std::vector<Tensor> wide = compute(mod, true);
    if (i >= wide.size()) return false;
    const Difference from_wide = difference(got, wide[i], options_.tolerances);
    if (!from_wide.differs()) return true;
    const Difference own = difference(want, wide[i], options_.tolerances);
    return std::isfinite(from_wide.worst) && from_wide.worst <= kSlack * own.worst;
  }

  const DiffOptions& options_;
  const NativeKernels& native_;
  const ValueIndex& known_;
  DiffReport& report_;
  std::vector<Tensor> inputs_;
};

class Differ {
 public:
  Differ(const Module& mod, const std::vector<Value>& args, const DiffOptions& options,
         const Trace* outside)
      : mod_(mod), args_(args), options_(options), outside_(outside) {}

  DiffReport run() {
    CompileOptions compile = options_.compile;
    compile.instruments.push_back(&snapshots_);
    if (options_.function != "main") {
      compile.config["relay.RemoveUnusedFunctions.entry_functions"] =
          AttrValue(ValueList{AttrValue(options_.function)});
    }
    CompiledWatch compiled(mod_, compile, options_.limits);
    const Trace subject = trace(compiled, options_.function, args_);
    report_.results = subject.results;
    if (outside_ != nullptr) report_.expected = outside_->results;
    if (outside_ != nullptr && agrees(subject.results, outside_->results)) return report_;
    const Trace source = trace_of(mod_);
    if (outside_ == nullptr) report_.expected = source.results;
    if (agrees(subject.results, report_.expected)) return report_;
    if (outside_ != nullptr && !agrees(source.results, outside_->results)) return front_end(source);
    if (find_kernel(compiled, source)) return report_;
    // Whether the program after all passes still gives the reference's results.
    if (!snapshots_.steps.empty() && !gives(snapshots_.steps.back().after, source.results))
      return find_pass(source);
    if (agrees(subject.results, source.results) ||
        is_rounding(subject.results, compiled.compiled().optimized, source.results)) {
      report_.fault = DiffFault::rounding;
      return report_;
    }
    return find_plan(compiled, subject);
  }

 private:
  bool agrees(const std::vector<Tensor>& got, const std::vector<Tensor>& want) const {
    return different_results(got, want, options_.tolerances).empty();
  }

  // The program on the reference.
  Trace trace_of(const Module& mod) const {
    if (!options_.against_level_0) {
      return trace(
          *watch_evaluator(mod, evaluator_options(options_, native_), options_.source_name),
          options_.function, args_);
    }
    CompileOptions plain;
    plain.target = options_.compile.target;
    plain.num_threads = options_.compile.num_threads;
    plain.cache = options_.compile.cache;
    plain.source_name = options_.source_name;
    plain.opt_level = 0;
    if (options_.function != "main") {
      plain.config["relay.RemoveUnusedFunctions.entry_functions"] =
          AttrValue(ValueList{AttrValue(options_.function)});
    }
    CompiledWatch program(mod, plain, options_.limits);
    return trace(program, options_.function, args_);
  }

  bool gives(const Module& mod, const std::vector<Tensor>& want) const {
    try {
      return agrees(trace_of(mod).results, want);
    } catch (const Error& e) {
      if (is_limit(e) || dynamic_cast<const InternalError*>(&e) != nullptr) throw;
      return false;  // it is ill-formed, or ends in an error
    }
  }

  // Whether results differ by a few units, and by about as much as the evaluator's own rounding of the optimised program.
  bool is_rounding(const std::vector<Tensor>& got, const Module& optimized,
                   const std::vector<Tensor>& want) const {
    if (got.size() != want.size()) return false;
    for (size_t i = 0; i < got.size(); ++i) {
      const Difference d = difference(got[i], want[i], options_.tolerances);
      if (!d.same_type || d.worst > kFewUnits) return false;
    }
    EvalOptions wide = evaluator_options(options_, native_);
    std::vector<Tensor> exact, narrow;
    const Value narrow_value =
        Evaluator(optimized, wide).call(options_.function, std::vector<Value>(args_));
    wide.wide_floats = true;
    const Value wide_value =
        Evaluator(optimized, wide).call(options_.function, std::vector<Value>(args_));
    runtime::flatten_tensors(narrow_value, narrow);
    runtime::flatten_tensors(wide_value, exact);
    if (exact.size() != got.size()) return false;
    for (size_t i = 0; i < got.size(); ++i) {
      const Difference d = difference(got[i], want[i], options_.tolerances);
      if (!d.differs()) continue;
      const double own = difference(narrow[i], exact[i], options_.tolerances).worst;
      if (d.worst > kSlack * own) return false;
    }
    return true;
  }

  void name_inputs() {
    const Function f = mod_->find(options_.function);
    for (size_t i = 0; i < std::min(f->params.size(), args_.size()); ++i) {
      if (args_[i].is_tensor())
        report_.inputs.emplace_back(parameter_name(*f.get(), *f->params[i].get()),
                                    args_[i].tensor());
    }
  }

  void take_step(const Trace& want, size_t step, const Trace& got) {
    const TraceStep& s = want.steps[step];
    report_.node = s.node;
    report_.origin = s.origin;
    report_.operation = s.operation;
    if (s.outputs.empty()) return;
    report_.want = s.outputs[0];
    // The value of the same node, where it has the same type.
    for (const TraceStep& other : got.steps) {
      if (!same_node(other.node, s.node) || other.outputs.empty()) continue;
      const Difference d = difference(other.outputs[0], s.outputs[0], options_.tolerances);
      if (d.same_type && d.differs()) report_.got = other.outputs[0];
    }
  }

  DiffReport& front_end(const Trace& source) {
    report_.fault = DiffFault::front_end;
    name_inputs();
    const auto wrong = different_results(source.results, outside_->results, options_.tolerances);
    if (auto step = first_missing(*outside_, source, wrong, options_.tolerances))
      take_step(*outside_, *step, source);
    return report_;
  }

  bool find_kernel(CompiledWatch& compiled, const Trace& source) {
    const ValueIndex known(source, options_.tolerances);
    KernelCheck check(options_, native_, known, report_);
    try {
      compiled.run(options_.function, args_, check);
    } catch (const KernelCheck::Found&) {
      return true;
    }
    return false;
  }

  DiffReport& find_pass(const Trace& source) {
    const auto& steps = snapshots_.steps;
    // steps[bad].after is wrong, and steps[good - 1].after is right.
    size_t good = 0, bad = steps.size() - 1;
    while (good < bad) {
      const size_t middle = (good + bad) / 2;
      if (gives(steps[middle].after, source.results)) {
        good = middle + 1;
      } else {
        bad = middle;
      }
    }
    report_.fault = DiffFault::pass;
    report_.pass = steps[bad].pass;
    report_.program = steps[bad].before;
    name_inputs();
    try {
      const Trace before = trace_of(steps[bad].before), after = trace_of(steps[bad].after);
      const auto wrong = different_results(after.results, before.results, options_.tolerances);
      if (auto step = first_missing(before, after, wrong, options_.tolerances))
        take_step(before, *step, after);
    } catch (const Error& e) {
      // The program after the pass is ill-formed or ends in an error: the pass is what is known.
      if (is_limit(e) || dynamic_cast<const InternalError*>(&e) != nullptr) throw;
    }
    return report_;
  }

  DiffReport& find_plan(CompiledWatch& compiled, const Trace& subject) {
    report_.fault = DiffFault::plan;
    name_inputs();
    const Trace optimized =
        trace(*watch_evaluator(compiled.compiled().optimized, evaluator_options(options_, native_),
                               options_.source_name),
              options_.function, args_);
    // The first kernel whose result the program does not have: its inputs are not what was computed for it.
    const ValueIndex values(optimized, options_.tolerances);
    for (const TraceStep& s : subject.steps) {
      for (const Tensor& t : s.outputs) {
        if (!t || values.contains(t)) continue;
        report_.node = s.node;
        report_.origin = s.origin;
        report_.operation = s.operation;
        report_.got = t;
        return report_;
      }
    }
    return report_;
  }

  const Module& mod_;
  const std::vector<Value>& args_;
  const DiffOptions& options_;
  const NativeKernels native_{options_.compile.num_threads};
  const Trace* outside_;
  Snapshots snapshots_;
  DiffReport report_;
};

}  // namespace

DiffReport diff(const Module& mod, const std::vector<Value>& args, const DiffOptions& options,
                const Trace* outside) {
  return Differ(mod, args, options, outside).run();
}

}  // namespace relay
