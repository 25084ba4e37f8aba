// Standard input where a command takes a file: `relay opt -`.
#pragma once

#include <string>

namespace relay::cli {

// "/dev/stdin", a file from here on that can be opened any number of times: what a pipe or a terminal gives is read to its end and
// kept in memory. UserError E0701 if it cannot be read.
std::string standard_input();

}  // namespace relay::cli
