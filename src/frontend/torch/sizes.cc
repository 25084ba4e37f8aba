#include "frontend/torch/sizes.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/codes/frontend.h"
#include "base/diagnostic.h"

namespace relay::frontend::torch {
namespace {

constexpr int kMaxDepth = 100;

// A quotient of dimensions that has not been rounded yet; the denominator is 1 almost always.
struct Quotient {
  Dim over, under = dim(1);
};

bool is_whole(const Quotient& q) { return as_const(q.under) == 1; }

class SizeParser {
 public:
  SizeParser(std::string_view text, const Symbols& symbols, const Span& span)
      : text_(text), symbols_(symbols), span_(span) {}

  Dim parse() {
    Quotient out = sum();
    skip();
    if (at_ != text_.size()) malformed();
    return whole(out);
  }

 private:
  [[noreturn]] void malformed() const {
    throw UserError(Diagnostic(codes::frontend_graph, span_, "a size is no expression")
                        .expected("numbers, symbols and operators on them")
                        .found(escape_for_terminal(text_, 200)));
  }
  [[noreturn]] void no_dimension(const std::string& what) const {
    throw UserError(
        Diagnostic(codes::frontend_dynamic, span_,
                   "the size " + escape_for_terminal(text_, 200) + " cannot be expressed")
            .expected("sums, products, quotients, remainders, maxima and minima of sizes")
            .found(what)
            .help("export the model with this size fixed, or with another relation of its sizes"));
  }

  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) malformed();
  }
  char next() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  std::string word() {
    const size_t begin = at_;
    while (at_ < text_.size() &&
           (is_letter(text_[at_]) || is_digit(text_[at_]) || text_[at_] == '.'))
      ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  int64_t number() {
    const bool minus = take("-");
    skip();
    int64_t value = 0;
    auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) malformed();
    at_ = static_cast<size_t>(end - text_.data());
    return minus ? -value : value;
  }

  // A quotient or remainder; divisors are positive.
  Dim rounded(const Dim& over, const Dim& under, Dim (*operation)(const Dim&, const Dim&)) const {
    if (auto n = as_const(under); n && *n <= 0) malformed();
    return operation(over, under);
  }
  // A quotient that is a size leaves no remainder: PyTorch has proved so.
  Dim whole(const Quotient& q) const {
    return is_whole(q) ? q.over : rounded(q.over, q.under, floor_div);
  }
  static Quotient plus(const Quotient& a, const Quotient& b, bool minus) {
    const Dim left = a.over * b.under, right = b.over * a.under;
    return {minus ? left - right : left + right, a.under * b.under};
  }
  static Quotient times(const Quotient& a, const Quotient& b) {
    return {a.over * b.over, a.under * b.under};
  }
  Quotient power(const Quotient& base, const Quotient& exponent) const {
    auto n = as_const(whole(exponent));
    if (!n || *n < -8 || *n > 8) no_dimension("a power");
    Quotient out{dim(1)};
    for (int64_t i = 0; i < std::abs(*n); ++i) out = times(out, base);
    if (*n < 0) std::swap(out.over, out.under);
    return out;
  }

  Quotient sum() {
    Quotient out = product();
    while (true) {
      if (take("+")) {
        out = plus(out, product(), false);
      } else if (next() == '-') {
        take("-");
        out = plus(out, product(), true);
      } else {
        return out;
      }
    }
  }

  Quotient product() {
    bool minus = false;
    while (take("-")) minus = !minus;
    Quotient out = minus ? times({dim(-1)}, factor()) : factor();
    while (true) {
      if (take("//")) {
        const Quotient by = factor();
        out = {rounded(out.over * by.under, out.under * by.over, floor_div)};
      } else if (take("/")) {
        const Quotient by = factor();
        out = {out.over * by.under, out.under * by.over};
      } else if (take("%")) {
        out = {rounded(whole(out), whole(factor()), mod)};
      } else if (take("*")) {
        out = times(out, factor());
      } else {
        return out;
      }
    }
  }

  Quotient factor() {
    const Quotient base = primary();
    return take("**") ? power(base, primary()) : base;
  }

  Quotient primary() {
    if (++depth_ > kMaxDepth) {
      throw UserError(
          Diagnostic(codes::frontend_limit, span_, "the expression of a size is too deep")
              .expected("at most " + std::to_string(kMaxDepth) + " levels"));
    }
    Quotient out;
    const char c = next();
    if (c == '(') {
      take("(");
      out = sum();
      expect(")");
    } else if (is_digit(c)) {
      out = {dim(number())};
    } else if (is_letter(c)) {
      const std::string name = word();
      if (name == "Integer") {
        expect("(");
        out = {dim(number())};
        expect(")");
      } else if (name == "Rational") {
        expect("(");
        out.over = dim(number());
        expect(",");
        out.under = dim(number());
        expect(")");
      } else if (name == "Symbol") {
        out = {symbols_(symbol())};
      } else {
        out = take("(") ? function(name) : Quotient{symbols_(name)};
      }
    } else {
      malformed();
    }
    --depth_;
    return out;
  }

