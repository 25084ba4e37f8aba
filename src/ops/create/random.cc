// Random numbers from explicit keys: the same key gives the same numbers, everywhere, and each call
// returns the key for the next one.
//
// The generator is Threefry-4x64 with 20 rounds (Salmon et al., "Parallel random numbers: as easy
// as 1, 2, 3", 2011): a cipher that scrambles counters, so that every number can be computed by
// itself. A key is a vector of ten words:
//
//   0 to 3  the key of the cipher
//   4, 5    the path: a bit for each split on the way from the first key, left 0 and right 1
//   6, 7    how many blocks of four words were drawn, the upper word first
//   8, 9    one bit, behind the last of the path: where the next split writes
//
// Block n is the cipher of (path with that bit, n). The bit marks the end of the path, so no two
// keys of a tree of splits share a block (Claessen and Palka, "Splittable pseudorandom number
// generators using cryptographic hashing", 2013). A path that is full is hashed into a new key of
// the cipher, by the block of number 2^128 - 1.
//
// Keys beside each other, (.., 10), each draw what they draw alone.
#include <array>
#include <numbers>

#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ops/batching.h"
#include "ops/create/dynamic.h"
#include "ops/gradient.h"
#include "ops/loops.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

constexpr int64_t kKeyWords = 10;
constexpr DType kWord = DType::UInt(64);

PrimExpr word(int64_t value) { return imm(kWord, value); }
PrimExpr up(const PrimExpr& x, int64_t bits) { return binary(BinaryOp::Shl, x, word(bits)); }
PrimExpr down(const PrimExpr& x, int64_t bits) { return binary(BinaryOp::Shr, x, word(bits)); }
PrimExpr bits_or(const PrimExpr& a, const PrimExpr& b) { return binary(BinaryOp::BitOr, a, b); }
PrimExpr bits_and(const PrimExpr& a, const PrimExpr& b) { return binary(BinaryOp::BitAnd, a, b); }
PrimExpr bits_xor(const PrimExpr& a, const PrimExpr& b) { return binary(BinaryOp::BitXor, a, b); }

// 1 when a + b does not fit a word, else 0.
PrimExpr carry(const PrimExpr& a, const PrimExpr& b) {
  PrimExpr lost = bits_and(bits_or(a, b), bits_xor(a + b, word(-1)));
  return down(bits_or(bits_and(a, b), lost), 63);
}

// ---- The cipher

using Words = std::array<PrimExpr, 4>;

Indices before(Indices lead, const PrimExpr& last) {
  lead.push_back(last);
  return lead;
}
// The keys' axes, which are those of a tensor but its last `own`.
Indices lead_of(const Indices& i, size_t own) {
  return Indices(i.begin(), i.end() - static_cast<std::ptrdiff_t>(own));
}

// Stores the cipher of a counter in the line `lead` of the last axis, from `at` on.
Stmt threefry(const Words& key, const Words& counter, const Buffer& out, const Indices& lead,
              const PrimExpr& at) {
  constexpr int kRounds = 20;
  constexpr int64_t kRotations[8][2] = {{14, 16}, {52, 57}, {23, 40}, {5, 37},
                                        {25, 33}, {46, 12}, {58, 22}, {32, 32}};
  constexpr int64_t kParity = 0x1BD11BDAA9FC1A22;
  Cell x[4] = {{"x0", kWord}, {"x1", kWord}, {"x2", kWord}, {"x3", kWord}};
  Cell last("k4", kWord);
  auto key_word = [&](int n) { return n % 5 == 4 ? last.get() : key[static_cast<size_t>(n % 5)]; };
  std::vector<Stmt> steps;
  PrimExpr all = word(kParity);
  for (const PrimExpr& k : key) all = bits_xor(all, k);
  steps.push_back(last.set(all));
  for (size_t n = 0; n < 4; ++n) steps.push_back(x[n].set(counter[n] + key[n]));
  auto mix = [&](Cell& a, Cell& b, int64_t rotation) {
    steps.push_back(a.set(a.get() + b.get()));
    PrimExpr turned = bits_or(up(b.get(), rotation), down(b.get(), 64 - rotation));
    steps.push_back(b.set(bits_xor(turned, a.get())));
  };
  for (int round = 0; round < kRounds; ++round) {
    bool even = round % 2 == 0;
    mix(x[0], x[even ? 1 : 3], kRotations[round % 8][0]);
    mix(x[2], x[even ? 3 : 1], kRotations[round % 8][1]);
    if (round % 4 != 3) continue;
    int turn = round / 4 + 1;
    for (int n = 0; n < 4; ++n) {
      PrimExpr added = x[n].get() + key_word(turn + n);
      steps.push_back(x[n].set(n == 3 ? added + word(turn) : added));
    }
  }
  for (int n = 0; n < 4; ++n) steps.push_back(store(out, before(lead, at + index(n)), x[n].get()));
  Stmt body = last.in(seq(std::move(steps)));
  for (const Cell& cell : x) body = cell.in(body);
  return body;
}

