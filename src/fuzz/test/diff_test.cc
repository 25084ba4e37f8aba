// `relay diff` finds planted faults: the pass, the kernel or the plan that is wrong, and the node.
#include "driver/diff.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <map>
#include <span>

#include "driver/bind_params.h"
#include "driver/test/networks.h"
#include "fuzz/faults.h"
#include "fuzz/module_edits.h"
#include "ir/op.h"

namespace relay::fuzz {
namespace {

using runtime::Value;

struct Bert {
  int64_t layers, tokens, width, heads, inner;
};
constexpr Bert kSmallBert{1, 8, 16, 2, 32}, kBertBase{12, 128, 768, 12, 3072};

struct ResNet {
  int64_t image, kernel;
  std::vector<std::pair<int64_t, int64_t>> stages;  // channels and blocks
};
const ResNet kSmallResNet{12, 3, {{16, 1}}};
const ResNet kResNet18{224, 7, {{64, 2}, {128, 2}, {256, 2}, {512, 2}}};

// Layers of BERT with a normalisation by root mean squares behind them. Weights begin with w.
std::string bert_text(const Bert& n) {
  const int64_t head = n.width / n.heads;
  std::string params =
      fmt::format("%x: Tensor[(1, {}, {}), float32], %mask: Tensor[(1, 1, 1, {}), float32]",
                  n.tokens, n.width, n.tokens);
  std::string body =
      fmt::format("  let %t0 = reshape(%x, newshape=[{}, {}]);\n", n.tokens, n.width);
  for (int64_t i = 0; i < n.layers; ++i) {
    auto add = [&](std::string& to, std::string_view text) {
      to += fmt::format(fmt::runtime(text), fmt::arg("i", i), fmt::arg("next", i + 1),
                        fmt::arg("s", n.tokens), fmt::arg("w", n.width), fmt::arg("h", n.heads),
                        fmt::arg("d", head), fmt::arg("f", n.inner),
                        fmt::arg("root", std::sqrt(static_cast<double>(head))));
    };
    add(params, R"(,
    %wq{i}: Tensor[({w}, {w}), float32], %wk{i}: Tensor[({w}, {w}), float32],
    %wv{i}: Tensor[({w}, {w}), float32], %wo{i}: Tensor[({w}, {w}), float32],
    %wbq{i}: Tensor[({w},), float32], %wbo{i}: Tensor[({w},), float32],
    %wg{i}: Tensor[({w},), float32], %wb{i}: Tensor[({w},), float32],
    %wup{i}: Tensor[({f}, {w}), float32], %wdown{i}: Tensor[({w}, {f}), float32],
    %wbup{i}: Tensor[({f},), float32])");
    add(body, R"(  let %q{i} = add(nn.dense(%t{i}, %wq{i}), %wbq{i});
  let %k{i} = nn.dense(%t{i}, %wk{i});
  let %v{i} = nn.dense(%t{i}, %wv{i});
  let %qh{i} = transpose(reshape(%q{i}, newshape=[1, {s}, {h}, {d}]), axes=[0, 2, 1, 3]);
  let %kh{i} = transpose(reshape(%k{i}, newshape=[1, {s}, {h}, {d}]), axes=[0, 2, 3, 1]);
  let %vh{i} = transpose(reshape(%v{i}, newshape=[1, {s}, {h}, {d}]), axes=[0, 2, 1, 3]);
  let %qs{i} = reshape(%qh{i}, newshape=[{h}, {s}, {d}]);
  let %ks{i} = reshape(%kh{i}, newshape=[{h}, {d}, {s}]);
  let %vs{i} = reshape(%vh{i}, newshape=[{h}, {s}, {d}]);
  let %raw{i} = divide(reshape(nn.batch_matmul(%qs{i}, %ks{i}), newshape=[1, {h}, {s}, {s}]), {root:.6f}f);
  let %scores{i} = add(%raw{i}, %mask);
  let %p{i} = nn.softmax(%scores{i}, axis=-1);
  let %c{i} = nn.batch_matmul(reshape(%p{i}, newshape=[{h}, {s}, {s}]), %vs{i});
  let %ch{i} = transpose(reshape(%c{i}, newshape=[1, {h}, {s}, {d}]), axes=[0, 2, 1, 3]);
  let %o{i} = add(nn.dense(reshape(%ch{i}, newshape=[{s}, {w}]), %wo{i}), add(%wbo{i}, %wb{i}));
  let %r{i} = add(%o{i}, %t{i});
  let %n{i} = nn.layer_norm(%r{i}, %wg{i}, %wb{i});
  let %f{i} = add(nn.dense(%n{i}, %wup{i}), %wbup{i});
  let %e{i} = multiply(multiply(%f{i}, 0.5f), add(erf(multiply(%f{i}, 0.70710677f)), 1f));
  let %t{next} = add(nn.dense(%e{i}, %wdown{i}), %n{i});
)");
  }
  return fmt::format(R"(def @main({}) {{
{}  let %wide = multiply(%t{}, 400f);
  let %squares = multiply(%wide, %wide);
  let %root = sqrt(add(mean(%squares, axis=[-1], keepdims=True), 0.1f));
  let %z = subtract(divide(%wide, %root), mean(%t{}, axis=[-1], keepdims=True));
  tanh(%z)
}}
)",
                     params, body, n.layers, n.layers);
}

