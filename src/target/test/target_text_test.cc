#include "target/processor_text.h"

#include <gtest/gtest.h>

#include "base/diagnostic.h"
#include "target/target_versions.h"

namespace relay {
namespace {

// A machine with AVX2, and a code generator that knows one processor.
class Known : public Processors {
 public:
  Target host() const override {
    Target t;
    t.arch = "x86_64";
    t.triple = "x86_64-pc-linux-gnu";
    t.cpu = "here";
    t.features = "+avx,+avx2,+fma";
    find_architecture(t.arch)->derive(t);
    t.num_cores = 6;
    t.l1_bytes = 48 << 10;
    t.l2_bytes = 3 << 20;
    t.l3_bytes = 100 << 20;
    return t;
  }
  bool has_code_for(const Architecture& arch) const override { return arch.name == "x86_64"; }
  std::optional<std::string> features_of(const Architecture&, std::string_view cpu) const override {
    if (cpu == "znver1") return "+sse3,+avx,+avx2,+fma,+f16c,+sse4a";
    if (cpu != "big") return std::nullopt;
    return "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16,+f16c,"
           "+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512bf16,+amx-bf16";
  }
  bool knows_feature(const Architecture&, std::string_view feature) const override {
    return feature == "avx2" || feature == "avx512f" || feature == "f16c" ||
           feature == "avx512bf16";
  }
};

// Code for processors whose vectors have several lengths.
class Arm : public Known {
 public:
  bool has_code_for(const Architecture& arch) const override { return arch.name == "aarch64"; }
  std::optional<std::string> features_of(const Architecture&, std::string_view cpu) const override {
    if (cpu != "a64fx") return std::nullopt;
    return "+neon,+sve";
  }
  bool knows_feature(const Architecture&, std::string_view feature) const override {
    return feature == "sve" || feature == "bf16";
  }
};

// A kind whose targets have units.
class Units : public TargetReader {
 public:
  std::vector<std::string> names() const override { return {"npu", "npu-small"}; }
  std::span<const TargetOption> options() const override {
    static constexpr TargetOption kOptions[] = {{"-units", "N", "Units."},
                                                {"-num-threads", "N", "Threads of a unit."}};
    return kOptions;
  }
  Target read(const TargetWords& words) const override {
    Target t;
    t.name = words.name();
    const std::string units = words.value_of("-units");
    if (!units.empty()) t.num_cores = std::stoi(units);
    if (words.name() == "npu-small") t.limits.items.units = 2;
    if (t.num_cores > 8) words.refuse("-units=" + units, "-units=1 to 8");
    return t;
  }
};

Target read(const std::string& text) {
  static const Known known;
  static const ProcessorReader processors(known);
  static const Units units;
  TargetKind cpu, npu;
  cpu.name = "cpu";
  npu.name = "npu";
  npu.index_bits = npu.pointer_bits = 32;
  npu.limits.stack_bytes = 1 << 10;
  npu.limits.items.shared_bytes = 100 << 10;
  return read_target(text, std::vector<KindReader>{{&cpu, &processors}, {&npu, &units}});
}

std::string error(const std::string& text, const char* code = "E0403") {
  try {
    read(text);
  } catch (const UserError& e) {
    EXPECT_EQ(e.diagnostics().front().code, code) << e.what();
    return e.what();
  }
  ADD_FAILURE() << text << " is accepted";
  return "";
}

bool says(const std::string& text, const std::string& part, const char* code = "E0403") {
  std::string message = error(text, code);
  return message.find(part) != std::string::npos;
}

TEST(TargetText, this_machine) {
  EXPECT_EQ(read("native").describe(), "native: here, 256-bit vectors, 6 cores");
  EXPECT_EQ(read("llvm").cpu, "here");
  EXPECT_EQ(read(" native   -num-threads=1 ").num_cores, 1);
}

TEST(TargetText, a_part_of_a_list_and_a_word_said_again) {
  EXPECT_EQ(TargetWords(" npu -units=2 ").text(), "npu -units=2");
  EXPECT_EQ(TargetWords(" ").text(), "");
  EXPECT_EQ(read("npu -units=2 -units=2").num_cores, 2);
  EXPECT_TRUE(says("npu -units=2 -units=3", "-units is said twice"));
  EXPECT_EQ(TargetWords("cuda +tf32 -mattr=+tf32").value_of("-mattr"), "+tf32");
}

TEST(TargetText, work_items_are_the_kinds_unless_the_words_say_them) {
  EXPECT_EQ(read("npu").limits.items.shared_bytes, 100 << 10);
  EXPECT_EQ(read("npu").limits.stack_bytes, 1 << 10);
  EXPECT_EQ(read("npu-small").limits.items.units, 2);
  EXPECT_EQ(read("npu-small").limits.items.shared_bytes, WorkItemLimits().shared_bytes);
  EXPECT_EQ(read("native").limits.items.shared_bytes, WorkItemLimits().shared_bytes);
}

TEST(TargetText, levels_say_vectors_and_registers) {
  EXPECT_EQ(read("x86-64-v2").lanes(32), 4);
  EXPECT_EQ(read("x86-64-v3").lanes(32), 8);
  EXPECT_TRUE(read("x86-64-v3").converts_float16);
  EXPECT_EQ(read("x86-64-v4").num_vector_registers, 32);
  EXPECT_EQ(read("x86-64-v4").cpu, "x86-64");
}

// Caches and cores: "32K 256K 8M, 4 cores".
std::string machine(const std::string& text) {
  Target t = read(text);
  return std::to_string(t.l1_bytes >> 10) + "K " + std::to_string(t.l2_bytes >> 10) + "K " +
         std::to_string(t.l3_bytes >> 20) + "M, " + std::to_string(t.num_cores) + " cores";
}

TEST(TargetText, a_named_target_takes_nothing_from_this_machine) {
  EXPECT_EQ(machine("native"), "48K 3072K 100M, 6 cores");
  EXPECT_EQ(machine("llvm -mattr=+f16c"), "48K 3072K 100M, 6 cores");
  EXPECT_EQ(machine("x86-64-v2"), "32K 256K 8M, 4 cores");
  EXPECT_EQ(machine("x86-64-v4"), "32K 1024K 32M, 8 cores");
  EXPECT_EQ(machine("llvm -mcpu=znver1"), "32K 512K 8M, 4 cores");
  // A processor without a row has the caches of the level that it reaches.
  EXPECT_EQ(machine("llvm -mcpu=big"), machine("x86-64-v2"));
  for (const char* text : {"x86-64-v3", "llvm -mcpu=big", "llvm -mcpu=znver1 -mattr=+f16c"}) {
    EXPECT_EQ(read(text).triple, "x86_64-unknown-linux-gnu") << text;
  }
}

TEST(TargetText, an_architecture_is_its_least_processor_or_one_by_name) {
  EXPECT_EQ(read("x86_64-linux").features, read("x86-64").features);
  EXPECT_EQ(machine("x86_64-linux -mcpu=znver1"), machine("llvm -mcpu=znver1"));
  EXPECT_EQ(read("x86_64-linux -mcpu=znver1").features, read("llvm -mcpu=znver1").features);
  EXPECT_TRUE(says("x86_64-linux -mcpu=small", "small"));
  EXPECT_TRUE(says("x86_64-linux -mtriple=aarch64-linux-gnu", "aarch64-linux-gnu"));
  EXPECT_TRUE(says("aarch64-linux", "x86_64-linux"));
}

TEST(TargetText, lengths_of_vectors_are_features) {
  static const Arm arm;
  auto read_arm = [](const std::string& text) {
    return ProcessorReader(arm).read(TargetWords(text));
  };
  const Target t = read_arm("aarch64-linux +sve256");
  EXPECT_EQ(t.vector_bits, 256);
  EXPECT_EQ(t.features, "+fp-armv8,+neon,+sve,+sve256");
  EXPECT_EQ(code_features(t), "+fp-armv8,+neon,+sve");
  EXPECT_EQ(t.required_features(), (std::vector<std::string>{"neon", "fp-armv8", "sve", "sve256"}));
  EXPECT_EQ(read_arm("aarch64-linux +sve256,+sve512").vector_bits, 512);
  EXPECT_EQ(read_arm("aarch64-linux -mcpu=a64fx").vector_bits, 512);
  for (const char* text : {"aarch64-linux +sve", "aarch64-linux +sve256 -mattr=-sve256",
                           "aarch64-linux +sve256 -mattr=-sve", "armv8.6-a",
                           "aarch64-linux -mcpu=a64fx -mattr=-sve512"}) {
    EXPECT_EQ(read_arm(text).vector_bits, 128) << text;
  }
  try {
    read_arm("aarch64-linux +sve511");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean"), std::string::npos) << e.what();
  }
  EXPECT_TRUE(says("x86-64-v3 +sve256", "sve256 is a feature of aarch64"));
  // Products of bfloat16 take subnormal numbers for zero whatever the mode is.
  EXPECT_FALSE(read_arm("armv8.6-a -denormals=keep").has_feature("bf16"));
}

// A processor whose row says that long vectors are slower keeps short ones.
TEST(TargetText, a_machine_has_the_lengths_that_its_processor_is_faster_with) {
  using Lengths = std::vector<std::string>;
  auto on = [](const char* cpu, int64_t bits) {
    const Architecture& arm = *find_architecture("aarch64");
    return arm.lengths_on(
        cpu, [&](std::string_view length) { return arm.find_length(length)->bits <= bits; });
  };
  EXPECT_EQ(on("neoverse-v1", 256), Lengths{});
  EXPECT_EQ(on("a64fx", 512), Lengths{"+sve512"});
  EXPECT_EQ(on("a64fx", 256), Lengths{});
  EXPECT_EQ(on("unheard-of", 512), (Lengths{"+sve256", "+sve512"}));
  EXPECT_EQ(on("unheard-of", 256), Lengths{"+sve256"});
  EXPECT_EQ(on("unheard-of", 128), Lengths{});
  const Architecture& riscv = *find_architecture("riscv64");
  auto offers = [&](std::string_view length) { return riscv.find_length(length)->bits <= 512; };
  EXPECT_EQ(riscv.lengths_on("unheard-of", offers), (Lengths{"+v", "+zvl256b", "+zvl512b"}));
  EXPECT_EQ(riscv.lengths_on("spacemit-x60", offers), Lengths{"+zvl256b"});
  EXPECT_EQ(riscv.lengths_on("sifive-u74", offers), Lengths{});
}

TEST(TargetText, words_say_caches_and_cores) {
  EXPECT_EQ(machine("x86-64-v4 -l1=48K -l2=2M -l3=1G -num-threads=3"), "48K 2048K 1024M, 3 cores");
  EXPECT_EQ(machine("native -l2=1048576"), "48K 1024K 100M, 6 cores");
  for (const char* size :
       {"0", "-1M", "1", "1023", "5G", "1T", "M", "1.5M", "1m", "99999999999K"}) {
    EXPECT_TRUE(says(std::string("x86-64-v4 -l2=") + size, "-l2=1K to 4G")) << size;
  }
  EXPECT_TRUE(says("x86-64-v4 -l3", "-l3=SIZE"));
  EXPECT_TRUE(says("x86-64-v4 -l3=1M -l3=2M", "twice"));
}

TEST(TargetText, names_that_are_close_are_suggested) {
  EXPECT_TRUE(says("llvm -mcpu=znver14", "did you mean znver1, znver4, znver2?"));
  EXPECT_TRUE(says("x86_64-linux -mcpu=sapphirerapid", "did you mean sapphirerapids?"));
  EXPECT_TRUE(says("x86-64-v2 +avx512vnn", "did you mean avx512vnni"));
  EXPECT_TRUE(says("x86-64-v2 -mattr=avx2", "write +avx2 or -avx2"));
  EXPECT_TRUE(says("x86-46-v3", "did you mean x86-64-v3"));
  EXPECT_FALSE(says("llvm -mcpu=z80", "did you mean"));
}

std::string versions(const std::string& text) {
  std::string out;
  try {
    for (const TargetVersion& v : split_versions(text)) out += v.name + " = " + v.text + ", ";
  } catch (const UserError& e) {
    EXPECT_EQ(e.diagnostics().front().code, "E1505");
    return e.what();
  }
  return out;
}

TEST(TargetText, versions_are_levels_processors_and_features) {
  EXPECT_EQ(versions("x86-64-v3 +f16c"), "x86-64-v3 +f16c = x86-64-v3 +f16c, ");
  EXPECT_EQ(versions("x86-64-v2+v3 -l2=1M; npu"),
            "x86-64-v2 = x86-64-v2 -l2=1M; npu, x86-64-v3 = x86-64-v3 -l2=1M; npu, ");
  EXPECT_EQ(versions("x86-64+v2+x86-64-v4"),
            "x86-64 = x86-64, x86-64-v2 = x86-64-v2, x86-64-v4 = x86-64-v4, ");
  EXPECT_EQ(versions("x86-64-v3+sapphirerapids+avx512fp16"),
            "x86-64-v3 = x86-64-v3, sapphirerapids = x86_64-linux -mcpu=sapphirerapids, "
            "sapphirerapids+avx512fp16 = x86_64-linux -mcpu=sapphirerapids +avx512fp16, ");
  EXPECT_EQ(versions("aarch64-linux+dotprod+i8mm"),
            "aarch64-linux = aarch64-linux, aarch64-linux+dotprod = aarch64-linux +dotprod, "
            "aarch64-linux+dotprod+i8mm = aarch64-linux +dotprod +i8mm, ");
  EXPECT_EQ(versions("aarch64-linux+dotprod+scalable -l2=1M"),
            "aarch64-linux = aarch64-linux -l2=1M, "
            "aarch64-linux+dotprod = aarch64-linux +dotprod -l2=1M, "
            "aarch64-linux+dotprod+sve256 = aarch64-linux +dotprod +sve256 -l2=1M, "
            "aarch64-linux+dotprod+sve512 = aarch64-linux +dotprod +sve512 -l2=1M, ");
  for (const char* text : {"x86-64-v3+scalable", "armv7-linux+scalable", "native+v3", "npu+v2",
                           "x86-64-v2+", "x86-64-v2+armv8-a"}) {
    EXPECT_NE(versions(text).find("do not go together"), std::string::npos) << text;
  }
}

TEST(TargetText, tuning_keeps_the_features) {
  Target t = read("x86-64-v4 -mtune=znver1");
  EXPECT_EQ(t.cpu, "znver1");
  EXPECT_EQ(t.vector_bits, 512);
  EXPECT_FALSE(t.has_feature("sse4a"));
  EXPECT_EQ(t.required_features(), read("x86-64-v4").required_features());
  EXPECT_EQ(machine("x86-64-v4 -mtune=znver1"), "32K 512K 8M, 4 cores");
  EXPECT_EQ(machine("x86-64-v4 -mtune=znver1 -l2=1M"), "32K 1024K 8M, 4 cores");
  EXPECT_EQ(read("x86-64-v2 -mtune=znver1 -mattr=+avx2").vector_bits, 256);
  EXPECT_EQ(read("native -mtune=big").vector_bits, 256);
  EXPECT_TRUE(says("x86-64-v4 -mtune=small", "small"));
}

TEST(TargetText, kept_denormals_leave_out_what_flushes) {
  const Target big = read("llvm -mcpu=big"), flushes = read("llvm -mcpu=big -denormals=flush");
  EXPECT_FALSE(big.keeps_denormals || flushes.keeps_denormals);
  EXPECT_TRUE(big.has_feature("avx512bf16") && big.has_feature("amx-bf16"));
  EXPECT_EQ(flushes.features, big.features);
  const Target kept = read("llvm -mcpu=big -denormals=keep");
  EXPECT_TRUE(kept.keeps_denormals);
  EXPECT_EQ(kept.vector_bits, big.vector_bits);
  for (std::string_view f : find_architecture("x86_64")->flushing_features) {
    EXPECT_FALSE(kept.has_feature(f)) << f;
  }
  EXPECT_TRUE(says("llvm -mcpu=big -mattr=+avx512bf16 -denormals=keep", "avx512bf16"));
  EXPECT_TRUE(says("native -denormals=zero", "-denormals=keep"));
}

TEST(TargetText, every_option_is_used) {
  EXPECT_EQ(read("llvm -mcpu=big").vector_bits, 512);
  EXPECT_EQ(read("llvm -mcpu=big -mattr=-avx512f").vector_bits, 128);
  EXPECT_EQ(read("llvm -mattr=-avx512f -mcpu=big").vector_bits, 128);
  EXPECT_TRUE(read("native +f16c").converts_float16);
  EXPECT_TRUE(read("native -mattr=+f16c -keys=cpu -mtriple=x86_64-linux-gnu").converts_float16);
  // The triple of the same architecture leaves this machine's.
  EXPECT_EQ(read("llvm -mtriple=x86_64-unknown-linux-gnu").triple, "x86_64-pc-linux-gnu");
  const ProcessorReader processors{Known()};
  for (std::span<const TargetOption> list : {target_options(), processors.options()}) {
    for (const TargetOption& o : list) {
      EXPECT_TRUE(says("native " + std::string(o.name) + "=@", "@")) << o.name;
    }
  }
}

TEST(TargetText, what_is_not_there_is_refused_by_name) {
  EXPECT_TRUE(says("llvm -mtriple=aarch64-linux-gnu", "aarch64-linux-gnu"));
  EXPECT_TRUE(says("llvm -mtriple=aarch64-linux-gnu", "x86_64-unknown-linux-gnu"));
  EXPECT_TRUE(says("llvm -mtriple=x86_64-apple-darwin", "x86_64-apple-darwin"));
  EXPECT_TRUE(says("llvm -mtriple=x86_64-linux-musl", "x86_64-linux-musl"));
  EXPECT_TRUE(says("llvm -keys=cuda,gpu", "-keys=cpu"));
  EXPECT_TRUE(says("llvm -mattr=+neon", "+neon"));
  EXPECT_TRUE(says("llvm -mattr=avx2", "avx2"));
  EXPECT_TRUE(says("llvm -mcpu=small", "small"));
  EXPECT_TRUE(says("x86-64-v9", "x86-64-v4"));
  EXPECT_TRUE(says("nativ", "native"));
  EXPECT_TRUE(says("", "native"));
  EXPECT_TRUE(says("llvm -opt-level=2", "-mcpu=CPU"));
  EXPECT_TRUE(says("llvm -mcpu", "-mcpu=CPU"));
  for (const char* threads : {"0", "-1", "1025", "3x", "1e9", "99999999999"}) {
    error(std::string("native -num-threads=") + threads);
  }
}

TEST(TargetText, contradictions_are_refused) {
  EXPECT_TRUE(says("x86-64-v2 -mcpu=big", "llvm -mcpu=big"));
  EXPECT_TRUE(says("native -mcpu=big", "llvm -mcpu=big"));
  EXPECT_TRUE(says("llvm -mcpu=big -mcpu=here", "twice"));
}

TEST(TargetText, each_kind_reads_its_own_words) {
  const Target npu = read("npu-small -units=4 -keys=npu");
  EXPECT_EQ(npu.kind, "npu");
  EXPECT_EQ(npu.num_cores, 4);
  EXPECT_EQ(npu.index_bits, 32);
  EXPECT_EQ(npu.pointer_bits, 32);
  EXPECT_EQ(npu.limits.stack_bytes, 1 << 10);
  EXPECT_EQ(npu.describe(), "npu-small: npu, 128-bit vectors, 4 cores");
  EXPECT_EQ(read("native -keys=cpu").kind, "cpu");
  EXPECT_EQ(read("native").index_bits, 64);
  // An option of both is that of the kind.
  EXPECT_EQ(read("npu -num-threads=3").num_cores, 1);
  EXPECT_TRUE(says("npu -units=9", "-units=1 to 8"));
  EXPECT_TRUE(says("npu -unit=2", "-units=N, -num-threads=N, -keys=KIND"));
  EXPECT_TRUE(
      says("gpu",
           "native, llvm, x86_64-linux, x86-64, x86-64-v2, x86-64-v3, x86-64-v4, npu, npu-small"));
}

TEST(TargetText, words_of_two_kinds_E0406) {
  for (const char* text : {"native -units=4", "llvm -mcpu=big -units", "npu -mcpu=big", "npu +avx2",
                           "npu -keys=cpu", "x86-64-v3 -keys=npu -num-threads=2"}) {
    EXPECT_TRUE(says(text, "words of two kinds", "E0406")) << text;
  }
  EXPECT_TRUE(says("npu -units=4 -l2=1M", "npu is a npu, -l2=1M belongs to cpu", "E0406"));
  EXPECT_TRUE(says("npu -l2=1M", "npu with words of npu, or one of native, llvm", "E0406"));
  // A name that two kinds have is neither's.
  static const Units units;
  TargetKind first, second;
  first.name = "first";
  second.name = "second";
  try {
    read_target("npu", std::vector<KindReader>{{&first, &units}, {&second, &units}});
    ADD_FAILURE() << "the name is accepted";
  } catch (const UserError& e) {
    EXPECT_EQ(e.diagnostics().front().code, "E0406") << e.what();
  }
}

void is_whole(const Machine& m, std::string_view name) {
  EXPECT_GE(m.l1_bytes, 16 << 10) << name;
  EXPECT_GT(m.l2_bytes, m.l1_bytes) << name;
  EXPECT_GT(m.l3_bytes, m.l2_bytes) << name;
  EXPECT_GE(m.num_cores, 1) << name;
}

TEST(Architectures, each_row_is_whole) {
  for (const Architecture& a : architectures()) {
    EXPECT_EQ(find_architecture(a.name), &a);
    EXPECT_TRUE(a.triple.starts_with(std::string(a.name) + "-")) << a.name;
    ASSERT_NE(a.find_level(a.least_level), nullptr) << a.name;
    EXPECT_FALSE(a.checked_features.empty()) << a.name;
    ASSERT_NE(a.derive, nullptr) << a.name;
    for (const Architecture::Level& l : a.levels) {
      Target t;
      t.arch = a.name;
      t.features = l.features;
      a.derive(t);
      EXPECT_GE(t.vector_bits, 128) << l.name;
      is_whole(l.machine, l.name);
    }
    for (const Architecture::Processor& p : a.processors) is_whole(p.machine, p.name);
  }
}

}  // namespace
}  // namespace relay
