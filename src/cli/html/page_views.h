// Views of the page that draw no program: memory over the run, constants, passes.
//
// A view is what cli/page/page.js draws: nodes with a place, a label and details. A node's `facts` are rows of two texts,
// its `bars` a histogram, its `texts` an earlier and a later text with a title.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "driver/program_flow.h"
#include "passes/pass.h"

namespace relay::cli {

// The programs before and after the passes that changed something.
class PassHistory : public PassInstrument {
 public:
  struct Step {
    std::string pass;
    double seconds = 0;
    Module before, after;
  };
  void after(const Pass& pass, const Module& before, const Module& after,
             std::chrono::nanoseconds time) override;
  const std::vector<Step>& steps() const { return steps_; }
  // Passes that ran, also those that changed nothing.
  size_t runs() const { return runs_; }

 private:
  std::vector<Step> steps_;
  size_t runs_ = 0;
};

// The arena over the run: a box for each value, from the step that writes it to the last that reads it, at the bytes where
// it is; above them the bytes that hold something. `nodes_of` gives the nodes of the page that a step is, as links.
nlohmann::ordered_json memory_view(
    const ProgramFlow& flow,
    const std::function<nlohmann::ordered_json(const FlowStep&)>& nodes_of);

// A card for each constant, the largest first: type, statistics, histogram, and what reads it.
nlohmann::ordered_json constants_view(const runtime::Program& program,
                                      const std::vector<ProgramFlow>& flows);

// A card for each pass that changed the program, in their order: how many calls of each operator came and went, and the
// functions before and after it.
nlohmann::ordered_json passes_view(const PassHistory& history);

}  // namespace relay::cli
