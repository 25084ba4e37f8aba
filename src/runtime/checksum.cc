#include "runtime/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace relay::runtime {

uint64_t checksum(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

struct Checksum::State {
  XXH3_state_t state;
};

Checksum::Checksum() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->state); }
Checksum::~Checksum() = default;
void Checksum::add(const void* data, size_t size) {
  XXH3_64bits_update(&state_->state, data, size);
}
uint64_t Checksum::value() const { return XXH3_64bits_digest(&state_->state); }

}  // namespace relay::runtime
