#include "codegen/kernel_cache.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/codes/driver.h"
#include "runtime/checksum.h"
#include "runtime/temporary_file.h"

namespace relay {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kDefaultBytes = int64_t{512} << 20;
constexpr std::string_view kEnding = ".kernel";
// What a process that was killed has left behind is older than any that is still being written.
constexpr auto kAbandoned = std::chrono::hours(1);

// In front of the object code of an entry.
struct Header {
  char magic[8];
  uint64_t bytes;
  uint64_t checksum;  // of the key and the object code
};
constexpr char kMagic[8] = {'R', 'E', 'L', 'A', 'Y', 'K', 'C', '1'};

uint64_t checksum_of(std::string_view key, std::string_view object) {
  runtime::Checksum sum;
  sum.add(key.data(), key.size());
  sum.add(object.data(), object.size());
  return sum.value();
}

// The object code of an entry's file; nothing unless all of it is sound. All is read from one open
// file: at the same path another process may put another one at any time.
std::optional<std::string> content(std::ifstream& in, std::string_view key) {
  in.seekg(0, std::ios::end);
  std::streamoff size = in.tellg();
  in.seekg(0);
  Header header{};
  if (!in.read(reinterpret_cast<char*>(&header), sizeof(header)) ||
      std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 ||
      header.bytes != static_cast<uint64_t>(size) - sizeof(header)) {
    return std::nullopt;
  }
  std::string object(header.bytes, '\0');
  if (!in.read(object.data(), static_cast<std::streamsize>(object.size())) ||
      checksum_of(key, object) != header.checksum) {
    return std::nullopt;
  }
  return object;
}

struct Entry {
  fs::path path;
  int64_t bytes;
  fs::file_time_type used;
};

// The entries of the folder; removes what killed processes have left.
std::vector<Entry> entries_of(const std::string& folder) {
  std::vector<Entry> out;
  std::error_code error;
  auto now = fs::file_time_type::clock::now();
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code gone;
    std::string name = it->path().filename().string();
    fs::file_time_type used = it->last_write_time(gone);
    if (gone || !it->is_regular_file(gone)) continue;
    if (name.ends_with(kEnding)) {
      out.push_back({it->path(), static_cast<int64_t>(it->file_size(gone)), used});
    } else if (name.find(std::string(kEnding) + ".tmp") != std::string::npos &&
               now - used > kAbandoned) {
      fs::remove(it->path(), gone);
    }
  }
  return out;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

int64_t size_from_environment() {
  std::string text = variable("RELAY_CACHE_SIZE");
  if (text.empty()) return kDefaultBytes;
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
  if (error != std::errc() || shift < 0 || value < 0 || value > (INT64_MAX >> shift)) {
    throw UserError(Diagnostic(codes::driver_option, {}, "RELAY_CACHE_SIZE is not a size")
                        .expected("a number of bytes, which K, M or G may follow; 0: no cache")
                        .found("'" + text + "'"));
  }
  return value << shift;
}

std::string folder_from_environment() {
  if (std::string set = variable("RELAY_CACHE_DIR"); !set.empty()) return set;
  // Relative paths are not valid there, by the base directory specification.
  if (std::string base = variable("XDG_CACHE_HOME"); base.starts_with('/')) return base + "/relay";
  std::string home = variable("HOME");
  if (home.empty()) {
    passwd entry{}, *found = nullptr;
    std::vector<char> strings(16 << 10);
    if (getpwuid_r(geteuid(), &entry, strings.data(), strings.size(), &found) == 0 &&
        found != nullptr) {
      home = found->pw_dir;
    }
  }
  return home.starts_with('/') ? home + "/.cache/relay" : "";
}

}  // namespace

std::shared_ptr<KernelCache> KernelCache::of_user() {
  int64_t bytes = size_from_environment();
  std::string folder = folder_from_environment();
  if (bytes == 0 || folder.empty()) return nullptr;
  return std::make_shared<KernelCache>(folder, bytes);
}

KernelCache::KernelCache(std::string folder, int64_t max_bytes)
    : folder_(std::move(folder)), max_bytes_(max_bytes) {
  struct stat about {};
  if (stat(folder_.c_str(), &about) != 0) return;  // made with the first entry
  if (!S_ISDIR(about.st_mode)) {
    note_ = "it is not a folder";
  } else if ((about.st_uid != geteuid() && about.st_uid != 0) || (about.st_mode & S_IWOTH) != 0) {
    note_ = "others may write in the folder";
  }
  usable_ = note_.empty();
}

std::string KernelCache::path_of(std::string_view key) const {
  // Subfolders keep the folders short.
  return folder_ + "/" + std::string(key.substr(0, 2)) + "/" + std::string(key) +
         std::string(kEnding);
}

void KernelCache::say(std::string note) {
  if (note_.empty()) note_ = std::move(note);
}

std::optional<std::string> KernelCache::find(std::string_view key) {
  if (!usable_) return std::nullopt;
  std::string path = path_of(key);
  std::ifstream in(path, std::ios::binary);
  bool there = in.is_open();
  std::optional<std::string> object = there ? content(in, key) : std::nullopt;
  // The time of the last use decides what is removed first; it may be unwritable.
  if (object) utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  std::lock_guard<std::mutex> lock(mutex_);
  if (there && !object) say("an entry was damaged and is compiled again");
  ++(object ? counts_.hits : counts_.misses);
  return object;
}

void KernelCache::insert(std::string_view key, std::string_view object) {
  if (!usable_) return;
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.bytes = object.size();
  header.checksum = checksum_of(key, object);
  std::string path = path_of(key);
  try {
    std::error_code ignored;
    fs::path parent = fs::path(folder_).parent_path();
    if (!parent.empty()) fs::create_directories(parent, ignored);
    mkdir(folder_.c_str(), 0700);
    mkdir(fs::path(path).parent_path().c_str(), 0700);
    runtime::TemporaryFile file(path);
    file.write(&header, sizeof(header));
    file.write(object.data(), object.size());
    file.rename_to_target(true);
  } catch (const UserError&) {
    std::lock_guard<std::mutex> lock(mutex_);
    say("entries cannot be written");
    return;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  ++counts_.stored;
  if (bytes_ >= 0) bytes_ += static_cast<int64_t>(sizeof(header) + object.size());
  if (bytes_ < 0 || bytes_ > max_bytes_) make_room();
}

// Counts the folder and, when it is too large, leaves three quarters of the room in use, so that
// the next entries need no counting.
void KernelCache::make_room() {
  std::vector<Entry> entries = entries_of(folder_);
  bytes_ = 0;
  for (const Entry& e : entries) bytes_ += e.bytes;
  if (bytes_ <= max_bytes_) return;
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& e : entries) {
    if (bytes_ <= max_bytes_ / 4 * 3) break;
    std::error_code ignored;
    fs::remove(e.path, ignored);
    bytes_ -= e.bytes;
  }
}

KernelCache::Counts KernelCache::counts() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

KernelCache::Usage KernelCache::usage() const {
  Usage out;
  for (const Entry& e : entries_of(folder_)) {
    ++out.entries;
    out.bytes += e.bytes;
  }
  return out;
}

int64_t KernelCache::clear() {
  int64_t removed = 0;
  for (const Entry& e : entries_of(folder_)) {
    std::error_code error;
    removed += fs::remove(e.path, error) ? 1 : 0;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  bytes_ = -1;
  return removed;
}

std::string KernelCache::note() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return note_;
}

}  // namespace relay
