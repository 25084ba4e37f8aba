// The whole compiler behind one call: a checked module in, a loadable program out.
//
//   LoadedModel model = load_model("resnet50.onnx");
//   CompiledModule compiled = compile(model.module, options);
//   compiled.write("resnet50.so", /*overwrite=*/false);
//   runtime::Module ready = compiled.load();
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "analysis/size_hints.h"
#include "driver/model.h"
#include "ir/module.h"
#include "passes/pass.h"
#include "runtime/module.h"
#include "tir/stmt.h"
#include "vm/compile.h"

namespace relay {

class KernelCache;
class KernelSource;

// How far a long compilation is: a phase's name, and how much of it is done (total 0: unknown).
using Progress = std::function<void(std::string_view phase, int64_t done, int64_t total)>;

// Sees what the stages behind the passes hand on, and may change it (for the passes themselves,
// PassInstrument does). For printing, measuring, and tests that plant faults.
class StageObserver {
 public:
  virtual ~StageObserver() = default;
  // The plan, before it becomes bytecode.
  virtual void plan(plan::PlanProgram&) {}
  // The bytecode, before its kernels are lowered to loops.
  virtual void bytecode(Bytecode&) {}
  // A kernel after "compose", "schedule", and each lowering pass of its target's kind; returns what the
  // next stage gets. Called from several threads at once.
  virtual tir::PrimFunc kernel(std::string_view /*stage*/, tir::PrimFunc f) { return f; }
};

// A function that callers run, and the inputs that it is for.
struct EntryFunction {
  std::string function;
  std::vector<SpecialisedInput> inputs;
};

struct CompileOptions {
  // "native", "x86-64-v3", "native -num-threads=1", "llvm -mcpu=znver4": see target/target_text.h. Of several versions, one is
  // compiled for (codegen/targets.h).
  std::string target = "native";
  int opt_level = 3;
  // Threads that kernels are split over; 0: the target's cores.
  int num_threads = 0;
  std::set<std::string, std::less<>> required_pass;
  std::set<std::string, std::less<>> disabled_pass;
  Dict config;
  // What is known of the sizes that @main leaves open (driver/size_options.h).
  std::vector<SizeHint> sizes;
  // Of a program that is specialised: its entry functions (driver/specialise.h).
  std::vector<EntryFunction> entries;
  // Kernels that were compiled before (codegen/kernel_cache.h); null: none are kept.
  std::shared_ptr<KernelCache> cache;
  // Asked for kernels of primitive functions before these are composed of their operators
  // (lower/kernel_body.h).
  std::vector<std::shared_ptr<const KernelSource>> kernel_sources;
  // Whether functions between kernels become machine code, where host code holds them (vm/host_code.h).
  bool native = true;
  // Checks the program after every pass.
  bool verify = false;
  std::vector<PassInstrument*> instruments;
  std::vector<StageObserver*> observers;
  Progress progress;
  // Where the program came from, for the artifact's provenance.
  std::string source_name;
  std::string source_hash;
};

struct Phase {
  std::string name;
  double seconds = 0;
};

// A launch of a kernel at the stages of its way to machine code.
struct CompiledKernel {
  std::string name;
  size_t kernel = 0;  // of the bytecode's
  Function primitive;
  tir::PrimFunc composed;   // blocks as the operators' rules gave them
  tir::PrimFunc scheduled;  // blocks in the loops of a schedule rule
  tir::PrimFunc lowered;    // loops and stores, what code generation sees
  std::string source;     // what the source that it is from says of it; empty where it is composed
  std::string schedule;   // what the rule did, in a sentence
  std::string rule;       // its name
  double arithmetic = 1;  // operations executed for each that the operators define
  std::vector<std::string>
      declined;         // the rules that did not take it: "contraction: takes only ..."
  std::string version;  // of which sizes it is a version: "n = 128"; empty where it serves all
  int64_t code_bytes = 0;
  std::vector<std::string> layouts;  // of its operators: "nn.conv2d: data_layout=NHWC, ..."
  std::vector<KernelSite> sites;     // its calls in the program

  // Otherwise it is a function outside the program, and has no tensor IR.
  bool is_generated() const { return lowered != nullptr; }
};

// How a function of a program with control flow runs.
struct FunctionReport {
  std::string function;
  bool native = false;
  std::string reason;  // why it is interpreted
};

struct CompiledModule {
  Module optimized;  // after the passes
  std::vector<CompiledKernel> kernels;
  runtime::Program program;
  std::vector<ArenaReport> arenas;
  std::vector<DonationReport> donations;
  std::vector<CopyReport> copies;
  std::vector<FunctionReport> functions;
  std::string elf;
  std::string metadata;  // JSON: provenance and kernels
  runtime::ArtifactInfo info;
  std::string target;  // the resolved description, for people
  std::vector<Phase> phases;
  std::vector<PassTiming::Row> passes;

  int64_t constant_bytes() const;
  int64_t arena_bytes() const;
  // The program in this process; constants are shared, not copied.
  runtime::Module load(const runtime::LoadOptions& options = {}) const;
  // One deployable file. UserError E0611 when it cannot be written, or exists and `overwrite` is
  // false.
  void write(const std::string& path, bool overwrite) const;
};

// Makes operators and everything else that is registered once known; every entry point calls it.
void initialize();

// The mode of runs of programs for the target.
runtime::Denormals denormals_of(const Target& target);

// The program after the optimisation pipeline for the target.
Module optimize(const Module& mod, const CompileOptions& options);

// `mod` is typed (a front end's result, or infer_types'). Throws UserError. Where the caller has
// set no limits (base/budget.h), this and `optimize` have the default ones.
CompiledModule compile(const Module& mod, const CompileOptions& options);

// A program for each version of the target (target/target_versions.h), in their order; otherwise as `compile`.
std::vector<CompiledModule> compile_versions(const Module& mod, const CompileOptions& options);
// One file of several versions, from which loading chooses. UserError E0611 as for CompiledModule::write.
void write_versions(std::span<const CompiledModule> versions, const std::string& path,
                    bool overwrite);
// The last version that this machine runs, or the last where it runs none.
size_t version_for_machine(std::span<const CompiledModule> versions);

// Kernels, plan and bytecode of an optimised module. Limits as for `compile`.
Bytecode make_bytecode(const Module& optimized, const CompileOptions& options);

// The kernels of a program, up to and including lowering, without code generation.
std::vector<CompiledKernel> lower_kernels(const Bytecode& bytecode);

// What code generation makes code of.
std::vector<tir::PrimFunc> generated_functions(const std::vector<CompiledKernel>& kernels);

// LLVM IR or assembly of lowered kernels, as text.
std::string llvm_ir_text(const CompiledModule& compiled, const CompileOptions& options);
std::string assembly_text(const CompiledModule& compiled, const CompileOptions& options);
// The assembly of each of `compiled.kernels`; empty for one that is not generated.
std::vector<std::string> kernel_assembly(const CompiledModule& compiled,
                                         const CompileOptions& options);

// Keeps the plan as text (plan/plan.h).
struct PlanText : StageObserver {
  std::string text;
  void plan(plan::PlanProgram& plan) override;
};
// The scheduled tensor IR of a kernel, under a line with its name and schedule.
std::string scheduled_text(const CompiledKernel& kernel);

// A pass context for the options, as `optimize` uses it (for running single passes).
PassContext pass_context(const CompileOptions& options);

}  // namespace relay
