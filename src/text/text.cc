// librelay_text.so: what needs to know about letters, numbers and patterns in strings. The runtime
// loads it for programs that call one of these functions (core/string_functions.h).
#include <locale.h>
#include <re2/re2.h>
#include <re2/set.h>
#include <wctype.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/core/float16.h"
#include "runtime/core/string_functions.h"
#include "runtime/core/token_pattern.h"

namespace relay::text_library {
namespace {

using runtime::string_of;
using runtime::take_letter;
using runtime::TextNumber;

int64_t fail(const relay_kernel_context* ctx, int32_t error) {
  *ctx->error = error;
  return 0;
}

// A string in the memory of the run.
int64_t make(const relay_kernel_context* ctx, std::string_view text, std::string_view more = {}) {
  const size_t bytes = text.size() + more.size();
  if (bytes == 0) return 0;
  if (bytes > 0xFFFFFFFF) return fail(ctx, RELAY_KERNEL_OUT_OF_MEMORY);
  const auto size = static_cast<uint32_t>(bytes);
  auto* to = static_cast<char*>(ctx->keep(ctx, static_cast<int64_t>(sizeof(size) + bytes)));
  if (to == nullptr) return fail(ctx, RELAY_KERNEL_OUT_OF_MEMORY);
  std::memcpy(to, &size, sizeof(size));
  if (!text.empty()) std::memcpy(to + sizeof(size), text.data(), text.size());
  if (!more.empty()) std::memcpy(to + sizeof(size) + text.size(), more.data(), more.size());
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(to));
}

int64_t concat(const relay_kernel_context* ctx, const int64_t* args) {
  if (args[0] == 0) return args[1];
  return args[1] == 0 ? args[0] : make(ctx, string_of(args[0]), string_of(args[1]));
}

// ---- Letters

void put_letter(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
    return;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr uint32_t kFirst[] = {0, 0xC0, 0xE0, 0xF0};
  out += static_cast<char>(kFirst[more] | c >> (6 * more));
  for (int i = more; i-- > 0;) out += static_cast<char>(0x80 | (c >> (6 * i) & 0x3F));
}

// Letters do not depend on the machine's language.
locale_t unicode() {
  static locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return locale;
}

int64_t change_case(const relay_kernel_context* ctx, const int64_t* args) {
  constexpr uint32_t kSharpS = 0xDF;
  const bool upper = args[1] != 0;
  std::string out;
  for (std::string_view rest = string_of(args[0]); !rest.empty();) {
    const uint32_t c = take_letter(rest);
    if (upper && c == kSharpS) {
      out += "SS";
    } else if (c < 0x80) {
      const bool changes = upper ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z';
      out += static_cast<char>(changes ? c ^ 0x20 : c);
    } else if (unicode() != nullptr) {
      put_letter(out, upper ? towupper_l(c, unicode()) : towlower_l(c, unicode()));
    } else {
      put_letter(out, c);
    }
  }
  return make(ctx, out);
}

bool is_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

// ---- Parts

// The parts of a string between delimiters, one after the other; without a delimiter what is between
// white space. At most `cuts` cuts are made: the last part is the rest.
class Parts {
 public:
  Parts(std::string_view text, std::string_view delimiter, int64_t cuts)
      : rest_(text), delimiter_(delimiter), cuts_(cuts) {}

  std::optional<std::string_view> next() {
    return delimiter_.empty() ? between_spaces() : between_delimiters();
  }

 private:
  std::optional<std::string_view> between_delimiters() {
    if (done_) return std::nullopt;
    const size_t at = cuts_ == 0               ? std::string_view::npos
                      : delimiter_.size() == 1 ? place_of(delimiter_.front())
                                               : rest_.find(delimiter_);
    const std::string_view part = rest_.substr(0, at);
    done_ = at == std::string_view::npos;
    if (!done_) rest_.remove_prefix(at + delimiter_.size());
    --cuts_;
    return part;
  }

  // Most parts are short: a call of memchr takes longer than to compare some bytes.
  size_t place_of(char byte) const {
    constexpr size_t kShort = 16;
    const size_t near = std::min(rest_.size(), kShort);
    for (size_t i = 0; i < near; ++i) {
      if (rest_[i] == byte) return i;
    }
    return rest_.size() > near ? rest_.find(byte, near) : std::string_view::npos;
  }

