#include "vm/function_compiler.h"

namespace relay::vm {

void FunctionCompiler::declare_params() {
  auto declare = [&](const Var& v, const std::string& name) {
    int32_t r = isa<TensorTypeNode>(v->type) ? b_.param(name, spec_of(*as<TensorTypeNode>(v->type)))
                                             : b_.param(name, to_string(v->type));
    places_[v.get()] = Place{Place::kRegister, r, {}};
    return r;
  };
  for (const Var& v : captured_) declare(v, v->name_hint);
  for (const Var& v : f_->params) declare(v, parameter_name(*f_.get(), *v.get()));
  declare_results();
  // Sizes of parameters may change from one iteration to the next.
  if (is_loop()) begin_loop();
  for (const Var& v : captured_) bind_dims(v);
  for (const Var& v : f_->params) bind_dims(v);
}

void FunctionCompiler::declare_results() {
  auto name = [&](size_t i) { return result_name(*f_.get(), i); };
  auto leaves = flatten_tensor_types(f_->body->type);
  if (!leaves) {
    b_.result(name(0), to_string(f_->body->type));
    return;
  }
  for (size_t i = 0; i < leaves->size(); ++i) b_.result(name(i), spec_of(*(*leaves)[i].get()));
  if (isa<TupleTypeNode>(f_->body->type)) b_.returns_tuple();
}

void FunctionCompiler::bind_dims(const Var& v) {
  auto* t = as<TensorTypeNode>(v->type);
  if (t == nullptr) return;
  for (size_t axis = 0; axis < t->shape.size(); ++axis) {
    auto* d = as<DimVarNode>(t->shape[axis]);
    if (d == nullptr || dim_regs_.contains(d->var.get())) continue;
    int32_t r = b_.int_reg();
    b_.shape_of(r, static_cast<int32_t>(places_.at(v.get()).index), static_cast<int32_t>(axis));
    dim_regs_[d->var.get()] = r;
  }
}

int32_t FunctionCompiler::dim_value(const Dim& d, const Span& span) {
  std::unordered_map<const Node*, int32_t> done;
  post_order(
      d,
      [&](const Node& n) {
        if (auto* c = as<DimConstNode>(&n)) {
          int32_t r = b_.int_reg();
          b_.load_int(r, c->value);
          done[&n] = r;
        } else if (auto* v = as<DimVarNode>(&n)) {
          done[&n] = dim_reg(v->var, span);
        } else if (auto* o = as<DimOpNode>(&n)) {
          done[&n] = dim_op(o->op, done.at(o->a.get()), done.at(o->b.get()));
        } else {
          unsupported(span,
                      "the size of %" + now_->var->name_hint + " is known only when it is computed",
                      "a size that only data decides is not compiled yet: give the shape of the "
                      "inputs, or use the evaluator");
        }
      },
      family::dim);
  return done.at(d.get());
}

int32_t FunctionCompiler::dim_reg(const TypeVar& v, const Span& span) {
  auto it = dim_regs_.find(v.get());
  if (it == dim_regs_.end()) {
    unsupported(span, "the dimension " + v->name_hint + " is not the size of any parameter",
                "give a parameter a dimension that is just " + v->name_hint);
  }
  return it->second;
}

int32_t FunctionCompiler::dim_op(DimOpKind op, int32_t a, int32_t b) {
  int32_t r = b_.int_reg();
  switch (op) {
    case DimOpKind::Add:
      b_.int_op(IntOp::add, r, a, b);
      break;
    case DimOpKind::Sub:
      b_.int_op(IntOp::sub, r, a, b);
      break;
    case DimOpKind::Mul:
      b_.int_op(IntOp::mul, r, a, b);
      break;
    case DimOpKind::FloorDiv:
      b_.int_op(IntOp::floor_div, r, a, b);
      break;
    case DimOpKind::Mod:
      b_.int_op(IntOp::floor_mod, r, a, b);
      break;
    case DimOpKind::Max:
      b_.int_op(IntOp::max, r, a, b);
      break;
    case DimOpKind::Min:
      b_.int_op(IntOp::min, r, a, b);
      break;
    case DimOpKind::CeilDiv: {
      // ceil(a / b) = -floor(-a / b)
      int32_t zero = b_.int_reg();
      b_.load_int(zero, 0);
      b_.int_op(IntOp::sub, r, zero, a);
      b_.int_op(IntOp::floor_div, r, r, b);
      b_.int_op(IntOp::sub, r, zero, r);
      break;
    }
  }
  return r;
}

}  // namespace relay::vm
