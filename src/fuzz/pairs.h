// Pairs of programs that must agree: ways to write a program differently without a change of what
// it means.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"
#include "runtime/core/value.h"

namespace relay::fuzz {

// A way to write programs differently.
struct Pair {
  std::string_view name;
  std::string_view doc;
  // The other program; the identical handle when there is nothing to write differently. `args` are
  // the arguments of @main with which both are run.
  Module (*rewrite)(const Module& mod, const std::vector<runtime::Value>& args);
};

// Every pair there is: names for results, calls of new functions, projections, identities,
// involutions, branches that are alike, references, inlined and reordered bindings, named
// dimensions given their sizes.
const std::vector<Pair>& all_pairs();

}  // namespace relay::fuzz
