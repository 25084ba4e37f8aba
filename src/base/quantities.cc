#include "base/quantities.h"

#include <cstdio>
#include <iterator>
#include <utility>

namespace relay {

std::string format_number(double value, int digits) {
  // The longest double has 309 digits before the point.
  char buffer[400];
  std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  return buffer;
}

std::string format_seconds(double s) {
  if (s >= 1) return format_number(s, 2) + " s";
  if (s >= 1e-3) return format_number(s * 1e3, s >= 0.1 ? 0 : s >= 0.01 ? 1 : 2) + " ms";
  return format_number(s * 1e6, s >= 1e-4 ? 0 : 1) + " us";
}

std::string format_bytes(double bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(units)) {
    bytes /= 1024;
    ++unit;
  }
  return format_number(bytes, unit == 0 ? 0 : 1) + " " + units[unit];
}

std::string format_percent(double share, int digits) {
  return format_number(100 * share, digits) + " %";
}

std::string counted(int64_t count, std::string_view noun) {
  std::string out = std::to_string(count) + " " + std::string(noun);
  if (count == 1) return out;
  // The nouns of messages whose plural is irregular.
  for (auto [singular, plural] :
       {std::pair<std::string_view, std::string_view>{"axis", "axes"}, {"index", "indices"}}) {
    if (noun.ends_with(singular)) {
      out.resize(out.size() - singular.size());
      return out + std::string(plural);
    }
  }
  return out + "s";
}

}  // namespace relay
