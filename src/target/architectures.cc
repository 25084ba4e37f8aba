#include "target/architectures.h"

#include <algorithm>
#include <array>

namespace relay {
namespace {

using Level = Architecture::Level;

// The levels of the x86-64 psABI.
constexpr std::array<Level, 4> kX86Levels{{
    {"x86-64", "+sse2"},
    {"x86-64-v2", "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16"},
    {"x86-64-v3",
     "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16,+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe"},
    {"x86-64-v4",
     "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16,+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,"
     "+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl"},
}};

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

void derive_x86(Target& t) {
  bool avx512 = t.has_feature("avx512f") && t.has_feature("avx512vl") &&
                t.has_feature("avx512bw") && t.has_feature("avx512dq");
  t.vector_bits = avx512 ? 512 : t.has_feature("avx2") ? 256 : 128;
  t.num_vector_registers = avx512 ? 32 : 16;
  t.has_fma = t.has_feature("fma");
  t.converts_float16 = t.has_feature("f16c");
}

constexpr Architecture kArchitectures[] = {
    {"x86_64", "x86_64-unknown-linux-gnu", "x86-64", kX86Levels, "x86-64-v2", kX86Checked,
     derive_x86},
};

}  // namespace

const Architecture::Level* Architecture::find_level(std::string_view level) const {
  auto it =
      std::find_if(levels.begin(), levels.end(), [&](const Level& l) { return l.name == level; });
  return it == levels.end() ? nullptr : &*it;
}

std::span<const Architecture> architectures() { return kArchitectures; }

const Architecture* find_architecture(std::string_view name) {
  for (const Architecture& a : kArchitectures) {
    if (a.name == name) return &a;
  }
  return nullptr;
}

}  // namespace relay
