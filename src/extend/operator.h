// Operators from outside: a few functions, in whatever language, become a row of the registry.
//
//   OutsideOperator op;
//   op.name = "mylib.twice";
//   op.args = {{"x", "The argument x."}};
//   op.definition = [](const std::vector<Expr>& x, const Attrs&, const Span&) { return x[0] + x[0]; };
//   register_operator(std::move(op));
//
// What the functions give is checked wherever it is used: a wrong answer is UserError E0912 that names operator, function
// and call.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/op.h"
#include "tir/compute.h"

namespace relay::extend {

// Either `definition` or `compute`; all other functions may be empty. They are called from any thread, and what they
// throw passes through.
struct OutsideOperator {
  std::string name;
  std::string doc;
  std::vector<ArgInfo> args;
  std::vector<AttrSpec> attrs = {};
  std::vector<OpExample> examples = {};
  // Of a tensor expression; without, as it shows for the first example, and Opaque where there is none.
  std::optional<FusionClass> fusion = {};
  // The function of the process that computes calls (extend/host_kernel.h), in place of code for `compute`, which says what they
  // mean; empty for none. The operator is Opaque then.
  std::string host_kernel = {};

  // The result's type; without, that of the definition or of the tensors.
  std::function<Type(const std::vector<Type>& args, const Attrs& attrs, const Span& call)>
      relation = nullptr;
  // The operator in others.
  std::function<Expr(const std::vector<Expr>& args, const Attrs& attrs, const Span& call)>
      definition = nullptr;
  // Its tensors, from those of the arguments.
  std::function<std::vector<tir::Tensor>(const std::vector<tir::Tensor>& inputs, const Attrs& attrs,
                                         const Span& call)>
      compute = nullptr;
  GradientRule gradient = nullptr;
  LayoutRule layout = nullptr;
  // What passes rewrite by, as in rows of Relay's own operators.
  std::optional<ElementMoves> moves = {};
  QuantizedRule quantized = nullptr;
  std::string approximation = {};
};

// Adds the row, for every thread; throws what OpRegistry::add does.
Op register_operator(OutsideOperator op);

// "ElemWise", ...; nullopt for another word.
std::optional<FusionClass> fusion_class(std::string_view name);

// The body of a function for as many arguments as it has parameters, with variables of its own.
Expr applied(const Function& f, const std::vector<Expr>& args);

// UserError E0912.
[[noreturn]] void refuse_result(const std::string& op, const std::string& what, const Span& span,
                                const std::string& expected, const std::string& found);

}  // namespace relay::extend
