// Random numbers that are the same on every machine (SplitMix64).
#pragma once

#include <cstdint>
#include <vector>

#include "base/diagnostic.h"

namespace relay::fuzz {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  // In [0, n).
  size_t below(size_t n) {
    RELAY_CHECK(n > 0);
    return static_cast<size_t>(next() % n);
  }
  // In [low, high].
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(below(static_cast<size_t>(high - low + 1)));
  }
  // In [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  bool percent(int p) { return below(100) < static_cast<size_t>(p); }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }
  // A stream of its own, so that what is drawn from it does not move what is drawn here.
  Random split() { return Random(next()); }

 private:
  uint64_t state_;
};

}  // namespace relay::fuzz
