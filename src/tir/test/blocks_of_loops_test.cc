// Loops that come out of blocks: where they do, what it computes, and what stands in the way.
#include "tir/blocks_of_loops.h"

#include "tir/test/invented_inputs.h"
#include "tir/verify.h"

namespace relay::tir {
namespace {

using Write = std::function<Stmt(const Buffer& x, const Buffer& out)>;

// A kernel that statements write, from x to out.
PrimFunc written(std::vector<PrimExpr> x, std::vector<PrimExpr> out, const Write& write) {
  Tensor input = placeholder("x", f32, std::move(x));
  Tensor output =
      imperative("out", f32, std::move(out), {input},
                 [&](const std::vector<Buffer>& in, const Buffer& to) { return write(in[0], to); });
  return create_prim_func("f", {input}, {output});
}

// A loop of that extent from 0.
Stmt loop(const char* name, int64_t extent, const std::function<Stmt(const PrimExpr&)>& body) {
  Var v = var(name);
  return for_(v, index(0), index(extent), body(v));
}

// The text of the opened function, which computes the same.
std::string opened(const PrimFunc& f) {
  PrimFunc out = blocks_of_loops(f);
  verify(out);
  expect_equal(run(f), run(out), to_string(out));
  return to_string(out);
}

void expect_refused(const PrimFunc& f, const std::string& reason) {
  try {
    blocks_of_loops(
        f, [](const StmtNode&) { return Span::range(SourceFile::make("a.py", "for i"), 0, 3); });
    FAIL() << "not refused: " << reason;
  } catch (const UserError& e) {
    const Diagnostic& d = e.diagnostics().front();
    EXPECT_EQ(d.code, "E0402");
    EXPECT_EQ(d.span.describe(), "a.py:1:1");
    EXPECT_NE(d.message.find(reason), std::string::npos) << d.message;
  }
}

TEST(BlocksOfLoops, independent_loops_come_out_and_the_reduction_stays) {
  PrimFunc f = written({index(4), index(5)}, {index(4)}, [](const Buffer& x, const Buffer& out) {
    return loop("i", 4, [&](const PrimExpr& i) {
      return seq({store(out, {i}, imm_float(f32, 0)), loop("k", 5, [&](const PrimExpr& k) {
                    return store(out, {i}, load(out, {i}) + load(x, {i, k}));
                  })});
    });
  });
  EXPECT_EQ(opened(f),
            "def f(x: float32[4, 5]) -> (out: float32[4]):\n"
            "  for i in range(4):\n"
            "    block out(i_1 = i):\n"
            "      reads out[i_1], x[i_1, 0:5]\n"
            "      writes out[i_1]\n"
            "      out[i_1] = 0f\n"
            "      for k in range(5):\n"
            "        out[i_1] = out[i_1] + x[i_1, k]\n");
}

TEST(BlocksOfLoops, a_scan_along_a_row_stays_and_the_rows_come_out) {
  PrimFunc f =
      written({index(4), index(5)}, {index(4), index(5)}, [](const Buffer& x, const Buffer& out) {
        return loop("i", 4, [&](const PrimExpr& i) {
          return loop("j", 5, [&](const PrimExpr& j) {
            PrimExpr before =
                select(gt(j, index(0)), load(out, {i, max(j - 1, index(0))}), imm_float(f32, 0));
            return store(out, {i, j}, before + load(x, {i, j}));
          });
        });
      });
  std::string text = opened(f);
  EXPECT_NE(text.find("block out(i_1 = i):"), std::string::npos) << text;
  EXPECT_NE(text.find("writes out[i_1, 0:5]"), std::string::npos) << text;
}

TEST(BlocksOfLoops, elements_side_by_side_are_of_their_own) {
  PrimFunc flat = written({index(20)}, {index(20)}, [](const Buffer& x, const Buffer& out) {
    return loop("i", 4, [&](const PrimExpr& i) {
      return loop("j", 5, [&](const PrimExpr& j) {
        PrimExpr at = i * 5 + (index(4) - j);
        return store(out, {at}, load(x, {at}));
      });
    });
  });
  std::string text = opened(flat);
  EXPECT_NE(text.find("block out(i_1 = i, j_1 = j):"), std::string::npos) << text;
}

TEST(BlocksOfLoops, loops_start_at_0_and_have_no_negative_extent) {
  Var i = var("i");
  PrimFunc late = written({index(6)}, {index(6)}, [&](const Buffer& x, const Buffer& out) {
    return seq({for_(i, index(2), index(4), store(out, {i}, load(x, {i})))});
  });
  std::string text = to_string(blocks_of_loops(late));
  EXPECT_NE(text.find("for i in range(4):"), std::string::npos) << text;
  EXPECT_NE(text.find("block out(i_1 = i + 2):"), std::string::npos) << text;
  PrimFunc never = written({index(6)}, {index(6)}, [&](const Buffer& x, const Buffer& out) {
    return for_(i, index(0), index(-3), store(out, {i}, load(x, {i})));
  });
  text = to_string(blocks_of_loops(never));
  EXPECT_NE(text.find("for i in range(0):"), std::string::npos) << text;
}

TEST(BlocksOfLoops, blocks_with_iterations_or_without_loops_stay) {
  Tensor x = placeholder("x", f32, {index(3)});
  Tensor y = compute("y", {index(3)}, [&](const Indices& i) { return x(i) + imm_float(f32, 1); });
  PrimFunc f = create_prim_func("f", {x}, {y});
  EXPECT_EQ(blocks_of_loops(f), f);
  PrimFunc one = written({index(3)}, {index(1)}, [](const Buffer& in, const Buffer& out) {
    return store(out, {index(0)}, load(in, {index(2)}));
  });
  EXPECT_EQ(blocks_of_loops(one), one);
}

TEST(BlocksOfLoops, what_stands_in_the_way_is_named) {
  auto vector = [](const std::function<Stmt(const Buffer&, const Buffer&, const PrimExpr&)>& body) {
    return written({index(9)}, {index(9)}, [&](const Buffer& x, const Buffer& out) {
      return loop("i", 4, [&](const PrimExpr& i) { return body(x, out, i); });
    });
  };
  expect_refused(vector([](const Buffer& x, const Buffer& out, const PrimExpr& i) {
                   return store(out, {i + 1}, load(out, {i}) + load(x, {i}));
                 }),
                 "an iteration of loop i reads out[i]");
  expect_refused(vector([](const Buffer& x, const Buffer& out, const PrimExpr& i) {
                   return store(out, {floor_div(i, index(2))}, load(x, {i}));
                 }),
                 "out[i // 2] is not an element of its own");
  expect_refused(vector([](const Buffer& x, const Buffer& out, const PrimExpr& i) {
                   return loop("j", 3, [&](const PrimExpr& j) {
                     return store(out, {i * 2 + j}, load(x, {i}));
                   });
                 }),
                 "is not an element of its own for each iteration of loop i");
  expect_refused(
      vector([](const Buffer& x, const Buffer& out, const PrimExpr& i) {
        return seq({store(out, {i}, load(x, {i})), store(out, {index(8) - i}, load(x, {i}))});
      }),
      "is not an element of its own for each iteration of loop i");
  // A name for what is read may be another element in each iteration.
  expect_refused(vector([](const Buffer& x, const Buffer& out, const PrimExpr& i) {
                   Var at = var("at");
                   return let_stmt(at, cast(kIndex, load(x, {i})),
                                   store(out, {i + at}, load(x, {i})));
                 }),
                 "out[i + at] is not an element of its own");
  expect_refused(written({index(4)}, {index(4)},
                         [](const Buffer& x, const Buffer& out) {
                           auto copy = [&](const PrimExpr& i) {
                             return store(out, {i}, load(x, {i}));
                           };
                           return seq({loop("i", 4, copy), loop("j", 4, copy)});
                         }),
                 "another loop, j, stands beside the outermost loop");
  expect_refused(written({index(4)}, {index(4)},
                         [](const Buffer& x, const Buffer& out) {
                           Var i = var("i");
                           return for_(i, index(0), cast(kIndex, load(x, {index(0)})),
                                       store(out, {i}, load(x, {i})));
                         }),
                 "the bounds of loop i are more than sizes");
}

}  // namespace
}  // namespace relay::tir
