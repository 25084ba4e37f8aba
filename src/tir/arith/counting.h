// Which integers of a kernel count, and which are numbers of the program.
//
//   i * 4 + n     of a loop's variable and a size: counts elements or iterations, and never leaves int64
//   x[i] * 4 + n  of a number of the program, which was loaded: wraps around
//
// Variables of loops, sizes, small constants and what is computed from them count. So does a register that only steps: it gets
// what counts, or what such a register has, plus or minus a small constant - it would take years to leave int64. Other
// loads, intrinsics, conversions from other numbers and what is computed from them do not.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tir/stmt.h"

namespace relay::tir {

// What counts times a factor of up to this one counts as well: it is the size of a row.
inline constexpr int64_t kMostFactor = int64_t{1} << 31;

class Counting {
 public:
  Counting() = default;
  explicit Counting(const Stmt& body) { add(body); }

  // The definitions of a function's statements.
  void add(const Stmt& body);
  // A variable counts unless it is defined as a value that does not. Whether this one does.
  bool define(const Var& var, const PrimExpr& value);
  bool counts(const PrimExpr& e);

 private:
  struct Known {
    PrimExpr expr;  // keeps the key alive
    bool counts;
  };
  using Register = std::pair<const Node*, int64_t>;
  using Definitions = std::vector<std::pair<Var, PrimExpr>>;

  static std::optional<Register> register_of(const Node& e);
  bool is_counter(const Node& e) const;
  void add_counters(const Stmt& body, const Definitions& definitions);
  bool of_parts(const PrimExprNode& e) const;
  bool known(const PrimExpr& e) const { return known_.at(e.get()).counts; }

  std::unordered_map<const Node*, Var> numbers_;  // variables that do not count
  std::map<Register, Buffer> counters_;           // registers that count
  std::unordered_map<const Node*, Known> known_;
};

}  // namespace relay::tir
