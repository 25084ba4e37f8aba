// Programs on the reference evaluator (eval/evaluator.h), with the face of compiled ones.
#pragma once

#include <string>
#include <string_view>

#include "eval/evaluator.h"
#include "ir/module.h"
#include "runtime/vm/bytecode.h"

namespace relay {

// A parameter or result of that type, as a compiled function describes it; the type may be null.
runtime::Slot slot_of(std::string name, const Type& type);

// The parameters and results of a function as its compiled form would name and type them, without
// code. UserError E0612 when the module has no such function.
runtime::Function signature_of(const Module& mod, std::string_view function);

// The result of a function in text form, as ir/text/print_value.h says.
std::string result_text(const Module& mod, std::string_view function, const runtime::Value& result,
                        const std::function<std::string(int32_t tag)>& closure_name);

}  // namespace relay
