#include "ir/type.h"

#include <variant>

#include "base/budget.h"
#include "ir/attrs.h"
#include "ir/text/text.h"
#include "node/structural.h"

namespace relay {

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::Type:
      return "Type";
    case Kind::BaseType:
      return "BaseType";
    case Kind::Shape:
      return "Shape";
    case Kind::Dim:
      return "Dim";
    case Kind::Constraint:
      return "Constraint";
    case Kind::AdtHandle:
      return "AdtHandle";
  }
  return "?";
}

// ---- Field lists -------------------------------------------------------------------------------

const NodeInfo& TensorTypeNode::static_info() {
  static const NodeInfo info = describe<TensorTypeNode>(
      "relay.TensorType", kKind, family::type,
      {child("shape", &TensorTypeNode::shape), attribute("dtype", &TensorTypeNode::dtype),
       child("shape_var", &TensorTypeNode::shape_var),
       child("dtype_var", &TensorTypeNode::dtype_var)});
  return info;
}

const NodeInfo& TupleTypeNode::static_info() {
  static const NodeInfo info = describe<TupleTypeNode>("relay.TupleType", kKind, family::type,
                                                       {child("fields", &TupleTypeNode::fields)});
  return info;
}

const NodeInfo& TypeVarNode::static_info() {
  static const NodeInfo info = [] {
    NodeInfo i = describe<TypeVarNode>(
        "relay.TypeVar", kKind, family::type,
        {ignored("name_hint", &TypeVarNode::name_hint), attribute("kind", &TypeVarNode::kind)});
    i.is_variable = true;
    return i;
  }();
  return info;
}

const NodeInfo& TypeRelationNode::static_info() {
  static const NodeInfo info = describe<TypeRelationNode>(
      "relay.TypeRelation", kKind, family::type,
      {attribute("name", &TypeRelationNode::name), child("args", &TypeRelationNode::args),
       attribute("num_inputs", &TypeRelationNode::num_inputs),
       child("attrs", &TypeRelationNode::attrs)});
  return info;
}

const NodeInfo& FuncTypeNode::static_info() {
  static const NodeInfo info = describe<FuncTypeNode>(
      "relay.FuncType", kKind, family::type,
      {binder("type_params", &FuncTypeNode::type_params),
       child("arg_types", &FuncTypeNode::arg_types), child("ret_type", &FuncTypeNode::ret_type),
       child("type_constraints", &FuncTypeNode::type_constraints)});
  return info;
}

const NodeInfo& RefTypeNode::static_info() {
  static const NodeInfo info = describe<RefTypeNode>("relay.RefType", kKind, family::type,
                                                     {child("value", &RefTypeNode::value)});
  return info;
}

const NodeInfo& GlobalTypeVarNode::static_info() {
  static const NodeInfo info =
      describe<GlobalTypeVarNode>("relay.GlobalTypeVar", kKind, family::type,
                                  {attribute("name_hint", &GlobalTypeVarNode::name_hint),
                                   attribute("kind", &GlobalTypeVarNode::kind)});
  return info;
}

const NodeInfo& TypeCallNode::static_info() {
  static const NodeInfo info = describe<TypeCallNode>(
      "relay.TypeCall", kKind, family::type,
      {child("func", &TypeCallNode::func), child("args", &TypeCallNode::args)});
  return info;
}

const NodeInfo& IncompleteTypeNode::static_info() {
  static const NodeInfo info = [] {
    NodeInfo i = describe<IncompleteTypeNode>(
        "relay.IncompleteType", kKind, family::type,
        {attribute("kind", &IncompleteTypeNode::kind), ignored("span", &IncompleteTypeNode::span)});
    i.is_variable = true;
    return i;
  }();
  return info;
}

namespace {

template <class T>
NodeInfo describe_dim(std::string_view name, std::vector<Field> fields) {
  NodeInfo info = describe<T>(name, T::kKind, family::dim, std::move(fields));
  info.text = [](const Node& n) {
    std::string text = to_string(ref(static_cast<const DimNode&>(n)));
    // Brackets are for what stands inside others.
    return text.front() == '(' ? text.substr(1, text.size() - 2) : text;
  };
  return info;
}

}  // namespace

const NodeInfo& DimConstNode::static_info() {
  static const NodeInfo info =
      describe_dim<DimConstNode>("relay.DimConst", {attribute("value", &DimConstNode::value)});
  return info;
}

const NodeInfo& DimVarNode::static_info() {
  static const NodeInfo info =
      describe_dim<DimVarNode>("relay.DimVar", {child("var", &DimVarNode::var)});
  return info;
}

const NodeInfo& DimAnyNode::static_info() {
  static const NodeInfo info = describe_dim<DimAnyNode>("relay.DimAny", {});
  return info;
}

