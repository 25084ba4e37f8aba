// Tensor functions as text: what they compute, and what is no such text.
#include "extend/tensor_function.h"

#include <gtest/gtest.h>

#include "base/diagnostic.h"
#include "ir/text/text.h"
#include "runtime/core/kernel_abi.h"
#include "runtime/core/tensor.h"
#include "tir/interpret.h"

namespace relay::extend {
namespace {

using runtime::Tensor;

Tensor floats(const std::vector<int64_t>& shape, const std::vector<float>& values) {
  Tensor out = Tensor::empty(tir::DType::Float(32), shape);
  std::copy(values.begin(), values.end(), static_cast<float*>(out.data()));
  return out;
}

// Runs a function on tensors of constant sizes; the error code, and the first output.
std::pair<int64_t, std::vector<float>> run(const std::string& text,
                                           const std::vector<Tensor>& inputs, int64_t size) {
  TensorFunction f = TensorFunction::read("f", text);
  std::vector<tir::Tensor> places;
  for (const Tensor& t : inputs) {
    std::vector<tir::PrimExpr> shape;
    for (int64_t d : t.shape()) shape.push_back(tir::index(d));
    places.push_back(tir::placeholder("x" + std::to_string(places.size()), t.dtype(), shape));
  }
  tir::PrimFunc kernel = tir::create_prim_func("f", places, f.compute(places), {});
  std::vector<Tensor> buffers = inputs;
  buffers.push_back(Tensor::empty(tir::DType::Float(32), {size}));
  int64_t code = tir::interpret(kernel, buffers, {});
  auto* out = static_cast<const float*>(buffers.back().data());
  return {code, {out, out + size}};
}

using Floats = std::vector<float>;

TEST(TensorFunction, loops_buffers_and_conditions) {
  auto [code, out] = run(R"(
    def sums(x: float32[n, m]) -> (s: float32[n]):   # of rows
      for i in parallel(n):
        allocate t: float32[1]
        t[0] = 0f
        for j in range(1, m):
          let v = x[i, j]
          if v > 0f and not (v == 3f):
            t[0] = t[0] + v
          else:
            t[0] = t[0] - 1f
        s[i] = max(t[0], -5f) * float32(i + 1) / select(i == 0, 2f, 1e0f)
    )",
                         {floats({2, 4}, {9, 1, 2, 3, 9, 4, -1, 6})}, 2);
  EXPECT_EQ(code, 0);
  EXPECT_EQ(out, (Floats{1, 18}));
}

TEST(TensorFunction, indices_are_checked_where_they_may_be_outside) {
  const char* take =
      "def f(x: float32[n], i: int64[m]) -> (y: float32[m]):\n"
      "  for k in range(m):\n"
      "    y[k] = x[i[k]]\n";
  Tensor at = Tensor::empty(tir::DType::Int(64), {2});
  static_cast<int64_t*>(at.data())[0] = 1;
  static_cast<int64_t*>(at.data())[1] = 2;
  EXPECT_EQ(run(take, {floats({3}, {1, 2, 3}), at}, 2).second, (Floats{2, 3}));
  EXPECT_EQ(run(take, {floats({2}, {1, 2}), at}, 2).first, RELAY_KERNEL_INDEX_OUT_OF_BOUNDS);
  // What is not chosen is not read.
  const char* shifted =
      "def f(x: float32[n]) -> (y: float32[n]):\n"
      "  for k in range(n):\n"
      "    y[k] = select(k > 0, x[k - 1], 0f)\n";
  EXPECT_EQ(run(shifted, {floats({3}, {1, 2, 3})}, 3), (std::pair{int64_t{0}, Floats{0, 1, 2}}));
  const char* checked =
      "def f(x: float32[n]) -> (y: float32[n]):\n"
      "  check x[0] < 2f  # too large\n"
      "  for k in range(n):\n"
      "    y[k] = exp(x[k]) * 0f\n";
  EXPECT_EQ(run(checked, {floats({1}, {1})}, 1).first, 0);
  EXPECT_EQ(run(checked, {floats({1}, {2})}, 1).first, RELAY_KERNEL_CHECK_FAILED);
}

TEST(TensorFunction, operators_bind_as_in_the_tensor_ir) {
  auto [code, out] =
      run("def f(x: float32[n]) -> (y: float32[n]):\n"
          "  y[0] = 1f + 2f * 3f - 8f / 4f\n"
          "  y[1] = float32(-7 // 2)\n"
          "  y[2] = float32(-7 / 2)\n"
          "  y[3] = float32(-7 %% 4)\n"
          "  y[4] = float32(-7 % 4)\n"
          "  y[5] = float32(1 << 3 | 1 & 3 ^ 2)\n"
          "  y[6] = select(1 < 2 or 1 / 0 == 1, float32(0.5), nanf)\n"
          "  y[7] = float32(min(int32(3), int32(2)))\n",
          {floats({8}, Floats(8))}, 8);
  EXPECT_EQ(code, 0);
  EXPECT_EQ(out, (Floats{5, -4, -3, 1, -3, 11, 0.5, 2}));
}

TEST(TensorFunction, the_type_follows_from_the_sizes) {
  TensorFunction f = TensorFunction::read(
      "f", "def f(x: float32[n, 4], y: float32[n]) -> (a: float32[n], b: int32[4]):\n  pass\n");
  EXPECT_EQ(f.num_inputs(), 2U);
  auto type = [&](const char* x, const char* y) {
    return to_string(f.relation({parse_type(x), parse_type(y)}, {}));
  };
  EXPECT_EQ(type("Tensor[(3, 4), float32]", "Tensor[(3), float32]"),
            "(Tensor[(3,), float32], Tensor[(4,), int32])");
  for (auto [x, y] : {std::pair{"Tensor[(3, 5), float32]", "Tensor[(3), float32]"},
                      {"Tensor[(3, 4), float32]", "Tensor[(2), float32]"},
                      {"Tensor[(3, 4), float64]", "Tensor[(3), float32]"},
                      {"Tensor[(3), float32]", "Tensor[(3), float32]"}}) {
    try {
      type(x, y);
      FAIL() << x << y;
    } catch (const UserError& e) {
      EXPECT_EQ(e.diagnostics()[0].code, "E0912");
    }
  }
}

TEST(TensorFunction, must_fail_E1306_with_the_place) {
  const std::string head = "def f(x: float32[n], i: int64[n]) -> (y: float32[n]):\n  ";
  std::string nested = head + "y[0] = ";
  for (int n = 0; n < 100'000; ++n) nested += "(";
  std::string deep = "def f(x: float32[n]) -> (y: float32[n]):\n";
  for (size_t n = 1; n < 400; ++n) deep += std::string(n, ' ') + "if True:\n";
  const std::pair<std::string, std::string> kWrong[] = {
      {"", "empty"},
      {"def", "the name"},
      {"def f(x: float32[n])", "'->'"},
      {"def f(x: float32[n]) -> ():", "one tensor"},
      {"def f(x: float32[n]) -> (y: float32[m]):\n  pass", "no input"},
      {"def f(x: float32[n]) -> (x: float32[n]):\n  pass", "two things"},
      {"def f(x: text[n]) -> (y: float32[n]):\n  pass", "not a dtype"},
      {"def f(x: float32[1.5]) -> (y: float32[n]):\n  pass", "not a size"},
      {"def f(x: float32[n]) -> (y: float32[n]):", "no statements"},
      {head + "x[0] = 1f", "read only"},
      {head + "y[0] = 1", "holds float32"},
      {head + "y[0, 0] = 1f", "1 axis, not 2"},
      {head + "y[0f] = 1f", "an integer"},
      {head + "y[0] = x[0] + 1", "float32 and int64"},
      {head + "y[0] = True + True", "numbers"},
      {head + "y[0] = 1f // 2f", "integers"},
      {head + "y[0] = what(1f)", "no function 'what'"},
      {head + "y[0] = pow(1f)", "2 arguments"},
      {head + "y[0] = z", "no value 'z'"},
      {head + "y[0] = 1f 2f", "nothing more"},
      {head + "y[0] = 99999999999999999999", "too large"},
      {head + "for k in range(i[0]):\n    pass", "read from memory"},
      {head + "for k in range(3):\n  pass", "a block"},
      {head + "y[0] = 1f\n   y[0] = 2f", "deeper"},
      {head + "  y[0] = 1f\n   y[0] = 2f", "as no other"},
      {head + "allocate t: float32[1]\n  for k in parallel(n):\n    t[0] = 1f", "parallel"},
      {head + "while True:\n    pass", "no buffer 'while'"},
      {nested, "too deep"},
      {deep, "too deep"},
  };
  for (const auto& [text, message] : kWrong) {
    try {
      TensorFunction::read("mylib.op", text);
      ADD_FAILURE() << text.substr(0, 200);
    } catch (const UserError& e) {
      EXPECT_EQ(e.diagnostics()[0].code, "E1306") << e.what();
      EXPECT_NE(std::string(e.what()).find(message), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace relay::extend
