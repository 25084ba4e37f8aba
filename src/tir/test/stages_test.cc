// Kernels compute the same as they are composed, in every schedule and after every step of the lowering.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "tir/compute.h"
#include "tir/joint_tensors.h"
#include "tir/lower_loops.h"
#include "tir/passes/narrow_indices.h"
#include "tir/scalar.h"
#include "tir/schedule/schedule.h"
#include "tir/test/invented_inputs.h"
#include "tir/verify.h"

namespace relay::tir {
namespace {

// The same numbers come from the kernel as it is composed, after each of the given schedules, and
// after each step of the lowering.
using Steps = std::function<void(Schedule&)>;
std::vector<Data> expect_stages_alike(const PrimFunc& f, const std::vector<Steps>& schedules,
                                      const std::vector<int64_t>& dims = {}) {
  std::vector<Data> want = run(f, 1, dims);
  std::vector<Steps> all{[](Schedule&) {}};
  all.insert(all.end(), schedules.begin(), schedules.end());
  for (size_t k = 0; k < all.size(); ++k) {
    Schedule s(f);
    all[k](s);
    PrimFunc stage = s.func();
    verify(stage);
    std::string name = f->name + ", schedule " + std::to_string(k);
    expect_equal(want, run(stage, 1, dims), name);
    for (const LoweringPass& pass : lowering_passes()) {
      stage = pass.run(stage);
      verify(stage);
      expect_equal(want, run(stage, 1, dims), name + " after " + std::string(pass.name));
    }
    stage = narrow_indices(stage);
    verify(stage);
    expect_equal(want, run(stage, 1, dims), name + " in 32 bits");
  }
  return want;
}

std::vector<PrimExpr> sizes(std::initializer_list<int64_t> list) {
  std::vector<PrimExpr> out;
  for (int64_t v : list) out.push_back(index(v));
  return out;
}

// The inputs that `run` invents.
Data invented(DType dtype, std::initializer_list<int64_t> shape, uint32_t seed) {
  Data t = Data::zeros(dtype, shape);
  fill(t, seed);
  return t;
}

TEST(Stages, matrix_product) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{6, 32, 5}, {7, 33, 3}, {1, 5, 8}}) {
    Tensor a = placeholder("A", f32, sizes({m, k})), b = placeholder("B", f32, sizes({k, n}));
    Tensor c = compute("C", sizes({m, n}), [&, depth = k](const Indices& i) {
      return sum({index(depth)}, [&](const Indices& r) { return a(i[0], r[0]) * b(r[0], i[1]); });
    });
    Tensor d =
        compute("D", sizes({m, n}), [&](const Indices& i) { return max(c(i), imm_float(f32, 0)); });
    Steps tiled = [](Schedule& s) {
      auto [i, j] = s.get_loops<2>(s.get_block("D"));
      auto rows = s.split(i, {-1, 4}).value(), columns = s.split(j, {-1, 16}).value();
      s.reorder({rows[0], columns[0], rows[1], columns[1]}).value();
      s.compute_at(s.get_block("C"), columns[0]).value();
      s.set_scope(s.get_block("C"), Scope::Local).value();
      s.parallel(rows[0]).value();
      s.vectorize(columns[1]).value();
    };
    Steps factored = [](Schedule& s) {
      s.rfactor(s.get_block("C"), s.get_loops(s.get_block("C"))[2]).value();
      s.unroll(s.get_loops(s.get_block("D"))[1], 4).value();
    };
    auto out = expect_stages_alike(create_prim_func("matmul", {a, b}, {d}), {tiled, factored});
    Data x = invented(f32, {m, k}, 1), y = invented(f32, {k, n}, 2);
    for (int64_t i = 0; i < m * n; ++i) {
      double want = 0;
      for (int64_t r = 0; r < k; ++r)
        want += x.get_as_double(i / n * k + r) * y.get_as_double(r * n + i % n);
      ASSERT_EQ(out[0].get_as_double(i), std::max(want, 0.0));
    }
  }
}

