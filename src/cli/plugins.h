// Plug-ins that a command loads before it does anything.
#pragma once

#include "cli/command.h"

namespace relay::cli {

// The command with --plugin: what the libraries add is there for all that it does.
Command with_plugins(Command command);

}  // namespace relay::cli
