// Calls of the registry's operators, made up and kept when the operator's relation accepts them.
#pragma once

#include <optional>
#include <vector>

#include "fuzz/random.h"
#include "ir/op.h"

namespace relay::fuzz {

// A call that type-checks: the arguments are still to be drawn.
struct OperatorUse {
  Op op;
  Attrs attrs;
  std::vector<Type> args;
  Type result;
  // The arguments' elements have to be in this range for the operator to have a meaning on them.
  bool ranged = false;
  double low = 0;
  double high = 0;
};

class Operators {
 public:
  // Those that are registered now, are pure and can be computed.
  Operators();
  // The same as of the first call, made once.
  static const Operators& all();

  // A call that gives the wanted tensor: argument types and attributes are guessed from the wanted
  // type and the row's examples. nullopt when no guess was right.
  std::optional<OperatorUse> for_result(const TensorTypeNode& wanted, Random& random) const;
  // One of the row's own examples, perhaps of another dtype.
  OperatorUse example(Random& random) const;

 private:
  struct Example {
    std::vector<Type> args;
    Attrs attrs;
    double low, high;
  };
  struct Row {
    Op op;
    std::vector<Example> examples;
  };
  std::optional<OperatorUse> guess(const Row& row, const TensorTypeNode& wanted,
                                   Random& random) const;
  std::vector<Row> rows_;
};

}  // namespace relay::fuzz
