// What options must be before anything is compiled with them.
#pragma once

#include "driver/compile.h"

namespace relay {

// Throws UserError E0702 for a level, a number of threads or a configuration key or value that
// means nothing, and E0301 for an unknown pass. The target is checked where it is resolved.
void check_options(const CompileOptions& options);

}  // namespace relay
