// Diagnostics: what a user is told when something is wrong.
//
// A diagnostic has a code, a place, one sentence, what was expected, what was found and, if
// possible, what to do. Phases collect diagnostics in a `Diagnostics` and go on where they can;
// at the end of a phase `throw_if_errors` raises them together.
//
//   diags.error(codes::type_mismatch, call->span, "argument 2 of nn.dense has the wrong shape")
//       .expected("Tensor[(?, 768), float32]").found("Tensor[(4, 512), float32]")
//       .help("check the weight's second dimension");
//
// Three kinds of failure exist and are three types: UserError (the program, model, option or
// artifact is wrong), RuntimeError (a run failed on its data) and InternalError (a defect of
// Relay). All derive from Error.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "base/source.h"

namespace relay {

enum class Severity { error, warning, note };

// The declared identity of a diagnostic: a row of base/codes/.
struct DiagnosticCode {
  std::string_view id;     // "E0203"
  std::string_view title;  // a few words, for the list of all codes
};

struct Diagnostic {
  Severity severity = Severity::error;
  std::string_view code;
  Span span;
  std::string message;
  std::string expected_text;
  std::string found_text;
  std::string help_text;
  // Further places that matter, each with a sentence.
  std::vector<std::pair<Span, std::string>> notes;

  Diagnostic() = default;
  Diagnostic(const DiagnosticCode& code, Span span, std::string message);

  Diagnostic& expected(std::string text) & {
    expected_text = std::move(text);
    return *this;
  }
  Diagnostic& found(std::string text) & {
    found_text = std::move(text);
    return *this;
  }
  Diagnostic& help(std::string text) & {
    help_text = std::move(text);
    return *this;
  }
  Diagnostic& note(Span where, std::string text) &;
  Diagnostic&& expected(std::string text) && { return std::move(expected(std::move(text))); }
  Diagnostic&& found(std::string text) && { return std::move(found(std::move(text))); }
  Diagnostic&& help(std::string text) && { return std::move(help(std::move(text))); }
  Diagnostic&& note(Span where, std::string text) &&;

  // The paragraph shown to a person: "error[E0203]: message", the source line with a caret,
  // expected / found / help lines. `color` adds terminal escapes. Control characters that come
  // from user data are shown escaped.
  std::string render(bool color = false) const;
};

// An ordered collection of diagnostics with a bound on how many errors are kept.
class Diagnostics {
 public:
  explicit Diagnostics(size_t max_errors = 50) : max_errors_(max_errors) {}

  Diagnostic& error(const DiagnosticCode& code, Span span, std::string message);
  Diagnostic& warning(const DiagnosticCode& code, Span span, std::string message);
  void add(Diagnostic diagnostic);

  bool has_errors() const { return error_count_ > 0; }
  size_t error_count() const { return error_count_; }
  const std::vector<Diagnostic>& all() const { return all_; }

  // Throws UserError with everything collected when there is at least one error.
  void throw_if_errors() const;

 private:
  size_t max_errors_;
  size_t error_count_ = 0;
  std::vector<Diagnostic> all_;
  Diagnostic overflow_;
};

class Error : public std::exception {
 public:
  const char* what() const noexcept override { return text_.c_str(); }
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

 protected:
  explicit Error(std::vector<Diagnostic> diagnostics);
  explicit Error(std::string text) : text_(std::move(text)) {}
  std::vector<Diagnostic> diagnostics_;
  std::string text_;
};

class UserError : public Error {
 public:
  explicit UserError(Diagnostic diagnostic)
      : Error(std::vector<Diagnostic>{std::move(diagnostic)}) {}
  explicit UserError(std::vector<Diagnostic> diagnostics) : Error(std::move(diagnostics)) {}
};

class RuntimeError : public Error {
 public:
  explicit RuntimeError(Diagnostic diagnostic)
      : Error(std::vector<Diagnostic>{std::move(diagnostic)}) {}
};

class InternalError : public Error {
 public:
  explicit InternalError(std::string text) : Error(std::move(text)) {}
};

[[noreturn]] void internal_error(const char* file, int line, const std::string& what);

// Shows control characters, and bytes that are not UTF-8, as \xNN; cuts after `limit` bytes.
std::string escape_for_terminal(std::string_view text, size_t limit = 2000);

}  // namespace relay

// Checks an invariant of Relay itself; a failure is a defect of Relay, not of the user's program.
#define RELAY_CHECK(condition, ...)                                             \
  do {                                                                          \
    if (!(condition)) [[unlikely]]                                              \
      ::relay::internal_error(                                                  \
          __FILE__, __LINE__,                                                   \
          std::string(#condition) + " " __VA_OPT__(+std::string(__VA_ARGS__))); \
  } while (0)
