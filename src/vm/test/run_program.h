// Programs as text, compiled and run on the virtual machine.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "codegen/backend.h"
#include "codegen/targets.h"
#include "ir/text/print_value.h"
#include "lower/kernel_body.h"
#include "ops/test/parse.h"
#include "passes/pass.h"
#include "passes/pipelines.h"
#include "runtime/module.h"
#include "vm/compile.h"

namespace relay::vm_test {

using test::parse;

// A program and its bytecode; kernels are compiled as they are written, without a schedule.
struct Compiled {
  explicit Compiled(const std::string& text, bool optimized = false) : source(parse(text)) {
    PassContext ctx;
    ctx.verify = true;
    ctx.opt_level = optimized ? 3 : 0;
    if (!optimized) {
      // Functions stay functions: calls are what these tests are about.
      for (const char* name : {"Inline", "FoldConstant", "EliminateCommonSubexpr"}) {
        ctx.disabled_pass.insert(name);
      }
    }
    ctx.evaluate = [](const Function&, const std::vector<Tensor>&) -> std::vector<Tensor> {
      throw std::logic_error("nothing is folded here");
    };
    ctx.disabled_pass.insert("FoldConstant");
    lowered = run_passes(source, optimize_pipeline(), ctx);
    bytecode = compile_to_bytecode(lowered);
    std::vector<tir::PrimFunc> kernels;
    for (const plan::ProgramKernel& k : bytecode.kernels) {
      kernels.push_back(
          std::get<TirKernel>(bytecode.provider->lower(k.variant)).launches[0].lowered);
    }
    auto jit = std::make_shared<LoadedKernels>(load_kernels(kernels, native_target()));
    runtime::LoadOptions load;
    load.num_threads = 1;
    module = std::make_unique<runtime::Module>(
        runtime::Module::from_kernels(bytecode.program, jit->functions(), "{}", jit, load));
  }

  runtime::Value run(const std::vector<runtime::Value>& args = {},
                     const runtime::RunOptions& options = {}, const std::string& f = "main") const {
    return module->run_values(f, args, options);
  }
  // The result in text form.
  std::string text(const std::vector<runtime::Value>& args = {},
                   const std::string& f = "main") const {
    Type type = as<FuncTypeNode>(source->find(f)->type)->ret_type;
    return print_value(run(args, {}, f), type, source);
  }

  Module source;
  Module lowered;
  Bytecode bytecode;
  std::unique_ptr<runtime::Module> module;
};

// What @main of the program gives, in text form.
inline std::string result_of(const std::string& text) { return Compiled(text).text(); }

}  // namespace relay::vm_test
