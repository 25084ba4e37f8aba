#include "plan/in_place.h"

#include <algorithm>

namespace relay::plan {
namespace {

// Whether the kernel reads the memory through an operand that may not be where the result is.
bool reads_elsewhere(const PlanFunction& f, const ProgramKernel& kernel, const Step& step,
                     int32_t memory, size_t result) {
  for (size_t i = 0; i < step.operands.size(); ++i) {
    const PlanValue& v = f.value(step.operands[i]);
    if (v.place != Place::arena) continue;
    auto [root, offset] = f.memory_of(v.index);
    bool in_memory = root == memory;
    if (in_memory && (offset != 0 || !kernel.signature.may_overwrite({i, result}))) return true;
  }
  return false;
}

}  // namespace

void reuse_operands(PlanFunction& f, const std::vector<ProgramKernel>& kernels) {
  for (size_t s = 0; s < f.steps.size(); ++s) {
    const Step& step = f.steps[s];
    if (step.kind != StepKind::kernel) continue;
    const ProgramKernel& kernel = kernels[static_cast<size_t>(step.number)];
    auto now = static_cast<int32_t>(s);
    std::vector<int32_t> taken;  // memory that another result of the step is in
    for (const InPlace& pair : kernel.signature.in_place) {
      const PlanValue &written = f.value(step.results[pair.result]),
                      &read = f.value(step.operands[pair.input]);
      if (written.place != Place::arena || read.place != Place::arena) continue;
      PlanBuffer& result = f.buffer(written.index);
      if (result.whole >= 0) continue;
      // The memory of its own that the operand is in, by then perhaps another operand's.
      auto [root, offset] = f.memory_of(read.index);
      PlanBuffer& operand = f.buffer(root);
      if (offset != 0 || operand.bytes != result.bytes || operand.life.last != now ||
          result.life.first != now || std::ranges::find(taken, root) != taken.end() ||
          reads_elsewhere(f, kernel, step, root, pair.result)) {
        continue;
      }
      taken.push_back(root);
      result.whole = root;
      result.in_place = true;
      operand.life.include(result.life);
    }
  }
}

}  // namespace relay::plan
