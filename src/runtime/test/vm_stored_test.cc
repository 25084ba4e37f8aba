// The stored form of programs, their text, profiles and speed.
#include <chrono>

#include "runtime/profiler.h"
#include "runtime/test/vm_program.h"

namespace relay::runtime {
namespace {

TEST_F(VmTest, programs_survive_writing_and_reading) {
  static_program();
  FunctionBuilder f("dynamic");
  dynamic_copy(f);
  put(std::move(f));
  string("a message");
  std::string bytes = write_program(program);
  Program back = read_program(bytes);
  EXPECT_EQ(back.functions, program.functions);
  EXPECT_EQ(back.kernels, program.kernels);
  EXPECT_EQ(back.strings, program.strings);
  EXPECT_EQ(write_program(back), bytes);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(read_program(std::string_view(bytes).substr(0, size)), UserError) << size;
  }
}

TEST_F(VmTest, disassembly) {
  static_program();
  EXPECT_EQ(to_string(program),
            "fn main(x: Tensor[(8,), float32]) -> (y: Tensor[(8,), float32])  // registers 1, "
            "integers 0, arena 64\n"
            "  0: invoke_kernel twice(r0, arena[0+32])\n"
            "  1: invoke_kernel add(arena[0+32], const0, out0)\n"
            "  2: ret_outputs\n");
}

TEST_F(VmTest, profile_counts_kernels_and_makes_a_trace) {
  static_program();
  Module m = module();
  Profiler profiler;
  RunOptions options;
  options.profiler = &profiler;
  for (int i = 0; i < 3; ++i) m.run("main", {vector8(1)}, options);
  EXPECT_EQ(profiler.num_runs(), 3);
  std::vector<Profiler::Row> rows = profiler.rows(m.program());
  ASSERT_EQ(rows.size(), 2u);
  int64_t total = 0;
  for (const Profiler::Row& row : rows) {
    EXPECT_EQ(row.calls, 3);
    EXPECT_EQ(row.work.flops, 8);
    total += row.total_ns;
  }
  EXPECT_LE(total, profiler.run_ns());
  std::string trace = profiler.chrome_trace(m.program());
  EXPECT_NE(trace.find("\"origin\": \"add1 + relu1\""), std::string::npos);
  EXPECT_NE(trace.find("\"ph\": \"X\""), std::string::npos);
}

// The cost of a kernel call in a static region; the bound is loose because machines are shared.
TEST_F(VmTest, kernel_calls_are_cheap) {
  FunctionBuilder f("main");
  f.param("x", kVector);
  f.result("y", kVector);
  int64_t a = f.arena(32);
  constexpr int kCalls = 1000;
  for (int i = 0; i < kCalls; ++i) {
    f.invoke_kernel(kAdd, {Operand::reg(0), Operand::arena(a, 32), Operand::arena(a, 32)});
  }
  f.copy(Operand::output(0), Operand::arena(a, 32));
  f.ret_outputs();
  put(std::move(f));
  Module m = module();
  Tensor x = vector8(1);
  double best = 1e9;
  for (int i = 0; i < 20; ++i) {
    auto begin = std::chrono::steady_clock::now();
    m.run("main", {x});
    auto ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin);
    best = std::min(best, ns.count() / kCalls);
  }
  RecordProperty("ns_per_kernel", std::to_string(best));
  EXPECT_LT(best, 2000) << "nanoseconds per kernel call";
}

}  // namespace
}  // namespace relay::runtime
