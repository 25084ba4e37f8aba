// The differential test: one program, run in every way there is, gives one answer.
//
//   fuzz::Checker checker;
//   if (auto failure = checker.check(fuzz::generate(seed))) std::puts(failure->text.c_str());
//
// The reference evaluator says what the program means. Compared with it are the program as text and
// back, the program after each pass alone, and compiled code at the optimisation levels.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "driver/compile.h"
#include "ir/module.h"

namespace relay::fuzz {

struct CheckOptions {
  // Levels at which the program is compiled; the last takes approximations (passes/simplify/fast_math.h).
  std::vector<int> levels = {0, 1, 2, 3, 4};
  // Passes run alone, by name, some with an option ("DivToMul.inexact").
  std::vector<std::string> passes = all_pass_names();
  // Ways to write the program differently (fuzz/pairs.h), by name: each is evaluated; of the
  // several for one program one is compiled, at one of the levels.
  std::vector<std::string> pairs = all_pair_names();
  bool text = true;
  // Programs with native functions (vm/host_code.h) run natively, too, at one of the levels, in turn; elsewhere all
  // functions are interpreted.
  bool native = true;
  // Instead of all this the program is differentiated (fuzz/gradients.h): reverse mode, forward mode
  // and finite differences are compared, and each derivative is compiled at one of the levels, in turn.
  bool gradients = false;
  // Present at every pass and compilation.
  std::vector<PassInstrument*> instruments = {};
  std::vector<StageObserver*> observers = {};
  // Draws the arguments of @main.
  uint64_t input_seed = 0;

  static std::vector<std::string> all_pass_names();
  static std::vector<std::string> all_pair_names();
};

struct Failure {
  std::string
      stage;  // "text", "pass FoldConstant", "pair inline", "level 2", "evaluator", "gradient, level 2"
  std::string kind;  // "value", "error", "ill-formed", "internal error", "leak", "text"
  std::string text;  // what was expected and what came, for people
};

// What a run of checks came across.
struct Tally {
  int64_t programs = 0;
  int64_t compared = 0;          // values compared with the evaluator's
  int64_t ill_conditioned = 0;   // differences that rounding of the inputs makes as well
  int64_t slopes = 0;            // gradients that are not zero, compared with finite differences
  int64_t natives = 0;           // native functions of the programs that ran natively
  int64_t kernels = 0;           // kernels of all compilations
  int64_t kernels_compiled = 0;  // of these, those that no earlier one equals
  std::map<std::string, int64_t> errors;   // of programs that the evaluator ends with a code
  std::map<std::string, int64_t> refused;  // "E0401 message" of what compiled code cannot do
  std::map<std::string, int64_t> pass_changed;
  std::map<std::string, int64_t> pair_changed;
  void add(const Tally& other);
};

// Keeps compiled kernels, so that equal ones of many programs are compiled once. Not for several
// threads at once.
class Checker {
 public:
  explicit Checker(CheckOptions options = {});
  ~Checker();
  Checker(Checker&&) noexcept;

  // The first failure, or nullopt when all ways agree. Throws nothing but std::bad_alloc.
  std::optional<Failure> check(const Module& mod);
  // The same for several programs, whose kernels are compiled together; parallel to `mods`.
  std::vector<std::optional<Failure>> check(std::span<const Module> mods);

  const Tally& tally() const;
  // What was counted since the last call.
  Tally take_tally();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The same for a single program.
std::optional<Failure> check(const Module& mod, const CheckOptions& options = {});

}  // namespace relay::fuzz
