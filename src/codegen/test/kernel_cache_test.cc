// Kernels kept on disk: what is found again, what is not, and that a damaged, full, shared or
// unusable folder fails nothing.
#include "codegen/kernel_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/diagnostic.h"
#include "codegen/backend.h"
#include "codegen/targets.h"
#include "codegen/test/kernel_harness.h"

namespace relay {
namespace {

namespace fs = std::filesystem;
using namespace tir;

class KernelCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "relay_cache_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    base_ = pattern;
    folder_ = base_ + "/relay";
  }
  void TearDown() override { fs::remove_all(base_); }

  // The one file of the folder.
  std::string only_file() const {
    std::vector<std::string> files;
    for (const auto& e : fs::recursive_directory_iterator(folder_)) {
      if (e.is_regular_file()) files.push_back(e.path().string());
    }
    EXPECT_EQ(files.size(), 1U);
    return files.front();
  }

  std::string base_, folder_;
};

constexpr int64_t kRoom = 1 << 20;
const char* const kKey = "00ff00ff";

PrimFunc scaled(double factor) {
  Buffer in = buffer("in", DType::Float(32), {index(8)});
  Buffer out = buffer("out", DType::Float(32), {index(8)});
  Var i = var("i");
  return codegen_test::kernel(
      "scaled", {in}, {out},
      for_(i, index(0), index(8), store(out, {i}, load(in, {i}) * imm_float(in->dtype, factor))));
}

