// Data types whose definitions hold tensors, with other tensors in them.
//
//   type Tree { Leaf(Tensor[(3), float32]), Node(Tree, Tree) }
//   type Tree_lanes { Leaf_lanes(Tensor[(8, 3), float32]), Node_lanes(Tree_lanes, Tree_lanes) }
//
// A type argument is what it is: `List[float32]` is lifted by lifting the argument.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "analysis/fresh_names.h"
#include "ir/module.h"

namespace relay {

class LiftedData {
 public:
  // What becomes of a tensor; null: it stays, and data with no other tensors stays, too.
  using TensorRule = std::function<Type(const TensorType& t)>;
  using Touched = std::function<bool(const TensorTypeNode& t)>;

  // `suffix` marks the names of what is made. The module and `names` outlive it.
  LiftedData(const Module& mod, FreshNames& names, std::string suffix, Touched touched,
             TensorRule tensor);

  // Whether the definition of a data type holds such tensors.
  bool holds_tensors(const std::string& data) const;
  Type lifted(const Type& t);
  // The data type and the constructor themselves where their definition holds none.
  GlobalTypeVar lifted(const GlobalTypeVar& data);
  Constructor lifted(const Constructor& c);
  const std::vector<TypeData>& made() const { return made_; }

 private:
  const TypeData& definition(const std::string& name);

  const Module& mod_;
  FreshNames& names_;
  std::string suffix_;
  Touched touched_;
  TensorRule tensor_;
  std::map<std::string, bool> holds_;
  std::map<std::string, TypeData> data_;
  std::vector<TypeData> made_;
};

// The type of the constructor's inputs for arguments of its data type.
std::vector<Type> constructor_inputs(const TypeData& data, const Constructor& c,
                                     const std::vector<Type>& type_args);

}  // namespace relay
