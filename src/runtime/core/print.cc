#include "runtime/core/print.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "runtime/core/float16.h"

namespace relay::runtime {
namespace {

struct Printing {
  std::string text;
  std::optional<std::string> failure;
};

Printing& printing() {
  thread_local Printing mine;
  return mine;
}

std::atomic<PrintFunction> print_function{nullptr};

template <class Add>
int64_t add(const relay_kernel_context* ctx, int64_t so_far, const Add& piece) {
  try {
    // A kernel may end before its text does.
    if (so_far == 0) printing().text.clear();
    piece(printing().text);
  } catch (const std::bad_alloc&) {
    printing().text.clear();
    *ctx->error = RELAY_KERNEL_OUT_OF_MEMORY;
  }
  return so_far + 1;
}

// Whether a number that was read back is the same in the dtype that it is of.
bool same(TextNumber kind, double a, double b) {
  const auto narrow_a = static_cast<float>(a), narrow_b = static_cast<float>(b);
  switch (kind) {
    case TextNumber::Float16:
      return float_to_float16(narrow_a) == float_to_float16(narrow_b);
    case TextNumber::BFloat16:
      return float_to_bfloat16(narrow_a) == float_to_bfloat16(narrow_b);
    case TextNumber::Float32:
      return narrow_a == narrow_b;
    default:
      return a == b;
  }
}

std::string float_text(double value, TextNumber kind) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string out;
  // d.ddde+xx with the fewest digits; the decimal point depends on the locale.
  constexpr int kMostDigits = 17;
  char scientific[48];
  int digits = 0;
  do {
    std::snprintf(scientific, sizeof(scientific), "%.*e", digits, value);
  } while (++digits < kMostDigits && !same(kind, std::strtod(scientific, nullptr), value));
  const char* at = scientific;
  if (*at == '-') out += *at++;
  std::string figures(1, *at++);
  const char* exponent_at = std::strchr(at, 'e');
  if (*at != 'e') figures.append(at + 1, exponent_at);
  const int exponent = std::atoi(exponent_at + 1);
  const auto count = static_cast<int>(figures.size());
  // Python writes numbers out from 1e-4 to below 1e16.
  if (exponent < -4 || exponent >= 16) {
    out += figures[0];
    if (count > 1) out.append(".").append(figures, 1);
    char power[8];
    std::snprintf(power, sizeof(power), "e%+03d", exponent);
    out += power;
  } else if (exponent < 0) {
    out.append("0.").append(static_cast<size_t>(-exponent - 1), '0').append(figures);
  } else {
    figures.append(static_cast<size_t>(std::max(0, exponent + 2 - count)), '0');
    out.append(figures, 0, static_cast<size_t>(exponent) + 1).append(".");
    out.append(figures, static_cast<size_t>(exponent) + 1);
  }
  return out;
}

void add_quoted(std::string& out, std::string_view text) {
  out += '\'';
  for (const char c : text) {
    if (c == '\\' || c == '\'') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  out += '\'';
}

}  // namespace

int64_t print_text(const relay_kernel_context* ctx, const int64_t* args) {
  return add(ctx, args[2], [&](std::string& out) {
    if (args[1] != 0) {
      add_quoted(out, string_of(args[0]));
    } else {
      out += string_of(args[0]);
    }
  });
}

int64_t print_number(const relay_kernel_context* ctx, const int64_t* args) {
  return add(ctx, args[2], [&](std::string& out) {
    out += number_text(args[0], static_cast<TextNumber>(args[1]));
  });
}

int64_t print_mark(const relay_kernel_context* ctx, const int64_t* args) {
  return add(ctx, args[1], [&](std::string& out) {
    for (auto letters = static_cast<uint64_t>(args[0]); letters != 0; letters >>= 8) {
      out += static_cast<char>(letters & 0xFF);
    }
  });
}

int64_t print_end(const relay_kernel_context* ctx, const int64_t* args) {
  Printing& mine = printing();
  const auto end = static_cast<PrintEnd>(args[0]);
  if (end == PrintEnd::Failure || end == PrintEnd::IndexFailure) {
    mine.failure = std::exchange(mine.text, {});
    *ctx->error =
        end == PrintEnd::Failure ? RELAY_KERNEL_CHECK_FAILED : RELAY_KERNEL_INDEX_OUT_OF_BOUNDS;
    return args[1] + 1;
  }
  const int64_t so_far = end == PrintEnd::OutputLine
                             ? add(ctx, args[1], [](std::string& out) { out += '\n'; })
                             : args[1] + 1;
  if (PrintFunction print = print_function.load()) {
    print(mine.text.data(), mine.text.size());
  } else {
    std::fwrite(mine.text.data(), 1, mine.text.size(), stdout);
  }
  mine.text.clear();
  return so_far;
}

std::optional<TextNumber> text_number(DType t) {
  if (t.is_bool()) return TextNumber::Bool;
  if (t.is_int()) return TextNumber::Int;
  if (t.is_uint()) return TextNumber::UInt;
  if (t.is_bfloat16()) return TextNumber::BFloat16;
  if (!t.is_floating()) return std::nullopt;
  return t.bits == 16   ? TextNumber::Float16
         : t.bits == 32 ? TextNumber::Float32
                        : TextNumber::Float64;
}

std::string number_text(int64_t word, TextNumber kind) {
  switch (kind) {
    case TextNumber::Bool:
      return word != 0 ? "True" : "False";
    case TextNumber::Int:
      return std::to_string(word);
    case TextNumber::UInt:
      return std::to_string(static_cast<uint64_t>(word));
    default:
      return float_text(std::bit_cast<double>(word), kind);
  }
}

std::string index_failure(int64_t index, int64_t size, const std::string& place) {
  std::string out = "index " + std::to_string(index) + " is out of bounds for an axis of size " +
                    std::to_string(size);
  return place.empty() ? out : out + " (" + place + ")";
}

int64_t index_in(const relay_kernel_context* ctx, const int64_t* args) {
  Printing& mine = printing();
  const int64_t size = args[1], place = args[0] < 0 ? args[0] + size : args[0];
  if (place >= 0 && place < size) {
    mine.text.clear();
    return place;
  }
  try {
    mine.failure = index_failure(args[0], size, mine.text);
  } catch (const std::bad_alloc&) {
    mine.failure.reset();
  }
  mine.text.clear();
  *ctx->error = RELAY_KERNEL_INDEX_OUT_OF_BOUNDS;
  return 0;
}

std::optional<std::string> take_failure() {
  return std::exchange(printing().failure, std::nullopt);
}

void set_print_function(PrintFunction print) { print_function = print; }

PrintScope::PrintScope(PrintFunction print) : before_(print_function.exchange(print)) {}

}  // namespace relay::runtime
