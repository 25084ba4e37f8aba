// Programs on the host and on devices with memory of their own: what is computed where, and that it is right.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "analysis/primitives.h"
#include "base/test/source_dir.h"
#include "driver/test/networks.h"
#include "driver/test/twin_device.h"
#include "ir/devices.h"
#include "ir/op.h"
#include "node/walk.h"
#include "plan/plan.h"
#include "runtime/device_tensor.h"
#include "runtime/module.h"
#include "runtime/profiler.h"

namespace relay {
namespace {

using driver_test::TwinDevice;
using runtime::ObjectKind;
using runtime::Value;

CompileOptions on_twins(int opt_level = 3, const std::string& target = "native; twin") {
  TwinDevice::install();
  CompileOptions o;
  o.target = target;
  o.opt_level = opt_level;
  o.verify = true;
  return o;
}

// The program with every `n`-th operator, from `first` on, computed on the device.
Module split(const Module& mod, int n, int first, runtime::Device device) {
  class Splitter : public Rewriter {
   public:
    Splitter(int n, int first, runtime::Device device)
        : Rewriter(family::program), n_(n), count_(first), device_(device) {}
    NodeRef post(const NodeRef&, NodeRef rebuilt) override {
      auto* c = as<CallNode>(rebuilt);
      auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
      if (op == nullptr || op->row->effect.get() == Effect::Io || count_++ % n_ != 0)
        return rebuilt;
      auto tensors = flatten_tensor_types(c->type);
      if (!tensors || !isa<TensorTypeNode>(c->type)) return rebuilt;
      for (const TensorType& t : *tensors) {
        if (t->dtype.is_string() || std::ranges::any_of(t->shape, is_any)) return rebuilt;
      }
      return on_device(cast<CallNode>(rebuilt), device_);
    }

   private:
    int n_, count_;
    runtime::Device device_;
  };
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    return Splitter(n, first, device).apply(f);
  });
}

// Tensors in a value, with the tags around them.
void flatten(const Value& value, std::vector<std::string>& shape, std::vector<double>& numbers) {
  std::vector<Value> open{value};
  while (!open.empty()) {
    Value v = open.back();
    open.pop_back();
    if (v.is_tensor()) {
      const Tensor t = v.tensor();
      shape.push_back(runtime::type_string(t.dtype(), t.shape()));
      for (int64_t i = 0; i < t.num_elements(); ++i) numbers.push_back(t.get_as_double(i));
      continue;
    }
    shape.push_back(std::to_string(static_cast<int>(v.kind())) + "/" +
                    (v.kind() == ObjectKind::adt ? std::to_string(v.tag()) : ""));
    for (size_t i = v.num_fields(); i-- > 0;) open.push_back(v.field(i));
  }
}

void expect_same(const Value& got, const Value& want, const std::string& what) {
  std::vector<std::string> shape, other_shape;
  std::vector<double> numbers, others;
  flatten(got, shape, numbers);
  flatten(want, other_shape, others);
  ASSERT_EQ(shape, other_shape) << what;
  ASSERT_EQ(numbers.size(), others.size()) << what;
  for (size_t i = 0; i < numbers.size(); ++i) {
    ASSERT_NEAR(numbers[i], others[i], 1e-5 * (1 + std::abs(others[i]))) << what << " " << i;
  }
}

