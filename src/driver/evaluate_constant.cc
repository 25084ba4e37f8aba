#include "driver/evaluate_constant.h"

#include <mutex>
#include <unordered_map>

#include "base/codes/runtime.h"
#include "codegen/backend.h"
#include "codegen/targets.h"
#include "lower/compose.h"
#include "lower/rules/rules.h"
#include "node/structural.h"
#include "runtime/core/strings.h"
#include "runtime/module.h"
#include "tir/interpret.h"
#include "tir/lower_loops.h"

namespace relay {
namespace {

// Operations and bytes up to which a kernel is interpreted: a few milliseconds at tens of
// nanoseconds each, where generating code takes ten or more.
constexpr double kInterpretedWork = 200'000;

// Constant expressions of one form, and how they are computed.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // Results of the types, which own their strings.
  virtual std::vector<Tensor> run(const std::vector<Tensor>& args,
                                  const std::vector<TensorType>& types) = 0;
};

class Interpreted : public Kernel {
 public:
  explicit Interpreted(const tir::PrimFunc& f) : function_(f), interpreter_(f) {}

  std::vector<Tensor> run(const std::vector<Tensor>& args,
                          const std::vector<TensorType>& types) override {
    std::vector<Tensor> buffers = args;
    for (size_t i = args.size(); i < function_->params.size(); ++i) {
      std::vector<int64_t> shape;
      for (const tir::PrimExpr& d : function_->params[i]->shape) shape.push_back(*tir::as_int(d));
      buffers.push_back(Tensor::empty(function_->params[i]->dtype, shape));
    }
    std::lock_guard<std::mutex> lock(mutex_);
    if (interpreter_.run(buffers) != 0) {
      throw RuntimeError(Diagnostic(codes::run_kernel_failed, {}, "a constant has no value"));
    }
    std::vector<Tensor> results(buffers.begin() + static_cast<std::ptrdiff_t>(args.size()),
                                buffers.end());
    for (size_t i = 0; i < results.size(); ++i) {
      results[i] = results[i].as_dtype(types[i]->dtype);
      if (types[i]->dtype.is_string()) runtime::own_strings(results[i]);
    }
    return results;
  }

 private:
  tir::PrimFunc function_;
  tir::KernelInterpreter interpreter_;
  std::mutex mutex_;  // one run at a time
};

class Compiled : public Kernel {
 public:
  explicit Compiled(runtime::Module module) : module_(std::move(module)) {}
  std::vector<Tensor> run(const std::vector<Tensor>& args,
                          const std::vector<TensorType>& types) override {
    std::vector<Tensor> results = module_.run("main", args);
    for (size_t i = 0; i < results.size(); ++i) results[i] = results[i].as_dtype(types[i]->dtype);
    return results;
  }

 private:
  runtime::Module module_;
};

class Cache {
 public:
  Cache(std::shared_ptr<KernelCache> on_disk, runtime::Denormals denormals)
      : denormals_(denormals), on_disk_(std::move(on_disk)) {
    target_.keeps_denormals = denormals == runtime::Denormals::keep;
  }

  std::vector<Tensor> evaluate(const Function& f, const std::vector<Tensor>& args) {
    std::vector<Tensor> stored;
    for (const Tensor& a : args) stored.push_back(a.as_dtype(a.dtype().storage()));
    const runtime::DenormalScope scope(denormals_);
    return find(f)->run(stored, *flatten_tensor_types(f->body->type));
  }

 private:
  struct Known {
    Function function;
    std::shared_ptr<Kernel> kernel;
  };

  std::shared_ptr<Kernel> find(const Function& f) {
    uint64_t hash = structural_hash(f);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      for (const Known& k : known_[hash]) {
        if (structural_equal(k.function, f)) return k.kernel;
      }
    }
    ComposedKernel composed = compose(*f.get(), "constant");
    std::shared_ptr<Kernel> kernel;
    if (composed.flops + composed.bytes <= kInterpretedWork) {
      kernel = std::make_shared<Interpreted>(composed.func);
    } else {
      kernel = std::make_shared<Compiled>(compile(composed, *flatten_tensor_types(f->body->type)));
    }
    std::lock_guard<std::mutex> lock(mutex_);
    known_[hash].push_back({f, kernel});
    return kernel;
  }

  runtime::Module compile(const ComposedKernel& composed, const std::vector<TensorType>& results) {
    tir::PrimFunc kernel =
        tir::lower_loops(schedule_kernel(composed.func, target_, 1), kind_of(target_).lowering());
    auto jit = std::make_shared<LoadedKernels>(
        load_kernels(std::vector<tir::PrimFunc>{kernel}, target_, on_disk_.get()));
    runtime::Program program;
    runtime::KernelInfo info;
    info.name = "constant";
    info.num_outputs =
        static_cast<uint32_t>(kernel->params.size()) - static_cast<uint32_t>(kernel->num_inputs);
    runtime::FunctionBuilder b("main");
    std::vector<runtime::Operand> operands;
    auto spec = [&](const tir::Buffer& buffer) {
      runtime::TensorSpec out;
      out.dtype = buffer->dtype;
      for (const tir::PrimExpr& d : buffer->shape) out.shape.push_back(*tir::as_int(d));
      info.buffer_bytes.push_back(*tir::bytes_in_memory(*buffer.get()));
      return out;
    };
    for (size_t i = 0; i < kernel->params.size(); ++i) {
      // As they were composed: a schedule may see several axes as one, of the same memory.
      runtime::TensorSpec type = spec(composed.func->params[i]);
      if (static_cast<int64_t>(i) < kernel->num_inputs) {
        operands.push_back(runtime::Operand::reg(b.param("p" + std::to_string(i), type)));
      } else {
        // The run sees to it that results own their strings.
        const DType dtype = results[i - static_cast<size_t>(kernel->num_inputs)]->dtype;
        if (dtype.is_string()) type.dtype = dtype;
        b.result("r" + std::to_string(i), type);
        operands.push_back(runtime::Operand::output(static_cast<int64_t>(i) - kernel->num_inputs));
      }
    }
    b.invoke_kernel(0, operands);
    b.ret_outputs();
    if (info.num_outputs != 1) b.returns_tuple();
    program.kernels.push_back(std::move(info));
    program.functions.push_back(std::move(b).finish());
    return runtime::Module::from_kernels(std::move(program), jit->functions(), "{}", jit, {},
                                         denormals_);
  }

  // Sums are ordered and rounded by the width of vectors and by fused instructions, so code for the program's target, or
  // for the machine that compiles, would give other bits: constants are the same whichever machine computes them.
  Target target_ = least_target();
  const runtime::Denormals denormals_;
  std::shared_ptr<KernelCache> on_disk_;
  std::mutex mutex_;
  std::unordered_map<uint64_t, std::vector<Known>> known_;
};

}  // namespace

ConstantEvaluator make_constant_evaluator(std::shared_ptr<KernelCache> on_disk,
                                          runtime::Denormals denormals) {
  auto cache = std::make_shared<Cache>(std::move(on_disk), denormals);
  return [cache](const Function& f, const std::vector<Tensor>& args) {
    return cache->evaluate(f, args);
  };
}

}  // namespace relay
