// What holds for the choice between the rules.
#include "lower/test/same_bits.h"

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

// y[i, j, k] = min(x[i, k, j], 2), which reads each element twice: blocks of such a tensor are not transposed by shuffles.
Case transposed(int64_t batch, int64_t rows, int64_t columns) {
  Tensor x = placeholder("x", f32, {index(batch), index(columns), index(rows)});
  Case c;
  auto element = [&](const Indices& i) {
    PrimExpr two = imm_float(f32, 2);
    return select(lt(x(i[0], i[2], i[1]), two), x(i[0], i[2], i[1]), two);
  };
  c.func = create_prim_func("transposed", {x},
                            {compute("y", {index(batch), index(rows), index(columns)}, element)});
  c.inputs = {random_floats(static_cast<size_t>(batch * rows * columns), 7)};
  c.expected.resize(c.inputs[0].size());
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t k = 0; k < columns; ++k) {
        c.expected[static_cast<size_t>((b * rows + r) * columns + k)] =
            c.inputs[0][static_cast<size_t>((b * columns + k) * rows + r)];
      }
    }
  }
  return c;
}

TEST(Rules, what_is_read_across_lines_goes_in_blocks) {
  for (const auto& [rows, columns] :
       {std::pair{64, 32}, std::pair{37, 16}, std::pair{16, 64}, std::pair{40, 53}}) {
    Case c = transposed(2, rows, columns);
    expect_right(c, "loops: y ");
    EXPECT_NE(rule_of(c.func).find("lanes in blocks of 16"), std::string::npos) << rule_of(c.func);
  }
  // A line of the cache holds what neighbouring lanes read.
  EXPECT_EQ(rule_of(transposed(2, 4, 16).func).find("blocks of 16"), std::string::npos);
}

// y[i, j] = 2 * x[i, j]
Case doubled(int64_t rows, int64_t columns) {
  Tensor x = placeholder("x", f32, {index(rows), index(columns)});
  Case c;
  c.func = create_prim_func("doubled", {x},
                            {compute("y", {index(rows), index(columns)},
                                     [&](const Indices& i) { return x(i) * imm_float(f32, 2); })});
  c.inputs = {random_floats(static_cast<size_t>(rows * columns), 3)};
  for (float v : c.inputs[0]) c.expected.push_back(2 * v);
  return c;
}

// y[i, j] = x[i, j] + b[j], whose rows are not read as one.
Case biased(int64_t rows, int64_t columns) {
  Tensor x = placeholder("x", f32, {index(rows), index(columns)}),
         b = placeholder("b", f32, {index(columns)});
  Case c;
  c.func = create_prim_func("biased", {x, b},
                            {compute("y", {index(rows), index(columns)},
                                     [&](const Indices& i) { return x(i) + b(i[1]); })});
  c.inputs = {random_floats(static_cast<size_t>(rows * columns), 3),
              random_floats(static_cast<size_t>(columns), 4)};
  for (int64_t i = 0; i < rows * columns; ++i) {
    c.expected.push_back(c.inputs[0][static_cast<size_t>(i)] +
                         c.inputs[1][static_cast<size_t>(i % columns)]);
  }
  return c;
}

TEST(Rules, the_end_of_a_row_is_a_vector_with_a_mask) {
  for (int64_t columns : {17, 31, 33, 100, 255}) {
    expect_right(biased(3, columns), "loops: y 16 lanes");
  }
  expect_right(biased(5, 7), "loops: y");
  // Vectors of 8 and 4 elements, not three of 4.
  expect_right(biased(5, 12), "loops: y 12 lanes and fewer");
  expect_right(biased(5, 8), "loops: y 8 lanes");
}

TEST(Rules, rows_that_follow_each_other_are_one) {
  expect_right(doubled(5, 12), "loops: y 16 lanes");
  expect_right(doubled(5, 7), "loops: y 16 lanes");
}

// Whether elements above 0, a byte for each: lanes of 64 bytes lie across the ends of rows of 5 and of planes of 35.
TEST(Rules, bytes_of_short_rows_of_several_axes_are_lanes) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{3, 7, 5}, {2, 3, 7, 8}}) {
    std::vector<PrimExpr> extents;
    for (int64_t n : shape) extents.push_back(index(n));
    Tensor x = placeholder("x", f32, extents);
    const PrimFunc f = create_prim_func("above", {x}, {compute("y", extents, [&](const Indices& i) {
                                          return cast(DType::UInt(8), lt(imm_float(f32, 50), x(i)));
                                        })});
    expect_same_bits(f, "loops: y");
    EXPECT_EQ(scheduled(f, codegen_test::text_target())->params[0]->shape.size(), 2U);
  }
}

