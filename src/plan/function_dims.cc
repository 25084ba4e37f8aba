#include <algorithm>

#include "ir/slot_names.h"
#include "ir/text/text.h"
#include "node/walk.h"
#include "plan/function_planner.h"

namespace relay::plan {

// What people are told about a function's parameters and results. Functions that were nested deeply
// have types of which all texts together are long.
constexpr size_t kMaxTypeText = 2000;

PlanSlot FunctionPlanner::slot(std::string name, const Type& type) const {
  bool shown = !isa<TensorTypeNode>(type) && !w_.function().internal;
  return {std::move(name), type, shown ? print_type(type, kMaxTypeText) : std::string()};
}

namespace {

// Of a tensor its device; of another value one that any tensor in it is on, other than the host if there is one.
Device slot_device(Domain* d, const Type& type) {
  for (Device device : Placement::devices_of(d, type)) {
    if (device != Device::cpu()) return device;
  }
  return Device::cpu();
}

}  // namespace

void FunctionPlanner::declare_params() {
  auto declare = [&](const Var& v, const std::string& name) {
    PlanSlot taken = slot(name, v->type);
    taken.device = slot_device(program_.placement().domain(v), v->type);
    bound_[v.get()] = {w_.param(std::move(taken))};
  };
  for (const Var& v : captured_) declare(v, v->name_hint);
  for (const Var& v : f_->params) declare(v, parameter_name(*f_.get(), *v.get()));
  declare_results();
  // Sizes of parameters may change from one iteration to the next.
  if (is_loop()) begin_loop();
  std::vector<Var> given = captured_;
  given.insert(given.end(), f_->params.begin(), f_->params.end());
  for (const Var& v : given) bind_dims(v);
  for (const Var& v : given) bind_field_dims(v);
  for (const Var& v : given) bind_shifted_dims(v);
  for (const auto& [name, value] : dims_) entry_dims_.insert(name);
  has_places_ = program_.has_places(w_.function(), index_);
  if (w_.function().internal) return;
  for (const Var& v : f_->params) {
    if (auto* t = as<TensorTypeNode>(v->type)) {
      check_dims(*t, v, [&] { return bound_.at(v.get()).value; });
    }
  }
  check_ranges();
}

void FunctionPlanner::check_ranges() {
  std::vector<SizeHint> hints = size_hints(*f_.get());
  for (const TypeVar& v : f_->type_params) {
    auto hint = std::ranges::find(hints, v->name_hint, &SizeHint::name);
    auto size = dims_.find(v.get());
    if (hint == hints.end() || !hint->has_range() || size == dims_.end()) continue;
    std::string otherwise = "dimension " + hint->name + " is not in " + std::to_string(hint->low) +
                            ".." + std::to_string(hint->high) +
                            ", for which the program was compiled";
    const std::vector<ValueId> shown{size->second};
    require(IntOp::le, w_.number(hint->low), size->second, otherwise, f_->span, shown);
    require(IntOp::le, size->second, w_.number(hint->high), otherwise, f_->span, shown);
  }
}

void FunctionPlanner::declare_results() {
  const Type& type = f_->body->type;
  std::vector<PlanSlot>& results = w_.function().results;
  auto name = [&](size_t i) { return result_name(*f_.get(), i); };
  auto leaves = flatten_tensor_types(type);
  Domain* where = program_.placement().result(*f_.get());
  const std::vector<Device> devices = Placement::devices_of(where, type);
  if (!leaves) {
    results.push_back(slot(name(0), type));
    results.back().device = slot_device(where, type);
    return;
  }
  for (size_t i = 0; i < leaves->size(); ++i) {
    results.push_back(slot(name(i), (*leaves)[i]));
    results.back().device = devices[i];
    if (writes_outputs_) {
      outputs_.push_back(w_.output(static_cast<int32_t>(i), (*leaves)[i], name(i)));
    }
  }
  w_.function().returns_tuple = isa<TupleTypeNode>(type);
}

void FunctionPlanner::bind_dims(const Var& v) {
  auto* t = as<TensorTypeNode>(v->type);
  if (t == nullptr) return;
  bind_dims(*t, [&] { return bound_.at(v.get()).value; });
}

void FunctionPlanner::bind_dims(const TensorTypeNode& t, const std::function<ValueId()>& tensor) {
  for (size_t axis = 0; axis < t.shape.size(); ++axis) {
    auto* d = as<DimVarNode>(t.shape[axis]);
    if (d == nullptr || dims_.contains(d->var.get())) continue;
    ValueId r = w_.scalar(nullptr, d->var->name_hint);
    w_.add(StepKind::size, {r}, {tensor()}, static_cast<int64_t>(axis));
    dims_[d->var.get()] = r;
  }
}

void FunctionPlanner::bind_shifted_dims(const Var& v) {
  auto* t = as<TensorTypeNode>(v->type);
  for (size_t axis = 0; t != nullptr && axis < t->shape.size(); ++axis) {
    auto* sum = as<DimOpNode>(t->shape[axis]);
    if (sum == nullptr || sum->op != DimOpKind::Add) continue;
    auto* d = as<DimVarNode>(sum->a);
    auto more = as_const(sum->b);
    if (d == nullptr || !more || dims_.contains(d->var.get())) continue;
    ValueId whole = w_.scalar(nullptr, d->var->name_hint);
    w_.add(StepKind::size, {whole}, {bound_.at(v.get()).value}, static_cast<int64_t>(axis));
    ValueId size = w_.int_op(IntOp::sub, whole, w_.number(*more));
    require(IntOp::le, w_.number(0), size,
            "dimension " + d->var->name_hint + " of %" + v->name_hint + " is negative", v->span,
            {size});
    dims_[d->var.get()] = size;
  }
}

void FunctionPlanner::bind_given_dims(const Var& v) {
  if (auto* t = as<TensorTypeNode>(v->type)) {
    auto tensor = [&] { return bound_.at(v.get()).value; };
    check_dims(*t, v, tensor, /*named=*/true);
    bind_dims(*t, tensor);
  } else {
    bind_field_dims(v, /*given=*/true);
  }
}

void FunctionPlanner::bind_field_dims(const Var& v, bool given) {
  if (!isa<TupleTypeNode>(v->type)) return;
  // The parts of the tuple, each with the part that it is a field of; value -1: not loaded.
  struct Part {
    const TypeNode* type;
    size_t whole;
    size_t field;
    ValueId value;
  };
  std::vector<Part> parts{{v->type.get(), 0, 0, bound_.at(v.get()).value}};
  auto load = [&](size_t part) {
    std::vector<size_t> way;
    for (size_t i = part; parts[i].value < 0; i = parts[i].whole) way.push_back(i);
    for (; !way.empty(); way.pop_back()) {
      Part& p = parts[way.back()];
      p.value = w_.add_object(StepKind::field, {parts[p.whole].value},
                              static_cast<int64_t>(p.field), Type(p.type));
    }
    return parts[part].value;
  };
  // Types are graphs; those that are larger have no more dimensions to tell.
  constexpr size_t kMaxParts = 10000;
  for (size_t i = 0; i < parts.size(); ++i) {
    const TypeNode* type = parts[i].type;
    if (auto* t = as<TensorTypeNode>(type)) {
      if (given)
        check_dims(
            *t, v, [&] { return load(i); }, /*named=*/true);
      bind_dims(*t, [&] { return load(i); });
    }
    auto* tuple = as<TupleTypeNode>(type);
    if (tuple == nullptr || parts.size() > kMaxParts) continue;
    for (size_t k = 0; k < tuple->fields.size(); ++k) {
      parts.push_back({tuple->fields[k].get(), i, k, -1});
    }
  }
  if (w_.function().internal) return;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (auto* t = as<TensorTypeNode>(parts[i].type)) check_dims(*t, v, [&] { return load(i); });
  }
}

