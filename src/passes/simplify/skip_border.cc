#include "passes/simplify/skip_border.h"

#include <algorithm>

#include "analysis/calls.h"
#include "analysis/constant_expressions.h"
#include "ir/layout.h"
#include "ir/op.h"
#include "passes/simplify/rewrite_calls.h"

namespace relay {
namespace {

using Ints = std::vector<int64_t>;

// Products that a convolution has to leave out, of all: fewer do not pay for kernels of their own.
constexpr double kLeastShare = 0.1;
// Multiply-adds that a kernel costs beside its work, and those that an element costs that is copied.
constexpr double kKernelWork = 1e5, kCutWork = 16;

// One spatial dimension of a convolution.
struct Dimension {
  int64_t in, out, kernel, stride, dilation, before;

  // The taps [first, second) that lie inside the image for a position of the result.
  std::pair<int64_t, int64_t> taps_at(int64_t y) const {
    int64_t first = 0, last = kernel;
    while (first < kernel && y * stride + first * dilation - before < 0) ++first;
    while (last > first && y * stride + (last - 1) * dilation - before >= in) --last;
    return {first, last};
  }
};

// Positions [begin, end) of the result by the taps [first, last).
struct Stretch {
  int64_t begin, end, first, last;

  double products() const { return static_cast<double>((end - begin) * (last - first)); }
};

double products(const std::vector<Stretch>& all) {
  double out = 0;
  for (const Stretch& s : all) out += s.products();
  return out;
}

// The whole dimension, without the taps that lie in the border for all of it.
Stretch whole(const Dimension& d) {
  Stretch out{0, d.out, d.kernel, 0};
  for (int64_t y = 0; y < d.out; ++y) {
    auto [first, last] = d.taps_at(y);
    if (first == last) continue;
    out.first = std::min(out.first, first);
    out.last = std::max(out.last, last);
  }
  return out;
}

// Stretches with the same taps. Near taps differ at each position next to the border, so that they are cut only where the
// border is wider than the kernel: before and behind all windows that see the image.
std::vector<Stretch> stretches(const Dimension& d) {
  std::vector<Stretch> out;
  const bool near = d.dilation == 1;
  for (int64_t y = 0; y < d.out; ++y) {
    auto [first, last] = d.taps_at(y);
    if (first == last) first = last = 0;
    if (!out.empty() && out.back().first == first && out.back().last == last) {
      out.back().end = y + 1;
    } else if (near && first < last && !out.empty() && out.back().first < out.back().last) {
      Stretch& seen = out.back();
      seen = {seen.begin, y + 1, std::min(seen.first, first), std::max(seen.last, last)};
    } else {
      out.push_back({y, y + 1, first, last});
    }
  }
  return out;
}

class Skipping {
 public:
  Skipping(const CallNode& c, std::string space) : c_(c), space_(std::move(space)) {}

  // The convolution by those of its parts, or null.
  Expr run(ConstantExpressions& constants) {
    if (!find_dimensions()) return nullptr;
    std::vector<std::vector<Stretch>> parts;
    double all = 1, least = 1;
    for (const Dimension& d : dims_) {
      parts.push_back({whole(d)});
      if (parts.back()[0].first >= parts.back()[0].last) return nullptr;
      all *= static_cast<double>(d.out * d.kernel);
      least *= parts.back()[0].products();
    }
    // Rows lie one behind the other, so that nothing is copied for them; lines of columns are.
    for (size_t i = 0; i < dims_.size(); ++i) {
      std::vector<Stretch> cut = stretches(dims_[i]);
      double gained = least * (1 - products(cut) / parts[i][0].products());
      double count = static_cast<double>(cut.size()) - 1;
      for (size_t k = 0; k < i; ++k) count *= static_cast<double>(parts[k].size());
      double cost = count * kKernelWork / work_;
      if (i > 0) cost += kCutWork * cut_elements_ / work_;
      if (count == 0 || gained <= cost || gained < kLeastShare * all) continue;
      parts[i] = cut;
      least -= gained;
    }
    if (least > (1 - kLeastShare) * all || !constants.contains_finite(c_.args[1])) return nullptr;
    return joined(parts, {}, 0);
  }

 private:
  bool find_dimensions() {
    auto data = static_shape(c_.args[0]), weight = static_shape(c_.args[1]);
    auto out = static_shape(Expr(&c_));
    kernel_layout_ = Layout::of(text_attr(c_, "kernel_layout"));
    if (!data || !weight || !out || text_attr(c_, "data_layout") != "N" + space_ + "C" ||
        !text_attr(c_, "out_layout").empty() ||
        kernel_layout_.rank() != static_cast<int64_t>(weight->size()) ||
        weight->size() != space_.size() + 2 || !tensor_of(c_.args[0])->dtype.is_floating()) {
      return false;
    }
    Ints strides = *ints_attr(c_, "strides"), dilation = *ints_attr(c_, "dilation"),
         padding = *ints_attr(c_, "padding");
    if (strides.size() != space_.size() || dilation.size() != space_.size()) return false;
    for (size_t i = 0; i < space_.size(); ++i) {
      // One number, or one for each axis and then perhaps the ends.
      const int64_t before = padding.size() > 1 ? padding[i] : padding[0];
      const auto taps = (*weight)[static_cast<size_t>(kernel_layout_.index_of(space_[i]))];
      dims_.push_back({(*data)[i + 1], (*out)[i + 1], taps, strides[i], dilation[i], before});
      if (dims_.back().in < 1 || dims_.back().out < 1) return false;
    }
    work_ = static_cast<double>((*data)[0] * out->back() *
                                (*weight)[static_cast<size_t>(kernel_layout_.index_of('I'))]);
    cut_elements_ = static_cast<double>((*data)[0] * data->back());
    for (const Dimension& d : dims_) cut_elements_ *= static_cast<double>(d.in);
    return true;
  }

