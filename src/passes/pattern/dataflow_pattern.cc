#include "passes/pattern/dataflow_pattern.h"

#include <algorithm>

#include "base/budget.h"
#include "base/codes/passes.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "node/structural.h"
#include "passes/pattern/pattern_node.h"

namespace relay {
namespace {

// Patterns are taken apart by recursion: no pattern that a person writes is as deep.
constexpr int kMaxDepth = 500;

DFPattern build(DFKind kind, const std::function<void(DFPattern::Node&)>& fill) {
  auto node = std::make_shared<DFPattern::Node>();
  node->kind = kind;
  fill(*node);
  for (const DFPattern& p : node->parts) node->depth = std::max(node->depth, p.get()->depth + 1);
  if (node->depth > kMaxDepth) {
    throw UserError(
        Diagnostic(codes::pattern_refused, {}, "the pattern is nested too deeply")
            .expected("no more than " + std::to_string(kMaxDepth) + " patterns in one another")
            .help("a pattern that contains itself matches chains of any length"));
  }
  return DFPattern(std::move(node));
}

DFPattern build(DFKind kind, std::vector<DFPattern> parts) {
  return build(kind, [&](DFPattern::Node& n) { n.parts = std::move(parts); });
}

DFPattern build_any(DFKind kind, std::vector<DFPattern> parts) {
  return build(kind, [&](DFPattern::Node& n) {
    n.parts = std::move(parts);
    n.any = true;
  });
}

bool has_attr_value(const Expr& e, const std::string& name, const AttrValue& value) {
  if (auto* c = as<CallNode>(e)) {
    if (!c->attrs || c->attrs.get()->info().find(name) == nullptr) return false;
    return attr_value(c->attrs, name) == value;
  }
  if (auto* f = as<FunctionNode>(e)) {
    auto it = f->attrs.find(name);
    return it != f->attrs.end() && it->second == value;
  }
  auto* op = as<OpNode>(e);
  return op != nullptr && name == "TOpPattern" && op->row->fusion &&
         value == AttrValue(static_cast<int64_t>(op->row->fusion.get()));
}

bool is_same(const Expr& e, const Expr& wanted) {
  return e == wanted || (is_leaf(*e) && !isa<VarNode>(e) && structural_equal(e, wanted));
}

}  // namespace

std::vector<Expr> operands_of(const Expr& e) {
  if (auto* c = as<CallNode>(e)) return c->args;
  if (auto* t = as<TupleNode>(e)) return t->fields;
  if (auto* g = as<TupleGetItemNode>(e)) return {g->tuple};
  return {};
}

bool is_composite(const DFPattern::Node& part) {
  switch (part.kind) {
    case DFKind::Call:
    case DFKind::Tuple:
    case DFKind::GetItem:
    case DFKind::If:
    case DFKind::Let:
    case DFKind::Function:
      return true;
    default:
      return false;
  }
}

bool is_constant_part(const DFPattern::Node& part) {
  return part.kind == DFKind::Constant ||
         (part.kind == DFKind::Same && isa<ConstantNode>(part.expr));
}

// ---- Building

DFPattern DFPattern::operator()(std::vector<DFPattern> args) const {
  args.insert(args.begin(), *this);
  return build(DFKind::Call, std::move(args));
}

DFPattern DFPattern::with_any_args() const { return build_any(DFKind::Call, {*this}); }

DFPattern DFPattern::operator|(const DFPattern& other) const {
  return build(DFKind::Or, std::vector<DFPattern>{*this, other});
}

DFPattern DFPattern::with(std::function<bool(const Expr&)> condition) const {
  return build(DFKind::Condition, [&](Node& n) {
    n.parts = {*this};
    n.condition = std::move(condition);
  });
}

DFPattern DFPattern::has_attr(std::string name, AttrValue value) const {
  return with([name = std::move(name), value = std::move(value)](const Expr& e) {
    return has_attr_value(e, name, value);
  });
}

DFPattern DFPattern::has_dtype(DType dtype) const {
  return with([dtype](const Expr& e) {
    auto* t = as<TensorTypeNode>(e->type);
    return t != nullptr && t->dtype == dtype;
  });
}

DFPattern DFPattern::has_shape(std::vector<int64_t> shape) const {
  return with([shape = std::move(shape)](const Expr& e) {
    auto* t = as<TensorTypeNode>(e->type);
    return t != nullptr && t->const_shape() == shape;
  });
}

DFPattern DFPattern::has_type(Type type) const {
  return with([type = std::move(type)](const Expr& e) {
    return e->type && structural_equal(e->type, type);
  });
}

DFPattern wildcard() { return build(DFKind::Any, std::vector<DFPattern>{}); }
DFPattern is_constant() { return build(DFKind::Constant, std::vector<DFPattern>{}); }
DFPattern is_var(std::string name) {
  return build(DFKind::Var, [&](DFPattern::Node& n) { n.names = {std::move(name)}; });
}
DFPattern is_expr(Expr expr) {
  return build(DFKind::Same, [&](DFPattern::Node& n) { n.expr = std::move(expr); });
}
DFPattern is_any_op(std::vector<std::string> names) {
  return build(DFKind::Op, [&](DFPattern::Node& n) { n.names = std::move(names); });
}
DFPattern is_op(std::string name) { return is_any_op({std::move(name)}); }
DFPattern is_op_where(std::function<bool(const OpInfo&)> condition) {
  return build(DFKind::Op, [&](DFPattern::Node& n) { n.op_condition = std::move(condition); });
}
DFPattern is_tuple(std::vector<DFPattern> fields) {
  return build(DFKind::Tuple, std::move(fields));
}
DFPattern is_any_tuple() { return build_any(DFKind::Tuple, {}); }
DFPattern is_tuple_get_item(DFPattern tuple, int64_t index) {
  return build(DFKind::GetItem, [&](DFPattern::Node& n) {
    n.parts = {std::move(tuple)};
    n.index = index;
  });
}
DFPattern is_if(DFPattern cond, DFPattern true_branch, DFPattern false_branch) {
  return build(DFKind::If, {std::move(cond), std::move(true_branch), std::move(false_branch)});
}
DFPattern is_let(DFPattern var, DFPattern value, DFPattern body) {
  return build(DFKind::Let, {std::move(var), std::move(value), std::move(body)});
}
DFPattern is_function(std::vector<DFPattern> params, DFPattern body) {
  params.insert(params.begin(), std::move(body));
  return build(DFKind::Function, std::move(params));
}
DFPattern is_any_function(DFPattern body) { return build_any(DFKind::Function, {std::move(body)}); }
DFPattern either_order(const DFPattern& op, const DFPattern& a, const DFPattern& b) {
  return op(a, b) | op(b, a);
}
DFPattern dominates(DFPattern parent, DFPattern path, DFPattern child) {
  return build(DFKind::Dominator,
               std::vector<DFPattern>{std::move(parent), std::move(path), std::move(child)});
}

DFPattern recursive(const std::function<DFPattern(const DFPattern& self)>& body) {
  auto node = std::make_shared<DFPattern::Node>();
  node->kind = DFKind::Recursive;
  DFPattern self = build(DFKind::Self, [&](DFPattern::Node& n) { n.whole = node; });
  node->parts.push_back(body(self));
  node->depth = node->parts[0].get()->depth + 1;
  return DFPattern(std::move(node));
}

std::vector<std::string> DFPattern::root_operators() const {
  switch (node_->kind) {
    case DFKind::Call:
      return node_->parts[0].get()->names;
    case DFKind::Condition:
    case DFKind::Recursive:
      return node_->parts[0].root_operators();
    case DFKind::Dominator:
      return node_->parts[2].root_operators();
    case DFKind::Or: {
      std::vector<std::string> all;
      for (const DFPattern& p : node_->parts) {
        std::vector<std::string> some = p.root_operators();
        if (some.empty()) return {};
        for (std::string& name : some) {
          if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(std::move(name));
        }
      }
      return all;
    }
    default:
      return {};
  }
}

// ---- Matching

bool DFMatch::matches(const DFPattern& pattern, const Expr& e) {
  for (;;) {
    bound_.clear();
    open_.clear();
    bool ok = match(*pattern.get(), e);
    if (open_.empty()) return ok;
    if (kept_.empty() || kept_.back().get() != pattern.get()) kept_.push_back(pattern);
    for (const Question& q : std::vector<Question>(open_)) answer_all(q);
  }
}

Expr DFMatch::find(const DFPattern& part) const {
  for (const auto& [node, e] : bound_) {
    if (node == part.get()) return e;
  }
  return nullptr;
}

const Expr& DFMatch::operator[](const DFPattern& part) const {
  auto it = std::find_if(bound_.begin(), bound_.end(),
                         [&](const auto& entry) { return entry.first == part.get(); });
  RELAY_CHECK(it != bound_.end(), "a part of a pattern took no part in the match");
  return it->second;
}

std::vector<Expr> DFMatch::find_all(const DFPattern& part) const {
  std::vector<Expr> out;
  for_each([&](const DFPattern::Node& node, const Expr& e) {
    if (&node == part.get()) out.push_back(e);
  });
  return out;
}

void DFMatch::for_each(
    const std::function<void(const DFPattern::Node&, const Expr&)>& visit) const {
  std::unordered_set<Question, QuestionHash> seen;
  std::unordered_set<Question, QuestionHash> entered;
  Bound work(bound_.rbegin(), bound_.rend());
  // What was found when this question was answered.
  auto enter = [&](const DFPattern::Node& p, const Expr& e) -> const Answer* {
    if (!entered.insert({&p, e}).second) return nullptr;
    auto it = answers_.find({&p, e});
    if (it == answers_.end() || !it->second.ok) return nullptr;
    const Bound& more = it->second.bound;
    work.insert(work.end(), more.rbegin(), more.rend());
    return &it->second;
  };
  while (!work.empty()) {
    auto [node, e] = work.back();
    work.pop_back();
    if (!seen.insert({node, e}).second) continue;
    visit(*node, e);
    if (node->kind == DFKind::Recursive) enter(*node, e);
    if (node->kind != DFKind::Dominator) continue;
    const Expr& parent = parents_.at({node, e});
    std::vector<Expr> up = operands_of(e);
    while (!up.empty()) {
      Expr at = up.back();
      up.pop_back();
      if (at == parent || enter(*node, at) == nullptr) continue;
      std::vector<Expr> more = operands_of(at);
      up.insert(up.end(), more.begin(), more.end());
    }
  }
}

const DFMatch::Answer* DFMatch::known(const DFPattern::Node& p, const Expr& e) {
  auto it = answers_.find({&p, e});
  if (it != answers_.end()) return &it->second;
  open_.push_back({&p, e});
  return nullptr;
}

void DFMatch::answer_all(const Question& first) {
  std::vector<Question> stack{first};
  std::unordered_set<Question, QuestionHash> under_way;
  while (!stack.empty()) {
    check_budget();
    Question q = stack.back();
    if (answers_.contains(q)) {
      stack.pop_back();
      continue;
    }
    under_way.insert(q);
    open_.clear();
    Answer answer;
    if (try_answer(q, answer)) {
      under_way.erase(q);
      answers_.emplace(q, std::move(answer));
      stack.pop_back();
      continue;
    }
    for (const Question& other : open_) {
      if (under_way.contains(other)) {
        throw UserError(Diagnostic(codes::pattern_refused, other.expr->span,
                                   "the pattern contains itself in its own place")
                            .expected("itself only as a part: is_op(...)(self) | ...")
                            .found("an alternative or a condition of the pattern itself"));
      }
      stack.push_back(other);
    }
  }
}

bool DFMatch::try_answer(const Question& q, Answer& out) {
  if (q.pattern->kind == DFKind::Dominator) return try_path(q, out);
  bound_.clear();
  out.ok = match(*q.pattern->parts[0].get(), q.expr);
  if (!open_.empty()) return false;
  out.bound = std::move(bound_);
  return true;
}

// The parts of a path are many expressions: each is matched on its own.
bool DFMatch::try_path(const Question& q, Answer& out) {
  const DFPattern::Node& p = *q.pattern;
  bound_.clear();
  const bool is_parent = match(*p.parts[0].get(), q.expr);
  if (!open_.empty()) return false;
  bound_.clear();
  out.ok = match(*p.parts[1].get(), q.expr);
  if (!open_.empty()) return false;
  out.bound = std::move(bound_);
  bound_.clear();
  const int above = out.ok ? meeting_place(p, q.expr) : 0;
  if (!open_.empty()) return false;
  Places& places = places_of(p);
  auto at = [&](int i) { return places[static_cast<size_t>(i)].step; };
  out.place = static_cast<int>(places.size());
  const int next = is_parent ? out.place : places[static_cast<size_t>(above)].parent;
  places.push_back({step_below(above, at), q.expr, next});
  return true;
}

DFMatch::Places& DFMatch::places_of(const DFPattern::Node& p) {
  Places& places = places_[&p];
  if (places.empty()) places.push_back({{0, 0, 0}, nullptr, 0});
  return places;
}

int DFMatch::meeting_place(const DFPattern::Node& p, const Expr& e) {
  const Places& places = places_of(p);
  auto at = [&](int i) { return places[static_cast<size_t>(i)].step; };
  std::optional<int> meeting;
  for (const Expr& operand : operands_of(e)) {
    const Answer* up = known(p, operand);
    if (up == nullptr) continue;
    meeting = meeting ? common_ancestor(*meeting, up->place, at) : up->place;
  }
  return open_.empty() ? meeting.value_or(0) : 0;
}

// As deep as the pattern, which is written by hand; never as deep as the program. False, with
// questions in `open_`, where others must be answered first.
bool DFMatch::match(const DFPattern::Node& p, const Expr& e) {
  if (p.kind == DFKind::Self) {
    auto whole = p.whole.lock();
    return whole != nullptr && match(*whole, e);
  }
  if (p.kind == DFKind::Recursive) {
    const Answer* answer = known(p, e);
    if (answer == nullptr || !answer->ok) return false;
    bound_.emplace_back(&p, e);
    return true;
  }
  for (const auto& [node, known] : bound_) {
    if (node == &p) return known == e;
  }
  size_t mark = bound_.size();
  bool ok = false;
  auto part = [&](size_t i, const Expr& o) { return match(*p.parts[i].get(), o); };
  // The parts from `first` on, for as many operands.
  auto all = [&](size_t first, const auto& operands) {
    if (p.any) return true;
    if (p.parts.size() - first != operands.size()) return false;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!part(first + i, operands[i])) return false;
    }
    return true;
  };
  switch (p.kind) {
    case DFKind::Any:
      ok = true;
      break;
    case DFKind::Constant:
      ok = isa<ConstantNode>(e);
      break;
    case DFKind::Var: {
      auto* v = as<VarNode>(e);
      ok = v != nullptr && (p.names[0].empty() || v->name_hint == p.names[0]);
      break;
    }
    case DFKind::Same:
      ok = is_same(e, p.expr);
      break;
    case DFKind::Op: {
      auto* op = as<OpNode>(e);
      ok = op != nullptr &&
           (p.op_condition ? p.op_condition(*op->row)
                           : std::find(p.names.begin(), p.names.end(), op->name) != p.names.end());
      break;
    }
    case DFKind::Call: {
      auto* c = as<CallNode>(e);
      ok = c != nullptr && part(0, c->op) && all(1, c->args);
      break;
    }
    case DFKind::Tuple: {
      auto* t = as<TupleNode>(e);
      ok = t != nullptr && all(0, t->fields);
      break;
    }
    case DFKind::GetItem: {
      auto* g = as<TupleGetItemNode>(e);
      ok = g != nullptr && (p.index < 0 || p.index == g->index) && part(0, g->tuple);
      break;
    }
    case DFKind::If: {
      auto* i = as<IfNode>(e);
      ok = i != nullptr && part(0, i->cond) && part(1, i->true_branch) && part(2, i->false_branch);
      break;
    }
    case DFKind::Let: {
      auto* l = as<LetNode>(e);
      ok = l != nullptr && part(0, l->var) && part(1, l->value) && part(2, l->body);
      break;
    }
    case DFKind::Function: {
      auto* f = as<FunctionNode>(e);
      ok = f != nullptr && all(1, f->params) && part(0, f->body);
      break;
    }
    case DFKind::Or:
      for (size_t i = 0; i < p.parts.size() && !ok && open_.empty(); ++i) {
        bound_.resize(mark);
        ok = part(i, e);
      }
      break;
    case DFKind::Condition:
      ok = part(0, e) && p.condition(e);
      break;
    case DFKind::Dominator:
      ok = match_dominated(p, e);
      break;
    case DFKind::Recursive:
    case DFKind::Self:
      break;
  }
  if (!ok) {
    bound_.resize(mark);
    return false;
  }
  bound_.emplace_back(&p, e);
  return true;
}

bool DFMatch::match_dominated(const DFPattern::Node& p, const Expr& child) {
  if (!match(*p.parts[2].get(), child)) return false;
  int at = meeting_place(p, child);
  if (!open_.empty()) return false;
  const Places& places = places_of(p);
  auto next = [&](int from) { return places[static_cast<size_t>(from)].parent; };
  for (at = next(at); at != 0; at = next(places[static_cast<size_t>(at)].step.parent)) {
    const Expr parent = places[static_cast<size_t>(at)].expr;
    if (match(*p.parts[0].get(), parent)) {
      parents_[{&p, child}] = parent;
      return true;
    }
    if (!open_.empty()) return false;
  }
  return false;
}

}  // namespace relay
