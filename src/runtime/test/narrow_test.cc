#include "runtime/core/narrow.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/core/tensor.h"

namespace relay::runtime {
namespace {

TEST(Narrow, every_element_is_what_it_was_after_a_round_trip) {
  for (DType::Code code : DType::kNarrow) {
    const NarrowFormat& f = narrow_format(code);
    for (int low = 0; low < 1 << f.bits; ++low) {
      double value = narrow_to_double(f, static_cast<uint8_t>(low));
      uint8_t back = double_to_narrow(f, value, false);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(narrow_to_double(f, back))) << f.name << " " << low;
      } else {
        EXPECT_EQ(back & ((1 << f.bits) - 1), low) << f.name << " " << value;
      }
    }
  }
}

TEST(Narrow, names_are_parsed) {
  for (DType::Code code : DType::kNarrow) {
    DType t = DType::Narrow(code);
    EXPECT_TRUE(t.valid());
    EXPECT_EQ(DType::parse(t.to_string()), t);
    EXPECT_FALSE(t.is_integer() || t.is_floating() || t.is_bool());
    EXPECT_EQ(t.bytes(), 1u);
  }
  EXPECT_FALSE(DType::from_key(uint32_t{DType::kFloat6E3M2FN + 1} << 24 | 8u << 16 | 1u).valid());
}

TEST(Narrow, what_is_too_large_is_the_greatest_or_infinite_or_no_number) {
  const NarrowFormat& fn = narrow_format(DType::kFloat8E4M3FN);
  EXPECT_EQ(narrow_to_double(fn, double_to_narrow(fn, 1e6, true)), 448);
  EXPECT_TRUE(std::isnan(narrow_to_double(fn, double_to_narrow(fn, 1e6, false))));
  const NarrowFormat& e5m2 = narrow_format(DType::kFloat8E5M2);
  EXPECT_EQ(narrow_to_double(e5m2, double_to_narrow(e5m2, -1e9, true)), -57344);
  EXPECT_EQ(narrow_to_double(e5m2, double_to_narrow(e5m2, 1e9, false)),
            std::numeric_limits<double>::infinity());
}

TEST(Narrow, integers_wrap) {
  Tensor t = Tensor::zeros(DType::Narrow(DType::kInt4), {2});
  t.set_from_int(0, 9);
  t.set_from_double(1, -9.5);
  EXPECT_EQ(t.get_as_int(0), -7);
  EXPECT_EQ(t.get_as_int(1), 7);
}

}  // namespace
}  // namespace relay::runtime
