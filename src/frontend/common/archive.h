// Zip archives, in which several formats keep their models: files by name, stored or deflated.
//
//   Archive archive(mapped->bytes(), SourceFile::make("net.pt2"));
//   std::string json = archive.read(archive.at("models/model.json"));
//   std::string_view weight = archive.view(archive.at("data/weights/0"));   // stays in the mapped file
//
// An archive is hostile input: the directory is checked whole before anything is read. No entry reaches outside of the
// file or into another one, no name leaves the folder or is given twice, and what an entry grows to is bounded by its
// bytes and by a limit for all together. Nothing is ever written to a disk. Archives of one file with 64-bit sizes are
// read; encryption, other methods and archives in several files are refused (E0504).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/source.h"

namespace relay::frontend {

// Whether the first bytes of a file are those of an archive.
bool is_archive(std::string_view head);

class Archive {
 public:
  struct Limits {
    uint64_t entries = 1'000'000;
    uint64_t bytes = uint64_t{64} << 30;  // of all entries together, as they are read
    bool names_are_paths = true;  // and stay inside; otherwise they are the names of tensors
  };
  struct Entry {
    std::string name;  // a relative path, or any name (Limits::names_are_paths)
    uint64_t size = 0;
    bool is_stored = false;  // as it is, so that `view` gives it

   private:
    friend class Archive;
    uint64_t begin = 0, packed = 0;  // where its bytes are, and how many
    uint32_t crc = 0;
  };

  // The archive in these bytes, which must live as long as it. E0502 for what is damaged or none, E0506 beyond the limits.
  Archive(std::string_view bytes, std::shared_ptr<const SourceFile> file);
  Archive(std::string_view bytes, std::shared_ptr<const SourceFile> file, const Limits& limits);
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  // All files, in the order of the directory; folders are left out.
  const std::vector<Entry>& entries() const { return entries_; }
  // Null for a name that is not there.
  const Entry* find(std::string_view name) const;
  // E0507 for a name that is not there.
  const Entry& at(std::string_view name) const;

  // The bytes of an entry; E0502 where they do not have the size and the checksum of the directory.
  std::string read(const Entry& entry) const;
  // The same of an entry that is stored, without a copy.
  std::string_view view(const Entry& entry) const;

 private:
  struct Directory;
  Directory find_directory() const;
  void read_directory(const Directory& directory, const Limits& limits);
  Entry read_entry(std::string_view header, std::string_view name, std::string_view extra,
                   uint64_t end, const Limits& limits) const;
  void check_overlaps() const;
  void check_sum(const Entry& entry, std::string_view bytes) const;
  [[noreturn]] void damaged(const std::string& why, const std::string& entry = {}) const;
  [[noreturn]] void unsupported(const std::string& what, const std::string& entry = {}) const;

  std::string_view bytes_;
  std::shared_ptr<const SourceFile> file_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string_view, size_t> by_name_;
};

}  // namespace relay::frontend
