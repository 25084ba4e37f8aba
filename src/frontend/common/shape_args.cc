#include "frontend/common/shape_args.h"

#include <algorithm>
#include <cmath>

#include "base/codes/frontend.h"
#include "frontend/common/open_args.h"
#include "frontend/common/range.h"
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

// ---- range.h

namespace {

__extension__ typedef __int128 Wide;

// (limit - start) / step, rounded up. A number of steps up to 1e15 is exact.
double steps_between(int64_t start, int64_t limit, int64_t step) {
  const Wide distance = Wide{limit} - start;
  const bool more = distance % step != 0 && (distance < 0) == (step < 0);
  return static_cast<double>(distance / step + (more ? 1 : 0));
}

ValuePtr known_range(const Operands& ctx) {
  KnownValue a = ctx.must_know(0, "the start"), b = ctx.must_know(1, "the limit"),
             s = ctx.must_know(2, "the step");
  if (a.size() != 1 || b.size() != 1 || s.size() != 1) {
    ctx.fail(codes::frontend_attribute, "start, limit and step must be one number each");
  }
  if (a.dtype != b.dtype || a.dtype != s.dtype) {
    ctx.fail(codes::frontend_attribute, "start, limit and step differ in dtype",
             a.dtype.to_string(), b.dtype.to_string() + " and " + s.dtype.to_string());
  }
  bool sizes =
      a.is_int() && s.is_constant() && s.int_at(0) != 0 && is_size(a.ints[0]) && is_size(b.ints[0]);
  if (sizes && !(a.is_constant() && b.is_constant())) {
    return value_of(ctx.call("arange", {},
                             {{"start", relay::to_value(a.ints[0])},
                              {"stop", relay::to_value(b.ints[0])},
                              {"step", s.int_at(0)},
                              {"dtype", to_value(a.dtype)}}));
  }
  if (!a.is_constant() || !b.is_constant() || !s.is_constant()) {
    ctx.fail(codes::frontend_dynamic, "the length depends on an input's open dimension", {}, {},
             "give the input's shape, as in --input NAME=1x128");
  }
  const double start = a.float_at(0), step = s.float_at(0);
  if (step == 0) ctx.fail(codes::frontend_attribute, "the step is zero", "a step of not 0", "0");
  const double count = a.is_int() ? steps_between(a.int_at(0), b.int_at(0), s.int_at(0))
                                  : std::ceil((b.float_at(0) - start) / step);
  if (!(count < 1e15)) ctx.fail(codes::frontend_limit, "the range is too long");
  const auto n = static_cast<int64_t>(std::max(count, 0.0));
  ctx.charge_bytes(n, a.dtype);
  Tensor t = Tensor::empty(a.dtype, {n});
  for (int64_t i = 0; i < n; ++i) {
    if (a.is_int()) {
      // The product alone may overflow.
      const auto element = static_cast<uint64_t>(a.int_at(0)) +
                           static_cast<uint64_t>(i) * static_cast<uint64_t>(s.int_at(0));
      t.set_from_int(i, static_cast<int64_t>(element));
    } else {
      t.set_from_double(i, start + static_cast<double>(i) * step);
    }
  }
  return value_of(std::move(t));
}

}  // namespace

ValuePtr range_of(const Operands& ctx) {
  return known_or_open(ctx, known_range, [](const Operands& open) {
    const DType dtype = Builder::dtype_of(open.in(0));
    std::vector<Expr> numbers;
    for (size_t i = 0; i < 3; ++i) numbers.push_back(one_number(open, i, dtype));
    return value_of(open.call("dyn.arange", numbers));
  });
}

}  // namespace relay::frontend
