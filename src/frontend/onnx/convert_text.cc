// Operators on strings, and those that look words up.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "base/quantities.h"
#include "frontend/onnx/importer.h"
#include "runtime/core/string_functions.h"
#include "runtime/core/strings.h"
#include "runtime/core/token_pattern.h"

namespace relay::frontend::onnx {
namespace {

Expr one_string(NodeContext& ctx, const std::string& text) {
  return ctx.constant(runtime::make_strings({}, {text}));
}

Values convert_string_concat(NodeContext& ctx) {
  return {value_of(ctx.call("text.concat", {ctx.in(0), ctx.in(1)}))};
}

Values convert_regex_full_match(NodeContext& ctx) {
  Expr pattern = one_string(ctx, ctx.attr_string("pattern", ""));
  return {value_of(ctx.call("text.full_match", {ctx.in(0), pattern}))};
}

Values convert_string_split(NodeContext& ctx) {
  Expr delimiter = one_string(ctx, ctx.attr_string("delimiter", ""));
  AttrList attrs{{"maxsplit", ctx.attr("maxsplit", -1)}};
  Values out{value_of(ctx.call("text.split", {ctx.in(0), delimiter}, attrs))};
  if (ctx.num_outputs() > 1) {
    out.push_back(value_of(ctx.call("text.count_parts", {ctx.in(0), delimiter}, attrs)));
  }
  return out;
}

Tensor int_vector(const std::vector<int64_t>& values) {
  Tensor t = Tensor::empty(DType::Int(64), {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), t.data<int64_t>());
  return t;
}

// Elements of `t` in the order of `places`.
Tensor taken(const Tensor& t, const std::vector<int64_t>& places) {
  const auto n = static_cast<int64_t>(places.size());
  if (t.dtype().is_string()) {
    std::vector<std::string_view> words;
    for (int64_t p : places) words.push_back(runtime::string_at(t, p));
    return runtime::make_strings(runtime::Shape(&n, 1), words);
  }
  Tensor out = Tensor::empty(t.dtype(), {n});
  const size_t bytes = t.dtype().bytes();
  for (size_t i = 0; i < places.size(); ++i) {
    std::memcpy(out.data<char>() + i * bytes,
                t.data<char>() + static_cast<size_t>(places[i]) * bytes, bytes);
  }
  return out;
}

// ---- Tokenizer

// A pattern in one line.
std::string without_line_feeds(const std::string& pattern) {
  std::string out;
  bool escaped = false;
  for (const char c : pattern) {
    out += c != '\n' ? std::string(1, c) : escaped ? "n" : "\\n";
    escaped = c == '\\' && !escaped;
  }
  return out;
}

// The patterns of attribute `name`, one on each line. What a run could not cut by is refused here.
std::string patterns_of(NodeContext& ctx, const char* name,
                        const std::vector<std::string>& patterns, bool between) {
  std::string lines;
  for (const std::string& pattern : patterns) {
    std::string line = without_line_feeds(pattern), why;
    if (!runtime::TokenRule::parse(line, between, 1, why)) {
      ctx.fail(codes::frontend_attribute,
               std::string("attribute '") + name + "' has a pattern that cannot be held: " + why,
               "a regular expression without flags, Unicode classes and \\Q; a separator does not "
               "match the empty string",
               pattern.substr(0, 100));
    }
    lines += (lines.empty() ? "" : "\n") + line;
  }
  return lines;
}

// com.microsoft: one axis more, of tokens, padding and marks. Every letter is a token by [""] and by ".".
Values convert_tokenizer(NodeContext& ctx) {
  Expr x = ctx.in(0);
  const int64_t rank = NodeContext::rank_of(x);
  if (rank != 1 && rank != 2) {
    ctx.fail(codes::type_rank, "the input is a vector or a matrix of strings", "rank 1 or 2",
             to_string(x->type));
  }
  for (const char* name : {"mark", "pad_value", "mincharnum"}) {
    if (!ctx.has_attr(name)) {
      ctx.fail(codes::frontend_attribute, std::string("attribute '") + name + "' is missing");
    }
  }
  const bool between = ctx.has_attr("separators");
  const std::vector<std::string> separators = ctx.attr_strings("separators");
  const std::string expression = ctx.attr_string("tokenexp", "");
  if (between ? separators.empty() : expression.empty()) {
    ctx.fail(codes::frontend_attribute,
             "attributes 'separators' and 'tokenexp' are missing or empty", "one of them");
  }
  const bool letters =
      between ? separators.size() == 1 && separators[0].empty() : expression == ".";
  const int64_t least = ctx.attr("mincharnum", 1);
  const int64_t most = letters ? 1 : runtime::kMostTokenLetters;
  if (least < 1 || least > most) {
    ctx.fail(codes::frontend_attribute, "attribute 'mincharnum' is out of range",
             letters ? "1, as every letter is a token" : "1 and more", std::to_string(least));
  }
  const std::string patterns = letters   ? ".|\\n"
                               : between ? patterns_of(ctx, "separators", separators, true)
                                         : patterns_of(ctx, "tokenexp", {expression}, false);
  std::vector<std::string> frame{ctx.attr_string("pad_value", "")};
  if (ctx.attr("mark", 0) != 0) frame.insert(frame.end(), {"\x02", "\x03"});
  return {value_of(ctx.call("text.tokens",
                            {x, one_string(ctx, patterns), ctx.constant(string_vector(frame))},
                            {{"between", between && !letters}, {"least", least}}))};
}

// ---- StringNormalizer

Expr changed_case(NodeContext& ctx, Expr x, bool upper) {
  return ctx.call("text.change_case", {std::move(x)}, {{"upper", upper}});
}

// The strings of a vector that are none of the words; one empty string when nothing is left.
Expr without_words(NodeContext& ctx, const Expr& x, const std::vector<std::string>& words) {
  const bool exact = ctx.attr("is_case_sensitive", 0) != 0;
  Expr stop = ctx.constant(string_vector(words));
  Expr key = exact ? x : changed_case(ctx, x, false);
  if (!exact) stop = changed_case(ctx, stop, false);
  Expr hits = ctx.call("equal", {ctx.expand_dims(key, 1), stop});
  Expr kept = ctx.call("logical_not", {ctx.reduce("any", hits, {1}, false)});
  Expr none = ctx.call("logical_not", {ctx.reduce("any", kept, {0}, true)});
  Expr places = ctx.reshape(ctx.call("argwhere", {ctx.concat({kept, none}, 0)}), {dim_any()});
  Expr room = ctx.concat({x, ctx.constant(string_vector({""}))}, 0);
  return ctx.call("take", {room, places}, {{"axis", int64_t{0}}});
}

Values convert_string_normalizer(NodeContext& ctx) {
  Expr x = ctx.in(0);
  const int64_t rank = NodeContext::rank_of(x);
  if (rank != 1 && rank != 2) {
    ctx.fail(codes::type_rank, "the input is a line of strings", "rank 1, or 2 with one line",
             to_string(x->type));
  }
  if (rank == 2) x = ctx.squeeze(x, {0});
  std::vector<std::string> words = ctx.attr_strings("stopwords");
  if (!words.empty()) x = without_words(ctx, x, words);
  const std::string action = ctx.attr_string("case_change_action", "NONE");
  if (action == "LOWER" || action == "UPPER") {
    x = changed_case(ctx, x, action == "UPPER");
  } else if (action != "NONE") {
    ctx.unsupported("case_change_action '" + action + "'");
  }
  return {value_of(rank == 2 ? ctx.expand_dims(x, 0) : x)};
}

// ---- TfIdfVectorizer

// How often each n-gram of the pool, rows of `size` items, occurs in the last axis, with up to `skips`
// items left out between each two.
Expr gram_counts(NodeContext& ctx, const Expr& x, const Tensor& pool, int64_t size, int64_t skips) {
  const int64_t rank = NodeContext::rank_of(x), length = ctx.const_dim(x, rank - 1, "the items");
  const int64_t grams = pool.num_elements() / size;
  Expr items = ctx.constant(pool.reshape({grams, size}));
  Expr counts;
  for (int64_t step = 1; step <= (size == 1 ? 1 : skips + 1); ++step) {
    const int64_t windows = length - (size - 1) * step;
    if (windows <= 0) break;
    Expr all;
    for (int64_t k = 0; k < size; ++k) {
      Expr part = ctx.slice(x, rank - 1, k * step, k * step + windows);
      Expr hit = ctx.call("equal", {ctx.expand_dims(part, rank), ctx.select(items, 1, k)});
      all = all ? ctx.call("logical_and", {all, hit}) : hit;
    }
    Expr found = ctx.reduce("sum", ctx.cast(all, DType::Float(32)), {rank - 1}, false);
    counts = counts ? ctx.add(counts, found) : found;
  }
  if (counts) return counts;
  std::vector<Dim> shape = NodeContext::shape_of(x);
  shape.back() = dim(grams);
  return ctx.full(0, shape, DType::Float(32));
}

Values convert_tf_idf_vectorizer(NodeContext& ctx) {
  Expr x = ctx.in(0);
  const std::vector<int64_t> begins = ctx.attr_ints("ngram_counts"),
                             places = ctx.attr_ints("ngram_indexes");
  const int64_t least = ctx.attr("min_gram_length", 1), most = ctx.attr("max_gram_length", 1);
  const int64_t skips = ctx.attr("max_skip_count", 0);
  const std::string mode = ctx.attr_string("mode", "TF");
  const bool of_words = ctx.has_attr("pool_strings");
  const DType dtype = NodeContext::dtype_of(x);
  Tensor pool = of_words ? string_vector(ctx.attr_strings("pool_strings"))
                         : int_vector(ctx.attr_ints("pool_int64s"));
  constexpr int64_t kMostSkips = 1024, kMostLength = 64;
  const int64_t size = pool.num_elements(), lengths = static_cast<int64_t>(begins.size());
  bool sound = NodeContext::rank_of(x) > 0 && dtype.is_string() == of_words && least >= 1 &&
               least <= most && most <= std::min(lengths, kMostLength) && skips >= 0 &&
               skips <= kMostSkips && !places.empty() &&
               (mode == "TF" || mode == "IDF" || mode == "TFIDF");
  // Where the n-grams of each length begin, and the number of those before them.
  std::vector<int64_t> ends(begins.begin() + (begins.empty() ? 0 : 1), begins.end());
  ends.push_back(size);
  int64_t before = 0;
  std::vector<Expr> columns;
  std::vector<int64_t> number_of;  // of each column its n-gram's
  for (int64_t n = 1; sound && n <= lengths; ++n) {
    const int64_t begin = begins[static_cast<size_t>(n - 1)],
                  end = ends[static_cast<size_t>(n - 1)];
    sound = begin >= 0 && begin <= end && end <= size && (end - begin) % n == 0;
    if (!sound) break;
    const int64_t grams = (end - begin) / n;
    if (n >= least && n <= most && grams > 0) {
      std::vector<int64_t> own(static_cast<size_t>(end - begin));
      std::iota(own.begin(), own.end(), begin);
      Expr in = of_words ? x : ctx.cast(x, DType::Int(64));
      columns.push_back(gram_counts(ctx, in, taken(pool, own), n, skips));
      for (int64_t g = 0; g < grams; ++g) number_of.push_back(before + g);
    }
    before += grams;
  }
  if (!sound || before > static_cast<int64_t>(places.size())) {
    ctx.fail(codes::frontend_attribute, "the pool of n-grams does not fit together",
             "lengths, counts, indexes and items that belong to each other");
  }
  const int64_t width = *std::ranges::max_element(places) + 1;
  constexpr int64_t kMostColumns = int64_t{1} << 24;
  if (std::ranges::min(places) < 0 || width > kMostColumns) {
    ctx.fail(codes::frontend_attribute, "an n-gram's index is out of range", "0 and more");
  }
  // The column of counts for each place of the result; behind the last one stand zeros.
  const auto counted = static_cast<int64_t>(number_of.size());
  std::vector<int64_t> from(static_cast<size_t>(width), counted);
  for (int64_t c = 0; c < counted; ++c) {
    from[static_cast<size_t>(places[static_cast<size_t>(number_of[static_cast<size_t>(c)])])] = c;
  }
  const int64_t last = NodeContext::rank_of(x) - 1;
  std::vector<Dim> shape = NodeContext::shape_of(x);
  shape.back() = dim(1);
  columns.push_back(ctx.full(0, shape, DType::Float(32)));
  Expr y = ctx.call("take", {ctx.concat(columns, last), ctx.ints(from)}, {{"axis", last}});
  if (mode != "TF") {
    std::vector<double> weights = ctx.attr_floats("weights");
    weights.resize(static_cast<size_t>(width), weights.empty() ? 1 : 0);
    if (mode == "IDF") {
      y = ctx.cast(ctx.call("greater", {y, ctx.scalar_like(0, y)}), DType::Float(32));
    }
    y = ctx.mul(y, ctx.constant(float_vector(weights)));
  }
  return {value_of(y)};
}

// ---- LabelEncoder

// Attributes that hold keys or values: lists of floats, integers or strings, or a tensor.
Tensor list_of_labels(NodeContext& ctx, const std::string& what) {
  auto named = [&](const char* kind) { return what + "_" + kind; };
  if (ctx.has_attr(named("tensor").c_str())) {
    Tensor t = ctx.attr_tensor(named("tensor").c_str());
    if (t.rank() != 1) ctx.fail(codes::frontend_attribute, "'" + what + "_tensor' is not a vector");
    return t;
  }
  if (ctx.has_attr(named("strings").c_str())) {
    return string_vector(ctx.attr_strings(named("strings").c_str()));
  }
  if (ctx.has_attr(named("int64s").c_str())) {
    return int_vector(ctx.attr_ints(named("int64s").c_str()));
  }
  return float_vector(ctx.attr_floats(named("floats").c_str()));
}

// The label of what is no key.
Tensor default_label(NodeContext& ctx, DType dtype) {
  Tensor given = ctx.attr_tensor("default_tensor");
  if (given && given.num_elements() == 1 && given.dtype() == dtype) return given.reshape({});
  if (given) ctx.fail(codes::frontend_attribute, "'default_tensor' is no " + dtype.to_string());
  if (dtype.is_string()) {
    return runtime::make_strings({}, {ctx.attr_string("default_string", "_Unused")});
  }
  if (dtype.is_floating()) return Tensor::scalar(ctx.attr_float("default_float", -0.0), dtype);
  return Tensor::scalar(ctx.attr("default_int64", -1), dtype);
}

// A table without collisions: key k is in slot (hash * multipliers[hash % buckets] >> kSlotBits) % slots.
struct HashTable {
  static constexpr int kSlotBits = 32;
  std::vector<uint64_t> multipliers;
  std::vector<int64_t> keys;  // by slot; in an empty one a key of another slot
};

// The table of different strings, to look values up; nullopt for many keys, and where no multiplier separates those of
// a bucket.
std::optional<HashTable> hash_table(const Tensor& keys, const Tensor& values,
                                    const std::vector<int64_t>& different) {
  constexpr size_t kMostKeys = size_t{1} << 20;
  constexpr int kTries = 1 << 14;
  if (different.size() > kMostKeys) return std::nullopt;
  const size_t slots = std::bit_ceil(2 * different.size()), count = std::max<size_t>(slots / 8, 1);
  std::vector<std::vector<std::pair<uint64_t, int64_t>>> buckets(count);
  for (int64_t k : different) {
    const uint64_t hash = runtime::string_hash(runtime::string_at(keys, k));
    buckets[hash % count].emplace_back(hash, k);
  }
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](size_t b) { return buckets[b].size(); });
  HashTable out{std::vector<uint64_t>(count, 1), std::vector<int64_t>(slots, -1)};
  uint64_t multiplier = 1;
  for (size_t b : order) {
    std::vector<size_t> taken;
    bool fits = buckets[b].empty();
    for (int tries = 0; !fits && tries < kTries; ++tries) {
      multiplier = multiplier * 6364136223846793005 + 1442695040888963407;
      for (const auto& [hash, key] : buckets[b]) {
        const size_t slot = (hash * (multiplier | 1) >> HashTable::kSlotBits) % slots;
        fits = out.keys[slot] < 0;
        if (!fits) break;
        out.keys[slot] = key;
        taken.push_back(slot);
      }
      if (fits) break;
      for (size_t slot : taken) out.keys[slot] = -1;
      taken.clear();
    }
    if (!fits) return std::nullopt;
    out.multipliers[b] = multiplier | 1;
  }
  // Each slot holds a copy of its key and value, so the shortest ones fill the empty slots.
  auto bytes = [&](int64_t k) {
    return runtime::string_at(keys, k).size() +
           (values.dtype().is_string() ? runtime::string_at(values, k).size() : 0);
  };
  std::ranges::replace(out.keys, -1, *std::ranges::min_element(different, {}, bytes));
  return out;
}