TEST(Stages, convolution_with_padding) {
  Tensor x = placeholder("x", f32, sizes({2, 3, 7, 6})),
         w = placeholder("w", f32, sizes({4, 3, 3, 3}));
  Tensor padded = compute("pad", sizes({2, 3, 9, 8}), [&](const Indices& i) {
    PrimExpr inside = logical_and(logical_and(ge(i[2], index(1)), lt(i[2], index(8))),
                                  logical_and(ge(i[3], index(1)), lt(i[3], index(7))));
    return select(inside, x(i[0], i[1], i[2] - 1, i[3] - 1), imm_float(f32, 0));
  });
  Tensor y = compute("conv", sizes({2, 4, 4, 3}), [&](const Indices& i) {
    return sum(sizes({3, 3, 3}), [&](const Indices& k) {
      return padded(i[0], k[0], i[2] * 2 + k[1], i[3] * 2 + k[2]) * w(i[1], k[0], k[1], k[2]);
    });
  });
  auto out = expect_stages_alike(
      create_prim_func("conv", {x, w}, {y}),
      {[](Schedule& s) { s.compute_inline(s.get_block("pad")).value(); },
       [](Schedule& s) {
         auto loops = s.get_loops(s.get_block("conv"));
         s.reorder({loops[0], loops[2], loops[4], loops[5], loops[6], loops[1], loops[3]}).value();
         s.compute_at(s.get_block("pad"), loops[2]).value();
         s.decompose_reduction(s.get_block("conv"), loops[4]).value();
         s.vectorize(loops[3]).value();
       }});
  Data a = invented(f32, {2, 3, 7, 6}, 1), b = invented(f32, {4, 3, 3, 3}, 2);
  int64_t at = 0;
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t o = 0; o < 4; ++o) {
      for (int64_t p = 0; p < 12; ++p, ++at) {
        double want = 0;
        for (int64_t r = 0; r < 27; ++r) {
          int64_t c = r / 9, h = p / 3 * 2 + r / 3 % 3 - 1, v = p % 3 * 2 + r % 3 - 1;
          if (h < 0 || h >= 7 || v < 0 || v >= 6) continue;
          want += a.get_as_double(((n * 3 + c) * 7 + h) * 6 + v) * b.get_as_double(o * 27 + r);
        }
        ASSERT_EQ(out[0].get_as_double(at), want) << at;
      }
    }
  }
}

TEST(Stages, argmax_takes_the_first_of_equals) {
  Tensor x = placeholder("x", f32, sizes({5, 40}));
  Tensor y = compute("y", sizes({5}), [&](const Indices& i) {
    return arg_reduce(Combiner::ArgMax, index(40), [&](const PrimExpr& k) { return x(i[0], k); });
  });
  auto out = expect_stages_alike(create_prim_func("argmax", {x}, {y}), {[](Schedule& s) {
                                   auto [i, k] = s.get_loops<2>(s.get_block("y"));
                                   s.parallel(i).value();
                                   s.split(k, {-1, 7}).value();
                                 }});
  Data a = invented(f32, {5, 40}, 1);
  for (int64_t i = 0; i < 5; ++i) {
    int64_t best = 0;
    for (int64_t k = 1; k < 40; ++k)
      if (a.get_as_double(i * 40 + k) > a.get_as_double(i * 40 + best)) best = k;
    EXPECT_EQ(out[0].get_as_int(i), best);
  }
}

