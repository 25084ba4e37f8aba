#include "tir/arith/analyzer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

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
  throw std::runtime_error("unexpected " + to_string(e));
}

TEST(TirRules, every_rule_holds_on_a_small_domain) {
  const RuleVars& v = rule_vars();
  for (const Rule& r : rules()) {
    for (int64_t x = -2; x <= 2; ++x)
      for (int64_t y = -2; y <= 2; ++y)
        for (int64_t z = -2; z <= 2; ++z)
          for (int64_t c = -2; c <= 2; ++c)
            for (int64_t d = -2; d <= 2; ++d)
              for (int pq = 0; pq < 4; ++pq) {
                if (r.condition && !r.condition(c, d)) continue;
                std::vector<std::pair<Var, int64_t>> env{{v.x, x},      {v.y, y}, {v.z, z},
                                                         {v.c, c},      {v.d, d}, {v.p, pq & 1},
                                                         {v.q, pq >> 1}};
                ASSERT_EQ(value_of(r.pattern, env), value_of(r.result, env))
                    << to_string(r.pattern) << " -> " << to_string(r.result);
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

}  // namespace
}  // namespace relay::tir