// The slot of each element's key.
Expr slots_of(NodeContext& ctx, const Expr& x, const HashTable& table) {
  Tensor multipliers =
      Tensor::empty(DType::UInt(64), {static_cast<int64_t>(table.multipliers.size())});
  std::ranges::copy(table.multipliers, multipliers.data<uint64_t>());
  auto remainder = [&](const Expr& e, size_t divisor) {
    Expr mask = ctx.scalar_like(static_cast<double>(divisor - 1), e);
    return ctx.cast(ctx.call("bitwise_and", {e, mask}), DType::Int(64));
  };
  Expr hash = ctx.call("text.hash", {x});
  Expr bucket = remainder(hash, table.multipliers.size());
  Expr product =
      ctx.mul(hash, ctx.call("take", {ctx.constant(multipliers), bucket}, {{"axis", int64_t{0}}}));
  Expr bits = ctx.scalar_like(HashTable::kSlotBits, product);
  return remainder(ctx.call("right_shift", {product, bits}), table.keys.size());
}

// The value of each element's key: strings are hashed; other keys are sorted here and searched by halves when the
// program runs.
Expr looked_up(NodeContext& ctx, const Expr& x, const Tensor& keys, const Tensor& values,
               const Tensor& otherwise) {
  const DType dtype = keys.dtype();
  if (NodeContext::dtype_of(x) != dtype || keys.num_elements() != values.num_elements()) {
    ctx.fail(codes::frontend_attribute, "keys, values and the input do not fit together",
             "as many keys as values, of the input's dtype",
             std::to_string(keys.num_elements()) + " of " + dtype.to_string() + ", " +
                 counted(values.num_elements(), "value"));
  }
  auto is_nan = [&](int64_t i) { return dtype.is_floating() && std::isnan(keys.get_as_double(i)); };
  auto before = [&](int64_t a, int64_t b) {
    if (dtype.is_string()) return runtime::string_at(keys, a) < runtime::string_at(keys, b);
    if (dtype.is_floating()) return keys.get_as_double(a) < keys.get_as_double(b);
    return keys.get_as_int(a) < keys.get_as_int(b);
  };
  std::vector<int64_t> order;
  int64_t nan = -1;
  for (int64_t i = 0; i < keys.num_elements(); ++i) {
    if (!is_nan(i)) {
      order.push_back(i);
    } else if (nan < 0) {
      nan = i;
    }
  }
  // Of equal keys the first counts: the search finds the leftmost.
  std::stable_sort(order.begin(), order.end(), before);
  Expr y = ctx.constant(otherwise);
  auto found = [&](const Expr& place, const std::vector<int64_t>& at) {
    auto take = [&](const Tensor& from) {
      return ctx.call("take", {ctx.constant(taken(from, at)), place}, {{"axis", int64_t{0}}});
    };
    return ctx.call("where", {ctx.call("equal", {take(keys), x}), take(values), y});
  };
  std::optional<HashTable> table;
  if (dtype.is_string() && !order.empty()) {
    std::vector<int64_t> different;
    for (int64_t k : order) {
      if (different.empty() || before(different.back(), k)) different.push_back(k);
    }
    table = hash_table(keys, values, different);
  }
  if (order.empty()) {
    y = ctx.broadcast_to(y, NodeContext::shape_of(x));
  } else if (table) {
    y = found(slots_of(ctx, x, *table), table->keys);
  } else {
    Expr place = ctx.call("searchsorted", {ctx.constant(taken(keys, order)), x});
    const auto last = static_cast<double>(order.size() - 1);
    y = found(ctx.call("minimum", {place, ctx.scalar_like(last, place)}), order);
  }
  if (nan >= 0) {
    Expr label = ctx.constant(taken(values, {nan}).reshape({}));
    y = ctx.call("where", {ctx.call("isnan", {x}), label, y});
  }
  return y;
}

