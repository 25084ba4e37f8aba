// Field types that the Relay IR adds to the node services: tensors and dictionaries.
#pragma once

#include <map>
#include <string>

#include "node/node.h"
#include "node/scalar_fields.h"
#include "runtime/core/tensor.h"

namespace relay {

using runtime::DType;
using runtime::Tensor;

// Named values without declared fields, such as a function's attributes.
using Dict = std::map<std::string, AttrValue>;

// Constants are compared by dtype, shape and bits.
template <>
struct FieldTraits<Tensor> {
  static constexpr FieldOps ops{
      field_detail::no_children,
      nullptr,
      nullptr,
      [](const void* a, const void* b) {
        return bit_equal(*static_cast<const Tensor*>(a), *static_cast<const Tensor*>(b));
      },
      [](const void* f) {
        const Tensor& t = *static_cast<const Tensor*>(f);
        if (t.dtype().is_string()) return bit_hash(t);
        uint64_t h = field_detail::Convert<DType>::hash(t.dtype());
        for (int64_t d : t.shape()) h = hash_combine(h, static_cast<uint64_t>(d));
        return hash_bytes(t.data(), static_cast<size_t>(t.byte_size()), h);
      },
      [](const void*) { return AttrValue(std::string("<tensor>")); },
      [](void*, const AttrValue&) { return false; },
      "tensor"};
};

}  // namespace relay
