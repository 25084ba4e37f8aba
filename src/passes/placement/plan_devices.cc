#include "passes/placement/plan_devices.h"

#include <algorithm>
#include <unordered_map>

#include "analysis/placement.h"
#include "ir/interface_devices.h"
#include "node/walk.h"
#include "passes/placement/copies.h"
#include "passes/structure/entry_functions.h"

namespace relay {
namespace {

// The tensors of the function's result that on_device says are on a device, and that its attributes do not name.
std::vector<std::pair<size_t, runtime::Device>> constrained_results(const FunctionNode& f,
                                                                    const Module& mod) {
  std::unordered_map<const Node*, const Expr*> values;
  const Expr* body = &f.body;
  for (auto* l = as<LetNode>(*body); l != nullptr; l = as<LetNode>(*body)) {
    values[l->var.get()] = &l->value;
    body = &l->body;
  }
  const InterfaceDevices known = interface_devices(f, mod);
  auto is_known = [&](size_t number) {
    return std::ranges::any_of(known.results, [&](const auto& r) { return r.first == number; });
  };
  std::vector<std::pair<size_t, runtime::Device>> out;
  size_t number = 0;
  std::vector<Expr> open{*body};
  while (!open.empty()) {
    Expr e = std::move(open.back());
    open.pop_back();
    for (auto v = values.find(e.get()); v != values.end(); v = values.find(e.get())) e = *v->second;
    if (auto* t = as<TupleNode>(e)) {
      open.insert(open.end(), t->fields.rbegin(), t->fields.rend());
      continue;
    }
    auto leaves = flatten_tensor_types(e->type);
    if (!leaves) return {};
    auto* c = as<CallNode>(e);
    const OnDeviceAttrs* attrs = c == nullptr ? nullptr : placing_call(*c).on_device;
    const bool is_there =
        attrs != nullptr && attrs->constrain_result && !isa<ConstantNode>(c->args[0]);
    const runtime::Device device =
        is_there ? known_device(attrs->virtual_device) : runtime::Device::cpu();
    for (size_t i = 0; i < leaves->size(); ++i, ++number) {
      if (device != runtime::Device::cpu() && !is_known(number)) out.emplace_back(number, device);
    }
  }
  return out;
}

Module plan_devices(const Module& given, PassContext& ctx) {
  if (!uses_devices(given)) return given;
  Module mod = given;
  const std::vector<Function> entries = entry_functions(mod, ctx);
  for (size_t i = 0; i < given->functions.size(); ++i) {
    const Function& f = given->functions[i];
    if (std::ranges::find(entries, f) == entries.end()) continue;
    auto results = constrained_results(*f.get(), given);
    if (!results.empty())
      mod = with_function(mod, given->global_vars[i], with_result_devices(f, results));
  }
  return with_device_copies(mod, entry_functions(mod, ctx), /*fused=*/false);
}

}  // namespace

const Pass kPlanDevices = {"PlanDevices",
                           0,
                           Form::any,
                           Form::any,
                           "Copies values to the devices that on_device and device_copy ask for.",
                           plan_devices};

}  // namespace relay
