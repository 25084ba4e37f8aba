// Random numbers. Where the format names no generator, Relay's draws them, the same ones in every run; otherwise the bits are
// those of the generator that the format names (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
#include <array>
#include <bit>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/open_args.h"
#include "frontend/common/random.h"
#include "frontend/common/shape_args.h"
#include "frontend/tflite/node_context.h"

namespace relay::frontend::tflite {
namespace {

// The stream of the operator, by its seeds or else by the name of its output.
Expr stream_key(NodeContext& ctx) {
  const auto& o = ctx.options<schema::Random>();
  if (o.seed() == 0 && o.seed2() == 0)
    return random_key(ctx, seed_of_name(name_of(ctx.output_tensor())));
  const auto second = std::bit_cast<uint64_t>(o.seed2());
  return random_key(ctx, std::bit_cast<uint64_t>(o.seed()) ^ std::rotl(second, 32));
}

// (the sizes)
template <Distribution::Kind kKind>
Values random(NodeContext& ctx) {
  const Distribution d{.kind = kKind};
  const DType dtype = ctx.out_dtype();
  if (!dtype.is_floating()) ctx.unsupported_dtype(dtype);
  return known_or_open(
      ctx,
      [&](NodeContext& known) {
        const std::vector<int64_t> sizes = known.const_ints(0, "the list of sizes");
        return one(draw(known, stream_key(known), d, sizes, dtype));
      },
      [&](NodeContext& open) {
        Expr sizes = int_vector(open, 0, "the list of sizes");
        return one(draw_at_run_time(open, stream_key(open), d, sizes, dtype));
      });
}

// (logarithms of weights for each line, how many are drawn)
Values multinomial_of(NodeContext& ctx) {
  Expr logits = ctx.in(0);
  if (Builder::rank_of(logits) != 2)
    ctx.fail(codes::type_rank, "the weights must be a matrix", "rank 2", to_string(logits->type));
  const int64_t count = ctx.const_int(1, "how many are drawn");
  if (count < 0)
    ctx.fail(codes::frontend_attribute, "how many are drawn is out of range", "0 or more",
             std::to_string(count));
  Expr weights = ctx.call("nn.softmax", {logits}, {{"axis", int64_t{-1}}});
  return one(multinomial(ctx, stream_key(ctx), weights, count, ctx.out_dtype()));
}

// ---- Bits of a key and a counter

constexpr DType kWide = DType::UInt(64);

// Arithmetic on words of 32 bits, which are the lower halves of 64.
class Words {
 public:
  explicit Words(const NodeContext& ctx) : ctx_(ctx) {}

  Expr number(uint32_t value) const { return ctx_.scalar(value, kWide); }
  Expr low(const Expr& x) const { return ctx_.call("bitwise_and", {x, number(UINT32_MAX)}); }
  Expr high(const Expr& x) const { return ctx_.call("right_shift", {x, number(32)}); }
  Expr add(const Expr& x, const Expr& y) const { return low(ctx_.add(x, y)); }
  Expr exclusive(const Expr& x, const Expr& y) const { return ctx_.call("bitwise_xor", {x, y}); }
  Expr rotated(const Expr& x, uint32_t by) const {
    Expr up = low(ctx_.call("left_shift", {x, number(by)}));
    return ctx_.call("bitwise_or", {up, ctx_.call("right_shift", {x, number(32 - by)})});
  }

