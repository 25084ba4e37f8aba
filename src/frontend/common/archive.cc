#include "frontend/common/archive.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/codes/driver.h"
#include "base/codes/frontend.h"
#include "frontend/common/archive_writer.h"

namespace relay::frontend {
namespace {

// The records of the format begin with these; numbers are stored with the lowest byte first.
constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50, kEnd64Place = 0x07064b50;
constexpr size_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kEnd64Size = 56,
                 kEnd64PlaceSize = 20;
// No bytes deflate to fewer than this part of them.
constexpr uint64_t kMostRatio = 1032;
// A 16-bit or 32-bit number that stands for one in the fields of 64 bits.
constexpr uint64_t kFull16 = 0xffff, kFull32 = 0xffffffff;

uint64_t number(std::string_view bytes, size_t at, size_t width) {
  uint64_t out = 0;
  for (size_t i = 0; i < width; ++i) {
    out |= uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  }
  return out;
}

// The bytes [begin, begin + size), if they are there.
std::optional<std::string_view> part(std::string_view bytes, uint64_t begin, uint64_t size) {
  if (begin > bytes.size() || size > bytes.size() - begin) return std::nullopt;
  return bytes.substr(begin, size);
}

// The record at a place, if it is there and begins so.
std::optional<std::string_view> record(std::string_view bytes, uint64_t begin, size_t size,
                                       uint32_t mark) {
  auto out = part(bytes, begin, size);
  return out && number(*out, 0, 4) == mark ? out : std::nullopt;
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= 4096 && name.find('\0') == std::string_view::npos;
}

bool leaves_the_folder(std::string_view name) {
  if (name.front() == '/' || name.find('\\') != std::string_view::npos) return true;
  for (size_t at = 0; at <= name.size();) {
    const size_t slash = std::min(name.find('/', at), name.size());
    if (name.substr(at, slash - at) == "..") return true;
    at = slash + 1;
  }
  return false;
}

}  // namespace

// Where the records of the entries are.
struct Archive::Directory {
  uint64_t begin = 0, size = 0, entries = 0;
};

bool is_archive(std::string_view head) {
  return record(head, 0, 4, kLocal).has_value() || record(head, 0, kEndSize, kEnd).has_value();
}

Archive::Archive(std::string_view bytes, std::shared_ptr<const SourceFile> file)
    : Archive(bytes, std::move(file), Limits()) {}

Archive::Archive(std::string_view bytes, std::shared_ptr<const SourceFile> file,
                 const Limits& limits)
    : bytes_(bytes), file_(std::move(file)) {
  read_directory(find_directory(), limits);
  check_overlaps();
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (!by_name_.emplace(entries_[i].name, i).second)
      damaged("it has two entries of one name", entries_[i].name);
  }
}

void Archive::damaged(const std::string& why, const std::string& entry) const {
  throw UserError(
      Diagnostic(codes::frontend_damaged,
                 Span::place(
                     file_, entry.empty() ? "archive" : "entry " + escape_for_terminal(entry, 200)),
                 "the archive is damaged: " + why)
          .help("check that the file was copied or downloaded completely"));
}

void Archive::unsupported(const std::string& what, const std::string& entry) const {
  throw UserError(
      Diagnostic(codes::frontend_attribute,
                 Span::place(
                     file_, entry.empty() ? "archive" : "entry " + escape_for_terminal(entry, 200)),
                 what + " is not supported")
          .expected("an archive in one file, with entries that are stored or deflated"));
}

Archive::Directory Archive::find_directory() const {
  // The last record is at the end, before a comment of which it says the length.
  constexpr uint64_t kMostComment = 0xffff;
  std::optional<uint64_t> end;
  for (uint64_t comment = 0; !end && comment <= kMostComment; ++comment) {
    if (kEndSize + comment > bytes_.size()) break;
    const uint64_t at = bytes_.size() - kEndSize - comment;
    auto found = record(bytes_, at, kEndSize, kEnd);
    if (found && number(*found, 20, 2) == comment) end = at;
  }
  if (!end) damaged("its directory is missing");
  const std::string_view last = bytes_.substr(*end, kEndSize);
  Directory out{number(last, 16, 4), number(last, 12, 4), number(last, 10, 2)};
  uint64_t disks = number(last, 4, 2) | number(last, 6, 2), here = number(last, 8, 2), limit = *end;
  const bool is_64 = out.begin == kFull32 || out.size == kFull32 || out.entries == kFull16;
  if (is_64) {
    auto place = *end < kEnd64PlaceSize
                     ? std::nullopt
                     : record(bytes_, *end - kEnd64PlaceSize, kEnd64PlaceSize, kEnd64Place);
    auto wide = place ? record(bytes_, number(*place, 8, 8), kEnd64Size, kEnd64) : std::nullopt;
    if (!wide) damaged("its 64-bit directory is missing");
    out = {number(*wide, 48, 8), number(*wide, 40, 8), number(*wide, 32, 8)};
    disks = number(*wide, 16, 4) | number(*wide, 20, 4);
    here = number(*wide, 24, 8);
    limit = number(*place, 8, 8);
  }
  if (disks != 0 || here != out.entries) unsupported("an archive in several files");
  if (out.begin > limit || out.size > limit - out.begin) {
    damaged("its directory reaches outside of the file");
  }
  return out;
}

