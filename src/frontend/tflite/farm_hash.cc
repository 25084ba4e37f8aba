#include "frontend/tflite/farm_hash.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "frontend/common/step_loop.h"
#include "frontend/tflite/bits.h"

namespace relay::frontend::tflite {
namespace {

constexpr DType kWord = DType::UInt(64);
constexpr uint64_t k0 = 0xC3A5C85C97CB3127, k1 = 0xB492B66FBE98F273, k2 = 0x9AE16A3B2F90404F;

using WordPair = std::pair<Expr, Expr>;

// Arithmetic modulo 2^64.
class Wrapping {
 public:
  explicit Wrapping(const Builder& build) : build_(build) {}

  Expr table(const std::vector<uint64_t>& values, std::vector<int64_t> shape) const {
    Tensor t = Tensor::zeros(kWord, shape);
    std::ranges::copy(values, t.data<uint64_t>());
    return build_.constant(std::move(t));
  }
  Expr number(uint64_t value) const { return table({value}, {}); }
  Expr add(const Expr& x, const Expr& y) const { return build_.add(x, y); }
  Expr add(const Expr& x, uint64_t y) const { return build_.add(x, number(y)); }
  Expr times(const Expr& x, const Expr& y) const { return build_.mul(x, y); }
  Expr times(const Expr& x, uint64_t y) const { return build_.mul(x, number(y)); }
  Expr exclusive(const Expr& x, const Expr& y) const { return build_.call("bitwise_xor", {x, y}); }
  Expr masked(const Expr& x, uint64_t y) const {
    return build_.call("bitwise_and", {x, number(y)});
  }
  Expr right(const Expr& x, const Expr& by) const { return build_.call("right_shift", {x, by}); }
  Expr right(const Expr& x, uint64_t by) const { return right(x, number(by)); }
  Expr rotated(const Expr& x, uint64_t by) const {  // to the right
    Expr up = build_.call("left_shift", {x, number(64 - by)});
    return build_.call("bitwise_or", {right(x, by), up});
  }
  Expr mixed(const Expr& x) const { return exclusive(x, right(x, 47)); }

  template <class Factor>
  Expr hash_16(const Expr& u, const Expr& v, const Factor& factor) const {
    Expr a = mixed(times(exclusive(u, v), factor));
    return times(mixed(times(exclusive(v, a), factor)), factor);
  }
  // Of four words, with two seeds.
  WordPair weak_hash_32(const std::vector<Expr>& words, size_t first, Expr a, Expr b) const {
    a = add(a, words[first]);
    b = rotated(add(add(b, a), words[first + 3]), 21);
    Expr c = a;
    a = add(add(a, words[first + 1]), words[first + 2]);
    return {add(a, words[first + 3]), add(add(b, rotated(a, 44)), c)};
  }

 private:
  const Builder& build_;
};

// The keys, a seed and a line each, as words that begin at any byte.
class Keys {
 public:
  Keys(const Builder& build, const Expr& seeds, const Expr& lines) : build_(build), w_(build) {
    seeds_ = build.expand_dims(wide_bits(build, seeds), 1);
    const int64_t rank = Builder::rank_of(lines);
    for (int64_t a = 1; a < rank; ++a) elements_ *= build.const_dim(lines, a, "a size of a line");
    bytes_ = Builder::dtype_of(lines).bytes();
    lines_ = build.reshape(wide_bits(build, lines), {Builder::shape_of(lines)[0], dim(elements_)});
  }

  int64_t length() const { return 4 + elements_ * bytes_; }

