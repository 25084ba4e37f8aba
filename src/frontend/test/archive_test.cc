// Zip archives: what is in them, and archives that must be refused. They are made here byte by byte.
#include "frontend/common/archive.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <optional>
#include <random>

#include "base/diagnostic.h"

namespace relay::frontend {
namespace {

std::string le(uint64_t value, size_t width) {
  std::string out;
  for (size_t i = 0; i < width; ++i, value >>= 8) out += static_cast<char>(value & 0xff);
  return out;
}

std::string deflated(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// One entry as it is written; a field that is set says something else than the truth.
struct Item {
  std::string name = {}, bytes = {};
  bool deflate = false;
  std::optional<uint64_t> crc = {}, packed = {}, size = {}, offset = {}, method = {};
  uint64_t flags = 0;
  std::string local_name = {};
  bool is_64 = false;
};

// The archive, with 64-bit records where `is_64` says so.
std::string zip(const std::vector<Item>& items, bool is_64 = false,
                const std::string& comment = "") {
  std::string out, directory;
  for (const Item& i : items) {
    const std::string data = i.deflate ? deflated(i.bytes) : i.bytes;
    const uint64_t crc = i.crc.value_or(crc32(0, reinterpret_cast<const Bytef*>(i.bytes.data()),
                                              static_cast<uInt>(i.bytes.size())));
    const uint64_t method = i.method.value_or(i.deflate ? 8 : 0),
                   at = i.offset.value_or(out.size()), packed = i.packed.value_or(data.size()),
                   size = i.size.value_or(i.bytes.size());
    const std::string extra =
        i.is_64 ? le(1, 2) + le(24, 2) + le(size, 8) + le(packed, 8) + le(at, 8) : "";
    auto field = [&](uint64_t value) { return le(i.is_64 ? 0xffffffff : value, 4); };
    const std::string& local = i.local_name.empty() ? i.name : i.local_name;
    out += le(0x04034b50, 4) + le(20, 2) + le(i.flags, 2) + le(method, 2) + le(0, 4) + le(crc, 4) +
           le(packed, 4) + le(size, 4) + le(local.size(), 2) + le(0, 2) + local + data;
    directory += le(0x02014b50, 4) + le(20, 2) + le(20, 2) + le(i.flags, 2) + le(method, 2) +
                 le(0, 4) + le(crc, 4) + field(packed) + field(size) + le(i.name.size(), 2) +
                 le(extra.size(), 2) + le(0, 2) + le(0, 2) + le(0, 2) + le(0, 4) + field(at) +
                 i.name + extra;
  }
  const uint64_t begin = out.size(), count = items.size();
  out += directory;
  if (is_64) {
    const uint64_t place = out.size();
    out += le(0x06064b50, 4) + le(44, 8) + le(45, 2) + le(45, 2) + le(0, 4) + le(0, 4) +
           le(count, 8) + le(count, 8) + le(directory.size(), 8) + le(begin, 8);
    out += le(0x07064b50, 4) + le(0, 4) + le(place, 8) + le(1, 4);
  }
  out += le(0x06054b50, 4) + le(0, 2) + le(0, 2) + le(is_64 ? 0xffff : count, 2) +
         le(is_64 ? 0xffff : count, 2) + le(is_64 ? 0xffffffff : directory.size(), 4) +
         le(is_64 ? 0xffffffff : begin, 4) + le(comment.size(), 2) + comment;
  return out;
}

const std::string kLong(100'000, 'x');

// The code of what is thrown when everything is read; "" for nothing.
std::string refusal(const std::string& bytes, Archive::Limits limits = {}) {
  try {
    Archive archive(bytes, SourceFile::make("bad.zip"), limits);
    for (const Archive::Entry& e : archive.entries()) archive.read(e);
  } catch (const UserError& e) {
    EXPECT_NE(e.diagnostics()[0].span.describe().find("bad.zip"), std::string::npos);
    return std::string(e.diagnostics()[0].code);
  }
  return "";
}

TEST(Archive, stored_and_deflated_entries_in_32_and_64_bits) {
  for (bool is_64 : {false, true}) {
    const std::string bytes =
        zip({{.name = "a/b.txt", .bytes = "hello", .is_64 = is_64},
             {.name = "a/", .bytes = ""},
             {.name = "long", .bytes = kLong, .deflate = true, .is_64 = is_64},
             {.name = "empty", .bytes = ""}},
            is_64, "a comment");
    EXPECT_TRUE(is_archive(bytes));
    Archive archive(bytes, SourceFile::make("a.zip"));
    ASSERT_EQ(archive.entries().size(), 3u);
    EXPECT_EQ(archive.view(archive.at("a/b.txt")), "hello");
    EXPECT_GE(archive.view(archive.at("a/b.txt")).data(), bytes.data());
    EXPECT_EQ(archive.read(archive.at("long")), kLong);
    EXPECT_FALSE(archive.at("long").is_stored);
    EXPECT_EQ(archive.read(archive.at("empty")), "");
    EXPECT_EQ(archive.find("b.txt"), nullptr);
  }
  EXPECT_EQ(refusal(zip({})), "");
  EXPECT_TRUE(is_archive(zip({})));
  EXPECT_FALSE(is_archive("PK"));
}

TEST(Archive, an_entry_that_is_not_there_E0507) {
  const std::string bytes = zip({{.name = "a", .bytes = "1"}});
  Archive archive(bytes, SourceFile::make("a.zip"));
  try {
    archive.at("model.json");
    ADD_FAILURE() << "an entry was found";
  } catch (const UserError& e) {
    EXPECT_EQ(e.diagnostics()[0].code, "E0507");
  }
}

TEST(Archive, names_that_leave_the_folder_E0502) {
  for (const char* name : {"../a", "a/../../b", "/etc/passwd", "a\\b", ""}) {
    EXPECT_EQ(refusal(zip({{.name = name, .bytes = "1"}})), "E0502") << name;
  }
  EXPECT_EQ(refusal(zip({{.name = std::string("a\0b", 3), .bytes = "1"}})), "E0502");
  EXPECT_EQ(refusal(zip({{.name = "a", .bytes = "1"}, {.name = "a", .bytes = "2"}})), "E0502");
  EXPECT_EQ(refusal(zip({{.name = "..a", .bytes = "1"}, {.name = "b..", .bytes = "2"}})), "");
}

TEST(Archive, names_of_tensors_are_no_paths_where_the_limits_say_so) {
  const std::string bytes = zip({{.name = "/encoder/Add_output_0.npy", .bytes = "abc"}});
  const Archive archive(bytes, SourceFile::make("a.npz"), {.names_are_paths = false});
  EXPECT_EQ(archive.read(archive.at("/encoder/Add_output_0.npy")), "abc");
}

TEST(Archive, sizes_and_places_that_are_not_true_E0502) {
  auto one = [](Item change) {
    change.name = "a";
    change.bytes = kLong;
    return refusal(zip({change, {.name = "b", .bytes = "2"}}));
  };
  EXPECT_EQ(one({}), "");
  EXPECT_EQ(one({.crc = 1}), "E0502");
  EXPECT_EQ(one({.deflate = true, .crc = 1}), "E0502");
  EXPECT_EQ(one({.size = 5}), "E0502");
  EXPECT_EQ(one({.deflate = true, .size = 5}), "E0502");
  EXPECT_EQ(one({.deflate = true, .size = kLong.size() + 1}), "E0502");
  EXPECT_EQ(one({.packed = 1 << 30, .size = 1 << 30}), "E0502");
  EXPECT_EQ(one({.deflate = true, .packed = 20}), "E0502");
  EXPECT_EQ(one({.offset = 7}), "E0502");
  EXPECT_EQ(one({.offset = 0xfffffff0}), "E0502");
  EXPECT_EQ(one({.local_name = "c"}), "E0502");
  EXPECT_EQ(one({.packed = ~uint64_t{0} - 8, .size = ~uint64_t{0} - 8, .is_64 = true}), "E0502");
  EXPECT_EQ(one({.offset = ~uint64_t{0} - 8, .is_64 = true}), "E0502");
}

TEST(Archive, more_bytes_than_an_entry_can_hold) {
  // A size that no stream of that length reaches, and one that all together may not have.
  EXPECT_EQ(refusal(zip({{.name = "a", .bytes = "1", .deflate = true, .size = 1 << 28}})), "E0502");
  Archive::Limits limits;
  limits.bytes = 150'000;
  Item half{.name = "a", .bytes = kLong, .deflate = true}, other = half;
  other.name = "b";
  EXPECT_EQ(refusal(zip({half}), limits), "");
  EXPECT_EQ(refusal(zip({half, other}), limits), "E0506");
  limits.entries = 1;
  EXPECT_EQ(refusal(zip({{.name = "a", .bytes = ""}, {.name = "b", .bytes = ""}}), limits),
            "E0506");
}

TEST(Archive, entries_that_lie_in_each_other_E0502) {
  // The second entry is a whole one inside of the first.
  const std::string inner = zip({{.name = "b", .bytes = "2"}});
  const std::string outer =
      zip({{.name = "a", .bytes = inner}, {.name = "b", .bytes = "2", .offset = 30 + 1}});
  EXPECT_EQ(refusal(outer), "E0502");
}

TEST(Archive, what_is_not_read_E0504) {
  EXPECT_EQ(refusal(zip({{.name = "a", .bytes = "1", .flags = 1}})), "E0504");
  EXPECT_EQ(refusal(zip({{.name = "a", .bytes = "1", .method = 12}})), "E0504");
  std::string parts = zip({{.name = "a", .bytes = "1"}});
  parts[parts.size() - 18] = 1;
  EXPECT_EQ(refusal(parts), "E0504");
}

TEST(Archive, cut_and_changed_bytes_end_in_an_error_or_nothing) {
  const std::string whole = zip({{.name = "a/b.txt", .bytes = "hello", .is_64 = true},
                                 {.name = "long", .bytes = kLong, .deflate = true}},
                                true);
  for (size_t keep = 0; keep < whole.size(); ++keep) {
    EXPECT_EQ(refusal(whole.substr(0, keep)), "E0502") << keep;
  }
  std::mt19937 random(7);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(random());
    const std::string code = refusal(changed);
    EXPECT_TRUE(code.empty() || code == "E0502" || code == "E0504" || code == "E0506")
        << at << code;
  }
}

}  // namespace
}  // namespace relay::frontend
