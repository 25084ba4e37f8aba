#include "runtime/core/token_pattern.h"

#include <algorithm>
#include <utility>

namespace relay::runtime {
namespace {

using Range = TokenPattern::Range;
using Step = TokenPattern::Step;
using Set = std::vector<Range>;
using Steps = std::vector<Step>;

constexpr uint32_t kLastLetter = 0x10FFFF;
constexpr int kMostRepeats = 1000;        // RE2's
constexpr size_t kMostSteps = 50'000;     // of a pattern
constexpr size_t kMostOpenGroups = 1000;  // RE2's bound on nesting

bool is_word(unsigned char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

void append(Steps& to, const Steps& from) { to.insert(to.end(), from.begin(), from.end()); }

int32_t length(const Steps& steps) { return static_cast<int32_t>(steps.size()); }

Steps either(const Steps& a, const Steps& b) {
  Steps out{{Step::Kind::Split, 1, length(a) + 2}};
  append(out, a);
  out.push_back({Step::Kind::Jump, length(b) + 1});
  append(out, b);
  return out;
}

// `most` below 0: any number.
Steps repeated(const Steps& steps, int least, int most) {
  Steps out;
  for (int i = 0; i < least; ++i) append(out, steps);
  if (most < 0) {
    out.push_back({Step::Kind::Split, 1, length(steps) + 2});
    append(out, steps);
    out.push_back({Step::Kind::Jump, -(length(steps) + 1)});
  }
  for (int left = most - least; left > 0; --left) {
    out.push_back({Step::Kind::Split, 1, left * (length(steps) + 1)});
    append(out, steps);
  }
  return out;
}

Set normal(Set set) {
  std::ranges::sort(set, {}, &Range::first);
  Set out;
  for (const Range& r : set) {
    if (!out.empty() && r.first <= out.back().last + 1) {
      out.back().last = std::max(out.back().last, r.last);
    } else {
      out.push_back(r);
    }
  }
  return out;
}

Set complement(const Set& set) {
  Set out;
  uint32_t next = 0;
  for (const Range& r : normal(set)) {
    if (r.first > next) out.push_back({next, r.first - 1});
    next = r.last + 1;
  }
  if (next <= kLastLetter) out.push_back({next, kLastLetter});
  return out;
}

// The named sets, all of them ASCII's: [:name:], or a letter after a backslash.
struct NamedSet {
  std::string_view name;
  Set set;
};

const Set* named_set(std::string_view name) {
  static const std::vector<NamedSet> sets{
      {"d", {{'0', '9'}}},
      {"s", {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}}},
      {"w", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
      {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
      {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
      {"ascii", {{0, 0x7F}}},
      {"blank", {{'\t', '\t'}, {' ', ' '}}},
      {"cntrl", {{0, 0x1F}, {0x7F, 0x7F}}},
      {"digit", {{'0', '9'}}},
      {"graph", {{'!', '~'}}},
      {"lower", {{'a', 'z'}}},
      {"print", {{' ', '~'}}},
      {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
      {"space", {{'\t', '\r'}, {' ', ' '}}},
      {"upper", {{'A', 'Z'}}},
      {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
      {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
  };
  auto it = std::ranges::find(sets, name, &NamedSet::name);
  return it == sets.end() ? nullptr : &it->set;
}

}  // namespace

uint32_t take_letter(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : first >= 0xC0 ? 1 : 0;
  uint32_t c = more == 0 ? first : first & (0x3Fu >> more);
  for (size_t i = 1; i <= more && i < text.size(); ++i) {
    c = c << 6 | (static_cast<unsigned char>(text[i]) & 0x3Fu);
  }
  text.remove_prefix(std::min(text.size(), more + 1));
  return c;
}

// ---- From text to steps, with the open groups as a stack

class TokenPatternParser {
 public:
  TokenPatternParser(std::string_view pattern, std::string& why) : rest_(pattern), why_(why) {}

  std::optional<TokenPattern> parse() {
    open_.emplace_back();
    while (!rest_.empty()) {
      if (!item()) return std::nullopt;
      if (size_ > kMostSteps) return refuse("the pattern is too large"), std::nullopt;
    }
    if (open_.size() > 1) return refuse("a group is not closed"), std::nullopt;
    out_.steps_ = closed(open_.back());
    return std::move(out_);
  }

 private:
  struct Group {
    std::optional<Steps> alternatives;  // in front of the last '|'
    Steps sequence;                     // in front of the last item
    Steps last;                         // the last item, which a repetition takes
    bool repeatable = false;
  };

  bool refuse(std::string why) {
    why_ = std::move(why);
    return false;
  }

  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  void put(Steps steps, bool repeatable = true) {
    Group& g = open_.back();
    append(g.sequence, g.last);
    size_ += steps.size();
    g.last = std::move(steps);
    g.repeatable = repeatable;
  }

  void put(Set set) {
    out_.sets_.push_back(normal(std::move(set)));
    put(Steps{{Step::Kind::Letter, static_cast<int32_t>(out_.sets_.size() - 1)}});
  }

  void put(TokenPattern::Assertion a) { put(Steps{{Step::Kind::Assert, static_cast<int32_t>(a)}}); }

  Steps closed(Group& g) {
    append(g.sequence, g.last);
    g.last.clear();
    return g.alternatives ? either(*g.alternatives, g.sequence) : std::move(g.sequence);
  }

  bool item() {
    using A = TokenPattern::Assertion;
    if (take("(")) {
      if (rest_.starts_with("?") && !take("?:")) return refuse("flags and names of groups");
      if (open_.size() > kMostOpenGroups) return refuse("groups are nested too deeply");
      open_.emplace_back();
    } else if (take(")")) {
      if (open_.size() == 1) return refuse("a ')' closes no group");
      Steps steps = closed(open_.back());
      open_.pop_back();
      size_ -= std::min(size_, steps.size());
      put(std::move(steps));
    } else if (take("|")) {
      Group& g = open_.back();
      Steps before = closed(g);
      g = Group();
      g.alternatives = std::move(before);
      size_ += 2;
    } else if (take("^")) {
      put(A::Begin);
    } else if (take("$")) {
      put(A::End);
    } else if (take(".")) {
      put(complement({{'\n', '\n'}}));
    } else if (take("[")) {
      return bracket();
    } else if (take("*")) {
      return repeat(0, -1);
    } else if (take("+")) {
      return repeat(1, -1);
    } else if (take("?")) {
      return repeat(0, 1);
    } else if (rest_.starts_with("{")) {
      return braces();
    } else if (take("\\b")) {
      put(A::WordBoundary);
    } else if (take("\\B")) {
      put(A::NoWordBoundary);
    } else if (take("\\A")) {
      put(A::Begin);
    } else if (take("\\z")) {
      put(A::End);
    } else if (rest_.starts_with("\\")) {
      std::optional<Set> set = escape();
      if (set) put(std::move(*set));
      return set.has_value();
    } else {
      const uint32_t c = take_letter(rest_);
      put(Set{{c, c}});
    }
    return true;
  }

  // A '?' after a repetition requests few: of matches with the same start the longest counts all the same.
  bool repeat(int least, int most) {
    take("?");
    Group& g = open_.back();
    if (!g.repeatable) return refuse("a repetition has nothing to repeat");
    if (std::max(least, most) > kMostRepeats) return refuse("a repetition of more than 1000");
    if (most >= 0 && most < least) return refuse("a repetition whose bounds are exchanged");
    const size_t copies = static_cast<size_t>(std::max({least + 1, most, 1}));
    size_ += (g.last.size() + 2) * copies;
    if (size_ > kMostSteps) return refuse("the pattern is too large");
    g.last = repeated(g.last, least, most);
    g.repeatable = false;
    return true;
  }

  std::optional<int> number() {
    size_t digits = 0;
    int value = 0;
    while (digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9') {
      value = std::min(value * 10 + (rest_[digits++] - '0'), kMostRepeats + 1);
    }
    rest_.remove_prefix(digits);
    return digits > 0 ? std::optional(value) : std::nullopt;
  }

  // {n}, {n,} and {n,m}; another brace is a letter.
  bool braces() {
    const std::string_view from = rest_;
    take("{");
    if (std::optional<int> least = number()) {
      int most = *least;
      if (take(",")) most = number().value_or(-1);
      if (take("}")) {
        if (*least > kMostRepeats) return refuse("a repetition of more than 1000");
        return repeat(*least, most);
      }
    }
    rest_ = from.substr(1);
    put(Set{{'{', '{'}});
    return true;
  }

  // The letters that a backslash and the following letters denote.
  std::optional<Set> escape() {
    take("\\");
    if (rest_.empty()) return refuse("a '\\' at the end"), std::nullopt;
    const uint32_t c = take_letter(rest_);
    const char name = c < 0x80 ? static_cast<char>(c) : '\0';
    const char lower = static_cast<char>(name | 0x20);
    if (lower == 'd' || lower == 's' || lower == 'w') {
      const Set& set = *named_set({&lower, 1});
      return name == lower ? set : complement(set);
    }
    constexpr std::string_view kNames = "tnrfva", kLetters = "\t\n\r\f\v\a";
    if (const size_t at = kNames.find(name); name != '\0' && at != std::string_view::npos) {
      const auto letter = static_cast<uint32_t>(kLetters[at]);
      return Set{{letter, letter}};
    }
    if (name == 'x') return code_point();
    if (name == '\0') return refuse("a '\\' in front of a letter that is not ASCII"), std::nullopt;
    if (is_word(static_cast<unsigned char>(name))) {
      return refuse(std::string("the escape \\") + name), std::nullopt;
    }
    return Set{{c, c}};
  }

  // \x41 and \x{1F600}
  std::optional<Set> code_point() {
    const bool braced = take("{");
    uint32_t value = 0;
    size_t digits = 0;
    for (; !rest_.empty() && digits < (braced ? 8 : 2); ++digits) {
      const char c = rest_[0], lower = static_cast<char>(c | 0x20);
      const bool decimal = c >= '0' && c <= '9';
      if (!decimal && (lower < 'a' || lower > 'f')) break;
      value = value * 16 + static_cast<uint32_t>(decimal ? c - '0' : lower - 'a' + 10);
      rest_.remove_prefix(1);
    }
    const bool whole = braced ? digits > 0 && take("}") : digits == 2;
    if (!whole || value > kLastLetter) return refuse("the escape \\x"), std::nullopt;
    return Set{{value, value}};
  }

  // [...], after its '['
  bool bracket() {
    const bool negated = take("^");
    Set set;
    for (bool first = true; first || !take("]"); first = false) {
      if (rest_.empty()) return refuse("a '[' is not closed");
      std::optional<Set> part = member();
      if (!part) return false;
      const bool is_range = rest_.size() >= 2 && rest_[0] == '-' && rest_[1] != ']';
      if (is_range) {
        take("-");
        std::optional<Set> last = member();
        if (!last) return false;
        auto single = [](const Set& s) { return s.size() == 1 && s[0].first == s[0].last; };
        if (!single(*part) || !single(*last) || (*part)[0].first > (*last)[0].first) {
          return refuse("a range in brackets whose ends are not letters in order");
        }
        (*part)[0].last = (*last)[0].first;
      }
      set.insert(set.end(), part->begin(), part->end());
    }
    put(negated ? complement(set) : std::move(set));
    return true;
  }

  std::optional<Set> member() {
    if (rest_.empty()) return refuse("a '[' is not closed"), std::nullopt;
    if (take("[:")) {
      const size_t end = rest_.find(":]");
      std::string_view name = rest_.substr(0, end);
      const bool negated = name.starts_with('^');
      if (negated) name.remove_prefix(1);
      const Set* set = name.size() > 1 ? named_set(name) : nullptr;
      if (end == std::string_view::npos || set == nullptr) {
        return refuse("a '[:' with no name of letters"), std::nullopt;
      }
      rest_.remove_prefix(end + 2);
      return negated ? complement(*set) : *set;
    }
    if (rest_.starts_with("\\")) return escape();
    const uint32_t c = take_letter(rest_);
    return Set{{c, c}};
  }

  std::string_view rest_;
  std::string& why_;
  std::vector<Group> open_;
  TokenPattern out_;
  size_t size_ = 0;  // at least the steps so far
};

std::optional<TokenPattern> TokenPattern::parse(std::string_view pattern, std::string& why) {
  return TokenPatternParser(pattern, why).parse();
}

// ---- Matching: all paths through the steps at once

struct TokenPattern::Threads {
  // Steps that wait for a letter; `seen` has the round for those that this round has reached.
  std::vector<int32_t> waiting, now, stack;
  std::vector<uint64_t> seen;
  uint64_t round = 0;
  bool matched = false;
};

// Adds the steps that can be reached from a step without a letter.
void TokenPattern::follow(Threads& threads, int32_t step, std::string_view text, size_t at) const {
  auto holds = [&](Assertion a) {
    if (a == Assertion::Begin) return at == 0;
    if (a == Assertion::End) return at == text.size();
    const bool before = at > 0 && is_word(static_cast<unsigned char>(text[at - 1]));
    const bool behind = at < text.size() && is_word(static_cast<unsigned char>(text[at]));
    return (before != behind) == (a == Assertion::WordBoundary);
  };
  threads.stack.assign(1, step);
  while (!threads.stack.empty()) {
    const int32_t place = threads.stack.back();
    threads.stack.pop_back();
    uint64_t& seen = threads.seen[static_cast<size_t>(place)];
    if (std::exchange(seen, threads.round) == threads.round) continue;
    if (static_cast<size_t>(place) == steps_.size()) {
      threads.matched = true;
      continue;
    }
    const Step& s = steps_[static_cast<size_t>(place)];
    switch (s.kind) {
      case Step::Kind::Letter:
        threads.waiting.push_back(place);
        break;
      case Step::Kind::Split:
        threads.stack.push_back(place + s.b);
        threads.stack.push_back(place + s.a);
        break;
      case Step::Kind::Jump:
        threads.stack.push_back(place + s.a);
        break;
      case Step::Kind::Assert:
        if (holds(static_cast<Assertion>(s.a))) threads.stack.push_back(place + 1);
        break;
    }
  }
}

std::optional<size_t> TokenPattern::longest(std::string_view text, size_t from,
                                            Threads& threads) const {
  std::optional<size_t> end;
  threads.waiting.clear();
  threads.matched = false;
  ++threads.round;
  follow(threads, 0, text, from);
  for (size_t at = from;;) {
    if (std::exchange(threads.matched, false)) end = at;
    if (threads.waiting.empty() || at == text.size()) return end;
    std::string_view rest = text.substr(at);
    const uint32_t c = take_letter(rest);
    at = text.size() - rest.size();
    threads.now.swap(threads.waiting);
    threads.waiting.clear();
    ++threads.round;
    for (int32_t step : threads.now) {
      const Set& set = sets_[static_cast<size_t>(steps_[static_cast<size_t>(step)].a)];
      auto behind = std::ranges::upper_bound(set, c, {}, &Range::first);
      if (behind != set.begin() && c <= std::prev(behind)->last) {
        follow(threads, step + 1, text, at);
      }
    }
  }
}

std::optional<TokenPattern::Match> TokenPattern::find(std::string_view text, size_t from,
                                                      Threads& threads) const {
  threads.seen.resize(std::max(threads.seen.size(), steps_.size() + 1));
  for (size_t begin = from; begin <= text.size();) {
    if (std::optional<size_t> end = longest(text, begin, threads)) return Match{begin, *end};
    if (begin == text.size()) break;
    std::string_view rest = text.substr(begin);
    take_letter(rest);
    begin = text.size() - rest.size();
  }
  return std::nullopt;
}

bool TokenPattern::matches_empty() const {
  std::vector<bool> seen(steps_.size() + 1, false);
  std::vector<size_t> stack{0};
  auto go = [&](size_t from, int32_t by) {
    stack.push_back(static_cast<size_t>(static_cast<int64_t>(from) + by));
  };
  while (!stack.empty()) {
    const size_t at = stack.back();
    stack.pop_back();
    if (at == steps_.size()) return true;
    if (seen[at]) continue;
    seen[at] = true;
    const Step& s = steps_[at];
    if (s.kind == Step::Kind::Assert) go(at, 1);
    if (s.kind == Step::Kind::Jump || s.kind == Step::Kind::Split) go(at, s.a);
    if (s.kind == Step::Kind::Split) go(at, s.b);
  }
  return false;
}

// ---- Tokens

namespace {

bool has_letters(std::string_view text, size_t least) {
  if (text.size() < least) return false;
  size_t letters = 0;
  for (const char c : text) letters += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return letters >= least;
}

}  // namespace

std::optional<TokenRule> TokenRule::parse(std::string_view patterns, bool between, int64_t least,
                                          std::string& why) {
  TokenRule rule;
  rule.between = between;
  rule.least = static_cast<size_t>(least);
  for (bool more = true; more;) {
    const size_t end = patterns.find('\n');
    std::optional<TokenPattern> p = TokenPattern::parse(patterns.substr(0, end), why);
    if (!p) return std::nullopt;
    if (between && p->matches_empty()) {
      why = "a separator that matches the empty string";
      return std::nullopt;
    }
    rule.patterns.push_back(std::move(*p));
    more = end != std::string_view::npos;
    if (more) patterns.remove_prefix(end + 1);
  }
  if (!between && rule.patterns.size() > 1) {
    why = "tokens are the matches of one pattern";
    return std::nullopt;
  }
  return rule;
}

std::vector<std::string_view> TokenRule::tokens(std::string_view text) const {
  std::vector<std::string_view> out;
  TokenPattern::Threads threads;
  if (between) {
    out.push_back(text);
    for (const TokenPattern& separator : patterns) {
      for (std::string_view piece : std::exchange(out, {})) {
        size_t from = 0;
        auto cut = [&](size_t to) {
          const std::string_view token = piece.substr(from, to - from);
          if (has_letters(token, least)) out.push_back(token);
        };
        while (auto match = separator.find(piece, from, threads)) {
          cut(match->begin);
          from = match->end;
        }
        cut(piece.size());
      }
    }
    return out;
  }
  // After a match that is too short, and so after an empty one, the search continues at its second letter.
  for (size_t from = 0; auto match = patterns[0].find(text, from, threads);) {
    const std::string_view token = text.substr(match->begin, match->end - match->begin);
    if (has_letters(token, least)) {
      out.push_back(token);
      from = match->end;
    } else if (match->begin == text.size()) {
      break;
    } else {
      std::string_view rest = text.substr(match->begin);
      take_letter(rest);
      from = text.size() - rest.size();
    }
  }
  return out;
}

}  // namespace relay::runtime
