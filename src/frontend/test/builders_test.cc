// Families of operators as frontend/common builds them, without a model: forms that formats differ in.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "eval/evaluator.h"
#include "frontend/common/activation.h"
#include "frontend/common/attention.h"
#include "frontend/common/einsum.h"
#include "frontend/common/gather.h"
#include "frontend/common/norm.h"
#include "frontend/common/pool.h"
#include "frontend/common/power.h"
#include "frontend/common/recurrent.h"
#include "frontend/common/reshape.h"
#include "frontend/common/slices.h"
#include "frontend/common/window.h"
#include "ops/register_ops.h"

namespace relay::frontend {
namespace {

using Numbers = std::vector<double>;
using Make = std::function<std::vector<Expr>(const Builder& build, const std::vector<Expr>& in)>;

// The first numbers of a sequence that repeats late, between -1 and 1.
Numbers some(int64_t count, int64_t from = 1) {
  Numbers out;
  for (int64_t i = 0; i < count; ++i) out.push_back(std::sin(static_cast<double>(from + i) * 1.7));
  return out;
}

Tensor floats(const std::vector<int64_t>& shape, Numbers values = {}) {
  Tensor t = Tensor::empty(DType::Float(32), shape);
  if (values.empty()) values = some(t.num_elements());
  for (size_t i = 0; i < values.size(); ++i) t.set_from_double(static_cast<int64_t>(i), values[i]);
  return t;
}

Tensor integers(const std::vector<int64_t>& shape, const std::vector<int64_t>& values) {
  Tensor t = Tensor::empty(DType::Int(64), shape);
  for (size_t i = 0; i < values.size(); ++i) t.set_from_int(static_cast<int64_t>(i), values[i]);
  return t;
}

Numbers numbers(const Tensor& t) {
  Numbers out;
  for (int64_t i = 0; i < t.num_elements(); ++i) out.push_back(t.get_as_double(i));
  return out;
}

class Builders : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { register_ops(); }

  // What the evaluator makes of a program of these inputs.
  static std::vector<Numbers> run(const std::vector<Tensor>& inputs, const Make& make) {
    ProgramBuilder program(SourceFile::make("test"), {});
    std::vector<DeclaredInput> declared;
    for (size_t i = 0; i < inputs.size(); ++i) {
      DeclaredInput input{.name = "x" + std::to_string(i), .dtype = inputs[i].dtype()};
      input.shape.emplace();
      for (int64_t size : inputs[i].shape()) input.shape->push_back({.size = size});
      declared.push_back(std::move(input));
    }
    program.declare_inputs(declared);
    program.throw_if_errors();
    std::vector<Expr> in;
    for (const DeclaredInput& d : declared) {
      in.push_back(program.expr_of(program.main_scope().find(d.name)));
    }
    std::vector<std::pair<std::string, ValuePtr>> outputs;
    for (const Expr& e : make(Builder(program, "operator", program.place("operator")), in)) {
      outputs.emplace_back("y" + std::to_string(outputs.size()), value_of(e));
    }
    const size_t count = outputs.size();
    ImportedModel m = program.finish(outputs);
    std::vector<runtime::Value> args(inputs.begin(), inputs.end());
    const runtime::Value result = Evaluator(m.module).call("main", args);
    std::vector<Numbers> out;
    for (size_t i = 0; i < count; ++i) {
      out.push_back(numbers(count == 1 ? result.tensor() : result.field(i).tensor()));
    }
    return out;
  }

  static std::string error_of(const std::vector<Tensor>& inputs, const Make& make) {
    try {
      run(inputs, make);
    } catch (const UserError& e) {
      return std::string(e.diagnostics().front().code);
    }
    return "";
  }
};

void expect_near(const Numbers& a, const Numbers& b, double tolerance = 1e-5) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance) << "element " << i;
}

Window window_of(int64_t kernel, int64_t stride, int64_t pad = 0) {
  return {{kernel, kernel}, {stride, stride}, {1, 1}, {pad, pad}, {pad, pad}};
}

// ---- Pools and convolutions

TEST_F(Builders, places_of_maxima_count_through_the_tensor_or_a_channel) {
  Tensor x = floats({2, 3, 4, 4});
  auto out = run({x}, [](const Builder& build, const std::vector<Expr>& in) {
    Pooled p = pool(build, PoolKind::Max, in[0], {.window = window_of(2, 2)});
    return std::vector<Expr>{p.y, places_of_maxima(build, p, PlacesIn::Tensor),
                             places_of_maxima(build, p, PlacesIn::Channel)};
  });
  const Numbers all = numbers(x);
  for (size_t i = 0; i < out[0].size(); ++i) {
    EXPECT_EQ(all[static_cast<size_t>(out[1][i])], out[0][i]);
    const size_t channel = i / 4;
    EXPECT_EQ(all[channel * 16 + static_cast<size_t>(out[2][i])], out[0][i]);
  }
}

