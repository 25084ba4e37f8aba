#include "node/walk.h"
#include "plan/function_planner.h"
#include "runtime/core/immediate.h"

namespace relay::plan {

FunctionPlanner::Bound FunctionPlanner::bound(const Expr& e) {
  if (e == self_) return {object(e)};
  if (isa<VarNode>(e)) {
    auto it = bound_.find(e.get());
    RELAY_CHECK(it != bound_.end(), "a variable without a value");
    return it->second;
  }
  if (auto* c = as<ConstantNode>(e)) {
    return {w_.constant(program_.constant(c->data, Device::cpu()), e->type, Device::cpu())};
  }
  if (isa<GlobalVarNode>(e) || isa<ConstructorNode>(e)) return {object(e)};
  if (auto* t = as<TupleNode>(e); t != nullptr && t->fields.empty()) return {};
  if (isa<OpNode>(e))
    unsupported(e->span, "an operator is not a value", "wrap it: fn (%x) { op(%x) }");
  RELAY_CHECK(false, "an operand that is not a leaf");
}

void FunctionPlanner::bind(const Var& v, Bound to) {
  std::vector<std::pair<const Bound*, std::string>> stack{{&to, v->name_hint}};
  while (!stack.empty()) {
    auto [b, name] = std::move(stack.back());
    stack.pop_back();
    if (!b->is_tuple()) w_.name(b->value, name);
    for (size_t i = 0; i < b->fields.size(); ++i) {
      stack.emplace_back(&b->fields[i], name + "." + std::to_string(i));
    }
  }
  set_devices(v, to);
  bound_[v.get()] = std::move(to);
}

ValueId FunctionPlanner::object(const Expr& e) {
  if (self_ && e == self_) {
    std::vector<ValueId> captured;
    for (const Var& v : captured_) captured.push_back(object(v));
    return w_.add_object(StepKind::closure, captured, index_, e->type);
  }
  if (auto* g = as<GlobalVarNode>(e)) {
    return w_.add_object(StepKind::closure, {}, program_.global(*g), e->type);
  }
  if (auto* c = as<ConstructorNode>(e)) {
    if (c->inputs.empty()) {
      return w_.add_object(StepKind::data, {}, static_cast<int64_t>(c->tag), e->type);
    }
    ValueId r = w_.object(e->type);
    w_.add(StepKind::closure, {r}, {}, program_.constructor_function(*c));
    return r;
  }
  return object(bound(e), e->type);
}

ValueId FunctionPlanner::object(const Bound& b, const Type& type) {
  if (b.is_tuple()) {
    auto* t = as<TupleTypeNode>(type);
    std::vector<ValueId> fields;
    for (size_t i = 0; i < b.fields.size(); ++i) {
      fields.push_back(object(b.fields[i], t->fields[i]));
    }
    return w_.add_object(StepKind::tuple, fields, 0, type);
  }
  const Device device = w_.device_of(b.value);
  auto dtype = register_dtype(type, device);
  switch (w_.place_of(b.value)) {
    case Place::object:
      break;
    case Place::scalar:
      return w_.box(b.value, *dtype, type);
    case Place::constant: {
      if (dtype && runtime::is_immediate_dtype(*dtype)) {
        auto index = static_cast<size_t>(w_.value(b.value).index);
        return w_.box(w_.number(scalar_bits(program_.program().constants[index])), *dtype, type);
      }
      ValueId r = w_.add_object(StepKind::constant, {b.value}, 0, type);
      w_.set_device(r, device);
      return r;
    }
    case Place::open:
    case Place::arena:
    case Place::output: {
      // A buffer of the frame that turns out to be needed as a value: a copy of its own.
      ValueId r = is_static_tensor(type) ? w_.add_object(StepKind::alloc, {}, 0, type)
                                         : open_object(*as<TensorTypeNode>(type), {}, device);
      w_.set_device(r, device);
      w_.add(StepKind::copy, {r}, {b.value});
      return r;
    }
  }
  return b.value;
}

ValueId FunctionPlanner::scalar(const Expr& e) {
  if (auto* c = as<ConstantNode>(e)) return w_.number(scalar_bits(c->data));
  Bound b = bound(e);
  if (w_.place_of(b.value) == Place::scalar) return b.value;
  auto [it, fresh] = scalars_.emplace(e.get(), -1);
  if (fresh) {
    scalar_trail_.push_back(e.get());
    it->second = w_.load(b.value, *scalar_dtype(e->type), e->type);
  }
  return it->second;
}

ValueId FunctionPlanner::scalar(const Bound& b, const Type& type) {
  if (w_.place_of(b.value) == Place::scalar) return b.value;
  return w_.load(b.value, *scalar_dtype(type), type);
}

void FunctionPlanner::forget_scalars(size_t mark) {
  for (; scalar_trail_.size() > mark; scalar_trail_.pop_back()) {
    scalars_.erase(scalar_trail_.back());
  }
}

void FunctionPlanner::tensors_of(const Expr& arg, std::vector<ValueId>& out, Device device) {
  Bound b = bound(arg);
  if (device != Device::cpu()) return tensors_of(on_device(b, arg->type, device), arg->type, out);
  // The value of a scalar may have no memory that a kernel could read.
  auto is_value = [&](ValueId id, const Type& type) {
    return w_.place_of(id) == Place::object && scalar_dtype(type);
  };
  if (!b.is_tuple() && is_value(b.value, arg->type)) return out.push_back(scalar(arg));
  const size_t first = out.size();
  tensors_of(b, arg->type, out);
  if (!isa<TupleTypeNode>(arg->type)) return;
  const auto types = *flatten_tensor_types(arg->type);
  for (size_t i = 0; i < types.size(); ++i) {
    ValueId& id = out[first + i];
    if (is_value(id, types[i])) id = scalar(Bound{id}, types[i]);
  }
}

void FunctionPlanner::tensors_of(const Bound& b, const Type& type, std::vector<ValueId>& out) {
  if (auto* t = as<TupleTypeNode>(type)) {
    for (size_t i = 0; i < t->fields.size(); ++i) {
      tensors_of(field(b, type, i), t->fields[i], out);
    }
    return;
  }
  out.push_back(b.value);
}

FunctionPlanner::Bound FunctionPlanner::field(const Bound& tuple, const Type& type, size_t index,
                                              Domain* where) {
  if (tuple.is_tuple()) return tuple.fields[index];
  auto* t = as<TupleTypeNode>(type);
  const Type of_field = t == nullptr ? nullptr : t->fields[index];
  Bound out{w_.add_object(StepKind::field, {tuple.value}, static_cast<int64_t>(index), of_field)};
  if (where != nullptr && of_field && isa<TensorTypeNode>(of_field)) {
    w_.set_device(out.value, DeviceDomains::device(DeviceDomains::part(where, index)));
  }
  return out;
}

std::vector<ValueId> FunctionPlanner::dim_values(const TensorTypeNode& t, const Span& span) {
  std::vector<ValueId> dims;
  for (const Dim& d : t.shape) dims.push_back(dim_value(d, span));
  return dims;
}

ValueId FunctionPlanner::open_object(const TensorTypeNode& t, const Span& span, Device device) {
  std::vector<ValueId> dims = dim_values(t, span);
  ValueId r = w_.object(Type(&t));
  w_.set_device(r, device);
  w_.add(StepKind::alloc_sized, {r}, std::move(dims)).dtype = t.dtype;
  if (in_loop_) loop_tensors_.insert(r);
  return r;
}

bool FunctionPlanner::sizes_are_parameters(const TensorTypeNode& t) const {
  bool known = true;
  for (const Dim& d : t.shape) {
    post_order(
        d,
        [&](const Node& n) {
          auto* v = as<DimVarNode>(&n);
          known =
              known && !isa<DimAnyNode>(&n) && (v == nullptr || entry_dims_.contains(v->var.get()));
        },
        family::dim);
  }
  return known;
}

FunctionPlanner::Bound FunctionPlanner::fresh(const Type& type, bool as_object, const Span& span,
                                              Device device) {
  if (auto* t = as<TupleTypeNode>(type)) {
    Bound b;
    for (const Type& f : t->fields) b.fields.push_back(fresh(f, as_object, span, device));
    return b;
  }
  auto* t = as<TensorTypeNode>(type);
  RELAY_CHECK(t != nullptr);
  if (!is_static_tensor(type)) {
    if (as_object || !has_places_ || !sizes_are_parameters(*t))
      return {open_object(*t, span, device)};
    std::vector<ValueId> dims = dim_values(*t, span);
    ValueId r = w_.in_place(TensorType(t), device);
    w_.add(StepKind::place, {r}, std::move(dims)).dtype = t->dtype;
    return {r};
  }
  if (as_object) {
    ValueId r = w_.add_object(StepKind::alloc, {}, 0, type);
    w_.set_device(r, device);
    if (in_loop_) loop_tensors_.insert(r);
    return {r};
  }
  return {w_.in_buffer(w_.buffer(bytes_of(type), device), type)};
}

FunctionPlanner::Bound FunctionPlanner::results_of(const Node* v, const Type& type, bool as_object,
                                                   const Span& span, Device device) {
  auto claimed = claimed_.find(v);
  auto place = [&](size_t result, const Type& t, bool object) {
    const int32_t output = claimed == claimed_.end() ? kNoOutput : claimed->second[result];
    return output == kNoOutput ? fresh(t, object, span, device)
                               : Bound{outputs_[static_cast<size_t>(output)]};
  };
  auto* t = as<TupleTypeNode>(type);
  if (t == nullptr) return place(0, type, as_object);
  Bound b;
  for (size_t i = 0; i < t->fields.size(); ++i) {
    b.fields.push_back(place(i, t->fields[i], as_object || escapes(v, i)));
  }
  return b;
}

}  // namespace relay::plan
