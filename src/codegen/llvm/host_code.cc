#include "codegen/llvm/host_code.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include "base/budget.h"
#include "base/fork.h"
#include "codegen/llvm/host_function.h"
#include "codegen/llvm/llvm_object.h"
#include "codegen/llvm/machine.h"

namespace relay::codegen {
namespace {

llvm::FunctionPassManager host_pipeline() {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::GVNPass());
  passes.addPass(llvm::SimplifyCFGPass());
  return passes;
}

void optimize(llvm::Module& module, llvm::TargetMachine& machine) {
  run_function_passes(module, machine, host_pipeline());
  llvm::ModulePassManager remove_unused;
  remove_unused.addPass(llvm::GlobalDCEPass());
  run_module_passes(module, machine, std::move(remove_unused));
}

void build_module(llvm::Module& module, const llvm::DataLayout& layout,
                  const hostcode::Program& program, const Target& target) {
  module.setTargetTriple(target.triple);
  module.setDataLayout(layout);
  build_host_functions(module, program, target);
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(module, &stream)) {
    throw InternalError("internal error: invalid LLVM IR for host code: " + problem);
  }
}

std::string host_settings(const Target& target) {
  std::string out = "relay " RELAY_VERSION " host " + std::to_string(RELAY_NATIVE_ABI_VERSION) +
                    " llvm " LLVM_VERSION_STRING "\n" + target.triple + "\n" + target.cpu + "\n" +
                    target.features + "\npic small less strict\n";
  llvm::raw_string_ostream stream(out);
  host_pipeline().printPipeline(stream, [](llvm::StringRef name) { return name; });
  return out;
}

}  // namespace

bool has_host_code(const Target& target) { return stack_pointer_of(target.arch) != nullptr; }

ObjectCode generate_host_object(const hostcode::Program& program, const Target& target,
                                KernelCache* cache) {
  ForkSection section;
  LlvmObject<llvm::LLVMContext> context;
  LlvmObject<std::unique_ptr<llvm::TargetMachine>> machine(make_machine(target, CodeKind::host));
  LlvmObject<llvm::Module> module("relay_host", *context);
  build_module(*module, (*machine)->createDataLayout(), program, target);
  const std::string key = cache == nullptr ? "" : key_of(*module, host_settings(target));
  if (cache != nullptr) {
    if (auto known = cache->find(key)) return *std::move(known);
  }
  optimize(*module, **machine);
  check_budget_now();
  ObjectCode out = emit_object(*module, **machine);
  if (cache != nullptr) cache->insert(key, out);
  return out;
}

std::string host_code_text(const hostcode::Program& program, const Target& target) {
  ForkSection section;
  std::string out;
  llvm::raw_string_ostream stream(out);
  LlvmObject<llvm::LLVMContext> context;
  LlvmObject<std::unique_ptr<llvm::TargetMachine>> machine(make_machine(target, CodeKind::host));
  LlvmObject<llvm::Module> module("relay_host", *context);
  build_module(*module, (*machine)->createDataLayout(), program, target);
  optimize(*module, **machine);
  module->print(stream, nullptr);
  return out;
}

}  // namespace relay::codegen
