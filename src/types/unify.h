// Unification of types with holes.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/type.h"
#include "node/node_map.h"

namespace relay {

// Why two types cannot be one.
struct Clash {
  std::string why;
  bool infinite = false;  // a type would contain itself
};

// Holes are IncompleteType nodes (for types) and flexible type variables (for dimensions, shapes
// and dtypes); `Unifier` finds what they stand for. Work is in proportion to the types looked at:
// what is resolved once is known for good.
class Unifier {
 public:
  // A new hole.
  Type hole(const Span& span);
  // A flexible stand-in for a type parameter of any kind.
  NodeRef flexible(const TypeVar& param, const Span& span);

  // Makes the two types equal; false, with the clash, when they cannot be. `?` agrees with every
  // dimension. `where` is the place in the program that demands it.
  bool unify(const Type& a, const Type& b, const Span& where, Clash& clash);

  // The type with all known holes filled.
  Type resolve(const Type& t);
  // One step only: what a hole stands for, or the type itself.
  Type shallow(Type t);
  // True when no hole and no flexible variable is left in the resolved type.
  bool is_complete(const Type& t);
  // The holes and flexible variables that are left in the type.
  std::vector<const Node*> open_parts(const Type& t);

  // The body of a polymorphic function type with fresh flexible parameters; `args` are these.
  FuncType instantiate(const FuncType& f, const Span& span, std::vector<Type>& args);

  // True when the tensor's whole shape or dtype is still to be found.
  bool has_open_parts(const TensorTypeNode& t) const {
    return is_flexible(t.shape_var) || is_flexible(t.dtype_var);
  }

  // How much has been learnt; grows with every hole filled.
  size_t progress() const { return types_.size() + dims_.size() + shapes_.size() + dtypes_.size(); }
  // The place that filled the hole; empty for a type that never was one.
  Span filled_at(const Type& hole) const;
  // The holes and variables filled since the last call, in order.
  std::vector<const Node*> take_filled() { return std::exchange(filled_, {}); }

 private:
  // A shape or dtype, or the variable that stands for it.
  struct ShapeTerm {
    std::vector<Dim> dims;
    TypeVar var;
  };
  struct DTypeTerm {
    runtime::DType dtype;
    TypeVar var;
  };
  struct Resolved {
    NodeRef key;  // kept alive, so that its address stays its own
    NodeRef value;
  };

  bool is_flexible(const NodeRef& var) const { return var && flexible_.contains(var.get()); }
  ShapeTerm shape_of(const TensorTypeNode& t) const;
  DTypeTerm dtype_of(const TensorTypeNode& t) const;
  Dim shallow(Dim d) const;
  // What a node stands for itself, its children left alone.
  NodeRef head(NodeRef n);
  NodeRef resolve_node(const NodeRef& root, bool& complete);
  bool unify_tensor(const TensorTypeNode& a, const TensorTypeNode& b, Clash& clash);
  bool unify_dim(const Dim& a, const Dim& b);
  bool bind(const Type& hole, const Type& value, const Span& where, Clash& clash);
  bool occurs(const Node* hole, const NodeRef& in);

  NodeMap<Type> types_;
  std::unordered_map<const Node*, Dim> dims_;
  std::unordered_map<const Node*, ShapeTerm> shapes_;
  std::unordered_map<const Node*, DTypeTerm> dtypes_;
  NodeMap<Span> filled_at_;
  NodeMap<Resolved> complete_;
  std::unordered_set<const Node*> flexible_;
  std::vector<const Node*> filled_;
  std::vector<NodeRef> keep_;
};

}  // namespace relay
