// Run-time values as text: what `relay run` shows.
//
//   3                                    a scalar
//   [[1, 2], [3, 4]]                     a small tensor
//   Tensor[(224, 224), float32]          a large one, by its type
//   (1, [2.5, 0])                        a tuple
//   Cons(1, Cons(2, Nil))                a value of a data type
//   Cons(1, ... 999998 more ... Cons(0, Nil))   a long one
//   ref(7)                               a reference with its content
//   <@f: fn (int32) -> int32>            a function by its name and type
#pragma once

#include <functional>
#include <string>

#include "ir/module.h"
#include "runtime/core/value.h"

namespace relay {

struct PrintValueOptions {
  // Tensors with more elements are shown by their type.
  int64_t max_elements = 64;
  // Data that nests in its last field, as a list does, is shown by its two ends when it is longer.
  int64_t max_chain = 100;
  // Values shown, fields and all; what is left out becomes `...`. A reference may refer to itself.
  int64_t max_values = 2000;
  // The name of the function that a closure's tag stands for, empty when it has none.
  std::function<std::string(int32_t tag)> closure_name;
};

// `type` is the value's (it names the constructors, with `mod` for their definitions); without it
// constructors are numbers. Floats are written with the fewest digits that give them back.
// Iterative.
std::string print_value(const runtime::Value& value, const Type& type, const Module& mod,
                        const PrintValueOptions& options = {});

}  // namespace relay
