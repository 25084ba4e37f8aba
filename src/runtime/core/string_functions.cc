#include "runtime/core/string_functions.h"

#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string>
#include <utility>

#include "runtime/core/own_folder.h"
#include "runtime/core/print.h"

namespace relay::runtime {

namespace {

int64_t equal(const relay_kernel_context*, const int64_t* args) {
  return args[0] == args[1] || string_of(args[0]) == string_of(args[1]) ? 1 : 0;
}

// The first bytes of a string as a number that is ordered as they are.
uint64_t first_bytes(std::string_view text) {
  uint64_t word = 0;
  std::memcpy(&word, text.data(), sizeof(word));
  if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap64(word);
  return word;
}

int64_t compare(const relay_kernel_context*, const int64_t* args) {
  if (args[0] == args[1]) return 0;
  const std::string_view a = string_of(args[0]), b = string_of(args[1]);
  if (std::min(a.size(), b.size()) >= sizeof(uint64_t)) {
    const uint64_t x = first_bytes(a), y = first_bytes(b);
    if (x != y) return x < y ? -1 : 1;
  }
  return a.compare(b);
}

int64_t hash_of(const relay_kernel_context*, const int64_t* args) {
  return static_cast<int64_t>(string_hash(string_of(args[0])));
}

int64_t key_of(const relay_kernel_context*, const int64_t* args) {
  return static_cast<int64_t>(string_key(string_of(args[0])));
}

// A library beside the one with this code.
const FunctionTable* find_library(const FunctionLibrary& wanted) {
  const std::string folder = own_folder();
  if (folder.empty()) return nullptr;
  for (const char* below : {"", "lib/", "../lib/relay/", wanted.below}) {
    void* library = dlopen((folder + below + wanted.file).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    using Export = const FunctionTable* (*)();
    auto get = reinterpret_cast<Export>(dlsym(library, wanted.symbol));
    const FunctionTable* found = get != nullptr ? get() : nullptr;
    if (found != nullptr && found->abi_version == RELAY_KERNEL_ABI_VERSION &&
        found->num_functions == wanted.count) {
      return found;
    }
    dlclose(library);
  }
  return nullptr;
}

template <const FunctionLibrary* kLibrary>
const FunctionTable* opened() {
  static const FunctionTable* library = find_library(*kLibrary);
  return library;
}

template <const FunctionLibrary* kLibrary, int kFunction>
int64_t of_library(const relay_kernel_context* ctx, const int64_t* args) {
  const FunctionTable* library = opened<kLibrary>();
  if (library == nullptr) {
    *ctx->error = kLibrary->missing;
    return 0;
  }
  return library->functions[kFunction](ctx, args);
}

template <int... kText, int... kImage>
const relay_string_function* table_of(std::integer_sequence<int, kText...>,
                                      std::integer_sequence<int, kImage...>) {
  static constexpr relay_string_function table[kNumStringFunctions] = {
      equal,
      compare,
      of_library<&kTextLibrary, kText>...,
      of_library<&kImageLibrary, kImage>...,
      print_text,
      print_number,
      print_mark,
      print_end,
      index_in,
      hash_of,
      key_of};
  return table;
}

}  // namespace

const FunctionLibrary* library_of(std::string_view function) {
  const int at = string_function(function);
  for (const FunctionLibrary* library : kLibraries) {
    if (at >= library->first && at < library->first + library->count) return library;
  }
  return nullptr;
}

const FunctionTable* open_library(std::string_view file) {
  if (file == kTextLibrary.file) return opened<&kTextLibrary>();
  return file == kImageLibrary.file ? opened<&kImageLibrary>() : nullptr;
}

void* find_beside(const std::string& file, const std::string& symbol) {
  const std::string folder = own_folder();
  if (folder.empty()) return nullptr;
  for (const char* below : {"", "lib/", "../lib/relay/"}) {
    // Stays open: programs that are loaded later call it, too.
    void* library = dlopen((folder + below + file).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) return dlsym(library, symbol.c_str());
  }
  return nullptr;
}

const relay_string_function* string_functions() {
  return table_of(std::make_integer_sequence<int, kTextLibrary.count>(),
                  std::make_integer_sequence<int, kImageLibrary.count>());
}

void* StringMemory::allocate(int64_t bytes) noexcept {
  constexpr size_t kChunk = size_t{64} << 10;
  std::lock_guard lock(mutex_);
  if (bytes < 0 || (limit_ >= 0 && bytes > limit_ - used_)) return nullptr;
  const auto size = static_cast<size_t>(bytes);
  if (size > left_) {
    const size_t room = std::max(size, kChunk);
    auto* chunk = static_cast<Chunk*>(std::malloc(sizeof(Chunk) + room));
    if (chunk == nullptr) return nullptr;
    chunk->next = std::exchange(chunks_, chunk);
    at_ = reinterpret_cast<char*>(chunk + 1);
    left_ = room;
  }
  used_ += bytes;
  left_ -= size;
  return std::exchange(at_, at_ + size);
}

void StringMemory::clear() noexcept {
  while (chunks_ != nullptr) std::free(std::exchange(chunks_, chunks_->next));
  at_ = nullptr;
  left_ = 0;
  used_ = 0;
}

}  // namespace relay::runtime
