// Which integers of a kernel count, and which are numbers of the program.
//
//   i * 4 + n     of a loop's variable and a size: counts elements or iterations, and never leaves int64
//   x[i] * 4 + n  of a number of the program, which was loaded: wraps around
//
// Variables of loops, sizes, constants and what is computed from them count. Loads, intrinsics, conversions from other
// numbers and what is computed from them do not.
#pragma once

#include <unordered_map>

#include "tir/stmt.h"

namespace relay::tir {

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
  bool of_parts(const PrimExprNode& e) const;
  bool known(const PrimExpr& e) const { return known_.at(e.get()).counts; }

  std::unordered_map<const Node*, Var> numbers_;  // variables that do not count
  std::unordered_map<const Node*, Known> known_;
};

}  // namespace relay::tir