TEST(Stages, softmax_chain) {
  Tensor x = placeholder("x", f32, sizes({4, 19}));
  Tensor top = compute("top", sizes({4}), [&](const Indices& i) {
    return reduce(Combiner::Max, sizes({19}), [&](const Indices& k) { return x(i[0], k[0]); });
  });
  Tensor e = compute("e", sizes({4, 19}),
                     [&](const Indices& i) { return call("exp", f32, {x(i) - top(i[0])}); });
  Tensor total = compute("total", sizes({4}), [&](const Indices& i) {
    return sum(sizes({19}), [&](const Indices& k) { return e(i[0], k[0]); });
  });
  Tensor y = compute("y", sizes({4, 19}), [&](const Indices& i) { return div(e(i), total(i[0])); });
  auto out = expect_stages_alike(create_prim_func("softmax", {x}, {y}),
                                 {[](Schedule& s) {
                                    LoopRV row = s.get_loops(s.get_block("y"))[0];
                                    for (const char* b : {"total", "e", "top"})
                                      s.compute_at(s.get_block(b), row).value();
                                    s.set_scope(s.get_block("e"), Scope::Local).value();
                                    s.parallel(row).value();
                                  },
                                  [](Schedule& s) { s.compute_inline(s.get_block("e")).value(); }});
  for (int64_t i = 0; i < 4; ++i) {
    double row = 0;
    for (int64_t k = 0; k < 19; ++k) row += out[0].get_as_double(i * 19 + k);
    EXPECT_NEAR(row, 1, 1e-6);
  }
}

TEST(Stages, concatenation_by_select) {
  Tensor a = placeholder("a", f32, sizes({3, 5})), b = placeholder("b", f32, sizes({3, 6}));
  Tensor c = compute("c", sizes({3, 11}), [&](const Indices& i) {
    return select(lt(i[1], index(5)), a(i), b(i[0], i[1] - 5));
  });
  auto out = expect_stages_alike(
      create_prim_func("concat", {a, b}, {c}),
      {[](Schedule& s) { s.vectorize(s.get_loops(s.get_block("c"))[1]).value(); },
       [](Schedule& s) {
         auto [i, j] = s.get_loops<2>(s.get_block("c"));
         auto parts = s.split(s.fuse({i, j}).value(), {-1, 8}).value();
         s.vectorize(parts[1]).value();
       }});
  Data x = invented(f32, {3, 5}, 1), y = invented(f32, {3, 6}, 2);
  for (int64_t i = 0; i < 33; ++i) {
    int64_t r = i / 11, k = i % 11;
    EXPECT_EQ(out[0].get_as_double(i),
              k < 5 ? x.get_as_double(r * 5 + k) : y.get_as_double(r * 6 + k - 5));
  }
}

TEST(Stages, every_cast) {
  std::vector<DType> dtypes(std::begin(kIntegers), std::end(kIntegers));
  for (DType d : {DType::Bool(), DType::Float(16), DType::BFloat16(), f32, f64})
    dtypes.push_back(d);
  for (DType from : dtypes) {
    for (DType to : dtypes) {
      if (from == to) continue;
      Tensor a = placeholder("a", from, sizes({21}));
      Tensor b = compute("b", sizes({21}), [&](const Indices& i) { return cast(to, a(i)); });
      expect_stages_alike(create_prim_func("cast", {a}, {b}), {[](Schedule& s) {
                            auto parts = s.split(s.get_loops(s.get_block("b"))[0], {-1, 8}).value();
                            s.vectorize(parts[1]).value();
                          }});
    }
  }
}

TEST(Stages, division_and_half_precision) {
  for (DType d :
       {DType::Int(8), DType::Int(32), DType::UInt(16), DType::Float(16), DType::BFloat16()}) {
    Tensor a = placeholder("a", d, sizes({37})), b = placeholder("b", d, sizes({37}));
    Tensor c = compute("c", sizes({37}), [&](const Indices& i) {
      PrimExpr q = select(eq(b(i), imm(d, 0)), imm(d, 1), b(i));
      return floor_div(a(i), q) * imm(d, 3) - mod(a(i), q) + min(floor_mod(a(i), q), div(a(i), q));
    });
    auto out = expect_stages_alike(
        create_prim_func("division", {a, b}, {c}), {[](Schedule& s) {
          auto parts = s.split(s.get_loops(s.get_block("c"))[0], {-1, 8}).value();
          s.vectorize(parts[1]).value();
          s.parallel(parts[0]).value();
        }});
    if (d.is_floating()) continue;
    Data x = invented(d, {37}, 1), y = invented(d, {37}, 2);
    for (int64_t i = 0; i < 37; ++i) {
      int64_t p = x.get_as_int(i), q = y.get_as_int(i) == 0 ? 1 : y.get_as_int(i);
      int64_t want = floor_div_int(p, q) * 3 - p % q + std::min(floor_mod_int(p, q), p / q);
      EXPECT_EQ(out[0].get_as_int(i), wrap_to(d, want));
    }
  }
}

