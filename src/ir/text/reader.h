// What all parts of the parser share: the place in the tokens, the names in scope, the errors.
//
// The parts are functions over a Reader, one file each. None of them recurses: what is open - a
// bracket, an operator that waits for its right side - lies on a stack of its own, so that text may
// nest as deep as memory reaches.
//
// A part that meets text it cannot read reports it and throws GiveUp; who knows where to go on
// catches it. A mistake that leaves the text readable (an unknown name, a call that does not fit)
// is reported, a stand-in without a type takes its place, and reading goes on.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "ir/module.h"
#include "ir/text/token.h"

namespace relay::text {

// The text cannot be read from here on; the error is reported already.
struct GiveUp {};

// Names with scopes: what is bound last hides what was bound before, until its scope is left.
template <class T>
class Scopes {
 public:
  void bind(const std::string& name, T value) {
    std::vector<T>& stack = names_[name];
    stack.push_back(std::move(value));
    undo_.push_back(&stack);
  }
  // What the name stands for here, or null.
  const T* find(const std::string& name) const {
    auto it = names_.find(name);
    return it == names_.end() || it->second.empty() ? nullptr : &it->second.back();
  }
  size_t mark() const { return undo_.size(); }
  // Forgets what was bound since `mark`.
  void leave(size_t mark) {
    while (undo_.size() > mark) {
      undo_.back()->pop_back();
      undo_.pop_back();
    }
  }
  std::vector<std::string_view> known() const {
    std::vector<std::string_view> out;
    for (const auto& [name, stack] : names_) {
      if (!stack.empty()) out.push_back(name);
    }
    return out;
  }

 private:
  // Element addresses of an unordered_map stay as they are when it grows.
  std::unordered_map<std::string, std::vector<T>> names_;
  std::vector<std::vector<T>*> undo_;
};

class Reader {
 public:
  Reader(std::shared_ptr<const SourceFile> source, Diagnostics& diags);

  // ---- Tokens
  const Token& peek(size_t ahead = 0) const {
    return stream_.tokens[std::min(at_ + ahead, stream_.tokens.size() - 1)];
  }
  const std::vector<Token>& tokens() const { return stream_.tokens; }
  // Reads other tokens from their begin in the place of the text, then goes on where it was.
  template <class Read>
  void read_other(std::shared_ptr<const SourceFile> source, std::vector<Token> tokens,
                  Read&& read) {
    std::swap(source, source_);
    std::swap(tokens, stream_.tokens);
    size_t at = std::exchange(at_, 0);
    read();
    std::swap(source, source_);
    std::swap(tokens, stream_.tokens);
    at_ = at;
  }
  bool at_end() const { return peek().kind == TokenKind::end; }
  Token take();
  bool is(std::string_view symbol, size_t ahead = 0) const {
    return peek(ahead).kind == TokenKind::symbol && peek(ahead).text == symbol;
  }
  bool is_word(std::string_view word) const {
    return peek().kind == TokenKind::identifier && peek().text == word;
  }
  bool accept(std::string_view symbol) { return is(symbol) && (++at_, true); }
  bool accept_word(std::string_view word) { return is_word(word) && (++at_, true); }
  Token expect(std::string_view symbol);
  Token expect(TokenKind kind, const char* what);
  void expect_word(std::string_view word);
  // Behind an element of a list that `close` ends: true when another element follows. A comma may
  // stand behind the last one.
  bool more(std::string_view close);

  size_t at() const { return at_; }
  void go_to(size_t at) { at_ = at; }
  // Whether a definition starts here.
  bool at_definition() const;
  // Passes over a bracket with all that is in it, at most to the next definition.
  void skip_brackets();
  // Goes on behind what could not be read: to the next `;` (which is passed), or to the brace that
  // ends the lines, or the next definition. `open` braces of the line are to be closed on the way.
  // Tells whether there is a further line.
  bool skip_line(int open);

  Span span(const Token& t) const { return Span::range(source_, t.begin, t.end); }
  // From a token to the last one that was taken.
  Span span_from(const Token& first) const;

