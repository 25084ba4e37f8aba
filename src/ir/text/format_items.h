// A text as its layout sees it: tokens with the comments around them, partners of brackets, and how
// many columns everything takes in one line.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "ir/text/token.h"

namespace relay::text {

struct Remark {
  std::string_view text;
  bool blank_before;  // an empty line stands before it
  bool line_after;    // a line ends behind it
};

struct Item {
  Token token;
  std::string_view text;
  bool blank_before = false;
  std::vector<Remark> before{};  // in lines of their own
  std::vector<Remark> behind{};  // in the token's line
  // A bracket's partner; the token itself when it has none.
  size_t partner = 0;
  // Columns from the start of the text to this token if all stood in one line.
  size_t column = 0;
  // How many lines end before this token whatever the width.
  size_t ends = 0;
};

enum class Bracket {
  none,
  round,   // ( or [: parts with commas between them
  body,    // { of a definition
  lines,   // { with lines
  listed,  // { of a match or type: parts with commas, each in its line
};

class Items {
 public:
  explicit Items(const std::shared_ptr<const SourceFile>& source);

  size_t size() const { return items_.size(); }
  const Item& operator[](size_t i) const { return items_[i]; }
  // Whether there is a metadata section, and what stands behind its head.
  bool has_metadata() const { return stream_.metadata != std::string_view::npos; }
  std::string_view metadata() const { return text_.substr(stream_.metadata); }

  bool is(size_t i, std::string_view symbol) const;
  bool is_word(size_t i, std::string_view word) const;
  bool opens(size_t i) const { return is(i, "(") || is(i, "[") || is(i, "{"); }
  bool closes(size_t i) const { return is(i, ")") || is(i, "]") || is(i, "}"); }
  // What the bracket that opens at `i` holds.
  Bracket bracket(size_t i) const { return brackets_[i]; }
  // How tightly a binary operator binds; 0 for other tokens.
  int precedence(size_t i) const;
  bool is_number(size_t i) const;
  // A minus that belongs to a number.
  bool is_sign(size_t i) const { return is(i, "-") && (i == 0 || !ends_operand(i - 1)); }
  // The `=` of an attribute, key=value.
  bool is_attribute(size_t i) const;

  // Whether a blank stands between the token and the one before it.
  bool space(size_t i) const;
  // A line comment stands behind it, or a line of the program ends.
  bool line_ends_behind(size_t i) const;
  // A line must end between the two tokens.
  bool ends_between(size_t begin, size_t end) const {
    return items_[end].ends > items_[begin].ends;
  }
  // The columns of the tokens in one line.
  size_t width(size_t begin, size_t end) const {
    return items_[end].column + items_[end].text.size() - items_[begin].column;
  }

 private:
  void attach_comments();
  void match_brackets();
  void measure();
  Bracket kind(size_t i, size_t depth) const;
  long lines_between(uint32_t begin, uint32_t end) const;
  bool ends_operand(size_t i) const;

  std::string_view text_;
  Diagnostics diags_;
  TokenStream stream_;
  std::vector<Item> items_;
  std::vector<Bracket> brackets_;
};

// How a comment stands apart from the code before it in its line.
std::string_view gap(const Remark& remark);

}  // namespace relay::text
