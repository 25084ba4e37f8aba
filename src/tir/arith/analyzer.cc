#include "tir/arith/analyzer_impl.h"

#include "base/budget.h"
#include "node/walk.h"

namespace relay::tir {

void Analyzer::Impl::forget() {
  simplified.clear();
  known_bounds.clear();
  known_fits.clear();
}

bool Analyzer::Impl::same_child(const NodeRef& a, const NodeRef& b) {
  if (a == b) return true;
  auto* x = as<IntImmNode>(a);
  auto* y = as<IntImmNode>(b);
  return x && y && x->value == y->value && x->dtype == y->dtype;
}

uint64_t Analyzer::Impl::shallow_hash(const Node& n) {
  uint64_t h = static_cast<uint64_t>(n.kind());
  for (const Field& f : n.info().fields) {
    const void* at = f.in(n);
    if (f.role == Role::attribute) {
      h = hash_combine(h, f.ops->hash(at));
    } else if (f.role != Role::ignored) {
      for (size_t i = 0, count = f.ops->count(at); i < count; ++i) {
        const NodeRef& c = f.ops->get_child(at, i);
        auto* imm = as<IntImmNode>(c);
        h = hash_combine(
            h, imm ? static_cast<uint64_t>(imm->value) : reinterpret_cast<uintptr_t>(c.get()));
      }
    }
  }
  return h;
}

bool Analyzer::Impl::shallow_equal(const Node& a, const Node& b) {
  if (a.kind() != b.kind()) return false;
  for (const Field& f : a.info().fields) {
    const void* x = f.in(a);
    const void* y = f.in(b);
    if (f.role == Role::attribute) {
      if (!f.ops->equal(x, y)) return false;
    } else if (f.role != Role::ignored) {
      size_t count = f.ops->count(x);
      if (count != f.ops->count(y)) return false;
      for (size_t i = 0; i < count; ++i) {
        if (!same_child(f.ops->get_child(x, i), f.ops->get_child(y, i))) return false;
      }
    }
  }
  return true;
}

PrimExpr Analyzer::Impl::intern(const PrimExpr& e) {
  if (order.contains(e.get())) return e;
  uint64_t h = isa<VarNode>(e) ? reinterpret_cast<uintptr_t>(e.get()) : shallow_hash(*e.get());
  if (!isa<VarNode>(e)) {
    auto [from, to] = interned.equal_range(h);
    for (auto it = from; it != to; ++it) {
      if (shallow_equal(*it->second.get(), *e.get())) return it->second;
    }
  }
  interned.emplace(h, e);
  order.emplace(e.get(), order.size());
  return e;
}

PrimExpr Analyzer::Impl::make_binary(BinaryOp op, const PrimExpr& a, const PrimExpr& b) {
  return intern(binary(op, a, b));
}

PrimExpr Analyzer::Impl::simplify(const PrimExpr& root) {
  std::vector<std::pair<PrimExpr, bool>> stack{{root, false}};
  while (!stack.empty()) {
    check_budget();
    auto [e, entered] = stack.back();
    if (simplified.contains(e.get())) {
      stack.pop_back();
    } else if (isa<VarNode>(e) || isa<IntImmNode>(e)) {
      stack.pop_back();
      simplified.emplace(e.get(), Simplified{e, intern(e), {}});
    } else if (!entered) {
      stack.back().second = true;
      if (auto* l = as<LetNode>(e)) counting.define(l->var, l->value);
      push_children(e, stack);
    } else {
      stack.pop_back();
      Simplified result = simplify_parts(e);
      simplified.emplace(e.get(), std::move(result));
    }
  }
  return built(simplified.at(root.get()));
}

void Analyzer::Impl::push_children(const PrimExpr& e,
                                   std::vector<std::pair<PrimExpr, bool>>& stack) {
  if (auto* b = as<BinaryNode>(e)) {
    stack.emplace_back(b->b, false);
    stack.emplace_back(b->a, false);
    return;
  }
  std::vector<NodeRef> children = children_of(*e.get());
  for (size_t i = children.size(); i-- > 0;) {
    if (children[i] && PrimExprNode::classof(*children[i].get())) {
      stack.emplace_back(PrimExpr::unchecked(std::move(children[i])), false);
    }
  }
}

const PrimExpr& Analyzer::Impl::built(Simplified& s) {
  if (!s.expr) s.expr = from_linear(join_div_mod(std::move(s.sum)));
  return s.expr;
}

Analyzer::Impl::Simplified Analyzer::Impl::simplify_parts(const PrimExpr& e) {
  if (auto* b = as<BinaryNode>(e)) {
    Simplified& x = simplified.at(b->a.get());
    Simplified& y = simplified.at(b->b.get());
    if (e->dtype == kIndex) {
      if (auto sum = linear_binary(b->op, x, y)) return {e, nullptr, std::move(*sum)};
    }
    return {e, simplify_binary(b->op, built(x), built(y)), {}};
  }
  std::vector<NodeRef> children = children_of(*e.get());
  for (NodeRef& c : children) {
    auto it = c ? simplified.find(c.get()) : simplified.end();
    if (it != simplified.end()) c = built(it->second);
  }
  return {e, simplify_node(PrimExpr::unchecked(with_children(e, children))), {}};
}

std::optional<Linear> Analyzer::Impl::linear_binary(BinaryOp op, Simplified& x, Simplified& y) {
  switch (op) {
    case BinaryOp::Add:
      return add_scaled(linear(x), linear(y), 1, order);
    case BinaryOp::Sub:
      return add_scaled(linear(x), linear(y), -1, order);
    case BinaryOp::Mul:
      if (linear(y).terms.empty()) return add_scaled({}, linear(x), linear(y).constant, order);
      if (linear(x).terms.empty()) return add_scaled({}, linear(y), linear(x).constant, order);
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

Analyzer::Analyzer() : impl_(std::make_unique<Impl>()) {}
Analyzer::~Analyzer() = default;

void Analyzer::bind(const Var& var, Bounds range) {
  auto [it, fresh] = impl_->ranges.insert_or_assign(var.get(), range);
  (void)it;
  impl_->intern(var);
  if (!fresh || impl_->known_bounds.contains(var.get())) impl_->forget();
}

void Analyzer::bind(const Buffer& buffer, int64_t at, Bounds range) {
  impl_->elements[{buffer.get(), at}] = range;
  impl_->forget();
}

void Analyzer::bind(const Var& var, const PrimExpr& min, const PrimExpr& extent) {
  if (!(var->dtype == kIndex)) return;
  if (auto first = as_int(min), count = as_int(extent); first && count) {
    return bind(var, Bounds{*first, *first + *count - 1});
  }
  PrimExpr low = simplify(min);
  PrimExpr end = simplify(min + extent);
  Bounds range{impl_->bounds(low).min, impl_->bounds(end).max};
  // The end is below each side of a minimum, of which a part may cancel: b * 3 + min(3, 8 - b * 3) is at most 8.
  const PrimExpr length = simplify(extent);
  auto* least = as_binary(length.get(), BinaryOp::Min);
  if (least != nullptr) {
    for (const PrimExpr& side : {least->a, least->b}) {
      range.max = std::min(range.max, impl_->bounds(simplify(min + side)).max);
    }
  }
  if (range.has_max()) range.max -= 1;
  bind(var, range);
  // Symbolic ends are facts: var < end (each side of a minimum), low <= var.
  Linear v = impl_->linear(var);
  auto below = [&](const PrimExpr& limit) {
    if (as_int(limit)) return;
    if (auto l = add_scaled(v, impl_->exact(limit), -1, impl_->order)) impl_->add_fact(*l, -1);
  };
  if (least != nullptr) {
    below(simplify(min + least->a));
    below(simplify(min + least->b));
  } else {
    below(end);
  }
  if (!as_int(low)) {
    if (auto l = add_scaled(impl_->exact(low), v, -1, impl_->order)) impl_->add_fact(*l, 0);
    // The iterations count, wherever they begin.
    auto iteration = add_scaled(v, impl_->exact(low), -1, impl_->order);
    if (iteration && !impl_->counting.counts(low)) impl_->add_fact(*iteration, kMostCount);
  }
}

void Analyzer::bind_function(const PrimFunc& f) {
  for (const Var& d : f->dims) bind(d, Bounds{0, Bounds::kNoMax});
  impl_->counting.add(f->body);
  impl_->forget();
}

void Analyzer::define(const Var& var, const PrimExpr& value) {
  impl_->counting.define(var, value);
  if (var->dtype == kIndex) bind(var, bounds(value));
}

Analyzer::Scope Analyzer::assume(const PrimExpr& cond) {
  size_t before = impl_->facts.size();
  // What bounds a dividend first: the rest of the division may be the dividend then.
  std::vector<PrimExpr> parts{simplify(cond)}, others;
  while (!parts.empty()) {
    PrimExpr p = std::move(parts.back());
    parts.pop_back();
    if (auto* c = as<CallNode>(p); c && c->name == "likely") {
      parts.push_back(c->args[0]);
    } else if (auto* b = as<BinaryNode>(p)) {
      if (b->op == BinaryOp::And) {
        parts.push_back(b->a);
        parts.push_back(b->b);
      } else if (as_binary(b->a.get(), BinaryOp::FloorDiv) ||
                 as_binary(b->b.get(), BinaryOp::FloorDiv)) {
        impl_->add_comparison(*b);
      } else {
        others.push_back(std::move(p));
      }
    }
  }
  const bool bounded = impl_->facts.size() != before;
  if (bounded) impl_->forget();
  for (const PrimExpr& p : others) {
    PrimExpr now = bounded ? simplify(p) : p;
    impl_->add_comparison(*as<BinaryNode>(p));
    if (auto* b = as<BinaryNode>(now); b != nullptr && now.get() != p.get())
      impl_->add_comparison(*b);
  }
  if (impl_->facts.size() != before) impl_->forget();
  return Scope(this, before);
}

Analyzer::Scope Analyzer::inside(const Var& var, const PrimExpr& min, const PrimExpr& extent) {
  size_t before = impl_->facts.size();
  impl_->counting.define_loop(var, min);
  bind(var, min, extent);
  return Scope(this, before);
}

Analyzer::Scope::~Scope() {
  if (analyzer_ == nullptr) return;
  Impl& impl = *analyzer_->impl_;
  if (impl.facts.size() > facts_) {
    impl.facts.resize(facts_);
    impl.forget();
  }
}

PrimExpr Analyzer::simplify(const PrimExpr& e) {
  if (!e) return e;
  return impl_->simplify(e);
}

bool Analyzer::can_prove(const PrimExpr& cond) { return as_int(simplify(cond)) == 1; }

Bounds Analyzer::bounds(const PrimExpr& e) { return impl_->bounds(simplify(e)); }

std::optional<int64_t> Analyzer::constant_difference(const PrimExpr& a, const PrimExpr& b) {
  return as_int(simplify(a - b));
}

Analyzer::Modular Analyzer::modular(const PrimExpr& e) { return impl_->modular(simplify(e)); }

}  // namespace relay::tir
