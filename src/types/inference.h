// The state of one inference: constraints between the types of a program's expressions, solved as
// far as they can be, then the program with its types. What it promises is in types/infer.h.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/module.h"
#include "ir/op.h"
#include "node/node_map.h"
#include "node/walk.h"
#include "types/unify.h"

namespace relay {

// Where an expression stands: a name's own span is that of its definition, so that of what uses it
// says more.
Span place(const Expr& e, const Span& user);

class Inference {
 public:
  explicit Inference(const Module& mod) : mod_(mod) {}

  Module run();
  Expr run(const Expr& e);

 private:
  static constexpr uint32_t kPrograms = family::program;

  // A second place that takes part in a clash: with a sentence, or the definition of a variable
  // whose type takes part.
  struct Reason {
    Span span;
    std::string text;
    const VarNode* variable = nullptr;
  };

  // A constraint that may wait until more is known: an operator's relation (`row`; `at` is its
  // call, null for an operator as a value), a projection (`at`), or the use of a polymorphic
  // function whose type is not complete (neither).
  struct Pending {
    Span span;
    const OpInfo* row = nullptr;
    Attrs attrs;
    const ExprNode* at = nullptr;
    std::vector<Type> args;
    Type result;
    bool done = false;
  };

  // An operator or polymorphic function that is used as a value: at one type, as a child of some
  // node. A null `instance` says that the value is wanted as it is.
  struct ValueUse {
    const Node* child = nullptr;
    Type instance;
    std::vector<Type> type_args;
    Span span;
  };

  // The match by which the walk comes to a clause first.
  struct ClauseUse {
    const MatchNode* match = nullptr;
    bool taken = false;
  };

  // What a callee is called, where it is defined and, if it is one, the function.
  struct Definition {
    std::string name;
    Span span;
    const FunctionNode* function = nullptr;
  };

  // ---- infer.cc: the types of expressions, and clashes
  void declare_globals();
  Type declared_type(const FunctionNode& f);
  Type return_hole(const FunctionNode& f);
  Type type_of(const Node* n);
  Type type_of(const Expr& e);
  Diagnostic* unify(const Type& expected, const Type& found, const Span& span,
                    const std::string& what, std::vector<Reason> reasons = {});
  std::pair<std::string, std::string> with_named_holes(const Type& a, const Type& b);
  static Reason origin(const Expr& e);
  void add_note(Diagnostic& d, Reason r);
  std::string shown(const Type& t);
  Type value_type(const ExprNode& user, const Expr& child, const Type& wanted);
  Type value_type(const Node& user, const Span& span, const Expr& child, const Type& wanted);
  static bool all_types(const FuncTypeNode& f);

  // ---- constraints.cc: what each kind of expression demands
  void visit(const Expr& root);
  void constrain(const ExprNode& e);
  void function(const FunctionNode& f);
  void let_value(const LetNode& l);
  void begin_clause(const ClauseNode& c);
  Type joined(const Type& a, const Type& b);
  void match(const MatchNode& m);
  Definition defined_by(const Expr& callee);
  void call(const CallNode& c);
  void known_call(const CallNode& c, const FuncType& f, const Definition& definition);
  Type pattern(const Pattern& root);
  static const std::vector<Pattern>* parts_of(const PatternNode& p);
  Type pattern(const PatternNode& p, std::vector<Type> parts);
  void match_pattern(const MatchNode& m, const Pattern& p);

  // ---- waiting.cc: constraints that wait for more to be known
  void demand(Pending p);
  void settle();
  void try_pending(size_t i);
  bool specialise(const Pending& p);
  bool project(const Pending& p);
  bool relate(const Pending& p);

  // ---- typed_program.cc: the program with the types found
  class Typed;
  NodeRef with_types(const NodeRef& root);
  Type final_type(const ExprNode& e);
  void report_unsolved(const ExprNode& e, const Type& t);
  std::string example_of(const Type& t);
  GlobalVar typed_global(const GlobalVarNode& g);
  NodeRef with_values(const Node& original, NodeRef rebuilt);
  Expr value_of(const Expr& child, const ValueUse& use);
  bool says_enough(const Type& declared, const Type& found, const Span& span,
                   const std::string& what);
  void check_parts(const ExprNode& e);
  NodeRef with_declared_result(const FunctionNode& original, const FunctionNode& typed);

  Module mod_;
  Unifier unifier_;
  Diagnostics diags_;
  NodeMap<Type> types_;
  NodeMap<Type> return_holes_;
  std::unordered_map<const Node*, std::vector<Type>> type_args_;
  std::map<std::string, Type> global_types_;
  std::map<std::string, GlobalVar> typed_globals_;
  std::unordered_set<const Node*> unsolved_;
  NodeMap<const LetNode*> let_of_;                                    // by value
  std::unordered_map<const Node*, ClauseUse> match_of_;               // by clause
  std::unordered_map<const Node*, const FunctionNode*> function_of_;  // by let-bound variable
  NodeSet lets_done_;
  std::unordered_map<const Node*, std::vector<ValueUse>> value_uses_;
  std::vector<Pending> pending_;
  std::unordered_map<const Node*, std::vector<size_t>> waiting_;  // by what they wait for
};

}  // namespace relay
