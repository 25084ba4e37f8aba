#include "ir/text/format_items.h"

#include <algorithm>

namespace relay::text {

Items::Items(const std::shared_ptr<const SourceFile>& source)
    : text_(source->text()), stream_(tokenize(source, diags_)) {
  attach_comments();
  match_brackets();
  measure();
}

// ---- The text as items

void Items::attach_comments() {
  size_t comment = 0;
  uint32_t last = 0;  // the end of what was seen
  for (const Token& t : stream_.tokens) {
    Item item{t, text_.substr(t.begin, t.end - t.begin)};
    for (; comment < stream_.comments.size() && stream_.comments[comment].begin < t.begin;
         ++comment) {
      const Comment& c = stream_.comments[comment];
      size_t after = text_.find_first_not_of(" \t\r", c.end);
      bool line_after = after == std::string_view::npos || text_[after] == '\n';
      Remark remark{text_.substr(c.begin, c.end - c.begin), lines_between(last, c.begin) > 1,
                    line_after};
      while (remark.text.ends_with(' ') || remark.text.ends_with('\r')) {
        remark.text.remove_suffix(1);
      }
      bool own_line = items_.empty() || !item.before.empty() || lines_between(last, c.begin) > 0;
      (own_line ? item.before : items_.back().behind).push_back(remark);
      last = c.end;
    }
    item.blank_before = lines_between(last, t.begin) > 1;
    last = t.end;
    items_.push_back(std::move(item));
  }
}

long Items::lines_between(uint32_t begin, uint32_t end) const {
  return std::count(text_.begin() + begin, text_.begin() + end, '\n');
}

void Items::match_brackets() {
  std::vector<size_t> open;
  brackets_.assign(items_.size(), Bracket::none);
  for (size_t i = 0; i < items_.size(); ++i) {
    items_[i].partner = i;
    if (opens(i)) {
      brackets_[i] = kind(i, open.size());
      open.push_back(i);
    }
    if (!closes(i) || open.empty()) continue;
    items_[i].partner = open.back();
    items_[open.back()].partner = i;
    open.pop_back();
  }
}

// `depth` brackets are around the one at `i`.
Bracket Items::kind(size_t i, size_t depth) const {
  if (!is(i, "{")) return Bracket::round;
  if (depth == 0) {
    size_t head = i;
    if (head > 0 && is(head - 1, "]")) head = items_[head - 1].partner;
    return head > 1 && is_word(head - 2, "type") ? Bracket::listed : Bracket::body;
  }
  if (i == 0 || !is(i - 1, ")")) return Bracket::lines;
  size_t head = items_[i - 1].partner;
  if (head > 0 && is(head - 1, "?")) --head;
  return head > 0 && is_word(head - 1, "match") ? Bracket::listed : Bracket::lines;
}

// Columns and line ends, once for all tokens.
void Items::measure() {
  size_t column = 0, ends = 0;
  for (size_t i = 0; i < items_.size(); ++i) {
    Item& item = items_[i];
    if (i > 0 && space(i)) ++column;
    if (!item.before.empty()) ++ends;
    item.column = column;
    item.ends = ends;
    column += item.text.size();
    for (const Remark& r : item.behind) column += gap(r).size() + r.text.size();
    bool opens_lines = brackets_[i] == Bracket::listed || brackets_[i] == Bracket::body;
    if (line_ends_behind(i) || (opens_lines && item.partner != i + 1)) ++ends;
  }
}

// ---- What a token is

bool Items::is(size_t i, std::string_view symbol) const {
  return i < items_.size() && items_[i].token.kind == TokenKind::symbol && items_[i].text == symbol;
}

bool Items::is_word(size_t i, std::string_view word) const {
  return i < items_.size() && items_[i].token.kind == TokenKind::identifier &&
         items_[i].text == word;
}

bool Items::is_number(size_t i) const {
  return items_[i].token.kind == TokenKind::integer || items_[i].token.kind == TokenKind::floating;
}

int Items::precedence(size_t i) const {
  if (i >= items_.size() || items_[i].token.kind != TokenKind::symbol || is_sign(i)) return 0;
  if (const BinaryOperator* o = binary_operator(items_[i].token)) return o->level;
  return is(i, "//") || is(i, "%") ? 12 : 0;  // of dimensions
}

bool Items::ends_operand(size_t i) const {
  const Token& t = items_[i].token;
  if (t.kind == TokenKind::symbol) return closes(i) || is(i, "?");
  return t.kind != TokenKind::end;
}

bool Items::is_attribute(size_t i) const {
  return is(i, "=") && i > 1 && items_[i - 1].token.kind == TokenKind::identifier &&
         (is(i - 2, "(") || is(i - 2, ",") || is(i - 2, "{"));
}

bool Items::line_ends_behind(size_t i) const {
  if (is(i, ";")) return true;
  return std::any_of(items_[i].behind.begin(), items_[i].behind.end(), [](const Remark& r) {
    return r.text.starts_with("//") || r.text.find('\n') != std::string_view::npos;
  });
}

bool Items::space(size_t i) const {
  size_t before = i - 1;
  if (is(i, ")") || is(i, "]") || is(i, ",") || is(i, ";") || is(i, ":") || is(i, ".")) {
    return false;
  }
  if (!items_[before].behind.empty()) return true;
  if (is(before, "(") || is(before, "[") || is(before, ".") || is(before, "#")) return false;
  if (is(before, "{") && is(i, "}")) return false;
  if (is_attribute(i) || is_attribute(before) || is_sign(before)) return false;
  if (is(i, "?") && is_word(before, "match")) return false;
  bool name = items_[before].token.kind == TokenKind::identifier ||
              items_[before].token.kind == TokenKind::local ||
              items_[before].token.kind == TokenKind::graph ||
              items_[before].token.kind == TokenKind::global;
  bool keyword = is_word(before, "if") || is_word(before, "match") || is_word(before, "fn");
  if (is(i, "(")) return keyword || !(name || closes(before));
  if (is(i, "[")) return keyword || !(name || is(before, "]"));
  return true;
}

std::string_view gap(const Remark& remark) { return remark.text.starts_with("//") ? "  " : " "; }

}  // namespace relay::text
