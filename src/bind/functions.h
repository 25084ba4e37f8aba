// Functions of the language as values of Python: a program gives them, Python calls them and gives
// them back.
//
// They share what they captured, references among it, and so do all runs that see them. Such runs take
// turns: the whole call, with the conversion of its arguments and its result, holds the turn of the
// program's owner. Runs without functions know nothing of this.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/fork.h"
#include "bind/convert.h"
#include "bind/exchange.h"
#include "runtime/module.h"

namespace relay::bind {

// What runs the functions of one program.
class FunctionOwner {
 public:
  explicit FunctionOwner(Module types) : types_(std::move(types)) {}
  virtual ~FunctionOwner() = default;
  FunctionOwner(const FunctionOwner&) = delete;
  FunctionOwner& operator=(const FunctionOwner&) = delete;

  // Both within a turn, and without the GIL.
  virtual runtime::Value run(const std::string& name, std::vector<runtime::Value> args,
                             const runtime::RunOptions& options) = 0;
  virtual runtime::Value call(const runtime::Value& function, std::vector<runtime::Value> args,
                              const runtime::RunOptions& options) = 0;
  const Module& types() const { return types_; }

  // For one thread at a time, which may take it again. It is waited for without the GIL, and never by
  // a thread that holds the GIL.
  class Turn {
   public:
    explicit Turn(FunctionOwner& owner);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    FunctionOwner& owner_;
    std::recursive_timed_mutex& mutex_;
  };

  // What a FunctionValue held is let go of in a turn: now, or in that of the run under way.
  struct Held {
    runtime::Value value;
    std::vector<Reference> captured;
  };
  void let_go(Held held);

 private:
  // Within a turn.
  void drop_gone();
  // Of this process: a thread that had the turn may be in the parent of a fork only. With the GIL.
  std::recursive_timed_mutex& turn();

  std::unique_ptr<std::recursive_timed_mutex> turn_ =
      std::make_unique<std::recursive_timed_mutex>();
  uint64_t process_ = fork_generation();
  Module types_;
  std::vector<Held> gone_;  // guarded by the GIL
};

// A function that a program gave.
struct FunctionValue {
  std::shared_ptr<FunctionOwner> owner;
  runtime::Value value;
  FuncType type;                    // its sizes are numbers, `?`, or parameters of its own
  std::vector<Reference> captured;  // at most these

  FunctionValue(std::shared_ptr<FunctionOwner> o, runtime::Value v, FuncType t)
      : owner(std::move(o)), value(std::move(v)), type(std::move(t)) {}
  FunctionValue(FunctionValue&&) = default;
  ~FunctionValue();
};

// TypeError where the type has a size that `sizes` does not have.
nb::object make_function_value(std::shared_ptr<FunctionOwner> owner, runtime::Value value,
                               const Type& type, const TypeParams& sizes);

// Whether a parameter or the result of the function may hold functions.
bool exchanges_functions(const Module& mod, const Function& function);
// The sizes that the named dimensions of parameters have in these arguments.
void bind_sizes(const Function& function, const std::vector<runtime::Value>& args,
                TypeParams& sizes);

// Of the functions of a compiled program; null where the program makes none.
std::shared_ptr<FunctionOwner> owner_of(const runtime::Module& module, const Module& types);

void bind_functions(nb::module_& m);

}  // namespace relay::bind
