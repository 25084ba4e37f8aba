#include "analysis/known_values.h"

#include <algorithm>

#include "analysis/known_rules.h"
#include "analysis/purity.h"
#include "base/diagnostic.h"
#include "ir/op.h"
#include "node/walk.h"

namespace relay {
namespace {

constexpr int64_t kMaxElementsTogether = int64_t{1} << 20;
// Names and projections between an expression and what makes its value.
constexpr int kMaxHops = 64;

// The sizes of a tensor that is small enough to be looked at.
std::optional<std::vector<int64_t>> small_shape(const Type& type) {
  auto* t = as<TensorTypeNode>(type);
  if (t == nullptr || t->dtype == runtime::DType::UInt(64) || t->dtype.is_only_moved())
    return std::nullopt;
  auto shape = t->const_shape();
  if (!shape) return std::nullopt;
  int64_t n = 1, limit = t->dtype.is_floating() ? kMaxKnownFloats : kMaxKnownElements;
  for (int64_t d : *shape) {
    if (__builtin_mul_overflow(n, d, &n)) return std::nullopt;
  }
  return n <= limit ? shape : std::nullopt;
}

// The call behind an expression that is its result or a part of that; null when there is none.
const CallNode* call_of(const Expr& e) {
  auto* g = as<TupleGetItemNode>(e);
  return as<CallNode>(g == nullptr ? e : g->tuple);
}

}  // namespace

void KnownValues::bind(const NodeRef& program) {
  keep_.push_back(Expr::unchecked(program));
  post_order(
      program,
      [&](const Node& n) {
        if (auto* l = as<LetNode>(&n)) bound_[l->var.get()] = l->value;
      },
      family::program);
}

void KnownValues::assume(const Var& v, KnownValue value) {
  set(v, std::make_shared<const KnownValue>(std::move(value)));
}

void KnownValues::set(const Expr& e, Value value) {
  if (value != nullptr) {
    elements_ += value->size();
    if (elements_ > kMaxElementsTogether) value = nullptr;
  }
  keep_.push_back(e);
  values_[e.get()] = std::move(value);
}

Expr KnownValues::source(const Expr& e) const {
  Expr at = e;
  std::vector<int64_t> projections;
  for (int hops = 0; hops < kMaxHops; ++hops) {
    if (auto* l = as<LetNode>(at)) {
      at = l->body;
    } else if (auto* g = as<TupleGetItemNode>(at)) {
      projections.push_back(g->index);
      at = g->tuple;
    } else if (auto* t = as<TupleNode>(at); t != nullptr && !projections.empty()) {
      at = t->fields[static_cast<size_t>(projections.back())];
      projections.pop_back();
    } else if (const Expr* value = isa<VarNode>(at) ? bound_.find(at.get()) : nullptr) {
      at = *value;
    } else {
      break;
    }
  }
  // A part of something that is not a tuple in sight, such as what `split` gives.
  if (projections.empty()) return at;
  if (projections.size() > 1) return nullptr;
  auto* g = as<TupleGetItemNode>(e);
  return g != nullptr && g->tuple == at ? e : tuple_get_item(at, projections[0], e->span);
}

std::vector<Expr> KnownValues::operands(const Expr& e) const {
  auto* c = call_of(e);
  std::vector<Expr> out;
  if (c == nullptr) return out;
  std::shared_ptr<const KnownRule> rule = known_rule(*c);
  if (rule == nullptr ? evaluate_ == nullptr : !rule->reads_elements) return out;
  for (const Expr& a : c->args) {
    Expr from = isa<TupleTypeNode>(a->type) ? source(a) : a;
    if (auto* t = as<TupleNode>(from)) {
      out.insert(out.end(), t->fields.begin(), t->fields.end());
    } else {
      out.push_back(std::move(from));
    }
  }
  return out;
}

KnownValues::Value KnownValues::compute(const CallNode& c,
                                        const std::vector<Expr>& operands) const {
  // Numbers alone, and an operator that only computes.
  if (!evaluate_ || !isa<TensorTypeNode>(c.type) || !is_pure_op_call(c) ||
      as<OpNode>(c.op)->row->compute == nullptr || operands.empty() ||
      operands.size() != c.args.size()) {
    return nullptr;
  }
  std::vector<Var> params;
  std::vector<Tensor> args;
  std::vector<Expr> given;
  for (const Expr& o : operands) {
    const Value* value = find(o);
    if (value == nullptr || *value == nullptr || !(*value)->is_constant()) return nullptr;
    params.push_back(var("p" + std::to_string(params.size()), o->type, o->span));
    args.push_back(tensor_from(**value));
    given.push_back(params.back());
  }
  try {
    Expr body = call(c.op, std::move(given), c.attrs, c.span);
    std::vector<Tensor> results = evaluate_(function(std::move(params), body), args);
    auto known = known_from(results.at(0));
    return known ? std::make_shared<const KnownValue>(std::move(*known)) : nullptr;
  } catch (const UserError&) {
    return nullptr;
  } catch (const RuntimeError&) {
    return nullptr;
  }
}

KnownValues::Value KnownValues::evaluate(const Expr& e, const std::vector<Expr>& operands) {
  auto shape = small_shape(e->type);
  if (!shape) return nullptr;
  if (auto* constant = as<ConstantNode>(e)) {
    auto known = known_from(constant->data);
    return known ? std::make_shared<const KnownValue>(std::move(*known)) : nullptr;
  }
  auto* c = call_of(e);
  if (c == nullptr) return nullptr;
  std::shared_ptr<const KnownRule> rule = known_rule(*c);
  if (rule == nullptr) return compute(*c, operands);
  auto* part = as<TupleGetItemNode>(e);
  KnownCall known{*c, {}, *as<TensorTypeNode>(e->type), *shape, part == nullptr ? 0 : part->index};
  bool any = !rule->reads_elements;
  for (const Expr& o : rule->reads_elements ? operands : c->args) {
    const Value* value = find(o);
    auto* type = as<TensorTypeNode>(o->type);
    if (type == nullptr) return nullptr;
    known.operands.push_back(
        {type, type->const_shape(), value == nullptr ? nullptr : value->get()});
    any |= known.operands.back().value != nullptr;
  }
  if (!any) return nullptr;
  auto out = rule->elements(known);
  if (!out) return compute(*c, operands);
  if (!out->ints.empty() && std::ranges::all_of(out->ints, is_any)) return nullptr;
  return std::make_shared<const KnownValue>(std::move(*out));
}

const KnownValue* KnownValues::of(const Expr& e) {
  if (const Value* value = find(e)) return value->get();
  struct Item {
    Expr expr;
    Expr from;  // what makes its value
    std::vector<Expr> operands;
  };
  std::vector<Item> stack;
  auto push = [&](const Expr& next) {
    // Constants of any size are there; only small ones are read.
    Item item{next, small_shape(next->type) ? source(next) : Expr(), {}};
    if (item.from) item.operands = item.from == next ? operands(next) : std::vector{item.from};
    stack.push_back(std::move(item));
  };
  push(e);
  while (!stack.empty()) {
    Item& top = stack.back();
    if (find(top.expr) != nullptr) {
      stack.pop_back();
      continue;
    }
    size_t height = stack.size();
    std::vector<Expr> open;
    for (const Expr& o : top.operands) {
      if (find(o) == nullptr && small_shape(o->type)) open.push_back(o);
    }
    for (const Expr& o : open) push(o);
    if (stack.size() > height) continue;
    Value value;
    if (top.from && top.from != top.expr) {
      const Value* behind = find(top.from);
      value = behind == nullptr ? nullptr : *behind;
    } else if (top.from) {
      value = evaluate(top.expr, top.operands);
    }
    set(top.expr, std::move(value));
    stack.pop_back();
  }
  return find(e)->get();
}

}  // namespace relay
