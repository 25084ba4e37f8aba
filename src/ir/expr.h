// Expressions of Relay: a typed functional language with sharing.
//
// Semantics in short. A program is a module of functions. Expressions are values of the types in
// ir/type.h. Evaluation is strict and, where effects can tell, goes left to right. In graph form
// an expression that is referred to several times is computed once, in the nearest scope common to
// its uses; a scope is a function body, a branch of If, a clause of Match, or a Let's value or
// body. `Let` names a value; when the value is a function its variable may occur inside it
// (recursion). References (RefCreate, RefRead, RefWrite) are the only state.
//
// Every expression has a span and, once checked, a type for good: the builder functions below
// deduce the type of a new node from its children when these have theirs, and rewriting keeps it.
// A builder throws UserError when the children's types do not fit.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/attrs.h"
#include "ir/type.h"

namespace relay {

namespace ExprKind {
enum : int {
  Constant = 0x100,
  Var,
  GlobalVar,
  Op,
  Constructor,
  Function,
  Call,
  Let,
  If,
  Tuple,
  TupleGetItem,
  Match,
  RefCreate,
  RefRead,
  RefWrite,
};
}
namespace PatternKind {
enum : int { Wildcard = 0x180, Var, Constructor, Tuple, Clause };
}

struct OpInfo;

struct ExprNode : Node {
  Span span;
  Type type;  // null until checked
  static bool classof(const Node& n) { return n.info().family == family::expr; }

 protected:
  using Node::Node;
};
using Expr = Ref<ExprNode>;

// A tensor known at compile time. The tensor is shared, never copied.
struct ConstantNode : ExprNode {
  static constexpr int kKind = ExprKind::Constant;
  Tensor data;
  std::string name_hint;  // the model's name of the weight, may be empty
  ConstantNode() : ExprNode(static_info()) {}
  static const NodeInfo& static_info();
};
using Constant = Ref<ConstantNode>;

// A local variable: a parameter, a Let's variable or a pattern's. Identity is what counts.
struct VarNode : ExprNode {
  static constexpr int kKind = ExprKind::Var;
  std::string name_hint;
  Type type_annotation;  // may be null
  VarNode() : ExprNode(static_info()) {}
  static const NodeInfo& static_info();
};
using Var = Ref<VarNode>;

// A function of the module, equal by name.
struct GlobalVarNode : ExprNode {
  static constexpr int kKind = ExprKind::GlobalVar;
  std::string name_hint;
  GlobalVarNode() : ExprNode(static_info()) {}
  static const NodeInfo& static_info();
};
using GlobalVar = Ref<GlobalVarNode>;

// A primitive operator; one node per registered operator, so identity is equality.
struct OpNode : ExprNode {
  static constexpr int kKind = ExprKind::Op;
  std::string name;
  std::shared_ptr<const OpInfo> row;  // kept while anything refers to the operator
  OpNode() : ExprNode(static_info()) {}
  static const NodeInfo& static_info();
};
using Op = Ref<OpNode>;

// A constructor of an algebraic data type; `tag` is its index in the type.
struct ConstructorNode : ExprNode {
  static constexpr int kKind = ExprKind::Constructor;
  std::string name_hint;
  std::vector<Type> inputs;
  GlobalTypeVar belong_to;
  int64_t tag = 0;
  ConstructorNode() : ExprNode(static_info()) {}
  static const NodeInfo& static_info();
};
using Constructor = Ref<ConstructorNode>;

// An algebraic data type's definition.
struct TypeDataNode : TypeNode {
  static constexpr int kKind = TypeKind::TypeData;
  GlobalTypeVar header;
  std::vector<TypeVar> type_vars;
  std::vector<Constructor> constructors;  // empty for `extern type`
  Span span;
  TypeDataNode() : TypeNode(static_info()) {}
  static const NodeInfo& static_info();
};
using TypeData = Ref<TypeDataNode>;

// A function; `attrs` uses the keys of namespace `attr`. A function with attr::kPrimitive is one
// fused kernel.
struct FunctionNode : ExprNode {
  static constexpr int kKind = ExprKind::Function;
  std::vector<TypeVar> type_params;
  std::vector<Var> params;
  Type ret_type;  // null until checked unless annotated
  Expr body;
  Dict attrs;
  FunctionNode() : ExprNode(static_info()) {}
  static const NodeInfo& static_info();

