#include <algorithm>

#include "ir/open_sizes.h"
#include "lower/interface/compute_rule.h"
#include "vm/function_compiler.h"

namespace relay::vm {

bool has_open_size(const Type& t) {
  auto tensors = flatten_tensor_types(t);
  return tensors && std::ranges::any_of(*tensors, [](const TensorType& tensor) {
           return std::ranges::any_of(tensor->shape, is_any);
         });
}

bool has_open_size(const FunctionNode& f) {
  return has_open_size(f.body->type) ||
         std::ranges::any_of(f.params, [](const Var& p) { return has_open_size(p->type); });
}

Dim FunctionCompiler::name_size(int32_t reg, size_t axis) {
  TypeVar name = program_.size_name(sizes_named_++);
  int32_t size = b_.int_reg();
  b_.shape_of(size, reg, static_cast<int32_t>(axis));
  dim_regs_[name.get()] = size;
  return dim(name);
}

Function FunctionCompiler::name_sizes(const CallNode& c, const FunctionNode& f) {
  sizes_named_ = 0;
  Rewriter rename(family::expr);
  for (size_t i = 0; i < f.params.size(); ++i) {
    const Var& p = f.params[i];
    if (!has_open_size(p->type)) continue;
    Place place = place_of(c.args[i]);
    auto* tuple = as<TupleTypeNode>(p->type);
    Type named = with_sizes_named(p->type, [&](size_t n, size_t axis) {
      auto part = static_cast<int64_t>(n);
      int32_t r = tuple == nullptr ? object(place, p->type, c.span)
                                   : object(field(place, part), tuple->fields[n], c.span);
      return name_size(r, axis);
    });
    rename.set(p, var(p->name_hint, named));
  }
  return rename.apply(Function(&f));
}

FunctionCompiler::Place FunctionCompiler::emit_sized_by_data(const CallNode& c, const Function& f) {
  auto* call = as<CallNode>(f->body);
  auto* op = call == nullptr ? nullptr : as<OpNode>(call->op);
  if (op == nullptr || !data_decides_shape(*op->row)) {
    unsupported(c.span,
                "the size of %" + now_->var->name_hint + " is known only when it is computed",
                "no rule tells this size from the inputs: give their shapes, or use the evaluator");
  }
  std::vector<Operand> operands;
  for (const Expr& a : c.args) operands_of(a, operands);
  auto outputs = *flatten_tensor_types(f->body->type);
  std::vector<Operand> with_sizes = operands;
  std::vector<int32_t> sizes, results;
  for (const TensorType& t : outputs) {
    Type vector = tensor_type(std::vector<int64_t>{t->rank()}, DType::Int(64));
    sizes.push_back(static_cast<int32_t>(fresh(vector, true, c.span).index));
    with_sizes.push_back(Operand::reg(sizes.back()));
  }
  invoke(program_.kernel(f, KernelOf::sizes), std::move(with_sizes), c.span);
  for (size_t i = 0; i < outputs.size(); ++i) {
    results.push_back(b_.reg());
    b_.alloc_from_shape(results.back(), outputs[i]->dtype, sizes[i]);
    operands.push_back(Operand::reg(results.back()));
  }
  Type named = with_sizes_named(f->body->type,
                                [&](size_t n, size_t axis) { return name_size(results[n], axis); });
  auto* sized_call = new CallNode(*call);
  Expr body(sized_call);
  sized_call->type = named;
  auto* sized_function = new FunctionNode(*f.get());
  Function sized(sized_function);
  sized_function->body = body;
  sized_function->ret_type = named;
  sized_function->type = deduce_type(*sized_function);
  invoke(program_.kernel(sized), std::move(operands), c.span);
  if (isa<TensorTypeNode>(named)) return Place{Place::kRegister, results[0], {}};
  Place tuple{Place::kTuple, 0, {}};
  for (int32_t r : results) tuple.fields.push_back(Place{Place::kRegister, r, {}});
  if (!escapes_.contains(now_->var.get())) return tuple;
  return Place{Place::kRegister, object(tuple, named, c.span), {}};
}

}  // namespace relay::vm
