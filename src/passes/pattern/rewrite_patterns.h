// Rewriting what matches a pattern, until nothing matches any more.
#pragma once

#include <functional>
#include <span>

#include "passes/pattern/dataflow_pattern.h"

namespace relay {

struct PatternRewrite {
  DFPattern pattern;
  // What takes the place of `post`, or `post` itself. `pre` is what stood in the program, `post` the
  // same with its parts rewritten already: this is what matched.
  std::function<Expr(const Expr& pre, const Expr& post, const DFMatch& match)> run;
  // Goes over the program once, instead of until it changes nothing.
  bool once = false;
};

// The expression after the rewrites, each for every expression within, parts before wholes. A round is
// linear in the size of the program; rounds go on while a rewrite changes something. Throws UserError
// E0317 when that does not end.
Expr rewrite_patterns(std::span<const PatternRewrite> rewrites, const Expr& expr);

}  // namespace relay
