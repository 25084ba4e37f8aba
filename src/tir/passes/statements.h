// What lowering passes share: one descent over statements, and small edits.
#pragma once

#include <functional>
#include <unordered_map>

#include "tir/stmt.h"

namespace relay::tir {

// The statement with each statement directly inside it replaced by what `f` makes of it; the
// identical handle when none differs. Loops nest as deep as a schedule made them, so passes call
// themselves through this.
Stmt map_inner(const Stmt& s, const std::function<Stmt(const Stmt&)>& f);
// Calls `f` for each statement directly inside, in program order.
void for_each_inner(const StmtNode& s, const std::function<void(const Stmt&)>& f);

// The loop with another body.
Stmt with_body(const ForNode& f, Stmt body);
PrimFunc with_body(const PrimFunc& f, Stmt body);

// Whether the variable or buffer stands anywhere below `root`.
bool uses(const NodeRef& root, const Node* what);

using NodeMap = std::unordered_map<const Node*, NodeRef>;
NodeRef replace_nodes(const NodeRef& root, const NodeMap& map);
template <class T>
Ref<T> replace(const Ref<T>& root, const NodeMap& map) {
  return Ref<T>::unchecked(replace_nodes(root, map));
}

}  // namespace relay::tir
