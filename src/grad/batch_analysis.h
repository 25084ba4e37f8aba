// What of a function depends on the lane, and what has to be computed one lane after the other.
//
// The lane types of all expressions (lane_types.h), for a function and the functions of the module
// that it calls, each once for all its calls. Where lanes part, they cannot go on together: a branch
// that depends on the lane and has effects, or gives data; random numbers that are drawn from no key.
// Such an expression becomes a region of its own with tensors in and out, the smallest there is around
// it, and is computed in a loop over the lanes. A function that calls itself in tail position goes on
// until its last lane is done, with a mask.
//
// Programs are in A-normal form, with binders of their own.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/purity.h"
#include "grad/lane_types.h"

namespace relay {

// Where the lanes of a value are: an axis for all tensors of it, none, or axes for the fields of a
// tuple.
struct BatchAxes {
  std::optional<int64_t> axis = 0;
  std::vector<BatchAxes> fields = {};
};

// What is computed one lane after the other.
struct LaneByLane {
  Span span;
  std::string what;  // "if", "nn.dropout"
  std::string why;   // "a branch has effects"
};

// What a batched function needs to know of it.
class BatchAnalysis {
 public:
  // A function that goes on until its last lane is done.
  struct Masked {
    const FunctionNode* function;
    Expr name;  // the variable of its Let, or the one of the module
  };
  struct Global {
    Function function;
    LaneType* type = nullptr;
  };

  // `entry` is a function of the module, of which everything is known.
  BatchAnalysis(const Module& mod, std::string entry, Dim lanes, const std::vector<BatchAxes>& in,
                const BatchAxes& out);

  LaneTypes& types() { return *types_; }
  // After `analyze`.
  LaneType* of(const Expr& e);
  LaneType* of(const Pattern& p) { return of_.at(p.get()); }
  bool any(const Expr& e) { return types_->any(*of(e)); }
  // The functions of the module that are batched, the entry first.
  const std::map<std::string, Global>& globals() const { return globals_; }
  const Global& global(const std::string& name) const { return globals_.at(name); }
  bool is_batched_global(const std::string& name) const;
  // Why the expression is computed lane by lane, null when it is not.
  const LaneByLane* region(const Node& n) const;
  // The variables from outside that a region needs.
  const std::vector<Var>& inputs(const Node& region) { return free_of(region); }
  // The masked function in whose tail position the expression is, which is not a leaf; or null.
  const Masked* tail_of(const Node& n) const;
  const Masked* masked(const FunctionNode& f) const;
  // In tail position: whether it says nothing about the next parameters.
  bool leaves_parameters(const Expr& e) const {
    return tail_of(*e.get()) == nullptr || leaves_parameters_.contains(e.get());
  }
  // How a call of a function sees its type.
  struct CallTypes {
    std::vector<LaneType*> params;
    LaneType* result = nullptr;
    std::vector<LaneType*> type_args;  // null for what is not a type
  };
  const CallTypes& call_types(const CallNode& c) const { return call_types_.at(&c); }
  bool is_tail_call(const Node& n, const Masked& m) const;
  LaneType* result() const { return result_; }

  // Finds lane types and regions until they agree. Throws UserError E1106, E1105.
  void analyze();
  // One lane after the other there, or in what is around it; `analyze` again. Throws UserError E1105
  // where nothing around it gives tensors.
  void part(const Expr& at, const std::string& what, const std::string& why);

 private:
  class Constraints;
  struct Conflict {
    Expr at;
    LaneByLane why;
    bool by_mask;  // a mask may do
  };

  void index();
  void note_failures();
  std::vector<Conflict> conflicts();
  bool mask(const Expr& at);
  const std::vector<Var>& free_of(const Node& n);
  bool may_be_region(const Expr& e);
  const Global& visit(const std::string& name);

  Module mod_;
  std::string entry_;
  Dim lanes_;
  const std::vector<BatchAxes>& in_;
  const BatchAxes& out_;
  std::unique_ptr<LaneTypes> types_;
  Purity purity_;
  bool has_references_ = false;
  NodeMap<const ExprNode*> parent_;     // the expression around a scope or a Let's value
  NodeMap<std::string> function_name_;  // of functions of the module
  NodeMap<LaneByLane> regions_;
  NodeMap<std::vector<Var>> free_;
  NodeMap<int> tail_;
  NodeSet leaves_parameters_;
  NodeSet may_fail_;
  std::vector<Masked> masked_;
  NodeMap<LaneType*> of_;
  NodeMap<CallTypes> call_types_;
  std::map<std::string, Global> globals_;
  std::set<std::string> lone_;  // functions of the module whose calls are regions
  std::vector<std::string> waiting_;
  LaneType* result_ = nullptr;
};

}  // namespace relay
