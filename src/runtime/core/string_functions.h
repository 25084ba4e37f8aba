// Functions on strings that kernels call through their context (core/kernel_abi.h).
//
// Two of them, which only compare bytes, are the runtime's own. The others know about letters, numbers
// and patterns: they are the library librelay_text.so, which is loaded when a program calls one of
// them for the first time. So a program without text needs nothing but libc.
#pragma once

#include <cstdint>
#include <cstring>
#include <iterator>
#include <mutex>
#include <string_view>

#include "runtime/core/kernel_abi.h"

namespace relay::runtime {

// In the order of relay_kernel_context.strings, by name: the intrinsics of the tensor IR.
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
};
inline constexpr int kNumStringFunctions = std::size(kStringFunctions);
inline constexpr int kFirstOfTextLibrary = 2;

// The place of a function in the table; -1 when there is none of that name.
constexpr int string_function(std::string_view name) {
  for (int i = 0; i < kNumStringFunctions; ++i) {
    if (kStringFunctions[i] == name) return i;
  }
  return -1;
}

// What text_format and the text_parse_* are given or give.
enum class TextNumber : int64_t { Int, UInt, Bool, Float16, BFloat16, Float32, Float64 };

// What librelay_text.so exports, as the function relay_text_library.
struct TextLibrary {
  int32_t abi_version;                     // RELAY_KERNEL_ABI_VERSION
  int32_t num_functions;                   // kNumStringFunctions
  const relay_string_function* functions;  // from kFirstOfTextLibrary on
};
inline constexpr const char* kTextLibraryFile = "librelay_text.so";
inline constexpr const char* kTextLibrarySymbol = "relay_text_library";

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
