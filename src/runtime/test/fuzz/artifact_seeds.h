// Valid artifacts with every instruction, from which mutations start. They are made when they are
// needed, so they follow the formats.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/codes/runtime.h"

#include "runtime/artifact.h"
#include "runtime/cpu.h"
#include "runtime/device_driver.h"

namespace relay::runtime::test {

using Registers = std::vector<int32_t>;

inline const TensorSpec kFloats{DType::Float(32), {8}, {}};
inline const TensorSpec kRows{DType::Float(32), {-1, 4}, {"n", ""}};
inline const TensorSpec kNumber{DType::Int(64), {}, {}};

// Kernels, an arena, constants and output buffers: main(x) = k1(k0(x), c).
inline Program static_program() {
  Program program;
  program.kernels = {{"k0", "double1", {32, 32}, 1, 0, 8, 64},
                     {"k1", "add1", {32, 32, 32}, 1, 0, 8, 96}};
  program.constants = {Tensor::zeros(DType::Int(8), {13}), Tensor::zeros(DType::Float(32), {8})};
  FunctionBuilder f("main");
  f.param("x", kFloats);
  f.result("y", kFloats);
  f.result("z", kFloats);
  f.returns_tuple();
  int64_t hidden = f.arena(32);
  f.invoke_kernel(0, {Operand::reg(0), Operand::arena(hidden, 32)});
  f.invoke_kernel(1, {Operand::arena(hidden, 32), Operand::constant(1), Operand::output(0)});
  f.copy(Operand::output(1), Operand::arena(hidden, 32));
  f.ret_outputs();
  program.functions.push_back(std::move(f).finish());
  return program;
}

// Shapes that are known when it runs.
inline Program shape_program() {
  Program program;
  program.kernels = {{"rows", "relu1", {-1, -1}, 1, 1, 0, 0}};
  program.strings = {"two rows are too few", "model.relay:3:1"};
  FunctionBuilder f("main");
  int32_t x = f.param("x", kRows);
  f.result("y", kRows);
  int32_t n = f.int_reg(), four = f.int_reg(), size = f.int_reg(), rank = f.int_reg();
  int32_t y = f.reg(), flat = f.reg(), shape = f.reg(), scalar = f.reg(), fixed = f.reg();
  f.shape_of(n, x, 0);
  f.load_int(four, 4);
  f.int_op(IntOp::mul, size, n, four);
  f.rank_of(rank, x);
  f.alloc_tensor(y, DType::Float(32), Registers{n, four});
  f.invoke_kernel(0, {Operand::reg(x), Operand::reg(y), Operand::dim(n)});
  f.num_places(1);
  f.alloc_place(0, DType::Float(32), Registers{n, four});
  f.invoke_kernel(0, {Operand::reg(x), Operand::place(0), Operand::dim(n)});
  f.copy(Operand::reg(y), Operand::place(0));
  f.reshape(flat, y, Registers{size});
  f.shape_tensor(shape, flat, DType::Int(64));
  f.alloc_from_shape(flat, DType::Float(32), shape);
  f.box(scalar, rank, DType::Int(64));
  f.load_scalar(rank, DType::Int(64), Operand::reg(scalar));
  f.alloc_static(fixed, kFloats);
  f.write_lines(fixed, y, size, Operand::reg(y));
  f.index_in(rank, rank, four, 1);
  f.int_op(IntOp::lt, size, rank, four);
  FunctionBuilder::Label enough = f.label();
  f.if_zero(size, enough);
  f.kill(Registers{flat, shape});
  f.ret(y);
  f.bind(enough);
  f.fatal(0, 1);
  program.functions.push_back(std::move(f).finish());
  return program;
}

// A device whose memory is the host's and whose queue is always empty.
class QuickQueue : public DeviceQueue {
 public:
  static void install() {
    register_device_driver({kDLExtDev, [](uint16_t) { return std::make_shared<QuickQueue>(); }});
  }
  void* allocate(size_t bytes) override {
    // What hostile sizes ask for is refused, as a device does.
    if (bytes > (size_t{64} << 20))
      throw RuntimeError(Diagnostic(codes::run_out_of_memory, {}, "no memory on the device"));
    return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  }
  void release(void* memory) noexcept override { std::free(memory); }
  uint64_t copy_to_device(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) std::memmove(to, from, bytes);
    return ++last_;
  }
  uint64_t copy_to_host(void* to, const void* from, size_t bytes) override {
    return copy_to_device(to, from, bytes);
  }
  uint64_t copy_within(void* to, const void* from, size_t bytes) override {
    return copy_to_device(to, from, bytes);
  }
  uint64_t launch(const KernelInfo&, relay_kernel entry, std::span<void* const> buffers,
                  std::span<const int64_t> dims) override {
    int32_t error = 0;
    relay_kernel_context context{};
    context.abi_version = RELAY_KERNEL_ABI_VERSION;
    context.num_threads = 1;
    context.error = &error;
    entry(buffers.data(), dims.data(), &context);
    return ++last_;
  }
  std::optional<DeviceFailure> wait(uint64_t) override { return std::nullopt; }
  uint64_t last() const override { return last_; }

 private:
  uint64_t last_ = 0;
};

