#include "target/target_versions.h"

#include <algorithm>
#include <optional>

#include "base/codes/machines.h"
#include "target/architectures.h"
#include "target/processor_text.h"

namespace relay {
namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& what,
                         const std::string& expected) {
  throw UserError(Diagnostic(codes::machine_versions, {},
                             "the versions of the target '" + std::string(text) +
                                 "' do not go together: " + what)
                      .expected(expected));
}

// The word for one version for each length of vectors.
constexpr std::string_view kScalable = "scalable";

// The architecture that a word names, by a level or as a whole.
const Architecture* architecture_of(const std::string& word) {
  for (const Architecture& a : architectures()) {
    if (word == architecture_target(a) || a.find_level(word) != nullptr) return &a;
  }
  return nullptr;
}

// "v3" beside "x86-64-v2" is x86-64-v3, and beside "x86-64", too.
const Architecture::Level* short_level(const Architecture& a, const std::string& first,
                                       const std::string& word) {
  for (const std::string& stem : {first, first.substr(0, first.rfind('-'))}) {
    if (auto* level = a.find_level(stem + "-" + word)) return level;
  }
  return nullptr;
}

// The name of the version that a word after the first stands for, and the words of its target. `before`: the version
// before it.
TargetVersion version_of(const Architecture& a, const std::string& first, const std::string& word,
                         const TargetVersion& before) {
  const Architecture::Level* level = a.find_level(word);
  if (level == nullptr) level = short_level(a, first, word);
  if (level != nullptr) return {std::string(level->name), std::string(level->name)};
  const bool is_processor =
      std::ranges::find(a.processors, word, &Architecture::Processor::name) != a.processors.end();
  if (is_processor) return {word, architecture_target(a) + " -mcpu=" + word};
  return {before.name + "+" + word, before.text + " +" + word};
}

// One for each length of vectors.
std::vector<TargetVersion> scalable_versions(const Architecture& a, const TargetVersion& before) {
  std::vector<TargetVersion> out;
  for (const Architecture::VectorLength& l : a.lengths) {
    const std::string feature = "+" + std::string(l.name);
    out.push_back({before.name + feature, before.text + " " + feature, true});
  }
  return out;
}

}  // namespace

std::vector<TargetVersion> split_versions(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n;";
  const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  const size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
  const std::string name(text.substr(begin, end - begin));
  const std::string rest(text.substr(end));
  size_t plus = name.find('+');
  if (plus == 0 || plus == std::string::npos) return {{std::string(text), std::string(text)}};
  const std::string first = name.substr(0, plus);
  const Architecture* arch = architecture_of(first);
  if (arch == nullptr) {
    refuse(text, "'" + first + "' is neither a level nor an architecture",
           "a first version such as x86-64-v2 or aarch64-linux");
  }
  std::vector<TargetVersion> out{{first, first}};
  while (plus != std::string::npos) {
    const size_t next = name.find('+', plus + 1);
    const std::string word = name.substr(plus + 1, next - plus - 1);
    plus = next;
    if (word.empty()) refuse(text, "a version is empty", "a level, a processor or a feature");
    const Architecture* other = architecture_of(word);
    if (other != nullptr && other != arch) {
      refuse(text,
             first + " is of " + std::string(arch->name) + ", " + word + " of " +
                 std::string(other->name),
             "versions of one architecture; compile a file for each architecture");
    }
    if (word != kScalable) {
      out.push_back(version_of(*arch, first, word, out.back()));
      continue;
    }
    if (arch->lengths.empty()) {
      refuse(text, "vectors of " + std::string(arch->name) + " have no length of their own",
             "a level, a processor or a feature");
    }
    const std::vector<TargetVersion> all = scalable_versions(*arch, out.back());
    out.insert(out.end(), all.begin(), all.end());
  }
  for (TargetVersion& v : out) v.text += rest;
  return out;
}

}  // namespace relay
