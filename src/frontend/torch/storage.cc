#include "frontend/torch/storage.h"

#include <cstring>

#include "frontend/common/tensor_bytes.h"

namespace relay::frontend::torch {
namespace {

// The elements at strides, in row-major order.
Tensor gathered(std::string_view from, DType dtype, const Strided& layout) {
  Tensor out = Tensor::empty(dtype, layout.sizes);
  const size_t width = dtype.bytes(), rank = layout.sizes.size();
  std::vector<int64_t> at(rank, 0);
  int64_t place = 0;
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    std::memcpy(out.data<char>() + static_cast<size_t>(i) * width,
                from.data() + static_cast<size_t>(place) * width, width);
    for (size_t a = rank; a-- > 0;) {
      place += layout.strides[a];
      if (++at[a] < layout.sizes[a]) break;
      place -= layout.strides[a] * layout.sizes[a];
      at[a] = 0;
    }
  }
  return out;
}

}  // namespace

Tensor tensor_in_storage(std::string_view storage, DType dtype, const Strided& layout,
                         const std::string& name, const Span& span,
                         const std::shared_ptr<const MappedFile>& file) {
  const std::vector<int64_t> shape = checked_shape(layout.sizes, name, dtype, span);
  const int64_t count = runtime::checked_num_elements(dtype, shape);
  const auto width = static_cast<int64_t>(dtype.bytes());
  if (layout.strides.size() != shape.size() || layout.offset < 0)
    bad_tensor(span, "the strides of " + quoted_tensor(name) + " make no sense");
  if (count == 0) return Tensor::empty(dtype, shape);
  // The place behind the last element.
  int64_t end = 0, expected = 1;
  bool fits = true, dense = true;
  for (size_t a = shape.size(); a-- > 0;) {
    const int64_t stride = layout.strides[a];
    int64_t reach = 0;
    fits = fits && stride >= 0 && !__builtin_mul_overflow(shape[a] - 1, stride, &reach) &&
           !__builtin_add_overflow(end, reach, &end);
    dense = dense && (shape[a] == 1 || stride == expected);
    expected *= shape[a];
  }
  int64_t behind = 0;
  fits = fits && !__builtin_add_overflow(layout.offset, int64_t{1}, &behind) &&
         !__builtin_add_overflow(end, behind, &end) && !__builtin_mul_overflow(end, width, &end);
  if (!fits || static_cast<uint64_t>(end) > storage.size()) {
    bad_tensor(span, quoted_tensor(name) + " does not fit its storage",
               fits ? std::to_string(end) + " bytes or more" : "strides within the storage",
               std::to_string(storage.size()));
  }
  // Elements that repeat may be many more than are stored.
  if (!dense && static_cast<uint64_t>(count) > storage.size() + (uint64_t{1} << 24))
    bad_tensor(span, quoted_tensor(name) + " repeats its elements too often");
  const std::string_view from = storage.substr(static_cast<size_t>(layout.offset * width));
  if (!dense) return gathered(from, dtype, layout);
  return tensor_from_bytes(from.substr(0, static_cast<size_t>(count * width)), dtype, shape, file);
}

}  // namespace relay::frontend::torch
