#include "passes/layout/fewer_products.h"

#include <algorithm>

namespace relay {

bool has_fewer_products(const ConvolutionSizes& sizes, const PassContext& ctx) {
  static constexpr const ConvolutionAlgorithm* kAlgorithms[] = {
#define RELAY_CONVOLUTION_ALGORITHM(name) &k##name##Algorithm,
#include "passes/layout/convolution_algorithms.def"
#undef RELAY_CONVOLUTION_ALGORITHM
  };
  return std::any_of(std::begin(kAlgorithms), std::end(kAlgorithms),
                     [&](const ConvolutionAlgorithm* a) {
                       return ctx.enabled(a->pass) && a->takes(sizes, ctx.target);
                     });
}

}  // namespace relay
