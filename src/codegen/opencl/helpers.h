// Functions in OpenCL C that printed kernels call, where the language has none of the same meaning.
#pragma once

#include <set>
#include <string>

namespace relay::codegen {

// The code of the functions with these names, and of those that they call. Throws InternalError for a name that is none.
std::string opencl_helpers(const std::set<std::string>& names);

}  // namespace relay::codegen
