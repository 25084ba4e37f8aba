// What functions of batched trees are made of: rows of tensors, and lists of nodes.
//
//   type Nodes[A] { More(A, Nodes[A]), NoMore }
//
// Floats go through functions only with sizes that have names, since the gradient of a function has
// them in the types of references. A size that only a run knows gets its name from a tensor of int64, a
// token: rows that are taken by a token of n numbers are n.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "analysis/fresh_names.h"
#include "ir/dim_fields.h"
#include "ir/module.h"

namespace relay::trees {

const Type& int64_type();
Expr int64(int64_t value);
Expr add(const Expr& a, const Expr& b);
Expr field(const Expr& e, size_t i);
// from, from + 1, ..: that many numbers.
Expr numbers(const Dim& from, const Dim& count);
Expr numbers(const Expr& count);
// The rows of a tensor, or one row.
Expr rows(const Expr& of, const Expr& which);
Expr zeros(const TensorType& type);
// One behind the other.
Expr joined(const std::vector<Expr>& parts);
std::vector<TypeVar> joined(std::vector<TypeVar> a, const std::vector<TypeVar>& b);
TensorType in_rows(const TensorType& row, const Dim& count);
Type token_type(const Dim& count);
// A value of that type, of its tensors in order.
Expr put_together(const Type& type, const std::vector<Expr>& tensors);

// The module while functions are added.
class Work {
 public:
  explicit Work(const Module& mod) : names(mod), mod(mod) {}

  GlobalVar declare(const std::string& base, const std::vector<Var>& params, const Type& result,
                    std::vector<TypeVar> type_params = {});
  // `body` may have binders of others.
  void define(const GlobalVar& name, std::vector<Var> params, const Expr& body,
              std::vector<TypeVar> type_params = {});
  // Another body for a function.
  void redefine(const std::string& name, const Function& f, const Expr& body);

  FreshNames names;
  Module mod;
};

class NodeLists {
 public:
  explicit NodeLists(Work& work);

  Type of(const Type& t) const;
  Expr none(const Type& t) const;
  Expr more(const Expr& head, const Expr& rest) const;
  // Looks into a list of that type.
  Expr choose(const Expr& list, const Type& t, const Expr& if_none,
              const std::function<Expr(const Var& head, const Var& rest)>& if_more) const;
  // `from`, its last element first, in front of `to`.
  Expr onto(const Expr& from, const Expr& to);
  // The tensors of a list, the last one first, as rows of one tensor: (size, ..).
  Expr stacked(const Expr& list, const TensorType& row, const Expr& count, const Dim& size);
  // The same of int64 of which only a run knows how many there are.
  Expr numbers_of(const Expr& list, const Expr& count);
  // (count and how many a list of another type has, its elements, the last one first, in front of `to`)
  Expr elements(const Type& list, const Constructor& more_of, size_t element, const Expr& from,
                const Expr& count, const Expr& to);

 private:
  GlobalVar one_by_one(const TensorType& row);
  GlobalVar halves(const TensorType& row);

  Work& work_;
  TypeData data_;
  GlobalVar onto_;
  std::map<std::string, GlobalVar> stacked_, elements_;
};

}  // namespace relay::trees
