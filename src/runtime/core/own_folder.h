// Where the runtime is installed.
#pragma once

#include <string>

namespace relay::runtime {

// The folder of the library or program with this code, with a trailing slash; empty if the system does not report it.
std::string own_folder();

}  // namespace relay::runtime
