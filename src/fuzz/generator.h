// The random draws behind fuzz/generate.h: types, and expressions of a type in a scope.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/operators.h"
#include "fuzz/random.h"
#include "ir/module.h"

namespace relay::fuzz {

// Draws types of a program: its dtypes and sizes are few, so that values fit each other.
class TypeSource {
 public:
  TypeSource(Random& random, std::vector<TypeData>& data, bool pitfalls, bool floats)
      : random_(random), data_(data), pitfalls_(pitfalls), floats_(floats) {
    for (int i = 0; i < 3; ++i) sizes_.push_back(random.between(1, 4));
    dtypes_ = {DType::Float(32), DType::Float(32), DType::Int(32), DType::Bool()};
    static const std::vector<DType> rare{DType::Float(64), DType::Float(16), DType::BFloat16(),
                                         DType::Int(8),    DType::Int(64),   DType::UInt(8)};
    if (random.percent(50)) dtypes_.push_back(random.pick(rare));
  }

  bool pitfalls() const { return pitfalls_; }
  // Whether floats are rather made of those in scope than constants.
  bool floats() const { return floats_; }
  DType dtype() { return random_.pick(dtypes_); }
  TensorType tensor();
  // Tensors, tuples and data types: what an argument of @main may be.
  Type first_order(int depth);
  // Any type.
  Type any(int depth);
  // Types in a row; with pitfalls, neighbours are often alike.
  std::vector<Type> several(int64_t count, const std::function<Type()>& draw);
  // A data type of the program applied to arguments; null when there is none.
  Type data(int depth);

 private:
  Random& random_;
  std::vector<TypeData>& data_;
  bool pitfalls_, floats_;
  std::vector<int64_t> sizes_;
  std::vector<DType> dtypes_;
};

// A function that later ones may call.
struct Callable {
  GlobalVar name;
  FuncType type;
};

// Draws expressions. The nesting of what is drawn is bounded by the budget.
class ExpressionSource {
 public:
  ExpressionSource(Random& random, TypeSource& types, const std::vector<TypeData>& data,
                   const std::vector<Callable>& globals)
      : random_(random), types_(types), data_(data), globals_(globals) {}

  // Enters and leaves a scope: what was bound or computed in it is not seen outside.
  class Scope {
   public:
    explicit Scope(ExpressionSource& source) : source_(source), size_(source.scope_.size()) {}
    ~Scope() { source_.scope_.resize(size_); }

   private:
    ExpressionSource& source_;
    size_t size_;
  };

  void bind(const Var& v) { scope_.push_back(v); }
  // An expression of the type with about `budget` nodes. The type must be `reachable`.
  Expr draw(const Type& type, int budget);
  // Whether an expression of the type can be made at all: named dimensions and type variables come
  // only from what is in scope.
  bool reachable(const Type& type);

 private:
  Expr leaf(const Type& type);
  Expr leaf_tensor(const TensorTypeNode& type);
  Expr leaf_constant(const TensorType& type);
  Expr build(const Type& type, int budget);
  Expr construct(const TypeDataNode& data, const Constructor& c, std::vector<Expr> args,
                 const Type& type);
  Expr build_function(const FuncTypeNode& type, int budget);
  // Ways to an expression of any type; null when one does not fit.
  Expr draw_let(const Type& type, int budget);
  Expr draw_if(const Type& type, int budget);
  Expr draw_projection(const Type& type, int budget);
  Expr draw_match(const Type& type, int budget);
  Expr draw_reference(const Type& type, int budget);
  Expr draw_call(const Type& type, int budget);
  Expr draw_global_call(const Type& type, int budget);
  Expr draw_loop(const Type& type, int budget);
  Expr draw_fold(const Type& type, int budget);
  Expr draw_operator(const Type& type, int budget);
  Expr draw_twin(const Type& type, int budget);
  Expr draw_counter(const Type& type, int budget);
  Expr draw_network(const Type& type, int budget);
  Expr draw_convolution(int budget);
  Expr draw_wide_convolution(int budget);
  Expr draw_few_pixels(int budget);
  Expr draw_branches(int budget);
  Expr draw_attention(int budget);
  Expr draw_steps(int budget);
  Expr draw_sizes(const Type& type, int budget);
  Expr draw_epilogue(Expr e, size_t axis, int budget);

  Expr apply(const OperatorUse& use, int budget);
  Expr in_range(Expr e, double low, double high);
  // A static tensor of another type from a static tensor.
  Expr adapt(Expr e, const TensorTypeNode& wanted);
  // A type of something in scope, or another one; always reachable.
  Type some_type(int depth);
  std::vector<Clause> clauses(const Type& data, const Type& result, int budget);
  Pattern pattern(const Type& type, bool refutable);
  std::string fresh(const char* stem) { return stem + std::to_string(counter_++); }

  Random& random_;
  TypeSource& types_;
  const std::vector<TypeData>& data_;
  const std::vector<Callable>& globals_;
  // Variables in scope, and expressions that may be shared.
  std::vector<Expr> scope_;
  int counter_ = 0;
};

// Attributes of an operator: those named, and the others' defaults.
Attrs attrs_of(const char* op, std::vector<std::pair<std::string, AttrValue>> values);

// The inputs of a constructor for a data type applied to arguments.
std::vector<Type> constructor_inputs(const TypeDataNode& data, const Constructor& c,
                                     const Type& applied);

}  // namespace relay::fuzz
