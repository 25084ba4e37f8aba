// What a compilation does with functions of external code generators.
//
// CompileExternalFunctions, first of all: the code generator compiles the function, which gets the attributes of
// ir/external.h; data that it gives are a further parameter. What it refuses becomes a part of the program again. A
// name that cannot compile is UserError E0318.
//
// PlaceExternalFunctions, before fusion: calls are calls of a kernel.
//   before   @f(%x)      def @f(%a: float32, Compiler="dnnl", ...) { nn.relu(%a) }
//   after    fn (%a: float32, Primitive=1, Compiler="dnnl", ...) { nn.relu(%a) }(%x)
//
// The bodies of these functions say what is computed. No pass in between changes them (passes/pass.cc).
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kCompileExternalFunctions;
extern const Pass kPlaceExternalFunctions;

// The functions of external code generators as they were before a pass of Relay's changed their bodies.
Module with_external_bodies(const Module& before, const Module& after);

}  // namespace relay
