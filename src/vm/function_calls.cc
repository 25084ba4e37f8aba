#include <algorithm>

#include "runtime/core/immediate.h"
#include "vm/function_compiler.h"

namespace relay::vm {

bool FunctionCompiler::emit_tail_call(const LetNode& l) {
  auto* c = as<CallNode>(l.value);
  if (c == nullptr || primitive_of(*c) || isa<ConstructorNode>(c->op)) return false;
  if (calls_itself(*c)) {
    emit_next_iteration(*c);
    return true;
  }
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
  if (auto* f = primitive_of(c)) {
    const LoweredCall& lowered = program_.lowered().call(*f);
    auto code = lowered.kernel < 0
                    ? std::nullopt
                    : ScalarCode::of(*f, program_.lowered().kernel(lowered.kernel).composed);
    if (code) {
      std::vector<int32_t> inputs;
      for (const Expr& a : c.args) inputs.push_back(scalar(a));
      return Place{Place::kScalar, code->emit(b_, inputs), {}};
    }
    std::vector<const Node*> dims = bind_argument_dims(c, *f);
    read_sizes(c, *f);
    Place result = emit_kernel(l, c, lowered);
    // The registers are set on this way through the program only.
    for (const Node* d : dims) dim_regs_.erase(d);
    return result;
  }
  RELAY_CHECK(!isa<OpNode>(c.op), "an operator call outside of a primitive function");
  std::vector<int32_t> args;
  if (calls_itself(c)) {
    for (const Var& v : captured_) args.push_back(object(v));
  }
  for (const Expr& a : c.args) args.push_back(object(a));
  int32_t r = b_.reg();
  if (calls_itself(c)) {
    b_.call(r, index_, args);
  } else if (auto* g = as<GlobalVarNode>(c.op)) {
    b_.call(r, program_.global(*g), args);
  } else if (auto* constructor = as<ConstructorNode>(c.op)) {
    b_.alloc_adt(r, static_cast<int32_t>(constructor->tag), args);
  } else {
    b_.invoke_closure(r, object(c.op), args);
  }
  return Place{Place::kRegister, r, {}};
}

std::optional<int32_t> FunctionCompiler::emit_assumptions(const FunctionNode& f) {
  std::optional<int32_t> all_equal;
  post_order(
      f.body,
      [&](const Node& n) {
        auto* call = as<CallNode>(&n);
        if (call == nullptr || !isa<OpNode>(call->op)) return;
        for (const DimAssumption& s : assumptions_of(*call)) {
          int32_t a = dim_value(s.a, call->span), b = dim_value(s.b, call->span);
          std::string otherwise =
              as<OpNode>(call->op)->name + ": the inputs do not fit: " + to_string(s);
          if (s.kind != DimAssumption::kBroadcast) {
            bool equal = s.kind == DimAssumption::kEqual;
            require(equal ? IntOp::eq : IntOp::le, equal ? a : b, equal ? b : a, otherwise,
                    call->span);
            continue;
          }
          int32_t one = b_.int_reg();
          b_.load_int(one, 1);
          int32_t equal = int_result(IntOp::eq, a, b);
          int32_t is_one = int_result(IntOp::either, int_result(IntOp::eq, a, one),
                                      int_result(IntOp::eq, b, one));
          require(IntOp::eq, int_result(IntOp::either, equal, is_one), one, otherwise, call->span);
          all_equal = all_equal ? int_result(IntOp::both, *all_equal, equal) : equal;
        }
      },
      family::expr);
  return all_equal;
}

std::optional<FunctionCompiler::Place> FunctionCompiler::emit_update(const CallNode& c,
                                                                     const FunctionNode& f) {
  std::vector<Expr> args;
  for (const Expr& a : as<CallNode>(f.body)->args) {
    auto param = std::find(f.params.begin(), f.params.end(), a);
    if (param == f.params.end() && !isa<ConstantNode>(a)) return std::nullopt;
    args.push_back(param == f.params.end() ? a
                                           : c.args[static_cast<size_t>(param - f.params.begin())]);
  }
  Place data = place_of(args[0]);
  if (data.kind != Place::kRegister) return std::nullopt;
  int32_t start = scalar(args[2]);
  int32_t r = b_.reg();
  b_.write_lines(r, static_cast<int32_t>(data.index), start, operand(place_of(args[1])));
  return Place{Place::kRegister, r, {}};
}

FunctionCompiler::Place FunctionCompiler::emit_view(const LetNode& l, const CallNode& c,
                                                    const FunctionNode& f) {
  Place source = place_of(c.args[0]);
  auto* t = as<TensorTypeNode>(f.body->type);
  bool is_static = t->const_shape().has_value();
  // What reads a tensor of static type asks for its data only.
  if (is_static && !escapes_.contains(l.var.get()) && source.kind != Place::kScalar) return source;
  std::vector<int32_t> dims;
  for (const Dim& d : t->shape) dims.push_back(dim_value(d, c.span));
  int32_t r = b_.reg();
  b_.reshape(r, object(source, c.args[0]->type, c.span), dims);
  return Place{Place::kRegister, r, {}};
}

FunctionCompiler::Place FunctionCompiler::emit_kernel(const LetNode& l, const CallNode& c,
                                                      const LoweredCall& lowered) {
  const Function& f = lowered.primitive;
  std::optional<int32_t> all_equal = emit_assumptions(*f.get());
  if (is_view(*f.get())) return emit_view(l, c, *f.get());
  if (is_update(*f.get())) {
    if (auto updated = emit_update(c, *f.get())) return *updated;
  }
  if (has_open_size(f->body->type)) return emit_sized_by_data(c, lowered);
  if (joined_.contains(l.var.get())) return emit_join(l, c);
  if (auto parts = emit_cut(l, c, *f.get())) return *parts;
  std::vector<Operand> operands;
  for (const Expr& a : c.args) operands_of(a, operands);
  bool as_object = escapes_.contains(l.var.get());
  auto claimed = claimed_.find(l.var.get());
  // A scalar that leaves is a value without memory of its own.
  auto scalar_type = scalar_dtype(f->body->type);
  bool as_scalar = as_object && scalar_type && runtime::is_immediate_dtype(*scalar_type);
  as_object = as_object && !as_scalar;
  Place result = claimed != claimed_.end()      ? Place{Place::kOutput, claimed->second, {}}
                 : homes_.contains(l.var.get()) ? buffer_for(l.var)
                                                : fresh(f->body->type, as_object, c.span);
  operands_of(result, f->body->type, operands);
  std::vector<std::vector<int64_t>> around = within(operands);
  int32_t kernel = program_.kernel(lowered.kernel, lowered.site, around);
  std::vector<size_t> in_place =
      program_.out.kernels[static_cast<size_t>(kernel)].composed.in_place;
  if (all_equal) {
    int32_t plain = program_.kernel(lowered.equal_sizes, lowered.site, around);
    FunctionBuilder::Label differ = b_.label(), end = b_.label();
    b_.if_zero(*all_equal, differ);
    invoke(plain, operands, c.span);
    b_.jump(end);
    b_.bind(differ);
    invoke(kernel, operands, c.span);
    b_.bind(end);
  } else {
    invoke(kernel, operands, c.span);
  }
  for (size_t i : in_place) {
    if (result.kind == Place::kBuffer && operands[i].kind == Operand::kArena) {
      reuses_.push_back({operands[i].index, result.index, step_});
    }
  }
  if (as_scalar) {
    int32_t r = b_.int_reg();
    b_.load_scalar(r, *scalar_type, operand(result));
    return Place{Place::kScalar, r, {}};
  }
  if (as_object && isa<TupleTypeNode>(c.type)) {
    return Place{Place::kRegister, object(result, f->body->type, c.span), {}};
  }
  return result;
}

void FunctionCompiler::invoke(int32_t kernel, std::vector<Operand> operands, const Span& span) {
  for (const Dim& d : program_.out.kernels[static_cast<size_t>(kernel)].composed.dims) {
    operands.push_back(Operand::dim(dim_value(d, span)));
  }
  b_.invoke_kernel(kernel, operands);
}

}  // namespace relay::vm
