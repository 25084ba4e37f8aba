// Rewriting functions while the types in them change.
//
// The rewriting services deduce the type of a node from its children, which fails halfway when a
// callee's type is no longer that of a function. Here types and calls change together: a pass says
// what becomes of types, of calls and of functions of the module as values; all else follows.
#pragma once

#include <unordered_map>

#include "ir/module.h"

namespace relay {

class Retyper {
 public:
  virtual ~Retyper() = default;

 protected:
  // What a type becomes.
  virtual Type retype(const Type& t) = 0;
  // What a call becomes; `args` are rewritten, `rewritten(c.op)` is its callee as a value.
  virtual Expr retype_call(const CallNode& c, std::vector<Expr> args) = 0;
  virtual Expr retype_global(const GlobalVar& g) = 0;
  // What becomes of constants, and of constructors, called or in patterns.
  virtual Expr retype_constant(const Constant& c) { return c; }
  virtual Expr retype_constructor(const Constructor& c) { return c; }
  // A rewritten value where one of another type is wanted, whose sizes may be `?`: a branch, a clause or
  // the value of a name. `from` and `to` are the types before rewriting. Of what may forget sizes.
  virtual Expr retype_use(const Expr& value, const Type& from, const Type& to) {
    (void)from;
    (void)to;
    return value;
  }

  // Rewrites a function's body; afterwards `rewritten` knows what is in it. Iterative and linear.
  Expr rewrite_body(const Function& f);
  Expr rewritten(const Expr& e);
  std::vector<Var> rewritten(const std::vector<Var>& vars);

  // `retype`, asked once for each type.
  Type type(const Type& t);
  std::vector<Type> types(const std::vector<Type>& list);

 private:
  NodeRef now(const NodeRef& n);
  // Values in `children` where the node wants another type than theirs.
  void fit_uses(const Node& n, std::vector<NodeRef>& children);
  std::unordered_map<const Node*, NodeRef> made_;
  std::unordered_map<const Node*, Type> types_;
  std::vector<NodeRef> keep_;  // the keys
};

}  // namespace relay