// The words of one of the keys.
struct KeyAt {
  const Buffer& keys;
  const Indices& lead;

  PrimExpr part(int64_t n) const { return load(keys, before(lead, index(n))); }
  Words cipher() const { return {part(0), part(1), part(2), part(3)}; }
  // The upper half of the counters: the path, and the bit that ends it.
  PrimExpr path_end(int64_t n) const { return bits_or(part(4 + n), part(8 + n)); }
};

PrimExpr blocks_for(const PrimExpr& count) { return floor_div(count + index(3), index(4)); }

// At least `count` words of each key's next blocks.
TirTensor draw(const TirTensor& keys, const PrimExpr& count) {
  PrimExpr blocks = max(blocks_for(count), index(1));
  constexpr int64_t kOperations = 32;  // of a word
  Indices words = lead_of(keys->shape(), 1), lines = words;
  words.push_back(blocks * index(4));
  lines.insert(lines.end(), {blocks, index(4)});
  return tir::imperative(
      "T_threefry", kWord, words, {keys}, [=](const std::vector<Buffer>& in, const Buffer& out) {
        return each_line(lines, lines.size() - 1, kOperations, [&](const LineIndex& at) {
          const Indices first = at(index(0)), lead = lead_of(first, 2);
          const PrimExpr& block = first[lead.size()];
          KeyAt key{in[0], lead};
          PrimExpr low = key.part(7), number = tir::cast(kWord, block);
          PrimExpr high = key.part(6) + carry(low, number);
          Words counter{key.path_end(0), key.path_end(1), high, low + number};
          return threefry(key.cipher(), counter, out, lead, block * 4);
        });
      });
}

// The keys behind the blocks of `count` words.
TirTensor next_key(const TirTensor& keys, const PrimExpr& count) {
  PrimExpr drawn = tir::cast(kWord, blocks_for(count));
  return tir::compute("T_key", keys->shape(), [&](const Indices& i) {
    const Indices lead = lead_of(i, 1);
    auto part = [&](int64_t n) { return keys(before(lead, index(n))); };
    PrimExpr low = part(7), moved = select(eq(i.back(), index(7)), low + drawn, keys(i));
    return select(eq(i.back(), index(6)), part(6) + carry(low, drawn), moved);
  });
}

std::vector<TirTensor> split_key(const ComputeContext& ctx) {
  TirTensor keys = ctx.inputs[0];
  Indices words = lead_of(keys->shape(), 1);
  words.push_back(index(4));
  TirTensor fresh = tir::imperative(
      "T_fresh", kWord, words, {keys}, [=](const std::vector<Buffer>& in, const Buffer& out) {
        return each_line(words, words.size() - 1, 32, [&](const LineIndex& at) {
          const Indices lead = lead_of(at(index(0)), 1);
          KeyAt key{in[0], lead};
          Words counter{key.path_end(0), key.path_end(1), word(-1), word(-1)};
          return threefry(key.cipher(), counter, out, lead, index(0));
        });
      });
  auto child = [&](bool right) {
    return tir::compute("T_child", keys->shape(), [&](const Indices& i) {
      const Indices lead = lead_of(i, 1);
      auto part = [&](const PrimExpr& n) { return keys(before(lead, n)); };
      PrimExpr high = part(index(8)), low = part(index(9));
      PrimExpr full = eq(bits_or(high, down(low, 1)), word(0));
      auto unless_full = [&](const PrimExpr& then, const PrimExpr& otherwise) {
        return select(full, then, otherwise);
      };
      high = unless_full(up(word(1), 63), high);
      low = unless_full(word(0), low);
      Words path_and_bit{unless_full(word(0), part(index(4))), unless_full(word(0), part(index(5))),
                         down(high, 1), bits_or(down(low, 1), up(high, 63))};
      if (right) {
        path_and_bit[0] = bits_or(path_and_bit[0], high);
        path_and_bit[1] = bits_or(path_and_bit[1], low);
      }
      const PrimExpr& place = i.back();
      PrimExpr at = min(place, index(3));
      PrimExpr out = unless_full(fresh(before(lead, at)), part(at));
      constexpr int64_t kPlaces[4] = {4, 5, 8, 9};
      for (size_t n = 0; n < 4; ++n) {
        out = select(eq(place, index(kPlaces[n])), path_and_bit[n], out);
      }
      return select(logical_or(eq(place, index(6)), eq(place, index(7))), word(0), out);
    });
  };
  return {child(false), child(true)};
}

