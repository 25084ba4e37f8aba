#include "frontend/common/open_rank.h"

#include <algorithm>
#include <string>

#include "base/codes/frontend.h"

namespace relay::frontend {

Diagnostic rank_is_open(const BranchesDiffer& branches, const Span& span) {
  auto types = [](const Values& values) {
    std::string out;
    for (const ValuePtr& v : values) {
      if (v->expr) out += (out.empty() ? "" : ", ") + to_string(v->expr->type);
    }
    return out;
  };
  return Diagnostic(codes::frontend_dynamic, span,
                    "how many dimensions a result has is known only when the model runs")
      .expected("branches that give values of one rank")
      .found(types(branches.then_values) + " or " + types(branches.else_values))
      .help(
          "fix the input that decides: --input NAME=SHAPE for a size, --freeze NAME=VALUE for a "
          "value");
}

bool are_type_errors(const std::vector<Diagnostic>& found) {
  return std::ranges::all_of(found, [](const Diagnostic& d) {
    return d.severity != Severity::error || std::string_view(d.code).starts_with("E02");
  });
}

}  // namespace relay::frontend
