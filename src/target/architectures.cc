#include "target/architectures.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string>

#include "target/matrix_instructions.h"

namespace relay {
namespace {

using Level = Architecture::Level;
using Processor = Architecture::Processor;

constexpr int64_t K = 1 << 10;
constexpr int64_t M = 1 << 20;

// The levels of the x86-64 psABI.
constexpr std::array<Level, 4> kX86Levels{{
    {"x86-64", "+sse2", {32 * K, 256 * K, 8 * M, 4}},
    {"x86-64-v2", "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16", {32 * K, 256 * K, 8 * M, 4}},
    {"x86-64-v3",
     "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16,+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe",
     {32 * K, 512 * K, 16 * M, 8}},
    {"x86-64-v4",
     "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16,+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,"
     "+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl",
     {32 * K, 1 * M, 32 * M, 8}},
}};

// By LLVM's names. L3 is the part that one core reaches: on AMD processors, that of one core complex. Cores are those of a
// complex, of a desktop processor, or of a common server processor.
constexpr Processor kX86Processors[] = {
    {"nehalem", {32 * K, 256 * K, 8 * M, 4}},
    {"sandybridge", {32 * K, 256 * K, 8 * M, 4}},
    {"ivybridge", {32 * K, 256 * K, 8 * M, 4}},
    {"haswell", {32 * K, 256 * K, 8 * M, 4}},
    {"broadwell", {32 * K, 256 * K, 6 * M, 4}},
    {"skylake", {32 * K, 256 * K, 8 * M, 4}},
    {"skylake-avx512", {32 * K, 1 * M, 22 * M, 16}},
    {"cascadelake", {32 * K, 1 * M, 22 * M, 16}},
    {"cooperlake", {32 * K, 1 * M, 22 * M, 16}},
    {"icelake-client", {48 * K, 512 * K, 8 * M, 4}},
    {"icelake-server", {48 * K, 1280 * K, 24 * M, 16}},
    {"tigerlake", {48 * K, 1280 * K, 12 * M, 4}},
    {"rocketlake", {48 * K, 512 * K, 16 * M, 8}},
    {"alderlake", {48 * K, 1280 * K, 30 * M, 8}},
    {"raptorlake", {48 * K, 2 * M, 36 * M, 8}},
    {"sapphirerapids", {48 * K, 2 * M, 30 * M, 16}},
    {"emeraldrapids", {48 * K, 2 * M, 80 * M, 16}},
    {"graniterapids", {48 * K, 2 * M, 64 * M, 16}},
    {"znver1", {32 * K, 512 * K, 8 * M, 4}},
    {"znver2", {32 * K, 512 * K, 16 * M, 4}},
    {"znver3", {32 * K, 512 * K, 32 * M, 8}},
    {"znver4", {32 * K, 1 * M, 32 * M, 8}},
    {"znver5", {48 * K, 1 * M, 32 * M, 8}},
};

// Whatever LLVM emits for plain arithmetic, bit tricks included, not only what is asked for.
constexpr std::string_view kX86Checked[] = {
    "sse3",       "ssse3",       "sse4.1",       "sse4.2",       "popcnt",
    "sse4a",      "movbe",       "lzcnt",        "bmi",          "bmi2",
    "tbm",        "adx",         "xop",          "fma4",         "avx",
    "avx2",       "fma",         "f16c",         "gfni",         "avxvnni",
    "avxifma",    "avxvnniint8", "avxvnniint16", "avxneconvert", "avx512f",
    "avx512bw",   "avx512cd",    "avx512dq",     "avx512vl",     "avx512ifma",
    "avx512vbmi", "avx512vbmi2", "avx512vnni",   "avx512bitalg", "avx512vpopcntdq",
    "avx512bf16", "avx512fp16"};

// Products of 16-bit floats, and conversions to them, that do not ask for the mode.
constexpr std::string_view kX86Flushing[] = {"amx-bf16", "amx-fp16", "avx512bf16", "avxneconvert"};

void derive_x86(Target& t) {
  bool avx512 = t.has_feature("avx512f") && t.has_feature("avx512vl") &&
                t.has_feature("avx512bw") && t.has_feature("avx512dq");
  t.vector_bits = avx512 ? 512 : t.has_feature("avx2") ? 256 : 128;
  t.num_vector_registers = avx512 ? 32 : 16;
  t.has_fma = t.has_feature("fma");
  t.converts_float16 = t.has_feature("f16c");
  t.rounds_bfloat16 = t.has_feature("avx512bf16") && t.has_feature("avx512vl");
}

// Of AArch64, those versions at which instructions for contractions became part of every processor.
constexpr std::array<Level, 3> kArm64Levels{{
    {"armv8-a", "+fp-armv8,+neon", {32 * K, 512 * K, 2 * M, 4}},
    {"armv8.4-a",
     "+fp-armv8,+neon,+crc,+lse,+rdm,+complxnum,+jsconv,+rcpc,+dotprod",
     {64 * K, 512 * K, 4 * M, 8}},
    {"armv8.6-a",
     "+fp-armv8,+neon,+crc,+lse,+rdm,+complxnum,+jsconv,+rcpc,+dotprod,+i8mm,+bf16",
     {64 * K, 1 * M, 8 * M, 8}},
}};

// By LLVM's names; caches and cores as they are usual in systems with them: Raspberry Pi 3 to 5, Snapdragon 855, 888 and 8 Gen
// 1 to 3, Graviton2 to 4, Apple M1 to M4, Fugaku. Where a system has cores of several kinds, these are the fast ones. A cache
// that the cores of a cluster share is L3, or counts with the part of one core.
constexpr Processor kArm64Processors[] = {
    {"cortex-a53", {32 * K, 128 * K, 512 * K, 4}},     {"cortex-a55", {32 * K, 128 * K, 2 * M, 4}},
    {"cortex-a72", {32 * K, 256 * K, 1 * M, 4}},       {"cortex-a75", {64 * K, 256 * K, 2 * M, 4}},
    {"cortex-a76", {64 * K, 512 * K, 2 * M, 4}},       {"cortex-a77", {64 * K, 512 * K, 4 * M, 4}},
    {"cortex-a78", {64 * K, 512 * K, 4 * M, 4}},       {"cortex-x1", {64 * K, 1 * M, 4 * M, 4}},
    {"cortex-a710", {64 * K, 512 * K, 6 * M, 4}},      {"cortex-x2", {64 * K, 1 * M, 6 * M, 4}},
    {"cortex-x3", {64 * K, 1 * M, 8 * M, 4}},          {"cortex-x4", {64 * K, 2 * M, 12 * M, 4}},
    {"neoverse-n1", {64 * K, 1 * M, 32 * M, 16}},      {"neoverse-v1", {64 * K, 1 * M, 32 * M, 16}},
    {"neoverse-n2", {64 * K, 1 * M, 32 * M, 16}},      {"neoverse-v2", {64 * K, 2 * M, 36 * M, 16}},
    {"apple-m1", {128 * K, 3 * M, 8 * M, 4}},          {"apple-m2", {128 * K, 4 * M, 8 * M, 4}},
    {"apple-m3", {128 * K, 4 * M, 8 * M, 4}},          {"apple-m4", {128 * K, 4 * M, 8 * M, 4}},
    {"a64fx", {64 * K, 640 * K, 8 * M, 12}, "sve512"},
};

// Versions stand for all that they require of every processor.
constexpr std::string_view kArm64Checked[] = {
    "neon",  "fp-armv8",  "crc",    "lse",       "rdm",   "fullfp16", "fp16fml", "dotprod",
    "rcpc",  "rcpc-immo", "jsconv", "complxnum", "flagm", "altnzcv",  "fptoint", "i8mm",
    "bf16",  "aes",       "sha2",   "sha3",      "sm4",   "lse2",     "sve",     "sve2",
    "f32mm", "f64mm",     "cssc",   "mops",      "v8.1a", "v8.2a",    "v8.3a",   "v8.4a",
    "v8.5a", "v8.6a",     "v8.7a",  "v9a",       "v9.1a", "v9.2a"};

// Products of bfloat16, whatever the mode is.
constexpr std::string_view kArm64Flushing[] = {"bf16"};

constexpr int64_t kNeonBits = 128;

// LLVM 19 orders generic code for the Cortex-A510, and keeps sums of a GEMM on the stack: by llvm-mca 1.5 times the cycles of
// this order on a Neoverse N1 or V2.
constexpr std::string_view kArm64Tuned = "cortex-a76";

using VectorLength = Architecture::VectorLength;

// The longest vectors that the features promise; `none` without these registers.
int64_t promised_bits(const Target& t, std::span<const VectorLength> lengths, int64_t none) {
  int64_t bits = none;
  for (const VectorLength& l : lengths) {
    if (t.has_feature(l.name) && t.has_feature(l.registers)) bits = l.bits;
  }
  return bits;
}

// Of SVE. Registers of 128 bits are those of NEON, whose instructions read them without a mask.
constexpr VectorLength kArm64Lengths[] = {{"sve256", "sve", 256}, {"sve512", "sve", 512}};

void derive_arm64(Target& t) {
  t.vector_bits = promised_bits(t, kArm64Lengths, kNeonBits);
  // LLVM 19 moves sums between registers where few are free: a GEMM of bfloat16 takes 1.1 times the cycles with tiles that
  // fill 32 registers of SVE (llvm-mca, Neoverse V1).
  t.num_vector_registers = t.vector_bits > kNeonBits ? 28 : 32;
  t.has_fma = true;
  t.converts_float16 = true;
  // LLVM 19 cannot select the rounding of vectors of SVE.
  t.rounds_bfloat16 = t.has_feature("bf16") && t.vector_bits == kNeonBits;
}

// Without vectors (V), which the second level adds.
constexpr std::array<Level, 2> kRiscvLevels{{
    {"rv64gc", "+m,+a,+f,+d,+c", {32 * K, 512 * K, 2 * M, 4}},
    {"rv64gcv", "+m,+a,+f,+d,+c,+v", {32 * K, 512 * K, 2 * M, 4}},
}};

// By LLVM's names; caches and cores of systems with them: HiFive Unmatched, the cores' product briefs, Banana Pi BPI-F3.
constexpr Processor kRiscvProcessors[] = {
    {"sifive-u74", {32 * K, 512 * K, 2 * M, 4}},
    {"sifive-x280", {32 * K, 512 * K, 4 * M, 4}, "zvl512b"},
    {"sifive-p450", {32 * K, 256 * K, 4 * M, 4}},
    {"sifive-p670", {32 * K, 512 * K, 8 * M, 4}, "v"},
    {"spacemit-x60", {32 * K, 128 * K, 512 * K, 4}, "zvl256b"},
};

constexpr std::string_view kRiscvChecked[] = {
    "m",   "a",   "f",      "d",    "c",       "zvl128b", "zba",  "zbb",    "zbs",
    "zbc", "zfh", "zfhmin", "zvfh", "zvfhmin", "zfa",     "zbkb", "zicond", "xventanacondops"};

constexpr VectorLength kRiscvLengths[] = {{"v", "v", 128, true},
                                          {"zvl256b", "v", 256, true},
                                          {"zvl512b", "v", 512, true},
                                          {"zvl1024b", "v", 1024, true}};

// Without vectors, lanes are registers of their own, of which there are 32.
void derive_riscv(Target& t) {
  t.vector_bits = promised_bits(t, kRiscvLengths, 128);
  const bool vectors = t.has_feature("v");
  t.num_vector_registers = vectors ? 32 : 8;
  t.has_fma = true;
  t.converts_float16 = vectors && (t.has_feature("zvfh") || t.has_feature("zvfhmin"));
}

// With LLVM's scheduler that counts registers (use-misched): without it, a GEMM of float32 moves ten times as many vectors
// to and from the stack.
constexpr std::array<Level, 1> kArm32Levels{{
    {"armv7-a", "+neon,+vfp4,+use-misched", {32 * K, 512 * K, 1 * M, 4}},
}};

// Processors of Armv7-A by LLVM's names; caches and cores as in the systems BeagleBone Black, i.MX 6, Raspberry Pi 2,
// Exynos 5422 and Tegra K1, and Rockchip RK3288. Without an L3 cache it is a part of memory that L2 reaches: twice its size.
constexpr Processor kArm32Processors[] = {
    {"cortex-a5", {32 * K, 512 * K, 1 * M, 4}},   {"cortex-a7", {32 * K, 512 * K, 1 * M, 4}},
    {"cortex-a8", {32 * K, 256 * K, 512 * K, 1}}, {"cortex-a9", {32 * K, 1 * M, 2 * M, 4}},
    {"cortex-a15", {32 * K, 2 * M, 4 * M, 4}},    {"cortex-a17", {32 * K, 1 * M, 2 * M, 4}},
};

constexpr std::string_view kArm32Checked[] = {"vfp2", "vfp3",      "vfp4",  "neon",
                                              "fp16", "hwdiv-arm", "hwdiv", "d32"};

// All arithmetic of vectors of floats.
constexpr std::string_view kArm32Flushing[] = {"neon"};

// Without vectors, lanes are registers of their own, of which there are 32. Instructions that convert vectors of float16 are
// not selected by LLVM 19.
void derive_arm32(Target& t) {
  t.vector_bits = 128;
  t.num_vector_registers = t.has_feature("neon") ? 16 : 8;
  t.has_fma = t.has_feature("vfp4");
  t.pointer_bits = 32;
  t.index_bits = 32;
}

constexpr Architecture kArchitectures[] = {
    {"x86_64", "x86_64-unknown-linux-gnu", "x86-64", kX86Levels, kX86Processors, "x86-64-v2",
     kX86Checked, kX86Flushing, derive_x86},
    {"aarch64",
     "aarch64-unknown-linux-gnu",
     "generic",
     kArm64Levels,
     kArm64Processors,
     "armv8-a",
     kArm64Checked,
     kArm64Flushing,
     derive_arm64,
     kArm64Lengths,
     {},
     {},
     kArm64Tuned},
    {"riscv64",
     "riscv64-unknown-linux-gnu",
     "generic-rv64",
     kRiscvLevels,
     kRiscvProcessors,
     "rv64gc",
     kRiscvChecked,
     {},
     derive_riscv,
     kRiscvLengths,
     "rv64,v=true,vext_spec=v1.0,vlen=512"},
    {"armv7",
     "armv7-unknown-linux-gnueabihf",
     "generic",
     kArm32Levels,
     kArm32Processors,
     "armv7-a",
     kArm32Checked,
     kArm32Flushing,
     derive_arm32,
     {},
     {},
     "arm"},
};

constexpr TestHost kTestHosts[] = {
    {"x86-64-v2", "x86-64-v2"},
    {"x86-64-v3", "x86-64-v3"},
    {"zen4", "llvm -mcpu=znver4"},
    {"zen5", "llvm -mcpu=znver5"},
    {"sapphire-rapids", "llvm -mcpu=sapphirerapids"},
};

// Whether the target has every feature of the level.
bool reaches(const Target& target, const Level& level) {
  std::string_view rest = level.features;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    if (!target.has_feature(rest.substr(1, comma - 1))) return false;
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return true;
}

}  // namespace

const Architecture::Level* Architecture::find_level(std::string_view level) const {
  auto it =
      std::find_if(levels.begin(), levels.end(), [&](const Level& l) { return l.name == level; });
  return it == levels.end() ? nullptr : &*it;
}

const Architecture::VectorLength* Architecture::find_length(std::string_view name) const {
  auto it = std::ranges::find(lengths, name, &VectorLength::name);
  return it == lengths.end() ? nullptr : &*it;
}

std::vector<std::string_view> Architecture::all_features() const {
  std::vector<std::string_view> out(checked_features.begin(), checked_features.end());
  for (const VectorLength& l : lengths) out.push_back(l.name);
  return out;
}

std::string Architecture::length_of(std::string_view cpu) const {
  auto known = std::ranges::find(processors, cpu, &Processor::name);
  if (known == processors.end() || known->length.empty()) return {};
  return "+" + std::string(known->length);
}

std::vector<std::string> Architecture::lengths_on(
    std::string_view cpu, const std::function<bool(std::string_view)>& offers) const {
  const bool known = std::ranges::find(processors, cpu, &Processor::name) != processors.end();
  std::vector<std::string> out;
  for (const VectorLength& l : lengths) {
    std::string feature = "+" + std::string(l.name);
    if (offers(l.name) && (!known || feature == length_of(cpu))) out.push_back(std::move(feature));
  }
  return out;
}

Machine Architecture::machine_of(std::string_view cpu, const Target& target) const {
  auto known = std::ranges::find(processors, cpu, &Processor::name);
  if (known != processors.end()) return known->machine;
  Machine out = levels.front().machine;
  for (const Level& l : levels) {
    if (reaches(target, l)) out = l.machine;
  }
  return out;
}

std::string code_features(const Target& target) {
  const Architecture* row = find_architecture(target.arch);
  std::string out;
  std::istringstream in(target.features);
  for (std::string word; std::getline(in, word, ',');) {
    if (word.empty()) continue;
    const std::string_view name = std::string_view(word).substr(1);
    const auto* length = row == nullptr ? nullptr : row->find_length(name);
    if (is_matrix_feature(name) || (length != nullptr && !length->is_generators)) continue;
    out += (out.empty() ? "" : ",") + word;
  }
  return out;
}

std::span<const TestHost> test_hosts() { return kTestHosts; }

std::span<const Architecture> architectures() { return kArchitectures; }

const Architecture* find_architecture(std::string_view name) {
  for (const Architecture& a : kArchitectures) {
    if (a.name == name) return &a;
  }
  return nullptr;
}

}  // namespace relay
