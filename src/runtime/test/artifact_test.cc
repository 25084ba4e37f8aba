// Artifacts: round trip, damage, other versions and processors, files; the C interface.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "relay/c_api.h"
#include "runtime/artifact.h"
#include "runtime/checksum.h"
#include "runtime/cpu.h"
#include "runtime/elf_image.h"
#include "runtime/external_kernels.h"
#include "runtime/module.h"
#include "runtime/temporary_file.h"

namespace relay::runtime {
namespace {

using namespace artifact_format;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<long>(bytes.size()));
}

// main(x) = twice(x) + c, on the kernels of test/kernels.c.
class ArtifactTest : public testing::Test {
 protected:
  ArtifactTest() {
    folder = std::filesystem::temp_directory_path() /
             ("relay_artifact_" + std::to_string(getpid()) + "_" +
              testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder);
    elf = read_file(RELAY_TEST_KERNELS);
    program.kernels = {{"twice", "double1", {32, 32}, 1, 0, 8, 64},
                       {"add", "add1", {32, 32, 32}, 1, 0, 8, 96}};
    Tensor c = Tensor::empty(DType::Float(32), {8});
    for (int i = 0; i < 8; ++i) c.set_from_int(i, 100);
    // Constants of odd sizes around it, so that alignment matters.
    program.constants = {Tensor::zeros(DType::Int(8), {13}), c, Tensor::empty(DType::Bool(), {0}),
                         Tensor::scalar(3, DType::BFloat16())};
    FunctionBuilder f("main");
    TensorSpec type{DType::Float(32), {8}, {}};
    f.param("x", type);
    f.result("y", type);
    int64_t hidden = f.arena(32);
    f.invoke_kernel(0, {Operand::reg(0), Operand::arena(hidden, 32)});
    f.invoke_kernel(1, {Operand::arena(hidden, 32), Operand::constant(1), Operand::output(0)});
    f.ret_outputs();
    program.functions.push_back(std::move(f).finish());
    info.arch = host_arch();
    info.compiler_version = "0.1.0";
  }
  ~ArtifactTest() override { std::filesystem::remove_all(folder); }

  ArtifactContents contents() const { return {elf, &program, "{\"model\": \"test\"}", info}; }
  std::string path(const char* name) const { return (folder / name).string(); }

  static void expect_works(const Module& m) {
    Tensor x = Tensor::zeros(DType::Float(32), {8});
    x.set_from_int(3, 21);
    EXPECT_EQ(m.run("main", {x})[0].get_as_double(3), 142);
  }
  // The code of the error that loading these bytes ends in; "" when they load.
  static std::string load_error(std::string_view bytes) {
    try {
      Module::from_bytes(bytes);
    } catch (const Error& error) {
      last_text = error.what();
      return error.diagnostics().empty() ? "internal" : std::string(error.diagnostics()[0].code);
    }
    return "";
  }
  static Footer footer(const std::string& bytes) {
    Footer f;
    std::memcpy(&f, bytes.data() + bytes.size() - sizeof(f), sizeof(f));
    return f;
  }
  // Puts a changed footer in place, its own checksum made right again.
  static std::string with_footer(std::string bytes, Footer f) {
    f.checksum = checksum({reinterpret_cast<const char*>(&f), offsetof(Footer, checksum)});
    std::memcpy(bytes.data() + bytes.size() - sizeof(f), &f, sizeof(f));
    return bytes;
  }

  // The bytes with the program as artifacts of an older format have it, in place of the one there.
  static void replace_program(std::string& bytes, Footer& f, const Program& program,
                              uint32_t format) {
    auto& code = f.sections[kProgram];
    const std::string old = write_program(program, format);
    ASSERT_LT(old.size(), code.size);
    bytes.replace(code.offset, code.size, old + std::string(code.size - old.size(), '\0'));
    code.size = old.size();
    code.checksum = checksum(old);
  }

  // The index as formats before 14 have it: without the length of the version's name, behind that of the libraries and the
  // mode for denormals.
  void without_name(std::string& bytes, Footer& f) const {
    constexpr size_t kNumber = sizeof(uint64_t);
    auto& index = f.sections[kIndex];
    std::string part = bytes.substr(index.offset, index.size);
    part.erase(7 * kNumber + info.arch.size() + info.compiler_version.size(), kNumber);
    bytes.replace(index.offset, index.size, part + std::string(kNumber, '\0'));
    index.size = part.size();
    index.checksum = checksum(part);
  }

  std::filesystem::path folder;
  std::string elf;
  Program program;
  ArtifactInfo info;
  static inline std::string last_text;
};

TEST_F(ArtifactTest, round_trip_through_a_file_and_memory) {
  write_artifact_file(contents(), path("m.so"));
  std::string bytes = write_artifact(contents());
  EXPECT_EQ(read_file(path("m.so")), bytes);
  EXPECT_EQ(write_artifact(contents()), bytes);
  for (const Module& m : {Module::load(path("m.so")), Module::from_bytes(bytes),
                          Module::from_elf(elf, program, "{}", info)}) {
    expect_works(m);
  }
  Module m = Module::load(path("m.so"));
  EXPECT_EQ(m.metadata(), "{\"model\": \"test\"}");
  EXPECT_EQ(m.info().compiler_version, "0.1.0");
  ASSERT_EQ(m.program().constants.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const Tensor& t = m.program().constants[i];
    EXPECT_TRUE(bit_equal(t, program.constants[i])) << i;
    EXPECT_TRUE(t.read_only());
    if (t.num_elements() > 0) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % 64, 0u);
    }
  }
}

TEST_F(ArtifactTest, constants_outlive_their_module) {
  Tensor constant = Module::from_bytes(write_artifact(contents())).program().constants[1];
  EXPECT_EQ(constant.get_as_double(7), 100);
}

// What the model gives for zeros: the constant that it adds.
double answer(const Module& m) {
  return m.run("main", {Tensor::zeros(DType::Float(32), {8})})[0].get_as_double(0);
}

TEST_F(ArtifactTest, what_is_loaded_twice_and_dropped_leaves_no_trace) {
  for (int i = 0; i < 2; ++i) {
    program.constants[1].set_from_int(0, i);
    write_artifact_file(contents(), path(i == 0 ? "0.so" : "1.so"));
  }
  Module first = Module::load(path("0.so"));
  EXPECT_EQ(answer(Module::load(path("0.so"))), 0);
  EXPECT_EQ(answer(Module::load(path("1.so"))), 1);
  EXPECT_EQ(answer(first), 0);
}