void FunctionPlanner::check_dims(const TensorTypeNode& t, const Var& param,
                                 const std::function<ValueId()>& tensor, bool named) {
  for (size_t axis = 0; axis < t.shape.size(); ++axis) {
    const Dim& d = t.shape[axis];
    if (!isa<DimOpNode>(d) && !(named && isa<DimVarNode>(d))) continue;
    bool known = true;
    post_order(
        d,
        [&](const Node& n) {
          auto* v = as<DimVarNode>(&n);
          known = known && (v != nullptr ? dims_.contains(v->var.get())
                                         : isa<DimConstNode>(&n) || isa<DimOpNode>(&n));
        },
        family::dim);
    if (!known) continue;
    ValueId size = w_.scalar();
    w_.add(StepKind::size, {size}, {tensor()}, static_cast<int64_t>(axis));
    const ValueId other = dim_value(d, param->span);
    require(IntOp::eq, size, other,
            "a size of '" + parameter_name(*f_.get(), *param.get()) + "' is not " + to_string(d),
            param->span, {size, other});
  }
}

void FunctionPlanner::require(IntOp comparison, ValueId a, ValueId b, const std::string& otherwise,
                              const Span& span, const std::vector<ValueId>& shown) {
  std::vector<ValueId> operands{w_.int_op(comparison, a, b)};
  operands.insert(operands.end(), shown.begin(), shown.end());
  Step& step = w_.add(StepKind::check, {}, operands);
  step.text = program_.string(otherwise);
  step.where = program_.where(span);
}

