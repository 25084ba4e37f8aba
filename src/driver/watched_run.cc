#include "driver/watched_run.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "eval/eval_observer.h"
#include "ir/op.h"
#include "ir/type_params.h"
#include "node/walk.h"
#include "runtime/profiler.h"
#include "types/infer.h"

namespace relay {
namespace {

using runtime::KernelCall;
using runtime::Value;

std::string without_folder(std::string text, const std::string& source) {
  if (source.empty()) return text;
  auto replace_all = [&](const std::string& from, const std::string& to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  };
  replace_all(source + ": node ", "");
  replace_all(source + ": ", "");
  replace_all(source, source.substr(source.find_last_of('/') + 1));
  return text;
}

// The last of the places that a span joins.
const Span& last_part(const Span& span) {
  const Span* at = &span;
  while (!at->parts().empty()) at = &at->parts().back();
  return *at;
}

// "a + b" -> "b".
std::string last_of(const std::string& origin) {
  const size_t at = origin.rfind(" + ");
  return at == std::string::npos ? origin : origin.substr(at + 3);
}

uint32_t line_of(const Span& span) {
  const Span& part = last_part(span);
  if (part.file() == nullptr || part.file()->text().empty()) return 0;
  return part.file()->position(part.begin()).line;
}

// ---- The evaluator

class EvaluatorWatch : public WatchedProgram, private EvalObserver {
 public:
  EvaluatorWatch(const Module& mod, const EvalOptions& options, std::string source)
      : evaluator_(mod, options), source_(std::move(source)) {}

  Value run(const std::string& function, std::vector<Value> args, CallWatcher& watcher) override {
    watcher_ = &watcher;
    index_ = 0;
    functions_.clear();
    evaluator_.observe(this);
    return evaluator_.call(function, std::move(args));
  }

 private:
  void before(const EvalOpCall& c) override {
    inputs_.clear();
    for (const Value& v : c.args) runtime::flatten_tensors(v, inputs_);
    outputs_.clear();
    const Span& span = c.expr != nullptr ? c.expr->span : Span();
    call_.index = index_++;
    call_.operation = c.op.name;
    call_.origin = place_text(span, source_);
    call_.node = place_text(last_part(span), source_);
    call_.line = line_of(span);
    call_.depth = c.depth;
    call_.function = c.depth <= functions_.size() && c.depth > 0 ? functions_[c.depth - 1] : "";
    auto* call = c.expr != nullptr ? as<CallNode>(c.expr) : nullptr;
    call_.call = call != nullptr && call->op.get() == &c.op ? call : nullptr;
    call_.inputs = inputs_;
    call_.outputs = {};
    watcher_->before(call_);
  }
  void after(const EvalOpCall&, const Value& result) override {
    runtime::flatten_tensors(result, outputs_);
    call_.outputs = outputs_;
    watcher_->after(call_);
  }
  void entered(const FunctionNode& f, std::string_view name, std::span<const Value> args,
               const ExprNode* call, size_t depth) override {
    functions_.resize(depth);
    functions_.back() = name;
    watcher_->entered({std::string(name),
                       call != nullptr ? place_text(last_part(call->span), source_) : "", depth, &f,
                       args});
  }

  Evaluator evaluator_;
  std::string source_;
  CallWatcher* watcher_ = nullptr;
  int64_t index_ = 0;
  std::vector<std::string> functions_;
  WatchedCall call_;
  std::vector<Tensor> inputs_, outputs_;
};

// ---- Compiled code

// The kernels of a program, and which of them each instruction calls.
class Kernels : public StageObserver {
 public:
  struct Site {
    size_t kernel = 0;
    size_t site = 0;
    size_t launch = 0;
  };

  void plan(plan::PlanProgram& plan) override {
    kernels = plan.kernels;
    for (const plan::PlanFunction& f : plan.functions) {
      std::vector<Site>& sites = sites_[f.name];
      for (const plan::Step& s : f.steps) {
        if (s.kind != plan::StepKind::kernel) continue;
        const auto k = static_cast<size_t>(s.number);
        for (size_t l = 0; l < kernels[k].signature.launches.size(); ++l)
          sites.push_back({k, static_cast<size_t>(s.text), l});
      }
    }
  }