// Two tensors of `rows` x `columns` x `last`, one behind the other.
Case joined(int64_t rows, int64_t columns, int64_t last) {
  const std::vector<PrimExpr> shape{index(rows), index(columns), index(last)};
  Tensor x0 = placeholder("x0", f32, shape), x1 = placeholder("x1", f32, shape);
  auto element = [&](const Indices& i) {
    return select(lt(i[0], index(rows)), x0(i[0], i[1], i[2]), x1(i[0] - rows, i[1], i[2]));
  };
  Case c;
  c.func = create_prim_func(
      "joined", {x0, x1}, {compute("y", {index(2 * rows), index(columns), index(last)}, element)});
  const auto count = static_cast<size_t>(rows * columns * last);
  c.inputs = {random_floats(count, 3), random_floats(count, 4)};
  c.expected = c.inputs[0];
  c.expected.insert(c.expected.end(), c.inputs[1].begin(), c.inputs[1].end());
  return c;
}

TEST(Rules, rows_of_tensors_joined_along_an_outer_axis_are_one) {
  expect_right(joined(1, 15, 5), "loops: y 16 lanes");
  expect_right(joined(3, 4, 7), "loops: y 16 lanes");
}

// y[i, j] = x[i, j - low], with mirrored elements on both sides, of rows of `width`.
Case mirrored(int64_t rows, int64_t width, int64_t low, int64_t high) {
  Tensor x = placeholder("x", f32, {index(rows), index(width)});
  auto place = [&](int64_t j) {
    j -= low;
    j = j < 0 ? -j : j;
    return j >= width ? 2 * (width - 1) - j : j;
  };
  auto element = [&](const Indices& i) {
    PrimExpr j = i[1] - low;
    j = select(lt(j, index(0)), index(0) - j, j);
    j = select(ge(j, index(width)), index(2 * (width - 1)) - j, j);
    return x(i[0], min(max(j, index(0)), index(width - 1)));
  };
  Case c;
  const int64_t out = low + width + high;
  c.func = create_prim_func("mirrored", {x}, {compute("y", {index(rows), index(out)}, element)});
  c.inputs = {random_floats(static_cast<size_t>(rows * width), 3)};
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < out; ++j) {
      c.expected.push_back(c.inputs[0][static_cast<size_t>(i * width + place(j))]);
    }
  }
  return c;
}

TEST(Rules, ends_of_mirrored_elements_are_peeled) {
  for (const auto& [low, high] : {std::pair{3, 3}, std::pair{0, 8}, std::pair{8, 1}}) {
    for (int64_t width : {33, 64, 101}) {
      Case c = mirrored(3, width, low, high);
      expect_right(c, "loops: y");
      EXPECT_NE(rule_of(c.func).find("ends peeled"), std::string::npos) << rule_of(c.func);
    }
  }
  // Of short rows, borders of up to a half.
  for (const Case& c : {mirrored(3, 20, 3, 3), mirrored(3, 13, 1, 3), mirrored(5, 4, 2, 2)}) {
    expect_right(c, "loops: y");
    EXPECT_NE(rule_of(c.func).find("ends peeled"), std::string::npos) << rule_of(c.func);
  }
  // Long borders, and nothing to peel.
  for (const Case& c : {mirrored(3, 64, 9, 3), mirrored(3, 5, 3, 3), doubled(3, 100)}) {
    EXPECT_EQ(rule_of(c.func).find("ends peeled"), std::string::npos) << rule_of(c.func);
    expect_right(c, "loops: y");
  }
}

// y[i, j, k] = x[i % rows, j % columns, k] + b[j % columns, k]: rows of `columns` times `last` elements, `times` behind each other.
Case tiled(int64_t rows, int64_t columns, int64_t last, int64_t times) {
  Tensor x = placeholder("x", f32, {index(rows), index(columns), index(last)});
  Tensor b = placeholder("b", f32, {index(columns), index(last)});
  Case c;
  const std::vector<PrimExpr> shape{index(2 * rows), index(columns * times), index(last)};
  auto element = [&](const Indices& i) {
    PrimExpr j = floor_mod(i[1], index(columns));
    return x(floor_mod(i[0], index(rows)), j, i[2]) + b(j, i[2]);
  };
  c.func = create_prim_func("tiled", {x, b}, {compute("y", shape, element)});
  const int64_t part = columns * last;
  c.inputs = {random_floats(static_cast<size_t>(rows * part), 3),
              random_floats(static_cast<size_t>(part), 4)};
  for (int64_t i = 0; i < 2 * rows; ++i) {
    for (int64_t j = 0; j < times * part; ++j) {
      c.expected.push_back(c.inputs[0][static_cast<size_t>(i % rows * part + j % part)] +
                           c.inputs[1][static_cast<size_t>(j % part)]);
    }
  }
  return c;
}

TEST(Rules, parts_of_rows_are_rows) {
  for (const auto& [columns, last] :
       {std::pair{70, 1}, std::pair{17, 1}, std::pair{5, 1}, std::pair{4, 3}, std::pair{64, 2}}) {
    Case c = tiled(3, columns, last, 7);
    expect_right(c, "loops: y");
    const std::string text = to_string(scheduled(c.func, codegen_test::text_target()));
    EXPECT_EQ(text.find("%% " + std::to_string(columns)), std::string::npos) << text;
  }
  // Parts that fill no vector, one part, and no elements.
  for (const Case& c : {tiled(3, 3, 1, 50), tiled(3, 20, 1, 1), tiled(1, 2, 1, 1)}) {
    expect_right(c, "loops: y");
  }
  EXPECT_EQ(rule_of(tiled(3, 20, 1, 0).func), "as composed: an extent is 0");
}

