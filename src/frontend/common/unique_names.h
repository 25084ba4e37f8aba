// Names of a model as names of a program: identifiers, made unique by numbers behind them.
#pragma once

#include <string>
#include <unordered_map>

namespace relay::frontend {

// A name as an identifier of Relay: other characters than ASCII letters and digits become underscores. It is cut where it
// is long.
std::string identifier(const std::string& name);

class UniqueNames {
 public:
  // The name itself, or, where it was given before, the first of name_1, name_2, ... that was not. Many equal names take
  // time in proportion to their number.
  std::string take(const std::string& name);

 private:
  std::unordered_map<std::string, int> next_;  // the number that is tried next, by name
};

}  // namespace relay::frontend
