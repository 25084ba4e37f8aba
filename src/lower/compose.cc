#include "lower/compose.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "analysis/loop_kernels.h"
#include "analysis/size_hints.h"
#include "base/codes/lowering.h"
#include "ir/views.h"
#include "lower/compose_loop.h"
#include "lower/interface/compute_rule.h"
#include "node/structural.h"
#include "node/walk.h"
#include "tir/block_contraction.h"

namespace relay {
namespace {

std::vector<TensorType> tensors_of(const Type& type, const Span& span) {
  auto tensors = flatten_tensor_types(type);
  if (!tensors) {
    throw UserError(Diagnostic(codes::lower_unsupported, span,
                               "only tensors and tuples of tensors go in and out of a kernel")
                        .found(to_string(type)));
  }
  return *tensors;
}

double bytes_of(const std::vector<TensorType>& types) {
  double total = 0;
  for (const TensorType& t : types) {
    auto shape = t->const_shape();
    if (!shape) return -1;
    double bytes = static_cast<double>(t->dtype.bytes());
    for (int64_t d : *shape) bytes *= static_cast<double>(d);
    total += bytes;
  }
  return total;
}

tir::Tensor copy_of(const tir::Tensor& t) {
  return tir::compute(t->name + "_copy", t->shape(), [&](const tir::Indices& i) { return t(i); });
}

// The parameters that only element-wise operators read on their way to the result, and whose
// elements are therefore read only for the result's element at the same place.
std::vector<InPlace> read_in_place(const FunctionNode& f) {
  auto* result = as<TensorTypeNode>(f.body->type);
  if (result == nullptr) return {};
  auto fits = [&](const Expr& e) {
    auto* t = as<TensorTypeNode>(e->type);
    return t != nullptr && structural_equal(TensorType(t), TensorType(result));
  };
  std::unordered_set<const Node*> same_place{f.body.get()}, elsewhere;
  // Users before operands.
  std::vector<const ExprNode*> order;
  post_order(
      f.body, [&](const Node& n) { order.push_back(static_cast<const ExprNode*>(&n)); },
      family::expr);
  for (size_t i = order.size(); i-- > 0;) {
    auto* c = as<CallNode>(order[i]);
    auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
    bool by_element =
        op != nullptr && op->row->fusion <= FusionClass::Broadcast && !elsewhere.contains(order[i]);
    for_each_child(*order[i], [&](const NodeRef& child) {
      auto* e = as<ExprNode>(child);
      if (e == nullptr) return;
      (by_element && fits(ref(*e)) ? same_place : elsewhere).insert(e);
    });
  }
  std::vector<InPlace> out;
  size_t place = 0;
  for (const Var& p : f.params) {
    if (p->type != nullptr && same_place.contains(p.get()) && !elsewhere.contains(p.get())) {
      out.push_back({.input = place});
    }
    place += flatten_tensor_types(p->type)->size();
  }
  return out;
}

// Whether the shapes hold other axes than each other, apart from those of one element.
bool regroups(const std::vector<Dim>& a, const std::vector<Dim>& b) {
  auto next = [](const std::vector<Dim>& shape, size_t i) {
    while (i < shape.size() && as_const(shape[i]) == 1) ++i;
    return i;
  };
  size_t i = next(a, 0), j = next(b, 0);
  while (i < a.size() && j < b.size() && dim_equal(a[i], b[j])) {
    i = next(a, i + 1);
    j = next(b, j + 1);
  }
  return i < a.size() || j < b.size();
}

// Between shapes of which one has an open size, index arithmetic divides by numbers that only a run
// tells: at the edge of a kernel a buffer has the inner shape instead.
bool divides_by_open_sizes(const Type& from, const Type& to) {
  auto *a = as<TensorTypeNode>(from), *b = as<TensorTypeNode>(to);
  return a != nullptr && b != nullptr && !(a->const_shape() && b->const_shape()) &&
         std::ranges::none_of(b->shape, is_any) && regroups(a->shape, b->shape);
}

// For each parameter that is read under another shape only, after operators that rename a shape: the
// last of these, in whose shape its buffer is.
std::unordered_map<const Node*, const ExprNode*> parameters_behind_views(const FunctionNode& f) {
  std::unordered_map<const Node*, std::vector<const ExprNode*>> users{{f.body.get(), {nullptr}}};
  post_order(
      f.body,
      [&](const Node& n) {
        for_each_child(n, [&](const NodeRef& child) {
          if (isa<ExprNode>(child)) users[child.get()].push_back(static_cast<const ExprNode*>(&n));
        });
      },
      family::expr);
  std::unordered_map<const Node*, const ExprNode*> out;
  for (const Var& p : f.params) {
    const ExprNode* at = p.get();
    for (auto user = users.find(at); user != users.end() && user->second.size() == 1;
         user = users.find(at)) {
      const ExprNode* view = user->second[0];
      auto* call = as<CallNode>(view);
      if (call == nullptr || behind_views(view) != p.get()) break;
      at = view;
    }
    if (at != p.get() && divides_by_open_sizes(p->type, at->type)) out[p.get()] = at;
  }
  return out;
}

// The result, or what it is a view of where its buffer is better in that shape.
const ExprNode* result_behind_views(const Expr& result) {
  const ExprNode* inner = behind_views(result.get());
  return divides_by_open_sizes(result->type, inner->type) ? inner : result.get();
}

// The kernel with zeros for elements of empty tensors. An operator whose expression reads one has
// sizes that are assumed not to occur in a run: the load is never executed, and an index clamped to
// [0, -1] cannot be proved to lie in the tensor.
tir::PrimFunc without_reads_of_empty(const tir::PrimFunc& f) {
  auto reads_nothing = [](const Node& n) {
    auto* l = as<tir::LoadNode>(&n);
    return l != nullptr && std::ranges::any_of(l->buffer->shape, [](const tir::PrimExpr& e) {
             return tir::as_int(e) == 0;
           });
  };
  bool found = false;
  post_order(f, [&](const Node& n) { found = found || reads_nothing(n); });
  if (!found) return f;
  return tir::PrimFunc::unchecked(
      rewrite(f, [&](const NodeRef& original, NodeRef rebuilt) -> NodeRef {
        if (auto* b = as<tir::BlockNode>(rebuilt); b != nullptr && !(original == rebuilt)) {
          return tir::modified(*b, tir::restate_contraction);
        }
        if (!reads_nothing(*rebuilt.get())) return rebuilt;
        return tir::imm(static_cast<const tir::LoadNode&>(*rebuilt.get()).dtype, 0);
      }));
}

}  // namespace

tir::PrimExpr immediate(const ConstantNode& c) {
  tir::DType dtype = c.data.dtype().storage();
  Tensor data = c.data.as_dtype(dtype);
  return dtype.is_floating() ? tir::imm_float(dtype, data.get_as_double(0))
                             : tir::imm(dtype, data.get_as_int(0));
}

std::vector<DimAssumption> broadcasts_of(const FunctionNode& primitive) {
  std::vector<DimAssumption> out;
  post_order(
      primitive.body,
      [&](const Node& n) {
        auto* c = as<CallNode>(&n);
        if (c == nullptr) return;
        for (const DimAssumption& a : assumptions_of(*c)) {
          if (a.kind == DimAssumption::kBroadcast) out.push_back(a);
        }
      },
      family::expr);
  return out;
}

ComposedKernel compose(const FunctionNode& primitive, const std::string& name, KernelOf what) {
  if (is_loop_kernel(primitive)) return compose_loop(primitive, name, what);
  ComposedKernel out;
  DimScope dims;
  std::unordered_map<const Node*, std::vector<tir::Tensor>> values;
  std::vector<tir::Tensor> inputs;
  double bytes = 0;
  auto count = [&](const std::vector<TensorType>& types) {
    double b = bytes_of(types);
    bytes = b < 0 || bytes < 0 ? -1 : bytes + b;
  };
  if (what == KernelOf::equal_sizes) {
    for (const DimAssumption& a : broadcasts_of(primitive)) dims.make_equal(a.a, a.b);
  }
  // Rules for sizes read the shapes of the arguments as they are.
  auto behind = what == KernelOf::sizes ? decltype(parameters_behind_views(primitive)){}
                                        : parameters_behind_views(primitive);
  for (const Var& p : primitive.params) {
    count(tensors_of(p->type, p->span));
    auto view = behind.find(p.get());
    std::vector<tir::Tensor>& mine = values[p.get()];
    for (const TensorType& t :
         tensors_of(view == behind.end() ? p->type : view->second->type, p->span)) {
      mine.push_back(tir::placeholder("p" + std::to_string(inputs.size()), t->dtype.storage(),
                                      dims.lower(t->shape)));
      inputs.push_back(mine.back());
    }
    if (view != behind.end()) {
      for (const ExprNode* e = view->second; e != p.get(); e = as<CallNode>(e)->args[0].get()) {
        values[e] = mine;
      }
    }
  }
  post_order(
      primitive.body,
      [&](const Node& n) {
        switch (n.kind()) {
          case ExprKind::Var:
            RELAY_CHECK(values.contains(&n), "a kernel with a free variable");
            return;
          case ExprKind::Constant: {
            auto& c = static_cast<const ConstantNode&>(n);
            RELAY_CHECK(c.data.rank() == 0, "a kernel holds scalar constants only");
            values[&n] = {tir::compute("c", {}, [&](const tir::Indices&) { return immediate(c); })};
            return;
          }
          case ExprKind::Op:
            return;
          case ExprKind::Call: {
            if (values.contains(&n)) return;
            auto& c = static_cast<const CallNode&>(n);
            std::vector<tir::Tensor> args;
            for (const Expr& a : c.args) {
              const std::vector<tir::Tensor>& v = values.at(a.get());
              args.insert(args.end(), v.begin(), v.end());
            }
            if (what == KernelOf::sizes && &n == primitive.body.get()) {
              values[&n] = compute_call_shapes(c, args, dims);
              return;
            }
            values[&n] = compute_call(c, args, dims);
            const OpInfo& row = *as<OpNode>(c.op)->row;
            if (row.cost != nullptr) {
              out.flops += row.cost(c);
            } else if (!row.reshape_only && isa<TensorTypeNode>(c.type)) {
              double b = bytes_of({cast<TensorTypeNode>(c.type)});
              if (b > 0 && row.fusion <= FusionClass::Broadcast) {
                out.flops += b / static_cast<double>(as<TensorTypeNode>(c.type)->dtype.bytes());
              }
            }
            return;
          }
          case ExprKind::Tuple: {
            std::vector<tir::Tensor> all;
            for (const Expr& f : static_cast<const TupleNode&>(n).fields) {
              const std::vector<tir::Tensor>& v = values.at(f.get());
              all.insert(all.end(), v.begin(), v.end());
            }
            values[&n] = std::move(all);
            return;
          }
          case ExprKind::TupleGetItem: {
            auto& g = static_cast<const TupleGetItemNode&>(n);
            auto* type = as<TupleTypeNode>(g.tuple->type);
            size_t begin = 0;
            for (int64_t i = 0; i < g.index; ++i) {
              begin += tensors_of(type->fields[static_cast<size_t>(i)], g.span).size();
            }
            size_t size = tensors_of(g.type, g.span).size();
            const std::vector<tir::Tensor>& v = values.at(g.tuple.get());
            values[&n] = {v.begin() + static_cast<std::ptrdiff_t>(begin),
                          v.begin() + static_cast<std::ptrdiff_t>(begin + size)};
            return;
          }
          default:
            throw UserError(Diagnostic(codes::lower_unsupported,
                                       static_cast<const ExprNode&>(n).span,
                                       "a primitive function may hold operator calls only")
                                .found(std::string(n.info().name)));
        }
      },
      family::expr);
  std::vector<tir::Tensor> outputs;
  const ExprNode* result =
      what == KernelOf::sizes ? primitive.body.get() : result_behind_views(primitive.body);
  for (const tir::Tensor& t : values.at(result)) {
    bool taken = std::find(inputs.begin(), inputs.end(), t) != inputs.end() ||
                 std::find(outputs.begin(), outputs.end(), t) != outputs.end();
    outputs.push_back(taken ? copy_of(t) : t);
  }
  count(tensors_of(primitive.body->type, primitive.span));
  out.bytes = std::max(bytes, 0.0);
  std::vector<tir::Var> dim_vars;
  std::vector<int64_t> at_most;
  for (const auto& [size, variable] : dims.dims()) {
    out.dims.push_back(size);
    dim_vars.push_back(variable);
    if (auto most = greatest_size(primitive, size)) at_most.push_back(*most);
  }
  if (what != KernelOf::sizes) out.in_place = read_in_place(primitive);
  tir::PrimFunc func =
      without_reads_of_empty(tir::create_prim_func(name, inputs, outputs, dim_vars));
  out.func = tir::modified(*func, [&](tir::PrimFuncNode& n) {
    for (const InPlace& pair : out.in_place) {
      n.in_place.push_back(static_cast<int64_t>(pair.input));
    }
    if (at_most.size() == n.dims.size()) n.at_most = at_most;
    if (primitive.attrs.contains(attr::kBackward)) n.order = tir::LoopOrder::Backward;
  });
  return out;
}

ComposedKernel in_larger_tensors(ComposedKernel kernel,
                                 const std::vector<std::vector<int64_t>>& within) {
  const tir::PrimFunc& f = kernel.func;
  RELAY_CHECK(within.size() == f->params.size(), f->name);
  std::unordered_map<const Node*, NodeRef> moved;
  for (size_t i = 0; i < within.size(); ++i) {
    const tir::Buffer& b = f->params[i];
    if (within[i].empty()) continue;
    moved[b.get()] = make<tir::BufferNode>([&](tir::BufferNode& n) {
      n.name = b->name;
      n.dtype = b->dtype;
      n.shape = b->shape;
      for (int64_t d : within[i]) n.within.push_back(tir::index(d));
    });
  }
  if (!moved.empty()) kernel.func = tir::PrimFunc::unchecked(substitute(f, moved));
  return kernel;
}

ComposedKernel renamed(ComposedKernel kernel, const std::string& name) {
  if (kernel.func->name == name) return kernel;
  kernel.func = tir::modified(*kernel.func, [&](tir::PrimFuncNode& n) { n.name = name; });
  return kernel;
}

std::string kernel_name(const FunctionNode& primitive) {
  constexpr size_t kLimit = 60;
  std::string name = is_loop_kernel(primitive) ? "loop" : "fused";
  bool cut = false;
  post_order(
      primitive.body,
      [&](const Node& n) {
        auto* c = as<CallNode>(&n);
        auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
        if (op == nullptr || cut) return;
        if (name.size() + op->name.size() + 1 > kLimit) {
          cut = true;
          return;
        }
        name += "_";
        for (char ch : op->name) name += ch == '.' ? '_' : ch;
      },
      family::expr);
  return name == "fused" ? "copy" : name;
}

}  // namespace relay
