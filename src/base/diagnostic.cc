#include "base/diagnostic.h"

#include <algorithm>
#include <cstdio>

namespace relay {
namespace {

struct Palette {
  const char* error;
  const char* warning;
  const char* dim;
  const char* bold;
  const char* reset;
};
constexpr Palette kPlain{"", "", "", "", ""};
constexpr Palette kColor{"\x1b[1;31m", "\x1b[1;33m", "\x1b[2m", "\x1b[1m", "\x1b[0m"};

// Length of the valid UTF-8 sequence at the front of `s`, 0 if there is none.
size_t utf8_length(std::string_view s) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  unsigned char lead = byte(0);
  size_t n = lead < 0x80                   ? 1
             : lead >= 0xC2 && lead < 0xE0 ? 2
             : lead >= 0xE0 && lead < 0xF0 ? 3
             : lead >= 0xF0 && lead < 0xF5 ? 4
                                           : 0;
  if (n == 0 || n > s.size()) return 0;
  for (size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if (n == 2 && lead == 0xC2 && byte(1) < 0xA0) return 0;  // C1 control characters
  return n;
}

void append_source(std::string& out, const Span& span, const Palette& p) {
  if (!span) return;
  out += std::string("  ") + p.dim + "--> " + p.reset + escape_for_terminal(span.describe(), 400) +
         "\n";
  const SourceFile* file = span.file();
  if (file == nullptr || !span.label().empty() || file->text().empty()) return;
  auto begin = file->position(span.begin());
  auto end = file->position(std::max(span.end(), span.begin() + 1));
  std::string_view line = file->line(begin.line);
  // A very long line is shown as a window around the caret.
  constexpr uint32_t kWindow = 160;
  uint32_t cut = begin.column > kWindow / 2 ? begin.column - kWindow / 2 : 0;
  if (line.size() <= kWindow) cut = 0;
  std::string shown = escape_for_terminal(line.substr(std::min<size_t>(cut, line.size()), kWindow));
  std::replace(shown.begin(), shown.end(), '\t', ' ');
  std::string number = std::to_string(begin.line);
  std::string gutter(number.size(), ' ');
  uint32_t column = begin.column - 1 - cut;
  uint32_t width = end.line == begin.line ? end.column - begin.column : 1;
  width = std::clamp<uint32_t>(width, 1, kWindow);
  out += std::string("  ") + p.dim + gutter + " |" + p.reset + "\n";
  out += std::string("  ") + p.dim + number + " | " + p.reset + shown + "\n";
  out += std::string("  ") + p.dim + gutter + " | " + p.reset + std::string(column, ' ') + p.error +
         std::string(width, '^') + p.reset + "\n";
}

std::string join_rendered(const std::vector<Diagnostic>& diagnostics) {
  std::string out;
  for (const Diagnostic& d : diagnostics) out += d.render();
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

}  // namespace

Diagnostic::Diagnostic(const DiagnosticCode& code, Span span, std::string message)
    : code(code.id), span(std::move(span)), message(std::move(message)) {}

Diagnostic& Diagnostic::note(Span where, std::string text) & {
  notes.emplace_back(std::move(where), std::move(text));
  return *this;
}

Diagnostic&& Diagnostic::note(Span where, std::string text) && {
  return std::move(note(std::move(where), std::move(text)));
}

std::string Diagnostic::render(bool color) const {
  const Palette& p = color ? kColor : kPlain;
  const char* word = severity == Severity::error     ? "error"
                     : severity == Severity::warning ? "warning"
                                                     : "note";
  const char* paint = severity == Severity::error     ? p.error
                      : severity == Severity::warning ? p.warning
                                                      : p.bold;
  std::string out = std::string(paint) + word;
  if (!code.empty()) out += "[" + std::string(code) + "]";
  out += std::string(p.reset) + ": " + p.bold + escape_for_terminal(message) + p.reset + "\n";
  append_source(out, span, p);
  auto line = [&](const char* label, const std::string& text) {
    if (!text.empty())
      out += std::string("  ") + p.bold + label + p.reset + escape_for_terminal(text) + "\n";
  };
  line("expected: ", expected_text);
  line("found:    ", found_text);
  line("help:     ", help_text);
  for (const auto& [where, text] : notes) {
    line("note:     ", text);
    append_source(out, where, p);
  }
  return out;
}

Diagnostic& Diagnostics::error(const DiagnosticCode& code, Span span, std::string message) {
  ++error_count_;
  if (error_count_ > max_errors_) {
    overflow_ = Diagnostic(code, std::move(span), std::move(message));
    return overflow_;
  }
  all_.emplace_back(code, std::move(span), std::move(message));
  return all_.back();
}

Diagnostic& Diagnostics::warning(const DiagnosticCode& code, Span span, std::string message) {
  all_.emplace_back(code, std::move(span), std::move(message));
  all_.back().severity = Severity::warning;
  return all_.back();
}

void Diagnostics::add(Diagnostic diagnostic) {
  if (diagnostic.severity == Severity::error && ++error_count_ > max_errors_) return;
  all_.push_back(std::move(diagnostic));
}

void Diagnostics::throw_if_errors() const {
  if (!has_errors()) return;
  std::vector<Diagnostic> out = all_;
  if (error_count_ > max_errors_) {
    Diagnostic more;
    more.severity = Severity::note;
    more.message = std::to_string(error_count_ - max_errors_) + " further errors are not shown";
    out.push_back(std::move(more));
  }
  throw UserError(std::move(out));
}

Error::Error(std::vector<Diagnostic> diagnostics)
    : diagnostics_(std::move(diagnostics)), text_(join_rendered(diagnostics_)) {}

void internal_error(const char* file, int line, const std::string& what) {
  std::string_view path(file);
  size_t cut = path.rfind("src/");
  if (cut != std::string_view::npos) path.remove_prefix(cut);
  throw InternalError("internal error: " + what + "\n  at " + std::string(path) + ":" +
                      std::to_string(line) +
                      "\n  This is a defect of Relay, not of your program; please report it.");
}

std::string escape_for_terminal(std::string_view text, size_t limit) {
  std::string out;
  size_t i = 0;
  while (i < text.size()) {
    if (out.size() >= limit) {
      out += "... (" + std::to_string(text.size() - i) + " more bytes)";
      break;
    }
    unsigned char c = static_cast<unsigned char>(text[i]);
    size_t n = utf8_length(text.substr(i));
    if (c == '\n' || c == '\t' || (n > 0 && c >= 0x20 && c != 0x7F)) {
      out.append(text.substr(i, n));
      i += n;
    } else {
      char buffer[8];
      std::snprintf(buffer, sizeof buffer, "\\x%02X", c);
      out += buffer;
      ++i;
    }
  }
  return out;
}

}  // namespace relay
