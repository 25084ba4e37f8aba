#include "plan/program_planner.h"

#include <algorithm>

#include "analysis/primitives.h"
#include "base/budget.h"
#include "node/walk.h"
#include "plan/function_planner.h"
#include "plan/in_place.h"
#include "plan/lifetimes.h"
#include "plan/memory.h"
#include "plan/places.h"
#include "plan/registers.h"
#include "types/match.h"

namespace relay::plan {

PlanProgram make_plan(const Module& mod, LoweredProgram& lowered,
                      const KernelProvider::Steps& schedule_steps) {
  return ProgramPlanner(mod, lowered).run(schedule_steps);
}

int32_t ProgramPlanner::constant(const Tensor& t, Device device) {
  const auto next = static_cast<int32_t>(out_.constants.size());
  auto [it, fresh] = constants_.emplace(std::tuple(t.data(), device.type, device.id), next);
  if (!fresh) {
    const Tensor& known = out_.constants[static_cast<size_t>(it->second)];
    bool same = known.dtype() == t.dtype() && std::ranges::equal(known.shape(), t.shape());
    if (same) return it->second;
  }
  out_.constants.push_back(t);
  if (device != Device::cpu() || !out_.constant_devices.empty()) {
    out_.constant_devices.resize(out_.constants.size());
    out_.constant_devices.back() = device;
  }
  return next;
}

int32_t ProgramPlanner::string(const std::string& text) {
  auto [it, fresh] = strings_.emplace(text, static_cast<int32_t>(out_.strings.size()));
  if (fresh) out_.strings.push_back(text);
  return it->second;
}

int32_t ProgramPlanner::where(const Span& span) { return span ? string(span.describe()) : -1; }

int32_t ProgramPlanner::constructors(const MatchNode& m) {
  const std::string out = m.complete ? "" : constructors_text(m.data->type, mod_);
  return out.empty() ? -1 : string(out);
}

ProgramPlanner::KernelCall ProgramPlanner::kernel(int32_t lowered, const KernelSite& site,
                                                  const VariantRequest& request) {
  KernelProvider& provider = *out_.provider;
  const int32_t variant = provider.variant(lowered, request);
  auto [it, fresh] = kernels_.emplace(variant, static_cast<int32_t>(out_.kernels.size()));
  if (fresh) {
    out_.kernels.push_back(
        {variant, provider.variant_signature(variant), provider.variant_primitive(variant), {}});
  }
  std::vector<KernelSite>& sites = out_.kernels[static_cast<size_t>(it->second)].sites;
  sites.push_back(site);
  return {it->second, static_cast<int32_t>(sites.size()) - 1};
}

const ScalarForm* ProgramPlanner::scalar_form(int32_t lowered) const {
  if (lowered < 0) return nullptr;
  const auto& form = out_.provider->signature(lowered).scalar;
  return form ? &*form : nullptr;
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
  add(next_function_, std::move(b).finish());
  return next_function_++;
}

bool ProgramPlanner::has_places(const PlanFunction& f, int32_t index) const {
  return !f.internal && !is_called(index) &&
         std::ranges::find(f.steps, StepKind::loop, &Step::kind) == f.steps.end();
}

void ProgramPlanner::add_working_memory(PlanFunction& f, int32_t index) const {
  auto signature = [&](const Step& s) -> const KernelSignature& {
    return out_.kernels[static_cast<size_t>(s.number)].signature;
  };
  auto needs_memory = [&](const Step& s) {
    return s.kind == StepKind::kernel && !signature(s).workspace.empty();
  };
  if (std::ranges::none_of(f.steps, needs_memory)) return;
  const bool places = has_places(f, index);
  std::vector<Step> steps;
  auto add_value = [&](Place place, size_t index, const Type& type, Device device = {}) {
    f.values.push_back({place, static_cast<int32_t>(index), type, {}, device});
    return static_cast<ValueId>(f.values.size()) - 1;
  };
  // A dimension as a scalar: one of the sizes that the kernel is called with, or a number.
  auto size_of = [&](const Dim& d, const KernelSignature& kernel, const Step& call) {
    for (size_t i = 0; i < kernel.sizes.size(); ++i) {
      if (dim_equal(kernel.sizes[i], d)) return call.operands[kernel.inputs.size() + i];
    }
    Step& number = steps.emplace_back();
    number.kind = StepKind::number;
    number.number = *as_const(d);
    number.results = {add_value(Place::scalar, static_cast<size_t>(f.num_scalars++), nullptr)};
    return number.results[0];
  };
  for (Step& call : f.steps) {
    if (needs_memory(call)) {
      const KernelSignature& kernel = signature(call);
      for (const auto& [t, bytes] : kernel.workspace) {
        if (bytes >= 0) {
          f.buffers.push_back({.bytes = bytes, .device = kernel.device});
          call.results.push_back(add_value(Place::arena, f.buffers.size() - 1, t, kernel.device));
          continue;
        }
        // Elsewhere it is an object, as other values of open sizes are.
        if (places) f.places.push_back({t, kernel.device});
        const ValueId memory =
            places
                ? add_value(Place::open, f.places.size() - 1, t, kernel.device)
                : add_value(Place::object, static_cast<size_t>(f.num_objects++), t, kernel.device);
        Step made;
        made.kind = places ? StepKind::place : StepKind::alloc_sized;
        made.dtype = t->dtype;
        made.results = {memory};
        for (const Dim& d : t->shape) made.operands.push_back(size_of(d, kernel, call));
        steps.push_back(std::move(made));
        call.results.push_back(memory);
      }
    }
    steps.push_back(std::move(call));
  }
  f.steps = std::move(steps);
}

void ProgramPlanner::place(PlanFunction& f, int32_t index) const {
  add_working_memory(f, index);
  find_lifetimes(f);
  reuse_operands(f, out_.kernels);
  share_places(f, out_.kernels);
  place_buffers(f);
  share_registers(f);
}

void ProgramPlanner::add(int32_t index, PlanFunction f) {
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

PlanProgram ProgramPlanner::run(const KernelProvider::Steps& schedule_steps) {
  const Module planned = map_functions(
      mod_, [&](const GlobalVar&, const Function& f) { return with_late_updates(f, mod_); });
  placement_.emplace(planned);
  for (size_t i = 0; i < planned->functions.size(); ++i) {
    const std::string& name = planned->global_vars[i]->name_hint;
    globals_[name] = next_function_;
    const Function& f = planned->functions[i];
    auto* made = as<LetNode>(f->body);
    if (f->has_attr(attr::kClosure) && made != nullptr && made->body == made->var &&
        isa<FunctionNode>(made->value)) {
      closures_[next_function_] = {cast<FunctionNode>(made->value), f->params};
    }
    queue_.push_back({f, name, {}, nullptr, next_function_++});
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
    add(job.index, planner.run());
  }
  out_.provider->schedule(schedule_steps);
  // A schedule decides launches and working memory.
  for (ProgramKernel& k : out_.kernels) k.signature = out_.provider->variant_signature(k.variant);
  for (size_t i = 0; i < out_.functions.size(); ++i) {
    check_budget();
    place(out_.functions[i], static_cast<int32_t>(i));
  }
  return std::move(out_);
}

}  // namespace relay::plan
