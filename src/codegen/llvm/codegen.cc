#include "codegen/llvm/codegen.h"

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include "base/diagnostic_codes.h"
#include "base/parallel.h"
#include "codegen/llvm/kernel_builder.h"

namespace relay {
namespace {

// Enough kernels for a thread to be worth its own LLVM context, few enough to balance.
constexpr size_t kKernelsPerObject = 4;

void initialize_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  });
}

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

// The cheap pipeline: stack slots to registers, common subexpressions, canonical forms, and loop
// invariants out of loops. Loops are scheduled already; O2 would add time and no speed.
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
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), true));
  llvm::ModulePassManager all;
  all.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
  all.run(module, modules);
}

std::unique_ptr<llvm::Module> make_module(llvm::LLVMContext& context, llvm::TargetMachine& machine,
                                          const tir::PrimFunc* begin, const tir::PrimFunc* end,
                                          const Target& target) {
  auto module = std::make_unique<llvm::Module>("relay", context);
  module->setTargetTriple(target.triple);
  module->setDataLayout(machine.createDataLayout());
  for (const tir::PrimFunc* f = begin; f != end; ++f) codegen::build_kernel(*module, *f, target);
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(*module, &stream)) {
    throw InternalError("internal error: invalid LLVM IR for " + (*begin)->name + ": " + problem);
  }
  optimize_module(*module, machine);
  return module;
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
                                         const Target& target, int threads) {
  initialize_llvm();
  size_t count = (kernels.size() + kKernelsPerObject - 1) / kKernelsPerObject;
  std::vector<ObjectCode> out(count);
  for_each_parallel(count, threads, [&](size_t i) {
    llvm::LLVMContext context;
    auto machine = make_machine(target);
    size_t begin = i * kKernelsPerObject;
    size_t end = std::min(kernels.size(), begin + kKernelsPerObject);
    auto module =
        make_module(context, *machine, kernels.data() + begin, kernels.data() + end, target);
    out[i] = emit(*module, *machine, llvm::CodeGenFileType::ObjectFile);
  });
  return out;
}

std::string llvm_ir_text(const std::vector<tir::PrimFunc>& kernels, const Target& target) {
  std::string out;
  llvm::raw_string_ostream stream(out);
  llvm::LLVMContext context;
  auto machine = make_machine(target);
  for (const tir::PrimFunc& f : kernels)
    make_module(context, *machine, &f, &f + 1, target)->print(stream, nullptr);
  return out;
}

std::string assembly_text(const std::vector<tir::PrimFunc>& kernels, const Target& target) {
  std::string out;
  auto machine = make_machine(target);
  for (const tir::PrimFunc& f : kernels) {
    llvm::LLVMContext context;
    auto module = make_module(context, *machine, &f, &f + 1, target);
    out += emit(*module, *machine, llvm::CodeGenFileType::AssemblyFile);
  }
  return out;
}

namespace codegen {

std::string descriptor_object(const std::vector<tir::PrimFunc>& kernels, const Target& target) {
  llvm::LLVMContext context;
  auto machine = make_machine(target);
  llvm::Module module("relay_descriptor", context);
  module.setTargetTriple(target.triple);
  module.setDataLayout(machine->createDataLayout());
  auto* pointer = llvm::PointerType::get(context, 0);
  auto* i32 = llvm::Type::getInt32Ty(context);
  auto* i64 = llvm::Type::getInt64Ty(context);
  auto* kernel_type = llvm::FunctionType::get(i32, {pointer, pointer, pointer}, false);
  std::vector<llvm::Constant*> entries;
  for (const tir::PrimFunc& f : kernels) {
    auto* declared = llvm::cast<llvm::Function>(
        module.getOrInsertFunction(codegen::kernel_symbol(*f.get()), kernel_type).getCallee());
    entries.push_back(declared);
  }
  auto* table_type = llvm::ArrayType::get(pointer, entries.size());
  auto define = [&](const char* name, llvm::Constant* value) {
    auto* global =
        llvm::cast<llvm::GlobalVariable>(module.getOrInsertGlobal(name, value->getType()));
    global->setInitializer(value);
    global->setConstant(true);
    return global;
  };
  auto* table = define("relay_kernels", llvm::ConstantArray::get(table_type, entries));
  table->setLinkage(llvm::GlobalValue::InternalLinkage);
  auto* type = llvm::StructType::get(context, {i32, i32, i64, pointer});
  auto* value =
      llvm::ConstantStruct::get(type, {llvm::ConstantInt::get(i32, RELAY_DESCRIPTOR_MAGIC),
                                       llvm::ConstantInt::get(i32, RELAY_KERNEL_ABI_VERSION),
                                       llvm::ConstantInt::get(i64, entries.size()), table});
  define(RELAY_DESCRIPTOR_SYMBOL, value);
  return emit(module, *machine, llvm::CodeGenFileType::ObjectFile);
}

}  // namespace codegen
}  // namespace relay