TEST(Stages, symbolic_dimensions_and_indices_from_data) {
  Var n = var("n"), m = var("m");
  Tensor x = placeholder("x", f32, {n, m}), at = placeholder("at", i64, {m});
  Tensor y = compute("y", {n, m}, [&](const Indices& i) {
    PrimExpr k = max(min(at(i[1]), m - 1), index(0));
    return x(i[0], k) * imm_float(f32, 2);
  });
  Tensor z = compute("z", {n}, [&](const Indices& i) {
    return sum({m}, [&](const Indices& k) { return y(i[0], k[0]); });
  });
  PrimFunc f = create_prim_func("gather", {x, at}, {z}, {n, m});
  for (auto dims : {std::vector<int64_t>{3, 5}, {1, 1}, {8, 16}, {0, 4}, {4, 0}}) {
    auto out = expect_stages_alike(f,
                                   {[](Schedule& s) { s.compute_inline(s.get_block("y")).value(); },
                                    [](Schedule& s) {
                                      auto [i, k] = s.get_loops<2>(s.get_block("z"));
                                      auto rows = s.split(i, {-1, 4}).value();
                                      s.split(k, {-1, 8}).value();
                                      s.compute_at(s.get_block("y"), rows[0]).value();
                                      s.parallel(rows[0]).value();
                                    }},
                                   dims);
    if (dims[1] == 0) {
      for (double v : values(out[0])) EXPECT_EQ(v, 0) << "the sum of nothing";
    }
  }
}

TEST(Stages, statements_of_an_imperative_tensor) {
  Tensor x = placeholder("x", f32, sizes({3, 10}));
  Tensor twice = compute("twice", sizes({3, 10}), [&](const Indices& i) { return x(i) + x(i); });
  Tensor sums = imperative(
      "sums", f32, sizes({3, 10}), {twice}, [](const std::vector<Buffer>& in, const Buffer& out) {
        Var i = var("i"), k = var("k"), run = var("run", DType::Float(32));
        Stmt add = let_stmt(run, select(eq(k, index(0)), imm_float(f32, 0), load(out, {i, k - 1})),
                            store(out, {i, k}, run + load(in[0], {i, k})));
        return for_(i, index(0), index(3), for_(k, index(0), index(10), add));
      });
  Tensor y = compute("y", sizes({3, 10}), [&](const Indices& i) { return sums(i) * sums(i); });
  auto out =
      expect_stages_alike(create_prim_func("cumsum", {x}, {y}),
                          {[](Schedule& s) { s.compute_inline(s.get_block("twice")).value(); }});
  Data a = invented(f32, {3, 10}, 1);
  for (int64_t r = 0; r < 3; ++r) {
    double total = 0;
    for (int64_t k = 0; k < 10; ++k) {
      total += 2 * a.get_as_double(r * 10 + k);
      EXPECT_EQ(out[0].get_as_double(r * 10 + k), total * total);
    }
  }
}

