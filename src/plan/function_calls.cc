#include <algorithm>

#include "analysis/loop_kernels.h"
#include "analysis/primitives.h"
#include "node/walk.h"
#include "plan/function_planner.h"
#include "runtime/core/immediate.h"

namespace relay::plan {

bool FunctionPlanner::tail_call(const LetNode& l) {
  auto* c = as<CallNode>(l.value);
  if (c == nullptr || primitive_of(*c) || isa<ConstructorNode>(c->op)) return false;
  if (calls_itself(*c)) {
    next_iteration(*c);
    return true;
  }
  if (closure_made_by(*c)) return false;
  std::vector<ValueId> args;
  for (size_t i = 0; i < c->args.size(); ++i) args.push_back(object_operand(*c, i, c->args[i]));
  if (auto* g = as<GlobalVarNode>(c->op)) {
    w_.add(StepKind::tail_call, {}, args, program_.global(*g));
  } else {
    args.insert(args.begin(), object(c->op));
    w_.add(StepKind::tail_invoke, {}, args);
  }
  return true;
}

std::optional<int32_t> FunctionPlanner::closure_made_by(const CallNode& c) {
  auto* g = as<GlobalVarNode>(c.op);
  return g == nullptr ? std::nullopt : program_.closure_of(program_.global(*g));
}

FunctionPlanner::Bound FunctionPlanner::call(const LetNode& l, const CallNode& c) {
  if (auto* f = primitive_of(c)) {
    if (is_device_copy(*f)) return device_copy(l, c, *f);
    const LoweredCall& lowered = program_.lowered().call(*f);
    if (const ScalarForm* form = program_.scalar_form(lowered.kernel)) {
      std::vector<ValueId> inputs;
      for (const Expr& a : c.args) inputs.push_back(scalar(a));
      return {write_scalar_form(*form, w_, inputs,
                                [&](const std::string& text) { return program_.string(text); })};
    }
    std::vector<const Node*> dims = bind_argument_dims(c, *f);
    read_sizes(c, *f);
    TypeParams sizes;
    for (const Dim& size : lowered.named) {
      const Dim name = named_size(dim_value(size, c.span));
      sizes.emplace(as<DimVarNode>(name)->var.get(), size);
    }
    const Type& type = lowered.primitive->body->type;
    Bound result = call_kernel(l, c, lowered, with_type_params(type, sizes));
    // The dimensions are read on this way through the program only.
    for (const Node* d : dims) dims_.erase(d);
    return result;
  }
  RELAY_CHECK(!isa<OpNode>(c.op), "an operator call outside of a primitive function");
  std::vector<ValueId> args;
  if (calls_itself(c)) {
    for (const Var& v : captured_) args.push_back(object(v));
  }
  for (size_t i = 0; i < c.args.size(); ++i) args.push_back(object_operand(c, i, c.args[i]));
  ValueId r = w_.object(c.type);
  if (calls_itself(c)) {
    w_.add(StepKind::call, {r}, args, index_).where = program_.where(c.span);
  } else if (auto made = closure_made_by(c)) {
    w_.add(StepKind::closure, {r}, args, *made);
  } else if (auto* g = as<GlobalVarNode>(c.op)) {
    w_.add(StepKind::call, {r}, args, program_.global(*g)).where = program_.where(c.span);
  } else if (auto* constructor = as<ConstructorNode>(c.op)) {
    w_.add(StepKind::data, {r}, args, static_cast<int64_t>(constructor->tag));
  } else {
    args.insert(args.begin(), object(c.op));
    w_.add(StepKind::invoke, {r}, args).where = program_.where(c.span);
  }
  return {r};
}

std::optional<ValueId> FunctionPlanner::check_assumptions(const FunctionNode& f) {
  std::optional<ValueId> all_equal;
  const bool of_loop = is_loop_kernel(f);
  post_order(
      f.body,
      [&](const Node& n) {
        auto* call = as<CallNode>(&n);
        if (call == nullptr || !isa<OpNode>(call->op)) return;
        for (const DimAssumption& s : assumptions_of(*call)) {
          // A loop asks for these where it needs them: it may end before.
          if (of_loop && s.kind == DimAssumption::kAtLeast) continue;
          ValueId a = dim_value(s.a, call->span), b = dim_value(s.b, call->span);
          std::string otherwise =
              as<OpNode>(call->op)->name + ": the inputs do not fit: " + to_string(s);
          if (s.kind != DimAssumption::kBroadcast) {
            bool equal = s.kind == DimAssumption::kEqual;
            require(equal ? IntOp::eq : IntOp::le, equal ? a : b, equal ? b : a, otherwise,
                    call->span, {a, b});
            continue;
          }
          ValueId one = w_.number(1);
          ValueId equal = w_.int_op(IntOp::eq, a, b);
          ValueId b_is_one = w_.int_op(IntOp::eq, b, one);
          ValueId a_is_one = w_.int_op(IntOp::eq, a, one);
          ValueId is_one = w_.int_op(IntOp::either, a_is_one, b_is_one);
          require(IntOp::eq, w_.int_op(IntOp::either, equal, is_one), one, otherwise, call->span,
                  {a, b});
          all_equal = all_equal ? w_.int_op(IntOp::both, *all_equal, equal) : equal;
        }
      },
      family::expr);
  return all_equal;
}

std::optional<FunctionPlanner::Bound> FunctionPlanner::update(const CallNode& c,
                                                              const FunctionNode& f) {
  auto args = operator_args(c, f);
  if (!args) return std::nullopt;
  Bound data = bound((*args)[0]);
  if (data.is_tuple() || w_.place_of(data.value) != Place::object) return std::nullopt;
  add_update(w_.object(c.type), *args, c.span);
  return Bound{w_.function().steps.back().results[0]};
}

void FunctionPlanner::add_update(ValueId result, const std::vector<Expr>& args, const Span& span) {
  ValueId data = bound(args[0]).value, start = scalar(args[2]);
  w_.add(StepKind::update, {result}, {data, start, bound(args[1]).value}).where =
      program_.where(span);
}

FunctionPlanner::Bound FunctionPlanner::write_over(const Donation& donation, const CallNode& c,
                                                   const LoweredCall& lowered) {
  const Function& f = lowered.primitive;
  const Var& param = f_->params[static_cast<size_t>(donation.param)];
  ValueId result = w_.alias(bound_.at(param.get()).value, f->body->type);
  auto args = is_update(*f.get()) ? operator_args(c, *f.get()) : std::nullopt;
  if (args && (*args)[0] == param) {
    add_update(result, *args, c.span);
    return {result};
  }
  std::vector<ValueId> inputs;
  for (const Expr& a : c.args) tensors_of(a, inputs);
  VariantRequest request{.within = within(inputs, std::span(&result, 1))};
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!w_.same_place(inputs[i], result)) continue;
    const InPlace pair{.input = i};
    Aliasing how = program_.lowered().provider()->aliasing(lowered.kernel, pair);
    if (how == Aliasing::written_over) request.in_place = {pair};
  }
  invoke(program_.kernel(lowered.kernel, lowered.site, request), inputs, {result}, c.span);
  return {result};
}

