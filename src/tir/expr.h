// Scalar and vector expressions of the tensor IR.
//
// An expression has a dtype with lanes. Integer arithmetic wraps like the machine's. Arithmetic of
// int64 (`kIndex`) on loop variables, sizes, small constants and registers that step by constants is
// taken not to overflow, powers excepted (tir/arith/counting.h). FloorDiv and FloorMod round towards
// minus infinity, Div and Mod towards zero. Division by zero is undefined unless the operator's rule
// guards it. Float arithmetic is IEEE in the given dtype; no reassociation is done except where a
// schedule asks for it. Min and Max give NaN when either side is NaN. An expression has no effects: a
// Load reads a buffer, Calls are to pure intrinsics.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "node/node.h"
#include "runtime/core/dtype.h"
#include "tir/fields.h"

namespace relay::tir {

using runtime::DType;
inline constexpr DType kIndex = DType::Int(64);

namespace ExprKind {
enum : int {
  Var = 0x500,
  IntImm,
  FloatImm,
  Binary,
  Not,
  Select,
  Cast,
  Call,
  Load,
  Ramp,
  Broadcast,
  Let,
  Reduce,
  Shuffle,
};
}

struct PrimExprNode : Node {
  DType dtype = kIndex;
  static bool classof(const Node& n) { return n.info().family == family::tir_expr; }

