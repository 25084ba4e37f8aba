#include "codegen/llvm/codegen.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/BLAKE3.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/ConstraintElimination.h>
#include <llvm/Transforms/Scalar/CorrelatedValuePropagation.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/IndVarSimplify.h>
#include <llvm/Transforms/Scalar/JumpThreading.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopDeletion.h>
#include <llvm/Transforms/Scalar/LoopLoadElimination.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Vectorize/LoopVectorize.h>

#include <mutex>
#include <optional>

#include "base/budget.h"
#include "base/codes/lowering.h"
#include "base/fork.h"
#include "base/parallel.h"
#include "codegen/llvm/architecture.h"
#include "codegen/llvm/invariant_divisors.h"
#include "codegen/llvm/kernel_builder.h"
#include "codegen/llvm/llvm_object.h"
#include "codegen/llvm/machine.h"
#include "node/walk.h"
#include "tir/while.h"

namespace relay::codegen {
namespace {

[[noreturn]] void failed(const std::string& what) {
  throw UserError(Diagnostic(codes::codegen_failed, {}, "code generation failed: " + what));
}

}  // namespace

std::unique_ptr<llvm::TargetMachine> make_machine(const Target& target, CodeKind kind) {
  initialize_llvm();
  std::string error;
  const llvm::Target* t = llvm::TargetRegistry::lookupTarget(target.triple, error);
  if (t == nullptr) failed(error);
  llvm::TargetOptions options;
  const bool host = kind == CodeKind::host;
  options.AllowFPOpFusion = host ? llvm::FPOpFusion::Strict : llvm::FPOpFusion::Fast;
  std::unique_ptr<llvm::TargetMachine> machine(t->createTargetMachine(
      target.triple, target.cpu, target.features, options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, host ? llvm::CodeGenOptLevel::Less : llvm::CodeGenOptLevel::Default));
  if (!machine) failed("no code generator for " + target.triple);
  return machine;
}

namespace {

// The cheap pipeline: stack slots to registers, common subexpressions, canonical forms, and loop
// invariants out of loops. Loops are scheduled already; O2 would add time and no speed.
llvm::ModulePassManager pipeline(const Target& target) {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), true));
  if (target.has_fma) passes.addPass(InvariantDivisorsPass());
  llvm::ModulePassManager all;
  all.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
  return all;
}

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
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(rotate), true));
  passes.addPass(llvm::GVNPass());
  passes.addPass(llvm::CorrelatedValuePropagationPass());
  passes.addPass(llvm::ConstraintEliminationPass());
  clean_up();
  // Where an iteration decides that it is the last one, it leaves the loop.
  passes.addPass(llvm::JumpThreadingPass());
  clean_up();
  llvm::LoopPassManager count;
  count.addPass(llvm::IndVarSimplifyPass());
  count.addPass(llvm::LoopDeletionPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(count)));
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

bool has_program_loops(const tir::PrimFunc& f) {
  bool found = false;
  post_order(
      f->body,
      [&](const Node& n) {
        auto* l = as<tir::ForNode>(&n);
        found |= isa<tir::WhileNode>(&n) || (l != nullptr && l->hints.program);
      },
      family::tir_stmt);
  return found;
}

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

}  // namespace

void run_module_passes(llvm::Module& module, llvm::TargetMachine& machine,
                       llvm::ModulePassManager passes) {
  Analyses analyses(machine);
  passes.run(module, *analyses.modules);
}

void run_function_passes(llvm::Module& module, llvm::TargetMachine& machine,
                         llvm::FunctionPassManager passes) {
  Analyses analyses(machine);
  for (llvm::Function& f : module) {
    if (f.isDeclaration()) continue;
    passes.run(f, *analyses.functions);
    analyses.functions->clear(f, f.getName());
    check_budget_after_work();
  }
}

namespace {

// Fills an empty module with one kernel, before any pass.
void build_module(llvm::Module& module, const llvm::DataLayout& layout, const tir::PrimFunc& f,
                  const Target& target) {
  module.setTargetTriple(target.triple);
  module.setDataLayout(layout);
  build_kernel(module, f, target);
}

void check_and_optimize(llvm::Module& module, llvm::TargetMachine& machine, const tir::PrimFunc& f,
                        const Target& target) {
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(module, &stream)) {
    throw InternalError("internal error: invalid LLVM IR for " + f->name + ": " + problem);
  }
  run_module_passes(module, machine, has_program_loops(f) ? program_pipeline() : pipeline(target));
}

