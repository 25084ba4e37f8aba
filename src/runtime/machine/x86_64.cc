// x86-64.
#if defined(__x86_64__)

#include <cpuid.h>
#include <elf.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <algorithm>
#include <set>

#include "base/codes/runtime.h"
#include "runtime/cpu.h"
#include "runtime/machine/machine.h"
#include "runtime/vm/native_stack.h"

namespace relay::runtime {

std::string_view host_arch() { return "x86_64"; }

const CodeForm& host_code_form() {
  static constexpr CodeForm form{
      EM_X86_64, R_X86_64_RELATIVE, {R_X86_64_64, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT}};
  return form;
}

void spin_pause() { __builtin_ia32_pause(); }

bool has_native_stack() { return true; }

relay_native_result call_on_stack(char* top, StackFunction f, void* a, const void* b,
                                  char** old_stack) {
  relay_native_result out;
  auto code = reinterpret_cast<int64_t>(f);
  auto store = reinterpret_cast<int64_t>(old_stack);
  // The caller's stack pointer survives in a register that functions keep.
  asm volatile(
      "movq %%rsp, %%rbx\n\t"
      "movq %%rsp, (%%rdx)\n\t"
      "movq %%rcx, %%rsp\n\t"
      "callq *%%rax\n\t"
      "movq %%rbx, %%rsp\n\t"
      : "+a"(code), "+d"(store), "+c"(top), "+D"(a), "+S"(b)
      :
      : "rbx", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
        "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
        "xmm15");
  out.value = code;
  out.failed = store;
  return out;
}

namespace {

enum Register { eax, ebx, ecx, edx };
// The registers that the operating system must save for the feature: bits of XCR0.
enum State : uint64_t { none = 0, ymm = 0x6, zmm = 0xE6, tile = 0x60000 };

struct Feature {
  std::string_view name;
  uint32_t leaf, subleaf;
  Register reg;
  int bit;
  State state;
};

constexpr Feature kFeatures[] = {
    {"sse", 1, 0, edx, 25, none},
    {"sse2", 1, 0, edx, 26, none},
    {"cx8", 1, 0, edx, 8, none},
    {"cmov", 1, 0, edx, 15, none},
    {"mmx", 1, 0, edx, 23, none},
    {"fxsr", 1, 0, edx, 24, none},
    {"x87", 1, 0, edx, 0, none},
    {"sse3", 1, 0, ecx, 0, none},
    {"pclmul", 1, 0, ecx, 1, none},
    {"ssse3", 1, 0, ecx, 9, none},
    {"fma", 1, 0, ecx, 12, ymm},
    {"cx16", 1, 0, ecx, 13, none},
    {"sse4.1", 1, 0, ecx, 19, none},
    {"sse4.2", 1, 0, ecx, 20, none},
    {"crc32", 1, 0, ecx, 20, none},
    {"movbe", 1, 0, ecx, 22, none},
    {"popcnt", 1, 0, ecx, 23, none},
    {"aes", 1, 0, ecx, 25, none},
    {"xsave", 1, 0, ecx, 26, none},
    {"avx", 1, 0, ecx, 28, ymm},
    {"f16c", 1, 0, ecx, 29, ymm},
    {"rdrnd", 1, 0, ecx, 30, none},
    {"fsgsbase", 7, 0, ebx, 0, none},
    {"bmi", 7, 0, ebx, 3, none},
    {"avx2", 7, 0, ebx, 5, ymm},
    {"bmi2", 7, 0, ebx, 8, none},
    {"avx512f", 7, 0, ebx, 16, zmm},
    {"avx512dq", 7, 0, ebx, 17, zmm},
    {"rdseed", 7, 0, ebx, 18, none},
    {"adx", 7, 0, ebx, 19, none},
    {"avx512ifma", 7, 0, ebx, 21, zmm},
    {"clflushopt", 7, 0, ebx, 23, none},
    {"clwb", 7, 0, ebx, 24, none},
    {"avx512cd", 7, 0, ebx, 28, zmm},
    {"sha", 7, 0, ebx, 29, none},
    {"avx512bw", 7, 0, ebx, 30, zmm},
    {"avx512vl", 7, 0, ebx, 31, zmm},
    {"avx512vbmi", 7, 0, ecx, 1, zmm},
    {"avx512vbmi2", 7, 0, ecx, 6, zmm},
    {"gfni", 7, 0, ecx, 8, none},
    {"vaes", 7, 0, ecx, 9, ymm},
    {"vpclmulqdq", 7, 0, ecx, 10, ymm},
    {"avx512vnni", 7, 0, ecx, 11, zmm},
    {"avx512bitalg", 7, 0, ecx, 12, zmm},
    {"avx512vpopcntdq", 7, 0, ecx, 14, zmm},
    {"avx512vp2intersect", 7, 0, edx, 8, zmm},
    {"amx-bf16", 7, 0, edx, 22, tile},
    {"avx512fp16", 7, 0, edx, 23, zmm},
    {"amx-tile", 7, 0, edx, 24, tile},
    {"amx-int8", 7, 0, edx, 25, tile},
    {"avxvnni", 7, 1, eax, 4, ymm},
    {"avx512bf16", 7, 1, eax, 5, zmm},
    {"amx-fp16", 7, 1, eax, 21, tile},
    {"avxifma", 7, 1, eax, 23, ymm},
    {"avxvnniint8", 7, 1, edx, 4, ymm},
    {"avxneconvert", 7, 1, edx, 5, ymm},
    {"avxvnniint16", 7, 1, edx, 10, ymm},
    {"xsaveopt", 0xD, 1, eax, 0, none},
    {"xsavec", 0xD, 1, eax, 1, none},
    {"xsaves", 0xD, 1, eax, 3, none},
    {"sahf", 0x80000001, 0, ecx, 0, none},
    {"lzcnt", 0x80000001, 0, ecx, 5, none},
    {"sse4a", 0x80000001, 0, ecx, 6, none},
    {"prfchw", 0x80000001, 0, ecx, 8, none},
    {"xop", 0x80000001, 0, ecx, 11, ymm},
    {"fma4", 0x80000001, 0, ecx, 16, ymm},
    {"tbm", 0x80000001, 0, ecx, 21, none},
    {"64bit", 0x80000001, 0, edx, 29, none},
};

uint64_t saved_state() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & (1u << 27)) == 0) return 0;
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low | static_cast<uint64_t>(high) << 32;
}

