// From a module of LLVM IR to code, by the LLVM in this program or library.
//
// It is compiled twice: into the compiler, for the architecture of the machine, and into the library of code generators
// for the others (generators_abi.h), which contains nothing else of Relay.
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/CodeGen.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "codegen/llvm/llvm_object.h"

namespace relay::codegen {

// What code is generated for. In kernels a product and a sum may be one operation, which rounds once. Host code rounds
// as the program says, and is generated in less time.
enum class CodeKind { kernels, host };

// The passes before code generation. `loops`: kernels with loops of the program, which no schedule has placed. `device`:
// kernels of a device, whose items have registers but no stack near by.
enum class CodePasses { none, kernel, loops, host, device };

enum class CodeForm { object, assembly, intermediate };

struct MachineSettings {
  std::string triple;
  std::string cpu;
  std::string features;
  CodeKind kind = CodeKind::kernels;
  bool has_fma = false;
  std::string emitter_options;  // of LLVM's command line; see LlvmArchitecture
};

// The classes of the passes, in order.
std::string pass_names(CodePasses passes, bool has_fma);

// Whether this LLVM generates code for the architecture of the triple.
bool has_llvm_target(const std::string& triple);
// Whether that is a feature of the architecture, by LLVM's name.
bool has_llvm_feature(const std::string& triple, const std::string& feature);

class LlvmMachine {
 public:
  // Throws std::runtime_error when LLVM refuses the settings.
  explicit LlvmMachine(const MachineSettings& settings);

  llvm::DataLayout layout() const { return machine_->createDataLayout(); }

  // Runs the passes and writes the code. All modules are of one context. `poll` is called between steps, and may throw.
  std::string emit(llvm::Module& module, CodePasses passes, CodeForm form,
                   const std::function<void()>& poll);

 private:
  // Writes the code of modules, one after another, in the same passes: setting these up is a good part of the code of a
  // small kernel.
  class Emitter {
   public:
    Emitter(llvm::TargetMachine& machine, llvm::CodeGenFileType type, const std::string& options);
    std::string emit(llvm::Module& module);

   private:
    std::string options_;
    llvm::SmallVector<char, 0> bytes_;
    llvm::raw_svector_ostream stream_;
    LlvmObject<llvm::legacy::PassManager> passes_;
  };

  bool has_fma_;
  std::string emitter_options_;
  std::unique_ptr<llvm::TargetMachine> machine_;
  std::optional<Emitter> objects_;
};

}  // namespace relay::codegen
