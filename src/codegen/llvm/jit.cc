// Kernels in this process, through LLVM's ORC.
#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/MemoryBuffer.h>

#include "base/diagnostic_codes.h"
#include "codegen/llvm/codegen.h"
#include "codegen/llvm/kernel_builder.h"

namespace relay {
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

struct JitModule::Impl {
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

JitModule::JitModule(const std::vector<tir::PrimFunc>& kernels, const Target& target,
                     KernelCache* cache)
    : impl_(std::make_unique<Impl>()) {
  std::vector<ObjectCode> objects = generate_objects(kernels, target, 1, cache);
  // The code is there already: what it was made for is told, since finding out takes long.
  impl_->jit = check(llvm::orc::LLJITBuilder()
                         .setJITTargetMachineBuilder(
                             llvm::orc::JITTargetMachineBuilder(llvm::Triple(target.triple)))
                         .create());
  impl_->jit->getMainJITDylib().addGenerator(
      check(llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
          impl_->jit->getDataLayout().getGlobalPrefix())));
  for (const ObjectCode& o : objects) {
    check(impl_->jit->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(o)));
  }
  for (const tir::PrimFunc& f : kernels) {
    functions_.push_back(
        check(impl_->jit->lookup(codegen::kernel_symbol(*f.get()))).toPtr<relay_kernel>());
  }
}

JitModule::~JitModule() = default;
JitModule::JitModule(JitModule&&) noexcept = default;
JitModule& JitModule::operator=(JitModule&&) noexcept = default;

}  // namespace relay
