#include "quantize/range.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace relay::quantize {
namespace {

constexpr size_t kBins = 2048;
constexpr int kLevels = 256;

// KL divergence from `p` of the part of `p` that `levels` equal steps keep; the last entry of `p` includes all
// values beyond. Neither is normalised: constant factors are omitted if they are the same for all candidates.
double divergence(const std::vector<double>& counts, double beyond, size_t levels) {
  std::vector<double> p = counts;
  p.back() += beyond;
  std::vector<double> q(counts.size(), 0);
  for (size_t level = 0; level < levels; ++level) {
    size_t begin = level * counts.size() / levels, end = (level + 1) * counts.size() / levels;
    double sum = 0;
    size_t filled = 0;
    for (size_t i = begin; i < end; ++i) {
      sum += counts[i];
      filled += p[i] > 0;
    }
    for (size_t i = begin; i < end; ++i) {
      if (p[i] > 0) q[i] = sum / static_cast<double>(filled);
    }
  }
  double p_sum = std::accumulate(p.begin(), p.end(), 0.0);
  double q_sum = std::accumulate(q.begin(), q.end(), 0.0);
  if (q_sum == 0) return HUGE_VAL;
  double out = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0) continue;
    // Values that rounding makes impossible count as rare.
    constexpr double kRare = 1e-9;
    double pi = p[i] / p_sum, qi = std::max(q[i] / q_sum, kRare);
    out += pi * std::log(pi / qi);
  }
  return out;
}

}  // namespace

std::string_view to_string(Calibration c) {
  switch (c) {
    case Calibration::min_max:
      return "min_max";
    case Calibration::percentile:
      return "percentile";
    case Calibration::entropy:
      return "entropy";
    case Calibration::global_scale:
      return "global_scale";
  }
  return "";
}

std::optional<Calibration> calibration_of(std::string_view name) {
  for (Calibration c : {Calibration::min_max, Calibration::percentile, Calibration::entropy,
                        Calibration::global_scale}) {
    if (to_string(c) == name) return c;
  }
  return std::nullopt;
}

Scale scale_of(const Range& range, DType data) {
  if (data.is_int()) {
    auto scale = static_cast<float>(std::max(-range.low, range.high) / (kLevels / 2));
    return {scale > 0 ? scale : 1, 0};
  }
  double width = range.high - range.low;
  auto scale = static_cast<float>(width / (kLevels - 1));
  if (!(scale > 0)) return {};
  double zero = std::nearbyint(-range.low / scale);
  return {scale, static_cast<int32_t>(std::clamp(zero, 0.0, double{kLevels - 1}))};
}

bool Histogram::extend(const Tensor& t) {
  auto* x = t.data<float>();
  float low = 0, high = 0;
  bool finite = true;
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
    finite = finite && std::isfinite(x[i]);
  }
  reach_.low = std::min(reach_.low, double{low});
  reach_.high = std::max(reach_.high, double{high});
  return finite;
}

double Histogram::bin_width() const { return (reach_.high - reach_.low) / kBins; }

void Histogram::count(const Tensor& t) {
  if (bins_.empty()) bins_.resize(kBins, 0);
  double per_unit = bin_width() > 0 ? 1 / bin_width() : 0;
  auto* x = t.data<float>();
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    double at = (x[i] - reach_.low) * per_unit;
    ++bins_[static_cast<size_t>(std::clamp(at, 0.0, double{kBins - 1}))];
  }
}

Range Histogram::choose(Calibration calibration, double percentile) const {
  if (bins_.empty() || !(bin_width() > 0)) return reach_;
  switch (calibration) {
    case Calibration::min_max:
    case Calibration::global_scale:
      return reach_;
    case Calibration::percentile:
      return cut_tails(percentile);
    case Calibration::entropy:
      return least_divergence();
  }
  return reach_;
}

Range Histogram::cut_tails(double percentile) const {
  auto total = static_cast<double>(std::accumulate(bins_.begin(), bins_.end(), int64_t{0}));
  double tail = total * (100 - percentile) / 100;
  size_t first = 0, last = kBins;
  for (double cut = 0; first < last && (cut += static_cast<double>(bins_[first])) <= tail;) ++first;
  for (double cut = 0; last > first && (cut += static_cast<double>(bins_[last - 1])) <= tail;)
    --last;
  double width = bin_width();
  return {std::min(0.0, reach_.low + width * static_cast<double>(first)),
          std::max(0.0, reach_.low + width * static_cast<double>(last))};
}

Range Histogram::least_divergence() const {
  double width = bin_width();
  double reach = std::max(-reach_.low, reach_.high);
  // The distribution of magnitudes; a tensor with one sign has all levels for it, another half of them.
  std::vector<double> magnitudes(kBins, 0);
  for (size_t i = 0; i < kBins; ++i) {
    double middle = reach_.low + width * (static_cast<double>(i) + 0.5);
    double at = std::abs(middle) / reach * kBins;
    magnitudes[std::min(static_cast<size_t>(at), kBins - 1)] += static_cast<double>(bins_[i]);
  }
  // Exact zeros are exact in every scale.
  magnitudes[0] = 0;
  bool one_sign = reach_.low == 0 || reach_.high == 0;
  size_t levels = one_sign ? kLevels : kLevels / 2;
  double total = std::accumulate(magnitudes.begin(), magnitudes.end(), 0.0);
  double best = HUGE_VAL, inside = 0;
  size_t cut = kBins;
  constexpr size_t kStep = 16;  // bins between candidates
  for (size_t end = 0, done = levels; done <= kBins; done += kStep) {
    for (; end < done; ++end) inside += magnitudes[end];
    double d =
        divergence({magnitudes.begin(), magnitudes.begin() + static_cast<std::ptrdiff_t>(done)},
                   total - inside, levels);
    if (d < best) {
      best = d;
      cut = done;
    }
  }
  double limit = reach * static_cast<double>(cut) / kBins;
  return {std::max(reach_.low, -limit), std::min(reach_.high, limit)};
}

}  // namespace relay::quantize
