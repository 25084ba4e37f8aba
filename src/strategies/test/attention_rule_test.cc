// Attention: what its schedule computes, on each target, against plain loops.
#include "lower/test/kernel_case.h"
// After it: names of both intermediate representations meet from here on.
#include "ir/op.h"
#include "lower/interface/compute_rule.h"
#include "node/walk.h"
#include "ops/register_ops.h"

namespace relay::lower_test {
namespace {

using tir::compute;
using tir::Tensor;

struct Shape {
  int64_t batch, heads, queries, keys, depth, width;
  std::string layout = "BSHD";  // of queries, values and result
  std::string key_layout = "BSHD";
  bool mask_of_queries = false;  // else one value for each key
  bool relu = false;             // what follows the operator
  std::string open = {};         // letters of sizes that only a run knows: B, S (queries), T (keys)
  int64_t queries_of = 1;        // an open number of queries is a multiple of this
};

struct At {
  int64_t b, h, s, d;
};
int64_t along(char axis, const At& at) {
  return axis == 'B' ? at.b : axis == 'H' ? at.h : axis == 'S' ? at.s : at.d;
}
size_t offset(const std::string& layout, const At& sizes, const At& at) {
  int64_t out = 0;
  for (char axis : layout) out = out * along(axis, sizes) + along(axis, at);
  return static_cast<size_t>(out);
}

std::vector<PrimExpr> in_layout(const std::string& layout, const std::vector<PrimExpr>& bhsd) {
  std::vector<PrimExpr> out;
  for (char c : layout) out.push_back(bhsd[std::string("BHSD").find(c)]);
  return out;
}

constexpr double kScale = 0.25;

Case attention(const Shape& s) {
  register_ops();
  At q_sizes{s.batch, s.heads, s.queries, s.depth}, k_sizes{s.batch, s.heads, s.keys, s.depth},
      v_sizes{s.batch, s.heads, s.keys, s.width}, o_sizes{s.batch, s.heads, s.queries, s.width};
  std::vector<tir::Var> open;
  std::vector<int64_t> open_sizes;
  auto size = [&](char letter, int64_t value, int64_t of = 1) -> PrimExpr {
    if (s.open.find(letter) == s.open.npos) return index(value);
    open.push_back(tir::var(std::string(1, letter)));
    open_sizes.push_back(value / of);
    return open.back() * of;
  };
  PrimExpr batch = size('B', s.batch), queries = size('S', s.queries, s.queries_of),
           keys = size('T', s.keys), heads = index(s.heads), depth = index(s.depth),
           width = index(s.width);
  std::vector<Tensor> in{
      placeholder("q", f32, in_layout(s.layout, {batch, heads, queries, depth})),
      placeholder("k", f32, in_layout(s.key_layout, {batch, heads, keys, depth})),
      placeholder("v", f32, in_layout(s.layout, {batch, heads, keys, width})),
      placeholder("mask", f32, {s.mask_of_queries ? queries : index(1), keys})};
  std::vector<size_t> elements{static_cast<size_t>(s.batch * s.heads * s.queries * s.depth),
                               static_cast<size_t>(s.batch * s.heads * s.keys * s.depth),
                               static_cast<size_t>(s.batch * s.heads * s.keys * s.width),
                               static_cast<size_t>((s.mask_of_queries ? s.queries : 1) * s.keys)};
  Op op = OpRegistry::global().get("nn.attention");
  ComputeContext ctx;
  ctx.attrs_ref = make_attrs(*op->row->attrs,
                             {{"scale", AttrValue(kScale)},
                              {"query_layout", AttrValue(s.layout)},
                              {"key_layout", AttrValue(s.key_layout)},
                              {"value_layout", AttrValue(s.layout)},
                              {"out_layout", AttrValue(s.layout)}},
                             op->name, {});
  ctx.inputs = in;
  ComputeContext::Output output{{}, f32};
  output.shape = in_layout(s.layout, {batch, heads, queries, width});
  ctx.outputs = {output};
  Tensor y = op->row->compute->build(ctx)[0];
  if (s.relu) {
    y = compute("relu", y->shape(), [&](const Indices& i) { return max(y(i), imm_float(f32, 0)); });
  }
  Case c{create_prim_func("attention", in, {y}, open), {}, {}};
  c.dims = open_sizes;
  for (size_t i = 0; i < in.size(); ++i) {
    c.inputs.push_back(random_floats(elements[i], static_cast<uint32_t>(i + 3)));
  }
  c.expected.resize(static_cast<size_t>(s.batch * s.heads * s.queries * s.width));
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t h = 0; h < s.heads; ++h) {
      for (int64_t m = 0; m < s.queries; ++m) {
        std::vector<double> weights;
        double total = 0;
        for (int64_t n = 0; n < s.keys; ++n) {
          double sum = 0;
          for (int64_t d = 0; d < s.depth; ++d) {
            sum += static_cast<double>(c.inputs[0][offset(s.layout, q_sizes, {b, h, m, d})]) *
                   c.inputs[1][offset(s.key_layout, k_sizes, {b, h, n, d})];
          }
          size_t at = static_cast<size_t>((s.mask_of_queries ? m * s.keys : 0) + n);
          weights.push_back(std::exp(kScale * sum + c.inputs[3][at]));
          total += weights.back();
        }
        for (int64_t e = 0; e < s.width; ++e) {
          double sum = 0;
          for (int64_t n = 0; n < s.keys; ++n) {
            sum += weights[static_cast<size_t>(n)] / total *
                   c.inputs[2][offset(s.layout, v_sizes, {b, h, n, e})];
          }
          if (s.relu) sum = std::max(sum, 0.0);
          c.expected[offset(s.layout, o_sizes, {b, h, m, e})] = static_cast<float>(sum);
        }
      }
    }
  }
  return c;
}

