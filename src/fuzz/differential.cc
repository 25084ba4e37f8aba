#include "fuzz/differential.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/codes/runtime.h"
#include "codegen/backend.h"
#include "codegen/targets.h"
#include "driver/compile.h"
#include "eval/evaluator.h"
#include "fuzz/gradients.h"
#include "fuzz/outcome.h"
#include "fuzz/pairs.h"
#include "fuzz/values.h"
#include "ir/external.h"
#include "ir/text/text.h"
#include "node/structural.h"
#include "node/walk.h"
#include "passes/external/external_codegen.h"
#include "passes/fusion/defuse_ops.h"
#include "passes/fusion/fuse_ops.h"
#include "passes/layout/alternate_order.h"
#include "passes/pipelines.h"
#include "passes/simplify/fast_math.h"
#include "passes/structure/to_a_normal_form.h"
#include "tir/lower_loops.h"
#include "types/infer.h"
#include "types/verify.h"

namespace relay::fuzz {
namespace {

using runtime::Value;

// Expressions that the evaluator may compute: random programs need a few thousand.
constexpr int64_t kFuel = 100'000;
// Instructions of compiled code, which has several for an expression.
constexpr int64_t kInstructions = 100 * kFuel;
// Kernels kept before all are forgotten, which bounds memory in long runs.
constexpr size_t kKeptKernels = 20'000;

// What a gradient may compute for each expression of its program.
constexpr int64_t kGradientFuel = 20 * kFuel;
// Slopes by differences have errors of their own; those of the two modes only round.
constexpr double kMeasured = 1e-3;
constexpr double kComputed = 1e-6;

// So small that constants of random programs stream through it.
constexpr int64_t kSecondCache = 32;

// What a program means, and on which arguments.
struct Reference {
  std::vector<Value> args;
  Outcome outcome;
};

bool has_references(const Module& mod) {
  bool found = false;
  post_order(mod, [&](const Node& n) { found |= n.kind() == ExprKind::RefCreate; });
  return found;
}

std::optional<Failure> ill_formed(const std::string& stage, const Module& mod) {
  if (auto problem = find_ill_formed(mod)) return Failure{stage, "ill-formed", problem->render()};
  return std::nullopt;
}

// Whether an outcome of another way to run a program is the reference's.
std::optional<Failure> compare(const std::string& stage, const Module& mod,
                               const Reference& reference, const Outcome& got, Tally& tally) {
  const Outcome& want = reference.outcome;
  if (got.kind == Outcome::defect) return Failure{stage, "internal error", got.text};
  if (want.kind == Outcome::user_error) {
    // What an operator finds wrong with its data or their sizes is found only where its result is
    // needed, and sizes that a pass gets to know are as good as any.
    bool may_vanish = want.code == codes::run_kernel_failed.id || want.code.starts_with("E02") ||
                      want.text.find("the inputs do not fit") != std::string::npos;
    if (got.kind == Outcome::user_error || may_vanish) return std::nullopt;
    return Failure{stage, "error", "a value instead of " + want.text};
  }
  if (got.kind == Outcome::user_error) {
    return Failure{stage, "error", "a value was expected, found " + got.text};
  }
  ++tally.compared;
  auto difference = first_difference(got.result, want.result);
  if (!difference) return std::nullopt;
  if (explained_by_rounding(mod, reference.args, got.result, want.result, kFuel)) {
    ++tally.ill_conditioned;
    return std::nullopt;
  }
  return Failure{stage, "value", *difference};
}

// The program as text and back.
std::optional<Failure> check_text(const Module& mod) {
  std::string text = print_module(mod);
  Outcome outcome = outcome_of([&]() -> Value {
    Module again = infer_types(parse_module("fuzz.relay", text));
    std::string where = first_structural_mismatch(mod, again);
    if (!where.empty())
      internal_error(__FILE__, __LINE__, "the text reads as another program at " + where);
    return {};
  });
  if (outcome.kind == Outcome::value) return std::nullopt;
  return Failure{"text", "text", outcome.text};
}

// Passes with an option that is off unless it is asked for: named "DivToMul.inexact".
struct Variant {
  std::string_view pass;
  std::string_view option;
  AttrValue value;
  std::string name() const { return std::string(pass) + "." + std::string(option); }
};

const std::vector<Variant>& variants() {
  static const std::vector<Variant> all{
      {"DivToMul", "inexact", AttrValue(true)},
      {"CombineParallelConv2D", "min_num_branches", AttrValue(int64_t{2})},
      {"CombineParallelDense", "min_num_branches", AttrValue(int64_t{2})},
      {"CombineParallelBatchMatmul", "min_num_branches", AttrValue(int64_t{2})},
  };
  return all;
}

// A program as each pass of external code generators takes it: as those in front of that pass leave it. Some operators are
// another's, whose code is never called.
class Divided {
 public:
  // The program itself for all other passes.
  Module before(const Pass& pass, const Module& mod, PassContext& ctx) {
    static const std::array kSteps{&kAnnotateTarget,           &kMergeCompilerRegions,
                                   &kPartitionGraph,           &kInlineCompilerFunctionsBoundTo,
                                   &kCompileExternalFunctions, &kPlaceExternalFunctions};
    const auto* end = std::ranges::find(kSteps, &pass);
    if (end == kSteps.end()) return mod;
    register_generator();
    ctx.config["relay.AnnotateTarget.targets"] =
        AttrValue(ValueList{AttrValue(std::string(kName))});
    if (stages_.empty() || stages_[0] != mod) stages_ = {mod};
    const auto index = static_cast<size_t>(end - kSteps.begin());
    while (stages_.size() <= index) {
      const Pass& step = *kSteps[stages_.size() - 1];
      // Which inlines what the next ones shall find.
      const bool skipped = &step == &kInlineCompilerFunctionsBoundTo;
      stages_.push_back(skipped ? stages_.back() : run_pass(stages_.back(), step, ctx));
    }
    if (&pass == &kInlineCompilerFunctionsBoundTo) {
      ValueList names;
      const Module& divided = stages_[index];
      for (size_t i = 0; i < divided->functions.size(); ++i) {
        if (compiler_of(*divided->functions[i].get()) == nullptr) continue;
        names.emplace_back(divided->global_vars[i]->name_hint);
      }
      ctx.config["relay.InlineCompilerFunctionsBoundTo.global_vars"] = AttrValue(std::move(names));
    }
    return stages_[index];
  }

