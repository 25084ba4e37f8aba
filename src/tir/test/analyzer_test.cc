#include "tir/arith/analyzer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <limits>
#include <random>

#include "node/walk.h"
#include "tir/arith/counting.h"
#include "tir/arith/rules.h"
#include "tir/scalar.h"

namespace relay::tir {
namespace {

// The value of an int64 or bool expression.
int64_t value_of(const PrimExpr& e, const std::vector<std::pair<Var, int64_t>>& env) {
  if (auto c = as_int(e)) return *c;
  for (const auto& [v, x] : env) {
    if (e == v) return x;
  }
  if (auto* b = as<BinaryNode>(e)) {
    return *fold_int(b->op, b->a->dtype, value_of(b->a, env), value_of(b->b, env));
  }
  if (auto* n = as<NotNode>(e)) return !value_of(n->a, env);
  if (auto* s = as<SelectNode>(e)) {
    return value_of(s->cond, env) ? value_of(s->true_value, env) : value_of(s->false_value, env);
  }
  if (auto* c = as<CastNode>(e)) return value_of(c->value, env);
  throw std::runtime_error("unexpected " + to_string(e));
}

using Env = std::vector<std::pair<Var, int64_t>>;

// Values of the rule's variables for which the two sides differ, as text; empty when there are
// none among all values of a small domain.
std::string counterexample(const Rule& rule) {
  const RuleVars& v = rule_vars();
  std::vector<std::pair<Var, std::vector<int64_t>>> domain;
  for (const Var& x : {v.x, v.y, v.z, v.c, v.d, v.p, v.q}) {
    bool used = false;
    for (const PrimExpr& side : {rule.pattern, rule.result}) {
      post_order(side, [&](const Node& n) { used |= &n == x.get(); });
    }
    if (!used) continue;
    bool truth = x->dtype.is_bool();
    domain.push_back({x, truth ? std::vector<int64_t>{0, 1}
                               : std::vector<int64_t>{-4, -3, -2, -1, 0, 1, 2, 3, 4}});
  }
  std::vector<size_t> at(domain.size(), 0);
  while (true) {
    Env env;
    int64_t c = 0, d = 0;
    for (size_t i = 0; i < domain.size(); ++i) {
      int64_t value = domain[i].second[at[i]];
      env.emplace_back(domain[i].first, value);
      if (domain[i].first == v.c) c = value;
      if (domain[i].first == v.d) d = value;
    }
    bool applies = rule.condition == nullptr || rule.condition(c, d);
    if (applies && value_of(rule.pattern, env) != value_of(rule.result, env)) {
      std::string text = to_string(rule.pattern) + " -> " + to_string(rule.result) + " at";
      for (const auto& [x, value] : env) text += " " + x->name + "=" + std::to_string(value);
      return text;
    }
    size_t i = 0;
    while (i < at.size() && ++at[i] == domain[i].second.size()) at[i++] = 0;
    if (i == at.size()) return {};
  }
}

TEST(TirRules, every_rule_holds_on_a_small_domain) {
  for (const Rule& r : rules()) EXPECT_EQ(counterexample(r), "");
}

// A rule compares at most three numbers with each other, so that nine values show every order.
TEST(TirRules, a_wrong_rule_is_found_out) {
  const RuleVars& v = rule_vars();
  EXPECT_NE(counterexample({min(max(v.x, v.y), v.y), v.x}), "");
  EXPECT_NE(counterexample({lt(min(v.x, v.y), v.z), logical_and(lt(v.x, v.z), lt(v.y, v.z))}), "");
  EXPECT_NE(counterexample({max(min(v.x, v.c), v.d), v.d}), "") << "the condition is needed";
  EXPECT_NE(counterexample({select(v.p, v.x, v.y), select(v.p, v.y, v.x)}), "");
}

// A choice that keeps an element from being read stays one.
TEST(TirRules, what_a_choice_guards_is_read_under_it_only) {
  Var i = var("i");
  Buffer b = buffer("b", kIndex, {index(7)});
  PrimExpr inside = lt(i, index(7)), one = index(1);
  EXPECT_EQ(apply_rules(select(inside, select(lt(load(b, {i}), index(5)), i, one), one)), nullptr);
  EXPECT_NE(apply_rules(select(inside, select(lt(i * i, index(5)), i, one), one)), nullptr);
}

// The analyzer's own rewrites of divisions and remainders, for all small divisors and all values of
// a variable on both sides of zero.
TEST(TirAnalyzer, divisions_hold_on_a_small_domain) {
  for (int64_t c = 1; c <= 6; ++c) {
    for (int64_t d = 1; d <= 6; ++d) {
      for (int64_t k = -4; k <= 4; ++k) {
        Var x = var("x"), y = var("y");
        Analyzer a;
        a.bind(x, Bounds{-7, 7});
        a.bind(y, Bounds{0, d - 1});
        PrimExpr cc = index(c), dd = index(d);
        for (const PrimExpr& e : std::vector<PrimExpr>{
                 floor_div(floor_div(x + k, cc), dd), floor_mod(floor_mod(x + k, cc), dd),
                 floor_div(floor_mod(x * k, cc), dd), floor_mod(floor_div(x, cc) * k + y, dd),
                 floor_div(x * d + y + k, dd), floor_mod(x * d + y + k, dd),
                 floor_div(x, cc) * c + floor_mod(x, cc), floor_div(x * c + k, cc * dd),
                 floor_mod(x * c + k, cc * dd), div(x + 7, cc) - mod(x + 7, dd) * k,
                 select(lt(x * k, cc), x, y), cast(kIndex, ge(x * k + y, dd))}) {
          PrimExpr simple = a.simplify(e);
          Bounds range = a.bounds(e);
          for (int64_t xv = -7; xv <= 7; ++xv) {
            for (int64_t yv = 0; yv < d; ++yv) {
              Env env{{x, xv}, {y, yv}};
              int64_t value = value_of(e, env);
              ASSERT_EQ(value_of(simple, env), value)
                  << to_string(e) << " became " << to_string(simple) << " at " << xv << ", " << yv;
              ASSERT_TRUE(range.min <= value && value <= range.max) << to_string(e);
            }
          }
        }
      }
    }
  }
}

struct Case {
  PrimExpr e;
  const char* want;
};

TEST(TirAnalyzer, simplest_forms) {
  Var i = var("i");
  Var j = var("j");
  Var k = var("k");
  Analyzer a;
  a.bind(i, index(0), index(8));
  a.bind(j, index(0), index(4));
  a.bind(k, index(0), index(32));
  PrimExpr ij = i * 4 + j;
  for (const Case& c : std::vector<Case>{
           {floor_div(ij, index(4)), "i"},
           {floor_mod(ij, index(4)), "j"},
           {floor_div(ij, index(32)), "0"},
           {floor_div(ij + 32, index(32)), "1"},
           {floor_mod(ij, index(32)), "i * 4 + j"},
           {floor_div(k, index(4)) * 4 + floor_mod(k, index(4)), "k"},
           {floor_div(floor_div(k, index(2)), index(3)), "k // 6"},
           {floor_mod(floor_mod(k, index(12)), index(4)), "k %% 4"},
           {floor_div(floor_mod(k, index(12)), index(4)), "k // 4 %% 3"},
           {floor_mod(k * 6 + 3, index(4)), "(k * 3 + 1) %% 2 * 2 + 1"},
           // Remainders that bound a sum stay; others are dropped.
           {floor_mod(floor_mod(k, index(3)) * 4 + j, index(12)), "j + k %% 3 * 4"},
           {floor_mod(floor_mod(k, index(3)) * 4 + j + 1, index(12)), "(j + k * 4 + 1) %% 12"},
           {(i + j) * 3 - i, "i * 2 + j * 3"},
           {PrimExpr(i) - i + j - j, "0"},
           {lt(ij, index(32)), "True"},
           {lt(i * 4, index(30)), "True"},
           {lt(i * 4, index(10)), "i < 3"},
           {ge(i, index(8)), "False"},
           {eq(i * 4, index(6)), "False"},
           {min(i, index(7)), "i"},
           {max(i, index(9)), "9"},
           {select(lt(i, index(8)), j, k), "j"},
           {div(i, index(2)), "i // 2"},
       }) {
    EXPECT_EQ(to_string(a.simplify(c.e)), c.want);
  }
}

TEST(TirAnalyzer, reshape_of_a_transpose_loses_its_divisions) {
  // (n, h, w) flattened and split again.
  Var n = var("n");
  Var h = var("h");
  Var w = var("w");
  Analyzer a;
  a.bind(n, index(0), index(2));
  a.bind(h, index(0), index(7));
  a.bind(w, index(0), index(5));
  PrimExpr flat = (n * 7 + h) * 5 + w;
  EXPECT_EQ(to_string(a.simplify(floor_div(flat, index(35)))), "n");
  EXPECT_EQ(to_string(a.simplify(floor_mod(floor_div(flat, index(5)), index(7)))), "h");
  EXPECT_EQ(to_string(a.simplify(floor_mod(flat, index(5)))), "w");
}

TEST(TirAnalyzer, symbolic_sizes) {
  Var n = var("n");
  Var i = var("i");
  Var j = var("j");
  Analyzer a;
  a.bind(n, Bounds{0, Bounds::kNoMax});
  a.bind(i, index(0), floor_div(n + 3, index(4)));
  a.bind(j, index(0), min(index(4), n - i * 4));
  EXPECT_TRUE(a.can_prove(lt(i * 4 + j, n)));
  EXPECT_TRUE(a.can_prove(ge(i * 4 + j, index(0))));
  EXPECT_FALSE(a.can_prove(lt(i * 4 + j + 1, n)));
  Var k = var("k");
  a.bind(k, index(0), n);
  Var m = var("m");
  EXPECT_EQ(to_string(a.simplify(floor_div(m * n + k, n))), "m");
  EXPECT_EQ(to_string(a.simplify(floor_mod(m * n + k, n))), "k");
}

// Rows whose length is a sum, such as what came before and what is new.
TEST(TirAnalyzer, quotients_by_sums) {
  Var past = var("past"), length = var("length"), row = var("row"), head = var("head");
  Var at = var("at");
  PrimExpr all = past + length;
  Analyzer a;
  for (const Var& v : {past, length, row, head}) a.bind(v, Bounds{0, Bounds::kNoMax});
  a.bind(at, index(0), all);
  for (const PrimExpr& line : {PrimExpr(row), head * length + row, head * 4 + row * 2, row + 3}) {
    PrimExpr flat = line * all + at;
    EXPECT_EQ(to_string(a.simplify(floor_div(flat, all))), to_string(a.simplify(line)));
    EXPECT_EQ(to_string(a.simplify(floor_mod(flat, all))), "at");
    EXPECT_NE(to_string(a.simplify(floor_div(flat + 1, all))), to_string(a.simplify(line)));
  }
  EXPECT_EQ(to_string(a.simplify(floor_div(all * 3 + at, all))), "3");
}

TEST(TirAnalyzer, assumptions_hold_in_their_scope) {
  Var i = var("i");
  Var j = var("j");
  Analyzer a;
  a.bind(i, index(0), index(100));
  a.bind(j, index(0), index(100));
  PrimExpr cond = lt(i * 4 + j, index(50));
  EXPECT_FALSE(a.can_prove(cond));
  {
    auto scope = a.assume(logical_and(cond, ge(j, index(2))));
    EXPECT_TRUE(a.can_prove(cond));
    EXPECT_TRUE(a.can_prove(lt(i * 4 + j, index(60))));
    EXPECT_FALSE(a.can_prove(lt(i * 4 + j, index(49))));
    EXPECT_TRUE(a.can_prove(gt(j, index(1))));
  }
  EXPECT_FALSE(a.can_prove(cond));
}

// The rest is the number itself where the quotient is 0.
TEST(TirAnalyzer, what_a_quotient_says_holds_for_its_rest) {
  Var i = var("i");
  Analyzer a;
  a.bind(i, index(0), index(64));
  PrimExpr rest = floor_mod(i, index(4));
  PrimExpr cond = logical_and(lt(floor_div(i, index(4)), index(1)),
                              logical_and(ge(rest, index(2)), lt(rest, index(3))));
  auto scope = a.assume(cond);
  EXPECT_TRUE(a.can_prove(eq(floor_div(i, index(4)) + rest - 2, index(0))));
}

TEST(TirAnalyzer, facts_may_depend_on_each_other) {
  Var x = var("x"), y = var("y");
  Analyzer a;
  a.bind(x, Bounds{0, Bounds::kNoMax});
  auto scope = a.assume(le(x, min(x, y) + index(0)));
  auto other = a.assume(lt(min(x, y), y));
  EXPECT_EQ(a.bounds(min(x, y)).max, Bounds::kNoMax);
}

TEST(TirAnalyzer, vectors_stay_ramps) {
  Var i = var("i");
  Analyzer a;
  a.bind(i, index(0), index(4));
  PrimExpr v = ramp(i * 16, index(1), 16);
  EXPECT_EQ(to_string(a.simplify(v * 2 + 3)), "i * 32 + 3:2:x16");
  EXPECT_EQ(to_string(a.simplify(floor_div(v, index(16)))), "x16(i)");
  EXPECT_EQ(to_string(a.simplify(floor_mod(v, index(32)))), "i %% 2 * 16:1:x16");
  EXPECT_EQ(to_string(a.simplify(lt(v, index(64)))), "x16(True)");
}

TEST(TirAnalyzer, bounds_and_modular_sets) {
  Var i = var("i");
  Analyzer a;
  a.bind(i, index(2), index(5));
  Bounds b = a.bounds(i * -3 + 1);
  EXPECT_EQ(b.min, -17);
  EXPECT_EQ(b.max, -5);
  auto m = a.modular(i * 12 + 7);
  EXPECT_EQ(m.modulus, 12);
  EXPECT_EQ(m.remainder, 7);
}

// Simplified expressions have the values of the originals on all of the domain.
TEST(TirAnalyzer, random_expressions_keep_their_values) {
  unsigned seed = 20240611;
  std::mt19937 random(seed);
  SCOPED_TRACE("seed " + std::to_string(seed));
  auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 1500; ++round) {
    Var i = var("i");
    Var j = var("j");
    int64_t ni = 1 + pick(6);
    int64_t nj = 1 + pick(6);
    int64_t lo = pick(5) - 2;
    std::vector<PrimExpr> pool{i, j, index(pick(7) - 3), index(pick(4) + 1)};
    for (int step = 0; step < 7; ++step) {
      PrimExpr x = pool[static_cast<size_t>(pick(static_cast<int>(pool.size())))];
      PrimExpr y = pool[static_cast<size_t>(pick(static_cast<int>(pool.size())))];
      PrimExpr c = index(1 + pick(6));
      switch (pick(9)) {
        case 0:
          pool.push_back(x + y);
          break;
        case 1:
          pool.push_back(x - y);
          break;
        case 2:
          pool.push_back(x * (pick(7) - 3));
          break;
        case 3:
          pool.push_back(floor_div(x, c));
          break;
        case 4:
          pool.push_back(floor_mod(x, c));
          break;
        case 5:
          pool.push_back(min(x, y));
          break;
        case 6:
          pool.push_back(max(x, y));
          break;
        case 7:
          pool.push_back(div(x, c));
          break;
        default:
          pool.push_back(select(lt(x, y), x + 1, y));
          break;
      }
    }
    PrimExpr e = pool.back();
    PrimExpr cond = lt(e, pool[pool.size() - 2]);
    Analyzer a;
    a.bind(i, index(0), index(ni));
    a.bind(j, index(lo), index(nj));
    PrimExpr s = a.simplify(e);
    PrimExpr sc = a.simplify(cond);
    Bounds b = a.bounds(e);
    for (int64_t x = 0; x < ni; ++x) {
      for (int64_t y = lo; y < lo + nj; ++y) {
        std::vector<std::pair<Var, int64_t>> env{{i, x}, {j, y}};
        int64_t want = value_of(e, env);
        ASSERT_EQ(value_of(s, env), want) << to_string(e) << "  =>  " << to_string(s);
        ASSERT_EQ(value_of(sc, env), value_of(cond, env))
            << to_string(cond) << "  =>  " << to_string(sc);
        ASSERT_TRUE(b.min <= want && want <= b.max) << to_string(e);
      }
    }
  }
}

// Whatever a number is, its multiples of a power of two do not wrap, nor does what is left of it.
TEST(TirAnalyzer, whole_tiles_and_their_rest_do_not_wrap) {
  Analyzer a;
  Var n = var("n"), i = var("i"), j = var("j");
  const PrimExpr number = n * n * n, tiles = floor_div(number, index(16)) * 16,
                 rest = number - tiles;
  EXPECT_EQ(to_string(a.simplify(tiles - floor_div(tiles, index(16)) * 16)), "0");
  EXPECT_EQ(to_string(a.simplify(floor_div(tiles + 15, index(16)))),
            to_string(floor_div(a.simplify(number), index(16))));
  EXPECT_TRUE(a.bounds(rest).within(0, 15));
  EXPECT_TRUE(a.bounds(rest - floor_div(rest, index(6)) * 6).within(0, 5));
  a.bind(i, index(0), floor_div(number, index(16)));
  a.bind(j, index(0), index(16));
  EXPECT_TRUE(a.can_prove(lt(i * 16 + j, tiles)));
  // One more, the next multiple, multiples of other numbers than powers of two, and sums of them may wrap.
  for (const PrimExpr& e : {number + 1, tiles + 16, floor_div(number, index(12)) * 12,
                            floor_div(number, index(16)) * 17, tiles + tiles})
    EXPECT_EQ(to_string(a.simplify(floor_div(e, index(2)))),
              to_string(floor_div(a.simplify(e), index(2))));
}

TEST(TirAnalyzer, numbers_of_the_program_wrap) {
  Buffer x = buffer("x", kIndex, {index(4)});
  Var i = var("i"), n = var("n"), h = var("h");
  PrimExpr data = load(x, {index(0)});
  Analyzer a;
  a.bind(i, index(0), index(8));
  a.bind(n, Bounds{0, Bounds::kNoMax});
  a.define(h, data);
  for (const PrimExpr& v : {data, PrimExpr(h)}) {
    // May wrap: stays.
    for (const PrimExpr& e :
         {lt(floor_mod(v, index(1000003)) * 92233720368547, index(0)), lt(v + 1, v), lt(v, v + i),
          ge(max(v, index(0)) * 2, index(0)), eq(v * 3, index(7)), ge(v * v, index(0))})
      EXPECT_FALSE(as_int(a.simplify(e))) << to_string(e) << " => " << to_string(a.simplify(e));
    EXPECT_EQ(to_string(a.simplify(floor_div(v * 2, index(2)))),
              to_string(floor_div(v * 2, index(2))));
    EXPECT_EQ(to_string(a.simplify(lt(v + 1, n))), to_string(lt(v + 1, n)));
    EXPECT_EQ(a.modular(v * 12 + 7).modulus, 4);
    EXPECT_EQ(a.bounds(v * 2).min, Bounds::kNoMin);
    // Does not.
    EXPECT_EQ(to_string(a.simplify(v * 3 - v * 2 + 1)), to_string(v + 1));
    EXPECT_EQ(to_string(a.simplify(floor_mod(v * 8 + 5, index(4)))), "1");
    EXPECT_TRUE(a.can_prove(ge(floor_mod(v, index(1000003)) * 1000 + i, index(0))));
    auto below = a.assume(lt(v, n));
    EXPECT_TRUE(a.can_prove(le(v, n)));
    auto above = a.assume(ge(v, index(0)));
    EXPECT_TRUE(a.can_prove(ge(n - v, index(1))));
  }
  EXPECT_TRUE(a.can_prove(lt(i * 92233720368547, index(int64_t{1} << 62))));
  {
    // Facts about a product are facts about what it wrapped to.
    PrimExpr y = load(x, {index(1)}), p = data * y;
    auto positive = a.assume(ge(y, index(1)));
    auto low = a.assume(ge(p, index(0)));
    auto high = a.assume(lt(p, index(1000)));
    EXPECT_EQ(to_string(a.simplify(floor_div(p, y))), to_string(floor_div(p, y)));
  }
  // A difference of uint64 is no small number.
  const DType bits = DType::UInt(64);
  PrimExpr difference = cast(kIndex, cast(bits, i) - cast(bits, index(5)));
  EXPECT_FALSE(as_int(a.simplify(ge(floor_div(difference, index(2)) * 2, index(-100)))));
  // A loop from a number has a number of iterations that counts.
  Var w = var("w");
  auto loop = a.inside(w, h, n);
  EXPECT_TRUE(a.can_prove(ge(w - h, index(0))));
  EXPECT_FALSE(as_int(a.simplify(ge(w + 1, index(1)))));
  EXPECT_TRUE(a.can_prove(lt(n, n + i + 1)));
}

// The same of numbers at the ends of int64, whose sums and products wrap.
TEST(TirAnalyzer, random_expressions_of_extreme_numbers_keep_their_values) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min(),
                    kMax = std::numeric_limits<int64_t>::max();
  const std::vector<int64_t> extremes{kMin, kMin + 1, kMin / 2, -1000003, -8,       -1,       0,
                                      1,    3,        12345678, kMax / 3, kMax / 2, kMax - 5, kMax};
  unsigned seed = 20261128;
  std::mt19937 random(seed);
  SCOPED_TRACE("seed " + std::to_string(seed));
  auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const std::vector<int64_t> factors{2, 3, 7, -1, 16, 31, 1000003, 92233720368547, kMin, kMax};
  Buffer buffer_of_numbers = buffer("x", kIndex, {index(2)});
  for (int round = 0; round < 3000; ++round) {
    Var i = var("i"), j = var("j"), n = var("n");
    std::vector<PrimExpr> pool{i, j, n, index(factors[pick(factors.size())])};
    for (int step = 0; step < 7; ++step) {
      PrimExpr x = pool[pick(pool.size())], y = pool[pick(pool.size())];
      const int64_t k = factors[pick(factors.size())];
      PrimExpr c = index(k == kMin || k < 0 ? 5 : k);
      const std::vector<std::function<PrimExpr()>> ways{
          [&] { return x + y; },
          [&] { return x - y; },
          [&] { return x * k; },
          [&] { return x * y; },
          [&] { return floor_div(x, c); },
          [&] { return floor_mod(x, c); },
          [&] { return floor_mod(x, c) + y; },
          [&] { return min(x, y); },
          [&] { return max(x, y); },
          [&] { return div(x, c); },
          [&] { return select(lt(x, y), x + 1, y); },
          [&] { return select(le(x, y + k), x, y * 2); }};
      pool.push_back(ways[pick(ways.size())]());
    }
    PrimExpr e = pool.back();
    PrimExpr other = pool[pool.size() - 2];
    const std::vector<PrimExpr> conditions{lt(e, other), le(e, other), eq(e, other), ge(e, other)};
    PrimExpr known = lt(pool[pick(pool.size())], pool[pick(pool.size())]);
    Analyzer a;
    a.define(i, load(buffer_of_numbers, {index(0)}));
    a.define(j, load(buffer_of_numbers, {index(1)}));
    a.bind(n, index(0), index(6));
    for (bool assumed : {false, true}) {
      std::optional<Analyzer::Scope> scope;
      if (assumed && !as_int(known)) scope.emplace(a.assume(known));
      PrimExpr s = a.simplify(e);
      std::vector<PrimExpr> simplified;
      for (const PrimExpr& c : conditions) simplified.push_back(a.simplify(c));
      const Bounds b = a.bounds(e);
      const Analyzer::Modular m = a.modular(e);
      for (int64_t x : extremes) {
        for (int64_t y : extremes) {
          const std::vector<std::pair<Var, int64_t>> env{{i, x}, {j, y}, {n, (x & 7) % 6}};
          if (assumed && !value_of(known, env)) continue;
          int64_t want = value_of(e, env);
          ASSERT_EQ(value_of(s, env), want)
              << to_string(e) << "  =>  " << to_string(s) << " at " << x << " " << y;
          for (size_t c = 0; c < conditions.size(); ++c)
            ASSERT_EQ(value_of(simplified[c], env), value_of(conditions[c], env))
                << to_string(conditions[c]) << "  =>  " << to_string(simplified[c]) << " where "
                << (assumed ? to_string(known) : "") << " at " << x << " " << y;
          ASSERT_TRUE(b.min <= want && want <= b.max) << to_string(e);
          if (m.modulus > 0) {
            ASSERT_EQ(floor_mod_int(want, m.modulus), m.remainder) << to_string(e);
          }
        }
      }
    }
  }
}

