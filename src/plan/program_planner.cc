#include "plan/program_planner.h"

#include <algorithm>

#include "analysis/primitives.h"
#include "base/budget.h"
#include "lower/written_over.h"
#include "node/walk.h"
#include "plan/function_planner.h"
#include "plan/in_place.h"
#include "plan/lifetimes.h"
#include "plan/memory.h"
#include "plan/places.h"
#include "plan/registers.h"

namespace relay::plan {

PlanProgram make_plan(const Module& mod, LoweredProgram& lowered) {
  return ProgramPlanner(mod, lowered).run();
}

int32_t ProgramPlanner::constant(const Tensor& t) {
  auto [it, fresh] = constants_.emplace(t.data(), static_cast<int32_t>(out_.constants.size()));
  if (!fresh) {
    const Tensor& known = out_.constants[static_cast<size_t>(it->second)];
    bool same = known.dtype() == t.dtype() && std::ranges::equal(known.shape(), t.shape());
    if (same) return it->second;
    out_.constants.push_back(t);
    return static_cast<int32_t>(out_.constants.size()) - 1;
  }
  out_.constants.push_back(t);
  return it->second;
}

int32_t ProgramPlanner::string(const std::string& text) {
  auto [it, fresh] = strings_.emplace(text, static_cast<int32_t>(out_.strings.size()));
  if (fresh) out_.strings.push_back(text);
  return it->second;
}

int32_t ProgramPlanner::where(const Span& span) { return span ? string(span.describe()) : -1; }

int32_t ProgramPlanner::add_kernel(const LoweredKernel& from, ComposedKernel composed) {
  const std::string base = composed.func->name;
  std::string name = base;
  for (int& count = name_counts_[base]; !names_.insert(name).second;) {
    name = base + "_" + std::to_string(++count);
  }
  out_.kernels.push_back({name, from.primitive, renamed(std::move(composed), name), {}});
  return static_cast<int32_t>(out_.kernels.size()) - 1;
}

ProgramPlanner::KernelCall ProgramPlanner::add_site(int32_t kernel, const KernelSite& site) {
  std::vector<KernelSite>& sites = out_.kernels[static_cast<size_t>(kernel)].sites;
  sites.push_back(site);
  return {kernel, static_cast<int32_t>(sites.size()) - 1};
}

ProgramPlanner::KernelCall ProgramPlanner::kernel(int32_t lowered, const KernelSite& site,
                                                  const Within& within) {
  auto [it, fresh] = kernels_.emplace(std::pair(lowered, within), -1);
  if (fresh) {
    const LoweredKernel& from = lowered_.kernel(lowered);
    ComposedKernel composed = from.composed;
    if (!within.empty()) composed = in_larger_tensors(std::move(composed), within);
    it->second = add_kernel(from, std::move(composed));
  }
  return add_site(it->second, site);
}

ProgramPlanner::KernelCall ProgramPlanner::kernel_in_place(int32_t lowered, const KernelSite& site,
                                                           size_t input) {
  auto [it, fresh] = kernels_in_place_.emplace(std::pair(lowered, input), -1);
  if (fresh) {
    const LoweredKernel& from = lowered_.kernel(lowered);
    auto composed = written_over(from.composed, input);
    RELAY_CHECK(composed, "a kernel that cannot write over its input");
    it->second = add_kernel(from, *std::move(composed));
  }
  return add_site(it->second, site);
}

int32_t ProgramPlanner::local(const Function& f, std::vector<Var> captured, Var self) {
  int32_t index = next_function_++;
  queue_.push_back({f, "fn" + std::to_string(index), std::move(captured), std::move(self), index});
  return index;
}

std::optional<int32_t> ProgramPlanner::closure_of(int32_t index) {
  auto it = closures_.find(index);
  if (it == closures_.end()) return std::nullopt;
  Closure& c = it->second;
  if (c.index < 0) c.index = local(c.function, c.captured, nullptr);
  return c.index;
}

int32_t ProgramPlanner::constructor_function(const ConstructorNode& c) {
  auto [it, fresh] = constructor_functions_.emplace(&c, next_function_);
  if (!fresh) return it->second;
  StepWriter b(c.name_hint);
  std::vector<ValueId> fields;
  for (const Type& t : c.inputs) {
    fields.push_back(b.param({"p" + std::to_string(fields.size()), nullptr, to_string(t)}));
  }
  b.function().results.push_back({c.name_hint, nullptr, c.name_hint});
  b.function().internal = true;
  b.add(StepKind::return_value, {},
        {b.add_object(StepKind::data, fields, static_cast<int64_t>(c.tag))});
  place(next_function_, std::move(b).finish());
  return next_function_++;
}

void ProgramPlanner::place(int32_t index, PlanFunction f) {
  find_lifetimes(f);
  reuse_operands(f, out_.kernels);
  share_places(f, out_.kernels);
  place_buffers(f);
  share_registers(f);
  auto at = static_cast<size_t>(index);
  if (out_.functions.size() <= at) out_.functions.resize(at + 1);
  out_.functions[at] = std::move(f);
}

void ProgramPlanner::find_called() {
  for (const Function& f : mod_->functions) {
    post_order_outside_primitives(f->body, [&](const Node& n) {
      auto* g = as<GlobalVarNode>(&n);
      if (g != nullptr) called_.insert(globals_.at(g->name_hint));
    });
  }
}

PlanProgram ProgramPlanner::run() {
  for (size_t i = 0; i < mod_->functions.size(); ++i) {
    const std::string& name = mod_->global_vars[i]->name_hint;
    globals_[name] = next_function_;
    Function f = with_late_updates(mod_->functions[i], mod_);
    auto* made = as<LetNode>(f->body);
    if (f->has_attr(attr::kClosure) && made != nullptr && made->body == made->var &&
        isa<FunctionNode>(made->value)) {
      closures_[next_function_] = {cast<FunctionNode>(made->value), f->params};
    }
    queue_.push_back({std::move(f), name, {}, nullptr, next_function_++});
  }
  find_called();
  size_t globals = queue_.size();
  while (!queue_.empty()) {
    check_budget();
    Job job = std::move(queue_.front());
    queue_.pop_front();
    bool internal = static_cast<size_t>(job.index) >= globals;
    FunctionPlanner planner(*this, job.f, job.name, std::move(job.captured), job.self, job.index,
                            internal);
    place(job.index, planner.run());
  }
  return std::move(out_);
}

}  // namespace relay::plan
