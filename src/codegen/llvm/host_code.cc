#include "codegen/llvm/host_code.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include "base/fork.h"
#include "codegen/llvm/host_function.h"
#include "codegen/llvm/llvm_object.h"
#include "codegen/llvm/machine.h"

namespace relay::codegen {
namespace {

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
  return out + pass_names(CodePasses::host, target.has_fma);
}

}  // namespace

std::optional<size_t> most_host_params(const Target& target) {
  const LlvmHostCalls* calls = host_calls_of(target.arch);
  if (calls == nullptr) return std::nullopt;
  // The context, and of a closure itself and whether it is given up.
  constexpr size_t kOtherWords = 3;
  return calls->most_words - kOtherWords;
}

ObjectCode generate_host_object(const hostcode::Program& program, const Target& target,
                                KernelCache* cache) {
  ForkSection section;
  LlvmObject<llvm::LLVMContext> context;
  LlvmObject<std::unique_ptr<CodeMachine>> machine(make_machine(target, CodeKind::host));
  LlvmObject<llvm::Module> module("relay_host", *context);
  build_module(*module, (*machine)->layout(), program, target);
  const std::string key = cache == nullptr ? "" : key_of(*module, host_settings(target));
  if (cache != nullptr) {
    if (auto known = cache->find(key)) return *std::move(known);
  }
  ObjectCode out = (*machine)->emit(*module, CodePasses::host, CodeForm::object);
  if (cache != nullptr) cache->insert(key, out);
  return out;
}

std::string host_code_text(const hostcode::Program& program, const Target& target) {
  ForkSection section;
  LlvmObject<llvm::LLVMContext> context;
  LlvmObject<std::unique_ptr<CodeMachine>> machine(make_machine(target, CodeKind::host));
  LlvmObject<llvm::Module> module("relay_host", *context);
  build_module(*module, (*machine)->layout(), program, target);
  return (*machine)->emit(*module, CodePasses::host, CodeForm::intermediate);
}

}  // namespace relay::codegen