// Residual blocks, each with a projection beside it.
std::string resnet_text(const ResNet& n) {
  std::string params =
      fmt::format("%x: Tensor[(1, 3, {}, {}), float32], %mask: Tensor[(1, 1, 1, 10), float32]",
                  n.image, n.image);
  std::string body;
  auto norm = [&](const std::string& name, const std::string& from, int64_t channels) {
    for (const char* part : {"g", "b", "m", "variance"})
      params += fmt::format(", %w{}{}: Tensor[({},), float32]", part, name, channels);
    body += fmt::format("  let %n{} = nn.batch_norm(%{}, %wg{}, %wb{}, %wm{}, %wvariance{}).0;\n",
                        name, from, name, name, name, name);
  };
  auto conv = [&](const std::string& name, const std::string& from, int64_t out, int64_t in,
                  int64_t kernel, int64_t stride, const std::string& padding) {
    params += fmt::format(",\n    %wc{}: Tensor[({}, {}, {}, {}), float32]", name, out, in, kernel,
                          kernel);
    body += fmt::format(
        "  let %c{} = nn.conv2d(%{}, %wc{}, padding=[{}], strides=[{}, {}], channels={}, "
        "kernel_size=[{}, {}]);\n",
        name, from, name, padding, stride, stride, out, kernel, kernel);
  };
  const int64_t first = n.stages[0].first, half = n.kernel / 2;
  const int64_t stride = n.image > 100 ? 4 : 1;
  body += fmt::format("  let %a = nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [{}, 0], [0, {}]]);\n",
                      half, half);
  conv("stem", "a", first, 3, n.kernel, stride, fmt::format("0, {}, {}, 0", half, half));
  params += fmt::format(", %wbias: Tensor[({},), float32]", first);
  body += "  let %biased = nn.bias_add(%cstem, %wbias);\n";
  norm("stem", "biased", first);
  body += "  let %r0 = nn.relu(%nstem);\n";
  int64_t block = 0, in = first;
  for (size_t s = 0; s < n.stages.size(); ++s) {
    const auto [out, blocks] = n.stages[s];
    for (int64_t b = 0; b < blocks; ++b, ++block, in = out) {
      const int64_t step = s > 0 && b == 0 ? 2 : 1;
      const std::string i = std::to_string(block), r = "r" + i;
      conv("x" + i, r, out, in, 3, step, "1, 1, 1, 1");
      norm("x" + i, "cx" + i, out);
      body += fmt::format("  let %m{} = nn.relu(%nx{});\n", i, i);
      conv("y" + i, "m" + i, out, out, 3, 1, "1, 1, 1, 1");
      norm("y" + i, "cy" + i, out);
      conv("p" + i, r, out, in, 1, step, "0, 0, 0, 0");
      body += fmt::format("  let %r{} = nn.relu(add(%ny{}, %cp{}));\n", block + 1, i, i);
    }
  }
  params += fmt::format(", %wf: Tensor[(10, {}), float32], %wbf: Tensor[(10,), float32]", in);
  return fmt::format(R"(def @main({}) {{
{}  let %wide = multiply(%r{}, 400f);
  let %squares = multiply(%wide, %wide);
  let %g = sqrt(nn.global_avg_pool2d(%squares));
  let %d = add(nn.dense(nn.batch_flatten(%g), %wf), %wbf);
  let %level = sqrt(add(mean(multiply(%d, %d), axis=[-1], keepdims=True), 0.1f));
  let %scores0 = add(divide(%d, %level), reshape(%mask, newshape=[1, 10]));
  let %p0 = nn.softmax(%scores0, axis=-1);
  let %even = nn.softmax(multiply(%scores0, 0.25f), axis=-1);
  subtract(subtract(%p0, %even), mean(%p0, axis=[-1], keepdims=True))
}}
)",
                     params, body, block);
}

