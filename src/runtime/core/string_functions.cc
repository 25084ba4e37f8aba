#include "runtime/core/string_functions.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

namespace relay::runtime {

namespace {

int64_t equal(const relay_kernel_context*, const int64_t* args) {
  return args[0] == args[1] || string_of(args[0]) == string_of(args[1]) ? 1 : 0;
}

int64_t compare(const relay_kernel_context*, const int64_t* args) {
  return args[0] == args[1] ? 0 : string_of(args[0]).compare(string_of(args[1]));
}

// The library beside what holds this code: in the same folder, in lib/ of it, or where a build has it.
const TextLibrary* open_text_library() {
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&open_text_library), &self) == 0) return nullptr;
  std::string folder = self.dli_fname != nullptr ? self.dli_fname : "";
  // Of a command that was found by PATH the name tells no folder.
  if (folder.find('/') == std::string::npos) folder = "/proc/self/exe";
  if (char* real = realpath(folder.c_str(), nullptr); real != nullptr) {
    folder = real;
    std::free(real);
  }
  folder.resize(folder.rfind('/') + 1);
  for (const char* below : {"", "lib/", "../lib/relay/", "../text/"}) {
    void* library = dlopen((folder + below + kTextLibraryFile).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    using Export = const TextLibrary* (*)();
    auto get = reinterpret_cast<Export>(dlsym(library, kTextLibrarySymbol));
    const TextLibrary* found = get != nullptr ? get() : nullptr;
    if (found != nullptr && found->abi_version == RELAY_KERNEL_ABI_VERSION &&
        found->num_functions == kNumStringFunctions) {
      return found;
    }
    dlclose(library);
  }
  return nullptr;
}

const TextLibrary* text_library() {
  static const TextLibrary* library = open_text_library();
  return library;
}

template <int kFunction>
int64_t of_text_library(const relay_kernel_context* ctx, const int64_t* args) {
  const TextLibrary* library = text_library();
  if (library == nullptr) {
    *ctx->error = RELAY_KERNEL_NO_TEXT_LIBRARY;
    return 0;
  }
  return library->functions[kFunction - kFirstOfTextLibrary](ctx, args);
}

template <int... kOffsets>
const relay_string_function* table_of(std::integer_sequence<int, kOffsets...>) {
  static constexpr relay_string_function table[kNumStringFunctions] = {
      equal, compare, of_text_library<kFirstOfTextLibrary + kOffsets>...};
  return table;
}

}  // namespace

const relay_string_function* string_functions() {
  return table_of(std::make_integer_sequence<int, kNumStringFunctions - kFirstOfTextLibrary>());
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