 private:
  static constexpr const char* kName = "fuzz";

  static void register_generator() {
    static const bool once = [] {
      register_external_codegen(
          {.name = kName,
           .supports = [](const CallNode& c) { return as<OpNode>(c.op)->name.size() % 2 == 0; },
           .compile = [](const std::string& name, const Function&,
                         const Target&) { return ExternalCode{.function = name}; }});
      return true;
    }();
    static_cast<void>(once);
  }

  std::vector<Module> stages_;  // of one program: in front of each step
};

const Variant* find_variant(const std::string& name) {
  auto found = std::ranges::find(variants(), name, &Variant::name);
  return found == variants().end() ? nullptr : &*found;
}

}  // namespace

std::vector<std::string> CheckOptions::all_pass_names() {
  std::vector<std::string> out;
  for (const Pass* pass : passes_that_keep_meaning()) out.emplace_back(pass->name);
  for (const Variant& v : variants()) out.push_back(v.name());
  return out;
}

std::vector<std::string> CheckOptions::all_pair_names() {
  std::vector<std::string> out;
  for (const Pair& pair : all_pairs()) out.emplace_back(pair.name);
  return out;
}

void Tally::add(const Tally& other) {
  programs += other.programs;
  compared += other.compared;
  ill_conditioned += other.ill_conditioned;
  slopes += other.slopes;
  natives += other.natives;
  kernels += other.kernels;
  kernels_compiled += other.kernels_compiled;
  for (const auto& [key, count] : other.errors) errors[key] += count;
  for (const auto& [key, count] : other.refused) refused[key] += count;
  for (const auto& [key, count] : other.pass_changed) pass_changed[key] += count;
  for (const auto& [key, count] : other.pair_changed) pair_changed[key] += count;
}

struct Checker::Impl {
  // A kernel in this process, with what keeps its code alive.
  struct Kernel {
    tir::PrimFunc lowered;
    relay_kernel entry = nullptr;
    std::shared_ptr<LoadedKernels> code;
  };
  // A compiled program that waits for its kernels.
  struct Compiled {
    size_t program;
    std::string stage;
    runtime::Program bytecode;
    std::vector<tir::PrimFunc> kernels;
    // Of a derivative: the program, and what it means.
    std::shared_ptr<const std::pair<Module, Reference>> derivative = nullptr;
    bool has_natives = false;
    // All of it, with native functions.
    std::optional<runtime::Module> native{};
  };