  bool has_attr(const std::string& key) const { return attrs.contains(key); }
  bool is_primitive() const { return has_attr("Primitive"); }
};
using Function = Ref<FunctionNode>;

// Function attribute keys.
namespace attr {
inline constexpr const char* kPrimitive = "Primitive";
inline constexpr const char* kInline = "Inline";
inline constexpr const char* kCompiler = "Compiler";
inline constexpr const char* kComposite = "Composite";
inline constexpr const char* kGlobalSymbol = "global_symbol";
inline constexpr const char* kClosure = "Closure";
inline constexpr const char* kExtern = "Extern";
// A kernel whose outer loop goes from its end to its beginning (pass AlternateOrder).
inline constexpr const char* kBackward = "Backward";
inline constexpr const char* kFusionReason = "fusion_reason";
// Nothing reads the result of the primitive function before it is written over: memory is enough.
inline constexpr const char* kUnwritten = "Unwritten";
// Of a primitive function: the device that runs it, as text ("cuda:0"); without it the host does.
inline constexpr const char* kDevice = "device";
// What a model calls the tensors of its results, in order; and its parameters whose names are no
// identifiers: pairs of a parameter's name and the model's.
inline constexpr const char* kOutputNames = "output_names";
inline constexpr const char* kInputNames = "input_names";
}  // namespace attr

struct CallNode : ExprNode {
  static constexpr int kKind = ExprKind::Call;
  Expr op;
  std::vector<Expr> args;
  Attrs attrs;  // null when the operator has none
  std::vector<Type> type_args;
  CallNode() : ExprNode(static_info()) {}
  static const NodeInfo& static_info();
};
using Call = Ref<CallNode>;

struct LetNode : ExprNode {
  static constexpr int kKind = ExprKind::Let;
  Var var;
  Expr value;
  Expr body;
  LetNode() : ExprNode(static_info()) {}
  static const NodeInfo& static_info();
};
using Let = Ref<LetNode>;

// `cond` is a scalar bool tensor.
struct IfNode : ExprNode {
  static constexpr int kKind = ExprKind::If;
  Expr cond;
  Expr true_branch;
  Expr false_branch;
  IfNode() : ExprNode(static_info()) {}
  static const NodeInfo& static_info();
};
using If = Ref<IfNode>;

struct TupleNode : ExprNode {
  static constexpr int kKind = ExprKind::Tuple;
  std::vector<Expr> fields;
  TupleNode() : ExprNode(static_info()) {}
  static const NodeInfo& static_info();
};
using Tuple = Ref<TupleNode>;

struct TupleGetItemNode : ExprNode {
  static constexpr int kKind = ExprKind::TupleGetItem;
  Expr tuple;
  int64_t index = 0;
  TupleGetItemNode() : ExprNode(static_info()) {}
  static const NodeInfo& static_info();
};
using TupleGetItem = Ref<TupleGetItemNode>;

struct RefCreateNode : ExprNode {
  static constexpr int kKind = ExprKind::RefCreate;
  Expr value;
  RefCreateNode() : ExprNode(static_info()) {}
  static const NodeInfo& static_info();
};
struct RefReadNode : ExprNode {
  static constexpr int kKind = ExprKind::RefRead;
  Expr ref;
  RefReadNode() : ExprNode(static_info()) {}
  static const NodeInfo& static_info();
};
// Writes and gives the empty tuple.
struct RefWriteNode : ExprNode {
  static constexpr int kKind = ExprKind::RefWrite;
  Expr ref;
  Expr value;
  RefWriteNode() : ExprNode(static_info()) {}
  static const NodeInfo& static_info();
};
using RefCreate = Ref<RefCreateNode>;
using RefRead = Ref<RefReadNode>;
using RefWrite = Ref<RefWriteNode>;

// ---- Patterns ----------------------------------------------------------------------------------

struct PatternNode : Node {
  Span span;
  static bool classof(const Node& n) { return n.info().family == family::pattern; }