  // ---- Errors
  // Set by every error; cleared where a definition starts.
  bool broken = false;
  Diagnostic& report(const DiagnosticCode& code, const Span& where, std::string message) {
    broken = true;
    return diags_.error(code, where, std::move(message));
  }
  void report(const UserError& e);
  [[noreturn]] void fail(const DiagnosticCode& code, const Span& where, std::string message,
                         std::string help = {});
  [[noreturn]] void unexpected(std::string expected);
  // What `make` builds, or a stand-in when it reports that its parts do not fit.
  template <class Make>
  Expr build(Make&& make) {
    try {
      return make();
    } catch (const UserError& e) {
      report(e);
      return stand_in();
    }
  }
  // An expression in the place of one that is wrong; without a type it causes no further errors.
  static Expr stand_in() { return var("_"); }
  static bool is_stand_in(const Expr& e) {
    auto* v = as<VarNode>(e);
    return v != nullptr && v->name_hint == "_" && !v->span;
  }

  // ---- Names
  // Variables by name, graph bindings as "#0".
  Scopes<Expr> locals;
  Scopes<TypeVar> type_vars;
  std::map<std::string, GlobalTypeVar, std::less<>> types;
  std::map<std::string, Constructor, std::less<>> constructors;
  std::vector<Constant> metadata;

  // The function of that name, which may be defined later.
  GlobalVar global(const Token& name);
  void add_global(const GlobalVar& g) { globals_.emplace(g->name_hint, std::pair(g, g->span)); }
  const std::map<std::string, std::pair<GlobalVar, Span>>& globals() const { return globals_; }
  // The type variable of that name, or null when there is none; one that stands for something else
  // than a `kind` is reported.
  TypeVar type_var_of(const Token& name, Kind kind, const char* what);
  // Reports a name that is not known, once; a local one once for each definition. `known` tells
  // the names that it may have been meant for; it is asked a bounded number of times.
  using Known = std::function<std::vector<std::string_view>()>;
  void unknown(const DiagnosticCode& code, std::string_view name, const Span& where,
               std::string message, const Known& known);
  void unknown(const DiagnosticCode& code, const Token& name, std::string message,
               const Known& known) {
    unknown(code, name.text, span(name), std::move(message), known);
  }
  void forget_locals();

 private:
  std::shared_ptr<const SourceFile> source_;
  Diagnostics& diags_;
  TokenStream stream_;
  size_t at_ = 0;
  std::map<std::string, std::pair<GlobalVar, Span>> globals_;
  std::set<std::string> unknown_;
  int suggested_ = 0;
};

// ---- The parts

// A type, "fn (List[A], Tensor[(n, 4), float32]) -> ref(A)".
Type read_type(Reader& r);
// The parameters of a definition, function or function type, "[A, n: Dim]", or none. They are bound
// in `type_vars`.
std::vector<TypeVar> read_type_params(Reader& r);
// A dimension, "2 * n + 1"; and whether one that is more than a number starts here, in a list of sizes
// or by itself.
Dim read_dim(Reader& r);
bool at_symbolic_dim(const Reader& r, bool in_list);
// A pattern; its variables are bound in `locals`.
Pattern read_pattern(Reader& r);
// An attribute's value: a number, a size, a string, True, False, None or a list.
AttrValue read_value(Reader& r);
// The number of a token of digits, or nullopt when it does not fit.
std::optional<int64_t> read_integer(const Token& t);
// A scalar constant from its token; `negative` when a minus stands before it.
Expr read_literal(Reader& r, const Token& t, bool negative);
// The contents of a string token.
std::string read_string(Reader& r, const Token& t);
// True for inff, inff16, ...
bool is_infinity(const Token& t);
// Lines up to a closing bracket or the end: graph bindings, lets, statements, and the result.
Expr read_lines(Reader& r);
// A function behind `fn` or behind its name in a definition.
Function read_function(Reader& r, const Token& first);

}  // namespace relay::text
