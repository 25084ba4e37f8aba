// The operator interface: one row per operator, all that is known about it in typed columns.
//
// Rows are written in `ops` (one file per family) and reach the registry through one explicit list;
// everybody else sees operators only through this interface. Passes ask columns ("what is your
// fusion class?"), never names, unless the rewrite is about that very operator.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/attrs.h"
#include "ir/contraction.h"
#include "ir/expr.h"
#include "ir/layout.h"
#include "ir/op_column.h"
#include "ir/op_facts.h"

namespace relay {

struct ComputeRule;  // lower/interface/compute_rule.h

// How an operator may be fused with its neighbours (TOpPattern).
enum class FusionClass : int {
  ElemWise = 0,         // output element i depends on input element i
  Broadcast = 1,        // ... on the input elements that broadcast to i
  Injective = 2,        // ... on one element of each input, at an index computed from i
  CommReduce = 3,       // a commutative reduction
  OutEWiseFusable = 4,  // heavy: element-wise followers can be applied to its output
  Opaque = 8,           // never fused
};
std::string_view to_string(FusionClass c);

// What an operator does besides giving its result. Anything but Pure is never moved, merged or
// dropped.
enum class Effect { Pure, Random, Io };

// ---- Type relation -----------------------------------------------------------------------------

// What a relation takes for granted about sizes that are known only at run time.
struct DimAssumption {
  // kBroadcast: they are equal, or one of them is 1.
  enum Kind { kEqual, kAtLeast, kBroadcast } kind = kEqual;
  Dim a;
  Dim b;
};

// Given to a type relation: the argument types as far as they are known, the attributes, and ways
// to fail with a reason or to solve an unknown argument.
class RelationContext {
 public:
  RelationContext(const OpInfo& op, std::vector<Type> args, Attrs attrs, Span span,
                  Type result = nullptr)
      : op_(op),
        args_(std::move(args)),
        attrs_(std::move(attrs)),
        span_(std::move(span)),
        result_(std::move(result)) {}

  const OpInfo& op() const { return op_; }
  size_t size() const { return args_.size(); }
  // The i-th argument's type; IncompleteType when unknown.
  const Type& arg(size_t i) const { return args_[i]; }
  // The i-th argument as a tensor type. Null when it is not known yet (then return null from the
  // relation: it is asked again later); fails when it is something else.
  const TensorTypeNode* tensor(size_t i);
  // The tensors of the i-th argument, a tuple; empty optional when not known yet or failed.
  std::optional<std::vector<TensorType>> tensors(size_t i);
  // The result's type where the call's surroundings ask for one: for relations that can solve an
  // unknown argument from it. Null when it is not known, or not a tensor; it need not hold.
  const TensorTypeNode* wanted_result() const { return as<TensorTypeNode>(result_); }
  template <class A>
  const A& attrs() const {
    return *static_cast<const A*>(attrs_.get());
  }
  const Attrs& attrs_ref() const { return attrs_; }

  // The type that another operator's relation gives for some of the arguments, by their places, with
  // attributes of its own or (null) with these. What it solves and assumes, and why it fails, is as
  // if said here.
  Type by_relation(const OpInfo& other, std::initializer_list<size_t> args, Attrs attrs = nullptr);

  // Solves an unknown argument (a weight's type from the data's, say).
  void solve(size_t i, Type type) { solved_.emplace_back(i, std::move(type)); }
  const std::vector<std::pair<size_t, Type>>& solved() const { return solved_; }

  // Whether two sizes can be equal. When only a run can tell (`n` and `m`, `n` and 3) the relation
  // holds on the assumption that they are, and the compiled program checks it.
  bool equal(const Dim& a, const Dim& b);
  // The same for a >= b.
  bool at_least(const Dim& a, const Dim& b);
  // The size of two axes that are broadcast to each other; null when they cannot be. Here, too, the
  // relation holds on the assumption of what only a run can tell.
  Dim broadcast(const Dim& a, const Dim& b);
  const std::vector<DimAssumption>& assumptions() const { return assumptions_; }

  // Reports why the relation cannot hold; always returns null so that relations can
  // `return ctx.fail(...)`. The message names the argument, the diagnostic adds operator and span.
  std::nullptr_t fail(const DiagnosticCode& code, std::string message, std::string expected = {},
                      std::string found = {}, std::string help = {});
  const std::optional<Diagnostic>& failure() const { return failure_; }