// All but the kernel that decides about its object code.
std::string settings_of(const Target& target) {
  // The names of passes are those of their classes.
  std::string out = "relay " RELAY_VERSION " llvm " LLVM_VERSION_STRING "\n" + target.triple +
                    "\n" + target.cpu + "\n" + target.features + "\npic small default fast\n";
  llvm::raw_string_ostream stream(out);
  pipeline(target).printPipeline(stream, [](llvm::StringRef name) { return name; });
  program_pipeline().printPipeline(stream, [](llvm::StringRef name) { return name; });
  return out;
}

}  // namespace

// Equal keys have equal object code: a hash of the settings and of the code before the passes.
std::string key_of(const llvm::Module& module, const std::string& settings) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::WriteBitcodeToFile(module, stream);
  llvm::BLAKE3 hash;
  hash.update(settings);
  hash.update(
      llvm::ArrayRef<uint8_t>(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
  return llvm::toHex(hash.final(), true);
}

namespace {

// Writes the code of modules, one after another, in the same passes: setting these up, and the machine, whose
// features are parsed, is a good part of the code of a small kernel.
class Emitter {
 public:
  Emitter(llvm::TargetMachine& machine, llvm::CodeGenFileType type) : stream_(bytes_) {
    if (machine.addPassesToEmitFile(*passes_, stream_, nullptr, type)) {
      failed("this kind of file cannot be emitted");
    }
  }

  // All modules are of one context.
  std::string emit(llvm::Module& module) {
    bytes_.clear();
    passes_->run(module);
    return std::string(bytes_.data(), bytes_.size());
  }

 private:
  llvm::SmallVector<char, 0> bytes_;
  llvm::raw_svector_ostream stream_;
  LlvmObject<llvm::legacy::PassManager> passes_;
};

// Generates code for a target, kernel by kernel.
class Generator {
 public:
  Generator(const Target& target, llvm::CodeGenFileType type)
      : target_(target), type_(type), machine_(make_machine(target)) {
    // Names of blocks stand in assembly.
    context_.setDiscardValueNames(type == llvm::CodeGenFileType::ObjectFile);
  }

  // The module of the kernel, which the generator keeps until `clear`.
  llvm::Module& build(const tir::PrimFunc& f) {
    ++built_;
    module_ = std::make_unique<llvm::Module>("relay", context_);
    build_module(*module_, machine_->createDataLayout(), f, target_);
    return *module_;
  }
  // The code of what `build` built.
  std::string generate(const tir::PrimFunc& f) {
    check_and_optimize(*module_, *machine_, f, target_);
    check_budget_now();
    if (!emitter_) emitter_.emplace(*machine_, type_);
    return emitter_->emit(*module_);
  }
  void clear() { module_.reset(); }
  // The context keeps every constant and type of what was built in it.
  bool is_worn() const { return built_ >= kMostModules; }

 private:
  static constexpr int kMostModules = 256;

  const Target& target_;
  llvm::CodeGenFileType type_;
  llvm::LLVMContext context_;
  std::unique_ptr<llvm::TargetMachine> machine_;
  std::optional<Emitter> emitter_;  // from the first module that is not known
  std::unique_ptr<llvm::Module> module_;
  int built_ = 0;
};

// Generators of a target, one for each thread that asks at the same time.
class Generators {
 public:
  explicit Generators(const Target& target) : target_(target) {}

  std::unique_ptr<Generator> take() {
    {
      std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        auto generator = std::move(idle_.back());
        idle_.pop_back();
        return generator;
      }
    }
    return std::make_unique<Generator>(target_, llvm::CodeGenFileType::ObjectFile);
  }
  void give_back(std::unique_ptr<Generator> generator) {
    if (generator->is_worn()) return;
    std::lock_guard lock(mutex_);
    idle_.push_back(std::move(generator));
  }

 private:
  const Target& target_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Generator>> idle_;
};

}  // namespace

ObjectCode emit_object(llvm::Module& module, llvm::TargetMachine& machine) {
  return Emitter(machine, llvm::CodeGenFileType::ObjectFile).emit(module);
}

std::vector<ObjectCode> generate_objects(const std::vector<tir::PrimFunc>& kernels,
                                         const Target& target, int threads, KernelCache* cache,
                                         const std::function<void()>& each) {
  Generators generators(target);
  const std::string settings = settings_of(target);
  std::vector<ObjectCode> out(kernels.size());
  auto generate = [&](size_t i) {
    // LLVM has locks and tables of its own.
    ForkSection section;
    auto generator = generators.take();
    try {
      llvm::Module& module = generator->build(kernels[i]);
      std::string key = cache == nullptr ? "" : key_of(module, settings);
      auto known = cache == nullptr ? std::nullopt : cache->find(key);
      out[i] = known ? std::move(*known) : generator->generate(kernels[i]);
      if (cache != nullptr && !known) cache->insert(key, out[i]);
      generator->clear();
    } catch (const std::bad_alloc&) {
      // See llvm_object.h.
      static_cast<void>(generator.release());
      throw;
    } catch (...) {
      generator.reset();
      throw;
    }
    generators.give_back(std::move(generator));
  };
  for_each_parallel(kernels.size(), threads, [&](size_t i) {
    generate(i);
    if (each) each();
  });
  return out;
}

