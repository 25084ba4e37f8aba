// What options must be before anything is compiled with them.
#pragma once

#include <string>

#include "base/diagnostic.h"
#include "driver/compile.h"

namespace relay {

// Throws UserError E0702 for a level or a number of threads that means nothing, E0301 for an unknown pass, and E0313
// for an option that no pass has or a value that is not of its type. The target is checked where it is resolved.
void check_options(const CompileOptions& options);

// E0704, of a line that a user typed.
UserError wrong_usage(std::string message, std::string help);

}  // namespace relay
