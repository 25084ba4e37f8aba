#include "tir/compute.h"

#include <unordered_map>
#include <unordered_set>

#include "base/quantities.h"
#include "node/walk.h"
#include "tir/block_contraction.h"
#include "tir/reduction_steps.h"

namespace relay::tir {
namespace {

constexpr const char* kAxisNames[] = {"i", "j", "k", "l", "m", "n"};
constexpr const char* kReduceNames[] = {"r", "s", "t", "u"};

template <size_t N>
std::string axis_name(const char* const (&names)[N], size_t at) {
  return at < N ? names[at] : names[0] + std::to_string(at);
}

std::vector<IterVar> make_axes(const std::vector<PrimExpr>& extents, IterKind kind) {
  std::vector<IterVar> axes;
  for (size_t i = 0; i < extents.size(); ++i) {
    std::string name =
        kind == IterKind::Reduce ? axis_name(kReduceNames, i) : axis_name(kAxisNames, i);
    axes.push_back(iter_var(var(name), extents[i], kind));
  }
  return axes;
}

Indices variables_of(const std::vector<IterVar>& axes) {
  Indices out;
  for (const IterVar& axis : axes) out.push_back(axis->var);
  return out;
}

// The distinct tensors that the expressions load from, in order of first use.
std::vector<Tensor> tensors_read(const std::vector<PrimExpr>& bodies) {
  std::vector<Tensor> out;
  std::unordered_set<const Node*> seen;
  for (const PrimExpr& body : bodies) {
    post_order(
        body,
        [&](const Node& n) {
          auto* l = as<LoadNode>(&n);
          if (l == nullptr) return;
          RELAY_CHECK(l->source, "a compute body loads from " + l->buffer->name +
                                     " otherwise than through its tensor");
          if (seen.insert(l->source.get()).second)
            out.push_back(relay::cast<TensorNode>(l->source));
        },
        family::tir_expr | family::tir_other);
  }
  return out;
}

}  // namespace

const NodeInfo& TensorNode::static_info() {
  static const NodeInfo info = describe<TensorNode>(
      "tir.Tensor", kKind, family::tir_other,
      {attribute("name", &TensorNode::name), attribute("dtype", &TensorNode::dtype),
       binder("axes", &TensorNode::axes), child("buffer", &TensorNode::buffer),
       child("bodies", &TensorNode::bodies)});
  return info;
}

PrimExpr Tensor::operator()(const Indices& indices) const {
  RELAY_CHECK(indices.size() == get()->shape().size(),
              get()->name + " is read with " + counted(indices.size(), "index") + ", its rank is " +
                  std::to_string(get()->shape().size()));
  PrimExpr plain = load(get()->buffer, indices);
  return make<LoadNode>([&](LoadNode& n) {
    const LoadNode& from = *as<LoadNode>(plain);
    n.dtype = from.dtype;
    n.buffer = from.buffer;
    n.indices = from.indices;
    n.source = *this;
  });
}

Tensor placeholder(std::string name, DType dtype, std::vector<PrimExpr> shape) {
  return make<TensorNode>([&](TensorNode& n) {
    n.dtype = dtype;
    n.buffer = buffer(name, dtype, std::move(shape));
    n.name = std::move(name);
  });
}

Tensor compute(std::string name, std::vector<PrimExpr> shape,
               const std::function<PrimExpr(const Indices&)>& body, BlockRole role) {
  std::vector<IterVar> axes = make_axes(shape, IterKind::DataParallel);
  PrimExpr value = body(variables_of(axes));
  return make<TensorNode>([&](TensorNode& n) {
    n.dtype = value->dtype;
    n.buffer = buffer(name, value->dtype, std::move(shape));
    n.name = std::move(name);
    n.axes = std::move(axes);
    n.bodies = {std::move(value)};
    n.inputs = tensors_read(n.bodies);
    n.role = std::move(role);
  });
}

Tensor contract(std::string name, std::vector<PrimExpr> shape, std::vector<PrimExpr> extents,
                const std::vector<StatedDimension>& dims,
                const std::function<PrimExpr(const Indices&, const Indices&)>& term) {
  Tensor plain = compute(std::move(name), std::move(shape), [&](const Indices& i) {
    return sum(std::move(extents), [&](const Indices& k) { return term(i, k); });
  });
  if (dims.empty()) return plain;
  std::vector<IterVar> iters = plain->axes;
  const ReduceNode& r = *as<ReduceNode>(plain->bodies[0]);
  iters.insert(iters.end(), r.axes.begin(), r.axes.end());
  return modified(*plain.get(), [&](TensorNode& n) {
    for (const StatedDimension& d : dims) {
      RELAY_CHECK(d.iteration < iters.size(), n.name);
      const IterVar& i = iters[d.iteration];
      n.dims.push_back(block_dimension(i->var, d.extent ? d.extent : i->extent, d.role));
    }
  });
}

Tensor contract(std::string name, std::vector<PrimExpr> shape, std::vector<PrimExpr> extents,
                const std::vector<ContractionRole>& roles,
                const std::function<PrimExpr(const Indices&, const Indices&)>& term) {
  RELAY_CHECK(roles.empty() || roles.size() == shape.size() + extents.size(), name);
  std::vector<StatedDimension> dims;
  for (size_t i = 0; i < roles.size(); ++i) dims.push_back({i, roles[i]});
  return contract(std::move(name), std::move(shape), std::move(extents), dims, term);
}

Tensor imperative(std::string name, DType dtype, std::vector<PrimExpr> shape,
                  std::vector<Tensor> inputs,
                  std::function<Stmt(const std::vector<Buffer>&, const Buffer&)> build) {
  return make<TensorNode>([&](TensorNode& n) {
    n.dtype = dtype;
    n.buffer = buffer(name, dtype, std::move(shape));
    n.name = std::move(name);
    n.inputs = std::move(inputs);
    n.imperative = std::move(build);
  });
}

PrimExpr reduce(Combiner combiner, std::vector<PrimExpr> extents,
                const std::function<PrimExpr(const Indices&)>& body) {
  RELAY_CHECK(combiner < Combiner::ArgMin, "arg_reduce makes argmin and argmax");
  std::vector<IterVar> axes = make_axes(extents, IterKind::Reduce);
  PrimExpr source = body(variables_of(axes));
  return make<ReduceNode>([&](ReduceNode& n) {
    n.dtype = source->dtype;
    n.combiner = combiner;
    n.axes = std::move(axes);
    n.source = {std::move(source)};
  });
}

PrimExpr sum(std::vector<PrimExpr> extents, const std::function<PrimExpr(const Indices&)>& body) {
  return reduce(Combiner::Sum, std::move(extents), body);
}

PrimExpr arg_reduce(Combiner arg_min_or_max, PrimExpr extent,
                    const std::function<PrimExpr(const PrimExpr&)>& body) {
  RELAY_CHECK(arg_min_or_max >= Combiner::ArgMin, "not an arg reduction");
  std::vector<IterVar> axes = make_axes({extent}, IterKind::Reduce);
  PrimExpr value = body(axes[0]->var);
  return make<ReduceNode>([&](ReduceNode& n) {
    n.dtype = kIndex;
    n.combiner = arg_min_or_max;
    n.source = {axes[0]->var, std::move(value)};
    n.axes = std::move(axes);
  });
}

ReductionSteps reduction_steps(const ReduceNode& r, const PrimExpr& to, const PrimExpr& value) {
  auto set = [](const PrimExpr& place, PrimExpr e) {
    auto& l = *as<LoadNode>(place);
    return store(l.buffer, l.indices, std::move(e));
  };
  if (r.source.size() == 1) {
    return {set(to, identity_of(r.combiner, to->dtype)),
            set(to, combine(r.combiner, to, r.source[0]))};
  }
  // A pair (index, value). Starting from index 0 is right even when every value is the identity;
  // a NaN is never better than what is there.
  Var new_value = var("new_value", value->dtype);
  Var new_index = var("new_index", kIndex);
  Var take = var("take", DType::Bool());
  PrimExpr better = r.combiner == Combiner::ArgMin ? lt(new_value, value) : gt(new_value, value);
  PrimExpr tie = logical_and(eq(new_value, value), lt(new_index, to));
  return {seq({set(to, imm(kIndex, 0)), set(value, identity_of(r.combiner, value->dtype))}),
          let_stmt(new_value, r.source[1],
                   let_stmt(new_index, r.source[0],
                            let_stmt(take, logical_or(better, tie),
                                     seq({set(to, select(take, new_index, to)),
                                          set(value, select(take, new_value, value))}))))};
}

// ---- From tensors to a kernel

namespace {

// The regions that an expression reads, an element for each Load; where an index depends on data
// or on a Let, the whole dimension.
void add_reads(const PrimExpr& value, const Buffer& except, std::vector<Region>& reads) {
  std::unordered_set<const Node*> let_bound;
  auto depends_on_data = [&](const PrimExpr& index) {
    bool found = false;
    post_order(
        index, [&](const Node& n) { found |= isa<LoadNode>(&n) || let_bound.contains(&n); },
        family::tir_expr);
    return found;
  };
  auto visit = [&](const Node& n) {
    auto* l = as<LoadNode>(&n);
    if (l == nullptr || l->buffer == except) return;
    std::vector<PrimExpr> mins = l->indices;
    std::vector<PrimExpr> extents(mins.size(), index(1));
    for (size_t d = 0; d < mins.size(); ++d) {
      if (!depends_on_data(mins[d])) continue;
      mins[d] = index(0);
      extents[d] = l->buffer->shape[d];
    }
    reads.push_back(region(l->buffer, std::move(mins), std::move(extents)));
  };
  post_order_if(
      value,
      [&](const Node& n) {
        if (auto* l = as<LetNode>(&n)) let_bound.insert(l->var.get());
        return true;
      },
      visit, family::tir_expr);
}

Region whole(const Buffer& b) {
  return region(b, std::vector<PrimExpr>(b->shape.size(), index(0)), b->shape);
}

// The buffers besides `first` that the statements write and do not allocate, in the order in which they appear.
std::vector<Buffer> others_written(const Stmt& body, const Buffer& first) {
  std::unordered_set<const Node*> seen{first.get()};
  std::vector<Buffer> found;
  post_order(
      body,
      [&](const Node& n) {
        if (auto* a = as<AllocateNode>(&n)) seen.insert(a->buffer.get());
        if (auto* s = as<StoreNode>(&n)) found.push_back(s->buffer);
      },
      family::tir_stmt);
  std::vector<Buffer> out;
  for (const Buffer& b : found) {
    if (seen.insert(b.get()).second) out.push_back(b);
  }
  return out;
}

// The block in a loop for each of its iterations.
Stmt in_loops(std::string name, std::vector<IterVar> iters, std::vector<Region> reads,
              std::vector<Region> writes, Stmt init, Stmt body, const BlockRole& role = {},
              const std::vector<BlockDimension>& dims = {}) {
  std::vector<Var> loops;
  std::vector<PrimExpr> extents;
  for (const IterVar& iter : iters) {
    loops.push_back(var(iter->var->name));
    extents.push_back(iter->extent);
  }
  Stmt out = make<BlockNode>([&](BlockNode& n) {
    n.name = std::move(name);
    if (!dims.empty()) n.contraction = state_contraction(dims, iters, body);
    n.iters = std::move(iters);
    for (const Var& l : loops) n.bindings.push_back(l);
    n.reads = std::move(reads);
    n.writes = std::move(writes);
    n.init = std::move(init);
    n.body = std::move(body);
    n.role = role;
  });
  for (size_t i = loops.size(); i-- > 0;) out = for_(loops[i], index(0), extents[i], out);
  return out;
}

class Builder {
 public:
  explicit Builder(const std::vector<Buffer>& params) {
    for (const Buffer& p : params) params_.insert(p.get());
  }

