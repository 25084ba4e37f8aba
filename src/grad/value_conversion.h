// Walks through values by their types: from values to lifted ones (lift.h) and back.
//
//   List[float32] with a list of tangents  ->  List[(float32, float32)]
//
// Data are walked by functions that call themselves. What a data type's definition says stands for its
// values, so the walk over types ends with it. Two values that are walked together have one
// structure; a run in which they have not ends in an error of the match.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "grad/lift.h"

namespace relay {

// Throws UserError E1007: this is not a value that goes into a derivative, or comes out of it.
[[noreturn]] void refuse_value(const Span& span, const std::string& what, const Type& type,
                               const std::string& help);

class Conversion {
 public:
  // Which values are meant: those of the program; lifted ones; or derivatives, which have the empty
  // tuple for what holds no floats, and of a reference that of what it holds.
  enum class Side { None, Plain, Lifted, Gradient };
  struct Form {
    Side from, with, to;  // one value, another beside it, and what is made
  };
  // A floating tensor of that type; `with` is null where there is no value beside it.
  struct Tensor {
    const Type& type;
    Expr value, with;
    Bindings& bindings;
  };
  using Rule = std::function<Expr(const Tensor& t)>;

  // The module and the lifting outlive it.
  Conversion(Lifting& lifting, const Module& mod, Form form, Rule rule)
      : lifting_(lifting), mod_(mod), form_(form), rule_(std::move(rule)) {}

  // `type` is the type of the value in the program. Throws UserError E1007 for functions.
  Expr operator()(const Type& type, const Expr& value, const Expr& with, Bindings& b) const;

  // The type of derivatives of such values: of data, the same data with derivatives in the place of what
  // its parameters stand for; then what the definition itself holds is only floats and data, or
  // E1007 is thrown.
  static Type gradient_type(const Module& mod, const Type& type, const Span& span);

 private:
  Type side(Side which, const Type& type, const Span& span) const;
  Expr data(const Type& type, const Expr& value, const Expr& with, Bindings& b) const;

  Lifting& lifting_;
  const Module& mod_;
  Form form_;
  Rule rule_;
  // The functions that walk through the data types around this place.
  struct Open {
    std::string type;
    Var function;
  };
  mutable std::vector<Open> open_;
};

}  // namespace relay
