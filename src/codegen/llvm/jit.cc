// Kernels in this process, through LLVM's ORC.
#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/MemoryBuffer.h>

#include "base/codes/lowering.h"
#include "base/fork.h"
#include "codegen/llvm/codegen.h"
#include "codegen/llvm/kernel_builder.h"
#include "codegen/llvm/llvm_object.h"

namespace relay::codegen {
namespace {

template <class T>
T check(llvm::Expected<T> value) {
  if (value) return std::move(*value);
  throw UserError(Diagnostic(codes::codegen_failed, {},
                             "kernels cannot be loaded: " + llvm::toString(value.takeError())));
}
void check(llvm::Error error) {
  if (error) {
    throw UserError(Diagnostic(codes::codegen_failed, {},
                               "kernels cannot be loaded: " + llvm::toString(std::move(error))));
  }
}

}  // namespace

LoadedKernels load_objects(const std::vector<ObjectCode>& objects,
                           const std::vector<tir::PrimFunc>& kernels, const Target& target) {
  ForkSection section;
  // The code is there already: what it was made for is told, since finding out takes long.
  LlvmObject<std::shared_ptr<llvm::orc::LLJIT>> owned(
      check(llvm::orc::LLJITBuilder()
                .setJITTargetMachineBuilder(
                    llvm::orc::JITTargetMachineBuilder(llvm::Triple(target.triple)))
                .create()));
  const std::shared_ptr<llvm::orc::LLJIT>& jit = *owned;
  jit->getMainJITDylib().addGenerator(
      check(llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
          jit->getDataLayout().getGlobalPrefix())));
  for (const ObjectCode& o : objects) {
    check(jit->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(o)));
  }
  std::vector<relay_kernel> functions;
  for (const tir::PrimFunc& f : kernels) {
    functions.push_back(check(jit->lookup(kernel_symbol(*f.get()))).toPtr<relay_kernel>());
  }
  return LoadedKernels(std::move(functions), jit);
}

}  // namespace relay::codegen