// @main with constants for its weights, and arguments for the rest.
struct Network {
  std::string text;
  Module module;
  std::vector<Value> args;

  explicit Network(std::string source) : text(std::move(source)) {
    const Module parsed = driver_test::parse(text);
    std::map<std::string, Tensor> weights;
    uint64_t seed = 1;
    for (const Var& p : parsed->find("main")->params) {
      auto* type = as<TensorTypeNode>(p->type);
      Tensor t = Tensor::empty(type->dtype, *type->const_shape());
      const bool weight = p->name_hint[0] == 'w';
      // Sums stay about as large as their terms, however many these are.
      double terms = 1;
      for (int i = 1; i < t.rank(); ++i)
        terms *= static_cast<double>(t.dim(static_cast<size_t>(i)));
      constexpr double kManyTerms = 256;
      const double scale =
          weight ? std::min(1.0, (terms > kManyTerms ? 2 : 4) / std::sqrt(terms)) : 1;
      const bool variance = p->name_hint.starts_with("wvariance");
      // A mean other than 0 of many terms drowns the rest.
      const double low = variance ? 0.5 : (terms > kManyTerms ? -0.9 : -0.6) * scale;
      driver_test::fill(t, low, 0.9 * scale, ++seed);
      if (p->name_hint == "mask") {
        for (int64_t i = 0; i < t.num_elements(); ++i) t.set_from_double(i, i % 3 == 2 ? -4 : 0);
      }
      if (weight) {
        weights.emplace(p->name_hint, t);
      } else {
        args.emplace_back(t);
      }
    }
    module = bind_params(parsed, weights);
  }
};

// The place of the line that has the words, without its column; driver_test::parse adds a line in front of the text.
std::string place_of(const std::string& text, const std::string& words) {
  const size_t at = text.find(words);
  EXPECT_NE(at, std::string::npos) << words;
  const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  return "test.relay:" + std::to_string(line + 2) + ":";
}

// ---- Faults of these tests: calls of the source that a pass spoils

bool is_bound_sum(const CallNode& c) {
  // scores = raw + mask
  return is_call_to(ref(c), "add") && c.args[1]->type != nullptr &&
         (isa<VarNode>(c.args[1]) || is_call_to(c.args[1], "reshape"));
}

Module edit_calls(const Module& mod, const std::function<Expr(const CallNode&)>& edit) {
  return edited(mod, [&](const Expr& e) -> Expr {
    auto* c = as<CallNode>(e);
    return c != nullptr && isa<OpNode>(c->op) ? edit(*c) : nullptr;
  });
}

