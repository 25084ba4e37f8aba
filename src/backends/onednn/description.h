// The description of a region that oneDNN computes: values and primitives, which python/relay/onednn.py writes as words of
// 64 bits with the constants behind them. It comes from an artifact, so nothing of it is trusted before `read` has checked it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace relay::onednn {

// Largest rank of a tensor of oneDNN.
inline constexpr size_t kMaxRank = 12;

enum class Role : int64_t { input, constant, computed };
enum class Kind : int64_t { convolution, matmul, pooling, eltwise, binary };

struct ValueRow {
  Role role;
  std::vector<int64_t> dims;
  int64_t offset;  // of a constant, in bytes from the start of the description
};
struct PostOp {
  bool sum;  // adds the value that is the last operand
  int algorithm;
  float alpha, beta;
};
struct OpRow {
  Kind kind;
  std::vector<int64_t>
      operands;  // source, weights, bias where there is one, addend where there is one
  size_t result;
  int algorithm;
  bool has_bias;
  // convolution: strides, dilations, padding before, behind. matmul: whether the weights are transposed. pooling: as
  // convolution, and the window. eltwise, binary: none.
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

// Returns a description whose operands are computed before they are read, whose primitives read and write no more than their
// values have, and whose constants lie within `bytes`; std::runtime_error for any other. What oneDNN checks of a
// convolution, of pooling and of an activation is left to it.
Description read(const void* data, int64_t bytes);

}  // namespace relay::onednn