Values convert_label_encoder(NodeContext& ctx) {
  Tensor keys = list_of_labels(ctx, "keys"), values = list_of_labels(ctx, "values");
  return {value_of(looked_up(ctx, ctx.in(0), keys, values, default_label(ctx, values.dtype())))};
}

Values between_words_and_numbers(NodeContext& ctx, const Tensor& words, const Tensor& numbers) {
  const bool of_words = NodeContext::dtype_of(ctx.in(0)).is_string();
  const Tensor &keys = of_words ? words : numbers, &values = of_words ? numbers : words;
  return {value_of(looked_up(ctx, ctx.in(0), keys, values, default_label(ctx, values.dtype())))};
}

// Before version 2 of ai.onnx.ml labels are numbered as they stand.
Values convert_label_encoder_of_classes(NodeContext& ctx) {
  Tensor words = string_vector(ctx.attr_strings("classes_strings"));
  Tensor numbers = Tensor::empty(DType::Int(64), words.shape());
  std::iota(numbers.data<int64_t>(), numbers.data<int64_t>() + numbers.num_elements(), 0);
  return between_words_and_numbers(ctx, words, numbers);
}

Values convert_category_mapper(NodeContext& ctx) {
  return between_words_and_numbers(ctx, string_vector(ctx.attr_strings("cats_strings")),
                                   int_vector(ctx.attr_ints("cats_int64s")));
}

}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Text>() {
  static constexpr ConverterRow rows[] = {
      {kOnnx, "RegexFullMatch", 20, convert_regex_full_match},
      {kOnnx, "StringConcat", 20, convert_string_concat},
      {kOnnx, "StringNormalizer", 10, convert_string_normalizer},
      {kOnnx, "StringSplit", 20, convert_string_split},
      {kOnnx, "TfIdfVectorizer", 9, convert_tf_idf_vectorizer},
      {kMicrosoft, "Tokenizer", 1, convert_tokenizer},
      {kMl, "CategoryMapper", 1, convert_category_mapper},
      {kMl, "LabelEncoder", 1, convert_label_encoder_of_classes},
      {kMl, "LabelEncoder", 2, convert_label_encoder},
  };
  return rows;
}

}  // namespace relay::frontend::onnx
