// How far the numbers of a tensor reach, and which of them integers of 8 bits should tell apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/tensor.h"

namespace relay::quantize {

enum class Calibration { min_max, percentile, entropy, global_scale };

// "min_max", "percentile", "entropy", "global_scale".
std::string_view to_string(Calibration c);
// The method of that name; nullopt when there is none.
std::optional<Calibration> calibration_of(std::string_view name);

// The smallest and the largest number seen, 0 always among them: it is then exact.
struct Range {
  double low = 0, high = 0;
};

// The integers that stand for data and weights.
struct IntegerForm {
  DType data = DType::UInt(8);  // of the range; or int8, around 0
  // Where halves of data go: "TONEAREST_EVEN", "UPWARD" or "TONEAREST".
  std::string rounding = "TONEAREST_EVEN";
  bool per_channel = true;  // weights have a scale for each output channel
  // The largest weight of a scale counts as the next power of 2, so that scales are powers of 2.
  bool power2_weights = false;
};

struct Scale {
  float scale = 1;
  int32_t zero_point = 0;
};
// uint8: the range in 255 steps. int8: the larger magnitude in 128 steps, as the first Relay has it.
Scale scale_of(const Range& range, DType data);

// The numbers of a tensor over many runs: first how far they reach, then, where the choice needs it, how
// often each part of the reach occurs.
class Histogram {
 public:
  // False for a float32 tensor with a number that is not finite.
  bool extend(const Tensor& t);
  // After all of `extend`. Numbers beyond the reach fall into the last bins.
  void count(const Tensor& t);

  const Range& reach() const { return reach_; }
  // The range to be resolved; all of it for min_max, and for global_scale, which does not depend on numbers.
  // percentile: as much is cut off at each end as leaves `percentile` of 100 numbers.
  // entropy: cuts both ends at one magnitude, the one whose rounding to 8 bits loses least information
  // (Migacz, "8-bit inference with TensorRT", GTC 2017).
  Range choose(Calibration calibration, double percentile) const;

 private:
  Range cut_tails(double percentile) const;
  Range least_divergence() const;
  double bin_width() const;

  Range reach_;
  std::vector<int64_t> bins_;
};

}  // namespace relay::quantize
