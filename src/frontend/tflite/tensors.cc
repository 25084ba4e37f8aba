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

// The entries of a vector of indices, whatever their width.
std::vector<int64_t> entries(schema::SparseIndices kind, const void* table) {
  if (table == nullptr) return {};
  auto copy = [](const auto* values) {
    return values == nullptr ? std::vector<int64_t>()
                             : std::vector<int64_t>(values->begin(), values->end());
  };
  switch (kind) {
    case schema::SparseIndices::Int32Vector:
      return copy(static_cast<const schema::Int32Vector*>(table)->values());
    case schema::SparseIndices::Uint16Vector:
      return copy(static_cast<const schema::Uint16Vector*>(table)->values());
    case schema::SparseIndices::Uint8Vector:
      return copy(static_cast<const schema::Uint8Vector*>(table)->values());
    default:
      return {};
  }
}

// Stored elements in the order of `traversal_order`, whose axes from the rank on count places within blocks: each level
// is dense, or lists the places of each line of the level before it.
struct SparseReader {
  struct Level {
    bool dense = true;
    int64_t size = 0;
    std::vector<int64_t> segments, indices;
  };
  std::vector<Level> levels;
  std::vector<int64_t> order;       // the axis of each level
  std::vector<int64_t> block_axis;  // the axis of the tensor that a block axis is part of
  std::vector<int64_t> block_size;  // of each axis of the tensor, 1 for one without blocks
  std::vector<int64_t> shape;

  // The place in the dense tensor of every stored element; false where the description contradicts itself.
  bool places(std::vector<int64_t>& out, size_t most) const {
    struct Line {
      size_t level;
      int64_t position;
      std::vector<int64_t> at;  // along the axis of each level so far
    };
    // Breadth first, one level after another: lines stay in the order in which elements are stored.
    std::vector<Line> lines{{0, 0, {}}};
    for (size_t l = 0; l < levels.size(); ++l) {
      const Level& level = levels[l];
      std::vector<Line> next;
      for (const Line& line : lines) {
        int64_t begin = 0, end = level.size;
        if (!level.dense) {
          const auto p = static_cast<size_t>(line.position);
          if (p + 1 >= level.segments.size()) return false;
          begin = level.segments[p];
          end = level.segments[p + 1];
          if (begin < 0 || end < begin || end > static_cast<int64_t>(level.indices.size()))
            return false;
        }
        for (int64_t i = begin; i < end; ++i) {
          if (next.size() > most) return false;
          Line inner{l + 1, level.dense ? line.position * level.size + i : i, line.at};
          inner.at.push_back(level.dense ? i : level.indices[static_cast<size_t>(i)]);
          next.push_back(std::move(inner));
        }
      }
      lines = std::move(next);
    }
    const size_t rank = shape.size();
    for (const Line& line : lines) {
      std::vector<int64_t> at(rank, 0);
      for (size_t l = 0; l < levels.size(); ++l) {
        const auto axis = static_cast<size_t>(order[l]);
        if (axis < rank) {
          at[axis] += line.at[l] * block_size[axis];
        } else {
          at[static_cast<size_t>(block_axis[axis - rank])] += line.at[l];
        }
      }
      int64_t place = 0;
      for (size_t a = 0; a < rank; ++a) {
        if (at[a] < 0 || at[a] >= shape[a]) return false;
        place = place * shape[a] + at[a];
      }
      out.push_back(place);
    }
    return true;
  }
};