// Tiles and the columns that are left over are loops beside each other: that there is a tile must not be known where
// there is none.
TEST(TirAnalyzer, that_a_loop_runs_is_known_inside_of_it_only) {
  Var n = var("n"), tile = var("tile");
  Analyzer a;
  a.bind(n, {0, Bounds::kNoMax});
  PrimExpr left = floor_div(n, index(15)) * 15;
  {
    auto inside = a.inside(tile, index(0), floor_div(n, index(15)));
    EXPECT_TRUE(a.can_prove(ge(left, index(15))));
    EXPECT_TRUE(a.can_prove(lt(PrimExpr(tile) * 15, PrimExpr(n))));
  }
  EXPECT_FALSE(a.can_prove(ge(left, index(1))));
  EXPECT_EQ(a.bounds(tile).min, 0);
}

// Tiles of a size that is a quotient itself: their number is the quotient by the product.
TEST(TirAnalyzer, a_quotient_of_a_quotient_is_below_it) {
  Var n = var("n"), tile = var("tile"), row = var("row");
  for (int64_t more : {0, 1, 5}) {
    Analyzer a;
    a.bind(n, {0, Bounds::kNoMax});
    PrimExpr size = floor_div(n + more, index(2));
    a.bind(row, index(0), index(14));
    auto inside = a.inside(tile, index(0), floor_div(size, index(14)));
    EXPECT_TRUE(a.can_prove(lt(PrimExpr(tile) * 14 + row, size))) << more;
    EXPECT_FALSE(a.can_prove(lt(PrimExpr(tile) * 14 + row + 1, size))) << more;
    EXPECT_FALSE(a.can_prove(lt(PrimExpr(tile) * 15 + row, size))) << more;
  }
}

