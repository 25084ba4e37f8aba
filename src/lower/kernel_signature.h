// What is known of a kernel without its body: the interface between kernels and the plan.
//
//   const KernelSignature& s = provider.signature(kernel);
//   s.inputs, s.results      its buffers
//   s.in_place               the inputs that results may overwrite
//   s.scalar                 the kernel as arithmetic on registers, where it is that
//
// A signature is plain data: it holds for a kernel that is composed of operators, for one that an
// external library computes, and for one of several launches.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/expr.h"
#include "runtime/core/device.h"
#include "runtime/core/scalar_ops.h"

namespace relay {

// What a kernel computes.
enum class KernelOf {
  result,
  // The result, where all sizes that the operators broadcast to each other are equal, except for
  // those known to be 1.
  equal_sizes,
  // The sizes of the result (an int64 vector for each tensor), for a function that is one call of
  // an operator whose sizes are data-dependent.
  sizes,
};

// A buffer that a kernel reads or writes.
struct KernelOperand {
  runtime::DType dtype;  // as stored
  // -1: a size that only a run tells.
  std::vector<int64_t> shape;
  // The shape of the tensor that the buffer is part of, which gives its strides; empty: it is dense.
  std::vector<int64_t> within{};
  // From the first to the last element; -1 where it depends on sizes that only a run tells.
  int64_t bytes = -1;
  // Whether a variant of the kernel exists for a buffer with gaps between its rows.
  bool takes_strides = true;
};

// A kernel on scalars as arithmetic on registers. The inputs are values 0, 1, ..., and each
// instruction computes the next value.
struct ScalarForm {
  struct Instruction {
    enum Kind { kConstant, kInt, kFloat, kConvert, kIndex } kind;
    uint8_t op = 0;  // IntOp, FloatOp or ScalarConversion
    int bits = 64;
    int32_t a = 0;
    int32_t b = 0;
    int64_t constant = 0;
    std::string place{};  // of kIndex, in the source
    bool used = false;
  };

  std::vector<Instruction> instructions;
  int32_t result = 0;
};

// An input whose memory a result may share, each by its place among the kernel's: an element of the input
// is read just before the result's element at the same index is written, or not at all.
struct InPlace {
  size_t input = 0;
  size_t result = 0;

  friend bool operator==(const InPlace&, const InPlace&) = default;
};

// Memory that a kernel uses from its first launch to its last; its content is undefined before and
// after. A dimension is a number or one of the signature's sizes; memory for each thread is an axis as
// long as the target has threads.
struct KernelWorkspace {
  TensorType type;
  int64_t bytes = -1;  // -1 where they depend on sizes that only a run tells
};

// A call of code that a kernel is made of. Buffers are numbered: the inputs, then the results, then
// the working memory.
struct KernelLaunch {
  std::string name;  // a C identifier, unique in the program
  std::vector<size_t> reads;
  std::vector<size_t> writes;
};

// Whose code a kernel is.
struct KernelEntry {
  enum class Kind : uint8_t {
    generated,  // a function of the artifact for each launch
    library,    // a function of a library beside the runtime
    host,       // a function that the process registers
  };
  Kind kind = Kind::generated;
  std::string file{};    // of a library: its file name
  std::string symbol{};  // the function's name in the library or the process
};

struct KernelSignature {
  std::string name;  // a C identifier; of a variant it is unique in the program
  std::vector<KernelOperand> inputs;
  std::vector<KernelOperand> results;
  // Numbers that a call passes behind the buffers: sizes over the names of the function's parameters.
  std::vector<Dim> sizes;
  std::vector<InPlace> in_place;
  std::vector<KernelWorkspace> workspace;
  // In this order, each behind the one before it; at least one.
  std::vector<KernelLaunch> launches;
  KernelEntry entry;
  // Set where every parameter and the result are scalars and registers have all the operations.
  std::optional<ScalarForm> scalar;
  // Floating-point operations, and bytes read and written once each; 0 when unknown or when they
  // depend on sizes that only a run tells.
  double flops = 0;
  double bytes = 0;
  runtime::Device device{};

  bool may_overwrite(const InPlace& pair) const {
    return std::ranges::find(in_place, pair) != in_place.end();
  }
};

// The dtype of a rank-0 tensor that may be in an integer register; nothing for other types.
std::optional<runtime::DType> scalar_dtype(const Type& t);

// The bits of a number of a floating-point scalar's dtype, as an integer register holds them.
inline int64_t float_bits(runtime::DType dtype, double value) {
  return dtype.bits == 64 ? std::bit_cast<int64_t>(value)
                          : int64_t{std::bit_cast<int32_t>(static_cast<float>(value))};
}

}  // namespace relay