  // Behind the word: ('s0', integer=True, ...).
  std::string symbol() {
    expect("(");
    expect("'");
    const size_t begin = at_, end = text_.find('\'', at_);
    if (end == std::string_view::npos) malformed();
    at_ = text_.find(')', end);
    if (at_ == std::string_view::npos) malformed();
    ++at_;
    return std::string(text_.substr(begin, end - begin));
  }

  Quotient function(std::string name) {
    std::vector<Quotient> args;
    while (!take(")")) {
      if (!args.empty()) expect(",");
      args.push_back(sum());
    }
    if (size_t dot = name.rfind('.'); dot != std::string::npos) name = name.substr(dot + 1);
    auto fold = [&](const auto& step) {
      if (args.empty()) malformed();
      Quotient out = args[0];
      for (size_t i = 1; i < args.size(); ++i) out = step(out, args[i]);
      return out;
    };
    auto wholes = [&](size_t count) {
      if (args.size() != count) malformed();
      std::vector<Dim> out;
      for (const Quotient& a : args) out.push_back(whole(a));
      return out;
    };
    if (name == "Add") {
      return fold([](const Quotient& a, const Quotient& b) { return plus(a, b, false); });
    }
    if (name == "Mul") return fold(times);
    if (name == "Max" || name == "Min") {
      return fold([&](const Quotient& a, const Quotient& b) {
        return Quotient{name == "Max" ? max(whole(a), whole(b)) : min(whole(a), whole(b))};
      });
    }
    if (name == "Pow" || name == "PowByNatural") {
      if (args.size() != 2) malformed();
      return power(args[0], args[1]);
    }
    if (name == "FloorDiv" || name == "CleanDiv") {
      auto a = wholes(2);
      return {rounded(a[0], a[1], floor_div)};
    }
    if (name == "CeilDiv") {
      auto a = wholes(2);
      return {rounded(a[0], a[1], ceil_div)};
    }
    if (name == "Mod" || name == "PythonMod") {
      auto a = wholes(2);
      return {rounded(a[0], a[1], mod)};
    }
    if (name == "ModularIndexing") {
      auto a = wholes(3);
      return {rounded(rounded(a[0], a[1], floor_div), a[2], mod)};
    }
    if (name == "IntTrueDiv") {
      if (args.size() != 2) malformed();
      return {args[0].over * args[1].under, args[0].under * args[1].over};
    }
    if (args.size() != 1) no_dimension(name);
    if (name == "FloorToInt" || name == "floor" || name == "TruncToInt")
      return {rounded(args[0].over, args[0].under, floor_div)};
    if (name == "CeilToInt" || name == "ceiling")
      return {rounded(args[0].over, args[0].under, ceil_div)};
    if (name == "Identity" || name == "ToFloat") return args[0];
    no_dimension(name);
  }

  std::string_view text_;
  const Symbols& symbols_;
  const Span& span_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Dim parse_size(std::string_view text, const Symbols& symbols, const Span& span) {
  return SizeParser(text, symbols, span).parse();
}

namespace {

// Whether an expression has a symbol that stands for data: u0, u1, ... It may be of any form.
bool is_data_dependent(std::string_view text) {
  auto is_word = [&](size_t at) {
    const char c = at < text.size() ? text[at] : ' ';
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  for (size_t at = text.find('u'); at != std::string_view::npos; at = text.find('u', at + 1)) {
    if (at > 0 && is_word(at - 1)) continue;
    size_t end = at + 1;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    if (end > at + 1 && !is_word(end)) return true;
  }
  return false;
}

}  // namespace

Dim size_of(const SizeText& size, const Symbols& symbols, const Span& span) {
  if (const auto* number = std::get_if<int64_t>(&size)) return dim(*number);
  const std::string& text = std::get<std::string>(size);
  return is_data_dependent(text) ? dim_any() : parse_size(text, symbols, span);
}

std::string symbol_of(const SizeText& size) {
  const auto* text = std::get_if<std::string>(&size);
  if (text == nullptr) return "";
  std::string_view name = *text;
  if (name.starts_with("Symbol('")) {
    name.remove_prefix(8);
    const size_t end = name.find('\'');
    if (end == std::string_view::npos || name.find(')') + 1 != name.size()) return "";
    name = name.substr(0, end);
  }
  const bool plain = !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  return plain && !(name[0] >= '0' && name[0] <= '9') ? std::string(name) : "";
}

}  // namespace relay::frontend::torch
