#include "image/decode.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

// ---- stb_image: PNG, JPEG and BMP

namespace relay::image_library {
namespace {

// The most bytes of one block that the decoder may ask for: what a file says of itself must not cost
// more than its image does.
thread_local size_t most_bytes = 0;  // NOLINT: the decoder's allocator has no argument for it

// Zeroed, because a damaged file may leave a part unwritten.
void* allocate(size_t bytes) {
  return bytes > most_bytes ? nullptr : std::calloc(1, bytes == 0 ? 1 : bytes);
}

void* reallocate(void* block, size_t old_bytes, size_t bytes) {
  void* larger = allocate(bytes);
  if (larger == nullptr) return nullptr;
  if (block != nullptr) std::memcpy(larger, block, old_bytes < bytes ? old_bytes : bytes);
  std::free(block);
  return larger;
}

}  // namespace
}  // namespace relay::image_library

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#define STBI_MALLOC(bytes) relay::image_library::allocate(bytes)
#define STBI_REALLOC_SIZED(block, old_bytes, bytes) \
  relay::image_library::reallocate(block, old_bytes, bytes)
#define STBI_FREE(block) std::free(block)
#define STBI_ONLY_BMP
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_NO_STDIO
#define STBI_NO_FAILURE_STRINGS
#define STBI_ASSERT(condition) ((void)0)
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