TEST_F(ArtifactTest, equal_contents_are_shared_and_others_are_not) {
  write_artifact_file(contents(), path("m.so"));
  std::filesystem::copy_file(path("m.so"), path("copy.so"));
  Module m = Module::load(path("m.so"));
  EXPECT_EQ(&Module::load(path("copy.so")).program(), &m.program());
  EXPECT_EQ(&Module::from_bytes(read_file(path("m.so"))).program(), &m.program());
  program.constants[1].set_from_int(0, 7);
  Module other = Module::from_bytes(write_artifact(contents()));
  EXPECT_NE(&other.program(), &m.program());
  EXPECT_EQ(answer(other), 7);
  EXPECT_EQ(answer(m), 100);
}

TEST_F(ArtifactTest, threads_that_load_and_drop_never_see_another_artifact) {
  constexpr int kArtifacts = 20, kThreads = 8, kLoads = 10'000;
  for (int i = 0; i < kArtifacts; ++i) {
    program.constants[1].set_from_int(0, i);
    write_artifact_file(contents(), path(("m" + std::to_string(i) + ".so").c_str()));
  }
  std::atomic<int> next{0}, wrong{0};
  auto work = [&](uint32_t seed) {
    std::vector<std::pair<relay_session*, int>> kept;
    auto drop = [&](size_t at) {
      relay_session_free(kept[at].first);
      kept[at] = kept.back();
      kept.pop_back();
    };
    std::minstd_rand random(seed);
    while (next.fetch_add(1) < kLoads) {
      int which = static_cast<int>(random() % kArtifacts);
      relay_module* module = nullptr;
      relay_session* session = nullptr;
      relay_tensor y{};
      float x[8] = {};
      int64_t shape[1] = {8};
      relay_tensor_type type{RELAY_FLOAT, 32, 1, shape, 0, 0};
      bool right = relay_module_load(path(("m" + std::to_string(which) + ".so").c_str()).c_str(), 1,
                                     &module) == RELAY_OK &&
                   relay_session_create(module, "main", &session) == RELAY_OK;
      relay_module_free(module);
      if (right) kept.emplace_back(session, which);
      // An old one is asked as often as the new one.
      for (int round = 0; round < 2 && right; ++round) {
        auto [s, expected] = round == 0 ? kept.back() : kept[random() % kept.size()];
        right = relay_session_set_input(s, 0, x, &type) == RELAY_OK &&
                relay_session_run(s) == RELAY_OK && relay_session_output(s, 0, &y) == RELAY_OK &&
                static_cast<const float*>(y.data)[0] == static_cast<float>(expected);
      }
      if (!right) ++wrong;
      while (kept.size() > 6) drop(random() % kept.size());
    }
    while (!kept.empty()) drop(0);
  };
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t) threads.emplace_back(work, t + 1);
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

