// Checks that a program is well-formed and that its types are what its nodes say.
//
// Run after every pass in tests (`PassContext::verify`), so that a pass which breaks an invariant
// is named by itself and not by what fails later.
#pragma once

#include <optional>

#include "ir/module.h"

namespace relay {

// The first violation, or nullopt: every expression has a type, equal to the one deduced from its
// children; every variable is bound where it is used, and bound once; every global exists.
std::optional<Diagnostic> find_ill_formed(const Module& mod);

}  // namespace relay