  explicit Impl(CheckOptions o) : options(std::move(o)) {
    initialize();
    target = native_target();
    target.num_cores = 1;
    compile_options.num_threads = 1;
    compile_options.instruments = options.instruments;
    compile_options.observers = options.observers;
    context = pass_context(compile_options);
    context.target.l2_bytes = kSecondCache;
  }

  CheckOptions options;
  Target target;
  CompileOptions compile_options;
  // Its evaluator keeps what it has compiled.
  PassContext context;
  Tally tally;
  Divided divided;
  std::unordered_map<uint64_t, std::vector<Kernel>> kernels;
  size_t num_kernels = 0;

  std::optional<Failure> check_pass(const std::string& name, const Module& mod,
                                    const Reference& reference) {
    const Variant* variant = find_variant(name);
    const Pass& pass = find_pass(variant == nullptr ? name : variant->pass);
    std::string stage = "pass " + name;
    Module after;
    Outcome ran = outcome_of([&]() -> Value {
      PassContext ctx = context;
      if (variant != nullptr) ctx.config["relay." + name] = variant->value;
      Module before = mod;
      // These see fused groups only.
      const bool of_loops = &pass == &kJoinKernels || &pass == &kOmitFills;
      if (&pass == &kDefuseOps || &pass == &kAlternateOrder || of_loops) {
        before = run_pass(before, kFuseOps, ctx);
      }
      // And functions that call themselves by their names.
      if (of_loops) before = run_pass(before, kLambdaLift, ctx);
      before = divided.before(pass, before, ctx);
      after = run_pass(bring_into(pass.in, before, ctx), pass, ctx);
      return {};
    });
    if (ran.kind != Outcome::value) {
      return Failure{stage, ran.kind == Outcome::defect ? "internal error" : "error", ran.text};
    }
    if (after == mod) return std::nullopt;
    ++tally.pass_changed[name];
    if (auto failure = ill_formed(stage, after)) return failure;
    return compare(stage, mod, reference, evaluate_main(after, reference.args, 4 * kFuel), tally);
  }

  // Whether the level above all others differs from the one below.
  bool has_approximations(const Module& mod) {
    PassContext ctx = context;
    return kFastMath.run(mod, ctx) != mod;
  }

  // Another program that means the same: evaluated, and compiled for a later comparison.
  std::optional<Failure> check_pair(const Pair& pair, size_t index, const Module& mod,
                                    const Reference& reference, std::vector<Compiled>& compiled) {
    std::string stage = "pair " + std::string(pair.name);
    Module other;
    Outcome ran = outcome_of([&]() -> Value {
      other = infer_types(pair.rewrite(mod, reference.args));
      return {};
    });
    if (ran.kind != Outcome::value) return Failure{stage, "error", ran.text};
    if (other == mod) return std::nullopt;
    ++tally.pair_changed[std::string(pair.name)];
    if (auto failure = ill_formed(stage, other)) return failure;
    auto failure =
        compare(stage, mod, reference, evaluate_main(other, reference.args, 8 * kFuel), tally);
    // Machine code is dear: one pair of each program is compiled, in turn.
    const auto turn = static_cast<size_t>(tally.programs);
    bool compiles = options.pairs[turn % options.pairs.size()] == pair.name;
    if (failure || options.levels.empty() || !compiles) return failure;
    int level = options.levels[turn / options.pairs.size() % options.levels.size()];
    return compile(index, other, level, stage + ", level " + std::to_string(level), compiled);
  }

