// How strings are cut into tokens by patterns: what text_count and text_part do when their third argument is a token_word.
//
// A pattern is a regular expression in RE2's syntax without flags, Unicode classes, \Q and \C. The longest of the leftmost
// matches counts. RE2 itself tells only whether a string matches, where its archive is linked into a shared library; and the
// importer of models, which does not link RE2, refuses patterns that a run would not know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace relay::runtime {

// Removes the first code point of UTF-8 text, which must not be empty, and returns it.
uint32_t take_letter(std::string_view& text);

// A regular expression as steps of an automaton. find() takes time in the length of the text times that of the longest
// attempt to match times the number of steps.
class TokenPattern {
 public:
  // Null for what is not a pattern; `why` then says in which way.
  static std::optional<TokenPattern> parse(std::string_view pattern, std::string& why);

  struct Match {
    size_t begin, end;
  };
  // Memory of a search, which serves any number of them, by any pattern.
  struct Threads;
  // The longest of the matches that begin leftmost, at or behind `from`. Assertions see all of the text.
  std::optional<Match> find(std::string_view text, size_t from, Threads& threads) const;
  // Whether some text has an empty match.
  bool matches_empty() const;

  struct Range {
    uint32_t first, last;
  };
  enum class Assertion : int32_t { Begin, End, WordBoundary, NoWordBoundary };
  // What the automaton does next. Places of steps are relative to the step, so that a list of steps can be copied.
  struct Step {
    enum class Kind : uint8_t { Letter, Split, Jump, Assert } kind;
    int32_t a = 0;  // Letter: which of the sets; Split and Jump: a place; Assert: which Assertion
    int32_t b = 0;  // Split: the other place
  };

 private:
  friend class TokenPatternParser;

  std::optional<size_t> longest(std::string_view text, size_t from, Threads& threads) const;
  void follow(Threads& threads, int32_t step, std::string_view text, size_t at) const;

  std::vector<Step> steps_;               // the end of the list is the match
  std::vector<std::vector<Range>> sets_;  // of code points, in ascending order
};

// The rule by which strings are cut.
struct TokenRule {
  std::vector<TokenPattern> patterns;
  bool between = true;  // tokens are between the matches; else the matches of the one pattern
  size_t least = 1;     // letters of a token

  // Patterns are separated by line feeds. Null for what is not a rule; `why` then says in which way.
  static std::optional<TokenRule> parse(std::string_view patterns, bool between, int64_t least,
                                        std::string& why);

  // The tokens of a text, in order. Separators cut one after another: each cuts the pieces that the one before it left.
  std::vector<std::string_view> tokens(std::string_view text) const;
};

// The third argument of text_count, and with n added of text_part, whose second argument is the patterns.
constexpr int64_t kMostTokenLetters = (int64_t{1} << 30) - 1;
constexpr int64_t token_word(bool between, int64_t least) {
  return INT64_MIN | static_cast<int64_t>(between) << 62 | least << 32;
}
constexpr bool is_token_word(int64_t word) { return word < 0; }
constexpr bool between_of_word(int64_t word) { return (word >> 62 & 1) != 0; }
constexpr int64_t least_of_word(int64_t word) { return word >> 32 & kMostTokenLetters; }

}  // namespace relay::runtime
