#include "runtime/temporary_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/codes/runtime.h"

namespace relay::runtime {
namespace {

[[noreturn]] void cannot_write(const std::string& path, int error) {
  throw UserError(
      Diagnostic(codes::artifact_io, {},
                 "cannot write '" + escape_for_terminal(path, 300) + "': " + std::strerror(error)));
}

[[noreturn]] void refuse(const std::string& path, const std::string& what, const char* help) {
  throw UserError(
      Diagnostic(codes::artifact_io, {}, "'" + escape_for_terminal(path, 300) + "' " + what)
          .help(help));
}

// The kind of an existing file at the path of an output; empty for a regular file.
const char* kind_of(mode_t mode) {
  if (S_ISREG(mode)) return "";
  if (S_ISDIR(mode)) return "is a folder";
  if (S_ISLNK(mode)) return "is a symbolic link";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "is a device";
  return S_ISFIFO(mode) ? "is a named pipe" : "is a socket";
}

std::string folder_of(const std::string& path) {
  size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// The name under which the kernel knows an open file without a name.
std::string descriptor_path(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

}  // namespace

std::optional<uint32_t> TemporaryFile::check_target(const std::string& target, bool overwrite) {
  struct stat found {};
  if (lstat(target.c_str(), &found) != 0) return std::nullopt;
  const char* kind = kind_of(found.st_mode);
  if (*kind != '\0') {
    refuse(target, kind, "only a regular file is overwritten; give the name of one, or a new name");
  }
  if (!overwrite) {
    refuse(target, "exists already", "choose another name, or ask for it to be overwritten");
  }
  return found.st_mode & 07777;
}

TemporaryFile::TemporaryFile(const std::string& target) : target_(target) {
#ifdef O_TMPFILE
  fd_ = open(folder_of(target).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  if (fd_ >= 0 && access(descriptor_path(fd_).c_str(), F_OK) == 0) return;
  if (fd_ >= 0) close(std::exchange(fd_, -1));
#endif
  open_named();
}

std::string TemporaryFile::next_name() const {
  static std::atomic<uint32_t> counter{0};
  return target_ + ".tmp" + std::to_string(getpid()) + "." + std::to_string(counter++);
}

void TemporaryFile::open_named() {
  for (int attempt = 0; attempt < 100 && fd_ < 0; ++attempt) {
    path_ = next_name();
    fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd_ < 0 && errno != EEXIST) break;
  }
  if (fd_ >= 0) return;
  path_.clear();
  cannot_write(target_, errno);
}

TemporaryFile::~TemporaryFile() {
  if (fd_ >= 0) close(fd_);
  if (!path_.empty()) unlink(path_.c_str());
}

void TemporaryFile::write(const void* data, size_t size) {
  const char* bytes = static_cast<const char*>(data);
  while (size > 0) {
    ssize_t written = ::write(fd_, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) cannot_write(target_, errno);
    bytes += written;
    size -= static_cast<size_t>(written);
  }
}

bool TemporaryFile::link_to(const std::string& path) {
  std::string from = path_.empty() ? descriptor_path(fd_) : path_;
  if (linkat(AT_FDCWD, from.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0) return true;
  if (errno == EEXIST) return false;
  if (path_.empty()) cannot_write(target_, errno);
  // Some file systems have no hard links: an empty file of our own claims the name.
  int claim = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (claim < 0 && errno == EEXIST) return false;
  if (claim < 0) cannot_write(target_, errno);
  close(claim);
  if (rename(path_.c_str(), path.c_str()) != 0) {
    int error = errno;
    unlink(path.c_str());
    cannot_write(target_, error);
  }
  path_.clear();
  return true;
}

void TemporaryFile::rename_to_target(bool overwrite) {
  // One check decides: the link detects a file that another process makes later, never replaces it,
  // and the file is checked then.
  for (bool placed = false; !placed;) {
    std::optional<uint32_t> mode = check_target(target_, overwrite);
    if (!mode) {
      placed = link_to(target_);
      continue;
    }
    if (fchmod(fd_, *mode) != 0) cannot_write(target_, errno);
    // Only a name can be renamed onto another.
    while (path_.empty()) {
      std::string name = next_name();
      if (link_to(name)) path_ = name;
    }
    if (rename(path_.c_str(), target_.c_str()) != 0) cannot_write(target_, errno);
    path_.clear();
    placed = true;
  }
  if (close(std::exchange(fd_, -1)) != 0) cannot_write(target_, errno);
}

}  // namespace relay::runtime