  // Looks up an instruction of a function that calls a kernel: they are in the order of the plan's steps.
  const Site& at(const runtime::Function& f, size_t instruction) {
    std::vector<size_t>& number = numbers_[&f];
    if (number.empty()) {
      size_t next = 0;
      for (const runtime::Instruction& i : f.code)
        number.push_back(i.op == runtime::Opcode::invoke_kernel ? next++ : 0);
      RELAY_CHECK(next == sites_[f.name].size(), "the kernels of a plan and of its bytecode");
    }
    return sites_[f.name][number[instruction]];
  }

  std::vector<plan::ProgramKernel> kernels;

 private:
  std::unordered_map<std::string, std::vector<Site>> sites_;  // by function
  std::unordered_map<const runtime::Function*, std::vector<size_t>> numbers_;
};

std::vector<TensorType> leaf_types(const Type& type) {
  return flatten_tensor_types(type).value_or(std::vector<TensorType>{});
}

// The tensor in a buffer of a kernel; null where its sizes are not known.
Tensor tensor_in(const KernelOperand& o, std::vector<int64_t> shape, void* data, size_t bytes) {
  // Strings are the run's, and end with it.
  if (o.dtype.is_string() || std::ranges::any_of(shape, [](int64_t d) { return d < 0; }))
    return nullptr;
  if (o.within.empty()) {
    const int64_t count = runtime::checked_num_elements(o.dtype, shape);
    if (static_cast<size_t>(count) * o.dtype.bytes() > bytes) return nullptr;
    return Tensor::from_external(data, o.dtype, shape, nullptr, /*read_only=*/true);
  }
  // Rows with gaps between them are gathered.
  if (std::ranges::any_of(o.within, [](int64_t d) { return d < 0; })) return nullptr;
  Tensor out = Tensor::empty(o.dtype, shape);
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * o.within[i];
  const size_t width = o.dtype.bytes();
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t n = 0; n < out.num_elements(); ++n) {
    int64_t offset = 0;
    for (size_t i = 0; i < index.size(); ++i) offset += index[i] * strides[i];
    std::memcpy(out.data<char>() + static_cast<size_t>(n) * width,
                static_cast<const char*>(data) + static_cast<size_t>(offset) * width, width);
    for (size_t i = index.size(); i-- > 0 && ++index[i] == shape[i];) index[i] = 0;
  }
  return out;
}

}  // namespace

struct CompiledWatch::Impl {
  Kernels kernels;
  CompiledModule compiled;
  std::optional<runtime::Module> module;
  WatchLimits limits;
};

class CompiledWatch::Observer : public runtime::KernelObserver {
 public:
  Observer(Kernels& kernels, CallWatcher& watcher) : kernels_(kernels), watcher_(watcher) {}

  void before(const KernelCall& c) override {
    const Kernels::Site& site = kernels_.at(c.function, c.instruction);
    const plan::ProgramKernel& k = kernels_.kernels[site.kernel];
    const KernelSignature& s = k.signature;
    const bool single = s.launches.size() == 1;
    if (site.launch == 0) begin(c, k, site);
    const KernelLaunch& launch = s.launches[site.launch];
    for (size_t i = 0; i < launch.reads.size(); ++i) {
      const size_t n = launch.reads[i];
      if (n >= s.inputs.size() || inputs_[n]) continue;
      inputs_[n] = tensor_in(s.inputs[n], shapes_[n], c.buffers[i], c.bytes[i]);
      // Later launches may write over it.
      if (!single && inputs_[n]) inputs_[n] = inputs_[n].copy();
    }
    call_.inputs = inputs_;
    if (site.launch == 0) watcher_.before(call_);
  }

