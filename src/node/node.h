// Nodes: immutable, shared, reference-counted structs, described by one field list each.
//
// A node is a plain struct that derives from `Node` and has a `static_info()` which names its
// fields and their roles. Equality, hash, walking, rewriting, JSON, printing of attributes and the
// Python attributes come from that list; nothing else describes a node.
//
//   struct LetNode : ExprNode {
//     static constexpr int kKind = ExprKind::Let;
//     Var var;
//     Expr value;
//     Expr body;
//     LetNode() : ExprNode(static_info()) {}
//     static const NodeInfo& static_info();
//   };
//   const NodeInfo& LetNode::static_info() {
//     static const NodeInfo info = describe<LetNode>("relay.Let", {
//         binder("var", &LetNode::var), child("value", &LetNode::value),
//         child("body", &LetNode::body)});
//     return info;
//   }
//
// A node is built by `make<T>(...)`, which is the only time its fields are written. Handles are
// `Ref<T>`; copying one is an atomic increment. The destruction of a deep program uses no stack
// (see `NodeRef::release`). Handles may be used from several threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "node/attr_value.h"

namespace relay {

struct NodeInfo;
class NodeRef;

class Node {
 public:
  const NodeInfo& info() const { return *info_; }
  int kind() const { return kind_; }
  Node& operator=(const Node&) = delete;

 protected:
  explicit Node(const NodeInfo& info);
  Node(const Node& other) : info_(other.info_), kind_(other.kind_) {}
  ~Node() = default;

