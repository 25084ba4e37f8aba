// The C interface when the system refuses something: each allocation, thread and file operation of a
// load and a run fails, once or from then on. Nothing aborts, every failure is a status with a message,
// and what comes after it is right.
//
// The program's own malloc, open, ... take the place of the system's, for all libraries in the process.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "relay/c_api.h"
#include "runtime/artifact.h"
#include "runtime/cpu.h"
#include "runtime/test/vm_program.h"

// A sanitizer has its own malloc.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

// Which operation fails, counted from 0; -1: none.
std::atomic<int64_t> failing{-1};
std::atomic<bool> for_ever{false};
std::atomic<int64_t> operations{0};

bool refused() {
  int64_t at = failing.load(std::memory_order_relaxed);
  if (at < 0) return false;
  int64_t number = operations.fetch_add(1, std::memory_order_relaxed);
  return number == at || (number > at && for_ever.load(std::memory_order_relaxed));
}

template <class F>
F* next(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) noexcept {
  if (!refused()) return __libc_malloc(bytes);
  errno = ENOMEM;
  return nullptr;
}
void* calloc(size_t count, size_t bytes) noexcept {
  if (!refused()) return __libc_calloc(count, bytes);
  errno = ENOMEM;
  return nullptr;
}
void* realloc(void* memory, size_t bytes) noexcept {
  if (!refused()) return __libc_realloc(memory, bytes);
  errno = ENOMEM;
  return nullptr;
}
void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  if (!refused()) return __libc_memalign(alignment, bytes);
  errno = ENOMEM;
  return nullptr;
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if (!refused()) return next<int(const char*, int, ...)>("open")(path, flags, mode);
  errno = EMFILE;
  return -1;
}
ssize_t read(int fd, void* data, size_t bytes) {
  if (!refused()) return next<ssize_t(int, void*, size_t)>("read")(fd, data, bytes);
  errno = EIO;
  return -1;
}
ssize_t pread(int fd, void* data, size_t bytes, off_t at) {
  if (!refused()) return next<ssize_t(int, void*, size_t, off_t)>("pread")(fd, data, bytes, at);
  errno = EIO;
  return -1;
}
ssize_t write(int fd, const void* data, size_t bytes) {
  if (!refused()) return next<ssize_t(int, const void*, size_t)>("write")(fd, data, bytes);
  errno = ENOSPC;
  return -1;
}
int fstat(int fd, struct stat* out) noexcept {
  if (!refused()) return next<int(int, struct stat*)>("fstat")(fd, out);
  errno = EIO;
  return -1;
}
void* mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  if (!refused()) {
    return next<void*(void*, size_t, int, int, int, off_t)>("mmap")(at, bytes, protection, flags,
                                                                    fd, offset);
  }
  errno = ENOMEM;
  return MAP_FAILED;
}
int mprotect(void* at, size_t bytes, int protection) noexcept {
  if (!refused()) return next<int(void*, size_t, int)>("mprotect")(at, bytes, protection);
  errno = ENOMEM;
  return -1;
}
int memfd_create(const char* name, unsigned flags) noexcept {
  if (!refused()) return next<int(const char*, unsigned)>("memfd_create")(name, flags);
  errno = EMFILE;
  return -1;
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) noexcept {
  if (!refused()) {
    return next<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create")(
        thread, attributes, run, argument);
  }
  return EAGAIN;
}

}  // extern "C"

namespace relay::runtime {
namespace {

class FaultsTest : public VmTest {
 protected:
  FaultsTest() {
    folder = std::filesystem::temp_directory_path() / ("relay_faults_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    path = (folder / "m.so").string();
    program.kernels.resize(2);
    static_program();
    FunctionBuilder deep("deep");
    recursive_sum(deep, 1);
    put(std::move(deep));
    std::stringstream elf;
    elf << std::ifstream(RELAY_TEST_KERNELS, std::ios::binary).rdbuf();
    ArtifactInfo info;
    info.arch = host_arch();
    info.compiler_version = "0.1.0";
    write_artifact_file({elf.str(), &program, "{}", info}, path);
  }
  ~FaultsTest() override { std::filesystem::remove_all(folder); }

  // Runs `f` while the operation `at` fails, and tells whether there were so many.
  template <class F>
  static bool with_fault(int64_t at, bool ever, const F& f) {
    operations = 0;
    for_ever = ever;
    failing = at;
    f();
    failing = -1;
    return operations > at;
  }

  std::filesystem::path folder;
  std::string path;
};

// The first call that fails ends it.
struct Use {
  relay_module* module = nullptr;
  relay_session* main = nullptr;
  relay_session* deep = nullptr;
  relay_status status = RELAY_OK;
  std::string message;
  float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  int64_t n = 2000;
  double y = 0;
  int64_t sum = 0;

