// The data type of an adjoint that may not be there: `type GradCell[A] { Zero, Raw(A) }`.
//
// A reference to one holds `Zero` until something arrives, so that tensors of zeros are not made.
#pragma once

#include <functional>

#include "analysis/fresh_names.h"
#include "ir/module.h"

namespace relay {

struct GradCell {
  TypeData data;

  Constructor zero() const { return data->constructors[0]; }
  Constructor raw() const { return data->constructors[1]; }
  Type of(const Type& t) const { return type_call(data->header, {t}); }
  Expr none(const Type& t) const;
  Expr some(const Expr& e) const;
  // Looks into a reference of a cell; `if_some` is given what is in it.
  Expr choose(const Expr& reference, const Expr& if_none,
              const std::function<Expr(const Expr& adjoint)>& if_some) const;
  // Adds to what is in a reference of a cell: in place, and to that line alone, where `more` is_one_line.
  Expr accumulate(const Expr& reference, const Expr& more) const;
};

// Whether an adjoint is zero but for one line, as that of a line that was read: a call that writes a line
// into zeros. n steps that read a line each add n lines, and not n tensors.
bool is_one_line(const Expr& adjoint);

// The one that the module has; `data` is null when it has none.
GradCell known_cell(const Module& mod);
// Under names that are free.
GradCell new_cell(FreshNames& names);

}  // namespace relay