  void after(const KernelCall& c) override {
    const Kernels::Site& site = kernels_.at(c.function, c.instruction);
    const KernelSignature& s = kernels_.kernels[site.kernel].signature;
    const KernelLaunch& launch = s.launches[site.launch];
    for (size_t i = 0; i < launch.writes.size(); ++i) {
      const size_t n = launch.writes[i] - s.inputs.size();
      if (launch.writes[i] < s.inputs.size() || n >= s.results.size()) continue;
      const size_t at = launch.reads.size() + i;
      outputs_[n] =
          tensor_in(s.results[n], shapes_[s.inputs.size() + n], c.buffers[at], c.bytes[at]);
    }
    if (site.launch + 1 < s.launches.size()) return;
    call_.outputs = outputs_;
    watcher_.after(call_);
  }

 private:
  void begin(const KernelCall& c, const plan::ProgramKernel& k, const Kernels::Site& site) {
    const KernelSignature& s = k.signature;
    inputs_.assign(s.inputs.size(), nullptr);
    outputs_.assign(s.results.size(), nullptr);
    call_.index = index_++;
    call_.operation = s.name;
    call_.origin = site.site < k.sites.size() ? k.sites[site.site].origin : "";
    call_.node = last_of(call_.origin);
    call_.line = 0;
    const size_t column = call_.node.rfind(':');
    const size_t line = column == std::string::npos ? column : call_.node.rfind(':', column - 1);
    if (line != std::string::npos)
      call_.line = static_cast<uint32_t>(std::strtoul(call_.node.c_str() + line + 1, nullptr, 10));
    call_.depth = c.depth;
    call_.function = c.function.name;
    call_.primitive = k.primitive;
    call_.outputs = {};
    find_shapes(k, c.dims);
  }

  // The shapes of the kernel's operands and results for these sizes.
  void find_shapes(const plan::ProgramKernel& k, std::span<const int64_t> dims) {
    const KernelSignature& s = k.signature;
    shapes_.clear();
    for (const KernelOperand& o : s.inputs) shapes_.push_back(o.shape);
    for (const KernelOperand& o : s.results) shapes_.push_back(o.shape);
    auto is_open = [](const std::vector<int64_t>& shape) {
      return std::ranges::any_of(shape, [](int64_t d) { return d < 0; });
    };
    if (std::ranges::none_of(shapes_, is_open) || !k.primitive) return;
    TypeParams sizes;
    for (size_t i = 0; i < std::min(dims.size(), s.sizes.size()); ++i) {
      if (auto* named = as<DimVarNode>(s.sizes[i])) sizes[named->var.get()] = dim(dims[i]);
    }
    std::vector<TensorType> types;
    for (const Var& p : k.primitive->params) {
      for (TensorType& t : leaf_types(p->type)) types.push_back(std::move(t));
    }
    for (TensorType& t : leaf_types(k.primitive->body->type)) types.push_back(std::move(t));
    if (types.size() != shapes_.size()) return;
    for (size_t i = 0; i < types.size(); ++i) {
      if (!is_open(shapes_[i])) continue;
      const Type known = with_type_params(types[i], sizes);
      auto* tensor = as<TensorTypeNode>(known);
      if (auto shape = tensor->const_shape()) shapes_[i] = *shape;
    }
  }

  Kernels& kernels_;
  CallWatcher& watcher_;
  int64_t index_ = 0;
  WatchedCall call_;
  std::vector<std::vector<int64_t>> shapes_;  // of the inputs, then of the results
  std::vector<Tensor> inputs_, outputs_;
};

CompiledWatch::CompiledWatch(const Module& mod, CompileOptions options, const WatchLimits& limits)
    : impl_(std::make_unique<Impl>()) {
  options.observers.push_back(&impl_->kernels);
  impl_->compiled = compile(mod, options);
  runtime::LoadOptions load;
  load.num_threads = options.num_threads;
  impl_->module = impl_->compiled.load(load);
  impl_->limits = limits;
}
CompiledWatch::~CompiledWatch() = default;

const CompiledModule& CompiledWatch::compiled() const { return impl_->compiled; }

