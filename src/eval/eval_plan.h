// Plans: a function as the evaluator executes it.
//
// A plan makes two things explicit that an expression leaves implicit: the order in which
// expressions are computed, and where their values are kept. The order is that of
// analysis/value_order.h: each expression once, in the nearest scope common to its uses,
// operands first. Every value has a slot in its function's frame; a function that refers to values
// of an enclosing one captures them when it is made. A slot is emptied by its last use, so that a
// frame holds live values only.
#pragma once

#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "eval/assumed_sizes.h"
#include "ir/module.h"
#include "runtime/core/value.h"

namespace relay {

// Where a value comes from.
struct EvalOperand {
  // A slot of the frame; if negative, the constant ~index.
  int32_t index = -1;
  // No later step wants the slot's value.
  bool last = false;
};

// One test or binding of a pattern, in pre-order over a stack of values that starts with the
// matched one.
struct PatternStep {
  enum Kind : uint8_t { skip, bind, constructor, tuple } kind = skip;
  int32_t value = 0;  // bind: the slot; constructor: the tag
  uint32_t count = 0;
};

// Where a size is found that an operator's attributes name: an axis of a tensor, which lies in the
// operand, or in a field of a field of it.
struct EvalSize {
  const Node* name;  // a type variable
  size_t operand;
  std::vector<size_t> fields;
  size_t axis;
};

struct EvalStep {
  enum Kind : uint8_t {
    call_op,    // operands are arguments
    construct,  // `value` is the tag
    call,       // the callee, then the arguments
    closure,    // of plan `value`; operands are captured
    branch,     // on a condition, into blocks[0] or blocks[1]
    tuple,
    get_item,  // `value` is the index
    match,     // into the block of the first pattern that fits
    ref_create,
    ref_read,
    ref_write,
  };
  Kind kind = tuple;
  // The value of the block is that of this step, the last one.
  bool gives_result = false;
  // The same for the whole function: a call that replaces the frame.
  bool is_tail = false;
  int32_t value = 0;
  int32_t dest = -1;  // a slot; negative if the value is unused
  const ExprNode* expr = nullptr;
  std::vector<EvalOperand> operands;
  // Of an operator's call; operands that only tell sizes stand behind the arguments.
  AssumedSizes assumed;
  std::vector<EvalSize> sizes;
  std::vector<struct EvalBlock*> blocks;
  std::vector<std::vector<PatternStep>> patterns;
};

// The steps of one scope.
struct EvalBlock {
  std::vector<EvalStep> steps;
  EvalOperand result;
  // Slots whose values are wanted by another branch only.
  std::vector<int32_t> dead;
};

// What a closure's tag stands for: a function, or an operator or constructor used as a value.
struct EvalPlan {
  std::string name;
  const FunctionNode* function = nullptr;
  const ExprNode* builtin = nullptr;
  const EvalBlock* body = nullptr;  // null until prepared
  bool unwritten = false;           // what it gives may be anything (attr::kUnwritten)
  // Parameters come first, each in the slot of its position.
  int32_t num_slots = 0;
  std::vector<int32_t> capture_slots;
  int32_t self_slot =
      -1;  // holds the closure itself, when the function calls itself by a Let's name
  std::vector<int32_t> dead;  // parameters that are not used
};

// The plans of a module, made as they are needed. Addresses stay valid.
class EvalPlanStore {
 public:
  explicit EvalPlanStore(Module mod) : mod_(std::move(mod)) {}

  const Module& module() const { return mod_; }
  const EvalPlan& plan(int32_t tag) const { return plans_[static_cast<size_t>(tag)]; }
  size_t size() const { return plans_.size(); }
  const runtime::Value& constant(int32_t index) const {
    return constants_[static_cast<size_t>(index)];
  }

  // The closure of a function of the module; null when there is none of that name.
  runtime::Value global(const std::string& name);
  // The closure of a function without free variables.
  runtime::Value closed(const Function& f, const std::string& name);
  // Fills in the body of a plan that has none yet. Throws UserError E0212 for a variable or global
  // that is not bound. Iterative and, but for captures of nested functions, linear.
  void prepare(int32_t tag);

 private:
  friend class Planner;
  int32_t add_plan(const FunctionNode* f, std::string name);
  int32_t constant_index(const ExprNode& leaf);

  Module mod_;
  std::deque<EvalPlan> plans_;
  std::deque<EvalBlock> blocks_;
  std::vector<runtime::Value> constants_;
  std::unordered_map<const Node*, int32_t> constant_of_;  // by node
  std::unordered_map<std::string, int32_t> global_;       // plan by name
  std::vector<NodeRef> keep_;
};

}  // namespace relay
