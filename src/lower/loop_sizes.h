// Sizes of rows that only an iteration of a loop tells (lower/compose_loop.h).
//
//   let %r = dyn.strided_slice(%x, %k, %n, ...)    s0 = max(n - k, 0)
//   let %y = multiply(%r, %c)                      %r, %y: Tensor[(s0,), float32], for Tensor[(?,), float32]
//
// Each such size gets a name, whose variable in the kernel stands for an expression where it is computed. Equal expressions
// have one name, so that operators know that operands are of one size; a number, or the size of an operand, stays what it is.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "ir/expr.h"
#include "lower/interface/compute_rule.h"
#include "tir/arith/analyzer.h"
#include "tir/passes/statements.h"
#include "tir/stmt.h"

namespace relay {

bool has_open_sizes(const Type& type);

class LoopSizes {
 public:
  struct Statements {
    // A number as an expression that holds from here on.
    std::function<tir::PrimExpr(const tir::PrimExpr&)> keep;
    std::function<void(tir::Stmt)> emit;
    // A rule's statements with what its inputs stand for.
    std::function<tir::Stmt(const tir::Stmt&)> resolve;
    // Memory of the kernel.
    std::function<tir::Buffer(tir::DType, const std::vector<tir::PrimExpr>&)> fresh;
  };
  LoopSizes(DimScope& dims, tir::Analyzer& analyzer, Statements statements)
      : dims_(dims), analyzer_(analyzer), statements_(std::move(statements)) {}

  // The call of an operator on operands of these types, instead of those that it has.
  Call with_operands(const CallNode& c, const std::vector<Type>& types);

  // The call with names for the sizes of its result, which its operator's rule for sizes computes from `inputs`.
  Call with_result_named(const Call& c, const std::vector<tir::Tensor>& inputs);

  // Checks what an operator takes for granted: the least sizes, which the plan leaves to loops, as they may end before they
  // need them; of sizes that an iteration computes, everything.
  void check(const CallNode& c);

  // Sizes that are known before the kernel runs, and are no smaller; nothing where none is found.
  std::optional<std::vector<tir::PrimExpr>> room(const std::vector<tir::PrimExpr>& shape);

  // What variables of the kernel's sizes stand for that are none of the call.
  const tir::NodeMap& values() const { return values_; }

  // What is known ends with the statements in which it was found.
  size_t mark() const { return known_.size(); }
  void forget(size_t mark) { known_.resize(mark); }

 private:
  struct Known {
    tir::PrimExpr computed;
    tir::PrimExpr kept;  // what stands for it
    tir::PrimExpr variable;
    Dim name;
    tir::PrimExpr most;  // null: not known
  };
  Dim named(const tir::PrimExpr& computed, const tir::PrimExpr& most);
  void define(const Dim& d, const tir::PrimExpr& computed, const tir::PrimExpr& most);
  // Defines the sizes of a type that broadcast a named one.
  void define_broadcasts(const Type& type);
  // Whether a size is computed from a name of this loop's.
  bool is_own(const Dim& d) const;
  // Of an expression of numbers that are known before the kernel runs, itself.
  tir::PrimExpr most_of(const tir::PrimExpr& size);
  bool is_known_before(const tir::PrimExpr& e) const;
  // Sizes are not negative.
  void bind_dims();

  DimScope& dims_;
  tir::Analyzer& analyzer_;
  Statements statements_;
  size_t dims_bound_ = 0;
  std::vector<Known> known_;
  tir::NodeMap values_;
  std::vector<const Node*> own_;  // variables of names
};

}  // namespace relay
