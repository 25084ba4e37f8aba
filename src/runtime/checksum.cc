#include "runtime/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace relay::runtime {

uint64_t checksum(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

// One state gives both results: XXH3 accumulates in the same way for 64 and for 128 bits.
struct Checksum::State {
  XXH3_state_t state;
};

Checksum::Checksum() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->state); }
Checksum::~Checksum() = default;
void Checksum::add(const void* data, size_t size) {
  XXH3_128bits_update(&state_->state, data, size);
}
uint64_t Checksum::value() const { return XXH3_64bits_digest(&state_->state); }
Digest Checksum::digest() const {
  XXH128_hash_t hash = XXH3_128bits_digest(&state_->state);
  return {hash.low64, hash.high64};
}

}  // namespace relay::runtime
