#include "plan/program_planner.h"

#include <algorithm>

#include "base/budget.h"
#include "plan/function_planner.h"
#include "plan/in_place.h"
#include "plan/lifetimes.h"
#include "plan/memory.h"

namespace relay::plan {

PlanProgram make_plan(const Module& mod, LoweredProgram& lowered) {
  return ProgramPlanner(mod, lowered).run();
}

std::string result_name(const FunctionNode& f, size_t i) {
  auto it = f.attrs.find(attr::kOutputNames);
  if (it != f.attrs.end()) {
    auto* names = it->second.get_if<ValueList>();
    auto* name =
        names != nullptr && i < names->size() ? (*names)[i].get_if<std::string>() : nullptr;
    if (name != nullptr) return *name;
  }
  return "output" + std::to_string(i);
}

std::string parameter_name(const FunctionNode& f, const VarNode& param) {
  auto it = f.attrs.find(attr::kInputNames);
  auto* pairs = it == f.attrs.end() ? nullptr : it->second.get_if<ValueList>();
  if (pairs == nullptr) return param.name_hint;
  auto text = [](const AttrValue& pair, size_t i) -> const std::string* {
    auto* names = pair.get_if<ValueList>();
    return names != nullptr && i < names->size() ? (*names)[i].get_if<std::string>() : nullptr;
  };
  for (const AttrValue& pair : *pairs) {
    const std::string *from = text(pair, 0), *to = text(pair, 1);
    if (from != nullptr && to != nullptr && *from == param.name_hint) return *to;
  }
  return param.name_hint;
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

ProgramPlanner::KernelCall ProgramPlanner::kernel(int32_t lowered, const KernelSite& site,
                                                  const Within& within) {
  auto [it, fresh] =
      kernels_.emplace(std::pair(lowered, within), static_cast<int32_t>(out_.kernels.size()));
  if (fresh) {
    const LoweredKernel& from = lowered_.kernel(lowered);
    std::string name = from.composed.func->name;
    int count = name_counts_[name]++;
    if (count > 0) name += "_" + std::to_string(count);
    ComposedKernel composed = renamed(from.composed, name);
    if (!within.empty()) composed = in_larger_tensors(std::move(composed), within);
    out_.kernels.push_back({name, from.primitive, std::move(composed), {}});
  }
  std::vector<KernelSite>& sites = out_.kernels[static_cast<size_t>(it->second)].sites;
  sites.push_back(site);
  return {it->second, static_cast<int32_t>(sites.size()) - 1};
}

int32_t ProgramPlanner::local(const Function& f, std::vector<Var> captured, Var self) {
  int32_t index = next_function_++;
  queue_.push_back({f, "fn" + std::to_string(index), std::move(captured), std::move(self), index});
  return index;
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
  place_buffers(f);
  auto at = static_cast<size_t>(index);
  if (out_.functions.size() <= at) out_.functions.resize(at + 1);
  out_.functions[at] = std::move(f);
}

PlanProgram ProgramPlanner::run() {
  for (size_t i = 0; i < mod_->functions.size(); ++i) {
    const std::string& name = mod_->global_vars[i]->name_hint;
    globals_[name] = next_function_;
    queue_.push_back({mod_->functions[i], name, {}, nullptr, next_function_++});
  }
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
