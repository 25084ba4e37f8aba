#include "extend/pass.h"

#include <unordered_set>

#include "base/codes/passes.h"
#include "ir/bindings.h"
#include "ir/open_types.h"
#include "types/infer.h"

namespace relay::extend {

void check_level(const std::string& pass, int64_t level) {
  if (level >= 0 && level <= kMaxLevel) return;
  throw UserError(Diagnostic(codes::pass_registration, {},
                             "the pass '" + pass + "' has a level that is out of range")
                      .expected("0 to " + std::to_string(kMaxLevel))
                      .found(std::to_string(level)));
}

Module checked_result(const Module& before, const Module& after, const std::string& pass) {
  if (after == before) return before;
  if (before->find("main") && !after->find("main")) {
    throw UserError(
        Diagnostic(codes::pass_result, {}, "pass " + pass + " gave a program without @main")
            .expected("the functions that the program had, or others of their names")
            .found(after->functions.empty()
                       ? "no functions"
                       : "@" + after->global_vars[0]->name_hint + " as the first"));
  }
  try {
    std::unordered_set<const Node*> known;
    for (const Function& f : before->functions) known.insert(f.get());
    return infer_types(map_functions(after, [&](const GlobalVar&, const Function& f) {
      if (known.contains(f.get())) return f;
      check_bindings(f);
      return with_free_type_vars(f);
    }));
  } catch (const UserError& e) {
    std::vector<Diagnostic> problems = e.diagnostics();
    for (Diagnostic& d : problems) d.message = "after pass " + pass + ": " + d.message;
    throw UserError(std::move(problems));
  }
}

}  // namespace relay::extend