// ---- Distributions

// The sizes of a result behind the keys' axes: what one key draws.
std::vector<PrimExpr> drawn_by_one(const ComputeContext& ctx) {
  const auto& shape = ctx.outputs.back().shape;
  return {shape.begin() + (ctx.inputs[0]->rank() - 1), shape.end()};
}

PrimExpr place_in(const Indices& i, const std::vector<PrimExpr>& shape) {
  PrimExpr place = index(0);
  for (size_t d = 0; d < i.size(); ++d) place = place * shape[d] + i[d];
  return place;
}

// The upper bits of a word as a multiple of 2^-24, or of 2^-53 in float64, from 0 to below 1; from
// above 0 to 1 with `upwards`.
PrimExpr fraction(DType dtype, const PrimExpr& bits, bool upwards = false) {
  bool wide = dtype.bits == 64;
  PrimExpr whole = tir::cast(DType::Int(64), down(bits, wide ? 11 : 40));
  if (upwards) whole = whole + imm(DType::Int(64), 1);
  return tir::cast(dtype, whole) * imm_float(dtype, wide ? 0x1p-53 : 0x1p-24);
}

// Words of one key, by their places.
using WordsOfKey = std::function<PrimExpr(const PrimExpr& place)>;

// A tensor's elements, each made of words that its key has drawn for `sizes`.
TirTensor made_of_words(const char* name, const ComputeContext& ctx,
                        const std::function<PrimExpr(const Indices& i, const WordsOfKey& words,
                                                     const PrimExpr& place)>& one) {
  const std::vector<PrimExpr> sizes = drawn_by_one(ctx);
  TirTensor words = draw(ctx.inputs[0], count_elements(sizes));
  return tir::compute(name, ctx.outputs.back().shape, [&](const Indices& i) {
    const Indices lead = lead_of(i, sizes.size());
    const Indices own(i.begin() + static_cast<std::ptrdiff_t>(lead.size()), i.end());
    return one(
        i, [&](const PrimExpr& place) { return words(before(lead, place)); }, place_in(own, sizes));
  });
}

using Draw = std::function<PrimExpr(const WordsOfKey& words, const PrimExpr& place)>;

// The last result: numbers drawn with the keys that are the first input.
TirTensor numbers(const ComputeContext& ctx, const Draw& one) {
  return made_of_words("T_random", ctx,
                       [&](const Indices&, const WordsOfKey& words, const PrimExpr& place) {
                         return one(words, place);
                       });
}

// The next keys, and the numbers.
using Numbers = TirTensor (*)(const ComputeContext&);
template <Numbers kNumbers>
std::vector<TirTensor> and_key(const ComputeContext& ctx) {
  return {next_key(ctx.inputs[0], count_elements(drawn_by_one(ctx))), kNumbers(ctx)};
}

struct UniformAttrs : AttrsOf<UniformAttrs> {
  Ints out_shape;
  DType out_dtype = kUnsetDType;
  static AttrsList describe() {
    return {"relay.attrs.UniformAttrs",
            {attribute("out_shape", &Self::out_shape, "Shape of the numbers."),
             attribute("out_dtype", &Self::out_dtype,
                       "dtype of the numbers; unset: that of the bounds.")}};
  }
};

TirTensor uniform(const ComputeContext& ctx) {
  PrimExpr low = ctx.inputs[1](Indices{}), high = ctx.inputs[2](Indices{});
  DType dtype = ctx.outputs.back().dtype;
  return numbers(ctx, [&](const WordsOfKey& words, const PrimExpr& place) {
    return low + fraction(dtype, words(place)) * (high - low);
  });
}

