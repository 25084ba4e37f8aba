// The library of code generators for other architectures (codegen/llvm/generators_abi.h).
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>

#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>

#include "codegen/llvm/generators_abi.h"
#include "codegen/llvm/llvm_machine.h"

// LLVM prints PTX and has no parser of it.
extern "C" void LLVMInitializeNVPTXAsmParser();
extern "C" void LLVMInitializeNVPTXAsmParser() {}

namespace relay::codegen {
namespace {

// The compiler wants no more of a request.
struct Stopped {};

struct Opened {
  explicit Opened(const MachineSettings& settings) : machine(settings) {}

  llvm::LLVMContext context;
  LlvmMachine machine;
};

void initialize_linked_targets() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::install_bad_alloc_error_handler([](void*, const char*, bool) { throw std::bad_alloc(); });
#define RELAY_LLVM_TARGET(name)
#define RELAY_EMPTY_LLVM_TARGET(name)
#define RELAY_LINKED_LLVM_TARGET(name) \
  LLVMInitialize##name##TargetInfo();  \
  LLVMInitialize##name##Target();      \
  LLVMInitialize##name##TargetMC();    \
  LLVMInitialize##name##AsmPrinter();  \
  LLVMInitialize##name##AsmParser();
#include <relay_llvm_targets.def>
#undef RELAY_LLVM_TARGET
#undef RELAY_EMPTY_LLVM_TARGET
#undef RELAY_LINKED_LLVM_TARGET
  });
}

template <class Work>
relay_code_status guarded(const Work& work, relay_take_text take, void* context) {
  try {
    work();
    return relay_code_done;
  } catch (const std::bad_alloc&) {
    return relay_code_no_memory;
  } catch (const Stopped&) {
    return relay_code_stopped;
  } catch (const std::exception& e) {
    const std::string reason = e.what();
    take(context, reason.data(), reason.size());
    return relay_code_failed;
  }
}

int32_t has_target(const char* triple) { return has_llvm_target(triple) ? 1 : 0; }

int32_t has_feature(const char* triple, const char* feature) {
  return has_llvm_feature(triple, feature) ? 1 : 0;
}

relay_code_status open(const relay_machine_settings* settings, void** machine, relay_take_text take,
                       void* context) {
  return guarded(
      [&] {
        *machine = new Opened({settings->triple, settings->cpu, settings->features,
                               static_cast<CodeKind>(settings->kind), settings->has_fma != 0, ""});
      },
      take, context);
}

relay_code_status layout(void* machine, relay_take_text take, void* context) {
  return guarded(
      [&] {
        const std::string text =
            static_cast<Opened*>(machine)->machine.layout().getStringRepresentation();
        take(context, text.data(), text.size());
      },
      take, context);
}

relay_code_status emit(void* machine, const relay_code_request* request, relay_take_text take,
                       void* context) {
  return guarded(
      [&] {
        Opened& opened = *static_cast<Opened*>(machine);
        const auto form = static_cast<CodeForm>(request->form);
        opened.context.setDiscardValueNames(form == CodeForm::object);
        auto read = llvm::parseBitcodeFile(
            llvm::MemoryBufferRef(llvm::StringRef(request->bitcode, request->size), "relay"),
            opened.context);
        if (!read) throw std::runtime_error(llvm::toString(read.takeError()));
        LlvmObject<std::unique_ptr<llvm::Module>> module(std::move(*read));
        const std::string code =
            opened.machine.emit(**module, static_cast<CodePasses>(request->passes), form, [&] {
              if (request->goes_on(request->context) == 0) throw Stopped();
            });
        take(context, code.data(), code.size());
      },
      take, context);
}

void close(void* machine) { delete static_cast<Opened*>(machine); }

}  // namespace
}  // namespace relay::codegen

extern "C" [[gnu::visibility("default")]] const relay_code_generators* relay_get_code_generators();
extern "C" const relay_code_generators* relay_get_code_generators() {
  using namespace relay::codegen;
  static const relay_code_generators generators{
      RELAY_CODE_GENERATORS_VERSION, has_target, has_feature, open, layout, emit, close};
  initialize_linked_targets();
  return &generators;
}
