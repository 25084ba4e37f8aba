#include "runtime/temporary_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/diagnostic_codes.h"

namespace relay::runtime {
namespace {

[[noreturn]] void cannot_write(const std::string& path, int error) {
  throw UserError(
      Diagnostic(codes::artifact_io, {},
                 "cannot write '" + escape_for_terminal(path, 300) + "': " + std::strerror(error)));
}

}  // namespace

TemporaryFile::TemporaryFile(const std::string& target) : target_(target) {
  static std::atomic<uint32_t> counter{0};
  for (int attempt = 0; attempt < 100 && fd_ < 0; ++attempt) {
    path_ = target + ".tmp" + std::to_string(getpid()) + "." + std::to_string(counter++);
    fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd_ < 0 && errno != EEXIST) break;
  }
  if (fd_ < 0) cannot_write(target, errno);
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

void TemporaryFile::rename_to_target(bool overwrite) {
  if (close(std::exchange(fd_, -1)) != 0) cannot_write(target_, errno);
  if (overwrite) {
    if (rename(path_.c_str(), target_.c_str()) != 0) cannot_write(target_, errno);
    path_.clear();
  } else if (link(path_.c_str(), target_.c_str()) != 0) {
    // A hard link fails when the target exists, also when it has appeared just now.
    if (errno == EEXIST) exists();
    // Some file systems have no hard links.
    if (access(target_.c_str(), F_OK) == 0) exists();
    if (rename(path_.c_str(), target_.c_str()) != 0) cannot_write(target_, errno);
    path_.clear();
  }
}

void TemporaryFile::exists() const {
  throw UserError(Diagnostic(codes::artifact_io, {},
                             "'" + escape_for_terminal(target_, 300) + "' exists already")
                      .help("choose another name, or ask for it to be overwritten"));
}

}  // namespace relay::runtime
