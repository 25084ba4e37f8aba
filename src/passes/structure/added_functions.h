// Functions that a transformation adds to a module, which keeps those that it has.
#pragma once

#include <string>

#include "ir/module.h"

namespace relay {

// Throws UserError E0104 when the module has a function of that name.
void check_name_is_free(const Module& mod, const std::string& name);

// The module with the functions of `whole` that it does not have, and the data types that they need.
Module with_what_is_new(const Module& mod, const Module& whole);

}  // namespace relay
