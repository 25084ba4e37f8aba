#include "plan/verify_devices.h"

#include <algorithm>

#include "plan/step_table.h"

namespace relay::plan {
namespace {

// Whether the step reads or writes tensors and they must be on one device, by its kind.
bool stays_on_device(StepKind kind) {
  switch (kind) {
    case StepKind::copy:
    case StepKind::alias:
    case StepKind::join:
    case StepKind::view:
    case StepKind::set:
    case StepKind::swap:
    case StepKind::constant:
      return true;
    default:
      return false;
  }
}

// Whether the step is the host's: what it reads and writes of tensors is there.
bool is_of_host(StepKind kind) {
  switch (kind) {
    case StepKind::update:
    case StepKind::load:
    case StepKind::box:
    case StepKind::alloc_from_shape:
    case StepKind::return_scalar:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string DeviceRules::defect_of(const PlanValue& v) const {
  auto is_on = [&](Device device, const char* otherwise) {
    return v.device == device ? "" : otherwise;
  };
  switch (v.place) {
    case Place::arena:
      return is_on(f_.buffer(v.index).device, "a value is on another device than its buffer");
    case Place::open:
      return is_on(f_.places[static_cast<size_t>(v.index)].device,
                   "a value is on another device than its place");
    case Place::constant:
      return is_on(program_.device_of_constant(static_cast<size_t>(v.index)),
                   "a value is on another device than its constant");
    case Place::scalar:
      return is_on(Device::cpu(), "a register is on a device");
    case Place::output:
      return is_on(Device::cpu(), "an output is on a device");
    case Place::object:
      break;
  }
  return "";
}

std::string DeviceRules::defect_of_devices(const Step& s) const {
  std::vector<ValueId> all = s.results;
  all.insert(all.end(), s.operands.begin(), s.operands.end());
  for (ValueId id : all) {
    if (std::string defect = defect_of(f_.value(id)); !defect.empty()) return defect;
  }
  if (s.kind == StepKind::transfer) {
    const Device to = f_.value(s.results[0]).device, from = f_.value(s.operands[0]).device;
    if ((to == Device::cpu()) == (from == Device::cpu()))
      return "a transfer is not between the host and a device";
  }
  std::erase_if(all, [&](ValueId id) { return f_.value(id).place == Place::scalar; });
  for (ValueId id : all) {
    const Device device = f_.value(id).device;
    if (stays_on_device(s.kind) && device != f_.value(all[0]).device)
      return "values are on different devices";
    if (is_of_host(s.kind) && device != Device::cpu()) return "the host reads memory of a device";
  }
  return "";
}

bool DeviceRules::same_place(ValueId a, ValueId b) const {
  const PlanValue &x = f_.value(a), &y = f_.value(b);
  return x.place == y.place && x.index == y.index;
}

std::string DeviceRules::end_transfers(const Step& wait) {
  auto last = std::ranges::find(transfers_, wait.operands[0], &Transfer::event);
  if (last == transfers_.end()) return "a wait for a transfer that has not begun, or is over";
  auto is_named = [&](const Transfer& t) {
    return std::find(wait.operands.begin() + 1, wait.operands.end(), t.on_host) !=
           wait.operands.end();
  };
  if (!is_named(*last)) return "a wait does not name the value of its transfer";
  // Those before it on the same device are over, too, and are kept alive as long as they are named.
  const Device device = last->device;
  auto over = std::remove_if(transfers_.begin(), last + 1,
                             [&](const Transfer& t) { return t.device == device && is_named(t); });
  transfers_.erase(over, last + 1);
  return "";
}

std::string DeviceRules::use_beside_transfers(const Step& s) const {
  for (const Transfer& t : transfers_) {
    auto is_copied = [&](ValueId id) { return same_place(id, t.on_host); };
    // That a place is taken writes nothing.
    if (s.kind != StepKind::place && std::ranges::any_of(s.results, is_copied))
      return "a value is written while it is copied";
    if (!std::ranges::any_of(s.operands, is_copied)) continue;
    if (t.writes_host) return "a value is read before its copy is there";
    if (s.kind == StepKind::swap) return "a value is moved while it is copied";
  }
  const bool leaves = ends_transfers(s.kind) && !transfers_.empty();
  return leaves ? "a transfer goes on where control leaves" : "";
}

std::string DeviceRules::defect(const Step& s) {
  if (std::string defect = defect_of_devices(s); !defect.empty()) return defect;
  if (s.kind == StepKind::wait) return end_transfers(s);
  if (std::string defect = use_beside_transfers(s); !defect.empty()) return defect;
  if (s.kind != StepKind::transfer) return "";
  const ValueId to = s.results[0], from = s.operands[0];
  const bool writes_host = f_.value(to).device == Device::cpu();
  transfers_.push_back({s.results[1], f_.value(writes_host ? from : to).device,
                        writes_host ? to : from, writes_host});
  return "";
}

}  // namespace relay::plan
