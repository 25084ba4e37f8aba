#include "codegen/llvm/backend.h"

#include <cstdlib>

#include "base/codes/lowering.h"
#include "codegen/llvm/architecture.h"
#include "codegen/llvm/codegen.h"
#include "codegen/llvm/host.h"
#include "codegen/llvm/host_code.h"
#include "codegen/llvm/machine.h"
#include "target/processor_text.h"
#include "tir/lower_loops.h"

namespace relay::codegen {
namespace {

class LlvmProcessors : public Processors {
 public:
  // Tests put a row of test_hosts() in place of the machine by RELAY_HOST. What can run stays the machine's own affair.
  Target host() const override {
    const char* name = std::getenv("RELAY_HOST");
    if (name == nullptr || *name == '\0') return host_target();
    std::string known;
    for (const TestHost& host : test_hosts()) {
      if (host.name == name) return ProcessorReader(*this).read(TargetWords(host.target));
      known += (known.empty() ? "" : ", ") + std::string(host.name);
    }
    throw UserError(Diagnostic(codes::codegen_target, {}, "RELAY_HOST names no machine")
                        .expected(known)
                        .found(escape_for_terminal(name, 200))
                        .help("unset it: it is for Relay's own tests"));
  }
  bool has_code_for(const Architecture& arch) const override {
    return find_llvm_architecture(arch.name) != nullptr;
  }
  std::optional<std::string> features_of(const Architecture& arch,
                                         std::string_view cpu) const override {
    return find_llvm_architecture(arch.name)->features_of(cpu);
  }
  bool knows_feature(const Architecture& arch, std::string_view feature) const override {
    return is_llvm_feature(std::string(arch.triple), std::string(feature));
  }
};

class LlvmBackend : public Backend {
 public:
  std::string_view name() const override { return "llvm"; }
  bool supports(const Target& target) const override {
    return find_llvm_architecture(target.arch) != nullptr;
  }
  void check_installed(const Target& target) const override { check_code_generator(target.triple); }
  const TargetReader& reader() const override { return reader_; }
  // Those without an inline form are calls of libm's functions of the same name.
  bool has_intrinsic(const tir::Intrinsic&) const override { return true; }
  std::vector<ObjectCode> compile(const std::vector<tir::PrimFunc>& kernels, const Target& target,
                                  int threads, KernelCache* cache,
                                  const std::function<void()>& each) const override {
    return generate_objects(kernels, target, threads, cache, each);
  }
  std::string link(const std::vector<ObjectCode>& objects,
                   const std::vector<tir::PrimFunc>& kernels, const Target& target) const override {
    return link_shared(objects, kernels, target);
  }
  LoadedKernels load(const std::vector<tir::PrimFunc>& kernels, const Target& target,
                     KernelCache* cache) const override {
    return load_objects(generate_objects(kernels, target, 1, cache, nullptr), kernels, target);
  }
  std::optional<size_t> most_host_params(const Target& target) const override {
    return codegen::most_host_params(target);
  }
  ObjectCode compile_host(const hostcode::Program& program, const Target& target,
                          KernelCache* cache) const override {
    return generate_host_object(program, target, cache);
  }
  ObjectCode embed(const tir::PrimFunc& kernel, const std::string& bytes,
                   const Target& target) const override {
    return embedding_object(kernel, bytes, target);
  }
  std::string text(CodeText form, const std::vector<tir::PrimFunc>& kernels,
                   const Target& target) const override {
    return code_text(kernels, target,
                     form == CodeText::Intermediate ? CodeForm::intermediate : CodeForm::assembly);
  }

 private:
  const ProcessorReader reader_{llvm_processors()};
};

}  // namespace

const Processors& llvm_processors() {
  static const LlvmProcessors processors;
  return processors;
}

const Backend& llvm_backend() {
  static const LlvmBackend backend;
  return backend;
}

TargetKind cpu_kind() {
  TargetKind kind;
  kind.name = "cpu";
  kind.backend = llvm_backend;
  kind.lowering = tir::lowering_passes;
  return kind;
}

}  // namespace relay::codegen
