// One walk over the tokens. What begins at a token decides there how its parts stand, from the
// column that was reached: in one line if it and what must follow it fit, else by its own rule. The
// outer construct decides before those inside it.
#include "ir/text/format.h"

#include <algorithm>

#include "ir/text/format_groups.h"

namespace relay {
namespace {

using text::Bracket;
using text::Group;
using text::Groups;
using text::Item;
using text::Items;
using text::Mode;
using text::Remark;

constexpr size_t kWidth = 100;
constexpr size_t kIndent = 2;
constexpr size_t kMaxIndent = kIndent * kMaxIndentLevels;
// Parts of a list that are not wider than this share a line.
constexpr size_t kShort = 16;

class Formatter {
 public:
  explicit Formatter(const std::shared_ptr<const SourceFile>& source)
      : items_(source), groups_(items_) {}

  std::string run() {
    for (size_t i = 0; i < items_.size(); ++i) emit(i);
    while (out_.ends_with("\n")) out_.pop_back();
    if (!out_.empty()) out_ += "\n";
    if (items_.has_metadata()) out_ += "\n#[metadata]" + std::string(items_.metadata());
    return std::move(out_);
  }

 private:
  // ---- What fits

  // The columns from behind token `i` to the next place where the line may end, at most what a line
  // holds. The type of a result stays with its head.
  size_t tail(size_t i) const {
    if (items_.line_ends_behind(i)) return 0;
    size_t columns = 0;
    bool result = false;
    for (size_t k = i + 1; k < items_.size() && columns <= kWidth; ++k) {
      if (items_.closes(k) || items_.is(k, ",")) result = false;
      if (!result && may_break_before(k)) break;
      if (items_.is(k, "->")) result = true;
      if (items_.is(k, "{") || items_.is(k, "=")) result = false;
      if (items_.is(k, "[") || (result && items_.is(k, "("))) k = items_[k].partner;
      columns = items_.width(i, k) - items_[i].text.size();
      if (items_.line_ends_behind(k)) break;
    }
    return columns;
  }

  bool may_break_before(size_t i) const {
    size_t g = groups_.line(i);
    if (g == 0) return false;
    switch (groups_[g].mode) {
      case Mode::flat:
      case Mode::around:
        return false;
      case Mode::links:
        return i == groups_[g].last;
      default:
        return true;
    }
  }

  // Whether the tokens from `begin`, which stands at column `at`, to `end` go in one line.
  bool fits(size_t at, size_t begin, size_t end) const {
    size_t columns = at + items_.width(begin, end);
    return columns <= kWidth && !items_.ends_between(begin, end) && columns + tail(end) <= kWidth;
  }

  // The same, remembered for what is inside.
  bool goes_flat(size_t at, size_t begin, size_t end) {
    if (begin < flat_until_) return true;
    if (!fits(at, begin, end)) return false;
    flat_until_ = end;
    return true;
  }

  // The first brace of the part that begins at `i`, outside of its brackets.
  size_t brace(size_t i, size_t end) const {
    while (i < end && !items_.is(i, "{")) i = items_[i].partner + 1;
    return i;
  }

  // ---- What each construct does when it does not fit

  Mode bracket_mode(size_t i, size_t at) {
    Group& g = groups_[groups_.bracket(i)];
    if (g.end == i + 1 && !items_.ends_between(i, g.end)) return Mode::flat;
    switch (items_.bracket(i)) {
      case Bracket::body:
      case Bracket::listed:
        return Mode::broken;
      case Bracket::lines: {
        const Group& leader = groups_[g.leader];
        if (leader.begin != i) return leader.mode;
        return goes_flat(at, i, g.branches_end) ? Mode::flat : Mode::broken;
      }
      default:
        break;
    }
    if (!active_.empty() && is_link(i)) {
      const Group& outer = groups_[active_.back()];
      if (outer.mode == Mode::links && outer.last + 1 == i) {
        g.fills = outer.fills;
        return Mode::links;
      }
    }
    if (goes_flat(at, i, g.end)) return Mode::flat;
    if (goes_around(g, at)) return Mode::around;
    if (goes_by_links(i, indent())) return Mode::links;
    return g.numbers && g.parts > 3 ? Mode::filled : Mode::broken;
  }

