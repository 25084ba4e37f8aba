#include "codegen/llvm/llvm_machine.h"

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/ConstraintElimination.h>
#include <llvm/Transforms/Scalar/CorrelatedValuePropagation.h>
#include <llvm/Transforms/Scalar/DeadStoreElimination.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/IndVarSimplify.h>
#include <llvm/Transforms/Scalar/InferAlignment.h>
#include <llvm/Transforms/Scalar/JumpThreading.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopDeletion.h>
#include <llvm/Transforms/Scalar/LoopLoadElimination.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimpleLoopUnswitch.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Vectorize/LoadStoreVectorizer.h>
#include <llvm/Transforms/Vectorize/LoopVectorize.h>

#include <condition_variable>
#include <mutex>
#include <utility>

#include "codegen/llvm/invariant_divisors.h"
#include "codegen/llvm/row_pairs.h"

namespace relay::codegen {
namespace {

// The cheap pipeline: stack slots to registers, common subexpressions, canonical forms, and loop
// invariants out of loops. Loops are scheduled already; O2 would add time and no speed.
llvm::ModulePassManager kernel_pipeline(bool has_fma) {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(RowPairsPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), true));
  if (has_fma) passes.addPass(InvariantDivisorsPass());
  llvm::ModulePassManager all;
  all.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
  return all;
}

llvm::LoopPassManager counted_loops() {
  llvm::LoopPassManager passes;
  passes.addPass(llvm::LICMPass(llvm::LICMOptions()));
  passes.addPass(llvm::SimpleLoopUnswitchPass());
  passes.addPass(llvm::IndVarSimplifyPass());
  passes.addPass(llvm::LoopDeletionPass());
  return passes;
}

// Loops of few iterations become straight code; what it then stores or computes twice, once.
class ShortLoopsPass : public llvm::PassInfoMixin<ShortLoopsPass> {
 public:
  ShortLoopsPass() {
    unroll_.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LoopFullUnrollPass()));
    then_.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    then_.addPass(llvm::EarlyCSEPass(true));
    then_.addPass(llvm::InstCombinePass());
    then_.addPass(llvm::CorrelatedValuePropagationPass());
    then_.addPass(llvm::SimplifyCFGPass());
    then_.addPass(llvm::GVNPass());
    then_.addPass(llvm::DSEPass());
    then_.addPass(llvm::createFunctionToLoopPassAdaptor(counted_loops(), true));
    then_.addPass(llvm::SimplifyCFGPass());
    then_.addPass(llvm::InstCombinePass());
  }

  llvm::PreservedAnalyses run(llvm::Function& f, llvm::FunctionAnalysisManager& analyses) {
    llvm::PreservedAnalyses unrolled = unroll_.run(f, analyses);
    if (unrolled.areAllPreserved()) return unrolled;
    unrolled.intersect(then_.run(f, analyses));
    return unrolled;
  }

  void printPipeline(llvm::raw_ostream& out,
                     llvm::function_ref<llvm::StringRef(llvm::StringRef)> name) {
    unroll_.printPipeline(out, name);
    out << ',';
    then_.printPipeline(out, name);
  }

 private:
  llvm::FunctionPassManager unroll_, then_;
};

// For loops of the program, which no schedule has placed: states that one iteration hands to the next in registers,
// conditions that hold behind checks, counters, and vectors where iterations are independent.
llvm::ModulePassManager program_pipeline() {
  llvm::FunctionPassManager passes;
  auto clean_up = [&] {
    passes.addPass(llvm::SimplifyCFGPass());
    passes.addPass(llvm::InstCombinePass());
  };
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(true));
  clean_up();
  passes.addPass(llvm::JumpThreadingPass());
  passes.addPass(llvm::CorrelatedValuePropagationPass());
  clean_up();
  llvm::LoopPassManager rotate;
  rotate.addPass(llvm::LoopRotatePass());
  rotate.addPass(llvm::LICMPass(llvm::LICMOptions()));
  // A check of what is the same in all iterations moves out of the loop.
  rotate.addPass(llvm::SimpleLoopUnswitchPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(rotate), true));
  passes.addPass(llvm::GVNPass());
  passes.addPass(llvm::CorrelatedValuePropagationPass());
  passes.addPass(llvm::ConstraintEliminationPass());
  clean_up();
  // Where an iteration decides that it is the last one, it leaves the loop.
  passes.addPass(llvm::JumpThreadingPass());
  clean_up();
  passes.addPass(llvm::DSEPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(counted_loops(), true));
  passes.addPass(ShortLoopsPass());
  passes.addPass(llvm::LoopVectorizePass());
  // An element that the iteration before stored stays in a register.
  passes.addPass(llvm::LoopLoadEliminationPass());
  passes.addPass(llvm::EarlyCSEPass());
  clean_up();
  passes.addPass(llvm::LoopUnrollPass());
  passes.addPass(llvm::EarlyCSEPass());
  clean_up();
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), true));
  llvm::ModulePassManager all;
  all.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
  return all;
}

