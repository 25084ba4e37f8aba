#include "cli/command.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "base/codes/driver.h"
#include "base/quantities.h"
#include "base/quoted_name.h"
#include "base/suggest.h"
#include "cli/standard_input.h"
#include "cli/terminal.h"
#include "ir/op.h"

namespace relay::cli {
namespace {

constexpr size_t kShownWord = 100;

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : between) + w;
  return out;
}

std::string number_text(double v) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.15g", v);
  return buffer;
}

std::string default_of(const Field& field) {
  return std::visit(
      [](auto* p) -> std::string {
        using T = std::remove_pointer_t<decltype(p)>;
        if constexpr (std::is_same_v<T, std::string>) {
          return *p;
        } else if constexpr (std::is_same_v<T, double>) {
          return number_text(*p);
        } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
          return std::to_string(*p);
        } else {
          return "";
        }
      },
      field);
}

// The valid values of an option.
std::string expected_of(const Option& o) {
  if (!o.allowed.empty()) return joined(o.allowed, ", ");
  bool whole = std::holds_alternative<int*>(o.field) || std::holds_alternative<int64_t*>(o.field) ||
               std::holds_alternative<uint64_t*>(o.field);
  if (!whole && !std::holds_alternative<double*>(o.field)) return o.value;
  std::string out = whole ? "a whole number" : "a number";
  if (o.low < o.high) out += " from " + number_text(o.low) + " to " + number_text(o.high);
  return out;
}

// Reads `text` into the option's field; false when it is not of the field's type or range.
bool store(const Option& o, const std::string& text) {
  if (!o.allowed.empty() && std::ranges::find(o.allowed, text) == o.allowed.end()) return false;
  return std::visit(
      [&](auto* p) -> bool {
        using T = std::remove_pointer_t<decltype(p)>;
        if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          p->push_back(text);
        } else if constexpr (std::is_same_v<T, std::string>) {
          *p = text;
        } else if constexpr (std::is_same_v<T, bool>) {
          *p = true;
        } else {
          T v{};
          auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
          if (error != std::errc() || end != text.data() + text.size()) return false;
          auto number = static_cast<double>(v);
          if (!std::isfinite(number) || (o.low < o.high && (number < o.low || number > o.high)))
            return false;
          *p = v;
        }
        return true;
      },
      o.field);
}

// Reads words from left to right, and collects the errors.
class Reader {
 public:
  Reader(const std::string& program, const Command& command, std::span<const std::string> words)
      : program_(program), command_(command), words_(words), uses_(command.options.size(), 0) {}

  Given read() {
    bool options_end = false;
    while (at_ < words_.size()) {
      const std::string& word = words_[at_++];
      if (options_end || word.size() < 2 || word[0] != '-') {
        // The word after an unknown option may be its value, and not a mistake of its own.
        if (at_ - 1 != behind_unknown_) positional(word);
      } else if (word == "--") {
        options_end = true;
      } else if (word[1] == '-') {
        long_option(word);
      } else {
        short_options(word);
      }
    }
    check_together();
    if (!problems_.empty()) throw UsageError(std::move(problems_));
    return std::move(given_);
  }

 private:
  // A line that says what is wrong, and one that says what to type.
  void problem(std::string message, std::string type) {
    problems_.push_back(
        Diagnostic(codes::driver_usage, {}, std::move(message)).help(std::move(type)));
  }

  const Option* find(std::string_view name) const {
    for (const Option& o : command_.options) {
      if (std::ranges::find(o.names, name) != o.names.end()) return &o;
    }
    return nullptr;
  }

  void unknown(const std::string& name) {
    behind_unknown_ = at_;
    std::vector<std::string_view> known;
    for (const Option& o : command_.options)
      known.insert(known.end(), o.names.begin(), o.names.end());
    problem(program_ + " has no option " + quoted_name(name, kShownWord),
            near_names(name, known, program_ + " --help lists the options"));
  }

  void positional(const std::string& word) {
    for (const Option& o : command_.options) {
      if (o.names.empty() && (o.is_list() || uses(o) == 0)) return use(o, word);
    }
    std::string expected;
    for (const Option& o : command_.options) {
      if (o.names.empty()) expected += (expected.empty() ? "" : " ") + o.value;
    }
    problem("unexpected argument " + quoted_name(word, kShownWord) + ": " + program_ + " takes " +
                (expected.empty() ? "options only" : "no more than " + expected),
            usage_of(program_, command_));
  }

