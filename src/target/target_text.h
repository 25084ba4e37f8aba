// Targets as users write them: a name and options.
//
//   native                                        this machine
//   x86-64-v3 -num-threads=1                      a level of an architecture
//   llvm -mcpu=znver4                             a processor that the code generator knows
//   llvm -mtriple=x86_64-linux-gnu -mattr=+avx2   Relay's own way of saying it
//
// The first word says the kind of target, whose backend reads the others (target/processor_text.h for processors). What
// is here takes the string apart and reports. Every option is used or refused: none is read and forgotten.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "target/target_kind.h"

namespace relay {

struct TargetOption {
  std::string_view name;   // "-mcpu"
  std::string_view value;  // what follows the equals sign, "CPU"
  std::string_view doc;    // one sentence
  // May be written several times: its value is all of them with commas in between.
  bool is_list = false;
};

// A target string, apart.
class TargetWords {
 public:
  // +FEATURE is short for -mattr=+FEATURE. An option that has one value twice counts once.
  explicit TargetWords(std::string_view text);

  // Without blanks around it: a part of a list has some.
  const std::string& text() const { return text_; }
  // The first word; empty when there is none.
  const std::string& name() const { return name_; }
  // The others in their order: "-mcpu", "znver4".
  const std::vector<std::pair<std::string, std::string>>& options() const { return options_; }
  // The value of an option; empty when it is not given.
  std::string value_of(std::string_view option) const;
  // Throws UserError E0403: the target is not known.
  [[noreturn]] void refuse(const std::string& what, const std::string& expected,
                           const std::string& help = {}) const;

 private:
  std::string text_, name_;
  std::vector<std::pair<std::string, std::string>> options_;
};

// What a kind of target reads of target strings.
class TargetReader {
 public:
  virtual ~TargetReader() = default;
  // The first words of its targets, "native", "x86-64-v3".
  virtual std::vector<std::string> names() const = 0;
  virtual std::span<const TargetOption> options() const = 0;
  // The target of words whose name is one of `names` and whose options are among `options`. Throws UserError E0403 for
  // values that say nothing and options that contradict each other.
  virtual Target read(const TargetWords& words) const = 0;
};

struct KindReader {
  const TargetKind* kind;
  const TargetReader* reader;
};

// Options that targets of all kinds have.
std::span<const TargetOption> target_options();

// The target that the text says. Throws UserError E0403, which lists what there is, for a name or an option that no kind
// has and for what the kind's reader refuses, and E0406 for words of two kinds.
Target read_target(std::string_view text, std::span<const KindReader> kinds);

// "a, b, c".
std::string joined(const std::vector<std::string>& words);

}  // namespace relay
