#include "plan/joins.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "analysis/primitives.h"
#include "ir/views.h"
#include "node/walk.h"
#include "plan/outputs.h"

namespace relay::plan {
namespace {

bool begins_with(const CallNode& longer, const CallNode& shorter) {
  return longer.args.size() > shorter.args.size() &&
         std::equal(shorter.args.begin(), shorter.args.end(), longer.args.begin());
}

bool calls_kernel(const Node& n) {
  auto* c = as<CallNode>(&n);
  auto* f = c == nullptr ? nullptr : primitive_of(*c);
  return f != nullptr && !is_view(*f) && !is_update(*f) && !is_device_copy(*f) &&
         !has_open_size(*f);
}

// Whether each kernel that a call of the primitive function may come to when it runs takes operands
// with gaps: its inputs, or its results.
bool takes_strides(const FunctionNode& f, const LoweredProgram& lowered,
                   std::vector<KernelOperand> KernelSignature::*operands) {
  const LoweredCall& call = lowered.call(f);
  KernelProvider& provider = *lowered.provider();
  auto takes = [&](const KernelSignature& s) {
    return std::ranges::all_of(s.*operands, &KernelOperand::takes_strides);
  };
  for (int32_t kernel : {call.kernel, call.equal_sizes}) {
    if (kernel >= 0 && !takes(provider.signature(kernel))) return false;
  }
  return std::ranges::all_of(call.versions, [&](const VariantSizes& sizes) {
    return takes(provider.signature(call.kernel, sizes));
  });
}

bool reads_strides(const Node& call, const LoweredProgram& lowered) {
  return takes_strides(*as_primitive(as<CallNode>(&call)->op.get()), lowered,
                       &KernelSignature::inputs);
}

// Finds what is read by other means than kernels, which alone take tensors with gaps.
void find_dense(const FunctionNode& f, const LoweredProgram& lowered, Joins& joins) {
  post_order_if(
      f.body, [](const Node& n) { return as_primitive(&n) == nullptr; },
      [&](const Node& n) {
        if (auto* l = as<LetNode>(&n)) {
          if (auto* part = as<TupleGetItemNode>(l->value)) {
            joins.projections[part->tuple.get()].push_back(l->var.get());
          }
          // Not the variable that it binds.
          for (const Expr& e : {l->value, l->body}) {
            if (isa<VarNode>(e)) joins.dense.insert(e.get());
          }
          return;
        }
        if (isa<TupleGetItemNode>(&n) || (calls_kernel(n) && reads_strides(n, lowered))) return;
        for_each_child(n, [&](const NodeRef& child) {
          if (isa<VarNode>(child)) joins.dense.insert(child.get());
        });
      },
      family::program);
}

}  // namespace

bool Joins::read_by_kernels(const Node* v, const VarSet& escapes) const {
  auto kernels_only = [&](const Node* n) { return !dense.contains(n) && !escapes.contains(n); };
  auto parts = projections.find(v);
  return kernels_only(v) && (parts == projections.end() ||
                             std::all_of(parts->second.begin(), parts->second.end(), kernels_only));
}

Joins find_joins(const FunctionNode& f, const VarSet& escapes, const LoweredProgram& lowered) {
  Joins out;
  find_dense(f, lowered, out);
  VarSet kernels;  // static tensors that kernels make here
  VarSet strided;  // those whose kernels write to buffers with gaps
  std::unordered_map<const Node*, const LetNode*> last_join;  // by its first operand
  const Expr* at = &f.body;
  for (auto* l = as<LetNode>(*at); l != nullptr; l = as<LetNode>(*at)) {
    at = &l->body;
    auto* c = as<CallNode>(l->value);
    auto* called = c == nullptr ? nullptr : primitive_of(*c);
    if (called == nullptr || escapes.contains(l->var.get()) ||
        !is_static_tensor(called->body->type) || is_view(*called) || is_device_copy(*called) ||
        scalar_dtype(called->body->type)) {
      continue;
    }
    kernels.insert(l->var.get());
    if (takes_strides(*called, lowered, &KernelSignature::results)) strided.insert(l->var.get());
    if (memory_of(*called) != Memory::Joined) continue;
    std::vector<int64_t> whole = shape_of(called->body->type);
    std::vector<std::vector<int64_t>> parts;
    for (const Expr& a : c->args) parts.push_back(shape_of(a->type));
    bool is_stack = parts[0].size() != whole.size();
    size_t axis = axis_of(whole, parts);
    bool gaps = !is_outermost(whole, axis);
    auto may_have_gaps = [&](const Expr& e) {
      auto joined = out.joined.find(e.get());
      return joined == out.joined.end()
                 ? strided.contains(e.get()) && out.read_by_kernels(e.get(), escapes)
                 : joined->second.may_have_gaps;
    };
    Joins::Joined join{!is_stack && out.read_by_kernels(l->var.get(), escapes)};
    std::vector<std::pair<const Node*, Position>> inside;
    int64_t begin = 0, bytes = 0;
    auto add = [&](const Expr& e) {
      bool fits =
          kernels.contains(e.get()) && !out.inside.contains(e.get()) && (!gaps || may_have_gaps(e));
      if (fits) {
        inside.emplace_back(e.get(), Position{axis, begin});
        bytes += bytes_of(e->type);
        join.may_have_gaps &= may_have_gaps(e);
      }
      return fits;
    };
    // A join that this one continues is its first operand, in place of those that it has.
    auto before = last_join.find(c->args[0].get());
    if (before != last_join.end() && !is_stack) {
      const Var& shorter = before->second->var;
      const CallNode& its = *as<CallNode>(before->second->value);
      if (begins_with(*c, its) && add(shorter)) {
        join.continued = its.args.size();
        begin = shape_of(shorter->type)[axis];
      }
    }
    for (size_t i = join.continued; i < c->args.size(); ++i) {
      add(c->args[i]);
      begin += is_stack ? 1 : parts[i][axis];
    }
    // Kernels copy the others into the gaps, which pays when most of the value is there already.
    if (inside.empty() || (gaps && 2 * bytes < bytes_of(called->body->type))) continue;
    for (const auto& [part, position] : inside) {
      out.inside.emplace(part, Joins::Inside{l->var, position});
    }
    out.joined.emplace(l->var.get(), join);
    last_join[c->args[0].get()] = l;
  }
  return out;
}

Memory memory_of(const FunctionNode& f) {
  auto* c = as<CallNode>(f.body);
  auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
  // A size of an operand may be open where the operator assumes that it is that of another.
  bool is_static = op != nullptr && std::ranges::all_of(f.params, [](const Var& p) {
                     auto tensors = flatten_tensor_types(p->type);
                     return tensors && std::ranges::all_of(*tensors, is_static_tensor);
                   });
  if (!is_static || op->row->memory == nullptr || has_open_size(f)) return Memory::Own;
  Memory memory = op->row->memory(*c);
  if (memory == Memory::Cut) {
    bool plain = f.params.size() == 1 && behind_views(c->args[0].get()) == f.params[0].get();
    return plain ? memory : Memory::Own;
  }
  if (memory == Memory::Joined) {
    // The operands are the parameters in their order, each once.
    auto* parts = as<TupleNode>(c->args[0]);
    bool plain = parts != nullptr && parts->fields.size() == f.params.size() &&
                 std::equal(f.params.begin(), f.params.end(), parts->fields.begin(),
                            [](const Var& p, const Expr& e) { return p.get() == e.get(); });
    return plain ? memory : Memory::Own;
  }
  return memory;
}

bool is_update(const FunctionNode& f) {
  auto* c = as<CallNode>(f.body);
  auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
  // A place of another dtype is not a scalar of the plan: a kernel reads it.
  return op != nullptr && op->row->memory != nullptr && op->row->memory(*c) == Memory::Updated &&
         scalar_dtype(c->args[2]->type).has_value();
}

std::optional<std::vector<Expr>> operator_args(const CallNode& call, const FunctionNode& f) {
  std::vector<Expr> out;
  for (const Expr& a : as<CallNode>(f.body)->args) {
    auto param = std::find(f.params.begin(), f.params.end(), a);
    if (param == f.params.end() && !isa<ConstantNode>(a)) return std::nullopt;
    out.push_back(
        param == f.params.end() ? a : call.args[static_cast<size_t>(param - f.params.begin())]);
  }
  return out;
}

std::vector<int64_t> shape_of(const Type& type) { return *as<TensorTypeNode>(type)->const_shape(); }

int64_t bytes_of(const Type& type) {
  auto& t = *as<TensorTypeNode>(type);
  return runtime::checked_num_elements(t.dtype, *t.const_shape()) *
         static_cast<int64_t>(t.dtype.bytes());
}

int64_t bytes_within(const TensorTypeNode& t, const std::vector<int64_t>& within) {
  std::vector<int64_t> shape = *t.const_shape();
  int64_t last = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return 0;
    last = last * within[d] + shape[d] - 1;
  }
  return (last + 1) * static_cast<int64_t>(t.dtype.bytes());
}

size_t axis_of(const std::vector<int64_t>& whole, const std::vector<std::vector<int64_t>>& parts) {
  for (const std::vector<int64_t>& part : parts) {
    for (size_t d = 0; d < whole.size(); ++d) {
      std::vector<int64_t> without = whole;
      without.erase(without.begin() + static_cast<std::ptrdiff_t>(d));
      if (part.size() == whole.size() ? part[d] != whole[d] : part == without) return d;
    }
  }
  return 0;
}

bool is_outermost(const std::vector<int64_t>& whole, size_t axis) {
  return std::all_of(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(axis),
                     [](int64_t d) { return d == 1; });
}

int64_t stride_of(const std::vector<int64_t>& shape, size_t axis) {
  return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, shape.end(),
                         int64_t{1}, std::multiplies<>());
}

}  // namespace relay::plan