// Shapes with a zero dimension divide by it, in code that is never run.
TEST(TirAnalyzer, a_division_by_zero_is_left_alone) {
  Var i = var("i");
  Analyzer a;
  PrimExpr e = i + floor_mod(i, index(0)) + floor_div(i, index(0)) * 0;
  EXPECT_TRUE(a.simplify(e - floor_mod(i, index(0))));
  EXPECT_TRUE(a.simplify(floor_div(i + 1, index(0)) - floor_mod(i * 2, index(0))));
}

TEST(TirAnalyzer, deep_expressions_need_no_stack) {
  Var i = var("i");
  Var j = var("j");
  PrimExpr e = i;
  for (int n = 0; n < 100000; ++n) e = max(e + j, index(n));
  Analyzer a;
  a.bind(i, index(0), index(4));
  EXPECT_TRUE(a.simplify(e));
}

TEST(TirAnalyzer, a_comparison_of_a_quotient_bounds_what_is_divided) {
  for (int64_t size : {1, 3}) {
    Var x = var("x");
    PrimExpr quotient = floor_div(x, index(4)), limit = index(size);
    auto bounds_where = [&](const PrimExpr& cond) {
      Analyzer a;
      a.bind(x, Bounds{-100, 100});
      auto scope = a.assume(cond);
      return a.bounds(x);
    };
    // As a table of all values says.
    for (int64_t op = 0; op < 10; ++op) {
      auto compared = [&](const PrimExpr& q, const PrimExpr& e) {
        const PrimExpr& a = op < 5 ? q : e;
        const PrimExpr& b = op < 5 ? e : q;
        switch (op % 5) {
          case 0:
            return lt(a, b);
          case 1:
            return le(a, b);
          case 2:
            return gt(a, b);
          case 3:
            return ge(a, b);
          default:
            return eq(a, b);
        }
      };
      int64_t low = 100, high = -100;
      for (int64_t v = -100; v <= 100; ++v) {
        int64_t q = v >= 0 ? v / 4 : -((3 - v) / 4);
        if (as_int(compared(index(q), limit)) != 1) continue;
        low = std::min(low, v);
        high = std::max(high, v);
      }
      Bounds found = bounds_where(compared(quotient, limit));
      EXPECT_EQ(found.min, low) << size << " " << op;
      EXPECT_EQ(found.max, high) << size << " " << op;
    }
  }
}

