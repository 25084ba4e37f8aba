// Functions on strings and on images that kernels call through their context (core/kernel_abi.h).
//
// Those that only compare bytes, and those that print, are the runtime's own. Those that know about
// letters, numbers and patterns are the library librelay_text.so, those that read images
// librelay_image.so. A program that calls one of a library opens it, so others need nothing but libc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <mutex>
#include <string_view>

#include "runtime/core/kernel_abi.h"

namespace relay::runtime {

// In the order of relay_kernel_context.strings, which artifacts keep to: the intrinsics of the tensor IR
// by name.
inline constexpr std::string_view kStringFunctions[] = {
    "string_equal",      // (a, b): whether equal
    "string_compare",    // (a, b): below, at or above 0, by bytes, which is by code points
    "text_case",         // (x, kind): in lower case (0) or in upper case (1)
    "text_concat",       // (a, b)
    "text_count",        // (x, delimiter, 1 + most cuts or 0): the number of parts
    "text_format",       // (number, TextNumber): as text
    "text_match",        // (x, pattern): whether the whole is matched, in RE2's syntax
    "text_parse_float",  // (x, TextNumber): a double
    "text_parse_int",    // (x, TextNumber)
    "text_part",  // (x, delimiter, (1 + most cuts or 0) << 32 | n): part n, "" behind the last
    // An image's file comes in words of eight bytes, and its pixels go out so.
    "image_begin",   // (size): room for the file of an image
    "image_put",     // (file, place, word): the file, with eight bytes from that place on
    "image_size",    // (file, axis): the height (0) or the width of the image
    "image_decode",  // (file, PixelFormat): the image, rows from the top
    "image_get",     // (image, place): eight bytes from that place on
    // What is printed: core/print.h.
    "print_text", "print_number", "print_mark", "print_end",
    // An index that has to be one of an axis: core/print.h.
    "index_in",
    "string_hash",  // (x): string_hash below
    "string_key",   // (x): string_key below
};
inline constexpr int kNumStringFunctions = std::size(kStringFunctions);

// The place of a function in the table; -1 when there is none of that name.
constexpr int string_function(std::string_view name) {
  for (int i = 0; i < kNumStringFunctions; ++i) {
    if (kStringFunctions[i] == name) return i;
  }
  return -1;
}

// What text_format and the text_parse_* are given or give.
enum class TextNumber : int64_t { Int, UInt, Bool, Float16, BFloat16, Float32, Float64 };

// The channels of an image, a byte each.
enum class PixelFormat : int64_t { Rgb, Bgr, Grey };

// A library of such functions.
struct FunctionLibrary {
  const char* file;
  const char* symbol;  // of a function that gives its FunctionTable
  const char* below;   // where a build has it, from the folder of the runtime
  int first, count;    // which of kStringFunctions
  int32_t missing;     // what its functions fail with when it is not there
};
inline constexpr FunctionLibrary kTextLibrary{
    "librelay_text.so", "relay_text_library", "../text/", 2, 8, RELAY_KERNEL_NO_TEXT_LIBRARY};
inline constexpr FunctionLibrary kImageLibrary{
    "librelay_image.so", "relay_image_library", "../image/", 10, 5, RELAY_KERNEL_NO_IMAGE_LIBRARY};
inline constexpr const FunctionLibrary* kLibraries[] = {&kTextLibrary, &kImageLibrary};
// Behind those of the libraries are the four that print, the one for indices, the hash and the key.
static_assert(kTextLibrary.first + kTextLibrary.count == kImageLibrary.first &&
              kImageLibrary.first + kImageLibrary.count + 7 == kNumStringFunctions);

// What a library exports.
struct FunctionTable {
  int32_t abi_version;    // RELAY_KERNEL_ABI_VERSION
  int32_t num_functions;  // FunctionLibrary::count
  const relay_string_function* functions;
};

// The library that has a function of that name; null for the runtime's own and for no such function.
const FunctionLibrary* library_of(std::string_view function);

// Opens a library, once in a process: from the folder of the runtime, its lib/, or where a build has it.
// Null when it is not there or of another version. A name that is none of kLibraries gives null, too.
const FunctionTable* open_library(std::string_view file);

// A symbol of a library beside what holds this code, by file name; null when there is none.
void* find_beside(const std::string& file, const std::string& symbol);

// The table for a kernel's context.
const relay_string_function* string_functions();

// The string that a word is (core/strings.h); valid as long as its owner.
inline std::string_view string_of(int64_t word) {
  if (word == 0) return {};
  const char* at = reinterpret_cast<const char*>(static_cast<uintptr_t>(word));
  uint32_t size = 0;
  std::memcpy(&size, at, sizeof(size));
  return {at + sizeof(size), size};
}

// A hash of a string's bytes. Artifacts hold tables that were made with it, so its values never change.
inline uint64_t string_hash(std::string_view text) {
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15;
  const char* at = text.data();
  size_t left = text.size();
  uint64_t hash = left * kMultiplier;
  auto mix = [&](uint64_t word) {
    hash = (hash ^ word) * kMultiplier;
    hash ^= hash >> 32;
  };
  for (; left >= sizeof(uint64_t); at += sizeof(uint64_t), left -= sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, at, sizeof(word));
    mix(word);
  }
  uint64_t rest = 0;
  for (size_t i = 0; i < left; ++i) rest |= uint64_t{static_cast<uint8_t>(at[i])} << (8 * i);
  mix(rest);
  return hash * kMultiplier;
}

// The first seven bytes of a string, the first one highest, zeros behind its end; below them its size, at most kLongKey. The order
// of unequal keys is that of their strings, and equal keys whose size is below kLongKey are those of equal strings.
inline constexpr uint64_t kLongKey = 8;
inline uint64_t string_key(std::string_view text) {
  uint64_t key = 0;
  const size_t kept = std::min<size_t>(text.size(), kLongKey - 1);
  for (size_t i = 0; i < kept; ++i) key = key << 8 | static_cast<uint8_t>(text[i]);
  key <<= 8 * (kLongKey - 1 - kept);
  return key << 8 | std::min<uint64_t>(text.size(), kLongKey);
}

// Memory for strings until it is cleared, for `keep` of a kernel's context. Any thread may allocate.
class StringMemory {
 public:
  StringMemory() = default;
  ~StringMemory() { clear(); }
  StringMemory(const StringMemory&) = delete;
  StringMemory& operator=(const StringMemory&) = delete;

  // Null when memory is exhausted, or the limit is.
  void* allocate(int64_t bytes) noexcept;
  void clear() noexcept;
  // Bytes that may be allocated until the next `clear`; -1: no limit.
  void limit(int64_t bytes) { limit_ = bytes; }

 private:
  struct Chunk {
    Chunk* next;
  };

  std::mutex mutex_;
  Chunk* chunks_ = nullptr;
  char* at_ = nullptr;
  size_t left_ = 0;
  int64_t used_ = 0;
  int64_t limit_ = -1;
};

}  // namespace relay::runtime
