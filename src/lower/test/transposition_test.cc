// Elements that change places: what their rule does with every number of rows and columns.
#include "codegen/backend.h"
#include "lower/test/same_bits.h"
#include "tir/schedule/schedule.h"
#include "tir/transposed_nest.h"

namespace relay::lower_test {
namespace {

using tir::index;
using tir::Tensor;

const DType s8 = DType::Int(8), u8 = DType::UInt(8), s16 = DType::Int(16), f16 = DType::Float(16),
            bf16 = DType::BFloat16(), s32 = DType::Int(32), s64 = DType::Int(64),
            f64 = DType::Float(64);

// y[b, j, i] of x[b, i, j]; with `wide`, as twice the number in float32, plus a tensor that lies straight.
PrimFunc turned(DType d, int64_t b, int64_t m, int64_t n, bool wide) {
  Tensor x = placeholder("x", d, {index(b), index(m), index(n)});
  Tensor z = placeholder("z", f32, {index(b), index(n), index(m)});
  Tensor y = compute("y", {index(b), index(n), index(m)}, [&](const Indices& i) {
    PrimExpr v = x(i[0], i[2], i[1]);
    return wide ? cast(f32, v) * imm_float(f32, 2) + z(i) : v;
  });
  return create_prim_func("turned", wide ? std::vector{x, z} : std::vector{x}, {y});
}

std::string schedule_of(const PrimFunc& f, const Target& target) {
  return tir::report_of(*scheduled(f, target)).sentence;
}

void expect_turned(const PrimFunc& f) { expect_same_bits(f, "transposed in blocks"); }

TEST(Transposition, any_number_of_rows_and_columns) {
  for (int64_t m : {7, 16, 30}) {
    for (int64_t n : {5, 16, 31}) {
      expect_turned(turned(m % 2 == 0 ? s8 : u8, 2, m, n, false));
      expect_turned(turned(s16, 1, m, n, n == 16));
    }
  }
  expect_turned(turned(s8, 3, 20, 50, true));
  expect_turned(turned(f16, 2, 20, 50, true));
  expect_turned(turned(bf16, 2, 16, 24, true));
}

TEST(Transposition, wide_elements_in_blocks_of_a_vector) {
  for (int64_t m : {4, 7, 16, 30}) {
    for (int64_t n : {5, 16, 31, 40}) {
      expect_turned(turned(m % 2 == 0 ? f32 : s32, 2, m, n, n == 16));
      expect_turned(turned(m % 2 == 0 ? f64 : s64, 1, m, n, false));
    }
  }
}

// y[i // 32, j, i % 32, e] of x[i, j * word + e], as weights are packed for products of words.
PrimFunc packed_words(DType d, int64_t n, int64_t words, int64_t word) {
  constexpr int64_t kPanel = 32;
  Tensor x = placeholder("x", d, {index(n), index(words * word)});
  Tensor y = compute("y", {index(n / kPanel), index(words), index(kPanel), index(word)},
                     [&](const Indices& i) { return x(i[0] * kPanel + i[2], i[1] * word + i[3]); });
  return create_prim_func("packed", {x}, {y});
}

TEST(Transposition, neighbours_that_move_together_are_one_element) {
  for (int64_t words : {4, 16, 37}) {
    expect_turned(packed_words(bf16, 64, words, 2));
    expect_turned(packed_words(u8, 64, words, 4));
    expect_turned(packed_words(f32, 32, words, 2));
  }
}

// Three elements are no wider element, nor are four of 32 bits.
TEST(Transposition, other_neighbours_do_not_move_together) {
  for (const PrimFunc& f : {packed_words(bf16, 64, 16, 3), packed_words(f32, 64, 16, 4)}) {
    const std::string sentence = schedule_of(f, codegen_test::text_target());
    EXPECT_EQ(sentence.find("transposed"), std::string::npos) << sentence;
  }
}

// Of 96 rows the columns that are left over follow 32 rows of whole blocks, not all of them.
TEST(Transposition, columns_left_over_follow_the_rows_of_a_block) {
  for (int64_t rows : {96, 99}) {
    expect_turned(turned(f32, 1, 37, rows, false));
    expect_turned(turned(f32, 2, 21, rows, true));
    expect_turned(turned(u8, 2, 37, rows, false));
  }
  const PrimFunc f = scheduled(turned(f32, 1, 37, 96, false), codegen_test::text_target());
  EXPECT_TRUE(isa<tir::ForNode>(f->body)) << to_string(f);
}

// y[c, n*n*n] of x[n*n*n, c] or, `back`, the other way round. Such a product may wrap for all that an analyzer knows, so it
// does not prove that blocks fill the first part of a partition.
Case cubes_turned(int64_t n, int64_t c, bool back) {
  tir::Var size = tir::var("n");
  const PrimExpr cube = size * size * size;
  std::vector<PrimExpr> lines{index(c), cube}, pixels{cube, index(c)};
  Tensor x = placeholder("x", f32, back ? lines : pixels);
  Tensor y = compute("y", back ? pixels : lines, [&](const Indices& i) { return x(i[1], i[0]); });
  const int64_t count = n * n * n, rows = back ? count : c, columns = back ? c : count;
  Case out{create_prim_func("turned", {x}, {y}, {size}),
           {random_floats(static_cast<size_t>(rows * columns), 3)},
           {},
           {n}};
  for (int64_t i = 0; i < rows * columns; ++i) {
    out.expected.push_back(out.inputs[0][static_cast<size_t>(i % columns * rows + i / columns)]);
  }
  return out;
}

TEST(Transposition, sizes_that_are_products_of_many) {
  for (int64_t n : {1, 2, 3}) {
    for (int64_t c : {5, 16, 40}) {
      for (bool back : {false, true}) {
        expect_right(cubes_turned(n, c, back), "loops: y transposed in blocks of 16x16");
      }
    }
  }
}

// y[b, c, n, m] of x[b, n, m, c] or, `back`, the other way round, where a run says how long n and m are; with `wide`, twice the
// number plus one that lies straight.
Case open_turned(int64_t b, int64_t n, int64_t m, int64_t c, bool back, bool wide = false) {
  tir::Var height = tir::var("n"), width = tir::var("m");
  std::vector<PrimExpr> lines{index(b), index(c), height, width},
      pixels{index(b), height, width, index(c)};
  Tensor x = placeholder("x", f32, back ? lines : pixels);
  Tensor z = placeholder("z", f32, back ? pixels : lines);
  Tensor y = compute("y", back ? pixels : lines, [&](const Indices& i) {
    PrimExpr v = back ? x(i[0], i[3], i[1], i[2]) : x(i[0], i[2], i[3], i[1]);
    return wide ? v * imm_float(f32, 2) + z(i) : v;
  });
  const auto size = static_cast<size_t>(b * n * m * c);
  Case out{
      create_prim_func("turned", wide ? std::vector{x, z} : std::vector{x}, {y}, {height, width}),
      {random_floats(size, 3)},
      {},
      {n, m}};
  if (wide) out.inputs.push_back(random_floats(size, 4));
  const int64_t rows = back ? n * m : c, columns = back ? c : n * m;
  for (int64_t i = 0; i < b * rows * columns; ++i) {
    const int64_t row = i / columns % rows, column = i % columns;
    const int64_t from = i / (rows * columns) * (rows * columns) + column * rows + row;
    const float v = out.inputs[0][static_cast<size_t>(from)];
    out.expected.push_back(wide ? 2 * v + out.inputs[1][static_cast<size_t>(i)] : v);
  }
  return out;
}

// Two neighbouring axes that stay neighbours are one.
TEST(Transposition, blocks_of_open_rows_and_columns) {
  for (bool back : {false, true}) {
    for (int64_t n : {0, 7, 50}) {
      for (int64_t c : {24, 7}) {
        expect_right(open_turned(2, n, 1, c, back), "loops: y transposed in blocks of 16x16");
        if (n == 7)
          expect_right(open_turned(1, n, 5, c, back, true),
                       "loops: y transposed in blocks of 16x16");
      }
    }
  }
}

// y[j, i] of x[i, j], of which a run gives both.
TEST(Transposition, blocks_of_which_both_sides_are_open) {
  for (int64_t n : {15, 33}) {
    for (int64_t m : {1, 47}) {
      tir::Var rows = tir::var("n"), columns = tir::var("m");
      Tensor x = placeholder("x", f32, {rows, columns});
      Tensor y = compute("y", {columns, rows}, [&](const Indices& i) { return x(i[1], i[0]); });
      Case out{create_prim_func("turned", {x}, {y}, {rows, columns}),
               {random_floats(static_cast<size_t>(n * m), 3)},
               {},
               {n, m}};
      for (int64_t i = 0; i < n * m; ++i)
        out.expected.push_back(out.inputs[0][static_cast<size_t>(i % n * m + i / n)]);
      expect_right(out, "loops: y transposed in blocks of 16x16");
    }
  }
}

// Channels change places while they become the first axis: quotient and remainder of their number are axes of their own.
TEST(Transposition, shuffled_channels_in_blocks) {
  auto shuffled = [](DType d, int64_t groups, int64_t each, bool across) {
    const int64_t channels = groups * each;
    Tensor x = placeholder("x", d, {index(across ? 21 : channels), index(across ? channels : 21)});
    Tensor y = compute("y", {index(channels), index(21)}, [&](const Indices& i) {
      PrimExpr from = floor_mod(i[0], index(groups)) * each + floor_div(i[0], index(groups));
      return across ? x(i[1], from) : x(from, i[1]);
    });
    return create_prim_func("shuffled", {x}, {y});
  };
  for (int64_t groups : {4, 2}) {
    expect_turned(shuffled(f32, groups, 16, true));
    expect_turned(shuffled(s8, groups, 24, true));
  }
  // Lines that stay lines are copied as they are.
  EXPECT_EQ(schedule_of(shuffled(f32, 4, 16, false), codegen_test::text_target()),
            "loops: y 16 lanes");
}

// y[(4 a + b) 3 + c, h, w] of x[c, 4 h + a, 4 w + b]: a quotient of the axis is divided again.
TEST(Transposition, places_in_blocks_of_pixels_become_channels_in_blocks) {
  for (int64_t width : {33, 6}) {
    Tensor x = placeholder("x", f32, {index(3), index(20), index(4 * width)});
    Tensor y = compute("y", {index(48), index(5), index(width)}, [&](const Indices& i) {
      PrimExpr place = floor_div(i[0], index(3));
      return x(floor_mod(i[0], index(3)), i[1] * 4 + floor_div(place, index(4)),
               i[2] * 4 + floor_mod(place, index(4)));
    });
    expect_turned(create_prim_func("blocks", {x}, {y}));
  }
}

// y[c, h, w] of what a transposed convolution with the stride makes at each pixel, without the first row and column.
TEST(Transposition, places_between_pixels_in_blocks) {
  auto spread = [](DType d, int64_t channels, int64_t stride, int64_t pixels) {
    const int64_t size = pixels * stride - 1;
    Tensor x =
        placeholder("x", d, {index(pixels), index(pixels), index(stride * stride * channels)});
    Tensor y = compute("y", {index(channels), index(size), index(size)}, [&](const Indices& i) {
      PrimExpr h = i[1] + 1, w = i[2] + 1, s = index(stride);
      PrimExpr place = (floor_mod(h, s) * stride + floor_mod(w, s)) * channels + i[0];
      return x(floor_div(h, s), floor_div(w, s), place);
    });
    return create_prim_func("spread", {x}, {y});
  };
  for (DType d : {s8, f32, f64}) {
    expect_turned(spread(d, 16, 3, 7));
    expect_turned(spread(d, 10, 2, 9));
  }
}

TEST(Transposition, two_or_three_columns_are_written_row_behind_row) {
  for (DType d : {s8, f16, f32, f64}) {
    for (int64_t n : {2, 3}) {
      // y[b, j, i] has as few columns as x has rows.
      for (int64_t rows : {5, 16, 39}) expect_turned(turned(d, 2, n, rows, false));
    }
  }
}

// y[n, h, w, c] of x[n, c, h, w], plus what lies as y does.
PrimFunc channels_last(int64_t n, int64_t c, int64_t h, int64_t w, bool swaps) {
  Tensor x =
      placeholder("x", f32, {index(n), index(c), index(swaps ? w : h), index(swaps ? h : w)});
  Tensor z = placeholder("z", f32, {index(n), index(h), index(w), index(c)});
  Tensor y = compute("y", z->shape(), [&](const Indices& i) {
    return x(i[0], i[3], swaps ? i[2] : i[1], swaps ? i[1] : i[2]) + z(i);
  });
  return create_prim_func("channels_last", {x, z}, {y});
}

TEST(Transposition, axes_that_stay_neighbours_are_one) {
  const Target target = parse_target("x86-64-v3");
  for (int64_t size : {5, 7, 9}) {
    PrimFunc f = channels_last(2, 24, size, 7, false);
    expect_turned(f);
    EXPECT_EQ(scheduled(f, target)->params[0]->shape.size(), 3);
  }
  // Height and width change places as well.
  PrimFunc swapped = channels_last(2, 24, 9, 7, true);
  expect_turned(swapped);
  EXPECT_EQ(scheduled(swapped, target)->params[0]->shape.size(), 4);
}

// Floats move as they are: signalling NaNs and numbers too small for arithmetic keep their bits.
template <typename Bits>
void expect_bits_to_move(DType d, Bits signalling) {
  PrimFunc f = turned(d, 1, 32, 24, false);
  runtime::Tensor x = some(f->params[0]), y = some(f->params[1]);
  auto* from = static_cast<Bits*>(x.data());
  auto* to = static_cast<const Bits*>(y.data());
  for (int i = 0; i < 32 * 24; ++i)
    from[i] = static_cast<Bits>(static_cast<Bits>(i * 85) + (i % 3 ? Bits{0} : signalling));
  {
    for (const Target& target : codegen_test::runnable_targets()) {
      LoadedKernels jit = load_kernels({lower_loops(scheduled(f, target))}, target);
      TestContext context;
      void* buffers[] = {x.data(), y.data()};
      ASSERT_EQ(context.run(jit.functions()[0], buffers, nullptr), 0);
      for (int i = 0; i < 32; ++i) {
        for (int j = 0; j < 24; ++j) {
          ASSERT_EQ(to[j * 32 + i], from[i * 24 + j]) << d.to_string() << " " << target.name;
        }
      }
    }
  }
}

TEST(Transposition, moves_every_bit) {
  expect_bits_to_move<uint16_t>(f16, 0x7f01);
  expect_bits_to_move<uint16_t>(bf16, 0x7f01);
  expect_bits_to_move<uint32_t>(f32, 0x7f800001);
  expect_bits_to_move<uint64_t>(f64, 0x7ff0000000000001);
}

// y[c, h, w] of an image [h, w, c] that is read from its even and odd lines and columns, which lie apart.
PrimFunc spread(int64_t c, int64_t h, int64_t w, bool divides) {
  const int64_t half = divides ? 1 : 2;
  Tensor x =
      placeholder("x", f32, {index(2), index(2), index(half * h), index(half * w), index(c)});
  Tensor image = compute("image", {index(2 * h), index(2 * w), index(c)}, [&](const Indices& i) {
    if (!divides) return x(index(0), index(1), i[0], i[1], i[2]);
    return x(floor_mod(i[0], index(2)), floor_mod(i[1], index(2)), floor_div(i[0], index(2)),
             floor_div(i[1], index(2)), i[2]);
  });
  Tensor y = compute("y", {index(c), index(2 * h), index(2 * w)},
                     [&](const Indices& i) { return image(i[1], i[2], i[0]); });
  return create_prim_func("spread", {x}, {y});
}

TEST(Transposition, what_is_read_through_quotients_is_made_in_lines_first) {
  expect_turned(spread(20, 3, 9, true));
  const Target target = parse_target("x86-64-v3");
  auto blocks = [&](const PrimFunc& f) {
    return tir::Schedule(scheduled(f, target)).get_blocks().size();
  };
  EXPECT_GT(blocks(spread(16, 4, 8, true)), 1);
  EXPECT_EQ(blocks(spread(16, 4, 8, false)), 1);
  // Two moves that undo each other: neighbours stay so without any lines.
  Tensor x = placeholder("x", f32, {index(14), index(14), index(48)});
  Tensor flat = compute("flat", {index(48), index(196)}, [&](const Indices& i) {
    return x(floor_div(i[1], index(14)), floor_mod(i[1], index(14)), i[0]);
  });
  Tensor back =
      compute("back", {index(196), index(48)}, [&](const Indices& i) { return flat(i[1], i[0]); });
  EXPECT_EQ(blocks(create_prim_func("back", {x}, {back})), 1);
  // Too short to be turned.
  EXPECT_EQ(blocks(spread(2, 4, 8, true)), 1);
}

int64_t count(const std::string& text, const std::string& word) {
  int64_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

TEST(Transposition, a_block_is_loads_shuffles_and_stores) {
  const Target target = parse_target("x86-64-v3");
  PrimFunc f = lower_loops(scheduled(turned(s8, 1, 16, 16, false), target));
  std::string text = backend_of(target).text(CodeText::Assembly, {f}, target);
  EXPECT_EQ(count(text, "\tvpunpck"), 64) << text;
  EXPECT_EQ(count(text, "\tvpinsrb") + count(text, "\tvpextrb") + count(text, "\tmovb"), 0) << text;
}

// Sixteen rows of four parts: each part is loaded where it is needed, and half of the rows' elements move at a time.
TEST(Transposition, a_block_of_wide_elements_is_turned_part_beside_part) {
  const Target target = parse_target("x86-64-v4");
  PrimFunc f = lower_loops(scheduled(turned(f32, 1, 16, 16, false), target));
  std::string text = backend_of(target).text(CodeText::Assembly, {f}, target);
  EXPECT_EQ(count(text, "\tvinsert"), 48) << text;
  EXPECT_EQ(count(text, "\tvunpck") + count(text, "\tvpunpck") + count(text, "\tvshuf"), 32)
      << text;
  EXPECT_EQ(count(text, "\tvpinsr") + count(text, "\tvextract") + count(text, "\tvgather"), 0)
      << text;
}

// Axes of size 1 behind the last one that is turned and between those that move together.
TEST(Transposition, axes_of_one_element_hide_no_others) {
  Tensor x = placeholder("x", f32, {index(21), index(1), index(37), index(1), index(2)});
  Tensor y = compute("y", {index(1), index(37), index(2), index(21), index(1)},
                     [&](const Indices& i) { return x(i[3], i[0], i[1], i[4], i[2]); });
  PrimFunc f = create_prim_func("f", {x}, {y});
  expect_turned(f);
  EXPECT_EQ(scheduled(f, codegen_test::text_target())->params[0]->shape.size(), 2);
}

// The gradient of a rectifier whose data lies in another order than its result.
TEST(Transposition, choices_between_elements_inside) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{32, 48}, {21, 37}}) {
    Tensor x = placeholder("x", f32, {index(2), index(m), index(n)});
    Tensor w = placeholder("w", f32, {index(2), index(m), index(n)});
    Tensor z = placeholder("z", f32, {index(2), index(n), index(m)});
    Tensor y = compute("y", {index(2), index(n), index(m)}, [&](const Indices& i) {
      return select(gt(x(i[0], i[2], i[1]), imm_float(f32, 0)), z(i) + w(i[0], i[2], i[1]),
                    imm_float(f32, 0));
    });
    expect_turned(create_prim_func("chosen", {x, w, z}, {y}));
  }
}

