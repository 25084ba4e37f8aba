// Types of Relay.
//
// A tensor's dimension is a constant, a symbolic expression over named dimensions, or `?` (known
// only from data). `fn [n: Dim] (Tensor[(n, 768), float32]) -> Tensor[(n, 4), float32]` is a type.
// Types are immutable and compared with `structural_equal`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/fields.h"
#include "node/node.h"

namespace relay {

namespace TypeKind {
enum : int {
  TensorType = 0x200,
  TupleType,
  FuncType,
  RefType,
  TypeVar,
  GlobalTypeVar,
  TypeCall,
  IncompleteType,
  TypeRelation,
  TypeData,
  DimConst,
  DimVar,
  DimAny,
  DimOp,
};
}

struct AttrsNode;
using Attrs = Ref<AttrsNode>;

// ---- Kinds -------------------------------------------------------------------------------------

// What a type variable stands for.
enum class Kind : int64_t { Type, BaseType, Shape, Dim, Constraint, AdtHandle };

std::string_view to_string(Kind kind);

// ---- Dimensions --------------------------------------------------------------------------------

struct TypeVarNode;
using TypeVar = Ref<TypeVarNode>;

struct DimNode : Node {
  using Node::Node;
  static bool classof(const Node& n) { return n.info().family == family::dim; }
};
using Dim = Ref<DimNode>;

// A known size, >= 0.
struct DimConstNode : DimNode {
  static constexpr int kKind = TypeKind::DimConst;
  int64_t value = 0;
  DimConstNode() : DimNode(static_info()) {}
  static const NodeInfo& static_info();
};

// A named size: a type variable of kind Dim.
struct DimVarNode : DimNode {
  static constexpr int kKind = TypeKind::DimVar;
  TypeVar var;
  DimVarNode() : DimNode(static_info()) {}
  static const NodeInfo& static_info();
};

// `?`: a data-dependent size. Two of them are equal as types but say nothing about each
// other.
struct DimAnyNode : DimNode {
  static constexpr int kKind = TypeKind::DimAny;
  DimAnyNode() : DimNode(static_info()) {}
  static const NodeInfo& static_info();
};

enum class DimOpKind : int64_t { Add, Sub, Mul, FloorDiv, CeilDiv, Mod, Max, Min, Broadcast };

// Arithmetic on sizes; built by the functions below, which keep a normal form: constants folded,
// sums and products flattened, sorted and collected.
struct DimOpNode : DimNode {
  static constexpr int kKind = TypeKind::DimOp;
  DimOpKind op = DimOpKind::Add;
  Dim a;
  Dim b;
  DimOpNode() : DimNode(static_info()) {}
  static const NodeInfo& static_info();
};

Dim dim(int64_t value);
Dim dim(TypeVar var);
Dim dim_any();
// Arithmetic; anything with `?` is `?`. Overflow of int64 throws UserError E0213.
Dim operator+(const Dim& a, const Dim& b);
Dim operator-(const Dim& a, const Dim& b);
Dim operator*(const Dim& a, const Dim& b);
Dim floor_div(const Dim& a, const Dim& b);
Dim ceil_div(const Dim& a, const Dim& b);
Dim mod(const Dim& a, const Dim& b);
Dim max(const Dim& a, const Dim& b);
Dim min(const Dim& a, const Dim& b);
// The size of axes of sizes a and b that are broadcast: b when a is 1, else a (and then b is 1 or
// the same). Where one of them cannot be 1, it is that one.
Dim broadcast(const Dim& a, const Dim& b);

// The operation by kind; `mod`, `max`, ... by another name.
Dim dim_op(DimOpKind op, const Dim& a, const Dim& b);

// The value of a constant dimension.
std::optional<int64_t> as_const(const Dim& d);
bool is_any(const Dim& d);
// Certainly equal: same constants or same symbolic expression; never true for `?`.
bool dim_equal(const Dim& a, const Dim& b);
// Certainly different: two unequal constants (or expressions that differ by a nonzero constant).
bool dim_differs(const Dim& a, const Dim& b);
// Certainly not 1, whatever sizes of 0 or more the names stand for: 4, 2 * n, n + 2.
bool never_one(const Dim& d);
// Certainly 0 or more, whatever sizes of 0 or more the names stand for: n + 2, (n - 1) // 2 + 1.
bool never_negative(const Dim& d);
std::string to_string(const Dim& d);

// ---- Types -------------------------------------------------------------------------------------

struct TypeNode : Node {
  using Node::Node;
  static bool classof(const Node& n) { return n.info().family == family::type; }
};
using Type = Ref<TypeNode>;

// A dense tensor. A scalar has an empty shape. `shape_var` / `dtype_var` stand for the whole shape
// or dtype in polymorphic functions; they are null otherwise.
struct TensorTypeNode : TypeNode {
  static constexpr int kKind = TypeKind::TensorType;
  std::vector<Dim> shape;
  DType dtype;
  TypeVar shape_var;
  TypeVar dtype_var;
  TensorTypeNode() : TypeNode(static_info()) {}
  static const NodeInfo& static_info();

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  // The sizes when all are constant.
  std::optional<std::vector<int64_t>> const_shape() const;
};
using TensorType = Ref<TensorTypeNode>;

struct TupleTypeNode : TypeNode {
  static constexpr int kKind = TypeKind::TupleType;
  std::vector<Type> fields;
  TupleTypeNode() : TypeNode(static_info()) {}
  static const NodeInfo& static_info();
};
using TupleType = Ref<TupleTypeNode>;

// A variable over types, dtypes, shapes or dimensions, bound by a function, function type or data
// type.
struct TypeVarNode : TypeNode {
  static constexpr int kKind = TypeKind::TypeVar;
  std::string name_hint;
  Kind kind = Kind::Type;
  TypeVarNode() : TypeNode(static_info()) {}
  static const NodeInfo& static_info();
};

// A demand that a named relation holds between types; the last argument is the result.
struct TypeRelationNode : TypeNode {
  static constexpr int kKind = TypeKind::TypeRelation;
  std::string name;
  std::vector<Type> args;
  int64_t num_inputs = 0;
  Attrs attrs;
  TypeRelationNode() : TypeNode(static_info()) {}
  static const NodeInfo& static_info();
};
using TypeRelationRef = Ref<TypeRelationNode>;

struct FuncTypeNode : TypeNode {
  static constexpr int kKind = TypeKind::FuncType;
  std::vector<TypeVar> type_params;
  std::vector<Type> arg_types;
  Type ret_type;
  std::vector<TypeRelationRef> type_constraints;
  FuncTypeNode() : TypeNode(static_info()) {}
  static const NodeInfo& static_info();
};
using FuncType = Ref<FuncTypeNode>;

struct RefTypeNode : TypeNode {
  static constexpr int kKind = TypeKind::RefType;
  Type value;
  RefTypeNode() : TypeNode(static_info()) {}
  static const NodeInfo& static_info();
};
using RefType = Ref<RefTypeNode>;

// The name of an algebraic data type; equal by name.
struct GlobalTypeVarNode : TypeNode {
  static constexpr int kKind = TypeKind::GlobalTypeVar;
  std::string name_hint;
  Kind kind = Kind::AdtHandle;
  GlobalTypeVarNode() : TypeNode(static_info()) {}
  static const NodeInfo& static_info();
};
using GlobalTypeVar = Ref<GlobalTypeVarNode>;

// An algebraic data type applied to arguments: `List[Tensor[(4), float32]]`.
struct TypeCallNode : TypeNode {
  static constexpr int kKind = TypeKind::TypeCall;
  Type func;
  std::vector<Type> args;
  TypeCallNode() : TypeNode(static_info()) {}
  static const NodeInfo& static_info();
};
using TypeCall = Ref<TypeCallNode>;

// A hole that inference fills; never left in a checked program.
struct IncompleteTypeNode : TypeNode {
  static constexpr int kKind = TypeKind::IncompleteType;
  Kind kind = Kind::Type;
  Span span;
  IncompleteTypeNode() : TypeNode(static_info()) {}
  static const NodeInfo& static_info();
};
using IncompleteType = Ref<IncompleteTypeNode>;

TensorType tensor_type(std::vector<Dim> shape, DType dtype);
TensorType tensor_type(const std::vector<int64_t>& shape, DType dtype);
TensorType scalar_type(DType dtype);
TupleType tuple_type(std::vector<Type> fields);
FuncType func_type(std::vector<Type> args, Type ret, std::vector<TypeVar> type_params = {},
                   std::vector<TypeRelationRef> constraints = {});
RefType ref_type(Type value);
TypeVar type_var(std::string name, Kind kind = Kind::Type);
GlobalTypeVar global_type_var(std::string name);
TypeCall type_call(Type func, std::vector<Type> args);
IncompleteType incomplete_type(Kind kind = Kind::Type, Span span = {});

// The type in text form, "Tensor[(1, 3, n), float32]".
std::string to_string(const Type& type);

// All tensors of a type, tuples flattened in order. A type that holds anything else than tensors
// and tuples gives nullopt.
std::optional<std::vector<TensorType>> flatten_tensor_types(const Type& type);

}  // namespace relay
