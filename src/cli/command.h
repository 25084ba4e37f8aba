// What a command is, said once: its name, what it does, its options as typed fields, and what runs it. Parsing, help,
// usage errors, the manual page and the shells' completions all come from this.
//
//   Command greet_command() {
//     auto o = std::make_shared<ShowArgs>();
//     return {"greet", "Greet someone",
//             {argument("NAME", o->name, "Who is greeted").required(),
//              option("-n,--times N", o->times, "How often").range(1, 100),
//              flag("--json", o->json, "Print the greeting as JSON")},
//             [o](const Given& given) { return run(*o, given); }};
//   }
//
// Words are read as GNU programs read them: options stand anywhere, `--name VALUE` or `--name=VALUE`, `-n VALUE` or
// `-nVALUE`, `-ab` for two flags; what follows `--` is no option.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/diagnostic.h"

namespace relay::cli {

// The words of a command line make no sense together: exit code 2.
class UsageError : public UserError {
 public:
  using UserError::UserError;
};

// Where an option's value goes. What the field holds before is the default that the help shows.
using Field = std::variant<bool*, int*, int64_t*, uint64_t*, double*, std::string*,
                           std::vector<std::string>*>;

// One option, or one argument by position. A list collects the values of every use; anything else is given once.
struct Option {
  std::vector<std::string> names;  // "-o", "--output"; none for an argument by position
  std::string value;               // the name of the value in texts: "FILE"; empty for a flag
  std::string doc;                 // a sentence without its full stop
  Field field;
  std::string default_text;  // empty: there is none to show
  bool is_required = false;
  bool takes_input = false;  // "-" is standard input
  size_t values_per_use = 1;
  std::vector<std::string> allowed;      // empty: everything
  std::vector<std::string> offered;      // by the shells' completions, of what is allowed
  double low = 0, high = 0;              // of numbers; equal: no bounds
  std::vector<std::string> conflicting;  // options that cannot be given as well

  Option required() &&;
  Option count(size_t values_of_one_use) &&;
  // A file that is read: "-" is standard input.
  Option or_input() &&;
  // Nothing but these words is allowed; or others are, too.
  Option choices(std::vector<std::string> words) &&;
  Option offers(std::vector<std::string> words) &&;
  Option range(double lowest, double highest) &&;
  Option excludes(std::string name) &&;

  bool is_flag() const { return std::holds_alternative<bool*>(field); }
  // A value is several words with commas between them: "PASS,...".
  bool is_comma_separated() const { return value.ends_with(",..."); }
  bool is_list() const { return std::holds_alternative<std::vector<std::string>*>(field); }
  // The name for messages: the longest, "--output"; of an argument, "MODEL".
  const std::string& name() const { return names.empty() ? value : names.back(); }
};

// `names` is "-o,--output", the short one first; `value` the name of the value.
Option make_option(std::string_view names, std::string_view value, Field field, std::string doc);

// `text` is "-o,--output FILE": the names and the name of the value.
template <class T>
Option option(std::string_view text, T& field, std::string doc) {
  size_t blank = text.find(' ');
  return make_option(text.substr(0, blank), text.substr(blank + 1), &field, std::move(doc));
}
inline Option flag(std::string_view names, bool& field, std::string doc) {
  return make_option(names, "", &field, std::move(doc));
}
template <class T>
Option argument(std::string_view name, T& field, std::string doc) {
  return make_option("", name, &field, std::move(doc));
}

// The options that stood on the command line.
class Given {
 public:
  bool has(std::string_view name) const;
  void add(const Option& option) { names_.push_back(option.name()); }
  // UserError E0702 that names those of `names` that were given, when there are any: "--target does not apply to
  // `what`", with `help` as what to do.
  void refuse(std::initializer_list<std::string_view> names, const std::string& what,
              const std::string& help) const;

 private:
  std::vector<std::string> names_;
};

struct Command {
  std::string name;
  std::string doc;  // a sentence without its full stop
  std::vector<Option> options;
  // Returns the exit code; errors are thrown.
  std::function<int(const Given&)> run;

  Command& add(std::vector<Option> more);
};

// The parts of "a,b,c"; none of an empty text.
std::vector<std::string> comma_separated(const std::string& text);

// Reads the words behind a command's name into the fields of its options. `program` is how messages call the command:
// "relay run". Throws UsageError E0704 with every word that is wrong.
Given parse_words(const std::string& program, const Command& command,
                  std::span<const std::string> words);

// "did you mean --output?", or what lists the options. `name` is one that does not exist.
std::string near_names(const std::string& name, const std::vector<std::string_view>& known,
                       const std::string& otherwise);

// What `program --help` prints, in lines of at most `width` columns.
std::string help_text(const std::string& program, const Command& command, size_t width);
// Rows of two columns, the second wrapped.
std::string help_rows(const std::vector<std::pair<std::string, std::string>>& rows, size_t width);
// "-o, --output FILE".
std::string title_of(const Option& option);
// What an option does, with its default and "required".
std::string doc_of(const Option& option);
// "relay compile [OPTIONS] MODEL".
std::string usage_of(const std::string& program, const Command& command);

}  // namespace relay::cli