  bool ok(relay_status s) {
    status = s;
    return s == RELAY_OK;
  }
  void load(const char* path) {
    if (!ok(relay_module_load(path, 4, &module))) return;
    if (!ok(relay_session_create(module, "main", &main))) return;
    ok(relay_session_create(module, "deep", &deep));
  }
  void run() {
    relay_tensor_type type;
    relay_tensor out;
    if (!ok(relay_session_input_info(main, 0, nullptr, &type))) return;
    if (!ok(relay_session_set_input(main, 0, x, &type))) return;
    if (!ok(relay_session_run(main))) return;
    if (!ok(relay_session_output(main, 0, &out))) return;
    y = static_cast<const float*>(out.data)[7];
    if (!ok(relay_session_input_info(deep, 0, nullptr, &type))) return;
    if (!ok(relay_session_set_input(deep, 0, &n, &type))) return;
    if (!ok(relay_session_run(deep))) return;
    if (!ok(relay_session_output(deep, 0, &out))) return;
    sum = *static_cast<const int64_t*>(out.data);
  }
  void close() {
    relay_session_free(main);
    relay_session_free(deep);
    relay_module_free(module);
    module = nullptr;
    main = deep = nullptr;
  }
  void expect_right() const {
    EXPECT_EQ(status, RELAY_OK) << relay_last_error();
    EXPECT_EQ(y, 116);
    EXPECT_EQ(sum, 2001000);
  }
  void expect_typed_failure(int64_t at) const {
    EXPECT_TRUE(status == RELAY_USER_ERROR || status == RELAY_RUNTIME_ERROR)
        << at << ": " << status << " " << relay_last_error();
    EXPECT_STRNE(relay_last_error(), "") << at;
  }
};

TEST_F(FaultsTest, loads_and_runs_fail_with_a_status_and_the_next_is_right) {
  for (bool ever : {false, true}) {
    int64_t failures = 0;
    bool more = true;
    for (int64_t at = 0; more; ++at) {
      // A thread that has used nothing of Relay yet.
      std::thread([&] {
        Use use;
        more = with_fault(at, ever, [&] {
          use.load(path.c_str());
          if (use.status == RELAY_OK) use.run();
        });
        if (use.status != RELAY_OK) {
          ++failures;
          use.expect_typed_failure(at);
        } else {
          use.expect_right();
        }
        // The same session goes on, and so does another.
        if (use.deep != nullptr) {
          use.run();
          use.expect_right();
        }
        with_fault(0, true, [&] { use.close(); });
        Use again;
        again.load(path.c_str());
        ASSERT_EQ(again.status, RELAY_OK) << at << ": " << relay_last_error();
        again.run();
        again.expect_right();
        again.close();
      }).join();
      if (HasFailure()) return;
    }
    EXPECT_GT(failures, 30);
    RecordProperty(ever ? "failures_for_ever" : "failures_once", static_cast<int>(failures));
  }
}

TEST_F(FaultsTest, runs_of_a_session_that_worked_fail_with_a_status_and_the_next_is_right) {
  for (bool ever : {false, true}) {
    bool more = true;
    for (int64_t at = 0; more; ++at) {
      Use use;
      use.load(path.c_str());
      use.run();
      use.expect_right();
      more = with_fault(at, ever, [&] { use.run(); });
      if (use.status != RELAY_OK) use.expect_typed_failure(at);
      use.run();
      use.expect_right();
      use.close();
      if (HasFailure()) return;
    }
  }
}

TEST_F(FaultsTest, a_process_ends_while_its_threads_run) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (int times = 0; times < 3; ++times) {
    EXPECT_EXIT(
        {
          for (int t = 0; t < 4; ++t) {
            std::thread([&] {
              Use use;
              for (use.load(path.c_str());;) use.run();
            }).detach();
          }
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          std::exit(0);
        },
        testing::ExitedWithCode(0), "");
  }
}

// References that form a cycle are told from others with tables, for which there may be no memory.
TEST_F(FaultsTest, a_context_with_cycles_ends_without_memory) {
  FunctionBuilder f("cycle");
  f.param("x", kScalar);
  int32_t self = f.reg();
  f.ref_new(self, 0);
  f.ref_write(self, self);
  f.ret(0);
  program.functions.clear();
  put(std::move(f));
  auto m = std::make_unique<Module>(Module::from_kernels(program, {kernels[0], kernels[1]}));
  Value x = integer(1);
  m->run_values("cycle", std::span(&x, 1));
  with_fault(0, true, [&] { m.reset(); });
}

TEST_F(FaultsTest, a_pool_is_as_large_as_the_system_allows) {
  for (int64_t at = 0; at < 12; ++at) {
    std::unique_ptr<ThreadPool> pool;
    with_fault(at, true, [&] {
      try {
        pool = std::make_unique<ThreadPool>(4);
      } catch (const std::bad_alloc&) {
        // The pool itself has no place.
      }
    });
    if (pool == nullptr) continue;
    std::atomic<int64_t> sum{0};
    auto body = [](void* env, int64_t begin, int64_t end) -> int32_t {
      for (int64_t i = begin; i < end; ++i) *static_cast<std::atomic<int64_t>*>(env) += i;
      return 0;
    };
    EXPECT_EQ(pool->parallel_for(body, &sum, 100, 4), 0);
    EXPECT_EQ(sum, 4950);
  }
}

}  // namespace
}  // namespace relay::runtime

#endif
