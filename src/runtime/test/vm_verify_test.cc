// Corrupt bytecode: what loading and the interpreter make of it.
#include <climits>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

#include "base/test/source_dir.h"
#include "runtime/core/object_pool.h"
#include "runtime/test/vm_program.h"
#include "runtime/vm/opcode_table.h"
#include "runtime/vm/verify.h"

namespace relay::runtime {
namespace {

// scalars(n): every instruction on scalars, and every way to move out of a register.
void scalars(FunctionBuilder& f) {
  int32_t n = f.param("n", kScalar);
  f.result("y", kScalar);
  int32_t boxed = f.reg(), data = f.reg(), field = f.reg(), ref = f.reg();
  int32_t i = f.int_reg(), x = f.int_reg(), y = f.int_reg();
  f.load_scalar(i, DType::Int(64), Operand::reg(n));
  f.int_op(IntOp::mul, i, i, i, 32);
  f.convert(ScalarConversion::int_to_float32, x, i);
  f.float_op(FloatOp::add, y, x, x, 32);
  f.convert(ScalarConversion::float32_to_float64, x, y);
  f.box(boxed, i, DType::Int(64));
  f.move(field, boxed);
  f.alloc_adt(data, 3, Regs{~field, n});
  auto other = f.label();
  f.if_not_tag(data, 3, other);
  f.get_field(field, data, 0);
  f.swap(field, boxed);
  f.bind(other);
  f.ref_new(ref, field);
  f.ref_write(ref, boxed);
  f.ref_read(field, ref);
  f.kill(Regs{data, ref});
  f.copy(Operand::reg(boxed), Operand::scalar(i));
  f.ret(boxed);
}

TEST_F(VmTest, scalars_and_moves) {
  FunctionBuilder f("main");
  scalars(f);
  put(std::move(f));
  auto set_flag = [&](Opcode op, uint8_t flag) {
    for (Instruction& in : program.functions[0].code) {
      if (in.op == op) in.sub = flag;
    }
  };
  // What is moved out of a register is not there any more, and not freed twice.
  ObjectCounts before = thread_object_counts();
  set_flag(Opcode::ref_write, kLastB);
  fails("E0613", {integer(5)});
  EXPECT_EQ(thread_object_counts().objects, before.objects);
  set_flag(Opcode::ref_write, 0);
  set_flag(Opcode::get_field, kLastA);
  EXPECT_EQ(module().run("main", {integer(5)})[0].get_as_int(0), 25);
  EXPECT_EQ(module().run("main", {integer(65536)})[0].get_as_int(0), 0) << "wrapped to 32 bits";
}

TEST_F(VmTest, must_fail_E0613_scalars) {
  using Emit = std::function<void(FunctionBuilder&, int32_t reg, int32_t i)>;
  const Emit cases[] = {
      [](auto& f, int32_t r, int32_t i) { f.load_scalar(i, DType::Float(16), Operand::reg(r)); },
      [](auto& f, int32_t, int32_t i) { f.load_scalar(i, DType::Int(64), Operand::dim(i)); },
      [](auto& f, int32_t, int32_t i) { f.load_scalar(i, DType::Int(32), Operand::output(0)); },
      [](auto& f, int32_t r, int32_t i) { f.box(r, i, DType::UInt(8)); },
      [](auto& f, int32_t, int32_t i) { f.ret_scalar(i, DType::Float(16)); },
      [](auto& f, int32_t, int32_t i) { f.ret_scalar(i + 1, DType::Int(64)); },
      [](auto& f, int32_t, int32_t i) { f.int_op(IntOp::add, i, i, i, 16); },
      [](auto& f, int32_t, int32_t i) { f.float_op(FloatOp::add, i, i, i, 0); },
      [](auto& f, int32_t r, int32_t i) { f.copy(Operand::scalar(i), Operand::reg(r)); },
      [](auto& f, int32_t, int32_t) { f.kill(Regs{~7}); },
      [](auto& f, int32_t, int32_t i) { f.invoke_kernel(kLazy, {Operand::scalar(i)}); },
      [](auto& f, int32_t r, int32_t i) {
        f.invoke_kernel(kCopy, {Operand::reg(r), Operand::scalar(i), Operand::dim(i)});
      },
  };
  for (const Emit& emit : cases) {
    program.functions.clear();
    FunctionBuilder f("main");
    int32_t r = f.param("x", kScalar);
    f.result("y", kScalar);
    emit(f, r, f.int_reg());
    f.ret(r);
    put(std::move(f));
    EXPECT_THROW(verify_program(program), UserError) << to_string(program);
  }
}

// Every index of a good program is moved out of range, one at a time: the verifier refuses or the
// program still runs safely.
TEST_F(VmTest, must_fail_E0613_verifier_survives_every_mutation) {
  static_program();
  FunctionBuilder f("dynamic");
  dynamic_copy(f);
  put(std::move(f));
  FunctionBuilder g("sum");
  recursive_sum(g, 2);
  put(std::move(g));
  FunctionBuilder h("scalars");
  scalars(h);
  put(std::move(h));
  verify_program(program);
  int refused = 0;
  const int32_t values[] = {-1, 1 << 30, 1000, INT32_MIN, 1};
  for (size_t fn = 0; fn < program.functions.size(); ++fn) {
    for (size_t pc = 0; pc < program.functions[fn].code.size(); ++pc) {
      for (int field = 0; field < 6; ++field) {
        for (int32_t value : values) {
          Program changed = program;
          Instruction& in = changed.functions[fn].code[pc];
          if (field == 0) in.dst = value;
          if (field == 1) in.a = value;
          if (field == 2) in.b = value;
          if (field == 3) in.count = static_cast<uint32_t>(value);
          if (field == 4) in.op = static_cast<Opcode>(value & 0xFF);
          if (field == 5) in.sub = static_cast<uint8_t>(value);
          try {
            Module m = Module::from_kernels(changed, kernels);
            RunOptions options;
            options.fuel = 1000;
            options.memory_limit = 1 << 20;
            m.run("main", {vector8(1)}, options);
            m.run("sum", {integer(3)}, options);
            m.run("dynamic", {vector8(1)}, options);
            m.run("scalars", {integer(5)}, options);
          } catch (const Error& error) {
            refused += error.diagnostics().at(0).code == "E0613";
          }
        }
      }
    }
    for (int32_t& entry : program.functions[fn].lists) {
      int32_t good = entry;
      for (int32_t value : {1 << 30, 1000, INT32_MIN, ~1000}) {
        entry = value;
        EXPECT_THROW(verify_program(program), UserError) << value;
      }
      entry = good;
    }
    for (Operand& o : program.functions[fn].operands) {
      Operand good = o;
      for (int64_t value : {int64_t{-1}, int64_t{1} << 40, int64_t{63}, int64_t{64}}) {
        o.index = value;
        EXPECT_THROW(verify_program(program), UserError) << value;
        o = good;
      }
      if (o.kind == Operand::kArena) {
        for (int64_t value : {int64_t{-1}, int64_t{1} << 62, int64_t{31}}) {
          o.bytes = value;
          EXPECT_THROW(verify_program(program), UserError);
        }
      }
      o = good;
      o.kind = static_cast<Operand::Kind>(9);
      EXPECT_THROW(verify_program(program), UserError);
      o = good;
    }
  }
  EXPECT_GT(refused, 100);
}

TEST_F(VmTest, must_fail_E0613_another_device) {
  static_program();
  const Program good = program;
  program.kernels[0].device = {kDLCUDA, 0};
  EXPECT_THROW(verify_program(program), UserError);
  program = good;
  program.functions[0].params[0].tensor.device = {kDLCUDA, 1};
  EXPECT_EQ(program.functions[0].params[0].type_string(), "Tensor[(8,), float32] on cuda:1");
  EXPECT_EQ(program.devices(), (std::vector<Device>{{kDLCUDA, 1}}));
  EXPECT_EQ(read_program(write_program(program)).functions, program.functions);
}

// Native functions take words and give a word; buffers of the caller are the interpreter's.
TEST_F(VmTest, must_fail_E0613_native_functions_write_no_outputs) {
  static_program();
  program.functions[0].native = true;
  EXPECT_THROW(verify_program(program), UserError);
  program.functions.clear();
  FunctionBuilder f("main");
  f.ret(f.param("x", kVector));
  f.result("y", kVector);
  put(std::move(f));
  program.functions[0].native = true;
  verify_program(program);
  program.functions[0].donations.push_back({.param = 0, .output = 0});
  EXPECT_THROW(verify_program(program), UserError);
}

// What a row says has to be so in the words for people: each operand is shown.
TEST(opcode_table, rows_show_all_their_operands) {
  for (const OpcodeRow& row : opcode_rows()) {
    const std::string text = row.text;
    auto shows = [&](const char* name) { return text.find(name) != std::string::npos; };
    EXPECT_EQ(shows("{dst}"), row.dst != Role::none) << row.name;
    EXPECT_EQ(shows("{a}"), row.a != Role::none) << row.name;
    EXPECT_EQ(shows("{b}"), row.b != Role::none && row.b != Role::wide) << row.name;
    EXPECT_EQ(shows("{list}"), row.list != ListRole::none) << row.name;
    EXPECT_EQ(shows("{count}"), row.count != CountRole::none) << row.name;
    EXPECT_EQ(shows("{sub}"), row.sub != SubRole::none) << row.name;
    EXPECT_TRUE(row.b == Role::none || row.b == Role::wide || row.list == ListRole::none)
        << row.name;
  }
}

TEST(opcode_table, docs_have_its_rows) {
  const std::string path = std::string(relay::test::source_dir()) + "/docs/bytecode.md";
  std::stringstream read;
  read << std::ifstream(path).rdbuf();
  std::string docs = read.str();
  const std::string table = opcode_reference();
  const size_t begin = docs.find("| `"), end = docs.rfind("|\n");
  if (std::getenv("RELAY_UPDATE") != nullptr && begin != docs.npos) {
    docs.replace(begin, end + 2 - begin, table);
    std::ofstream(path) << docs;
  }
  EXPECT_NE(docs.find(table), docs.npos) << "run this test with RELAY_UPDATE=1";
}

TEST_F(VmTest, must_fail_E0613_running_off_the_end) {
  static_program();
  program.functions[0].code.pop_back();
  EXPECT_THROW(verify_program(program), UserError);
  program.functions[0].code.clear();
  EXPECT_THROW(verify_program(program), UserError);
}

}  // namespace
}  // namespace relay::runtime
