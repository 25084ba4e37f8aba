// The engine of a prompt: definitions and values, one entry after the other.
//
//   PromptSession session({});
//   session.enter("def @twice(%x: int32) { %x + %x }");   // "@twice: fn (int32) -> int32"
//   session.enter("let %a = @twice(21)");                 // "%a: int32 = 42"
//   session.enter(":grad @twice");                        // the text of its gradient
//
// An entry is a definition (`def`, `type`), a binding (`let %x = e`), an expression, or a command that begins with a
// colon. An entry that is refused throws a UserError or RuntimeError and leaves the session as it was. Lines in messages
// are those of the entry behind a first line that the session adds.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "driver/compile.h"
#include "ir/module.h"
#include "runtime/core/value.h"

namespace relay {

struct PromptOptions {
  CompileOptions compile;  // of :opt, :tir, :asm and :time
  // Of the compiler for an entry; `cancelled` also ends an evaluation.
  BudgetLimits limits = BudgetLimits::defaults();
  // Of an evaluation and of the runs of :time; 0: no limit.
  int64_t fuel = 0;
  int64_t memory_limit = 0;
  double time_limit = 0;
};

struct PromptCommand {
  std::string_view name;       // ":type"
  std::string_view arguments;  // "EXPR"
  std::string_view doc;        // a sentence without its full stop
};

class PromptSession {
 public:
  explicit PromptSession(PromptOptions options);
  ~PromptSession();

  // Returns what is to be shown; may be empty.
  std::string enter(const std::string& entry);
  // True behind ":quit".
  bool is_over() const { return over_; }

  // Whether an entry goes on in the next line: a bracket, a string or a comment is open, or a definition has no body.
  static bool is_open(const std::string& entry);
  // The names that begin with `word`: operators, "@f", "%x", keywords, ":commands". At most `most`.
  std::vector<std::string> completions(std::string_view word, size_t most = 200) const;

  static const std::vector<PromptCommand>& commands();

 private:
  // A definition as it was entered. Of a function that was loaded, `text` is a signature, and `function` the function.
  struct Definition {
    std::string name;  // "@f" or "Tree"
    std::string text;
    Function function = nullptr;
  };
  // A variable. A value that holds functions belongs to the program that made it: it is computed again from its text.
  struct Binding {
    std::string name;  // without its sign
    Type type;
    runtime::Value value;
    std::string text;               // empty: `value` is used
    std::vector<std::string> uses;  // the variables in `text`
  };
  // A program around an expression of the session.
  struct Wrapped {
    Module module;
    std::vector<runtime::Value> arguments;
    Type type;
    std::vector<std::string> uses;
  };

  Module parse(const std::string& text, const std::vector<Definition>& definitions) const;
  Wrapped wrap(const std::string& expression) const;
  // `argument` is "@f" or an expression; @prompt of the result is what it means.
  Wrapped program_of(const std::string& argument) const;
  runtime::Value evaluate(const Wrapped& program, std::string* text);
  // Does what the limits of a run are for. Those of the compiler begin anew behind it.
  void run(const std::function<void()>& work);
  // The last variable whose text does not fit the definitions any more; empty if all do.
  std::string first_broken() const;

  std::string command(const std::string& entry);
  std::string define(const std::string& entry);
  std::string bind(const std::string& name, const std::string& annotation,
                   const std::string& expression);
  std::string show(const std::string& expression);
  std::string load(const std::string& path);
  std::string clear(const std::string& name);
  std::string list() const;
  std::string time(const std::string& argument);
  std::string gradient(const std::string& argument) const;

  PromptOptions options_;
  std::vector<Definition> definitions_;
  std::vector<Binding> bindings_;
  std::optional<BudgetScope> compiling_;  // while the compiler works on an entry
  bool over_ = false;
};

// What an operator does: its description, arguments and attributes. Empty for a name that is none.
std::string operator_text(std::string_view name);

}  // namespace relay
