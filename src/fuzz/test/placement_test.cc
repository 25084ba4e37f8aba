// Random programs of which parts run on a device with memory of its own mean what they mean on the host.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "driver/compile.h"
#include "driver/test/opencl_machine.h"
#include "driver/test/twin_device.h"
#include "fuzz/generate.h"
#include "fuzz/outcome.h"
#include "fuzz/random.h"
#include "fuzz/values.h"
#include "ir/devices.h"
#include "ir/op.h"
#include "ir/text/text.h"
#include "node/walk.h"

namespace relay::fuzz {
namespace {

using driver_test::TwinDevice;
using runtime::Value;

// Every other operator, as drawn, is computed on the device.
class Splitter : public Rewriter {
 public:
  Splitter(Random& random, runtime::Device device)
      : Rewriter(family::program), random_(random), device_(device) {}
  NodeRef post(const NodeRef&, NodeRef rebuilt) override {
    auto* c = as<CallNode>(rebuilt);
    auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
    auto* type = op == nullptr ? nullptr : as<TensorTypeNode>(c->type);
    if (type == nullptr || op->row->effect.get() == Effect::Io || type->dtype.is_string() ||
        std::ranges::any_of(type->shape, is_any) || random_.percent(50))
      return rebuilt;
    return on_device(cast<CallNode>(rebuilt), device_);
  }

 private:
  Random& random_;
  runtime::Device device_;
};

// Compares as many random programs as RELAY_COUNT says, from RELAY_SEED on, at these levels.
void compare_programs(runtime::Device device, const std::string& target, uint64_t programs,
                      const std::vector<int>& levels) {
  const char* asked = std::getenv("RELAY_COUNT");
  const uint64_t count = asked == nullptr ? programs : std::strtoull(asked, nullptr, 10);
  const char* from = std::getenv("RELAY_SEED");
  const uint64_t first = from == nullptr ? 0 : std::strtoull(from, nullptr, 10);
  int64_t compared = 0, apart = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Module mod = generate(seed);
    const Function main = mod->find("main");
    const std::vector<Value> args = draw_arguments(mod, *main.get(), seed);
    const Outcome want = evaluate_main(mod, args, 200'000);
    if (want.kind != Outcome::value) continue;
    Random random(seed + 1);
    const Module split = map_functions(mod, [&](const GlobalVar&, const Function& f) {
      return Splitter(random, device).apply(f);
    });
    for (int level : levels) {
      PlanText plan;
      const Outcome got = outcome_of([&] {
        CompileOptions options;
        options.observers = {&plan};
        options.target = target;
        options.opt_level = level;
        options.verify = true;
        std::vector<Value> copies;
        for (const Value& v : args) copies.push_back(map_floats(v, [](double x) { return x; }));
        return compile(split, options).load({.num_threads = 1}).run_values("main", copies);
      });
      if (got.kind != Outcome::value) {
        // Values in data types cannot be copied to where another part of the program has them.
        if (got.code == "E0409") {
          ++apart;
          continue;
        }
        ADD_FAILURE() << "seed " << seed << ", level " << level << ": " << got.text << "\n"
                      << print_module(split) << plan.text;
        continue;
      }
      ++compared;
      auto difference = first_difference(got.result, want.result);
      if (difference && !explained_by_rounding(mod, args, got.result, want.result, 200'000)) {
        ADD_FAILURE() << "seed " << seed << ", level " << level << ": " << *difference << "\n"
                      << print_module(split);
      }
    }
  }
  std::cout << compared << " runs compared, " << apart << " programs cannot be placed\n";
  EXPECT_GT(compared, static_cast<int64_t>(count * levels.size()) / 2);
}

TEST(RandomPlacement, programs_mean_the_same) {
  initialize();
  TwinDevice::install();
  TwinDevice::forget();
  compare_programs(TwinDevice::device(), "native; twin", 60, {0, 3});
  EXPECT_EQ(TwinDevice::counts().foreign_buffers, 0);
  EXPECT_EQ(TwinDevice::allocated(), 0);
}

TEST(RandomPlacement, programs_mean_the_same_on_opencl) {
  initialize();
  if (auto why = driver_test::no_opencl()) GTEST_SKIP() << *why;
  compare_programs(driver_test::kOpencl, "native; opencl", 12, {3});
}

}  // namespace
}  // namespace relay::fuzz
