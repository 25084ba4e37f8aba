#include "codegen/backend.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <set>

#include "codegen/llvm/architecture.h"
#include "codegen/llvm/backend.h"
#include "codegen/targets.h"
#include "codegen/test/kernel_harness.h"
#include "runtime/cpu.h"

namespace relay::codegen_test {
namespace {

// LLVM, but for one function that it makes no code for.
class WithoutErf : public Backend {
 public:
  std::string_view name() const override { return "partial"; }
  bool supports(const Target& target) const override { return target.arch == "x86_64"; }
  const TargetReader& reader() const override { return codegen::llvm_backend().reader(); }
  bool has_intrinsic(const tir::Intrinsic& i) const override { return i.name != "erf"; }
  std::vector<ObjectCode> compile(const std::vector<PrimFunc>&, const Target&, int, KernelCache*,
                                  const std::function<void()>&) const override {
    return {};
  }
  std::string link(const std::vector<ObjectCode>&, const std::vector<PrimFunc>&,
                   const Target&) const override {
    return "";
  }
  LoadedKernels load(const std::vector<PrimFunc>&, const Target&, KernelCache*) const override {
    return {{}, nullptr};
  }
  std::string text(CodeText, const std::vector<PrimFunc>&, const Target&) const override {
    return "";
  }
};

PrimFunc calls(const std::string& intrinsic) {
  Buffer out = buffer("out", DType::Float(32), {index(4)});
  Stmt body =
      store(out, {index(0)}, call(intrinsic, DType::Float(32), {imm_float(DType::Float(32), 0.5)}));
  return kernel("uses_" + intrinsic, {}, {out}, body);
}

std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Backend, a_target_without_a_code_generator_is_refused_by_name) {
  Target t = native_target();
  t.name = "elsewhere";
  t.arch = "mips64";
  std::string message = error_of([&] { backend_of(t); });
  EXPECT_NE(message.find("E0403"), std::string::npos) << message;
  EXPECT_NE(message.find("elsewhere"), std::string::npos) << message;
  EXPECT_NE(message.find("x86_64 (llvm), aarch64 (llvm), riscv64 (llvm)"), std::string::npos)
      << message;
}

TEST(Backend, the_kind_of_the_target_has_the_backend) {
  EXPECT_EQ(&backend_of(native_target()), &codegen::llvm_backend());
  Target t = native_target();
  t.kind = "abacus";
  std::string message = error_of([&] { backend_of(t); });
  EXPECT_NE(message.find("E0403"), std::string::npos) << message;
  EXPECT_NE(message.find("there is no kind of target 'abacus'"), std::string::npos) << message;
}

TEST(Backend, an_intrinsic_without_code_names_the_kernel) {
  std::string message = error_of([] {
    check_intrinsics(WithoutErf(), {calls("exp"), calls("erf")});
  });
  EXPECT_NE(message.find("E0401"), std::string::npos) << message;
  EXPECT_NE(message.find("kernel uses_erf calls erf"), std::string::npos) << message;
  for (const tir::Intrinsic& i : tir::intrinsics())
    EXPECT_TRUE(codegen::llvm_backend().has_intrinsic(i)) << i.name;
}

// One version for each length of vectors, without those that the version before has.
TEST(Targets, scalable_lists_the_lengths_that_are_not_there) {
  auto names = [](std::string_view text) {
    std::string out;
    for (const TargetVersion& v : target_versions(text)) {
      const Target t = parse_target(v.text);
      out += v.name + " " + std::to_string(t.vector_bits) + " " + std::to_string(t.panel_columns) +
             ", ";
    }
    return out;
  };
  EXPECT_EQ(names("aarch64-linux+scalable"),
            "aarch64-linux 128 32, aarch64-linux+sve256 256 32, aarch64-linux+sve512 512 32, ");
  EXPECT_EQ(names("riscv64-linux+scalable"),
            "riscv64-linux 128 64, riscv64-linux+v 128 64, riscv64-linux+zvl256b 256 64, "
            "riscv64-linux+zvl512b 512 64, riscv64-linux+zvl1024b 1024 64, ");
  EXPECT_EQ(names("rv64gcv+scalable"),
            "rv64gcv 128 64, rv64gcv+zvl256b 256 64, rv64gcv+zvl512b 512 64, "
            "rv64gcv+zvl1024b 1024 64, ");
  EXPECT_EQ(names("riscv64-linux+spacemit-x60+scalable"),
            "riscv64-linux 128 64, spacemit-x60 256 64, spacemit-x60+zvl512b 512 64, "
            "spacemit-x60+zvl1024b 1024 64, ");
  EXPECT_EQ(names("aarch64-linux+scalable -mcpu=a64fx"), "aarch64-linux 512 0, ");
  // A length has the registers, and a processor that code is tuned for brings none.
  EXPECT_TRUE(parse_target("riscv64-linux +zvl256b").has_feature("v"));
  EXPECT_EQ(parse_target("rv64gc -mtune=sifive-x280").vector_bits, 128);
  EXPECT_FALSE(parse_target("rv64gc -mtune=sifive-x280").has_feature("v"));
}

// An architecture has three parts: its row, LLVM's file and the runtime's table of what a processor offers.
TEST(Backend, every_architecture_has_its_parts) {
  for (const Architecture& a : architectures()) {
    const codegen::LlvmArchitecture* llvm = codegen::find_llvm_architecture(a.name);
    ASSERT_NE(llvm, nullptr) << a.name;
    EXPECT_FALSE(llvm->libm.empty()) << a.name;
    const Processors& processors = codegen::llvm_processors();
    EXPECT_TRUE(processors.features_of(a, a.generic_cpu)) << a.name;
    EXPECT_FALSE(processors.features_of(a, "nonsense")) << a.name;
    EXPECT_TRUE(a.tuned_cpu.empty() || processors.features_of(a, a.tuned_cpu)) << a.name;
    for (std::string_view f : a.checked_features) EXPECT_TRUE(processors.knows_feature(a, f)) << f;
    for (const Architecture::VectorLength& l : a.lengths) {
      EXPECT_EQ(processors.knows_feature(a, l.name), l.is_generators) << l.name;
      EXPECT_TRUE(processors.knows_feature(a, l.registers)) << l.registers;
    }
    EXPECT_FALSE(processors.knows_feature(a, "nonsense"));
    for (const Architecture::Level& l : a.levels) {
      Target t = parse_target(l.name);
      EXPECT_TRUE(backend_of(t).supports(t)) << l.name;
      // What the loader will ask for is not less than what vectors are made of.
      if (t.vector_bits > 128) {
        EXPECT_FALSE(t.required_features().empty()) << l.name;
      }
    }
  }
  ASSERT_NE(find_architecture(runtime::host_arch()), nullptr);
  EXPECT_TRUE(runs_here(least_target()));
}

// The summary of all tests (tools/count_results.py) says which code was executed and which compared by its model only.
TEST(Backend, levels_that_this_machine_runs_are_recorded) {
  std::string run, modelled;
  auto add = [&](std::string_view name, bool here) {
    std::string& list = here ? run : modelled;
    list += (list.empty() ? "" : ", ") + std::string(name);
  };
  const Architecture& arch = *find_architecture(runtime::host_arch());
  for (auto* level = arch.find_level(arch.least_level);
       level != arch.levels.data() + arch.levels.size(); ++level) {
    Target t = parse_target(std::string(level->name));
    add(level->name, runs_here(t));
  }
  for (std::string_view unit : {"avx512vnni", "avx512bf16", "amx-int8", "amx-bf16"}) {
    add(unit, runtime::host_has_feature(unit));
  }
  RecordProperty("generated code that was executed", run);
  RecordProperty("compared by its scalar model alone", modelled.empty() ? "none" : modelled);
  EXPECT_NE(run.find(arch.least_level), std::string::npos);
}

TEST(Backend, targets_know_processors_by_llvms_names) {
  EXPECT_EQ(parse_target("llvm -mcpu=znver4").vector_bits, 512);
  EXPECT_EQ(parse_target("llvm -mcpu=znver4 -mattr=-avx512f").vector_bits, 256);
  EXPECT_THROW(parse_target("native -mcpu=nonsense"), UserError);
  EXPECT_THROW(parse_target("native -mattr=+nonsense"), UserError);
  EXPECT_THROW(parse_target("llvm -mtriple=mips64-linux-gnu"), UserError);
  EXPECT_EQ(parse_target("aarch64-linux").features, parse_target("armv8-a").features);
  EXPECT_EQ(parse_target("aarch64-linux -mcpu=cortex-a76").l2_bytes, 512 << 10);
  EXPECT_THROW(parse_target("aarch64-linux -mcpu=znver4"), UserError);
  EXPECT_THROW(parse_target("aarch64-linux -mattr=+avx2"), UserError);
  auto message = [](const char* text) { return error_of([&] { parse_target(text); }); };
  EXPECT_NE(message("aarch64-linux -mcpu=znver4").find("x86_64-linux -mcpu=znver4"),
            std::string::npos);
  EXPECT_NE(message("aarch64-linux +avx2").find("avx2 is a feature of x86_64"), std::string::npos);
  EXPECT_NE(message("aarch64-linux -mcpu=cortex-a67").find("did you mean cortex-a76"),
            std::string::npos);
  EXPECT_THROW(parse_target("armv8.4-a -mcpu=cortex-a76"), UserError);
}

TEST(Backend, addresses_of_armv7_have_32_bits) {
  Target t = parse_target("armv7-linux");
  EXPECT_EQ(t.pointer_bits, 32);
  EXPECT_EQ(t.index_bits, 32);
  EXPECT_TRUE(t.has_fma);
  EXPECT_EQ(parse_target("llvm -mtriple=armv7-linux-gnueabihf").triple, t.triple);
  EXPECT_THROW(parse_target("llvm -mtriple=armv7-linux-gnu"), UserError);
  EXPECT_FALSE(parse_target("armv7-linux -mcpu=cortex-a8").has_fma);
  // Without vectors, and of another architecture.
  EXPECT_THROW(parse_target("armv7-linux -mcpu=cortex-m4"), UserError);
  EXPECT_THROW(parse_target("armv7-linux -mcpu=cortex-a53"), UserError);
  EXPECT_FALSE(parse_target("armv7-linux -denormals=keep").has_feature("neon"));
  EXPECT_EQ(parse_target("aarch64-linux").pointer_bits, 64);
}

TEST(Backend, a_program_has_a_host_and_devices) {
  ProgramTarget alone = parse_program_target("x86-64-v3 -num-threads=2");
  EXPECT_EQ(alone.host.num_cores, 2);
  EXPECT_TRUE(alone.devices.empty());
  ProgramTarget both = parse_program_target("x86-64-v2; x86-64-v3 -num-threads=2 ;x86-64-v4");
  EXPECT_EQ(both.host.name, "x86-64-v2");
  ASSERT_EQ(both.devices.size(), 2u);
  EXPECT_EQ(both.devices[0].num_cores, 2);
  EXPECT_EQ(both.devices[1].name, "x86-64-v4");
  for (const char* text : {"", ";", "native;", "; native", "native; nativ"}) {
    EXPECT_THROW(parse_program_target(text), UserError) << text;
  }
}

// RELAY_HOST while it lives.
class Host {
 public:
  explicit Host(const std::string& name) { setenv("RELAY_HOST", name.c_str(), 1); }
  ~Host() {
    if (before_) {
      setenv("RELAY_HOST", before_->c_str(), 1);
    } else {
      unsetenv("RELAY_HOST");
    }
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

 private:
  const std::optional<std::string> before_ = std::getenv("RELAY_HOST") == nullptr
                                                 ? std::nullopt
                                                 : std::optional(std::getenv("RELAY_HOST"));
};

TEST(Backend, tests_compile_for_machines_that_they_do_not_run_on) {
  PrimFunc f = calls("exp");
  std::set<std::string> seen;
  auto code = [&](const Target& t) { return backend_of(t).compile({f}, t, 1, nullptr).front(); };
  const std::string named = code(parse_target("x86-64-v3"));
  for (const TestHost& row : test_hosts()) {
    Host host{std::string(row.name)};
    Target t = native_target();
    EXPECT_EQ(t.name, "native");
    EXPECT_TRUE(seen.insert(t.features).second) << row.name;
    EXPECT_FALSE(code(t).empty());
    EXPECT_EQ(code(parse_target("x86-64-v3")), named) << row.name;
    if (!runs_here(t)) {
      EXPECT_NE(error_of([&] { load_kernels({f}, t); }).find("this processor lacks"),
                std::string::npos);
    }
  }
  Host host("z80");
  EXPECT_NE(error_of([] { native_target(); }).find("E0403"), std::string::npos);
}

}  // namespace
}  // namespace relay::codegen_test
