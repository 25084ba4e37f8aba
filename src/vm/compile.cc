#include "vm/compile.h"

#include "plan/places.h"
#include "plan/verify.h"

#include <algorithm>

namespace relay {
namespace {

void report_copies(const plan::PlanFunction& f, const runtime::Program& program, size_t index,
                   std::vector<CopyReport>& out) {
  using plan::StepKind;
  if (std::ranges::find(f.steps, StepKind::loop, &plan::Step::kind) == f.steps.end()) return;
  // Both have their stores in the same order.
  auto step = f.steps.begin();
  for (const runtime::Instruction& in : program.functions[index].code) {
    if (in.op != runtime::Opcode::write_lines) continue;
    step = std::ranges::find(step, f.steps.end(), StepKind::update, &plan::Step::kind);
    RELAY_CHECK(step != f.steps.end(), "a store of the bytecode is not in the plan");
    const plan::Step& store = *step++;
    if ((in.sub & (runtime::kLastA | runtime::kGivenUp)) != 0) continue;
    out.push_back(
        {f.name, store.where < 0 ? "" : program.strings[static_cast<size_t>(store.where)]});
  }
}

}  // namespace

Bytecode compile_to_bytecode(plan::PlanProgram plan, const NativeLimits& limits) {
  Bytecode out;
  out.program = emit(plan);
  for (size_t i = 0; i < plan.functions.size(); ++i) {
    report_copies(plan.functions[i], out.program, i, out.copies);
  }
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
  out.host = build_host_code(plan, limits);
  out.kernels = std::move(plan.kernels);
  out.provider = std::move(plan.provider);
  return out;
}

Bytecode compile_to_bytecode(const Module& mod, std::shared_ptr<KernelProvider> provider) {
  LoweredProgram lowered(mod, std::move(provider));
  plan::PlanProgram plan = plan::make_plan(mod, lowered);
  plan::verify(plan);
  return compile_to_bytecode(std::move(plan),
                             {.refused = "the program is loaded without native code"});
}

}  // namespace relay
