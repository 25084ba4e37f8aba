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
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <mutex>

#include "base/budget.h"
#include "base/codes/lowering.h"
#include "base/parallel.h"
#include "codegen/llvm/architecture.h"
#include "codegen/llvm/kernel_builder.h"

namespace relay::codegen {
namespace {

[[noreturn]] void failed(const std::string& what) {
  throw UserError(Diagnostic(codes::codegen_failed, {}, "code generation failed: " + what));
}

std::unique_ptr<llvm::TargetMachine> make_machine(const Target& target) {
  initialize_llvm();
  std::string error;
  const llvm::Target* t = llvm::TargetRegistry::lookupTarget(target.triple, error);
  if (t == nullptr) failed(error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Fast;
  std::unique_ptr<llvm::TargetMachine> machine(
      t->createTargetMachine(target.triple, target.cpu, target.features, options, llvm::Reloc::PIC_,
                             llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  if (!machine) failed("no code generator for " + target.triple);
  return machine;
}

// Code generators of a target, one for each thread that asks at the same time. To make one is to parse
// all features of the processor: for a small kernel that is a good part of its code.
class Machines {
 public:
  explicit Machines(const Target& target) : target_(target) {}

  std::unique_ptr<llvm::TargetMachine> take() {
    {
      std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        auto machine = std::move(idle_.back());
        idle_.pop_back();
        return machine;
      }
    }
    return make_machine(target_);
  }
  void give_back(std::unique_ptr<llvm::TargetMachine> machine) {
    std::lock_guard lock(mutex_);
    idle_.push_back(std::move(machine));
  }

 private:
  const Target& target_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<llvm::TargetMachine>> idle_;
};

// The cheap pipeline: stack slots to registers, common subexpressions, canonical forms, and loop
// invariants out of loops. Loops are scheduled already; O2 would add time and no speed.
llvm::ModulePassManager pipeline() {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), true));
  llvm::ModulePassManager all;
  all.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
  return all;
}

void optimize_module(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  pipeline().run(module, modules);
}

// One kernel as it was built, before any pass.
std::unique_ptr<llvm::Module> build_module(llvm::LLVMContext& context,
                                           const llvm::DataLayout& layout, const tir::PrimFunc& f,
                                           const Target& target) {
  auto module = std::make_unique<llvm::Module>("relay", context);
  module->setTargetTriple(target.triple);
  module->setDataLayout(layout);
  build_kernel(*module, f, target);
  return module;
}

void check_and_optimize(llvm::Module& module, llvm::TargetMachine& machine,
                        const tir::PrimFunc& f) {
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(module, &stream)) {
    throw InternalError("internal error: invalid LLVM IR for " + f->name + ": " + problem);
  }
  optimize_module(module, machine);
}

std::unique_ptr<llvm::Module> make_module(llvm::LLVMContext& context, llvm::TargetMachine& machine,
                                          const tir::PrimFunc& f, const Target& target) {
  auto module = build_module(context, machine.createDataLayout(), f, target);
  check_and_optimize(*module, machine, f);
  return module;
}

// All but the kernel that decides about its object code.
std::string settings_of(const Target& target) {
  // The names of passes are those of their classes.
  std::string out = "relay " RELAY_VERSION " llvm " LLVM_VERSION_STRING "\n" + target.triple +
                    "\n" + target.cpu + "\n" + target.features + "\npic small default fast\n";
  llvm::raw_string_ostream stream(out);
  pipeline().printPipeline(stream, [](llvm::StringRef name) { return name; });
  return out;
}

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

std::string emit(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type))
    failed("this kind of file cannot be emitted");
  passes.run(module);
  return std::string(bytes.data(), bytes.size());
}

}  // namespace

std::vector<ObjectCode> generate_objects(const std::vector<tir::PrimFunc>& kernels,
                                         const Target& target, int threads, KernelCache* cache,
                                         const std::function<void()>& each) {
  Machines machines(target);
  auto first = machines.take();
  const llvm::DataLayout layout = first->createDataLayout();
  machines.give_back(std::move(first));
  const std::string settings = settings_of(target);
  std::vector<ObjectCode> out(kernels.size());
  auto generate = [&](size_t i) {
    llvm::LLVMContext context;
    context.setDiscardValueNames(true);
    auto module = build_module(context, layout, kernels[i], target);
    std::string key;
    if (cache != nullptr) {
      key = key_of(*module, settings);
      if (auto known = cache->find(key)) {
        out[i] = std::move(*known);
        return;
      }
    }
    auto machine = machines.take();
    check_and_optimize(*module, *machine, kernels[i]);
    check_budget_now();
    out[i] = emit(*module, *machine, llvm::CodeGenFileType::ObjectFile);
    machines.give_back(std::move(machine));
    if (cache != nullptr) cache->insert(key, out[i]);
  };
  for_each_parallel(kernels.size(), threads, [&](size_t i) {
    generate(i);
    if (each) each();
  });
  return out;
}

std::string llvm_ir_text(const std::vector<tir::PrimFunc>& kernels, const Target& target) {
  std::string out;
  llvm::raw_string_ostream stream(out);
  llvm::LLVMContext context;
  auto machine = make_machine(target);
  for (const tir::PrimFunc& f : kernels)
    make_module(context, *machine, f, target)->print(stream, nullptr);
  return out;
}

std::string assembly_text(const std::vector<tir::PrimFunc>& kernels, const Target& target) {
  std::string out;
  auto machine = make_machine(target);
  for (const tir::PrimFunc& f : kernels) {
    llvm::LLVMContext context;
    auto module = make_module(context, *machine, f, target);
    out += emit(*module, *machine, llvm::CodeGenFileType::AssemblyFile);
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

ObjectCode descriptor_object(const std::vector<tir::PrimFunc>& kernels, const Target& target) {
  llvm::LLVMContext context;
  auto machine = make_machine(target);
  llvm::Module module("relay_descriptor", context);
  module.setTargetTriple(target.triple);
  module.setDataLayout(machine->createDataLayout());
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
  return emit(module, *machine, llvm::CodeGenFileType::ObjectFile);
}

}  // namespace relay::codegen
