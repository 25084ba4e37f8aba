#include "passes/pattern/rewrite_patterns.h"

#include "base/budget.h"
#include "base/codes/passes.h"
#include "node/walk.h"

namespace relay {
namespace {

// A rewrite that needs more rounds undoes what another, or it itself, did.
constexpr int kMaxRounds = 1000;

Expr one_round(const PatternRewrite& r, const Expr& expr) {
  DFMatch m;
  return Expr::unchecked(rewrite(
      expr,
      [&](const NodeRef& original, NodeRef rebuilt) -> NodeRef {
        if (rebuilt.get()->info().family != family::expr) return rebuilt;
        check_budget();
        Expr post = Expr::unchecked(rebuilt);
        if (!m.matches(r.pattern, post)) return rebuilt;
        return r.run(Expr::unchecked(original), post, m);
      },
      family::program));
}

// Rewrites that end have done so after a few rounds; those that go on make programs larger from then on, some of them
// twice as large each time.
constexpr int kRoundsOfGrowth = 12;
constexpr size_t kMaxGrowth = 1000;

size_t size_of(const Expr& expr) {
  size_t nodes = 0;
  post_order(
      expr, [&](const Node&) { ++nodes; }, family::expr);
  return nodes;
}

}  // namespace

Expr rewrite_patterns(std::span<const PatternRewrite> rewrites, const Expr& expr) {
  Expr out = expr;
  for (int round = 0;; ++round) {
    Expr before = out;
    for (const PatternRewrite& r : rewrites) {
      if (round == 0 || !r.once) out = one_round(r, out);
    }
    if (out == before) return out;
    bool explodes = round >= kRoundsOfGrowth && size_of(out) > kMaxGrowth * size_of(expr);
    if (round == kMaxRounds || explodes) {
      throw UserError(
          Diagnostic(
              codes::pattern_endless, out->span,
              "the rewrites still change the program after " + std::to_string(round) + " rounds")
              .expected("rewrites after which no pattern matches, or that give `post` back")
              .help("rewrite_once=True goes over the program once"));
    }
  }
}

}  // namespace relay