 private:
  friend class NodeRef;
  const NodeInfo* info_;
  mutable std::atomic<uint32_t> refs_{0};
  int kind_;
};

// An untyped handle; null by default.
class NodeRef {
 public:
  NodeRef() = default;
  NodeRef(std::nullptr_t) {}  // NOLINT: null converts to a null handle.
  explicit NodeRef(const Node* node) : node_(node) { retain(); }
  NodeRef(const NodeRef& other) : node_(other.node_) { retain(); }
  NodeRef(NodeRef&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  NodeRef& operator=(NodeRef other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~NodeRef() { release(); }

  const Node* get() const { return node_; }
  explicit operator bool() const { return node_ != nullptr; }
  // Identity, not structural equality.
  friend bool operator==(const NodeRef& a, const NodeRef& b) { return a.node_ == b.node_; }
  friend bool operator==(const NodeRef& a, std::nullptr_t) { return a.node_ == nullptr; }

  // How many handles refer to the node (1 = this one alone).
  uint32_t use_count() const { return node_ ? node_->refs_.load(std::memory_order_acquire) : 0; }

 private:
  void retain() const {
    if (node_) node_->refs_.fetch_add(1, std::memory_order_relaxed);
  }
  void release() {
    if (node_ && node_->refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy(node_);
  }
  // Destroys the node and everything that only it kept alive, in a loop.
  static void destroy(const Node* node);

  const Node* node_ = nullptr;
};

// A handle to a node of type T (or derived from T). T may be incomplete where the handle is only
// stored.
template <class T>
class Ref : public NodeRef {
 public:
  using node_type = T;
  Ref() = default;
  Ref(std::nullptr_t) {}  // NOLINT
  explicit Ref(const T* node) : NodeRef(node) {}
  template <class U>
  requires std::is_convertible_v<const U*, const T*> Ref(const Ref<U>& other)
      : NodeRef(static_cast<const NodeRef&>(other)) {}  // NOLINT
  template <class U>
  requires std::is_convertible_v<const U*, const T*> Ref(Ref<U>&& other)
      : NodeRef(static_cast<NodeRef&&>(other)) {}  // NOLINT

  const T* get() const { return static_cast<const T*>(NodeRef::get()); }
  const T* operator->() const { return get(); }
  const T& operator*() const { return *get(); }

  // Wraps a handle that is known to refer to a T.
  static Ref unchecked(NodeRef ref) {
    Ref out;
    static_cast<NodeRef&>(out) = std::move(ref);
    return out;
  }
};

// What a field means to the services.
enum class Role : uint8_t {
  child,      // a sub-node (or list of them); walked, compared, hashed
  binder,     // variables that this node defines for the fields after it
  attribute,  // a plain value; compared and hashed
  ignored,    // spans, names that are hints, cached types; never compared
};

// Access to one C++ type of field, shared by all fields of that type.
struct FieldOps {
  // Sub-nodes; count is 0 for plain values.
  size_t (*count)(const void* field);
  const NodeRef& (*get_child)(const void* field, size_t index);
  void (*set_child)(void* field, size_t index, NodeRef child);
  // Plain values; of a field with sub-nodes, what it is without any: None, or an empty list.
  bool (*equal)(const void* a, const void* b);
  uint64_t (*hash)(const void* field);
  // Conversion for text, JSON and Python. `set` returns false when the value does not fit.
  AttrValue (*get)(const void* field);
  bool (*set)(void* field, const AttrValue& value);
  // The type as a user calls it: "int", "list of int", "dtype", ...
  const char* type_name;
};

struct Field {
  std::string_view name;
  Role role;
  size_t offset;
  const FieldOps* ops;
  std::string_view doc;

  const void* in(const Node& node) const { return reinterpret_cast<const char*>(&node) + offset; }
  void* in(Node& node) const { return reinterpret_cast<char*>(&node) + offset; }
};

// Families tell walkers where not to go. One bit each.
namespace family {
inline constexpr uint32_t expr = 1, type = 2, pattern = 4, attrs = 8, dim = 16, tir_expr = 32,
                          tir_stmt = 64, tir_other = 128, module = 256, all = ~0u,
                          program = expr | pattern, tir_code = tir_expr | tir_stmt,
                          tir = tir_code | tir_other;
}

struct NodeInfo {
  std::string_view name;  // "relay.Call"
  int kind;
  uint32_t family;
  std::vector<Field> fields;
  Node* (*create)(const NodeInfo&);  // a default node of this kind
  Node* (*clone)(const Node&);       // a copy of the fields
  void (*destroy)(const Node*);
  // Variables are equal when bound alike, not when they look alike.
  bool is_variable = false;
  // Equality also demands that the same sub-nodes are shared on both sides.
  bool sharing_matters = false;
  // How a value that is such a node is written; null where none is.
  std::string (*text)(const Node& node) = nullptr;
  // Called on a fresh node whose children replaced those of `original` (to deduce its type again).
  void (*rebuilt)(Node& node, const Node& original) = nullptr;
  std::string_view doc = {};

  // The field of that name, or null.
  const Field* find(std::string_view name) const;
};

inline Node::Node(const NodeInfo& info) : info_(&info), kind_(info.kind) {}

// ---- Tests and casts ---------------------------------------------------------------------------

// Leaf types are told by their kKind, families by classof(const Node&), attribute structs by their
// static_info().
template <class T>
bool isa(const Node* node) {
  if (node == nullptr) return false;
  // A leaf inherits its family's classof, so that what only leaves have is asked first.
  if constexpr (requires { T::kKind; }) {
    return node->kind() == T::kKind;
  } else if constexpr (requires { T::static_info(); }) {
    return &node->info() == &T::static_info();
  } else {
    return T::classof(*node);
  }
}
template <class T>
bool isa(const NodeRef& ref) {
  return isa<T>(ref.get());
}

// The node as a T, or null.
template <class T>
const T* as(const Node* node) {
  return isa<T>(node) ? static_cast<const T*>(node) : nullptr;
}
template <class T>
const T* as(const NodeRef& ref) {
  return as<T>(ref.get());
}

// The node as a T; it is a defect of Relay if it is none.
template <class T>
Ref<T> cast(NodeRef ref) {
  RELAY_CHECK(isa<T>(ref), "bad cast");
  return Ref<T>::unchecked(std::move(ref));
}

// Builds a node: `make<LetNode>([&](LetNode& n) { n.var = v; ... })`.
template <class T, class Fill>
Ref<T> make(Fill&& fill) {
  T* node = new T();
  Ref<T> ref(node);
  fill(*node);
  return ref;
}
template <class T>
Ref<T> make() {
  return Ref<T>(new T());
}

// A handle to a node that is only known by reference.
template <class T>
Ref<T> ref(const T& node) {
  return Ref<T>(&node);
}

// The node as a value, and the node in one; null where there is none.
inline AttrValue node_value(NodeRef node) {
  return NodeValue{std::make_shared<const NodeRef>(std::move(node))};
}
inline const NodeRef* node_in(const AttrValue& value) {
  auto* v = value.get_if<NodeValue>();
  return v == nullptr ? nullptr : v->node.get();
}

// ---- Field lists -------------------------------------------------------------------------------

// FieldTraits<T>::ops describes T; specialise it (in the room that owns T) for a new field type.
template <class T>
struct FieldTraits;

template <class T, class M>
Field field(Role role, std::string_view name, M T::*member, std::string_view doc) {
  alignas(T) static char storage[sizeof(T)];
  const T* object = reinterpret_cast<const T*>(storage);
  size_t offset =
      static_cast<size_t>(reinterpret_cast<const char*>(&(object->*member)) -
                          reinterpret_cast<const char*>(static_cast<const Node*>(object)));
  return Field{name, role, offset, &FieldTraits<M>::ops, doc};
}
template <class T, class M>
Field child(std::string_view name, M T::*member, std::string_view doc = {}) {
  return field(Role::child, name, member, doc);
}
template <class T, class M>
Field binder(std::string_view name, M T::*member, std::string_view doc = {}) {
  return field(Role::binder, name, member, doc);
}
template <class T, class M>
Field attribute(std::string_view name, M T::*member, std::string_view doc = {}) {
  return field(Role::attribute, name, member, doc);
}
template <class T, class M>
Field ignored(std::string_view name, M T::*member, std::string_view doc = {}) {
  return field(Role::ignored, name, member, doc);
}

template <class T>
NodeInfo describe(std::string_view name, int kind, uint32_t family, std::vector<Field> fields) {
  NodeInfo info;
  info.name = name;
  info.kind = kind;
  info.family = family;
  info.fields = std::move(fields);
  info.create = [](const NodeInfo&) -> Node* { return new T(); };
  info.clone = [](const Node& n) -> Node* { return new T(static_cast<const T&>(n)); };
  info.destroy = [](const Node* n) { delete static_cast<const T*>(n); };
  return info;
}

}  // namespace relay

#include "node/field_traits.h"  // IWYU pragma: export
