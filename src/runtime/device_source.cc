#include "runtime/device_source.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/codes/runtime.h"

namespace relay::runtime {
namespace {

constexpr std::string_view kMagic = "RLYDEV1\n";
constexpr std::string_view kWorkspace = "//workspace ", kLaunch = "//launch ",
                           kBinary = "//binary ";

[[noreturn]] void damaged_source(const std::string& what) {
  throw UserError(Diagnostic(codes::artifact_corrupt, {},
                             "the source of a kernel for a device is damaged: " + what)
                      .help("compile the model again"));
}

int64_t number(std::string_view word) {
  int64_t out = 0;
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out);
  if (error != std::errc() || end != word.data() + word.size()) {
    damaged_source("'" + std::string(word) + "' is not a number");
  }
  return out;
}

int64_t floor_quotient(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
}

int64_t combined(std::string_view op, int64_t a, int64_t b) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  if (op == "+") return static_cast<int64_t>(ua + ub);
  if (op == "-") return static_cast<int64_t>(ua - ub);
  if (op == "*") return static_cast<int64_t>(ua * ub);
  if (op == "/") return floor_quotient(a, b);
  if (op == "%") {
    return b == 0 ? 0 : static_cast<int64_t>(ua - static_cast<uint64_t>(floor_quotient(a, b)) * ub);
  }
  if (op == "min") return std::min(a, b);
  if (op == "max") return std::max(a, b);
  damaged_source("there is no operator '" + std::string(op) + "'");
}

// The next word, which is taken off the text; empty at the end.
std::string_view next_word(std::string_view& text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == text.npos) return text = {};
  const size_t end = std::min(text.find(' ', begin), text.size());
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

// The words up to the next "|".
std::vector<std::string_view> part(std::string_view& text) {
  std::vector<std::string_view> out;
  for (auto word = next_word(text); !word.empty() && word != "|"; word = next_word(text)) {
    out.push_back(word);
  }
  return out;
}

std::string joined(const std::vector<std::string_view>& words) {
  std::string out;
  for (std::string_view w : words) (out += out.empty() ? "" : " ") += w;
  return out;
}

DeviceLaunch parse_launch(std::string_view line) {
  DeviceLaunch out;
  out.name = joined(part(line));
  for (std::string_view word : part(line)) out.buffers.push_back(static_cast<size_t>(number(word)));
  for (SizeFormula& items : out.items) items = SizeFormula(joined(part(line)));
  const std::vector<std::string_view> rest = part(line);
  if (rest.size() != 4) damaged_source("a launch without a group");
  for (size_t i = 0; i < 3; ++i) out.group[i] = number(rest[i]);
  out.may_fail = number(rest[3]) != 0;
  return out;
}

}  // namespace

int64_t SizeFormula::evaluate(std::span<const int64_t> sizes) const {
  std::vector<int64_t> stack;
  std::string_view words = text_;
  for (auto word = next_word(words); !word.empty(); word = next_word(words)) {
    const bool is_number =
        (word[0] >= '0' && word[0] <= '9') || (word[0] == '-' && word.size() > 1);
    if (is_number) {
      stack.push_back(number(word));
    } else if (word[0] == 'd') {
      const auto at = static_cast<size_t>(number(word.substr(1)));
      if (at >= sizes.size()) damaged_source("there is no size '" + std::string(word) + "'");
      stack.push_back(sizes[at]);
    } else {
      if (stack.size() < 2) damaged_source("the formula '" + text_ + "' lacks an operand");
      const int64_t b = stack.back();
      stack.pop_back();
      stack.back() = combined(word, stack.back(), b);
    }
  }
  if (stack.size() != 1) damaged_source("'" + text_ + "' is no formula");
  return stack[0];
}

std::optional<LaunchSize> size_of(const DeviceLaunch& launch, std::span<const int64_t> sizes) {
  LaunchSize out;
  for (size_t i = 0; i < 3; ++i) {
    out.items[i] = launch.items[i].evaluate(sizes);
    if (out.items[i] <= 0) return std::nullopt;
    out.group[i] = std::max<int64_t>(launch.group[i], 1);
    out.has_groups |= launch.group[i] > 0;
  }
  return out;
}

std::string to_text(const DeviceSource& source) {
  std::string out;
  for (const SizeFormula& bytes : source.workspace) {
    out += std::string(kWorkspace) + bytes.text() + "\n";
  }
  for (const DeviceLaunch& l : source.launches) {
    out += std::string(kLaunch) + l.name + " |";
    for (size_t b : l.buffers) out += " " + std::to_string(b);
    out += " |";
    for (const SizeFormula& items : l.items) out += " " + items.text() + " |";
    for (int64_t g : l.group) out += " " + std::to_string(g);
    out += l.may_fail ? " 1\n" : " 0\n";
  }
  return out + source.code;
}

std::string to_bytes(const DeviceSource& source) {
  std::string text;
  for (const DeviceBinary& b : source.binaries) {
    text += std::string(kBinary) + std::to_string(b.bytes.size()) + " " + b.device + "\n";
  }
  text += to_text(source);
  for (const DeviceBinary& b : source.binaries) text += b.bytes;
  const uint64_t size = text.size();
  std::string out(kMagic);
  out.append(reinterpret_cast<const char*>(&size), sizeof(size));
  return out + text;
}

DeviceSource read_device_source(relay_kernel entry) {
  const char* bytes = reinterpret_cast<const char*>(entry);
  if (bytes == nullptr || std::memcmp(bytes, kMagic.data(), kMagic.size()) != 0) {
    damaged_source("it does not begin as one does");
  }
  uint64_t size = 0;
  std::memcpy(&size, bytes + kMagic.size(), sizeof(size));
  return parse_device_source({bytes + kMagic.size() + sizeof(size), static_cast<size_t>(size)});
}

DeviceSource parse_device_source(std::string_view text) {
  DeviceSource out;
  std::vector<size_t> sizes;  // of the binaries
  while (text.starts_with("//")) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (line.starts_with(kWorkspace)) {
      out.workspace.emplace_back(std::string(line.substr(kWorkspace.size())));
    } else if (line.starts_with(kLaunch)) {
      out.launches.push_back(parse_launch(line.substr(kLaunch.size())));
    } else if (line.starts_with(kBinary)) {
      std::string_view device = line.substr(kBinary.size());
      sizes.push_back(static_cast<size_t>(number(next_word(device))));
      out.binaries.push_back({std::string(device.substr(std::min<size_t>(device.size(), 1))), ""});
    } else {
      break;
    }
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
  }
  if (out.launches.empty()) damaged_source("it has no launch");
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] > text.size()) damaged_source("a binary is longer than all");
    out.binaries[i].bytes = text.substr(text.size() - sizes[i]);
    text.remove_suffix(sizes[i]);
  }
  out.code = text;
  return out;
}

}  // namespace relay::runtime