 protected:
  using Node::Node;
};
using PrimExpr = Ref<PrimExprNode>;

// A scalar variable: a loop's, a block's, a Let's or a symbolic dimension.
struct VarNode : PrimExprNode {
  static constexpr int kKind = ExprKind::Var;
  std::string name;
  VarNode() : PrimExprNode(static_info()) {}
  static const NodeInfo& static_info();
};
using Var = Ref<VarNode>;

// An integer or bool constant (any integer dtype, one lane).
struct IntImmNode : PrimExprNode {
  static constexpr int kKind = ExprKind::IntImm;
  int64_t value = 0;
  IntImmNode() : PrimExprNode(static_info()) {}
  static const NodeInfo& static_info();
};
struct FloatImmNode : PrimExprNode {
  static constexpr int kKind = ExprKind::FloatImm;
  double value = 0;
  FloatImmNode() : PrimExprNode(static_info()) {}
  static const NodeInfo& static_info();
};

enum class BinaryOp : int64_t {
  Add,
  Sub,
  Mul,
  Div,
  Mod,
  FloorDiv,
  FloorMod,
  Min,
  Max,
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,  // result bool
  And,
  Or,  // on bool; both sides may be evaluated
  BitAnd,
  BitOr,
  BitXor,
  Shl,
  Shr,
};
std::string_view to_string(BinaryOp op);
bool is_comparison(BinaryOp op);

struct BinaryNode : PrimExprNode {
  static constexpr int kKind = ExprKind::Binary;
  BinaryOp op = BinaryOp::Add;
  PrimExpr a;
  PrimExpr b;
  BinaryNode() : PrimExprNode(static_info()) {}
  static const NodeInfo& static_info();
};

struct NotNode : PrimExprNode {
  static constexpr int kKind = ExprKind::Not;
  PrimExpr a;
  NotNode() : PrimExprNode(static_info()) {}
  static const NodeInfo& static_info();
};

// Chooses; only the chosen side's Loads need be in bounds (code generation guards them when
// `cond` is not a constant and a side's load cannot be proved in bounds).
struct SelectNode : PrimExprNode {
  static constexpr int kKind = ExprKind::Select;
  PrimExpr cond;
  PrimExpr true_value;
  PrimExpr false_value;
  SelectNode() : PrimExprNode(static_info()) {}
  static const NodeInfo& static_info();
};

// Converts between dtypes of equal lanes: float to int truncates towards zero and saturates (NaN
// gives 0), int to narrower int wraps, anything to bool is `!= 0`.
struct CastNode : PrimExprNode {
  static constexpr int kKind = ExprKind::Cast;
  PrimExpr value;
  CastNode() : PrimExprNode(static_info()) {}
  static const NodeInfo& static_info();
};

// A pure function by name: exp, sqrt, fma, isnan, bitcast, ... tir/intrinsics.h lists them all with
// arity, dtypes and meaning.
struct CallNode : PrimExprNode {
  static constexpr int kKind = ExprKind::Call;
  std::string name;
  std::vector<PrimExpr> args;
  CallNode() : PrimExprNode(static_info()) {}
  static const NodeInfo& static_info();
};

struct BufferNode;
using Buffer = Ref<BufferNode>;

// Reads buffer[indices]. After flattening there is one index; a vector index (Ramp) gives a vector.
// Indices are in units of elements. `dtype` is the buffer's, with the index's lanes.
struct LoadNode : PrimExprNode {
  static constexpr int kKind = ExprKind::Load;
  Buffer buffer;
  std::vector<PrimExpr> indices;
  PrimExpr predicate;  // null, or a bool vector: lanes that are false give zero and are not read
  // In a compute body, the tensor that is read (tir/compute.h); null in statements. No field.
  NodeRef source;
  LoadNode() : PrimExprNode(static_info()) {}
  static const NodeInfo& static_info();
};
using Load = Ref<LoadNode>;

// The vector base, base+stride, ..., `lanes` of dtype.
struct RampNode : PrimExprNode {
  static constexpr int kKind = ExprKind::Ramp;
  PrimExpr base;
  PrimExpr stride;
  RampNode() : PrimExprNode(static_info()) {}
  static const NodeInfo& static_info();
};
struct BroadcastNode : PrimExprNode {
  static constexpr int kKind = ExprKind::Broadcast;
  PrimExpr value;
  BroadcastNode() : PrimExprNode(static_info()) {}
  static const NodeInfo& static_info();
};

// value is computed once; var is visible in body only.
struct LetNode : PrimExprNode {
  static constexpr int kKind = ExprKind::Let;
  Var var;
  PrimExpr value;
  PrimExpr body;
  LetNode() : PrimExprNode(static_info()) {}
  static const NodeInfo& static_info();
};

enum class Combiner : int64_t { Sum, Prod, Min, Max, And, Or, ArgMin, ArgMax };
std::string_view to_string(Combiner c);

struct IterVarNode;
using IterVar = Ref<IterVarNode>;

// A reduction over axes; stands only at the root of a compute body (tir/compute.h) and becomes a
// block with an initialisation. ArgMin/ArgMax combine pairs: `source` = {index, value},
// `value_index` picks which one this expression gives; equal values keep the first index.
struct ReduceNode : PrimExprNode {
  static constexpr int kKind = ExprKind::Reduce;
  Combiner combiner = Combiner::Sum;
  std::vector<IterVar> axes;
  std::vector<PrimExpr> source;
  int64_t value_index = 0;
  ReduceNode() : PrimExprNode(static_info()) {}
  static const NodeInfo& static_info();
};

// ---- Builders: fold constants, check dtypes (a mismatch is a defect), broadcast scalars to lanes
// ---

Var var(std::string name, DType dtype = kIndex);
PrimExpr imm(DType dtype, int64_t value);  // any dtype: an integer constant converted
PrimExpr imm_float(DType dtype, double value);
PrimExpr index(int64_t value);  // int64
PrimExpr boolean(bool value);
PrimExpr binary(BinaryOp op, PrimExpr a, PrimExpr b);
PrimExpr operator+(PrimExpr a, PrimExpr b);
PrimExpr operator-(PrimExpr a, PrimExpr b);
PrimExpr operator*(PrimExpr a, PrimExpr b);
PrimExpr operator+(PrimExpr a, int64_t b);
PrimExpr operator-(PrimExpr a, int64_t b);
PrimExpr operator*(PrimExpr a, int64_t b);
PrimExpr div(PrimExpr a, PrimExpr b);  // ints: towards zero; floats: IEEE
PrimExpr mod(PrimExpr a, PrimExpr b);
PrimExpr floor_div(PrimExpr a, PrimExpr b);
PrimExpr floor_mod(PrimExpr a, PrimExpr b);
PrimExpr min(PrimExpr a, PrimExpr b);
PrimExpr max(PrimExpr a, PrimExpr b);
PrimExpr eq(PrimExpr a, PrimExpr b);
PrimExpr ne(PrimExpr a, PrimExpr b);
PrimExpr lt(PrimExpr a, PrimExpr b);
PrimExpr le(PrimExpr a, PrimExpr b);
PrimExpr gt(PrimExpr a, PrimExpr b);
PrimExpr ge(PrimExpr a, PrimExpr b);
PrimExpr logical_and(PrimExpr a, PrimExpr b);
PrimExpr logical_or(PrimExpr a, PrimExpr b);
PrimExpr logical_not(PrimExpr a);
PrimExpr select(PrimExpr cond, PrimExpr true_value, PrimExpr false_value);
PrimExpr cast(DType dtype, PrimExpr value);
// The lanes of `vector` combined by `op` (Add, Mul, Min, Max, And, Or), in any order.
PrimExpr reduce_lanes(BinaryOp op, PrimExpr vector);
PrimExpr call(std::string name, DType dtype, std::vector<PrimExpr> args);
PrimExpr load(Buffer buffer, std::vector<PrimExpr> indices, PrimExpr predicate = nullptr);
PrimExpr ramp(PrimExpr base, PrimExpr stride, int lanes);
PrimExpr broadcast(PrimExpr value, int lanes);
PrimExpr let(Var var, PrimExpr value, PrimExpr body);

// The least and greatest value of a dtype (infinities for floats), as constants.
PrimExpr min_value(DType dtype);
PrimExpr max_value(DType dtype);
// The value that changes nothing when combined.
PrimExpr identity_of(Combiner combiner, DType dtype);
PrimExpr combine(Combiner combiner, PrimExpr a, PrimExpr b);

// The value of an integer (or bool) constant, seen through Broadcast.
std::optional<int64_t> as_int(const PrimExpr& e);
std::optional<double> as_float(const PrimExpr& e);

std::string to_string(const PrimExpr& e);

}  // namespace relay::tir
