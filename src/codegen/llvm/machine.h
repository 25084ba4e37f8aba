// The code generator of a target: that of this program, or one of the library of code generators for other
// architectures, which is loaded when it is first asked for.
//
// The library is `targets/librelay_targets.so` beside the compiler, in the package or in the tree (package relay-targets;
// cmake's RELAY_OTHER_TARGETS). It is of the same version as the compiler, and stays loaded.
#pragma once

#include <llvm/IR/DataLayout.h>
#include <llvm/IR/Module.h>

#include <memory>
#include <string>

#include "codegen/backend.h"
#include "codegen/llvm/llvm_machine.h"

namespace relay::codegen {

class CodeMachine {
 public:
  virtual ~CodeMachine() = default;
  virtual llvm::DataLayout layout() const = 0;
  // Runs the passes and writes the code, and checks the budget of the compilation in between. All modules are of one
  // context.
  virtual std::string emit(llvm::Module& module, CodePasses passes, CodeForm form) = 0;
};

// Throws UserError E0404 when LLVM refuses the target; E1506 when the library of its architecture is not installed, and
// E1507 when it is not of this version.
std::unique_ptr<CodeMachine> make_machine(const Target& target, CodeKind kind = CodeKind::kernels);

// Throws UserError E1506 or E1507 where `make_machine` would.
void check_code_generator(const std::string& triple);

// Whether that is a feature of the architecture of the triple, by LLVM's name. Throws UserError E1506 or E1507.
bool is_llvm_feature(const std::string& triple, const std::string& feature);

// Equal keys have equal object code: a hash of the settings and of the code before the passes.
std::string key_of(const llvm::Module& module, const std::string& settings);

}  // namespace relay::codegen
