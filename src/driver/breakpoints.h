// Where a debugger stops: at calls of an operator, a node, a source line or a function, or where a value is of a kind.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "driver/watched_run.h"

namespace relay {

class Breakpoints {
 public:
  Breakpoints(const Module& mod, const std::string& source_name);

  // `words` are those of the command: "break", "nn.dense". Returns the breakpoint as text, with its number. UserError
  // E0704 for what is not in the program, or cannot be read.
  std::string add(const std::vector<std::string>& words);
  // "delete", "2"; without a number, all. UserError E0704.
  void remove(const std::vector<std::string>& words);
  // The first breakpoint that the call, which has been made, hits, as text.
  std::optional<std::string> hit(const WatchedCall& call);
  // One line each.
  std::string text() const;

  // Operators, nodes and functions ("@f") of the program.
  const std::set<std::string>& names() const { return names_; }

 private:
  struct Breakpoint {
    enum Kind { operation, node, line, function, nan, inf, range, shape } kind;
    int number = 0;
    std::string name;  // as it was given
    uint32_t line_number = 0;
    double low = 0, high = 0;
    std::vector<int64_t> dims;
    // Of a function: whether its frame was open at the last call, and how many there were.
    bool inside = false;
  };
  static bool hits(Breakpoint& b, const WatchedCall& call);
  static std::string text_of(const Breakpoint& b);

  std::set<std::string> names_, operators_, nodes_;
  std::set<uint32_t> lines_;
  std::vector<Breakpoint> list_;
  int next_ = 1;
};

}  // namespace relay
