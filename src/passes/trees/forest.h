// What replaces the functions of one family of functions over trees.
//
//   @f_forest(shared, nodes, tokens): the results of the family for lists of trees, one list for each
//     member; they are as many as the numbers of its token
//   @f_split(nodes): nodes by constructor, and the parts that they call the family on
//   @f_level(shared, tokens, what was split): the parts' results, then those of each constructor
//   @f_Node_rows: a clause for many nodes, made by `batch`
#pragma once

#include <map>
#include <string>
#include <vector>

#include "grad/lift.h"
#include "grad/tree_functions.h"
#include "passes/gradient/batch_pass.h"
#include "passes/trees/node_lists.h"

namespace relay::trees {

// A function for many rows, made of that of one, under a name of its own. Throws what `batch` throws.
GlobalVar in_lanes(Work& work, PassContext& ctx, const Function& one, const std::string& base,
                   const std::vector<BatchAxes>& axes);

// fn (first, last): what a loop does with the elements that have the rows from `first` to `last`. For Lets of
// its step `results` says what they are at a row, or nothing for those that are not needed.
using RowValues = std::map<size_t, std::function<Expr(const Expr& at)>>;
Expr loop_over_rows(const ListLoop& loop, const std::vector<Expr>& args, const Expr& first,
                    const Expr& last, const RowValues& results);

class Forest {
 public:
  // `family` outlives it.
  Forest(Work& work, NodeLists& lists, PassContext& ctx, const TreeFamily& family);

  // Adds the functions. Throws UserError E1104, E1105, E1106 for a clause that cannot be computed in rows.
  void make();
  // A member itself: the forest of one tree.
  void redefine(size_t member);

  // The results for trees of one member, as many as `token` has numbers.
  Expr rows_of(size_t member, const std::vector<Expr>& shared, const Expr& nodes,
               const Expr& token) const;
  // The tensors of a member among the results.
  std::vector<Expr> of_member(size_t m, const Expr& all) const;
  const TreeFamily& family() const { return family_; }

 private:
  // The elements of the lists in one field that a loop goes through.
  struct Block {
    Var total, elements, first,
        last;  // accumulators: how many, which, and where those of each node are
    TypeVar size = nullptr;
    Var token = nullptr;
  };
  // The nodes of one constructor at one depth.
  struct Nodes {
    Var count, places;         // accumulators: how many, and where among all
    std::vector<Var> payload;  // lists
    std::vector<Var> parts;
    std::vector<Block> loops;
    std::vector<Var> lists;  // all that the level is given
    TypeVar size;
    Var place;
  };

  Type tree_type(size_t m) const;
  Type in_terms_of_first(const TreeFunction& m, const Type& type) const;
  Expr first_value(const Var& accumulator) const;
  GlobalVar splitter(size_t member);
  Clause sorted(const TreeClause& c, const Nodes& n, const Type& type,
                const std::vector<Var>& params, const std::vector<Var>& known,
                const GlobalVar& name, const Var& rest);
  Expr rows_of(const std::vector<Expr>& shared, const std::vector<Expr>& nodes,
               const std::vector<Expr>& tokens) const;
  Expr level_body();
  size_t member_of_loop(const ListLoop& loop) const;
  Expr clause_in_rows(size_t member, size_t at, const Var& below,
                      const std::map<const Var*, Dim>& begin, Bindings& b);

  Work& work_;
  NodeLists& lists_;
  PassContext& ctx_;
  const TreeFamily& family_;
  std::vector<TypeVar> dims_, counts_;
  std::vector<Var> shared_, nodes_, tokens_, params_;
  std::vector<size_t> base_;  // the first result of each member
  std::vector<TensorType> results_;
  Type result_;
  GlobalVar name_;
  std::vector<std::vector<Nodes>> levels_;      // by member and clause
  std::vector<std::vector<Var>> accumulators_;  // of each member's splitter
};

}  // namespace relay::trees