TEST(Stages, statements_of_several_tensors) {
  Tensor x = placeholder("x", f32, sizes({3, 10}));
  Tensor twice = compute("twice", sizes({3, 10}), [&](const Indices& i) { return x(i) + x(i); });
  auto joint = [&] {
    return joint_tensors(
        {{"least", f32, sizes({3})}, {"greatest", f32, sizes({3})}}, {twice},
        [](const std::vector<Buffer>& in, const std::vector<Buffer>& out) {
          Var i = var("i"), k = var("k");
          auto both = [&](const PrimExpr& least, const PrimExpr& greatest) {
            return seq({store(out[0], {i}, least), store(out[1], {i}, greatest)});
          };
          PrimExpr value = load(in[0], {i, k});
          Stmt row = for_(k, index(0), index(10),
                          both(min(load(out[0], {i}), value), max(load(out[1], {i}), value)));
          return for_(i, index(0), index(3), seq({both(max_value(f32), min_value(f32)), row}));
        });
  };
  Data a = invented(f32, {3, 10}, 1);
  auto expect_range = [&](const std::vector<Tensor>& outputs, auto check) {
    auto out =
        expect_stages_alike(create_prim_func("range", {x}, outputs),
                            {[](Schedule& s) { s.compute_inline(s.get_block("twice")).value(); }});
    for (int64_t r = 0; r < 3; ++r) {
      double least = 1e30, greatest = -1e30;
      for (int64_t k = 0; k < 10; ++k) {
        least = std::min(least, 2 * a.get_as_double(r * 10 + k));
        greatest = std::max(greatest, 2 * a.get_as_double(r * 10 + k));
      }
      check(out, r, least, greatest);
    }
  };
  expect_range(joint(), [](const auto& out, int64_t r, double least, double greatest) {
    EXPECT_EQ(out[0].get_as_double(r), least);
    EXPECT_EQ(out[1].get_as_double(r), greatest);
  });
  // One of the tensors alone is computed by the statements of all.
  Tensor greatest = joint()[1];
  Tensor y = compute("y", sizes({3}), [&](const Indices& i) { return greatest(i) * greatest(i); });
  expect_range({y}, [](const auto& out, int64_t r, double, double greatest) {
    EXPECT_EQ(out[0].get_as_double(r), greatest * greatest);
  });
}

// out[i, j] = sum over k of a[i, k] * b[k, j], as the block "C".
PrimFunc small_product() {
  Tensor a = placeholder("a", f32, sizes({6, 7})), b = placeholder("b", f32, sizes({7, 8}));
  Tensor c = compute("C", sizes({6, 8}), [&](const Indices& i) {
    return sum(sizes({7}), [&](const Indices& k) { return a(i[0], k[0]) * b(k[0], i[1]); });
  });
  return create_prim_func("product", {a, b}, {c});
}

TEST(Stages, reductions_split_around_other_loops_and_blocks) {
  expect_stages_alike(
      small_product(),
      {// The reduction's outer loop holds a copy of its operand.
       [](Schedule& s) {
         auto [i, j, k] = s.get_loops<3>(s.get_block("C"));
         auto parts = s.split(k, {-1, 3}).value();
         s.reorder({parts[0], parts[1], i, j}).value();
         s.compute_at(s.cache_read(s.get_block("C"), "b", Scope::Local).value(), parts[0]).value();
       },
       // One condition about a reduction loop and a loop of its lanes.
       [](Schedule& s) {
         auto parts = s.split(s.get_loops(s.get_block("C"))[2], {-1, 2, 2}).value();
         s.rfactor(s.get_block("C"), parts[1]).value();
       },
       // Lanes inside lanes, and lanes of a reduction.
       [](Schedule& s) {
         auto [i, j, k] = s.get_loops<3>(s.get_block("C"));
         s.vectorize(k).value();
         s.reorder({k, j}).value();
         s.vectorize(j).value();
       },
       // The copy is inlined away from where its source was computed.
       [](Schedule& s) {
         BlockRV first = s.cache_read(s.get_block("C"), "b", Scope::Local).value();
         s.split(s.get_loops(first)[0], {-1, 3}).value();
         s.compute_inline(first).value();
       }});
}

TEST(Stages, an_initialisation_stays_with_windows_that_overlap) {
  Tensor a = placeholder("a", f32, sizes({9, 3}));
  Tensor rows = compute("rows", sizes({9}), [&](const Indices& i) {
    return sum(sizes({3}), [&](const Indices& k) { return a(i[0], k[0]); });
  });
  Tensor pairs = compute("pairs", sizes({8}), [&](const Indices& i) {
    return sum(sizes({2}), [&](const Indices& k) { return rows(i[0] + k[0]); });
  });
  PrimFunc f = create_prim_func("pairs", {a}, {pairs});
  Schedule s(f);
  auto [i, k] = s.get_loops<2>(s.get_block("pairs"));
  s.compute_at(s.get_block("rows"), k).value();
  EXPECT_THROW(s.decompose_reduction(s.get_block("rows"), i).value(), UserError);
  s.decompose_reduction(s.get_block("rows"), s.get_loops(s.get_block("rows"))[2]).value();
  expect_equal(run(f), run(s.func()), "windows");
}

