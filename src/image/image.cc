// librelay_image.so: images from the bytes of files, for kernels. The runtime loads it for programs that
// call one of these functions (core/string_functions.h).
#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

#include "image/decode.h"
#include "runtime/core/string_functions.h"

namespace relay::image_library {
namespace {

using runtime::PixelFormat;

// Bytes in the memory of the run: those of a file, or pixels. Words of eight may be read at any of them.
struct Block {
  int64_t size;
  uint8_t* bytes() { return reinterpret_cast<uint8_t*>(this + 1); }
};
constexpr int64_t kWord = 8;

Block* block_of(int64_t word) { return reinterpret_cast<Block*>(static_cast<uintptr_t>(word)); }
int64_t word_of(Block* block) { return static_cast<int64_t>(reinterpret_cast<uintptr_t>(block)); }

int64_t fail(const relay_kernel_context* ctx, Problem problem) {
  *ctx->error = problem == Problem::WebP       ? RELAY_KERNEL_IMAGE_IS_WEBP
                : problem == Problem::Tiff     ? RELAY_KERNEL_IMAGE_IS_TIFF
                : problem == Problem::Jpeg2000 ? RELAY_KERNEL_IMAGE_IS_JPEG2000
                : problem == Problem::TooLarge ? RELAY_KERNEL_IMAGE_TOO_LARGE
                : problem == Problem::Memory   ? RELAY_KERNEL_OUT_OF_MEMORY
                                               : RELAY_KERNEL_BAD_IMAGE;
  return 0;
}

Block* make(const relay_kernel_context* ctx, int64_t size) {
  // What a run keeps lies as strings do, at any byte.
  constexpr uintptr_t kSlack = alignof(Block) - 1;
  void* memory = ctx->keep(ctx, static_cast<int64_t>(sizeof(Block) + kSlack) + size + kWord);
  if (memory == nullptr) {
    fail(ctx, Problem::Memory);
    return nullptr;
  }
  auto* block = reinterpret_cast<Block*>((reinterpret_cast<uintptr_t>(memory) + kSlack) & ~kSlack);
  block->size = size;
  std::memset(block->bytes() + size, 0, kWord);
  return block;
}

int64_t begin(const relay_kernel_context* ctx, const int64_t* args) {
  return word_of(make(ctx, std::max<int64_t>(args[0], 0)));
}

int64_t put(const relay_kernel_context*, const int64_t* args) {
  Block* file = block_of(args[0]);
  if (file == nullptr || args[1] < 0 || args[1] >= file->size) return args[0];
  std::memcpy(file->bytes() + args[1], &args[2],
              static_cast<size_t>(std::min(kWord, file->size - args[1])));
  return args[0];
}

Bytes bytes_of(Block* file) { return {file->bytes(), static_cast<size_t>(file->size)}; }

int64_t size(const relay_kernel_context* ctx, const int64_t* args) {
  if (args[0] == 0) return 0;
  const Header header = read_header(bytes_of(block_of(args[0])));
  if (header.problem != Problem::None) return fail(ctx, header.problem);
  return args[1] == 0 ? header.height : header.width;
}

// From red, green and blue, in place: the mean in grey takes the first of each three bytes' room.
void arrange(uint8_t* pixels, int64_t count, PixelFormat format) {
  if (format == PixelFormat::Rgb) return;
  for (int64_t i = 0; i < count; ++i) {
    uint8_t* p = pixels + 3 * i;
    if (format == PixelFormat::Bgr) {
      std::swap(p[0], p[2]);
    } else {
      pixels[i] =
          static_cast<uint8_t>((p[0] * 19595 + p[1] * 38470 + p[2] * 7471 + (1 << 15)) >> 16);
    }
  }
}

int64_t decode_all(const relay_kernel_context* ctx, const int64_t* args) {
  if (args[0] == 0) return 0;
  const Bytes file = bytes_of(block_of(args[0]));
  const Header header = read_header(file);
  if (header.problem != Problem::None) return fail(ctx, header.problem);
  const int64_t count = header.width * header.height;
  Block* pixels = make(ctx, 3 * count);
  if (pixels == nullptr) return 0;
  const Problem problem = decode(file, header, pixels->bytes());
  if (problem != Problem::None) return fail(ctx, problem);
  arrange(pixels->bytes(), count, static_cast<PixelFormat>(args[1]));
  return word_of(pixels);
}

int64_t get(const relay_kernel_context*, const int64_t* args) {
  Block* block = block_of(args[0]);
  if (block == nullptr || args[1] < 0 || args[1] >= block->size) return 0;
  int64_t word = 0;
  std::memcpy(&word, block->bytes() + args[1], sizeof(word));
  return word;
}

constexpr relay_string_function kFunctions[] = {begin, put, size, decode_all, get};
static_assert(std::size(kFunctions) == runtime::kImageLibrary.count);

constexpr runtime::FunctionTable kTable{RELAY_KERNEL_ABI_VERSION, runtime::kImageLibrary.count,
                                        kFunctions};

}  // namespace
}  // namespace relay::image_library

extern "C" __attribute__((visibility("default"))) const relay::runtime::FunctionTable*
relay_image_library() {
  return &relay::image_library::kTable;
}
