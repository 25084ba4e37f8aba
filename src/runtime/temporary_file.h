// A file that appears whole or not at all.
//
//   TemporaryFile file("model.so");
//   file.write(bytes.data(), bytes.size());
//   file.rename_to_target(true);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace relay::runtime {

// A file without a name in the target's folder until it is whole, so that nothing is left of it whatever becomes of the
// process; where the file system has no such files, one called "TARGET.tmp" with numbers, which is removed unless it is
// renamed into place. Takes the place of nothing, or, where that is asked for, of a regular file, and then keeps its
// permissions: never of a folder, device, pipe or socket, and never of a symbolic link, which is refused and not
// followed. Throws UserError E0611.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& target);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  // Throws when a file could not take the place of what `target` is now. The permission bits of the file
  // that it would replace; nothing when there is none.
  static std::optional<uint32_t> check_target(const std::string& target, bool overwrite);

  // For reading what has been written.
  int descriptor() const { return fd_; }
  void write(const void* data, size_t size);
  // Without `overwrite`, a target that exists is an error.
  void rename_to_target(bool overwrite);

 private:
  void open_named();
  std::string next_name() const;
  // False when something stands at the path.
  bool link_to(const std::string& path);

  std::string target_;
  std::string path_;  // empty: the file has no name
  int fd_ = -1;
};

}  // namespace relay::runtime
