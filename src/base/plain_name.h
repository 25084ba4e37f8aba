// Names of models as names of Relay text.
#pragma once

#include <string>
#include <string_view>

namespace relay {

// The name with "_" for all but letters and digits, and a letter first: "fc.weight" becomes "fc_weight".
inline std::string plain_name(std::string_view name) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  std::string out;
  for (char c : name) out += letter(c) || (c >= '0' && c <= '9') ? c : '_';
  return out.empty() || !letter(out[0]) ? "v" + out : out;
}

}  // namespace relay
