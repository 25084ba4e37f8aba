// The checksum of artifact sections: XXH3, 64 bits; and the longer one of the same by which
// contents are distinguished.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace relay::runtime {

uint64_t checksum(std::string_view bytes);

// XXH3, 128 bits. Not against forgery.
struct Digest {
  uint64_t low = 0;
  uint64_t high = 0;

  friend auto operator<=>(const Digest&, const Digest&) = default;
};

// The same over pieces.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  void add(const void* data, size_t size);
  uint64_t value() const;
  Digest digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace relay::runtime
