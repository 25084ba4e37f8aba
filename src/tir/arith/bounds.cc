#include "tir/arith/bounds.h"

#include <optional>

#include "tir/scalar.h"

namespace relay::tir {
namespace {

__extension__ typedef __int128 Wide;

// The ends that are known, none where one does not fit: the value may wrap.
Bounds fitting(std::optional<Wide> min, std::optional<Wide> max) {
  auto fits = [](const std::optional<Wide>& v) {
    return !v || (*v > Bounds::kNoMin && *v < Bounds::kNoMax);
  };
  if (!fits(min) || !fits(max)) return {};
  return {min ? static_cast<int64_t>(*min) : Bounds::kNoMin,
          max ? static_cast<int64_t>(*max) : Bounds::kNoMax};
}

std::optional<Wide> known_min(const Bounds& b) {
  return b.has_min() ? std::optional<Wide>(b.min) : std::nullopt;
}
std::optional<Wide> known_max(const Bounds& b) {
  return b.has_max() ? std::optional<Wide>(b.max) : std::nullopt;
}
std::optional<Wide> sum(std::optional<Wide> a, std::optional<Wide> b) {
  return a && b ? std::optional<Wide>(*a + *b) : std::nullopt;
}
std::optional<Wide> scaled(std::optional<Wide> a, int64_t k) {
  return a ? std::optional<Wide>(*a * k) : std::nullopt;
}

}  // namespace

Bounds operator+(const Bounds& a, const Bounds& b) {
  return fitting(sum(known_min(a), known_min(b)), sum(known_max(a), known_max(b)));
}

Bounds operator*(const Bounds& a, int64_t k) {
  if (k == 0) return Bounds::exactly(0);
  const std::optional<Wide> low = scaled(known_min(a), k), high = scaled(known_max(a), k);
  return k > 0 ? fitting(low, high) : fitting(high, low);
}

Bounds operator*(const Bounds& a, const Bounds& b) {
  if (a.is_constant()) return b * a.min;
  if (b.is_constant()) return a * b.min;
  bool finite = a.has_min() && a.has_max() && b.has_min() && b.has_max();
  if (!finite) {
    // Only signs are known.
    if (a.min >= 0 && b.min >= 0) return fitting(Wide{a.min} * b.min, std::nullopt);
    return {};
  }
  Wide p[] = {Wide{a.min} * b.min, Wide{a.min} * b.max, Wide{a.max} * b.min, Wide{a.max} * b.max};
  return fitting(*std::min_element(p, p + 4), *std::max_element(p, p + 4));
}

Bounds hull(const Bounds& a, const Bounds& b) {
  return {std::min(a.min, b.min), std::max(a.max, b.max)};
}
Bounds intersect(const Bounds& a, const Bounds& b) {
  return {std::max(a.min, b.min), std::min(a.max, b.max)};
}

Bounds floor_div(const Bounds& a, int64_t c) {
  return {a.has_min() ? floor_div_int(a.min, c) : Bounds::kNoMin,
          a.has_max() ? floor_div_int(a.max, c) : Bounds::kNoMax};
}

}  // namespace relay::tir