// y[i, h, w, c] of x[i, c, h w] and z[i, c, h, w], the former reshaped: quotients and remainders of the number of an element.
TEST(Transposition, quotients_by_constants_that_sizes_decide_are_none) {
  for (auto [h, w] : {std::pair<int64_t, int64_t>{8, 32}, {5, 21}}) {
    const int64_t channels = 16, places = h * w;
    Tensor x = placeholder("x", f32, {index(3), index(channels), index(places)});
    Tensor z = placeholder("z", f32, {index(3), index(channels), index(h), index(w)});
    Tensor y = compute("y", {index(3), index(h), index(w), index(channels)}, [&](const Indices& i) {
      const PrimExpr at = ((i[0] * channels + i[3]) * index(h) + i[1]) * index(w) + i[2];
      const PrimExpr row = floor_div(at, index(places));
      const PrimExpr element = x(floor_div(row, index(channels)), floor_mod(row, index(channels)),
                                 floor_mod(at, index(places)));
      return select(gt(z(i[0], i[3], i[1], i[2]), imm_float(f32, 0)), element, imm_float(f32, 0));
    });
    const PrimFunc f = create_prim_func("reshaped", {x, z}, {y});
    expect_turned(f);
    EXPECT_EQ(to_string(scheduled(f, parse_target("x86-64-v3"))).find("%%"), std::string::npos);
  }
}