  void long_option(const std::string& word) {
    size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    const Option* o = find(name);
    if (o == nullptr) return unknown(name);
    if (equals == std::string::npos) return values(*o, {});
    std::string value = word.substr(equals + 1);
    if (o->is_flag()) {
      problem(name + " takes no value, not " + quoted_name(value, kShownWord),
              "type " + name + " alone");
    } else {
      values(*o, {value});
    }
  }

  // "-qo" is two options, "-ofile" an option and its value.
  void short_options(const std::string& word) {
    for (size_t i = 1; i < word.size(); ++i) {
      std::string name{'-', word[i]};
      const Option* o = find(name);
      if (o == nullptr) return unknown(i == 1 ? word : name);
      if (o->is_flag()) {
        use(*o, "");
        continue;
      }
      std::vector<std::string> rest;
      if (i + 1 < word.size()) rest.push_back(word.substr(i + 1));
      return values(*o, std::move(rest));
    }
  }

  // Takes the words that are still missing for one use of the option.
  void values(const Option& o, std::vector<std::string> have) {
    if (o.is_flag()) return use(o, "");
    if (uses(o) > 0 && (!o.is_list() || o.values_per_use > 1))
      problem(o.name() + " is given twice", "type " + title_of(o) + " once");
    while (have.size() < o.values_per_use) {
      // The name of another option is a value only after "=".
      if (at_ == words_.size() || words_[at_] == "--" || find(words_[at_]) != nullptr) {
        ++uses(o);
        problem(
            o.name() + (o.values_per_use == 1
                            ? " needs a value"
                            : " needs " + counted(static_cast<int64_t>(o.values_per_use), "value")),
            "type " + title_of(o));
        return;
      }
      have.push_back(words_[at_++]);
    }
    for (const std::string& v : have) use(o, v);
  }

  size_t& uses(const Option& o) { return uses_[static_cast<size_t>(&o - command_.options.data())]; }

  void use(const Option& o, const std::string& text) {
    ++uses(o);
    if (!given_.has(o.name())) given_.add(o);
    if (text.empty() && !o.is_flag()) {
      problem("the value of " + o.name() + " is empty", "type " + title_of(o));
      return;
    }
    if (store(o, o.takes_input && text == "-" ? standard_input() : text)) return;
    std::string near;
    if (!o.allowed.empty()) near = suggest(text, {o.allowed.begin(), o.allowed.end()});
    problem("the value of " + o.name() + " is wrong: " + quoted_name(text, kShownWord),
            "type " + expected_of(o) + (near.empty() ? "" : "; " + near));
  }

  // A missing argument is worth a word only when all others are right: it may be the one that was misspelt.
  void check_together() {
    for (const Option& o : command_.options) {
      for (const std::string& other : o.conflicting) {
        if (given_.has(o.name()) && given_.has(other))
          problem(o.name() + " and " + other + " exclude each other", "type one of them");
      }
    }
    if (!problems_.empty()) return;
    for (const Option& o : command_.options) {
      if (!o.is_required || uses(o) > 0) continue;
      problem(o.name() + " is missing", usage_of(program_, command_));
    }
  }

  const std::string& program_;
  const Command& command_;
  std::span<const std::string> words_;
  size_t at_ = 0;
  size_t behind_unknown_ = SIZE_MAX;
  std::vector<size_t> uses_;
  Given given_;
  std::vector<Diagnostic> problems_;
};

}  // namespace

Option Option::required() && {
  is_required = true;
  return std::move(*this);
}

Option Option::count(size_t values_of_one_use) && {
  values_per_use = values_of_one_use;
  return std::move(*this);
}

Option Option::or_input() && {
  takes_input = true;
  doc += "; -: standard input";
  return std::move(*this);
}

Option Option::choices(std::vector<std::string> words) && {
  offered = words;
  allowed = std::move(words);
  return std::move(*this);
}

Option Option::offers(std::vector<std::string> words) && {
  offered = std::move(words);
  return std::move(*this);
}

