#include "base/suggest.h"

#include <algorithm>
#include <utility>

namespace relay {
namespace {

// Edit distance where a swap of two letters is one step, cut off above `limit`.
size_t edit_distance(std::string_view a, std::string_view b, size_t limit) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > limit) return limit + 1;
  std::vector<size_t> row(a.size() + 1), above, above2;
  for (size_t i = 0; i <= a.size(); ++i) row[i] = i;
  for (size_t j = 1; j <= b.size(); ++j) {
    above2 = std::exchange(above, row);
    row[0] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
      row[i] = std::min({above[i] + 1, row[i - 1] + 1, above[i - 1] + (a[i - 1] != b[j - 1])});
      // Two swapped letters are one mistake.
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[i] = std::min(row[i], above2[i - 2] + 1);
    }
  }
  return row[a.size()];
}

}  // namespace

std::string suggest(std::string_view name, const std::vector<std::string_view>& known) {
  if (name.size() > 100) return {};
  size_t limit = std::max<size_t>(1, name.size() / 3);
  std::vector<std::pair<size_t, std::string_view>> near;
  for (std::string_view k : known) {
    size_t d = edit_distance(name, k, limit);
    // "conv2d" for "nn.conv2d": the same name in another namespace is near.
    bool suffix =
        k.size() > name.size() && k.ends_with(name) && k[k.size() - name.size() - 1] == '.';
    if (suffix) d = 0;
    if (d <= limit && d < name.size()) near.emplace_back(d, k);
  }
  std::sort(near.begin(), near.end());
  if (near.empty()) return {};
  std::string out = "did you mean ";
  for (size_t i = 0; i < near.size() && i < 3; ++i) {
    if (i > 0) out += ", ";
    out += near[i].second;
  }
  return out + "?";
}

}  // namespace relay
