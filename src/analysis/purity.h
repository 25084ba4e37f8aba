// What evaluating an expression does besides giving its value.
//
// The one place that knows when an expression may be moved, merged or dropped. Effects are joined
// over everything that an evaluation reaches: operands, branches, and the bodies of functions that
// are known to be called. A function as a value does nothing; calling a function that is not known
// (a parameter, a field of a tuple) may do everything. A call of a known function that calls its
// parameters does what the functions that are passed to it do: `@map(fn (%x) { exp(%x) }, %l)` is
// as pure as exp.
#pragma once

#include <optional>

#include "ir/module.h"
#include "node/node_map.h"

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
  // Writes a reference.
  static constexpr Effects write() { return Effects(4); }
  // May fail (a match without a clause) or not end (recursion).
  static constexpr Effects partial() { return Effects(8); }
  // Draws random numbers.
  static constexpr Effects random() { return Effects(16); }
  // Talks to the world outside.
  static constexpr Effects io() { return Effects(32); }
  static constexpr Effects all() { return Effects(63); }

  friend constexpr Effects operator|(Effects a, Effects b) { return Effects(a.bits_ | b.bits_); }
  friend constexpr bool operator==(Effects, Effects) = default;

  constexpr bool has(Effects any) const { return (bits_ & any.bits_) != 0; }
  constexpr bool reads() const { return has(read()); }
  constexpr bool writes() const { return has(write()); }
  constexpr bool draws_random() const { return has(random()); }
  // The evaluation may be left out when its value is unused.
  constexpr bool droppable() const { return !has(write() | partial() | random() | io()); }
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
  // Calling a function of the module, or one inside it. What its parameters do when it calls them
  // is not counted: whoever passes them knows.
  Effects of_body(const Function& f) const;

 private:
  struct Entry {
    Effects own;
    Effects total;
  };
  const Entry& entry(const Expr& e) const;

  Module mod_;  // keeps the keys alive
  NodeMap<Entry> entries_;
  NodeMap<Effects> bodies_;
};

// The same, found out when it is first asked for. The module outlives it.
class LazyPurity {
 public:
  explicit LazyPurity(const Module& mod) : mod_(mod) {}
  Effects of(const Expr& e) { return get().of(e); }
  Effects of_node(const Expr& e) { return get().of_node(e); }

 private:
  const Purity& get() {
    if (!purity_) purity_.emplace(mod_);
    return *purity_;
  }
  const Module& mod_;
  std::optional<Purity> purity_;
};

}  // namespace relay
