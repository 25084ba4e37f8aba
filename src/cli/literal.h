// Scalars and lists as they are written on a command line: 5, -2.5, true, [1, 2, 3], [[1, 2], [3, 4]].
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/tensor.h"

namespace relay::cli {

// The number that the text is, all of it; nullopt for anything else.
template <class T>
std::optional<T> number_of(std::string_view text) {
  T v{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return v;
}

enum class LiteralKind {
  none,    // no scalar and no list
  whole,   // one whole number
  scalar,  // any other number, inf, nan, true, false
  list,    // something that starts with "["
};
LiteralKind literal_kind(std::string_view text);

// The literal as a tensor of `dtype`. Whole numbers must be exact in it, others are rounded to it, as in source code.
// UserError E0702 that names the input: a number outside the dtype's range, a fraction for integers, a number for bool
// or the other way round, lists whose rows differ in length, brackets that do not fit.
runtime::Tensor read_literal(const std::string& input, const std::string& text,
                             runtime::DType dtype);

}  // namespace relay::cli
