#include "passes/simplify/canonicalize_ops.h"

#include "analysis/definitions.h"

namespace relay {

const Pass kCanonicalizeOps{
    "CanonicalizeOps",
    0,
    Form::any,
    Form::any,
    "Writes operators that are defined by others as these.",
    [](const Module& mod, PassContext&) { return expand_definitions(mod); }};

}  // namespace relay
