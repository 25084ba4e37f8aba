// NumPy's .npz archives of .npy files, compressed or not.
#pragma once

#include <map>
#include <string>

#include "runtime/core/tensor.h"

namespace relay {

// The arrays by their names. Throws UserError E0701 as read_npy (device/npy.h), and for damaged archives.
std::map<std::string, runtime::Tensor> read_npz(const std::string& path);

}  // namespace relay
