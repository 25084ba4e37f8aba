// RISC-V of 64 bits.
#if defined(__riscv) && __riscv_xlen == 64

#include <elf.h>
#include <sys/auxv.h>

#include "runtime/cpu.h"
#include "runtime/machine/machine.h"
#include "runtime/vm/native_stack.h"

namespace relay::runtime {

std::string_view host_arch() { return "riscv64"; }

// Data of other objects is reached by R_RISCV_64 alone.
const CodeForm& host_code_form() {
  static constexpr CodeForm form{
      EM_RISCV, R_RISCV_RELATIVE, {R_RISCV_64, R_RISCV_64, R_RISCV_JUMP_SLOT}};
  return form;
}

// The encoding of `pause`, which processors without it take for a hint that does nothing.
void spin_pause() { __asm__ volatile(".4byte 0x0100000f"); }

bool has_native_stack() { return false; }

relay_native_result call_on_stack(char*, StackFunction, void*, const void*, char**) {
  throw InternalError("internal error: this machine's runtime has no stack for native functions");
}

bool host_has_feature(std::string_view name) { return machine::processor_has_feature(name); }

std::optional<Diagnostic> request_state_of(std::span<const std::string>) { return std::nullopt; }

namespace machine {

// The control register has a rounding mode and flags of exceptions. Numbers below the normal ones are always computed with.
const uint64_t kFlushBits = 0;
const uint64_t kExceptionBits = 0x1F;
uint64_t float_control() {
  uint64_t bits;
  __asm__ volatile("csrr %0, fcsr" : "=r"(bits));
  return bits;
}
void set_float_control(uint64_t bits) { __asm__ volatile("csrw fcsr, %0" : : "r"(bits)); }

// Linux has a bit for each extension of one letter.
bool processor_has_feature(std::string_view name) {
  static const unsigned long letters = getauxval(AT_HWCAP);
  return name.size() == 1 && name[0] >= 'a' && name[0] <= 'z' &&
         (letters >> (name[0] - 'a') & 1) != 0;
}

}  // namespace machine

}  // namespace relay::runtime

#endif
