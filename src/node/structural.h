// Structural equality and hash, up to the names of bound variables.
#pragma once

#include <string>

#include "node/node.h"

namespace relay {

// True when the two programs are the same up to names of bound variables, spans and cached types.
// Free variables are equal when identical; with `map_free_vars` they are mapped like bound ones.
// Sub-expressions must be shared alike where the node's info says that sharing matters.
bool structural_equal(const NodeRef& a, const NodeRef& b, bool map_free_vars = false);

// Where two programs first differ, as a path such as "relay.Function.body.args[1]: 3 against 4";
// empty when they are equal.
std::string first_structural_mismatch(const NodeRef& a, const NodeRef& b,
                                      bool map_free_vars = false);

// A hash such that structurally equal programs have equal hashes; the same in every process for
// a program without free variables.
uint64_t structural_hash(const NodeRef& root, bool map_free_vars = false);

}  // namespace relay
