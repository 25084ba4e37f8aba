// Programs in which every floating tensor carries something with it: the rest of the program, with
// its functions, branches, data and references, stays what it is.
//
//   fn (%x: float32, %l: List[float32]) { Cons(exp(%x), %l) }
//     fn (%x: (float32, A), %l: List[(float32, A)]) { Cons(exp'(%x), %l) }
//
// Forward mode carries the tangent, reverse mode a cell for the adjoint. What becomes of tensors,
// constants and calls of operators is the mode's; types, functions of the module and data types whose
// definitions hold tensors follow here.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "analysis/fresh_names.h"
#include "analysis/retype.h"
#include "grad/lifted_data.h"
#include "ir/module.h"

namespace relay {

// The attribute of a function of the module that names the function to use for its gradient: with the
// same parameters and the adjoint of the result behind them, it gives the tuple of their adjoints.
inline constexpr const char* kCustomGradient = "custom_gradient";

// The attribute of a function of the module whose values are computed again where its gradient needs
// them, instead of being kept.
inline constexpr const char* kCheckpoint = "checkpoint";

// Lets, written down from the first on.
class Bindings {
 public:
  // A variable with this value.
  Var bind(const std::string& name, Expr value);
  // The expression itself when it is a leaf, else a variable for it.
  Expr leaf(Expr value);
  // The result, inside of all that was bound.
  Expr in(Expr result) const;

 private:
  std::vector<std::pair<Var, Expr>> list_;
};

// A constructor's pattern that names all parts.
Pattern constructor_pattern(const Constructor& c, const std::vector<Var>& parts);

class Lifting {
 public:
  virtual ~Lifting() = default;

  // The function with lifted parameters and result. `f` has binders of its own.
  Function lift(const Function& f);
  Type lifted(const Type& t) { return data_.lifted(t); }
  // The constructor of the lifted data type.
  Constructor lifted(const Constructor& c) { return data_.lifted(c); }
  // The module with all functions and data types that lifted functions need.
  Module finish();

  // The tensors of a lifted value, tuples flattened: what they are, and what they carry (null for
  // those that carry nothing). Other values are one part.
  struct Part {
    Type type;  // before lifting
    Expr value, carried;
  };
  static void take_apart(const Type& type, const Expr& e, Bindings& b, Expr& value,
                         std::vector<Part>& parts);

 protected:
  // `suffix` marks the names of functions and data types that are made.
  Lifting(Module mod, std::string suffix);

  virtual Type lifted_tensor(const TensorType& t) = 0;
  virtual Expr lifted_constant(const Constant& c) = 0;
  // A lifted tensor of another type: one that forgets sizes, or one that knows them, which `known` has:
  // the same tensor, not lifted.
  virtual Expr lifted_use(const Expr& value, const TensorType& to, const Expr& known) = 0;
  // A call of an operator whose arguments are lifted.
  virtual Expr lifted_call(const CallNode& c, const std::vector<Expr>& args) = 0;
  // A call of a function of the module that has a gradient of its own (attribute kCustomGradient).
  virtual Expr lifted_custom_call(const CallNode& c, const Function& f,
                                  const std::vector<Expr>& args) = 0;
  // What a mode makes of a function ahead of lifting it.
  virtual Function prepared(const Function& f) { return f; }
  // A call that `prepared` has put into a function; null: another call.
  virtual Expr lifted_prepared(const CallNode& c, const std::vector<Expr>& args) {
    (void)c;
    (void)args;
    return nullptr;
  }
  // A call of one with the attribute kCheckpoint; null: a call like any other.
  virtual Expr lifted_checkpoint(const CallNode& c, const std::vector<Expr>& args) {
    (void)c;
    (void)args;
    return nullptr;
  }
  // The lifted function of the module.
  GlobalVar lifted_function(const std::string& name) { return global(name).name; }
  // A parameter that every function of the module gets; null: none.
  virtual Var context() { return nullptr; }
  // Enters a function of the module, whose parameter that is.
  virtual void enter(const Var& context) { (void)context; }

  const Module& module() const { return mod_; }
  FreshNames& names() { return names_; }
  std::vector<TypeData> made_types_;

 private:
  class Rewrite;
  struct Global {
    GlobalVar name;
    Function original;  // with binders of its own
    Var context;
  };

  const Global& global(const std::string& name);
  Expr fitted(const Expr& value, const Type& from, const Type& to);
  Expr named_call(const CallNode& c, std::vector<Expr> args);

  Module mod_;
  FreshNames names_;
  std::string suffix_;
  std::map<std::string, Global> globals_;
  std::deque<std::string> waiting_;
  // Functions that give names to sizes that are `?`, by the function they call and the types.
  std::map<std::string, std::pair<GlobalVar, Function>> naming_;
  LiftedData data_;
};

}  // namespace relay
