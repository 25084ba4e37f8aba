// The random programs find mistakes: each planted fault, within a budget of programs.
#include "fuzz/faults.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "fuzz/differential.h"
#include "fuzz/generate.h"
#include "ir/text/text.h"
#include "tir/lower_loops.h"

namespace relay::fuzz {
namespace {

constexpr uint64_t kFirstPrograms = 60;  // in every run of the tests
constexpr uint64_t kBudget = 3000;       // when all faults are to be found

// The program of a seed; drawn once for all faults.
const Module& program(uint64_t seed) {
  static std::map<uint64_t, Module> programs;
  Module& mod = programs[seed];
  if (!mod) mod = generate(seed, {.pitfalls = true});
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
  Checker& checker(const Fault& fault) {
    std::string stage(fault.module != nullptr     ? fault.stage
                      : fault.bytecode != nullptr ? "bytecode"
                                                  : "kernel");
    std::unique_ptr<Checker>& checker = checkers_[stage];
    if (checker == nullptr) {
      CheckOptions options;
      options.text = false;
      options.passes.clear();
      options.levels.clear();
      if (fault.module != nullptr) {
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
  std::set<std::string_view> stages = {"compose", "schedule", "bytecode"};
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

// How many of the first `budget` programs it takes to find the fault, or nullopt with what to know.
std::optional<uint64_t> programs_to_find(Net& net, const Fault& fault, uint64_t budget,
                                         std::string& unfound) {
  Checker& checker = net.checker(fault);
  uint64_t fired = 0;
  std::string changed;
  for (uint64_t seed = 0; seed < budget; ++seed) {
    PlantedFault planted(fault);
    net.active.fault = &planted;
    std::optional<Failure> failure = checker.check(program(seed));
    net.active.fault = nullptr;
    if (!planted.fired()) continue;
    ++fired;
    if (changed.empty()) changed = print_module(program(seed));
    if (failure && !checker.check(program(seed))) return seed + 1;
  }
  unfound = std::string(fault.name) + " (" + std::string(fault.stage) + ") changed " +
            std::to_string(fired) + " of " + std::to_string(budget) + " programs, first:\n" +
            changed;
  return std::nullopt;
}

// The first programs find most faults; RELAY_FAULTS=all looks for every one for as long as it
// takes, and the name of a fault for that one.
TEST(Faults, planted_faults_are_found) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "what is found does not depend on the sanitizers, and takes long under them";
#endif
  const char* which = std::getenv("RELAY_FAULTS");
  bool all = which != nullptr && std::string_view(which) == "all";
  bool one = which != nullptr && !all;
  Net net;
  size_t found = 0;
  for (const Fault& fault : faults()) {
    if (one && fault.name != which) continue;
    std::string unfound;
    auto programs =
        programs_to_find(net, fault, which != nullptr ? kBudget : kFirstPrograms, unfound);
    found += programs.has_value();
    EXPECT_TRUE(programs.has_value() || which == nullptr) << unfound;
    RecordProperty(std::string(fault.name), programs ? std::to_string(*programs) : "not found");
  }
  std::cout << found << " of " << faults().size() << " faults found\n";
  EXPECT_GE(found, one ? 1u : 40u);
}

}  // namespace
}  // namespace relay::fuzz
