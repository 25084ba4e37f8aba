#include "vm/function_compiler.h"

namespace relay::vm {

bool FunctionCompiler::emit_tail_call(const LetNode& l) {
  auto* c = as<CallNode>(l.value);
  if (c == nullptr || primitive_of(*c) || isa<ConstructorNode>(c->op)) return false;
  std::vector<int32_t> args;
  for (const Expr& a : c->args) args.push_back(object(a));
  if (auto* g = as<GlobalVarNode>(c->op)) {
    b_.tail_call(program_.global(*g), args);
  } else {
    b_.tail_invoke(object(c->op), args);
  }
  return true;
}

FunctionCompiler::Place FunctionCompiler::emit_call(const LetNode& l, const CallNode& c) {
  if (auto* f = primitive_of(c)) return emit_kernel(l, c, *f);
  RELAY_CHECK(!isa<OpNode>(c.op), "an operator call outside of a primitive function");
  std::vector<int32_t> args;
  for (const Expr& a : c.args) args.push_back(object(a));
  int32_t r = b_.reg();
  if (auto* g = as<GlobalVarNode>(c.op)) {
    b_.call(r, program_.global(*g), args);
  } else if (auto* constructor = as<ConstructorNode>(c.op)) {
    b_.alloc_adt(r, static_cast<int32_t>(constructor->tag), args);
  } else {
    b_.invoke_closure(r, object(c.op), args);
  }
  return Place{Place::kRegister, r, {}};
}

void FunctionCompiler::emit_assumptions(const FunctionNode& f) {
  post_order(
      f.body,
      [&](const Node& n) {
        auto* call = as<CallNode>(&n);
        if (call == nullptr || !isa<OpNode>(call->op)) return;
        for (const DimAssumption& s : assumptions_of(*call)) {
          bool equal = s.kind == DimAssumption::kEqual;
          int32_t a = dim_value(s.a, call->span), b = dim_value(s.b, call->span);
          int32_t holds = b_.int_reg();
          b_.int_op(equal ? IntOp::eq : IntOp::le, holds, equal ? a : b, equal ? b : a);
          FunctionBuilder::Label broken = b_.label(), end = b_.label();
          b_.if_zero(holds, broken);
          b_.jump(end);
          b_.bind(broken);
          b_.fatal(program_.string(
                       as<OpNode>(call->op)->name + ": the inputs do not fit: " + to_string(s.a) +
                       (equal ? " must equal " : " must be at least ") + to_string(s.b)),
                   call->span ? program_.string(call->span.describe()) : -1);
          b_.bind(end);
        }
      },
      family::expr);
}

FunctionCompiler::Place FunctionCompiler::emit_kernel(const LetNode& l, const CallNode& c,
                                                      const FunctionNode& f) {
  emit_assumptions(f);
  bool as_object = escapes_.contains(l.var.get());
  if (is_view(f)) {
    Place source = place_of(c.args[0]);
    if (!as_object) return source;
    auto* t = as<TensorTypeNode>(c.type);
    std::vector<int32_t> dims;
    for (const Dim& d : t->shape) dims.push_back(dim_value(d, c.span));
    int32_t r = b_.reg();
    b_.reshape(r, object(source, c.args[0]->type, c.span), dims);
    return Place{Place::kRegister, r, {}};
  }
  std::vector<Operand> operands;
  for (const Expr& a : c.args) operands_of(place_of(a), a->type, operands);
  auto claimed = claimed_.find(l.var.get());
  Place result = claimed != claimed_.end() ? Place{Place::kOutput, claimed->second, {}}
                                           : fresh(c.type, as_object, c.span);
  operands_of(result, c.type, operands);
  int32_t kernel = program_.kernel(cast<FunctionNode>(c.op));
  for (const TypeVar& v : program_.out.kernels[static_cast<size_t>(kernel)].composed.dims) {
    operands.push_back(Operand::dim(dim_reg(v, c.span)));
  }
  b_.invoke_kernel(kernel, operands);
  if (as_object && isa<TupleTypeNode>(c.type)) {
    return Place{Place::kRegister, object(result, c.type, c.span), {}};
  }
  return result;
}

}  // namespace relay::vm