  // The words that begin at these bytes of a line: (words, lines). Bytes outside of a line are 0.
  Expr of_lines(const std::vector<int64_t>& begins) const {
    const auto count = static_cast<int64_t>(begins.size());
    if (elements_ == 0) return build_.full(0, {dim(count), Builder::shape_of(lines_)[0]}, kWord);
    // A word is the sum of `parts` elements, each times a power of 2 and then shifted to the right.
    const int64_t parts = 8 / bytes_ + 1;
    std::vector<int64_t> places;
    std::vector<uint64_t> factors, shifts;
    for (int64_t begin : begins) {
      const int64_t first = begin < 0 ? -((-begin + bytes_ - 1) / bytes_) : begin / bytes_;
      for (int64_t place = first; place < first + parts; ++place) {
        const int64_t up = 8 * (place * bytes_ - begin);
        const bool has = place >= 0 && place < elements_ && up < 64;
        places.push_back(has ? place : 0);
        factors.push_back(!has ? 0 : up < 0 ? 1 : uint64_t{1} << up);
        shifts.push_back(has && up < 0 ? static_cast<uint64_t>(-up) : 0);
      }
    }
    Expr taken = build_.call("take", {lines_, build_.ints(places)},
                             {{"axis", int64_t{1}}, {"mode", std::string("fast")}});
    taken = build_.reshape(taken, {Builder::shape_of(lines_)[0], dim(count), dim(parts)});
    Expr moved = w_.right(w_.times(taken, w_.table(factors, {count, parts})),
                          w_.table(shifts, {count, parts}));
    return build_.transpose(build_.reduce("sum", moved, {2}, false), {1, 0});
  }

  // The words that begin at these bytes of the keys, each for all seeds and lines.
  std::vector<Expr> at(std::vector<int64_t> begins) const {
    for (int64_t& b : begins) b -= 4;
    Expr of_line = of_lines(begins);
    std::vector<Expr> out;
    for (size_t i = 0; i < begins.size(); ++i) {
      Expr word = build_.select(of_line, 0, static_cast<int64_t>(i));
      if (begins[i] < 0)
        word = w_.add(word, w_.right(seeds_, static_cast<uint64_t>(8 * (begins[i] + 4))));
      out.push_back(word);
    }
    return out;
  }

