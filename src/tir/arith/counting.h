// Which integers of a kernel count, and which are numbers of the program.
//
//   i * h * w + n  of a loop's variable and sizes: counts elements or iterations, and is taken not to leave int64
//   x[i] * 4 + n   of a number of the program, which was loaded: wraps around
//   i * i, n^3     are the program's arithmetic as well: wrap around
//
// Variables of loops, sizes, small constants and what is computed from them count. So does a register that only steps: it
// gets a variable, a size or a constant, or what such a register has, plus or minus a small constant - after 2^48 steps it
// may leave int64. Other loads, intrinsics, conversions from floats and from uint64, and what is computed from them do not.
//
// A product counts as a stride of a tensor or an offset into one does: it has at most one variable of a loop, each size at
// most twice, and constants whose product is at most kMostFactor. A quotient by a constant has that constant less.
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
  // The same of the variable of a loop that begins at `min`.
  bool define_loop(const Var& var, const PrimExpr& min);
  bool counts(const PrimExpr& e);

  // A buffer and an element of it.
  using Register = std::pair<const Node*, int64_t>;
  // The register that an expression loads, if it is a load of one.
  static std::optional<Register> register_of(const Node& e);

 private:
  // The most factors of the products that an expression is a sum of.
  struct Factors {
    int64_t constant = 1;  // the product of the constants
    int loops = 0;         // variables of loops
    std::map<const Node*, int> sizes;
    bool is_one() const;  // at most, beside constants
    bool operator==(const Factors&) const = default;
  };
  struct Known {
    PrimExpr expr;                   // keeps the key alive
    std::optional<Factors> factors;  // of what counts
  };
  struct Defined {
    Var var;  // keeps the key alive
    Factors factors;
  };
  struct Definition {
    Var var;
    PrimExpr value;
    bool is_loop;
  };
  using Counters = std::map<Register, Buffer>;
  using Definitions = std::vector<Definition>;

  bool is_counter(const Node& e) const;
  // `counters_` is empty until they are known.
  Counters find_counters(const Stmt& body, const Definitions& definitions);
  bool define(const Var& var, const PrimExpr& value, bool is_loop);
  const Known& look(const PrimExpr& e);
  std::optional<Factors> of_parts(const PrimExprNode& e) const;
  std::optional<Factors> of_binary(const BinaryNode& b) const;
  const std::optional<Factors>& known(const PrimExpr& e) const {
    return known_.at(e.get()).factors;
  }
  static std::optional<Factors> either(const std::optional<Factors>& a,
                                       const std::optional<Factors>& b);
  static std::optional<Factors> product(const Factors& a, const Factors& b);
  static Factors quotient(Factors a, int64_t by);

  inline static const Factors kOfALoop{1, 1, {}};

  std::unordered_map<const Node*, Var> numbers_;  // variables that do not count
  Counters counters_;                             // registers that count, of the last statements
  std::unordered_map<const Node*, Defined> defined_;  // variables that count; others are sizes
  std::unordered_map<const Node*, Known> known_;
};

}  // namespace relay::tir
