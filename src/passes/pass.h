// Passes are values, run through one choke point.
//
// A pass is {name, levels, forms, what it does, run}. Pipelines (pipelines.h) are literal lists of
// passes. `run_passes` is the only thing that runs one: it asks whether the pass is enabled, looks
// at the limits (base/budget.h), times it, runs it, verifies the result and tells the instruments.
#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/evaluate_constants.h"
#include "ir/module.h"

namespace relay {

class PassContext;

// The shape of a program at a boundary between passes.
enum class Form {
  any,    // no demand
  graph,  // sharing means "computed once"
  anf,    // every value is let-bound
};

std::string_view to_string(Form form);

struct Pass {
  std::string_view name;  // "FuseOps": command line, timing table and dumps use it
  int opt_level;          // runs when the context's level is at least this
  Form in;
  Form out;
  std::string_view doc;  // one sentence
  Module (*run)(const Module& mod, PassContext& ctx);
  // What can be set, "x:type y:type", where a type is bool, int or names (a list of strings). `x`
  // of pass P is `relay.P.x` of the config.
  std::string_view options = {};
};

// Told before and after each pass; may skip it, or change what it did.
class PassInstrument {
 public:
  virtual ~PassInstrument() = default;
  // False skips the pass.
  virtual bool should_run(const Pass&, const Module&) { return true; }
  virtual void before(const Pass&, const Module&) {}
  // What takes the place of the pass's result, and is verified like it; `after` to leave it.
  virtual Module replace(const Pass&, const Module& /*before*/, const Module& after) {
    return after;
  }
  virtual void after(const Pass&, const Module& /*before*/, const Module& /*after*/,
                     std::chrono::nanoseconds) {}
};

// What passes need to know of the machine (a summary of the target's description).
struct TargetTraits {
  int64_t vector_lanes_f32 = 4;
  int64_t num_vector_registers = 16;
  int64_t l2_bytes = 512 << 10;
  bool layouts = true;  // the target has blocked kernels; false: keep the model's layouts
};

class PassContext {
 public:
  int opt_level = 3;
  std::set<std::string, std::less<>> required_pass;
  std::set<std::string, std::less<>> disabled_pass;
  Dict config;
  TargetTraits target;
  // Null: passes that need values of constants leave the program alone.
  ConstantEvaluator evaluate;
  // Checks well-formedness and types after each pass.
  bool verify = false;
  std::vector<PassInstrument*> instruments;

  bool enabled(const Pass& pass) const;
  // What the config says of `relay.<pass>.<option>`; null when it says nothing or not a T.
  template <class T>
  const T* option(std::string_view pass, std::string_view name) const {
    auto it = config.find("relay." + std::string(pass) + "." + std::string(name));
    return it == config.end() ? nullptr : it->second.template get_if<T>();
  }
};

// Runs the passes in order. Throws UserError E0302 (naming the pass) when verification fails.
Module run_passes(Module mod, std::span<const Pass* const> passes, PassContext& ctx);
Module run_pass(const Module& mod, const Pass& pass, PassContext& ctx);

// Every pass there is, by name.
std::span<const Pass* const> all_passes();
// Throws UserError E0301, with near names, for an unknown one.
const Pass& find_pass(std::string_view name);

// Collects the time of each pass run.
class PassTiming : public PassInstrument {
 public:
  struct Row {
    std::string_view name;
    double seconds;
    bool changed;
  };
  void after(const Pass& pass, const Module& before, const Module& after,
             std::chrono::nanoseconds time) override;
  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::vector<Row> rows_;
};

}  // namespace relay
