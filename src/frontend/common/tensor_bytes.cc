#include "frontend/common/tensor_bytes.h"

#include <algorithm>
#include <cstring>

#include "base/codes/frontend.h"
#include "base/parallel.h"
#include "runtime/core/narrow.h"
#include "runtime/core/strings.h"

namespace relay::frontend {

void bad_tensor(const Span& span, std::string message, std::string expected, std::string found) {
  throw UserError(Diagnostic(codes::frontend_tensor, span, std::move(message))
                      .expected(std::move(expected))
                      .found(std::move(found))
                      .help("the model file is damaged or was written by a faulty exporter"));
}

std::string quoted_tensor(const std::string& name) {
  return name.empty() ? std::string("a tensor") : "tensor '" + escape_for_terminal(name, 200) + "'";
}

std::vector<int64_t> checked_shape(std::vector<int64_t> shape, const std::string& name, DType dtype,
                                   const Span& span) {
  if (shape.size() > kMaxRank) {
    bad_tensor(span, quoted_tensor(name) + " has too many dimensions",
               "at most " + std::to_string(kMaxRank), std::to_string(shape.size()));
  }
  auto bytes = static_cast<int64_t>(dtype.bytes());
  for (int64_t d : shape) {
    if (d < 0) {
      bad_tensor(span, quoted_tensor(name) + " has a negative dimension", "sizes of 0 or more",
                 std::to_string(d));
    }
    // Also when another dimension is zero: such a shape has no meaning anywhere.
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(d, 1), &bytes) ||
        bytes > (int64_t{1} << 62)) {
      bad_tensor(span, "the size of " + quoted_tensor(name) + " overflows", "a product below 2^62",
                 runtime::shape_to_string(shape));
    }
  }
  return shape;
}

Tensor tensor_from_bytes(std::string_view bytes, DType dtype, const std::vector<int64_t>& shape,
                         const std::shared_ptr<const MappedFile>& file) {
  constexpr size_t kMinMapped = 64u << 10;
  RELAY_CHECK(static_cast<int64_t>(bytes.size()) ==
                  runtime::checked_num_elements(dtype, shape) * static_cast<int64_t>(dtype.bytes()),
              "the bytes of a tensor");
  bool is_aligned = reinterpret_cast<uintptr_t>(bytes.data()) % dtype.bytes() == 0;
  if (file != nullptr && !dtype.is_bool() && !bytes.empty() &&
      (is_aligned || bytes.size() >= kMinMapped)) {
    auto owner = std::const_pointer_cast<MappedFile>(file);
    return Tensor::from_external(const_cast<char*>(bytes.data()), dtype, shape, owner, true);
  }
  Tensor t = Tensor::empty(dtype, shape);
  if (dtype.is_bool()) {
    for (size_t i = 0; i < bytes.size(); ++i) t.data<uint8_t>()[i] = bytes[i] != 0;
  } else if (!bytes.empty()) {
    std::memcpy(t.data(), bytes.data(), bytes.size());
  }
  return t;
}

int64_t stored_bits(DType dtype) {
  return dtype.is_narrow() ? runtime::narrow_format(dtype.code).bits : dtype.bits;
}

Tensor unpack_narrow(std::string_view packed, DType dtype, const std::vector<int64_t>& shape,
                     int64_t width) {
  const runtime::NarrowFormat& format = runtime::narrow_format(dtype.code);
  Tensor t = Tensor::empty(dtype, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    auto at = static_cast<size_t>(i * width / 8);
    int bits = static_cast<uint8_t>(packed[at]);
    if (i * width % 8 + format.bits > 8) bits |= static_cast<uint8_t>(packed[at + 1]) << 8;
    int low = bits >> (i * width % 8) & ((1 << format.bits) - 1);
    bool negative = !format.is_float && format.is_signed && low >> (format.bits - 1) != 0;
    t.data<uint8_t>()[i] = static_cast<uint8_t>(negative ? low - (1 << format.bits) : low);
  }
  return t;
}

namespace {

// A tile at a time: each side is touched in whole cache lines, so that lines of the same cache set
// (row lengths are often powers of two) do not push each other out.
template <class T>
void transpose_blocks(const char* from, T* to, int64_t rows, int64_t columns) {
  constexpr int64_t kTile = 16;
  T tile[kTile][kTile];
  for (int64_t r0 = 0; r0 < rows; r0 += kTile) {
    int64_t height = std::min(kTile, rows - r0);
    for (int64_t c0 = 0; c0 < columns; c0 += kTile) {
      int64_t width = std::min(kTile, columns - c0);
      for (int64_t r = 0; r < height; ++r) {
        std::memcpy(tile[r], from + static_cast<size_t>((r0 + r) * columns + c0) * sizeof(T),
                    static_cast<size_t>(width) * sizeof(T));
      }
      for (int64_t c = 0; c < width; ++c) {
        T* line = to + (c0 + c) * rows + r0;
        for (int64_t r = 0; r < height; ++r) line[r] = tile[r][c];
      }
    }
  }
}

}  // namespace

Tensor aligned(const Tensor& t) {
  if (reinterpret_cast<uintptr_t>(t.data()) % t.dtype().bytes() == 0) return t;
  Tensor copy = Tensor::empty(t.dtype(), t.shape());
  // The system clears new pages where they are touched first, which takes longer than the copy: on all threads.
  constexpr size_t kPart = size_t{8} << 20;
  constexpr int kThreads = 4;  // more wait for the memory
  const size_t bytes = t.byte_size(), parts = (bytes + kPart - 1) / kPart;
  for_each_parallel(parts, kThreads, [&](size_t i) {
    const size_t begin = i * kPart, size = std::min(kPart, bytes - begin);
    std::memcpy(copy.data<char>() + begin, t.data<char>() + begin, size);
  });
  MappedFile::forget({t.data<char>(), bytes});
  return copy;
}

Tensor transpose_matrix(const Tensor& matrix) {
  int64_t rows = matrix.dim(0), columns = matrix.dim(1);
  Tensor out = Tensor::empty(matrix.dtype(), {columns, rows});
  switch (matrix.dtype().bytes()) {
    case 1:
      transpose_blocks(matrix.data<char>(), out.data<uint8_t>(), rows, columns);
      break;
    case 2:
      transpose_blocks(matrix.data<char>(), out.data<uint16_t>(), rows, columns);
      break;
    case 4:
      transpose_blocks(matrix.data<char>(), out.data<uint32_t>(), rows, columns);
      break;
    default:
      transpose_blocks(matrix.data<char>(), out.data<uint64_t>(), rows, columns);
  }
  if (matrix.read_only()) MappedFile::forget({matrix.data<char>(), matrix.byte_size()});
  return out;
}

Tensor string_vector(const std::vector<std::string>& strings) {
  const int64_t size = static_cast<int64_t>(strings.size());
  return runtime::make_strings(runtime::Shape(&size, 1),
                               std::vector<std::string_view>(strings.begin(), strings.end()));
}

}  // namespace relay::frontend