  // Everything up to machine code; an error is a failure at once.
  std::optional<Failure> compile(size_t index, const Module& mod, int level,
                                 const std::string& stage, std::vector<Compiled>& out) {
    Compiled compiled{index, stage, {}, {}};
    Outcome outcome = outcome_of([&]() -> Value {
      CompileOptions o = compile_options;
      o.opt_level = level;
      o.verify = true;
      PassContext ctx = context;
      ctx.opt_level = level;
      ctx.verify = true;
      Bytecode bytecode = make_bytecode(run_passes(mod, optimize_pipeline(), ctx), o);
      for (CompiledKernel& k : lower_kernels(bytecode)) compiled.kernels.push_back(k.lowered);
      compiled.has_natives = !bytecode.host.program.empty();
      compiled.bytecode = std::move(bytecode.program);
      return {};
    });
    if (outcome.kind == Outcome::value) {
      out.push_back(std::move(compiled));
      return std::nullopt;
    }
    if (outcome.kind == Outcome::defect) return Failure{stage, "internal error", outcome.text};
    if (outcome.code == "E0401") {
      ++tally.refused[outcome.text.substr(0, outcome.text.find('\n'))];
      return std::nullopt;
    }
    return Failure{stage, "error", outcome.text};
  }

  // With machine code, in the way of artifacts.
  std::optional<Failure> compile_natively(size_t index, const Module& mod, int level,
                                          std::vector<Compiled>& out) {
    const std::string stage = "level " + std::to_string(level) + ", native";
    Compiled compiled{index, stage, {}, {}};
    Outcome outcome = outcome_of([&]() -> Value {
      CompileOptions o = compile_options;
      o.opt_level = level;
      // The level of approximations is none of a whole compilation, which asks for the pass.
      if (level == kFastMath.opt_level) {
        o.opt_level = level - 1;
        o.required_pass.insert(kFastMath.name);
      }
      o.verify = true;
      const CompiledModule made = relay::compile(mod, o);
      tally.natives += std::ranges::count(made.functions, true, &FunctionReport::native);
      runtime::LoadOptions load;
      load.num_threads = 1;
      compiled.native = made.load(load);
      return {};
    });
    if (outcome.kind != Outcome::value) return Failure{stage, "internal error", outcome.text};
    out.push_back(std::move(compiled));
    return std::nullopt;
  }

  // The derivative of @main by one of the modes; null where it has none.
  Module derivative(const Pass& mode, const Module& mod, std::optional<Failure>& failure) {
    const std::string stage = "gradient by " + mode.name;
    Module out;
    Outcome ran = outcome_of([&]() -> Value {
      PassContext ctx = context;
      out = run_pass(mod, mode, ctx);
      return {};
    });
    if (ran.kind == Outcome::value) {
      failure = ill_formed(stage, out);
    } else if (ran.kind == Outcome::user_error && ran.code.starts_with("E10")) {
      ++tally.refused[ran.text.substr(0, ran.text.find('\n'))];
    } else {
      failure = Failure{stage, ran.kind == Outcome::defect ? "internal error" : "error", ran.text};
    }
    return out;
  }

