#include "codegen/target.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>

#include "base/diagnostic_codes.h"
#include "codegen/llvm/host.h"
#include "runtime/cpu.h"

namespace relay {
namespace {

bool has(const std::string& features, std::string_view feature) {
  std::string text = "," + features + ",";
  return text.find(",+" + std::string(feature) + ",") != std::string::npos;
}

// A cache size such as "32K" from the kernel's description of the machine.
int64_t cache_bytes(int level, bool data, int64_t fallback) {
  for (int i = 0; i < 8; ++i) {
    std::string base = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    std::ifstream level_file(base + "level"), type_file(base + "type"), size_file(base + "size");
    int found = 0;
    std::string type, size;
    if (!(level_file >> found) || !(type_file >> type) || !(size_file >> size)) continue;
    if (found != level || (data && type == "Instruction")) continue;
    int64_t bytes = std::strtoll(size.c_str(), nullptr, 10);
    if (size.back() == 'K') bytes <<= 10;
    if (size.back() == 'M') bytes <<= 20;
    if (bytes > 0) return bytes;
  }
  return fallback;
}

// Fills what follows from the feature text.
void derive(Target& t) {
  bool avx512 = has(t.features, "avx512f") && has(t.features, "avx512vl") &&
                has(t.features, "avx512bw") && has(t.features, "avx512dq");
  t.vector_bits = avx512 ? 512 : has(t.features, "avx2") ? 256 : 128;
  t.num_vector_registers = avx512 ? 32 : 16;
  t.has_fma = has(t.features, "fma");
  t.has_f16c = has(t.features, "f16c");
}

struct Level {
  std::string_view name;
  std::string_view features;
};

// The levels of the x86-64 psABI.
constexpr std::array<Level, 4> kLevels{{
    {"x86-64", "+sse2"},
    {"x86-64-v2", "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16"},
    {"x86-64-v3",
     "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16,+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe"},
    {"x86-64-v4",
     "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16,+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,"
     "+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl"},
}};

[[noreturn]] void unknown(std::string_view text, const std::string& what) {
  throw UserError(Diagnostic(codes::codegen_target, {},
                             "the target '" + std::string(text) + "' is not known: " + what)
                      .expected("native, x86-64-v2, x86-64-v3, x86-64-v4 or llvm, with -mcpu=CPU, "
                                "-mattr=+FEATURE, -num-threads=N"));
}

}  // namespace

Target Target::native() {
  // The processor stays what it is; how much of it this process may use can change.
  static const Target processor = [] {
    Target t;
    t.name = "native";
    t.triple = codegen::host_triple();
    t.cpu = codegen::host_cpu();
    t.features = codegen::host_features();
    derive(t);
    t.l1_bytes = cache_bytes(1, true, t.l1_bytes);
    t.l2_bytes = cache_bytes(2, true, t.l2_bytes);
    t.l3_bytes = cache_bytes(3, true, t.l3_bytes);
    return t;
  }();
  Target t = processor;
  t.num_cores = runtime::available_threads();
  return t;
}

Target Target::parse(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (char c : std::string(text) + " ") {
    if (c != ' ') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  if (words.empty()) unknown(text, "it is empty");
  Target t = native();
  t.name = words[0];
  if (words[0] != "native" && words[0] != "llvm") {
    auto level = std::find_if(kLevels.begin(), kLevels.end(),
                              [&](const Level& l) { return l.name == words[0]; });
    if (level == kLevels.end()) unknown(text, "there is no target '" + words[0] + "'");
    t.cpu = "x86-64";
    t.features = level->features;
    derive(t);
  }
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& w = words[i];
    auto value = [&](const char* prefix) { return w.substr(std::string(prefix).size()); };
    if (w.starts_with("-mcpu=")) {
      t.cpu = value("-mcpu=");
      if (!codegen::cpu_features(t.triple, t.cpu, t.features))
        unknown(text, "there is no CPU '" + t.cpu + "'");
      derive(t);
    } else if (w.starts_with("-mattr=") || w.starts_with("+")) {
      std::string more = w[0] == '+' ? w : value("-mattr=");
      t.features += (t.features.empty() ? "" : ",") + more;
      derive(t);
    } else if (w.starts_with("-num-threads=")) {
      t.num_cores = std::atoi(value("-num-threads=").c_str());
      if (t.num_cores < 1 || t.num_cores > 1024) unknown(text, "-num-threads must be 1 to 1024");
    } else if (!w.starts_with("-mtriple=") && !w.starts_with("-keys=")) {
      unknown(text, "there is no option '" + w + "'");
    }
  }
  return t;
}

std::string Target::describe() const {
  return name + ": " + cpu + ", " + std::to_string(vector_bits) + "-bit vectors, " +
         std::to_string(num_cores) + (num_cores == 1 ? " core" : " cores");
}

std::vector<std::string> Target::required_features() const {
  std::vector<std::string> out;
  // Whatever LLVM emits for plain arithmetic, bit tricks included, not only what is asked for.
  for (const char* f :
       {"sse3",       "ssse3",       "sse4.1",       "sse4.2",       "popcnt",
        "sse4a",      "movbe",       "lzcnt",        "bmi",          "bmi2",
        "tbm",        "adx",         "xop",          "fma4",         "avx",
        "avx2",       "fma",         "f16c",         "gfni",         "avxvnni",
        "avxifma",    "avxvnniint8", "avxvnniint16", "avxneconvert", "avx512f",
        "avx512bw",   "avx512cd",    "avx512dq",     "avx512vl",     "avx512ifma",
        "avx512vbmi", "avx512vbmi2", "avx512vnni",   "avx512bitalg", "avx512vpopcntdq",
        "avx512bf16", "avx512fp16"}) {
    if (has(features, f)) out.emplace_back(f);
  }
  return out;
}

}  // namespace relay
