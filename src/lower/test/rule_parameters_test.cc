// Every rule: its parameters can be written down, read again and applied on any machine; others that are drawn give a kernel
// that computes the same, or are declined with a reason.
#include <cmath>
#include <cstdlib>
#include <random>
#include <set>

#include "ir/attrs.h"
#include "lower/compose.h"
#include "lower/rules/choose.h"
#include "lower/rules/rules.h"
#include "node/structural.h"
#include "ops/test/parse.h"
#include "tir/interpret.h"
#include "tir/lower_loops.h"
#include "tir/schedule_report.h"
#include "tir/test/invented_inputs.h"
#include "tir/verify.h"

namespace relay {
namespace {

using tir::Schedule;

// Small kernels, at least one for each rule. Sizes are those that leave something over.
constexpr const char* kPrograms[] = {
    // contraction
    "def @main(%x: Tensor[(13, 24), float32], %w: Tensor[(24, 40), float32]) {"
    " nn.relu(nn.matmul(%x, %w)) }",
    "def @main[n: Dim](%x: Tensor[(n, 24), float32], %w: Tensor[(24, 40), float32]) {"
    " nn.matmul(%x, %w) }",
    "def @main(%x: Tensor[(7, 12), float32], %w: Tensor[(3, 12, 8), float32]) {"
    " nn.contrib_dense_pack(%x, %w, units=21, weight_layout=\"NC8n\") }",
    "def @main(%x: Tensor[(1, 7, 9, 4), float32], %w: Tensor[(3, 3, 4, 8), float32]) {"
    " nn.conv2d(%x, %w, padding=[1, 1, 1, 1], data_layout=\"NHWC\", kernel_layout=\"HWIO\") }",
    "def @main(%x: Tensor[(1, 6, 7, 8), float32], %w: Tensor[(3, 3, 8, 1), float32]) {"
    " nn.conv2d(%x, %w, padding=[1, 1, 1, 1], groups=8, data_layout=\"NHWC\","
    " kernel_layout=\"HWOI\") }",
    "def @main(%x: Tensor[(3, 768), float32], %w: Tensor[(768, 16), float32]) {"
    " nn.matmul(%x, %w) }",
    "def @main(%x: Tensor[(19, 64), bfloat16], %w: Tensor[(2, 32, 32, 2), bfloat16]) {"
    " nn.contrib_dense_pack(%x, %w, units=64, weight_layout=\"NC32n2c\","
    " out_dtype=\"float32\") }",
    // block contraction
    "def @main(%x: Tensor[(3, 32), float32], %w: Tensor[(1, 8, 8), int32],"
    " %s: Tensor[(1, 2, 8), float32], %z: Tensor[(), float32]) {"
    " nn.contrib_dense_bits(%x, %w, %s, %z, bits=8, units=8, weight_layout=\"NC8n\") }",
    // panel_products, row_products
    "def @main(%x: Tensor[(9, 40), float32], %w: Tensor[(291, 40), float32]) {"
    " nn.relu(nn.dense(%x, %w)) }",
    "def @main[n: Dim](%x: Tensor[(n, 40), float32], %w: Tensor[(291, 40), float32]) {"
    " nn.dense(%x, %w) }",
    "def @main(%x: Tensor[(35, 40), float32], %w: Tensor[(40, 291), float32]) {"
    " nn.matmul(%x, %w) }",
    "def @main(%x: Tensor[(5, 70), float32], %w: Tensor[(11, 70), float32]) {"
    " nn.relu(nn.dense(%x, %w)) }",
    // row_reduction, short_rows, column_reduction
    "def @main(%x: Tensor[(6, 37), float32]) { nn.softmax(%x) }",
    "def @main[n: Dim](%x: Tensor[(n, 20), float32]) { mean(%x, axis=[1]) }",
    "def @main(%x: Tensor[(70, 4), float32]) { nn.softmax(%x) }",
    "def @main(%x: Tensor[(9, 41), float32]) { mean(%x, axis=[0]) }",
    "def @main(%x: Tensor[(1, 9, 9, 12), float32]) {"
    " nn.avg_pool2d(%x, pool_size=[2, 2], strides=[2, 2], padding=[1, 1, 1, 1],"
    " layout=\"NHWC\") }",
    // sliding_windows
    "def @main(%x: Tensor[(1, 12, 12, 10), float32]) {"
    " nn.max_pool2d(%x, pool_size=[5, 5], padding=[2, 2, 2, 2], layout=\"NHWC\") }",
    // image_planes
    "def @main(%x: Tensor[(1, 3, 9, 11), float32], %w: Tensor[(3, 1, 3, 3), float32]) {"
    " nn.conv2d(%x, %w, padding=[1, 1, 1, 1], groups=3) }",
    "def @main(%x: Tensor[(1, 3, 9, 18), float32], %w: Tensor[(3, 1, 3, 3), float32]) {"
    " nn.conv2d(%x, %w, strides=[2, 2], groups=3) }",
    // winograd
    "def @main(%x: Tensor[(1, 8, 8, 16), float32], %w: Tensor[(6, 6, 32, 16), float32]) {"
    " nn.contrib_conv2d_winograd_without_weight_transform(%x, %w, tile_size=4, channels=32,"
    " kernel_size=[3, 3], padding=[1, 1, 1, 1], data_layout=\"NHWC\","
    " kernel_layout=\"HWOI\") }",
    "def @main(%w: Tensor[(2, 3, 3, 2, 16), float32]) {"
    " nn.contrib_conv2d_winograd_weight_transform(%w, tile_size=4, kernel_layout=\"OHWI16o\") }",
    // attention
    "def @main(%q: Tensor[(1, 2, 11, 4), float32], %k: Tensor[(1, 2, 6, 4), float32],"
    " %v: Tensor[(1, 2, 6, 3), float32], %m: Tensor[(11, 6), float32]) {"
    " nn.attention(%q, %k, %v, %m, scale=0.5f) }",
    "def @main[n: Dim](%q: Tensor[(1, 2, n, 4), float32], %k: Tensor[(1, 2, 6, 4), float32],"
    " %v: Tensor[(1, 2, 6, 3), float32], %m: Tensor[(1, 6), float32]) {"
    " nn.attention(%q, %k, %v, %m, scale=0.5f) }",
    // loops
    "def @main(%x: Tensor[(23, 40), float32]) { transpose(%x, axes=[1, 0]) }",
    "def @main(%x: Tensor[(19, 33), float32]) { exp(nn.relu(%x)) }",
    "def @main[n: Dim](%x: Tensor[(5, n), float32]) { sum(%x, axis=[0]) }",
};
constexpr int64_t kOpenSize = 21;

struct Kernel {
  tir::PrimFunc composed;
  std::vector<int64_t> dims;
  std::vector<runtime::Tensor> expected;
};

const std::vector<Kernel>& kernels() {
  static const std::vector<Kernel> all = [] {
    std::vector<Kernel> out;
    for (const char* text : kPrograms) {
      const Module mod = test::parse(text);
      Kernel k;
      k.composed = compose(*mod->functions[0], "kernel").func;
      k.dims.assign(k.composed->dims.size(), kOpenSize);
      k.expected = tir::run(k.composed, 1, k.dims);
      out.push_back(std::move(k));
    }
    return out;
  }();
  return all;
}

// Vectors, registers, cores and caches that differ in what rules decide by.
std::vector<Target> targets() {
  std::vector<Target> out(3);
  out[0].name = "two narrow cores";
  out[0].num_cores = 2;
  out[1].name = "one core";
  out[1].vector_bits = 256;
  out[1].has_fma = true;
  out[2].name = "wide vectors, small caches";
  out[2].vector_bits = 512;
  out[2].num_vector_registers = 32;
  out[2].num_cores = 8;
  out[2].features = "+avx512bf16,+avx512vnni,+amx-tile,+amx-bf16,+amx-int8";
  out[2].l1_bytes = 1 << 10;
  out[2].l2_bytes = 4 << 10;
  return out;
}

void expect_same(const Kernel& k, const tir::PrimFunc& f, const std::string& what) {
  const std::vector<runtime::Tensor> got = tir::run(f, 1, k.dims);
  ASSERT_EQ(got.size(), k.expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    for (int64_t e = 0; e < got[i].num_elements(); ++e) {
      const double want = k.expected[i].get_as_double(e), have = got[i].get_as_double(e);
      if (std::isnan(want) && std::isnan(have)) continue;
      ASSERT_NEAR(want, have, 1e-4 * (1 + std::fabs(want)))
          << what << ": output " << i << " at " << e << "\n"
          << to_string(f);
    }
  }
}

TEST(RuleParameters, what_is_chosen_is_read_again_and_gives_the_same_kernel) {
  std::set<std::string> took;
  bool matrix = false;
  for (const Kernel& k : kernels()) {
    const Schedule s(prepared(k.composed));
    for (const Target& target : targets()) {
      for (const ScheduleRule* rule : processor_rules()) {
        SCOPED_TRACE(std::string(rule->name) + " for " + target.name);
        const Choice choice = choose(*rule, s, target);
        if (auto* declined = std::get_if<Declined>(&choice)) {
          EXPECT_FALSE(declined->reason.empty());
          continue;
        }
        const auto& decision = std::get<Decision>(choice);
        took.insert(rule->name);
        matrix |= !decision.scheduled->features.empty();
        const std::string text = parameters_text(decision.parameters);
        const Attrs read = parse_parameters(*rule, text);
        EXPECT_TRUE(structural_equal(read, decision.parameters)) << text;
        Schedule replayed = s;
        auto why = apply(*rule, replayed, read);
        ASSERT_FALSE(why) << why->reason << "\n" << text;
        EXPECT_TRUE(structural_equal(replayed.func(), decision.scheduled)) << text;
        EXPECT_EQ(to_string(replayed.func()), to_string(decision.scheduled)) << text;
        expect_same(k, replayed.func(), text);
        ASSERT_FALSE(HasFailure()) << to_string(k.composed);
      }
    }
  }
  for (const ScheduleRule* rule : processor_rules()) {
    EXPECT_TRUE(took.contains(rule->name)) << rule->name << " takes none of the kernels";
  }
  EXPECT_TRUE(matrix) << "no kernel is for a matrix unit";
}

// ---- Other parameters

class Sampler {
 public:
  explicit Sampler(uint32_t seed) : random_(seed) {}