bool request_tiles() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  static const bool granted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted;
}

struct Offered {
  std::set<std::string_view> present;  // by the processor
  std::set<std::string_view> enabled;  // of these, whose registers the operating system saves
};

const Offered& offered() {
  // Asked for once: each question to the processor leaves a virtual machine, which takes long.
  // Never destroyed: threads may still load artifacts while the process ends.
  static const auto& offered = *new Offered([] {
    Offered out;
    const uint64_t saved = saved_state();
    for (const Feature& feature : kFeatures) {
      uint32_t regs[4] = {};
      if (__get_cpuid_count(feature.leaf, feature.subleaf, &regs[eax], &regs[ebx], &regs[ecx],
                            &regs[edx]) == 0 ||
          (regs[feature.reg] >> feature.bit & 1u) == 0) {
        continue;
      }
      out.present.insert(feature.name);
      if ((saved & feature.state) == feature.state) out.enabled.insert(feature.name);
    }
    return out;
  }());
  return offered;
}

}  // namespace

bool host_has_feature(std::string_view name) { return offered().enabled.contains(name); }

std::optional<Diagnostic> request_state_of(std::span<const std::string> features) {
  bool tiles =
      std::ranges::any_of(features, [](const std::string& f) { return f.starts_with("amx-"); });
  if (!tiles || request_tiles()) return std::nullopt;
  return Diagnostic(codes::artifact_cpu, {}, "the operating system does not grant the use of AMX")
      .help("compile the model with --target 'native -mattr=-amx-tile'");
}

namespace machine {

const uint64_t kFlushBits = 0x8040;  // of results, and of operands
const uint64_t kExceptionBits = 0x3F;
uint64_t float_control() { return _mm_getcsr(); }
void set_float_control(uint64_t bits) { _mm_setcsr(static_cast<unsigned>(bits)); }

bool processor_has_feature(std::string_view name) { return offered().present.contains(name); }

void* helper_function(std::string_view) { return nullptr; }

}  // namespace machine

}  // namespace relay::runtime

#endif
