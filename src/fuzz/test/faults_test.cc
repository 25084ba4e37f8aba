// The random programs find mistakes: each planted fault, within a budget of programs.
#include "fuzz/faults.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fuzz/differential.h"
#include "fuzz/generate.h"
#include "fuzz/gradients.h"
#include "fuzz/isolate.h"
#include "ir/text/text.h"
#include "passes/pass_list.h"
#include "runtime/cpu.h"
#include "tir/lower_loops.h"

namespace relay::fuzz {
namespace {

constexpr uint64_t kFirstPrograms = 60;  // in every run of the tests
constexpr uint64_t kBudget = 3000;       // when all faults are to be found

bool is_of_a_gradient(const Fault& fault) {
  return fault.stage == kReverseMode.name || fault.stage == kForwardMode.name;
}

// The program of a seed; drawn once for all faults.
const Module& program(uint64_t seed, bool floats) {
  static std::map<std::pair<uint64_t, bool>, Module> programs;
  Module& mod = programs[{seed, floats}];
  if (!mod) mod = generate(seed, {.pitfalls = true, .floats = floats});
  return mod;
}

// Commits the fault that it is set to, so that one checker, with the kernels that it keeps, serves
// all of them.
class Switch : public PassInstrument, public StageObserver {
 public:
  Module replace(const Pass& pass, const Module& before, const Module& after) override {
    return fault == nullptr ? after : fault->replace(pass, before, after);
  }
  void bytecode(Bytecode& bytecode) override {
    if (fault != nullptr) fault->bytecode(bytecode);
  }
  tir::PrimFunc kernel(std::string_view stage, tir::PrimFunc f) override {
    return fault == nullptr ? f : fault->kernel(stage, f);
  }
  PlantedFault* fault = nullptr;
};

// Faults of a pass show when the pass runs alone; the others in compiled code.
class Net {
 public:
  static std::string stage_of(const Fault& fault) {
    return std::string(fault.kernel != nullptr ? "kernel" : fault.stage);
  }

  Checker& checker(const Fault& fault) {
    const std::string stage = stage_of(fault);
    std::unique_ptr<Checker>& checker = checkers_[stage];
    if (checker == nullptr) {
      CheckOptions options;
      options.text = false;
      options.native = stage == "hostcode";
      options.passes.clear();
      options.levels.clear();
      if (is_of_a_gradient(fault)) {
        options.gradients = true;
      } else if (fault.module != nullptr) {
        options.passes = {stage};
      } else {
        // The optimiser compiles most of the language away: bytecode has it at level 0.
        options.levels = {fault.bytecode != nullptr ? 0 : 3};
      }
      options.instruments = {&active};
      options.observers = {&active};
      checker = std::make_unique<Checker>(options);
    }
    return *checker;
  }
  Switch active;

 private:
  std::map<std::string, std::unique_ptr<Checker>> checkers_;
};

TEST(Faults, are_named_once_and_stand_at_a_stage) {
  std::set<std::string_view> names;
  std::set<std::string_view> stages = {"compose",  "schedule",        "bytecode",
                                       "hostcode", kReverseMode.name, kForwardMode.name};
  for (const Pass* pass : all_passes()) stages.insert(pass->name);
  for (const tir::LoweringPass& pass : tir::lowering_passes()) stages.insert(pass.name);
  for (const Fault& f : faults()) {
    EXPECT_TRUE(names.insert(f.name).second) << f.name;
    EXPECT_TRUE(stages.contains(f.stage)) << f.name;
    EXPECT_TRUE(f.mimics.ends_with(".")) << f.name;
    EXPECT_EQ((f.module != nullptr) + (f.kernel != nullptr) + (f.bytecode != nullptr), 1) << f.name;
  }
  EXPECT_GE(names.size(), 40u);
}

TEST(Faults, every_pass_has_one) {
  for (const Pass* pass : passes_that_keep_meaning()) {
    EXPECT_NE(std::ranges::find(faults(), pass->name, &Fault::stage), faults().end()) << pass->name;
  }
}

// Looks for a fault in the first `budget` programs and tells how it goes: "at N" ahead of a
// program, then "found N", or what to know of one that is not found.
void look_for(Net& net, const Fault& fault, uint64_t budget, const Send& send) {
  Checker& checker = net.checker(fault);
  const bool floats = is_of_a_gradient(fault);
  uint64_t fired = 0;
  std::string changed;
  for (uint64_t seed = 0; seed < budget; ++seed) {
    send("at " + std::to_string(seed + 1));
    PlantedFault planted(fault);
    net.active.fault = &planted;
    std::optional<Failure> failure = checker.check(program(seed, floats));
    net.active.fault = nullptr;
    if (!planted.fired()) continue;
    ++fired;
    if (changed.empty()) changed = print_module(program(seed, floats));
    if (failure && !checker.check(program(seed, floats)))
      return send("found " + std::to_string(seed + 1));
  }
  send(std::string(fault.name) + " (" + std::string(fault.stage) + ") changed " +
       std::to_string(fired) + " of " + std::to_string(budget) + " programs, first:\n" + changed);
}

// The first programs find most faults; RELAY_FAULTS=all looks for every one for as long as it
// takes, and names of faults, with commas between them, for those. Each fault has a process of its
// own: some write where they should not.
TEST(Faults, planted_faults_are_found) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "what is found does not depend on the sanitizers, and takes long under them";
#endif
  constexpr int kTimeoutSeconds = 300;
  const char* which = std::getenv("RELAY_FAULTS");
  const bool all = which != nullptr && std::string_view(which) == "all";
  const std::string chosen = which == nullptr ? "" : "," + std::string(which) + ",";
  std::vector<const Fault*> wanted;
  for (const Fault& fault : faults()) {
    if (which == nullptr || all ||
        chosen.find("," + std::string(fault.name) + ",") != chosen.npos) {
      wanted.push_back(&fault);
    }
  }
  Net net;
  // The processes begin with the kernels that are compiled here.
  std::set<std::string> warm;
  for (const Fault* fault : wanted) {
    if (fault->module != nullptr || !warm.insert(Net::stage_of(*fault)).second) continue;
    for (uint64_t seed = 0; seed < kFirstPrograms; ++seed) {
      EXPECT_FALSE(net.checker(*fault).check(program(seed, false))) << seed;
    }
  }
  std::vector<std::string> last(wanted.size());
  run_isolated(
      wanted.size(), runtime::available_threads(),
      [&](size_t job, const Send& send) {
        look_for(net, *wanted[job], which != nullptr ? kBudget : kFirstPrograms, send);
      },
      [&](size_t job, const std::string& message) { last[job] = message; },
      [&](size_t job, const std::string& problem) {
        // A crash shows the fault as well as a wrong value does.
        if (!problem.empty() && last[job].starts_with("at ")) {
          last[job] = "found " + last[job].substr(3);
        }
      },
      kTimeoutSeconds);
  size_t found = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const bool is_found = last[i].starts_with("found ");
    found += is_found;
    EXPECT_TRUE(is_found || which == nullptr) << last[i];
    const std::string programs = is_found ? last[i].substr(6) : "not found";
    RecordProperty(std::string(wanted[i]->name), programs);
    if (which != nullptr) std::cout << wanted[i]->name << " " << programs << "\n";
  }
  std::cout << found << " of " << wanted.size() << " faults found\n";
  EXPECT_GE(found, which == nullptr || all ? 55u : 1u);
}

}  // namespace
}  // namespace relay::fuzz
