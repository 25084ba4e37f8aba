#include "frontend/common/packed_weights.h"

#include <cmath>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/tensor_bytes.h"

namespace relay::frontend {
namespace {

const DType kFloat = DType::Float(32);
const DType kByte = DType::UInt(8);

// The sizes that follow from those of the weights.
struct Layout {
  int64_t blocks, bytes_of_block, per_byte, zero_bytes_of_row;
};

Layout layout_of(const PackedWeights& w) {
  const int64_t blocks = (w.inputs + w.block - 1) / w.block, per_byte = 8 / w.bits;
  return {blocks, w.block * w.bits / 8, per_byte, (blocks + per_byte - 1) / per_byte};
}

bool has_packed_zeros(const PackedWeights& w) { return w.zeros && w.zeros.dtype() == kByte; }

void check(const Builder& build, const PackedWeights& w) {
  constexpr int64_t kMost = int64_t{1} << 24;
  if ((w.bits != 2 && w.bits != 4 && w.bits != 8) || w.inputs < 1 || w.outputs < 1 || w.block < 1 ||
      w.inputs > kMost || w.outputs > kMost || w.block > kMost || w.block * w.bits % 8 != 0) {
    build.fail(codes::frontend_attribute, "the sizes of packed weights are out of range",
               "bits of 2, 4 or 8, and blocks of whole bytes");
  }
  const Layout at = layout_of(w);
  const int64_t zeros = has_packed_zeros(w) ? at.zero_bytes_of_row : at.blocks;
  if (w.packed.dtype() != kByte ||
      w.packed.num_elements() != w.outputs * at.blocks * at.bytes_of_block ||
      w.scales.num_elements() != w.outputs * at.blocks ||
      (w.zeros && w.zeros.num_elements() != w.outputs * zeros)) {
    build.fail(codes::type_shape, "the packed weights do not have the sizes that are declared",
               std::to_string(w.outputs * at.blocks * at.bytes_of_block) + " bytes and " +
                   std::to_string(w.outputs * at.blocks) + " scales");
  }
}

// The i-th of the numbers that begin at these bytes.
int64_t element(const PackedWeights& w, const uint8_t* bytes, int64_t i) {
  const int64_t per_byte = 8 / w.bits;
  return bytes[i / per_byte] >> (i % per_byte * w.bits) & ((1 << w.bits) - 1);
}

const uint8_t* bytes_of(const Tensor& t) { return static_cast<const uint8_t*>(t.data()); }

Tensor floats_of(const Tensor& t, const std::vector<int64_t>& shape) {
  Tensor out = Tensor::empty(kFloat, shape);
  for (int64_t i = 0; i < out.num_elements(); ++i) out.set_from_double(i, t.get_as_double(i));
  return out;
}

// Zero points as nn.contrib_dense_bits takes them: one for all, or one for each block, as floats or as bytes.
Tensor offsets_of(const PackedWeights& w) {
  const Layout at = layout_of(w);
  if (!w.zeros) return Tensor::scalar(int64_t{1} << (w.bits - 1), kByte);
  if (!has_packed_zeros(w)) return floats_of(w.zeros, {w.outputs, at.blocks});
  Tensor offsets = Tensor::empty(kByte, {w.outputs, at.blocks});
  for (int64_t i = 0; i < offsets.num_elements(); ++i) {
    const uint8_t* row = bytes_of(w.zeros) + i / at.blocks * at.zero_bytes_of_row;
    offsets.set_from_int(i, element(w, row, i % at.blocks));
  }
  return offsets;
}

// Where a block is whole words of 32 bits.
Expr product_of_words(const Builder& build, const Expr& data, const PackedWeights& w) {
  constexpr int64_t kBytes = 4;
  const Layout at = layout_of(w);
  build.charge_bytes(w.packed.num_elements(), kByte);
  // Bytes one after the other are words, the first as the lowest bits.
  Tensor words = Tensor::empty(DType::Int(32), {w.outputs, at.blocks * at.bytes_of_block / kBytes});
  for (int64_t i = 0; i < words.num_elements(); ++i) {
    uint32_t word = 0;
    for (int64_t b = 0; b < kBytes; ++b) {
      word |= static_cast<uint32_t>(bytes_of(w.packed)[i * kBytes + b]) << (b * 8);
    }
    words.set_from_int(i, static_cast<int32_t>(word));
  }
  Expr x = build.cast(data, kFloat);
  if (const int64_t more = at.blocks * w.block - w.inputs; more > 0) {
    ValueList widths(static_cast<size_t>(Builder::rank_of(x)), to_value({0, 0}));
    widths.back() = to_value({0, more});
    x = build.call("nn.pad", {x, constant(0, kFloat)},
                   {{"pad_width", AttrValue(std::move(widths))}});
  }
  Expr y = build.call(
      "nn.contrib_dense_bits",
      {x, build.constant(words), build.constant(floats_of(w.scales, {w.outputs, at.blocks})),
       build.constant(offsets_of(w))},
      {{"bits", w.bits}, {"units", w.outputs}, {"accuracy_level", w.accuracy_level}});
  return build.cast(y, Builder::dtype_of(data));
}

// The weights as floats.
Tensor unpacked(const PackedWeights& w) {
  const Layout at = layout_of(w);
  Tensor weight = Tensor::empty(kFloat, {w.outputs, w.inputs});
  for (int64_t row = 0; row < w.outputs; ++row) {
    for (int64_t column = 0; column < w.inputs; ++column) {
      const int64_t b = column / w.block, block = row * at.blocks + b;
      double zero = std::ldexp(1.0, static_cast<int>(w.bits) - 1);
      if (has_packed_zeros(w)) {
        zero = static_cast<double>(element(w, bytes_of(w.zeros) + row * at.zero_bytes_of_row, b));
      } else if (w.zeros) {
        zero = w.zeros.get_as_double(block);
      }
      const auto level = static_cast<double>(
          element(w, bytes_of(w.packed) + block * at.bytes_of_block, column % w.block));
      weight.set_from_double(row * w.inputs + column,
                             (level - zero) * w.scales.get_as_double(block));
    }
  }
  return weight;
}

}  // namespace

Expr packed_product(const Builder& build, const Expr& x, const PackedWeights& given) {
  check(build, given);
  PackedWeights w = given;
  w.scales = aligned(w.scales);
  if (w.zeros) w.zeros = aligned(w.zeros);
  if (w.block * w.bits % 32 == 0) return product_of_words(build, x, w);
  build.charge_bytes(w.outputs * w.inputs, kFloat);
  Expr weight = build.constant(unpacked(w));
  return build.call("nn.dense", {x, build.cast(weight, Builder::dtype_of(x))});
}

}  // namespace relay::frontend
