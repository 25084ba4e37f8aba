#include "ir/open_sizes.h"
#include "plan/function_planner.h"

namespace relay::plan {

Dim FunctionPlanner::read_size(ValueId tensor, size_t axis) {
  return named_size(w_.size(tensor, static_cast<int64_t>(axis)));
}

Dim FunctionPlanner::named_size(ValueId size) {
  TypeVar name = program_.lowered().size_name(sizes_read_++);
  dims_[name.get()] = size;
  return dim(name);
}

void FunctionPlanner::read_sizes(const CallNode& c, const FunctionNode& f) {
  sizes_read_ = 0;
  for (size_t i = 0; i < f.params.size(); ++i) {
    const Type& type = f.params[i]->type;
    if (!has_open_size(type)) continue;
    Bound arg = bound(c.args[i]);
    auto* tuple = as<TupleTypeNode>(type);
    with_sizes_named(type, [&](size_t n, size_t axis) {
      ValueId tensor =
          tuple == nullptr ? object(arg, type) : object(field(arg, type, n), tuple->fields[n]);
      return read_size(tensor, axis);
    });
  }
}

FunctionPlanner::Bound FunctionPlanner::call_sized_by_data(const CallNode& c,
                                                           const LoweredCall& lowered) {
  const Type& type = lowered.primitive->body->type;
  if (lowered.sizes < 0) {
    unsupported(c.span,
                "the size of %" + now_->var->name_hint + " is known only when it is computed",
                "no rule tells this size from the inputs: give their shapes, or use the evaluator");
  }
  if (is_view_sized_by_data(*lowered.primitive.get())) return view_sized_by_data(c, lowered);
  std::vector<ValueId> inputs, sizes, results;
  for (const Expr& a : c.args) tensors_of(a, inputs);
  std::vector<TensorType> outputs = *flatten_tensor_types(type);
  for (const TensorType& t : outputs) {
    Type vector = tensor_type(std::vector<int64_t>{t->rank()}, DType::Int(64));
    sizes.push_back(fresh(vector, true, c.span, Device::cpu()).value);
  }
  invoke(program_.kernel(lowered.sizes, lowered.site), inputs, sizes, c.span);
  for (size_t i = 0; i < outputs.size(); ++i) {
    results.push_back(w_.object(outputs[i]));
    w_.add(StepKind::alloc_from_shape, {results.back()}, {sizes[i]}).dtype = outputs[i]->dtype;
  }
  with_sizes_named(type, [&](size_t n, size_t axis) { return read_size(results[n], axis); });
  invoke(program_.kernel(lowered.kernel, lowered.site), std::move(inputs), results, c.span);
  const Type& named = lowered.sized->body->type;
  if (isa<TensorTypeNode>(named)) return {results[0]};
  Bound tuple;
  for (ValueId r : results) tuple.fields.push_back({r});
  if (!escapes_.contains(now_->var.get())) return tuple;
  return {object(tuple, named)};
}

FunctionPlanner::Bound FunctionPlanner::view_sized_by_data(const CallNode& c,
                                                           const LoweredCall& lowered) {
  const Type& type = lowered.primitive->body->type;
  const auto rank = static_cast<int64_t>(as<TensorTypeNode>(type)->shape.size());
  std::vector<ValueId> inputs;
  for (const Expr& a : c.args) tensors_of(a, inputs);
  const Type vector = tensor_type(std::vector<int64_t>{rank}, DType::Int(64));
  const Type number = tensor_type(std::vector<int64_t>{}, DType::Int(64));
  const int32_t memory = w_.buffer(bytes_of(vector), Device::cpu());
  ValueId sizes = w_.in_buffer(memory, vector);
  invoke(program_.kernel(lowered.sizes, lowered.site), inputs, {sizes}, c.span);
  std::vector<ValueId> operands{object(bound(c.args[0]), c.args[0]->type)};
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t bytes = bytes_of(number);
    ValueId one =
        w_.in_buffer(w_.sub_buffer({.bytes = bytes, .whole = memory, .offset = i * bytes}), number);
    w_.add(StepKind::alias, {one}, {sizes});
    operands.push_back(w_.load(one, DType::Int(64), number));
  }
  ValueId r = w_.object(lowered.sized->body->type);
  w_.add(StepKind::view, {r}, operands);
  with_sizes_named(type, [&](size_t, size_t axis) { return named_size(operands[axis + 1]); });
  return {r};
}

}  // namespace relay::plan