TEST(Rules, lanes_run_along_an_axis_of_open_size) {
  tir::Var n = tir::var("n");
  Tensor x = placeholder("x", f32, {index(3), n});
  tir::PrimFunc f =
      create_prim_func("doubled", {x},
                       {compute("y", {index(3), n},
                                [&](const Indices& i) { return x(i) * tir::imm_float(f32, 2); })},
                       {n});
  EXPECT_NE(rule_of(f).find("y 16 lanes"), std::string::npos) << rule_of(f);
}

// y[i, j] = x[i, p[j]]: a mask would make a branch of each lane.
TEST(Rules, the_end_of_an_open_row_that_is_read_far_apart_is_no_vector) {
  tir::Var n = tir::var("n");
  Tensor x = placeholder("x", f32, {index(3), index(29)});
  Tensor p = placeholder("p", tir::kIndex, {n});
  auto vectors = [&](const std::function<PrimExpr(const Indices&)>& column) {
    const tir::PrimFunc f = create_prim_func(
        "taken", {x, p},
        {compute("y", {index(3), n}, [&](const Indices& i) { return x(i[0], column(i)); })}, {n});
    const std::string text = to_string(scheduled(f, codegen_test::text_target()));
    size_t found = 0;
    for (size_t at = 0; (at = text.find("in vectorized(", at)) != std::string::npos; ++at) ++found;
    return found;
  };
  EXPECT_EQ(vectors([&](const Indices& i) { return p(i[1]); }), 1u);
  EXPECT_EQ(vectors([&](const Indices&) { return p(index(0)); }), 2u);
}

// y[j, i, k] = x[i, 16 j + k]: a line of each row, the next one of another page.
TEST(Rules, rows_that_are_pages_apart_are_read_some_at_once) {
  auto panels = [](int64_t rows, int64_t columns) {
    Tensor x = placeholder("x", f32, {index(rows), index(columns)});
    return create_prim_func("panels", {x},
                            {compute("y", {index(columns / 16), index(rows), index(16)},
                                     [&](const Indices& i) { return x(i[1], i[0] * 16 + i[2]); })});
  };
  auto at_once = [&](int64_t rows, int64_t columns) {
    const std::string rule = rule_of(panels(rows, columns));
    const size_t end = rule.find(" far rows at once");
    return end == std::string::npos
               ? ""
               : rule.substr(rule.rfind(' ', end - 1) + 1, end - 1 - rule.rfind(' ', end - 1));
  };
  EXPECT_EQ(at_once(64, 1024), "8");
  EXPECT_EQ(at_once(12, 2048), "4");
  EXPECT_EQ(at_once(64, 512), "");
  EXPECT_EQ(at_once(13, 1024), "");
  EXPECT_EQ(at_once(64, 16), "");
  // Each line is where it belongs.
  Case c;
  const int64_t rows = 24, columns = 1040;
  c.func = panels(rows, columns);
  c.inputs = {random_floats(static_cast<size_t>(rows * columns), 7)};
  for (int64_t at = 0; at < rows * columns; ++at) {
    const int64_t k = at % 16, i = at / 16 % rows, j = at / 16 / rows;
    c.expected.push_back(c.inputs[0][static_cast<size_t>(i * columns + 16 * j + k)]);
  }
  expect_right(c, "loops: y 16 lanes, 8 far rows at once");
}

// y[i, j] = exp(x[i, j])
Case exponentials(int64_t rows, int64_t columns) {
  Tensor x = placeholder("x", f32, {index(rows), index(columns)});
  Case c;
  auto element = [&](const Indices& i) { return tir::call("exp", f32, {x(i)}); };
  c.func =
      create_prim_func("exponentials", {x}, {compute("y", {index(rows), index(columns)}, element)});
  c.inputs = {random_floats(static_cast<size_t>(rows * columns), 5)};
  for (float v : c.inputs[0]) c.expected.push_back(std::exp(v));
  return c;
}

TEST(Rules, what_long_iterations_read_of_memory_is_asked_for_ahead) {
  const int64_t columns = 256, rows = Target().l2_bytes / 2 / (columns * 4) + 1;
  auto prefetches = [](const Case& c) {
    return rule_of(c.func).find("operands prefetched") != std::string::npos;
  };
  Case c = exponentials(rows, columns);
  EXPECT_TRUE(prefetches(c)) << rule_of(c.func);
  expect_right(c, "loops: y");
  for (const Target& target : codegen_test::runnable_targets()) {
    // Vectors of less than a line would ask for each several times.
    std::string text = to_string(lower_loops(scheduled(c.func, target)));
    EXPECT_EQ(text.find("prefetch(x[") != std::string::npos, target.vector_bits == 512) << text;
  }
  // What half of L2 holds, and what is computed in a few instructions.
  EXPECT_FALSE(prefetches(exponentials(rows - 1, columns)));
  EXPECT_FALSE(prefetches(doubled(rows, columns)));
}

}  // namespace
}  // namespace relay::lower_test