Value run_values(const CompiledModule& compiled, const std::vector<Value>& inputs = {}) {
  runtime::RunOptions options;
  options.poison = 0xA5;
  return compiled.load({.num_threads = 1}).run_values("main", inputs, options);
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

size_t count_transfers(const std::string& bytecode) {
  size_t count = 0;
  for (const char* name : {"to_device ", "to_host "}) {
    for (size_t at = 0; (at = bytecode.find(name, at)) != std::string::npos; ++at) ++count;
  }
  return count;
}

std::string failure(const std::string& text, const CompileOptions& options) {
  try {
    compile(driver_test::parse(text), options);
  } catch (const UserError& e) {
    return e.what();
  }
  return "nothing";
}

TEST(Devices, language_examples_split_in_two) {
  TwinDevice::install();
  TwinDevice::forget();
  size_t programs = 0, transfers = 0;
  for (const auto& file : std::filesystem::directory_iterator(std::string(test::source_dir()) +
                                                              "/examples/language")) {
    if (file.path().extension() != ".relay") continue;
    ++programs;
    initialize();
    std::string text = read_file(file.path());
    // Each step of a recursion waits for the device.
    for (size_t at = 0; (at = text.find("100001", at)) != std::string::npos;)
      text.replace(at, 6, "101");
    const Module mod = infer_types(parse_module(file.path().filename(), text));
    CompileOptions host;
    const Value want = run_values(compile(mod, host));
    for (int first : {0, 1}) {
      const std::string what = file.path().filename().string() + " from " + std::to_string(first);
      SCOPED_TRACE(what);
      PlanText plan;
      CompileOptions options = on_twins();
      options.observers.push_back(&plan);
      CompiledModule compiled;
      try {
        compiled = compile(split(mod, 2, first, TwinDevice::device()), options);
      } catch (const std::exception& e) {
        FAIL() << e.what() << "\n" << plan.text;
      }
      transfers += count_transfers(runtime::to_string(compiled.program));
      expect_same(run_values(compiled), want, what);
    }
  }
  EXPECT_GE(programs, 11u);
  EXPECT_GT(transfers, 100u);
  const TwinDevice::Counts counts = TwinDevice::counts();
  EXPECT_GT(counts.launches, 100);
  EXPECT_GT(counts.bytes_to_device, 0);
  EXPECT_GT(counts.bytes_to_host, 0);
  EXPECT_EQ(counts.foreign_buffers, 0);
  EXPECT_EQ(TwinDevice::allocated(), 0) << "memory of the device is left";
}

constexpr const char* kSplitNetwork = R"(
def @main(%x: Tensor[(4, 16), float32], %w: Tensor[(16, 16), float32]) {
  let %a = on_device(nn.relu(nn.dense(%x, %w)), virtual_device="ext_dev:0");
  let %b = nn.relu(nn.dense(%x, %x));
  let %c = on_device(concatenate((add(%a, %a), %a), axis=1), virtual_device="ext_dev:0");
  (sum(%c), %b, nn.dense(%a, %w))
})";

TEST(Devices, copies_are_as_few_as_they_can_be) {
  const Module mod = driver_test::parse(kSplitNetwork);
  std::vector<Value> inputs;
  for (const Tensor& t : driver_test::arguments(mod)) inputs.emplace_back(t);
  CompileOptions host;
  host.target = "native";
  for (int level : {0, 1, 3}) {
    const CompiledModule compiled = compile(mod, on_twins(level));
    TwinDevice::forget();
    expect_same(run_values(compiled, inputs),
                run_values(compile(driver_test::parse(R"(
def @main(%x: Tensor[(4, 16), float32], %w: Tensor[(16, 16), float32]) {
  let %a = nn.relu(nn.dense(%x, %w));
  let %b = nn.relu(nn.dense(%x, %x));
  let %c = concatenate((add(%a, %a), %a), axis=1);
  (sum(%c), %b, nn.dense(%a, %w))
})"),
                                   host),
                           inputs),
                "level " + std::to_string(level));
    const TwinDevice::Counts counts = TwinDevice::counts();
    // %x and %w there, %a and %c back: once each.
    EXPECT_EQ(counts.bytes_to_device, 4 * (4 * 16 + 16 * 16)) << level;
    EXPECT_EQ(counts.bytes_to_host, 4 * (4 * 16 + 4 * 32)) << level;
    EXPECT_EQ(counts.foreign_buffers, 0);
  }
  EXPECT_EQ(TwinDevice::allocated(), 0);
}

TEST(Devices, two_devices_of_one_kind) {
  const Module mod = driver_test::parse(R"(
def @main(%x: Tensor[(8, 8), float32]) {
  let %a = on_device(exp(%x), virtual_device="ext_dev:0");
  let %b = on_device(add(%a, %a), virtual_device="ext_dev:1");
  multiply(%a, %b)
})");
  std::vector<Value> inputs;
  for (const Tensor& t : driver_test::arguments(mod)) inputs.emplace_back(t);
  const CompiledModule compiled = compile(mod, on_twins(3, "native; twin; twin"));
  const Value out = run_values(compiled, inputs);
  for (int64_t i = 0; i < 64; ++i) {
    const double e = std::exp(inputs[0].tensor().get_as_double(i));
    ASSERT_NEAR(out.tensor().get_as_double(i), 2 * e * e, 1e-4);
  }
}

TEST(Devices, loops_branches_and_open_sizes) {
  const Module mod = driver_test::parse(R"(
def @grow[n: Dim](%i: int32, %v: Tensor[(n,), float32]) -> Tensor[(n,), float32] {
  if (%i == 0) { %v } else {
    @grow(%i - 1, on_device(add(multiply(%v, 0.5f), 1f), virtual_device="ext_dev:0"))
  }
}
def @main[n: Dim](%x: Tensor[(n,), float32], %i: int32) {
  let %y = @grow(%i, %x);
  if (sum(%y) > 0f) { on_device(negative(%y), virtual_device="ext_dev:0") } else { %y }
})");
  const CompiledModule compiled = compile(mod, on_twins());
  for (int64_t n : {1, 7, 1000}) {
    TwinDevice::forget();
    const Tensor x = Tensor::empty(DType::Float(32), {n});
    driver_test::fill(x, 0, 1, 3);
    const Value out =
        run_values(compiled, {Value(x), Value(Tensor::scalar(int64_t{20}, DType::Int(32)))});
    for (int64_t k = 0; k < n; ++k) {
      double v = x.get_as_double(k);
      for (int i = 0; i < 20; ++i) v = v * 0.5 + 1;
      ASSERT_NEAR(out.tensor().get_as_double(k), -v, 1e-4);
    }
    EXPECT_EQ(TwinDevice::counts().foreign_buffers, 0);
  }
  EXPECT_EQ(TwinDevice::allocated(), 0);
}