  // One number for each spatial axis.
  Expr slice(const Expr& x, const Ints& axes, const Ints& begin, const Ints& end) const {
    auto shape = *static_shape(x);
    bool all = true;
    for (size_t i = 0; i < axes.size(); ++i) {
      all = all && begin[i] == 0 && end[i] == shape[static_cast<size_t>(axes[i])];
    }
    if (all) return x;
    return make_call("strided_slice", {x},
                     {{"begin", to_value(begin)}, {"end", to_value(end)}, {"axes", to_value(axes)}},
                     c_);
  }

  // The parts along this axis and those behind it, for stretches along those before it.
  Expr joined(const std::vector<std::vector<Stretch>>& parts, std::vector<Stretch> chosen,
              size_t axis) const {
    if (axis == dims_.size()) return part(chosen);
    std::vector<Expr> along;
    for (const Stretch& s : parts[axis]) {
      std::vector<Stretch> next = chosen;
      next.push_back(s);
      // Zeros are not cut any further.
      const bool empty = s.first >= s.last;
      for (size_t i = axis + 1; empty && i < dims_.size(); ++i)
        next.push_back({0, dims_[i].out, 0, 0});
      along.push_back(joined(parts, next, empty ? dims_.size() : axis + 1));
    }
    if (along.size() == 1) return along[0];
    return make_call("concatenate", {tuple(std::move(along), c_.span)},
                     {{"axis", AttrValue(static_cast<int64_t>(axis) + 1)}}, c_);
  }

  // The result's positions of a stretch along each axis.
  Expr part(const std::vector<Stretch>& chosen) const {
    auto out = *static_shape(Expr(&c_));
    Ints axes, begin, end, taps, taps_begin, taps_end, kernel_axes, before, after;
    bool empty = false;
    for (size_t i = 0; i < dims_.size(); ++i) {
      const Dimension& d = dims_[i];
      const Stretch& s = chosen[i];
      out[i + 1] = s.end - s.begin;
      empty = empty || s.first >= s.last;
      const int64_t low = s.begin * d.stride + s.first * d.dilation - d.before,
                    high = (s.end - 1) * d.stride + (s.last - 1) * d.dilation - d.before + 1;
      axes.push_back(static_cast<int64_t>(i) + 1);
      begin.push_back(std::clamp<int64_t>(low, 0, d.in));
      end.push_back(std::clamp<int64_t>(high, 0, d.in));
      before.push_back(begin.back() - low);
      after.push_back(high - end.back());
      kernel_axes.push_back(kernel_layout_.index_of(space_[i]));
      taps_begin.push_back(s.first);
      taps_end.push_back(s.last);
      taps.push_back(s.last - s.first);
    }
    if (empty) {
      const std::string dtype = as<TensorTypeNode>(c_.type)->dtype.to_string();
      return make_call("zeros", {}, {{"shape", to_value(out)}, {"dtype", AttrValue(dtype)}}, c_);
    }
    before.insert(before.end(), after.begin(), after.end());
    return with_attrs(
        c_,
        {slice(c_.args[0], axes, begin, end), slice(c_.args[1], kernel_axes, taps_begin, taps_end)},
        {{"padding", to_value(before)}, {"kernel_size", to_value(taps)}});
  }

  const CallNode& c_;
  std::string space_;
  Layout kernel_layout_;
  std::vector<Dimension> dims_;
  double work_ = 1;          // multiply-adds for a position and a tap
  double cut_elements_ = 1;  // of the data
};

Module run_skip_border(const Module& mod, PassContext& ctx) {
  if (!ctx.target.has_blocked_kernels || !ctx.evaluate) return mod;
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    ConstantExpressions constants(f);
    return rewrite_calls(f, [&](const CallNode& c) -> Expr {
      auto* op = as<OpNode>(c.op);
      const bool sums = op != nullptr && op->row->window && op->row->contraction != nullptr &&
                        op->row->window->border == Window::Border::Zeros;
      return sums ? Skipping(c, op->row->window->axes).run(constants) : nullptr;
    });
  });
}

}  // namespace

const Pass kSkipBorder{"SkipBorder",
                       3,
                       Form::any,
                       Form::any,
                       "Computes convolutions with far taps without the products of their border.",
                       run_skip_border};

}  // namespace relay