// Loops of constant length around registers disappear, so that each register has a name.
llvm::ModulePassManager device_pipeline() {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass());
  llvm::LoopPassManager rotate;
  rotate.addPass(llvm::LoopRotatePass());
  rotate.addPass(llvm::LICMPass(llvm::LICMOptions()));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(rotate), true));
  llvm::LoopPassManager count;
  count.addPass(llvm::IndVarSimplifyPass());
  count.addPass(llvm::LoopFullUnrollPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(count)));
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::GVNPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), true));
  passes.addPass(llvm::LoopUnrollPass());
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  // Here indices still show that neighbours are aligned.
  passes.addPass(llvm::InferAlignmentPass());
  passes.addPass(llvm::LoadStoreVectorizerPass());
  llvm::ModulePassManager all;
  all.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
  return all;
}

llvm::FunctionPassManager host_pipeline() {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::GVNPass());
  passes.addPass(llvm::SimplifyCFGPass());
  return passes;
}

// Options of LLVM's command line, which are the whole process's and which it has no other way to set, while code is written
// with them: "NAME=VALUE NAME=VALUE". Threads that want other ones wait. Within a ForkSection.
class EmitterOptions {
 public:
  explicit EmitterOptions(const std::string& options) {
    Shared& now = shared();
    std::unique_lock lock(now.mutex);
    now.free.wait(lock, [&] { return now.users == 0 || now.options == options; });
    // Throws before there is a user for whom others would wait.
    if (now.users == 0) set(now.options = options, true);
    ++now.users;
  }
  ~EmitterOptions() {
    Shared& now = shared();
    const std::lock_guard lock(now.mutex);
    if (--now.users > 0) return;
    set(now.options, false);
    now.free.notify_all();
  }
  EmitterOptions(const EmitterOptions&) = delete;
  EmitterOptions& operator=(const EmitterOptions&) = delete;

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable free;
    std::string options;
    int users = 0;
  };
  static Shared& shared() {
    static Shared now;
    return now;
  }
  static void set(llvm::StringRef options, bool on) {
    llvm::SmallVector<llvm::StringRef, 2> list;
    options.split(list, ' ', -1, /*KeepEmpty=*/false);
    for (llvm::StringRef each : list) {
      const auto [name, value] = each.split('=');
      auto option = llvm::cl::getRegisteredOptions().find(name);
      if (option == llvm::cl::getRegisteredOptions().end())
        throw std::runtime_error("LLVM has no option " + name.str());
      option->second->setDefault();
      if (on && option->second->addOccurrence(1, name, value))
        throw std::runtime_error("LLVM refuses the option " + each.str());
    }
  }
};

// The analyses that passes ask for.
struct Analyses {
  explicit Analyses(llvm::TargetMachine& machine) : builder(&machine) {
    builder->registerModuleAnalyses(*modules);
    builder->registerCGSCCAnalyses(*sccs);
    builder->registerFunctionAnalyses(*functions);
    builder->registerLoopAnalyses(*loops);
    builder->crossRegisterProxies(*loops, *functions, *sccs, *modules);
  }

  LlvmObject<llvm::LoopAnalysisManager> loops;
  LlvmObject<llvm::FunctionAnalysisManager> functions;
  LlvmObject<llvm::CGSCCAnalysisManager> sccs;
  LlvmObject<llvm::ModuleAnalysisManager> modules;
  LlvmObject<llvm::PassBuilder> builder;
};

const llvm::Target* find_llvm_target(const std::string& triple) {
  std::string error;
  return llvm::TargetRegistry::lookupTarget(triple, error);
}

void run_module_passes(llvm::Module& module, llvm::TargetMachine& machine,
                       llvm::ModulePassManager passes) {
  Analyses analyses(machine);
  passes.run(module, *analyses.modules);
}

