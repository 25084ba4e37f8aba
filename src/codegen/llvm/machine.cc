#include "codegen/llvm/machine.h"

#include <dlfcn.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/Config/llvm-config.h>
#include <unistd.h>

#include <exception>
#include <new>

#include "base/budget.h"
#include "base/codes/lowering.h"
#include "base/codes/machines.h"
#include "base/fork.h"
#include "codegen/llvm/architecture.h"
#include "codegen/llvm/generators_abi.h"
#include "runtime/core/own_folder.h"
#include "target/architectures.h"

namespace relay::codegen {
namespace {

[[noreturn]] void generation_failed(const std::string& what) {
  throw UserError(Diagnostic(codes::codegen_failed, {}, "code generation failed: " + what));
}

// By the LLVM of this program.
class OwnMachine : public CodeMachine {
 public:
  explicit OwnMachine(const MachineSettings& settings) : machine_(settings) {}

  llvm::DataLayout layout() const override { return machine_.layout(); }
  std::string emit(llvm::Module& module, CodePasses passes, CodeForm form) override {
    return machine_.emit(module, passes, form, check_budget_now);
  }

 private:
  LlvmMachine machine_;
};

constexpr const char* kLibrary = "librelay_targets.so";

// The library, or null where there is none. Throws UserError E1507 for one that cannot be used. The next call looks
// again after either.
const relay_code_generators* find_code_generators() {
  static ForkSafeMutex mutex;
  static const relay_code_generators* loaded = nullptr;
  const std::lock_guard lock(mutex);
  if (loaded != nullptr) return loaded;
  const std::string path = runtime::find_in_targets(kLibrary, R_OK);
  if (path.empty()) return nullptr;
  auto refuse = [&](const std::string& reason) {
    throw UserError(Diagnostic(codes::machine_other_generators, {},
                               "the code generators of other architectures cannot be used")
                        .expected(RELAY_CODE_GENERATORS_VERSION)
                        .found(reason)
                        .help("pip install 'relay[targets]==" RELAY_VERSION "'"));
  };
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) refuse(dlerror());
  auto get = reinterpret_cast<relay_get_code_generators_function>(
      dlsym(library, RELAY_CODE_GENERATORS_SYMBOL));
  if (get == nullptr) {
    dlclose(library);
    refuse(path + ", which is another library");
  }
  const relay_code_generators* found = get();
  if (const std::string version = found->version; version != RELAY_CODE_GENERATORS_VERSION) {
    dlclose(library);
    refuse(version);
  }
  loaded = found;
  return loaded;
}

const relay_code_generators& code_generators(const std::string& triple) {
  const relay_code_generators* found = find_code_generators();
  if (found != nullptr && found->has_target(triple.c_str()) != 0) return *found;
  const std::string arch = triple.substr(0, triple.find('-'));
  throw UserError(Diagnostic(codes::machine_no_generator, {},
                             "the code generator of " + arch + " is not installed")
                      .expected("the package relay-targets beside relay")
                      .help("pip install 'relay[targets]'"));
}

// One request to the library, and what it returns.
class Answer {
 public:
  static void take(void* context, const char* bytes, size_t size) {
    auto* self = static_cast<Answer*>(context);
    try {
      self->text_.assign(bytes, size);
    } catch (...) {
      self->error_ = std::current_exception();
    }
  }
  static int32_t goes_on(void* context) {
    auto* self = static_cast<Answer*>(context);
    try {
      check_budget_now();
      return 1;
    } catch (...) {
      self->error_ = std::current_exception();
      return 0;
    }
  }

  // Throws what ended the request.
  std::string result(relay_code_status status) {
    if (error_) std::rethrow_exception(error_);
    if (status == relay_code_no_memory) throw std::bad_alloc();
    if (status != relay_code_done) generation_failed(text_);
    return std::move(text_);
  }

 private:
  std::string text_;
  std::exception_ptr error_;
};

class LibraryMachine : public CodeMachine {
 public:
  LibraryMachine(const relay_code_generators& generators, const MachineSettings& settings)
      : generators_(generators) {
    const relay_machine_settings given{settings.triple.c_str(), settings.cpu.c_str(),
                                       settings.features.c_str(),
                                       static_cast<int32_t>(settings.kind), settings.has_fma};
    Answer answer;
    answer.result(generators_.open(&given, &machine_, Answer::take, &answer));
  }
  ~LibraryMachine() override { generators_.close(machine_); }
  LibraryMachine(const LibraryMachine&) = delete;
  LibraryMachine& operator=(const LibraryMachine&) = delete;

  llvm::DataLayout layout() const override {
    Answer answer;
    return llvm::DataLayout(answer.result(generators_.layout(machine_, Answer::take, &answer)));
  }
  std::string emit(llvm::Module& module, CodePasses passes, CodeForm form) override {
    llvm::SmallVector<char, 0> bitcode;
    llvm::raw_svector_ostream stream(bitcode);
    // Passes walk the uses of a value in the order in which they were made.
    llvm::WriteBitcodeToFile(module, stream, /*ShouldPreserveUseListOrder=*/true);
    Answer answer;
    const relay_code_request request{
        bitcode.data(),  bitcode.size(), static_cast<int32_t>(passes), static_cast<int32_t>(form),
        Answer::goes_on, &answer};
    return answer.result(generators_.emit(machine_, &request, Answer::take, &answer));
  }

 private:
  const relay_code_generators& generators_;
  void* machine_ = nullptr;
};

}  // namespace

std::unique_ptr<CodeMachine> make_machine(const Target& target, CodeKind kind) {
  initialize_llvm();
  const LlvmArchitecture* arch = find_llvm_architecture(target.arch);
  const bool has_options = arch != nullptr && arch->emitter_options != nullptr;
  const MachineSettings settings{
      target.triple, target.cpu,     code_features(target),
      kind,          target.has_fma, has_options ? arch->emitter_options(target, kind) : ""};
  if (!has_llvm_target(target.triple)) {
    return std::make_unique<LibraryMachine>(code_generators(target.triple), settings);
  }
  try {
    return std::make_unique<OwnMachine>(settings);
  } catch (const std::runtime_error& e) {
    generation_failed(e.what());
  }
}

void check_code_generator(const std::string& triple) {
  initialize_llvm();
  if (has_llvm_target(triple)) return;
  ForkSection section;
  code_generators(triple);
}

bool is_llvm_feature(const std::string& triple, const std::string& feature) {
  initialize_llvm();
  if (has_llvm_target(triple)) return has_llvm_feature(triple, feature);
  ForkSection section;
  return code_generators(triple).has_feature(triple.c_str(), feature.c_str()) != 0;
}

}  // namespace relay::codegen
