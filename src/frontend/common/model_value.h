// Values of a model on their way to Relay, and the names by which its operators refer to them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/known_value.h"
#include "ir/expr.h"

namespace relay::frontend {

struct ModelValue;
using ValuePtr = std::shared_ptr<ModelValue>;
using Values = std::vector<ValuePtr>;

// A value of the model. What is known about it is kept beside its expression, which is made only
// when it is asked for; so shape arithmetic leaves no trace in the program.
struct ModelValue {
  std::string name;
  Span span;
  Expr expr;                        // null until asked for
  Expr transposed;                  // of a constant matrix, null until asked for
  Tensor data;                      // a constant's data, possibly misaligned (tensor_bytes.h)
  std::optional<KnownValue> known;  // the elements, when all of them are known
  bool is_parameter = false;  // a weight that becomes a parameter when its expression is needed
  bool is_list = false;       // a list of values at import time
  Values list;
  bool absent = false;  // an optional value that is left out
  bool failed = false;  // its operator was reported; what depends on it is skipped
};

ValuePtr value_of(Expr expr);
ValuePtr value_of(KnownValue known);
ValuePtr value_of(Tensor data);
// A list whose length is known.
ValuePtr list_of(Values items);
ValuePtr absent_value();
ValuePtr failed_value();

// Names in sight: those of a graph, then those of the graph around it.
struct Scope {
  std::unordered_map<std::string, ValuePtr> values;
  const Scope* parent = nullptr;
  // Null for a name that is not in sight.
  ValuePtr find(const std::string& name) const;
};

// Thrown to leave an operator of which an input or a part of its subgraph has been reported already.
struct Poisoned {};

// Names in messages are cut to this length.
inline constexpr size_t kMaxLabel = 160;
std::string shorten(const std::string& name);

}  // namespace relay::frontend
