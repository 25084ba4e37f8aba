#include "passes/simplify/fold_constant.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "analysis/calls.h"
#include "analysis/evaluate_constants.h"
#include "analysis/known_match.h"
#include "analysis/known_values.h"
#include "analysis/placement.h"
#include "analysis/primitives.h"
#include "analysis/purity.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "node/walk.h"

namespace relay {
namespace {

constexpr int64_t kDefaultMaxBytes = int64_t{1} << 30;
// Largest fill that is made while compiling, for what is folded behind it, and largest result of a reduction or a scan of
// fills that is kept: reading it costs less than computing it in each run, and the artifact grows by it.
constexpr int64_t kMaxFillBytes = int64_t{1} << 28, kMaxWorkedBytes = int64_t{1} << 24;

// Fused kernels are folded as a whole or not at all.
class Folder : public RewriterOutsidePrimitives {
 public:
  Folder(const PassContext& ctx, int64_t max_bytes, int64_t keep_transposes, LazyPurity& purity)
      : ctx_(ctx), max_bytes_(max_bytes), keep_transposes_(keep_transposes), purity_(purity) {}

  NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
    switch (rebuilt.get()->kind()) {
      case ExprKind::Call:
        // A constant is wherever it is used.
        if (is_placed_constant(*as<CallNode>(rebuilt))) return as<CallNode>(rebuilt)->args[0];
        note_call(*as<CallNode>(rebuilt));
        if (Expr sizes = known_sizes(original, rebuilt)) return sizes;
        return rebuilt;
      case ExprKind::Tuple: {
        note_tuple(*as<TupleNode>(rebuilt));
        return rebuilt;
      }
      case ExprKind::TupleGetItem: {
        auto* g = as<TupleGetItemNode>(rebuilt);
        if (auto* t = as<TupleNode>(g->tuple);
            t != nullptr && others_droppable(*as<TupleGetItemNode>(original))) {
          return t->fields[static_cast<size_t>(g->index)];
        }
        if (is_constant(g->tuple.get())) mark(*g);
        return rebuilt;
      }
      case ExprKind::If: {
        auto* n = as<IfNode>(rebuilt);
        auto* c = as<ConstantNode>(n->cond);
        if (c == nullptr) return rebuilt;
        return c->data.get_as_int(0) != 0 ? n->true_branch : n->false_branch;
      }
      case ExprKind::Match: {
        auto* m = as<MatchNode>(rebuilt);
        Expr clause = known_clause(*m, made_by(*m));
        return clause ? NodeRef(clause) : rebuilt;
      }
      default:
        return rebuilt;
    }
  }

  // Evaluates the maximal constant expressions of a rewritten function.
  Function fold(const Function& f) {
    post_order(
        f,
        [&](const Node& n) {
          if (auto* l = as<LetNode>(&n)) bound_.emplace(l->var.get(), l->value.get());
        },
        family::program);
    known_.bind(f);
    Function marked = apply(f);
    if (constant_.empty() || !ctx_.evaluate) return marked;
    auto values = evaluate_constants(marked, constant_, ctx_.evaluate);
    // A fill that something else reads, too, stays a fill there.
    for (const auto& [fill, bytes] : fills_) values.erase(fill);
    return cast<FunctionNode>(substitute(marked, values, family::program));
  }

 private:
  bool is_fill(const Node* n) const { return fills_.contains(n); }
  bool is_constant(const Node* n) const {
    return isa<ConstantNode>(n) || (constant_.contains(n) && !is_fill(n));
  }
  bool is_placed_constant(const CallNode& c) const {
    const PlacingCall what = placing_call(c);
    return (what.copy != nullptr || what.on_device != nullptr) && is_constant(c.args[0].get());
  }
  // Whatever is computed here is computed with the fills below it.
  void mark(const ExprNode& e) {
    std::vector<const Node*> open{&e};
    keep_.push_back(NodeRef(&e));
    while (!open.empty()) {
      const Node* n = open.back();
      open.pop_back();
      if (!constant_.insert(n).second) continue;
      for_each_child(*n, [&](const NodeRef& child) {
        if (is_fill(child.get())) open.push_back(child.get());
      });
    }
  }
  void note_fill(const ExprNode& e, int64_t made_of) {
    fills_.emplace(&e, made_of);
    keep_.push_back(NodeRef(&e));
  }

  // The bytes of constants that a constant or a fill is made of; nullopt for everything else.
  std::optional<int64_t> made_of(const Expr& e) const {
    auto it = fills_.find(e.get());
    if (it != fills_.end()) return it->second;
    return is_constant(e.get()) ? bytes_of(e->type) : std::nullopt;
  }
  template <class Exprs>
  std::optional<int64_t> made_of_all(const Exprs& all) const {
    int64_t total = 0;
    for (const Expr& e : all) {
      auto bytes = made_of(e);
      if (!bytes) return std::nullopt;
      total += *bytes;
    }
    return total;
  }
  template <class Exprs>
  bool has_fill(const Exprs& all) const {
    return std::ranges::any_of(all, [&](const Expr& e) { return is_fill(e.get()); });
  }

  void note_tuple(const TupleNode& t) {
    if (std::ranges::all_of(t.fields, [&](const Expr& e) { return is_constant(e.get()); })) {
      mark(t);
    } else if (auto bytes = made_of_all(t.fields)) {
      note_fill(t, *bytes);
    }
  }

