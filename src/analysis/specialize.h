// Monomorphic instances of polymorphic functions: one for each list of type arguments that the
// program calls them with.
//
//   def @id[A](%x: A) -> A { %x }            def @id_1(%x: int32) -> int32 { %x }
//   def @main() { (@id(1), @id(2f)) }        def @id_2(%x: float32) -> float32 { %x }
//                                            def @main() { (@id_1(1), @id_2(2f)) }
//
// The one place that does it; passes that need to know every type in full use it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/module.h"

namespace relay {

// The functions that `roots`, which have no type parameters, reach, as instances. A function
// without type parameters keeps its name. No function may stand inside another
// (LambdaLift takes them out). Null when there is no end of instances (a function that calls itself
// with ever larger types), or very many, or one would be for sizes: named dimensions are known when
// the program runs.
std::optional<Module> specialize(const Module& mod, const std::vector<std::string>& roots);

}  // namespace relay
