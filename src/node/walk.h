// Walking and rewriting programs of any depth: explicit stacks, each shared node once.
//
// Passes never write their own descent; they give these services a function.
#pragma once

#include <functional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "node/node.h"

namespace relay {

// Calls `visit` for each distinct node reachable from `root`, children before parents, in the
// order of the field lists. Only nodes of `families` are visited or entered.
void post_order(const NodeRef& root, const std::function<void(const Node&)>& visit,
                uint32_t families = family::all);

// The same, but `enter` decides before the descent whether a node (and what is below it) is
// visited.
void post_order_if(const NodeRef& root, const std::function<bool(const Node&)>& enter,
                   const std::function<void(const Node&)>& visit, uint32_t families = family::all);

// Calls `visit` for each child handle of `node` (children and binders, in order, null ones left
// out).
void for_each_child(const Node& node, const std::function<void(const NodeRef&)>& visit);

// Rewrites a program bottom-up. Each distinct node is rewritten once and the result is shared
// wherever the node was. A node whose children are all unchanged is the identical handle.
//
//   class Negate : public Rewriter {
//     NodeRef post(const NodeRef& original, NodeRef rebuilt) override { ... }
//   };
//   Expr out = Negate().apply(expr);
class Rewriter {
 public:
  explicit Rewriter(uint32_t families = family::all) : families_(families) {}
  virtual ~Rewriter() = default;

  // Before the children: a non-null result replaces the node and its children are not entered.
  virtual NodeRef pre(const NodeRef& node);
  // After the children: `rebuilt` is `original` itself when no child changed.
  virtual NodeRef post(const NodeRef& original, NodeRef rebuilt);

  NodeRef run(const NodeRef& root);
  template <class T>
  Ref<T> apply(const Ref<T>& root) {
    return Ref<T>::unchecked(run(root));
  }

  // What a node became; null if it was not met or stayed what it is. Entries may be set ahead of a
  // run (to substitute variables, say).
  NodeRef lookup(const Node* node) const;
  void set(const NodeRef& node, NodeRef replacement);

 private:
  uint32_t families_;
  std::unordered_map<const Node*, NodeRef> memo_;  // of nodes that became something else
  std::vector<NodeRef> keep_;                      // keeps the keys of memo_ alive
};

// Rewrites with a function for `Rewriter::post`.
NodeRef rewrite(const NodeRef& root,
                const std::function<NodeRef(const NodeRef& original, NodeRef rebuilt)>& post,
                uint32_t families = family::all);

// Replaces nodes (by identity) with others.
NodeRef substitute(const NodeRef& root,
                   const std::unordered_map<const Node*, NodeRef>& replacements,
                   uint32_t families = family::all);

// The node with other children: `children` are all child and binder handles in field order, as
// for_each_child gives them but null ones included. The identical handle when none differs.
NodeRef with_children(const NodeRef& node, std::span<const NodeRef> children);

// All child and binder handles in field order, null ones included.
std::vector<NodeRef> children_of(const Node& node);

}  // namespace relay