  void add(const Tensor& t) {
    if (t->imperative) {
      add_imperative(t);
    } else if (t->bodies.empty()) {
      internal_error(__FILE__, __LINE__, "placeholder " + t->name + " is not an input");
    } else if (auto* r = as<ReduceNode>(t->bodies[0])) {
      add_reduction(t, *r);
    } else {
      Indices at = variables_of(t->axes);
      std::vector<Region> reads;
      add_reads(t->bodies[0], t->buffer, reads);
      own(t->buffer);
      stmts_.push_back(in_loops(name(t), t->axes, std::move(reads), {element_region(t->buffer, at)},
                                nullptr, store(t->buffer, at, t->bodies[0]), t->role));
    }
  }

  void add_copy(const Buffer& from, const Buffer& to) {
    std::vector<IterVar> axes = make_axes(to->shape, IterKind::DataParallel);
    Indices at = variables_of(axes);
    stmts_.push_back(in_loops(unique(to->name), axes, {element_region(from, at)},
                              {element_region(to, at)}, nullptr, store(to, at, load(from, at))));
  }

  Stmt finish() {
    Stmt body = seq(std::move(stmts_));
    for (size_t i = owned_.size(); i-- > 0;) body = allocate(owned_[i], body);
    // Loads let go of the tensors they came from.
    return Stmt::unchecked(rewrite(
        body,
        [](const NodeRef&, NodeRef rebuilt) -> NodeRef {
          auto* l = as<LoadNode>(rebuilt);
          if (l == nullptr || !l->source) return rebuilt;
          return load(l->buffer, l->indices, l->predicate);
        },
        family::tir_stmt | family::tir_expr));
  }

