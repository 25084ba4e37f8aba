#include "runtime/cpu.h"

#include <elf.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <utility>

#include "base/codes/runtime.h"
#include "base/lines.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <xmmintrin.h>
#endif

// What the runtime knows of an architecture stands here and nowhere else, a section for each.
namespace relay::runtime {

#if defined(__x86_64__)

std::string_view host_arch() { return "x86_64"; }

const CodeForm& host_code_form() {
  static constexpr CodeForm form{
      EM_X86_64, R_X86_64_RELATIVE, {R_X86_64_64, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT}};
  return form;
}

void spin_pause() { __builtin_ia32_pause(); }

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

}  // namespace

namespace {

bool request_tiles() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  static const bool granted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted;
}

}  // namespace

namespace {

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

bool processor_has_feature(std::string_view name) { return offered().present.contains(name); }

}  // namespace

bool host_has_feature(std::string_view name) { return offered().enabled.contains(name); }

#elif defined(__aarch64__)

std::string_view host_arch() { return "aarch64"; }

const CodeForm& host_code_form() {
  static constexpr CodeForm form{
      EM_AARCH64, R_AARCH64_RELATIVE, {R_AARCH64_ABS64, R_AARCH64_GLOB_DAT, R_AARCH64_JUMP_SLOT}};
  return form;
}

void spin_pause() { __asm__ volatile("yield"); }

namespace {

bool request_tiles() { return false; }

bool processor_has_feature(std::string_view name) { return name == "neon" || name == "fp-armv8"; }

}  // namespace

bool host_has_feature(std::string_view name) { return processor_has_feature(name); }

#else
#error "this architecture has no section: docs/adding_a_target.md"
#endif

MissingFeatures missing_features(std::span<const std::string> required) {
  MissingFeatures missing;
  for (const std::string& feature : required) {
    if (host_has_feature(feature)) continue;
    (processor_has_feature(feature) ? missing.disabled : missing.absent).push_back(feature);
  }
  return missing;
}

Diagnostic features_refused(const std::string& name, const MissingFeatures& missing) {
  std::string text = name + " uses instructions";
  auto add = [&](const char* why, const std::vector<std::string>& features) {
    const char* between = ": ";
    if (features.empty()) return;
    text += why;
    for (const std::string& f : features) text += std::exchange(between, ", ") + f;
  };
  add(" that this processor lacks", missing.absent);
  if (!missing.absent.empty() && !missing.disabled.empty()) text += "; and instructions";
  add(" that the operating system does not enable", missing.disabled);
  return Diagnostic(codes::artifact_cpu, {}, text)
      .help("compile the model on this machine, or with a --target that it supports");
}

std::optional<Diagnostic> machine_refuses(const std::string& name, std::string_view arch,
                                          std::span<const std::string> features) {
  if (arch != host_arch()) {
    return Diagnostic(codes::artifact_cpu, {}, name + " is compiled for another architecture")
        .expected(std::string(host_arch()))
        .found(std::string(arch))
        .help("compile the model on this machine, or with a --target that it supports");
  }
  MissingFeatures missing = missing_features(features);
  if (missing.empty()) return std::nullopt;
  return features_refused(name, missing);
}

std::optional<Diagnostic> request_state_of(std::span<const std::string> features) {
  bool tiles =
      std::ranges::any_of(features, [](const std::string& f) { return f.starts_with("amx-"); });
  if (!tiles || request_tiles()) return std::nullopt;
  return Diagnostic(codes::artifact_cpu, {}, "the operating system does not grant the use of AMX")
      .help("compile the model with --target 'native -mattr=-amx-tile'");
}

namespace {

// The quota in cores of one control group folder, 0 for none.
double quota_of(const std::string& folder) {
  double quota = 0;
  double period = 0;
  std::string v2 = first_line_of(folder + "/cpu.max");
  if (std::sscanf(v2.c_str(), "%lf %lf", &quota, &period) == 2 && period > 0) return quota / period;
  quota = std::atof(first_line_of(folder + "/cpu.cfs_quota_us").c_str());
  period = std::atof(first_line_of(folder + "/cpu.cfs_period_us").c_str());
  return quota > 0 && period > 0 ? quota / period : 0;
}

}  // namespace

double cgroup_cpu_quota(const std::string& root) {
  double quota = 0;
  auto apply = [&quota](double found) {
    if (found > 0 && (quota == 0 || found < quota)) quota = found;
  };
  // Lines "0::/path" (version 2) and "4:cpu,cpuacct:/path" (version 1). Inside a container the
  // path may not exist below the mount; the mount's root is then the container's own group.
  for (const std::string& line : lines_of(root + "/proc/self/cgroup")) {
    size_t first = line.find(':');
    size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    std::string mount = root + "/sys/fs/cgroup";
    if (!controllers.empty()) {
      if (("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
      bool joint = !lines_of(mount + "/" + controllers + "/cpu.cfs_quota_us").empty();
      mount += joint ? "/" + controllers : "/cpu";
    }
    // A parent's quota limits its children.
    for (; !path.empty() && path != "/"; path.erase(path.rfind('/'))) {
      if (path.front() != '/' || path.find("..") != std::string::npos) break;
      apply(quota_of(mount + path));
    }
    apply(quota_of(mount));
  }
  return quota;
}

int available_threads(const std::string& root) {
  int cores = 1;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) {
    // Two hardware threads of one core share its arithmetic units: they count once.
    std::set<std::string> distinct;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &mask)) continue;
      std::string siblings = first_line_of(root + "/sys/devices/system/cpu/cpu" +
                                           std::to_string(cpu) + "/topology/thread_siblings_list");
      distinct.insert(siblings.empty() ? "cpu" + std::to_string(cpu) : siblings);
    }
    cores = static_cast<int>(distinct.size());
  }
  double quota = cgroup_cpu_quota(root);
  if (quota > 0 && quota < cores) cores = static_cast<int>(std::floor(quota));
  return std::max(cores, 1);
}

}  // namespace relay::runtime
