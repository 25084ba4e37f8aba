// What a dataflow pattern is made of; seen by what matches and partitions only.
#pragma once

#include "passes/pattern/dataflow_pattern.h"

namespace relay {

enum class DFKind {
  Any,
  Constant,
  Var,
  Same,
  Op,
  Call,
  Tuple,
  GetItem,
  If,
  Let,
  Function,
  Or,
  Condition,
  Dominator,
  Recursive,  // a pattern with Self in it
  Self
};

struct DFPattern::Node {
  DFKind kind = DFKind::Any;
  std::vector<DFPattern>
      parts;         // callee and arguments, fields, body and parameters, alternatives, ...
  bool any = false;  // of a call, tuple or function: any operands beside the parts
  std::vector<std::string> names;
  int64_t index = -1;
  Expr expr;
  std::function<bool(const Expr&)> condition;
  std::function<bool(const OpInfo&)> op_condition;
  std::weak_ptr<const Node> whole;  // of Self
  int depth = 1;
};

// What an expression is computed from: arguments, fields, the tuple of a field.
std::vector<Expr> operands_of(const Expr& e);

}  // namespace relay