const NodeInfo& DimOpNode::static_info() {
  static const NodeInfo info = describe_dim<DimOpNode>(
      "relay.DimOp",
      {attribute("op", &DimOpNode::op), child("a", &DimOpNode::a), child("b", &DimOpNode::b)});
  return info;
}

// ---- Builders ----------------------------------------------------------------------------------

TensorType tensor_type(std::vector<Dim> shape, DType dtype) {
  return make<TensorTypeNode>([&](TensorTypeNode& n) {
    n.shape = std::move(shape);
    n.dtype = dtype;
  });
}

TensorType tensor_type(const std::vector<int64_t>& shape, DType dtype) {
  std::vector<Dim> dims;
  dims.reserve(shape.size());
  for (int64_t d : shape) dims.push_back(dim(d));
  return tensor_type(std::move(dims), dtype);
}

TensorType scalar_type(DType dtype) { return tensor_type(std::vector<Dim>{}, dtype); }

TupleType tuple_type(std::vector<Type> fields) {
  return make<TupleTypeNode>([&](TupleTypeNode& n) { n.fields = std::move(fields); });
}

FuncType func_type(std::vector<Type> args, Type ret, std::vector<TypeVar> type_params,
                   std::vector<TypeRelationRef> constraints) {
  return make<FuncTypeNode>([&](FuncTypeNode& n) {
    n.type_params = std::move(type_params);
    n.arg_types = std::move(args);
    n.ret_type = std::move(ret);
    n.type_constraints = std::move(constraints);
  });
}

RefType ref_type(Type value) {
  return make<RefTypeNode>([&](RefTypeNode& n) { n.value = std::move(value); });
}

TypeVar type_var(std::string name, Kind kind) {
  return make<TypeVarNode>([&](TypeVarNode& n) {
    n.name_hint = std::move(name);
    n.kind = kind;
  });
}

GlobalTypeVar global_type_var(std::string name) {
  return make<GlobalTypeVarNode>([&](GlobalTypeVarNode& n) { n.name_hint = std::move(name); });
}

TypeCall type_call(Type func, std::vector<Type> args) {
  return make<TypeCallNode>([&](TypeCallNode& n) {
    n.func = std::move(func);
    n.args = std::move(args);
  });
}

IncompleteType incomplete_type(Kind kind, Span span) {
  return make<IncompleteTypeNode>([&](IncompleteTypeNode& n) {
    n.kind = kind;
    n.span = std::move(span);
  });
}

std::optional<std::vector<int64_t>> TensorTypeNode::const_shape() const {
  if (shape_var) return std::nullopt;
  std::vector<int64_t> out;
  out.reserve(shape.size());
  for (const Dim& d : shape) {
    auto value = as_const(d);
    if (!value) return std::nullopt;
    out.push_back(*value);
  }
  return out;
}

// A tuple of tuples of shared types has more tensors than memory has bytes; one with more than these
// is taken as it is.
constexpr size_t kMaxTensors = 1 << 20;

std::optional<std::vector<TensorType>> flatten_tensor_types(const Type& type) {
  std::vector<TensorType> out;
  std::vector<Type> stack{type};
  while (!stack.empty()) {
    check_budget();
    Type t = std::move(stack.back());
    stack.pop_back();
    if (out.size() == kMaxTensors) return std::nullopt;
    if (isa<TensorTypeNode>(t)) {
      out.push_back(cast<TensorTypeNode>(t));
    } else if (auto* tup = as<TupleTypeNode>(t)) {
      stack.insert(stack.end(), tup->fields.rbegin(), tup->fields.rend());
    } else {
      return std::nullopt;
    }
  }
  return out;
}

// ---- Text --------------------------------------------------------------------------------------

namespace {

// The text of a type is put together from an explicit stack of pieces still to write.
using Piece = std::variant<std::string, NodeRef>;

template <class T>
void push_list(std::vector<Piece>& pieces, const std::vector<Ref<T>>& items) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) pieces.emplace_back(", ");
    pieces.emplace_back(static_cast<const NodeRef&>(items[i]));
  }
}

const char* infix(DimOpKind op) {
  switch (op) {
    case DimOpKind::Add:
      return " + ";
    case DimOpKind::Sub:
      return " - ";
    case DimOpKind::Mul:
      return " * ";
    case DimOpKind::FloorDiv:
      return " // ";
    case DimOpKind::Mod:
      return " % ";
    default:
      return nullptr;
  }
}

