// The tokens of the text format.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace relay::text {

enum class TokenKind : uint8_t {
  end,
  identifier,  // nn.conv2d, List, let
  local,       // %x
  global,      // @f
  graph,       // %0
  integer,     // 1, 2i64
  floating,    // 1f, 2.5f16
  string,
  symbol,  // ( ) [ ] { } , : ; . = -> => + - * / // % < <= > >= == != ? # _
};

struct Token {
  TokenKind kind = TokenKind::end;
  uint32_t begin = 0;
  uint32_t end = 0;
  std::string_view text;  // of the source; without the leading % or @ for names
};

// The bytes of a comment, with its signs.
struct Comment {
  uint32_t begin = 0;
  uint32_t end = 0;
};

struct TokenStream {
  std::vector<Token> tokens;  // the last one is `end`
  std::vector<Comment> comments;
  // Byte offset of the JSON behind `#[metadata]`, or npos.
  size_t metadata = std::string_view::npos;
};

// Cuts the text into tokens; comments, `//` and nested `/* */`, are apart. What is no token is
// reported and passed over.
TokenStream tokenize(const std::shared_ptr<const SourceFile>& source, Diagnostics& diags);

// An operator between two expressions: `a + b` is the call add(a, b).
struct BinaryOperator {
  std::string_view text;
  int level;  // the higher, the tighter; all are left associative
  std::string_view name;
};
// Null for other tokens.
const BinaryOperator* binary_operator(const Token& token);

// The contents of a string token, escapes resolved; false when an escape is unknown.
bool unescape(std::string_view quoted, std::string& out);

}  // namespace relay::text
