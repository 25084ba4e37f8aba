// The program as its functions are planned: kernels, constants, strings and functions, each once.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analysis/placement.h"
#include "plan/make_plan.h"

namespace relay::plan {

// For each buffer of a kernel the shape of the tensor that it lies in, or none; empty when no buffer
// lies in another.
using Within = std::vector<std::vector<int64_t>>;

class ProgramPlanner {
 public:
  ProgramPlanner(const Module& mod, LoweredProgram& lowered) : mod_(mod), lowered_(lowered) {
    out_.provider = lowered.provider();
  }
  PlanProgram run(const KernelProvider::Steps& schedule_steps);

  // The constant where it is used: on another device it is another one.
  int32_t constant(const Tensor& t, Device device);
  int32_t string(const std::string& text);
  // The place of the span as a string; -1 for none.
  int32_t where(const Span& span);
  // The constructors of the matched type as a string (runtime/core/data_text.h), where a value may have no clause; else -1.
  int32_t constructors(const MatchNode& m);
  // A kernel of the program and the number of a call's site.
  struct KernelCall {
    int32_t kernel;
    int32_t site;
  };
  KernelCall kernel(int32_t lowered, const KernelSite& site, const VariantRequest& request = {});
  // The kernel as arithmetic on registers; null where it is none, and for -1.
  const ScalarForm* scalar_form(int32_t lowered) const;
  const Module& module() const { return mod_; }
  // Whether the program calls the function, or has it as a value.
  bool is_called(int32_t index) const { return called_.contains(index); }
  // Whether values of open sizes may be in places of the function (plan/places.h), as far as it is
  // planned: where a loop begins, there are none.
  bool has_places(const PlanFunction& f, int32_t index) const;
  LoweredProgram& lowered() { return lowered_; }
  const Placement& placement() const { return *placement_; }
  const PlanProgram& program() const { return out_; }

  // The index of a function of the module.
  int32_t global(const GlobalVarNode& g) const { return globals_.at(g.name_hint); }

  // Queues a local function; `captured` are the variables that come before its parameters. `self` is
  // the variable the function is bound to, if it calls itself.
  int32_t local(const Function& f, std::vector<Var> captured, Var self);

  // Of a function of the module that does nothing but make a closure of its arguments
  // (passes/structure/lambda_lift.h): the function of that closure, which takes them before its parameters.
  std::optional<int32_t> closure_of(int32_t index);

  // A function that makes a value with the constructor, for where the constructor is a value.
  int32_t constructor_function(const ConstructorNode& c);

 private:
  void add(int32_t index, PlanFunction f);
  // Gives the calls of kernels that need it working memory, behind their results.
  void add_working_memory(PlanFunction& f, int32_t index) const;
  // Where its values are.
  void place(PlanFunction& f, int32_t index) const;
  void find_called();

  struct Job {
    Function f;
    std::string name;
    std::vector<Var> captured;
    Var self;
    int32_t index;
  };
  const Module& mod_;
  LoweredProgram& lowered_;
  PlanProgram out_;
  std::optional<Placement> placement_;  // of the functions as they are planned
  std::map<std::tuple<const void*, uint16_t, uint16_t>, int32_t> constants_;
  std::unordered_map<std::string, int32_t> strings_;
  std::unordered_map<int32_t, int32_t> kernels_;  // by their variants
  std::unordered_set<int32_t> called_;
  std::unordered_map<std::string, int32_t> globals_;
  std::unordered_map<const Node*, int32_t> constructor_functions_;
  // By the functions that only make closures; -1: not queued yet.
  struct Closure {
    Function function;
    std::vector<Var> captured;
    int32_t index = -1;
  };
  std::unordered_map<int32_t, Closure> closures_;
  int32_t next_function_ = 0;
  std::deque<Job> queue_;
};

}  // namespace relay::plan