  std::optional<Failure> check_gradients(size_t index, const Module& drawn,
                                         std::vector<Compiled>& compiled) {
    Module mod = in_doubles(drawn);
    if (!mod) return std::nullopt;
    Function main = mod->find("main");
    const std::vector<Value> args = draw_arguments(mod, *main.get(), options.input_seed);
    const Outcome primal = evaluate_main(mod, args, kFuel);
    if (primal.kind != Outcome::value) return std::nullopt;
    std::optional<Failure> failure;
    Module reverse = derivative(kReverseMode, mod, failure);
    if (failure || !reverse) return failure;
    auto by_reverse = std::make_shared<std::pair<Module, Reference>>(
        reverse, Reference{args, evaluate_main(reverse, args, kGradientFuel)});
    const Outcome& backward = by_reverse->second.outcome;
    if (backward.code == "E0606") return std::nullopt;
    if (backward.kind != Outcome::value)
      return Failure{"gradient by ReverseMode", "error", backward.text};
    failure = compare("gradient, value", mod, {args, primal},
                      {Outcome::value, backward.result.field(0), {}, {}}, tally);
    if (failure) return failure;
    Outcome made;
    made = outcome_of(
        [&] { return evaluate_main(reverse_mode_as_made(mod), args, kGradientFuel).result; });
    if (made.kind == Outcome::value && made.result) {
      failure = compare("gradient as it is made", reverse, by_reverse->second, made, tally);
    } else if (made.kind != Outcome::value && !made.code.starts_with("E10")) {
      failure = Failure{"gradient as it is made", "error", made.text};
    }
    if (failure) return failure;

    const Direction direction(options.input_seed + 1);
    const double slope = direction.slope(backward.result.field(1));
    if (auto measured = measured_slope(mod, args, direction, kFuel)) {
      tally.slopes += *measured != 0;
      if (!slopes_agree(slope, *measured, kMeasured)) {
        return Failure{"gradient by ReverseMode", "value",
                       "the slope is " + std::to_string(slope) + ", by differences " +
                           std::to_string(*measured)};
      }
    }
    std::vector<std::shared_ptr<std::pair<Module, Reference>>> derivatives{by_reverse};
    Module forward = has_tangents(main) ? derivative(kForwardMode, mod, failure) : nullptr;
    if (failure) return failure;
    if (forward) {
      std::vector<Value> with_tangents = args;
      for (Value& t : direction.tangents(main, args)) with_tangents.push_back(std::move(t));
      Outcome along = evaluate_main(forward, with_tangents, kGradientFuel);
      if (along.kind == Outcome::value) {
        const double by_forward = sum_of_floats(along.result.field(1));
        if (!slopes_agree(slope, by_forward, kComputed)) {
          return Failure{"gradient by ForwardMode", "value",
                         "the slope is " + std::to_string(by_forward) + ", by reverse mode " +
                             std::to_string(slope)};
        }
        derivatives.push_back(std::make_shared<std::pair<Module, Reference>>(
            forward, Reference{with_tangents, along}));
      } else if (along.code != "E0606") {
        return Failure{"gradient by ForwardMode", "error", along.text};
      }
    }
    // Machine code is dear: each derivative at one of the levels, in turn.
    for (size_t k = 0; k < derivatives.size() && !options.levels.empty(); ++k) {
      const size_t turn = static_cast<size_t>(tally.programs) + k, before = compiled.size();
      const int level = options.levels[turn % options.levels.size()];
      const std::string stage = "gradient, level " + std::to_string(level);
      if ((failure = compile(index, derivatives[k]->first, level, stage, compiled))) return failure;
      if (compiled.size() > before) compiled.back().derivative = derivatives[k];
    }
    return std::nullopt;
  }

  Kernel* find_kernel(const tir::PrimFunc& lowered) {
    for (Kernel& k : kernels[structural_hash(lowered)]) {
      if (structural_equal(k.lowered, lowered)) return &k;
    }
    return nullptr;
  }

  // Machine code for all kernels that are not there yet, in one go.
  void generate(const std::vector<Compiled>& programs) {
    if (num_kernels > kKeptKernels) {
      kernels.clear();
      num_kernels = 0;
    }
    std::vector<tir::PrimFunc> fresh;
    for (const Compiled& p : programs) {
      for (const tir::PrimFunc& k : p.kernels) {
        ++tally.kernels;
        if (find_kernel(k) != nullptr) continue;
        kernels[structural_hash(k)].push_back({k, nullptr, nullptr});
        fresh.push_back(tir::modified(
            *k, [&](tir::PrimFuncNode& n) { n.name = "kernel_" + std::to_string(num_kernels++); }));
      }
    }
    if (fresh.empty()) return;
    tally.kernels_compiled += static_cast<int64_t>(fresh.size());
    auto code = std::make_shared<LoadedKernels>(load_kernels(fresh, target));
    for (size_t i = 0; i < fresh.size(); ++i) {
      Kernel* kernel = find_kernel(fresh[i]);
      kernel->entry = code->functions()[i];
      kernel->code = code;
    }
  }

