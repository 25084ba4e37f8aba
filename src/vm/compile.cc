#include "vm/compile.h"

#include "plan/places.h"
#include "plan/verify.h"

namespace relay {

Bytecode compile_to_bytecode(plan::PlanProgram plan) {
  Bytecode out;
  out.program = emit(plan);
  for (const plan::PlanFunction& f : plan.functions) {
    for (const plan::Donation& d : f.donations) {
      out.donations.push_back({f.name, f.params[static_cast<size_t>(d.param)].name,
                               f.results[static_cast<size_t>(d.output)].name, d.in_place,
                               d.reason});
    }
    if (f.arena_bytes == 0 && f.places.empty()) continue;
    ArenaReport report{
        .function = f.name, .arena_bytes = f.arena_bytes, .lower_bound = f.lower_bound};
    if (!f.places.empty()) report.formula = plan::working_memory(f);
    for (const plan::PlanBuffer& b : f.buffers) {
      if (b.in_place) {
        ++report.reused;
      } else if (b.whole >= 0) {
        ++report.sub_buffers;
      }
    }
    out.arenas.push_back(std::move(report));
  }
  out.kernels = std::move(plan.kernels);
  out.provider = std::move(plan.provider);
  return out;
}

Bytecode compile_to_bytecode(const Module& mod, std::shared_ptr<KernelProvider> provider) {
  LoweredProgram lowered(mod, std::move(provider));
  plan::PlanProgram plan = plan::make_plan(mod, lowered);
  plan::verify(plan);
  return compile_to_bytecode(std::move(plan));
}

}  // namespace relay