 protected:
  using Node::Node;
};
using Pattern = Ref<PatternNode>;

struct PatternWildcardNode : PatternNode {
  static constexpr int kKind = PatternKind::Wildcard;
  PatternWildcardNode() : PatternNode(static_info()) {}
  static const NodeInfo& static_info();
};
struct PatternVarNode : PatternNode {
  static constexpr int kKind = PatternKind::Var;
  Var var;
  PatternVarNode() : PatternNode(static_info()) {}
  static const NodeInfo& static_info();
};
struct PatternConstructorNode : PatternNode {
  static constexpr int kKind = PatternKind::Constructor;
  Constructor constructor;
  std::vector<Pattern> patterns;
  PatternConstructorNode() : PatternNode(static_info()) {}
  static const NodeInfo& static_info();
};
struct PatternTupleNode : PatternNode {
  static constexpr int kKind = PatternKind::Tuple;
  std::vector<Pattern> patterns;
  PatternTupleNode() : PatternNode(static_info()) {}
  static const NodeInfo& static_info();
};

struct ClauseNode : Node {
  static constexpr int kKind = PatternKind::Clause;
  Pattern lhs;
  Expr rhs;
  ClauseNode() : Node(static_info()) {}
  static const NodeInfo& static_info();
};
using Clause = Ref<ClauseNode>;

// Tries the clauses in order. `complete` says that the match must be total (`match`); otherwise a
// value without a clause is a run-time error (`match?`).
struct MatchNode : ExprNode {
  static constexpr int kKind = ExprKind::Match;
  Expr data;
  std::vector<Clause> clauses;
  bool complete = true;
  MatchNode() : ExprNode(static_info()) {}
  static const NodeInfo& static_info();
};
using Match = Ref<MatchNode>;

// ---- Builders
// They deduce types; see the head of this file.

// While one is alive, the builders of its thread leave types open, for inference to find: what is
// built may be ill-typed, and inference explains an error better than a builder can.
class LeaveTypesOpen {
 public:
  LeaveTypesOpen();
  ~LeaveTypesOpen();
  LeaveTypesOpen(const LeaveTypesOpen&) = delete;
  LeaveTypesOpen& operator=(const LeaveTypesOpen&) = delete;

 private:
  bool before_;
};

// While one is alive, what the builders of its thread make without a place has this one: what stands
// for a call is where the call is. `place` outlives it.
class BuildAt {
 public:
  explicit BuildAt(const Span& place);
  ~BuildAt();
  BuildAt(const BuildAt&) = delete;
  BuildAt& operator=(const BuildAt&) = delete;

 private:
  const Span* before_;
};

Constant constant(Tensor data, Span span = {}, std::string name_hint = {});
// A scalar constant.
Constant constant(double value, DType dtype, Span span = {});
Var var(std::string name, Type type_annotation = nullptr, Span span = {});
GlobalVar global_var(std::string name, Type type = nullptr);
Function function(std::vector<Var> params, Expr body, Type ret_type = nullptr,
                  std::vector<TypeVar> type_params = {}, Dict attrs = {}, Span span = {});
// `callee` is an operator, a function-valued expression, a global or a constructor. Null `attrs`
// for an operator with attributes means all defaults.
Call call(Expr callee, std::vector<Expr> args, Attrs attrs = nullptr, Span span = {},
          std::vector<Type> type_args = {});
// The same by operator name, "nn.dense".
Call call(std::string_view op_name, std::vector<Expr> args, Attrs attrs = nullptr, Span span = {});
Let let(Var v, Expr value, Expr body, Span span = {});
If if_(Expr cond, Expr true_branch, Expr false_branch, Span span = {});
Tuple tuple(std::vector<Expr> fields, Span span = {});
TupleGetItem tuple_get_item(Expr tuple, int64_t index, Span span = {});
RefCreate ref_create(Expr value, Span span = {});
RefRead ref_read(Expr ref, Span span = {});
RefWrite ref_write(Expr ref, Expr value, Span span = {});
Match match(Expr data, std::vector<Clause> clauses, bool complete = true, Span span = {});
Clause clause(Pattern lhs, Expr rhs);

// The same function with other attributes.
Function with_attr(const Function& f, const std::string& key, AttrValue value);

// The type that an expression has by its children's types; null when a child has none yet. Throws
// UserError when the children's types do not fit.
Type deduce_type(const ExprNode& expr);

// The operator of a call, or null when the callee is something else.
const OpNode* called_op(const Expr& expr);
// True for a call of that operator.
bool is_call_to(const Expr& expr, std::string_view op_name);

}  // namespace relay
