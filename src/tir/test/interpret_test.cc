// The interpreter: expressions and statements with closed formulas.
#include "tir/interpret.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/budget.h"
#include "runtime/core/float16.h"
#include "runtime/core/kernel_abi.h"
#include "tir/intrinsics.h"
#include "tir/scalar.h"
#include "tir/test/invented_inputs.h"

namespace relay::tir {
namespace {

// out[0] = value, of the value's dtype.
Data evaluate_scalar(const PrimExpr& value, const InterpretOptions& options = {}) {
  Buffer out = buffer("out", value->dtype, {index(1)});
  Data t = Data::zeros(value->dtype, {1});
  EXPECT_EQ(interpret(kernel({}, {out}, store(out, {index(0)}, value)), {t}, {}, options), 0);
  return t;
}

// A number that the builders cannot see through.
class Opaque {
 public:
  // The value as an expression of the dtype, read from an input.
  PrimExpr operator()(DType dtype, double v) {
    Buffer b = buffer("in" + std::to_string(buffers_.size()), dtype, {index(1)});
    Data t = Data::zeros(dtype, {1});
    t.set_from_double(0, v);
    buffers_.push_back(b);
    tensors_.push_back(t);
    return load(b, {index(0)});
  }
  PrimExpr integer(DType dtype, int64_t v) {
    PrimExpr e = (*this)(dtype, 0);
    tensors_.back().set_from_int(0, v);
    return e;
  }
  Data run(const PrimExpr& value, const InterpretOptions& options = {}) {
    Buffer out = buffer("out", value->dtype, {index(1)});
    std::vector<Data> tensors = tensors_;
    tensors.push_back(Data::zeros(value->dtype, {1}));
    EXPECT_EQ(
        interpret(kernel(buffers_, {out}, store(out, {index(0)}, value)), tensors, {}, options), 0);
    return tensors.back();
  }

