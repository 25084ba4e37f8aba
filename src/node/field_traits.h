// How each C++ type that may stand in a field list is compared, hashed and converted.
// Included by node.h only.
#pragma once

#include <cmath>
#include <cstring>
#include <optional>

#include "node/node.h"

namespace relay {

// Mixes a value into a running 64-bit hash (the finaliser of MurmurHash3).
inline uint64_t hash_combine(uint64_t seed, uint64_t value) {
  uint64_t x = seed * 0x9E3779B97F4A7C15ull + value + 0x632BE59BD9B4E019ull;
  x ^= x >> 33;
  x *= 0xFF51AFD7ED558CCDull;
  x ^= x >> 33;
  x *= 0xC4CEB9FE1A85EC53ull;
  x ^= x >> 33;
  return x;
}
uint64_t hash_bytes(const void* data, size_t size, uint64_t seed = 0);

namespace field_detail {

inline size_t no_children(const void*) { return 0; }

// PlainField<T> needs: Convert<T>::to(const T&) -> Value, Convert<T>::from(const Value&, T&) ->
// bool, Convert<T>::hash(const T&), Convert<T>::name.
template <class T>
struct Convert;

template <>
struct Convert<bool> {
  static constexpr const char* name = "bool";
  static AttrValue to(bool v) { return AttrValue(v); }
  static bool from(const AttrValue& v, bool& out) {
    if (auto* b = v.get_if<bool>()) return out = *b, true;
    if (auto* i = v.get_if<int64_t>()) return out = *i != 0, *i == 0 || *i == 1;
    return false;
  }
  static uint64_t hash(bool v) { return v; }
};

template <>
struct Convert<int64_t> {
  static constexpr const char* name = "int";
  static AttrValue to(int64_t v) { return AttrValue(v); }
  static bool from(const AttrValue& v, int64_t& out) {
    if (auto* i = v.get_if<int64_t>()) return out = *i, true;
    if (auto* b = v.get_if<bool>()) return out = *b, true;
    return false;
  }
  static uint64_t hash(int64_t v) { return static_cast<uint64_t>(v); }
};

template <>
struct Convert<double> {
  static constexpr const char* name = "float";
  static AttrValue to(double v) { return AttrValue(v); }
  static bool from(const AttrValue& v, double& out) {
    if (auto* d = v.get_if<double>()) return out = *d, true;
    if (auto* i = v.get_if<int64_t>()) return out = static_cast<double>(*i), true;
    return false;
  }
  static uint64_t hash(double v) {
    uint64_t bits;
    std::memcpy(&bits, &v, sizeof bits);
    return bits;
  }
};

template <>
struct Convert<std::string> {
  static constexpr const char* name = "string";
  static AttrValue to(const std::string& v) { return AttrValue(v); }
  static bool from(const AttrValue& v, std::string& out) {
    if (auto* s = v.get_if<std::string>()) return out = *s, true;
    return false;
  }
  static uint64_t hash(const std::string& v) { return hash_bytes(v.data(), v.size()); }
};

// A field that takes several kinds of value.
template <>
struct Convert<AttrValue> {
  static constexpr const char* name = "value";
  static AttrValue to(const AttrValue& v) { return v; }
  static bool from(const AttrValue& v, AttrValue& out) { return out = v, true; }
  static uint64_t hash(const AttrValue& v) {
    std::string text = to_string(v);
    return hash_bytes(text.data(), text.size());
  }
};

template <class T>
struct Convert<std::vector<T>> {
  static constexpr const char* name = std::is_same_v<T, int64_t>       ? "list of int"
                                      : std::is_same_v<T, double>      ? "list of float"
                                      : std::is_same_v<T, std::string> ? "list of string"
                                                                       : "list";
  static AttrValue to(const std::vector<T>& v) {
    ValueList out;
    for (const T& x : v) out.push_back(Convert<T>::to(x));
    return AttrValue(std::move(out));
  }
  static bool from(const AttrValue& v, std::vector<T>& out) {
    auto* list = v.get_if<ValueList>();
    if (list == nullptr) return false;
    std::vector<T> result;
    for (const AttrValue& x : *list) {
      T item{};
      if (!Convert<T>::from(x, item)) return false;
      result.push_back(std::move(item));
    }
    return out = std::move(result), true;
  }
  static uint64_t hash(const std::vector<T>& v) {
    uint64_t h = v.size();
    for (const T& x : v) h = hash_combine(h, Convert<T>::hash(x));
    return h;
  }
};

template <class T>
struct Convert<std::optional<T>> {
  static constexpr const char* name = Convert<T>::name;
  static AttrValue to(const std::optional<T>& v) { return v ? Convert<T>::to(*v) : AttrValue(); }
  static bool from(const AttrValue& v, std::optional<T>& out) {
    if (v.is_none()) return out.reset(), true;
    T item{};
    if (!Convert<T>::from(v, item)) return false;
    return out = std::move(item), true;
  }
  static uint64_t hash(const std::optional<T>& v) {
    return v ? hash_combine(1, Convert<T>::hash(*v)) : 0;
  }
};

template <class T>
bool plain_equal(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, double>) {
    return std::memcmp(&a, &b, sizeof a) == 0;  // NaN equals itself; -0 differs from 0.
  } else {
    return a == b;
  }
}

}  // namespace field_detail

// Plain values.
template <class T>
struct FieldTraits {
  using C = field_detail::Convert<T>;
  static constexpr FieldOps ops{
      field_detail::no_children,
      nullptr,
      nullptr,
      [](const void* a, const void* b) {
        return field_detail::plain_equal(*static_cast<const T*>(a), *static_cast<const T*>(b));
      },
      [](const void* f) { return C::hash(*static_cast<const T*>(f)); },
      [](const void* f) { return C::to(*static_cast<const T*>(f)); },
      [](void* f, const AttrValue& v) { return C::from(v, *static_cast<T*>(f)); },
      C::name};
};

// One sub-node.
template <class T>
struct FieldTraits<Ref<T>> {
  static constexpr FieldOps ops{
      [](const void*) -> size_t { return 1; },
      [](const void* f, size_t) -> const NodeRef& { return *static_cast<const Ref<T>*>(f); },
      [](void* f, size_t, NodeRef c) {
        *static_cast<Ref<T>*>(f) = Ref<T>::unchecked(std::move(c));
      },
      nullptr,
      nullptr,
      nullptr,
      nullptr,
      "node"};
};

// A list of sub-nodes. Its length is part of equality; rewriting keeps it.
template <class T>
struct FieldTraits<std::vector<Ref<T>>> {
  using V = std::vector<Ref<T>>;
  static constexpr FieldOps ops{
      [](const void* f) { return static_cast<const V*>(f)->size(); },
      [](const void* f, size_t i) -> const NodeRef& { return (*static_cast<const V*>(f))[i]; },
      [](void* f, size_t i, NodeRef c) {
        (*static_cast<V*>(f))[i] = Ref<T>::unchecked(std::move(c));
      },
      nullptr,
      nullptr,
      nullptr,
      nullptr,
      "list of node"};
};

// Spans are never compared; they are told as text.
template <>
struct FieldTraits<Span> {
  static constexpr FieldOps ops{
      field_detail::no_children,
      nullptr,
      nullptr,
      [](const void*, const void*) { return true; },
      [](const void*) -> uint64_t { return 0; },
      [](const void* f) { return AttrValue(static_cast<const Span*>(f)->describe()); },
      [](void*, const AttrValue&) { return false; },
      "span"};
};

}  // namespace relay