 private:
  void own(const Buffer& b) {
    if (params_.insert(b.get()).second) owned_.push_back(b);
  }

  std::string unique(const std::string& wanted) {
    int n = names_[wanted]++;
    return n == 0 ? wanted : unique(wanted + "_" + std::to_string(n));
  }
  std::string name(const Tensor& t) { return unique(t->name); }

  void add_imperative(const Tensor& t) {
    std::vector<Buffer> inputs;
    std::vector<Region> reads;
    for (const Tensor& i : t->inputs) {
      inputs.push_back(i->buffer);
      reads.push_back(whole(i->buffer));
    }
    own(t->buffer);
    Stmt body = t->imperative(inputs, t->buffer);
    if (!body) return;  // the statements of an input write it
    std::vector<Region> writes{whole(t->buffer)};
    for (const Buffer& b : others_written(body, t->buffer)) {
      own(b);
      writes.push_back(whole(b));
    }
    stmts_.push_back(in_loops(name(t), {}, std::move(reads), std::move(writes), nullptr, body));
  }

  void add_reduction(const Tensor& t, const ReduceNode& r) {
    Indices at = variables_of(t->axes);
    std::vector<IterVar> iters = t->axes;
    iters.insert(iters.end(), r.axes.begin(), r.axes.end());
    std::vector<Region> reads;
    for (const PrimExpr& s : r.source) add_reads(s, t->buffer, reads);
    own(t->buffer);
    std::vector<Region> writes{element_region(t->buffer, at)};
    PrimExpr value;
    if (r.source.size() > 1) {
      Buffer values = buffer(t->name + "_value", r.source[1]->dtype, t->buffer->shape);
      own(values);
      writes.push_back(element_region(values, at));
      value = load(values, at);
    }
    ReductionSteps steps = reduction_steps(r, load(t->buffer, at), value);
    stmts_.push_back(in_loops(name(t), std::move(iters), std::move(reads), std::move(writes),
                              steps.init, steps.step, t->role, t->dims));
  }

