#include <algorithm>

#include "ir/open_sizes.h"
#include "vm/function_compiler.h"

namespace relay::vm {

Dim FunctionCompiler::read_size(int32_t reg, size_t axis) {
  TypeVar name = program_.lowered().size_name(sizes_read_++);
  int32_t size = b_.int_reg();
  b_.shape_of(size, reg, static_cast<int32_t>(axis));
  dim_regs_[name.get()] = size;
  return dim(name);
}

void FunctionCompiler::read_sizes(const CallNode& c, const FunctionNode& f) {
  sizes_read_ = 0;
  for (size_t i = 0; i < f.params.size(); ++i) {
    const Var& p = f.params[i];
    if (!has_open_size(p->type)) continue;
    Place place = place_of(c.args[i]);
    auto* tuple = as<TupleTypeNode>(p->type);
    with_sizes_named(p->type, [&](size_t n, size_t axis) {
      auto part = static_cast<int64_t>(n);
      int32_t r = tuple == nullptr ? object(place, p->type, c.span)
                                   : object(field(place, part), tuple->fields[n], c.span);
      return read_size(r, axis);
    });
  }
}

FunctionCompiler::Place FunctionCompiler::emit_sized_by_data(const CallNode& c,
                                                             const LoweredCall& lowered) {
  const Function& f = lowered.primitive;
  if (lowered.sizes < 0) {
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
  invoke(program_.kernel(lowered.sizes, lowered.site), std::move(with_sizes), c.span);
  for (size_t i = 0; i < outputs.size(); ++i) {
    results.push_back(b_.reg());
    b_.alloc_from_shape(results.back(), outputs[i]->dtype, sizes[i]);
    operands.push_back(Operand::reg(results.back()));
  }
  with_sizes_named(f->body->type,
                   [&](size_t n, size_t axis) { return read_size(results[n], axis); });
  invoke(program_.kernel(lowered.kernel, lowered.site), std::move(operands), c.span);
  const Type& named = lowered.sized->body->type;
  if (isa<TensorTypeNode>(named)) return Place{Place::kRegister, results[0], {}};
  Place tuple{Place::kTuple, 0, {}};
  for (int32_t r : results) tuple.fields.push_back(Place{Place::kRegister, r, {}});
  if (!escapes_.contains(now_->var.get())) return tuple;
  return Place{Place::kRegister, object(tuple, named, c.span), {}};
}

}  // namespace relay::vm
