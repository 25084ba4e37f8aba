#include "runtime/core/immediate.h"
#include "vm/function_compiler.h"

namespace relay::vm {

FunctionCompiler::Place FunctionCompiler::place_of(const Expr& e) {
  if (e == self_) return Place{Place::kRegister, object(e), {}};
  if (isa<VarNode>(e)) {
    auto it = places_.find(e.get());
    RELAY_CHECK(it != places_.end(), "a variable without a place");
    use(it->second);
    return it->second;
  }
  if (auto* c = as<ConstantNode>(e)) return Place{Place::kConstant, program_.constant(c->data), {}};
  if (isa<GlobalVarNode>(e) || isa<ConstructorNode>(e)) {
    return Place{Place::kRegister, object(e), {}};
  }
  if (auto* t = as<TupleNode>(e); t != nullptr && t->fields.empty()) {
    return Place{Place::kTuple, 0, {}};
  }
  if (isa<OpNode>(e))
    unsupported(e->span, "an operator is not a value", "wrap it: fn (%x) { op(%x) }");
  RELAY_CHECK(false, "an operand that is no leaf");
}

void FunctionCompiler::use(const Place& p) {
  if (p.kind == Place::kBuffer) {
    buffers_[static_cast<size_t>(p.index)].last = step_;
  }
  for (const Place& f : p.fields) use(f);
}

int32_t FunctionCompiler::object(const Expr& e) {
  if (self_ && e == self_) {
    std::vector<int32_t> captured;
    for (const Var& v : captured_) captured.push_back(object(v));
    int32_t r = b_.reg();
    b_.alloc_closure(r, index_, captured);
    return r;
  }
  if (auto* g = as<GlobalVarNode>(e)) {
    int32_t r = b_.reg();
    b_.alloc_closure(r, program_.global(*g), {});
    return r;
  }
  if (auto* c = as<ConstructorNode>(e)) {
    if (c->inputs.empty()) {
      int32_t r = b_.reg();
      b_.alloc_adt(r, static_cast<int32_t>(c->tag), {});
      return r;
    }
    int32_t r = b_.reg();
    b_.alloc_closure(r, program_.constructor_function(*c), {});
    return r;
  }
  return object(place_of(e), e->type, e->span);
}

int32_t FunctionCompiler::object(const Place& p, const Type& type, const Span& span) {
  switch (p.kind) {
    case Place::kRegister:
      return static_cast<int32_t>(p.index);
    case Place::kScalar: {
      int32_t r = b_.reg();
      b_.box(r, static_cast<int32_t>(p.index), *scalar_dtype(type));
      return r;
    }
    case Place::kConstant: {
      auto dtype = scalar_dtype(type);
      if (dtype && runtime::is_immediate_dtype(*dtype)) {
        int32_t bits = b_.int_reg();
        b_.load_int(bits,
                    scalar_bits(program_.out.program.constants[static_cast<size_t>(p.index)]));
        return object(Place{Place::kScalar, bits, {}}, type, span);
      }
      int32_t r = b_.reg();
      b_.load_const(r, static_cast<int32_t>(p.index));
      return r;
    }
    case Place::kTuple: {
      auto* t = as<TupleTypeNode>(type);
      std::vector<int32_t> fields;
      for (size_t i = 0; i < p.fields.size(); ++i) {
        fields.push_back(object(p.fields[i], t->fields[i], span));
      }
      int32_t r = b_.reg();
      b_.alloc_tuple(r, fields);
      return r;
    }
    case Place::kBuffer:
    case Place::kOutput: {
      // A buffer of the frame that turns out to be needed as a value: a copy of its own.
      int32_t r = b_.reg();
      b_.alloc_static(r, spec_of(*as<TensorTypeNode>(type)));
      b_.copy(Operand::reg(r), operand(p));
      return r;
    }
  }
  return 0;
}

int32_t FunctionCompiler::scalar(const Expr& e) {
  if (auto* c = as<ConstantNode>(e)) {
    int32_t r = b_.int_reg();
    b_.load_int(r, scalar_bits(c->data));
    return r;
  }
  Place p = place_of(e);
  if (p.kind == Place::kScalar) return static_cast<int32_t>(p.index);
  auto [it, fresh] = scalars_.emplace(e.get(), -1);
  if (fresh) {
    scalar_trail_.push_back(e.get());
    it->second = b_.int_reg();
    b_.load_scalar(it->second, *scalar_dtype(e->type), operand(p));
  }
  return it->second;
}

void FunctionCompiler::forget_scalars(size_t mark) {
  for (; scalar_trail_.size() > mark; scalar_trail_.pop_back()) {
    scalars_.erase(scalar_trail_.back());
  }
}

Operand FunctionCompiler::operand(const Place& p) {
  switch (p.kind) {
    case Place::kBuffer:
      return Operand::arena(p.index, buffers_[static_cast<size_t>(p.index)].bytes);
    case Place::kOutput:
      return Operand::output(p.index);
    case Place::kConstant:
      return Operand::constant(p.index);
    case Place::kScalar:
      return Operand::scalar(p.index);
    default:
      return Operand::reg(p.index);
  }
}

void FunctionCompiler::operands_of(const Expr& arg, std::vector<Operand>& out) {
  Place p = place_of(arg);
  // The value of a scalar may have no memory that a kernel could read.
  if (p.kind == Place::kRegister && scalar_dtype(arg->type)) {
    out.push_back(Operand::scalar(scalar(arg)));
  } else {
    operands_of(p, arg->type, out);
  }
}

void FunctionCompiler::operands_of(const Place& p, const Type& type, std::vector<Operand>& out) {
  if (auto* t = as<TupleTypeNode>(type)) {
    for (size_t i = 0; i < t->fields.size(); ++i) {
      operands_of(field(p, static_cast<int64_t>(i)), t->fields[i], out);
    }
    return;
  }
  out.push_back(operand(p));
}

FunctionCompiler::Place FunctionCompiler::field(const Place& tuple, int64_t index) {
  if (tuple.kind == Place::kTuple) return tuple.fields[static_cast<size_t>(index)];
  int32_t r = b_.reg();
  b_.get_field(r, static_cast<int32_t>(tuple.index), static_cast<int32_t>(index));
  return Place{Place::kRegister, r, {}};
}

FunctionCompiler::Place FunctionCompiler::fresh(const Type& type, bool as_object,
                                                const Span& span) {
  if (auto* t = as<TupleTypeNode>(type)) {
    Place p{Place::kTuple, 0, {}};
    for (const Type& f : t->fields) p.fields.push_back(fresh(f, as_object, span));
    return p;
  }
  auto* t = as<TensorTypeNode>(type);
  RELAY_CHECK(t != nullptr);
  if (!is_static_tensor(type)) {
    std::vector<int32_t> dims;
    for (const Dim& d : t->shape) dims.push_back(dim_value(d, span));
    int32_t r = b_.reg();
    b_.alloc_tensor(r, t->dtype, dims);
    return Place{Place::kRegister, r, {}};
  }
  if (as_object) {
    int32_t r = b_.reg();
    if (loop_) loop_tensors_.insert(r);
    b_.alloc_static(r, spec_of(*t));
    return Place{Place::kRegister, r, {}};
  }
  buffers_.push_back({spec_of(*t).byte_size(), step_, step_});
  return Place{Place::kBuffer, static_cast<int64_t>(buffers_.size()) - 1, {}};
}

}  // namespace relay::vm
