// The type of an expression from the types of its children.
#include <unordered_map>

#include "base/diagnostic_codes.h"
#include "ir/op.h"
#include "node/structural.h"
#include "node/walk.h"

namespace relay {
namespace {

bool same(const Type& a, const Type& b) { return a == b || structural_equal(a, b); }

// Whether a value of the one type can be given where the other is wanted: `?` in the wanted type
// forgets a size.
bool fits(const Type& given, const Type& wanted) {
  if (same(given, wanted)) return true;
  std::vector<std::pair<Type, Type>> stack{{given, wanted}};
  while (!stack.empty()) {
    auto [a, b] = stack.back();
    stack.pop_back();
    auto *x = as<TupleTypeNode>(a), *y = as<TupleTypeNode>(b);
    if (a == b) continue;
    if (x != nullptr && y != nullptr && x->fields.size() == y->fields.size()) {
      for (size_t i = 0; i < x->fields.size(); ++i) stack.emplace_back(x->fields[i], y->fields[i]);
      continue;
    }
    auto *s = as<TensorTypeNode>(a), *t = as<TensorTypeNode>(b);
    if (s == nullptr || t == nullptr || s->shape_var || t->shape_var || s->rank() != t->rank() ||
        !(s->dtype == t->dtype) || s->dtype_var != t->dtype_var) {
      if (!structural_equal(a, b)) return false;
      continue;
    }
    for (size_t i = 0; i < t->shape.size(); ++i) {
      if (!is_any(t->shape[i]) && !structural_equal(s->shape[i], t->shape[i])) return false;
    }
  }
  return true;
}

// The result of calling a value of function type.
Type deduce_call(const CallNode& c, const Type& callee_type) {
  auto* f = as<FuncTypeNode>(callee_type);
  if (f == nullptr) {
    throw UserError(Diagnostic(codes::type_not_callable, c.span, "this value cannot be called")
                        .expected("a function")
                        .found(to_string(callee_type)));
  }
  if (f->arg_types.size() != c.args.size()) {
    throw UserError(
        Diagnostic(codes::type_arity, c.span, "a call has the wrong number of arguments")
            .expected(std::to_string(f->arg_types.size()) + " for " + to_string(callee_type))
            .found(std::to_string(c.args.size())));
  }
  std::unordered_map<const Node*, NodeRef> types;
  if (!f->type_params.empty()) {
    // Type arguments that are not written are for inference to find.
    if (c.type_args.size() != f->type_params.size()) return nullptr;
    for (size_t i = 0; i < c.type_args.size(); ++i) types[f->type_params[i].get()] = c.type_args[i];
    return cast<TypeNode>(substitute(f->ret_type, types));
  }
  for (size_t i = 0; i < c.args.size(); ++i) {
    if (!fits(c.args[i]->type, f->arg_types[i])) {
      throw UserError(Diagnostic(codes::type_mismatch, c.span,
                                 "argument " + std::to_string(i + 1) + " of a call does not fit")
                          .expected(to_string(f->arg_types[i]))
                          .found(to_string(c.args[i]->type)));
    }
  }
  return f->ret_type;
}

}  // namespace

Type deduce_type(const ExprNode& expr) {
  switch (expr.kind()) {
    case ExprKind::Constant: {
      const Tensor& data = static_cast<const ConstantNode&>(expr).data;
      return tensor_type(std::vector<int64_t>(data.shape().begin(), data.shape().end()),
                         data.dtype());
    }
    case ExprKind::Var: {
      // An annotation with holes is not a type yet.
      auto& v = static_cast<const VarNode&>(expr);
      if (!v.type_annotation) return expr.type;
      bool complete = true;
      post_order(
          v.type_annotation,
          [&](const Node& n) { complete &= n.kind() != TypeKind::IncompleteType; }, family::type);
      return complete ? v.type_annotation : expr.type;
    }
    case ExprKind::GlobalVar:
    case ExprKind::Op:
    case ExprKind::Constructor:
      return expr.type;
    case ExprKind::Function: {
      auto& f = static_cast<const FunctionNode&>(expr);
      if (!f.body->type) return nullptr;
      std::vector<Type> args;
      for (const Var& p : f.params) {
        if (!p->type) return nullptr;
        args.push_back(p->type);
      }
      return func_type(std::move(args), f.body->type, f.type_params);
    }
    case ExprKind::Call: {
      auto& c = static_cast<const CallNode&>(expr);
      for (const Expr& a : c.args) {
        if (!a->type) return nullptr;
      }
      if (auto* op = as<OpNode>(c.op)) {
        std::vector<Type> args;
        args.reserve(c.args.size());
        for (const Expr& a : c.args) args.push_back(a->type);
        return apply_relation(*op->row, args, c.attrs, c.span);
      }
      if (!c.op->type) return nullptr;
      return deduce_call(c, c.op->type);
    }
    case ExprKind::Let:
      return static_cast<const LetNode&>(expr).body->type;
    case ExprKind::If: {
      auto& i = static_cast<const IfNode&>(expr);
      if (!i.cond->type || !i.true_branch->type || !i.false_branch->type) return nullptr;
      if (!same(i.cond->type, scalar_type(DType::Bool()))) {
        throw UserError(Diagnostic(codes::type_mismatch, i.cond->span,
                                   "the condition of an if must be one bool")
                            .expected("bool")
                            .found(to_string(i.cond->type)));
      }
      if (!same(i.true_branch->type, i.false_branch->type)) {
        throw UserError(
            Diagnostic(codes::type_mismatch, i.span, "the branches of an if have different types")
                .expected(to_string(i.true_branch->type))
                .found(to_string(i.false_branch->type)));
      }
      return i.true_branch->type;
    }
    case ExprKind::Tuple: {
      std::vector<Type> fields;
      for (const Expr& f : static_cast<const TupleNode&>(expr).fields) {
        if (!f->type) return nullptr;
        fields.push_back(f->type);
      }
      return tuple_type(std::move(fields));
    }
    case ExprKind::TupleGetItem: {
      auto& g = static_cast<const TupleGetItemNode&>(expr);
      if (!g.tuple->type) return nullptr;
      auto* t = as<TupleTypeNode>(g.tuple->type);
      if (t == nullptr || g.index < 0 || g.index >= static_cast<int64_t>(t->fields.size())) {
        throw UserError(
            Diagnostic(codes::type_not_tuple, g.span,
                       t == nullptr ? "this value is no tuple"
                                    : "the tuple has no field " + std::to_string(g.index))
                .expected(t == nullptr ? "a tuple"
                                       : "an index below " + std::to_string(t->fields.size()))
                .found(t == nullptr ? to_string(g.tuple->type) : std::to_string(g.index)));
      }
      return t->fields[static_cast<size_t>(g.index)];
    }
    case ExprKind::Match: {
      auto& m = static_cast<const MatchNode&>(expr);
      if (m.clauses.empty()) return nullptr;
      return m.clauses[0]->rhs->type;
    }
    case ExprKind::RefCreate: {
      const Type& t = static_cast<const RefCreateNode&>(expr).value->type;
      return t ? Type(ref_type(t)) : nullptr;
    }
    case ExprKind::RefRead: {
      const Type& t = static_cast<const RefReadNode&>(expr).ref->type;
      if (!t) return nullptr;
      auto* r = as<RefTypeNode>(t);
      if (r == nullptr) {
        throw UserError(Diagnostic(codes::type_mismatch, expr.span, "only a reference can be read")
                            .expected("a reference")
                            .found(to_string(t)));
      }
      return r->value;
    }
    case ExprKind::RefWrite: {
      auto& w = static_cast<const RefWriteNode&>(expr);
      if (!w.ref->type || !w.value->type) return nullptr;
      auto* r = as<RefTypeNode>(w.ref->type);
      if (r == nullptr || !same(r->value, w.value->type)) {
        throw UserError(
            Diagnostic(codes::type_mismatch, expr.span, "a value is written to what cannot hold it")
                .expected(r == nullptr ? "a reference" : to_string(r->value))
                .found(to_string(r == nullptr ? w.ref->type : w.value->type)));
      }
      return tuple_type({});
    }
    default:
      RELAY_CHECK(false, "an expression of unknown kind");
  }
  return nullptr;
}

}  // namespace relay
