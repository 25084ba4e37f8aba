#include "lower/loop_sizes.h"

#include <algorithm>
#include <unordered_set>

#include "analysis/loop_kernels.h"
#include "ir/op.h"
#include "ir/open_sizes.h"
#include "node/structural.h"
#include "node/walk.h"
#include "runtime/core/kernel_abi.h"

namespace relay {

using tir::PrimExpr;
using tir::Stmt;

namespace {

// Of an operator's result; a rank is no larger.
constexpr int64_t kMostSizes = 64;

}  // namespace

bool has_open_sizes(const Type& type) {
  bool open = false;
  post_order(
      type, [&](const Node& n) { open |= isa<DimAnyNode>(&n); }, family::type | family::dim);
  return open;
}

Call LoopSizes::with_operands(const CallNode& c, const std::vector<Type>& types) {
  std::vector<Expr> args;
  for (size_t i = 0; i < types.size(); ++i) {
    const bool same = structural_equal(types[i], c.args[i]->type);
    args.push_back(same ? c.args[i] : Expr(var("v" + std::to_string(i), types[i])));
  }
  Call out = call(c.op, std::move(args), c.attrs, c.span);
  define_broadcasts(out->type);
  for (const DimAssumption& s : assumptions_of(*out.get()))
    define_broadcasts(tensor_type({s.a, s.b}, tir::kIndex));
  return out;
}

void LoopSizes::check(const CallNode& c) {
  for (const DimAssumption& s : assumptions_of(c)) {
    const bool own = is_own(s.a) || is_own(s.b);
    if (s.kind != DimAssumption::kAtLeast && !own) continue;
    const PrimExpr a = dims_.lower(s.a), b = dims_.lower(s.b), one = tir::index(1);
    PrimExpr fits = s.kind == DimAssumption::kAtLeast ? tir::ge(a, b) : tir::eq(a, b);
    if (s.kind == DimAssumption::kBroadcast)
      fits = tir::logical_or(fits, tir::logical_or(tir::eq(a, one), tir::eq(b, one)));
    bind_dims();
    if (own && analyzer_.can_prove(fits)) continue;
    const std::string which = own ? "two rows of an iteration differ in size" : to_string(s);
    statements_.emit(tir::check(fits, RELAY_KERNEL_SHAPE_MISMATCH,
                                as<OpNode>(c.op)->name + ": the inputs do not fit: " + which));
  }
}

namespace {

// What statements write to `sizes`, element by element, and their checks; nothing where they are more than checks and stores of
// arithmetic.
struct Numbers {
  std::vector<PrimExpr> values;
  std::vector<Stmt> checks;
};
std::optional<Numbers> numbers_of(const Stmt& body, const Node* sizes, size_t count) {
  Numbers out{std::vector<PrimExpr>(count), {}};
  std::vector<Stmt> work{body};
  while (!work.empty()) {
    const Stmt s = work.back();
    work.pop_back();
    if (auto* seq = as<tir::SeqNode>(s)) {
      work.insert(work.end(), seq->stmts.rbegin(), seq->stmts.rend());
    } else if (auto* f = as<tir::ForNode>(s)) {
      const auto extent = tir::as_int(f->extent), min = tir::as_int(f->min);
      if (!extent || !min || *extent > kMostSizes) return std::nullopt;
      for (int64_t k = *extent; k-- > 0;)
        work.push_back(tir::replace(f->body, {{f->var.get(), tir::index(*min + k)}}));
    } else if (isa<tir::CheckNode>(s) && !tir::uses(s, sizes)) {
      // One that is the same for several sizes is made once.
      if (std::ranges::none_of(out.checks, [&](const Stmt& c) { return structural_equal(c, s); }))
        out.checks.push_back(s);
    } else {
      auto* store = as<tir::StoreNode>(s);
      const auto at = store == nullptr ? std::nullopt : tir::as_int(store->indices[0]);
      if (!at || store->buffer.get() != sizes || tir::uses(store->value, sizes))
        return std::nullopt;
      out.values[static_cast<size_t>(*at)] = store->value;
    }
  }
  const bool is_whole = std::ranges::all_of(out.values, [](const PrimExpr& e) { return bool(e); });
  return is_whole ? std::optional(out) : std::nullopt;
}

}  // namespace

void LoopSizes::bind_dims() {
  for (; dims_bound_ < dims_.dims().size(); ++dims_bound_) {
    analyzer_.bind(dims_.dims()[dims_bound_].second, tir::Bounds{.min = 0});
  }
}

bool LoopSizes::is_own(const Dim& d) const {
  bool own = false;
  post_order(
      d,
      [&](const Node& n) {
        auto* name = as<DimVarNode>(&n);
        own |= name != nullptr && std::ranges::find(own_, name->var.get()) != own_.end();
      },
      family::dim);
  return own;
}

Dim LoopSizes::named(const PrimExpr& computed, const PrimExpr& most) {
  if (auto size = tir::as_int(computed)) return dim(*size);
  for (const auto& [size, variable] : dims_.dims()) {
    if (variable == computed) return size;
  }
  auto same = std::ranges::find_if(known_, [&](const Known& k) {
    return k.kept == computed || structural_equal(k.computed, computed);
  });
  if (same != known_.end()) return same->name;
  TypeVar v = type_var("s" + std::to_string(own_.size()), Kind::Dim);
  own_.push_back(v.get());
  define(dim(v), computed, most);
  return known_.back().name;
}

void LoopSizes::define(const Dim& d, const PrimExpr& computed, const PrimExpr& most) {
  const tir::Var variable = tir::Var::unchecked(dims_.lower(d));
  // What it stands for may be a name, too.
  const PrimExpr value = tir::replace(statements_.keep(computed), values_);
  values_.emplace(variable.get(), value);
  bind_dims();
  analyzer_.bind(variable, value, tir::index(1));
  known_.push_back({computed, value, variable, d, most});
}

Call LoopSizes::with_result_named(const Call& c, const std::vector<tir::Tensor>& inputs) {
  const tir::Tensor sizes = compute_call_shapes(*c.get(), inputs, dims_)[0];
  std::vector<tir::Buffer> buffers;
  for (const tir::Tensor& i : sizes->inputs) buffers.push_back(i->buffer);
  RELAY_CHECK(sizes->imperative != nullptr, "a rule for sizes is statements");
  const Stmt body = statements_.resolve(sizes->imperative(buffers, sizes->buffer));
  bind_dims();
  const size_t rank = as<TensorTypeNode>(c->type)->shape.size();
  std::vector<PrimExpr> numbers;
  if (const auto found = numbers_of(body, sizes->buffer.get(), rank)) {
    numbers = found->values;
    for (const Stmt& s : found->checks) {
      if (!analyzer_.can_prove(as<tir::CheckNode>(s)->cond)) statements_.emit(s);
    }
  } else {
    const tir::Buffer memory =
        statements_.fresh(tir::kIndex, {tir::index(static_cast<int64_t>(rank))});
    statements_.emit(tir::replace(body, {{sizes->buffer.get(), memory}}));
    for (size_t d = 0; d < rank; ++d)
      numbers.push_back(tir::load(memory, {tir::index(static_cast<int64_t>(d))}));
  }
  // A part is no larger than the whole.
  const bool cuts = is_part(c);
  Type named_type = with_sizes_named(c->type, [&](size_t, size_t axis) {
    const PrimExpr size = analyzer_.simplify(numbers[axis]);
    const PrimExpr most = cuts ? most_of(inputs[0]->shape()[axis]) : nullptr;
    return named(size, most ? most : most_of(size));
  });
  auto* sized = new CallNode(*c.get());
  Call out(sized);
  sized->type = named_type;
  return out;
}

void LoopSizes::define_broadcasts(const Type& type) {
  std::vector<Dim> found;
  post_order(
      type,
      [&](const Node& n) {
        auto* op = as<DimOpNode>(&n);
        if (op == nullptr || op->op != DimOpKind::Broadcast) return;
        Dim d(op);
        if (is_own(d)) found.push_back(d);
      },
      family::type | family::dim);
  for (const Dim& d : found) {
    if (values_.contains(dims_.lower(d).get())) continue;
    auto& op = *as<DimOpNode>(d);
    bind_dims();
    const PrimExpr a = dims_.lower(op.a), b = dims_.lower(op.b);
    const PrimExpr size = analyzer_.simplify(tir::select(tir::eq(a, tir::index(1)), b, a));
    const PrimExpr most_a = most_of(a), most_b = most_of(b);
    const PrimExpr most = most_a && most_b ? tir::max(most_a, most_b) : PrimExpr(nullptr);
    define(d, size, most);
  }
}

bool LoopSizes::is_known_before(const PrimExpr& e) const {
  bool known = true;
  post_order(
      e,
      [&](const Node& n) {
        if (isa<tir::LoadNode>(&n) || isa<tir::CallNode>(&n)) known = false;
        if (!isa<tir::VarNode>(&n)) return;
        known = known && std::ranges::any_of(dims_.dims(), [&](const auto& d) {
                  return d.second.get() == &n && !values_.contains(&n);
                });
      },
      family::tir_expr);
  return known;
}

PrimExpr LoopSizes::most_of(const PrimExpr& size) {
  if (is_known_before(size)) return size;
  for (const Known& k : known_) {
    if (k.most && (k.variable == size || structural_equal(k.computed, size))) return k.most;
  }
  bind_dims();
  for (const auto& [name, variable] : dims_.dims()) {
    if (!values_.contains(variable.get()) && analyzer_.can_prove(tir::le(size, variable)))
      return variable;
  }
  return nullptr;
}

std::optional<std::vector<PrimExpr>> LoopSizes::room(const std::vector<PrimExpr>& shape) {
  std::vector<PrimExpr> out;
  for (const PrimExpr& size : shape) {
    out.push_back(most_of(size));
    if (!out.back()) return std::nullopt;
  }
  return out;
}

}  // namespace relay