std::optional<FunctionPlanner::Bound> FunctionPlanner::write_over_inputs(
    const LetNode& l, const CallNode& c, const LoweredCall& lowered, std::vector<ValueId> inputs) {
  const KernelProvider& kernels = *program_.lowered().provider();
  const Node* v = l.var.get();
  const Type& type = lowered.primitive->body->type;
  auto* tuple = as<TupleTypeNode>(type);
  const std::vector<Type> types = tuple == nullptr ? std::vector<Type>{type} : tuple->fields;
  auto is_tuple = [](const Type& t) { return isa<TupleTypeNode>(t); };
  if (std::ranges::any_of(types, is_tuple)) return std::nullopt;
  const bool updated = updated_.contains(v), as_object = escapes_.contains(v) || updated;
  // Arguments are inputs, one each, where none is a tuple.
  const bool plain = std::ranges::none_of(c.args, is_tuple, [](const Expr& a) { return a->type; });
  auto is_last_read = [&](size_t i) {
    const Node* read = c.args[i].get();
    auto reads = reads_.find(read);
    return owns_place_.contains(read) && reads != reads_.end() && reads->second == 1;
  };
  auto takes = [&](const InPlace& pair) {
    const bool object = !writes_outputs_ && w_.place_of(inputs[pair.input]) == Place::object;
    const bool leaves = as_object || escapes(v, pair.result);
    return (object || (plain && !leaves && is_last_read(pair.input))) &&
           kernels.aliasing(lowered.kernel, pair) == Aliasing::written_over;
  };
  std::vector<InPlace> taken;
  for (size_t r = 0; r < types.size(); ++r) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (std::ranges::find(taken, i, &InPlace::input) != taken.end() || !takes({i, r})) continue;
      taken.push_back({i, r});
      break;
    }
  }
  if (taken.empty()) return std::nullopt;
  // Sizes are read before a tensor changes hands, so that this is its last use.
  for (const Dim& d : kernels.signature(lowered.kernel).sizes) dim_value(d, c.span);
  Bound result;
  std::vector<ValueId> outputs;
  for (size_t r = 0; r < types.size(); ++r) {
    auto from = std::ranges::find(taken, r, &InPlace::result);
    if (from == taken.end()) {
      const bool object = as_object || escapes(v, r);
      outputs.push_back(fresh(types[r], object, c.span, Device::cpu()).value);
    } else if (ValueId& read = inputs[from->input]; w_.place_of(read) == Place::object) {
      outputs.push_back(w_.object(types[r]));
      w_.add(StepKind::update, {outputs.back()}, {read, w_.number(0)}).where =
          program_.where(c.span);
      read = outputs.back();
    } else {
      outputs.push_back(w_.alias(read, types[r]));
      w_.add(StepKind::alias, {outputs.back()}, {read});
    }
    result.fields.push_back({outputs.back()});
  }
  const VariantRequest request{.within = within(inputs, outputs), .in_place = taken};
  invoke(program_.kernel(lowered.kernel, lowered.site, request), inputs, outputs, c.span);
  if (tuple == nullptr) {
    if (w_.place_of(outputs[0]) == Place::open) owns_place_.insert(v);
    return Bound{outputs[0]};
  }
  return as_object ? Bound{object(result, type)} : result;
}