void expand(const Node& n, std::vector<Piece>& out) {
  switch (n.kind()) {
    case TypeKind::DimConst:
      out.emplace_back(std::to_string(static_cast<const DimConstNode&>(n).value));
      return;
    case TypeKind::DimVar:
      out.emplace_back(static_cast<const DimVarNode&>(n).var->name_hint);
      return;
    case TypeKind::DimAny:
      out.emplace_back("?");
      return;
    case TypeKind::DimOp: {
      auto& d = static_cast<const DimOpNode&>(n);
      if (const char* text = infix(d.op)) {
        out.emplace_back("(");
        out.emplace_back(static_cast<const NodeRef&>(d.a));
        out.emplace_back(text);
      } else {
        out.emplace_back(d.op == DimOpKind::Max         ? "max("
                         : d.op == DimOpKind::Min       ? "min("
                         : d.op == DimOpKind::Broadcast ? "broadcast("
                                                        : "ceildiv(");
        out.emplace_back(static_cast<const NodeRef&>(d.a));
        out.emplace_back(", ");
      }
      out.emplace_back(static_cast<const NodeRef&>(d.b));
      out.emplace_back(")");
      return;
    }
    case TypeKind::TensorType: {
      auto& t = static_cast<const TensorTypeNode&>(n);
      std::string dtype = t.dtype_var ? t.dtype_var->name_hint : t.dtype.to_string();
      if (t.shape_var) {
        out.emplace_back("Tensor[" + t.shape_var->name_hint + ", " + dtype + "]");
      } else if (t.shape.empty()) {
        out.emplace_back(t.dtype_var ? "Tensor[(), " + dtype + "]" : dtype);
      } else {
        out.emplace_back("Tensor[(");
        push_list(out, t.shape);
        out.emplace_back((t.shape.size() == 1 ? ",), " : "), ") + dtype + "]");
      }
      return;
    }
    case TypeKind::TupleType: {
      auto& t = static_cast<const TupleTypeNode&>(n);
      out.emplace_back("(");
      push_list(out, t.fields);
      out.emplace_back(t.fields.size() == 1 ? ",)" : ")");
      return;
    }
    case TypeKind::FuncType: {
      auto& t = static_cast<const FuncTypeNode&>(n);
      std::string head = "fn ";
      if (!t.type_params.empty()) {
        head += "[";
        for (size_t i = 0; i < t.type_params.size(); ++i) {
          if (i > 0) head += ", ";
          head += t.type_params[i]->name_hint;
          if (t.type_params[i]->kind != Kind::Type) {
            head += ": " + std::string(to_string(t.type_params[i]->kind));
          }
        }
        head += "]";
      }
      out.emplace_back(head + "(");
      push_list(out, t.arg_types);
      out.emplace_back(") -> ");
      out.emplace_back(static_cast<const NodeRef&>(t.ret_type));
      return;
    }
    case TypeKind::RefType:
      out.emplace_back("ref(");
      out.emplace_back(static_cast<const NodeRef&>(static_cast<const RefTypeNode&>(n).value));
      out.emplace_back(")");
      return;
    case TypeKind::TypeVar:
      out.emplace_back(static_cast<const TypeVarNode&>(n).name_hint);
      return;
    case TypeKind::GlobalTypeVar:
      out.emplace_back(static_cast<const GlobalTypeVarNode&>(n).name_hint);
      return;
    case TypeKind::TypeCall: {
      auto& t = static_cast<const TypeCallNode&>(n);
      out.emplace_back(static_cast<const NodeRef&>(t.func));
      if (t.args.empty()) return;
      out.emplace_back("[");
      push_list(out, t.args);
      out.emplace_back("]");
      return;
    }
    case TypeKind::TypeRelation:
      out.emplace_back(static_cast<const TypeRelationNode&>(n).name);
      return;
    case TypeKind::IncompleteType:
      out.emplace_back("_");
      return;
    default:
      out.emplace_back(std::string(n.info().name));
  }
}

// The text of a type whose parts are shared can be exponential in its nodes; it is cut here, far
// beyond what a person or the parser is given.
constexpr size_t kMaxText = 4'000'000;

std::string type_text(const NodeRef& root, size_t most = kMaxText) {
  std::string text;
  std::vector<Piece> stack{root};
  std::vector<Piece> pieces;
  while (!stack.empty()) {
    check_budget();
    Piece piece = std::move(stack.back());
    stack.pop_back();
    if (auto* s = std::get_if<std::string>(&piece)) {
      text += *s;
      continue;
    }
    if (text.size() > most) return text + "...";
    const NodeRef& node = std::get<NodeRef>(piece);
    if (!node) {
      text += "_";
      continue;
    }
    pieces.clear();
    expand(*node.get(), pieces);
    stack.insert(stack.end(), std::make_move_iterator(pieces.rbegin()),
                 std::make_move_iterator(pieces.rend()));
  }
  return text;
}

}  // namespace

std::string to_string(const Type& type) { return type_text(type); }
std::string print_type(const Type& type, size_t most) { return type_text(type, most); }
std::string to_string(const Dim& d) { return type_text(d); }

}  // namespace relay
