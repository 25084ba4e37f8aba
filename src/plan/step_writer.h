// Writes a function's plan: values get registers and steps their place as they are asked for.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "plan/plan.h"
#include "runtime/core/scalar_ops.h"

namespace relay::plan {

class StepWriter {
 public:
  explicit StepWriter(std::string name) { function_.name = std::move(name); }

  // ---- Values ----

  // The next parameter, on the slot's device. All come before any other value.
  ValueId param(PlanSlot slot);
  ValueId object(Type type = nullptr, std::string name = {});
  ValueId scalar(Type type = nullptr, std::string name = {});
  // A constant of the program, where it is used; one value for all its uses.
  ValueId constant(int32_t index, const Type& type, Device device);
  ValueId output(int32_t index, const Type& type, std::string name);
  // A value in a buffer of the arena, on its device.
  ValueId in_buffer(int32_t buffer, const Type& type);
  // A value of an open size in a place of its own.
  ValueId in_place(const TensorType& type, Device device = {});
  // The same place as another value, under another shape.
  ValueId alias(ValueId of, const Type& type);
  // A buffer with memory of its own.
  int32_t buffer(int64_t bytes, Device device = {});
  int32_t sub_buffer(PlanBuffer part);

  const PlanValue& value(ValueId id) const { return function_.value(id); }
  const PlanBuffer& buffer_of(ValueId id) const { return function_.buffer(value(id).index); }
  Place place_of(ValueId id) const { return value(id).place; }
  bool same_place(ValueId a, ValueId b) const;
  Device device_of(ValueId id) const { return value(id).device; }
  // Says where a tensor is that has been read from other values.
  void set_device(ValueId id, Device device) { function_.value(id).device = device; }
  // Names a value that has no name yet.
  void name(ValueId id, const std::string& name);

  // ---- Steps ----

  // Before the step comes a wait for the transfers that must be over by then.
  Step& add(StepKind kind, std::vector<ValueId> results = {}, std::vector<ValueId> operands = {},
            int64_t number = 0);
  // The same with one result, a new object or scalar, which is returned.
  ValueId add_object(StepKind kind, std::vector<ValueId> operands, int64_t number = 0,
                     Type type = nullptr);
  ValueId number(int64_t value);
  ValueId size(ValueId tensor, int64_t axis);
  ValueId load(ValueId tensor, runtime::DType dtype, Type type);
  ValueId box(ValueId scalar, runtime::DType dtype, Type type);
  // `to`: a scalar that takes the result; -1: a new one.
  ValueId int_op(runtime::IntOp op, ValueId a, ValueId b, int bits = 64, ValueId to = -1);
  ValueId float_op(runtime::FloatOp op, ValueId a, ValueId b, int bits);
  ValueId convert(runtime::ScalarConversion conversion, ValueId a);
  // `place`: a string of the program, where in the source the index is; -1: not known.
  ValueId index(ValueId index, ValueId size, int32_t place);
  // Copies a tensor between the host and a device; one of the two values is on the host.
  void transfer(ValueId to, ValueId from);

  PlanFunction& function() { return function_; }
  const PlanFunction& function() const { return function_; }
  PlanFunction finish() && { return std::move(function_); }

 private:
  // A transfer that may still go on.
  struct Transfer {
    ValueId event;
    Device device;
    ValueId on_host;
    bool writes_host;
  };

  ValueId add_value(PlanValue value);
  Step& append(StepKind kind, std::vector<ValueId> results, std::vector<ValueId> operands,
               int64_t number);
  bool needs(const Transfer& t, StepKind kind, const std::vector<ValueId>& results,
             const std::vector<ValueId>& operands) const;
  // Waits for a transfer, and with it for those of the same device that have begun before it.
  void wait_for(size_t transfer);

  PlanFunction function_;
  std::unordered_map<int32_t, ValueId> constants_;
  std::vector<Transfer> transfers_;  // in the order in which they begin
};

}  // namespace relay::plan