struct NormalAttrs : AttrsOf<NormalAttrs> {
  Ints out_shape;
  DType out_dtype = kUnsetDType;
  static AttrsList describe() {
    return {"relay.attrs.NormalAttrs",
            {attribute("out_shape", &Self::out_shape, "Shape of the numbers."),
             attribute("out_dtype", &Self::out_dtype,
                       "dtype of the numbers; unset: that of the mean.")}};
  }
};

// Box and Muller, "A note on the generation of random normal deviates", 1958: two words give the
// radius and the angle of two numbers.
TirTensor normal(const ComputeContext& ctx) {
  PrimExpr mean = ctx.inputs[1](Indices{}), scale = ctx.inputs[2](Indices{});
  DType dtype = ctx.outputs.back().dtype;
  return numbers(ctx, [&](const WordsOfKey& words, const PrimExpr& place) {
    PrimExpr odd = floor_mod(place, index(2)), pair = place - odd;
    PrimExpr log = tir::call("log", dtype, {fraction(dtype, words(pair), true)});
    PrimExpr radius = tir::call("sqrt", dtype, {imm_float(dtype, -2) * log});
    // cos(angle), and sin(angle) a quarter of a turn behind.
    PrimExpr turns =
        fraction(dtype, words(pair + 1)) - imm_float(dtype, 0.25) * tir::cast(dtype, odd);
    PrimExpr angle = turns * imm_float(dtype, 2 * std::numbers::pi);
    return mean + scale * (radius * tir::call("cos", dtype, {angle}));
  });
}

// The classes at which the running sums of the probabilities pass uniform numbers.
TirTensor multinomial(const ComputeContext& ctx) {
  TirTensor probs = ctx.inputs[1];
  size_t axis = static_cast<size_t>(probs->rank()) - 1;
  const DType wide = DType::Float(64);
  PrimExpr classes = probs->shape()[axis];
  TirTensor sums =
      tir::imperative("T_sums", wide, probs->shape(), {probs},
                      [=](const std::vector<Buffer>& in, const Buffer& out) {
                        return each_line(out->shape, axis, 1, [&](const LineIndex& at) {
                          Cell sum("sum", wide);
                          Stmt steps = each("k", classes, [&](const PrimExpr& k) {
                            return seq({sum.set(sum.get() + tir::cast(wide, load(in[0], at(k)))),
                                        store(out, at(k), sum.get())});
                          });
                          return sum.in(seq({sum.set(imm_float(wide, 0)), steps}));
                        });
                      });
  auto passed_by = [&](const Indices& i, const WordsOfKey& words, const PrimExpr& place) {
    Indices at = i;
    at[axis] = classes - 1;
    PrimExpr level = fraction(wide, words(place)) * sums(at);
    return sum({classes}, [&](const Indices& k) {
      Indices one = i;
      one[axis] = k[0];
      return tir::cast(DType::Int(32), le(sums(one), level));
    });
  };
  TirTensor passed = made_of_words("T_passed", ctx, passed_by);
  return tir::compute("T_classes", ctx.outputs[1].shape, [&](const Indices& i) {
    return min(passed(i), tir::cast(DType::Int(32), classes - 1));
  });
}

// ---- Types

// Keys beside each other; one where `only_one` is.
bool has_keys(RelationContext& ctx, bool only_one = false) {
  const TensorTypeNode* key = ctx.tensor(0);
  return key != nullptr &&
         require(ctx,
                 key->dtype == kWord && (only_one ? key->rank() == 1 : key->rank() >= 1) &&
                     ctx.equal(key->shape.back(), dim(kKeyWords)),
                 codes::type_shape, "a key has ten words",
                 only_one ? "Tensor[(10,), uint64]" : "Tensor[(10,), uint64], or several beside it",
                 to_string(Type(key)));
}

Type with_keys(RelationContext& ctx, const TensorType& numbers) {
  return check_shape(ctx, numbers->shape) ? Type(tuple_type({Type(ctx.tensor(0)), numbers}))
                                          : Type();
}

