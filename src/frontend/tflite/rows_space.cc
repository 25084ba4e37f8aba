// Blocks of images moved between space, depth and batch; channels are last.
#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/tflite/node_context.h"

namespace relay::frontend::tflite {
namespace {

int64_t block_of(NodeContext& ctx, const Expr& x) {
  const int64_t block = ctx.options<schema::BlockSize>().block_size();
  if (block < 1)
    ctx.fail(codes::frontend_attribute, "the block is out of range", "1 or more",
             std::to_string(block));
  if (Builder::rank_of(x) != 4)
    ctx.fail(codes::type_rank, "the input must be a batch of images", "rank 4", to_string(x->type));
  return block;
}

void check_divides(NodeContext& ctx, const Dim& size, int64_t by) {
  if (auto n = as_const(size); n && *n % by != 0) {
    ctx.fail(codes::frontend_attribute, "the block does not divide the size",
             "a multiple of " + std::to_string(by), std::to_string(*n));
  }
}

Values depth_to_space(NodeContext& ctx) {
  Expr x = ctx.in(0);
  const int64_t b = block_of(ctx, x);
  const std::vector<Dim> s = Builder::shape_of(x);
  check_divides(ctx, s[3], b * b);
  const Dim c = floor_div(s[3], dim(b * b));
  Expr y = ctx.reshape(x, std::vector<Dim>{s[0], s[1], s[2], dim(b), dim(b), c});
  y = ctx.transpose(y, {0, 1, 3, 2, 4, 5});
  return one(ctx.reshape(y, std::vector<Dim>{s[0], s[1] * dim(b), s[2] * dim(b), c}));
}

Values space_to_depth(NodeContext& ctx) {
  Expr x = ctx.in(0);
  const int64_t b = block_of(ctx, x);
  const std::vector<Dim> s = Builder::shape_of(x);
  check_divides(ctx, s[1], b);
  check_divides(ctx, s[2], b);
  const Dim h = floor_div(s[1], dim(b)), w = floor_div(s[2], dim(b));
  Expr y = ctx.reshape(x, std::vector<Dim>{s[0], h, dim(b), w, dim(b), s[3]});
  y = ctx.transpose(y, {0, 1, 3, 2, 4, 5});
  return one(ctx.reshape(y, std::vector<Dim>{s[0], h, w, s[3] * dim(b * b)}));
}

// Pairs of numbers, for each axis of a block.
AttrValue pairs(NodeContext& ctx, size_t input, size_t count, const char* what) {
  const std::vector<int64_t> list = ctx.const_ints(input, what);
  if (list.size() != 2 * count)
    ctx.fail(codes::frontend_attribute, std::string(what) + " does not fit the block");
  ValueList out;
  for (size_t i = 0; i < count; ++i) out.push_back(to_value({list[2 * i], list[2 * i + 1]}));
  return AttrValue(std::move(out));
}

Values space_to_batch(NodeContext& ctx) {
  const std::vector<int64_t> block = ctx.const_ints(1, "the shape of a block");
  const double zero = ctx.is_quantized() ? static_cast<double>(ctx.out_quantization().zero[0]) : 0;
  return one(ctx.call("nn.space_to_batch_nd", {ctx.in(0)},
                      {{"block_shape", to_value(block)},
                       {"paddings", pairs(ctx, 2, block.size(), "the list of pads")},
                       {"pad_value", zero}}));
}

Values batch_to_space(NodeContext& ctx) {
  const std::vector<int64_t> block = ctx.const_ints(1, "the shape of a block");
  return one(ctx.call("nn.batch_to_space_nd", {ctx.in(0)},
                      {{"block_shape", to_value(block)},
                       {"crops", pairs(ctx, 2, block.size(), "the list of crops")}}));
}

}  // namespace

template <>
std::span<const Row> rows<Family::Space>() {
  using O = schema::Options;
  static constexpr Row kRows[] = {
      {"BATCH_TO_SPACE_ND", batch_to_space, O::batch_to_space},
      {"DEPTH_TO_SPACE", depth_to_space, O::depth_to_space},
      {"SPACE_TO_BATCH_ND", space_to_batch, O::space_to_batch},
      {"SPACE_TO_DEPTH", space_to_depth, O::space_to_depth},
  };
  return kRows;
}

}  // namespace relay::frontend::tflite