  int64_t pick(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint32_t>(n)); }

  // Near what was chosen, or anything small.
  AttrValue near(const AttrValue& v) {
    if (auto* flag = v.get_if<bool>()) return AttrValue(pick(8) == 0 ? !*flag : *flag);
    if (auto* number = v.get_if<int64_t>()) {
      switch (pick(40)) {
        case 0:
          return AttrValue(*number + 1);
        case 1:
          return AttrValue(*number - 1);
        case 2:
          return AttrValue(*number * 2);
        case 3:
          return AttrValue(*number / 2);
        case 4:
          return AttrValue(pick(34) - 1);
        default:
          return v;
      }
    }
    auto* list = v.get_if<ValueList>();
    if (list == nullptr) return v;
    ValueList out;
    // A pair of a name and a value keeps its name.
    for (const AttrValue& item : *list) out.push_back(near(item));
    if (!out.empty() && out[0].get_if<std::string>() == nullptr && pick(40) == 0) out.pop_back();
    return AttrValue(std::move(out));
  }

 private:
  std::mt19937 random_;
};

TEST(RuleParameters, drawn_ones_compute_the_same_or_are_declined_with_a_reason) {
  constexpr int kPoints = 200;
  const char* from = std::getenv("RELAY_TEST_SEED");
  const uint32_t seed = from != nullptr ? static_cast<uint32_t>(std::stoul(from)) : 1;
  SCOPED_TRACE("RELAY_TEST_SEED=" + std::to_string(seed));
  for (const ScheduleRule* rule : processor_rules()) {
    // Where to draw around: what the rule chooses of each kernel for each target.
    struct Start {
      const Kernel* kernel;
      Schedule schedule;
      Decision decision;
    };
    std::vector<Start> starts;
    for (const Kernel& k : kernels()) {
      for (const Target& target : targets()) {
        Schedule s(prepared(k.composed));
        Choice choice = choose(*rule, s, target);
        if (auto* decision = std::get_if<Decision>(&choice)) {
          starts.push_back({&k, std::move(s), std::move(*decision)});
        }
      }
    }
    ASSERT_FALSE(starts.empty()) << rule->name;
    Sampler sampler(seed);
    int taken = 0;
    for (int point = 0; point < kPoints; ++point) {
      const Start& start = starts[static_cast<size_t>(point) % starts.size()];
      std::vector<std::pair<std::string, AttrValue>> values =
          attr_values(start.decision.parameters);
      for (auto& [name, value] : values) value = sampler.near(value);
      const Attrs drawn = make_attrs(rule->parameters(), values, rule->name, {});
      const std::string text = std::string(rule->name) + ": " + parameters_text(drawn);
      SCOPED_TRACE(text);
      Schedule s = start.schedule;
      const tir::PrimFunc before = s.func();
      if (auto declined = apply(*rule, s, drawn)) {
        EXPECT_FALSE(declined->reason.empty());
        EXPECT_EQ(s.func(), before);
        continue;
      }
      ++taken;
      tir::verify(s.func());
      const tir::PrimFunc lowered = tir::lower_loops(s.func());
      tir::verify(lowered);
      expect_same(*start.kernel, lowered, text);
      ASSERT_FALSE(HasFailure());
    }
    EXPECT_GT(taken * 10, kPoints) << rule->name << " takes too few points to show anything";
  }
}

// ---- Bad input

// What work items refuse of parameters, each with the reason.
TEST(RuleParameters, must_fail_work_items_that_the_kernel_has_not) {
  const std::string matmul =
      "def @main(%x: Tensor[(64, 64), float32], %w: Tensor[(64, 64), float32]) { nn.matmul(%x, %w) "
      "}";
  const std::string longer =
      "def @main(%x: Tensor[(64, 64), int32], %w: Tensor[(64, 64), int32]) { nn.matmul(%x, %w) }";
  using Plan = std::vector<std::pair<std::string, int>>;
  auto matrix = [](int terms) {
    return Plan{{"columns", 2}, {"rows", 2},         {"depth", 16},
                {"warps", 2},   {"matrix_rows", 16}, {"matrix_terms", terms}};
  };
  struct Case {
    std::string program;
    Plan plan;
    std::string reason;
  };
  const Case cases[] = {{"def @main(%x: Tensor[(64, 96), float32]) { sum(%x, axis=[1]) }",
                         {{"columns", 2}, {"lanes", 1}},
                         "no contraction"},
                        {matmul, {{"columns", 2}, {"lanes", 4}}, "fewer axes"},
                        {matmul, matrix(16), "no instruction of 16 rows and 16 terms"},
                        {longer, matrix(8), "no instruction for int32"},
                        {matmul, {{"depth", 16}, {"later", 1}}, "arrive later in one buffer"},
                        {matmul, {{"depth", 64}, {"slots", 2}}, "2 buffers for the terms of one"},
                        {matmul, {{"depth", 16}, {"slots", 5}}, "5 is not between 1 and 4"},
                        {"def @main(%x: Tensor[(64, 96), float32]) { sum(%x, axis=[1]) }",
                         {{"items", 48}, {"exchange", 1}},
                         "no whole warps"}};
  const ScheduleRule& rule = *work_item_rules()[0];
  for (const Case& c : cases) {
    const Module mod = test::parse(c.program);
    Schedule s(prepared(compose(*mod->functions[0], "kernel").func));
    std::string plan;
    for (const auto& [name, value] : c.plan)
      plan += (plan.empty() ? "" : ", ") + ("[\"" + name + "\", " + std::to_string(value) + "]");
    auto declined = apply(rule, s, parse_parameters(rule, "blocks=[[" + plan + "]]"));
    ASSERT_TRUE(declined) << c.reason;
    EXPECT_NE(declined->reason.find(c.reason), std::string::npos) << declined->reason;
  }
}

// Tiles of columns at once where there are no whole ones.
TEST(RuleParameters, must_fail_panels_without_whole_tiles) {
  const auto rules = processor_rules();
  const auto rule = std::ranges::find(rules, "panel_products", [](auto* r) { return r->name; });
  ASSERT_NE(rule, rules.end());
  const Module mod = test::parse(
      "def @main(%x: Tensor[(9, 40), float32], %w: Tensor[(291, 40), float32]) {"
      " nn.dense(%x, %w) }");
  for (int panels : {1, 5}) {
    Schedule s(prepared(compose(*mod->functions[0], "kernel").func));
    auto declined =
        apply(**rule, s,
              parse_parameters(**rule,
                               "tiles=[[[\"lanes\", 4], [\"rows\", [1]], [\"columns\", [400, 3]], "
                               "[\"panels\", " +
                                   std::to_string(panels) + "]]]"));
    ASSERT_TRUE(declined);  // as no blocks are given
    EXPECT_EQ(declined->reason.find("tiles do not fit") != std::string::npos, panels > 1)
        << declined->reason;
  }
}

TEST(RuleParameters, of_another_rule_or_name_are_refused) {
  const Schedule s(prepared(kernels()[0].composed));
  for (const ScheduleRule* rule : processor_rules()) {
    EXPECT_THROW(parse_parameters(*rule, "no_such_parameter=1"), UserError) << rule->name;
    for (const ScheduleRule* other : processor_rules()) {
      if (other == rule) continue;
      Schedule at = s;
      auto declined = apply(*rule, at, parse_parameters(*other, ""));
      ASSERT_TRUE(declined);
      EXPECT_NE(declined->reason.find("parameters of another rule"), std::string::npos);
    }
  }
}

TEST(RuleParameters, a_kernel_that_every_rule_declines_is_E0410) {
  const tir::PrimFunc f = kernels().back().composed;
  const ScheduleRule* winograd = nullptr;
  for (const ScheduleRule* rule : processor_rules()) {
    if (std::string_view(rule->name) == "winograd") winograd = rule;
  }
  ASSERT_NE(winograd, nullptr);
  const ScheduleRule* const only[] = {winograd};
  for (std::span<const ScheduleRule* const> rules :
       {std::span<const ScheduleRule* const>(only), std::span<const ScheduleRule* const>()}) {
    try {
      schedule_kernel(f, targets()[0], 3, rules);
      FAIL() << "a rule took it";
    } catch (const UserError& e) {
      const Diagnostic& d = e.diagnostics().front();
      EXPECT_EQ(d.code, "E0410");
      EXPECT_NE(d.message.find("kernel"), std::string::npos);
      const std::string found = rules.empty() ? "without rules" : "winograd: takes only";
      EXPECT_NE(d.found_text.find(found), std::string::npos) << d.found_text;
    }
  }
  EXPECT_EQ(tir::report_of(*schedule_kernel(f, targets()[0], 3)).rule, "loops");
}

}  // namespace
}  // namespace relay