TEST_F(Builders, unpooling_puts_maxima_back) {
  Tensor x = floats({2, 3, 4, 4});
  auto out = run({x}, [](const Builder& build, const std::vector<Expr>& in) {
    const Window w = window_of(2, 2);
    Pooled p = pool(build, PoolKind::Max, in[0], {.window = w});
    std::vector<Expr> all;
    for (PlacesIn counted : {PlacesIn::Tensor, PlacesIn::Channel}) {
      all.push_back(unpool(build, p.y, places_of_maxima(build, p, counted), counted,
                           unpooled_shape(build, p.y, w)));
    }
    all.push_back(p.y);
    return all;
  });
  EXPECT_EQ(out[0], out[1]);
  const Numbers all = numbers(x);
  double sum = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(out[0][i] == 0 || out[0][i] == all[i]);
    sum += out[0][i];
  }
  EXPECT_NEAR(sum, std::accumulate(out[2].begin(), out[2].end(), 0.0), 1e-5);
}

TEST_F(Builders, a_window_past_the_padding_counts_the_padding_only) {
  // The last window of each axis holds one element, one of the padding and one place behind it.
  Tensor x = floats({1, 1, 4, 4}, Numbers(16, 1));
  auto means = [&](bool count_padding) {
    return run({x}, [&](const Builder& build, const std::vector<Expr>& in) {
      Window w = window_of(3, 3);
      w.end = {1, 1};
      return std::vector<Expr>{pool(build, PoolKind::Average, in[0],
                                    {.window = w, .ceil = true, .count_padding = count_padding})
                                   .y};
    })[0];
  };
  expect_near(means(true), {1, 0.5, 0.5, 0.25});
  expect_near(means(false), {1, 1, 1, 1});
}

TEST_F(Builders, a_transposed_convolution_spreads_its_kernel) {
  auto out = run({floats({1, 1, 3}, {1, 2, 3}), floats({1, 1, 2}, {10, 1})},
                 [](const Builder& build, const std::vector<Expr>& in) {
                   Window w{kernel_of(build, in[1], 1), {2}, {1}, {0}, {0}};
                   return std::vector<Expr>{transposed_convolution(build, in[0], in[1], w, {1}, 1)};
                 });
  EXPECT_EQ(out[0], (Numbers{10, 1, 20, 2, 30, 3, 0}));
}

// ---- Normalisations

TEST_F(Builders, normalisations_without_scale_and_shift) {
  auto out = run({floats({2, 4, 6})}, [](const Builder& build, const std::vector<Expr>& in) {
    const Expr& x = in[0];
    auto full = [&](double v, int64_t n) { return build.full(v, {dim(n)}, DType::Float(32)); };
    return std::vector<Expr>{
        layer_norm(build, x, nullptr, nullptr, 2, 1e-5),
        layer_norm_with_moments(build, x, nullptr, nullptr, 2, 1e-5).normalised,
        group_norm(build, x, nullptr, nullptr, 4, 1e-5),
        instance_norm(build, x, nullptr, nullptr, 1e-5),
        layer_norm(build, x, nullptr, nullptr, 1, 1e-5),
        group_norm(build, x, full(1, 4), full(0, 4), 1, 1e-5),
        batch_norm(build, x, nullptr, nullptr, full(0, 4), full(1, 4), 0),
        x};
  });
  for (size_t i : {1u, 2u, 3u}) expect_near(out[i], out[0]);
  expect_near(out[5], out[4]);
  expect_near(out[7], out[6]);
}

TEST_F(Builders, batch_norm_of_the_batch_has_its_moments) {
  auto out = run({floats({3, 2, 5})}, [](const Builder& build, const std::vector<Expr>& in) {
    BatchNorm b = batch_norm_of_batch(build, in[0], nullptr, nullptr, 1e-5);
    Expr plain = batch_norm(build, in[0], nullptr, nullptr, b.mean, b.variance, 1e-5);
    return std::vector<Expr>{b.y, plain, b.mean, running_average(build, b.mean, b.variance, 0.25),
                             b.variance};
  });
  expect_near(out[0], out[1]);
  ASSERT_EQ(out[3].size(), 2u);
  for (size_t i : {0u, 1u}) EXPECT_NEAR(out[3][i], 0.25 * out[2][i] + 0.75 * out[4][i], 1e-6);
}

