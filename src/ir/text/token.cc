#include "ir/text/token.h"

#include <array>

#include "base/codes/text.h"

namespace relay::text {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return is_letter(c) || is_digit(c); }

// Longest first.
constexpr std::array<std::string_view, 7> kTwo{"->", "=>", "<=", ">=", "==", "!=", "//"};
constexpr std::string_view kOne = "()[]{},:;.=+-*/%<>?#";

constexpr BinaryOperator kOperators[] = {
    {"*", 12, "multiply"}, {"/", 12, "divide"},     {"+", 10, "add"},    {"-", 10, "subtract"},
    {"<", 8, "less"},      {"<=", 8, "less_equal"}, {">", 8, "greater"}, {">=", 8, "greater_equal"},
    {"==", 7, "equal"},    {"!=", 7, "not_equal"},
};

class Lexer {
 public:
  Lexer(const std::shared_ptr<const SourceFile>& source, Diagnostics& diags)
      : source_(source), text_(source->text()), diags_(diags) {}

  TokenStream run() {
    while (skip_blank()) {
      if (at_metadata()) break;
      next();
    }
    push(TokenKind::end, at_, at_);
    return std::move(out_);
  }

 private:
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  Span span(size_t begin, size_t end) const {
    return Span::range(source_, static_cast<uint32_t>(begin), static_cast<uint32_t>(end));
  }

  void push(TokenKind kind, size_t begin, size_t end, size_t cut = 0) {
    out_.tokens.push_back({kind, static_cast<uint32_t>(begin), static_cast<uint32_t>(end),
                           text_.substr(begin + cut, end - begin - cut)});
  }