Module drops_masks(const Module& before, const Module&) {
  return edit_calls(before, [](const CallNode& c) -> Expr {
    const bool masks = is_bound_sum(c) && same_type(c.args[0], ref(c));
    auto* rank = masks ? as<TensorTypeNode>(c.type) : nullptr;
    return rank != nullptr && (isa<VarNode>(c.args[1]) || is_call_to(c.args[1], "reshape")) &&
                   !is_call_to(c.args[0], "nn.dense") && !is_call_to(c.args[0], "add")
               ? c.args[0]
               : nullptr;
  });
}

Module computes_squares_in_half(const Module& before, const Module&) {
  return edit_calls(before, [](const CallNode& c) -> Expr {
    if (!is_call_to(ref(c), "multiply") || !(c.args[0] == c.args[1])) return nullptr;
    const OpNode& cast_op = *OpRegistry::global().get("cast");
    auto to = [&](Expr e, const char* dtype) {
      return call(
          "cast", {std::move(e)},
          make_attrs(*cast_op.row->attrs, {{"dtype", AttrValue(std::string(dtype))}}, "cast", {}),
          c.span);
    };
    const Expr half = to(c.args[0], "float16");
    return to(call("multiply", {half, half}, nullptr, c.span), "float32");
  });
}

Module normalises_another_axis(const Module& before, const Module&) {
  return edit_calls(before, [](const CallNode& c) -> Expr {
    if (!is_call_to(ref(c), "nn.softmax")) return nullptr;
    const OpInfo& row = *as<OpNode>(c.op)->row;
    return call(c.op, c.args,
                make_attrs(*row.attrs, {{"axis", AttrValue(int64_t{0})}}, row.name, c.span),
                c.span);
  });
}

constexpr Fault kOwn[] = {
    {"drops_masks", "SimplifyExpr", "A mask is not added.", drops_masks},
    {"computes_squares_in_half", "SimplifyExpr", "Squares overflow in float16.",
     computes_squares_in_half},
    {"normalises_another_axis", "SimplifyExpr", "An axis is counted from the wrong end.",
     normalises_another_axis},
};

// A kind of fault, what is to blame, and the words of the line that is to be named, in either network.
struct Kind {
  std::string_view fault;
  DiffFault blamed;
  std::string bert = {}, resnet = {};
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"drops_masks", DiffFault::pass, "let %scores0", "let %scores0"},
      {"computes_squares_in_half", DiffFault::pass, "let %squares", "let %squares"},
      {"normalises_another_axis", DiffFault::pass, "let %p0", "let %p0"},
      {"folds_wrong_last_element", DiffFault::pass},
      {"folds_without_sign", DiffFault::pass},
      {"loses_the_end_of_groups", DiffFault::pass},
      {"swaps_inputs_of_groups", DiffFault::pass},
      {"starts_reductions_at_one", DiffFault::kernel},
      {"swaps_indices", DiffFault::kernel},
      {"loops_lose_the_last", DiffFault::kernel},
      {"takes_min_for_max", DiffFault::kernel},
      {"swaps_subtractions", DiffFault::kernel},
      {"forgets_a_stride", DiffFault::kernel},
      {"swaps_kernel_inputs", DiffFault::plan},
      {"reads_another_constant", DiffFault::plan},
  };
  return all;
}

const Fault& fault_named(std::string_view name) {
  for (const Fault& f : kOwn)
    if (f.name == name) return f;
  for (const Fault& f : faults())
    if (f.name == name) return f;
  ADD_FAILURE() << "there is no fault " << name;
  return kOwn[0];
}

DiffOptions one_thread() {
  DiffOptions out;
  out.compile.num_threads = 1;
  return out;
}

TEST(Diff, programs_without_faults_agree) {
  for (const std::string& text : {bert_text(kSmallBert), resnet_text(kSmallResNet)}) {
    const Network n(text);
    DiffOptions options = one_thread();
    for (bool level_0 : {false, true}) {
      options.against_level_0 = level_0;
      const DiffReport report = diff(n.module, n.args, options);
      EXPECT_EQ(report.fault, DiffFault::none) << report.node << " " << report.pass;
      EXPECT_FALSE(report.results.empty());
    }
  }
}