 private:
  const NodeContext& ctx_;
};

// Threefry-2x32 with 20 rounds.
std::vector<Expr> threefry(const Words& w, const Expr& key, const Expr& counter) {
  static constexpr std::array<std::array<uint32_t, 4>, 2> kTurns{
      {{13, 15, 26, 6}, {17, 29, 16, 24}}};
  std::vector<Expr> keys{w.low(key), w.high(key)};
  keys.push_back(w.exclusive(w.exclusive(keys[0], keys[1]), w.number(0x1BD11BDA)));
  Expr x = w.add(w.low(counter), keys[0]), y = w.add(w.high(counter), keys[1]);
  for (uint32_t i = 0; i < 5; ++i) {
    for (uint32_t turn : kTurns[i % 2]) {
      x = w.add(x, y);
      y = w.exclusive(w.rotated(y, turn), x);
    }
    x = w.add(x, keys[(i + 1) % 3]);
    y = w.add(w.add(y, keys[(i + 2) % 3]), w.number(i + 1));
  }
  return {x, y};
}

// Philox-4x32 with 10 rounds; the upper half of the counter is the same for all.
std::vector<Expr> philox(const NodeContext& ctx, const Words& w, const Expr& key,
                         const Expr& counter, const Expr& upper) {
  std::array<Expr, 4> c{w.low(counter), w.high(counter), w.low(upper), w.high(upper)};
  std::array<Expr, 2> k{w.low(key), w.high(key)};
  for (int round = 0; round < 10; ++round) {
    Expr a = ctx.mul(c[0], w.number(0xD2511F53)), b = ctx.mul(c[2], w.number(0xCD9E8D57));
    c = {w.exclusive(w.exclusive(w.high(b), c[1]), k[0]), w.low(b),
         w.exclusive(w.exclusive(w.high(a), c[3]), k[1]), w.low(a)};
    k = {w.add(k[0], w.number(0x9E3779B9)), w.add(k[1], w.number(0xBB67AE85))};
  }
  return {c[0], c[1], c[2], c[3]};
}

// (the state: a key and a counter): the next state, and integers whose bits are all random.
Values bit_generator(NodeContext& ctx) {
  using A = schema::RandomAlgorithm;
  const A algorithm = ctx.options<schema::HloRandom>().algorithm();
  const bool is_threefry = algorithm == A::threefry;
  if (!is_threefry && algorithm != A::philox && algorithm != A::standard)
    ctx.unsupported("another algorithm than Philox and Threefry");
  Expr state = ctx.in(0);
  const int64_t length = is_threefry ? 2 : 3;
  if (Builder::dtype_of(state) != kWide || Builder::rank_of(state) != 1 ||
      as_const(Builder::shape_of(state)[0]) != length) {
    ctx.fail(codes::type_shape, "the state does not fit the algorithm",
             "Tensor[(" + std::to_string(length) + ",), uint64]", to_string(state->type));
  }
  const schema::Tensor& result = ctx.output_tensor(1);
  const DType dtype = ctx.out_dtype(1);
  if (!dtype.is_integer() || dtype.bits < 32) ctx.unsupported_dtype(dtype);
  std::vector<Dim> shape;
  if (result.shape() != nullptr)
    for (int32_t d : *result.shape()) shape.push_back(dim(d));
  check_sizes(ctx, shape);
  const int64_t count = as_const(product(shape, 0, shape.size())).value();
  ctx.charge_bytes(count, kWide);
  const int64_t per_block = is_threefry ? 2 : 4, words = count * (dtype.bits / 32);
  const int64_t blocks = (words + per_block - 1) / per_block;

  const Words w(ctx);
  Expr key = ctx.select(state, 0, 0), first = ctx.select(state, 0, 1);
  Expr counter = ctx.add(first, ctx.cast(numbers_below(ctx, blocks), kWide));
  const std::vector<Expr> block = is_threefry
                                      ? threefry(w, key, counter)
                                      : philox(ctx, w, key, counter, ctx.select(state, 0, 2));
  std::vector<Expr> columns;
  for (const Expr& word : block)
    columns.push_back(ctx.expand_dims(ctx.broadcast_to(word, {dim(blocks)}), 1));
  Expr bits = ctx.reshape(ctx.concat(columns, 1), std::vector<int64_t>{blocks * per_block});
  bits = ctx.slice(bits, 0, 0, words);
  if (dtype.bits == 64) {
    Expr pairs = ctx.reshape(bits, std::vector<int64_t>{count, 2});
    Expr upper = ctx.call("left_shift", {ctx.select(pairs, 1, 1), w.number(32)});
    bits = ctx.call("bitwise_or", {ctx.select(pairs, 1, 0), upper});
  } else {
    bits = ctx.cast(bits, DType::UInt(32));
  }
  if (dtype.is_int()) bits = ctx.call("reinterpret", {bits}, {{"dtype", to_value(dtype)}});
  std::vector<Expr> after{key, ctx.add(first, ctx.scalar(static_cast<double>(blocks), kWide))};
  if (!is_threefry) after.push_back(ctx.select(state, 0, 2));
  for (Expr& word : after) word = ctx.expand_dims(word, 0);
  return {value_of(ctx.concat(after, 0)), value_of(ctx.reshape(bits, shape))};
}

}  // namespace

template <>
std::span<const Row> rows<Family::Random>() {
  using O = schema::Options;
  static constexpr Row kRows[] = {
      {"MULTINOMIAL", multinomial_of, O::random},
      {"RANDOM_STANDARD_NORMAL", random<Distribution::Normal>, O::random},
      {"RANDOM_UNIFORM", random<Distribution::Uniform>, O::random},
      {"STABLEHLO_RNG_BIT_GENERATOR", bit_generator, O::NONE, {}, schema::Options2::hlo_random},
  };
  return kRows;
}

}  // namespace relay::frontend::tflite
