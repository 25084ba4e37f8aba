// The types of a program's parameters and results, for values that are no tensors: an artifact keeps
// them as text, so that a loaded program takes and gives lists and other data.
#pragma once

#include <string>

#include "ir/module.h"
#include "runtime/module.h"

namespace relay {

// A program with the signatures of those functions of `program` that take or give data types, and the
// definitions of these; its functions call themselves. Empty when there are none. `mod` is the module
// that the program was made of.
std::string interface_text(const Module& mod, const runtime::Program& program);

// The module of that text of a loaded program; null when it has none. Throws UserError when the text is
// no program.
Module interface_of(const runtime::Module& loaded);

}  // namespace relay
