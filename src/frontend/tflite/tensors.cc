// The data of constant tensors: mapped where it is plain, unpacked where it is narrow, sparse or strings.
#include <algorithm>
#include <cstring>

#include "base/codes/frontend.h"
#include "frontend/common/model_value.h"
#include "frontend/tflite/model.h"
#include "runtime/core/strings.h"

namespace relay::frontend::tflite {
namespace {

using E = schema::ElementType;

// Bits of an element in the file, for types that are stored in less than a byte; 0 for others.
int narrow_bits(E type) {
  switch (type) {
    case E::int4:
    case E::uint4:
      return 4;
    case E::int2:
      return 2;
    default:
      return 0;
  }
}

// One byte for each element of a stream whose first element is in the lowest bits.
Tensor unpacked(std::string_view packed, const std::vector<int64_t>& shape, int bits,
                bool is_signed) {
  Tensor t = Tensor::empty(is_signed ? DType::Int(8) : DType::UInt(8), shape);
  const int per_byte = 8 / bits, mask = (1 << bits) - 1, sign = is_signed ? 1 << (bits - 1) : 0;
  auto* to = t.data<uint8_t>();
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    const int byte = static_cast<uint8_t>(packed[static_cast<size_t>(i / per_byte)]);
    const int value = byte >> (bits * static_cast<int>(i % per_byte)) & mask;
    to[i] = static_cast<uint8_t>((value ^ sign) - sign);
  }
  return t;
}

// Strings: their number, as many offsets and the end, all int32, then the bytes.
Tensor strings(std::string_view bytes, const std::vector<int64_t>& shape, const Span& span) {
  auto word = [&](size_t i) {
    int32_t v = 0;
    if ((i + 1) * 4 > bytes.size()) bad_tensor(span, "the strings of a tensor are cut off");
    std::memcpy(&v, bytes.data() + i * 4, 4);
    return v;
  };
  const int64_t count = runtime::checked_num_elements(DType::String(), shape);
  if (word(0) != count) {
    bad_tensor(span, "a tensor does not have as many strings as elements", std::to_string(count),
               std::to_string(word(0)));
  }
  std::vector<std::string_view> parts;
  for (int64_t i = 0; i < count; ++i) {
    const int32_t begin = word(static_cast<size_t>(i) + 1), end = word(static_cast<size_t>(i) + 2);
    if (begin < 0 || end < begin || static_cast<size_t>(end) > bytes.size())
      bad_tensor(span, "a string of a tensor lies outside of its buffer");
    parts.push_back(bytes.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
  }
  return runtime::make_strings(runtime::Shape(shape.data(), shape.size()), parts);
}

// ---- Sparse weights

template <class Vector>
std::vector<int64_t> list_of(const Vector* values) {
  return values == nullptr ? std::vector<int64_t>()
                           : std::vector<int64_t>(values->begin(), values->end());
}

// The entries of a vector of indices, whatever their width.
std::vector<int64_t> entries(schema::SparseIndices kind, const void* table) {
  if (table == nullptr) return {};
  switch (kind) {
    case schema::SparseIndices::Int32Vector:
      return list_of(static_cast<const schema::Int32Vector*>(table)->values());
    case schema::SparseIndices::Uint16Vector:
      return list_of(static_cast<const schema::Uint16Vector*>(table)->values());
    case schema::SparseIndices::Uint8Vector:
      return list_of(static_cast<const schema::Uint8Vector*>(table)->values());
    default:
      return {};
  }
}

// Stored elements in the order of `traversal_order`, whose axes from the rank on count places within blocks: each level
// is dense, or lists the places of each line of the level before it.
struct SparseLevel {
  bool dense = true;
  int64_t size = 0;    // places along its axis
  int64_t stride = 0;  // from a place to the next one, in elements of the dense tensor
  std::vector<int64_t> segments, indices;
};

// The place in the dense tensor of every one of the `stored` elements; nullopt where levels contradict themselves. Time
// and memory are in proportion to the levels, their lists and the elements.
std::optional<std::vector<int64_t>> places_of(const std::vector<SparseLevel>& levels,
                                              size_t stored) {
  struct Line {
    int64_t position;  // in its level
    int64_t place;     // in the dense tensor
  };
  // How many lines each level may have: the next list says it, or the stored elements do.
  std::vector<size_t> most(levels.size(), stored);
  for (size_t l = levels.size(); l-- > 1;)
    most[l - 1] = levels[l].dense ? most[l] : levels[l].segments.size();
  // Breadth first, one level after another: lines stay in the order in which elements are stored.
  std::vector<Line> lines{{0, 0}};
  for (size_t l = 0; l < levels.size(); ++l) {
    const SparseLevel& level = levels[l];
    std::vector<Line> next;
    for (const Line& line : lines) {
      int64_t begin = 0, end = level.size;
      if (!level.dense) {
        const auto p = static_cast<size_t>(line.position);
        if (p + 1 >= level.segments.size()) return std::nullopt;
        begin = level.segments[p];
        end = level.segments[p + 1];
        const auto count = static_cast<int64_t>(level.indices.size());
        if (begin < 0 || end < begin || end > count) return std::nullopt;
      }
      if (static_cast<uint64_t>(end - begin) > most[l] - next.size()) return std::nullopt;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t index = level.dense ? i : level.indices[static_cast<size_t>(i)];
        if (index < 0 || index >= level.size) return std::nullopt;
        next.push_back(
            {level.dense ? line.position * level.size + i : i, line.place + index * level.stride});
      }
    }
    lines = std::move(next);
  }
  if (lines.size() != stored) return std::nullopt;
  std::vector<int64_t> out;
  for (const Line& line : lines) out.push_back(line.place);
  return out;
}

// The levels of a tensor of this shape; empty where they contradict it.
std::vector<SparseLevel> levels_of(const schema::Sparsity& sparsity,
                                   const std::vector<int64_t>& shape) {
  const size_t rank = shape.size();
  const auto *order = sparsity.traversal_order(), *blocks = sparsity.block_map();
  const auto* dimensions = sparsity.dimensions();
  const size_t num_blocks = blocks == nullptr ? 0 : blocks->size();
  // An axis has one block at most, so the levels are few.
  const size_t count = rank + num_blocks;
  if (num_blocks > rank || order == nullptr || order->size() != count || dimensions == nullptr ||
      dimensions->size() != count)
    return {};
  const std::vector<int64_t> axes = list_of(order), block_axes = list_of(blocks);
  std::vector<int64_t> sorted = axes;
  std::ranges::sort(sorted);
  for (size_t l = 0; l < count; ++l)
    if (sorted[l] != static_cast<int64_t>(l)) return {};
  auto dimension = [&](size_t level) -> const schema::SparseDimension& {
    return *dimensions->Get(static_cast<flatbuffers::uoffset_t>(level));
  };
  std::vector<int64_t> block_size(rank, 0);
  for (size_t l = 0; l < count; ++l) {
    if (axes[l] < static_cast<int64_t>(rank)) continue;
    const int64_t of = block_axes[static_cast<size_t>(axes[l]) - rank];
    if (of < 0 || of >= static_cast<int64_t>(rank)) return {};
    int64_t& size = block_size[static_cast<size_t>(of)];
    if (size != 0 || dimension(l).dense_size() < 1) return {};
    size = dimension(l).dense_size();
    if (shape[static_cast<size_t>(of)] % size != 0) return {};
  }
  std::vector<int64_t> stride(rank, 1);
  for (size_t a = rank; a-- > 1;) stride[a - 1] = stride[a] * shape[a];
  std::vector<SparseLevel> levels;
  for (size_t l = 0; l < count; ++l) {
    const auto axis = static_cast<size_t>(axes[l]);
    const schema::SparseDimension& d = dimension(l);
    SparseLevel level;
    level.dense = d.kind() == schema::DimensionKind::dense;
    if (axis < rank) {
      const int64_t block = std::max<int64_t>(block_size[axis], 1);
      level.size = shape[axis] / block;
      level.stride = stride[axis] * block;
    } else {
      const auto of = static_cast<size_t>(block_axes[axis - rank]);
      level.size = block_size[of];
      level.stride = stride[of];
    }
    if (level.dense && d.dense_size() != level.size) return {};
    if (!level.dense) {
      level.segments = entries(d.segments_type(), d.segments());
      level.indices = entries(d.indices_type(), d.indices());
    }
    levels.push_back(std::move(level));
  }
  return levels;
}

Tensor densified(const schema::Sparsity& sparsity, std::string_view bytes, DType dtype,
                 const std::vector<int64_t>& shape, const Span& span) {
  const size_t width = dtype.bytes(), stored = bytes.size() / width;
  const std::vector<SparseLevel> levels = levels_of(sparsity, shape);
  std::optional<std::vector<int64_t>> places;
  if (!levels.empty()) places = places_of(levels, stored);
  if (!places) bad_tensor(span, "the description of a sparse tensor contradicts itself");
  Tensor out = Tensor::zeros(dtype, shape);
  for (size_t i = 0; i < stored; ++i) {
    std::memcpy(out.data<char>() + static_cast<size_t>((*places)[i]) * width,
                bytes.data() + i * width, width);
  }
  return out;
}

}  // namespace

