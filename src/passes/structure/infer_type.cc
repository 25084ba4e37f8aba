#include "passes/structure/infer_type.h"

#include "types/infer.h"

namespace relay {

const Pass kInferType{"InferType",
                      0,
                      Form::any,
                      Form::any,
                      "Completes the types of a program.",
                      [](const Module& mod, PassContext&) { return infer_types(mod); }};

}  // namespace relay