void Archive::read_directory(const Directory& directory, const Limits& limits) {
  auto exceed = [&](const char* what, uint64_t most, uint64_t found) {
    throw UserError(Diagnostic(codes::frontend_limit, Span::place(file_, "archive"),
                               std::string("the archive has too many ") + what)
                        .expected("at most " + std::to_string(most))
                        .found(std::to_string(found)));
  };
  if (directory.entries > limits.entries) exceed("entries", limits.entries, directory.entries);
  const std::string_view records = bytes_.substr(directory.begin, directory.size);
  uint64_t at = 0, total = 0;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    auto header = record(records, at, kCentralSize, kCentral);
    if (!header) damaged("an entry of its directory is missing");
    const uint64_t name_size = number(*header, 28, 2), extra_size = number(*header, 30, 2),
                   comment_size = number(*header, 32, 2);
    auto name = part(records, at + kCentralSize, name_size);
    auto extra = part(records, at + kCentralSize + name_size, extra_size);
    if (!name || !extra) damaged("its directory ends inside of an entry");
    at += kCentralSize + name_size + extra_size + comment_size;
    if (at > records.size()) damaged("its directory ends inside of an entry");
    Entry entry = read_entry(*header, *name, *extra, directory.begin, limits);
    if (entry.name.ends_with('/')) {
      if (entry.size != 0) damaged("a folder has content", entry.name);
      continue;
    }
    if (entry.size > limits.bytes - total) exceed("bytes", limits.bytes, total + entry.size);
    total += entry.size;
    entries_.push_back(std::move(entry));
  }
}

Archive::Entry Archive::read_entry(std::string_view header, std::string_view name,
                                   std::string_view extra, uint64_t end,
                                   const Limits& limits) const {
  Entry out;
  out.name = std::string(name);
  if (!is_name(name)) damaged("an entry has no name", out.name);
  if (limits.names_are_paths && leaves_the_folder(name)) {
    damaged("the name of an entry is no path inside of it", out.name);
  }
  constexpr uint64_t kEncrypted = 1, kStored = 0, kDeflated = 8;
  if ((number(header, 8, 2) & kEncrypted) != 0) unsupported("an encrypted entry", out.name);
  const uint64_t method = number(header, 10, 2);
  if (method != kStored && method != kDeflated) {
    unsupported("compression method " + std::to_string(method), out.name);
  }
  out.is_stored = method == kStored;
  out.crc = static_cast<uint32_t>(number(header, 16, 4));
  out.packed = number(header, 20, 4);
  out.size = number(header, 24, 4);
  uint64_t local = number(header, 42, 4), disk = number(header, 34, 2);
  // Numbers that are too large for their fields follow each other in the extra field 1.
  for (size_t at = 0; at + 4 <= extra.size();) {
    const uint64_t kind = number(extra, at, 2), size = number(extra, at + 2, 2);
    auto field = part(extra, at + 4, size);
    if (!field) damaged("an extra field ends outside of its entry", out.name);
    at += 4 + size;
    if (kind != 1) continue;
    size_t next = 0;
    auto take = [&](uint64_t& value, uint64_t full, size_t width) {
      if (value != full) return;
      if (next + width > field->size()) damaged("a 64-bit number is missing", out.name);
      value = number(*field, next, width);
      next += width;
    };
    take(out.size, kFull32, 8);
    take(out.packed, kFull32, 8);
    take(local, kFull32, 8);
    take(disk, kFull16, 4);
    break;
  }
  if (disk != 0) unsupported("an archive in several files", out.name);
  auto first = record(bytes_, local, kLocalSize, kLocal);
  if (!first) damaged("an entry is not where the directory says", out.name);
  const uint64_t name_size = number(*first, 26, 2);
  if (part(bytes_, local + kLocalSize, name_size) != name || number(*first, 8, 2) != method) {
    damaged("an entry is another one than the directory says", out.name);
  }
  out.begin = local + kLocalSize + name_size + number(*first, 28, 2);
  if (out.begin > end || out.packed > end - out.begin) {
    damaged("an entry reaches outside of the file", out.name);
  }
  const bool fits = out.is_stored ? out.packed == out.size : out.size / kMostRatio <= out.packed;
  if (!fits) damaged("the size of an entry is impossible", out.name);
  return out;
}

void Archive::check_overlaps() const {
  std::vector<const Entry*> order;
  for (const Entry& e : entries_) order.push_back(&e);
  std::ranges::sort(order, {}, [](const Entry* e) { return e->begin; });
  for (size_t i = 1; i < order.size(); ++i) {
    // Between two entries is the header of the second.
    const uint64_t end = order[i - 1]->begin + order[i - 1]->packed;
    if (end > order[i]->begin - kLocalSize - order[i]->name.size()) {
      damaged("an entry lies in another one", order[i]->name);
    }
  }
}