 private:
  const Builder& build_;
  Wrapping w_;
  Expr seeds_, lines_;  // (seeds, 1) and (lines, elements)
  int64_t elements_ = 1, bytes_;
};

// Keys of at least 4 and at most 64 bytes.
Expr short_hashes(const Wrapping& w, const Keys& keys) {
  const int64_t n = keys.length();
  const uint64_t factor = k2 + 2 * static_cast<uint64_t>(n);
  if (n < 8) {
    std::vector<Expr> s = keys.at({0, n - 4});
    for (Expr& word : s) word = w.masked(word, UINT32_MAX);
    return w.hash_16(w.add(w.times(s[0], 8), static_cast<uint64_t>(n)), s[1], factor);
  }
  if (n <= 16) {
    const std::vector<Expr> s = keys.at({0, n - 8});
    Expr a = w.add(s[0], k2);
    Expr c = w.add(w.times(w.rotated(s[1], 37), factor), a);
    return w.hash_16(c, w.times(w.add(w.rotated(a, 25), s[1]), factor), factor);
  }
  const std::vector<Expr> s = keys.at({0, 8, n - 8, n - 16});
  Expr a = w.times(s[0], n <= 32 ? k1 : k2);
  Expr c = w.times(s[2], factor), d = w.times(s[3], k2);
  Expr y = w.add(w.add(w.rotated(w.add(a, s[1]), 43), w.rotated(c, 30)), d);
  Expr z = w.hash_16(y, w.add(w.add(a, w.rotated(w.add(s[1], k2), 18)), c), factor);
  if (n <= 32) return z;
  const std::vector<Expr> t = keys.at({16, 24, n - 32, n - 24});
  Expr e = w.times(t[0], factor), f = t[1];
  Expr g = w.times(w.add(y, t[2]), factor), h = w.times(w.add(z, t[3]), factor);
  Expr sum = w.add(w.add(w.rotated(w.add(e, f), 43), w.rotated(g, 30)), h);
  return w.hash_16(sum, w.add(w.add(e, w.rotated(w.add(f, a), 18)), g), factor);
}

// x, y, z, and the pairs v and w.
using HashState = std::vector<Expr>;

// The state after a block of eight words. The last block has a factor of its own and counts some words of the state `by` times.
template <class Factor>
HashState next_state(const Wrapping& w, const HashState& before, const std::vector<Expr>& s,
                     const Factor& factor, uint64_t by = 1) {
  const Expr &v0 = before[3], &v1 = before[4], &w0 = before[5], &w1 = before[6];
  auto counted = [&](const Expr& e) { return by == 1 ? e : w.times(e, by); };
  Expr x = w.times(w.rotated(w.add(w.add(before[0], before[1]), w.add(v0, s[1])), 37), factor);
  Expr y = w.times(w.rotated(w.add(before[1], w.add(v1, s[6])), 42), factor);
  x = w.exclusive(x, counted(w1));
  y = w.add(y, w.add(counted(v0), s[5]));
  Expr z = w.times(w.rotated(w.add(before[2], w0), 33), factor);
  WordPair v = w.weak_hash_32(s, 0, w.times(v1, factor), w.add(x, w0));
  WordPair u = w.weak_hash_32(s, 4, w.add(z, w1), w.add(y, s[2]));
  return {z, y, x, v.first, v.second, u.first, u.second};
}

Expr long_hashes(const Builder& build, const Wrapping& w, const Keys& keys,
                 const std::vector<Dim>& shape) {
  const int64_t n = keys.length(), rest = (n - 1) / 64 - 1, left = (n - 1) & 63;
  constexpr uint64_t kSeed = 81, kY = kSeed * k1 + 113, kMix = kY * k2 + 113;
  auto all = [&](uint64_t value) { return build.broadcast_to(w.number(value), shape); };
  const std::vector<Expr> first = keys.at({0, 8, 16, 24, 32, 40, 48, 56});
  HashState state{w.add(first[0], kSeed * k2),
                  all(kY),
                  all((kMix ^ (kMix >> 47)) * k2),
                  all(0),
                  all(0),
                  all(0),
                  all(0)};
  state = next_state(w, state, first, k1);
  if (rest > 0) {
    std::vector<int64_t> begins;
    for (int64_t i = 0; i < 8 * rest; ++i) begins.push_back(60 + 8 * i);
    Expr blocks = keys.of_lines(begins);
    blocks = build.reshape(blocks, {dim(rest), dim(8), Builder::shape_of(blocks)[1]});
    StepLoop loop;
    loop.count = build.scalar(static_cast<double>(rest), DType::Int(64));
    for (Expr& e : state) loop.initial.push_back(build.broadcast_to(e, shape));
    state = run_steps(build, loop, [&](const Expr& t, const Expr&, const HashState& before) {
              Expr block = build.call("take", {blocks, t}, {{"axis", int64_t{0}}});
              std::vector<Expr> words;
              for (int64_t i = 0; i < 8; ++i) words.push_back(build.select(block, 0, i));
              HashState after = next_state(w, before, words, k1);
              for (Expr& e : after) e = build.broadcast_to(e, shape);
              return Step{after, {}};
            }).states;
  }
  const std::vector<Expr> s =
      keys.at({n - 64, n - 56, n - 48, n - 40, n - 32, n - 24, n - 16, n - 8});
  Expr factor = w.add(w.times(w.masked(state[2], 0xFF), 2), k1);
  state[5] = w.add(state[5], static_cast<uint64_t>(left));
  state[3] = w.add(state[3], state[5]);
  state[5] = w.add(state[5], state[3]);
  state = next_state(w, state, s, factor, 9);
  Expr y = w.times(w.mixed(state[1]), k0);
  Expr first_half = w.add(w.add(w.hash_16(state[3], state[5], factor), y), state[2]);
  Expr second_half = w.add(w.hash_16(state[4], state[6], factor), state[0]);
  return w.hash_16(first_half, second_half, factor);
}

}  // namespace

Expr farm_hashes(const Builder& build, const Expr& seeds, const Expr& lines) {
  const Wrapping w(build);
  const Keys keys(build, seeds, lines);
  const std::vector<Dim> shape{Builder::shape_of(seeds)[0], Builder::shape_of(lines)[0]};
  Expr hashes = keys.length() > 64 ? long_hashes(build, w, keys, shape) : short_hashes(w, keys);
  return build.broadcast_to(hashes, shape);
}

}  // namespace relay::frontend::tflite
