#include "codegen/llvm/architecture.h"

#include <llvm/Support/ErrorHandling.h>

#include <mutex>
#include <new>

#include "base/fork.h"

namespace relay::codegen {

// CMake writes the list, a line for each architecture that has a file here.
#define RELAY_LLVM_TARGET(name) extern const LlvmArchitecture kLlvm##name;
#define RELAY_LINKED_LLVM_TARGET(name)
#define RELAY_EMPTY_LLVM_TARGET(name)
#include <relay_llvm_targets.def>
#undef RELAY_LLVM_TARGET
#undef RELAY_LINKED_LLVM_TARGET
#undef RELAY_EMPTY_LLVM_TARGET

namespace {

std::span<const LlvmArchitecture* const> all() {
  static const LlvmArchitecture* const list[] = {
#define RELAY_LLVM_TARGET(name) &kLlvm##name,
#define RELAY_LINKED_LLVM_TARGET(name)
#define RELAY_EMPTY_LLVM_TARGET(name)
#include <relay_llvm_targets.def>
#undef RELAY_LLVM_TARGET
#undef RELAY_LINKED_LLVM_TARGET
#undef RELAY_EMPTY_LLVM_TARGET
  };
  return list;
}

}  // namespace

const LlvmArchitecture* find_llvm_architecture(std::string_view name) {
  for (const LlvmArchitecture* a : all()) {
    if (a->name == name) return a;
  }
  return nullptr;
}

void initialize_llvm() {
  ForkSection section;
  static std::once_flag once;
  std::call_once(once, [] {
    // LLVM is built without exceptions, but they pass through it: what it holds is lost.
    llvm::install_bad_alloc_error_handler([](void*, const char*, bool) { throw std::bad_alloc(); });
    for (const LlvmArchitecture* a : all()) a->initialize();
  });
}

}  // namespace relay::codegen