 private:
  std::vector<Buffer> buffers_;
  std::vector<Data> tensors_;
};

// ---- Expressions -------------------------------------------------------------------------------

TEST(Interpret, integers_of_every_width_wrap_and_round_as_the_scalar_rules_say) {
  using enum BinaryOp;
  for (DType d : kIntegers) {
    std::vector<int64_t> numbers{
        0, 1, 2, 3, 5, 7, -1, -2, -7, 100, *as_int(min_value(d)), *as_int(max_value(d))};
    for (BinaryOp op : {Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min,    Max, Eq,
                        Ne,  Lt,  Le,  Gt,  Ge,  BitAnd,   BitOr,    BitXor, Shl, Shr}) {
      for (int64_t a : numbers) {
        for (int64_t b : numbers) {
          int64_t x = wrap_to(d, a), y = wrap_to(d, b);
          auto want = fold_int(op, d, x, y);
          if (!want) continue;  // undefined
          Opaque in;
          PrimExpr left = in.integer(d, x), right = in.integer(d, y);
          Data got = in.run(binary(op, left, right));
          ASSERT_EQ(got.get_as_int(0), *want)
              << d.to_string() << ": " << x << " " << to_string(op) << " " << y;
        }
      }
    }
  }
}

TEST(Interpret, floats_of_every_width_round_after_each_operation) {
  using enum BinaryOp;
  double nan = std::nan("");
  std::vector<double> numbers{0, -0.0, 1, -1, 0.1, -2.5, 3, 1e4, 6e4, 1e-7, HUGE_VAL, nan};
  for (DType d : {DType::Float(16), DType::BFloat16(), f32, f64}) {
    for (BinaryOp op : {Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max}) {
      for (double a : numbers) {
        for (double b : numbers) {
          Opaque in;
          PrimExpr left = in(d, a), right = in(d, b);
          double x = round_to(d, a), y = round_to(d, b);
          double got = in.run(binary(op, left, right)).get_as_double(0);
          // Single operations on floats agree with rounded operations on doubles.
          double want = *fold_float(op, d, x, y);
          if (op == FloorDiv && d != f64) {
            want = round_to(d, std::floor(static_cast<float>(x) / static_cast<float>(y)));
          }
          if (std::isnan(want)) {
            EXPECT_TRUE(std::isnan(got)) << d.to_string() << a << to_string(op) << b;
          } else {
            EXPECT_EQ(got, want) << d.to_string() << " " << a << " " << to_string(op) << " " << b;
          }
        }
      }
    }
    for (BinaryOp op : {Eq, Ne, Lt, Le, Gt, Ge}) {
      for (double a : numbers) {
        for (double b : numbers) {
          Opaque in;
          PrimExpr left = in(d, a), right = in(d, b);
          EXPECT_EQ(in.run(binary(op, left, right)).get_as_int(0),
                    *fold_float_compare(op, round_to(d, a), round_to(d, b)));
        }
      }
    }
  }
}

TEST(Interpret, casts_between_all_dtypes) {
  std::vector<DType> dtypes(std::begin(kIntegers), std::end(kIntegers));
  for (DType d : {DType::Bool(), DType::Float(16), DType::BFloat16(), f32, f64})
    dtypes.push_back(d);
  for (DType from : dtypes) {
    for (double v : {0.0, 1.0, 1.9, -1.9, 300.0, -300.0, 40000.0, 1e20, -1e20, std::nan("")}) {
      Opaque probe;
      PrimExpr x = probe(from, v);
      // The builder folds the same cast of a constant.
      Data held = probe.run(x);
      PrimExpr constant = from.is_floating() ? imm_float(from, held.get_as_double(0))
                                             : imm(from, held.get_as_int(0));
      for (DType to : dtypes) {
        Data got = probe.run(cast(to, x));
        Data want = evaluate_scalar(cast(to, constant));
        if (to.is_floating() && std::isnan(want.get_as_double(0))) {
          EXPECT_TRUE(std::isnan(got.get_as_double(0)));
        } else {
          EXPECT_TRUE(runtime::bit_equal(got, want))
              << from.to_string() << " " << v << " to " << to.to_string() << ": "
              << got.get_as_double(0) << " and " << want.get_as_double(0);
        }
      }
    }
  }
}

TEST(Interpret, wide_floats_round_only_where_a_parameter_is_written) {
  // (1 + 2^-30) - 1 vanishes in float32.
  Opaque in;
  PrimExpr one = in(f32, 1), tiny = in(f32, 0x1p-30);
  PrimExpr e = (one + tiny) - one;
  EXPECT_EQ(in.run(e).get_as_double(0), 0);
  EXPECT_EQ(in.run(e, {.wide_floats = true}).get_as_double(0), 0x1p-30);
  // Also through an intermediate buffer of 16-bit floats.
  DType half = DType::Float(16);
  Buffer mid = buffer("mid", half, {}), out = buffer("out", f32, {});
  Stmt body =
      allocate(mid, seq({store(mid, {}, imm_float(half, 1) + cast(half, cast(f32, load(mid, {})))),
                         store(out, {}, cast(f32, load(mid, {})))}));
  Data t = Data::zeros(f32, {});
  EXPECT_EQ(interpret(kernel({}, {out}, body), {t}, {}, {.wide_floats = true}), 0);
  EXPECT_TRUE(std::isnan(t.get_as_double(0))) << "memory starts as NaN";
  Opaque halves;
  PrimExpr third = div(halves(half, 1), halves(half, 3));
  EXPECT_EQ(halves.run(cast(f64, third)).get_as_double(0), round_to(half, 1.0 / 3));
  EXPECT_EQ(halves.run(cast(f64, third), {.wide_floats = true}).get_as_double(0), 1.0 / 3);
}

TEST(Interpret, intrinsics_in_both_precisions) {
  for (const Intrinsic& i : intrinsics()) {
    EXPECT_FALSE(i.doc.empty());
    if (i.wide == nullptr) continue;
    for (DType d : {DType::Float(16), f32, f64}) {
      std::vector<double> numbers{0.5, 0.25, 2.0};
      Opaque in;
      std::vector<PrimExpr> args;
      for (int k = 0; k < i.arity; ++k) args.push_back(in(d, numbers[static_cast<size_t>(k)]));
      bool test = i.rule == IntrinsicRule::Test;
      PrimExpr e = call(std::string(i.name), test ? DType::Bool() : d, args);
      double got = in.run(e).get_as_double(0), want = i.wide(0.5, 0.25, 2.0);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got)) << i.name;
      } else {
        EXPECT_NEAR(got, want, d == f64 ? 1e-15 : d == f32 ? 1e-6 : 2e-3) << i.name;
      }
    }
  }
  Opaque in;
  DType i8 = DType::Int(8);
  EXPECT_EQ(in.run(call("popcount", i8, {in.integer(i8, -1)})).get_as_int(0), 8);
  EXPECT_EQ(in.run(call("abs", i8, {in.integer(i8, -128)})).get_as_int(0), -128);
  EXPECT_EQ(in.run(call("abs", i64, {in.integer(i64, -5)})).get_as_int(0), 5);
  EXPECT_EQ(in.run(call("bitcast", DType::Int(32), {in(f32, 1)})).get_as_int(0), 0x3F800000);
  EXPECT_EQ(in.run(call("bitcast", DType::BFloat16(), {in.integer(DType::Int(16), 0x3F80)}))
                .get_as_double(0),
            1);
  DType i32 = DType::Int(32);
  EXPECT_EQ(in.run(call("byte_dot", i32,
                        {in.integer(i32, static_cast<int32_t>(0xFF020301u)),
                         in.integer(i32, static_cast<int32_t>(0x80057FFFu))}))
                .get_as_int(0),
            1 * -1 + 3 * 127 + 2 * 5 + 255 * -128);
  EXPECT_EQ(
      in.run(call("bfloat16_dot", f32, {in.integer(i32, 0x3F804000), in.integer(i32, 0x40403F00)}))
          .get_as_double(0),
      1 * 3 + 2 * 0.5);
  auto product = [&](int64_t a, int64_t b) {
    return in.run(call("fixed_point_product", i32, {in.integer(i32, a), in.integer(i32, b)}))
        .get_as_int(0);
  };
  EXPECT_EQ(product(3, 1 << 30), 2);    // 1.5: halves up
  EXPECT_EQ(product(-3, 1 << 30), -1);  // -1.5
  EXPECT_EQ(product(INT32_MIN, INT32_MAX), -INT32_MAX);
  EXPECT_EQ(product(INT32_MIN, INT32_MIN), INT32_MIN);  // the low bits of 2^31
  EXPECT_EQ(in.run(call("likely", DType::Bool(), {lt(in(f32, 1), in(f32, 2))})).get_as_int(0), 1);
}

