// LLD initialises every target that LLVM was built with. Those that Relay generates no code for are
// empty here, so that their code generators are not linked into every program.
#include <llvm/Passes/PassPlugin.h>

#define LLVMInitializeX86TargetInfo relay_unused_target_info
#define LLVMInitializeX86Target relay_unused_target
#define LLVMInitializeX86TargetMC relay_unused_target_mc
#define LLVMInitializeX86AsmPrinter relay_unused_asm_printer
#define LLVMInitializeX86AsmParser relay_unused_asm_parser

extern "C" {
#define LLVM_TARGET(name)                    \
  void LLVMInitialize##name##TargetInfo();   \
  void LLVMInitialize##name##TargetInfo() {} \
  void LLVMInitialize##name##Target();       \
  void LLVMInitialize##name##Target() {}     \
  void LLVMInitialize##name##TargetMC();     \
  void LLVMInitialize##name##TargetMC() {}
#include "llvm/Config/Targets.def"
#define LLVM_ASM_PRINTER(name)             \
  void LLVMInitialize##name##AsmPrinter(); \
  void LLVMInitialize##name##AsmPrinter() {}
#include "llvm/Config/AsmPrinters.def"
#define LLVM_ASM_PARSER(name)             \
  void LLVMInitialize##name##AsmParser(); \
  void LLVMInitialize##name##AsmParser() {}
#include "llvm/Config/AsmParsers.def"
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
