// Bytes of a model file as run-time tensors.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/common/mapped_file.h"
#include "runtime/core/tensor.h"

namespace relay::frontend {

using runtime::DType;
using runtime::Tensor;

inline constexpr int kMaxRank = 32;

// E0508: a tensor of the file makes no sense.
[[noreturn]] void bad_tensor(const Span& span, std::string message, std::string expected = {},
                             std::string found = {});
// "tensor 'w'", or "a tensor" without a name; safe to print.
std::string quoted_tensor(const std::string& name);

// The shape that a file declares for a tensor of that name; E0508 for a rank above kMaxRank, negative sizes, and sizes
// whose product overflows.
std::vector<int64_t> checked_shape(std::vector<int64_t> shape, const std::string& name, DType dtype,
                                   const Span& span);

// The elements as the bytes are stored, as many bytes as the shape needs: a view of those that are aligned or large in
// a mapped `file`, which the tensor keeps alive, and a copy of others. A view may be misaligned: pass it through
// `aligned` before its elements are used.
Tensor tensor_from_bytes(std::string_view bytes, DType dtype, const std::vector<int64_t>& shape,
                         const std::shared_ptr<const MappedFile>& file);

// The bits that a file stores for an element.
int64_t stored_bits(DType dtype);

// One byte for each element of a stream of `width` bits for each, the first in the lowest bits.
Tensor unpack_narrow(std::string_view packed, DType dtype, const std::vector<int64_t>& shape,
                     int64_t width);

// The tensor itself when its data has the alignment of its elements, a copy otherwise.
Tensor aligned(const Tensor& t);

// A matrix with rows and columns exchanged; its data may be misaligned.
Tensor transpose_matrix(const Tensor& matrix);

// Numbers as a tensor of rank 1, in float32 or another dtype.
template <class Number>
Tensor float_vector(const std::vector<Number>& numbers, DType dtype = DType::Float(32)) {
  Tensor t = Tensor::empty(dtype, {static_cast<int64_t>(numbers.size())});
  for (size_t i = 0; i < numbers.size(); ++i)
    t.set_from_double(static_cast<int64_t>(i), static_cast<double>(numbers[i]));
  return t;
}

// Strings as a tensor of rank 1.
Tensor string_vector(const std::vector<std::string>& strings);

}  // namespace relay::frontend
