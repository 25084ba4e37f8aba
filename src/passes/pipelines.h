// The pipelines: which passes run, in which order. Read pipelines.cc to see what happens to a program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "passes/pass.h"
#include "passes/pass_list.h"

namespace relay {

// Passes in order, in phases that have names.
class Pipeline {
 public:
  // A pass, or the beginning of a phase.
  struct Step {
    std::string phase;           // empty: a pass
    const Pass* pass = nullptr;  // null: a phase
    // Forms that every program has from here on.
    Form from_here_on = Form::any;
    // Options of the pass at this place, where the context's config says nothing of them.
    Dict config = {};
  };

  explicit Pipeline(std::vector<Step> steps) : steps_(std::move(steps)) {}

  // Puts a pass, which outlives the pipeline, at "before:P" or "after:P", where P is a phase or a pass (the first of the
  // name for before, the last for after); behind those that were put there earlier. Throws UserError E0312, listing the
  // places, for another.
  void insert(const Pass& pass, std::string_view place);

  std::vector<const Pass*> passes() const;
  const std::vector<Step>& steps() const { return steps_; }

 private:
  std::vector<Step> steps_;
};

// From a checked module to fused primitive functions in A-normal form, with the passes from outside that have a place.
Pipeline optimize_pipeline();

// What the pipeline gives at every level, and the rest of the compiler takes.
inline constexpr Form kOptimizedForm = Form::fused | Form::anf;

// Runs the passes that the context enables. Where the context verifies, and after passes from outside, what holds from a
// step on is checked after every later one too: UserError E0311 names the pass that broke it.
Module run_passes(Module mod, const Pipeline& pipeline, PassContext& ctx);

}  // namespace relay
