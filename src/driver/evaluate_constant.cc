#include "driver/evaluate_constant.h"

#include <mutex>
#include <unordered_map>

#include "base/codes/runtime.h"
#include "codegen/backend.h"
#include "codegen/targets.h"
#include "lower/kernel_body.h"
#include "lower/kernel_provider.h"
#include "node/structural.h"
#include "runtime/core/strings.h"
#include "runtime/module.h"
#include "tir/interpret.h"
#include "vm/compile.h"

namespace relay {
namespace {

// Bytes up to which a kernel is interpreted, where an operation counts as kBytesOfOperation: an element of a product of two
// tensors is 20 and takes 26 ns, so 2 ms, where generating code takes ten or more.
constexpr double kInterpretedBytes = 1'600'000, kBytesOfOperation = 8;

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
    std::vector<Tensor> buffers;
    for (const Tensor& a : args) buffers.push_back(a.as_dtype(a.dtype().storage()));
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
                          const std::vector<TensorType>&) override {
    return module_.run("main", args);
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
    const runtime::DenormalScope scope(denormals_);
    return find(f)->run(args, *flatten_tensor_types(f->body->type));
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
    std::shared_ptr<Kernel> kernel = make(f);
    std::lock_guard<std::mutex> lock(mutex_);
    known_[hash].push_back({f, kernel});
    return kernel;
  }

  std::shared_ptr<Kernel> make(const Function& f) const {
    Dict attrs = f->attrs;
    attrs.insert_or_assign(attr::kPrimitive, AttrValue(int64_t{1}));
    const Function primitive =
        function(f->params, f->body, f->ret_type, f->type_params, std::move(attrs), f->span);
    ProviderOptions options{.target = target_, .opt_level = 1};
    auto provider = std::make_shared<KernelProvider>(std::move(options));
    const int32_t composed = provider->add(primitive);
    const KernelSignature& signature = provider->signature(composed);
    if (kBytesOfOperation * signature.flops + signature.bytes > kInterpretedBytes) {
      return std::make_shared<Compiled>(compile(primitive, std::move(provider)));
    }
    return std::make_shared<Interpreted>(
        std::get<TirKernel>(provider->body(provider->variant(composed))).launches[0].composed);
  }

  // A program that calls the function.
  runtime::Module compile(const Function& primitive,
                          std::shared_ptr<KernelProvider> provider) const {
    std::vector<Var> params;
    std::vector<Expr> args;
    for (const Var& p : primitive->params) {
      params.push_back(var(p->name_hint, p->type));
      args.emplace_back(params.back());
    }
    const Var result = var("result", primitive->body->type);
    const Expr value = call(primitive, std::move(args));
    const Module program =
        module_from_expr(function(std::move(params), let(result, value, result)));
    const Bytecode bytecode = compile_to_bytecode(program, std::move(provider));
    std::vector<tir::PrimFunc> kernels;
    for (const plan::ProgramKernel& k : bytecode.kernels) {
      kernels.push_back(
          std::get<TirKernel>(bytecode.provider->lower(k.variant)).launches[0].lowered);
    }
    auto jit = std::make_shared<LoadedKernels>(load_kernels(kernels, target_, on_disk_.get()));
    return runtime::Module::from_kernels(bytecode.program, jit->functions(), "{}", jit, {},
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
