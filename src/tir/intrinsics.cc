#include "tir/intrinsics.h"

#include "base/quantities.h"

#include <algorithm>
#include <cmath>

namespace relay::tir {
namespace {

// Both precisions of one formula of a, b and c.
#define RELAY_FORMULA(formula)                                          \
  [](double a, [[maybe_unused]] double b, [[maybe_unused]] double c) {  \
    using T [[maybe_unused]] = double;                                  \
    return static_cast<double>(formula);                                \
  },                                                                    \
      [](float a, [[maybe_unused]] float b, [[maybe_unused]] float c) { \
        using T [[maybe_unused]] = float;                               \
        return static_cast<float>(formula);                             \
      }

constexpr auto kFloat = IntrinsicRule::Float;
constexpr auto kLanes = IntrinsicRule::Lanes;

// Sorted by name.
constexpr Intrinsic kIntrinsics[] = {
    {"abs", 1, IntrinsicRule::Number, "magnitude; of the least integer, itself",
     RELAY_FORMULA(std::fabs(a))},
    {"acos", 1, kFloat, "arc cosine", RELAY_FORMULA(std::acos(a))},
    {"acosh", 1, kFloat, "inverse hyperbolic cosine", RELAY_FORMULA(std::acosh(a))},
    {"asin", 1, kFloat, "arc sine", RELAY_FORMULA(std::asin(a))},
    {"asinh", 1, kFloat, "inverse hyperbolic sine", RELAY_FORMULA(std::asinh(a))},
    {"atan", 1, kFloat, "arc tangent", RELAY_FORMULA(std::atan(a))},
    {"atan2", 2, kFloat, "angle of the point (b, a)", RELAY_FORMULA(std::atan2(a, b))},
    {"atanh", 1, kFloat, "inverse hyperbolic tangent", RELAY_FORMULA(std::atanh(a))},
    {"barrier", 0, IntrinsicRule::Effect,
     "the items of a group wait for each other, and see what all of them have written", nullptr,
     nullptr},
    {"bfloat16_dot", 2, IntrinsicRule::FloatDot,
     "sum of the products of a's two bfloat16 by b's, rounded once or more", nullptr, nullptr},
    {"bitcast", 1, IntrinsicRule::Bits, "the same bits as another dtype", nullptr, nullptr},
    {"byte_dot", 2, IntrinsicRule::Dot,
     "sum of the products of a's four bytes, unsigned, by b's, signed", nullptr, nullptr},
    {"ceil", 1, kFloat, "least integer not below", RELAY_FORMULA(std::ceil(a))},
    {"cos", 1, kFloat, "cosine", RELAY_FORMULA(std::cos(a))},
    {"cosh", 1, kFloat, "hyperbolic cosine", RELAY_FORMULA(std::cosh(a))},
    {"end_copies", 0, IntrinsicRule::Effect,
     "the copies that each item has begun since the last end_copies are one lot", nullptr, nullptr},
    {"erf", 1, kFloat, "error function", RELAY_FORMULA(std::erf(a))},
    {"exp", 1, kFloat, "e to the power a", RELAY_FORMULA(std::exp(a))},
    {"fast_erf", 1, kFloat, "erf(a), in float32 within 5e-6", RELAY_FORMULA(std::erf(a))},
    {"fast_exp", 1, kFloat, "exp(a), in float32 within 4e-6 of its size",
     RELAY_FORMULA(std::exp(a))},
    {"fast_tanh", 1, kFloat, "tanh(a), in float32 within 3e-6", RELAY_FORMULA(std::tanh(a))},
    {"fixed_point_product", 2, IntrinsicRule::Dot,
     "the low 32 bits of a * b / 2^31, halves up, of the exact product", nullptr, nullptr},
    {"floor", 1, kFloat, "greatest integer not above", RELAY_FORMULA(std::floor(a))},
    {"fma", 3, kFloat, "a * b + c, rounded once", RELAY_FORMULA(std::fma(a, b, c))},
    {"fmod", 2, kFloat, "rest of a / b with the sign of a", RELAY_FORMULA(std::fmod(a, b))},
    {"image_begin", 1, IntrinsicRule::String, "room for the file of an image, of a bytes", nullptr,
     nullptr},
    {"image_decode", 2, IntrinsicRule::String, "the image of a file; b says its channels", nullptr,
     nullptr},
    {"image_get", 2, IntrinsicRule::String, "eight bytes of an image, from place b on", nullptr,
     nullptr},
    {"image_put", 3, IntrinsicRule::String, "the file a, with the eight bytes c from place b on",
     nullptr, nullptr},
    {"image_size", 2, IntrinsicRule::String,
     "the height, or if b is set the width, of the image of a file", nullptr, nullptr},
    {"index_in", 3, IntrinsicRule::String,
     "the place of the index a in an axis of b elements; ends the run where there is none", nullptr,
     nullptr},
    {"isfinite", 1, IntrinsicRule::Test, "neither infinite nor NaN",
     RELAY_FORMULA(std::isfinite(a))},
    {"isinf", 1, IntrinsicRule::Test, "an infinity", RELAY_FORMULA(std::isinf(a))},
    {"isnan", 1, IntrinsicRule::Test, "not a number", RELAY_FORMULA(std::isnan(a))},
    {"likely", 1, IntrinsicRule::Any, "the argument, which is expected to be true", nullptr,
     nullptr},
    {"load_word", 1, IntrinsicRule::Word,
     "the byte that the Load names and the three behind it, the first as the lowest bits", nullptr,
     nullptr},
    {"log", 1, kFloat, "natural logarithm", RELAY_FORMULA(std::log(a))},
    {"log10", 1, kFloat, "logarithm to base 10", RELAY_FORMULA(std::log10(a))},
    {"log2", 1, kFloat, "logarithm to base 2", RELAY_FORMULA(std::log2(a))},
    {"popcount", 1, IntrinsicRule::Integer, "number of bits that are one", nullptr, nullptr},
    {"pow", 2, IntrinsicRule::Number,
     "a to the power b; of integers it wraps, and a negative one rounds the quotient towards zero",
     RELAY_FORMULA(std::pow(a, b))},
    {"prefetch", 1, IntrinsicRule::Effect, "brings what the Load names into the cache", nullptr,
     nullptr},
    {"print_end", 2, IntrinsicRule::String, "ends the text that a kernel prints as a says", nullptr,
     nullptr},
    {"print_mark", 2, IntrinsicRule::String, "adds the letters that a's bytes are to the text",
     nullptr, nullptr},
    {"print_number", 3, IntrinsicRule::String, "adds the number a to the text; b says its dtype",
     nullptr, nullptr},
    {"print_text", 3, IntrinsicRule::String, "adds the string a to the text, in quotes if b is set",
     nullptr, nullptr},
    {"reduce_add", 1, kLanes, "sum of all lanes, in any order", nullptr, nullptr},
    {"reduce_and", 1, kLanes, "whether all lanes hold", nullptr, nullptr},
    {"reduce_max", 1, kLanes, "greatest lane", nullptr, nullptr},
    {"reduce_min", 1, kLanes, "least lane", nullptr, nullptr},
    {"reduce_mul", 1, kLanes, "product of all lanes, in any order", nullptr, nullptr},
    {"reduce_or", 1, kLanes, "whether any lane holds", nullptr, nullptr},
    {"round", 1, kFloat, "nearest integer, halves to even", RELAY_FORMULA(std::nearbyint(a))},
    {"rsqrt", 1, kFloat, "1 / sqrt(a)", RELAY_FORMULA(T{1} / std::sqrt(a))},
    {"sigmoid", 1, kFloat, "1 / (1 + exp(-a))", RELAY_FORMULA(T{1} / (T{1} + std::exp(-a)))},
    {"sin", 1, kFloat, "sine", RELAY_FORMULA(std::sin(a))},
    {"sinh", 1, kFloat, "hyperbolic sine", RELAY_FORMULA(std::sinh(a))},
    {"sqrt", 1, kFloat, "square root", RELAY_FORMULA(std::sqrt(a))},
    {"string_compare", 2, IntrinsicRule::String,
     "below, at or above 0, as a is before, equal to or behind b", nullptr, nullptr},
    {"string_equal", 2, IntrinsicRule::String, "whether the strings are equal", nullptr, nullptr},
    {"string_hash", 1, IntrinsicRule::String, "a hash of the string's bytes", nullptr, nullptr},
    {"string_key", 1, IntrinsicRule::String,
     "the first seven bytes of the string and whether there are more, in the order of strings",
     nullptr, nullptr},
    {"tan", 1, kFloat, "tangent", RELAY_FORMULA(std::tan(a))},
    {"tanh", 1, kFloat, "hyperbolic tangent", RELAY_FORMULA(std::tanh(a))},
    {"text_case", 2, IntrinsicRule::String,
     "the string in lower case, or if b is set in upper case", nullptr, nullptr},
    {"text_concat", 2, IntrinsicRule::String, "the strings, concatenated", nullptr, nullptr},
    {"text_count", 3, IntrinsicRule::String,
     "parts of a between delimiters b, with at most c - 1 cuts unless c is 0; tokens of a by the "
     "patterns b if c is below 0",
     nullptr, nullptr},
    {"text_format", 2, IntrinsicRule::String, "the number as text; b says its dtype", nullptr,
     nullptr},
    {"text_match", 2, IntrinsicRule::String, "whether the pattern b matches the whole of a",
     nullptr, nullptr},
    {"text_parse_float", 2, IntrinsicRule::String, "the number that the text is; b says its dtype",
     nullptr, nullptr},
    {"text_parse_int", 2, IntrinsicRule::String, "the number that the text is; b says its dtype",
     nullptr, nullptr},
    {"text_part", 3, IntrinsicRule::String,
     "part c of a between delimiters b; a token of a by the patterns b if c is below 0", nullptr,
     nullptr},
    {"trunc", 1, kFloat, "integer next to a towards zero", RELAY_FORMULA(std::trunc(a))},
    {"wait_copies", 1, IntrinsicRule::Effect,
     "each item waits for its own copies, except for those of the last a lots", nullptr, nullptr},
};
#undef RELAY_FORMULA

static_assert(std::ranges::is_sorted(kIntrinsics, {}, &Intrinsic::name));

bool fits(IntrinsicRule rule, DType arg, DType result) {
  switch (rule) {
    case IntrinsicRule::Float:
      return arg.is_floating() && result == arg;
    case IntrinsicRule::Number:
      return !arg.is_bool() && result == arg;
    case IntrinsicRule::Integer:
      return arg.is_integer() && result == arg;
    case IntrinsicRule::Test:
      return arg.is_floating() && result.is_bool();
    case IntrinsicRule::Bits:
      return arg.bits == result.bits;
    case IntrinsicRule::Any:
      return result == arg;
    case IntrinsicRule::Lanes:
      return result == arg;
    case IntrinsicRule::Effect:
      return true;
    case IntrinsicRule::Word:
      return ((arg.is_integer() && arg.bits == 8) || arg.is_bfloat16()) && result == DType::Int(32);
    case IntrinsicRule::Dot:
      return arg == DType::Int(32) && result == arg;
    case IntrinsicRule::FloatDot:
      return arg == DType::Int(32) && result == DType::Float(32);
    case IntrinsicRule::String: {
      auto word = [](DType t) { return t == DType::Int(64) || t == DType::Float(64); };
      return word(arg) && word(result);
    }
  }
  return false;
}

}  // namespace

std::span<const Intrinsic> intrinsics() { return kIntrinsics; }

int64_t power_of_integers(int64_t a, int64_t b, bool is_signed) {
  if (is_signed && b < 0) return a == 1 ? 1 : a == -1 ? ((b & 1) != 0 ? -1 : 1) : 0;
  uint64_t result = 1, square = static_cast<uint64_t>(a);
  for (auto n = static_cast<uint64_t>(b); n != 0; n >>= 1) {
    if ((n & 1) != 0) result *= square;
    square *= square;
  }
  return static_cast<int64_t>(result);
}

const Intrinsic* find_intrinsic(std::string_view name) {
  const Intrinsic* it = std::ranges::lower_bound(kIntrinsics, name, {}, &Intrinsic::name);
  return it != std::end(kIntrinsics) && it->name == name ? it : nullptr;
}

PrimExpr in_plain_terms(const CallNode& n) {
  constexpr int64_t kBits = 8, kBytes = 4;
  const DType word = n.dtype;
  if (n.name == "fixed_point_product") {
    constexpr int64_t kPlaces = 31;
    const DType wide = DType::Int(64).with_lanes(word.lanes);
    auto all = [&](int64_t v) { return broadcast(imm(DType::Int(64), v), word.lanes); };
    PrimExpr product = cast(wide, n.args[0]) * cast(wide, n.args[1]);
    return cast(word,
                binary(BinaryOp::Shr, product + all(int64_t{1} << (kPlaces - 1)), all(kPlaces)));
  }
  auto number = [&](int64_t v) { return broadcast(imm(DType::Int(32), v), word.lanes); };
  if (n.name == "bfloat16_dot") {
    auto upper = [&](const PrimExpr& w) {
      return call("bitcast", word, {binary(BinaryOp::BitAnd, w, number(-65536))});
    };
    auto lower = [&](const PrimExpr& w) {
      return call("bitcast", word, {binary(BinaryOp::Shl, w, number(2 * kBits))});
    };
    return lower(n.args[0]) * lower(n.args[1]) + upper(n.args[0]) * upper(n.args[1]);
  }
  PrimExpr out;
  if (n.name == "load_word") {
    auto* l = as<LoadNode>(n.args[0]);
    RELAY_CHECK(l != nullptr && !l->indices.empty(), "load_word takes a load");
    const DType element = l->dtype, bits = DType::UInt(element.bits).with_lanes(word.lanes);
    for (int64_t i = 0; i < kBytes * kBits / element.bits; ++i) {
      std::vector<PrimExpr> at = l->indices;
      at.back() = at.back() + broadcast(index(i), at.back()->dtype.lanes);
      PrimExpr v = load(l->buffer, std::move(at), l->predicate);
      v = element.is_bfloat16() ? call("bitcast", bits, {v}) : cast(bits, v);
      PrimExpr part = binary(BinaryOp::Shl, cast(word, v), number(element.bits * i));
      out = !out ? part : binary(BinaryOp::BitOr, out, part);
    }
    return out;
  }
  for (int64_t byte = 0; byte < kBytes; ++byte) {
    PrimExpr a = binary(BinaryOp::BitAnd, binary(BinaryOp::Shr, n.args[0], number(kBits * byte)),
                        number((1 << kBits) - 1));
    PrimExpr b =
        binary(BinaryOp::Shr, binary(BinaryOp::Shl, n.args[1], number(kBits * (kBytes - 1 - byte))),
               number(kBits * (kBytes - 1)));
    out = !out ? a * b : out + a * b;
  }
  return out;
}

std::optional<std::string> intrinsic_defect(std::string_view name, DType result,
                                            const std::vector<PrimExpr>& args) {
  const Intrinsic* i = find_intrinsic(name);
  std::string what = "call of " + std::string(name);
  if (i == nullptr) return what + ", which is not an intrinsic";
  if (static_cast<int>(args.size()) != i->arity) {
    return what + " with " + counted(args.size(), "argument");
  }
  for (const PrimExpr& a : args) {
    if (!fits(i->rule, a->dtype.element(), result.element())) {
      return what + " of " + a->dtype.to_string() + " as " + result.to_string();
    }
  }
  return std::nullopt;
}

}  // namespace relay::tir
