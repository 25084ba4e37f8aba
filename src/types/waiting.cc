// Constraints that wait until more is known: relations of operators, projections, and uses of
// polymorphic functions whose types are open.
#include "base/budget.h"
#include "base/codes/types.h"
#include "types/inference.h"

namespace relay {

void Inference::demand(Pending p) {
  pending_.push_back(std::move(p));
  try_pending(pending_.size() - 1);
}

// Re-examines the constraints that wait for holes that have since been filled.
void Inference::settle() {
  for (std::vector<const Node*> filled = unifier_.take_filled(); !filled.empty();
       filled = unifier_.take_filled()) {
    for (const Node* hole : filled) {
      auto it = waiting_.find(hole);
      if (it == waiting_.end()) continue;
      std::vector<size_t> woken = std::move(it->second);
      waiting_.erase(it);
      for (size_t i : woken) try_pending(i);
    }
  }
}

void Inference::try_pending(size_t i) {
  check_budget();
  Pending p = pending_[i];
  if (p.done) return;
  pending_[i].done = p.row != nullptr ? relate(p) : p.at != nullptr ? project(p) : specialise(p);
  if (pending_[i].done) {
    pending_[i] = Pending{};
    pending_[i].done = true;
    return;
  }
  std::vector<Type> parts = p.args;
  parts.push_back(p.result);
  for (const Type& t : parts) {
    std::vector<const Node*> open = unifier_.open_parts(t);
    if (!open.empty()) waiting_[open.front()].push_back(i);
  }
}

// The use of a polymorphic function; waits for its type to be complete.
bool Inference::specialise(const Pending& p) {
  if (!unifier_.is_complete(p.args[0])) return false;
  std::vector<Type> type_args;
  FuncType f = cast<FuncTypeNode>(unifier_.resolve(p.args[0]));
  unify(unifier_.instantiate(f, p.span, type_args), p.result, p.span,
        "a polymorphic function does not fit its use");
  return true;
}

bool Inference::project(const Pending& p) {
  Type t = unifier_.shallow(p.args[0]);
  if (isa<IncompleteTypeNode>(t)) return false;
  auto& g = static_cast<const TupleGetItemNode&>(*p.at);
  auto* tuple = as<TupleTypeNode>(t);
  if (tuple == nullptr) {
    Diagnostic& d = diags_.error(codes::type_not_tuple, p.span, "this value is not a tuple");
    d.expected("a tuple").found(shown(t));
    add_note(d, origin(g.tuple));
  } else if (g.index < 0 || g.index >= static_cast<int64_t>(tuple->fields.size())) {
    diags_.error(codes::type_not_tuple, p.span, "the tuple has no field " + std::to_string(g.index))
        .expected("an index below " + std::to_string(tuple->fields.size()))
        .found(std::to_string(g.index));
  } else {
    unify(p.result, tuple->fields[static_cast<size_t>(g.index)], p.span,
          "the field is used as another type");
  }
  return true;
}

// True when the relation is settled, for good or bad.
bool Inference::relate(const Pending& p) {
  for (bool again = true; again;) {
    std::vector<Type> args;
    for (const Type& a : p.args) {
      args.push_back(unifier_.resolve(a));
      if (auto* t = as<TensorTypeNode>(args.back()); t != nullptr && unifier_.has_open_parts(*t)) {
        return false;
      }
    }
    RelationContext ctx(*p.row, args, p.attrs, p.span, unifier_.resolve(p.result));
    Type result = run_relation(ctx);
    if (ctx.failure()) {
      Diagnostic d = *ctx.failure();
      if (auto* c = as<CallNode>(p.at)) {
        for (const Expr& a : c->args) add_note(d, origin(a));
      }
      diags_.add(std::move(d));
      return true;
    }
    size_t before = unifier_.progress();
    for (const auto& [i, type] : ctx.solved()) {
      unify(p.args[i], type, p.span,
            "argument '" + std::string(p.row->args[i].name) + "' of " + std::string(p.row->name) +
                " does not fit");
    }
    if (result) {
      unify(p.result, result, p.span,
            "the result of " + std::string(p.row->name) + " does not fit");
      return true;
    }
    again = unifier_.progress() != before && !ctx.solved().empty();
  }
  return false;
}

}  // namespace relay
