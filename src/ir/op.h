// The operator interface: one row per operator, all that is known about it in typed columns.
//
// Rows are written in `ops` (one file per family) and reach the registry through one explicit list;
// everybody else sees operators only through this interface. Passes ask columns ("what is your
// fusion class?"), never names, unless the rewrite is about that very operator.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/expr.h"
#include "ir/layout.h"

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
  enum Kind { kEqual, kAtLeast } kind = kEqual;
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

  // Solves an unknown argument (a weight's type from the data's, say).
  void solve(size_t i, Type type) { solved_.emplace_back(i, std::move(type)); }
  const std::vector<std::pair<size_t, Type>>& solved() const { return solved_; }

  // Whether two sizes can be equal. When only a run can tell (`n` and `m`, `n` and 3) the relation
  // holds on the assumption that they are, and the compiled program checks it.
  bool equal(const Dim& a, const Dim& b);
  // The same for a >= b.
  bool at_least(const Dim& a, const Dim& b);
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
using TypeRelation = Type (*)(RelationContext& ctx);

// ---- Layout rule -------------------------------------------------------------------------------

// How an operator takes part in a change of layout: the layouts it wants for its tensor arguments
// (tuples flattened), those of its results, and the attributes that go with them.
struct LayoutDecision {
  std::vector<Layout> inputs;
  std::vector<Layout> outputs;
  Attrs attrs;
};

// `offered` are the layouts in which the arguments are at hand (undefined where none), `desired` is
// the layout asked for by the user or target for this operator (undefined: adapt to what is
// offered). nullopt: the operator stays as it is.
using LayoutRule = std::optional<LayoutDecision> (*)(const CallNode& call,
                                                     std::span<const Layout> offered,
                                                     const Layout& desired);

// ---- Further columns ---------------------------------------------------------------------------

// Floating point operations of a call with static types (2 per multiply-add).
using CostRule = double (*)(const CallNode& call);

// How the memory of a call's result lies to that of its arguments, given static types.
enum class Memory {
  Own,
  Joined,  // the arguments one after the other, along one axis (concatenate)
  Cut,     // the results are the first argument in pieces, one after the other (split)
};
using MemoryRule = Memory (*)(const CallNode& call);

// The gradients of the arguments for the gradient of the result.
using GradientRule = std::vector<Expr> (*)(const Call& call, const Expr& output_gradient);

// What mixed precision does with an operator.
enum class Precision { Always, Follow, Never };

// One example for the property tests: argument types in text form, attribute text, input range.
struct OpExample {
  std::vector<std::string> args;  // "Tensor[(2, 3), float32]"
  std::string attrs;              // "axis=1, keepdims=True"
  double low = -2.0;
  double high = 2.0;
};

struct ArgInfo {
  std::string_view name;
  std::string_view doc;
};

// A row of the registry.
struct OpInfo {
  std::string_view name;
  std::string_view doc;  // one sentence or more
  std::vector<ArgInfo> args;
  const NodeInfo* attrs = nullptr;  // null: no attributes
  int support_level = 1;
  FusionClass fusion = FusionClass::Opaque;
  TypeRelation relation = nullptr;
  std::shared_ptr<const ComputeRule> compute;
  Effect effect = Effect::Pure;
  // The result has the elements of the first argument in the same order (reshape, squeeze): it can
  // be the same memory.
  bool reshape_only = false;
  MemoryRule memory = nullptr;  // null: memory of its own
  LayoutRule layout = nullptr;
  CostRule cost = nullptr;
  GradientRule gradient = nullptr;
  Precision precision = Precision::Follow;
  std::vector<OpExample> examples;
  // Why a column that is due is absent: {"compute", "SimplifyInference removes it"}.
  std::vector<std::pair<std::string_view, std::string_view>> absent;
};

// The operator's attributes, all at their defaults; null when it has none.
Attrs default_attrs(const OpInfo& op);

// The operators of the process. Filled once, from the explicit list, by `register_ops`.
class OpRegistry {
 public:
  // The process-wide registry.
  static OpRegistry& global();

  // Adds a row; a defect of Relay if the name exists already.
  Op add(OpInfo row);
  // The operator of that name, or null.
  Op find(std::string_view name) const;
  // The operator of that name; throws UserError E0105 with near names when there is none.
  Op get(std::string_view name, const Span& span = {}) const;
  // All operators sorted by name.
  std::vector<Op> all() const;

 private:
  std::map<std::string, Op, std::less<>> ops_;
  std::vector<std::unique_ptr<OpInfo>> rows_;
};

// Up to three known names close to a misspelt one, as "did you mean a, b?"; empty when none is.
std::string suggest(std::string_view name, const std::vector<std::string_view>& known);

// Runs the relation of `ctx`'s operator and refuses results that no machine can hold: a negative
// size (E0203), a rank over 64 or 2^48 elements and more (E0213).
Type run_relation(RelationContext& ctx);

// What an operator call with known argument types assumes about sizes.
std::vector<DimAssumption> assumptions_of(const CallNode& call);

// Runs an operator's relation; throws UserError when it fails, null when an argument is unknown.
Type apply_relation(const OpInfo& op, const std::vector<Type>& args, const Attrs& attrs,
                    const Span& span);

}  // namespace relay
