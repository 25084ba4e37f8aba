// Functions of the C and mathematics libraries, by name: what the code of kernels calls beside the runtime.
#pragma once

#include <string>

namespace relay::runtime {

// Null when the libraries of the process have none of that name. A runtime for a device (RELAY_RUNTIME_ONLY) looks in a table of
// its own, so that it can be part of a program without a dynamic loader.
void* system_symbol(const std::string& name);

}  // namespace relay::runtime
