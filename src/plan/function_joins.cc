#include <utility>

#include "plan/function_planner.h"

namespace relay::plan {

int32_t FunctionPlanner::sub_buffer(int32_t whole, const std::vector<int64_t>& around,
                                    const Type& part, const Position& at) {
  const std::vector<int64_t>& gaps = w_.function().buffer(whole).within;
  std::vector<int64_t> memory = gaps.empty() ? around : gaps;
  auto& type = *as<TensorTypeNode>(part);
  int64_t offset = at.begin * stride_of(memory, at.axis) * static_cast<int64_t>(type.dtype.bytes());
  if (gaps.empty() && is_outermost(around, at.axis)) memory.clear();
  int64_t bytes = memory.empty() ? bytes_of(part) : bytes_within(type, memory);
  // The strides of an empty array can lead out of it: what has no elements is at its beginning.
  if (bytes == 0) offset = 0;
  return w_.sub_buffer(
      {.bytes = bytes, .whole = whole, .offset = offset, .within = std::move(memory)});
}

int32_t FunctionPlanner::buffer_inside(const Var& v) {
  // The values that it is part of, from the innermost to the first that has a buffer.
  std::vector<Joins::Inside> around;
  const Node* at = v.get();
  for (auto in = joins_.inside.find(at); in != joins_.inside.end(); in = joins_.inside.find(at)) {
    at = in->second.whole.get();
    around.push_back(in->second);
    if (joined_buffers_.contains(at)) break;
  }
  auto inside = [&](const Joins::Inside& in, const Type& part) {
    return sub_buffer(joined_buffers_.at(in.whole.get()), shape_of(in.whole->type), part, in.at);
  };
  for (size_t i = around.size(); i-- > 0;) {
    const Var& whole = around[i].whole;
    if (joined_buffers_.contains(whole.get())) continue;
    int32_t buffer = i + 1 < around.size()
                         ? inside(around[i + 1], whole->type)
                         : w_.buffer(bytes_of(whole->type), program_.placement().device_of(whole));
    joined_buffers_[whole.get()] = buffer;
  }
  return inside(around.front(), v->type);
}

FunctionPlanner::Bound FunctionPlanner::join(const LetNode& l, const CallNode& c) {
  const Joins::Joined& join = joins_.joined.at(l.var.get());
  int32_t buffer = joined_buffers_.at(l.var.get());
  std::vector<int64_t> whole = shape_of(l.var->type);
  std::vector<std::vector<int64_t>> parts;
  for (const Expr& a : c.args) parts.push_back(shape_of(a->type));
  Position to{axis_of(whole, parts)};
  const Device device = program_.placement().device_of(l.var);
  std::vector<ValueId> inside;
  for (size_t i = 0; i < c.args.size(); ++i) {
    // A constant is copied to the device of the joined value.
    ValueId part = on_device(bound(c.args[i]), c.args[i]->type, device).value;
    auto in = joins_.inside.find(c.args[i].get());
    bool there = i < join.continued ||
                 (in != joins_.inside.end() && in->second.whole == l.var && in->second.at == to);
    if (!there) {
      const Type& type = c.args[i]->type;
      ValueId from = std::exchange(part, w_.in_buffer(sub_buffer(buffer, whole, type, to), type));
      copy(part, from, type);
    }
    inside.push_back(part);
    to.begin += parts[i].size() == whole.size() ? parts[i][to.axis] : 1;
  }
  ValueId joined = w_.in_buffer(buffer, l.var->type);
  w_.add(StepKind::join, {joined}, std::move(inside));
  return {joined};
}

void FunctionPlanner::copy(ValueId to, ValueId from, const Type& type) {
  Within around = within(std::span(&from, 1), std::span(&to, 1));
  if (around.empty()) {
    w_.add(StepKind::copy, {to}, {from});
  } else {
    int32_t kernel = program_.lowered().copy(type, w_.device_of(to));
    invoke(program_.kernel(kernel, {Span().describe(), ""}, {.within = around}), {from}, {to}, {});
  }
}

Within FunctionPlanner::within(std::span<const ValueId> inputs,
                               std::span<const ValueId> outputs) const {
  Within shapes;
  bool gaps = false;
  auto add = [&](ValueId id) {
    bool in_arena = w_.place_of(id) == Place::arena;
    shapes.push_back(in_arena ? w_.buffer_of(id).within : std::vector<int64_t>{});
    gaps |= !shapes.back().empty();
  };
  for (ValueId id : inputs) add(id);
  for (ValueId id : outputs) add(id);
  if (!gaps) shapes.clear();
  return shapes;
}

std::optional<FunctionPlanner::Bound> FunctionPlanner::cut(const LetNode& l, const CallNode& c,
                                                           const FunctionNode& f) {
  if (memory_of(f) != Memory::Cut || escapes_.contains(l.var.get())) return std::nullopt;
  Bound source = bound(c.args[0]);
  auto types = flatten_tensor_types(f.body->type);
  if (source.is_tuple() || w_.place_of(source.value) != Place::arena || !types) return std::nullopt;
  const Expr& uncut = as<CallNode>(f.body)->args[0];
  std::vector<int64_t> whole = shape_of(uncut->type);
  std::vector<std::vector<int64_t>> parts;
  for (const TensorType& t : *types) parts.push_back(*t->const_shape());
  Position at{axis_of(whole, parts)};
  bool in_gaps = !w_.buffer_of(source.value).within.empty();
  bool gaps = in_gaps || !is_outermost(whole, at.axis);
  // Behind a change of shape the gaps are elsewhere.
  if ((gaps && !joins_.read_by_kernels(l.var.get(), escapes_)) ||
      (in_gaps && uncut != f.params[0])) {
    return std::nullopt;
  }
  Bound out;
  for (size_t i = 0; i < parts.size(); ++i) {
    int32_t buffer = sub_buffer(w_.value(source.value).index, whole, (*types)[i], at);
    out.fields.push_back({w_.in_buffer(buffer, (*types)[i])});
    w_.add(StepKind::alias, {out.fields.back().value}, {source.value});
    at.begin += parts[i][at.axis];
  }
  return out;
}

}  // namespace relay::plan