TEST(Interpret, expressions_a_hundred_thousand_deep) {
  Opaque in;
  PrimExpr x = in(f64, 1), y = in(f64, 2);
  PrimExpr sum = x, lets = x, choices = x;
  for (int i = 0; i < 100000; ++i) {
    sum = sum * y - sum;
    Var v = var("v", f64);
    lets = let(v, lets, v + y);
    choices = select(lt(choices, y), choices + x, x);
  }
  EXPECT_EQ(in.run(sum).get_as_double(0), 1);
  EXPECT_EQ(in.run(lets).get_as_double(0), 200001);
  EXPECT_EQ(in.run(choices).get_as_double(0), 1);
}

TEST(Interpret, a_select_reads_only_the_chosen_side) {
  Buffer in = buffer("in", f32, {index(5)}), out = buffer("out", f32, {index(16)});
  for (int lanes : {1, 8}) {
    Var i = var("i");
    PrimExpr at = lanes == 1 ? PrimExpr(i) : ramp(i * lanes, index(1), lanes);
    PrimExpr inside = lt(at, broadcast(index(5), lanes));
    // Nested: of the lanes inside, the even ones once more.
    PrimExpr even = eq(floor_mod(at, broadcast(index(2), lanes)), broadcast(index(0), lanes));
    PrimExpr value = select(inside, select(even, load(in, {at}), load(in, {at}) * load(in, {at})),
                            broadcast(imm_float(f32, -1), lanes));
    Stmt body = for_(i, index(0), index(16 / lanes), store(out, {at}, value));
    Data a = Data::zeros(f32, {5}), c = Data::zeros(f32, {16});
    for (int k = 0; k < 5; ++k) a.set_from_double(k, k);
    ASSERT_EQ(interpret(kernel({in}, {out}, body), {a, c}, {}), 0);
    for (int k = 0; k < 16; ++k) {
      EXPECT_EQ(c.get_as_double(k), k >= 5 ? -1 : k % 2 == 0 ? k : k * k) << k;
    }
  }
}

// ---- Statements --------------------------------------------------------------------------------

TEST(Interpret, vectors_with_strides_and_predicates) {
  Buffer in = buffer("in", f32, {index(32)}), out = buffer("out", f32, {index(32)});
  PrimExpr back = load(in, {ramp(index(31), index(-1), 16)});
  PrimExpr mask = lt(ramp(index(20), index(1), 16), broadcast(index(32), 16));
  PrimExpr some = load(in, {ramp(index(20), index(1), 16)}, mask);
  Stmt body = seq({store(out, {ramp(index(0), index(2), 16)}, back),
                   store(out, {ramp(index(1), index(2), 16)}, some),
                   store(out, {ramp(index(30), index(1), 16)}, broadcast(imm_float(f32, 7), 16),
                         lt(ramp(index(0), index(1), 16), broadcast(index(2), 16)))});
  Data a = Data::zeros(f32, {32}), c = Data::zeros(f32, {32});
  for (int k = 0; k < 32; ++k) a.set_from_double(k, k);
  ASSERT_EQ(interpret(kernel({in}, {out}, body), {a, c}, {}), 0);
  for (int k = 0; k < 15; ++k) {
    EXPECT_EQ(c.get_as_double(2 * k), 31 - k);
    EXPECT_EQ(c.get_as_double(2 * k + 1), k < 12 ? 20 + k : 0);
  }
  EXPECT_EQ(c.get_as_double(30), 7);
  EXPECT_EQ(c.get_as_double(31), 7);
}

