// Recursion over trees that can be computed level by level.
//
//   def @f(%w, %t: Tree) { match (%t) {
//     Leaf(%x) => ..,
//     Node(%x, %l, %r) => { let %a = @f(%w, %l); let %b = @f(%w, %r); .. } } }
//
// A function of a family matches one parameter, its tree, and calls functions of the family on parts
// of it, whatever the branch; all else that it is given is the same at every node. So what is known
// of the parts is all that a node needs, and nodes of one constructor are computed together.
//
// A list of trees is gone through by a loop, a function that calls itself in tail position:
//
//   def @loop(%w, %sum, %l: List[Tree]) { match (%l) {
//     Cons(%t, %rest) => { let %a = @f(%w, %t); @loop(%w, add(%sum, %a), %rest) },
//     Nil => %sum } }
//
// What it needs of an element are the results of the family, so it may as well go through rows of
// these. Functions of a family may call such loops on lists in their trees.
//
// Programs are in A-normal form, with no functions inside functions that call the family.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/module.h"

namespace relay {

// Lets, one after the other, and what they end in, a leaf.
struct LetChain {
  std::vector<std::pair<Var, Expr>> lets;
  Expr result;
};

struct ListLoop {
  std::string name;
  Function function;
  size_t list = 0;  // the parameter that is gone through
  Constructor more = nullptr;
  size_t element = 0;  // the field of `more` that is not a list
  Var item = nullptr;  // its name
  LetChain step = {};  // without the call of itself
  const CallNode* again = nullptr;
  Expr end = nullptr;
  std::vector<bool> unchanged = {};  // which parameters are the same at every step
  std::vector<size_t> calls = {};    // which Lets of `step` call functions on the element
};

struct TreeClause {
  struct Part {
    size_t let;    // of `body`
    size_t of;     // the function of the family, or the loop
    size_t field;  // what it is called on
  };
  Constructor constructor;
  std::vector<Var> fields;  // null for those without a name
  LetChain body;
  std::vector<Part> calls = {}, loops = {};
  std::vector<size_t> payload = {};  // the fields that are tensors, and used
};

struct TreeFunction {
  std::string name;
  Function function;
  size_t tree = 0;                  // the parameter that is matched
  std::vector<size_t> shared = {};  // all others, in the order of the family
  std::vector<TreeClause> clauses = {};
};

struct TreeFamily {
  std::vector<TreeFunction> members;
  std::vector<ListLoop> loops;  // that members call
};

// A function over data that stays as it is.
struct NodeByNode {
  Span span;
  std::string what, why;
};

struct TreeFunctions {
  std::vector<TreeFamily> families;
  // All whose elements only families see.
  std::vector<ListLoop> loops;
  // Those that would have gained from it.
  std::vector<NodeByNode> left;
};

// Where nothing can be gained - a function that goes along one list - a family is none.
TreeFunctions find_tree_functions(const Module& mod);

// The tensors of a type of tensors and tuples of them; null for others, and where a size is `?` or an element a string.
std::optional<std::vector<TensorType>> row_types(const Type& type);

}  // namespace relay
