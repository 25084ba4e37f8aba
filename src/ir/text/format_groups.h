// What lines may break at: brackets, chains of operators, and the values of bindings and clauses.
#pragma once

#include <cstdint>

#include "ir/text/format_items.h"

namespace relay::text {

// How the parts of a group stand.
enum class Mode : uint8_t {
  open,    // not decided yet
  flat,    // in one line
  broken,  // each in lines of its own
  around,  // together, around the lines of one of them: f(fn (%x) { ... }, 1)
  links,   // a list: Cons(1, Cons(2, Nil)) breaks before each Cons, and is not indented by it
  filled,  // as many in a line as it holds
};

struct Group {
  enum class Kind : uint8_t { bracket, operators, value };
  Kind kind;
  Mode mode = Mode::open;
  size_t begin, end = 0;  // its first and last token
  size_t inner = 0;       // of the chains that begin at the same token, the next shorter one
  int precedence = 0;     // of a chain
  size_t first = 0;       // of a chain: its first operator
  size_t last = 0;        // where the last part begins, or the last operator
  size_t parts = 0;
  size_t widest = 0;  // columns of the widest part but the last
  size_t last_width = 0;
  bool numbers = true;  // all parts are numbers
  // The part that is a function, a match or an if, when there is one only.
  size_t blocks = 0, block = 0, block_end = 0;
  // The first of an if's branches decides how they stand, up to the end of the last one.
  size_t leader = 0, branches_end = 0;
  bool fills = false;  // of links: several in a line
  size_t base = 0;     // the indent of the line that it begins in
  size_t indent = 0;   // of its parts
};

// The groups of a text. Group 0 is no group.
class Groups {
 public:
  explicit Groups(const Items& items);

  Group& operator[](size_t group) { return groups_[group]; }
  const Group& operator[](size_t group) const { return groups_[group]; }
  // The group that may break the line before a token.
  size_t line(size_t token) const { return line_[token]; }
  // The bracket that opens at a token.
  size_t bracket(size_t token) const { return bracket_[token]; }
  // The longest chain of operators that begins at a token.
  size_t chain(size_t token) const { return chain_[token]; }

 private:
  // A bracket whose parts are being read, or the text itself.
  struct Open {
    size_t group;
    size_t part = 0;     // where the current part begins
    size_t operand = 0;  // ... and its current operand
    size_t chains;       // how many chains were begun outside
    size_t value = 0;
  };

  size_t add(Group::Kind kind, size_t begin);
  void begin_part(size_t token);
  void end_part(size_t token);
  void operation(size_t i);
  void value(size_t i);
  void open(size_t i);
  void count(Group& g, size_t begin, size_t end);

  const Items& items_;
  std::vector<Group> groups_;
  std::vector<size_t> line_, bracket_, chain_;
  std::vector<Open> open_;
  std::vector<size_t> chains_;  // that go on, the tightest last
};

}  // namespace relay::text
