#include "frontend/onnx/window.h"

#include "base/codes/frontend.h"

namespace relay::frontend::onnx {

std::vector<int64_t> positive_list(NodeContext& ctx, const char* name, int64_t nd) {
  std::vector<int64_t> v = ctx.attr_list(name, static_cast<size_t>(nd), 1);
  for (int64_t x : v) {
    if (x < 1 || x > kMaxWindow) {
      ctx.fail(codes::frontend_attribute, std::string("attribute '") + name + "' is out of range",
               "1 to 2^31", std::to_string(x));
    }
  }
  return v;
}

Window unpadded_window(NodeContext& ctx, std::vector<int64_t> kernel) {
  int64_t nd = static_cast<int64_t>(kernel.size());
  Window w;
  w.kernel = std::move(kernel);
  w.strides = positive_list(ctx, "strides", nd);
  w.dilations = positive_list(ctx, "dilations", nd);
  w.begin.assign(static_cast<size_t>(nd), 0);
  w.end = w.begin;
  return w;
}

Window window_of(NodeContext& ctx, const Expr& x, std::vector<int64_t> kernel) {
  Window w = unpadded_window(ctx, std::move(kernel));
  int64_t nd = static_cast<int64_t>(w.kernel.size());
  std::string mode = ctx.attr_string("auto_pad", "NOTSET");
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    pad_to_same(ctx, x, mode == "SAME_UPPER", w);
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

}  // namespace relay::frontend::onnx
