// The checksum of artifact sections: XXH3, 64 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace relay::runtime {

uint64_t checksum(std::string_view bytes);

// The same over pieces.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  void add(const void* data, size_t size);
  uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace relay::runtime
