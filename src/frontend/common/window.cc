#include "frontend/common/window.h"

#include "base/codes/types.h"

namespace relay::frontend {

void pad_to_same(const Builder& build, const Expr& x, bool upper, Window& w) {
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1, stride = w.strides[i];
    int64_t total = 0;
    if (stride == 1) {
      total = reach - 1;
    } else {
      int64_t size = build.const_dim(x, static_cast<int64_t>(i) + w.first_axis(),
                                     "a size that decides about padding");
      int64_t out = (size + stride - 1) / stride;
      total = std::max<int64_t>((out - 1) * stride + reach - size, 0);
    }
    int64_t half = total / 2;
    w.begin[i] = upper ? half : total - half;
    w.end[i] = total - w.begin[i];
  }
}

Expr convolution(const Builder& build, Expr x, Expr w, const Window& window, int64_t groups,
                 DType out_dtype, std::vector<Expr> quantized) {
  const auto nd = static_cast<int64_t>(window.kernel.size());
  AttrList attrs{{"strides", to_value(window.strides)},
                 {"padding", to_value(window.padding())},
                 {"dilation", to_value(window.dilations)},
                 {"groups", groups},
                 {"channels", build.const_dim(w, 0, "the number of channels")},
                 {"kernel_size", to_value(window.kernel)}};
  if (window.channels_last) attrs.emplace_back("data_layout", window.layout());
  if (out_dtype != Builder::dtype_of(x)) attrs.emplace_back("out_dtype", to_value(out_dtype));
  std::string op = with_rank(quantized.empty() ? "nn.conv" : "qnn.conv", nd);
  std::vector<Expr> args{std::move(x), std::move(w)};
  args.insert(args.end(), quantized.begin(), quantized.end());
  return build.call(op, std::move(args), attrs);
}

Expr transposed_convolution(const Builder& build, Expr x, Expr w, const Window& window,
                            const std::vector<int64_t>& extra, int64_t groups) {
  const auto nd = static_cast<int64_t>(window.kernel.size());
  const int64_t per_group = build.const_dim(w, 1, "the number of channels");
  AttrList attrs{{"channels", per_group * groups},
                 {"kernel_size", to_value(window.kernel)},
                 {"strides", to_value(window.strides)},
                 {"output_padding", to_value(extra)},
                 {"padding", to_value(window.padding())},
                 {"dilation", to_value(window.dilations)},
                 {"groups", groups}};
  if (window.channels_last) attrs.emplace_back("data_layout", window.layout());
  return build.call(with_rank("nn.conv", nd) + "_transpose", {std::move(x), std::move(w)}, attrs);
}

void pad_transposed(const Builder& build, const Expr& x, bool upper,
                    const std::vector<int64_t>& sizes, Window& w, std::vector<int64_t>& extra) {
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
    int64_t total = reach - w.strides[i] + extra[i];
    if (!sizes.empty()) {
      int64_t size = build.const_dim(x, static_cast<int64_t>(i) + 2, "a size of the input");
      total = w.strides[i] * (size - 1) + extra[i] + reach - sizes[i];
    }
    if (total < 0) {
      extra[i] -= total;
      total = 0;
    }
    int64_t half = total / 2;
    w.begin[i] = upper ? half : total - half;
    w.end[i] = total - w.begin[i];
  }
}

std::vector<int64_t> kernel_of(const Builder& build, const Expr& w, int64_t nd) {
  if (Builder::rank_of(w) != nd + 2) {
    build.fail(codes::type_rank, "the weight has the wrong rank", "rank " + std::to_string(nd + 2),
               to_string(w->type));
  }
  std::vector<int64_t> kernel;
  for (int64_t i = 0; i < nd; ++i) {
    kernel.push_back(build.const_dim(w, i + 2, "a size of the weight"));
  }
  return kernel;
}

Expr with_channel_bias(const Builder& build, Expr y, const Expr& bias) {
  if (!bias) return y;
  return build.call("nn.bias_add", {std::move(y), bias}, {{"axis", int64_t{1}}});
}

int64_t spatial_rank(const Builder& build, const Expr& x) {
  int64_t nd = Builder::rank_of(x) - 2;
  if (nd < 1 || nd > 3) {
    build.fail(codes::type_rank, "the input must have 1 to 3 spatial dimensions", "rank 3, 4 or 5",
               to_string(x->type));
  }
  return nd;
}

std::string with_rank(const char* name, int64_t nd) { return name + std::to_string(nd) + "d"; }

Expr channels_first(const Builder& build, const Expr& x) {
  const int64_t rank = Builder::rank_of(x);
  std::vector<int64_t> order{0, rank - 1};
  for (int64_t a = 1; a < rank - 1; ++a) order.push_back(a);
  return build.transpose(x, order);
}

Expr channels_last(const Builder& build, const Expr& x) {
  std::vector<int64_t> order{0};
  for (int64_t a = 2; a < Builder::rank_of(x); ++a) order.push_back(a);
  order.push_back(1);
  return build.transpose(x, order);
}

}  // namespace relay::frontend
