// Functions that were put together into a module, each with variables of its own.
#pragma once

#include "ir/module.h"

namespace relay::bind {

// The module, where no two functions bind one variable; passes that inline functions rely on it. One object
// may be a function under two names, or a part of two functions: all but the first become copies.
// The identical module where nothing is shared. Linear.
Module with_own_variables(const Module& mod);

}  // namespace relay::bind