namespace relay::image_library {
namespace {

uint8_t clamp(int v) { return static_cast<uint8_t>(v < 0 ? 0 : v > 255 ? 255 : v); }

// ---- JPEG as the Independent JPEG Group computes it

// One line of eight of the inverse cosine transform after Loeffler, Ligtenberg and Moschytz (1989) with
// constants of 13 bits; `step` from one number to the next, results lose `shift` bits. Numbers are unsigned: those of
// hostile files wrap around.
template <typename From, typename Put>
void transform_line(const From* in, int step, int shift, const Put& put) {
  auto at = [&](int k) { return static_cast<uint32_t>(static_cast<int>(in[k * step])); };
  const uint32_t even = (at(2) + at(6)) * 4433, low = even - at(6) * 15137,
                 high = even + at(2) * 6270;
  const uint32_t sum = (at(0) + at(4)) << 13, difference = (at(0) - at(4)) << 13;
  const uint32_t evens[] = {sum + high, difference + low, difference - low, sum - high};
  const uint32_t z1 = 0u - (at(7) + at(1)) * 7373, z2 = 0u - (at(5) + at(3)) * 20995;
  const uint32_t z5 = (at(7) + at(3) + at(5) + at(1)) * 9633;
  const uint32_t z3 = z5 - (at(7) + at(3)) * 16069, z4 = z5 - (at(5) + at(1)) * 3196;
  const uint32_t odds[] = {at(1) * 12299 + z1 + z4, at(3) * 25172 + z2 + z3,
                           at(5) * 16819 + z2 + z4, at(7) * 2446 + z1 + z3};
  const uint32_t half = 1u << (shift - 1);
  for (int k = 0; k < 4; ++k) {
    put(k, static_cast<int>(evens[k] + odds[k] + half) >> shift);
    put(7 - k, static_cast<int>(evens[k] - odds[k] + half) >> shift);
  }
}

void transform_block(stbi_uc* out, int stride, short data[64]) {
  int columns[64];
  for (int x = 0; x < 8; ++x) {
    transform_line(data + x, 8, 11, [&](int k, int v) { columns[k * 8 + x] = v; });
  }
  for (int y = 0; y < 8; ++y) {
    auto put = [&](int k, int v) { out[y * stride + k] = clamp(v + 128); };
    transform_line(columns + y * 8, 1, 18, put);
  }
}

void to_rgb(stbi_uc* out, const stbi_uc* luma, const stbi_uc* blue, const stbi_uc* red, int count,
            int step) {
  for (int i = 0; i < count; ++i, out += step) {
    constexpr int kHalf = 1 << 15;
    const int y = luma[i], cb = blue[i] - 128, cr = red[i] - 128;
    out[0] = clamp(y + ((91881 * cr + kHalf) >> 16));
    out[1] = clamp(y + ((-22554 * cb - 46802 * cr + kHalf) >> 16));
    out[2] = clamp(y + ((116130 * cb + kHalf) >> 16));
  }
}

// A row of twice as many samples: each a mean of the four around it, the nearest weighing 9 of 16.
stbi_uc* twice_as_many(stbi_uc* out, stbi_uc* nearest, stbi_uc* farther, int width, int) {
  if (width <= 2) {
    for (int i = 0; i < width; ++i) out[2 * i] = out[2 * i + 1] = nearest[i];
    return out;
  }
  auto column = [&](int i) { return 3 * nearest[i] + farther[i]; };
  for (int i = 0; i < width; ++i) {
    const int here = column(i), left = column(i == 0 ? 0 : i - 1),
              right = column(i == width - 1 ? i : i + 1);
    out[2 * i] = static_cast<stbi_uc>((3 * here + left + 8) >> 4);
    out[2 * i + 1] = static_cast<stbi_uc>((3 * here + right + 7) >> 4);
  }
  return out;
}

stbi_uc* load_jpeg(stbi__context* in, int* width, int* height) {
  auto* state = static_cast<stbi__jpeg*>(allocate(sizeof(stbi__jpeg)));
  if (state == nullptr) return nullptr;
  state->s = in;
  stbi__setup_jpeg(state);
  state->idct_block_kernel = transform_block;
  state->YCbCr_to_RGB_kernel = to_rgb;
  state->resample_row_hv_2_kernel = twice_as_many;
  int channels = 0;
  stbi_uc* pixels = load_jpeg_image(state, width, height, &channels, 3);
  std::free(state);
  return pixels;
}

// ---- Files that are cut short

// What is read of a file; `cut` when more was asked for than there is.
struct Source {
  explicit Source(Bytes bytes) {
    context.io = {[](void* self, char*, int) {
                    static_cast<Source*>(self)->cut = true;
                    return 0;
                  },
                  [](void* self, int) { static_cast<Source*>(self)->cut = true; },
                  [](void*) { return 1; }};
    context.io_user_data = this;
    context.read_from_callbacks = 1;
    context.buflen = sizeof(context.buffer_start);
    auto* begin = const_cast<stbi_uc*>(bytes.data());  // which is only read
    context.img_buffer = context.img_buffer_original = begin;
    context.img_buffer_end = context.img_buffer_original_end = begin + bytes.size();
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  stbi__context context{};
  bool cut = false;
};

// Whether the parts of a PNG have the lengths that they say.
bool has_all_chunks(Bytes bytes) {
  constexpr size_t kSignature = 8, kAround = 12;
  size_t at = kSignature;
  while (bytes.size() - at >= kAround) {
    const uint8_t* p = bytes.data() + at;
    const size_t length = static_cast<size_t>(p[0]) << 24 | static_cast<size_t>(p[1]) << 16 |
                          static_cast<size_t>(p[2]) << 8 | p[3];
    if (length > bytes.size() - at - kAround) return false;
    if (std::memcmp(p + 4, "IEND", 4) == 0) return true;
    at += kAround + length;
  }
  return false;
}

// Whether a JPEG is a list of segments of the lengths that they say, to its end, and no table of codes
// has more of them than there are bytes: the decoder has room for these.
bool has_sound_segments(Bytes bytes) {
  enum : uint8_t {
    kTables = 0xC4,
    kFirstRestart = 0xD0,
    kLastRestart = 0xD7,
    kEnd = 0xD9,
    kScan = 0xDA
  };
  constexpr size_t kStart = 2, kCounts = 16, kMostCodes = 256;
  auto sound_tables = [](Bytes tables) {
    while (!tables.empty()) {
      if (tables.size() < 1 + kCounts) return false;
      size_t codes = 0;
      for (size_t i = 1; i <= kCounts; ++i) codes += tables[i];
      if (codes > kMostCodes || tables.size() - 1 - kCounts < codes) return false;
      tables = tables.subspan(1 + kCounts + codes);
    }
    return true;
  };
  size_t at = kStart;
  while (true) {
    if (at >= bytes.size() || bytes[at] != 0xFF) return false;
    while (at < bytes.size() && bytes[at] == 0xFF) ++at;
    if (at == bytes.size()) return false;
    const uint8_t marker = bytes[at++];
    if (marker == kEnd) return true;
    if (bytes.size() - at < 2) return false;
    const size_t length = static_cast<size_t>(bytes[at]) << 8 | bytes[at + 1];
    if (length < 2 || length > bytes.size() - at) return false;
    if (marker == kTables && !sound_tables(bytes.subspan(at + 2, length - 2))) return false;
    at += length;
    if (marker != kScan) continue;
    // Codes end at a byte of ones that neither stands for itself nor begins them anew.
    for (; at + 1 < bytes.size(); ++at) {
      const uint8_t next = bytes[at + 1];
      const bool restart = next >= kFirstRestart && next <= kLastRestart;
      if (bytes[at] == 0xFF && next != 0 && next != 0xFF && !restart) break;
    }
  }
}

bool starts_with(Bytes bytes, std::string_view magic, size_t at = 0) {
  return bytes.size() >= at + magic.size() &&
         std::memcmp(bytes.data() + at, magic.data(), magic.size()) == 0;
}

using namespace std::string_view_literals;  // NOLINT: magic numbers hold zeros

Problem undecoded_format(Bytes bytes) {
  if (starts_with(bytes, "RIFF") && starts_with(bytes, "WEBP", 8)) return Problem::WebP;
  if (starts_with(bytes, "II*\0"sv) || starts_with(bytes, "MM\0*"sv)) return Problem::Tiff;
  if (starts_with(bytes, "\0\0\0\x0CjP  "sv) || starts_with(bytes, "\xFF\x4F\xFF\x51")) {
    return Problem::Jpeg2000;
  }
  return Problem::Unknown;
}

constexpr size_t kSlack = size_t{1} << 20;

}  // namespace

Header read_header(Bytes bytes) {
  Header header;
  if (starts_with(bytes, "P") && bytes.size() > 2 && bytes[1] >= '1' && bytes[1] <= '6') {
    header = read_pnm_header(bytes);
  } else {
    most_bytes = kSlack;
    Source in(bytes.first(std::min(bytes.size(), static_cast<size_t>(INT32_MAX))));
    int width = 0, height = 0, channels = 0, good = 0;
    if (starts_with(bytes, "\x89PNG\r\n\x1A\n")) {
      header.format = Format::Png;
      good = has_all_chunks(bytes) ? stbi__png_info(&in.context, &width, &height, &channels) : 0;
    } else if (starts_with(bytes, "\xFF\xD8\xFF")) {
      header.format = Format::Jpeg;
      good =
          has_sound_segments(bytes) ? stbi__jpeg_info(&in.context, &width, &height, &channels) : 0;
    } else if (starts_with(bytes, "BM")) {
      header.format = Format::Bmp;
      good = stbi__bmp_info(&in.context, &width, &height, &channels);
      height = height == INT32_MIN ? 0 : std::abs(height);  // below zero: from the top
    } else {
      header.problem = undecoded_format(bytes);
      return header;
    }
    header.width = width;
    header.height = height;
    header.problem = good != 0 && !in.cut ? Problem::None : Problem::Damaged;
  }
  if (header.problem != Problem::None) return header;
  if (header.width < 1 || header.height < 1) {
    header.problem = Problem::Damaged;
  } else if (header.width > kMaxPixels / header.height || bytes.size() > INT32_MAX) {
    header.problem = Problem::TooLarge;
  }
  return header;
}

Problem decode(Bytes bytes, const Header& header, uint8_t* pixels) {
  if (header.problem != Problem::None) return header.problem;
  if (header.format == Format::Pnm) return decode_pnm(bytes, pixels);
  // Four samples of 16 bits for each pixel, and the parts of blocks that stand over.
  constexpr size_t kSample = 8, kBlock = 64;
  const auto width = static_cast<size_t>(header.width), height = static_cast<size_t>(header.height);
  most_bytes = std::max(kSample * (width + kBlock) * (height + kBlock), bytes.size()) + kSlack;
  Source in(bytes);
  int x = 0, y = 0, channels = 0;
  stbi__result_info info{8, 8, STBI_ORDER_RGB};
  void* found = nullptr;
  switch (header.format) {
    case Format::Png:
      found = stbi__png_load(&in.context, &x, &y, &channels, 3, &info);
      break;
    case Format::Bmp:
      found = stbi__bmp_load(&in.context, &x, &y, &channels, 3, &info);
      break;
    default:
      found = load_jpeg(&in.context, &x, &y);
  }
  std::unique_ptr<void, void (*)(void*)> owned(found, std::free);
  if (found == nullptr || in.cut || x != header.width || y != header.height) {
    return Problem::Damaged;
  }
  const size_t samples = 3 * width * height;
  if (info.bits_per_channel == 16) {
    const auto* wide = static_cast<const uint16_t*>(found);
    for (size_t i = 0; i < samples; ++i) pixels[i] = static_cast<uint8_t>(wide[i] >> 8);
  } else {
    std::memcpy(pixels, found, samples);
  }
  return Problem::None;
}

}  // namespace relay::image_library
