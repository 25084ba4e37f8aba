#include "runtime/core/strings.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/codes/runtime.h"
#include "runtime/core/immediate.h"

namespace relay::runtime {

namespace {

using Size = uint32_t;
constexpr size_t kLongString = 64;

bool is_ascii(std::span<const uint32_t> text) {
  uint32_t bits = 0;
  for (uint32_t code : text) bits |= code;
  return bits < 0x80;
}

size_t utf8_size(uint32_t code) {
  return size_t{1} + (code >= 0x80) + (code >= 0x800) + (code >= 0x10000);
}

// Writes a code point as UTF-8; returns the end of its bytes.
char* put_utf8(char* at, uint32_t code) {
  if (code < 0x80) {
    *at = static_cast<char>(code);
    return at + 1;
  }
  const size_t size = utf8_size(code);
  for (size_t i = size - 1; i > 0; --i, code >>= 6) {
    at[i] = static_cast<char>(0x80 | (code & 0x3F));
  }
  constexpr uint32_t kFirst[] = {0xC0, 0xE0, 0xF0};
  *at = static_cast<char>(kFirst[size - 2] | code);
  return at + size;
}

// Words and bytes in one block.
class Block {
 public:
  Block(size_t strings, size_t bytes) : end_(strings * sizeof(int64_t)) {
    memory_ = std::shared_ptr<void>(std::malloc(end_ + strings * sizeof(Size) + bytes + 1), free);
    if (memory_ == nullptr) throw std::bad_alloc();
  }
  int64_t add(std::string_view text) {
    if (text.empty()) return 0;
    char* to = static_cast<char*>(memory_.get()) + end_;
    const auto size = static_cast<Size>(text.size());
    std::memcpy(to, &size, sizeof(size));
    std::memcpy(to + sizeof(size), text.data(), text.size());
    end_ += sizeof(size) + text.size();
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(to));
  }
  // The same of code points.
  int64_t add(std::span<const uint32_t> text) {
    if (text.empty()) return 0;
    char* to = static_cast<char*>(memory_.get()) + end_;
    char* at = to + sizeof(Size);
    if (is_ascii(text)) {
      for (uint32_t code : text) *at++ = static_cast<char>(code);
    } else {
      for (uint32_t code : text) at = put_utf8(at, code);
    }
    const auto size = static_cast<Size>(at - to - sizeof(Size));
    std::memcpy(to, &size, sizeof(size));
    end_ += sizeof(size) + size;
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(to));
  }
  int64_t* words() const { return static_cast<int64_t*>(memory_.get()); }
  const std::shared_ptr<void>& memory() const { return memory_; }

 private:
  std::shared_ptr<void> memory_;
  size_t end_;
};

[[noreturn]] void refuse(std::string what, std::string expected) {
  throw UserError(
      Diagnostic(codes::tensor_size, {}, std::move(what)).expected(std::move(expected)));
}

}  // namespace

std::string_view string_at(const Tensor& t, int64_t i) { return string_of(t.data<int64_t>()[i]); }

