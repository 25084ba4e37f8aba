// NumPy's .npy files, versions 1 to 3.
#pragma once

#include <string>

#include "runtime/core/tensor.h"
#include "runtime/temporary_file.h"

namespace relay::cli {

// Throws UserError E0701 for a file that is no .npy, is truncated, or holds what a tensor cannot
// (objects, structures, big-endian numbers). Fortran order is converted.
runtime::Tensor read_npy(const std::string& path);
// bfloat16 is written as uint16 bits.
void write_npy(runtime::TemporaryFile& file, const runtime::Tensor& tensor);

}  // namespace relay::cli
