#include "ir/layout.h"

#include <cctype>

namespace relay {

std::optional<Layout> Layout::parse(std::string_view text) {
  Layout out;
  int64_t number = 0;
  bool has_number = false;
  for (char c : text) {
    if (c >= '0' && c <= '9') {
      number = number * 10 + (c - '0');
      has_number = true;
      if (number > 1 << 20) return std::nullopt;
    } else if (c >= 'A' && c <= 'Z') {
      if (has_number || out.index_of(c) >= 0) return std::nullopt;
      out.axes_.push_back({c, 0});
    } else if (c >= 'a' && c <= 'z') {
      if (!has_number || number == 0 || out.index_of(c) >= 0) return std::nullopt;
      out.axes_.push_back({c, number});
      number = 0;
      has_number = false;
    } else {
      return std::nullopt;
    }
  }
  if (has_number) return std::nullopt;
  for (const Axis& a : out.axes_) {
    if (a.block > 0 && out.index_of(static_cast<char>(std::toupper(a.name))) < 0) {
      return std::nullopt;
    }
  }
  return out;
}

Layout Layout::of(std::string_view text) {
  auto parsed = parse(text);
  RELAY_CHECK(parsed.has_value(), std::string(text));
  return *parsed;
}

int64_t Layout::index_of(char axis) const {
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].name == axis) return static_cast<int64_t>(i);
  }
  return -1;
}

int64_t Layout::block_of(char primal) const {
  int64_t block = 1;
  for (const Axis& a : axes_) {
    if (a.block > 0 && std::toupper(a.name) == primal) block *= a.block;
  }
  return block;
}

std::string Layout::primal_axes() const {
  std::string out;
  for (const Axis& a : axes_) {
    if (a.block == 0) out += a.name;
  }
  return out;
}

std::string Layout::to_string() const {
  std::string out;
  for (const Axis& a : axes_) {
    if (a.block > 0) out += std::to_string(a.block);
    out += a.name;
  }
  return out;
}

std::vector<Dim> Layout::convert_shape(const std::vector<Dim>& shape, const Layout& from) const {
  RELAY_CHECK(shape.size() == from.axes_.size());
  std::vector<Dim> out;
  for (const Axis& a : axes_) {
    if (a.block > 0) {
      out.push_back(dim(a.block));
      continue;
    }
    int64_t at = from.index_of(a.name);
    RELAY_CHECK(at >= 0, "layouts with different axes");
    int64_t had = from.block_of(a.name), wants = block_of(a.name);
    Dim size = shape[static_cast<size_t>(at)];
    if (had != wants) {
      if (had > 1) size = size * dim(had);
      if (wants > 1) size = ceil_div(size, dim(wants));
    }
    out.push_back(size);
  }
  return out;
}

}  // namespace relay
