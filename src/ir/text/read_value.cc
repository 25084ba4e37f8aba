// Literals, and the values of attributes.
#include <cerrno>
#include <cmath>
#include <cstdlib>

#include "base/codes/text.h"
#include "ir/dim_fields.h"
#include "ir/text/reader.h"

namespace relay::text {
namespace {

constexpr std::string_view kMinInt64 = "9223372036854775808";  // behind a minus

[[noreturn]] void bad_number(Reader& r, const Token& t) {
  r.fail(codes::text_bad_literal, r.span(t), "this number does not fit its type");
}

double floating(std::string_view text) {
  return std::strtod(std::string(text.substr(0, text.find('f'))).c_str(), nullptr);
}

// The number with its sign.
int64_t signed_integer(Reader& r, const Token& t, bool negative) {
  if (negative && t.text.substr(0, t.text.find('i')) == kMinInt64) return INT64_MIN;
  auto v = read_integer(t);
  if (!v) bad_number(r, t);
  return negative ? -*v : *v;
}

// A value without parts.
AttrValue scalar(Reader& r) {
  bool negative = r.accept("-");
  Token t = r.take();
  switch (t.kind) {
    case TokenKind::integer:
      return AttrValue(signed_integer(r, t, negative));
    case TokenKind::floating:
      return AttrValue(negative ? -floating(t.text) : floating(t.text));
    case TokenKind::string:
      return AttrValue(read_string(r, t));
    case TokenKind::identifier:
      if (t.text == "inff" || t.text == "inf") return AttrValue(negative ? -HUGE_VAL : HUGE_VAL);
      if (t.text == "nanf" || t.text == "nan") return AttrValue(std::nan(""));
      if (negative) break;
      if (t.text == "True") return AttrValue(true);
      if (t.text == "False") return AttrValue(false);
      if (t.text == "None" || t.text == "nullptr") return AttrValue();
      break;
    default:
      break;
  }
  if (t.kind != TokenKind::end) r.go_to(r.at() - 1);
  r.unexpected("an attribute's value: a number, a size, a string, True, False, None or a list");
}

}  // namespace

std::string read_string(Reader& r, const Token& t) {
  std::string s;
  if (!unescape(t.text, s)) {
    r.fail(codes::text_bad_literal, r.span(t), "a string has an unknown escape",
           "known are \\n \\t \\r \\\" \\\\ \\xNN");
  }
  return s;
}

std::optional<int64_t> read_integer(const Token& t) {
  std::string digits(t.text.substr(0, t.text.find('i')));
  errno = 0;
  char* end = nullptr;
  long long v = std::strtoll(digits.c_str(), &end, 10);
  if (errno != 0 || end != digits.c_str() + digits.size()) return std::nullopt;
  return v;
}

// No attribute nests deeper than a few levels; who prints, compares and destroys values relies on
// it.
constexpr size_t kMaxNesting = 64;

AttrValue read_value(Reader& r) {
  struct Open {
    std::string_view close;
    ValueList list;
  };
  std::vector<Open> open;
  while (true) {
    AttrValue v;
    if (at_symbolic_dim(r, !open.empty())) {
      v = to_value(read_dim(r));
    } else if (r.is("[") || r.is("(")) {
      std::string_view close = r.take().text == "[" ? "]" : ")";
      if (!r.accept(close)) {
        if (open.size() == kMaxNesting) {
          r.fail(codes::text_bad_attribute, r.span(r.peek()),
                 "lists in an attribute are nested too deep",
                 "64 levels are read; no operator takes more than three");
        }
        open.push_back({close, {}});
        continue;
      }
      v = AttrValue(ValueList());
    } else {
      v = scalar(r);
    }
    while (!open.empty()) {
      open.back().list.push_back(std::move(v));
      if (r.more(open.back().close)) break;
      v = AttrValue(std::move(open.back().list));
      open.pop_back();
      if (open.empty()) return v;
    }
    if (open.empty()) return v;
  }
}

bool is_infinity(const Token& t) {
  return t.kind == TokenKind::identifier &&
         (t.text == "inff" ||
          (t.text.starts_with("inff") && DType::parse("float" + std::string(t.text.substr(4)))));
}

Expr read_literal(Reader& r, const Token& t, bool negative) {
  auto scalar_of = [&](std::string_view kind, std::string_view bits, DType otherwise) {
    if (bits.empty()) return otherwise;
    auto dtype = DType::parse(std::string(kind) + std::string(bits));
    if (!dtype || !dtype->is_scalar()) bad_number(r, t);
    return *dtype;
  };
  if (t.kind == TokenKind::integer) {
    int64_t v = signed_integer(r, t, negative);
    size_t suffix = t.text.find('i');
    DType dtype = v >= INT32_MIN && v <= INT32_MAX ? DType::Int(32) : DType::Int(64);
    if (suffix != std::string_view::npos) {
      dtype = scalar_of("int", t.text.substr(suffix + 1), DType::Int(32));
      int64_t limit = dtype.bits >= 64 ? INT64_MAX : (int64_t{1} << (dtype.bits - 1)) - 1;
      if (v > limit || v < -limit - 1) bad_number(r, t);
    }
    return constant(Tensor::scalar(v, dtype), r.span(t));
  }
  bool infinite = is_infinity(t);
  size_t suffix = t.text.find('f', infinite ? 3 : 0);
  double v = infinite ? HUGE_VAL : floating(t.text);
  std::string_view bits = suffix == std::string_view::npos ? "" : t.text.substr(suffix + 1);
  DType dtype = scalar_of("float", bits, DType::Float(32));
  return constant(Tensor::scalar(negative ? -v : v, dtype), r.span(t));
}

}  // namespace relay::text
