// AArch64.
#if defined(__aarch64__)

#include <elf.h>
#include <sys/auxv.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

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

bool has_native_stack() { return true; }

relay_native_result call_on_stack(char* top, StackFunction f, void* a, const void* b,
                                  char** old_stack) {
  register int64_t first __asm__("x0") = reinterpret_cast<int64_t>(a);
  register int64_t second __asm__("x1") = reinterpret_cast<int64_t>(b);
  register char* stack __asm__("x2") = top;
  register StackFunction code __asm__("x3") = f;
  register char** store __asm__("x4") = old_stack;
  // The caller's stack pointer survives in a register that functions keep. Of v8 to v15 they keep the low halves only.
  __asm__ volatile(
      "mov x19, sp\n\t"
      "str x19, [x4]\n\t"
      "mov sp, x2\n\t"
      "blr x3\n\t"
      "mov sp, x19\n\t"
      : "+r"(first), "+r"(second), "+r"(stack), "+r"(code), "+r"(store)
      :
      : "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18",
        "x19", "x30", "memory", "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9",
        "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22",
        "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");
  relay_native_result out;
  out.value = first;
  out.failed = second;
  return out;
}

// The system says of a feature only whether programs may use it.
bool host_has_feature(std::string_view name) { return machine::processor_has_feature(name); }

std::optional<Diagnostic> request_state_of(std::span<const std::string>) { return std::nullopt; }

namespace {

// Bits of AT_HWCAP and AT_HWCAP2 of Linux, by number: systems that the runtime is compiled on may be older than a bit.
struct Bits {
  uint64_t first = 0;
  uint64_t second = 0;
};

constexpr Bits operator|(Bits a, Bits b) { return {a.first | b.first, a.second | b.second}; }
constexpr Bits first(int bit) { return {uint64_t{1} << bit, 0}; }
constexpr Bits second(int bit) { return {0, uint64_t{1} << bit}; }

constexpr Bits kHalf = first(9) | first(10);  // of scalars, and of vectors
constexpr Bits kSve = first(22);
constexpr Bits kSve2 = kSve | second(1);

// What a version requires of every processor, beside that of the version below it. Version 9 continues 8.5.
constexpr Bits kV81 = first(7) | first(8) | first(12);           // crc32, atomics, asimdrdm
constexpr Bits kV83 = kV81 | first(13) | first(14) | first(15);  // jscvt, fcma, lrcpc
constexpr Bits kV84 = kV83 | first(20) | first(25) | first(26) | first(27);  // asimddp, uscat,
                                                                             // ilrcpc, flagm
constexpr Bits kV85 = kV84 | first(29) | second(7) | second(8);              // sb, flagm2, frint
constexpr Bits kV86 = kV85 | second(13) | second(14);                        // i8mm, bf16
constexpr Bits kV87 = kV86 | second(31);                                     // wfxt

struct Feature {
  std::string_view name;  // LLVM's
  Bits bits;
};

constexpr Feature kFeatures[] = {
    {"fp-armv8", first(0)},
    {"neon", first(1)},
    {"aes", first(3) | first(4)},
    {"sha2", first(5) | first(6)},
    {"crc", first(7)},
    {"lse", first(8)},
    {"fullfp16", kHalf},
    {"rdm", first(12)},
    {"jsconv", first(13)},
    {"complxnum", first(14)},
    {"rcpc", first(15)},
    {"sha3", first(17) | first(21)},
    {"sm4", first(18) | first(19)},
    {"dotprod", first(20)},
    {"sve", kSve},
    {"fp16fml", kHalf | first(23)},
    {"lse2", first(25)},
    {"rcpc-immo", first(15) | first(26)},
    {"flagm", first(27)},
    {"sve2", kSve2},
    {"altnzcv", second(7)},
    {"fptoint", second(8)},
    {"f32mm", kSve | second(10)},
    {"f64mm", kSve | second(11)},
    {"i8mm", second(13)},
    {"bf16", second(14)},
    {"cssc", second(34)},
    {"mops", second(43)},
    {"v8.1a", kV81},
    {"v8.2a", kV81},
    {"v8.3a", kV83},
    {"v8.4a", kV84},
    {"v8.5a", kV85},
    {"v8.6a", kV86},
    {"v8.7a", kV87},
    {"v9a", kV85 | kSve2},
    {"v9.1a", kV86 | kSve2},
    {"v9.2a", kV87 | kSve2},
};

}  // namespace

namespace machine {

const uint64_t kFlushBits = uint64_t{1} << 24;
const uint64_t kExceptionBits = 0;
uint64_t float_control() {
  uint64_t bits;
  __asm__ volatile("mrs %0, fpcr" : "=r"(bits));
  return bits;
}
void set_float_control(uint64_t bits) { __asm__ volatile("msr fpcr, %0" : : "r"(bits)); }

// Bits in a vector register of SVE as this thread uses it, which new threads take over; 0: there is none.
uint64_t sve_bits() {
  constexpr int kGetLength = 51;  // PR_SVE_GET_VL
  constexpr int kLengthBits = 0xFFFF;
  const int length = prctl(kGetLength);
  return length < 0 ? 0 : uint64_t{8} * static_cast<unsigned>(length & kLengthBits);
}

bool processor_has_feature(std::string_view name) {
  for (uint64_t bits : {256U, 512U}) {
    if (name == "sve" + std::to_string(bits)) return sve_bits() >= bits;
  }
  static const Bits offered{getauxval(AT_HWCAP), getauxval(AT_HWCAP2)};
  const auto* known = std::ranges::find(kFeatures, name, &Feature::name);
  return known != std::end(kFeatures) && (known->bits.first & ~offered.first) == 0 &&
         (known->bits.second & ~offered.second) == 0;
}

void* helper_function(std::string_view) { return nullptr; }

}  // namespace machine

}  // namespace relay::runtime

#endif