TEST_F(KernelCacheTest, an_entry_is_found_again_by_its_key_only) {
  KernelCache cache(folder_, kRoom);
  EXPECT_EQ(cache.find(kKey), std::nullopt);
  EXPECT_FALSE(fs::exists(folder_)) << "reading makes nothing";
  cache.insert(kKey, "code");
  EXPECT_EQ(cache.find(kKey), "code");
  EXPECT_EQ(cache.find("00ff00fe"), std::nullopt);
  EXPECT_EQ(KernelCache(folder_, kRoom).find(kKey), "code");
  EXPECT_EQ(cache.counts().hits, 1);
  EXPECT_EQ(cache.counts().misses, 2);
  EXPECT_EQ(cache.counts().stored, 1);
  EXPECT_EQ(cache.note(), "");
  struct stat about {};
  ASSERT_EQ(stat(folder_.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0700U);
  // A file that was copied to another key's place is not that key's.
  fs::path path = only_file();
  fs::copy_file(path, path.parent_path() / "00ff00fe.kernel");
  EXPECT_EQ(cache.find("00ff00fe"), std::nullopt);
  EXPECT_EQ(cache.clear(), 2);
  EXPECT_EQ(cache.usage().entries, 0);
  EXPECT_EQ(cache.find(kKey), std::nullopt);
}

TEST_F(KernelCacheTest, a_damaged_entry_is_no_entry_and_is_replaced) {
  KernelCache cache(folder_, kRoom);
  const std::string code(1000, 'c');
  cache.insert(kKey, code);
  const std::string path = only_file();
  const auto size = fs::file_size(path);
  for (uintmax_t at : {uintmax_t{0}, uintmax_t{9}, uintmax_t{17}, uintmax_t{40}, size - 1}) {
    {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(static_cast<std::streamoff>(at));
      char byte = static_cast<char>(file.get());
      file.seekp(static_cast<std::streamoff>(at));
      file.put(static_cast<char>(byte ^ 0x20));
    }
    EXPECT_EQ(cache.find(kKey), std::nullopt) << at;
    EXPECT_NE(cache.note().find("damaged"), std::string::npos);
    cache.insert(kKey, code);
    EXPECT_EQ(cache.find(kKey), code);
  }
  for (uintmax_t left : {uintmax_t{0}, uintmax_t{23}, uintmax_t{24}, size - 1}) {
    fs::resize_file(path, left);
    EXPECT_EQ(cache.find(kKey), std::nullopt) << left;
    cache.insert(kKey, code);
  }
  fs::resize_file(path, size + 1);
  EXPECT_EQ(cache.find(kKey), std::nullopt);
}

TEST_F(KernelCacheTest, what_was_not_used_for_longest_makes_room) {
  const std::string code(1000, 'c');
  auto key = [](int i) { return "0" + std::to_string(i) + "ab"; };
  auto hour_ago = [&](int i, int hours) {
    fs::last_write_time(folder_ + "/0" + std::to_string(i) + "/" + key(i) + ".kernel",
                        fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  KernelCache cache(folder_, 8 * 1024 + 512);
  for (int i = 0; i < 8; ++i) {
    cache.insert(key(i), code);
    hour_ago(i, 20 - i);
  }
  EXPECT_EQ(cache.usage().entries, 8);
  EXPECT_TRUE(cache.find(key(0))) << "which makes it the one used last";
  // What a killed process left is removed with the rest; what may still be written is not.
  std::ofstream(folder_ + "/00/dead.kernel.tmp1.0") << "x";
  fs::last_write_time(folder_ + "/00/dead.kernel.tmp1.0",
                      fs::file_time_type::clock::now() - std::chrono::hours(2));
  std::ofstream(folder_ + "/00/live.kernel.tmp2.0") << "x";
  cache.insert(key(8), code);
  EXPECT_LE(cache.usage().bytes, 8 * 1024 + 512);
  EXPECT_TRUE(cache.find(key(0)));
  EXPECT_TRUE(cache.find(key(8)));
  EXPECT_FALSE(cache.find(key(1)));
  EXPECT_FALSE(cache.find(key(2)));
  EXPECT_TRUE(cache.find(key(7)));
  EXPECT_FALSE(fs::exists(folder_ + "/00/dead.kernel.tmp1.0"));
  EXPECT_TRUE(fs::exists(folder_ + "/00/live.kernel.tmp2.0"));
}

TEST_F(KernelCacheTest, processes_share_a_folder) {
  const std::string code(20000, 'c');
  std::vector<pid_t> children;
  for (int p = 0; p < 4; ++p) {
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      // Small enough that they also remove each other's entries.
      KernelCache cache(folder_, 300000);
      bool sound = true;
      for (int round = 0; round < 20; ++round) {
        for (int i = 10; i < 30; ++i) {
          std::string key = std::to_string(i) + "cd";
          auto found = cache.find(key);
          sound = sound && (!found || *found == code + key);
          if (!found) cache.insert(key, code + key);
        }
      }
      _exit(sound && cache.note().empty() ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

TEST_F(KernelCacheTest, an_unusable_folder_fails_nothing) {
  std::ofstream(base_ + "/file") << "x";
  fs::create_directory(base_ + "/open");
  fs::permissions(base_ + "/open", fs::perms::all);
  for (const char* name : {"/file", "/file/below", "/open"}) {
    KernelCache cache(base_ + name, kRoom);
    EXPECT_EQ(cache.find(kKey), std::nullopt);
    cache.insert(kKey, "code");
    EXPECT_EQ(cache.find(kKey), std::nullopt);
    EXPECT_NE(cache.note(), "") << name;
    EXPECT_EQ(cache.usage().entries, 0);
    EXPECT_EQ(cache.clear(), 0);
  }
}

TEST_F(KernelCacheTest, the_folder_and_the_size_come_from_the_environment) {
  setenv("RELAY_CACHE_DIR", folder_.c_str(), 1);
  for (auto [text, bytes] : {std::pair{"3K", int64_t{3} << 10},
                             {"2M", int64_t{2} << 20},
                             {"1G", int64_t{1} << 30},
                             {"77", int64_t{77}}}) {
    setenv("RELAY_CACHE_SIZE", text, 1);
    EXPECT_EQ(KernelCache::of_user()->max_bytes(), bytes);
  }
  EXPECT_EQ(KernelCache::of_user()->folder(), folder_);
  setenv("RELAY_CACHE_SIZE", "0", 1);
  EXPECT_EQ(KernelCache::of_user(), nullptr);
  for (const char* text : {"x", "-1", "5X", "5MM", "99999999999999999999", "9999999999999G"}) {
    setenv("RELAY_CACHE_SIZE", text, 1);
    EXPECT_THROW(KernelCache::of_user(), UserError) << text;
  }
  unsetenv("RELAY_CACHE_SIZE");
  unsetenv("RELAY_CACHE_DIR");
  setenv("XDG_CACHE_HOME", base_.c_str(), 1);
  EXPECT_EQ(KernelCache::of_user()->folder(), folder_);
  setenv("XDG_CACHE_HOME", "relative", 1);
  setenv("HOME", base_.c_str(), 1);
  EXPECT_EQ(KernelCache::of_user()->folder(), base_ + "/.cache/relay");
  unsetenv("XDG_CACHE_HOME");
}

TEST_F(KernelCacheTest, kernels_are_generated_once_for_each_target) {
  KernelCache cache(folder_, kRoom);
  std::vector<PrimFunc> kernels{scaled(2)};
  Target target = parse_target("x86-64-v2");
  const Backend& backend = backend_of(target);
  std::vector<ObjectCode> without = backend.compile(kernels, target, 1, nullptr);
  EXPECT_EQ(backend.compile(kernels, target, 1, &cache), without);
  EXPECT_EQ(cache.counts().hits, 0);
  EXPECT_EQ(backend.compile({scaled(2)}, target, 1, &cache), without);
  EXPECT_EQ(cache.counts().hits, 1);
  backend.compile(kernels, parse_target("x86-64-v3"), 1, &cache);
  backend.compile({scaled(3)}, target, 1, &cache);
  EXPECT_EQ(cache.counts().hits, 1);
  EXPECT_EQ(cache.usage().entries, 3);
}

TEST_F(KernelCacheTest, code_and_key_do_not_depend_on_what_was_generated_before) {
  KernelCache cache(folder_, kRoom);
  Target target = parse_target("x86-64-v2");
  const Backend& backend = backend_of(target);
  // More than one generator makes.
  std::vector<PrimFunc> kernels;
  for (int64_t factor = 2; factor < 302; ++factor) kernels.push_back(scaled(factor));
  std::vector<ObjectCode> together = backend.compile(kernels, target, 1, &cache);
  for (size_t at : {size_t{0}, size_t{1}, size_t{255}, size_t{256}, kernels.size() - 1}) {
    EXPECT_EQ(backend.compile({kernels[at]}, target, 1, nullptr)[0], together[at]) << at;
  }
  EXPECT_EQ(cache.counts().hits, 0);
  for (const PrimFunc& kernel : kernels) backend.compile({kernel}, target, 1, &cache);
  EXPECT_EQ(cache.counts().hits, static_cast<int64_t>(kernels.size()));
}

TEST_F(KernelCacheTest, kernels_run_from_the_cache_and_over_a_damaged_entry) {
  for (int round = 0; round < 3; ++round) {
    KernelCache cache(folder_, kRoom);
    LoadedKernels jit = load_kernels({scaled(2)}, parse_target("x86-64-v2"), &cache);
    alignas(64) float in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8] = {};
    void* buffers[] = {in, out};
    relay_kernel_context context{};
    context.abi_version = RELAY_KERNEL_ABI_VERSION;
    context.num_threads = 1;
    int32_t error = 0;
    context.error = &error;
    jit.functions()[0](buffers, nullptr, &context);
    EXPECT_EQ(error, 0);
    EXPECT_EQ(out[7], 16);
    EXPECT_EQ(cache.counts().hits, round == 1);
    EXPECT_EQ(cache.counts().stored, round != 1);
    if (round == 1) fs::resize_file(only_file(), 100);
  }
}

}  // namespace
}  // namespace relay
