// The commands that watch runs call by call (driver/watched_run.h).
#pragma once

#include "cli/command.h"

namespace relay::cli {

Command debug_command();
Command diff_command();

}  // namespace relay::cli