Tensor Model::constant(const schema::Tensor& t, const std::function<void(int64_t)>& charge,
                       const Span& span) const {
  const auto stored = buffer(t.buffer());
  if (!stored) return nullptr;
  const auto dtype = dtype_of(t.type());
  if (!dtype) {
    bad_tensor(span, "a constant has an element type that Relay lacks", "numbers, bools or strings",
               name_of(t.type()));
  }
  const std::vector<int64_t> shape = checked_shape(list_of(t.shape()), name_of(t), *dtype, span);
  const int64_t count = runtime::checked_num_elements(*dtype, shape);
  const auto dense = static_cast<int64_t>(dtype->bytes()) * count;
  const int bits = narrow_bits(t.type());
  const bool sparse = t.sparsity() != nullptr && bits == 0;
  // Tensors may share a buffer, so copies of it are no smaller than the file.
  if (sparse || bits != 0 || dtype->is_bool()) charge(dense);
  if (dtype->is_string()) {
    charge(dense + static_cast<int64_t>(stored->size()));
    return strings(*stored, shape, span);
  }
  if (sparse) return densified(*t.sparsity(), *stored, *dtype, shape, span);
  const int64_t bytes = bits != 0 ? (count * bits + 7) / 8 : dense;
  if (static_cast<int64_t>(stored->size()) < bytes ||
      (static_cast<int64_t>(stored->size()) > bytes && bits == 0)) {
    bad_tensor(
        span, "the buffer of " + quoted_tensor(name_of(t)) + " does not have the size of its shape",
        std::to_string(bytes) + " bytes", std::to_string(stored->size()));
  }
  if (bits != 0) return unpacked(*stored, shape, bits, t.type() != E::uint4);
  return tensor_from_bytes(*stored, *dtype, shape, bytes_.mapped);
}

}  // namespace relay::frontend::tflite
