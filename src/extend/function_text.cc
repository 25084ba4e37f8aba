#include "extend/function_text.h"
#include "base/quantities.h"

#include <unordered_map>

#include "base/codes/extensions.h"
#include "base/codes/passes.h"
#include "extend/operator.h"
#include "ir/attrs.h"
#include "ir/text/text.h"
#include "node/walk.h"
#include "types/infer.h"

namespace relay::extend {

Function read_function(const std::string& what, const std::string& text, size_t params) {
  LeaveTypesOpen open;
  Expr e = parse_expr("<" + what + ">", text);
  auto* f = as<FunctionNode>(e);
  if (f == nullptr || f->params.size() != params) {
    throw UserError(
        Diagnostic(codes::plugin_spec, e->span, what + " is not the function that it must be")
            .expected("fn (...) { ... } of " + counted(params, "parameter"))
            .found(f == nullptr ? "another expression" : counted(f->params.size(), "parameter")));
  }
  return Function(f);
}

Expr instantiated(const Function& f, const std::vector<Expr>& args) {
  std::vector<Var> params;
  std::vector<Expr> values;
  for (const Expr& a : args) {
    params.push_back(var("x" + std::to_string(params.size()), a->type));
    values.push_back(params.back());
  }
  Expr body = applied(f, values);
  Function typed = cast<FunctionNode>(infer_type(function(params, body)));
  return applied(typed, args);
}

FunctionPattern function_pattern(const Function& f, const std::set<std::string>& constants) {
  auto refuse = [](const Span& span, const std::string& what) {
    return UserError(Diagnostic(codes::pattern_refused, span, what)
                         .expected("calls of operators, constants, tuples, choices, parameters"));
  };
  std::unordered_map<const Node*, DFPattern> known;
  FunctionPattern out{wildcard(), {}};
  for (const Var& p : f->params) {
    DFPattern any = constants.contains(p->name_hint) ? is_constant() : wildcard();
    out.params.push_back(any);
    known.emplace(p.get(), any);
  }
  for (const std::string& name : constants) {
    auto named = [&](const Var& p) { return p->name_hint == name; };
    if (std::none_of(f->params.begin(), f->params.end(), named))
      throw refuse(f->span, "the pattern has no parameter '" + name + "' that could be constant");
  }
  std::unordered_set<const Node*> used;
  auto part = [&](const Expr& e) -> const DFPattern& {
    used.insert(e.get());
    return known.at(e.get());
  };
  auto of_call = [&](const CallNode& c) {
    auto* op = as<OpNode>(c.op);
    if (op == nullptr) throw refuse(c.span, "a pattern has calls of operators only");
    std::vector<DFPattern> args;
    for (const Expr& a : c.args) args.push_back(part(a));
    // Whose operands may stand in either order, as in relay.dataflow_pattern.
    bool commutes = (op->name == "add" || op->name == "multiply") && args.size() == 2;
    DFPattern call = commutes ? either_order(is_op(op->name), args[0], args[1])
                              : is_op(op->name)(std::move(args));
    if (!c.attrs) return call;
    for (const auto& [name, value] : attr_values(c.attrs, /*only_changed=*/true))
      call = call.has_attr(name, value);
    return call;
  };
  post_order(
      f->body,
      [&](const Node& n) {
        if (known.contains(&n) || isa<OpNode>(&n)) return;
        Expr e(static_cast<const ExprNode*>(&n));
        auto found = [&]() -> DFPattern {
          if (auto* c = as<CallNode>(&n)) return of_call(*c);
          if (isa<ConstantNode>(&n)) return is_expr(e);
          if (auto* t = as<TupleNode>(&n)) {
            std::vector<DFPattern> fields;
            for (const Expr& field : t->fields) fields.push_back(part(field));
            return is_tuple(std::move(fields));
          }
          if (auto* g = as<TupleGetItemNode>(&n))
            return is_tuple_get_item(part(g->tuple), g->index);
          if (auto* i = as<IfNode>(&n))
            return is_if(part(i->cond), part(i->true_branch), part(i->false_branch));
          throw refuse(e->span, "a pattern cannot have this");
        };
        known.emplace(&n, found());
      },
      family::expr);
  out.pattern = part(f->body);
  for (const Var& p : f->params) {
    if (!used.contains(p.get()))
      throw refuse(p->span, "the parameter %" + p->name_hint + " does not occur in the pattern");
  }
  if (isa<VarNode>(f->body)) throw refuse(f->body->span, "a pattern of a parameter is anything");
  return out;
}

}  // namespace relay::extend
