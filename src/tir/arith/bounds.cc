#include "tir/arith/bounds.h"

#include "tir/scalar.h"

namespace relay::tir {
namespace {

__extension__ typedef __int128 Wide;

// A lower end keeps to kNoMin when it does not fit, an upper end to kNoMax.
int64_t lower(Wide v) {
  return v <= Bounds::kNoMin || v >= Bounds::kNoMax ? Bounds::kNoMin : static_cast<int64_t>(v);
}
int64_t upper(Wide v) {
  return v <= Bounds::kNoMin || v >= Bounds::kNoMax ? Bounds::kNoMax : static_cast<int64_t>(v);
}

}  // namespace

Bounds operator+(const Bounds& a, const Bounds& b) {
  return {a.has_min() && b.has_min() ? lower(Wide{a.min} + b.min) : Bounds::kNoMin,
          a.has_max() && b.has_max() ? upper(Wide{a.max} + b.max) : Bounds::kNoMax};
}

Bounds operator*(const Bounds& a, int64_t k) {
  if (k == 0) return Bounds::exactly(0);
  if (k > 0) {
    return {a.has_min() ? lower(Wide{a.min} * k) : Bounds::kNoMin,
            a.has_max() ? upper(Wide{a.max} * k) : Bounds::kNoMax};
  }
  return {a.has_max() ? lower(Wide{a.max} * k) : Bounds::kNoMin,
          a.has_min() ? upper(Wide{a.min} * k) : Bounds::kNoMax};
}

Bounds operator*(const Bounds& a, const Bounds& b) {
  if (a.is_constant()) return b * a.min;
  if (b.is_constant()) return a * b.min;
  bool finite = a.has_min() && a.has_max() && b.has_min() && b.has_max();
  if (!finite) {
    // Only signs are known.
    if (a.min >= 0 && b.min >= 0) return {lower(Wide{a.min} * b.min), Bounds::kNoMax};
    return {};
  }
  Wide p[] = {Wide{a.min} * b.min, Wide{a.min} * b.max, Wide{a.max} * b.min, Wide{a.max} * b.max};
  return {lower(*std::min_element(p, p + 4)), upper(*std::max_element(p, p + 4))};
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
