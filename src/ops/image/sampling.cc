#include "ops/image/sampling.h"

#include <algorithm>

#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ops/image/window.h"

namespace relay::ops {

using tir::imm_float;

std::optional<Layout> sampling_layout(RelationContext& ctx, const std::string& text, size_t dims,
                                      const TensorTypeNode& x) {
  auto l = Layout::parse(text);
  std::string primal = l ? l->primal_axes() : "", want = "NC" + std::string(spatial_axes(dims));
  std::string names = want;
  std::sort(primal.begin(), primal.end());
  std::sort(want.begin(), want.end());
  if (!require(ctx, primal == want && l->rank() == static_cast<int64_t>(dims) + 2,
               codes::op_bad_attribute, "layout is not supported", names + " in any order", text) ||
      !require(ctx, x.rank() == l->rank(), codes::type_rank,
               "the data does not have the layout's dimensions", text, shape_text(x.shape)) ||
      !require(ctx, !x.dtype.is_bool(), codes::type_dtype, "needs numbers",
               "an integer or floating dtype", "bool"))
    return std::nullopt;
  for (char axis : spatial_axes(dims)) {
    const Dim& size = x.shape[static_cast<size_t>(l->index_of(axis))];
    if (!require(ctx, ctx.at_least(size, dim(1)) && ctx.at_least(dim(int64_t{1} << 30), size),
                 codes::type_shape, "a spatial size is out of range", "1 to 2^30",
                 shape_text(x.shape)))
      return std::nullopt;
  }
  return l;
}

bool one_of(RelationContext& ctx, const char* attribute, const std::string& text,
            std::initializer_list<const char*> list) {
  std::string known;
  for (const char* name : list) {
    if (text == name) return true;
    known += (known.empty() ? "" : ", ") + (*name == '\0' ? "\"\"" : std::string(name));
  }
  ctx.fail(codes::op_bad_attribute, std::string(attribute) + " is not known", "one of " + known,
           text);
  return false;
}

bool check_target(RelationContext& ctx, const char* attribute, const std::vector<Dim>& size,
                  size_t dims) {
  bool fits = size.size() == dims;
  for (const Dim& n : size) {
    fits = fits && ctx.at_least(n, dim(1)) && ctx.at_least(dim(int64_t{1} << 30), n);
  }
  return require(ctx, fits, codes::op_bad_attribute, std::string(attribute) + " is out of range",
                 std::to_string(dims) + " numbers from 1 to 2^30",
                 to_string(to_value(Dims(size.begin(), size.end()))));
}
bool check_target(RelationContext& ctx, const char* attribute, const Ints& size, size_t dims) {
  std::vector<Dim> sizes;
  for (int64_t n : size) sizes.push_back(dim(n));
  return check_target(ctx, attribute, sizes, dims);
}

DType sampling_dtype(DType data) {
  // float32 holds whole numbers up to 2^24.
  bool wide = data.bits == 64 || (data.is_integer() && data.bits == 32);
  return wide ? DType::Float(64) : DType::Float(32);
}

PrimExpr from_sampling(DType out, const PrimExpr& value) {
  return tir::cast(out, out.is_floating() ? value : tir::call("round", value->dtype, {value}));
}

std::vector<PrimExpr> linear_weights(const PrimExpr& part) {
  return {imm_float(part->dtype, 1) - part, part};
}

std::vector<PrimExpr> cubic_weights(const PrimExpr& part, const PrimExpr& unit, double alpha) {
  auto k = [&](double v) { return imm_float(part->dtype, v) * unit; };
  auto times = [&](double v, const PrimExpr& d) { return imm_float(part->dtype, v) * d; };
  auto near = [&](const PrimExpr& d) {  // at a distance up to 1
    return ((times(alpha + 2, d) - k(alpha + 3)) * d) * d + unit * unit * unit;
  };
  auto far = [&](const PrimExpr& d) {  // at a distance of 1 to 2
    return ((times(alpha, d) - k(5 * alpha)) * d + k(8 * alpha) * unit) * d -
           k(4 * alpha) * unit * unit;
  };
  return {far(part + unit), near(part), near(unit - part), far(k(2) - part)};
}

}  // namespace relay::ops