TEST(TirCounting, products_count_as_strides_and_offsets) {
  Var i = var("i"), j = var("j"), h = var("h"), w = var("w"), area = var("area"),
      offset = var("offset");
  Buffer out = buffer("out", kIndex, {h});
  Counting c(for_(
      i, index(0), h,
      for_(j, offset, w, let_stmt(area, h * w, store(out, {i}, PrimExpr(j) * PrimExpr(area))))));
  const PrimExpr n = h, m = w, k = i, l = j, a = area;
  for (const PrimExpr& e :
       {k * n * m, (k * 4 + 3) * n * m + l, k * n * n, k * (n + 2) * (m - 1) * 3, a * n * k,
        floor_div(k, n * m) * n * m, floor_mod(floor_div(k, m), n) * m, k * (int64_t{1} << 31),
        min(n, index(int64_t{1} << 31)) * 4, PrimExpr(offset) * n})
    EXPECT_TRUE(c.counts(e)) << to_string(e);
  for (const PrimExpr& e :
       {k * k, k * l, k * n * n * n, n * n * n, a * a * n, (k + 1) * (k - 1), k * (n * m + l),
        k * (int64_t{1} << 31) * 2, (k * 65536 + n) * 65536, floor_div(k, m) * l})
    EXPECT_FALSE(c.counts(e)) << to_string(e);
}

