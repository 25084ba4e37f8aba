// Writes zip archives of stored files, which Archive (archive.h) and NumPy read.
//
//   ArchiveWriter out([&](const void* data, size_t size) { file.write(data, size); });
//   out.add("x.npy", {header, numbers});
//   out.finish();
//
// Equal contents give equal bytes: the entries have the date 1980-01-01.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace relay::frontend {

class ArchiveWriter {
 public:
  using Write = std::function<void(const void* data, size_t size)>;

  explicit ArchiveWriter(Write write) : write_(std::move(write)) {}

  // A file made of parts. UserError E0701 where the archive would have more than 4 GiB, or 65,534 files.
  void add(const std::string& name, const std::vector<std::string_view>& parts);
  // The directory, which ends the archive.
  void finish();

 private:
  void write(std::string_view bytes);

  Write write_;
  uint64_t written_ = 0;
  uint16_t entries_ = 0;
  std::string directory_;
};

}  // namespace relay::frontend
