#include "quantize/quantize.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/text/text.h"
#include "node/walk.h"
#include "passes/pass_list.h"
#include "quantize/layers.h"
#include "quantize/report.h"
#include "types/infer.h"

namespace relay::quantize {
namespace {

Module parse(const std::string& text) {
  initialize();
  return infer_types(parse_module("test.relay", "#[version = \"0.0.5\"]\n" + text));
}

Tensor numbers(std::initializer_list<int64_t> shape, double low, double high, uint64_t seed = 1) {
  Tensor t = Tensor::empty(DType::Float(32), shape);
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    t.set_from_double(i, low + (high - low) * (static_cast<double>(state >> 11) * 0x1p-53));
  }
  return t;
}

// @main with all parameters but the first as constants.
Module with_weights(const Module& mod) {
  Function main = mod->find("main");
  std::unordered_map<const Node*, NodeRef> constants;
  for (size_t i = 1; i < main->params.size(); ++i) {
    auto shape = *as<TensorTypeNode>(main->params[i]->type)->const_shape();
    Tensor w = Tensor::empty(DType::Float(32), shape);
    Tensor from = numbers({w.num_elements()}, -1, 1, i);
    std::copy_n(from.data<float>(), w.num_elements(), w.data<float>());
    constants[main->params[i].get()] = constant(w);
  }
  Expr body = Expr::unchecked(substitute(main->body, constants));
  return infer_types(with_function(mod, global_var("main"), function({main->params[0]}, body)));
}

const Module& network() {
  static const Module mod = with_weights(parse(R"(
def @main(%x: Tensor[(1, 3, 12, 12), float32], %w1: Tensor[(8, 3, 3, 3), float32],
          %b1: Tensor[(8), float32], %w2: Tensor[(8, 8, 3, 3), float32],
          %w3: Tensor[(5, 8), float32]) {
  let %a = nn.relu(nn.bias_add(nn.conv2d(%x, %w1, padding=[1, 1, 1, 1]), %b1));
  let %p = nn.max_pool2d(%a, pool_size=[2, 2], strides=[2, 2]);
  let %c = nn.conv2d(%p, %w2, padding=[1, 1, 1, 1]);
  let %r = nn.relu(add(%c, %p));
  nn.dense(nn.batch_flatten(nn.global_avg_pool2d(%r)), %w3)
})"));
  return mod;
}

Samples samples(size_t count = 3) {
  Samples out;
  for (size_t i = 0; i < count; ++i) out.push_back({numbers({1, 3, 12, 12}, -1, 2, i + 7)});
  return out;
}

std::string code_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& e) {
    return std::string(e.diagnostics()[0].code);
  }
  return "";
}

TEST(ScaleTest, zero_is_exact_and_the_ends_are_met) {
  Scale s = scale_of({-1, 3}, DType::UInt(8));
  EXPECT_NEAR(s.scale, 4.0 / 255, 1e-9);
  EXPECT_EQ(s.zero_point, 64);
  EXPECT_EQ(scale_of({0, 2}, DType::UInt(8)).zero_point, 0);
  EXPECT_EQ(scale_of({-2, 0}, DType::UInt(8)).zero_point, 255);
  // int8 is around 0: a power of 2 gives one.
  EXPECT_EQ(scale_of({-8, 2}, DType::Int(8)).scale, 0.0625F);
  EXPECT_EQ(scale_of({-1, 8}, DType::Int(8)).zero_point, 0);
  EXPECT_EQ(scale_of({0, 0}, DType::Int(8)).scale, 1);
  // A tensor of zeros.
  EXPECT_EQ(scale_of({0, 0}, DType::UInt(8)).scale, 1);
}

