// Closed integer intervals with open ends: what is known of an index expression's value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace relay::tir {

// min <= value <= max; an end that is not known is kNoMin or kNoMax. What may wrap has no known end.
struct Bounds {
  static constexpr int64_t kNoMin = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kNoMax = std::numeric_limits<int64_t>::max();

  int64_t min = kNoMin;
  int64_t max = kNoMax;

  static Bounds exactly(int64_t v) { return {v, v}; }
  bool has_min() const { return min != kNoMin; }
  bool has_max() const { return max != kNoMax; }
  bool is_constant() const { return min == max; }
  bool within(int64_t low, int64_t high) const { return min >= low && max <= high; }
};

Bounds operator+(const Bounds& a, const Bounds& b);
Bounds operator*(const Bounds& a, int64_t k);
Bounds operator*(const Bounds& a, const Bounds& b);
// The union's hull and the intersection.
Bounds hull(const Bounds& a, const Bounds& b);
Bounds intersect(const Bounds& a, const Bounds& b);
// floor(a / c), c > 0.
Bounds floor_div(const Bounds& a, int64_t c);

}  // namespace relay::tir