// A weight is copied to a device once, by whichever run comes first.
TEST(Devices, constants_stay_on_the_device) {
  Module mod = driver_test::parse(R"(
def @main(%x: Tensor[(2, 8), float32]) {
  on_device(nn.dense(%x, reshape(arange(stop=64f, dtype="float32"), newshape=[8, 8])), virtual_device="ext_dev:0")
})");
  std::vector<Value> inputs;
  for (const Tensor& t : driver_test::arguments(mod)) inputs.emplace_back(t);
  const runtime::Module ready = compile(mod, on_twins()).load();
  ready.run_values("main", inputs);
  TwinDevice::forget();
  ready.run_values("main", inputs);
  EXPECT_EQ(TwinDevice::counts().bytes_to_device, 4 * 2 * 8);
  EXPECT_EQ(TwinDevice::counts().foreign_buffers, 0);
}

TEST(Devices, an_artifact_runs_where_its_devices_are) {
  const Module mod = driver_test::parse(kSplitNetwork);
  std::vector<Value> inputs;
  for (const Tensor& t : driver_test::arguments(mod)) inputs.emplace_back(t);
  const CompiledModule compiled = compile(mod, on_twins());
  const std::string path = ::testing::TempDir() + "/devices.so";
  compiled.write(path, true);
  expect_same(runtime::Module::load(path).run_values("main", inputs), run_values(compiled, inputs),
              path);
  runtime::Program elsewhere = compiled.program;
  for (runtime::KernelInfo& k : elsewhere.kernels) {
    if (k.device.type == kDLExtDev) k.device.type = kDLVulkan;
  }
  for (runtime::Function& f : elsewhere.functions) {
    for (runtime::DeviceArena& a : f.devices) a.device.type = kDLVulkan;
  }
  runtime::Module refused = runtime::Module::from_elf(compiled.elf, elsewhere, "{}", compiled.info);
  try {
    refused.run_values("main", inputs);
    ADD_FAILURE() << "it runs";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("E0620"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("vulkan:0"), std::string::npos) << e.what();
  }
}

// A kernel that fails on the device ends the run, and the next run is right.
TEST(Devices, a_failure_is_the_runs) {
  const Module mod = driver_test::parse(R"(
def @main(%x: Tensor[(4,), float32], %i: Tensor[(2,), int32]) {
  on_device(gather(%x, %i, axis=0, checked=True), virtual_device="ext_dev:0")
})");
  const runtime::Module ready = compile(mod, on_twins()).load();
  const Tensor x = Tensor::empty(DType::Float(32), {4}), i = Tensor::empty(DType::Int(32), {2});
  driver_test::fill(x, 0, 1, 1);
  i.set_from_int(0, 1);
  i.set_from_int(1, 77);
  try {
    ready.run("main", {x, i});
    ADD_FAILURE() << "it runs";
  } catch (const RuntimeError& e) {
    EXPECT_NE(std::string(e.what()).find("E0605"), std::string::npos) << e.what();
  }
  i.set_from_int(1, 3);
  EXPECT_EQ(ready.run("main", {x, i})[0].get_as_double(1), x.get_as_double(3));
}

TEST(Devices, must_fail_programs_that_cannot_be_placed) {
  const std::string copy = failure(R"(
def @main(%x: Tensor[(4,), float32]) {
  let %a = device_copy(%x, src_virtual_device="ext_dev:0", dst_virtual_device="cpu");
  add(%a, %x)
})",
                                   on_twins());
  EXPECT_NE(copy.find("E0409"), std::string::npos) << copy;
  EXPECT_NE(copy.find("ext_dev:0"), std::string::npos) << copy;
  const std::string io = failure(R"(
def @main(%x: Tensor[(4,), float32]) {
  on_device(argwhere(%x), virtual_device="ext_dev:0")
})",
                                 on_twins());
  EXPECT_NE(io.find("E0409"), std::string::npos) << io;
  EXPECT_NE(io.find("known only when it is computed"), std::string::npos) << io;
  const std::string target = failure(R"(
def @main(%x: Tensor[(4,), float32]) { on_device(exp(%x), virtual_device="cuda:3") })",
                                     on_twins());
  EXPECT_NE(target.find("E0401"), std::string::npos) << target;
  EXPECT_NE(target.find("no target for cuda:3"), std::string::npos) << target;
  CompileOptions host_as_device = on_twins(3, "native; native");
  const std::string host =
      failure("def @main(%x: Tensor[(4,), float32]) { exp(%x) }", host_as_device);
  EXPECT_NE(host.find("cannot be a device"), std::string::npos) << host;
}

