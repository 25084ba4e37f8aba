#include "frontend/common/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/codes/frontend.h"

namespace relay::frontend {
namespace {

int64_t modified_ns(const struct stat& s) {
  return int64_t{s.st_mtim.tv_sec} * 1'000'000'000 + s.st_mtim.tv_nsec;
}

[[noreturn]] void cannot_read(const std::string& name, const std::string& why) {
  throw UserError(Diagnostic(codes::frontend_file, Span::place(SourceFile::make(name), "file"),
                             "the model file cannot be read: " + why)
                      .help("check the path and its permissions"));
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path, int64_t max_bytes) {
  if (path.find('\0') != std::string::npos) cannot_read(path, "the name holds a zero byte");
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) cannot_read(path, std::strerror(errno));
  struct stat s {};
  if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode)) {
    ::close(fd);
    cannot_read(path, "it is not a regular file");
  }
  if (s.st_size > max_bytes) {
    ::close(fd);
    throw UserError(Diagnostic(codes::frontend_limit, Span::place(SourceFile::make(path), "file"),
                               "the model file is larger than allowed")
                        .expected("at most " + std::to_string(max_bytes) + " bytes")
                        .found(std::to_string(s.st_size) + " bytes"));
  }
  return adopt(fd, path);
}

std::shared_ptr<const MappedFile> MappedFile::adopt(int fd, const std::string& name) {
  std::shared_ptr<MappedFile> file(new MappedFile());
  file->fd_ = fd;
  file->name_ = name;
  struct stat s {};
  if (fstat(fd, &s) != 0) cannot_read(name, std::strerror(errno));
  file->size_ = static_cast<size_t>(s.st_size);
  file->modified_ns_ = modified_ns(s);
  if (file->size_ > 0) {
    void* p = mmap(nullptr, file->size_, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) cannot_read(name, std::strerror(errno));
    file->data_ = static_cast<const char*>(p);
  }
  return file;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<char*>(data_), size_);
  if (fd_ >= 0) ::close(fd_);
}

void MappedFile::check_unchanged() const {
  struct stat s {};
  if (fstat(fd_, &s) != 0) cannot_read(name_, std::strerror(errno));
  if (static_cast<size_t>(s.st_size) != size_ || modified_ns(s) != modified_ns_) {
    cannot_read(name_, "it changed while it was read");
  }
}

void MappedFile::forget(std::string_view part) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  auto begin = (reinterpret_cast<uintptr_t>(part.data()) + page - 1) / page * page;
  auto end = (reinterpret_cast<uintptr_t>(part.data()) + part.size()) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

ModelFolder::ModelFolder(const std::string& path) : path_(path) {
  // A model that is read from /dev/stdin has no folder.
  if (path.empty() || path == "/dev") return;
  fd_ = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

ModelFolder::~ModelFolder() {
  if (fd_ >= 0) ::close(fd_);
}

std::shared_ptr<const MappedFile> ModelFolder::map(const std::string& location,
                                                   const Span& span) const {
  auto refuse = [&](const std::string& why, const std::string& help) {
    throw UserError(Diagnostic(codes::frontend_external_data, span,
                               "external data '" + escape_for_terminal(location, 200) +
                                   "' cannot be used: " + why)
                        .expected("a regular file inside the folder of the model")
                        .help(help));
  };
  if (fd_ < 0) {
    refuse("there is no model folder to look in",
           "load the model from a file, or name the folder of its external data");
  }
  if (location.empty() || location.find('\0') != std::string::npos || location.front() == '/' ||
      location.find('\\') != std::string::npos || location.size() > 4096) {
    refuse("its path is not a plain relative path", "put the file next to the model");
  }
  std::vector<std::string> parts;
  for (size_t at = 0; at <= location.size();) {
    size_t slash = std::min(location.find('/', at), location.size());
    std::string part = location.substr(at, slash - at);
    at = slash + 1;
    if (part.empty() || part == ".") continue;
    if (part == "..") refuse("its path leaves the folder", "put the file next to the model");
    parts.push_back(std::move(part));
  }
  if (parts.empty()) refuse("its path names no file", "put the file next to the model");

  // One component at a time, so that no symbolic link is ever followed.
  int at = fd_;
  for (size_t i = 0; i < parts.size(); ++i) {
    bool last = i + 1 == parts.size();
    int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (last ? 0 : O_DIRECTORY);
    int next = openat(at, parts[i].c_str(), flags);
    int error = errno;
    if (at != fd_) ::close(at);
    if (next < 0) {
      bool link = error == ELOOP || (error == ENOTDIR && !last);
      refuse(link ? "its path goes through a symbolic link or a file" : std::strerror(error),
             link ? "replace the link by the file itself" : "put the file next to the model");
    }
    at = next;
  }
  struct stat s {};
  if (fstat(at, &s) != 0 || !S_ISREG(s.st_mode)) {
    ::close(at);
    refuse("it is not a regular file", "put the file next to the model");
  }
  if (s.st_nlink > 1) {
    ::close(at);
    refuse("the file has " + std::to_string(s.st_nlink) + " names (hard links)",
           "make a copy of the file, so that it has one name");
  }
  return MappedFile::adopt(at, path_ + "/" + location);
}

}  // namespace relay::frontend
