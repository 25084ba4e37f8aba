#include "passes/simplify/dynamic_to_static.h"

#include <optional>
#include <unordered_set>

#include "analysis/calls.h"
#include "analysis/known_values.h"
#include "analysis/primitives.h"
#include "analysis/purity.h"
#include "ir/op.h"
#include "node/structural.h"
#include "node/walk.h"

namespace relay {
namespace {

// The sizes in an argument: a list, or one for a scalar. Null when they are not known, may be below
// zero without being numbers, or computing them does something else besides.
AttrValue sizes(const StaticForm& form, const CallNode& c, size_t arg, const Expr& original,
                KnownValues& known, LazyPurity& purity) {
  const KnownValue* k = known.of(c.args[arg]);
  if (k == nullptr || !k->dtype.is_integer() || k->shape.size() > 1 || !k->is_complete() ||
      !purity.of(original).droppable()) {
    return {};
  }
  for (size_t i = 0; i < k->ints.size(); ++i) {
    const Dim& d = k->ints[i];
    if (as_const(d)) continue;
    if (least_value(d).value_or(-1) < 0 ||
        (form.takes_term != nullptr && !form.takes_term(c, i, d)))
      return {};
  }
  return k->shape.empty() ? to_value(k->ints[0]) : to_value(Dims(k->ints.begin(), k->ints.end()));
}

// The call with its sizes as attributes; null when they are not known, or not good: then it is for
// the run to say so.
Expr with_attributes(const CallNode& c, const CallNode& original, KnownValues& known,
                     LazyPurity& purity) {
  auto* op = as<OpNode>(c.op);
  if (op == nullptr || !op->row->static_form) return nullptr;
  const StaticForm& form = *op->row->static_form;
  if (form.when != nullptr && !form.when(c)) return nullptr;
  std::vector<std::pair<std::string, AttrValue>> attrs;
  for (size_t i = form.first; i < c.args.size(); ++i) {
    AttrValue list = sizes(form, c, i, original.args[i], known, purity);
    if (list.is_none()) return nullptr;
    attrs.emplace_back(form.attrs[i - form.first], std::move(list));
  }
  for (const std::string& name : form.kept) attrs.emplace_back(name, attr_value(c.attrs, name));
  if (form.names_dtype) attrs.emplace_back("dtype", as<TensorTypeNode>(c.type)->dtype.to_string());
  std::vector<Expr> args(c.args.begin(), c.args.begin() + static_cast<std::ptrdiff_t>(form.first));
  try {
    return make_call(form.op, std::move(args), attrs, c);
  } catch (const UserError&) {
    return nullptr;
  }
}

// Thrown where a more precise type does not fit.
struct DoesNotFit {};

class ToStatic : public RewriterOutsidePrimitives {
 public:
  ToStatic(const Function& f, LazyPurity& purity) : purity_(purity) { known_.bind(f); }

  NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
    if (original == rebuilt && !isa<CallNode>(rebuilt)) return rebuilt;
    switch (rebuilt.get()->kind()) {
      case ExprKind::Call: {
        auto& c = static_cast<const CallNode&>(*rebuilt.get());
        if (Expr known = with_attributes(c, *as<CallNode>(original), known_, purity_)) return known;
        if (!isa<OpNode>(c.op)) demand_same(original, rebuilt);
        return rebuilt;
      }
      case ExprKind::Tuple:
      case ExprKind::TupleGetItem:
      case ExprKind::Function:
        return rebuilt;
      default:
        if (isa<ExprNode>(rebuilt)) demand_same(original, rebuilt);
        return rebuilt;
    }
  }

 private:
  // All that is used directly has the type that it had; what a Let or branch gives may not.
  static void demand_same(const NodeRef& original, const NodeRef& rebuilt) {
    std::vector<NodeRef> before = children_of(*original.get()), after = children_of(*rebuilt.get());
    for (size_t i = 0; i < before.size(); ++i) {
      auto *x = as<ExprNode>(before[i]), *y = as<ExprNode>(after[i]);
      if (x != nullptr && y != nullptr && !structural_equal(x->type, y->type)) throw DoesNotFit{};
      auto *c = as<ClauseNode>(before[i]), *d = as<ClauseNode>(after[i]);
      if (c != nullptr && d != nullptr && !structural_equal(c->rhs->type, d->rhs->type)) {
        throw DoesNotFit{};
      }
    }
  }

  KnownValues known_;
  LazyPurity& purity_;
};

Module run_dynamic_to_static(const Module& mod, PassContext&) {
  std::unordered_set<std::string> called;
  for (const Function& f : mod->functions) {
    post_order(
        f,
        [&](const Node& n) {
          if (auto* g = as<GlobalVarNode>(&n)) called.insert(g->name_hint);
        },
        family::program);
  }
  LazyPurity purity(mod);
  return map_functions(mod, [&](const GlobalVar& name, const Function& f) {
    try {
      Function known = ToStatic(f, purity).apply(f);
      bool fits = !called.contains(name->name_hint) || structural_equal(known->type, f->type);
      return fits ? known : f;
    } catch (const DoesNotFit&) {
      return f;
    } catch (const UserError&) {
      // An operator that takes `?` for what it wants, but not the number.
      return f;
    }
  });
}

}  // namespace

const Pass kDynamicToStatic{"DynamicToStatic",
                            2,
                            Form::any,
                            Form::any,
                            "Makes constant arguments that are sizes attributes.",
                            run_dynamic_to_static};

}  // namespace relay
