// NumPy's .npy files, versions 1 to 3.
#pragma once

#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/tensor.h"
#include "runtime/temporary_file.h"

namespace relay {

// Throws UserError E0701 for a file that is no .npy, is truncated, or holds what a tensor cannot
// (objects, structures, big-endian numbers). Fortran order is converted.
runtime::Tensor read_npy(const std::string& path);
// The same from a stream whose end is that of the file; `path` is for messages.
runtime::Tensor read_array(std::istream& in, const std::string& path);
// A .npy file: its header, and its elements, which may be the tensor's memory. bfloat16 is written as uint16 bits, and
// dtypes that are only stored as uint8 bits.
struct NpyFile {
  std::string head;
  std::vector<uint32_t> text;
  std::string_view elements;
};
NpyFile npy_file(const runtime::Tensor& tensor);
void write_npy(runtime::TemporaryFile& file, const runtime::Tensor& tensor);
// Bits of bfloat16 in that dtype, where it is asked for; any other array as it is.
runtime::Tensor with_dtype(const runtime::Tensor& array, runtime::DType dtype);

}  // namespace relay
