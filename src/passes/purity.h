// What evaluating an expression does besides giving its value.
//
// The one place that knows when an expression may be moved, merged or dropped. Effects are joined
// over everything that an evaluation reaches: operands, branches, and the bodies of functions that
// are known to be called. A function as a value does nothing; calling a function that is not known
// (a parameter, a field of a tuple) may do everything.
#pragma once

#include <unordered_map>

#include "ir/module.h"

namespace relay {

// A set of effects.
class Effects {
 public:
  constexpr Effects() = default;
  static constexpr Effects none() { return Effects(); }
  // Makes a reference, which is a thing of its own: two are not one.
  static constexpr Effects alloc() { return Effects(1); }
  // Reads a reference: its value depends on when.
  static constexpr Effects read() { return Effects(2); }
  // Writes a reference, draws random numbers, does I/O.
  static constexpr Effects write() { return Effects(4); }
  // May fail (a match without a clause) or not end (recursion).
  static constexpr Effects partial() { return Effects(8); }
  static constexpr Effects all() { return Effects(15); }

  friend constexpr Effects operator|(Effects a, Effects b) { return Effects(a.bits_ | b.bits_); }
  friend constexpr bool operator==(Effects, Effects) = default;

  // The evaluation may be left out when nobody uses its value.
  constexpr bool droppable() const { return (bits_ & (write().bits_ | partial().bits_)) == 0; }
  // The evaluation may be moved, and merged with an equal one.
  constexpr bool pure() const { return bits_ == 0; }

 private:
  explicit constexpr Effects(unsigned bits) : bits_(bits) {}
  unsigned bits_ = 0;
};

// A call of an operator that only computes its result. Unlike class Purity it says nothing about
// the arguments, and needs no module.
bool is_pure_op_call(const CallNode& call);

// The effects of every expression of a module. Linear in its size; expressions made later are not
// known.
class Purity {
 public:
  explicit Purity(const Module& mod);

  // Evaluating the expression, operands included.
  Effects of(const Expr& e) const;
  // The same without the operands: what the node itself adds.
  Effects of_node(const Expr& e) const;

 private:
  struct Entry {
    Effects own;
    Effects total;
  };
  const Entry& entry(const Expr& e) const;

  Module mod_;  // keeps the keys alive
  std::unordered_map<const Node*, Entry> entries_;
};

}  // namespace relay