TEST_F(Builders, groups_divide_the_channels_E0504) {
  auto groups = [](const Builder& build, const std::vector<Expr>& in) {
    return std::vector<Expr>{group_norm(build, in[0], nullptr, nullptr, 3, 1e-5)};
  };
  EXPECT_EQ(error_of({floats({2, 4, 6})}, groups), "E0504");
}

// ---- Activations

TEST_F(Builders, activations_do_not_overflow) {
  auto out =
      run({floats({4}, {-200, -1, 1, 200})}, [](const Builder& build, const std::vector<Expr>& in) {
        const Expr& x = in[0];
        return std::vector<Expr>{softplus(build, x),
                                 elu(build, x, 2),
                                 elu(build, x, 2, 2),
                                 shrink(build, x, 1.5, 0.5),
                                 prelu(build, x, build.scalar_like(0.25, x)),
                                 softmax(build, Softmax::Hard, x, 0),
                                 gelu(build, x),
                                 gelu_by_tanh(build, x)};
      });
  expect_near(out[0], {0, std::log1p(std::exp(-1)), 1 + std::log1p(std::exp(-1)), 200}, 1e-4);
  expect_near(out[1], {-2, 2 * std::expm1(-1), 1, 200});
  expect_near(out[2], {-2, 2 * std::expm1(-0.5), 1, 200});
  expect_near(out[3], {-199.5, 0, 0, 199.5});
  expect_near(out[4], {-50, -0.25, 1, 200});
  expect_near(out[5], {0, 0, 0, 1});
  expect_near(out[6], {0, -0.158655, 0.841345, 200}, 1e-4);
  expect_near(out[7], out[6], 1e-3);
}

TEST_F(Builders, short_powers_are_products_and_roots) {
  auto out =
      run({floats({3}, {1, 4, 0.25})}, [](const Builder& build, const std::vector<Expr>& in) {
        EXPECT_EQ(short_power(build, in[0], 0.25), nullptr);
        EXPECT_EQ(short_power(build, build.ints({2}), 0.5), nullptr);
        std::vector<Expr> all;
        for (double n : {1.0, 2.0, 3.0, 0.5, -1.0}) all.push_back(short_power(build, in[0], n));
        return all;
      });
  EXPECT_EQ(out[0], (Numbers{1, 4, 0.25}));
  EXPECT_EQ(out[1], (Numbers{1, 16, 0.0625}));
  EXPECT_EQ(out[2], (Numbers{1, 64, 0.015625}));
  EXPECT_EQ(out[3], (Numbers{1, 2, 0.5}));
  EXPECT_EQ(out[4], (Numbers{1, 0.25, 4}));
}

// ---- Gather and scatter

TEST_F(Builders, known_places_are_checked_E0504) {
  auto taken = [](const std::vector<int64_t>& at) -> Make {
    return [at](const Builder& build, const std::vector<Expr>& in) {
      ValuePtr places = value_of(integers({static_cast<int64_t>(at.size())}, at));
      return std::vector<Expr>{take_along(build, in[0], places, 1)};
    };
  };
  EXPECT_EQ(error_of({floats({2, 3})}, taken({0, 3})), "E0504");
  EXPECT_EQ(run({floats({2, 3}, {1, 2, 3, 4, 5, 6})}, taken({-1, 0}))[0], (Numbers{3, 1, 6, 4}));
}

TEST_F(Builders, scattered_updates_meet_what_is_there) {
  Tensor x = floats({2, 2}, {1, 2, 3, 4}), updates = floats({2, 1}, {10, 20});
  auto out = run({x, integers({2, 1}, {-1, 0}), updates},
                 [](const Builder& build, const std::vector<Expr>& in) {
                   ValuePtr places = value_of(in[1]);
                   std::vector<Expr> all;
                   for (Scatter how : {Scatter::Update, Scatter::Add, Scatter::Mul, Scatter::Max}) {
                     all.push_back(scatter_elements(build, in[0], places, in[2], 1, how));
                   }
                   all.push_back(gather_elements(build, all[0], places, 1));
                   return all;
                 });
  EXPECT_EQ(out[0], (Numbers{1, 10, 20, 4}));
  EXPECT_EQ(out[1], (Numbers{1, 12, 23, 4}));
  EXPECT_EQ(out[2], (Numbers{1, 20, 60, 4}));
  EXPECT_EQ(out[3], (Numbers{1, 10, 20, 4}));
  EXPECT_EQ(out[4], (Numbers{10, 20}));
}

