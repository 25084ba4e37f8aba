// Random programs in all lanes of a batch against a loop over the lanes.
#include <gtest/gtest.h>

#include <iostream>

#include "eval/evaluator.h"
#include "eval/test/stacked.h"
#include "fuzz/generate.h"
#include "fuzz/values.h"
#include "ir/text/text.h"
#include "ops/register_ops.h"
#include "passes/gradient/batch_pass.h"

namespace relay::fuzz {
namespace {

using eval_test::stacked;
using runtime::Value;

constexpr uint64_t kBatchedPrograms = 1000;
constexpr int64_t kLanes = 2;

// Tensors, and not none at all, of known sizes.
bool has_known_sizes(const Type& type) {
  const auto tensors = flatten_tensor_types(type);
  return tensors && !tensors->empty() && to_string(type).find('?') == std::string::npos;
}

// A distance that rounding of the inputs makes as well says nothing.
bool is_noise(Evaluator& eval, const std::vector<std::vector<Value>>& lanes, const Value& got,
              const Value& want, Random& random) {
  std::vector<Value> moved;
  for (const std::vector<Value>& lane : lanes) {
    std::vector<Value> args;
    for (const Value& v : lane) args.push_back(perturb(v, 1e-6, random));
    moved.push_back(eval.call("main", args));
  }
  std::vector<double> by_batch = distances(got, want), by_noise = distances(stacked(moved), want);
  for (size_t i = 0; i < by_batch.size(); ++i) {
    if (by_batch[i] > 1 && by_batch[i] > 100 * by_noise[i]) return false;
  }
  return true;
}

TEST(Batch, of_random_programs_equals_a_loop) {
  register_ops();
  size_t compared = 0, lane_by_lane = 0, refused = 0;
  for (uint64_t seed = 0; seed < kBatchedPrograms; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Module mod = generate(seed, {.symbolic = false});
    Function f = mod->find("main");
    BatchOptions options{.lanes = dim(kLanes)};
    options.in_axes.emplace();
    bool any = false;
    for (const Var& p : f->params) {
      bool lanes = has_known_sizes(p->type);
      any |= lanes;
      options.in_axes->push_back({lanes ? std::optional<int64_t>(0) : std::nullopt});
    }
    if (!any || !has_known_sizes(f->body->type) || Purity(mod).of_body(f).draws_random()) continue;
    std::vector<std::vector<Value>> lanes;
    for (uint64_t k = 0; k < kLanes; ++k)
      lanes.push_back(draw_arguments(mod, *f.get(), 2 * seed + k));
    std::vector<Value> args;
    for (size_t i = 0; i < f->params.size(); ++i) {
      if (!(*options.in_axes)[i].axis) {
        lanes[1][i] = lanes[0][i];
        args.push_back(lanes[0][i]);
      } else {
        args.push_back(stacked({lanes[0][i], lanes[1][i]}));
      }
    }
    Evaluator eval(mod);
    std::vector<Value> wanted;
    try {
      for (const std::vector<Value>& lane : lanes) wanted.push_back(eval.call("main", lane));
    } catch (const RuntimeError&) {
      continue;  // a lane that fails has no value
    }
    PassContext ctx;
    ctx.verify = true;
    std::vector<LaneByLane> report;
    Module out;
    try {
      out = add_batched(mod, "main", options, "batched", ctx, &report);
    } catch (const UserError& e) {
      std::string text = e.what();
      // What gives data of another structure in each lane, or sizes of its own.
      EXPECT_TRUE(text.find("E1105") != std::string::npos ||
                  text.find("E1106") != std::string::npos)
          << text << print_module(mod);
      ++refused;
      continue;
    }
    lane_by_lane += report.empty() ? 0 : 1;
    ++compared;
    Value want = stacked(wanted);
    try {
      Value got = Evaluator(out).call("batched", args);
      auto difference = first_difference(got, want);
      Random random(seed);
      if (difference && !is_noise(eval, lanes, got, want, random)) {
        ADD_FAILURE() << *difference << "\n"
                      << print_module(mod) << "became\n"
                      << print_module(out);
      }
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what() << "\n" << print_module(mod) << "became\n" << print_module(out);
    }
  }
  std::cout << compared << " programs, " << lane_by_lane << " of them with a loop over the lanes, "
            << refused << " refused\n";
  EXPECT_GE(compared, kBatchedPrograms / 4);
  EXPECT_LE(refused, compared / 4);
}

}  // namespace
}  // namespace relay::fuzz
