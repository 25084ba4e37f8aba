// Tensors that lie by strides in a storage, as PyTorch stores them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/common/mapped_file.h"
#include "runtime/core/tensor.h"

namespace relay::frontend::torch {

using runtime::DType;
using runtime::Tensor;

// Sizes, strides and the place of the first element, in elements.
struct Strided {
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;
};

// The tensor in row-major order: a view of the bytes where they are so in a mapped `file`, which it keeps alive, and a copy
// otherwise. E0508 for what does not lie within the bytes.
Tensor tensor_in_storage(std::string_view storage, DType dtype, const Strided& layout,
                         const std::string& name, const Span& span,
                         const std::shared_ptr<const MappedFile>& file);

}  // namespace relay::frontend::torch
