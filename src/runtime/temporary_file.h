// A file that appears whole or not at all.
//
//   TemporaryFile file("model.so");
//   file.write(bytes.data(), bytes.size());
//   file.rename_to_target(true);
#pragma once

#include <cstddef>
#include <string>

namespace relay::runtime {

// Written beside the target under a name of its own, "TARGET.tmp" with numbers, and removed unless
// it is renamed into place. Throws UserError E0611.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& target);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(const void* data, size_t size);
  // Without `overwrite`, a target that exists is an error.
  void rename_to_target(bool overwrite);

 private:
  [[noreturn]] void exists() const;

  std::string target_;
  std::string path_;
  int fd_ = -1;
};

}  // namespace relay::runtime