  std::optional<Failure> run(const Compiled& compiled, const Module& mod,
                             const Reference& reference) {
    const std::string& stage = compiled.stage;
    int64_t bytes = runtime::thread_object_bytes();
    std::optional<Failure> failure;
    {
      Outcome outcome = outcome_of([&] {
        runtime::RunOptions run;
        run.fuel = kInstructions;
        run.poison = 0xFF;
        if (compiled.native) return compiled.native->run_values("main", reference.args, run);
        std::vector<relay_kernel> entries;
        for (const tir::PrimFunc& k : compiled.kernels) entries.push_back(find_kernel(k)->entry);
        runtime::LoadOptions load;
        load.num_threads = 1;
        runtime::Module module =
            runtime::Module::from_kernels(compiled.bytecode, entries, "{}", nullptr, load);
        return module.run_values("main", reference.args, run);
      });
      failure = compare(stage, mod, reference, outcome, tally);
    }
    if (failure) return failure;
    int64_t left = runtime::thread_object_bytes() - bytes;
    // References that refer to themselves are not freed.
    if (left != 0 && !has_references(mod)) {
      return Failure{stage, "leak", std::to_string(left) + " bytes are left after the run"};
    }
    return std::nullopt;
  }

  std::vector<std::optional<Failure>> check(std::span<const Module> mods) {
    std::vector<std::optional<Failure>> out(mods.size());
    std::vector<Reference> references(mods.size());
    std::vector<Compiled> compiled;
    for (size_t i = 0; i < mods.size(); ++i) {
      ++tally.programs;
      std::optional<Failure>& failure = out[i];
      Reference& reference = references[i];
      const Module& mod = mods[i];
      if ((failure = ill_formed("generator", mod))) continue;
      if (options.gradients) {
        failure = check_gradients(i, mod, compiled);
        continue;
      }
      reference.args = draw_arguments(mod, *mod->find("main").get(), options.input_seed);
      reference.outcome = evaluate_main(mod, reference.args, kFuel);
      if (reference.outcome.kind == Outcome::defect) {
        failure = Failure{"evaluator", "internal error", reference.outcome.text};
        continue;
      }
      if (options.text && (failure = check_text(mod))) continue;
      if (reference.outcome.kind == Outcome::user_error) ++tally.errors[reference.outcome.code];
      // How much a program may compute is no part of its meaning.
      if (reference.outcome.code == "E0606") continue;
      for (const std::string& pass : options.passes) {
        if ((failure = check_pass(pass, mod, reference))) break;
      }
      for (int level : options.levels) {
        if (failure) break;
        if (level == kFastMath.opt_level && !has_approximations(mod)) continue;
        const size_t before = compiled.size();
        failure = compile(i, mod, level, "level " + std::to_string(level), compiled);
        const size_t turn = static_cast<size_t>(tally.programs) % options.levels.size();
        const bool natively = options.native && options.levels[turn] == level;
        if (natively && compiled.size() > before && compiled.back().has_natives)
          failure = compile_natively(i, mod, level, compiled);
      }
      for (const Pair& pair : all_pairs()) {
        if (failure) break;
        if (std::ranges::count(options.pairs, pair.name) == 0) continue;
        failure = check_pair(pair, i, mod, reference, compiled);
      }
    }
    Outcome generated = outcome_of([&]() -> Value {
      generate(compiled);
      return {};
    });
    for (const Compiled& c : compiled) {
      if (out[c.program]) continue;
      if (generated.kind != Outcome::value) {
        out[c.program] = Failure{"code generation", "internal error", generated.text};
      } else if (c.derivative != nullptr) {
        out[c.program] = run(c, c.derivative->first, c.derivative->second);
      } else {
        out[c.program] = run(c, mods[c.program], references[c.program]);
      }
    }
    return out;
  }
};

Checker::Checker(CheckOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Checker::~Checker() = default;
Checker::Checker(Checker&&) noexcept = default;

std::optional<Failure> Checker::check(const Module& mod) { return impl_->check({&mod, 1})[0]; }
std::vector<std::optional<Failure>> Checker::check(std::span<const Module> mods) {
  return impl_->check(mods);
}
const Tally& Checker::tally() const { return impl_->tally; }
Tally Checker::take_tally() { return std::exchange(impl_->tally, {}); }

std::optional<Failure> check(const Module& mod, const CheckOptions& options) {
  return Checker(options).check(mod);
}

}  // namespace relay::fuzz