// The keys' axes, then those of what each draws.
Type drawn_type(RelationContext& ctx, const Ints& own, DType dtype) {
  std::vector<Dim> shape = ctx.tensor(0)->shape;
  shape.pop_back();
  for (int64_t size : own) shape.push_back(dim(size));
  return with_keys(ctx, tensor_type(std::move(shape), dtype));
}

// The dtype of numbers, float32 or float64, with two scalars of the same dtype that say which.
std::optional<DType> distribution_dtype(RelationContext& ctx, DType wanted, bool one_key) {
  const TensorTypeNode *a = ctx.tensor(1), *b = ctx.tensor(2);
  if (!has_keys(ctx, one_key) || a == nullptr || b == nullptr) return std::nullopt;
  DType dtype = is_set(wanted) ? wanted : a->dtype;
  if (!require(ctx, dtype.is_floating() && dtype.bits >= 32, codes::type_dtype,
               "these numbers are floating", "float32 or float64", dtype.to_string()))
    return std::nullopt;
  for (const TensorTypeNode* t : {a, b}) {
    if (!require(ctx, t->rank() == 0 && t->dtype == dtype, codes::type_dtype,
                 "the parameters must be scalars of the result's dtype", dtype.to_string(),
                 to_string(Type(t))))
      return std::nullopt;
  }
  return dtype;
}

template <class Attrs>
Type distribution_type(RelationContext& ctx) {
  auto& attrs = ctx.attrs<Attrs>();
  auto dtype = distribution_dtype(ctx, attrs.out_dtype, false);
  return dtype ? drawn_type(ctx, attrs.out_shape, *dtype) : Type();
}

constexpr size_t kShapeArg = 3;  // of numbers whose sizes are an argument

Type open_distribution_type(RelationContext& ctx) {
  auto dtype = distribution_dtype(ctx, kUnsetDType, true);
  auto rank = length_of_sizes(ctx, kShapeArg);
  return dtype && rank ? open_tensor(*rank, *dtype) : Type();
}

struct MultinomialAttrs : AttrsOf<MultinomialAttrs> {
  int64_t num_samples = 1;
  static AttrsList describe() {
    return {"relay.attrs.MultinomialAttrs",
            {attribute("num_samples", &Self::num_samples,
                       "How many are drawn from each distribution.")}};
  }
};

Type multinomial_type(RelationContext& ctx) {
  const TensorTypeNode* probs = ctx.tensor(1);
  if (!has_keys(ctx) || probs == nullptr) return nullptr;
  int64_t samples = ctx.attrs<MultinomialAttrs>().num_samples;
  if (!require(ctx, probs->dtype.is_floating() && probs->rank() >= 1, codes::type_dtype,
               "probabilities are floating, one for each class along the last axis",
               "Tensor[(k,), float32]", to_string(Type(probs))) ||
      !require(ctx, ctx.at_least(probs->shape.back(), dim(1)), codes::type_shape,
               "there is no class to draw", "at least 1", shape_text(probs->shape)) ||
      !require(ctx, samples >= 0 && samples < (int64_t{1} << 40), codes::op_bad_attribute,
               "num_samples makes no sense", "0 or more", std::to_string(samples)))
    return nullptr;
  const std::vector<Dim>& keys = ctx.tensor(0)->shape;
  bool fits = keys.size() <= probs->shape.size();
  for (size_t d = 0; fits && d + 1 < keys.size(); ++d) fits = ctx.equal(keys[d], probs->shape[d]);
  if (!require(ctx, fits, codes::type_shape,
               "probabilities for several keys begin with the keys' axes", shape_text(keys),
               shape_text(probs->shape)))
    return nullptr;
  std::vector<Dim> shape = probs->shape;
  shape.back() = dim(samples);
  return with_keys(ctx, tensor_type(std::move(shape), DType::Int(32)));
}

constexpr const char* kKey = "Tensor[(10,), uint64]";
constexpr const char* kTwoKeys = "Tensor[(2, 10), uint64]";
constexpr const char* kKeyDoc = "A key, not used elsewhere: ten words, as threefry_key gives them.";
constexpr const char* kKeysDoc =
    "A key, not used elsewhere: ten words, as threefry_key gives them. Or several, of any shape "
    "before "
    "the words: the results have these axes first.";

// About what a number of each distribution takes, made of random words.
double uniform_cost(const CallNode& c) { return 2 * num_elements(c.type); }
double normal_cost(const CallNode& c) { return 40 * num_elements(c.type); }