TEST_F(Builders, coordinates_name_parts) {
  auto out = run({floats({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), integers({2, 2}, {0, 1, 1, 0})},
                 [](const Builder& build, const std::vector<Expr>& in) {
                   Expr parts = gather_nd(build, in[0], value_of(in[1]), 0);
                   return std::vector<Expr>{
                       parts, scatter_nd(build, in[0], value_of(in[1]), parts, Scatter::Add)};
                 });
  EXPECT_EQ(out[0], (Numbers{3, 4, 5, 6}));
  EXPECT_EQ(out[1], (Numbers{1, 2, 6, 8, 10, 12, 7, 8}));
}

// ---- Shapes

TEST_F(Builders, shapes_that_a_run_tells_are_those_that_are_known) {
  auto vector = [](const std::vector<int64_t>& v) {
    return integers({static_cast<int64_t>(v.size())}, v);
  };
  auto out = run(
      {floats({2, 1, 6}), vector({3, -1}), vector({2, 4, 1}), vector({1}), vector({5, 1}),
       vector({0, 0}), vector({-1, 0}), vector({-2, 2})},
      [](const Builder& build, const std::vector<Expr>& in) {
        const Expr& x = in[0];
        Expr rows = build.reshape(x, {dim(2), dim(6)});
        SliceSpec spec{{dim(5), dim(0)}, {dim(0), dim(2)}, {-1, 0}, {-2, 2}};
        return std::vector<Expr>{
            reshape_to(build, x, {dim(3), dim(-1)}, ZeroSize::Empty),
            reshape_at_run_time(build, x, in[1], ZeroSize::Empty),
            expand_to(build, x, {dim(2), dim(4), dim(1)}),
            expand_at_run_time(build, x, in[2]),
            remove_axes(build, x, {-2}),
            remove_axes_at_run_time(build, x, in[3]),
            insert_axes(build, rows, {1}),
            insert_axes_at_run_time(build, rows, in[3]),
            strided_slice(build, rows, spec),
            slice_at_run_time(build, rows,
                              {.begin = build.concat(
                                   {build.slice(in[4], 0, 0, 1), build.slice(in[5], 0, 0, 1)}, 0),
                               .end = build.ints({0, 2}),
                               .steps = in[7],
                               .which = in[6],
                               .forward = false})};
      });
  for (size_t i = 0; i < out.size(); i += 2) EXPECT_EQ(out[i], out[i + 1]) << "pair " << i / 2;
  EXPECT_EQ(out[8].size(), 3u);
}

TEST_F(Builders, parts_are_even_but_for_the_last) {
  auto out = run(
      {floats({7}, {1, 2, 3, 4, 5, 6, 7})}, [](const Builder& build, const std::vector<Expr>& in) {
        std::vector<Expr> all = split_evenly(build, in[0], 3, 0);
        for (const Expr& e : split_at_run_time(build, in[0], even_sizes(build, in[0], 3, 0), 0)) {
          all.push_back(e);
        }
        return all;
      });
  ASSERT_EQ(out.size(), 6u);
  EXPECT_EQ(out[2], (Numbers{7}));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(out[i], out[i + 3]);
  EXPECT_EQ(error_of({floats({7})},
                     [](const Builder& build, const std::vector<Expr>& in) {
                       return split_into(build, in[0], {3, 3}, 0);
                     }),
            "E0203");
}

// ---- Products

TEST_F(Builders, einsum_contracts_named_axes) {
  auto out = run({floats({2, 3, 4}), floats({2, 4, 5})},
                 [](const Builder& build, const std::vector<Expr>& in) {
                   return std::vector<Expr>{
                       einsum(build, "bij,bjk->bik", in), build.matmul(in[0], in[1]),
                       einsum(build, "...j, ...jk -> ...k", {build.select(in[0], 1, 0), in[1]}),
                       build.select(build.matmul(in[0], in[1]), 1, 0)};
                 });
  expect_near(out[0], out[1]);
  expect_near(out[2], out[3]);
  EXPECT_EQ(error_of({floats({2, 3})},
                     [](const Builder& build, const std::vector<Expr>& in) {
                       return std::vector<Expr>{einsum(build, "ijk->i", in)};
                     }),
            "E0504");
}

// Rows of a weight by gates, in another order.
Expr reordered(const Builder& build, const Expr& weights, const std::vector<int64_t>& gates) {
  std::vector<Expr> parts = build.split(weights, 0, static_cast<int64_t>(gates.size())),
                    out(gates.size());
  for (size_t i = 0; i < gates.size(); ++i) out[i] = parts[static_cast<size_t>(gates[i])];
  return build.concat(out, 0);
}

TEST_F(Builders, gates_stand_in_any_order) {
  constexpr int64_t kSteps = 3, kBatch = 2, kFeatures = 3, kHidden = 2;
  struct Case {
    RecurrentCell cell;
    std::vector<size_t> order;        // where each gate stands
    std::vector<int64_t> rearranged;  // the gates in that order
  };
  for (const Case& c : {Case{RecurrentCell::Lstm, {0, 3, 1, 2}, {0, 2, 3, 1}},
                        Case{RecurrentCell::Gru, {1, 0}, {1, 0, 2}}}) {
    const int64_t rows = gates_of(c.cell) * kHidden;
    auto out = run({floats({kSteps, kBatch, kFeatures}), floats({rows, kFeatures}),
                    floats({rows, kHidden}), floats({rows}), floats({kBatch, kHidden})},
                   [&](const Builder& build, const std::vector<Expr>& in) {
                     std::vector<Expr> all;
                     for (bool other : {false, true}) {
                       auto weight = [&](size_t i) {
                         return other ? reordered(build, in[i], c.rearranged) : in[i];
                       };
                       RecurrentLayer layer{.cell = c.cell, .x = in[0], .hidden = kHidden};
                       layer.reset_after = true;
                       if (other) layer.gate_order = c.order;
                       for (bool backward : {false, true}) {
                         RecurrentDirection d{.w = weight(1), .r = weight(2)};
                         d.w_bias = weight(3);
                         d.r_bias = weight(3);
                         d.state = in[4];
                         d.backward = backward;
                         layer.directions.push_back(d);
                       }
                       RecurrentResults r = recurrent(build, layer);
                       all.push_back(r.y);
                       all.insert(all.end(), r.last.begin(), r.last.end());
                     }
                     return all;
                   });
    const size_t half = out.size() / 2;
    for (size_t i = 0; i < half; ++i) expect_near(out[i], out[half + i]);
    // The last state of the first direction is its line of the last step.
    const auto size = static_cast<size_t>(kBatch * kHidden);
    const Numbers &y = out[0], &last = out[1];
    for (size_t i = 0; i < size; ++i) EXPECT_EQ(y[(kSteps - 1) * 2 * size + i], last[i]);
    for (size_t i = 0; i < size; ++i) EXPECT_EQ(y[size + i], last[size + i]);
  }
}

// ---- Attention

TEST_F(Builders, causal_attention_is_a_mask) {
  Tensor q = floats({1, 4, 3, 2}), k = floats({1, 2, 3, 2}, some(12, 50)),
         v = floats({1, 2, 3, 2}, some(12, 90));
  Tensor mask = Tensor::empty(DType::Bool(), {3, 3});
  for (int64_t i = 0; i < 9; ++i) mask.set_from_int(i, i % 3 <= i / 3 ? 1 : 0);
  auto out = run({q, k, v, mask}, [](const Builder& build, const std::vector<Expr>& in) {
    Expr keys = in[1], values = in[2];
    share_heads(build, in[0], keys, values);
    AttentionSpec causal{.causal = true}, masked{.mask = in[3]}, near{.causal = true};
    near.left_window = 0;
    return std::vector<Expr>{attention(build, in[0], keys, values, causal).y,
                             attention(build, in[0], keys, values, masked).y,
                             attention(build, in[0], keys, values, near).y, values};
  });
  expect_near(out[0], out[1]);
  // A query that sees its own place alone reads its value.
  expect_near(out[2], out[3]);
}

TEST_F(Builders, a_query_that_sees_nothing_gets_nothing) {
  Tensor mask = Tensor::empty(DType::Bool(), {2, 3});
  for (int64_t i = 0; i < 6; ++i) mask.set_from_int(i, i < 3 ? 0 : 1);
  auto out =
      run({floats({1, 1, 2, 2}), floats({1, 1, 3, 2}), mask},
          [](const Builder& build, const std::vector<Expr>& in) {
            return std::vector<Expr>{attention(build, in[0], in[1], in[1], {.mask = in[2]}).y};
          });
  EXPECT_EQ(out[0][0], 0);
  EXPECT_EQ(out[0][1], 0);
  EXPECT_NE(out[0][2], 0);
}

}  // namespace
}  // namespace relay::frontend
