// NumPy's .npz archives of .npy files, compressed or not.
#pragma once

#include <map>
#include <string>

#include "runtime/core/tensor.h"
#include "runtime/temporary_file.h"

namespace relay {

// The arrays by their names. Throws UserError E0701 as read_npy (run/npy.h), and for damaged archives.
std::map<std::string, runtime::Tensor> read_npz(const std::string& path);
// Arrays by their names, stored. UserError E0701 beyond 4 GiB.
void write_npz(runtime::TemporaryFile& file, const std::map<std::string, runtime::Tensor>& arrays);

}  // namespace relay
