#include "driver/evaluate_constant.h"

#include <mutex>
#include <unordered_map>

#include "base/diagnostic_codes.h"
#include "codegen/llvm/codegen.h"
#include "driver/target_info.h"
#include "lower/compose.h"
#include "node/structural.h"
#include "runtime/cpu.h"
#include "runtime/module.h"
#include "tir/lower_loops.h"

namespace relay {
namespace {

// What constants are computed with: code for the program's target where this machine runs it, else
// for one that it does, whichever machine compiles.
Target runnable(const Target& target) {
  if (runtime::missing_features(target.required_features()).empty()) return target;
  return Target::parse("x86-64-v2");
}

// A compiled constant expression, with what keeps its code alive.
struct Compiled {
  Function function;
  runtime::Module module;
};

class Cache {
 public:
  Cache(const Target& target, std::shared_ptr<KernelCache> on_disk)
      : target_(runnable(target)), on_disk_(std::move(on_disk)) {}

  std::vector<Tensor> evaluate(const Function& f, const std::vector<Tensor>& args) {
    runtime::Module module = find(f);
    return module.run("main", args);
  }

 private:
  runtime::Module find(const Function& f) {
    uint64_t hash = structural_hash(f);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      for (const Compiled& c : known_[hash]) {
        if (structural_equal(c.function, f)) return c.module;
      }
    }
    runtime::Module module = compile(f);
    std::lock_guard<std::mutex> lock(mutex_);
    known_[hash].push_back({f, module});
    return module;
  }

  runtime::Module compile(const Function& f) {
    ComposedKernel composed = compose(*f.get(), "constant");
    tir::PrimFunc kernel =
        tir::lower_loops(schedule_kernel(composed.func, target_info(target_), 1));
    auto jit =
        std::make_shared<JitModule>(std::vector<tir::PrimFunc>{kernel}, target_, on_disk_.get());
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
      int64_t bytes = static_cast<int64_t>(buffer->dtype.bytes());
      for (const tir::PrimExpr& d : buffer->shape) {
        out.shape.push_back(*tir::as_int(d));
        bytes *= out.shape.back();
      }
      info.buffer_bytes.push_back(bytes);
      return out;
    };
    for (size_t i = 0; i < kernel->params.size(); ++i) {
      runtime::TensorSpec type = spec(kernel->params[i]);
      if (static_cast<int64_t>(i) < kernel->num_inputs) {
        operands.push_back(runtime::Operand::reg(b.param("p" + std::to_string(i), type)));
      } else {
        b.result("r" + std::to_string(i), type);
        operands.push_back(runtime::Operand::output(static_cast<int64_t>(i) - kernel->num_inputs));
      }
    }
    b.invoke_kernel(0, operands);
    b.ret_outputs();
    if (info.num_outputs != 1) b.returns_tuple();
    program.kernels.push_back(std::move(info));
    program.functions.push_back(std::move(b).finish());
    return runtime::Module::from_kernels(std::move(program), jit->functions(), "{}", jit);
  }

  Target target_;
  std::shared_ptr<KernelCache> on_disk_;
  std::mutex mutex_;
  std::unordered_map<uint64_t, std::vector<Compiled>> known_;
};

}  // namespace

ConstantEvaluator make_constant_evaluator(const Target& target,
                                          std::shared_ptr<KernelCache> on_disk) {
  auto cache = std::make_shared<Cache>(target, std::move(on_disk));
  return [cache](const Function& f, const std::vector<Tensor>& args) {
    return cache->evaluate(f, args);
  };
}

}  // namespace relay
