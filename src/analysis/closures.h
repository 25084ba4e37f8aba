// The functions inside a function: what they capture, and how they are used.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/scope.h"

namespace relay {

struct InnerFunction {
  const FunctionNode* function;
  int parent;  // the function around it, by number; negative for the outermost
  Var name;    // the Let's variable it is bound to, null when there is none
  // Every use is a call, by name or where it stands.
  bool only_called;
  bool recursive;  // it uses its own name
  // The type parameters of the functions around it that it mentions.
  std::vector<TypeVar> type_params;
  // The variables of the functions around it that it needs, in order of first use. For those that
  // name a function that is only called, what that one captures stands here.
  std::vector<Var> captures;
};

// The variables in `around` that tell the sizes which operators inside `f` name, or compute with, and its own
// parameters do not tell: a closure keeps them.
std::vector<Var> size_sources(const FunctionNode& f, const std::vector<Var>& around);

// The functions inside `f` that are no kernels, outer ones first. `f` is in basic block normal
// form. A function with the attribute Closure is one with the function that is its body. Iterative;
// linear but for captures that pass through nested functions.
class InnerFunctions {
 public:
  explicit InnerFunctions(const Function& f);

  const std::vector<InnerFunction>& all() const { return all_; }
  // The number of a function, or of the one that a variable names; negative for others.
  int find(const Node* function_or_name) const;

 private:
  void collect();
  void bind(const Var& v, int function);
  void find_uses();
  void use(const Expr& e, int function, bool called, bool named);
  void use_sizes(const CallNode& c, int function);
  void find_type_params();
  void find_captures();
  int function_at(int scope) const {
    return number_.at(scopes_.scopes[static_cast<size_t>(scope)].function);
  }
  InnerFunction& at(int i) { return all_[static_cast<size_t>(i)]; }

  Function f_;
  ScopeTree scopes_;
  std::vector<InnerFunction> all_;
  std::unordered_map<int, int> number_;  // of the function whose outermost scope it is
  std::unordered_map<const Node*, int> index_;
  std::unordered_map<const Node*, int> binder_;  // the function that binds a variable
  struct Uses {
    int called = 0, named = 0, other = 0;
    std::vector<Var> free;
    std::unordered_set<const Node*> seen;
    std::vector<int> callers;  // functions that name this one or are around it
  };
  std::vector<Uses> uses_;
};

}  // namespace relay