 private:
  const OpInfo& op_;
  std::vector<Type> args_;
  Attrs attrs_;
  Span span_;
  Type result_;
  std::vector<std::pair<size_t, Type>> solved_;
  std::vector<DimAssumption> assumptions_;
  std::optional<Diagnostic> failure_;
};

// Gives the result type; null when it failed (ctx.failure()) or cannot tell yet.
using TypeRelation = std::function<Type(RelationContext& ctx)>;

// ---- Layout rule -------------------------------------------------------------------------------

// How an operator takes part in a change of layout: the layouts it wants for its tensor arguments
// (tuples flattened), those of its results, and the attributes that go with them.
struct LayoutDecision {
  std::vector<Layout> inputs;
  std::vector<Layout> outputs;
  Attrs attrs;
};

// `offered` are the layouts in which the arguments are available (undefined where none), `desired` is
// the layout asked for by the user or target for this operator (undefined: adapt to what is
// offered). nullopt: the operator stays as it is.
using LayoutRule = std::function<std::optional<LayoutDecision>(
    const CallNode& call, std::span<const Layout> offered, const Layout& desired)>;

// ---- Further columns ---------------------------------------------------------------------------

// What a call of an operator that sums products does with its operands' dimensions; nullopt where its attributes make it
// something else.
using ContractionRule = std::function<std::optional<Contraction>(const CallNode& call)>;

// The operator in others: an expression of the call's type over its arguments, each of which may be
// used any number of times. analysis/definitions.h puts it in the call's place. Throws UserError for
// arguments whose values are known and wrong.
using DefinitionRule = std::function<Expr(const CallNode& call)>;

// Floating point operations of a call with static types (2 per multiply-add).
using CostRule = std::function<double(const CallNode& call)>;

// How the memory of a call's result lies to that of its arguments, given static types.
enum class Memory {
  Own,
  Joined,   // the arguments one after the other, along one axis (concatenate)
  Cut,      // the results are the first argument in pieces, one after the other (split)
  Updated,  // the first argument with the second written into it, from the row that the third says
            // (update_slice): nothing else of it changes
};
using MemoryRule = std::function<Memory(const CallNode& call)>;

// A call whose gradient is wanted. The adjoint of a value says how the end result changes with it:
// it is a tensor of the value's type.
struct GradientContext {
  // Typed. Its arguments may be used any number of times: each is computed once.
  const CallNode& call;
  // The value of the call, computed already.
  Expr result;
  // The adjoints of the result's tensors, tuples flattened; null where the end result does not
  // depend on one, or it holds no floats. One of them is not null.
  std::vector<Expr> adjoints;

  const Expr& arg(size_t i) const { return call.args[i]; }
  // Of a result that is one tensor.
  const Expr& adjoint() const { return adjoints[0]; }
  template <class A>
  const A& attrs() const {
    return *static_cast<const A*>(call.attrs.get());
  }
};

// The adjoints of the tensors of the arguments, tuples flattened, as Relay expressions. They are
// linear in the adjoints of the result: forward mode follows from that. Null, or left out at the
// end, where the result does not depend on a tensor; what is said of one that holds no floats is not
// read. Throws UserError
// E1003 where the operator has no gradient for the call's attributes.
using GradientRule = std::function<std::vector<Expr>(const GradientContext& ctx)>;

// A call for several lanes at once. A tensor with lanes has one axis more than in the call of one lane:
// the first, along which they are. Others, also those of the same tuple, are the same in all lanes.
struct BatchingContext {
  const CallNode& call;       // of one lane. Typed.
  std::vector<Expr> args;     // of all lanes. May be used any number of times
  std::vector<bool> batched;  // for each argument, any of its tensors; one is
  Dim lanes;

  const Expr& arg(size_t i) const { return args[i]; }
  template <class A>
  const A& attrs() const {
    return *static_cast<const A*>(call.attrs.get());
  }
};

// The results of all lanes: each tensor has the lanes along its first axis. Null where these attributes
// or arguments leave nothing better than one lane after the other.
using BatchingRule = std::function<Expr(const BatchingContext& ctx)>;

// Whether a run may end in the call, by what its arguments hold: an index, a size, a text, a file.
using EndRule = std::function<bool(const CallNode& call)>;

// What mixed precision does with an operator.
enum class Precision { Always, Follow, Never };

// One example for the tests: argument types in text form, attribute text, range of random inputs.
// Where the row's column `expected` names a source, some example also holds inputs and results from
// there, one list for each tensor in row-major order, tuples flattened.
struct OpExample {
  std::vector<std::string> args;  // "Tensor[(2, 3), float32]"
  std::string attrs;              // "axis=1, keepdims=True"
  double low = -2.0;
  double high = 2.0;
  std::vector<std::vector<double>> inputs = {};
  std::vector<std::vector<double>> results = {};
};

struct ArgInfo {
  std::string name;
  std::string doc;
};

// The description of an operator's attributes: of a struct, which lives as long as the process, or
// made at run time (`describe_attrs` of data), which lives as long as somebody holds it. Null: the
// operator has no attributes.
class AttrsInfo {
 public:
  AttrsInfo() = default;
  AttrsInfo(std::nullptr_t) {}                      // NOLINT
  AttrsInfo(const NodeInfo* info) : info_(info) {}  // NOLINT
  AttrsInfo(std::shared_ptr<const NodeInfo> info)   // NOLINT
      : owner_(std::move(info)), info_(owner_.get()) {}
  const NodeInfo* get() const { return info_; }
  const NodeInfo* operator->() const { return info_; }
  const NodeInfo& operator*() const { return *info_; }
  friend bool operator==(const AttrsInfo& a, std::nullptr_t) { return a.info_ == nullptr; }

