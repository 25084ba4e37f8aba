// Field types shared by the Relay IR and the tensor IR: dtypes, enums, string maps.
#pragma once

#include <map>
#include <string>

#include "node/node.h"
#include "runtime/core/dtype.h"

namespace relay {

// A dtype that is not given; attributes use it for "the same as the input".
inline constexpr runtime::DType kUnsetDType{runtime::DType::kFloat, 0, 1};
inline constexpr bool is_set(runtime::DType dtype) { return dtype.bits != 0; }

namespace field_detail {

// A dtype travels as its name; an unset one as "".
template <>
struct Convert<runtime::DType> {
  using DType = runtime::DType;
  static constexpr const char* name = "dtype";
  static AttrValue to(const DType& v) {
    return AttrValue(is_set(v) ? v.to_string() : std::string());
  }
  static bool from(const AttrValue& v, DType& out) {
    if (v.is_none()) return out = kUnsetDType, true;
    auto* s = v.get_if<std::string>();
    if (s == nullptr) return false;
    if (s->empty()) return out = kUnsetDType, true;
    auto parsed = DType::parse(*s);
    if (!parsed) return false;
    return out = *parsed, true;
  }
  static uint64_t hash(const DType& v) { return v.key(); }
};

template <class E>
requires std::is_enum_v<E>
struct Convert<E> {
  static constexpr const char* name = "enum";
  static AttrValue to(E v) { return AttrValue(static_cast<int64_t>(v)); }
  static bool from(const AttrValue& v, E& out) {
    auto* i = v.get_if<int64_t>();
    if (i == nullptr) return false;
    return out = static_cast<E>(*i), true;
  }
  static uint64_t hash(E v) { return static_cast<uint64_t>(v); }
};

template <class V>
struct Convert<std::map<std::string, V>> {
  using Map = std::map<std::string, V>;
  static constexpr const char* name = "dict";
  static AttrValue item(const V& v) {
    if constexpr (std::is_same_v<V, AttrValue>) {
      return v;
    } else {
      return Convert<V>::to(v);
    }
  }
  static AttrValue to(const Map& v) {
    ValueList out;
    for (const auto& [key, value] : v) out.push_back(ValueList{AttrValue(key), item(value)});
    return AttrValue(std::move(out));
  }
  static bool from(const AttrValue&, Map&) { return false; }
  static uint64_t hash(const Map& v) {
    uint64_t h = v.size();
    for (const auto& [key, value] : v) {
      std::string text = key + "=" + to_string(item(value));
      h = hash_combine(h, hash_bytes(text.data(), text.size()));
    }
    return h;
  }
};

}  // namespace field_detail
}  // namespace relay
