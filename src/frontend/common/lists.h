// Lists and optionals that a run holds: values of Relay's List and Option.
//
// A list whose length is known at import is a list of values there (ModelValue::is_list) and leaves
// no trace in the program. One that comes in as an input, is carried by a loop or chosen by a branch is a
// List[Tensor[(?, ..., ?), dtype]]: its elements have one rank, and sizes of their own.
#pragma once

#include <string_view>
#include <vector>

#include "frontend/common/builder.h"
#include "ir/module.h"

namespace relay::frontend {

// The definitions of List, Option and the functions on them that models need; one for the process.
const Module& list_library();

// `List[element]` and `Option[element]`.
Type list_type(Type element);
Type option_type(Type element);
// The element of such a type, by the name "List" or "Option"; null for other types.
Type element_of(const Type& type, std::string_view name);
// The type with all sizes `?`, which an element of a List has.
Type opened(const Type& type);

// A function of the library, by its name there, for the element types.
Expr library_call(const Builder& build, std::string_view function, std::vector<Expr> args,
                  std::vector<Type> types);

// The list as a List: itself, or made of the values of a known one, whose elements have the given
// type or else that of the first. E0505 when there is neither.
Expr as_run_time_list(const Builder& build, const ValuePtr& v, Type element = nullptr);
// Whether a value is a List.
bool is_run_time_list(const ValuePtr& v);

}  // namespace relay::frontend