TEST(Interpret, a_load_is_not_remembered_across_a_store) {
  Buffer out = buffer("out", i64, {index(1)});
  PrimExpr old = load(out, {index(0)});
  Var i = var("i"), x = var("x");
  Stmt twice = store(out, {index(0)}, old + old);
  Stmt body = seq({store(out, {index(0)}, index(1)), twice, twice,
                   let_stmt(x, old, seq({twice, store(out, {index(0)}, old * 10 + x)})),
                   for_(i, index(0), index(3), twice)});
  Data t = Data::zeros(i64, {1});
  ASSERT_EQ(interpret(kernel({}, {out}, body), {t}, {}), 0);
  EXPECT_EQ(t.get_as_int(0), (8 * 10 + 4) * 8);
}

TEST(Interpret, a_variable_of_two_loops_has_the_value_of_each) {
  Var i = var("i");
  Buffer out = buffer("out", i64, {index(6)});
  PrimExpr shared = i * 3;
  Stmt body = seq({for_(i, index(0), index(3), store(out, {i}, shared)),
                   for_(i, index(3), index(3), store(out, {i}, shared), ForKind::Parallel),
                   for_(i, index(0), index(0), store(out, {index(100)}, shared)),
                   for_(i, index(0), index(-2), store(out, {index(100)}, shared))});
  Data t = Data::zeros(i64, {6});
  ASSERT_EQ(interpret(kernel({}, {out}, body), {t}, {}), 0);
  for (int k = 0; k < 6; ++k) EXPECT_EQ(t.get_as_int(k), k * 3);
}

TEST(Interpret, a_failed_check_ends_the_kernel_with_its_number) {
  Buffer out = buffer("out", i64, {index(8)});
  Var i = var("i");
  Stmt body = for_(i, index(0), index(8),
                   seq({check(lt(i, index(5)), RELAY_KERNEL_INDEX_OUT_OF_BOUNDS, "too far"),
                        if_(lt(i, index(2)), store(out, {i}, i), store(out, {i}, index(9)))}));
  Data t = Data::zeros(i64, {8});
  EXPECT_EQ(interpret(kernel({}, {out}, body), {t}, {}), RELAY_KERNEL_INDEX_OUT_OF_BOUNDS);
  EXPECT_EQ(values(t), (std::vector<double>{0, 1, 9, 9, 9, 0, 0, 0}));
}

TEST(Interpret, an_access_out_of_bounds_names_buffer_index_and_shape) {
  Buffer in = buffer("in", f32, {index(4), index(8)}), out = buffer("out", f32, {index(4)});
  Var i = var("i");
  Stmt body = for_(i, index(0), index(4), store(out, {i}, load(in, {i + 1, i * 2})));
  try {
    interpret(kernel({in}, {out}, body), {Data::zeros(f32, {4, 8}), Data::zeros(f32, {4})}, {});
    FAIL();
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find("in[4, 6] out of bounds of its shape [4, 8]"),
              std::string::npos)
        << e.what();
  }
  Stmt before = store(out, {index(-1)}, imm_float(f32, 1));
  EXPECT_THROW(interpret(kernel({}, {out}, before), {Data::zeros(f32, {4})}, {}), InternalError);
  Stmt run = store(out, {ramp(index(0), index(1), 4)}, load(in, {ramp(index(29), index(1), 4)}));
  EXPECT_THROW(
      interpret(kernel({in}, {out}, run), {Data::zeros(f32, {4, 8}), Data::zeros(f32, {4})}, {}),
      InternalError);
  EXPECT_THROW(
      interpret(kernel({in}, {out}, run), {Data::zeros(f32, {4, 9}), Data::zeros(f32, {4})}, {}),
      InternalError);
}