// One function after the other, so that `poll` is called in between.
void run_host_passes(llvm::Module& module, llvm::TargetMachine& machine,
                     const std::function<void()>& poll) {
  {
    Analyses analyses(machine);
    llvm::FunctionPassManager passes = host_pipeline();
    for (llvm::Function& f : module) {
      if (f.isDeclaration()) continue;
      passes.run(f, *analyses.functions);
      analyses.functions->clear(f, f.getName());
      poll();
    }
  }
  llvm::ModulePassManager remove_unused;
  remove_unused.addPass(llvm::GlobalDCEPass());
  run_module_passes(module, machine, std::move(remove_unused));
}

}  // namespace

std::string pass_names(CodePasses passes, bool has_fma) {
  std::string out;
  llvm::raw_string_ostream stream(out);
  auto print = [&](auto pipeline) {
    pipeline.printPipeline(stream, [](llvm::StringRef name) { return name; });
  };
  switch (passes) {
    case CodePasses::none:
      break;
    case CodePasses::kernel:
      print(kernel_pipeline(has_fma));
      break;
    case CodePasses::loops:
      print(program_pipeline());
      break;
    case CodePasses::host:
      print(host_pipeline());
      break;
    case CodePasses::device:
      print(device_pipeline());
      break;
  }
  return out;
}

bool has_llvm_target(const std::string& triple) { return find_llvm_target(triple) != nullptr; }

bool has_llvm_feature(const std::string& triple, const std::string& feature) {
  const llvm::Target* t = find_llvm_target(triple);
  if (t == nullptr) return false;
  std::unique_ptr<llvm::MCSubtargetInfo> info(t->createMCSubtargetInfo(triple, "", ""));
  for (const llvm::SubtargetFeatureKV& known : info->getAllProcessorFeatures()) {
    if (llvm::StringRef(known.Key) == llvm::StringRef(feature)) return true;
  }
  return false;
}

LlvmMachine::LlvmMachine(const MachineSettings& settings)
    : has_fma_(settings.has_fma), emitter_options_(settings.emitter_options) {
  const llvm::Target* t = find_llvm_target(settings.triple);
  llvm::TargetOptions options;
  const bool host = settings.kind == CodeKind::host;
  options.AllowFPOpFusion = host ? llvm::FPOpFusion::Strict : llvm::FPOpFusion::Fast;
  if (t != nullptr) {
    machine_.reset(t->createTargetMachine(
        settings.triple, settings.cpu, settings.features, options, llvm::Reloc::PIC_,
        llvm::CodeModel::Small,
        host ? llvm::CodeGenOptLevel::Less : llvm::CodeGenOptLevel::Default));
  }
  if (!machine_) throw std::runtime_error("no code generator for " + settings.triple);
}

LlvmMachine::Emitter::Emitter(llvm::TargetMachine& machine, llvm::CodeGenFileType type,
                              const std::string& options)
    : options_(options), stream_(bytes_) {
  const EmitterOptions on(options_);
  if (machine.addPassesToEmitFile(*passes_, stream_, nullptr, type)) {
    throw std::runtime_error("this kind of file cannot be emitted");
  }
}

std::string LlvmMachine::Emitter::emit(llvm::Module& module) {
  const EmitterOptions on(options_);
  bytes_.clear();
  passes_->run(module);
  return std::string(bytes_.data(), bytes_.size());
}

std::string LlvmMachine::emit(llvm::Module& module, CodePasses passes, CodeForm form,
                              const std::function<void()>& poll) {
  switch (passes) {
    case CodePasses::none:
      break;
    case CodePasses::kernel:
      run_module_passes(module, *machine_, kernel_pipeline(has_fma_));
      break;
    case CodePasses::loops:
      run_module_passes(module, *machine_, program_pipeline());
      break;
    case CodePasses::host:
      run_host_passes(module, *machine_, poll);
      break;
    case CodePasses::device:
      run_module_passes(module, *machine_, device_pipeline());
      break;
  }
  poll();
  if (form == CodeForm::intermediate) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module.print(stream, nullptr);
    return text;
  }
  // NVPTX's printer keeps the shared memory of the functions that it has printed, by their addresses, which those of the
  // next module may have: text is written by passes of its own.
  if (form != CodeForm::object) {
    return Emitter(*machine_, llvm::CodeGenFileType::AssemblyFile, emitter_options_).emit(module);
  }
  if (!objects_) objects_.emplace(*machine_, llvm::CodeGenFileType::ObjectFile, emitter_options_);
  return objects_->emit(module);
}

}  // namespace relay::codegen
