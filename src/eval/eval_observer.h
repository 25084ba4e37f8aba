// What a run of the evaluator shows while it goes on (Evaluator::observe).
#pragma once

#include <span>
#include <string_view>

#include "ir/expr.h"
#include "runtime/core/value.h"

namespace relay {

// An operator that is applied.
struct EvalOpCall {
  const OpNode& op;
  // The call of the operator, or of the value that it is.
  const ExprNode* expr = nullptr;
  std::span<const runtime::Value> args;
  size_t depth = 0;  // open frames of functions
};

// An exception ends the run, and is thrown by it. Values are the program's: they are not written to.
class EvalObserver {
 public:
  virtual ~EvalObserver() = default;
  virtual void before(const EvalOpCall&) {}
  virtual void after(const EvalOpCall&, const runtime::Value& /*result*/) {}
  // A function of this name (empty: it has none) has got a frame, the `depth`th; a tail call puts it in the place of its
  // caller's. `call` is null for the function that the run begins with.
  virtual void entered(const FunctionNode&, std::string_view /*name*/,
                       std::span<const runtime::Value> /*args*/, const ExprNode* /*call*/,
                       size_t /*depth*/) {}
};

}  // namespace relay
