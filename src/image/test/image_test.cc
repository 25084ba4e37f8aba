// Images of known pixels (as the Independent JPEG Group's library and Pillow give them), and damaged ones.
#include "image/decode.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace relay::image_library {
namespace {

using File = std::vector<uint8_t>;

// 21 x 11 pixels each.
constexpr const char* kJpeg =
    "ffd8ffe000104a46494600010100000100010000ffdb004300100b0c0e0c0a100e0d0e1211101318281a"
    "181616183123251d283a333d3c3933383740485c4e404457453738506d51575f626768673e4d71797064"
    "785c656763ffdb0043011112121815182f1a1a2f63423842636363636363636363636363636363636363"
    "6363636363636363636363636363636363636363636363636363636363636363ffc0001108000b001503"
    "012200021101031101ffc40017000101010100000000000000000000000004000506ffc4002010000202"
    "0006030000000000000000000000020104031112223151324181ffc40017010003010000000000000000"
    "000000000000030405ffc4001d110002010403000000000000000000000000010402031112212251ffda"
    "000c03010002110311003f00e5ead1496df9c465e86a5248f189fa2b0517a1d828bd0cb6c234ce9aebcf"
    "a05296de08da445d3c1162668a93560fffd9";
constexpr const char* kProgressiveJpeg =
    "ffd8ffe000104a46494600010100000100010000ffdb004300140e0f120f0d14121012171514181e3221"
    "1e1c1c1e3d2c2e243249404c4b47404645505a736250556d5645466488656d777b8182814e608d978c7d"
    "96737e817cffdb0043011517171e1a1e3b21213b7c5346537c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c"
    "7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7cffc2001108000b001503"
    "011100021101031101ffc400160001010100000000000000000000000000030005ffc400180101010003"
    "0000000000000000000000000203000105ffda000c03010002100310000001cfcdabba354798aecaadff"
    "c4001810010003010000000000000000000000000001021210ffda0008010100010502ad596508e7ffc4"
    "001a110101000203000000000000000000000001000203112131ffda0008010301013f01d68bdcf078c6"
    "51117fffc400161101010100000000000000000000000000010010ffda0008010201013f018c233fffc4"
    "0014100100000000000000000000000000000020ffda0008010100063f025fffc4001610010101000000"
    "00000000000000000000010041ffda0008010100013f211d83914420bfffda000c030100020003000000"
    "10771bbfffc40017110101010100000000000000000000000001001121ffda0008010301013f10c92c91"
    "ee9719b364e5ffc40017110101010100000000000000000000000001001011ffda0008010201013f1019"
    "bd8742ffc4001b10000300020300000000000000000000000001311151214181ffda0008010100013f10"
    "69da58e84a1fa71415a15a15887fffd9";
constexpr const char* kPng =
    "89504e470d0a1a0a0000000d49484452000000150000000b08020000001fa9512a000000444944415478"
    "da63646060e06460271bb130f0b23330908fa8ad7ff6774d0674f09f81e1c75a4e3ee2ecffce801df012"
    "e9fe5714ea67a04c7faaed2f5c514597f0a7b77e0041240f1e75a81ce40000000049454e44ae426082";
constexpr const char* kPalettePng =
    "89504e470d0a1a0a0000000d49484452000000150000000b040300000062e5db4e00000018504c54458c"
    "6fa89541972d75621d4c40c11f629e0d825c0f5016131b42506c880000004849444154789c5dcac10980"
    "301044d167f0aeddda5c8ab002b584bd075d0f4102cee933bc6923830cade80b7c0d33f74e59d49cd569"
    "a555943acccf3f873cfb9f417693317cc0055e7db4179c13485f6b0000000049454e44ae426082";

File from_hex(std::string_view text) {
  File out;
  for (size_t i = 0; i < text.size(); i += 2) {
    out.push_back(static_cast<uint8_t>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  }
  return out;
}

File from_text(std::string_view text) { return {text.begin(), text.end()}; }

// 5 x 3 pixels of 24 bits, from the bottom.
File bmp() {
  File out = from_text("BM");
  auto put = [&](uint32_t v, int bytes) {
    for (int k = 0; k < bytes; ++k) out.push_back(static_cast<uint8_t>(v >> (8 * k)));
  };
  for (uint32_t v : {54u + 3 * 16, 0u, 54u, 40u, 5u, 3u}) put(v, 4);
  put(1, 2);
  put(24, 2);
  for (int k = 0; k < 6; ++k) put(0, 4);
  for (uint32_t y = 3; y-- > 0;) {
    for (uint32_t k = 0; k < 16; ++k) put(k < 15 ? y * 20 + k : 0, 1);
  }
  return out;
}

std::vector<File> whole_files() {
  return {from_hex(kJpeg),
          from_hex(kProgressiveJpeg),
          from_hex(kPng),
          from_hex(kPalettePng),
          bmp(),
          from_text("P6 2 1 255\nabcdef"),
          from_text("P4 9 2\n\1\200\2\0")};
}

// The pixels, empty where there is a problem.
std::vector<uint8_t> decoded(const File& file, Problem& problem) {
  const Header header = read_header(file);
  problem = header.problem;
  if (problem != Problem::None) return {};
  std::vector<uint8_t> pixels(static_cast<size_t>(3 * header.width * header.height));
  problem = decode(file, header, pixels.data());
  if (problem != Problem::None) pixels.clear();
  return pixels;
}

uint64_t hash_of(const File& file) {
  Problem problem{};
  std::vector<uint8_t> pixels = decoded(file, problem);
  EXPECT_EQ(problem, Problem::None);
  EXPECT_EQ(pixels.size(), 3u * 21 * 11);
  uint64_t hash = 1469598103934665603u;
  for (uint8_t b : pixels) hash = (hash ^ b) * 1099511628211u;
  return hash;
}

TEST(Image, pixels_of_jpeg_and_png) {
  EXPECT_EQ(hash_of(from_hex(kJpeg)), 0x64ae817b6e418ed7u);
  EXPECT_EQ(hash_of(from_hex(kProgressiveJpeg)), 0x4b176d852ae35101u);
  EXPECT_EQ(hash_of(from_hex(kPng)), 0xe8f46938c44585f9u);
  EXPECT_EQ(hash_of(from_hex(kPalettePng)), 0xb0be525f7241b346u);
}

TEST(Image, pixels_of_bmp) {
  Problem problem{};
  std::vector<uint8_t> pixels = decoded(bmp(), problem);
  ASSERT_EQ(pixels.size(), 45u);
  for (size_t y = 0; y < 3; ++y) {
    for (size_t k = 0; k < 15; ++k) {
      EXPECT_EQ(pixels[y * 15 + k], y * 20 + k / 3 * 3 + (2 - k % 3)) << y << " " << k;
    }
  }
}

TEST(Image, pixels_of_pnm) {
  struct Case {
    std::string_view text;
    std::vector<uint8_t> pixels;
  };
  const Case cases[] = {
      {"P6 2 1 255\nabcdef", {'a', 'b', 'c', 'd', 'e', 'f'}},
      {"P5\n# two\n2 1\n255\n\1\2", {1, 1, 1, 2, 2, 2}},
      {std::string_view("P5 1 1 65535\n\xff\0", 15), {254, 254, 254}},
      {"P3 1 1 15 0 15 7", {0, 255, 119}},
      {"P2 2 1 3\n1 # one\n3", {85, 85, 85, 255, 255, 255}},
      {"P1 3 1 101", {0, 0, 0, 255, 255, 255, 0, 0, 0}},
      {"P4 2 1\n\100", {255, 255, 255, 0, 0, 0}},
  };
  for (const Case& c : cases) {
    Problem problem{};
    EXPECT_EQ(decoded(from_text(c.text), problem), c.pixels) << c.text;
  }
}

TEST(Image, formats_that_are_not_decoded_are_named) {
  auto problem_of = [](std::string_view text) { return read_header(from_text(text)).problem; };
  EXPECT_EQ(problem_of("RIFF\1\2\3\4WEBPVP8 "), Problem::WebP);
  EXPECT_EQ(problem_of(std::string_view("II*\0\10", 5)), Problem::Tiff);
  EXPECT_EQ(problem_of(std::string_view("MM\0*\0", 5)), Problem::Tiff);
  EXPECT_EQ(problem_of(std::string_view("\0\0\0\14jP  \r\n", 10)), Problem::Jpeg2000);
  EXPECT_EQ(problem_of("GIF89a"), Problem::Unknown);
  EXPECT_EQ(problem_of(""), Problem::Unknown);
}

TEST(Image, a_file_cut_anywhere_is_damaged) {
  for (const File& file : whole_files()) {
    for (size_t size = 0; size < file.size(); ++size) {
      Problem problem{};
      decoded(File(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)), problem);
      EXPECT_TRUE(problem == Problem::Damaged || problem == Problem::Unknown)
          << file[0] << file[1] << " of " << size << " bytes";
    }
  }
}

TEST(Image, sizes_beyond_the_limit_are_refused_before_anything_is_made) {
  File png = from_hex(kPng);
  for (size_t at : {18u, 22u}) png[at] = 0x3F;  // 16,000 in each direction
  EXPECT_EQ(read_header(png).problem, Problem::TooLarge);
  EXPECT_EQ(read_header(from_text("P6 99999999 99999999 255\n")).problem, Problem::TooLarge);
  EXPECT_EQ(read_header(from_text("P6 99999999999999999999 1 255\n")).problem, Problem::Damaged);
  EXPECT_EQ(read_header(from_text("P6 0 1 255\n")).problem, Problem::Damaged);
}

TEST(Image, damaged_files_give_pixels_or_a_problem) {
  constexpr uint64_t kSeed = 5;
  constexpr int kRounds = 3000;
  constexpr int64_t kMost = 1 << 16;
  std::mt19937_64 random(kSeed);
  for (const File& file : whole_files()) {
    for (int round = 0; round < kRounds; ++round) {
      File damaged = file;
      for (uint64_t n = 1 + random() % 4; n-- > 0;) {
        damaged[random() % damaged.size()] = static_cast<uint8_t>(random());
      }
      const Header header = read_header(damaged);
      // Large ones take time, not memory that is not theirs.
      if (header.problem != Problem::None || header.width * header.height > kMost) continue;
      Problem problem{};
      decoded(damaged, problem);
      EXPECT_LE(problem, Problem::Memory);
    }
  }
}

}  // namespace
}  // namespace relay::image_library
