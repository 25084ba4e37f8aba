// Passes are values, run through one choke point.
//
// A pass is {name, level, forms, what it does, run, options}. Pipelines (pipelines.h) are literal lists
// of passes. `run_pass` is the only thing that runs one: it looks at the limits (base/budget.h), checks
// the form, times the pass, runs it, verifies the result and tells the instruments.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/evaluate_constants.h"
#include "ir/module.h"
#include "passes/structure/form.h"
#include "runtime/core/device.h"
#include "target/target.h"

namespace relay {

class PassContext;

// What can be set of a pass: `x` of pass P is `relay.P.x` of the config.
struct PassOption {
  enum class Type { boolean, integer, text, names };

  std::string name;
  Type type;
  // What holds when nothing is set; null: the pass decides by the program.
  AttrValue standard;
  std::string doc;  // one sentence
};

std::string_view to_string(PassOption::Type type);

struct Pass {
  std::string
      name;  // "FuseOps": command line, timing table and dumps use it; from outside "mylib.MyPass"
  int opt_level;    // runs when the context's level is at least this
  Form in;          // what it takes, checked before it runs
  Form out;         // what it gives whatever it took, checked like well-formedness afterwards
  std::string doc;  // one sentence
  std::function<Module(const Module& mod, PassContext& ctx)> run;
  std::vector<PassOption> options = {};
  // False: what it gives computes something else, made of the program (a gradient).
  bool keeps_meaning = true;
  // Further options, named after operators: those of the registry at the moment.
  std::function<std::vector<PassOption>()> operator_options = nullptr;

  std::vector<PassOption> all_options() const;
  std::optional<PassOption> find_option(std::string_view option) const;
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

// Where kernels of a program that says nothing of devices are computed.
struct DeviceChoice {
  runtime::Device device;
  // Whether the device has code for a primitive function.
  std::function<bool(const FunctionNode& primitive)> supports;
};

class PassContext {
 public:
  int opt_level = 3;
  std::set<std::string, std::less<>> required_pass;
  std::set<std::string, std::less<>> disabled_pass;
  Dict config;
  Target target;
  // Null: passes that need values of constants leave the program alone.
  ConstantEvaluator evaluate;
  // Nothing: the host computes all that the program does not place.
  std::optional<DeviceChoice> device_choice;
  // Checks well-formedness, types and promised forms after each pass. What passes from outside give
  // is always checked.
  bool verify = false;
  std::vector<PassInstrument*> instruments;

  bool enabled(const Pass& pass) const;
  // What the config says of an option of the pass; null when it says nothing.
  template <class T>
  const T* asked(const Pass& pass, std::string_view option) const {
    RELAY_CHECK(pass.find_option(option).has_value(), std::string(option));
    auto it = config.find("relay." + pass.name + "." + std::string(option));
    return it == config.end() ? nullptr : it->second.template get_if<T>();
  }
  // The same, with what holds when nothing is set.
  template <class T>
  T option(const Pass& pass, std::string_view option) const {
    const T* value = asked<T>(pass, option);
    return value != nullptr ? *value : *pass.find_option(option)->standard.template get_if<T>();
  }
};

// Runs the pass whatever the level. Throws UserError E0302 or E0311 (naming the pass) when the result, or what the pass
// is given, is not what it must be, and E0313 for a config that no pass reads.
// `held` are forms that the program must have afterwards, besides those that the pass promises; `skipped` (may be null)
// becomes true when an instrument wanted the pass left out.
Module run_pass(const Module& mod, const Pass& pass, PassContext& ctx, Form held = Form::any,
                bool* skipped = nullptr);
// Runs those that the context enables, in order.
Module run_passes(Module mod, std::span<const Pass* const> passes, PassContext& ctx);

// Throws UserError E0311 when `who`, which takes programs in the form only, does not take this one, and E0306 when that is
// since the context disables a pass.
void check_takes(const Module& mod, Form form, const std::string& who, const PassContext& ctx);

// The program in the form: runs, as far as something is missing, the passes that give it.
Module bring_into(Form form, Module mod, PassContext& ctx);

// Throws UserError E0313, listing what there is, for a key that is no option of a pass, and for a value that is not of
// the option's type.
void check_config(const Dict& config);

// Collects the time of each pass run.
class PassTiming : public PassInstrument {
 public:
  struct Row {
    std::string name;
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
