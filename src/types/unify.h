// Unification of types with holes.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/type.h"

namespace relay {

// Holes are IncompleteType nodes (for types) and flexible type variables (for dimensions, shapes
// and dtypes); `Unifier` finds what they stand for.
class Unifier {
 public:
  // A new hole.
  Type hole(const Span& span);
  // A flexible stand-in for a type parameter of any kind.
  NodeRef flexible(const TypeVar& param, const Span& span);

  // Makes the two types equal; false, with `why`, when they cannot be. `?` agrees with every
  // dimension.
  bool unify(const Type& a, const Type& b, std::string& why);

  // The type with all known holes filled.
  Type resolve(const Type& t);
  // One step only: what a hole stands for, or the type itself.
  Type shallow(Type t) const;
  // True when no hole and no flexible variable is left.
  bool is_complete(const Type& t);

  // The body of a polymorphic function type with fresh flexible parameters; `args` are these.
  FuncType instantiate(const FuncType& f, const Span& span, std::vector<Type>& args);

  // How much has been learnt; grows with every hole filled.
  size_t progress() const { return types_.size() + dims_.size() + shapes_.size() + dtypes_.size(); }

 private:
  Dim shallow(Dim d) const;
  bool unify_tensor(const TensorTypeNode& a, const TensorTypeNode& b, std::string& why);
  bool unify_dim(const Dim& a, const Dim& b);
  bool occurs(const Node* hole, const Type& t);

  std::unordered_map<const Node*, Type> types_;
  std::unordered_map<const Node*, Dim> dims_;
  std::unordered_map<const Node*, std::vector<Dim>> shapes_;
  std::unordered_map<const Node*, runtime::DType> dtypes_;
  std::unordered_set<const Node*> flexible_;
  std::vector<NodeRef> keep_;
};

}  // namespace relay
