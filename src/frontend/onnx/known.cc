#include "frontend/onnx/known.h"

#include <algorithm>

namespace relay::importer {

bool Known::is_constant() const {
  return std::all_of(ints.begin(), ints.end(),
                     [](const Dim& d) { return as_const(d).has_value(); });
}

int64_t Known::int_at(int64_t i) const {
  auto at = static_cast<size_t>(i);
  return is_int() ? *as_const(ints[at]) : static_cast<int64_t>(floats[at]);
}

double Known::float_at(int64_t i) const {
  auto at = static_cast<size_t>(i);
  return is_int() ? static_cast<double>(*as_const(ints[at])) : floats[at];
}

std::optional<Known> known_from(const runtime::Tensor& t) {
  if (!t || t.num_elements() > kMaxKnownElements) return std::nullopt;
  Known k{t.dtype(), {t.shape().begin(), t.shape().end()}, {}, {}};
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    if (k.is_int()) {
      k.ints.push_back(dim(t.get_as_int(i)));
    } else {
      k.floats.push_back(t.get_as_double(i));
    }
  }
  return k;
}

runtime::Tensor tensor_from(const Known& k) {
  runtime::Tensor t = runtime::Tensor::empty(k.dtype, k.shape);
  for (int64_t i = 0; i < k.size(); ++i) {
    if (k.is_int()) {
      t.set_from_int(i, k.int_at(i));
    } else {
      t.set_from_double(i, k.float_at(i));
    }
  }
  return t;
}

Known known_ints(std::vector<Dim> values, runtime::DType dtype) {
  auto n = static_cast<int64_t>(values.size());
  return Known{dtype, {n}, std::move(values), {}};
}
Known known_ints(const std::vector<int64_t>& values, runtime::DType dtype) {
  std::vector<Dim> dims;
  for (int64_t v : values) dims.push_back(dim(v));
  return known_ints(std::move(dims), dtype);
}
Known known_scalar(Dim value, runtime::DType dtype) {
  return Known{dtype, {}, {std::move(value)}, {}};
}

std::optional<std::vector<int64_t>> broadcast_shape(const std::vector<int64_t>& a,
                                                    const std::vector<int64_t>& b) {
  std::vector<int64_t> out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

int64_t broadcast_index(int64_t i, const std::vector<int64_t>& out,
                        const std::vector<int64_t>& shape) {
  int64_t index = 0;
  int64_t stride = 1;
  for (size_t a = 0; a < out.size(); ++a) {
    int64_t extent = out[out.size() - 1 - a];
    int64_t at = i % extent;
    i /= extent;
    if (a >= shape.size()) continue;
    int64_t own = shape[shape.size() - 1 - a];
    if (own != 1) index += at * stride;
    stride *= own;
  }
  return index;
}

}  // namespace relay::importer