  // f(fn (%x: int32) { lines }, 1) and, for parts that break by themselves, f((a, b)), (a + b).
  bool goes_around(const Group& g, size_t at) const {
    size_t first = g.begin + 1;
    if (g.parts == 1 && items_.opens(first) && items_[first].partner + 1 == g.end) return true;
    if (g.parts == 1 && g.begin > 0 && groups_.chain(first) != 0) {
      bool alone = !items_.is_word(g.begin - 1, "if") && !items_.is_word(g.begin - 1, "match") &&
                   items_.space(g.begin);
      if (alone && groups_[groups_.chain(first)].end + 1 == g.end) return true;
    }
    if (g.blocks != 1 || (g.block != first && g.block != g.last)) return false;
    if (g.parts > 1 && !items_.is_word(g.block, "fn")) return false;
    size_t lines = brace(g.block, g.end);
    return !items_.ends_between(g.begin, lines) && at + items_.width(g.begin, lines) <= kWidth &&
           !items_.ends_between(g.block_end, g.end) &&
           indent() + items_.width(g.block_end, g.end) + tail(g.end) <= kWidth;
  }

  // A call whose last argument is a call of the same function: Cons(%x, Cons(...)).
  bool is_link(size_t i) const {
    const Group& g = groups_[groups_.bracket(i)];
    return items_.is(i, "(") && i > 0 && !items_.space(i) && g.parts >= 2 &&
           items_[g.last].text == items_[i - 1].text && items_.is(g.last + 1, "(") &&
           items_[g.last + 1].partner + 1 == g.end;
  }

  // Three links at least, which are short or would step to the right one by one.
  bool goes_by_links(size_t i, size_t base) {
    if (!is_link(i) || !is_link(groups_[groups_.bracket(i)].last + 1)) return false;
    Group& g = groups_[groups_.bracket(i)];
    g.fills = true;
    for (size_t k = i; is_link(k) && g.fills; k = groups_[groups_.bracket(k)].last + 1) {
      g.fills = groups_[groups_.bracket(k)].widest <= kShort;
    }
    return g.fills || items_.ends_between(g.last, g.end) ||
           base + kIndent + items_.width(g.last, g.end) > kWidth;
  }

  Mode chain_mode(const Group& g, size_t at) {
    if (goes_flat(at, g.begin, g.end)) return Mode::flat;
    // %x + match (%y) { lines }
    size_t lines = brace(g.last + 1, g.end);
    bool around = items_.is(g.end, "}") && items_.ends_between(lines, g.end) &&
                  !items_.ends_between(g.begin, lines) &&
                  at + items_.width(g.begin, lines) <= kWidth;
    return around ? Mode::around : Mode::broken;
  }

  // Broken when the value stands in the line below.
  Mode value_mode(const Group& g) {
    size_t begin = g.begin, end = g.end, at = column() + 1;
    if (begin < flat_until_) return Mode::flat;
    if (!items_[begin].before.empty() || items_.line_ends_behind(begin - 1)) return Mode::broken;
    if (goes_flat(at, begin, end)) return Mode::flat;
    size_t below = indent() + kIndent;
    size_t opening = begin;
    while (opening < end && !items_.opens(opening)) ++opening;
    bool opens_here = at + items_.width(begin, opening) <= kWidth;
    if (items_.is(end, "}")) {
      // The head of a function, match or if stays together.
      size_t head = items_.width(begin, brace(begin, end));
      bool fits_below = at + head > kWidth && below + head <= kWidth;
      return opens_here && !fits_below ? Mode::around : Mode::broken;
    }
    if (fits(below, begin, end)) return Mode::broken;
    if (groups_.chain(begin) != 0) {
      const Group& chain = groups_[groups_.chain(begin)];
      return at + items_.width(begin, chain.first - 1) <= kWidth ? Mode::around : Mode::broken;
    }
    if (items_.is(end, ")") && items_[end].partner == begin + 1 &&
        goes_by_links(begin + 1, below)) {
      return Mode::broken;
    }
    return opens_here ? Mode::around : Mode::broken;
  }

  // ---- Output

  size_t indent() const { return active_.empty() ? 0 : groups_[active_.back()].indent; }
  size_t column() const { return out_.size() - line_start_; }

  void new_line(size_t indent, bool blank) {
    if (out_.empty()) return;
    out_ += blank ? "\n\n" : "\n";
    line_start_ = out_.size();
    out_.append(indent, ' ');
  }

  void begin(size_t group, Mode mode) {
    Group& g = groups_[group];
    g.mode = mode;
    g.base = indent();
    bool deeper =
        mode == Mode::filled || (mode == Mode::broken && g.kind != Group::Kind::operators);
    g.indent = std::min(g.base + (deeper ? kIndent : 0), kMaxIndent);
    active_.push_back(group);
  }