// ---- Random schedules of random kernels --------------------------------------------------------

class RandomKernel {
 public:
  explicit RandomKernel(uint32_t seed) : random_(seed) {}
  int64_t pick(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[static_cast<size_t>(pick(static_cast<int64_t>(list.size())))];
  }

  // Two to five tensors, each from one or two of those before it; the last is the output.
  PrimFunc kernel() {
    std::vector<Tensor> inputs, all;
    for (int k = 0; k < 2; ++k) {
      inputs.push_back(placeholder("in" + std::to_string(k), f32, sizes({size(), size()})));
    }
    all = inputs;
    int64_t count = 1 + pick(4);
    for (int64_t k = 0; k < count; ++k) {
      // A chain most of the time, so that there is something to move.
      Tensor from = pick(4) == 0 ? one_of(all) : all.back();
      all.push_back(tensor("t" + std::to_string(k), from, one_of(all)));
    }
    return create_prim_func("random", inputs, {all.back()});
  }

 private:
  int64_t size() { return 1 + pick(9); }
  static int64_t extent(const Tensor& t, size_t d) { return *as_int(t->shape()[d]); }

  Tensor tensor(const std::string& name, const Tensor& a, const Tensor& b) {
    int64_t rows = extent(a, 0), columns = extent(a, 1);
    // The other operand at any index: its size is another.
    auto other = [&](PrimExpr i, PrimExpr j) {
      return b(floor_mod(i, index(extent(b, 0))), min(j, index(extent(b, 1) - 1)));
    };
    switch (pick(7)) {
      case 0:
        return compute(name, sizes({rows, columns}), [&](const Indices& i) {
          return max(a(i) - other(i[0], i[1]), imm_float(f32, -4));
        });
      case 1:
        return compute(name, sizes({columns, rows}),
                       [&](const Indices& i) { return a(i[1], i[0]) + imm_float(f32, 0.5); });
      case 2: {  // zeros around
        int64_t p = pick(3);
        return compute(name, sizes({rows + 2 * p, columns + p}), [&](const Indices& i) {
          PrimExpr inside = logical_and(logical_and(ge(i[0], index(p)), lt(i[0], index(rows + p))),
                                        lt(i[1], index(columns)));
          return select(inside, a(i[0] - p, i[1]), imm_float(f32, 0));
        });
      }
      case 3: {  // a window
        int64_t w = 1 + pick(std::min<int64_t>(rows, 3)), stride = 1 + pick(2);
        Combiner c = pick(2) == 0 ? Combiner::Max : Combiner::Sum;
        return compute(name, sizes({(rows - w) / stride + 1, columns}), [&](const Indices& i) {
          return reduce(c, sizes({w}),
                        [&](const Indices& k) { return a(i[0] * stride + k[0], i[1]); });
        });
      }
      case 4:  // a product, kept small
        return compute(name, sizes({rows, extent(b, 0)}), [&](const Indices& i) {
          return sum({index(columns)}, [&](const Indices& k) {
            return max(min(a(i[0], k[0]), imm_float(f32, 2)), imm_float(f32, -2)) *
                   select(lt(k[0], index(extent(b, 1))), other(i[1], k[0]), imm_float(f32, 1));
          });
        });
      case 5:  // each row's sum, as a column
        return compute(name, sizes({rows, 1}), [&](const Indices& i) {
          return sum({index(columns)}, [&](const Indices& k) { return a(i[0], k[0]); });
        });
      default:  // broadcast
        return compute(name, sizes({rows, size()}),
                       [&](const Indices& i) { return a(i[0], index(0)) + other(i[0], i[1]); });
    }
  }

  std::mt19937 random_;
};