  // The expression that makes a matched value, as far as it is in sight: a Let's value when all its
  // parts are leaves, since anything else is computed where the Let stands.
  Expr made_by(const MatchNode& m) const {
    auto it = bound_.find(m.data.get());
    if (it == bound_.end()) return m.data;
    NodeRef now = lookup(it->second);
    Expr value = now ? Expr::unchecked(now) : Expr(it->second);
    bool leaves = true;
    for_each_child(*value.get(), [&](const NodeRef& child) {
      leaves &= !isa<ExprNode>(child) || is_leaf(*child.get());
    });
    return leaves ? value : m.data;
  }

  // Whether the fields that a projection does not take may be left out.
  bool others_droppable(const TupleGetItemNode& g) {
    auto* t = as<TupleNode>(g.tuple);
    if (t == nullptr) return purity_.of(g.tuple).droppable();
    for (size_t i = 0; i < t->fields.size(); ++i) {
      if (static_cast<int64_t>(i) != g.index && !purity_.of(t->fields[i]).droppable()) return false;
    }
    return true;
  }

  // What only sizes decide, though the tensors that have them are not known.
  Expr known_sizes(const NodeRef& original, const NodeRef& rebuilt) {
    auto& c = *as<CallNode>(rebuilt);
    if (constant_.contains(&c) || !isa<OpNode>(c.op)) return nullptr;
    const KnownValue* known = known_.of(Expr(&c));
    if (known == nullptr || !known->is_int() || !known->is_constant()) return nullptr;
    if (!purity_.of(Expr(as<CallNode>(original))).droppable()) return nullptr;
    return constant(tensor_from(*known), c.span);
  }

  // A call of constants is computed here, unless it is a *fill*: so much larger than what it is made of that the run makes
  // it. What is made of fills is a fill, too, up to the call at which the chain shrinks, or that does more than move and
  // map elements: there the chain ends, and its result is computed here.
  void note_call(const CallNode& c) {
    if (!is_pure_op_call(c) || as<OpNode>(c.op)->row->compute == nullptr) return;
    if (has_symbolic_sizes(c.attrs)) return;
    auto arg_bytes = made_of_all(c.args);
    auto bytes = bytes_of(c.type);
    if (!arg_bytes || !bytes || *bytes > max_bytes_) return;
    const bool of_fills = has_fill(c.args);
    const FusionClass fusion = as<OpNode>(c.op)->row->fusion;
    const bool moves = fusion == FusionClass::ElemWise || fusion == FusionClass::Broadcast ||
                       fusion == FusionClass::Injective;
    const bool worked = of_fills && !moves && *bytes <= kMaxWorkedBytes;
    if (grows_too_much(*bytes, *arg_bytes) && !worked) {
      if (*bytes <= kMaxFillBytes) note_fill(c, *arg_bytes);
      return;
    }
    if (keep_transposes_ > 0 && *bytes >= keep_transposes_ && is_call_to(Expr(&c), "transpose")) {
      return;
    }
    mark(c);
  }

  const PassContext& ctx_;
  int64_t max_bytes_;
  int64_t keep_transposes_;
  LazyPurity& purity_;
  KnownValues known_;
  std::unordered_set<const Node*> constant_;
  std::unordered_map<const Node*, int64_t>
      fills_;  // to the bytes of the constants that they are made of
  std::unordered_map<const Node*, const ExprNode*> bound_;  // a Let's variable to its value
  std::vector<NodeRef> keep_;
};

// Variables bound to constants are replaced by them.
Function propagate_bound_constants(const Function& f) {
  std::unordered_map<const Node*, NodeRef> values;
  post_order(
      f,
      [&](const Node& n) {
        auto* l = as<LetNode>(&n);
        if (l != nullptr && isa<ConstantNode>(l->value)) values.emplace(l->var.get(), l->value);
      },
      family::program);
  if (values.empty()) return f;
  class Propagate : public Rewriter {
   public:
    explicit Propagate(const std::unordered_map<const Node*, NodeRef>& values)
        : Rewriter(family::program), values_(values) {
      for (const auto& [var, value] : values) set(NodeRef(var), value);
    }
    // The Let itself goes with its variable.
    NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
      auto* l = as<LetNode>(original);
      if (l == nullptr || !values_.contains(l->var.get())) return rebuilt;
      NodeRef body = lookup(l->body.get());
      return body ? body : NodeRef(l->body);
    }

   private:
    const std::unordered_map<const Node*, NodeRef>& values_;
  };
  // A bound variable stands in its Let's binder field too, where a constant has no place; the Let
  // is dropped before anybody looks.
  return Propagate(values).apply(f);
}

Module run_fold_constant(const Module& mod, PassContext& ctx) {
  auto max_bytes = ctx.option<int64_t>(kFoldConstant, "max_bytes");
  auto keep_transposes = ctx.option<int64_t>(kFoldConstant, "keep_transposes");
  Module propagated = map_functions(
      mod, [](const GlobalVar&, const Function& f) { return propagate_bound_constants(f); });
  LazyPurity purity(propagated);
  return map_functions(propagated, [&](const GlobalVar&, const Function& f) {
    return Folder(ctx, max_bytes, keep_transposes, purity).fold(f);
  });
}

}  // namespace

const Pass kFoldConstant{
    "FoldConstant",
    2,
    Form::any,
    Form::any,
    "Computes at compile time what depends on constants only.",
    run_fold_constant,
    {{"max_bytes", PassOption::Type::integer, AttrValue(kDefaultMaxBytes),
      "Largest constant that is made, but for what is no larger than what it is made of."},
     {"keep_transposes", PassOption::Type::integer, AttrValue(int64_t{0}),
      "Bytes from which on a transposed constant stays as it is, for a later run; 0: none does."}}};

}  // namespace relay
