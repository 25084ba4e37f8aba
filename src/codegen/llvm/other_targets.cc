// LLD initialises every target that LLVM was built with. Those whose code generators are not in this program are empty
// here, so that they are not linked into it.
#include <llvm/Passes/PassPlugin.h>

extern "C" {
#define RELAY_LLVM_TARGET(name)
#define RELAY_LINKED_LLVM_TARGET(name)
#define RELAY_EMPTY_LLVM_TARGET(name)        \
  void LLVMInitialize##name##TargetInfo();   \
  void LLVMInitialize##name##TargetInfo() {} \
  void LLVMInitialize##name##Target();       \
  void LLVMInitialize##name##Target() {}     \
  void LLVMInitialize##name##TargetMC();     \
  void LLVMInitialize##name##TargetMC() {}   \
  void LLVMInitialize##name##AsmPrinter();   \
  void LLVMInitialize##name##AsmPrinter() {} \
  void LLVMInitialize##name##AsmParser();    \
  void LLVMInitialize##name##AsmParser() {}
#include <relay_llvm_targets.def>
}

// Whoever calls LLD calls this, so that the functions here are linked before LLVM's are looked for.
namespace relay::codegen {
void leave_out_other_targets();
void leave_out_other_targets() {}
}  // namespace relay::codegen

// Link-time optimisation, which no program of ours asks for, would load Polly.
llvm::PassPluginLibraryInfo getPollyPluginInfo();
llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "Polly", "", [](llvm::PassBuilder&) {}};
}
