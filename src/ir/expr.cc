#include "ir/expr.h"

#include <algorithm>
#include <utility>

#include "ir/op.h"
#include "node/structural.h"

namespace relay {
namespace {

bool same_type(const Type& a, const Type& b) {
  return a == b || (a && b && structural_equal(a, b));
}

bool same_types(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::ranges::equal(
      a, b, same_type, [](const Expr& e) { return e->type; },
      [](const Expr& e) { return e->type; });
}

// Whether what decides the type of a call or a tuple is as it was: relations see nothing but the
// types of operands and the attributes.
bool keeps_type(const ExprNode& now, const ExprNode& before) {
  if (now.kind() == ExprKind::Tuple) {
    return same_types(static_cast<const TupleNode&>(now).fields,
                      static_cast<const TupleNode&>(before).fields);
  }
  if (now.kind() != ExprKind::Call) return false;
  auto& c = static_cast<const CallNode&>(now);
  auto& was = static_cast<const CallNode&>(before);
  return c.op == was.op && c.attrs == was.attrs && c.type_args == was.type_args &&
         same_types(c.args, was.args);
}

// A rewritten expression keeps its type when its children's types are unchanged; otherwise the
// type is deduced again.
void keep_or_deduce(Node& node, const Node& original) {
  auto& expr = static_cast<ExprNode&>(node);
  auto& before = static_cast<const ExprNode&>(original);
  if (!before.type || keeps_type(expr, before)) return;
  if (expr.kind() == ExprKind::Function) {
    auto& f = static_cast<FunctionNode&>(node);
    f.ret_type = f.body->type;
  }
  expr.type = deduce_type(expr);
}

template <class T>
NodeInfo describe_expr(std::string_view name, std::vector<Field> fields) {
  fields.push_back(ignored("span", &T::span));
  NodeInfo info = describe<T>(name, T::kKind, family::expr, std::move(fields));
  info.rebuilt = keep_or_deduce;
  return info;
}

template <class T>
NodeInfo describe_shared(std::string_view name, std::vector<Field> fields) {
  NodeInfo info = describe_expr<T>(name, std::move(fields));
  info.sharing_matters = true;
  return info;
}

template <class T>
NodeInfo describe_pattern(std::string_view name, std::vector<Field> fields) {
  fields.push_back(ignored("span", &T::span));
  return describe<T>(name, T::kKind, family::pattern, std::move(fields));
}

thread_local bool leave_types_open = false;
thread_local const Span* default_place = nullptr;

// Fills the span and, if the children have theirs, the type of a new expression.
template <class T, class Fill>
Ref<T> build(Span span, Fill&& fill) {
  return make<T>([&](T& n) {
    n.span = span || default_place == nullptr ? std::move(span) : *default_place;
    fill(n);
    if (T::kKind == ExprKind::Constant || !leave_types_open) n.type = deduce_type(n);
  });
}

}  // namespace

const NodeInfo& ConstantNode::static_info() {
  static const NodeInfo info = describe_expr<ConstantNode>(
      "relay.Constant",
      {attribute("data", &ConstantNode::data), ignored("name_hint", &ConstantNode::name_hint)});
  return info;
}
const NodeInfo& VarNode::static_info() {
  static const NodeInfo info = [] {
    NodeInfo i =
        describe_expr<VarNode>("relay.Var", {ignored("name_hint", &VarNode::name_hint),
                                             child("type_annotation", &VarNode::type_annotation)});
    i.is_variable = true;
    return i;
  }();
  return info;
}
const NodeInfo& GlobalVarNode::static_info() {
  static const NodeInfo info = describe_expr<GlobalVarNode>(
      "relay.GlobalVar", {attribute("name_hint", &GlobalVarNode::name_hint)});
  return info;
}
const NodeInfo& OpNode::static_info() {
  static const NodeInfo info =
      describe_expr<OpNode>("relay.Op", {attribute("name", &OpNode::name)});
  return info;
}
const NodeInfo& ConstructorNode::static_info() {
  static const NodeInfo info = describe_expr<ConstructorNode>(
      "relay.Constructor",
      {attribute("name_hint", &ConstructorNode::name_hint),
       child("inputs", &ConstructorNode::inputs), child("belong_to", &ConstructorNode::belong_to),
       attribute("tag", &ConstructorNode::tag)});
  return info;
}
const NodeInfo& TypeDataNode::static_info() {
  static const NodeInfo info = describe<TypeDataNode>(
      "relay.TypeData", kKind, family::type,
      {child("header", &TypeDataNode::header), binder("type_vars", &TypeDataNode::type_vars),
       child("constructors", &TypeDataNode::constructors), ignored("span", &TypeDataNode::span)});
  return info;
}
const NodeInfo& FunctionNode::static_info() {
  static const NodeInfo info = describe_shared<FunctionNode>(
      "relay.Function",
      {binder("type_params", &FunctionNode::type_params), binder("params", &FunctionNode::params),
       child("ret_type", &FunctionNode::ret_type), attribute("attrs", &FunctionNode::attrs),
       child("body", &FunctionNode::body)});
  return info;
}
const NodeInfo& CallNode::static_info() {
  static const NodeInfo info = describe_shared<CallNode>(
      "relay.Call", {child("op", &CallNode::op), child("args", &CallNode::args),
                     child("attrs", &CallNode::attrs), child("type_args", &CallNode::type_args)});
  return info;
}
const NodeInfo& LetNode::static_info() {
  static const NodeInfo info = describe_shared<LetNode>(
      "relay.Let", {binder("var", &LetNode::var), child("value", &LetNode::value),
                    child("body", &LetNode::body)});
  return info;
}
const NodeInfo& IfNode::static_info() {
  static const NodeInfo info = describe_shared<IfNode>(
      "relay.If", {child("cond", &IfNode::cond), child("true_branch", &IfNode::true_branch),
                   child("false_branch", &IfNode::false_branch)});
  return info;
}
const NodeInfo& TupleNode::static_info() {
  static const NodeInfo info =
      describe_shared<TupleNode>("relay.Tuple", {child("fields", &TupleNode::fields)});
  return info;
}
const NodeInfo& TupleGetItemNode::static_info() {
  static const NodeInfo info = describe_shared<TupleGetItemNode>(
      "relay.TupleGetItem", {child("tuple_value", &TupleGetItemNode::tuple),
                             attribute("index", &TupleGetItemNode::index)});
  return info;
}
const NodeInfo& RefCreateNode::static_info() {
  static const NodeInfo info =
      describe_shared<RefCreateNode>("relay.RefCreate", {child("value", &RefCreateNode::value)});
  return info;
}
const NodeInfo& RefReadNode::static_info() {
  static const NodeInfo info =
      describe_shared<RefReadNode>("relay.RefRead", {child("ref", &RefReadNode::ref)});
  return info;
}
const NodeInfo& RefWriteNode::static_info() {
  static const NodeInfo info = describe_shared<RefWriteNode>(
      "relay.RefWrite", {child("ref", &RefWriteNode::ref), child("value", &RefWriteNode::value)});
  return info;
}
const NodeInfo& PatternWildcardNode::static_info() {
  static const NodeInfo info = describe_pattern<PatternWildcardNode>("relay.PatternWildcard", {});
  return info;
}
const NodeInfo& PatternVarNode::static_info() {
  static const NodeInfo info =
      describe_pattern<PatternVarNode>("relay.PatternVar", {binder("var", &PatternVarNode::var)});
  return info;
}
const NodeInfo& PatternConstructorNode::static_info() {
  static const NodeInfo info = describe_pattern<PatternConstructorNode>(
      "relay.PatternConstructor", {child("constructor", &PatternConstructorNode::constructor),
                                   child("patterns", &PatternConstructorNode::patterns)});
  return info;
}
const NodeInfo& PatternTupleNode::static_info() {
  static const NodeInfo info = describe_pattern<PatternTupleNode>(
      "relay.PatternTuple", {child("patterns", &PatternTupleNode::patterns)});
  return info;
}
const NodeInfo& ClauseNode::static_info() {
  static const NodeInfo info =
      describe<ClauseNode>("relay.Clause", kKind, family::pattern,
                           {child("lhs", &ClauseNode::lhs), child("rhs", &ClauseNode::rhs)});
  return info;
}
const NodeInfo& MatchNode::static_info() {
  static const NodeInfo info = describe_shared<MatchNode>(
      "relay.Match", {child("data", &MatchNode::data), child("clauses", &MatchNode::clauses),
                      attribute("complete", &MatchNode::complete)});
  return info;
}

// ---- Builders ----------------------------------------------------------------------------------

LeaveTypesOpen::LeaveTypesOpen() : before_(std::exchange(leave_types_open, true)) {}
LeaveTypesOpen::~LeaveTypesOpen() { leave_types_open = before_; }

BuildAt::BuildAt(const Span& place) : before_(std::exchange(default_place, &place)) {}
BuildAt::~BuildAt() { default_place = before_; }

Constant constant(Tensor data, Span span, std::string name_hint) {
  return build<ConstantNode>(std::move(span), [&](ConstantNode& n) {
    n.data = std::move(data);
    n.name_hint = std::move(name_hint);
  });
}
Constant constant(double value, DType dtype, Span span) {
  return constant(Tensor::scalar(value, dtype), std::move(span));
}
Var var(std::string name, Type type_annotation, Span span) {
  // Only a reader's annotations have holes; looking for them would cost each variable its whole type.
  return make<VarNode>([&](VarNode& n) {
    n.name_hint = std::move(name);
    n.span = std::move(span);
    if (!leave_types_open) n.type = type_annotation;
    n.type_annotation = std::move(type_annotation);
  });
}
GlobalVar global_var(std::string name, Type type) {
  return make<GlobalVarNode>([&](GlobalVarNode& n) {
    n.name_hint = std::move(name);
    n.type = std::move(type);
  });
}
Function function(std::vector<Var> params, Expr body, Type ret_type,
                  std::vector<TypeVar> type_params, Dict attrs, Span span) {
  return build<FunctionNode>(std::move(span), [&](FunctionNode& n) {
    n.params = std::move(params);
    n.body = std::move(body);
    n.ret_type = std::move(ret_type);
    n.type_params = std::move(type_params);
    n.attrs = std::move(attrs);
    if (!n.ret_type) n.ret_type = n.body->type;
  });
}
Call call(Expr callee, std::vector<Expr> args, Attrs attrs, Span span,
          std::vector<Type> type_args) {
  return build<CallNode>(std::move(span), [&](CallNode& n) {
    if (auto* op = as<OpNode>(callee); op != nullptr && !attrs) attrs = default_attrs(*op->row);
    n.op = std::move(callee);
    n.args = std::move(args);
    n.attrs = std::move(attrs);
    n.type_args = std::move(type_args);
  });
}
Call call(std::string_view op_name, std::vector<Expr> args, Attrs attrs, Span span) {
  Op op = OpRegistry::global().get(op_name, span);
  return call(op, std::move(args), std::move(attrs), std::move(span));
}
Let let(Var v, Expr value, Expr body, Span span) {
  return build<LetNode>(std::move(span), [&](LetNode& n) {
    n.var = std::move(v);
    n.value = std::move(value);
    n.body = std::move(body);
  });
}
If if_(Expr cond, Expr true_branch, Expr false_branch, Span span) {
  return build<IfNode>(std::move(span), [&](IfNode& n) {
    n.cond = std::move(cond);
    n.true_branch = std::move(true_branch);
    n.false_branch = std::move(false_branch);
  });
}
Tuple tuple(std::vector<Expr> fields, Span span) {
  return build<TupleNode>(std::move(span), [&](TupleNode& n) { n.fields = std::move(fields); });
}
TupleGetItem tuple_get_item(Expr tuple, int64_t index, Span span) {
  return build<TupleGetItemNode>(std::move(span), [&](TupleGetItemNode& n) {
    n.tuple = std::move(tuple);
    n.index = index;
  });
}
RefCreate ref_create(Expr value, Span span) {
  return build<RefCreateNode>(std::move(span),
                              [&](RefCreateNode& n) { n.value = std::move(value); });
}
RefRead ref_read(Expr ref, Span span) {
  return build<RefReadNode>(std::move(span), [&](RefReadNode& n) { n.ref = std::move(ref); });
}
RefWrite ref_write(Expr ref, Expr value, Span span) {
  return build<RefWriteNode>(std::move(span), [&](RefWriteNode& n) {
    n.ref = std::move(ref);
    n.value = std::move(value);
  });
}
Match match(Expr data, std::vector<Clause> clauses, bool complete, Span span) {
  return build<MatchNode>(std::move(span), [&](MatchNode& n) {
    n.data = std::move(data);
    n.clauses = std::move(clauses);
    n.complete = complete;
  });
}
Clause clause(Pattern lhs, Expr rhs) {
  return make<ClauseNode>([&](ClauseNode& n) {
    n.lhs = std::move(lhs);
    n.rhs = std::move(rhs);
  });
}

Function with_attr(const Function& f, const std::string& key, AttrValue value) {
  return make<FunctionNode>([&](FunctionNode& n) {
    n.span = f->span;
    n.type = f->type;
    n.type_params = f->type_params;
    n.params = f->params;
    n.ret_type = f->ret_type;
    n.body = f->body;
    n.attrs = f->attrs;
    n.attrs[key] = std::move(value);
  });
}

const OpNode* called_op(const Expr& expr) {
  auto* c = as<CallNode>(expr);
  return c == nullptr ? nullptr : as<OpNode>(c->op);
}

bool is_call_to(const Expr& expr, std::string_view op_name) {
  const OpNode* op = called_op(expr);
  return op != nullptr && op->name == op_name;
}

}  // namespace relay