struct ThreefryGenerateAttrs : AttrsOf<ThreefryGenerateAttrs> {
  Ints out_shape;
  static AttrsList describe() {
    return {"relay.attrs.ThreefryGenerateAttrs",
            {attribute("out_shape", &Self::out_shape, "Shape of the numbers.")}};
  }
};

Type threefry_generate_relation(RelationContext& ctx) {
  if (!has_keys(ctx)) return nullptr;
  return drawn_type(ctx, ctx.attrs<ThreefryGenerateAttrs>().out_shape, kWord);
}

TirTensor random_words(const ComputeContext& ctx) {
  return numbers(ctx, [](const WordsOfKey& words, const PrimExpr& place) { return words(place); });
}

Type threefry_split_relation(RelationContext& ctx) {
  if (!has_keys(ctx)) return nullptr;
  Type keys(ctx.tensor(0));
  return tuple_type({keys, keys});
}

// ---- Gradients

// Both distributions are a standard one, moved and scaled: the same key gives its numbers again.
Adjoints moved_and_scaled_gradient(const Expr& g, const Expr& standard, const Expr& like) {
  if (!type_of(like).dtype.is_floating()) return {};
  auto total = [&](const Expr& e) { return cast_to(apply("sum", {e}), type_of(like).dtype); };
  return {nullptr, total(g), total(g * standard)};
}

Expr standard(const GradientContext& ctx) {
  std::vector<Expr> args(ctx.call.args.begin(), ctx.call.args.end());
  args[1] = scalar(0, args[1]);
  args[2] = scalar(1, args[2]);
  Expr again = call(ctx.call.op, std::move(args), ctx.call.attrs);
  return isa<TupleTypeNode>(again->type) ? tuple_get_item(again, 1) : again;
}

// mean + scale * z
Adjoints normal_gradient(const GradientContext& ctx) {
  if (!ctx.adjoints.back()) return {};
  Adjoints out = moved_and_scaled_gradient(ctx.adjoints.back(), standard(ctx), ctx.arg(1));
  if (!out.empty()) out.resize(ctx.call.args.size());
  return out;
}

// low + u * (high - low)
Adjoints uniform_gradient(const GradientContext& ctx) {
  Adjoints out = normal_gradient(ctx);
  if (!out.empty()) out[1] = out[1] - out[2];
  return out;
}

// ---- Batching

// Both distributions are a standard one, moved and scaled: to the same numbers, since the standard one
// is what its words give, times one and plus zero.
Expr moved_and_scaled(const BatchingContext& ctx,
                      Expr (*by_parameters)(const Expr& z, const Expr& a, const Expr& b)) {
  if (!ctx.batched[1] && !ctx.batched[2]) return same_call(ctx, ctx.args);
  const Expr &a = ctx.call.args[1], &b = ctx.call.args[2];
  Expr standard = same_call(ctx, {ctx.arg(0), scalar(0, a), scalar(1, b)});
  Expr next = tuple_get_item(standard, 0);
  int64_t rank = as<TensorTypeNode>(as<TupleTypeNode>(ctx.call.type)->fields[1])->rank();
  auto parameter = [&](size_t i) {
    return ctx.batched[i] ? lanes_of_rank(ctx.arg(i), rank) : ctx.arg(i);
  };
  return tuple({ctx.batched[0] ? next : in_all_lanes(next, ctx.lanes),
                by_parameters(tuple_get_item(standard, 1), parameter(1), parameter(2))});
}

Expr batch_uniform(const BatchingContext& ctx) {
  return moved_and_scaled(
      ctx, [](const Expr& z, const Expr& low, const Expr& high) { return low + z * (high - low); });
}

Expr batch_normal(const BatchingContext& ctx) {
  return moved_and_scaled(
      ctx, [](const Expr& z, const Expr& mean, const Expr& scale) { return mean + scale * z; });
}