Tensor densified(const schema::Sparsity& sparsity, std::string_view bytes, DType dtype,
                 const std::vector<int64_t>& shape, const Span& span) {
  auto wrong = [&] { bad_tensor(span, "the description of a sparse tensor contradicts itself"); };
  SparseReader reader;
  reader.shape = shape;
  reader.block_size.assign(shape.size(), 1);
  if (sparsity.traversal_order() == nullptr || sparsity.dimensions() == nullptr) wrong();
  reader.order.assign(sparsity.traversal_order()->begin(), sparsity.traversal_order()->end());
  if (sparsity.block_map() != nullptr)
    reader.block_axis.assign(sparsity.block_map()->begin(), sparsity.block_map()->end());
  const size_t axes = shape.size() + reader.block_axis.size();
  if (reader.order.size() != axes || sparsity.dimensions()->size() != axes) wrong();
  for (size_t l = 0; l < axes; ++l) {
    const auto axis = static_cast<size_t>(reader.order[l]);
    const auto& d = *sparsity.dimensions()->Get(static_cast<flatbuffers::uoffset_t>(l));
    if (reader.order[l] < 0 || axis >= axes) wrong();
    SparseReader::Level level;
    level.dense = d.kind() == schema::DimensionKind::dense;
    level.size = d.dense_size();
    if (level.dense && level.size < 0) wrong();
    if (!level.dense) {
      level.segments = entries(d.segments_type(), d.segments());
      level.indices = entries(d.indices_type(), d.indices());
    }
    if (axis >= shape.size()) {
      const int64_t of = reader.block_axis[axis - shape.size()];
      if (of < 0 || of >= static_cast<int64_t>(shape.size()) || level.size < 1) wrong();
      reader.block_size[static_cast<size_t>(of)] = level.size;
    }
    reader.levels.push_back(std::move(level));
  }
  const size_t width = dtype.bytes(), stored = bytes.size() / width;
  std::vector<int64_t> places;
  if (!reader.places(places, stored) || places.size() != stored) wrong();
  Tensor out = Tensor::zeros(dtype, shape);
  for (size_t i = 0; i < stored; ++i) {
    std::memcpy(out.data<char>() + static_cast<size_t>(places[i]) * width, bytes.data() + i * width,
                width);
  }
  return out;
}

}  // namespace

Tensor Model::constant(const schema::Tensor& t, int64_t max_bytes, const Span& span) const {
  const auto stored = buffer(t.buffer());
  if (!stored) return nullptr;
  const auto dtype = dtype_of(t.type());
  if (!dtype) {
    bad_tensor(span, "a constant has an element type that Relay lacks", "numbers, bools or strings",
               name_of(t.type()));
  }
  std::vector<int64_t> declared;
  if (t.shape() != nullptr) declared.assign(t.shape()->begin(), t.shape()->end());
  const std::vector<int64_t> shape =
      checked_shape(std::move(declared), std::string(text_of(t.name())), *dtype, span);
  if (dtype->is_string()) return strings(*stored, shape, span);
  const int64_t count = runtime::checked_num_elements(*dtype, shape);
  const auto dense = static_cast<int64_t>(dtype->bytes()) * count;
  const int bits = narrow_bits(t.type());
  if (t.sparsity() != nullptr || bits != 0) {
    if (dense > max_bytes) {
      throw UserError(Diagnostic(codes::frontend_limit, span,
                                 "an unpacked tensor is larger than the bound on such constants")
                          .expected("at most " + std::to_string(max_bytes) + " bytes")
                          .found(std::to_string(dense)));
    }
  }
  if (t.sparsity() != nullptr && bits == 0)
    return densified(*t.sparsity(), *stored, *dtype, shape, span);
  const int64_t bytes = bits != 0 ? (count * bits + 7) / 8 : dense;
  if (static_cast<int64_t>(stored->size()) < bytes ||
      (static_cast<int64_t>(stored->size()) > bytes && bits == 0)) {
    bad_tensor(span,
               "the buffer of " + quoted_tensor(std::string(text_of(t.name()))) +
                   " does not have the size of its shape",
               std::to_string(bytes) + " bytes", std::to_string(stored->size()));
  }
  if (bits != 0) return unpacked(*stored, shape, bits, t.type() != E::uint4);
  return tensor_from_bytes(*stored, *dtype, shape, bytes_.mapped);
}

}  // namespace relay::frontend::tflite
