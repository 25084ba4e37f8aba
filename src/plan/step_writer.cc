#include "plan/step_writer.h"

#include <algorithm>

#include "plan/step_table.h"

namespace relay::plan {

ValueId StepWriter::add_value(PlanValue value) {
  function_.values.push_back(std::move(value));
  return static_cast<ValueId>(function_.values.size()) - 1;
}

ValueId StepWriter::param(PlanSlot slot) {
  RELAY_CHECK(function_.values.size() == function_.params.size(), "parameters come first");
  ValueId id = object(slot.type, slot.name);
  if (slot.type && isa<TensorTypeNode>(slot.type)) set_device(id, slot.device);
  function_.params.push_back(std::move(slot));
  return id;
}

ValueId StepWriter::object(Type type, std::string name) {
  return add_value({Place::object, function_.num_objects++, std::move(type), std::move(name)});
}

ValueId StepWriter::scalar(Type type, std::string name) {
  return add_value({Place::scalar, function_.num_scalars++, std::move(type), std::move(name)});
}

ValueId StepWriter::constant(int32_t index, const Type& type, Device device) {
  auto [it, fresh] = constants_.emplace(index, -1);
  if (fresh) it->second = add_value({Place::constant, index, type, {}, device});
  return it->second;
}

ValueId StepWriter::output(int32_t index, const Type& type, std::string name) {
  return add_value({Place::output, index, type, std::move(name)});
}

ValueId StepWriter::in_buffer(int32_t buffer, const Type& type) {
  return add_value({Place::arena, buffer, type, {}, function_.buffer(buffer).device});
}

ValueId StepWriter::in_place(const TensorType& type, Device device) {
  auto index = static_cast<int32_t>(function_.places.size());
  function_.places.push_back({type, device});
  return add_value({Place::open, index, type, {}, device});
}

ValueId StepWriter::alias(ValueId of, const Type& type) {
  PlanValue same = value(of);
  same.type = type;
  same.name.clear();
  return add_value(std::move(same));
}

int32_t StepWriter::buffer(int64_t bytes, Device device) {
  return sub_buffer({.bytes = bytes, .device = device});
}

int32_t StepWriter::sub_buffer(PlanBuffer part) {
  if (part.whole >= 0) part.device = function_.buffer(part.whole).device;
  function_.buffers.push_back(std::move(part));
  return static_cast<int32_t>(function_.buffers.size()) - 1;
}

bool StepWriter::same_place(ValueId a, ValueId b) const {
  return value(a).place == value(b).place && value(a).index == value(b).index;
}

void StepWriter::name(ValueId id, const std::string& name) {
  PlanValue& v = function_.value(id);
  if (v.name.empty() && v.place != Place::constant) v.name = name;
}

bool StepWriter::needs(const Transfer& t, StepKind kind, const std::vector<ValueId>& results,
                       const std::vector<ValueId>& operands) const {
  auto is_it = [&](ValueId id) { return same_place(id, t.on_host); };
  if (ends_transfers(kind) || std::ranges::any_of(results, is_it)) return true;
  return (t.writes_host || kind == StepKind::swap) && std::ranges::any_of(operands, is_it);
}

void StepWriter::wait_for(size_t transfer) {
  const Transfer last = transfers_[transfer];
  std::vector<ValueId> operands{last.event};
  size_t kept = 0;
  for (size_t i = 0; i < transfers_.size(); ++i) {
    const Transfer& t = transfers_[i];
    if (i <= transfer && t.device == last.device) {
      operands.push_back(t.on_host);
    } else {
      transfers_[kept++] = t;
    }
  }
  transfers_.resize(kept);
  append(StepKind::wait, {}, std::move(operands), 0);
}

void StepWriter::transfer(ValueId to, ValueId from) {
  const bool writes_host = device_of(to) == Device::cpu();
  ValueId event = scalar();
  add(StepKind::transfer, {to, event}, {from});
  transfers_.push_back(
      {event, device_of(writes_host ? from : to), writes_host ? to : from, writes_host});
}

Step& StepWriter::add(StepKind kind, std::vector<ValueId> results, std::vector<ValueId> operands,
                      int64_t number) {
  // The last first: it ends those before it.
  for (size_t i = transfers_.size(); i-- > 0;) {
    if (i < transfers_.size() && needs(transfers_[i], kind, results, operands)) wait_for(i);
  }
  return append(kind, std::move(results), std::move(operands), number);
}

Step& StepWriter::append(StepKind kind, std::vector<ValueId> results, std::vector<ValueId> operands,
                         int64_t number) {
  Step& step = function_.steps.emplace_back();
  step.kind = kind;
  step.number = number;
  step.results = std::move(results);
  step.operands = std::move(operands);
  return step;
}

ValueId StepWriter::add_object(StepKind kind, std::vector<ValueId> operands, int64_t number,
                               Type type) {
  ValueId r = object(std::move(type));
  add(kind, {r}, std::move(operands), number);
  return r;
}

ValueId StepWriter::number(int64_t value) {
  ValueId r = scalar();
  add(StepKind::number, {r}, {}, value);
  return r;
}

ValueId StepWriter::size(ValueId tensor, int64_t axis) {
  ValueId r = scalar();
  add(StepKind::size, {r}, {tensor}, axis);
  return r;
}

ValueId StepWriter::load(ValueId tensor, runtime::DType dtype, Type type) {
  ValueId r = scalar(std::move(type));
  add(StepKind::load, {r}, {tensor}).dtype = dtype;
  return r;
}

ValueId StepWriter::box(ValueId scalar, runtime::DType dtype, Type type) {
  ValueId r = object(std::move(type));
  add(StepKind::box, {r}, {scalar}).dtype = dtype;
  return r;
}

ValueId StepWriter::int_op(runtime::IntOp op, ValueId a, ValueId b, int bits, ValueId to) {
  ValueId r = to >= 0 ? to : scalar();
  add(StepKind::int_op, {r}, {a, b}, bits).op = static_cast<uint8_t>(op);
  return r;
}

ValueId StepWriter::float_op(runtime::FloatOp op, ValueId a, ValueId b, int bits) {
  ValueId r = scalar();
  add(StepKind::float_op, {r}, {a, b}, bits).op = static_cast<uint8_t>(op);
  return r;
}

ValueId StepWriter::index(ValueId index, ValueId size, int32_t place) {
  ValueId r = scalar();
  add(StepKind::index, {r}, {index, size}).text = place;
  return r;
}

ValueId StepWriter::convert(runtime::ScalarConversion conversion, ValueId a) {
  ValueId r = scalar();
  add(StepKind::convert, {r}, {a}).op = static_cast<uint8_t>(conversion);
  return r;
}

}  // namespace relay::plan
