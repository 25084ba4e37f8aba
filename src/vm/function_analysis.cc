#include "vm/function_compiler.h"

#include <algorithm>

#include "base/diagnostic_codes.h"
#include "ir/views.h"

namespace relay::vm {

[[noreturn]] void unsupported(const Span& span, std::string what, std::string help) {
  throw UserError(
      Diagnostic(codes::lower_unsupported, span, std::move(what)).help(std::move(help)));
}

bool is_static_tensor(const Type& t) {
  auto* tensor = as<TensorTypeNode>(t);
  return tensor != nullptr && tensor->const_shape().has_value();
}

Memory memory_of(const FunctionNode& f) {
  auto* c = as<CallNode>(f.body);
  auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
  if (op == nullptr || op->row->memory == nullptr || has_open_size(f)) return Memory::Own;
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
  return op != nullptr && op->row->memory != nullptr && op->row->memory(*c) == Memory::Updated;
}

const Expr& FunctionCompiler::result_of(const Expr& body) {
  const Expr* at = &body;
  while (auto* l = as<LetNode>(*at)) at = &l->body;
  return *at;
}

void FunctionCompiler::choose_return() {
  auto* fields = as<TupleTypeNode>(f_->body->type);
  writes_outputs_ = fields != nullptr ? std::ranges::all_of(fields->fields, is_static_tensor)
                                      : is_static_tensor(f_->body->type);
  if (scalar_dtype(f_->body->type)) writes_outputs_ = false;
  auto* result = as<VarNode>(result_of(f_->body));
  const Expr* at = &f_->body;
  while (auto* l = as<LetNode>(*at)) {
    if (l->var.get() == result) {
      bool call = isa<CallNode>(l->value) && primitive_of(*as<CallNode>(l->value)) == nullptr;
      if (call || isa<IfNode>(l->value) || isa<MatchNode>(l->value)) writes_outputs_ = false;
    }
    at = &l->body;
  }
}

void FunctionCompiler::escape(const Expr& e) {
  if (isa<VarNode>(e)) escapes_.insert(e.get());
}

void FunctionCompiler::find_escapes() {
  if (!writes_outputs_) escape(result_of(f_->body));
  post_order_if(
      f_->body,
      [&](const Node& n) {
        // Before what is inside the branches is asked about.
        if (auto* i = as<IfNode>(&n)) {
          escape(result_of(i->true_branch));
          escape(result_of(i->false_branch));
        } else if (auto* c = as<ClauseNode>(&n)) {
          escape(result_of(c->rhs));
        }
        auto* inner = as<FunctionNode>(&n);
        if (inner == nullptr) return true;
        if (!inner->is_primitive()) {
          for (const Var& v : free_variables(*inner)) escapes_.insert(v.get());
        }
        return false;
      },
      [&](const Node& n) {
        auto* l = as<LetNode>(&n);
        if (l == nullptr) return;
        if (auto* inner = as<FunctionNode>(l->value)) {
          for (const Var& v : free_variables(*inner)) escapes_.insert(v.get());
        }
        escape_operands(*l);
      },
      family::expr | family::pattern);
}

void FunctionCompiler::escape_operands(const LetNode& l) {
  bool mine = escapes_.contains(l.var.get());
  switch (l.value->kind()) {
    case ExprKind::Var:
      if (mine) escape(l.value);
      return;
    case ExprKind::Tuple:
      if (!mine) return;
      break;
    case ExprKind::TupleGetItem:
      if (!mine) return;
      break;
    case ExprKind::Call: {
      auto& c = *as<CallNode>(l.value);
      if (auto* f = primitive_of(c)) {
        if (is_view(*f) && mine) escape(c.args[0]);
        return;
      }
      escape(c.op);
      break;
    }
    case ExprKind::If:
      return;
    case ExprKind::Match:
      escape(as<MatchNode>(l.value)->data);
      return;
    case ExprKind::Function:
      return;
    default:
      break;
  }
  for_each_child(*l.value, [&](const NodeRef& child) {
    if (isa<VarNode>(child)) escapes_.insert(child.get());
  });
}

std::vector<Var> FunctionCompiler::free_variables(const FunctionNode& f) {
  std::unordered_set<const Node*> bound, seen;
  std::vector<Var> used;
  post_order(
      ref(f),
      [&](const Node& n) {
        for (const Field& field : n.info().fields) {
          if (field.role != Role::binder) continue;
          const void* at = field.in(n);
          for (size_t i = 0; i < field.ops->count(at); ++i) {
            bound.insert(field.ops->get_child(at, i).get());
          }
        }
        if (isa<VarNode>(&n)) used.push_back(Var(static_cast<const VarNode*>(&n)));
      },
      family::expr | family::pattern);
  std::vector<Var> out;
  for (const Var& v : used) {
    if (!bound.contains(v.get())) out.push_back(v);
  }
  return out;
}

void FunctionCompiler::claim_outputs() {
  if (!writes_outputs_) return;
  std::unordered_map<const Node*, const LetNode*> bound;
  const Expr* at = &f_->body;
  while (auto* l = as<LetNode>(*at)) {
    bound[l->var.get()] = l;
    at = &l->body;
  }
  int64_t next = 0;
  // The leaves of the result in order; projections of kernels with several results are copied.
  std::vector<Expr> stack{*at};
  while (!stack.empty()) {
    Expr e = stack.back();
    stack.pop_back();
    auto it = bound.find(e.get());
    if (auto* t = as<TupleNode>(it == bound.end() ? e : it->second->value)) {
      stack.insert(stack.end(), t->fields.rbegin(), t->fields.rend());
      continue;
    }
    if (it == bound.end() || !isa<TensorTypeNode>(e->type)) {
      next += static_cast<int64_t>(flatten_tensor_types(e->type)->size());
      continue;
    }
    const LetNode* l = it->second;
    // Through names and views to the kernel that makes the bytes.
    while (l != nullptr) {
      Expr from;
      if (isa<VarNode>(l->value)) {
        from = l->value;
      } else if (auto* c = as<CallNode>(l->value)) {
        auto* f = primitive_of(*c);
        if (f != nullptr && is_view(*f)) {
          from = c->args[0];
        } else if (f != nullptr && isa<TensorTypeNode>(l->var->type) &&
                   !escapes_.contains(l->var.get()) && !homes_.contains(l->var.get()) &&
                   !joined_.contains(l->var.get())) {
          claimed_.emplace(l->var.get(), next);
          break;
        }
      }
      auto source = from ? bound.find(from.get()) : bound.end();
      l = source == bound.end() ? nullptr : source->second;
    }
    ++next;
  }
}

}  // namespace relay::vm