// As tiles of 30 leave some rows for tiles of 16, and so on: what is left is less than the rows.
TEST(TirCounting, what_is_left_of_a_size_counts_however_often_it_is_split) {
  Counting c;
  const PrimExpr i = var("i");
  PrimExpr left = floor_div(var("w") + 1, index(2));
  for (int64_t tile = 30; tile > 1; --tile) left = left - floor_div(left, index(tile)) * tile;
  EXPECT_TRUE(c.counts(left));
  EXPECT_TRUE(c.counts(left * 5 + i));
  EXPECT_FALSE(c.counts(floor_div(left, index(2)) * (int64_t{1} << 31) * 64));
}

TEST(TirCounting, what_may_be_a_difference_of_uint64_does_not_count) {
  Counting c;
  const PrimExpr n = var("n");
  auto of = [&](DType dtype) { return cast(kIndex, cast(dtype, n) - cast(dtype, index(5))); };
  EXPECT_FALSE(c.counts(of(DType::UInt(64))));
  EXPECT_TRUE(c.counts(of(DType::UInt(32))));
}

// The registers of a function whose statements store the values.
struct Registers {
  Buffer at = buffer("at", kIndex, {index(2)}, Scope::Register);
  PrimExpr first = load(at, {index(0)}), second = load(at, {index(1)});
  bool count(std::vector<std::pair<int, PrimExpr>> stores) const {
    std::vector<Stmt> body;
    for (auto& [k, value] : stores) body.push_back(store(at, {index(k)}, value));
    Counting c(seq(std::move(body)));
    EXPECT_EQ(c.counts(first), c.counts(first * 4 + 1));
    return c.counts(first);
  }
};

