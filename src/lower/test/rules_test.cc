// What holds for the choice between the rules.
#include "lower/test/kernel_case.h"

namespace relay::lower_test {
namespace {

// x divided by its sums along one axis.
tir::PrimFunc shares(const std::vector<int64_t>& shape, size_t axis) {
  std::vector<PrimExpr> extents;
  for (int64_t n : shape) extents.push_back(index(n));
  auto without = [&](Indices i) {
    i.erase(i.begin() + static_cast<long>(axis));
    return i;
  };
  Tensor x = placeholder("x", f32, extents);
  Tensor sums = compute("sums", without(extents), [&](const Indices& i) {
    return tir::sum({extents[axis]}, [&](const Indices& k) {
      Indices at = i;
      at.insert(at.begin() + static_cast<long>(axis), k[0]);
      return x(at);
    });
  });
  return create_prim_func(
      "shares", {x},
      {compute("y", extents, [&](const Indices& i) { return div(x(i), sums(without(i))); })});
}

TEST(Rules, a_kernel_with_an_empty_axis_is_not_scheduled) {
  for (int64_t rows : {0, 3}) {
    for (int64_t columns : {0, 5}) {
      for (size_t axis : {0, 1, 2}) {
        bool empty = rows == 0 || columns == 0;
        std::string rule = rule_of(shares({rows, 2, columns}, axis));
        EXPECT_EQ(rule == "as composed: an extent is 0", empty)
            << rows << " " << columns << " " << axis << ": " << rule;
      }
    }
  }
}

}  // namespace
}  // namespace relay::lower_test
