// The description of a region that oneDNN computes: values and primitives, which python/relay/onednn.py writes as words of
// 64 bits with the constants behind them. It comes from an artifact, so nothing of it is trusted before `read` has checked it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace relay::onednn {

// Largest rank of a tensor of oneDNN.
inline constexpr size_t kMaxRank = 12;

// No description has zeros: `read` puts them in the place of empty operands.
enum class Role : int64_t { input, constant, computed, zeros };
enum class Kind : int64_t { convolution, matmul, pooling, eltwise, binary, conversion };
// dnnl_data_type_t.
enum class ElementType : int64_t { float32 = 3, int32 = 4, int8 = 5, uint8 = 6 };

struct ValueRow {
  Role role;
  ElementType type;
  std::vector<int64_t> dims;
  int64_t offset;  // of a constant, in bytes from the start of the description

  bool is_empty() const { return std::ranges::find(dims, 0) != dims.end(); }
};
struct PostOp {
  bool sum;  // adds the value that is the last operand
  int algorithm;
  float alpha, beta;
};
// The real number that an element stands for is scale * (element - zero).
struct Quantization {
  double scale = 1;
  int32_t zero = 0;
};
struct OpRow {
  Kind kind;
  // Source, weights; where there are some, bias, scales of the weights, addend.
  std::vector<int64_t> operands;
  size_t result;
  int algorithm;
  bool has_bias;
  bool has_scales;  // one for each channel, or for all; with the scale of the source as a factor
  Quantization source, quantized, addend;  // of the source, the result and the addend
  // convolution: strides, dilations, padding before, behind. matmul: whether the weights are transposed. pooling: as
  // convolution, and the window. Others: none.
  std::vector<std::vector<int64_t>> settings;
  std::vector<PostOp> post_ops;

  bool adds() const { return !post_ops.empty() && post_ops[0].sum; }
};
using Id = std::array<int64_t, 2>;
struct Description {
  std::vector<ValueRow> values;
  std::vector<int64_t> outputs;
  std::vector<OpRow> ops;

  // The size of the description, then the dimensions of the inputs and of the results: what a call of the region gets.
  std::vector<int64_t> sizes(int64_t bytes) const;
};

// The id of a description, a hash of all its bytes; std::runtime_error where it is none.
Id id_of(const void* data, int64_t bytes);

// Returns a description for a call with these sizes, whose operands are computed before they are read, whose primitives read
// and write no more than their values have, and whose constants lie within its bytes; std::runtime_error for any other. What
// oneDNN checks of a convolution, of pooling and of an activation is left to it. A dimension -1 - k in the words is the k-th
// symbolic size, which the inputs of the call determine. Operands are empty only where the result is: a product over no terms
// becomes one over a term of zeros.
Description read(const void* data, const int64_t* sizes);

}  // namespace relay::onednn
