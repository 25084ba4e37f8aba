// The portable anymaps of Netpbm: a magic number, sizes as text, samples as text (P1 to P3) or as bytes.
#include <optional>

#include "image/decode.h"

namespace relay::image_library {
namespace {

constexpr int64_t kMaxSample = 65535;

class Reader {
 public:
  explicit Reader(Bytes bytes) : rest_(bytes) {}

  // The next byte; nothing at the end.
  std::optional<uint8_t> byte() {
    if (rest_.empty()) return std::nullopt;
    const uint8_t b = rest_.front();
    rest_ = rest_.subspan(1);
    return b;
  }

  // The next number in text, behind white space and comments.
  std::optional<int64_t> number() {
    skip();
    constexpr int64_t kMost = int64_t{1} << 32;
    int64_t value = 0;
    bool any = false;
    while (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') {
      if (value > kMost) return std::nullopt;
      value = value * 10 + (*byte() - '0');
      any = true;
    }
    return any ? std::optional(value) : std::nullopt;
  }

  // The next bit of P1, where nothing need stand between two.
  std::optional<int64_t> digit() {
    skip();
    auto b = byte();
    if (!b || (*b != '0' && *b != '1')) return std::nullopt;
    return *b - '0';
  }

 private:
  void skip() {
    while (!rest_.empty()) {
      const uint8_t b = rest_.front();
      if (b == '#') {
        while (!rest_.empty() && rest_.front() != '\n') rest_ = rest_.subspan(1);
      } else if (b == ' ' || (b >= '\t' && b <= '\r')) {
        rest_ = rest_.subspan(1);
      } else {
        return;
      }
    }
  }

  Bytes rest_;
};

struct Anymap {
  int kind = 0;  // 1 to 6
  int64_t width = 0, height = 0, greatest = 1;

  bool is_bitmap() const { return kind == 1 || kind == 4; }
  bool is_colour() const { return kind == 3 || kind == 6; }
};

std::optional<Anymap> read_start(Reader& in) {
  Anymap map;
  in.byte();
  map.kind = in.byte().value_or('0') - '0';
  auto width = in.number(), height = in.number();
  if (!width || !height || *width < 1 || *height < 1) return std::nullopt;
  map.width = *width;
  map.height = *height;
  if (!map.is_bitmap()) {
    auto greatest = in.number();
    if (!greatest || *greatest < 1 || *greatest > kMaxSample) return std::nullopt;
    map.greatest = *greatest;
  }
  // One white space stands before the bytes.
  if (map.kind >= 4 && !in.byte()) return std::nullopt;
  return map;
}

// A sample as one of 8 bits; nothing at the end and for what is no sample.
std::optional<uint8_t> next_sample(Reader& in, const Anymap& map) {
  std::optional<int64_t> value;
  if (map.kind == 1) {
    value = in.digit();
    return value ? std::optional<uint8_t>(*value != 0 ? 0 : 255) : std::nullopt;
  }
  if (map.kind < 4) {
    value = in.number();
  } else {
    auto high = in.byte();
    if (high) value = *high;
    if (high && map.greatest > 255) {
      auto low = in.byte();
      value = low ? std::optional<int64_t>(*high << 8 | *low) : std::nullopt;
    }
  }
  if (!value || *value > map.greatest) return std::nullopt;
  return static_cast<uint8_t>((*value * 255 + map.greatest / 2) / map.greatest);
}

// A row of P4: eight pixels in a byte, ones are black.
bool read_bits(Reader& in, int64_t width, uint8_t* row) {
  uint8_t bits = 0;
  for (int64_t x = 0; x < width; ++x) {
    if (x % 8 == 0) {
      auto b = in.byte();
      if (!b) return false;
      bits = *b;
    }
    const uint8_t v = (bits & 0x80) != 0 ? 0 : 255;
    bits = static_cast<uint8_t>(bits << 1);
    for (int c = 0; c < 3; ++c) *row++ = v;
  }
  return true;
}

}  // namespace

Header read_pnm_header(Bytes bytes) {
  Reader in(bytes);
  auto map = read_start(in);
  if (!map) return {Problem::Damaged, Format::Pnm};
  return {Problem::None, Format::Pnm, map->width, map->height};
}

Problem decode_pnm(Bytes bytes, uint8_t* pixels) {
  Reader in(bytes);
  auto map = read_start(in);
  if (!map) return Problem::Damaged;
  for (int64_t y = 0; y < map->height; ++y) {
    if (map->kind == 4) {
      if (!read_bits(in, map->width, pixels)) return Problem::Damaged;
      pixels += 3 * map->width;
      continue;
    }
    for (int64_t x = 0; x < map->width; ++x) {
      for (int c = 0; c < 3; ++c) {
        if (c > 0 && !map->is_colour()) {
          pixels[c] = pixels[0];
          continue;
        }
        auto sample = next_sample(in, *map);
        if (!sample) return Problem::Damaged;
        pixels[c] = *sample;
      }
      pixels += 3;
    }
  }
  return Problem::None;
}

}  // namespace relay::image_library
