// A file in memory, without a name in any folder: it can be opened by its path as often as needed, in child processes, too.
#pragma once

#include <string>
#include <string_view>

namespace relay::cli {

class MemoryFile {
 public:
  // These throw UserError E0701 where there is no memory, or no such file on this system.
  MemoryFile();
  void append(std::string_view data);

  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return descriptor_; }
  std::string path() const { return "/dev/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace relay::cli