// One step of a schedule; most are refused.
void random_step(Schedule& s, RandomKernel& r) {
  BlockRV block = r.one_of(s.get_blocks()), other = r.one_of(s.get_blocks());
  std::vector<LoopRV> loops = s.get_loops(block), others = s.get_loops(other);
  if (loops.empty() || others.empty()) return;
  LoopRV loop = r.one_of(loops);
  switch (r.pick(19)) {
    case 0:
    case 1:
      s.split(loop, {-1, 1 + r.pick(5)}).value();
      return;
    case 2:
      s.split(loop, {-1, 1 + r.pick(3), 1 + r.pick(3)}).value();
      return;
    case 3:
      s.partition(loop, 1 + r.pick(4)).value();
      return;
    case 4: {
      size_t at = static_cast<size_t>(r.pick(static_cast<int64_t>(loops.size())));
      if (at + 1 < loops.size()) s.fuse({loops[at], loops[at + 1]}).value();
      return;
    }
    case 5:
    case 6:
      s.reorder({loop, r.one_of(loops)}).value();
      return;
    case 7:
      s.parallel(loop).value();
      return;
    case 8:
      s.vectorize(loops.back()).value();
      return;
    case 9:
      s.unroll(loop, r.pick(3)).value();
      return;
    case 10:
      s.compute_inline(block).value();
      return;
    case 11:
      s.reverse_compute_inline(block).value();
      return;
    case 12:
      s.compute_at(block, r.one_of(others)).value();
      return;
    case 13:
      s.reverse_compute_at(block, r.one_of(others)).value();
      return;
    case 14: {
      std::vector<Region> reads = s.block(block)->reads;
      if (!reads.empty()) s.cache_read(block, r.one_of(reads)->buffer->name, Scope::Local).value();
      return;
    }
    case 15:
      if (r.pick(2) == 0) {
        s.cache_write(block, Scope::Local).value();
      } else {
        s.decompose_reduction(block, loop).value();
      }
      return;
    case 16:
      s.set_scope(block, r.pick(2) == 0 ? Scope::Local : Scope::Register).value();
      return;
    case 17: {
      int64_t lanes = 1 + r.pick(4);
      s.transform_layout(block, {{1, lanes, 0}, {0, 1, 0}, {1, 1, lanes}}).value();
      return;
    }
    default:
      if (r.pick(2) == 0) {
        s.rfactor(block, loop).value();
      } else {
        s.mask_reduction(block).value();
      }
  }
}

// Sums of halves within these bounds are exact, so the order of a reduction does not show.
TEST(Stages, random_schedules_of_random_kernels_compute_the_same) {
  int steps = 0, taken = 0;
  const char* from = std::getenv("RELAY_TEST_SEED");
  const char* count = std::getenv("RELAY_TEST_COUNT");
  uint32_t first = from != nullptr ? static_cast<uint32_t>(std::stoul(from)) : 1;
  uint32_t last = first + (count != nullptr ? static_cast<uint32_t>(std::stoul(count)) : 300);
  for (uint32_t seed = first; seed < last; ++seed) {
    RandomKernel r(seed);
    PrimFunc f = r.kernel();
    std::vector<Data> want = run(f);
    Schedule s(f);
    try {
      for (int k = 0; k < 14; ++k, ++steps) {
        try {
          random_step(s, r);
          ++taken;
        } catch (const UserError&) {
          // refused
        }
      }
      verify(s.func());
      expect_equal(want, run(s.func()), "scheduled");
      PrimFunc stage = s.func();
      for (const LoweringPass& pass : lowering_passes()) {
        if (HasFailure()) break;
        stage = pass.run(stage);
        verify(stage);
        expect_equal(want, run(stage), std::string(pass.name));
      }
      if (!HasFailure()) {
        stage = narrow_indices(stage);
        verify(stage);
        expect_equal(want, run(stage), "in 32 bits");
      }
    } catch (const InternalError& e) {
      ADD_FAILURE() << e.what();
    }
    ASSERT_FALSE(HasFailure()) << "seed " << seed << "\n"
                               << to_string(f) << s.trace_text() << to_string(s.func());
  }
  EXPECT_GT(taken * 4, steps) << "steps are refused too often to show anything";
}

}  // namespace
}  // namespace relay::tir