  std::optional<std::string_view> between_spaces() {
    skip(true);
    if (rest_.empty()) return std::nullopt;
    if (cuts_-- == 0) return std::exchange(rest_, {});
    const std::string_view from = rest_;
    skip(false);
    return from.substr(0, from.size() - rest_.size());
  }

  void skip(bool spaces) {
    while (!rest_.empty()) {
      std::string_view behind = rest_;
      if (is_space(take_letter(behind)) != spaces) return;
      rest_ = behind;
    }
  }

  std::string_view rest_, delimiter_;
  int64_t cuts_;  // below 0: any number
  bool done_ = false;
};

// The tokens of the text that was asked for last: a kernel asks for them one by one.
struct Tokens {
  std::string patterns, text;
  int64_t rule_word = 0;  // 0: there is no rule
  bool cut = false;
  std::optional<runtime::TokenRule> rule;
  std::vector<std::string_view> tokens;  // of `text`
};

// Null when the patterns are not a rule.
const std::vector<std::string_view>* tokens_of(const int64_t* args) {
  thread_local auto known = std::make_unique<Tokens>();
  Tokens& t = *known;
  const std::string_view text = string_of(args[0]), patterns = string_of(args[1]);
  const int64_t word = args[2] >> 32;
  if (t.rule_word != word || t.patterns != patterns) {
    t.rule_word = 0;
    t.cut = false;
    t.patterns = patterns;
    std::string why;
    t.rule = runtime::TokenRule::parse(patterns, runtime::between_of_word(args[2]),
                                       runtime::least_of_word(args[2]), why);
    t.rule_word = word;
  }
  if (!t.rule) return nullptr;
  if (!t.cut || t.text != text) {
    t.cut = false;
    t.text = text;
    t.tokens = t.rule->tokens(t.text);
    t.cut = true;
  }
  return &t.tokens;
}

int64_t count(const relay_kernel_context* ctx, const int64_t* args) {
  if (runtime::is_token_word(args[2])) {
    const std::vector<std::string_view>* tokens = tokens_of(args);
    return tokens == nullptr ? fail(ctx, RELAY_KERNEL_BAD_STRING)
                             : static_cast<int64_t>(tokens->size());
  }
  const std::string_view text = string_of(args[0]), delimiter = string_of(args[1]);
  const int64_t cuts = args[2] - 1;
  if (delimiter.size() == 1) {
    const int64_t found = std::count(text.begin(), text.end(), delimiter.front());
    return 1 + (cuts < 0 ? found : std::min(found, cuts));
  }
  Parts parts(text, delimiter, cuts);
  int64_t n = 0;
  while (parts.next()) ++n;
  return n;
}

int64_t part(const relay_kernel_context* ctx, const int64_t* args) {
  if (runtime::is_token_word(args[2])) {
    const auto n = static_cast<size_t>(args[2] & 0xFFFFFFFF);
    const std::vector<std::string_view>* tokens = tokens_of(args);
    return tokens == nullptr || n >= tokens->size() ? 0 : make(ctx, (*tokens)[n]);
  }
  Parts parts(string_of(args[0]), string_of(args[1]), (args[2] >> 32) - 1);
  std::optional<std::string_view> found;
  for (int64_t n = args[2] & 0xFFFFFFFF; n >= 0; --n) {
    found = parts.next();
    if (!found) return 0;
  }
  return make(ctx, *found);
}

// ---- Numbers

std::string float_text(double value, TextNumber kind) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-INF" : "INF";
  char buffer[64];
  if (kind == TextNumber::Float64) {
    return {buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr};
  }
  const auto narrow = static_cast<float>(value);
  if (kind == TextNumber::Float32) {
    return {buffer, std::to_chars(buffer, buffer + sizeof(buffer), narrow).ptr};
  }
  // The fewest digits that give the number back.
  auto bits = [&](float v) {
    return kind == TextNumber::Float16 ? runtime::float_to_float16(v)
                                       : runtime::float_to_bfloat16(v);
  };
  for (int digits = 1;; ++digits) {
    char* end =
        std::to_chars(buffer, buffer + sizeof(buffer), narrow, std::chars_format::general, digits)
            .ptr;
    float back = 0;
    std::from_chars(buffer, end, back);
    if (digits == 9 || bits(back) == bits(narrow)) return {buffer, end};
  }
}

