#include "passes/placement/choose_devices.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "analysis/loop_kernels.h"
#include "analysis/placement.h"
#include "analysis/primitives.h"
#include "ir/interface_devices.h"

namespace relay {
namespace {

using runtime::Device;

// Elements of an integer tensor of sizes or indices that the host reads.
constexpr int64_t kSizes = 64;

// Elements of all tensors of a value; those of a symbolic size are many.
int64_t elements_of(const Type& type) {
  auto tensors = flatten_tensor_types(type);
  if (!tensors) return 0;
  int64_t out = 0;
  for (const TensorType& t : *tensors) {
    int64_t all = 1;
    for (const Dim& d : t->shape) {
      auto size = as_const(d);
      if (!size) return kLeastElements + 1;
      all = std::min(all * std::min(*size, kLeastElements + 1), kLeastElements + 1);
    }
    out += all;
  }
  return out;
}

// Whether the result is scalars, or few integers.
bool is_for_host(const Type& type) {
  auto tensors = flatten_tensor_types(type);
  return tensors && std::ranges::all_of(*tensors, [](const TensorType& t) {
           const bool integers = t->dtype.is_integer() || t->dtype.is_bool();
           return t->shape.empty() || (integers && elements_of(t) <= kSizes);
         });
}

// Why a call of a kernel stays on the host, whatever it reads and the device has code for; empty: it does not.
std::string stays(const CallNode& c, const FunctionNode& primitive) {
  if (const char* why = host_only(c)) return why;
  if (is_for_host(c.type)) return "it gives scalars, or few integers, which the host reads";
  if (is_loop_kernel(primitive)) return "it is a loop of the program";
  return "";
}

// Why a call of a kernel that reads nothing of the device is not worth copies; empty: it is.
std::string too_small(const CallNode& c) {
  int64_t elements = elements_of(c.type);
  for (const Expr& a : c.args) elements += elements_of(a->type);
  if (elements > kLeastElements) return "";
  return "copies of its " + std::to_string(elements) + " elements take longer than it does";
}

// What the device supports; each primitive function is asked once.
class Support {
 public:
  explicit Support(const DeviceChoice& choice) : choice_(choice) {}

  bool has(const FunctionNode& primitive) {
    auto [known, fresh] = known_.try_emplace(&primitive, false);
    if (fresh) known->second = choice_.supports(primitive);
    return known->second;
  }
  Device device() const { return choice_.device; }

 private:
  const DeviceChoice& choice_;
  std::unordered_map<const FunctionNode*, bool> known_;
};

class Chooser : public RewriterOutsidePrimitives {
 public:
  // `there`: variables that are on the device.
  Chooser(Support& support, const std::unordered_map<const Node*, const Node*>& values,
          std::unordered_set<const Node*> there)
      : support_(support), values_(values), there_(std::move(there)) {}

  NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
    auto* before = as<CallNode>(original);
    auto* primitive = before == nullptr ? nullptr : primitive_of(*before);
    if (primitive == nullptr) return note_part(original, rebuilt);
    if (!goes(*before, *primitive)) return rebuilt;
    there_.insert(before);
    Function& placed = placed_[primitive];
    if (!placed) {
      placed = with_attr(ref(*primitive), attr::kDevice, AttrValue(support_.device().to_string()));
    }
    auto& c = *as<CallNode>(rebuilt);
    return call(placed, c.args, c.attrs, c.span, c.type_args);
  }

 private:
  bool goes(const CallNode& c, const FunctionNode& primitive) {
    if (!stays(c, primitive).empty()) return false;
    const bool reads_there =
        std::ranges::any_of(c.args, [&](const Expr& a) { return is_there(a); });
    if (!reads_there && !too_small(c).empty()) return false;
    return support_.has(primitive);
  }

  // Whether a value was computed on the device.
  bool is_there(const Expr& e) const {
    const Node* at = e.get();
    for (auto v = values_.find(at); v != values_.end(); v = values_.find(at)) at = v->second;
    return there_.contains(at);
  }

  NodeRef note_part(const NodeRef& original, NodeRef rebuilt) {
    if (auto* t = as<TupleNode>(original)) {
      if (std::ranges::any_of(t->fields, [&](const Expr& f) { return is_there(f); }))
        there_.insert(t);
    } else if (auto* g = as<TupleGetItemNode>(original)) {
      if (is_there(g->tuple)) there_.insert(g);
    }
    return rebuilt;
  }

  Support& support_;
  const std::unordered_map<const Node*, const Node*>& values_;
  std::unordered_set<const Node*> there_;
  std::unordered_map<const FunctionNode*, Function> placed_;
};

// Says that the host computes what the device cannot: PlaceKernels computes a kernel without a device where its operands and
// its readers are.
class Holder : public RewriterOutsidePrimitives {
 public:
  explicit Holder(Support& support) : support_(support) {}

  NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
    auto* before = as<CallNode>(original);
    auto* primitive = before == nullptr ? nullptr : primitive_of(*before);
    if (primitive == nullptr || primitive->has_attr(attr::kDevice)) return rebuilt;
    if (host_only(*before) != nullptr) return rebuilt;  // PlaceKernels knows
    if (!is_loop_kernel(*primitive) && support_.has(*primitive)) return rebuilt;
    Function& held = held_[primitive];
    if (!held) {
      held = with_attr(ref(*primitive), attr::kDevice, AttrValue(Device::cpu().to_string()));
    }
    auto& c = *as<CallNode>(rebuilt);
    return call(held, c.args, c.attrs, c.span, c.type_args);
  }

 private:
  Support& support_;
  std::unordered_map<const FunctionNode*, Function> held_;
};

Module choose_devices(const Module& mod, PassContext& ctx) {
  if (!ctx.device_choice || uses_devices(mod)) return mod;
  Support support(*ctx.device_choice);
  const Module chosen = map_functions(mod, [&](const GlobalVar&, const Function& f) {
    std::unordered_map<const Node*, const Node*> values;
    post_order_outside_primitives(f, [&](const Node& n) {
      if (auto* l = as<LetNode>(&n)) values[l->var.get()] = l->value.get();
    });
    std::unordered_set<const Node*> there;
    for (const auto& [number, device] : interface_devices(*f.get(), mod).params) {
      if (device == ctx.device_choice->device) there.insert(f->params[number].get());
    }
    return Chooser(support, values, std::move(there)).apply(f);
  });
  if (chosen.get() == mod.get() && !has_interface_devices(mod)) return mod;
  return map_functions(
      chosen, [&](const GlobalVar&, const Function& f) { return Holder(support).apply(f); });
}

}  // namespace

std::string stays_because(const DeviceChoice& choice, const FunctionNode& primitive) {
  const std::vector<Expr> parameters(primitive.params.begin(), primitive.params.end());
  const Expr alone = call(ref(primitive), parameters);
  auto& c = *as<CallNode>(alone);
  if (std::string why = stays(c, primitive); !why.empty()) return why;
  if (!choice.supports(primitive)) return "the device has no code for one of its operators";
  return too_small(c);
}

const Pass kChooseDevices = {
    "ChooseDevices",
    0,
    Form::fused,
    Form::any,
    "Computes what a device supports on the device, where the program says nothing.",
    choose_devices};

}  // namespace relay
