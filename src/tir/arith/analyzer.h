// What is known about index expressions, and their simplest form.
//
//   Analyzer a;
//   a.bind(i, index(0), index(8));
//   a.bind(j, index(0), index(4));
//   a.simplify(floor_div(i * 4 + j, index(4)));   // i
//   a.can_prove(lt(i * 4 + j, index(32)));        // true
//   auto inside = a.assume(lt(i, n));             // holds while `inside` lives
//
// int64 arithmetic that counts (tir/arith/counting.h) is taken not to overflow. That of numbers of the program wraps: its
// sums are collected, but compared, divided and bounded only where bounds prove that they do not wrap. Other integers are
// only folded. The simplified form of a sum is a list of products sorted by first appearance, so that equal sums are the same
// node within one Analyzer. Expressions of any depth are simplified without recursion;
// an expression is simplified once per Analyzer and set of assumptions.
#pragma once

#include <memory>
#include <vector>

#include "tir/arith/bounds.h"
#include "tir/stmt.h"

namespace relay::tir {

class Analyzer {
 public:
  Analyzer();
  ~Analyzer();
  Analyzer(const Analyzer&) = delete;
  Analyzer& operator=(const Analyzer&) = delete;

  // min <= var < min + extent, for constant and symbolic ends, from here on.
  void bind(const Var& var, const PrimExpr& min, const PrimExpr& extent);
  void bind(const Var& var, Bounds range);
  // Of an element of a buffer, which it has at all times.
  void bind(const Buffer& buffer, int64_t at, Bounds range);
  // The symbolic dimensions of a function are sizes: at least 0. Which of its variables count is known from here on.
  void bind_function(const PrimFunc& f);
  // The variable is `value`, which bounds it, and counts if `value` does.
  void define(const Var& var, const PrimExpr& value);

  // Takes a condition as true until the returned scope ends.
  class [[nodiscard]] Scope {
   public:
    Scope(Scope&& other) noexcept : analyzer_(other.analyzer_), facts_(other.facts_) {
      other.analyzer_ = nullptr;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    friend class Analyzer;
    Scope(Analyzer* analyzer, size_t facts) : analyzer_(analyzer), facts_(facts) {}
    Analyzer* analyzer_;
    size_t facts_;
  };
  Scope assume(const PrimExpr& cond);
  // Binds the variable of a loop and takes its range as not empty until the returned scope ends: behind the loop
  // nothing says that it ran. The bounds of the variable stay.
  Scope inside(const Var& var, const PrimExpr& min, const PrimExpr& extent);

  PrimExpr simplify(const PrimExpr& e);
  bool can_prove(const PrimExpr& cond);
  // Of an int64 expression.
  Bounds bounds(const PrimExpr& e);
  // a - b, if it is a constant.
  std::optional<int64_t> constant_difference(const PrimExpr& a, const PrimExpr& b);
  // The largest m and 0 <= r < m such that e = m*k + r for an integer k; m is 0 for a constant e.
  struct Modular {
    int64_t modulus;
    int64_t remainder;
  };
  Modular modular(const PrimExpr& e);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace relay::tir
