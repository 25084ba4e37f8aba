// Compiled kernels on disk, so that what was compiled once is not compiled again.
//
//   std::shared_ptr<KernelCache> cache = KernelCache::of_user();
//   backend_of(target).compile(kernels, target, threads, cache.get());
//
// An entry is the object code of one kernel, or the binary that a device's driver built, in a file named by its key: a hash
// of all that the code generator sees (the kernel, the target, the compiler's version and settings) or the driver (source,
// options, device, the driver's version). So an entry is never out of date, and entries of all programs and targets lie side
// by side. Weights are no part of kernels.
//
// A cache makes nothing fail: a folder that cannot be made, read or written, and entries that are
// damaged, are as if nothing were stored, and `note` says so. Processes may share a folder: entries
// appear whole, by renaming. The folder holds code that will run, so one that others than its
// owner may write is not used.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace relay {

class KernelCache {
 public:
  // What happened since the cache was opened.
  struct Counts {
    int64_t hits = 0;
    int64_t misses = 0;
    int64_t stored = 0;
  };
  // What lies in the folder.
  struct Usage {
    int64_t entries = 0;
    int64_t bytes = 0;
  };

  // Entries that were not used for the longest time are removed when the folder grows beyond
  // `max_bytes`.
  KernelCache(std::string folder, int64_t max_bytes);

  // The cache of the user: in RELAY_CACHE_DIR, or $XDG_CACHE_HOME/relay, or ~/.cache/relay; of at
  // most RELAY_CACHE_SIZE bytes (K, M or G may follow), 512M by default. Null where the size is 0
  // and where there is no folder to be found. UserError E0702 for a size that is none.
  static std::shared_ptr<KernelCache> of_user();

  const std::string& folder() const { return folder_; }
  int64_t max_bytes() const { return max_bytes_; }

  // The object code under the key (hexadecimal digits), if there is a sound entry.
  std::optional<std::string> find(std::string_view key);
  void insert(std::string_view key, std::string_view object);

  Counts counts() const;
  Usage usage() const;
  // Removes all entries and returns how many there were.
  int64_t clear();
  // Why the cache is of less use than it could be; empty when all is well.
  std::string note() const;

 private:
  std::string path_of(std::string_view key) const;
  void say(std::string note);
  void make_room();

  std::string folder_;
  int64_t max_bytes_;
  mutable std::mutex mutex_;
  bool usable_ = true;
  int64_t bytes_ = -1;  // in the folder, as far as is known; -1: not counted yet
  Counts counts_;
  std::string note_;
};

}  // namespace relay
