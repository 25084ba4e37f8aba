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
#include <array>
#include <numbers>

#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ops/dynamic.h"
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

// Stores the cipher of a counter from `at` on.
Stmt threefry(const Words& key, const Words& counter, const Buffer& out, const PrimExpr& at) {
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
  for (int n = 0; n < 4; ++n) steps.push_back(store(out, {at + index(n)}, x[n].get()));
  Stmt body = last.in(seq(std::move(steps)));
  for (const Cell& cell : x) body = cell.in(body);
  return body;
}

PrimExpr key_part(const Buffer& key, int64_t n) { return load(key, {index(n)}); }

Words cipher_key(const Buffer& key) {
  return {key_part(key, 0), key_part(key, 1), key_part(key, 2), key_part(key, 3)};
}

// The upper half of the counters: the path, and the bit that ends it.
PrimExpr path_end(const Buffer& key, int64_t n) {
  return bits_or(key_part(key, 4 + n), key_part(key, 8 + n));
}

PrimExpr blocks_for(const PrimExpr& count) { return floor_div(count + index(3), index(4)); }

// At least `count` words of the key's next blocks.
TirTensor draw(const TirTensor& key, const PrimExpr& count) {
  PrimExpr blocks = max(blocks_for(count), index(1));
  constexpr int64_t kOperations = 128;  // of a block
  constexpr int64_t kParallel = int64_t{1} << 15;
  const bool few = as_int(blocks) && *as_int(blocks) < kParallel / kOperations;
  ForKind kind = few ? ForKind::Serial : ForKind::Parallel;
  return tir::imperative(
      "T_threefry", kWord, {blocks * index(4)}, {key},
      [=](const std::vector<Buffer>& in, const Buffer& out) {
        return each(
            "block", blocks,
            [&](const PrimExpr& block) {
              PrimExpr low = key_part(in[0], 7), number = tir::cast(kWord, block);
              PrimExpr high = key_part(in[0], 6) + carry(low, number);
              Words counter{path_end(in[0], 0), path_end(in[0], 1), high, low + number};
              return threefry(cipher_key(in[0]), counter, out, block * 4);
            },
            kind);
      });
}

// The key behind the blocks of `count` words.
TirTensor next_key(const TirTensor& key, const PrimExpr& count) {
  PrimExpr drawn = tir::cast(kWord, blocks_for(count)), low = key(index(7));
  return tir::compute("T_key", {index(kKeyWords)}, [&](const Indices& i) {
    PrimExpr moved = select(eq(i[0], index(7)), low + drawn, key(i));
    return select(eq(i[0], index(6)), key(index(6)) + carry(low, drawn), moved);
  });
}

std::vector<TirTensor> split_key(const ComputeContext& ctx) {
  TirTensor key = ctx.inputs[0];
  TirTensor fresh = tir::imperative(
      "T_fresh", kWord, {index(4)}, {key}, [](const std::vector<Buffer>& in, const Buffer& out) {
        Words counter{path_end(in[0], 0), path_end(in[0], 1), word(-1), word(-1)};
        return threefry(cipher_key(in[0]), counter, out, index(0));
      });
  auto child = [&](bool right) {
    return tir::compute("T_child", {index(kKeyWords)}, [&](const Indices& i) {
      PrimExpr high = key(index(8)), low = key(index(9));
      PrimExpr full = eq(bits_or(high, down(low, 1)), word(0));
      auto unless_full = [&](const PrimExpr& then, const PrimExpr& otherwise) {
        return select(full, then, otherwise);
      };
      high = unless_full(up(word(1), 63), high);
      low = unless_full(word(0), low);
      Words path_and_bit{unless_full(word(0), key(index(4))), unless_full(word(0), key(index(5))),
                         down(high, 1), bits_or(down(low, 1), up(high, 63))};
      if (right) {
        path_and_bit[0] = bits_or(path_and_bit[0], high);
        path_and_bit[1] = bits_or(path_and_bit[1], low);
      }
      PrimExpr at = min(i[0], index(3));
      PrimExpr out = unless_full(fresh(at), key(at));
      constexpr int64_t kPlaces[4] = {4, 5, 8, 9};
      for (size_t n = 0; n < 4; ++n) {
        out = select(eq(i[0], index(kPlaces[n])), path_and_bit[n], out);
      }
      return select(logical_or(eq(i[0], index(6)), eq(i[0], index(7))), word(0), out);
    });
  };
  return {child(false), child(true)};
}

