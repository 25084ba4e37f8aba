// Where two nodes of a tree meet, in a logarithm of steps, while the tree grows at its leaves.
//
// Each node has its parent, its depth (0: a root) and a jump: a node above it, as many steps for all nodes of one depth
// (Myers, "An applicative random-access stack", 1983). `at(i)` gives the three of node i; a root jumps to itself.
#pragma once

#include <utility>

namespace relay {

struct TreeStep {
  int parent = -1;
  int depth = 0;
  int jump = -1;
};

// What a new node below `parent` has.
template <class At>
TreeStep step_below(int parent, const At& at) {
  const TreeStep above = at(parent), far = at(above.jump);
  // Two jumps of one length are taken as one.
  const bool equal = above.depth - far.depth == far.depth - at(far.jump).depth;
  return {parent, above.depth + 1, equal ? far.jump : parent};
}

// The deepest node that is above both, or one of them; -1 when they are of two trees.
template <class At>
int common_ancestor(int a, int b, const At& at) {
  TreeStep x = at(a), y = at(b);
  if (x.depth < y.depth) {
    std::swap(a, b);
    std::swap(x, y);
  }
  while (x.depth > y.depth) {
    a = at(x.jump).depth >= y.depth ? x.jump : x.parent;
    x = at(a);
  }
  while (a != b) {
    if (x.depth == 0) return -1;
    const bool far = x.jump != y.jump;
    a = far ? x.jump : x.parent;
    b = far ? y.jump : y.parent;
    x = at(a);
    y = at(b);
  }
  return a;
}

}  // namespace relay
