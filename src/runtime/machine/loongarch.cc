// LoongArch of 64 bits.
#if defined(__loongarch__) && __loongarch_grlen == 64

#include <elf.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "runtime/cpu.h"
#include "runtime/machine/machine.h"
#include "runtime/vm/native_stack.h"

namespace relay::runtime {

std::string_view host_arch() { return "loongarch64"; }

// By number: headers of older systems do not have them.
const CodeForm& host_code_form() {
  constexpr uint16_t kMachine = 258;
  constexpr uint32_t kRelative = 3, kWord = 2, kJumpSlot = 5;
  static constexpr CodeForm form{kMachine, kRelative, {kWord, kWord, kJumpSlot}};
  return form;
}

void spin_pause() { __asm__ volatile("nop"); }

bool has_native_stack() { return false; }

relay_native_result call_on_stack(char*, StackFunction, void*, const void*, char**) {
  throw InternalError("internal error: this machine's runtime has no stack for native functions");
}

bool host_has_feature(std::string_view name) { return machine::processor_has_feature(name); }

std::optional<Diagnostic> request_state_of(std::span<const std::string>) { return std::nullopt; }

namespace {

struct Feature {
  std::string_view name;  // LLVM's
  int bit;                // of AT_HWCAP
};
constexpr Feature kFeatures[] = {{"ual", 2}, {"f", 3}, {"d", 3}, {"lsx", 4}, {"lasx", 5}};

}  // namespace

namespace machine {

// The control register has a rounding mode and flags of exceptions. Numbers below the normal ones are always computed with.
const uint64_t kFlushBits = 0;
const uint64_t kExceptionBits = 0x1F1F0000;
uint64_t float_control() {
  uint64_t bits;
  __asm__ volatile("movfcsr2gr %0, $r0" : "=r"(bits));
  return bits;
}
void set_float_control(uint64_t bits) { __asm__ volatile("movgr2fcsr $r0, %0" : : "r"(bits)); }

bool processor_has_feature(std::string_view name) {
  static const unsigned long offered = getauxval(AT_HWCAP);
  const auto* known = std::ranges::find(kFeatures, name, &Feature::name);
  return known != std::end(kFeatures) && (offered >> known->bit & 1) != 0;
}

void* helper_function(std::string_view) { return nullptr; }

}  // namespace machine

}  // namespace relay::runtime

#endif