// A normal distribution with one number far out.
Histogram with_outlier() {
  Tensor t = numbers({20'000}, 0, 1);
  for (int64_t i = 0; i + 1 < t.num_elements(); i += 2) {
    double r = std::sqrt(-2 * std::log(1 - t.get_as_double(i))),
           a = 6.283185307 * t.get_as_double(i + 1);
    t.set_from_double(i, r * std::cos(a));
    t.set_from_double(i + 1, r * std::sin(a));
  }
  t.set_from_double(77, 100);
  Histogram h;
  EXPECT_TRUE(h.extend(t));
  h.count(t);
  return h;
}

TEST(HistogramTest, ranges_by_method) {
  Histogram h = with_outlier();
  Range all = h.choose(Calibration::min_max, 0);
  EXPECT_EQ(all.high, 100);
  EXPECT_LT(all.low, -3);
  Range most = h.choose(Calibration::percentile, 99.9);
  EXPECT_LT(most.high, 5);
  EXPECT_GT(most.high, 2.5);
  EXPECT_LT(most.low, -2.5);
  // A single number is not worth the coarser steps for twenty thousand others.
  Range kept = h.choose(Calibration::entropy, 0);
  EXPECT_LT(kept.high, 20);
  EXPECT_GT(kept.high, 2);
}

TEST(HistogramTest, zeros_and_one_sign) {
  Histogram h;
  Tensor zeros = Tensor::zeros(DType::Float(32), {4});
  EXPECT_TRUE(h.extend(zeros));
  h.count(zeros);
  for (auto c : {Calibration::min_max, Calibration::percentile, Calibration::entropy}) {
    Range r = h.choose(c, 99);
    EXPECT_EQ(r.low, 0);
    EXPECT_EQ(r.high, 0);
  }
  Histogram positive;
  Tensor t = numbers({1000}, 1, 2);
  EXPECT_TRUE(positive.extend(t));
  positive.count(t);
  EXPECT_EQ(positive.choose(Calibration::entropy, 0).low, 0);
  EXPECT_EQ(positive.choose(Calibration::percentile, 99).low, 0);
}

TEST(HistogramTest, numbers_that_are_not_finite) {
  for (double bad : {double{NAN}, HUGE_VAL, -HUGE_VAL}) {
    Tensor t = numbers({4}, 0, 1);
    t.set_from_double(2, bad);
    EXPECT_FALSE(Histogram().extend(t)) << bad;
  }
}

TEST(LayersTest, data_are_quantized_before_their_elements_move) {
  Layers layers = find_layers(parse(R"(
def @main(%x: Tensor[(1, 2, 4, 4), float32]) {
  %0 = nn.relu(%x);
  %1 = nn.max_pool2d(%0, pool_size=[2, 2], strides=[2, 2]);
  %2 = nn.dense(nn.batch_flatten(%1), meta[relay.Constant][0]);
  (%2, %0)
}
#[metadata]
{"relay.Constant": [{"dtype": "float32", "shape": [2, 8], "data": "AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAAQA=="}]}
)"),
                              {});
  ASSERT_EQ(layers.layers.size(), 1u);
  EXPECT_EQ(layers.layers[0].obstacle, "");
  ASSERT_EQ(layers.sources.size(), 1u);
  EXPECT_EQ(to_string(layers.sources[0]->type), "Tensor[(1, 2, 4, 4), float32]");
  Parameters parameters{{{0, 255}}, {Tensor()}};
  std::string text = print_module(with_quantized(layers, {true}, parameters));
  text = text.substr(0, text.find("\n#[metadata]"));
  // The result that is the layer's data as well stays as it is.
  EXPECT_EQ(text, R"(#[version = "0.0.5"]
def @main(%x: Tensor[(1, 2, 4, 4), float32]) -> (Tensor[(1, 2), float32], Tensor[(1, 2, 4, 4), float32]) {
  %0 = nn.relu(%x);
  %1 = qnn.quantize(%0, 1f, 0, out_dtype="uint8");
  %2 = qnn.dequantize(%1, 1f, 0);
  %3 = nn.max_pool2d(%2, pool_size=[2, 2], strides=[2, 2]);
  %4 = nn.batch_flatten(%3);
  %5 = qnn.dequantize(meta[relay.Constant][0], meta[relay.Constant][1], 0, axis=0);
  %6 = nn.dense(%4, %5);
  (%6, %0)
}
)");
}

TEST(LayersTest, what_stays_in_floats_says_why) {
  Layers layers = find_layers(parse(R"(
def @main(%x: Tensor[(2, 4), float32], %y: Tensor[(2, 4), float32], %c: bool) {
  %0 = nn.dense(%x, %y);
  %1 = if (%c) { nn.dense(%x, ones(shape=[3, 4], dtype="float32")) } else { zeros(shape=[2, 3], dtype="float32") };
  (%0, %1, nn.dense(cast(%x, dtype="float64"), cast(%y, dtype="float64")))
})"),
                              {});
  std::vector<std::string> found;
  for (const Layer& l : layers.layers) found.push_back(l.obstacle);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0], "both operands are computed: there are no weights");
  EXPECT_TRUE(found[1].starts_with("in a branch")) << found[1];
  EXPECT_EQ(found[2], "computes in float64, not in float32");
}

TEST(QuantizeTest, a_network) {
  Samples inputs = samples();
  Quantized q = quantize_model(network(), inputs, {});
  const Report& r = q.report;
  ASSERT_EQ(r.layers.size(), 3u);
  EXPECT_EQ(r.quantized_layers(), 3u);
  EXPECT_EQ(r.samples, 3u);
  EXPECT_EQ(r.tried, 1u);
  EXPECT_GT(r.output_error, 0);
  EXPECT_LT(r.output_error, 0.05);
  EXPECT_TRUE(r.agreement.has_value());
  EXPECT_LT(r.quantized_constant_bytes, r.constant_bytes / 2);
  for (const LayerReport& l : r.layers) {
    EXPECT_GT(l.error, 0) << l.name;
    EXPECT_LT(l.error, 0.05) << l.name;
    EXPECT_GT(l.seconds, 0) << l.name;
    EXPECT_GT(l.quantized_seconds, 0) << l.name;
    EXPECT_LT(l.quantized_weight_bytes, l.weight_bytes) << l.name;
  }
  // Its sums are of integers, and it is a program like any other.
  CompiledModule compiled = compile(q.module, {});
  std::string text = print_module(compiled.optimized);
  EXPECT_EQ(text.find("nn.conv2d(%x"), std::string::npos);
  EXPECT_NE(text.find("int32"), std::string::npos);
  EXPECT_EQ(compiled.load().run("main", inputs[0]).size(), 1u);
  // To the last bit the same when it is done again.
  EXPECT_EQ(print_module(quantize_model(network(), inputs, {}).module), print_module(q.module));
}

