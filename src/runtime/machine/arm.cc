// Armv7 of 32 bits, with NEON.
#if defined(__arm__)

#include <elf.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "runtime/cpu.h"
#include "runtime/machine/machine.h"
#include "runtime/vm/native_stack.h"

// Of the run-time ABI of the architecture: divisions, conversions of integers of 64 bits, moves of memory. They keep to
// conventions of their own, and are only named here.
// clang-format off
#define RELAY_HELPERS(F) \
  F(idiv) F(uidiv) F(idivmod) F(uidivmod) F(ldivmod) F(uldivmod) \
  F(lmul) F(l2f) F(ul2f) F(l2d) F(ul2d) F(f2lz) \
  F(f2ulz) F(d2lz) F(d2ulz) F(memcpy) F(memcpy4) F(memcpy8) \
  F(memmove) F(memmove4) F(memmove8) F(memset) F(memset4) F(memset8) \
  F(memclr) F(memclr4) F(memclr8)
// clang-format on
#define RELAY_DECLARE(name) void __aeabi_##name();
extern "C" {
RELAY_HELPERS(RELAY_DECLARE)
}

namespace relay::runtime {

std::string_view host_arch() { return "armv7"; }

const CodeForm& host_code_form() {
  static constexpr CodeForm form{
      EM_ARM, R_ARM_RELATIVE, {R_ARM_ABS32, R_ARM_GLOB_DAT, R_ARM_JUMP_SLOT}};
  return form;
}

void spin_pause() { __asm__ volatile("yield"); }

bool has_native_stack() { return false; }

relay_native_result call_on_stack(char*, StackFunction, void*, const void*, char**) {
  throw InternalError("internal error: this machine's runtime has no stack for native functions");
}

bool host_has_feature(std::string_view name) { return machine::processor_has_feature(name); }

std::optional<Diagnostic> request_state_of(std::span<const std::string>) { return std::nullopt; }

namespace {

// Bits of AT_HWCAP of Linux, by number. Programs of 32 bits on processors of 64 bits see the same.
struct Feature {
  std::string_view name;  // LLVM's
  unsigned long bits;
};
constexpr unsigned long bit(int number) { return 1UL << number; }
constexpr unsigned long kRegisters = bit(19);  // 32 of VFP
constexpr Feature kFeatures[] = {
    {"vfp2", bit(6)},
    {"neon", bit(12) | kRegisters},
    {"vfp3", bit(13) | kRegisters},
    {"vfp4", bit(16) | kRegisters},
    {"fp16", bit(16)},
    {"hwdiv-arm", bit(17)},
    {"hwdiv", bit(18)},
    {"d32", kRegisters},
};

}  // namespace

namespace machine {

// Of operations on registers of VFP. Those of NEON always take denormal numbers for zero.
const uint64_t kFlushBits = uint64_t{1} << 24;
const uint64_t kExceptionBits = 0x9F;
uint64_t float_control() {
  uint32_t bits;
  __asm__ volatile("vmrs %0, fpscr" : "=r"(bits));
  return bits;
}
void set_float_control(uint64_t bits) {
  __asm__ volatile("vmsr fpscr, %0" : : "r"(static_cast<uint32_t>(bits)));
}

bool processor_has_feature(std::string_view name) {
  static const unsigned long offered = getauxval(AT_HWCAP);
  const auto* known = std::ranges::find(kFeatures, name, &Feature::name);
  return known != std::end(kFeatures) && (known->bits & ~offered) == 0;
}

void* helper_function(std::string_view name) {
  constexpr std::string_view kPrefix = "__aeabi_";
  if (!name.starts_with(kPrefix)) return nullptr;
  name.remove_prefix(kPrefix.size());
#define RELAY_FIND(known) \
  if (name == #known) return reinterpret_cast<void*>(__aeabi_##known);
  RELAY_HELPERS(RELAY_FIND)
  return nullptr;
}

}  // namespace machine

}  // namespace relay::runtime

#endif
