#include "runtime/core/dtype.h"

#include <charconv>

#include "runtime/core/narrow.h"

namespace relay::runtime {

std::string DType::to_string() const {
  std::string text;
  switch (code) {
    case kInt:
      text = "int" + std::to_string(bits);
      break;
    case kUInt:
      text = "uint" + std::to_string(bits);
      break;
    case kFloat:
      text = "float" + std::to_string(bits);
      break;
    case kBFloat:
      text = "bfloat" + std::to_string(bits);
      break;
    case kBool:
      text = "bool";
      break;
    case kString:
      return "string";
    default:
      return valid() ? std::string(narrow_format(code).name) : "type" + std::to_string(code);
  }
  if (lanes != 1) text += "x" + std::to_string(lanes);
  return text;
}

namespace {

// Reads a positive decimal number without sign or leading zero from the front of `text`.
std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value <= 0 || text.front() == '0') return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

}  // namespace

std::optional<DType> DType::parse(std::string_view text) {
  if (text == "string") return String();
  for (Code narrow : kNarrow) {
    if (text == narrow_format(narrow).name) return Narrow(narrow);
  }
  struct Prefix {
    std::string_view name;
    Code code;
  };
  static constexpr Prefix prefixes[] = {
      {"int", kInt}, {"uint", kUInt}, {"float", kFloat}, {"bfloat", kBFloat}, {"bool", kBool}};
  for (const Prefix& prefix : prefixes) {
    if (!text.starts_with(prefix.name)) continue;
    std::string_view rest = text.substr(prefix.name.size());
    int bits = 8;
    if (prefix.code != kBool) {
      std::optional<int> number = take_number(rest);
      if (!number || *number > 64) return std::nullopt;
      bits = *number;
    }
    int lanes = 1;
    if (!rest.empty()) {
      if (rest.front() != 'x') return std::nullopt;
      rest.remove_prefix(1);
      std::optional<int> number = take_number(rest);
      if (!number || *number > 0xFFFF || !rest.empty()) return std::nullopt;
      lanes = *number;
    }
    DType t = make(prefix.code, bits, lanes);
    return t.valid() ? std::optional<DType>(t) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace relay::runtime