// The status with which a child process ends that runs `f`.
template <typename F>
int in_child(F&& f) {
  pid_t child = fork();
  if (child == 0) {
    int code = 1;
    try {
      code = f();
    } catch (const std::exception& error) {
      std::fputs(error.what(), stderr);
    }
    _exit(code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_F(ArtifactTest, loads_without_proc_folders_to_write_or_descriptors) {
  write_artifact_file(contents(), path("m.so"));
  std::string bytes = read_file(path("m.so"));
  int result = in_child([&] {
    // An empty root: no /proc, no /dev, no temporary folder. The libraries are loaded already.
    Module warm = Module::load(path("m.so"));
    if (unshare(CLONE_NEWUSER) != 0 && geteuid() != 0) return 77;
    if (chroot(folder.c_str()) != 0 || chdir("/") != 0) return 77;
    program.constants[1].set_from_int(0, 5);
    write_artifact_file(contents(), "/n.so");
    setenv("TMPDIR", "/nowhere", 1);
    // Of files that may be written no byte may be, and no descriptor stays open.
    rlimit none{0, 0}, few{16, 16};
    setrlimit(RLIMIT_FSIZE, &none);
    setrlimit(RLIMIT_NOFILE, &few);
    std::vector<Module> kept;
    for (int i = 0; i < 100; ++i) {
      kept.push_back(Module::load("/n.so"));
      if (answer(kept.back()) != 5 || answer(Module::load("/m.so")) != 100) return 2;
    }
    return 0;
  });
  if (result == 77) GTEST_SKIP() << "no other root";
  EXPECT_EQ(result, 0);
}

TEST_F(ArtifactTest, loads_where_written_memory_may_not_be_executed) {
  write_artifact_file(contents(), path("m.so"));
  int result = in_child([&] {
    constexpr int kSetMdwe = 65;  // PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN
    if (prctl(kSetMdwe, 1, 0, 0, 0) != 0) return 77;
    return answer(Module::load(path("m.so"))) == 100 ? 0 : 2;
  });
  if (result == 77) GTEST_SKIP() << "the system knows no such rule";
  EXPECT_EQ(result, 0);
}

TEST_F(ArtifactTest, must_fail_E0608_code_of_another_artifact) {
  std::string one = write_artifact(contents());
  program.constants[1].set_from_int(0, 7);
  std::string two = write_artifact(contents());
  Footer f = footer(one);
  ASSERT_EQ(f.sections[kElf].size, footer(two).sections[kElf].size);
  two.replace(0, f.sections[kElf].size, one, 0, f.sections[kElf].size);
  Footer g = footer(two);
  g.sections[kElf].checksum = f.sections[kElf].checksum;
  EXPECT_EQ(load_error(with_footer(two, g)), "E0608");
  EXPECT_NE(last_text.find("belongs to another artifact"), std::string::npos) << last_text;
}

TEST_F(ArtifactTest, a_kernel_that_fails_says_so_in_the_error_word) {
  Module m = Module::from_bytes(write_artifact(contents()));
  Tensor x = Tensor::zeros(DType::Float(32), {8});
  x.set_from_int(0, -1);
  for (int round = 0; round < 2; ++round) {
    EXPECT_THROW(m.run("main", {x}), RuntimeError);
    expect_works(m);
  }
}

TEST_F(ArtifactTest, must_fail_E0608_every_truncation) {
  std::string bytes = write_artifact(contents());
  std::vector<size_t> sizes = {
      0, 1, 100, bytes.size() - 1, bytes.size() - 8, bytes.size() - sizeof(Footer)};
  for (const Section& s : footer(bytes).sections) {
    for (size_t at : {s.offset, s.offset + s.size / 2, s.offset + s.size}) sizes.push_back(at);
  }
  for (size_t size : sizes) EXPECT_EQ(load_error(bytes.substr(0, size)), "E0608") << size;
  EXPECT_EQ(load_error(bytes + "x"), "E0608");
  // The footer alone, and the file without its middle.
  EXPECT_EQ(load_error(bytes.substr(bytes.size() - sizeof(Footer))), "E0608");
  EXPECT_EQ(load_error(bytes.substr(0, 4096) + bytes.substr(8192)), "E0608");
  EXPECT_EQ(load_error(elf), "E0608");
}

TEST_F(ArtifactTest, must_fail_every_bit_flip) {
  std::string bytes = write_artifact(contents());
  Footer f = footer(bytes);
  auto flip = [&](size_t at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    return load_error(changed);
  };
  for (int kind = 0; kind < kSectionCount; ++kind) {
    const Section& s = f.sections[kind];
    size_t step = std::max<size_t>(1, s.size / 40);
    for (size_t at = 0; at < s.size; at += step) {
      EXPECT_EQ(flip(s.offset + at), "E0608") << kSectionNames[kind] << " + " << at;
    }
  }
  for (size_t at = bytes.size() - sizeof(Footer); at < bytes.size(); ++at) {
    std::string code = flip(at);
    EXPECT_TRUE(code == "E0608" || code == "E0609") << at << " " << code;
  }
  // The gaps between the sections.
  size_t end = 0;
  for (const Section& s : f.sections) {
    for (size_t at = end; at < s.offset; at += std::max<size_t>(1, (s.offset - end) / 20)) {
      EXPECT_EQ(flip(at), "E0608") << "before a section: " << at;
    }
    if (s.offset > end) {
      EXPECT_EQ(flip(s.offset - 1), "E0608");
    }
    end = s.offset + s.size;
  }
}

TEST_F(ArtifactTest, check_verifies_what_loading_does_not_read) {
  program.constants.push_back(Tensor::zeros(DType::Int(8), {(64 << 20) + 1}));
  write_artifact_file(contents(), path("m.so"));
  EXPECT_NO_THROW(check_artifact(path("m.so")));
  {
    std::fstream file(path("m.so"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(50 << 20);
    file.put(1);
  }
  EXPECT_NO_THROW(Module::load(path("m.so")));
  EXPECT_THROW(check_artifact(path("m.so")), UserError);
  EXPECT_THROW(Module::load(path("m.so"), {1, /*verify_constants=*/true}), UserError);
}

TEST_F(ArtifactTest, check_is_for_any_machine) {
  info.features = {"avx1024"};
  write_artifact_file(contents(), path("m.so"));
  const Artifact artifact = std::move(check_artifact(path("m.so"))[0]);
  EXPECT_EQ(artifact.info.features, info.features);
  EXPECT_EQ(to_string(artifact.id).size(), 32u);
}

TEST_F(ArtifactTest, must_fail_E0608_sections_out_of_place) {
  std::string bytes = write_artifact(contents());
  Footer good = footer(bytes);
  auto changed = [&](auto&& change) {
    Footer f = good;
    change(f);
    return load_error(with_footer(bytes, f));
  };
  EXPECT_EQ(changed([](Footer&) {}), "");
  for (int kind = 0; kind < kSectionCount; ++kind) {
    for (uint64_t value : {uint64_t{1}, uint64_t{1} << 63, ~uint64_t{0}, uint64_t{1} << 40}) {
      EXPECT_EQ(changed([&](Footer& f) { f.sections[kind].offset = value; }), "E0608");
      EXPECT_EQ(changed([&](Footer& f) { f.sections[kind].size = value; }), "E0608");
      EXPECT_EQ(changed([&](Footer& f) { f.sections[kind].checksum = value; }), "E0608");
    }
  }
  // Overlap: the bytecode section grows into the metadata.
  EXPECT_EQ(changed([](Footer& f) { f.sections[kProgram].size += 4096; }), "E0608");
  EXPECT_EQ(changed([](Footer& f) { f.sections[kMetadata] = f.sections[kProgram]; }), "E0608");
  EXPECT_EQ(changed([](Footer& f) { f.file_size += 1; }), "E0608");
  EXPECT_EQ(changed([](Footer& f) { f.footer_bytes = 64; }), "E0608");
}

TEST_F(ArtifactTest, must_fail_E0609_version) {
  std::string bytes = write_artifact(contents());
  Footer f = footer(bytes);
  f.version = kArtifactVersion + 1;
  EXPECT_EQ(load_error(with_footer(bytes, f)), "E0609");
  EXPECT_NE(last_text.find("compile the model again"), std::string::npos) << last_text;
  f.version = kOldestArtifactVersion - 1;
  EXPECT_EQ(load_error(with_footer(bytes, f)), "E0609");
  EXPECT_NE(last_text.find("has format version 5, written by 0.1.0"), std::string::npos)
      << last_text;
}

TEST_F(ArtifactTest, files_of_the_format_before_libraries_load) {
  std::string bytes = write_artifact(contents());
  Footer f = footer(bytes);
  replace_program(bytes, f, program, 6);
  auto& index = f.sections[kIndex];
  // Behind architecture, version, id and the number of features stand that of libraries, the mode for denormals, and the
  // length of the version's name.
  constexpr size_t kNumber = sizeof(uint64_t), kLater = 3 * kNumber;
  std::string part = bytes.substr(index.offset, index.size);
  part.erase(3 * kNumber + info.arch.size() + info.compiler_version.size() + 2 * kNumber, kLater);
  bytes.replace(index.offset, index.size, part + std::string(kLater, '\0'));
  index.size -= kLater;
  index.checksum = checksum(part);
  EXPECT_EQ(load_error(with_footer(bytes, f)), "E0608");
  f.version = 6;
  EXPECT_EQ(load_error(with_footer(bytes, f)), "") << last_text;
}

TEST_F(ArtifactTest, files_of_the_format_before_kernels_outside_load) {
  std::string bytes = write_artifact(contents());
  Footer f = footer(bytes);
  replace_program(bytes, f, program, 10);
  EXPECT_EQ(load_error(with_footer(bytes, f)), "E0608");
  without_name(bytes, f);
  f.version = 10;
  ASSERT_EQ(load_error(with_footer(bytes, f)), "") << last_text;
  const Module old = Module::from_bytes(with_footer(bytes, f));
  expect_works(old);
  EXPECT_EQ(old.program().kernels, program.kernels);
}

void fill_with_seven(void* const* buffers, const int64_t*, const relay_kernel_context*) {
  for (int i = 0; i < 8; ++i) static_cast<float*>(buffers[1])[i] = 7;
}

TEST_F(ArtifactTest, kernels_of_the_process_are_not_in_the_code) {
  // Between the two that are.
  program.kernels.insert(program.kernels.begin() + 1, {"seven", "seven", {32, 32}, 1, 0, 0, 0});
  program.kernels[1].linkage = KernelLinkage::host;
  program.kernels[1].symbol = "test.seven";
  FunctionBuilder f("main");
  TensorSpec type{DType::Float(32), {8}, {}};
  f.param("x", type);
  f.result("y", type);
  int64_t hidden = f.arena(32);
  f.invoke_kernel(1, {Operand::reg(0), Operand::arena(hidden, 32)});
  f.invoke_kernel(2, {Operand::arena(hidden, 32), Operand::constant(1), Operand::output(0)});
  f.ret_outputs();
  program.functions = {std::move(f).finish()};
  const std::string bytes = write_artifact(contents());
  EXPECT_EQ(load_error(bytes), "E0619");
  EXPECT_NE(last_text.find("test.seven"), std::string::npos) << last_text;
  register_host_kernel("test.seven", fill_with_seven);
  const Module m = Module::from_bytes(bytes);
  EXPECT_EQ(m.run("main", {Tensor::zeros(DType::Float(32), {8})})[0].get_as_double(3), 107);
  EXPECT_EQ(m.program().kernels, program.kernels);
  register_host_kernel("test.seven", nullptr);
}

TEST_F(ArtifactTest, tells_whether_denormals_are_kept_from_format_10_on) {
  using runtime::Denormals;
  info.denormals = Denormals::keep;
  std::string bytes = write_artifact(contents());
  EXPECT_EQ(Module::from_bytes(bytes).info().denormals, Denormals::keep);
  Footer f = footer(bytes);
  auto& index = f.sections[kIndex];
  std::string part = bytes.substr(index.offset, index.size);
  // Behind architecture, version, id, no feature and no library.
  constexpr size_t kNumber = sizeof(uint64_t);
  const size_t at = 6 * kNumber + info.arch.size() + info.compiler_version.size();
  auto with_index = [&](const std::string& changed, uint32_t version) {
    Footer g = f;
    g.version = version;
    std::string out = bytes;
    if (version < kArtifactVersion) replace_program(out, g, program, version);
    g.sections[kIndex].size = changed.size();
    g.sections[kIndex].checksum = checksum(changed);
    out.replace(index.offset, index.size, changed + std::string(part.size() - changed.size(), 0));
    return with_footer(out, g);
  };
  std::string wrong = part;
  wrong[at] = 2;
  EXPECT_EQ(load_error(with_index(wrong, kArtifactVersion)), "E0608");
  EXPECT_NE(last_text.find("denormals"), std::string::npos) << last_text;
  std::string old = part;
  old.erase(at, 2 * kNumber);  // and the length of the version's name
  EXPECT_EQ(load_error(with_index(old, kArtifactVersion)), "E0608");
  EXPECT_EQ(Module::from_bytes(with_index(old, 9)).info().denormals, Denormals::flush);
}

TEST_F(ArtifactTest, must_fail_E0618_a_library_that_is_not_there) {
  info.libraries = {"librelay_none.so"};
  EXPECT_EQ(load_error(write_artifact(contents())), "E0618");
  EXPECT_NE(last_text.find("librelay_none.so"), std::string::npos) << last_text;
  write_artifact_file(contents(), path("m.so"));
  EXPECT_EQ(check_artifact(path("m.so"))[0].info.libraries, info.libraries);
}

// A program with 100 or with `answer` where it adds 100, for a processor with the features.
class VersionsTest : public ArtifactTest {
 protected:
  VersionsTest() {
    for (int answer : {100, 5, 7}) {
      Program& p = programs.emplace_back(program);
      Tensor c = Tensor::empty(DType::Float(32), {8});
      for (int i = 0; i < 8; ++i) c.set_from_int(i, answer);
      p.constants[1] = c;
      // What all versions have.
      p.constants.push_back(Tensor::zeros(DType::Float(32), {10000}));
    }
    infos.assign(3, info);
    infos[0].version = "least";
    infos[1].version = "middle";
    infos[2].version = "best";
  }
  std::string bytes() const {
    std::vector<ArtifactContents> all;
    for (size_t v = 0; v < 3; ++v) {
      all.push_back({elf, &programs[v], metadata[v], infos[v]});
    }
    return write_artifact(all);
  }
  static double answer(const Module& m) {
    return m.run("main", {Tensor::zeros(DType::Float(32), {8})})[0].get_as_double(0);
  }
  static LoadOptions named(const std::string& version) {
    LoadOptions out;
    out.version = version;
    return out;
  }

  // The code of the error that a check of all versions ends in; "" where it ends in none.
  std::string check_error(const std::string& bytes) const {
    write_file(path("checked.so"), bytes);
    try {
      check_artifact(path("checked.so"));
    } catch (const UserError& e) {
      return std::string(e.diagnostics()[0].code);
    }
    return "";
  }

  std::deque<Program> programs;
  std::vector<ArtifactInfo> infos;
  std::array<std::string, 3> metadata{"{\"version\": 0}", "{\"version\": 1}", "{\"version\": 2}"};
};

TEST_F(VersionsTest, the_last_that_the_machine_runs_is_loaded_or_the_one_that_is_named) {
  EXPECT_EQ(answer(Module::from_bytes(bytes())), 7);
  for (size_t v = 0; v < 3; ++v) {
    const Module m = Module::from_bytes(bytes(), named(infos[v].version));
    EXPECT_EQ(answer(m), (std::array{100, 5, 7}[v]));
    EXPECT_EQ(m.info().version, infos[v].version);
    EXPECT_EQ(m.metadata(), metadata[v]);
  }
  infos[2].features = {"avx1024"};
  EXPECT_EQ(answer(Module::from_bytes(bytes())), 5);
  write_file(path("m.so"), bytes());
  EXPECT_EQ(answer(Module::load(path("m.so"))), 5);
  setenv("RELAY_CODE_VERSION", "least", 1);
  EXPECT_EQ(answer(Module::load(path("m.so"))), 100);
  // What the caller names counts more.
  EXPECT_EQ(answer(Module::load(path("m.so"), named("middle"))), 5);
  // Files of one version have nothing to choose.
  EXPECT_EQ(load_error(write_artifact(contents())), "");
  unsetenv("RELAY_CODE_VERSION");
}

TEST_F(VersionsTest, constants_that_versions_share_are_stored_once) {
  const std::string all = bytes();
  const size_t one = write_artifact({elf, &programs[0], "{}", infos[0]}).size();
  const size_t shared = programs[0].constants[4].byte_size();
  EXPECT_LT(all.size(), 3 * one - 2 * shared + 4096);
  EXPECT_EQ(bytes(), all);
  for (const Artifact& a : [&] {
         write_file(path("m.so"), all);
         return check_artifact(path("m.so"));
       }()) {
    ASSERT_EQ(a.program.constants.size(), 5u);
    EXPECT_TRUE(bit_equal(a.program.constants[4], programs[0].constants[4]));
    EXPECT_TRUE(bit_equal(a.program.constants[3], programs[0].constants[3]));
  }
}

// Mapped constants: those of a version begin at a page, wherever the pool has them.
TEST_F(VersionsTest, large_constants_are_mapped) {
  for (size_t v = 0; v < 3; ++v) {
    Tensor big = Tensor::empty(DType::Int(32), {int64_t{5} << 20});
    for (int64_t i = 0; i < big.num_elements(); i += 1000) big.set_from_int(i, i + int64_t(v));
    programs[v].constants.push_back(big);
  }
  write_file(path("m.so"), bytes());
  for (size_t v = 0; v < 3; ++v) {
    LoadOptions options = named(infos[v].version);
    options.verify_constants = true;
    const Module m = Module::load(path("m.so"), options);
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_TRUE(bit_equal(m.program().constants[i], programs[v].constants[i])) << v << i;
    }
    EXPECT_EQ(answer(m), (std::array{100, 5, 7}[v]));
  }
}

TEST_F(VersionsTest, must_fail_E0623_a_version_that_is_not_there) {
  write_file(path("m.so"), bytes());
  try {
    Module::load(path("m.so"), named("other"));
    ADD_FAILURE();
  } catch (const UserError& e) {
    EXPECT_EQ(e.diagnostics()[0].code, "E0623");
    EXPECT_NE(std::string(e.what()).find("least, middle, best"), std::string::npos) << e.what();
  }
  setenv("RELAY_CODE_VERSION", "other", 1);
  EXPECT_EQ(load_error(bytes()), "E0623");
  unsetenv("RELAY_CODE_VERSION");
}

TEST_F(VersionsTest, must_fail_E0610_a_version_that_the_machine_lacks_and_none_that_it_has) {
  infos[2].features = {"avx1024"};
  setenv("RELAY_CODE_VERSION", "best", 1);
  EXPECT_EQ(load_error(bytes()), "E0610");
  EXPECT_NE(last_text.find("version best of"), std::string::npos) << last_text;
  unsetenv("RELAY_CODE_VERSION");
  infos[0].features = {"quantum"};
  infos[1].features = {"quantum", "avx512"};
  EXPECT_EQ(load_error(bytes()), "E0610");
  EXPECT_NE(last_text.find("one of least, middle, best"), std::string::npos) << last_text;
  EXPECT_NE(last_text.find("quantum"), std::string::npos) << last_text;
}

TEST_F(VersionsTest, must_fail_E0608_footers) {
  const std::string good = bytes();
  const size_t first = good.size() - 3 * sizeof(Footer);
  // A footer in place of one of the three, its checksum made right.
  auto changed = [&](size_t v, auto&& change) {
    Footer f;
    std::memcpy(&f, good.data() + first + v * sizeof(f), sizeof(f));
    change(f);
    f.checksum = checksum({reinterpret_cast<const char*>(&f), offsetof(Footer, checksum)});
    std::string out = good;
    std::memcpy(out.data() + first + v * sizeof(f), &f, sizeof(f));
    return check_error(out);
  };
  for (size_t v = 0; v < 3; ++v) {
    EXPECT_EQ(changed(v, [](Footer&) {}), "");
    for (uint64_t value : {uint64_t{1}, uint64_t{1} << 63, ~uint64_t{0}}) {
      for (int kind = 0; kind < kSectionCount; ++kind) {
        EXPECT_EQ(changed(v, [&](Footer& f) { f.sections[kind].offset = value; }), "E0608");
        EXPECT_EQ(changed(v, [&](Footer& f) { f.sections[kind].size = value; }), "E0608");
      }
    }
    EXPECT_EQ(changed(v, [](Footer& f) { f.footer_bytes += 1; }), "E0608");
    EXPECT_EQ(changed(v, [](Footer& f) { f.footer_bytes -= sizeof(Footer); }), "E0608");
    EXPECT_EQ(changed(v, [](Footer& f) { f.footer_bytes = 20 * sizeof(Footer); }), "E0608");
    EXPECT_EQ(changed(v, [](Footer& f) { f.footer_bytes = 0; }), "E0608");
    EXPECT_EQ(changed(v, [](Footer& f) { f.magic[0] = 'r'; }), "E0608");
    EXPECT_EQ(changed(v, [](Footer& f) { f.version = 13; }), "E0608");
  }
  // Code that two versions share would have two ids.
  Footer other;
  std::memcpy(&other, good.data() + first, sizeof(other));
  EXPECT_EQ(changed(1, [&](Footer& f) { f.sections[kElf] = other.sections[kElf]; }), "E0608");
}

TEST_F(ArtifactTest, must_fail_E0610_cpu) {
  info.features = {"avx1024", "quantum"};
  EXPECT_EQ(load_error(write_artifact(contents())), "E0610");
  EXPECT_NE(last_text.find("avx1024, quantum"), std::string::npos) << last_text;
  info.features = {};
  info.arch = "vax";
  EXPECT_EQ(load_error(write_artifact(contents())), "E0610");
}

TEST_F(ArtifactTest, a_program_that_was_just_compiled_for_another_machine_is_refused_when_it_runs) {
  for (const char* arch : {"vax", info.arch.c_str()}) {
    ArtifactInfo other = info;
    other.arch = arch;
    other.features = {"avx1024"};
    Module m = Module::from_elf(elf, program, "{}", other);
    EXPECT_FALSE(m.function_names().empty());
    try {
      expect_works(m);
      ADD_FAILURE() << arch;
    } catch (const UserError& e) {
      EXPECT_EQ(e.diagnostics()[0].code, "E0610");
    }
  }
}

TEST_F(ArtifactTest, must_fail_E0608_other_code) {
  // A kernel table that does not fit the program, and an image without a descriptor.
  program.kernels.push_back(program.kernels[0]);
  EXPECT_EQ(load_error(write_artifact(contents())), "E0608");
  program.kernels.pop_back();
  // Code that would run when it is loaded is not taken.
  elf = read_file(RELAY_RUNTIME_LIBRARY);
  EXPECT_THROW(write_artifact(contents()), UserError);
  elf.clear();
  EXPECT_EQ(load_error(write_artifact(contents())), "E0608");
}

TEST_F(ArtifactTest, must_fail_E0608_any_word_of_the_image_changed) {
  // What the image's tables say is checked before it is used.
  int refused = 0;
  for (size_t at = 0; at + 4 <= elf.size(); at += 4) {
    for (uint32_t value : {0u, 0xffffffffu, 0x7fffffffu, 0x10000u}) {
      std::string changed = elf;
      std::memcpy(changed.data() + at, &value, sizeof(value));
      try {
        const ElfFile file(changed);
        file.find(RELAY_DESCRIPTOR_SYMBOL, sizeof(relay_artifact_descriptor_t));
        const ElfImage mapped(file);
      } catch (const UserError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100);
}

// The image of a machine with addresses of 32 bits: one segment with a table of names, the object `value`, which is the word
// at its end, and a relocation of it.
std::string narrow_image() {
  constexpr uint32_t kBytes = 512, kDynamic = 128, kSymbols = 256, kHash = 320, kNames = 352;
  constexpr uint32_t kRelocations = 384, kValue = kBytes - 4;
  std::string out(kBytes, '\0');
  auto put = [&](uint32_t at, const auto& record) {
    std::memcpy(out.data() + at, &record, sizeof(record));
  };
  Elf32_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS32;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_type = ET_DYN;
  header.e_machine = EM_ARM;
  header.e_phoff = sizeof(header);
  header.e_phentsize = sizeof(Elf32_Phdr);
  header.e_phnum = 2;
  put(0, header);
  put(sizeof(header), Elf32_Phdr{PT_LOAD, 0, 0, 0, kBytes, kBytes, PF_R | PF_W, 4096});
  constexpr uint32_t kTags = 7;
  put(sizeof(header) + sizeof(Elf32_Phdr),
      Elf32_Phdr{PT_DYNAMIC, kDynamic, kDynamic, kDynamic, kTags * sizeof(Elf32_Dyn),
                 kTags * sizeof(Elf32_Dyn), PF_R, 4});
  const uint32_t tags[kTags][2] = {
      {DT_SYMTAB, kSymbols}, {DT_HASH, kHash},       {DT_STRTAB, kNames},
      {DT_STRSZ, 8},         {DT_REL, kRelocations}, {DT_RELSZ, sizeof(Elf32_Rel)},
      {DT_NULL, 0}};
  put(kDynamic, tags);
  put(kSymbols + sizeof(Elf32_Sym),
      Elf32_Sym{1, kValue, 4, ELF32_ST_INFO(STB_GLOBAL, STT_OBJECT), 0, 1});
  put(kHash, std::array<uint32_t, 2>{1, 2});
  std::memcpy(out.data() + kNames, "\0value\0", 8);
  put(kRelocations, Elf32_Rel{kValue, ELF32_R_INFO(0, R_ARM_RELATIVE)});
  put(kValue, uint32_t{42});
  return out;
}

TEST(ElfFile, images_of_machines_with_32_bits_are_read_and_not_mapped) {
  const std::string image = narrow_image();
  const ElfFile file(image);
  auto place = file.find("value", 4);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->offset, image.size() - 4);
  EXPECT_FALSE(file.find("value", 8));
  if (sizeof(void*) == 8) {
    EXPECT_THROW(ElfImage{file}, UserError);
  }
  // With the machine's number, too: the records have another form.
  std::string renamed = image;
  const uint16_t machine = host_code_form().machine;
  std::memcpy(renamed.data() + offsetof(Elf32_Ehdr, e_machine), &machine, sizeof(machine));
  if (sizeof(void*) == 8) {
    EXPECT_THROW(ElfImage{ElfFile(renamed)}, UserError);
  }
  int refused = 0;
  for (size_t at = 0; at + 4 <= image.size(); at += 4) {
    for (uint32_t value : {0u, 0xffffffffu, 0x7fffffffu, 0x10000u}) {
      std::string changed = image;
      std::memcpy(changed.data() + at, &value, sizeof(value));
      try {
        ElfFile(changed).find("value", 4);
      } catch (const UserError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 40);
}

TEST_F(ArtifactTest, must_fail_E0613_bytecode_is_verified_before_loading) {
  program.functions[0].operands[1].index = 1 << 20;
  elf.clear();
  EXPECT_EQ(load_error(write_artifact(contents())), "E0613");
}

TEST_F(ArtifactTest, must_fail_E0611_files) {
  auto code = [](const std::string& file) {
    try {
      Module::load(file);
    } catch (const UserError& error) {
      return std::string(error.diagnostics()[0].code);
    }
    return std::string();
  };
  EXPECT_EQ(code(path("missing.so")), "E0611");
  EXPECT_EQ(code(folder.string()), "E0611");
  EXPECT_EQ(code("/dev/zero"), "E0611");
  EXPECT_EQ(code(std::string("a\0b", 3)), "E0611");
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(code(path("fifo")), "E0611");
}

TEST_F(ArtifactTest, must_fail_E0611_writing_leaves_nothing_behind) {
  write_file(path("m.so"), "precious");
  EXPECT_THROW(write_artifact_file(contents(), path("m.so")), UserError);
  EXPECT_EQ(read_file(path("m.so")), "precious");
  EXPECT_THROW(write_artifact_file(contents(), path("no/such/folder/m.so")), UserError);
  write_artifact_file(contents(), path("m.so"), /*overwrite=*/true);
  expect_works(Module::load(path("m.so")));
  write_artifact_file(contents(), path("n.so"));
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files += entry.is_regular_file();
  }
  EXPECT_EQ(files, 2u);
}

TEST_F(ArtifactTest, files_written_to_one_name_at_once_all_arrive_whole) {
  constexpr int kThreads = 8;
  for (bool overwrite : {true, false}) {
    for (int round = 0; round < 200; ++round) {
      std::string target = folder / ("at_once" + std::to_string(round));
      std::filesystem::remove(target);
      std::atomic<int> written{0};
      std::vector<std::thread> threads;
      for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&, i] {
          std::string text(100, static_cast<char>('a' + i));
          TemporaryFile file(target);
          file.write(text.data(), text.size());
          try {
            file.rename_to_target(overwrite);
            ++written;
          } catch (const UserError&) {
          }
        });
      }
      for (std::thread& t : threads) t.join();
      EXPECT_EQ(written, overwrite ? kThreads : 1);
      std::string text = read_file(target);
      EXPECT_TRUE(text.size() == 100 && text == std::string(100, text[0])) << text;
    }
  }
}

TEST_F(ArtifactTest, a_module_survives_the_replacement_of_its_file) {
  write_artifact_file(contents(), path("m.so"));
  Module m = Module::load(path("m.so"));
  program.constants[1].set_from_int(3, 0);
  write_artifact_file(contents(), path("m.so"), /*overwrite=*/true);
  expect_works(m);
}

TEST_F(ArtifactTest, small_constants_survive_a_file_that_is_overwritten) {
  write_artifact_file(contents(), path("m.so"));
  Module m = Module::load(path("m.so"));
  write_file(path("m.so"), "");
  expect_works(m);
  write_file(path("m.so"), std::string(1 << 20, 'x'));
  expect_works(m);
}

TEST_F(ArtifactTest, must_fail_E0614_mapped_constants_of_a_file_that_is_overwritten) {
  program.constants.push_back(Tensor::zeros(DType::Float(32), {5 << 20}));
  write_artifact_file(contents(), path("m.so"));
  const std::string bytes = read_file(path("m.so"));
  Module m = Module::load(path("m.so"));
  expect_works(m);
  auto code = [&] {
    try {
      expect_works(m);
    } catch (const RuntimeError& error) {
      return std::string(error.diagnostics()[0].code);
    }
    return std::string();
  };
  std::filesystem::last_write_time(path("m.so"), std::filesystem::file_time_type::clock::now());
  EXPECT_EQ(code(), "") << "touched";
  std::string other = bytes;
  other[footer(bytes).sections[kConstants].offset + 64] ^= 1;
  write_file(path("m.so"), other);
  EXPECT_EQ(code(), "E0614");
  write_file(path("m.so"), "");
  EXPECT_EQ(code(), "E0614");
  // The same content from another file is whole.
  write_file(path("copy.so"), bytes);
  expect_works(Module::load(path("copy.so")));
  write_file(path("m.so"), bytes);
  EXPECT_EQ(code(), "");
}

TEST_F(ArtifactTest, large_constants_load_fast) {
  program.constants.push_back(Tensor::zeros(DType::Float(32), {64 << 20}));
  write_artifact_file(contents(), path("m.so"));
  program.constants.pop_back();
  auto begin = std::chrono::steady_clock::now();
  Module m = Module::load(path("m.so"));
  auto ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin);
  expect_works(m);
  RecordProperty("load_ms", std::to_string(ms.count()));
  EXPECT_LT(ms.count(), 500);
}

// --- The C interface ---------------------------------------------------------------------------

TEST_F(ArtifactTest, c_api_runs_a_model) {
  write_artifact_file(contents(), path("m.so"));
  relay_module* module = nullptr;
  relay_session* session = nullptr;
  ASSERT_EQ(relay_module_load(path("m.so").c_str(), 0, &module), RELAY_OK) << relay_last_error();
  size_t count = 0;
  const char* text = nullptr;
  EXPECT_EQ(relay_module_num_functions(module, &count), RELAY_OK);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(relay_module_function_name(module, 0, &text), RELAY_OK);
  EXPECT_STREQ(text, "main");
  EXPECT_EQ(relay_module_metadata(module, &text), RELAY_OK);
  EXPECT_STREQ(text, "{\"model\": \"test\"}");
  ASSERT_EQ(relay_session_create(module, "main", &session), RELAY_OK);
  relay_module_free(module);  // the session keeps what it needs

  relay_tensor_type type;
  EXPECT_EQ(relay_session_num_inputs(session, &count), RELAY_OK);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(relay_session_input_info(session, 0, &text, &type), RELAY_OK);
  EXPECT_STREQ(text, "x");
  EXPECT_EQ(type.dtype_code, RELAY_FLOAT);
  EXPECT_EQ(type.rank, 1);
  EXPECT_EQ(type.device_type, RELAY_CPU);
  EXPECT_EQ(type.shape[0], 8);
  EXPECT_EQ(relay_session_input_index(session, "x", &count), RELAY_OK);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(relay_session_num_outputs(session, &count), RELAY_OK);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(relay_session_output_info(session, 0, &text, nullptr), RELAY_OK);
  EXPECT_STREQ(text, "y");

  float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(relay_session_set_input(session, 0, x, &type), RELAY_OK);
  EXPECT_EQ(relay_session_run(session), RELAY_OK) << relay_last_error();
  relay_tensor y;
  EXPECT_EQ(relay_session_output(session, 0, &y), RELAY_OK);
  EXPECT_EQ(y.bytes, 32u);
  EXPECT_EQ(static_cast<const float*>(y.data)[7], 116);

  // The input is not copied: new data, same session.
  x[7] = 0;
  void* dlpack = nullptr;
  EXPECT_EQ(relay_session_run(session), RELAY_OK);
  EXPECT_EQ(relay_session_output_dlpack(session, 0, &dlpack), RELAY_OK);
  EXPECT_EQ(relay_session_set_input_dlpack(session, 0, dlpack), RELAY_OK);
  EXPECT_EQ(relay_session_run(session), RELAY_OK) << relay_last_error();
  EXPECT_EQ(relay_session_output(session, 0, &y), RELAY_OK);
  EXPECT_EQ(static_cast<const float*>(y.data)[7], 300);
  relay_session_free(session);
}

TEST_F(ArtifactTest, c_api_donates_inputs) {
  int64_t output = 7;
  int64_t shape[1] = {8};
  relay_tensor_type type{RELAY_FLOAT, 32, 1, shape, 0, 0};
  float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  relay_tensor y{};
  auto session_of = [&](const char* name) {
    write_artifact_file(contents(), path(name), /*overwrite=*/true);
    relay_module* module = nullptr;
    relay_session* session = nullptr;
    if (relay_module_load(path(name).c_str(), 0, &module) == RELAY_OK) {
      relay_session_create(module, "main", &session);
    }
    relay_module_free(module);
    return session;
  };
  relay_session* plain = session_of("plain.so");
  ASSERT_NE(plain, nullptr) << relay_last_error();
  EXPECT_EQ(relay_session_input_donation(plain, 0, &output), RELAY_OK);
  EXPECT_EQ(output, -1);
  relay_session_free(plain);

  program.functions[0].donations = {{0, 0, false}};
  relay_session* session = session_of("donates.so");
  ASSERT_NE(session, nullptr) << relay_last_error();
  EXPECT_EQ(relay_session_input_donation(session, 0, &output), RELAY_OK);
  EXPECT_EQ(output, 0);
  EXPECT_EQ(relay_session_input_donation(session, 1, &output), RELAY_USER_ERROR);
  // What is constant to the caller is not written to.
  EXPECT_EQ(relay_session_set_input(session, 0, x, &type), RELAY_OK);
  EXPECT_EQ(relay_session_run(session), RELAY_USER_ERROR);
  EXPECT_NE(std::string(relay_last_error()).find("E1205"), std::string::npos);
  EXPECT_EQ(x[7], 8);
  EXPECT_EQ(relay_session_donate_input(session, 0, x, &type), RELAY_OK);
  ASSERT_EQ(relay_session_run(session), RELAY_OK) << relay_last_error();
  EXPECT_EQ(relay_session_output(session, 0, &y), RELAY_OK);
  EXPECT_EQ(y.data, x);
  EXPECT_EQ(x[7], 116);
  relay_session_free(session);

  for (Donation bad : {Donation{1, 0, false}, Donation{0, 1, false}, Donation{-1, 0, false}}) {
    program.functions[0].donations = {bad};
    EXPECT_EQ(session_of("bad.so"), nullptr);
    EXPECT_NE(std::string(relay_last_error()).find("E0613"), std::string::npos);
  }
}

TEST_F(ArtifactTest, c_api_limits_runs) {
  write_artifact_file(contents(), path("m.so"));
  relay_module* module = nullptr;
  relay_session* session = nullptr;
  ASSERT_EQ(relay_module_load(path("m.so").c_str(), 0, &module), RELAY_OK) << relay_last_error();
  ASSERT_EQ(relay_session_create(module, "main", &session), RELAY_OK);
  relay_module_free(module);
  float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  relay_tensor_type type;
  EXPECT_EQ(relay_session_input_info(session, 0, nullptr, &type), RELAY_OK);
  EXPECT_EQ(relay_session_set_input(session, 0, x, &type), RELAY_OK);
  relay_limits limits = {1, 1 << 20, 60};
  EXPECT_EQ(relay_session_set_limits(session, &limits), RELAY_OK);
  EXPECT_EQ(relay_session_run(session), RELAY_OK) << relay_last_error();
  limits.memory_bytes = 40;
  EXPECT_EQ(relay_session_set_limits(session, &limits), RELAY_OK);
  EXPECT_EQ(relay_session_run(session), RELAY_RUNTIME_ERROR);
  EXPECT_NE(std::string(relay_last_error()).find("E0604"), std::string::npos) << relay_last_error();
  limits = {0, 0, 1e-9};
  EXPECT_EQ(relay_session_set_limits(session, &limits), RELAY_OK);
  EXPECT_EQ(relay_session_run(session), RELAY_OK) << "too short to be looked at";
  for (relay_limits wrong : {relay_limits{-1, 0, 0}, {0, -1, 0}, {0, 0, -1}, {0, 0, NAN}}) {
    EXPECT_EQ(relay_session_set_limits(session, &wrong), RELAY_USER_ERROR);
  }
  EXPECT_EQ(relay_session_set_limits(session, nullptr), RELAY_OK);
  EXPECT_EQ(relay_session_run(session), RELAY_OK) << relay_last_error();
  EXPECT_EQ(relay_session_set_limits(nullptr, nullptr), RELAY_USER_ERROR);
  relay_session_free(session);
}

TEST_F(ArtifactTest, must_fail_c_api_errors_are_statuses) {
  write_artifact_file(contents(), path("m.so"));
  relay_module* module = nullptr;
  relay_session* session = nullptr;
  EXPECT_EQ(relay_module_load(path("none").c_str(), 0, &module), RELAY_USER_ERROR);
  EXPECT_NE(std::string(relay_last_error()).find("E0611"), std::string::npos);
  EXPECT_EQ(module, nullptr);
  EXPECT_EQ(relay_module_load(nullptr, 0, &module), RELAY_USER_ERROR);
  ASSERT_EQ(relay_module_load(path("m.so").c_str(), 1, &module), RELAY_OK);
  EXPECT_EQ(relay_session_create(module, "nothing", &session), RELAY_USER_ERROR);
  EXPECT_NE(std::string(relay_last_error()).find("E0612"), std::string::npos);
  ASSERT_EQ(relay_session_create(module, "main", &session), RELAY_OK);
  EXPECT_EQ(relay_session_run(session), RELAY_USER_ERROR);
  EXPECT_NE(std::string(relay_last_error()).find("'x'"), std::string::npos);
  relay_tensor y;
  EXPECT_EQ(relay_session_output(session, 0, &y), RELAY_USER_ERROR);
  size_t index;
  EXPECT_EQ(relay_session_input_index(session, "z", &index), RELAY_USER_ERROR);
  float x[9] = {};
  int64_t shape[1] = {8};
  relay_tensor_type type{RELAY_FLOAT, 32, 1, shape, 0, 0};
  EXPECT_EQ(relay_session_set_input(session, 1, x, &type), RELAY_USER_ERROR);
  EXPECT_EQ(relay_session_set_input(session, 0, nullptr, &type), RELAY_USER_ERROR);
  EXPECT_EQ(relay_session_set_input(session, 0, reinterpret_cast<char*>(x) + 1, &type),
            RELAY_USER_ERROR);
  type.device_type = 2;  // CUDA
  EXPECT_EQ(relay_session_set_input(session, 0, x, &type), RELAY_USER_ERROR);
  EXPECT_NE(std::string(relay_last_error()).find("device type 2"), std::string::npos);
  EXPECT_NE(std::string(relay_last_error()).find("set_input_dlpack"), std::string::npos);
  type.device_type = RELAY_CUDA_HOST;
  EXPECT_EQ(relay_session_set_input(session, 0, x, &type), RELAY_OK);
  type.dtype_bits = 31;
  EXPECT_EQ(relay_session_set_input(session, 0, x, &type), RELAY_USER_ERROR);
  type.dtype_bits = 32;
  shape[0] = -1;
  EXPECT_EQ(relay_session_set_input(session, 0, x, &type), RELAY_USER_ERROR);
  shape[0] = 7;
  EXPECT_EQ(relay_session_set_input(session, 0, x, &type), RELAY_OK);
  EXPECT_EQ(relay_session_run(session), RELAY_USER_ERROR);
  relay_session_free(session);
  relay_module_free(module);
  relay_session_free(nullptr);
  relay_module_free(nullptr);
}

TEST_F(ArtifactTest, c_example_runs) {
  write_artifact_file(contents(), path("m.so"));
  std::string command = std::string(RELAY_RUN_MODEL) + " " + path("m.so");
  FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  char line[200] = {};
  EXPECT_NE(fgets(line, sizeof(line), pipe), nullptr);
  EXPECT_EQ(pclose(pipe), 0);
  EXPECT_STREQ(line, "y: rank 1, 32 bytes, first 100\n");
}

// The sanitizers add names and bulk of their own to the library.
#if !defined(__SANITIZE_ADDRESS__)
TEST_F(ArtifactTest, runtime_library_opens_no_sockets) {
  // The names of imported functions stand in the library, each between zero bytes.
  std::string library = read_file(RELAY_RUNTIME_LIBRARY);
  auto imports = [&library](const std::string& name) {
    return library.find(std::string(1, '\0') + name + std::string(1, '\0')) != std::string::npos;
  };
  EXPECT_TRUE(imports("dlopen"));
  for (const char* name : {"socket", "connect", "bind", "listen", "send", "sendto", "getaddrinfo",
                           "gethostbyname", "socketpair"}) {
    EXPECT_FALSE(imports(name)) << name;
  }
}

TEST_F(ArtifactTest, runtime_library_is_small) {
  EXPECT_LT(std::filesystem::file_size(RELAY_RUNTIME_LIBRARY), size_t{1} << 20);
}
#endif

}  // namespace
}  // namespace relay::runtime