TEST(Transposition, leaves_what_is_short_or_straight) {
  const Target target = parse_target("x86-64-v3");
  auto rule = [&](const PrimFunc& f) { return schedule_of(f, target); };
  EXPECT_EQ(rule(turned(f32, 8, 3, 64, true)).find("transposed"), std::string::npos);
  EXPECT_EQ(rule(turned(s8, 8, 3, 64, true)).find("transposed"), std::string::npos);
  EXPECT_EQ(rule(turned(s8, 8, 64, 3, false)).find("transposed"), std::string::npos);
  Tensor x = placeholder("x", s8, {index(64), index(64)});
  // Elements that are read under a condition and lie outside of the tensor.
  Tensor bordered = compute("y", {index(66), index(64)}, [&](const Indices& i) {
    return select(lt(i[0], index(64)), x(i[1], i[0]), PrimExpr(cast(s8, index(0))));
  });
  EXPECT_EQ(rule(create_prim_func("f", {x}, {bordered})).find("transposed"), std::string::npos);
  // One tensor along both axes.
  Tensor both = compute("y", {index(64), index(64)},
                        [&](const Indices& i) { return x(i[0], i[1]) + x(i[1], i[0]); });
  EXPECT_EQ(rule(create_prim_func("f", {x}, {both})).find("transposed"), std::string::npos);
}

}  // namespace
}  // namespace relay::lower_test
