// AArch64.
#if defined(__aarch64__)

#include <elf.h>

#include "runtime/cpu.h"
#include "runtime/machine/machine.h"
#include "runtime/vm/native_stack.h"

namespace relay::runtime {

std::string_view host_arch() { return "aarch64"; }

const CodeForm& host_code_form() {
  static constexpr CodeForm form{
      EM_AARCH64, R_AARCH64_RELATIVE, {R_AARCH64_ABS64, R_AARCH64_GLOB_DAT, R_AARCH64_JUMP_SLOT}};
  return form;
}

void spin_pause() { __asm__ volatile("yield"); }

bool has_native_stack() { return false; }

relay_native_result call_on_stack(char*, StackFunction, void*, const void*, char**) {
  throw InternalError("internal error: this machine's runtime has no stack for native functions");
}

bool host_has_feature(std::string_view name) { return machine::processor_has_feature(name); }

std::optional<Diagnostic> request_state_of(std::span<const std::string>) { return std::nullopt; }

namespace machine {

const uint64_t kFlushBits = uint64_t{1} << 24;
const uint64_t kExceptionBits = 0;
uint64_t float_control() {
  uint64_t bits;
  __asm__ volatile("mrs %0, fpcr" : "=r"(bits));
  return bits;
}
void set_float_control(uint64_t bits) { __asm__ volatile("msr fpcr, %0" : : "r"(bits)); }

bool processor_has_feature(std::string_view name) { return name == "neon" || name == "fp-armv8"; }

}  // namespace machine

}  // namespace relay::runtime

#endif
