// Narrow elements that change places: what their rule does with every number of rows and columns.
#include <cstring>

#include "codegen/backend.h"
#include "lower/test/kernel_case.h"
#include "tir/interpret.h"
#include "tir/text.h"
#include "tir/transposed_nest.h"

namespace relay::lower_test {
namespace {

using tir::index;
using tir::Tensor;

const DType s8 = DType::Int(8), u8 = DType::UInt(8), s16 = DType::Int(16), f16 = DType::Float(16),
            bf16 = DType::BFloat16();

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

runtime::Tensor some(const Buffer& b) {
  std::vector<int64_t> shape;
  for (const PrimExpr& d : b->shape) shape.push_back(*as_int(d));
  runtime::Tensor t = runtime::Tensor::empty(b->dtype, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) t.set_from_int(i, i * 37 % 101);
  return t;
}

std::string schedule_of(const PrimFunc& f, const Target& target) {
  return scheduled(f, target)->attrs.at("schedule");
}

void expect_turned(const PrimFunc& f) {
  std::vector<runtime::Tensor> args;
  for (const Buffer& b : f->params) args.push_back(some(b));
  runtime::Tensor expected = args.back().copy();
  std::vector<runtime::Tensor> plain(args.begin(), args.end() - 1);
  plain.push_back(expected);
  ASSERT_EQ(interpret(f, plain, {}), 0);
  for (const Target& target : codegen_test::runnable_targets()) {
    PrimFunc lowered = lower_loops(scheduled(f, target));
    SCOPED_TRACE(target.name + "\n" + to_string(lowered));
    ASSERT_NE(schedule_of(f, target).find("turned in blocks"), std::string::npos);
    // The nests are loops, which every machine runs.
    runtime::Tensor got = args.back().copy();
    plain.back() = got;
    ASSERT_EQ(interpret(lowered, plain, {}), 0);
    ASSERT_EQ(std::memcmp(got.data(), expected.data(), expected.byte_size()), 0);
    LoadedKernels jit = load_kernels({lowered}, target);
    for (auto side : {GuardedMemory::Side::Left, GuardedMemory::Side::Right}) {
      std::vector<std::unique_ptr<GuardedMemory>> memory;
      std::vector<void*> buffers;
      for (const runtime::Tensor& t : args) {
        memory.push_back(std::make_unique<GuardedMemory>(t.byte_size(), side));
        std::memcpy(memory.back()->data(), t.data(), t.byte_size());
        buffers.push_back(memory.back()->data());
      }
      TestContext context;
      ASSERT_EQ(context.run(jit.functions()[0], buffers.data(), nullptr), 0);
      ASSERT_EQ(std::memcmp(buffers.back(), expected.data(), expected.byte_size()), 0);
    }
  }
}

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

// Floats move as they are: signalling NaNs and numbers too small for arithmetic keep their bits.
TEST(Transposition, moves_every_bit) {
  for (DType d : {f16, bf16}) {
    PrimFunc f = turned(d, 1, 32, 24, false);
    runtime::Tensor x = some(f->params[0]), y = some(f->params[1]);
    auto* from = static_cast<uint16_t*>(x.data());
    auto* to = static_cast<const uint16_t*>(y.data());
    for (int i = 0; i < 32 * 24; ++i)
      from[i] = static_cast<uint16_t>(i * 85 + (i % 3 ? 0 : 0x7f01));
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

TEST(Transposition, leaves_what_is_wide_short_or_straight) {
  const Target target = parse_target("x86-64-v3");
  auto rule = [&](const PrimFunc& f) { return schedule_of(f, target); };
  EXPECT_EQ(rule(turned(f32, 1, 64, 64, false)).find("turned"), std::string::npos);
  EXPECT_EQ(rule(turned(s8, 8, 3, 64, false)).find("turned"), std::string::npos);
  Tensor x = placeholder("x", s8, {index(64), index(64)});
  // Elements that are read under a condition may lie outside of the tensor.
  Tensor bordered = compute("y", {index(66), index(64)}, [&](const Indices& i) {
    return select(lt(i[0], index(64)), x(i[1], i[0]), PrimExpr(cast(s8, index(0))));
  });
  EXPECT_EQ(rule(create_prim_func("f", {x}, {bordered})).find("turned"), std::string::npos);
  // One tensor along both axes.
  Tensor both = compute("y", {index(64), index(64)},
                        [&](const Indices& i) { return x(i[0], i[1]) + x(i[1], i[0]); });
  EXPECT_EQ(rule(create_prim_func("f", {x}, {both})).find("turned"), std::string::npos);
}

}  // namespace
}  // namespace relay::lower_test
