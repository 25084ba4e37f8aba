#include "ir/text/reader.h"

#include "base/budget.h"
#include "base/codes/text.h"
#include "base/codes/types.h"
#include "base/suggest.h"
#include "ir/op.h"
#include "ir/text/metadata.h"

namespace relay::text {

Reader::Reader(std::shared_ptr<const SourceFile> source, Diagnostics& diags)
    : source_(std::move(source)), diags_(diags), stream_(tokenize(source_, diags)) {
  if (stream_.metadata == std::string_view::npos) return;
  auto at = static_cast<uint32_t>(stream_.metadata);
  std::string_view json = std::string_view(source_->text()).substr(at);
  try {
    metadata = read_metadata(json, Span::range(source_, at, at + 1));
  } catch (const UserError& e) {
    report(e);
  }
}

Token Reader::take() {
  check_budget();
  Token t = peek();
  if (t.kind != TokenKind::end) ++at_;
  return t;
}

Token Reader::expect(std::string_view symbol) {
  if (!is(symbol)) unexpected("'" + std::string(symbol) + "'");
  return take();
}

Token Reader::expect(TokenKind kind, const char* what) {
  if (peek().kind != kind) unexpected(what);
  return take();
}

void Reader::expect_word(std::string_view word) {
  if (!accept_word(word)) unexpected("'" + std::string(word) + "'");
}

bool Reader::more(std::string_view close) {
  if (accept(close)) return false;
  if (!accept(",")) unexpected("',' or '" + std::string(close) + "'");
  return !accept(close);
}

bool Reader::at_definition() const {
  if (is_word("def")) return peek(1).kind == TokenKind::global;
  if (is_word("type")) return peek(1).kind == TokenKind::identifier;
  return is_word("extern");
}

namespace {

bool opens(const Token& t) {
  return t.kind == TokenKind::symbol && (t.text == "(" || t.text == "[" || t.text == "{");
}
bool closes(const Token& t) {
  return t.kind == TokenKind::symbol && (t.text == ")" || t.text == "]" || t.text == "}");
}

}  // namespace

void Reader::skip_brackets() {
  int depth = 0;
  do {
    depth += opens(peek()) ? 1 : closes(peek()) ? -1 : 0;
    take();
  } while (depth > 0 && !at_end() && !at_definition());
}

bool Reader::skip_line(int open) {
  // Round brackets are not counted: a missing one is a frequent mistake.
  for (; !at_end() && !at_definition(); take()) {
    if (is("{")) ++open;
    if (is("}") && open-- == 0) return false;
    if (is(";") && open == 0) {
      take();
      return true;
    }
  }
  return false;
}

Span Reader::span_from(const Token& first) const {
  uint32_t end = at_ > 0 ? stream_.tokens[at_ - 1].end : first.end;
  return Span::range(source_, first.begin, std::max(end, first.end));
}

void Reader::report(const UserError& e) {
  broken = true;
  for (const Diagnostic& d : e.diagnostics()) diags_.add(d);
}

void Reader::fail(const DiagnosticCode& code, const Span& where, std::string message,
                  std::string help) {
  report(code, where, std::move(message)).help(std::move(help));
  throw GiveUp();
}

void Reader::unexpected(std::string expected) {
  const Token& t = peek();
  std::string found = at_end() ? "the end of the text"
                               : "'" + source_->text().substr(t.begin, t.end - t.begin) + "'";
  report(codes::text_unexpected_token, span(t), "this cannot be read")
      .expected(std::move(expected))
      .found(std::move(found));
  throw GiveUp();
}

GlobalVar Reader::global(const Token& name) {
  auto it = globals_.find(std::string(name.text));
  if (it == globals_.end()) {
    std::string text(name.text);
    it = globals_.emplace(text, std::make_pair(global_var(text), span(name))).first;
  }
  return it->second.first;
}

void Reader::unknown(const DiagnosticCode& code, std::string_view name, const Span& where,
                     std::string message, const Known& known) {
  broken = true;
  if (!unknown_.insert(message).second) return;
  // A search through all names for every unknown one would be quadratic in the program.
  constexpr int kMaxSuggested = 50;
  std::string help = suggested_++ < kMaxSuggested ? suggest(name, known()) : std::string();
  report(code, where, std::move(message)).help(std::move(help));
}

void Reader::forget_locals() {
  locals.leave(0);
  type_vars.leave(0);
  std::erase_if(unknown_, [](const std::string& message) { return message.starts_with("%"); });
}

TypeVar Reader::type_var_of(const Token& name, Kind kind, const char* what) {
  std::string text(name.text);
  const TypeVar* v = type_vars.find(text);
  if (v == nullptr || (*v)->kind == kind) return v == nullptr ? nullptr : *v;
  std::string declared = text + ": " + std::string(to_string(kind));
  report(codes::type_kind, span(name), text + " does not stand for a " + what)
      .expected(declared)
      .found(text + ": " + std::string(to_string((*v)->kind)))
      .help("declare it so: [" + declared + "]");
  throw GiveUp();
}

}  // namespace relay::text