int64_t format(const relay_kernel_context* ctx, const int64_t* args) {
  const auto kind = static_cast<TextNumber>(args[1]);
  switch (kind) {
    case TextNumber::Int:
      return make(ctx, std::to_string(args[0]));
    case TextNumber::UInt:
      return make(ctx, std::to_string(static_cast<uint64_t>(args[0])));
    case TextNumber::Bool:
      return make(ctx, args[0] != 0 ? "True" : "False");
    default: {
      double value = 0;
      std::memcpy(&value, args, sizeof(value));
      return make(ctx, float_text(value, kind));
    }
  }
}

std::string_view without_plus(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  text = without_plus(text);
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || text.empty()) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>) {
    // Too great or too small for the type: what strtod makes of it.
    if (error == std::errc::result_out_of_range) {
      return static_cast<T>(std::strtod(std::string(text).c_str(), nullptr));
    }
  }
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

int64_t parse_float(const relay_kernel_context* ctx, const int64_t* args) {
  const std::string_view text = string_of(args[0]);
  std::optional<double> value;
  if (static_cast<TextNumber>(args[1]) == TextNumber::Float64) {
    value = number<double>(text);
  } else if (auto narrow = number<float>(text)) {
    value = *narrow;
  }
  if (!value) return fail(ctx, RELAY_KERNEL_BAD_STRING);
  int64_t bits = 0;
  std::memcpy(&bits, &*value, sizeof(bits));
  return bits;
}

int64_t parse_int(const relay_kernel_context* ctx, const int64_t* args) {
  const std::string_view text = string_of(args[0]);
  if (static_cast<TextNumber>(args[1]) == TextNumber::UInt) {
    auto value = number<uint64_t>(text);
    return value ? static_cast<int64_t>(*value) : fail(ctx, RELAY_KERNEL_BAD_STRING);
  }
  auto value = number<int64_t>(text);
  return value ? *value : fail(ctx, RELAY_KERNEL_BAD_STRING);
}

// ---- Patterns

// A pattern is compiled once for each thread; a program that makes patterns does not fill the memory.
// Null for what is no pattern. A set of one is answered by RE2's automaton alone, in time linear in the text.
const RE2::Set* compiled(std::string_view pattern) {
  constexpr size_t kKept = 64;
  // A pointer: of memory for the variables of threads a process keeps little for libraries that are loaded later.
  thread_local auto all =
      std::make_unique<std::unordered_map<std::string, std::unique_ptr<RE2::Set>>>();
  auto& known = *all;
  std::string key(pattern);
  if (auto it = known.find(key); it != known.end()) return it->second.get();
  if (known.size() == kKept) known.clear();
  RE2::Options options;
  options.set_log_errors(false);
  auto set = std::make_unique<RE2::Set>(options, RE2::ANCHOR_BOTH);
  if (set->Add(key, nullptr) < 0 || !set->Compile()) set = nullptr;
  return known.emplace(key, std::move(set)).first->second.get();
}

int64_t match(const relay_kernel_context* ctx, const int64_t* args) {
  const RE2::Set* pattern = compiled(string_of(args[1]));
  if (pattern == nullptr) return fail(ctx, RELAY_KERNEL_BAD_STRING);
  const std::string_view text = string_of(args[0]);
  RE2::Set::ErrorInfo error{};
  if (pattern->Match(re2::StringPiece(text.data(), text.size()), nullptr, &error)) return 1;
  return error.kind == RE2::Set::kOutOfMemory ? fail(ctx, RELAY_KERNEL_OUT_OF_MEMORY) : 0;
}

// Nothing is thrown into a kernel.
template <relay_string_function kFunction>
int64_t guarded(const relay_kernel_context* ctx, const int64_t* args) {
  try {
    return kFunction(ctx, args);
  } catch (const std::bad_alloc&) {
    return fail(ctx, RELAY_KERNEL_OUT_OF_MEMORY);
  } catch (...) {
    return fail(ctx, RELAY_KERNEL_BAD_STRING);
  }
}

constexpr relay_string_function kFunctions[] = {
    guarded<change_case>, guarded<concat>,      guarded<count>,     guarded<format>,
    guarded<match>,       guarded<parse_float>, guarded<parse_int>, guarded<part>,
};
static_assert(std::size(kFunctions) == runtime::kTextLibrary.count);

constexpr runtime::FunctionTable kTable{RELAY_KERNEL_ABI_VERSION, runtime::kTextLibrary.count,
                                        kFunctions};

}  // namespace
}  // namespace relay::text_library

extern "C" __attribute__((visibility("default"))) const relay::runtime::FunctionTable*
relay_text_library() {
  return &relay::text_library::kTable;
}
