// The kind of target that the driver makes known, for tests of rooms below the driver.
#pragma once

#include <gtest/gtest.h>

#include "codegen/llvm/backend.h"
#include "target/own_kinds.h"

namespace relay::codegen_test {

// A test program has one: testing::AddGlobalTestEnvironment(new CpuKind).
class CpuKind : public testing::Environment {
 public:
  // Tests that schedule kernels name the rules.
  explicit CpuKind(decltype(TargetKind::rules) rules = no_rules) : rules_(rules) {}
  void SetUp() override {
    TargetKind kind = codegen::cpu_kind();
    kind.rules = rules_;
    if (find_target_kind(kind.name) == nullptr) register_own_target_kind(std::move(kind));
  }

 private:
  static std::span<const ScheduleRule* const> no_rules() { return {}; }
  decltype(TargetKind::rules) rules_;
};

}  // namespace relay::codegen_test
