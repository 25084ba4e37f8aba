// NumPy's .npy files, versions 1 to 3, and .npz archives of them, compressed or not.
#pragma once

#include <map>
#include <string>

#include "runtime/core/tensor.h"
#include "runtime/temporary_file.h"

namespace relay {

// Throws UserError E0701 for a file that is no .npy, is truncated, or holds what a tensor cannot
// (objects, structures, big-endian numbers). Fortran order is converted.
runtime::Tensor read_npy(const std::string& path);
// The arrays by their names. Throws E0701 as read_npy, and for damaged archives.
std::map<std::string, runtime::Tensor> read_npz(const std::string& path);
// bfloat16 is written as uint16 bits.
void write_npy(runtime::TemporaryFile& file, const runtime::Tensor& tensor);
// An archive of arrays by their names, stored. UserError E0701 beyond 4 GiB.
void write_npz(runtime::TemporaryFile& file, const std::map<std::string, runtime::Tensor>& arrays);

}  // namespace relay