  // Passes over spaces and comments; false at the end of the text.
  bool skip_blank() {
    while (at_ < text_.size()) {
      char c = peek();
      if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '/' && peek(1) == '/' && !after_operand()) {
        size_t begin = at_;
        while (at_ < text_.size() && peek() != '\n') ++at_;
        comment(begin);
      } else if (c == '/' && peek(1) == '*') {
        size_t begin = at_;
        skip_block_comment();
        comment(begin);
      } else {
        return true;
      }
    }
    return false;
  }

  void comment(size_t begin) {
    out_.comments.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(at_)});
  }

  // `//` between brackets of a shape is floor division; anywhere else it starts a comment.
  bool after_operand() const {
    if (shape_depth_ == 0 || out_.tokens.empty()) return false;
    const Token& last = out_.tokens.back();
    bool operand =
        last.kind == TokenKind::identifier || last.kind == TokenKind::integer || last.text == ")";
    return operand;
  }

  void skip_block_comment() {
    size_t begin = at_;
    int depth = 0;
    while (at_ < text_.size()) {
      if (peek() == '/' && peek(1) == '*') {
        ++depth;
        at_ += 2;
      } else if (peek() == '*' && peek(1) == '/') {
        at_ += 2;
        if (--depth == 0) return;
      } else {
        ++at_;
      }
    }
    diags_.error(codes::text_unexpected_token, span(begin, begin + 2), "a comment is never closed")
        .help("close it with */");
  }

  bool at_metadata() {
    constexpr std::string_view kMarker = "#[metadata]";
    if (!text_.substr(at_).starts_with(kMarker)) return false;
    out_.metadata = at_ + kMarker.size();
    return true;
  }

  void next() {
    size_t begin = at_;
    char c = peek();
    if (is_letter(c)) {
      name();
      push(TokenKind::identifier, begin, at_);
      return;
    }
    if ((c == '%' || c == '@') && (is_word(peek(1)))) {
      bool number = c == '%' && is_digit(peek(1));
      ++at_;
      if (number) {
        while (is_digit(peek())) ++at_;
      } else {
        // Functions may have dotted names; a dot behind a variable is a projection.
        if (c == '@') {
          name();
        } else {
          while (is_word(peek())) ++at_;
        }
      }
      push(c == '@' ? TokenKind::global
           : number ? TokenKind::graph
                    : TokenKind::local,
           begin, at_, 1);
      return;
    }
    if (is_digit(c)) {
      number();
      return;
    }
    if (c == '"') {
      quoted();
      return;
    }
    for (std::string_view two : kTwo) {
      if (text_.substr(at_).starts_with(two)) {
        at_ += 2;
        push(TokenKind::symbol, begin, at_);
        return;
      }
    }
    if (kOne.find(c) != std::string_view::npos) {
      ++at_;
      if (c == '[') ++shape_depth_;
      if (c == ']' && shape_depth_ > 0) --shape_depth_;
      push(TokenKind::symbol, begin, at_);
      return;
    }
    ++at_;
    while (at_ < text_.size() && (static_cast<unsigned char>(peek()) & 0xC0) == 0x80) ++at_;
    diags_.error(codes::text_unexpected_token, span(begin, at_),
                 "this character has no place in a Relay program");
  }

  // Letters, digits and single dots before a letter: nn.conv2d.
  void name() {
    while (is_word(peek()) || (peek() == '.' && is_letter(peek(1)))) ++at_;
  }

  void number() {
    size_t begin = at_;
    bool floating = false;
    while (is_digit(peek())) ++at_;
    // A projection follows a tuple, never a number.
    if (peek() == '.' && is_digit(peek(1))) {
      floating = true;
      ++at_;
      while (is_digit(peek())) ++at_;
    } else if (peek() == '.' && !is_letter(peek(1)) && peek(1) != '.') {
      floating = true;
      ++at_;
    }
    bool sign = peek(1) == '-' || peek(1) == '+';
    if ((peek() == 'e' || peek() == 'E') && is_digit(peek(sign ? 2 : 1))) {
      floating = true;
      at_ += sign ? 2 : 1;
      while (is_digit(peek())) ++at_;
    }
    if (peek() == 'f') {
      floating = true;
      ++at_;
      while (is_digit(peek())) ++at_;
    } else if (peek() == 'i') {
      ++at_;
      while (is_digit(peek())) ++at_;
    }
    push(floating ? TokenKind::floating : TokenKind::integer, begin, at_);
    if (is_word(peek())) {
      while (is_word(peek())) ++at_;
      diags_.error(codes::text_bad_literal, span(begin, at_), "this is not a number")
          .expected("digits, with a suffix such as i64, f or f16");
    }
  }

  void quoted() {
    size_t begin = at_++;
    while (at_ < text_.size() && peek() != '"' && peek() != '\n') at_ += peek() == '\\' ? 2 : 1;
    if (peek() != '"') {
      diags_
          .error(codes::text_bad_literal, span(begin, std::min(at_, text_.size())),
                 "a string is never closed")
          .help("close it with \"");
      at_ = std::min(at_, text_.size());
      push(TokenKind::string, begin, begin);
      return;
    }
    ++at_;
    push(TokenKind::string, begin, at_);
  }

  const std::shared_ptr<const SourceFile>& source_;
  std::string_view text_;
  Diagnostics& diags_;
  size_t at_ = 0;
  int shape_depth_ = 0;
  TokenStream out_;
};

int hex(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

TokenStream tokenize(const std::shared_ptr<const SourceFile>& source, Diagnostics& diags) {
  return Lexer(source, diags).run();
}

const BinaryOperator* binary_operator(const Token& token) {
  if (token.kind != TokenKind::symbol) return nullptr;
  for (const BinaryOperator& o : kOperators) {
    if (o.text == token.text) return &o;
  }
  return nullptr;
}

bool unescape(std::string_view quoted, std::string& out) {
  out.clear();
  if (quoted.size() < 2) return true;
  quoted = quoted.substr(1, quoted.size() - 2);
  for (size_t i = 0; i < quoted.size(); ++i) {
    if (quoted[i] != '\\') {
      out += quoted[i];
      continue;
    }
    if (++i >= quoted.size()) return false;
    switch (quoted[i]) {
      case 'n':
        out += '\n';
        break;
      case 't':
        out += '\t';
        break;
      case 'r':
        out += '\r';
        break;
      case '"':
        out += '"';
        break;
      case '\\':
        out += '\\';
        break;
      case 'x': {
        int high = i + 1 < quoted.size() ? hex(quoted[i + 1]) : -1;
        int low = i + 2 < quoted.size() ? hex(quoted[i + 2]) : -1;
        if (high < 0 || low < 0) return false;
        out += static_cast<char>(high * 16 + low);
        i += 2;
        break;
      }
      default:
        return false;
    }
  }
  return true;
}

}  // namespace relay::text
