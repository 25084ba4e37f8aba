#include "strategies/winograd/rewrite.h"

#include <algorithm>
#include <unordered_map>

#include "analysis/calls.h"
#include "analysis/constant_expressions.h"
#include "analysis/typical_sizes.h"
#include "ir/layout.h"
#include "passes/layout/fewer_products.h"
#include "passes/simplify/rewrite_calls.h"
#include "strategies/winograd/tiles.h"

namespace relay {

using winograd::kKernel;
using winograd::kTile;

namespace {

// Fewer leave the transforms too large a share.
constexpr int64_t kLeastChannels = 32;
constexpr int64_t kLeastTiles = 16;
// Of weights that are transformed at each run: eight images of 7x7x512 took 0.81 of the time of the sum on a Xeon with
// AVX-512, one of 14x14x256 as long.
constexpr int64_t kLeastTilesOfRun = 32;

// Sides of images by channels in the networks that classify images, 56 by 64 to 7 by 512: for sizes that nothing is known of.
constexpr int64_t kSideTimesChannels = 56 * 64;

// Whether images have so many tiles. Each factor stops at `least`: the product of sizes may exceed 64 bits.
bool has_tiles(int64_t batch, int64_t height, int64_t width, int64_t least) {
  auto tiles = [&](int64_t size) { return std::min(size / kTile + (size % kTile != 0), least); };
  return std::min(batch, least) * tiles(height) * tiles(width) >= least;
}

// Whether fewer products in float32 make up for those of pairs, of which an instruction has two, where each run transforms
// the weights. A Zen 5 takes 12.6 ns to transform the weight of two channels, 0.40 ns for its products with a tile and
// their transforms, and 0.034 ns for a result by pairs. Ratios of the times: 0.67 for eight images of 56x56x64, 0.88 for
// 28x28x128, 1.16 for 14x14x256; of one image, 0.77 and 1.00 for the first two.
bool beats_pairs(double tiles, double results) {
  constexpr double kResultsOfTile = 12, kResultsOfWeight = 370;
  return results >= kResultsOfTile * tiles + kResultsOfWeight;
}

bool all_ones(const CallNode& c, std::string_view name) {
  auto list = ints_attr(c, name);
  return list && std::all_of(list->begin(), list->end(), [](int64_t v) { return v == 1; });
}

bool takes_sizes(const ConvolutionSizes& s, const Target& target) {
  const int64_t lanes = target.lanes(32);
  if (s.taps != std::vector{kKernel, kKernel} || std::min(s.inputs, s.outputs) < kLeastChannels ||
      s.inputs % lanes != 0 || s.outputs % (2 * lanes) != 0) {
    return false;
  }
  auto side = [&](size_t i) {
    return s.result[i] == ConvolutionSizes::kUnknown
               ? std::max<int64_t>(1, kSideTimesChannels / s.outputs)
               : s.result[i];
  };
  const int64_t height = side(0), width = side(1);
  if (!has_tiles(s.batch, height, width, s.constant_weight ? kLeastTiles : kLeastTilesOfRun)) {
    return false;
  }
  if (!s.pairs || s.constant_weight) return true;
  auto tiles = [](int64_t size) { return static_cast<double>(size / kTile + (size % kTile != 0)); };
  const auto batch = static_cast<double>(s.batch);
  return beats_pairs(batch * tiles(height) * tiles(width),
                     batch * static_cast<double>(height) * static_cast<double>(width));
}

// The weight of a convolution, transformed.
Expr transform(const CallNode& c, const Layout& layout) {
  Expr kernel = c.args[1];
  if (layout.to_string() != "OIHW") {
    kernel = make_call("layout_transform", {kernel},
                       {{"src_layout", AttrValue(layout.to_string())},
                        {"dst_layout", AttrValue(std::string("OIHW"))}},
                       c);
  }
  return make_call("nn.contrib_conv2d_winograd_weight_transform", {kernel},
                   {{"tile_size", AttrValue(kTile)}}, c);
}

// The weights of a function and what they are when they are transformed, once for all that use one.
using Transformed = std::unordered_map<const Node*, Expr>;

// The convolution by transformed weights, or null. `typical`: the values of named dimensions for which it has to pay.
Expr minimal_filtering(const CallNode& c, const Target& target, ConstantExpressions& constants,
                       const TypeParams& typical, Transformed& transformed) {
  auto weight = static_shape(c.args[1]);
  auto *x = tensor_of(c.args[0]), *w = tensor_of(c.args[1]), *y = tensor_of(Expr(&c));
  Layout layout = Layout::of(text_attr(c, "kernel_layout"));
  if (!weight || !x->dtype.is_float(32) || !w->dtype.is_float(32) || y->dtype != x->dtype ||
      y->rank() != 4 || text_attr(c, "data_layout") != "NHWC" ||
      !text_attr(c, "out_layout").empty() || layout.rank() != 4 || int_attr(c, "groups") != 1 ||
      !all_ones(c, "strides") || !all_ones(c, "dilation")) {
    return nullptr;
  }
  auto axis = [&](char name) { return (*weight)[static_cast<size_t>(layout.index_of(name))]; };
  int64_t outputs = axis('O'), inputs = axis('I');
  if (outputs == 0 || std::any_of(y->shape.begin(), y->shape.end(), is_any)) return nullptr;
  const Type result = with_type_params(Expr(&c)->type, typical);
  auto side = [&](size_t i) {
    return as_const(as<TensorTypeNode>(result)->shape[i]).value_or(ConvolutionSizes::kUnknown);
  };
  // What pays for one image pays for any number.
  const int64_t batch = as_const(as<TensorTypeNode>(result)->shape[0]).value_or(1);
  const bool known = constants.contains(c.args[1]);
  if (!takes_sizes({batch, {side(1), side(2)}, {axis('H'), axis('W')}, inputs, outputs, known},
                   target) ||
      (known && !constants.contains_finite(c.args[1]))) {
    return nullptr;
  }
  Expr& kernel = transformed[c.args[1].get()];
  if (!kernel) kernel = transform(c, layout);
  return make_call("nn.contrib_conv2d_winograd_without_weight_transform", {c.args[0], kernel},
                   {{"tile_size", AttrValue(kTile)},
                    {"padding", attr_value(c.attrs, "padding")},
                    {"channels", AttrValue(outputs)},
                    {"kernel_size", to_value({3, 3})},
                    {"data_layout", AttrValue(std::string("NHWC"))},
                    {"out_dtype", attr_value(c.attrs, "out_dtype")}},
                   c);
}

Module run_winograd_convolution(const Module& mod, PassContext& ctx) {
  if (!ctx.target.has_blocked_kernels || !ctx.evaluate) return mod;
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    ConstantExpressions constants(f);
    const TypeParams typical = typical_sizes(*f.get());
    Transformed transformed;
    return rewrite_calls(f, [&](const CallNode& c) -> Expr {
      if (!is_call_to(Expr(&c), "nn.conv2d")) return nullptr;
      return minimal_filtering(c, ctx.target, constants, typical, transformed);
    });
  });
}

}  // namespace

const ConvolutionAlgorithm kWinogradAlgorithm{kWinogradConvolution, takes_sizes};

const Pass kWinogradConvolution{"WinogradConvolution",
                                3,
                                Form::any,
                                Form::any,
                                "Computes 3x3 convolutions with a quarter of the products.",
                                run_winograd_convolution};

}  // namespace relay
