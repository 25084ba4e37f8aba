// Linking with LLD as a library.
#include <fcntl.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "base/codes/lowering.h"
#include "base/fork.h"
#include "codegen/llvm/architecture.h"
#include "codegen/llvm/codegen.h"

LLD_HAS_DRIVER(elf)

namespace relay::codegen {

void leave_out_other_targets();

namespace {

namespace fs = std::filesystem;

[[noreturn]] void no_folder() {
  throw UserError(Diagnostic(codes::codegen_failed, {}, "no temporary folder can be made")
                      .help("set TMPDIR to a folder that can be written"));
}

fs::path folder_of_temporaries() {
  std::error_code error;
  fs::path out = fs::temp_directory_path(error);
  if (error) no_folder();
  return out;
}

// A folder for one run of the linker, which goes away with its contents. It is locked while it is in use, and the
// system unlocks it when the process ends in whatever way: the next process to link removes what it finds unlocked.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    static std::once_flag once;
    std::call_once(once, remove_leftovers);
    // Another process may take a folder for a leftover before it is locked.
    constexpr int kTries = 100;
    for (int i = 0; i < kTries; ++i) {
      std::string pattern = (folder_of_temporaries() / (std::string(kPrefix) + "XXXXXX")).string();
      if (mkdtemp(pattern.data()) == nullptr) break;
      path_ = pattern;
      fd_ = lock(path_);
      if (fd_ >= 0) return;
    }
    no_folder();
  }
  ~TemporaryFolder() {
    try {
      remove(path_);
    } catch (const std::bad_alloc&) {
      // Listing the folder takes memory. A later link removes it (remove_leftovers).
    }
    close(fd_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string descriptor() const { return path_ + "/" + kDescriptor; }
  std::string object(size_t i) const { return path_ + "/" + kObject + std::to_string(i) + ".o"; }
  std::string output() const { return path_ + "/" + kOutput; }

 private:
  static constexpr const char* kPrefix = "relay-link-";
  static constexpr const char* kDescriptor = "descriptor.o";
  static constexpr const char* kObject = "kernels-";
  static constexpr const char* kOutput = "out.so";

  // A descriptor that holds the lock, or -1 when another process holds it or the folder is gone.
  static int lock(const std::string& path) {
    int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return -1;
    struct stat held {};
    struct stat named {};
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &held) == 0 && held.st_uid == geteuid() &&
        lstat(path.c_str(), &named) == 0 && named.st_ino == held.st_ino)
      return fd;
    close(fd);
    return -1;
  }

  // Removes the files that are made here, and the folder when nothing else is in it.
  static void remove(const std::string& path) {
    std::error_code ignored;
    std::vector<fs::path> files;
    for (fs::directory_iterator at(path, ignored), end; at != end; at.increment(ignored)) {
      std::string name = at->path().filename().string();
      // The linker writes its output under a longer name first.
      if (name == kDescriptor || name.starts_with(kObject) || name.starts_with(kOutput))
        files.push_back(at->path());
    }
    for (const fs::path& file : files) unlink(file.c_str());
    rmdir(path.c_str());
  }

  static void remove_leftovers() {
    std::error_code ignored;
    std::vector<std::string> found;
    for (fs::directory_iterator at(folder_of_temporaries(), ignored), end; at != end;
         at.increment(ignored)) {
      if (at->path().filename().string().starts_with(kPrefix)) found.push_back(at->path().string());
    }
    for (const std::string& path : found) {
      int fd = lock(path);
      if (fd < 0) continue;
      remove(path);
      close(fd);
    }
  }

  std::string path_;
  int fd_ = -1;
};

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.flush();
  if (!out)
    throw UserError(Diagnostic(codes::codegen_failed, {}, "a temporary file cannot be written"));
}

}  // namespace

std::string link_shared(const std::vector<ObjectCode>& objects,
                        const std::vector<tir::PrimFunc>& kernels, const Target& target) {
  leave_out_other_targets();
  TemporaryFolder folder;
  std::vector<std::string> args{"ld.lld",
                                "-shared",
                                "--build-id=none",
                                "--gc-sections",
                                "--as-needed",
                                "-Bsymbolic",
                                "--hash-style=sysv",
                                "-z",
                                "noexecstack",
                                "--threads=1",
                                "-o",
                                folder.output()};
  std::string descriptor = folder.descriptor();
  write_file(descriptor, descriptor_object(kernels, target));
  args.push_back(descriptor);
  for (size_t i = 0; i < objects.size(); ++i) {
    args.push_back(folder.object(i));
    write_file(args.back(), objects[i]);
  }
  // Named, so that the file finds the mathematics library by itself wherever it is loaded.
  for (const char* libm : find_llvm_architecture(target.arch)->libm) {
    if (std::filesystem::exists(libm)) {
      args.emplace_back(libm);
      break;
    }
  }
  std::vector<const char*> argv;
  for (const std::string& a : args) argv.push_back(a.c_str());
  std::string output;
  {
    // The linker keeps its state in globals.
    static ForkSafeMutex mutex;
    std::lock_guard lock(mutex);
    llvm::raw_string_ostream stream(output);
    lld::Result result = lld::lldMain(argv, stream, stream, {{lld::Gnu, &lld::elf::link}});
    if (result.retCode != 0) {
      throw UserError(Diagnostic(codes::codegen_failed, {}, "linking failed: " + output));
    }
  }
  std::ifstream in(folder.output(), std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

}  // namespace relay::codegen
