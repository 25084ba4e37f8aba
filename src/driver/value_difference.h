// How two tensors differ, and which of their numbers are not finite.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/tensor.h"

namespace relay {

// |got - want| may be relative * |want| + absolute * the greatest |want| of the tensor. Without a value, what rounding
// accounts for in a network: for float32 2e-4 and 2e-5, for float16 2e-2 and 2e-3, for integers 0.
struct Tolerances {
  std::optional<double> relative;
  std::optional<double> absolute;
};

struct Difference {
  // "another type": dtype or shape differ, and nothing else is said.
  bool same_type = true;
  int64_t count = 0;  // elements beyond the tolerances
  double worst =
      0;  // the greatest difference, in units of what is allowed; infinite beside NaN or infinity
  double greatest = 0;  // |got - want|
  int64_t element = 0;  // the worst of those beyond the tolerances
  double got = 0, want = 0;

  bool differs() const { return !same_type || count > 0; }
  // "3 of 10 elements differ, worst (1, 4): 0.5 instead of 0.25".
  std::string text(const Tensor& want_tensor) const;
};

// NaN equals NaN; strings are compared byte by byte. With `first_only` it ends at the first element that differs.
Difference difference(const Tensor& got, const Tensor& want, const Tolerances& tolerances,
                      bool first_only = false);

struct NotFinite {
  int64_t nans = 0;
  int64_t infinities = 0;
};
NotFinite not_finite(const Tensor& tensor);

// How often numbers of each size occur: between the least and the greatest finite element, in parts of equal width. Of a
// tensor of more elements than `most`, those at equal distances count. No counts: the elements are equal, or not finite.
struct ElementCounts {
  double low = 0, high = 0;
  std::vector<int64_t> counts;
};
ElementCounts element_counts(const Tensor& tensor, size_t parts,
                             int64_t most = std::numeric_limits<int64_t>::max());

// "Tensor[(2, 3), float32]: min -1.2, max 3.4, mean 0.1, 2 NaN", or "float32 = 2".
std::string statistics(const Tensor& tensor);
// "min 0, max 3, mean 1.5, 2 NaN, 1 infinite": the first three of the finite elements, where there are some.
std::string element_statistics(const Tensor& tensor);

}  // namespace relay