bool is_utf8(std::string_view bytes) {
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
  const auto* end = at + bytes.size();
  while (at < end) {
    constexpr uint64_t kBeyondAscii = 0x8080808080808080;
    uint64_t word = 0;
    if (end - at >= static_cast<std::ptrdiff_t>(sizeof(word))) {
      std::memcpy(&word, at, sizeof(word));
      if ((word & kBeyondAscii) == 0) {
        at += sizeof(word);
        continue;
      }
    }
    const unsigned first = *at++;
    if (first < 0x80) continue;
    const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
    if (first < 0xC2 || first > 0xF4 || end - at < more) return false;
    uint32_t code = first & (0x3F >> more);
    for (int i = 0; i < more; ++i) {
      if ((*at & 0xC0) != 0x80) return false;
      code = code << 6 | (*at++ & 0x3F);
    }
    constexpr uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
    if (code < kLeast[more] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return false;
  }
  return true;
}

Tensor make_strings(Shape shape, std::span<const std::string_view> strings) {
  const DType dtype = DType::String();
  RELAY_CHECK(checked_num_elements(dtype, shape) == static_cast<int64_t>(strings.size()));
  size_t bytes = 0;
  for (std::string_view s : strings) {
    if (s.size() > kMaxStringBytes) refuse("a string is too long", "less than 4 GiB");
    if (!is_utf8(s)) {
      refuse("a string is not UTF-8: '" + escape_for_terminal(std::string(s), 100) + "'", "UTF-8");
    }
    bytes += s.size();
  }
  Block block(strings.size(), bytes);
  for (size_t i = 0; i < strings.size(); ++i) block.words()[i] = block.add(strings[i]);
  return Tensor::from_external(block.words(), dtype, shape, block.memory(), /*read_only=*/true);
}

Tensor make_strings(std::initializer_list<int64_t> shape,
                    std::initializer_list<std::string_view> strings) {
  return make_strings(Shape(shape.begin(), shape.size()),
                      std::span(strings.begin(), strings.size()));
}

std::optional<Tensor> make_strings(Shape shape, const uint32_t* code_points, size_t length) {
  const DType dtype = DType::String();
  const auto count = static_cast<size_t>(checked_num_elements(dtype, shape));
  if (length > kMaxStringBytes / sizeof(uint32_t)) return std::nullopt;
  auto text_at = [&](size_t i) {
    const uint32_t* begin = code_points + i * length;
    size_t size = length;
    while (size > 0 && begin[size - 1] == 0) --size;
    return std::span(begin, size);
  };
  size_t bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    const std::span<const uint32_t> text = text_at(i);
    if (is_ascii(text)) {
      bytes += text.size();
      continue;
    }
    for (uint32_t code : text) {
      if ((code >= 0xD800 && code < 0xE000) || code > 0x10FFFF) return std::nullopt;
      bytes += utf8_size(code);
    }
  }
  Block block(count, bytes);
  for (size_t i = 0; i < count; ++i) block.words()[i] = block.add(text_at(i));
  return Tensor::from_external(block.words(), dtype, shape, block.memory(), /*read_only=*/true);
}

void own_strings(const Tensor& t) {
  if (t.read_only()) return;
  const auto count = static_cast<size_t>(t.num_elements());
  const int64_t* words = t.data<int64_t>();
  // A long string that was broadcast is copied once. For a short one a copy takes less time than to look for the first.
  std::unordered_map<int64_t, int64_t> copies;
  size_t bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t size = string_of(words[i]).size();
    if (size < kLongString || copies.try_emplace(words[i], 0).second) bytes += size;
  }
  Block block(count, bytes);
  for (size_t i = 0; i < count; ++i) {
    const std::string_view text = string_of(words[i]);
    if (text.size() < kLongString) {
      block.words()[i] = block.add(text);
      continue;
    }
    int64_t& known = copies[words[i]];
    if (known == 0) known = block.add(text);
    block.words()[i] = known;
  }
  Tensor::Rep* rep = t.rep();
  rep->data = block.words();
  rep->owner = block.memory();
  rep->read_only = true;
}

void own_strings(const Value& value) {
  if (!is_object(value.object())) return;
  std::vector<Object*> open{value.object()};
  std::unordered_set<const Object*> seen;
  while (!open.empty()) {
    Object* object = open.back();
    open.pop_back();
    if (object->kind == ObjectKind::tensor) {
      auto* rep = static_cast<Tensor::Rep*>(object);
      if (rep->dtype.is_string()) own_strings(Tensor::share(rep));
      continue;
    }
    if (!seen.insert(object).second) continue;
    auto* cell = static_cast<Cell*>(object);
    for (uint32_t n = 0; n < cell->count; ++n) {
      if (is_object(cell->fields[n])) open.push_back(cell->fields[n]);
    }
  }
}

std::string pack_strings(const Tensor& t) {
  std::string out;
  int64_t end = 0;
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    end += static_cast<int64_t>(string_at(t, i).size());
    out.append(reinterpret_cast<const char*>(&end), sizeof(end));
  }
  for (int64_t i = 0; i < t.num_elements(); ++i) out += string_at(t, i);
  return out;
}

std::optional<Tensor> unpack_strings(Shape shape, std::string_view& bytes) {
  const auto count = static_cast<size_t>(checked_num_elements(DType::String(), shape));
  if (count > bytes.size() / sizeof(int64_t)) return std::nullopt;
  const std::string_view text = bytes.substr(count * sizeof(int64_t));
  std::vector<std::string_view> strings;
  int64_t begin = 0;
  for (size_t i = 0; i < count; ++i) {
    int64_t end = 0;
    std::memcpy(&end, bytes.data() + i * sizeof(end), sizeof(end));
    if (end < begin || static_cast<uint64_t>(end) > text.size()) return std::nullopt;
    strings.push_back(text.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
    if (strings.back().size() > kMaxStringBytes || !is_utf8(strings.back())) return std::nullopt;
    begin = end;
  }
  bytes = text.substr(static_cast<size_t>(begin));
  return make_strings(shape, strings);
}

}  // namespace relay::runtime
