// BatchTrees: recursion over trees computes the nodes of one depth together.
//
// before                                   after
//   def @f(%w, %t: Tree) {                   def @f(%w, %t: Tree) { row 0 of @f_forest(%w, [%t]) }
//     match (%t) {                           def @f_forest(%w, %nodes) {
//       Leaf(%x) => tanh(%x),                  split %nodes by constructor;
//       Node(%l, %r) => {                      let %all = @f_forest(%w, what left and right parts are);
//         let %a = @f(%w, %l);                 tanh of all leaves at once, tanh(%w * (..)) of all
//         let %b = @f(%w, %r);                 nodes at once, the rows in the order of %nodes }
//         tanh(multiply(%w, add(%a, %b))) }}}
//
// (Looks, Herreshoff, Hutchins and Norvig, "Deep learning with dynamic computation graphs", 2017;
// Neubig, Goldberg and Dyer, "On-the-fly operation batching in dynamic computation graphs", 2017.) A
// clause becomes a function of one node and then, by `batch`, of many. What goes through a list of
// trees has all of them computed first, and what it does with each result alone is done for all rows
// at once:
//
//   loop over List[Tree]: sum + g(@f(t))     loop over the rows of g(@f_forest(list)): sum + row
//
// Which functions these are says grad/tree_functions.h: what differs from node to node is in the tree,
// no function stands under a condition of its own, results have known sizes. Others stay as they are;
// with the option `strict` the first of them is an error. Parts are computed whether a clause uses
// their result or not, so it is legal where clauses have no effects; a program that does not end for
// one tree does not end for any. Loses for single small trees and for lists as trees: sorting nodes
// costs about 0.2 us each. Off by default: the user asks for it (required_pass).
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kBatchTrees;

}  // namespace relay