Value CompiledWatch::run(const std::string& function, std::vector<Value> args,
                         CallWatcher& watcher) {
  Observer observer(impl_->kernels, watcher);
  runtime::Profiler profiler;
  profiler.limit(0);
  profiler.observe(&observer);
  runtime::RunOptions options;
  options.profiler = &profiler;
  if (impl_->limits.fuel > 0) options.fuel = impl_->limits.fuel;
  if (impl_->limits.memory_limit > 0) options.memory_limit = impl_->limits.memory_limit;
  options.time_limit = impl_->limits.time_limit;
  return impl_->module->run_values(function, args, options);
}

std::unique_ptr<WatchedProgram> watch_evaluator(const Module& mod, const EvalOptions& options,
                                                const std::string& source_name) {
  return std::make_unique<EvaluatorWatch>(mod, options, source_name);
}

std::string place_text(const Span& span, const std::string& source_name) {
  return without_folder(span.describe(), source_name);
}

Module module_of_primitive(const FunctionNode& f) {
  std::vector<Var> params;
  std::vector<Expr> args;
  bool has_tuples = false;
  for (const Var& p : f.params) {
    if (isa<TensorTypeNode>(p->type)) {
      params.push_back(p);
      args.push_back(p);
      continue;
    }
    auto* t = as<TupleTypeNode>(p->type);
    if (t == nullptr) return nullptr;
    has_tuples = true;
    std::vector<Expr> fields;
    for (size_t k = 0; k < t->fields.size(); ++k) {
      if (!isa<TensorTypeNode>(t->fields[k])) return nullptr;
      params.push_back(var(p->name_hint + "_" + std::to_string(k), t->fields[k]));
      fields.push_back(params.back());
    }
    args.push_back(tuple(std::move(fields)));
  }
  if (!has_tuples)
    return module_from_expr(function(f.params, f.body, f.ret_type, f.type_params, {}, f.span));
  // The tuples are made around the body.
  Expr body = f.body;
  for (size_t i = f.params.size(); i-- > 0;) {
    if (!(args[i] == f.params[i])) body = let(f.params[i], args[i], body);
  }
  return module_from_expr(function(std::move(params), body, f.ret_type, f.type_params, {}, f.span));
}

Module module_of_call(const CallNode& call_node, std::span<const Tensor> inputs) {
  std::vector<Var> params;
  std::vector<Expr> args;
  size_t next = 0;
  // A parameter for each tensor, named by the operator's arguments.
  const OpInfo& row = *as<OpNode>(call_node.op)->row;
  auto parameter = [&](std::string name) -> Expr {
    if (next == inputs.size()) return nullptr;
    const Tensor& t = inputs[next++];
    if (!t) return nullptr;
    std::vector<int64_t> shape(t.shape().begin(), t.shape().end());
    params.push_back(var(std::move(name), tensor_type(shape, t.dtype())));
    return params.back();
  };
  for (size_t i = 0; i < call_node.args.size(); ++i) {
    const std::string name = i < row.args.size() ? row.args[i].name : "input" + std::to_string(i);
    const Type& type = call_node.args[i]->type;
    if (isa<TensorTypeNode>(type)) {
      args.push_back(parameter(name));
    } else if (auto* t = as<TupleTypeNode>(type)) {
      std::vector<Expr> fields;
      for (size_t k = 0; k < t->fields.size(); ++k) {
        if (!isa<TensorTypeNode>(t->fields[k])) return nullptr;
        fields.push_back(parameter(name + "_" + std::to_string(k)));
        if (!fields.back()) return nullptr;
      }
      args.push_back(tuple(std::move(fields)));
    } else {
      return nullptr;
    }
    if (!args.back()) return nullptr;
  }
  if (next != inputs.size()) return nullptr;
  try {
    return module_from_expr(function(
        std::move(params), call(call_node.op, std::move(args), call_node.attrs, call_node.span)));
  } catch (const UserError&) {
    return nullptr;  // its attributes name sizes of the program around it
  }
}

}  // namespace relay