  // Whether the group that may break before token `i` does.
  bool breaks(size_t i) {
    size_t group = groups_.line(i);
    if (group == 0) return false;
    Group& g = groups_[group];
    if (g.kind == Group::Kind::value) begin(group, value_mode(g));
    switch (g.mode) {
      case Mode::broken:
        if (g.kind != Group::Kind::operators) return true;
        // An operator with a comment behind it ends its line.
        if (items_.line_ends_behind(i)) return false;
        g.indent = std::min(g.base + kIndent, kMaxIndent);
        return true;
      case Mode::filled:
        return i == g.begin + 1 || i == g.end || overflows(i);
      case Mode::links:
        return i == g.last && (!g.fills || overflows(i));
      default:
        return false;
    }
  }

  // Whether the line cannot take the next of parts that share lines.
  bool overflows(size_t i) const {
    return !items_[i].before.empty() || items_.line_ends_behind(i - 1) ||
           column() + 1 + part_width(i) > kWidth;
  }

  // Of a number, or of a link without its last argument, and what follows it.
  size_t part_width(size_t i) const {
    if (!items_.is(i + 1, "(")) return items_.width(i, i + 1);
    const Group& call = groups_[groups_.bracket(i + 1)];
    return is_link(i + 1) ? items_.width(i, call.last - 1)
                          : items_.width(i, call.end) + tail(call.end);
  }

  // Where a definition starts, and whether a blank line must stand before it.
  bool starts_definition(size_t i) const {
    return active_.empty() &&
           (items_.is_word(i, "def") || items_.is_word(i, "extern") ||
            (items_.is_word(i, "type") && !(i > 0 && items_.is_word(i - 1, "extern"))));
  }

  void emit(size_t i) {
    const Item& item = items_[i];
    bool end = item.token.kind == text::TokenKind::end;
    bool definition = starts_definition(i) || (end && active_.empty());
    bool apart = definition && !end && i > 0 && items_.is(i - 1, "}");
    bool closing = items_.closes(i) && !active_.empty();
    bool own = breaks(i);
    // A part of its own, not the middle of an expression.
    bool starts = definition || i == 0 ||
                  (own && groups_[groups_.line(i)].kind == Group::Kind::bracket &&
                   groups_[groups_.line(i)].mode == Mode::broken);
    bool first = i > 0 && items_.opens(i - 1);
    size_t margin = indent();
    if (closing) {
      margin = groups_[active_.back()].base;
    } else if (!own && !starts && !items_.is_word(i, "else")) {
      margin += 2 * kIndent;
    }
    bool line = own || definition || (i > 0 && items_.line_ends_behind(i - 1));
    bool blank = starts && !first;  // an empty line may stand before it
    for (const Remark& r : item.before) {
      if (remark_goes_on_) {
        out_ += " ";
      } else {
        new_line(closing && own ? indent() : margin, blank && (r.blank_before || apart));
      }
      out_ += r.text;
      remark_goes_on_ = !r.line_after;
      line = true;
      blank = starts;
      apart = false;
    }
    if (remark_goes_on_) {
      out_ += end ? "" : " ";
    } else if (line && !end) {
      new_line(margin, blank && !closing && (item.blank_before || apart));
    } else if (i > 0 && !end && items_.space(i)) {
      out_ += " ";
    }
    remark_goes_on_ = false;
    for (size_t c = groups_.chain(i); c != 0; c = groups_[c].inner) {
      begin(c, chain_mode(groups_[c], column()));
    }
    size_t at = column();
    out_ += item.text;
    if (items_.opens(i)) begin(groups_.bracket(i), bracket_mode(i, at));
    behind(i);
    while (!active_.empty() && groups_[active_.back()].end == i) active_.pop_back();
  }

  // The comma behind the last clause or constructor, and comments.
  void behind(size_t i) {
    bool last = i + 1 < items_.size() && items_.is(i + 1, "}") && !items_.opens(i);
    if (last && items_.bracket(items_[i + 1].partner) == Bracket::listed && !items_.is(i, ",")) {
      out_ += ",";
    }
    for (const Remark& r : items_[i].behind) {
      bool bare = items_.is(i, "(") || items_.is(i, "[");
      out_ += bare && !r.text.starts_with("//") ? "" : text::gap(r);
      out_ += r.text;
    }
  }

  Items items_;
  Groups groups_;
  std::string out_;
  size_t line_start_ = 0;
  std::vector<size_t> active_;   // the groups around the current token
  size_t flat_until_ = 0;        // the token up to which nothing breaks
  bool remark_goes_on_ = false;  // a comment stands before the token in its line
};

}  // namespace

std::string format_text(const std::shared_ptr<const SourceFile>& source) {
  return Formatter(source).run();
}

}  // namespace relay
