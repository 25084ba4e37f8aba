// Records: plain structs with a list of their members, which stand in a node's field list as one field.
//
//   struct LoopHints {
//     int64_t unroll = 0;
//     LoopOrder order = LoopOrder::Forward;
//     static constexpr auto members() {
//       return std::tuple{member("unroll", &LoopHints::unroll), member("order", &LoopHints::order)};
//     }
//     friend bool operator==(const LoopHints&, const LoopHints&) = default;
//   };
//
// Hash, JSON and text follow from the list; a member that has its default is left out of the latter two. Members are values
// that may stand in field lists themselves; an enum has a to_string.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "node/node.h"

namespace relay {

template <class T, class M>
struct RecordMember {
  std::string_view name;
  M T::*at;
};
template <class T, class M>
constexpr RecordMember<T, M> member(std::string_view name, M T::*at) {
  return {name, at};
}

template <class T>
concept Record = requires {
  T::members();
};

// Calls visit(name, value, default value) for each member, in the order of the list.
template <Record T, class Visit>
void for_each_member(const T& record, Visit&& visit) {
  const T unset{};
  std::apply([&](const auto&... m) { (visit(m.name, record.*(m.at), unset.*(m.at)), ...); },
             T::members());
}

// The members that have another value than by default, as text: {"unroll", "4"}.
template <Record T>
std::vector<std::pair<std::string, std::string>> changed_members(const T& record) {
  std::vector<std::pair<std::string, std::string>> out;
  for_each_member(record, [&](std::string_view name, const auto& value, const auto& unset) {
    if (value == unset) return;
    using M = std::decay_t<decltype(value)>;
    std::string text;
    if constexpr (std::is_enum_v<M>) {
      text = std::string(to_string(value));
    } else if constexpr (std::is_same_v<M, std::string>) {
      text = value;
    } else {
      text = to_string(field_detail::Convert<M>::to(value));
    }
    out.emplace_back(std::string(name), std::move(text));
  });
  return out;
}

namespace field_detail {

// As a list of pairs of a name and a value.
template <Record T>
struct Convert<T> {
  static constexpr const char* name = "record";
  static AttrValue to(const T& v) {
    ValueList out;
    for_each_member(v, [&](std::string_view key, const auto& value, const auto& unset) {
      if (value == unset) return;
      using M = std::decay_t<decltype(value)>;
      out.push_back(ValueList{AttrValue(std::string(key)), Convert<M>::to(value)});
    });
    return AttrValue(std::move(out));
  }
  static bool from(const AttrValue& v, T& out) {
    auto* pairs = v.get_if<ValueList>();
    if (pairs == nullptr) return false;
    T made{};
    for (const AttrValue& p : *pairs) {
      auto* pair = p.get_if<ValueList>();
      auto* key = pair == nullptr || pair->size() != 2 ? nullptr : (*pair)[0].get_if<std::string>();
      bool set = false;
      auto assign = [&](const auto& m) {
        using M = std::decay_t<decltype(made.*(m.at))>;
        if (!set && m.name == *key) set = Convert<M>::from((*pair)[1], made.*(m.at));
      };
      if (key != nullptr) std::apply([&](const auto&... m) { (assign(m), ...); }, T::members());
      if (!set) return false;
    }
    return out = std::move(made), true;
  }
  static uint64_t hash(const T& v) {
    uint64_t h = 0;
    for_each_member(v, [&](std::string_view, const auto& value, const auto&) {
      h = hash_combine(h, Convert<std::decay_t<decltype(value)>>::hash(value));
    });
    return h;
  }
};

}  // namespace field_detail
}  // namespace relay