Option Option::range(double lowest, double highest) && {
  low = lowest;
  high = highest;
  return std::move(*this);
}

Option Option::excludes(std::string name) && {
  conflicting.push_back(std::move(name));
  return std::move(*this);
}

Option make_option(std::string_view names, std::string_view value, Field field, std::string doc) {
  Option out;
  while (!names.empty()) {
    size_t comma = std::min(names.find(','), names.size());
    out.names.emplace_back(names.substr(0, comma));
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  out.value = value;
  out.doc = std::move(doc);
  out.field = field;
  out.default_text = default_of(field);
  return out;
}

bool Given::has(std::string_view name) const {
  return std::ranges::find(names_, name) != names_.end();
}

void Given::refuse(std::initializer_list<std::string_view> names, const std::string& what,
                   const std::string& help) const {
  std::vector<Diagnostic> problems;
  for (std::string_view name : names) {
    if (!has(name)) continue;
    problems.push_back(
        Diagnostic(codes::driver_option, {}, std::string(name) + " does not apply to " + what)
            .help(help));
  }
  if (!problems.empty()) throw UserError(std::move(problems));
}

Command& Command::add(std::vector<Option> more) {
  for (Option& o : more) options.push_back(std::move(o));
  return *this;
}

std::vector<std::string> comma_separated(const std::string& text) {
  std::vector<std::string> out;
  std::stringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) out.push_back(part);
  return out;
}

Given parse_words(const std::string& program, const Command& command,
                  std::span<const std::string> words) {
  return Reader(program, command, words).read();
}

std::string near_names(const std::string& name, const std::vector<std::string_view>& known,
                       const std::string& otherwise) {
  std::string near = suggest(name, known);
  return near.empty() ? otherwise : near;
}

std::string title_of(const Option& o) {
  if (o.names.empty()) return o.value + (o.is_list() ? "..." : "");
  return joined(o.names, ", ") + (o.value.empty() ? "" : " " + o.value);
}

std::string doc_of(const Option& o) {
  std::string out = o.doc;
  if (!o.default_text.empty()) out += " [" + o.default_text + "]";
  if (o.is_required && !o.names.empty()) out += " (required)";
  return out;
}

std::string usage_of(const std::string& program, const Command& command) {
  std::string out = program + " [OPTIONS]";
  for (const Option& o : command.options) {
    if (o.is_required && !o.names.empty()) out += " " + o.name() + " " + o.value;
  }
  for (const Option& o : command.options) {
    if (o.names.empty()) out += o.is_required ? " " + title_of(o) : " [" + title_of(o) + "]";
  }
  return out;
}

std::string help_rows(const std::vector<std::pair<std::string, std::string>>& rows, size_t width) {
  constexpr size_t kMargin = 2, kGap = 2, kWidestTitle = 30, kNarrowestText = 30;
  size_t first = 0;
  for (const auto& [title, doc] : rows) {
    if (title.size() <= kWidestTitle) first = std::max(first, title.size());
  }
  size_t column = kMargin + first + kGap;
  size_t rest = std::max(width, column + kNarrowestText) - column;
  std::string out;
  for (const auto& [title, doc] : rows) {
    std::string line = std::string(kMargin, ' ') + title;
    for (const std::string& part : wrapped(doc, rest)) {
      // A title that is too wide has a line of its own.
      if (line.size() + kGap > column) {
        out += line + "\n";
        line.clear();
      }
      line.resize(std::max(line.size(), column), ' ');
      out += line + part + "\n";
      line.clear();
    }
  }
  return out;
}

std::string help_text(const std::string& program, const Command& command, size_t width) {
  std::string out = command.doc + "\nUsage: " + usage_of(program, command) + "\n";
  std::vector<std::pair<std::string, std::string>> arguments, options;
  for (const Option& o : command.options)
    (o.names.empty() ? arguments : options).emplace_back(title_of(o), doc_of(o));
  options.emplace_back("-h, --help", "Print this help");
  if (!arguments.empty()) out += "\nArguments:\n" + help_rows(arguments, width);
  return out + "\nOptions:\n" + help_rows(options, width);
}

}  // namespace relay::cli