std::string llvm_ir_text(const std::vector<tir::PrimFunc>& kernels, const Target& target) {
  ForkSection section;
  std::string out;
  llvm::raw_string_ostream stream(out);
  LlvmObject<llvm::LLVMContext> context;
  LlvmObject<std::unique_ptr<llvm::TargetMachine>> machine(make_machine(target));
  for (const tir::PrimFunc& f : kernels) {
    LlvmObject<llvm::Module> module("relay", *context);
    build_module(*module, (*machine)->createDataLayout(), f, target);
    check_and_optimize(*module, **machine, f, target);
    module->print(stream, nullptr);
  }
  return out;
}

std::string assembly_text(const std::vector<tir::PrimFunc>& kernels, const Target& target) {
  ForkSection section;
  std::string out;
  LlvmObject<Generator> generator(target, llvm::CodeGenFileType::AssemblyFile);
  for (const tir::PrimFunc& f : kernels) {
    generator->build(f);
    out += generator->generate(f);
    generator->clear();
  }
  return out;
}

llvm::GlobalVariable* define_constant(llvm::Module& module, llvm::StringRef name,
                                      llvm::Constant* value) {
  auto* out = llvm::cast<llvm::GlobalVariable>(module.getOrInsertGlobal(name, value->getType()));
  out->setInitializer(value);
  out->setConstant(true);
  return out;
}

ObjectCode embedding_object(const tir::PrimFunc& kernel, const std::string& bytes,
                            const Target& target) {
  ForkSection section;
  LlvmObject<llvm::LLVMContext> owned_context;
  LlvmObject<std::unique_ptr<llvm::TargetMachine>> owned_machine(make_machine(target));
  LlvmObject<llvm::Module> owned_module("relay_embedded", *owned_context);
  llvm::Module& module = *owned_module;
  module.setTargetTriple(target.triple);
  module.setDataLayout((*owned_machine)->createDataLayout());
  constexpr uint64_t kAlignment = 16;
  define_constant(module, kernel_symbol(*kernel.get()),
                  llvm::ConstantDataArray::getString(*owned_context, bytes, /*AddNull=*/false))
      ->setAlignment(llvm::Align(kAlignment));
  return emit_object(module, **owned_machine);
}

ObjectCode descriptor_object(const std::vector<tir::PrimFunc>& kernels, const Target& target) {
  ForkSection section;
  LlvmObject<llvm::LLVMContext> owned_context;
  LlvmObject<std::unique_ptr<llvm::TargetMachine>> owned_machine(make_machine(target));
  LlvmObject<llvm::Module> owned_module("relay_descriptor", *owned_context);
  llvm::LLVMContext& context = *owned_context;
  llvm::TargetMachine& machine = **owned_machine;
  llvm::Module& module = *owned_module;
  module.setTargetTriple(target.triple);
  module.setDataLayout(machine.createDataLayout());
  auto* pointer = llvm::PointerType::get(context, 0);
  auto* i32 = llvm::Type::getInt32Ty(context);
  auto* i64 = llvm::Type::getInt64Ty(context);
  auto* kernel_type =
      llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, pointer, pointer}, false);
  std::vector<llvm::Constant*> entries;
  for (const tir::PrimFunc& f : kernels) {
    auto* declared = llvm::cast<llvm::Function>(
        module.getOrInsertFunction(kernel_symbol(*f.get()), kernel_type).getCallee());
    entries.push_back(declared);
  }
  auto* table_type = llvm::ArrayType::get(pointer, entries.size());
  auto* table =
      define_constant(module, "relay_kernels", llvm::ConstantArray::get(table_type, entries));
  table->setLinkage(llvm::GlobalValue::InternalLinkage);
  // The id is filled in when the artifact is written.
  auto* id_type = llvm::ArrayType::get(i64, 2);
  auto* type = llvm::StructType::get(context, {i32, i32, i64, pointer, id_type});
  auto* value =
      llvm::ConstantStruct::get(type, {llvm::ConstantInt::get(i32, RELAY_DESCRIPTOR_MAGIC),
                                       llvm::ConstantInt::get(i32, RELAY_KERNEL_ABI_VERSION),
                                       llvm::ConstantInt::get(i64, entries.size()), table,
                                       llvm::Constant::getNullValue(id_type)});
  define_constant(module, RELAY_DESCRIPTOR_SYMBOL, value);
  return emit_object(module, machine);
}

}  // namespace relay::codegen
