// The type of an expression from the types of its children.
#include "base/codes/types.h"
#include "ir/join_types.h"
#include "ir/op.h"
#include "ir/type_params.h"
#include "node/structural.h"
#include "node/walk.h"

namespace relay {
namespace {

bool same(const Type& a, const Type& b) { return a == b || structural_equal(a, b); }

// Whether the result type has parameters that the arguments do not decide.
bool has_open_params(const FuncTypeNode& f, const TypeParams& solved) {
  bool open = false;
  if (solved.size() == f.type_params.size()) return open;
  post_order(f.ret_type, [&](const Node& n) {
    for (const TypeVar& p : f.type_params) open |= p.get() == &n && !solved.contains(&n);
  });
  return open;
}

bool has_unknown_size(const Type& type) {
  bool found = false;
  post_order(
      type, [&](const Node& n) { found |= isa<DimAnyNode>(&n); }, family::type | family::dim);
  return found;
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
  FuncType wanted(f);
  bool told = !f->type_params.empty() && c.type_args.size() == f->type_params.size();
  if (told) {
    TypeParams values;
    for (size_t i = 0; i < c.type_args.size(); ++i) {
      values[f->type_params[i].get()] = c.type_args[i];
    }
    std::vector<Type> args;
    for (const Type& a : f->arg_types) args.push_back(with_type_params(a, values));
    wanted = func_type(std::move(args), with_type_params(f->ret_type, values));
  }
  std::vector<Type> given;
  given.reserve(c.args.size());
  for (const Expr& a : c.args) given.push_back(a->type);
  size_t misfit = 0;
  auto solved = solve_type_params(*wanted, given, &misfit);
  if (!solved) {
    throw UserError(Diagnostic(codes::type_mismatch, c.span,
                               "argument " + std::to_string(misfit + 1) + " of a call does not fit")
                        .expected(to_string(wanted->arg_types[misfit]))
                        .found(to_string(given[misfit]))
                        .help(has_unknown_size(given[misfit])
                                  ? "`?` is a data-dependent size, another one at each "
                                    "place: take it as `?`, or by a name that stands nowhere else"
                                  : ""));
  }
  if (told) return wanted->ret_type;
  // What only the result says, a type argument or inference tells.
  return has_open_params(*f, *solved) ? nullptr : with_type_params(f->ret_type, *solved);
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
      Type joined = join_types(i.true_branch->type, i.false_branch->type);
      if (!joined) {
        throw UserError(
            Diagnostic(codes::type_mismatch, i.span, "the branches of an if have different types")
                .expected(to_string(i.true_branch->type))
                .found(to_string(i.false_branch->type)));
      }
      return joined;
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
                       t == nullptr ? "this value is not a tuple"
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
      Type joined = m.clauses[0]->rhs->type;
      for (const Clause& clause : m.clauses) {
        const Type& type = clause->rhs->type;
        if (!joined || !type) return nullptr;
        if (Type next = join_types(joined, type)) joined = next;
      }
      return joined;
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
