// Images from the bytes of their files, which may be hostile.
//
//   Header header = read_header(bytes);        // sizes, without decoding
//   if (header.problem == Problem::None) decode(bytes, header, pixels);
//
// PNG, BMP and PNM give the exact pixels; JPEG those of the Independent JPEG Group's decoder at its
// default settings (accurate integer transform, smooth upsampling where both axes have half the samples).
#pragma once

#include <cstdint>
#include <span>

namespace relay::image_library {

enum class Format { Bmp, Jpeg, Png, Pnm };

enum class Problem {
  None,
  Unknown,   // no image that the library knows
  Damaged,   // cut short, or with contents that cannot be
  TooLarge,  // more than kMaxPixels
  Memory,
  // Images of formats that are not decoded.
  WebP,
  Tiff,
  Jpeg2000,
};

// An image of more pixels takes gigabytes while it is decoded.
inline constexpr int64_t kMaxPixels = int64_t{1} << 27;

using Bytes = std::span<const uint8_t>;

struct Header {
  Problem problem = Problem::Unknown;
  Format format = Format::Png;
  int64_t width = 0, height = 0;  // 1 or more where there is no problem
};

Header read_header(Bytes bytes);

// Writes red, green and blue of each pixel, row by row from the top: 3 * width * height bytes. An image
// in grey has all three equal, transparency is left out, 16 bits become the upper 8.
Problem decode(Bytes bytes, const Header& header, uint8_t* pixels);

// PNM, from P1 to P6.
Header read_pnm_header(Bytes bytes);
Problem decode_pnm(Bytes bytes, uint8_t* pixels);

}  // namespace relay::image_library