TEST(QuantizeTest, bias_correction_takes_the_mean_error_away) {
  Options without;
  without.bias_correction = false;
  Report plain = quantize_model(network(), samples(), without).report;
  Report corrected = quantize_model(network(), samples(), {}).report;
  for (size_t i = 0; i < plain.layers.size(); ++i)
    EXPECT_LE(corrected.layers[i].error, plain.layers[i].error);
  EXPECT_LT(corrected.output_error, plain.output_error);
}

TEST(QuantizeTest, layers_go_back_to_floats_until_an_aim_is_reached) {
  Quantized all = quantize_model(network(), samples(), {});
  Options options;
  options.max_error = 0;
  Quantized none = quantize_model(network(), samples(), options);
  EXPECT_EQ(none.report.quantized_layers(), 0u);
  EXPECT_EQ(none.report.output_error, 0);
  EXPECT_EQ(none.report.layers[0].obstacle, "loses more than the aims allow");
  options.max_error = all.report.output_error * 0.9;
  Quantized some = quantize_model(network(), samples(), options);
  EXPECT_GT(some.report.quantized_layers(), 0u);
  EXPECT_LT(some.report.quantized_layers(), 3u);
  EXPECT_LE(some.report.output_error, *options.max_error);
  Options scored;
  scored.score = [](const runtime::Module& m) {
    return m.run("main", samples()[0])[0].get_as_double(0);
  };
  scored.max_loss = 0;
  Report report = quantize_model(network(), samples(), scored).report;
  EXPECT_LE(*report.score - *report.quantized_score, 0);
}

TEST(QuantizeTest, layers_may_be_kept) {
  Options options;
  Layers layers = find_layers(network(), {});
  options.keep_float = {layers.layers[0].name};
  Report report = quantize_model(network(), samples(), options).report;
  EXPECT_FALSE(report.layers[0].quantized);
  EXPECT_EQ(report.layers[0].obstacle, "kept in floats as asked for");
  EXPECT_TRUE(report.layers[1].quantized);
}

TEST(QuantizeTest, must_fail_E0706) {
  EXPECT_EQ(code_of([] { quantize_model(network(), {}, {}); }), "E0706");
  Samples bad = samples();
  bad[1][0].set_from_double(5, NAN);
  EXPECT_EQ(code_of([&] { quantize_model(network(), bad, {}); }), "E0706");
  Module no_layers = parse("def @main(%x: Tensor[(4), float32]) { nn.relu(%x) }");
  EXPECT_EQ(code_of([&] { quantize_model(no_layers, {{numbers({4}, 0, 1)}}, {}); }), "E0706");
}

TEST(QuantizeTest, must_fail_options_and_shapes) {
  auto with = [](const std::function<void(Options&)>& set) {
    Options options;
    set(options);
    return code_of([&] { quantize_model(network(), samples(), options); });
  };
  EXPECT_EQ(with([](Options& o) { o.keep_float = {"nothing"}; }), "E0702");
  EXPECT_EQ(with([](Options& o) { o.max_error = -1; }), "E0702");
  EXPECT_EQ(with([](Options& o) { o.max_error = NAN; }), "E0702");
  EXPECT_EQ(with([](Options& o) { o.min_agreement = 2; }), "E0702");
  EXPECT_EQ(with([](Options& o) { o.max_loss = 1; }), "E0702");
  EXPECT_EQ(with([](Options& o) { o.percentile = 0; }), "E0702");
  EXPECT_EQ(with([](Options& o) { o.compile.opt_level = 9; }), "E0702");
  EXPECT_EQ(code_of([] {
              quantize_model(network(), {{numbers({1, 3, 9, 9}, 0, 1)}}, {});
            }),
            "E0603");
}

TEST(ReportTest, names_are_escaped_in_pages) {
  Report report;
  report.layers.resize(1);
  report.layers[0].name = "<script>\"&";
  report.seconds = report.quantized_seconds = 1e-3;
  std::string page = to_html(report, "a<b");
  EXPECT_EQ(page.find("<script>"), std::string::npos);
  EXPECT_NE(page.find("&lt;script>&quot;&amp;"), std::string::npos);
  EXPECT_NE(to_json(report).find("\"layers\""), std::string::npos);
}

}  // namespace
}  // namespace relay::quantize
