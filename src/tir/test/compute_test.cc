#include "tir/compute.h"
#include "tir/test/dtypes.h"

#include <gtest/gtest.h>

namespace relay::tir {
namespace {

TEST(TirCompute, reduction_becomes_a_block_with_init) {
  Tensor a = placeholder("a", f32, {index(4), index(8)});
  Tensor s = compute("s", {index(4)}, [&](const Indices& i) {
    return sum({index(8)}, [&](const Indices& k) { return a(i[0], k[0]); });
  });
  EXPECT_EQ(to_string(create_prim_func("row_sum", {a}, {s})),
            R"(def row_sum(a: float32[4, 8]) -> (s: float32[4]):
  for i in range(4):
    for r in range(8):
      block s(i_1 = i, r_1: reduce = r):
        reads a[i_1, r_1]
        writes s[i_1]
        init:
          s[i_1] = 0f
        s[i_1] = s[i_1] + a[i_1, r_1]
)");
}

TEST(TirCompute, intermediates_are_allocated_in_dependency_order) {
  Tensor a = placeholder("a", f32, {index(4)});
  Tensor b = compute("b", {index(4)}, [&](const Indices& i) { return a(i) * imm_float(f32, 2); });
  Tensor c = compute("c", {index(4)}, [&](const Indices& i) { return b(i) + a(i); });
  EXPECT_EQ(to_string(create_prim_func("f", {a}, {c})),
            R"(def f(a: float32[4]) -> (c: float32[4]):
  allocate b: float32[4]
  for i in range(4):
    block b(i_1 = i):
      reads a[i_1]
      writes b[i_1]
      b[i_1] = a[i_1] * 2f
  for i_2 in range(4):
    block c(i_3 = i_2):
      reads b[i_3], a[i_3]
      writes c[i_3]
      c[i_3] = b[i_3] + a[i_3]
)");
}

TEST(TirCompute, gathered_dimension_is_read_whole) {
  Tensor data = placeholder("data", f32, {index(10), index(3)});
  Tensor at = placeholder("at", DType::Int(64), {index(5)});
  Tensor out =
      compute("out", {index(5), index(3)}, [&](const Indices& i) { return data(at(i[0]), i[1]); });
  std::string text = to_string(create_prim_func("take", {data, at}, {out}));
  EXPECT_NE(text.find("reads at[i_1], data[0:10, j_1]"), std::string::npos) << text;
}

TEST(TirCompute, an_output_given_twice_or_an_input_is_copied) {
  Tensor a = placeholder("a", f32, {index(4)});
  PrimFunc f = create_prim_func("same", {a}, {a});
  ASSERT_EQ(f->params.size(), 2u);
  EXPECT_NE(to_string(f).find("a_copy[i_1] = a[i_1]"), std::string::npos) << to_string(f);
}

TEST(TirCompute, argmax_combines_pairs) {
  Tensor a = placeholder("a", f32, {index(8)});
  Tensor m = compute("m", {}, [&](const Indices&) {
    return arg_reduce(Combiner::ArgMax, index(8), [&](const PrimExpr& k) { return a(k); });
  });
  std::string text = to_string(create_prim_func("argmax", {a}, {m}));
  EXPECT_NE(text.find("allocate m_value: float32[]"), std::string::npos) << text;
}

TEST(TirCompute, load_past_its_tensor_is_a_defect) {
  Tensor a = placeholder("a", f32, {index(4)});
  EXPECT_THROW(compute("b", {index(4)}, [&](const Indices& i) { return load(a->buffer, {i[0]}); }),
               InternalError);
  EXPECT_THROW(compute("b", {index(4)}, [&](const Indices& i) { return a(i[0], i[0]); }),
               InternalError);
}

}  // namespace
}  // namespace relay::tir
