#include "ir/open_sizes.h"
#include "plan/function_planner.h"

namespace relay::plan {

void FunctionPlanner::set_devices(const Var& v, const Bound& to) {
  Domain* where = program_.placement().domain(v);
  if (where == nullptr) return;
  std::vector<std::pair<const Bound*, Domain*>> open{{&to, where}};
  while (!open.empty()) {
    auto [b, domain] = open.back();
    open.pop_back();
    for (size_t i = 0; i < b->fields.size(); ++i) {
      open.emplace_back(&b->fields[i], DeviceDomains::part(domain, i));
    }
    if (b->is_tuple() || w_.place_of(b->value) != Place::object) continue;
    const Type& type = w_.value(b->value).type;
    if (type && isa<TensorTypeNode>(type)) w_.set_device(b->value, DeviceDomains::device(domain));
  }
}

FunctionPlanner::Bound FunctionPlanner::on_device(const Bound& b, const Type& type, Device device) {
  auto* tuple = as<TupleTypeNode>(type);
  if (tuple != nullptr && (b.is_tuple() || device != Device::cpu())) {
    Bound out;
    for (size_t i = 0; i < tuple->fields.size(); ++i) {
      out.fields.push_back(on_device(field(b, type, i), tuple->fields[i], device));
    }
    return out;
  }
  if (b.is_tuple()) return b;
  const PlanValue& v = w_.value(b.value);
  if (v.place == Place::constant && v.device != device) {
    const Tensor data = program_.program().constants[static_cast<size_t>(v.index)];
    return {w_.constant(program_.constant(data, device), type, device)};
  }
  // What has just been taken out of a tuple.
  if (v.place == Place::object && isa<TensorTypeNode>(type)) w_.set_device(b.value, device);
  return b;
}

FunctionPlanner::Bound FunctionPlanner::constants_at(const Bound& b, const Type& type,
                                                     Domain* where) {
  if (where == nullptr) return b;
  if (b.is_tuple()) {
    Bound out;
    for (size_t i = 0; i < b.fields.size(); ++i) {
      out.fields.push_back(constants_at(b.fields[i], as<TupleTypeNode>(type)->fields[i],
                                        DeviceDomains::part(where, i)));
    }
    return out;
  }
  const bool constant = w_.place_of(b.value) == Place::constant;
  return constant ? on_device(b, type, DeviceDomains::device(where)) : b;
}

FunctionPlanner::Bound FunctionPlanner::operand(const Node& user, size_t index, const Expr& e) {
  return constants_at(bound(e), e->type, program_.placement().wanted(user, index));
}

ValueId FunctionPlanner::object_operand(const Node& user, size_t index, const Expr& e) {
  return object(operand(user, index, e), e->type);
}

Type FunctionPlanner::sizes_of(ValueId tensor, const Type& type) {
  sizes_read_ = 0;
  return with_sizes_named(type, [&](size_t, size_t axis) { return read_size(tensor, axis); });
}

FunctionPlanner::Bound FunctionPlanner::device_copy(const LetNode& l, const CallNode& c,
                                                    const FunctionNode& f) {
  const DeviceCopyAttrs& attrs = *as_device_copy(*as<CallNode>(f.body));
  const Device from = known_device(attrs.src_virtual_device),
               to = known_device(attrs.dst_virtual_device);
  if (isa<ConstantNode>(c.args[0])) return on_device(bound(c.args[0]), c.type, to);
  if ((from == Device::cpu()) == (to == Device::cpu())) {
    unsupported(c.span, "a copy from " + from.to_string() + " to " + to.to_string(),
                "copy between the host and a device; between two devices by the host");
  }
  std::vector<ValueId> source, result;
  tensors_of(c.args[0], source, from);
  const Type type = has_open_size(c.type) ? sizes_of(source[0], c.type) : c.type;
  Bound out = results_of(l.var.get(), type, escapes_.contains(l.var.get()), c.span, to);
  tensors_of(out, c.type, result);
  w_.transfer(result[0], source[0]);
  return out;
}

}  // namespace relay::plan