std::vector<const Node*> FunctionPlanner::bind_argument_dims(const CallNode& c,
                                                             const FunctionNode& f) {
  std::vector<const Node*> added;
  auto bind = [&](const Type& type, const std::function<ValueId()>& tensor) {
    auto* t = as<TensorTypeNode>(type);
    if (t == nullptr) return;
    for (const Dim& d : t->shape) {
      auto* size = as<DimVarNode>(d);
      if (size != nullptr && !dims_.contains(size->var.get())) added.push_back(size->var.get());
    }
    bind_dims(*t, tensor);
  };
  for (size_t i = 0; i < f.params.size(); ++i) {
    const Type& type = f.params[i]->type;
    auto* tuple = as<TupleTypeNode>(type);
    if (tuple == nullptr) {
      bind(type, [&] { return object(c.args[i]); });
      continue;
    }
    for (size_t k = 0; k < tuple->fields.size(); ++k) {
      bind(tuple->fields[k],
           [&] { return object(field(bound(c.args[i]), type, k), tuple->fields[k]); });
    }
  }
  return added;
}

ValueId FunctionPlanner::dim_value(const Dim& d, const Span& span) {
  std::unordered_map<const Node*, ValueId> done;
  post_order(
      d,
      [&](const Node& n) {
        if (auto* c = as<DimConstNode>(&n)) {
          done[&n] = w_.number(c->value);
        } else if (auto* v = as<DimVarNode>(&n)) {
          done[&n] = dim_variable(v->var, span);
        } else if (auto* o = as<DimOpNode>(&n)) {
          done[&n] = dim_op(o->op, done.at(o->a.get()), done.at(o->b.get()));
        } else {
          unsupported(span,
                      "the size of %" + now_->var->name_hint + " is known only when it is computed",
                      "a data-dependent size is not compiled yet: give the shape of the "
                      "inputs, or use the evaluator");
        }
      },
      family::dim);
  return done.at(d.get());
}

ValueId FunctionPlanner::dim_variable(const TypeVar& v, const Span& span) {
  auto it = dims_.find(v.get());
  if (it == dims_.end()) {
    unsupported(span, "the size " + v->name_hint + " cannot be read off any value here",
                "give the function a parameter, or a tuple among them, with a tensor that has " +
                    v->name_hint + " itself as a dimension: Tensor[(" + v->name_hint +
                    ",), float32]");
  }
  return it->second;
}

ValueId FunctionPlanner::dim_op(DimOpKind op, ValueId a, ValueId b) {
  switch (op) {
    case DimOpKind::Add:
      return w_.int_op(IntOp::add, a, b);
    case DimOpKind::Sub:
      return w_.int_op(IntOp::sub, a, b);
    case DimOpKind::Mul:
      return w_.int_op(IntOp::mul, a, b);
    case DimOpKind::FloorDiv:
      return w_.int_op(IntOp::floor_div, a, b);
    case DimOpKind::Mod:
      return w_.int_op(IntOp::floor_mod, a, b);
    case DimOpKind::Max:
      return w_.int_op(IntOp::max, a, b);
    case DimOpKind::Min:
      return w_.int_op(IntOp::min, a, b);
    case DimOpKind::Broadcast: {
      // Of sizes that fit: the product where one is 1, else what is the greater and no more than it.
      ValueId r = w_.scalar();
      ValueId product = w_.int_op(IntOp::mul, a, b);
      ValueId greater = w_.int_op(IntOp::max, a, b);
      w_.int_op(IntOp::min, greater, product, 64, r);
      return r;
    }
    case DimOpKind::CeilDiv: {
      // ceil(a / b) = -floor(-a / b)
      ValueId r = w_.scalar();
      ValueId zero = w_.number(0);
      w_.int_op(IntOp::sub, zero, a, 64, r);
      w_.int_op(IntOp::floor_div, r, b, 64, r);
      return w_.int_op(IntOp::sub, zero, r, 64, r);
    }
  }
  RELAY_CHECK(false, "an operation on dimensions");
}

}  // namespace relay::plan
