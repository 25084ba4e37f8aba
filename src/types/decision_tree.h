// Matches as decision trees: which part of a value to look at next, and what each constructor there
// leads to.
//
// Built from the matrix of clauses (Maranget, "Compiling pattern matching to good decision trees",
// ML 2008). On a way through the tree no part is looked at twice. A leaf is a clause; a way without
// a clause is a value that the match does not cover, and a clause without a leaf is one that no
// value reaches.
#pragma once

#include <optional>
#include <vector>

#include "ir/module.h"

namespace relay {

struct DecisionTree {
  // A part of the matched value that some pattern looks at or names. Place 0 is the value itself.
  struct Place {
    int parent = -1;
    const ConstructorNode* constructor = nullptr;  // null: of a tuple
    int part = 0;
  };
  struct Branch {
    const ConstructorNode* constructor = nullptr;  // null for a tuple
    int first_part = 0;                            // its parts are the places from here on
    int num_parts = 0;
    int next = -1;  // a node; negative when no clause is left
  };
  struct Binding {
    Var var;
    int place;
  };
  struct Node {
    int clause = -1;  // of a leaf
    std::vector<Binding> bindings;
    int place = -1;  // of a test
    std::vector<Branch> branches;
    bool open = false;   // the type has constructors that have no branch
    int otherwise = -1;  // for those; negative when no clause is left
  };
  std::vector<Place> places;
  std::vector<Node> nodes;  // the root first, parents before children; none for no clauses
};

// Null when the tree would be far larger than the match. Iterative. A data type that `mod`, which
// may be null, does not define is taken to have the constructors in sight.
std::optional<DecisionTree> decision_tree(const MatchNode& m, const Module& mod);

// The type of a part of a value of type `whole`.
Type part_type(const Type& whole, const ConstructorNode* constructor, int part);

}  // namespace relay
