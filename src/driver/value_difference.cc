#include "driver/value_difference.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/quantities.h"
#include "runtime/core/strings.h"

namespace relay {
namespace {

struct Allowed {
  double relative = 0, absolute = 0;
};

Allowed standard_of(runtime::DType t) {
  if (t.is_float(64)) return {1e-8, 1e-9};
  if (t.is_float(32)) return {2e-4, 2e-5};
  if (t.is_float(16)) return {2e-2, 2e-3};
  if (t.is_floating()) return {1e-1, 1e-2};
  return {0, 0};
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.7g", value);
  return buffer;
}

std::string index_text(int64_t element, runtime::Shape shape) {
  std::string out;
  for (size_t i = shape.size(); i-- > 0; element /= shape[i])
    out = std::to_string(element % shape[i]) + (out.empty() ? "" : ", ") + out;
  return "(" + out + ")";
}

}  // namespace

Difference difference(const Tensor& got, const Tensor& want, const Tolerances& tolerances,
                      bool first_only) {
  Difference out;
  if (!got || !want || got.dtype() != want.dtype() ||
      !std::ranges::equal(got.shape(), want.shape())) {
    out.same_type = false;
    return out;
  }
  const int64_t n = want.num_elements();
  auto found = [&](int64_t i, double units) {
    ++out.count;
    if (units >= out.worst || out.count == 1) {
      out.worst = units;
      out.element = i;
    }
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (want.dtype().is_string()) {
    for (int64_t i = 0; i < n && !(first_only && out.count > 0); ++i)
      if (runtime::string_at(got, i) != runtime::string_at(want, i)) found(i, kInfinity);
    return out;
  }
  if (bit_equal(got, want)) return out;
  Allowed allowed = standard_of(want.dtype());
  if (tolerances.relative) allowed.relative = *tolerances.relative;
  if (tolerances.absolute) allowed.absolute = *tolerances.absolute;
  double scale = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double w = std::abs(want.get_as_double(i));
    if (std::isfinite(w)) scale = std::max(scale, w);
  }
  if (scale == 0) scale = 1;
  for (int64_t i = 0; i < n && !(first_only && out.count > 0); ++i) {
    const double g = got.get_as_double(i), w = want.get_as_double(i);
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    if (!std::isfinite(g) || !std::isfinite(w)) {
      out.greatest = kInfinity;
      found(i, kInfinity);
      continue;
    }
    const double off = std::abs(g - w),
                 limit = allowed.relative * std::abs(w) + allowed.absolute * scale;
    out.greatest = std::max(out.greatest, off);
    const double units = limit > 0 ? off / limit : std::numeric_limits<double>::infinity();
    if (off > limit) {
      found(i, units);
    } else {
      out.worst = std::max(out.worst, units);
    }
  }
  if (out.count > 0) {
    out.got = got.get_as_double(out.element);
    out.want = want.get_as_double(out.element);
  }
  return out;
}

std::string Difference::text(const Tensor& want_tensor) const {
  if (!same_type) return "another type";
  if (count == 0) return greatest == 0 ? "equal" : "at most " + number(greatest) + " apart";
  std::string out = std::to_string(count) + " of " +
                    counted(want_tensor.num_elements(), "element") +
                    (count == 1 ? " differs" : " differ");
  if (want_tensor.dtype().is_string())
    return out + ", the first at " + index_text(element, want_tensor.shape());
  return out + ", worst " + index_text(element, want_tensor.shape()) + ": " + number(got) +
         " instead of " + number(want);
}

NotFinite not_finite(const Tensor& t) {
  NotFinite out;
  if (!t || !t.dtype().is_floating()) return out;
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    const double v = t.get_as_double(i);
    out.nans += std::isnan(v) ? 1 : 0;
    out.infinities += std::isinf(v) ? 1 : 0;
  }
  return out;
}

ElementCounts element_counts(const Tensor& t, size_t parts, int64_t most) {
  ElementCounts out{HUGE_VAL, -HUGE_VAL, {}};
  const int64_t n = t.dtype().is_string() ? 0 : t.num_elements();
  const int64_t step = std::max<int64_t>(n - 1, 0) / most + 1;
  for (int64_t i = 0; i < n; i += step) {
    const double v = t.get_as_double(i);
    if (std::isfinite(v)) out.low = std::min(out.low, v), out.high = std::max(out.high, v);
  }
  if (!(out.low < out.high)) return out;
  out.counts.assign(parts, 0);
  for (int64_t i = 0; i < n; i += step) {
    const double v = t.get_as_double(i);
    if (!std::isfinite(v)) continue;
    const double share = (v - out.low) / (out.high - out.low);
    ++out.counts[std::min(static_cast<size_t>(share * static_cast<double>(parts)), parts - 1)];
  }
  return out;
}

std::string element_statistics(const Tensor& t) {
  double low = HUGE_VAL, high = -HUGE_VAL, sum = 0;
  NotFinite bad;
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    const double v = t.get_as_double(i);
    bad.nans += std::isnan(v) ? 1 : 0;
    bad.infinities += std::isinf(v) ? 1 : 0;
    if (!std::isfinite(v)) continue;
    low = std::min(low, v);
    high = std::max(high, v);
    sum += v;
  }
  std::string out;
  auto add = [&](const std::string& part) { out += (out.empty() ? "" : ", ") + part; };
  if (const int64_t finite = t.num_elements() - bad.nans - bad.infinities; finite > 0) {
    char buffer[120];
    std::snprintf(buffer, sizeof buffer, "min %.4g, max %.4g, mean %.4g", low, high,
                  sum / static_cast<double>(finite));
    add(buffer);
  }
  if (bad.nans > 0) add(std::to_string(bad.nans) + " NaN");
  if (bad.infinities > 0) add(std::to_string(bad.infinities) + " infinite");
  return out;
}

std::string statistics(const Tensor& t) {
  if (!t) return "of an unknown size";
  std::string out = runtime::type_string(t.dtype(), t.shape());
  if (t.dtype().is_string() || t.num_elements() == 0) return out;
  return t.num_elements() == 1 ? out + " = " + number(t.get_as_double(0))
                               : out + ": " + element_statistics(t);
}

}  // namespace relay