// However often the loops around run: nothing is computed there.
TEST(Interpret, a_nest_around_an_empty_loop_ends_at_once) {
  const PrimExpr many = index(int64_t{1} << 40);
  Tensor x = placeholder("x", f32, {many, index(0)});
  Tensor y = compute("y", {}, [&](const Indices&) {
    return sum({many, index(0)}, [&](const Indices& k) { return x(k); });
  });
  Data out = Data::zeros(f32, {});
  out.set_from_double(0, 7);
  EXPECT_EQ(interpret(create_prim_func("total", {x}, {y}),
                      {Data::zeros(f32, {int64_t{1} << 40, 0}), out}, {}),
            0);
  EXPECT_EQ(out.get_as_double(0), 0);
}

TEST(Interpret, elements_that_nothing_has_written_are_found) {
  Buffer in = buffer("in", f32, {index(4)}), out = buffer("out", f32, {index(2), index(3)});
  Buffer tmp = buffer("tmp", f32, {index(8)});
  Var i = var("i"), j = var("j");
  auto undefined = [&](const Stmt& body) {
    KernelInterpreter run(kernel({in}, {out}, body), {}, {.find_undefined = true});
    EXPECT_EQ(run.run({Data::zeros(f32, {4}), Data::zeros(f32, {2, 3})}), 0);
    return run.undefined();
  };
  auto all_but = [&](int64_t rows, const PrimExpr& value) {
    return for_(i, index(0), index(rows), for_(j, index(0), index(3), store(out, {i, j}, value)));
  };
  EXPECT_EQ(undefined(all_but(2, load(in, {index(3)}))), "");
  EXPECT_EQ(undefined(all_but(1, load(in, {index(3)}))), "leaves out[1, 0] unwritten");
  Var k = var("k");
  auto with_tmp = [&](int64_t written) {
    return allocate(tmp, seq({for_(k, index(0), index(written), store(tmp, {k}, imm_float(f32, 1))),
                              all_but(2, load(tmp, {j + 3}))}));
  };
  EXPECT_EQ(undefined(with_tmp(6)), "");
  EXPECT_EQ(undefined(with_tmp(4)), "reads tmp[4]");
  // Lanes of a vector, and lanes under a mask.
  PrimExpr lanes = load(tmp, {ramp(index(0), index(1), 8)});
  PrimExpr mask = lt(ramp(index(0), index(1), 8), broadcast(index(3), 8));
  PrimExpr some = load(tmp, {ramp(index(0), index(1), 8)}, mask);
  auto row = [&](const PrimExpr& value) {
    Stmt first = store(tmp, {ramp(index(0), index(1), 4)}, broadcast(imm_float(f32, 1), 4));
    Buffer wide = buffer("wide", f32, {index(8)});
    return allocate(tmp,
                    seq({first, allocate(wide, store(wide, {ramp(index(0), index(1), 8)}, value)),
                         all_but(2, load(tmp, {index(0)}))}));
  };
  EXPECT_EQ(undefined(row(lanes)), "reads tmp[4]");
  EXPECT_EQ(undefined(row(some)), "");
}

TEST(Interpret, memory_starts_out_as_asked_for) {
  Buffer out = buffer("out", i64, {index(1)}), tmp = buffer("tmp", i64, {index(1)});
  PrimFunc f = kernel({}, {out}, allocate(tmp, store(out, {index(0)}, load(tmp, {index(0)}))));
  Data t = Data::zeros(i64, {1});
  ASSERT_EQ(interpret(f, {t}, {}, {.poison = uint8_t{1}}), 0);
  EXPECT_EQ(t.get_as_int(0), 0x0101010101010101);
}

TEST(Interpret, limits_and_cancellation) {
  Buffer out = buffer("out", i64, {index(1)});
  Var i = var("i");
  Stmt body = for_(i, index(0), index(1000000), store(out, {index(0)}, i));
  PrimFunc f = kernel({}, {out}, body);
  Data t = Data::zeros(i64, {1});
  EXPECT_EQ(interpret(f, {t}, {}, {.max_steps = 1000000}), 0);
  EXPECT_THROW(interpret(f, {t}, {}, {.max_steps = 999999}), UserError);
  Buffer steps = buffer("steps", i64, {index(1)});
  PrimFunc slow =
      kernel({}, {steps}, for_(i, index(0), index(int64_t{1} << 50), store(steps, {index(0)}, i)));
  BudgetScope scope({.seconds = 0.05});
  EXPECT_THROW(interpret(slow, {t}, {}), UserError);
  EXPECT_EQ(
      interpret(kernel({}, {out},
                       allocate(buffer("big", i64, {index(1), index(int64_t{1} << 60)}), body)),
                {t}, {}),
      RELAY_KERNEL_OUT_OF_MEMORY);
}

}  // namespace
}  // namespace relay::tir
