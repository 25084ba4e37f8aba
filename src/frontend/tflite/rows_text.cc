// Strings.
#include "base/codes/frontend.h"
#include "frontend/common/open_args.h"
#include "frontend/tflite/node_context.h"
#include "runtime/core/strings.h"

namespace relay::frontend::tflite {
namespace {

// The most n-grams that begin at one word.
constexpr size_t kMostGrams = 4096;

// Returns, for each n-gram that begins at a word, the distances of its words from that word. LiteRT's order: an n-gram follows
// the longer ones that begin with it.
std::vector<std::vector<int64_t>> grams_at_a_word(NodeContext& ctx, int64_t size, int64_t skips,
                                                  bool all) {
  std::vector<std::vector<int64_t>> out;
  std::vector<int64_t> gram{0}, next{1};  // next: the step to the word that is tried at each level
  while (!gram.empty()) {
    if (static_cast<int64_t>(gram.size()) < size && next.back() <= skips + 1) {
      gram.push_back(gram.back() + next.back()++);
      next.push_back(1);
      continue;
    }
    if (all || static_cast<int64_t>(gram.size()) == size) out.push_back(gram);
    if (out.size() > kMostGrams)
      ctx.fail(codes::frontend_limit, "the n-grams are too many",
               "at most " + std::to_string(kMostGrams) + " that begin at one word");
    gram.pop_back();
    next.pop_back();
  }
  return out;
}

Expr strings(NodeContext& ctx, const std::vector<std::string_view>& words) {
  const auto n = static_cast<int64_t>(words.size());
  return ctx.constant(runtime::make_strings(runtime::Shape(&n, 1), words));
}

// (one string): the n-grams of its words. An n-gram may skip up to `max_skip_size` words between two of its words. A string
// with fewer words than `ngram_size` gives no n-grams.
Values skip_gram(NodeContext& ctx) {
  const auto& o = ctx.options<schema::SkipGram>();
  constexpr int64_t kMostWords = 64;
  const int64_t size = o.ngram_size(), skips = o.max_skip_size();
  if (size < 1 || size > kMostWords || skips < 0 || skips >= static_cast<int64_t>(kMostGrams))
    ctx.fail(codes::frontend_attribute, "the size of n-grams is out of range",
             "1 to " + std::to_string(kMostWords) + " words, and skips of 0 or more");
  if (!ctx.in_dtype(0).is_string()) ctx.unsupported_dtype(ctx.in_dtype(0));
  const DType i64 = DType::Int(64);
  Expr text = ctx.reshape(ctx.in(0), std::vector<int64_t>{1});
  Expr space = ctx.reshape(strings(ctx, {""}), std::vector<int64_t>{});
  Expr count = ctx.select(ctx.cast(ctx.call("text.count_parts", {text, space}), i64), 0, 0);
  // An empty string stands before the words, for those that a shorter gram lacks.
  Expr words =
      ctx.concat({strings(ctx, {""}), ctx.select(ctx.call("text.split", {text, space}), 0, 0)}, 0);

  const auto grams = grams_at_a_word(ctx, size, skips, o.all_ngrams());
  std::vector<int64_t> reach;
  for (const std::vector<int64_t>& gram : grams) reach.push_back(gram.back());
  Expr first = open_range(ctx, ctx.scalar(0, i64), count);
  Expr fits = ctx.call("less", {ctx.add(ctx.expand_dims(first, 1), ctx.ints(reach)), count});
  Expr enough = ctx.call("greater_equal", {count, ctx.scalar(static_cast<double>(size), i64)});
  Expr places = ctx.cast(ctx.call("argwhere", {ctx.call("logical_and", {fits, enough})}), i64);
  Expr begin = ctx.select(places, 1, 0), which = ctx.select(places, 1, 1);
  auto by_gram = [&](const Expr& table) {
    return ctx.call("take", {table, which}, {{"axis", int64_t{0}}, {"mode", std::string("fast")}});
  };
  Expr out;
  for (int64_t k = 0; k < size; ++k) {
    std::vector<int64_t> offset, given;
    std::vector<std::string_view> separator;
    for (const std::vector<int64_t>& gram : grams) {
      const bool has = k < static_cast<int64_t>(gram.size());
      given.push_back(has ? 1 : 0);
      offset.push_back(has ? gram[static_cast<size_t>(k)] + 1 : 0);
      separator.push_back(has && k > 0 ? " " : "");
    }
    Expr at = ctx.add(ctx.mul(begin, by_gram(ctx.ints(given))), by_gram(ctx.ints(offset)));
    Expr word = ctx.call("take", {words, at}, {{"axis", int64_t{0}}});
    if (!out) {
      out = word;
      continue;
    }
    Expr apart = ctx.call("text.concat", {out, by_gram(strings(ctx, separator))});
    out = ctx.call("text.concat", {apart, word});
  }
  return one(out);
}

}  // namespace

template <>
std::span<const Row> rows<Family::Text>() {
  using O = schema::Options;
  static constexpr Row kRows[] = {{"SKIP_GRAM", skip_gram, O::skip_gram}};
  return kRows;
}

}  // namespace relay::frontend::tflite
