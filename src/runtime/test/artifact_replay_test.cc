// Mutations of small artifacts with every instruction.
#include <algorithm>
#include <set>

#include "base/test/replay.h"
#include "runtime/module.h"
#include "runtime/test/fuzz/artifact_seeds.h"

namespace relay::runtime {
namespace {

TEST(ArtifactReplay, seeds_have_every_instruction_and_run) {
  std::set<Opcode> seen;
  for (Program program : {test::static_program(), test::shape_program(), test::value_program(),
                          test::device_program()}) {
    for (const Function& f : program.functions) {
      for (const Instruction& i : f.code) seen.insert(i.op);
    }
    auto nothing = [](void* const*, const int64_t*, const relay_kernel_context*) {};
    std::vector<relay_kernel> kernels(program.kernels.size(), nothing);
    Module module = Module::from_kernels(program, kernels);
    std::vector<Value> arguments;
    for (const Slot& slot : module.function("main").params) {
      std::vector<int64_t> shape = slot.tensor.shape;
      std::replace(shape.begin(), shape.end(), int64_t{-1}, int64_t{3});
      arguments.push_back(Value(Tensor::zeros(slot.tensor.dtype, shape)));
    }
    EXPECT_NO_THROW(module.run_values("main", arguments));
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(kOpcodeCount));
}

TEST(ArtifactReplay, mutated_artifacts_are_refused_or_run) {
  relay::test::replay(test::artifact_seeds(), {.rounds = 10'000});
}

}  // namespace
}  // namespace relay::runtime