// A value that goes to a device and comes back, by way of an arena, a place, a constant and a tensor there.
inline Program device_program() {
  QuickQueue::install();
  const Device there{kDLExtDev, 0};
  Program program;
  program.kernels = {{"k", "add1", {32, 32, 32}, 1, 0, 8, 96}};
  program.kernels[0].device = there;
  program.constants = {Tensor::zeros(DType::Float(32), {8})};
  program.constant_devices = {there};
  FunctionBuilder f("main");
  f.param("x", kFloats);
  f.result("y", kFloats);
  f.result("z", kFloats);
  f.returns_tuple();
  const uint8_t device = f.device(there, 128);
  const int32_t event = f.int_reg(), eight = f.int_reg(), object = f.reg(), fixed = f.reg();
  f.load_int(eight, 8);
  f.transfer(event, Operand::arena(0, 32), Operand::reg(0), device, false);
  f.wait(event, std::vector<Operand>{Operand::reg(0)}, device);
  f.alloc_tensor(object, DType::Float(32), Registers{eight}, device);
  f.invoke_kernel(0, {Operand::arena(0, 32), Operand::constant(0), Operand::reg(object)});
  f.num_places(1);
  f.alloc_place(0, DType::Float(32), Registers{eight}, device);
  f.invoke_kernel(0, {Operand::reg(object), Operand::arena(0, 32), Operand::place(0)});
  f.copy(Operand::arena(64, 32), Operand::reg(object), device);
  TensorSpec type = kFloats;
  type.device = there;
  f.alloc_static(fixed, type);
  f.copy(Operand::reg(fixed), Operand::arena(64, 32), device);
  f.transfer(event, Operand::output(0), Operand::reg(fixed), device, true);
  f.transfer(event, Operand::output(1), Operand::arena(64, 32), device, true);
  f.wait(event, std::vector<Operand>{Operand::output(0), Operand::output(1)}, device);
  f.ret_outputs();
  program.functions.push_back(std::move(f).finish());
  return program;
}

// Calls, closures, data, references and branches: main counts down in a loop of tail calls.
inline Program value_program() {
  Program program;
  program.constants = {Tensor::scalar(1, DType::Bool()), Tensor::scalar(5, DType::Int(64))};
  FunctionBuilder main("main");
  main.param("x", kNumber);
  main.result("y", "List[int64]");
  int32_t list = main.reg(), nil = main.reg(), pair = main.reg(), r = main.reg(), f = main.reg();
  int32_t tag = main.int_reg();
  FunctionBuilder::Label cons = main.label(), other = main.label();
  main.alloc_adt(nil, 1, Registers{});
  main.alloc_adt(list, 0, Registers{0, nil});
  main.alloc_tuple(pair, Registers{list, nil});
  main.get_field(list, pair, 0);
  main.ref_new(r, list);
  main.ref_write(r, nil);
  main.ref_read(nil, r);
  main.alloc_closure(f, 1, Registers{list});
  main.invoke_closure(pair, f, Registers{0});
  main.call(pair, 1, Registers{~pair, 0});
  main.get_tag(tag, list);
  main.jump_table(tag, std::vector<FunctionBuilder::Label>{cons, other});
  main.match_fail();
  main.bind(cons);
  main.tail_invoke(f, Registers{0});
  main.bind(other);
  main.tail_call(1, Registers{list, 0});
  program.functions.push_back(std::move(main).finish());

  FunctionBuilder step("step");
  step.internal();
  step.param("list", "List[int64]");
  step.param("n", kNumber);
  step.result("y", "List[int64]");
  int32_t n = step.int_reg(), one = step.int_reg(), yes = step.reg();
  FunctionBuilder::Label again = step.label(), done = step.label();
  step.if_not_tag(0, 0, done);
  step.load_scalar(n, DType::Int(64), Operand::reg(1));
  step.load_int(one, 1);
  step.bind(again);
  step.load_const(yes, 0);
  step.if_false(yes, done);
  step.load_scalar(one, DType::Bool(), Operand::constant(0));
  step.if_zero(n, done);
  step.int_op(IntOp::sub, n, n, one);
  step.convert(ScalarConversion::int_to_float32, one, n);
  step.float_op(FloatOp::sub, one, one, one, 32);
  step.load_int(one, 1);
  step.jump(again);
  step.bind(done);
  step.move(yes, 0);
  step.swap(yes, 0);
  step.move_int(one, n);
  step.ret(yes);
  program.functions.push_back(std::move(step).finish());

  FunctionBuilder four("four");
  four.internal();
  four.result("y", kNumber);
  int32_t number = four.int_reg();
  four.load_int(number, 4);
  four.ret_scalar(number, DType::Int(64));
  program.functions.push_back(std::move(four).finish());
  return program;
}

// The code image is not looked at before it is loaded, which no test of these does.
inline std::vector<std::string> artifact_seeds() {
  std::vector<std::string> seeds;
  for (const Program& program :
       {static_program(), shape_program(), value_program(), device_program()}) {
    seeds.push_back(write_artifact(
        {"", &program, "{}", {std::string(host_arch()), {}, "0.1.0", {"librelay_text.so"}}}));
  }
  // Two versions, which share constants.
  const Program least = static_program(), best = static_program();
  ArtifactInfo info{std::string(host_arch()), {}, "0.1.0", {}};
  std::vector<ArtifactContents> versions{{"", &least, "{}", info}, {"", &best, "{}", info}};
  versions[0].info.version = "least";
  versions[1].info.version = "best";
  seeds.push_back(write_artifact(versions));
  return seeds;
}

}  // namespace relay::runtime::test
