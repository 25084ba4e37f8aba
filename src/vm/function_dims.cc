#include "ir/text/text.h"
#include "vm/function_compiler.h"

namespace relay::vm {

// What people are told about a function's parameters and results. Functions that were nested deeply
// have types of which all texts together are long.
constexpr size_t kMaxTypeText = 2000;

std::string FunctionCompiler::type_text(const Type& type) const {
  return is_global_ ? print_type(type, kMaxTypeText) : std::string();
}

void FunctionCompiler::declare_params() {
  auto declare = [&](const Var& v, const std::string& name) {
    int32_t r = isa<TensorTypeNode>(v->type)
                    ? b_.param(name, spec_of(*as<TensorTypeNode>(v->type)))
                    : b_.param(name, type_text(v->type), parts_of(v->type));
    places_[v.get()] = Place{Place::kRegister, r, {}};
    return r;
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
  if (!is_global_) return;
  for (const Var& v : f_->params) {
    if (auto* t = as<TensorTypeNode>(v->type)) {
      check_dims(*t, v, [&] { return static_cast<int32_t>(places_.at(v.get()).index); });
    }
  }
}

void FunctionCompiler::declare_results() {
  auto name = [&](size_t i) { return result_name(*f_.get(), i); };
  auto leaves = flatten_tensor_types(f_->body->type);
  if (!leaves) {
    b_.result(name(0), type_text(f_->body->type));
    return;
  }
  for (size_t i = 0; i < leaves->size(); ++i) b_.result(name(i), spec_of(*(*leaves)[i].get()));
  if (isa<TupleTypeNode>(f_->body->type)) b_.returns_tuple();
}

void FunctionCompiler::bind_dims(const Var& v) {
  auto* t = as<TensorTypeNode>(v->type);
  if (t == nullptr) return;
  bind_dims(*t, [&] { return static_cast<int32_t>(places_.at(v.get()).index); });
}

void FunctionCompiler::bind_dims(const TensorTypeNode& t, const std::function<int32_t()>& tensor) {
  for (size_t axis = 0; axis < t.shape.size(); ++axis) {
    auto* d = as<DimVarNode>(t.shape[axis]);
    if (d == nullptr || dim_regs_.contains(d->var.get())) continue;
    int32_t r = b_.int_reg();
    b_.shape_of(r, tensor(), static_cast<int32_t>(axis));
    dim_regs_[d->var.get()] = r;
  }
}

void FunctionCompiler::bind_given_dims(const Var& v) {
  if (auto* t = as<TensorTypeNode>(v->type)) {
    auto tensor = [&] { return static_cast<int32_t>(places_.at(v.get()).index); };
    check_dims(*t, v, tensor, /*named=*/true);
    bind_dims(*t, tensor);
  } else {
    bind_field_dims(v, /*given=*/true);
  }
}

void FunctionCompiler::bind_field_dims(const Var& v, bool given) {
  if (!isa<TupleTypeNode>(v->type)) return;
  // The parts of the tuple, each with the part that it is a field of; -1: not loaded.
  struct Part {
    const TypeNode* type;
    size_t whole;
    int32_t field, reg;
  };
  std::vector<Part> parts{{v->type.get(), 0, 0, static_cast<int32_t>(places_.at(v.get()).index)}};
  auto load = [&](size_t part) {
    std::vector<size_t> way;
    for (size_t i = part; parts[i].reg < 0; i = parts[i].whole) way.push_back(i);
    for (; !way.empty(); way.pop_back()) {
      Part& p = parts[way.back()];
      p.reg = b_.reg();
      b_.get_field(p.reg, parts[p.whole].reg, p.field);
    }
    return parts[part].reg;
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
      parts.push_back({tuple->fields[k].get(), i, static_cast<int32_t>(k), -1});
    }
  }
  if (!is_global_) return;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (auto* t = as<TensorTypeNode>(parts[i].type)) check_dims(*t, v, [&] { return load(i); });
  }
}

void FunctionCompiler::check_dims(const TensorTypeNode& t, const Var& param,
                                  const std::function<int32_t()>& tensor, bool named) {
  for (size_t axis = 0; axis < t.shape.size(); ++axis) {
    const Dim& d = t.shape[axis];
    if (!isa<DimOpNode>(d) && !(named && isa<DimVarNode>(d))) continue;
    bool known = true;
    post_order(
        d,
        [&](const Node& n) {
          auto* v = as<DimVarNode>(&n);
          known = known && (v != nullptr ? dim_regs_.contains(v->var.get())
                                         : isa<DimConstNode>(&n) || isa<DimOpNode>(&n));
        },
        family::dim);
    if (!known) continue;
    int32_t size = b_.int_reg();
    b_.shape_of(size, tensor(), static_cast<int32_t>(axis));
    require(IntOp::eq, size, dim_value(d, param->span),
            "a size of '" + parameter_name(*f_.get(), *param.get()) + "' is not " + to_string(d),
            param->span);
  }
}

void FunctionCompiler::require(IntOp comparison, int32_t a, int32_t b, const std::string& otherwise,
                               const Span& span) {
  int32_t holds = int_result(comparison, a, b);
  FunctionBuilder::Label broken = b_.label(), end = b_.label();
  b_.if_zero(holds, broken);
  b_.jump(end);
  b_.bind(broken);
  b_.fatal(program_.string(otherwise), span ? program_.string(span.describe()) : -1);
  b_.bind(end);
}

std::vector<const Node*> FunctionCompiler::bind_argument_dims(const CallNode& c,
                                                              const FunctionNode& f) {
  std::vector<const Node*> bound;
  auto bind = [&](const Type& type, const std::function<int32_t()>& tensor) {
    auto* t = as<TensorTypeNode>(type);
    if (t == nullptr) return;
    for (const Dim& d : t->shape) {
      auto* size = as<DimVarNode>(d);
      if (size != nullptr && !dim_regs_.contains(size->var.get())) bound.push_back(size->var.get());
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
      bind(tuple->fields[k], [&] {
        return object(field(place_of(c.args[i]), static_cast<int64_t>(k)), tuple->fields[k],
                      c.span);
      });
    }
  }
  return bound;
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
    unsupported(span, "the size " + v->name_hint + " cannot be read off any value here",
                "give the function a parameter, or a tuple among them, with a tensor that has " +
                    v->name_hint + " itself as a dimension: Tensor[(" + v->name_hint +
                    ",), float32]");
  }
  return it->second;
}

int32_t FunctionCompiler::int_result(IntOp op, int32_t a, int32_t b) {
  int32_t r = b_.int_reg();
  b_.int_op(op, r, a, b);
  return r;
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
    case DimOpKind::Broadcast:
      // Of sizes that fit: the product where one is 1, else what is the greater and no more than it.
      b_.int_op(IntOp::min, r, int_result(IntOp::max, a, b), int_result(IntOp::mul, a, b));
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