// The fault is found in each network, and what is found is right. Returns the longest search, in seconds of the
// processor.
double find_planted(const Kind& kind, std::span<const Network> networks, int num_threads) {
  const Fault& fault = fault_named(kind.fault);
  std::string found;
  double longest = 0;
  for (size_t which = 0; which < networks.size(); ++which) {
    const Network& network = networks[which];
    PlantedFault planted(fault);
    DiffOptions options;
    options.compile.num_threads = num_threads;
    options.compile.instruments = {&planted};
    options.compile.observers = {&planted};
    const std::clock_t begin = std::clock();
    const DiffReport report = diff(network.module, network.args, options);
    longest = std::max(longest, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
    const bool fired = planted.fired();
    SCOPED_TRACE(std::string(kind.fault) + (which == 0 ? " in bert" : " in resnet") + ": " +
                 report.pass + " " + report.operation + " " + report.node);
    if (report.fault == DiffFault::none) continue;
    EXPECT_TRUE(fired);
    found += which == 0 ? " bert" : " resnet";
    EXPECT_EQ(report.fault, kind.blamed);
    if (kind.blamed == DiffFault::pass) {
      EXPECT_EQ(report.pass, fault.stage);
    }
    EXPECT_NE(report.node, "");
    EXPECT_FALSE(report.inputs.empty());
    const std::string& words = which == 0 ? kind.bert : kind.resnet;
    if (!words.empty()) {
      const std::string place = place_of(network.text, words);
      EXPECT_TRUE(report.node.starts_with(place)) << "instead of " << place;
    }
  }
  EXPECT_EQ(found, " bert resnet") << kind.fault;
  std::cout << kind.fault << ": found in" << found << ", at most " << longest << " s\n";
  return longest;
}

// RELAY_COUNT kinds, all without it, from the RELAY_SEEDth on.
std::vector<Kind> asked_kinds() {
  const char* asked = std::getenv("RELAY_COUNT");
  const char* from = std::getenv("RELAY_SEED");
  const size_t first = from == nullptr ? 0 : std::strtoull(from, nullptr, 10);
  const size_t count = asked == nullptr ? kinds().size() : std::strtoull(asked, nullptr, 10);
  std::vector<Kind> out;
  for (size_t k = 0; k < count; ++k) out.push_back(kinds()[(first + k) % kinds().size()]);
  return out;
}

TEST(Diff, planted_faults_are_found) {
  const Network networks[] = {Network(bert_text(kSmallBert)), Network(resnet_text(kSmallResNet))};
  for (const Kind& kind : asked_kinds()) {
    find_planted(kind, networks, 1);
    // The compiled program at level 0 as the reference leads to the same pass.
    if (kind.blamed != DiffFault::pass || kind.bert.empty()) continue;
    const Fault& fault = fault_named(kind.fault);
    PlantedFault planted(fault);
    DiffOptions options = one_thread();
    options.against_level_0 = true;
    options.compile.instruments = {&planted};
    const DiffReport report = diff(networks[0].module, networks[0].args, options);
    EXPECT_EQ(report.pass, fault.stage) << kind.fault << " against level 0";
  }
}

// Twelve layers of BERT and a ResNet-18: minutes, so tools/test_long.sh asks for it.
TEST(Diff, DISABLED_planted_faults_are_found_at_full_size) {
  constexpr double kMostSeconds = 60;
  const Network networks[] = {Network(bert_text(kBertBase)), Network(resnet_text(kResNet18))};
  for (const Kind& kind : asked_kinds()) {
    EXPECT_LE(find_planted(kind, networks, 0), kMostSeconds) << kind.fault;
  }
}

}  // namespace
}  // namespace relay::fuzz