// ---- Distributions

PrimExpr count_of(const std::vector<PrimExpr>& shape) {
  PrimExpr n = index(1);
  for (const PrimExpr& size : shape) n = n * size;
  return n;
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

using Draw = std::function<PrimExpr(const TirTensor& words, const PrimExpr& place)>;

// The last result: numbers drawn with the key that is the first input.
TirTensor numbers(const ComputeContext& ctx, const Draw& one) {
  const auto& sizes = ctx.outputs.back().shape;
  TirTensor words = draw(ctx.inputs[0], count_of(sizes));
  return tir::compute("T_random", sizes,
                      [&](const Indices& i) { return one(words, place_in(i, sizes)); });
}

// The next key, and the numbers.
using Numbers = TirTensor (*)(const ComputeContext&);
template <Numbers kNumbers>
std::vector<TirTensor> and_key(const ComputeContext& ctx) {
  return {next_key(ctx.inputs[0], count_of(ctx.outputs[1].shape)), kNumbers(ctx)};
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
  return numbers(ctx, [&](const TirTensor& words, const PrimExpr& place) {
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
  return numbers(ctx, [&](const TirTensor& words, const PrimExpr& place) {
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
std::vector<TirTensor> multinomial(const ComputeContext& ctx) {
  TirTensor probs = ctx.inputs[1];
  size_t axis = static_cast<size_t>(probs->rank()) - 1;
  const auto& sizes = ctx.outputs[1].shape;
  const DType wide = DType::Float(64);
  const PrimExpr count = count_of(sizes);
  TirTensor words = draw(ctx.inputs[0], count);
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
  TirTensor passed = tir::compute("T_passed", sizes, [&](const Indices& i) {
    Indices at = i;
    at[axis] = classes - 1;
    PrimExpr level = fraction(wide, words(place_in(i, sizes))) * sums(at);
    return sum({classes}, [&](const Indices& k) {
      Indices one = i;
      one[axis] = k[0];
      return tir::cast(DType::Int(32), le(sums(one), level));
    });
  });
  return {next_key(ctx.inputs[0], count), tir::compute("T_classes", sizes, [&](const Indices& i) {
            return min(passed(i), tir::cast(DType::Int(32), classes - 1));
          })};
}

// ---- Types

bool is_key(RelationContext& ctx) {
  const TensorTypeNode* key = ctx.tensor(0);
  return key != nullptr && require(ctx,
                                   key->dtype == kWord && key->rank() == 1 &&
                                       ctx.equal(key->shape[0], dim(kKeyWords)),
                                   codes::type_shape, "a key has ten words",
                                   "Tensor[(10,), uint64]", to_string(Type(key)));
}

Type key_type() { return tensor_type(std::vector<int64_t>{kKeyWords}, kWord); }

Type with_key(RelationContext& ctx, const TensorType& numbers) {
  return check_shape(ctx, numbers->shape) ? Type(tuple_type({key_type(), numbers})) : Type();
}

// The dtype of numbers, float32 or float64, with two scalars of the same dtype that say which.
std::optional<DType> distribution_dtype(RelationContext& ctx, DType wanted) {
  const TensorTypeNode *a = ctx.tensor(1), *b = ctx.tensor(2);
  if (!is_key(ctx) || a == nullptr || b == nullptr) return std::nullopt;
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
  auto dtype = distribution_dtype(ctx, attrs.out_dtype);
  return dtype ? with_key(ctx, tensor_type(attrs.out_shape, *dtype)) : Type();
}

constexpr size_t kShapeArg = 3;  // of numbers whose sizes are an argument

Type open_distribution_type(RelationContext& ctx) {
  auto dtype = distribution_dtype(ctx, kUnsetDType);
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
  if (!is_key(ctx) || probs == nullptr) return nullptr;
  int64_t samples = ctx.attrs<MultinomialAttrs>().num_samples;
  if (!require(ctx, probs->dtype.is_floating() && probs->rank() >= 1, codes::type_dtype,
               "probabilities are floating, one for each class along the last axis",
               "Tensor[(k,), float32]", to_string(Type(probs))) ||
      !require(ctx, ctx.at_least(probs->shape.back(), dim(1)), codes::type_shape,
               "there is no class to draw", "at least 1", shape_text(probs->shape)) ||
      !require(ctx, samples >= 0 && samples < (int64_t{1} << 40), codes::op_bad_attribute,
               "num_samples makes no sense", "0 or more", std::to_string(samples)))
    return nullptr;
  std::vector<Dim> shape = probs->shape;
  shape.back() = dim(samples);
  return with_key(ctx, tensor_type(std::move(shape), DType::Int(32)));
}

constexpr const char* kKey = "Tensor[(10,), uint64]";
constexpr const char* kKeyDoc = "A key, not used elsewhere: ten words, as threefry_key gives them.";

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
  return is_key(ctx)
             ? with_key(ctx, tensor_type(ctx.attrs<ThreefryGenerateAttrs>().out_shape, kWord))
             : Type(nullptr);
}

TirTensor random_words(const ComputeContext& ctx) {
  return numbers(ctx, [](const TirTensor& words, const PrimExpr& place) { return words(place); });
}

Type threefry_split_relation(RelationContext& ctx) {
  return is_key(ctx) ? Type(tuple_type({key_type(), key_type()})) : Type(nullptr);
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
          .args = {{"key", kKeyDoc}},
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
          .batching = Absent::LaneByLane,
          .examples = {{{kKey}, "out_shape=[2, 3]"}, {{kKey}, "out_shape=[]"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "random.threefry_split",
          .doc = "Two keys whose numbers have nothing to do with each other's or with those of the "
                 "key.",
          .args = {{"key", kKeyDoc}},
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .relation = threefry_split_relation,
          .compute = compute_rule_multi(split_key),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = Absent::NotDifferentiable,
          .batching = Absent::LaneByLane,
          .examples = {{{kKey}, ""}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "random.uniform",
          .doc =
              "The next key, and numbers that are equally likely anywhere from low to below high.",
          .args = {{"key", kKeyDoc},
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
          .batching = Absent::LaneByLane,
          .examples = {{{kKey, "float32", "float32"}, "out_shape=[5]"},
                       {{kKey, "float64", "float64"}, "out_shape=[2, 3], out_dtype=\"float64\""}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "random.normal",
          .doc = "The next key, and numbers of a normal distribution.",
          .args = {{"key", kKeyDoc}, {"mean", "Its mean."}, {"scale", "Its standard deviation."}},
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
          .batching = Absent::LaneByLane,
          .examples = {{{kKey, "float32", "float32"}, "out_shape=[5]"},
                       {{kKey, "float64", "float64"}, "out_shape=[2, 3], out_dtype=\"float64\""}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "random.multinomial",
          .doc = "The next key, and classes drawn by their probabilities.",
          .args = {{"key", kKeyDoc},
                   {"probs", "Weights of the classes along the last axis, none negative."}},
          .attrs = &MultinomialAttrs::static_info(),
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .relation = multinomial_type,
          .compute = compute_rule_multi(multinomial),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = Absent::DataDecides,
          .gradient = Absent::NotDifferentiable,
          .batching = Absent::LaneByLane,
          .examples = {{{kKey, "Tensor[(4,), float32]"}, "num_samples=6", 0, 1},
                       {{kKey, "Tensor[(2, 3), float32]"}, "", 0, 1}},
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
