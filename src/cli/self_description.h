// What the command says of itself: help, the manual page, and completions for shells, all from the commands' tables.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace relay::cli {

// What `relay --help` prints.
std::string overview(const std::vector<Command>& commands, size_t width);
// A manual page in roff.
std::string manual_page(const std::vector<Command>& commands);
// A completion script for "bash", "zsh" or "fish".
std::string completion_script(const std::vector<Command>& commands, const std::string& shell);

}  // namespace relay::cli
