#include "ops/image/window.h"

#include "base/codes/operators.h"
#include "base/codes/types.h"

namespace relay::ops {

std::optional<Ints> full_padding(const Ints& padding, size_t dims) {
  for (int64_t p : padding) {
    if (p < 0 || p > (int64_t{1} << 40)) return std::nullopt;
  }
  if (padding.size() == 1) return Ints(2 * dims, padding[0]);
  if (padding.size() == 2 * dims) return padding;
  if (padding.size() != dims) return std::nullopt;
  Ints out = padding;
  out.insert(out.end(), padding.begin(), padding.end());
  return out;
}

bool check_list(RelationContext& ctx, const Ints& list, size_t dims, int64_t least,
                const char* name) {
  bool ok = list.size() == dims;
  for (int64_t v : list) ok = ok && v >= least && v <= (int64_t{1} << 31);
  return require(ctx, ok, codes::op_bad_attribute, std::string(name) + " is out of range",
                 std::to_string(dims) + " numbers from " + std::to_string(least),
                 to_string(field_detail::Convert<Ints>::to(list)));
}

std::optional<Dim> window_size(RelationContext& ctx, const Dim& in, const Dim& kernel,
                               int64_t stride, int64_t dilation, int64_t pad_begin, int64_t pad_end,
                               bool ceil_mode) {
  Dim reach = (kernel - dim(1)) * dim(dilation) + dim(1);
  Dim fits = reach - dim(pad_begin + pad_end);
  // With ceil_mode the last window, which may be the only one, hangs over by less than a stride.
  Dim least = ceil_mode ? fits - dim(stride - 1) : fits;
  if (!ctx.at_least(in, least)) {
    ctx.fail(codes::type_shape, "the window is larger than the padded input",
             "an input of at least " + to_string(least), to_string(in));
    return std::nullopt;
  }
  if (!ceil_mode) return floor_div(in - fits, dim(stride)) + dim(1);
  Dim steps = floor_div(in - least, dim(stride));
  // A window that would start behind the input and its leading border is dropped; windows that reach as far as a step
  // and the border at the end never do.
  if (const auto known = as_const(reach); !known || stride + pad_end > *known)
    steps = min(steps, floor_div(in + dim(pad_begin - 1), dim(stride)));
  return steps + dim(1);
}

}  // namespace relay::ops
