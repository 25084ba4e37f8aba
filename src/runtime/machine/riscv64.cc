// RISC-V of 64 bits.
#if defined(__riscv) && __riscv_xlen == 64

#include <elf.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>

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

bool has_native_stack() { return true; }

relay_native_result call_on_stack(char* top, StackFunction f, void* a, const void* b,
                                  char** old_stack) {
  register int64_t first __asm__("a0") = reinterpret_cast<int64_t>(a);
  register int64_t second __asm__("a1") = reinterpret_cast<int64_t>(b);
  register char* stack __asm__("a2") = top;
  register StackFunction code __asm__("a3") = f;
  register char** store __asm__("a4") = old_stack;
  // The caller's stack pointer survives in a register that functions keep. The runtime is compiled without vectors.
  __asm__ volatile(
      "mv s1, sp\n\t"
      "sd s1, 0(a4)\n\t"
      "mv sp, a2\n\t"
      "jalr a3\n\t"
      "mv sp, s1\n\t"
      : "+r"(first), "+r"(second), "+r"(stack), "+r"(code), "+r"(store)
      :
      : "ra", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "a5", "a6", "a7", "s1", "memory", "ft0",
        "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "ft8", "ft9", "ft10", "ft11", "fa0", "fa1",
        "fa2", "fa3", "fa4", "fa5", "fa6", "fa7");
  relay_native_result out;
  out.value = first;
  out.failed = second;
  return out;
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

namespace {

// Extensions whose names have several letters, by their bits in what Linux 6.4 and later say of the first key.
struct Extension {
  std::string_view name;  // LLVM's
  int bit;
};
constexpr Extension kExtensions[] = {{"zba", 3},      {"zbb", 4},  {"zbs", 5},     {"zbc", 7},
                                     {"zbkb", 8},     {"zfh", 27}, {"zfhmin", 28}, {"zvfh", 30},
                                     {"zvfhmin", 31}, {"zfa", 32}, {"zicond", 35}};

uint64_t extension_bits() {
  struct {
    int64_t key;
    uint64_t value;
  } pair{4, 0};
  constexpr long kRiscvHwprobe = 258;
  if (syscall(kRiscvHwprobe, &pair, 1UL, 0UL, nullptr, 0U) != 0 || pair.key < 0) return 0;
  return pair.value;
}

// Bits of a vector register of a processor that has them.
uint64_t vector_register_bits() {
  uint64_t bytes;
  __asm__ volatile("csrr %0, 0xC22" : "=r"(bytes));  // vlenb
  return 8 * bytes;
}

}  // namespace

// Linux has a bit for each extension of one letter. "zvl256b" is a length of vector registers.
bool processor_has_feature(std::string_view name) {
  static const unsigned long letters = getauxval(AT_HWCAP);
  auto has_letter = [](char c) { return (letters >> (c - 'a') & 1) != 0; };
  if (name.size() == 1) return name[0] >= 'a' && name[0] <= 'z' && has_letter(name[0]);
  if (name.starts_with("zvl") && name.ends_with("b")) {
    uint64_t bits = 0;
    const char* end = name.data() + name.size() - 1;
    auto [stop, failed] = std::from_chars(name.data() + 3, end, bits);
    return failed == std::errc() && stop == end && has_letter('v') &&
           bits <= vector_register_bits();
  }
  static const uint64_t extensions = extension_bits();
  const auto* known = std::ranges::find(kExtensions, name, &Extension::name);
  return known != std::end(kExtensions) && (extensions >> known->bit & 1) != 0;
}

void* helper_function(std::string_view) { return nullptr; }

}  // namespace machine

}  // namespace relay::runtime

#endif