FunctionPlanner::Bound FunctionPlanner::view(const LetNode& l, const CallNode& c,
                                             const FunctionNode& f) {
  Bound source = on_device(bound(c.args[0]), c.args[0]->type, kernel_device(f));
  const Type& type = f.body->type;
  auto* t = as<TensorTypeNode>(type);
  bool is_static = t->const_shape().has_value();
  // What reads a tensor of static type asks for its data only.
  bool open = !source.is_tuple() && w_.place_of(source.value) == Place::open &&
              !updated_.contains(l.var.get());
  if ((is_static || open) && !escapes_.contains(l.var.get()) &&
      w_.place_of(source.value) != Place::scalar) {
    ValueId same = w_.alias(source.value, type);
    w_.add(StepKind::alias, {same}, {source.value});
    return {same};
  }
  std::vector<ValueId> operands{-1};
  for (const Dim& d : t->shape) operands.push_back(dim_value(d, c.span));
  ValueId r = w_.object(type);
  operands[0] = object(source, c.args[0]->type);
  w_.add(StepKind::view, {r}, operands);
  return {r};
}

namespace {

// Whether any bits are a value of the type: not of strings, which are objects.
bool can_be_unwritten(const Type& type) {
  auto* t = as<TensorTypeNode>(type);
  return t != nullptr && !t->dtype.is_string();
}

}  // namespace

