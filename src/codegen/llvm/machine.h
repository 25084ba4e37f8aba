// From a module of LLVM IR to object code: what the printers of kernels and of host code share.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>

#include "codegen/backend.h"

namespace relay::codegen {

// What code is generated for. In kernels a product and a sum may be one operation, which rounds once. Host code rounds
// as the program says, and is generated in less time.
enum class CodeKind { kernels, host };

// Throws UserError E0404.
std::unique_ptr<llvm::TargetMachine> make_machine(const Target& target,
                                                  CodeKind kind = CodeKind::kernels);

void run_module_passes(llvm::Module& module, llvm::TargetMachine& machine,
                       llvm::ModulePassManager passes);
// Runs the passes on one function after the other, and looks at the budget of the compilation in between.
void run_function_passes(llvm::Module& module, llvm::TargetMachine& machine,
                         llvm::FunctionPassManager passes);

// Equal keys have equal object code: a hash of the settings and of the code before the passes.
std::string key_of(const llvm::Module& module, const std::string& settings);

ObjectCode emit_object(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace relay::codegen
