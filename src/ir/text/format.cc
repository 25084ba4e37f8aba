#include "ir/text/format.h"

#include <algorithm>
#include <unordered_map>

#include "ir/text/token.h"

namespace relay {
namespace {

using text::Comment;
using text::Token;
using text::TokenKind;

constexpr size_t kWidth = 100;
constexpr size_t kIndent = 2;
constexpr size_t kMaxIndent = kIndent * kMaxIndentLevels;

struct Remark {
  std::string_view text;
  bool blank_before;  // an empty line stands before it
  bool line_after;    // a line ends behind it
};

// A token with the comments around it.
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
  // How many tokens before this one end a line whatever the width.
  size_t ends = 0;
};

enum class Bracket {
  none,
  round,   // ( or [: parts with commas between them
  lines,   // { with lines
  listed,  // { of a match or type: parts with commas, each in its line
};

class Formatter {
 public:
  explicit Formatter(const std::shared_ptr<const SourceFile>& source)
      : text_(source->text()), stream_(text::tokenize(source, diags_)) {}

  std::string run() {
    attach_comments();
    match_brackets();
    measure();
    find_broken();
    for (size_t i = 0; i < items_.size(); ++i) emit(i);
    while (out_.ends_with("\n")) out_.pop_back();
    if (!out_.empty()) out_ += "\n";
    if (stream_.metadata != std::string_view::npos) {
      out_ += "\n#[metadata]" + std::string(text_.substr(stream_.metadata));
    }
    return std::move(out_);
  }

 private:
  // ---- The text as items