 private:
  std::shared_ptr<const NodeInfo> owner_;
  const NodeInfo* info_ = nullptr;
};

// A row of the registry: a literal that says something in every column. It owns what it names.
struct OpInfo {
  std::string name;  // "nn.softmax"; from outside of Relay in a namespace of its own: "mylib.op"
  std::string doc;   // one sentence or more
  std::vector<ArgInfo> args = {};
  AttrsInfo attrs = nullptr;
  int support_level = 1;
  Column<FusionClass> fusion = {};
  Column<Effect> effect = {};
  // The result has the elements of the first argument in the same order (reshape, squeeze): it can
  // be the same memory.
  bool reshape_only = false;
  // Elements are taken as they are, or said otherwise in the relation: so also those of narrow types
  // and strings, without arithmetic (runtime/core/dtype.h). All other operators refuse these.
  bool takes_narrow = false;
  // Null: no call of it ends a run.
  EndRule may_end_run = nullptr;
  Column<TypeRelation> relation = {};
  Column<std::shared_ptr<const ComputeRule>> compute = {};
  // Asked of heavy operators (OutEWiseFusable) only: others do not multiply and add.
  Column<ContractionRule> contraction = {};
  // With `compute = Absent::Defined`; beside a rule where the gradient (Absent::Pending) follows from it.
  DefinitionRule definition = nullptr;
  Column<LayoutRule> layout = {};
  Column<MemoryRule> memory = {};
  Column<Precision> precision = {};
  Column<CostRule> cost = {};
  Column<GradientRule> gradient = {};
  // Asked of all but those that broadcast (ElemWise, Broadcast), sums of products, which are batched by
  // their dimensions' roles, and operators with a definition; one of these may have a rule of its own.
  Column<BatchingRule> batching = {};
  // Of what passes rewrite by (ir/op_facts.h); what is left out does not hold.
  std::optional<ElementMoves> moves = {};
  // The elements of the result, from the known ones of the arguments, where `moves` does not give them.
  std::shared_ptr<const KnownRule> known = nullptr;
  // The call on integers, where it is not the operator applied to them, which follows from `moves`.
  QuantizedRule quantized = nullptr;
  // How its weights are packed, or its axes turned, where that does not follow from `contraction` (AlterOpLayout).
  PackingRule packing = nullptr;
  std::optional<StaticForm> static_form = {};
  std::optional<Window> window = {};
  // The name of an operator of the same arguments and attributes that is faster and less exact, for float32.
  std::string approximation = {};
  Algebra algebra = {};
  std::vector<OpExample> examples = {};
  // Where expected values come from that do not share the compute rule: the source of those that
  // the examples hold, or ByNumPy.
  Column<std::string> expected = {};
};

// Whether a run may end in the call of an operator: by its column, or by what it assumes about sizes.
bool may_end_run(const CallNode& call);

// The columns of a row that say nothing, by name. An empty list: the row is complete.
std::vector<std::string_view> missing_columns(const OpInfo& row);

// The operator's attributes, all at their defaults; null when it has none.
Attrs default_attrs(const OpInfo& op);

// The operators of the process: Relay's own, from the explicit list of `register_ops`, and those of
// users. Every function may be called from several threads.
class OpRegistry {
 public:
  // The process-wide registry.
  static OpRegistry& global();

  OpRegistry();
  ~OpRegistry();

  // Registers an operator from outside: a plug-in, Python. Throws UserError
  //   E0802 when the name is not of the form "namespace.name" or the namespace is Relay's own,
  //   E0803 when an operator of that name exists,
  //   E0804 when a column says nothing.
  Op add(OpInfo row);
  // Takes an operator of `add` away again; throws UserError E0105 when there is none of that name,
  // E0802 when it is one of Relay's own. Expressions that refer to it stay valid; its name is free.
  void remove(std::string_view name);
  // Registers Relay's own rows, which outlive the registry; a defect of Relay if a name is taken.
  void install(std::span<const OpInfo> rows);

  // The operator of that name, or null.
  Op find(std::string_view name) const;
  // The operator of that name; throws UserError E0105 with near names when there is none.
  Op get(std::string_view name, const Span& span = {}) const;
  // All operators sorted by name.
  std::vector<Op> all() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What is assumed, in words: "n must be at least 2".
std::string to_string(const DimAssumption& assumption);

// The number of an operator's arguments, and their names: "2 (lhs, rhs)", or "0".
std::string named_args(const OpInfo& op);

// Runs the relation of `ctx`'s operator and refuses results that no machine can hold: a negative
// size (E0203), a rank over 64 or 2^48 elements and more (E0213).
Type run_relation(RelationContext& ctx);

// What an operator call with known argument types assumes about sizes.
std::vector<DimAssumption> assumptions_of(const CallNode& call);

// Runs an operator's relation; throws UserError when it fails, null when an argument is unknown.
Type apply_relation(const OpInfo& op, const std::vector<Type>& args, const Attrs& attrs,
                    const Span& span);

}  // namespace relay
