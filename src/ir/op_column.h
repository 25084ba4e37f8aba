// One column of an operator's row: a rule, or the reason why there is none.
//
// A row says something in every column; what is left out is `Absent::Unsaid`, and such a row is
// refused where it is registered. So a reader of the row sees the difference between "nothing to
// do" and "not considered".
//
//   .layout = follow_layout, .gradient = Absent::Pending
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/diagnostic.h"

namespace relay {

// Why a column has no rule. The list is closed: a new reason is a new word here.
enum class Absent {
  Unsaid,             // not stated: the row is incomplete
  Pending,            // the rule is due and not written yet
  NotDifferentiable,  // no argument moves the result smoothly: indices, bools, counts, words
  NoArithmetic,       // elements are moved, made, compared or counted: no floating point work
  DataDecides,        // how much is computed depends on values, not on shapes
  AxesAsWritten,      // the axes are as the attributes say: values are converted back before it
  OnePiece,           // the result is one piece of memory: its own, or that of the argument
  NotOneSum,          // what is computed is not one sum of products
  Replaced,           // a pass replaces the operator before kernels are made
  MadeByPasses,       // passes make it of operators that have one, after gradients are taken
  LaneByLane,         // a batch is computed one lane after the other
  OnlySizes,          // the result depends on sizes only: it is the same in all lanes of a batch
  Defined,            // the operator is written in others: its definition
  ByNumPy,            // tests/python/op_oracles.py has the formula over NumPy's arrays
};
// The reason as a sentence.
std::string_view to_string(Absent reason);

template <class T>
class Column {
 public:
  constexpr Column() = default;
  constexpr Column(Absent reason)
      : reason_(reason) {}  // NOLINT: a row names the reason in the rule's place
  template <class V>
  requires(
      std::is_convertible_v<V, T> &&
      !std::is_same_v<std::remove_cvref_t<V>,
                      std::nullptr_t>) constexpr Column(V&& value)  // NOLINT: a row names the rule
      : value_(std::forward<V>(value)), given_(true) {}

  // Whether there is a rule.
  explicit operator bool() const { return given_; }
  friend bool operator==(const Column& column, std::nullptr_t) { return !column.given_; }
  // Whether there is neither a rule nor a reason.
  bool unsaid() const { return !given_ && reason_ == Absent::Unsaid; }
  // Why there is no rule; meaningless where there is one.
  Absent reason() const { return reason_; }

  // The rule; it is a defect of Relay to ask where there is none.
  const T& get() const {
    RELAY_CHECK(given_, "the column is empty");
    return value_;
  }
  operator const T&() const requires std::is_enum_v<T> { return get(); }  // NOLINT
  const T& operator->() const { return get(); }
  template <class... A>
  requires std::is_invocable_v<const T&, A...>
  auto operator()(A&&... args) const { return get()(std::forward<A>(args)...); }

 private:
  T value_{};
  Absent reason_ = Absent::Unsaid;
  bool given_ = false;
};

}  // namespace relay
