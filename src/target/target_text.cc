#include "target/target_text.h"

#include <algorithm>
#include <sstream>
#include <tuple>
#include <utility>

#include "base/codes/lowering.h"
#include "base/suggest.h"

namespace relay {
namespace {

constexpr TargetOption kOptions[] = {
    {"-keys", "KIND", "The kind of machine."},
};

const TargetOption* find_option(std::span<const TargetOption> options, std::string_view name) {
  auto it = std::ranges::find(options, name, &TargetOption::name);
  return it == options.end() ? nullptr : &*it;
}

bool has_name(const KindReader& k, const std::string& name) {
  return std::ranges::count(k.reader->names(), name) > 0;
}

[[noreturn]] void two_kinds(const TargetWords& words, const KindReader& kind,
                            const std::string& other, const KindReader& of) {
  throw UserError(
      Diagnostic(codes::target_two_kinds, {},
                 "the target '" + words.text() + "' has words of two kinds: " + words.name() +
                     " is a " + kind.kind->name + ", " + other + " belongs to " + of.kind->name)
          .expected(words.name() + " with words of " + kind.kind->name + ", or one of " +
                    joined(of.reader->names()) + " with words of " + of.kind->name));
}

const KindReader& kind_of(const TargetWords& words, std::span<const KindReader> kinds) {
  std::vector<std::string> names;
  const KindReader* found = nullptr;
  for (const KindReader& k : kinds) {
    for (std::string& name : k.reader->names()) names.push_back(std::move(name));
    if (!has_name(k, words.name())) continue;
    if (found != nullptr) two_kinds(words, *found, "the same name", k);
    found = &k;
  }
  if (found != nullptr) return *found;
  words.refuse(words.name().empty() ? "it is empty" : "there is no target '" + words.name() + "'",
               joined(names), suggest(words.name(), {names.begin(), names.end()}));
}

void check_keys(const TargetWords& words, const KindReader& kind,
                std::span<const KindReader> kinds) {
  const std::string keys = words.value_of("-keys");
  if (keys.empty() || keys == kind.kind->name) return;
  for (const KindReader& k : kinds) {
    if (k.kind->name == keys) two_kinds(words, kind, "-keys=" + keys, k);
  }
  words.refuse("there is no kind of machine '" + keys + "'", "-keys=" + kind.kind->name);
}

void check_options(const TargetWords& words, const KindReader& kind,
                   std::span<const KindReader> kinds) {
  std::vector<std::pair<std::string, std::string>> seen;
  for (const auto& [name, value] : words.options()) {
    const std::string word = name + "=" + value;
    const TargetOption* option = find_option(kOptions, name);
    if (option == nullptr) option = find_option(kind.reader->options(), name);
    if (option == nullptr || value.empty()) {
      for (const KindReader& k : kinds) {
        if (option == nullptr && find_option(k.reader->options(), name) != nullptr) {
          two_kinds(words, kind, value.empty() ? name : word, k);
        }
      }
      std::vector<std::string> known;
      for (std::span<const TargetOption> list : {kind.reader->options(), target_options()}) {
        for (const TargetOption& o : list) {
          known.push_back(std::string(o.name) + "=" + std::string(o.value));
        }
      }
      words.refuse("there is no option '" + (value.empty() ? name : word) + "'", joined(known));
    }
    auto before = std::ranges::find(seen, name, &std::pair<std::string, std::string>::first);
    if (before != seen.end() && !option->is_list) {
      words.refuse(name + " is said twice", name + "=" + before->second + ", or " + word);
    }
    seen.emplace_back(name, value);
  }
}

std::string_view without_outer_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t first = std::min(text.find_first_not_of(kBlanks), text.size());
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

auto values_of(const WorkItemLimits& items) {
  const auto& [units, registers, shared, group, exchanges, later] = items;
  return std::tie(units, registers, shared, group, exchanges, later);
}

}  // namespace

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : ", ") + w;
  return out;
}

TargetWords::TargetWords(std::string_view text) : text_(without_outer_blanks(text)) {
  std::istringstream in(text_);
  in >> name_;
  for (std::string word; in >> word;) {
    if (word[0] == '+') word = "-mattr=" + word;
    const size_t equals = std::min(word.find('='), word.size());
    std::pair option(word.substr(0, equals), word.substr(std::min(equals + 1, word.size())));
    if (std::ranges::find(options_, option) == options_.end())
      options_.push_back(std::move(option));
  }
}

std::string TargetWords::value_of(std::string_view option) const {
  std::string out;
  for (const auto& [name, value] : options_) {
    if (name == option) out += (out.empty() ? "" : ",") + value;
  }
  return out;
}

void TargetWords::refuse(const std::string& what, const std::string& expected,
                         const std::string& help) const {
  throw UserError(
      Diagnostic(codes::codegen_target, {}, "the target '" + text_ + "' is not known: " + what)
          .expected(expected)
          .help(help));
}

std::span<const TargetOption> target_options() { return kOptions; }

Target read_target(std::string_view text, std::span<const KindReader> kinds) {
  const TargetWords words(text);
  const KindReader& kind = kind_of(words, kinds);
  check_options(words, kind, kinds);
  check_keys(words, kind, kinds);
  Target t = kind.reader->read(words);
  t.kind = kind.kind->name;
  t.limits.stack_bytes = kind.kind->limits.stack_bytes;
  // The words that the reader has read may say what work items have; the kind says it for all others.
  if (values_of(t.limits.items) == values_of({})) t.limits.items = kind.kind->limits.items;
  t.index_bits = std::min(t.index_bits, kind.kind->index_bits);
  t.pointer_bits = std::min(t.pointer_bits, kind.kind->pointer_bits);
  return t;
}

}  // namespace relay
