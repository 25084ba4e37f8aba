#include "frontend/onnx/window.h"

#include <algorithm>

#include "base/codes/frontend.h"
#include "base/codes/types.h"

namespace relay::importer {

std::vector<int64_t> positive_list(NodeContext& ctx, const char* name, int64_t nd,
                                   const std::vector<int64_t>& otherwise) {
  std::vector<int64_t> v = ctx.attr_ints(name, otherwise);
  if (v.empty()) v.assign(static_cast<size_t>(nd), 1);
  if (static_cast<int64_t>(v.size()) != nd) {
    ctx.fail(codes::frontend_attribute,
             std::string("attribute '") + name + "' has the wrong length", std::to_string(nd),
             std::to_string(v.size()));
  }
  for (int64_t x : v) {
    if (x < 1 || x > kMaxWindow) {
      ctx.fail(codes::frontend_attribute, std::string("attribute '") + name + "' is out of range",
               "1 to 2^31", std::to_string(x));
    }
  }
  return v;
}

Window window_of(NodeContext& ctx, const Expr& x, std::vector<int64_t> kernel) {
  int64_t nd = static_cast<int64_t>(kernel.size());
  Window w;
  w.kernel = std::move(kernel);
  w.strides = positive_list(ctx, "strides", nd, {});
  w.dilations = positive_list(ctx, "dilations", nd, {});
  w.begin.assign(static_cast<size_t>(nd), 0);
  w.end = w.begin;
  std::string mode = ctx.attr_string("auto_pad", "NOTSET");
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    for (size_t i = 0; i < w.kernel.size(); ++i) {
      int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1, stride = w.strides[i];
      int64_t total = 0;
      if (stride == 1) {
        total = reach - 1;
      } else {
        int64_t size = ctx.const_dim(x, static_cast<int64_t>(i) + 2, "a size padded by auto_pad");
        int64_t out = (size + stride - 1) / stride;
        total = std::max<int64_t>((out - 1) * stride + reach - size, 0);
      }
      int64_t half = total / 2;
      w.begin[i] = mode == "SAME_UPPER" ? half : total - half;
      w.end[i] = total - w.begin[i];
    }
  } else if (mode == "NOTSET") {
    std::vector<int64_t> pads = ctx.attr_ints("pads");
    if (!pads.empty()) {
      if (static_cast<int64_t>(pads.size()) != 2 * nd) {
        ctx.fail(codes::frontend_attribute, "attribute 'pads' has the wrong length",
                 std::to_string(2 * nd), std::to_string(pads.size()));
      }
      for (int64_t p : pads) {
        if (p < 0 || p > kMaxWindow) {
          ctx.fail(codes::frontend_attribute, "attribute 'pads' is out of range", "0 to 2^31",
                   std::to_string(p));
        }
      }
      w.begin.assign(pads.begin(), pads.begin() + nd);
      w.end.assign(pads.begin() + nd, pads.end());
    }
  } else if (mode != "VALID") {
    ctx.fail(codes::frontend_attribute, "attribute 'auto_pad' has an unknown value",
             "NOTSET, SAME_UPPER, SAME_LOWER or VALID", mode);
  }
  return w;
}

int64_t spatial_rank(NodeContext& ctx, const Expr& x) {
  int64_t nd = NodeContext::rank_of(x) - 2;
  if (nd < 1 || nd > 3) {
    ctx.fail(codes::type_rank, "the input must have 1 to 3 spatial dimensions", "rank 3, 4 or 5",
             to_string(x->type));
  }
  return nd;
}

std::string with_rank(const char* name, int64_t nd) { return name + std::to_string(nd) + "d"; }

Expr channels_first(NodeContext& ctx, const Expr& x) {
  const int64_t rank = NodeContext::rank_of(x);
  std::vector<int64_t> order{0, rank - 1};
  for (int64_t a = 1; a < rank - 1; ++a) order.push_back(a);
  return ctx.transpose(x, order);
}

Expr channels_last(NodeContext& ctx, const Expr& x) {
  std::vector<int64_t> order{0};
  for (int64_t a = 2; a < NodeContext::rank_of(x); ++a) order.push_back(a);
  order.push_back(1);
  return ctx.transpose(x, order);
}

}  // namespace relay::importer
