// Algorithms that compute a convolution with fewer products than its definition: each is a pass, which a program's other passes
// may leave convolutions to. A new one is a line in convolution_algorithms.def.
#pragma once

#include <cstdint>
#include <vector>

#include "passes/pass.h"

namespace relay {

// A convolution with one group, stride 1 and no dilation; channels last.
struct ConvolutionSizes {
  static constexpr int64_t kUnknown = -1;

  int64_t batch = 1;
  // Along the spatial axes; of the result kUnknown for a symbolic size without a typical one.
  std::vector<int64_t> result, taps;
  int64_t inputs = 0, outputs = 0;  // channels
  bool constant_weight = true;      // otherwise each run transforms the weight
  // Whether the other form multiplies two bfloat16 at a time, instead of one float32.
  bool pairs = false;
};

struct ConvolutionAlgorithm {
  const Pass& pass;
  // Whether the pass takes convolutions of these sizes.
  bool (*takes)(const ConvolutionSizes& sizes, const Target& target);
};

#define RELAY_CONVOLUTION_ALGORITHM(name) extern const ConvolutionAlgorithm k##name##Algorithm;
#include "passes/layout/convolution_algorithms.def"
#undef RELAY_CONVOLUTION_ALGORITHM

// Whether one of the algorithms whose passes run takes convolutions of these sizes.
bool has_fewer_products(const ConvolutionSizes& sizes, const PassContext& ctx);

}  // namespace relay
