#include "target/dot_products.h"

namespace relay {

bool has_byte_dot(const Target& target) {
  bool wide = target.has_feature("avx512vnni") && target.has_feature("avx512vl");
  return wide || (target.has_feature("avxvnni") && target.vector_bits <= 256);
}

}  // namespace relay
