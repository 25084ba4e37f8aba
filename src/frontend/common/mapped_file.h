// Reading of files that a model names: the one place where front ends open anything.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/source.h"

namespace relay::frontend {

// A regular file mapped into memory, read-only. Errors are UserErrors E0511.
class MappedFile {
 public:
  // Opens the model file itself, wherever the user says it is.
  static std::shared_ptr<const MappedFile> open(const std::string& path, int64_t max_bytes);
  // Maps an open regular file and takes over the descriptor.
  static std::shared_ptr<const MappedFile> adopt(int fd, const std::string& name);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return {data_, size_}; }
  // Throws E0511 when the file is not as long, or not as old, as when it was mapped.
  void check_unchanged() const;
  // Tells the system that these bytes of a mapping are not needed again soon.
  static void forget(std::string_view part);

 private:
  MappedFile() = default;
  const char* data_ = nullptr;
  size_t size_ = 0;
  int fd_ = -1;
  int64_t modified_ns_ = 0;
  std::string name_;
};

// The folder in which a model's external data may lie. Opens files strictly beneath it: a relative
// path without "..", no symbolic link in any component, a regular file with one name only.
class ModelFolder {
 public:
  // An empty path allows no external data.
  explicit ModelFolder(const std::string& path);
  ~ModelFolder();
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;

  // Maps the file at `location`; throws UserError E0509 when that is not allowed or fails.
  std::shared_ptr<const MappedFile> map(const std::string& location, const Span& span) const;

 private:
  int fd_ = -1;
  std::string path_;
};

}  // namespace relay::frontend