TEST(TirCounting, registers_that_step_count) {
  const Registers r;
  const PrimExpr n = var("n");
  EXPECT_TRUE(r.count({{0, index(0)}, {0, r.first + 1}}));
  EXPECT_TRUE(r.count({{0, n}, {0, r.second - 3}, {1, min(r.first, n)}}));
  EXPECT_TRUE(r.count({{0, select(lt(r.second, n), r.first, r.second + 1)}, {1, index(7)}}));
  // Each would count if the other did.
  EXPECT_FALSE(r.count({{0, index(1)}, {0, r.second + 7}, {1, index(0)}, {1, r.first * 31}}));
  EXPECT_FALSE(r.count({{0, index(1)}, {0, r.first + r.first}}));
  EXPECT_FALSE(r.count({{0, index(1)}, {0, r.first + 100000}}));
  EXPECT_FALSE(r.count({{0, index(1)}, {0, r.second}}));
  EXPECT_FALSE(r.count({{0, n * n}, {0, r.first + 1}}));
  EXPECT_FALSE(r.count({{0, load(r.at, {n})}}));
}

TEST(TirCounting, a_register_is_lost_with_those_that_get_it) {
  const Registers r;
  const PrimExpr n = var("n");
  Var v = var("v");
  // The second register gets the first, which gets a product of the second.
  Counting c(seq({store(r.at, {index(1)}, r.first + 1),
                  let_stmt(v, r.second * 3, store(r.at, {index(0)}, PrimExpr(v) + 7)),
                  store(r.at, {index(0)}, index(1))}));
  for (const PrimExpr& e : {r.first, r.second, PrimExpr(v), r.first * 2, r.second + n})
    EXPECT_FALSE(c.counts(e)) << to_string(e);
}

}  // namespace
}  // namespace relay::tir
