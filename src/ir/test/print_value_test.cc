#include "ir/text/print_value.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/text/text.h"

namespace relay {
namespace {

using runtime::Value;

Module lists() {
  return parse_module("a.relay",
                      "#[version = \"0.0.5\"]\ntype List[A] { Cons(A, List[A]), Nil, }\n"
                      "type Color { Red, Green(bool), }\n");
}

Type list_of(const Type& element) { return type_call(global_type_var("List"), {element}); }

Value number(int64_t n) { return Tensor::scalar(n, DType::Int(32)); }

template <class T>
Tensor tensor(DType dtype, std::vector<int64_t> shape, std::vector<T> elements) {
  Tensor t = Tensor::empty(dtype, shape);
  for (size_t i = 0; i < elements.size(); ++i) t.data<T>()[i] = elements[i];
  return t;
}

TEST(PrintValue, scalars) {
  auto text = [](Tensor t) { return print_value(t, nullptr, nullptr); };
  EXPECT_EQ(text(Tensor::scalar(-3, DType::Int(64))), "-3");
  EXPECT_EQ(text(Tensor::scalar(int64_t{-1}, DType::UInt(64))), "18446744073709551615");
  EXPECT_EQ(text(Tensor::scalar(1, DType::Bool())), "True");
  EXPECT_EQ(text(Tensor::scalar(0.1, DType::Float(32))), "0.1");
  EXPECT_EQ(text(Tensor::scalar(0.1, DType::Float(64))), "0.1");
  EXPECT_EQ(text(Tensor::scalar(-INFINITY, DType::Float(32))), "-inf");
}

TEST(PrintValue, tensors) {
  auto text = [](Tensor t) { return print_value(t, nullptr, nullptr); };
  EXPECT_EQ(text(tensor<int32_t>(DType::Int(32), {2, 3}, {1, 2, 3, 4, 5, 6})),
            "[[1, 2, 3], [4, 5, 6]]");
  EXPECT_EQ(text(tensor<float>(DType::Float(32), {2, 1, 2}, {1, 2.5, 3, 4})),
            "[[[1, 2.5]], [[3, 4]]]");
  EXPECT_EQ(text(Tensor::zeros(DType::Float(32), {1})), "[0]");
  EXPECT_EQ(text(Tensor::zeros(DType::Float(32), {65})), "Tensor[(65,), float32]");
  EXPECT_EQ(text(Tensor::zeros(DType::Float(32), {2, 0})), "Tensor[(2, 0), float32]");
}

TEST(PrintValue, data_types_by_their_constructors) {
  Module mod = lists();
  Type t = list_of(scalar_type(DType::Int(32)));
  Value list = Value::adt(0, {number(1), Value::adt(0, {number(2), Value::adt(1, {})})});
  EXPECT_EQ(print_value(list, t, mod), "Cons(1, Cons(2, Nil))");
  Value colors =
      Value::adt(0, {Value::adt(1, {Value(Tensor::scalar(0, DType::Bool()))}), Value::adt(1, {})});
  EXPECT_EQ(print_value(colors, list_of(type_call(global_type_var("Color"), {})), mod),
            "Cons(Green(False), Nil)");
  EXPECT_EQ(print_value(list, nullptr, mod),
            "<constructor 0>(1, <constructor 0>(2, <constructor 1>))");
}

TEST(PrintValue, tuples_references_and_functions) {
  Value pair = Value::tuple({number(1), Value::ref(Value::tuple({number(2)}))});
  EXPECT_EQ(print_value(pair, nullptr, nullptr), "(1, ref((2,)))");
  EXPECT_EQ(print_value(Value::tuple({}), nullptr, nullptr), "()");
  Value f = Value::adopt(runtime::Cell::make(runtime::ObjectKind::closure, 7, 0));
  PrintValueOptions options;
  options.closure_name = [](int32_t tag) { return "f" + std::to_string(tag); };
  Type type = func_type({scalar_type(DType::Int(32))}, scalar_type(DType::Bool()));
  EXPECT_EQ(print_value(f, type, nullptr, options), "<@f7: fn (int32) -> bool>");
  EXPECT_EQ(print_value(f, nullptr, nullptr), "<fn>");
}

TEST(PrintValue, long_and_endless_values_are_cut) {
  Value list = Value::adt(1, {});
  for (int i = 0; i < 1000000; ++i) list = Value::adt(0, {number(i), list});
  PrintValueOptions options;
  options.max_values = 4;
  Type t = list_of(scalar_type(DType::Int(32)));
  EXPECT_EQ(print_value(list, t, lists(), options), "Cons(999999, Cons(999998, ...))");
  options.max_values = 100000;
  options.max_chain = 5;
  EXPECT_EQ(print_value(list, t, lists(), options),
            "Cons(999999, Cons(999998, ... 999997 more ... Cons(0, Nil)))");
  EXPECT_EQ(print_value(Value::tuple({list, number(7)}),
                        tuple_type({t, scalar_type(DType::Int(32))}), lists(), options),
            "(Cons(999999, Cons(999998, ... 999997 more ... Cons(0, Nil))), 7)");
  options.max_chain = 2'000'000;
  EXPECT_GT(print_value(list, t, lists(), options).size(), 500000u);
  options = {};
  EXPECT_LT(print_value(list, t, lists(), options).size(), 2000u);
  // A reference that holds itself.
  Value endless = Value::ref(number(0));
  auto* cell = static_cast<runtime::Cell*>(endless.object());
  runtime::release(cell->fields[0]);
  runtime::retain(cell);
  cell->fields[0] = cell;
  options.max_values = 3;
  EXPECT_EQ(print_value(endless, nullptr, nullptr, options), "ref(ref(ref(...)))");
  cell->fields[0] = nullptr;
  runtime::release(cell);
}

}  // namespace
}  // namespace relay
