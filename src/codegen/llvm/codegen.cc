#include "codegen/llvm/codegen.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/BLAKE3.h>

#include <mutex>
#include <optional>

#include "base/budget.h"
#include "base/codes/lowering.h"
#include "base/fork.h"
#include "base/parallel.h"
#include "codegen/llvm/architecture.h"
#include "codegen/llvm/kernel_builder.h"
#include "codegen/llvm/llvm_object.h"
#include "codegen/llvm/machine.h"

namespace relay::codegen {
namespace {

// Of processors.
KernelWriter processor_writer(const Target& target, CodeForm form) {
  auto build = [&target](llvm::Module& module, const tir::PrimFunc& f, size_t) {
    build_kernel(module, f, target);
    const LlvmArchitecture* arch = find_llvm_architecture(target.arch);
    if (arch != nullptr && arch->select != nullptr) arch->select(module, target);
  };
  auto passes = [](const tir::PrimFunc& f) {
    return has_program_loops(*f.get()) ? CodePasses::loops : CodePasses::kernel;
  };
  return {build, passes, form};
}

void check_module(const llvm::Module& module, const tir::PrimFunc& f) {
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(module, &stream)) {
    throw InternalError("internal error: invalid LLVM IR for " + f->name + ": " + problem);
  }
}

// All but the kernel that decides about its object code.
std::string settings_of(const Target& target) {
  return "relay " RELAY_VERSION " llvm " LLVM_VERSION_STRING "\n" + target.triple + "\n" +
         target.cpu + "\n" + target.features + "\npic small default fast\n" +
         pass_names(CodePasses::kernel, target.has_fma) +
         pass_names(CodePasses::loops, target.has_fma) +
         pass_names(CodePasses::device, target.has_fma);
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

// Generates code for a target, kernel by kernel.
class Generator {
 public:
  // Names of blocks stand in text for people.
  Generator(const Target& target, const KernelWriter& writer, bool names)
      : target_(target), writer_(writer), machine_(make_machine(target)) {
    context_.setDiscardValueNames(!names);
  }

  // The module of the kernel, which the generator keeps until `clear`.
  llvm::Module& build(const tir::PrimFunc& f, size_t number) {
    ++built_;
    module_ = std::make_unique<llvm::Module>("relay", context_);
    module_->setTargetTriple(target_.triple);
    module_->setDataLayout(machine_->layout());
    writer_.build(*module_, f, number);
    return *module_;
  }
  // The code of what `build` built.
  std::string generate(const tir::PrimFunc& f) {
    check_module(*module_, f);
    return machine_->emit(*module_, writer_.passes(f), writer_.form);
  }
  void clear() { module_.reset(); }
  // The context keeps every constant and type of what was built in it.
  bool is_worn() const { return built_ >= kMostModules; }

 private:
  static constexpr int kMostModules = 256;

  const Target& target_;
  const KernelWriter& writer_;
  llvm::LLVMContext context_;
  std::unique_ptr<CodeMachine> machine_;
  std::unique_ptr<llvm::Module> module_;
  int built_ = 0;
};

// Generators of a target, one for each thread that asks at the same time.
class Generators {
 public:
  Generators(const Target& target, const KernelWriter& writer) : target_(target), writer_(writer) {}

  std::unique_ptr<Generator> take() {
    {
      std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        auto generator = std::move(idle_.back());
        idle_.pop_back();
        return generator;
      }
    }
    return std::make_unique<Generator>(target_, writer_, false);
  }
  void give_back(std::unique_ptr<Generator> generator) {
    if (generator->is_worn()) return;
    std::lock_guard lock(mutex_);
    idle_.push_back(std::move(generator));
  }

 private:
  const Target& target_;
  const KernelWriter& writer_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Generator>> idle_;
};

}  // namespace

std::vector<std::string> generate_code(const std::vector<tir::PrimFunc>& kernels,
                                       const Target& target, const KernelWriter& writer,
                                       int threads, KernelCache* cache,
                                       const std::function<void()>& each) {
  Generators generators(target, writer);
  const std::string settings = settings_of(target);
  std::vector<std::string> out(kernels.size());
  auto generate = [&](size_t i) {
    // LLVM has locks and tables of its own.
    ForkSection section;
    auto generator = generators.take();
    try {
      llvm::Module& module = generator->build(kernels[i], i);
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

std::vector<ObjectCode> generate_objects(const std::vector<tir::PrimFunc>& kernels,
                                         const Target& target, int threads, KernelCache* cache,
                                         const std::function<void()>& each) {
  return generate_code(kernels, target, processor_writer(target, CodeForm::object), threads, cache,
                       each);
}

std::vector<std::string> code_texts(const std::vector<tir::PrimFunc>& kernels, const Target& target,
                                    const KernelWriter& writer) {
  ForkSection section;
  std::vector<std::string> out;
  LlvmObject<Generator> generator(target, writer, true);
  for (const tir::PrimFunc& f : kernels) {
    generator->build(f, out.size());
    out.push_back(generator->generate(f));
    generator->clear();
  }
  return out;
}

std::string code_text(const std::vector<tir::PrimFunc>& kernels, const Target& target,
                      CodeForm form) {
  std::string out;
  for (const std::string& text : code_texts(kernels, target, processor_writer(target, form))) {
    out += text;
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
  LlvmObject<std::unique_ptr<CodeMachine>> owned_machine(make_machine(target));
  LlvmObject<llvm::Module> owned_module("relay_embedded", *owned_context);
  llvm::Module& module = *owned_module;
  module.setTargetTriple(target.triple);
  module.setDataLayout((*owned_machine)->layout());
  constexpr uint64_t kAlignment = 16;
  define_constant(module, kernel_symbol(*kernel.get()),
                  llvm::ConstantDataArray::getString(*owned_context, bytes, /*AddNull=*/false))
      ->setAlignment(llvm::Align(kAlignment));
  return (*owned_machine)->emit(module, CodePasses::none, CodeForm::object);
}

ObjectCode descriptor_object(const std::vector<tir::PrimFunc>& kernels, const Target& target) {
  ForkSection section;
  LlvmObject<llvm::LLVMContext> owned_context;
  LlvmObject<std::unique_ptr<CodeMachine>> owned_machine(make_machine(target));
  LlvmObject<llvm::Module> owned_module("relay_descriptor", *owned_context);
  llvm::LLVMContext& context = *owned_context;
  CodeMachine& machine = **owned_machine;
  llvm::Module& module = *owned_module;
  module.setTargetTriple(target.triple);
  module.setDataLayout(machine.layout());
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
  return machine.emit(module, CodePasses::none, CodeForm::object);
}

}  // namespace relay::codegen