// Numbers whose sizes are an argument; there is no next key.
OpInfo open_distribution(const char* name, const char* doc, ArgInfo first, ArgInfo second,
                         Numbers numbers, CostRule cost, GradientRule gradient) {
  OpInfo row =
      dynamic_row(name, doc,
                  {{"key", kKeyDoc},
                   std::move(first),
                   std::move(second),
                   {"shape", "The sizes, a vector of integers."}},
                  nullptr, open_distribution_type,
                  compute_rule_with_shape(sizes_rule(sizes_in_argument(kShapeArg)), numbers),
                  std::move(cost), std::move(gradient),
                  given({kKey, "float32", "float32", "Tensor[(2,), int64]"},
                        {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {-1}, {2}, {3, 5}}));
  row.precision = Precision::Never;
  row.takes_narrow = false;
  return row;
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Random>() {
  static const OpInfo rows[] = {
      {
          .name = "random.threefry_generate",
          .doc = "Random words and the next key.",
          .args = {{"key", kKeysDoc}},
          .attrs = &ThreefryGenerateAttrs::static_info(),
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .relation = threefry_generate_relation,
          .compute = compute_rule_multi(and_key<random_words>),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = Absent::NotDifferentiable,
          .batching = batch_as_it_is,
          .examples = {{{kKey}, "out_shape=[2, 3]"},
                       {{kKey}, "out_shape=[]"},
                       {{kTwoKeys}, "out_shape=[7]"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "random.threefry_split",
          .doc = "Two keys whose numbers have nothing to do with each other's or with those of the "
                 "key.",
          .args = {{"key", kKeysDoc}},
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .relation = threefry_split_relation,
          .compute = compute_rule_multi(split_key),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = Absent::NotDifferentiable,
          .batching = batch_as_it_is,
          .examples = {{{kKey}, ""}, {{kTwoKeys}, ""}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "random.uniform",
          .doc =
              "The next key, and numbers that are equally likely anywhere from low to below high.",
          .args = {{"key", kKeysDoc},
                   {"low", "The least number."},
                   {"high", "The end, which is left out."}},
          .attrs = &UniformAttrs::static_info(),
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .relation = distribution_type<UniformAttrs>,
          .compute = compute_rule_multi(and_key<uniform>),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = uniform_cost,
          .gradient = uniform_gradient,
          .batching = batch_uniform,
          .examples = {{{kKey, "float32", "float32"}, "out_shape=[5]"},
                       {{kKey, "float64", "float64"}, "out_shape=[2, 3], out_dtype=\"float64\""},
                       {{kTwoKeys, "float32", "float32"}, "out_shape=[3]"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "random.normal",
          .doc = "The next key, and numbers of a normal distribution.",
          .args = {{"key", kKeysDoc}, {"mean", "Its mean."}, {"scale", "Its standard deviation."}},
          .attrs = &NormalAttrs::static_info(),
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .relation = distribution_type<NormalAttrs>,
          .compute = compute_rule_multi(and_key<normal>),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = normal_cost,
          .gradient = normal_gradient,
          .batching = batch_normal,
          .examples = {{{kKey, "float32", "float32"}, "out_shape=[5]"},
                       {{kKey, "float64", "float64"}, "out_shape=[2, 3], out_dtype=\"float64\""},
                       {{kTwoKeys, "float32", "float32"}, "out_shape=[3]"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "random.multinomial",
          .doc = "The next key, and classes drawn by their probabilities.",
          .args = {{"key", kKeysDoc},
                   {"probs", "Weights of the classes along the last axis, none negative."}},
          .attrs = &MultinomialAttrs::static_info(),
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .relation = multinomial_type,
          .compute = compute_rule_multi(and_key<multinomial>),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = Absent::DataDecides,
          .gradient = Absent::NotDifferentiable,
          .batching = batch_as_it_is,
          .examples = {{{kKey, "Tensor[(4,), float32]"}, "num_samples=6", 0, 1},
                       {{kKey, "Tensor[(2, 3), float32]"}, "", 0, 1},
                       {{kTwoKeys, "Tensor[(2, 5, 3), float32]"}, "num_samples=2", 0, 1}},
          .expected = Absent::ByNumPy,
      },
      open_distribution("dyn.random.uniform",
                        "Numbers that are equally likely anywhere from low to below high.",
                        {"low", "The least number."}, {"high", "The end, which is left out."},
                        uniform, uniform_cost, uniform_gradient),
      open_distribution("dyn.random.normal", "Numbers of a normal distribution.",
                        {"mean", "Its mean."}, {"scale", "Its standard deviation."}, normal,
                        normal_cost, normal_gradient),
  };
  return rows;
}

}  // namespace relay::ops