  void attach_comments() {
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

  long lines_between(uint32_t begin, uint32_t end) const {
    return std::count(text_.begin() + begin, text_.begin() + end, '\n');
  }

  bool is(size_t i, std::string_view symbol) const {
    return i < items_.size() && items_[i].token.kind == TokenKind::symbol &&
           items_[i].text == symbol;
  }
  bool is_word(size_t i, std::string_view word) const {
    return i < items_.size() && items_[i].token.kind == TokenKind::identifier &&
           items_[i].text == word;
  }
  bool opens(size_t i) const { return is(i, "(") || is(i, "[") || is(i, "{"); }
  bool closes(size_t i) const { return is(i, ")") || is(i, "]") || is(i, "}"); }

  void match_brackets() {
    std::vector<size_t> open;
    for (size_t i = 0; i < items_.size(); ++i) {
      items_[i].partner = i;
      if (opens(i)) open.push_back(i);
      if (!closes(i) || open.empty()) continue;
      items_[i].partner = open.back();
      items_[open.back()].partner = i;
      open.pop_back();
    }
  }

  // What the bracket at `i` holds; `depth` brackets are around it.
  Bracket kind(size_t i, size_t depth) const {
    if (!is(i, "{")) return opens(i) ? Bracket::round : Bracket::none;
    if (depth == 0) {
      size_t head = i;
      if (head > 0 && is(head - 1, "]")) head = items_[head - 1].partner;
      return head > 1 && is_word(head - 2, "type") ? Bracket::listed : Bracket::lines;
    }
    if (i == 0 || !is(i - 1, ")")) return Bracket::lines;
    size_t head = items_[i - 1].partner;
    if (head > 0 && is(head - 1, "?")) --head;
    return head > 0 && is_word(head - 1, "match") ? Bracket::listed : Bracket::lines;
  }

  // Columns and line ends, once for all tokens.
  void measure() {
    size_t column = 0, ends = 0;
    for (size_t i = 0; i < items_.size(); ++i) {
      Item& item = items_[i];
      if (i > 0 && space(i)) ++column;
      if (!item.before.empty()) ++ends;
      item.column = column;
      item.ends = ends;
      column += item.text.size();
      for (const Remark& r : item.behind) column += 1 + r.text.size();
      if (line_ends_behind(i)) ++ends;
    }
  }

  // A line comment stands behind it, or a line of the program ends.
  bool line_ends_behind(size_t i) const {
    if (is(i, ";")) return true;
    return std::any_of(items_[i].behind.begin(), items_[i].behind.end(), [](const Remark& r) {
      return r.text.starts_with("//") || r.text.find('\n') != std::string_view::npos;
    });
  }

  // ---- White space in a line

  bool is_operand_end(size_t i) const {
    const Token& t = items_[i].token;
    if (t.kind == TokenKind::symbol) return closes(i) || is(i, "?");
    return t.kind != TokenKind::end;
  }
  // A minus that belongs to a number.
  bool is_sign(size_t i) const { return is(i, "-") && (i == 0 || !is_operand_end(i - 1)); }
  // The `=` of an attribute, key=value.
  bool is_attribute(size_t i) const {
    return is(i, "=") && i > 1 && items_[i - 1].token.kind == TokenKind::identifier &&
           (is(i - 2, "(") || is(i - 2, ",") || is(i - 2, "{"));
  }

  // Whether a blank stands between the token and the one before it.
  bool space(size_t i) const {
    size_t before = i - 1;
    if (is(i, ")") || is(i, "]") || is(i, ",") || is(i, ";") || is(i, ":") || is(i, "."))
      return false;
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

  // ---- Where lines break

  bool binary(size_t i) const {
    static constexpr std::string_view kBinary[] = {"+", "-",  "*", "/",  "//", "%",
                                                   "<", "<=", ">", ">=", "==", "!="};
    return i < items_.size() && items_[i].token.kind == TokenKind::symbol && !is_sign(i) &&
           std::find(std::begin(kBinary), std::end(kBinary), items_[i].text) != std::end(kBinary);
  }

  // A line must end between the two tokens.
  bool ends_between(size_t begin, size_t end) const {
    return items_[end].ends > items_[begin].ends;
  }
  size_t width(size_t begin, size_t end) const {
    return items_[end].column + items_[end].text.size() - items_[begin].column;
  }

  // The columns from token `i` to the next place where a line may end, at most what a line holds.
  size_t tail(size_t i) const {
    size_t begin = i, columns = 0;
    for (; i < items_.size() && columns <= kWidth; ++i) {
      if (is(i, "[")) i = items_[i].partner;
      columns = width(begin, i) + 1;
      if (opens(i) || is(i, ";") || is(i, ",") || line_ends_behind(i) || binary(i + 1)) break;
    }
    return columns;
  }

  // Whether the tokens from `begin`, which stands at column `at`, to `end` go in one line.
  bool fits(size_t at, size_t begin, size_t end) const {
    return !ends_between(begin, end) && at + width(begin, end) + tail(end + 1) <= kWidth;
  }

  // Round brackets in which a line ends, but not within braces inside.
  void find_broken() {
    broken_.assign(items_.size(), false);
    std::vector<size_t> open;
    for (size_t i = 0; i < items_.size(); ++i) {
      if (!items_[i].before.empty() && !open.empty()) broken_[open.back()] = true;
      if (closes(i) && !open.empty()) {
        size_t closed = open.back();
        open.pop_back();
        if (broken_[closed] && !is(i, "}") && !open.empty()) broken_[open.back()] = true;
      }
      if (opens(i)) open.push_back(i);
      if (line_ends_behind(i) && !open.empty()) broken_[open.back()] = true;
    }
  }

  bool breaks_round(size_t i, size_t at) const {
    size_t close = items_[i].partner;
    if (broken_[i]) return true;
    if (!ends_between(i, close)) return !fits(at, i, close);
    // What is left in the line goes as far as the first braces with lines of their own.
    for (size_t k = i + 1; k < close && at + width(i, k) <= kWidth; ++k) {
      if (is(k, "{") && ends_between(k, items_[k].partner)) return false;
    }
    return true;
  }

  // The branches of an if break together.
  bool breaks_lines(size_t i, size_t at) {
    if (auto known = branches_.find(i); known != branches_.end()) return known->second;
    std::vector<size_t> branches{i};
    size_t end = items_[i].partner;
    while (is_word(end + 1, "else")) {
      size_t next = end + 2;
      if (is_word(next, "if") && is(next + 1, "(")) next = items_[next + 1].partner + 1;
      if (!is(next, "{")) break;
      branches.push_back(next);
      end = items_[next].partner;
    }
    bool breaks = !fits(at, i, end);
    for (size_t b : branches) branches_[b] = breaks;
    return breaks;
  }

  // ---- Output

  struct Open {
    Bracket kind;
    bool broken;
    size_t indent;  // of its contents
  };

  size_t indent() const { return open_.empty() ? 0 : open_.back().indent; }
  size_t column() const { return out_.size() - line_start_; }

  void new_line(size_t indent, bool blank) {
    if (out_.empty()) return;
    out_ += blank ? "\n\n" : "\n";
    line_start_ = out_.size();
    out_.append(indent, ' ');
  }

  // Where a definition starts, and whether a blank line must stand before it.
  bool starts_definition(size_t i) const {
    return open_.empty() && (is_word(i, "def") || is_word(i, "extern") ||
                             (is_word(i, "type") && !(i > 0 && is_word(i - 1, "extern"))));
  }

  void emit(size_t i) {
    const Item& item = items_[i];
    bool end = item.token.kind == TokenKind::end;
    bool definition = starts_definition(i) || (end && open_.empty());
    bool line = line_pending_ || definition;
    bool starts = starts_line_ || definition;  // not in the middle of an expression
    bool apart = definition && !end && i > 0 && is(i - 1, "}");
    bool closing = closes(i) && !open_.empty();
    if (!line && binary(i) && column() + 1 + operand_width(i) > kWidth) line = true;
    size_t continued = starts || closing || is_word(i, "else") ? 0 : 2 * kIndent;
    for (const Remark& r : item.before) {
      if (remark_goes_on_) {
        out_ += " ";
      } else {
        new_line(indent() + continued, starts && !behind_open_ && (r.blank_before || apart));
      }
      out_ += r.text;
      remark_goes_on_ = !r.line_after;
      line = true;
      apart = behind_open_ = false;
    }
    if (closing) {
      line = line || open_.back().broken;
      open_.pop_back();
      apart = false;
    }
    if (remark_goes_on_) {
      out_ += end ? "" : " ";
    } else if (line && !end) {
      bool blank = starts && !closing && !behind_open_ && (item.blank_before || apart);
      new_line(indent() + continued, blank);
    } else if (i > 0 && !end && space(i)) {
      out_ += " ";
    }
    remark_goes_on_ = line_pending_ = starts_line_ = behind_open_ = false;
    size_t at = column();
    out_ += item.text;
    if (opens(i)) open(i, at);
    separate(i);
  }

  // From the operator at `i` to the end of its right side.
  size_t operand_width(size_t i) const {
    size_t k = i + 1;
    while (k + 1 < items_.size() && !closes(k) && !is(k, ",") && !is(k, ";") && !binary(k)) {
      k = items_[k].partner + 1;
    }
    return width(i, k - 1);
  }

  void open(size_t i, size_t at) {
    Bracket kind = this->kind(i, open_.size());
    bool empty = items_[i].partner == i + 1;
    bool broken = kind == Bracket::round ? breaks_round(i, at)
                  : kind == Bracket::listed || open_.empty()
                      ? !empty || ends_between(i, items_[i].partner)
                      : breaks_lines(i, at);
    size_t inner = std::min(indent() + (broken ? kIndent : 0), kMaxIndent);
    open_.push_back({kind, broken, inner});
    line_pending_ = starts_line_ = behind_open_ = broken;
  }

  // What comes behind the token in its line, and whether the line ends.
  void separate(size_t i) {
    const Item& item = items_[i];
    if (!open_.empty() && open_.back().broken) {
      bool listed = open_.back().kind == Bracket::listed;
      bool last = i + 1 < items_.size() && closes(i + 1) && !opens(i);
      if (listed && last && !is(i, ",")) out_ += ",";
      bool separator = is(i, ";") || (is(i, ",") && open_.back().kind != Bracket::lines);
      if (separator) line_pending_ = starts_line_ = true;
    }
    for (const Remark& r : item.behind) {
      out_ += is(i, "(") || is(i, "[") ? "" : " ";
      out_ += r.text;
    }
    if (line_ends_behind(i) && !line_pending_) line_pending_ = true;
  }

  std::string_view text_;
  Diagnostics diags_;
  text::TokenStream stream_;
  std::vector<Item> items_;
  std::vector<bool> broken_;
  std::unordered_map<size_t, bool> branches_;
  std::string out_;
  size_t line_start_ = 0;
  std::vector<Open> open_;
  bool line_pending_ = false;    // the next token starts a line
  bool starts_line_ = true;      // ... which is one of the program
  bool behind_open_ = false;     // ... the first one in a bracket
  bool remark_goes_on_ = false;  // a comment stands before the token in its line
};

}  // namespace

std::string format_text(const std::shared_ptr<const SourceFile>& source) {
  return Formatter(source).run();
}

}  // namespace relay