TEST(Devices, must_fail_unknown_devices) {
  const std::string text =
      "def @main(%x: Tensor[(4,), float32]) { on_device(%x, virtual_device=\"moon\") }";
  try {
    driver_test::parse(text);
    ADD_FAILURE() << "it is typed";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("there is no device 'moon'"), std::string::npos)
        << e.what();
  }
}

// Inputs and results of all kinds of programs on the device, which the host cannot touch.
TEST(Devices, inputs_and_results_stay_on_the_device) {
  struct Case {
    const char *params, *body;
    int64_t to_device, to_host;  // in sizes of an input, of a run with all inputs on the host
  };
  const Case cases[] = {
      {"param_devices=[[\"x\", \"ext_dev:0\"]], result_devices=[[0, \"ext_dev:0\"]]",
       "on_device(exp(%x), virtual_device=\"ext_dev:0\")", 1, 1},
      // A kernel that says nothing is computed where its operand is.
      {"param_devices=[[\"x\", \"ext_dev:0\"]]", "exp(%x)", 1, 1},
      // An input that is the result, and one that nothing reads.
      {"param_devices=[[\"x\", \"ext_dev:0\"]], result_devices=[[0, \"ext_dev:0\"]]", "%x", 1, 1},
      {"param_devices=[[\"x\", \"ext_dev:0\"]]", "exp(%y)", 1, 0},
      // A view of an input; a constant; parts of a join.
      {"param_devices=[[\"x\", \"ext_dev:0\"]], result_devices=[[0, \"ext_dev:0\"]]",
       "reshape(%x, newshape=[4, 2])", 1, 1},
      {"result_devices=[[0, \"ext_dev:0\"]]", "arange(stop=8f, dtype=\"float32\")", 0, 1},
      {"result_devices=[[0, \"ext_dev:0\"]]",
       "on_device(concatenate((exp(%x), %y), axis=0), virtual_device=\"ext_dev:0\")", 2, 2},
      // A branch, of which one side is on the host.
      {"result_devices=[[0, \"ext_dev:0\"]]",
       "if (sum(%y) > 0f) { on_device(exp(%x), virtual_device=\"ext_dev:0\") } else { %y }", 1, 1},
  };
  for (const Case& c : cases) {
    const std::string text = "(%x: Tensor[(2, 4), float32], %y: Tensor[(2, 4), float32]";
    const std::string placed = "def @main" + text + ", " + c.params + ") { " + c.body + " }";
    SCOPED_TRACE(placed);
    const Module mod = driver_test::parse(placed);
    std::vector<Value> inputs;
    for (const Tensor& t : driver_test::arguments(mod)) inputs.emplace_back(t);
    std::string plain = c.body;
    for (size_t at = 0; (at = plain.find(", virtual_device=\"ext_dev:0\"")) != plain.npos;)
      plain.erase(at, 28);
    for (size_t at = 0; (at = plain.find("on_device")) != plain.npos;) plain.erase(at, 9);
    CompileOptions host;
    const Value want = run_values(
        compile(driver_test::parse("def @main" + text + ") { " + plain + " }"), host), inputs);
    for (int level : {0, 3}) {
      const CompiledModule compiled = compile(mod, on_twins(level));
      run_values(compiled, inputs);
      runtime::Profiler profiler;
      runtime::RunOptions options;
      options.poison = 0xA5;
      options.profiler = &profiler;
      const runtime::Module ready = compiled.load({.num_threads = 1});
      expect_same(ready.run_values("main", inputs, options), want, "on the host");
      const runtime::Profiler::Copies counted{c.to_device * 32, c.to_host * 32};
      EXPECT_EQ(profiler.copies(), counted) << level;
      options.keeps_on_devices = true;
      const Value kept = ready.run_values("main", inputs, options);
      const bool is_there =
          ready.function("main").results[0].tensor.device != runtime::Device::cpu();
      EXPECT_EQ(kept.tensor().device() == TwinDevice::device(), is_there);
      expect_same(runtime::to_host(kept.tensor()), want, "kept");
    }
    EXPECT_EQ(TwinDevice::counts().foreign_buffers, 0);
  }
  EXPECT_EQ(TwinDevice::allocated(), 0);
}

}  // namespace
}  // namespace relay