void expect_attention(const Shape& s) { expect_right(attention(s), "attention:"); }

TEST(Attention, one_block_of_all_queries) {
  expect_attention({1, 2, 20, 24, 8, 8});
  expect_attention({2, 3, 50, 70, 24, 40, "BHSD", "BHSD"});
}

TEST(Attention, odd_sizes) { expect_attention({1, 3, 37, 19, 7, 9, "BSHD", "BHDS"}); }

TEST(Attention, blocks_that_divide_the_queries) { expect_attention({1, 4, 96, 40, 16, 16}); }

TEST(Attention, last_block_is_smaller) {
  expect_attention({1, 4, 197, 197, 16, 32});
  expect_attention({1, 4, 98, 20, 16, 16});
}

TEST(Attention, no_last_block_of_one_query) {
  expect_attention({1, 4, 97, 20, 16, 16});
  expect_attention({1, 1, 17, 20, 16, 16});
}

TEST(Attention, few_heads_share_the_blocks) {
  Shape s{1, 1, 200, 64, 32, 32};
  EXPECT_NE(rule_of(attention(s).func).find("threads over blocks"), std::string::npos);
  expect_attention(s);
}

TEST(Attention, tiles_divide_the_queries_of_a_block_only) {
  expect_attention({1, 1, 16, 64, 31, 33});
}

TEST(Attention, mask_for_each_query) {
  expect_attention({1, 2, 33, 40, 8, 8, "BHSD", "BSHD", true});
}

TEST(Attention, what_follows_is_applied_to_the_tiles) {
  expect_attention({1, 2, 70, 24, 8, 16, "BSHD", "BSHD", false, true});
}

TEST(Attention, long_sequence_keeps_the_scores_of_a_block_only) {
  Case c = attention({1, 1, 100, 1100, 16, 16});
  expect_right(c, "attention:");
  int64_t largest = 0;
  post_order(
      lower_loops(scheduled(c.func, codegen_test::text_target()))->body,
      [&](const Node& n) {
        auto* a = as<AllocateNode>(&n);
        if (a == nullptr) return;
        int64_t size = 1;
        for (const PrimExpr& d : a->buffer->shape) size *= *as_int(d);
        largest = std::max(largest, size);
      },
      family::tir_stmt);
  EXPECT_EQ(largest, 48 * 1100);
}

TEST(Attention, single_query_has_lanes_along_depth_and_keys) {
  for (int64_t keys : {2, 77}) {
    expect_attention({1, 2, 1, keys, 16, 16});
    expect_attention({2, 3, 1, keys, 9, 70, "BHSD", "BHDS", true});
  }
  std::string text = rule_of(attention({1, 2, 1, 40, 16, 16}).func);
  EXPECT_NE(text.find("lanes over depth and keys"), std::string::npos) << text;
}

// Sizes that only a run knows: every kind of block and of tile occurs, and none.
TEST(Attention, open_lengths) {
  for (int64_t n : {0, 69}) {
    expect_attention(
        {.batch = 1, .heads = 2, .queries = n, .keys = n, .depth = 8, .width = 20, .open = "ST"});
  }
  expect_attention({.batch = 2,
                    .heads = 1,
                    .queries = 67,
                    .keys = 11,
                    .depth = 7,
                    .width = 16,
                    .layout = "BHSD",
                    .mask_of_queries = true,
                    .relu = true,
                    .open = "BST"});
}

TEST(Attention, open_queries_that_are_a_multiple_of_a_block) {
  for (int64_t of : {4, 16, 48}) {
    expect_attention({.batch = 1,
                      .heads = 2,
                      .queries = 2 * of,
                      .keys = 9,
                      .depth = 8,
                      .width = 16,
                      .open = "S",
                      .queries_of = of});
  }
}

TEST(Attention, open_keys_of_known_queries) {
  for (int64_t keys : {1, 50}) {
    expect_attention(
        {.batch = 1, .heads = 2, .queries = 1, .keys = keys, .depth = 8, .width = 8, .open = "T"});
    expect_attention({.batch = 1,
                      .heads = 4,
                      .queries = 53,
                      .keys = keys,
                      .depth = 8,
                      .width = 8,
                      .layout = "BHSD",
                      .open = "BT"});
  }
}

TEST(Attention, queries_without_keys_give_zeros) {
  Case c = attention(
      {.batch = 1, .heads = 2, .queries = 18, .keys = 0, .depth = 8, .width = 8, .open = "ST"});
  EXPECT_EQ(c.expected, std::vector<float>(c.expected.size(), 0.0f));
  expect_right(c, "attention:");
}

}  // namespace
}  // namespace relay::lower_test
