#include "frontend/common/shape_args.h"

#include <algorithm>

#include "base/codes/frontend.h"
#include "frontend/common/tensor_bytes.h"

namespace relay::frontend {

int64_t count_of(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

Dim product(const std::vector<Dim>& dims, size_t begin, size_t end) {
  Dim p = dim(1);
  for (size_t i = begin; i < end; ++i) p = p * dims[i];
  return p;
}

std::optional<std::vector<Dim>> shape_of_input(const Operands& build, size_t i) {
  const ModelValue& v = *build.value(i);
  std::vector<Dim> out;
  if (v.expr) return Builder::shape_of(v.expr);
  if (v.data) {
    for (int64_t d : v.data.shape()) out.push_back(dim(d));
    return out;
  }
  if (v.known) {
    for (int64_t d : v.known->shape) out.push_back(dim(d));
    return out;
  }
  return std::nullopt;
}

std::vector<Dim> shape_elements(const Operands& build, size_t input, const char* what) {
  KnownValue k = build.must_know(input, what);
  if (!k.is_int() || k.shape.size() > 1) {
    build.fail(codes::frontend_attribute, std::string(what) + " must be a list of integers",
               "a list of integers", runtime::type_string(k.dtype, k.shape));
  }
  if (k.size() > kMaxRank) {
    build.fail(codes::frontend_limit, std::string(what) + " has too many dimensions",
               "at most " + std::to_string(kMaxRank), std::to_string(k.size()));
  }
  return k.ints;
}

bool is_size(const Dim& d) { return as_const(d) || least_value(d).value_or(-1) >= 0; }

void check_sizes(const Builder& build, const std::vector<Dim>& shape) {
  int64_t n = 1;
  for (const Dim& d : shape) {
    auto c = as_const(d);
    if (!c) continue;
    if (*c < 0) {
      build.fail(codes::frontend_attribute, "a dimension is negative", "sizes of 0 or more",
                 std::to_string(*c));
    }
    if (__builtin_mul_overflow(n, std::max<int64_t>(*c, 1), &n) || n > (int64_t{1} << 59)) {
      build.fail(codes::frontend_limit, "the size of the result overflows", "a product below 2^59",
                 to_string(tensor_type(shape, DType::Float(32))));
    }
  }
}

}  // namespace relay::frontend