const Archive::Entry* Archive::find(std::string_view name) const {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &entries_[it->second];
}

const Archive::Entry& Archive::at(std::string_view name) const {
  if (const Entry* entry = find(name)) return *entry;
  throw UserError(
      Diagnostic(codes::frontend_graph, Span::place(file_, "archive"),
                 "the archive has no entry '" + escape_for_terminal(std::string(name), 200) + "'")
          .help("the file is no model of this format, or of another version of it"));
}

void Archive::check_sum(const Entry& entry, std::string_view bytes) const {
  const uLong sum = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  if (sum != entry.crc) damaged("an entry does not have its checksum", entry.name);
}

std::string_view Archive::view(const Entry& entry) const {
  RELAY_CHECK(entry.is_stored, "a view of an entry that is deflated");
  const std::string_view out = bytes_.substr(entry.begin, entry.size);
  check_sum(entry, out);
  return out;
}

std::string Archive::read(const Entry& entry) const {
  if (entry.is_stored) return std::string(view(entry));
  std::string_view packed = bytes_.substr(entry.begin, entry.packed);
  // Memory follows what the stream gives, not the size that a directory claims.
  constexpr uint64_t kStep = uint64_t{64} << 20;
  std::string out(std::min(entry.size, kStep), '\0');
  // zlib takes 32-bit counts; a byte more than the size of the entry shows that there is too much.
  constexpr uint64_t kMost = uint64_t{1} << 30;
  z_stream stream{};
  constexpr int kRaw = -15;
  RELAY_CHECK(inflateInit2(&stream, kRaw) == Z_OK, "zlib does not start");
  uint64_t taken = 0, given = 0;
  int state = Z_OK;
  Bytef more = 0;
  while (state == Z_OK) {
    const uint64_t in = std::min(packed.size() - taken, kMost);
    if (given == out.size() && given < entry.size) {
      out.resize(std::min(entry.size, std::max(kStep, 2 * given)));
    }
    const uint64_t room = std::min(out.size() - given, kMost);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + taken));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = room > 0 ? reinterpret_cast<Bytef*>(out.data() + given) : &more;
    stream.avail_out = static_cast<uInt>(std::max<uint64_t>(room, 1));
    state = inflate(&stream, Z_NO_FLUSH);
    taken += in - stream.avail_in;
    if (room > 0) {
      given += room - stream.avail_out;
    } else if (stream.avail_out == 0) {
      state = Z_DATA_ERROR;
    }
  }
  inflateEnd(&stream);
  if (state != Z_STREAM_END || given != entry.size || taken != packed.size()) {
    damaged("an entry does not have the size that the directory says", entry.name);
  }
  check_sum(entry, out);
  return out;
}

// ---- Writing

namespace {

constexpr uint16_t kMostWritten = 65534;
constexpr uint16_t kVersion = 20;
constexpr uint16_t kNameIsUtf8 = 1 << 11;
constexpr uint16_t kFirstDate = (1 << 5) | 1;  // 1980-01-01

void append(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 255);
}

}  // namespace

void ArchiveWriter::write(std::string_view bytes) {
  write_(bytes.data(), bytes.size());
  written_ += bytes.size();
}

void ArchiveWriter::add(const std::string& name, const std::vector<std::string_view>& parts) {
  uint64_t size = 0;
  uLong crc = 0;
  for (std::string_view part : parts) {
    size += part.size();
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(part.data()), part.size());
  }
  if (written_ + size + directory_.size() + 4096 > kFull32 || entries_ == kMostWritten ||
      name.size() > 1024) {
    throw UserError(Diagnostic(codes::driver_file, {},
                               "'" + name.substr(0, 200) + "' does not fit into the archive")
                        .expected("at most 4 GiB and 65,534 files"));
  }
  // What the file's header and the directory both have.
  std::string common;
  append(common, kVersion, 2);
  append(common, kNameIsUtf8, 2);
  append(common, 0, 2);  // stored
  append(common, 0, 2);  // midnight
  append(common, kFirstDate, 2);
  append(common, crc, 4);
  append(common, size, 4);
  append(common, size, 4);
  append(common, name.size(), 2);
  append(common, 0, 2);  // no extra field
  append(directory_, kCentral, 4);
  append(directory_, kVersion, 2);
  directory_ += common;
  append(directory_, 0, 2);  // no comment
  append(directory_, 0, 2);  // the first disk
  append(directory_, 0, 2);  // no attributes
  append(directory_, 0, 4);
  append(directory_, written_, 4);
  directory_ += name;
  std::string head;
  append(head, kLocal, 4);
  write(head + common + name);
  for (std::string_view part : parts) write(part);
  ++entries_;
}

void ArchiveWriter::finish() {
  std::string end;
  append(end, kEnd, 4);
  append(end, 0, 4);  // one disk
  append(end, entries_, 2);
  append(end, entries_, 2);
  append(end, directory_.size(), 4);
  append(end, written_, 4);
  append(end, 0, 2);  // no comment
  write(directory_ + end);
}

}  // namespace relay::frontend