FunctionPlanner::Bound FunctionPlanner::call_kernel(const LetNode& l, const CallNode& c,
                                                    const LoweredCall& lowered, const Type& type) {
  const Function& f = lowered.primitive;
  const Node* v = l.var.get();
  const Device device = kernel_device(*f.get());
  const bool on_host = device == Device::cpu();
  std::optional<ValueId> all_equal;
  if (lowered.assumes_sizes) all_equal = check_assumptions(*f.get());
  if (f->attrs.contains(attr::kUnwritten) && can_be_unwritten(type)) {
    return fresh(type, true, c.span, device);
  }
  if (is_view(*f.get())) return view(l, c, *f.get());
  if (auto donated = donations_.written.find(v); donated != donations_.written.end()) {
    return write_over(donations_.rows[donated->second], c, lowered);
  }
  if (is_update(*f.get()) && on_host) {
    if (auto updated = update(c, *f.get())) return *updated;
  }
  if (has_open_size(f->body->type)) return call_sized_by_data(c, lowered);
  if (joins_.joined.contains(v)) return join(l, c);
  if (auto parts = cut(l, c, *f.get())) return *parts;
  std::vector<ValueId> inputs, outputs;
  for (const Expr& a : c.args) tensors_of(a, inputs, device);
  if (on_host && !claimed_.contains(v) && !all_equal && lowered.versions.empty() &&
      !joins_.inside.contains(v)) {
    if (auto over = write_over_inputs(l, c, lowered, inputs)) return *over;
  }
  bool as_object =
      escapes_.contains(v) || (updated_.contains(v) && !is_static_tensor(f->body->type));
  const bool claimed = claimed_.contains(v);
  // A scalar that leaves is a value without memory of its own.
  auto scalar_type = register_dtype(f->body->type, device);
  bool as_scalar = escapes_.contains(v) && scalar_type && runtime::is_immediate_dtype(*scalar_type);
  as_object = as_object && !as_scalar;
  // What a kernel leaves beyond the bits of a scalar is not its value.
  const bool narrow = as_scalar && scalar_type->bits == 32;
  const bool in_register =
      narrow || (scalar_type && scalar_type->bits == 64 && (as_scalar || !writes_outputs_));
  const bool inside = joins_.inside.contains(v);
  Bound result = inside && !claimed ? Bound{w_.in_buffer(buffer_inside(l.var), f->body->type)}
                 : in_register && !claimed ? Bound{w_.scalar(f->body->type)}
                                           : results_of(v, type, as_object, c.span, device);
  tensors_of(result, type, outputs);
  if (!result.is_tuple() && w_.place_of(result.value) == Place::open) owns_place_.insert(v);
  const VariantRequest around{.within = within(inputs, outputs)};
  auto kernel = program_.kernel(lowered.kernel, lowered.site, around);
  size_t versions = 0;
  for (const VariantSizes& sizes : lowered.versions) {
    auto chosen = has_sizes(sizes);
    if (!chosen) continue;
    VariantRequest request = around;
    request.sizes = sizes;
    w_.add(StepKind::if_, outputs, {*chosen});
    invoke(program_.kernel(lowered.kernel, lowered.site, request), inputs, outputs, c.span);
    w_.add(StepKind::else_);
    ++versions;
  }
  if (all_equal && lowered.equal_sizes >= 0) {
    auto plain = program_.kernel(lowered.equal_sizes, lowered.site, around);
    w_.add(StepKind::if_, outputs, {*all_equal});
    invoke(plain, inputs, outputs, c.span);
    w_.add(StepKind::else_);
    invoke(kernel, inputs, outputs, c.span);
    w_.add(StepKind::end);
  } else {
    invoke(kernel, inputs, outputs, c.span);
  }
  for (; versions > 0; --versions) w_.add(StepKind::end);
  if (!result.is_tuple() && w_.place_of(result.value) == Place::scalar) {
    if (!narrow) return result;
    return {w_.int_op(IntOp::add, result.value, w_.number(0), 32)};
  }
  if (as_scalar) return {w_.load(result.value, *scalar_type, f->body->type)};
  if (as_object && isa<TupleTypeNode>(c.type)) return {object(result, f->body->type)};
  return result;
}

std::optional<ValueId> FunctionPlanner::has_sizes(const VariantSizes& sizes) {
  std::optional<ValueId> out;
  for (const auto& [all, op] : {std::pair(&sizes.known, IntOp::eq), {&sizes.at_most, IntOp::le}}) {
    for (const auto& [v, size] : *all) {
      auto it = dims_.find(v.get());
      if (it == dims_.end()) return std::nullopt;
      ValueId holds = w_.int_op(op, it->second, w_.number(size));
      out = out ? w_.int_op(IntOp::both, *out, holds) : holds;
    }
  }
  return out;
}

void FunctionPlanner::invoke(ProgramPlanner::KernelCall kernel, std::vector<ValueId> inputs,
                             std::vector<ValueId> outputs, const Span& span) {
  const ProgramKernel& k = program_.program().kernels[static_cast<size_t>(kernel.kernel)];
  for (const Dim& d : k.signature.sizes) inputs.push_back(dim_value(d, span));
  w_.add(StepKind::kernel, std::move(outputs), std::move(inputs), kernel.kernel).text = kernel.site;
}

}  // namespace relay::plan