  std::unordered_set<const Node*> params_;  // and what is allocated
  std::vector<Buffer> owned_;
  std::vector<Stmt> stmts_;
  std::unordered_map<std::string, int> names_;
};

// The tensors that the outputs need besides the inputs, each after those it reads.
std::vector<Tensor> in_dependency_order(const std::vector<Tensor>& inputs,
                                        const std::vector<Tensor>& outputs) {
  std::vector<Tensor> order;
  std::unordered_set<const Node*> seen;
  for (const Tensor& t : inputs) seen.insert(t.get());
  std::vector<std::pair<Tensor, size_t>> stack;
  auto push = [&](const Tensor& t) {
    if (seen.insert(t.get()).second) stack.emplace_back(t, 0);
  };
  for (const Tensor& output : outputs) {
    push(output);
    while (!stack.empty()) {
      auto& [t, next] = stack.back();
      if (next < t->inputs.size()) {
        push(Tensor(t->inputs[next++]));
      } else {
        order.push_back(std::move(t));
        stack.pop_back();
      }
    }
  }
  return order;
}

}  // namespace

PrimFunc create_prim_func(std::string name, const std::vector<Tensor>& inputs,
                          const std::vector<Tensor>& outputs, std::vector<Var> dims) {
  std::vector<Buffer> params;
  std::unordered_set<const Node*> taken;
  for (const Tensor& t : inputs) {
    RELAY_CHECK(taken.insert(t->buffer.get()).second, "input " + t->name + " is given twice");
    params.push_back(t->buffer);
  }
  // An output that is an input, or the same as an earlier output, is a copy of it.
  std::vector<std::pair<Buffer, Buffer>> copies;
  for (const Tensor& t : outputs) {
    if (taken.insert(t->buffer.get()).second) {
      params.push_back(t->buffer);
      continue;
    }
    Buffer copy = buffer(t->name + "_copy", t->dtype, t->shape());
    params.push_back(copy);
    copies.emplace_back(t->buffer, copy);
  }
  Builder builder(params);
  for (const Tensor& t : in_dependency_order(inputs, outputs)) builder.add(t);
  for (const auto& [from, to] : copies) builder.add_copy(from, to);
  Stmt body = builder.finish();
  return make<PrimFuncNode>([&](PrimFuncNode& n) {
    n.name = std::move(name);
    n.params = std::move(params);
    n.num_inputs = static_cast<int64_t>(inputs.size());
    n.dims = std::move(dims);
    n.body = std::move(body);
  });
}

}  // namespace relay::tir
