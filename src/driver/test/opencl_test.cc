// Programs on an OpenCL device: each dtype and form of a kernel gives what the host gives.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "codegen/backend.h"
#include "driver/test/networks.h"
#include "driver/test/opencl_machine.h"
#include "lower/rules/choose.h"
#include "lower/rules/rules.h"
#include "node/structural.h"
#include "node/walk.h"
#include "runtime/device_tensor.h"
#include "runtime/module.h"
#include "runtime/profiler.h"
#include "target/matrix_instructions.h"
#include "tir/arith/analyzer.h"
#include "tir/interpret.h"
#include "tir/lower_loops.h"
#include "tir/schedule_report.h"
#include "tir/text.h"
#include "tir/verify.h"

namespace relay {
namespace {

using driver_test::kOpencl;
using runtime::Value;

#define NEEDS_OPENCL() \
  initialize();        \
  if (auto why = driver_test::no_opencl()) GTEST_SKIP() << *why

std::vector<double> numbers(const std::vector<Tensor>& results) {
  std::vector<double> out;
  for (const Tensor& t : results) {
    for (int64_t i = 0; i < t.num_elements(); ++i) out.push_back(t.get_as_double(i));
  }
  return out;
}

// Whether the kernel may refuse its inputs.
bool has_check(const tir::PrimFunc& f) {
  bool found = false;
  post_order(
      f->body,
      [&](const Node& n) {
        auto* c = as<tir::CallNode>(&n);
        found |= n.kind() == tir::StmtKind::Check || (c != nullptr && c->name == "index_in");
      },
      family::tir);
  return found;
}

// Interprets the kernel with invented numbers: no two work items access an element in no order, and the results are those
// of the blocks before any schedule.
void expect_no_races(const tir::PrimFunc& composed, const tir::PrimFunc& f,
                     const std::string& schedule) {
  constexpr int64_t kSize = 70;  // of an open dimension
  tir::Analyzer sizes;
  for (const tir::Var& d : f->dims) sizes.bind(d, tir::index(kSize), tir::index(1));
  auto shape_of = [&](const tir::Buffer& b) {
    std::vector<int64_t> shape;
    for (const tir::PrimExpr& e : b->memory_shape()) shape.push_back(sizes.bounds(e).max);
    return shape;
  };
  std::vector<Tensor> buffers, plain;
  for (size_t i = 0; i < f->params.size(); ++i) {
    buffers.push_back(Tensor::empty(f->params[i]->dtype, shape_of(f->params[i])));
    driver_test::fill(buffers.back(), 0, 1, i + 1);
    // The schedule may have merged axes.
    plain.push_back(Tensor::zeros(f->params[i]->dtype, shape_of(composed->params[i])));
    if (static_cast<int64_t>(i) < f->num_inputs) {
      std::memcpy(plain.back().data(), buffers.back().data(), plain.back().byte_size());
    }
  }
  const std::vector<int64_t> dims(f->dims.size(), kSize);
  tir::KernelInterpreter run(f, dims, {.find_races = true});
  if (const int64_t error = run.run(buffers); error != RELAY_KERNEL_OK) {
    EXPECT_TRUE(has_check(f)) << "error " << error << " of " << schedule << "\n" << tir::text_of(f);
    return;
  }
  EXPECT_EQ(run.race(), "") << schedule << "\n" << tir::text_of(f);
  tir::interpret(composed, plain, dims);
  for (size_t i = static_cast<size_t>(f->num_inputs); i < plain.size(); ++i) {
    const double tolerance = plain[i].dtype().bits == 16 ? 2e-2 : 1e-4;
    for (int64_t at = 0; at < plain[i].num_elements(); ++at) {
      const double want = plain[i].get_as_double(at), got = buffers[i].get_as_double(at);
      if (std::isnan(want) ? std::isnan(got) : want == got) continue;
      ASSERT_NEAR(got, want, tolerance * (1 + std::abs(want))) << f->name << " at " << at << "\n"
                                                               << tir::text_of(f);
    }
  }
}

// The kernels of the device.
std::vector<CompiledKernel> device_kernels(const CompiledModule& compiled) {
  std::vector<CompiledKernel> out;
  for (const CompiledKernel& k : compiled.kernels) {
    const bool there = compiled.program.kernels[k.kernel].device == kOpencl;
    if (k.is_generated() && there) out.push_back(k);
  }
  return out;
}

void expect_no_races(const CompiledModule& compiled) {
  for (const CompiledKernel& k : device_kernels(compiled)) {
    expect_no_races(k.composed, k.lowered, k.schedule);
  }
}

std::vector<double> run_on(const Module& mod, const std::string& target, std::vector<Tensor> args,
                           int opt_level = 3) {
  CompileOptions options;
  options.target = target;
  options.opt_level = opt_level;
  options.verify = true;
  runtime::RunOptions poisoned;
  poisoned.poison = 0xA5;
  const CompiledModule compiled = compile(mod, options);
  expect_no_races(compiled);
  return numbers(compiled.load({.num_threads = 1}).run("main", std::move(args), poisoned));
}

// The same on the host and where the program says, at these levels.
void expect_as_on_host(const std::string& text, double tolerance = 1e-5,
                       const std::vector<int>& levels = {3}, double low = -2, double high = 2,
                       const char* target = "native; opencl") {
  const Module mod = driver_test::parse(text);
  const std::vector<Tensor> args = driver_test::arguments(mod);
  for (size_t i = 0; i < args.size(); ++i) driver_test::fill(args[i], low, high, i + 1);
  std::string host_text = text;
  // What is computed on the device there is computed on the host here.
  for (size_t at = 0; (at = host_text.find("\"opencl:0\"", at)) != std::string::npos;) {
    host_text.replace(at, 10, "\"cpu\"");
  }
  const std::vector<double> want = run_on(driver_test::parse(host_text), "native", args);
  for (int level : levels) {
    const std::vector<double> got = run_on(mod, target, args, level);
    ASSERT_EQ(got.size(), want.size()) << text;
    for (size_t i = 0; i < got.size(); ++i) {
      if (std::isnan(want[i]) && std::isnan(got[i])) continue;
      if (want[i] == got[i]) continue;
      ASSERT_NEAR(got[i], want[i], tolerance * (1 + std::abs(want[i])))
          << i << " at " << level << " of " << text;
    }
  }
}

std::string there(const std::string& e) {
  return "on_device(" + e + ", virtual_device=\"opencl:0\")";
}

std::string main_of(const std::string& parameters, const std::string& result) {
  return "def @main(" + parameters + ") { " + there(result) + " }";
}

TEST(Opencl, arithmetic_of_every_dtype) {
  NEEDS_OPENCL();
  for (const char* dtype : {"float16", "bfloat16", "float32", "float64"}) {
    const std::string x = std::string("Tensor[(3, 5), ") + dtype + "]";
    const double tolerance = std::string(dtype) == "float16"    ? 2e-3
                             : std::string(dtype) == "bfloat16" ? 2e-2
                                                                : 1e-5;
    expect_as_on_host(main_of("%x: " + x + ", %y: " + x,
                              "where(less(%x, %y), add(multiply(%x, %y), subtract(%x, %y)), "
                              "maximum(divide(%x, %y), floor_mod(%x, %y)))"),
                      tolerance);
  }
  for (const char* dtype :
       {"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"}) {
    const std::string x = std::string("Tensor[(3, 35), ") + dtype + "]";
    const bool is_signed = dtype[0] == 'i';
    expect_as_on_host(
        main_of("%x: " + x + ", %y: " + x,
                "where(less(%x, %y), add(multiply(multiply(%x, %x), %y), floor_divide(%x, %y)), "
                "bitwise_xor(minimum(floor_mod(%x, %y), %x), "
                "bitwise_or(left_shift(%x, %y), right_shift(%x, %y))))"),
        0, {3}, is_signed ? -100 : 0, 100);
  }
}

TEST(Opencl, casts_between_all_dtypes) {
  NEEDS_OPENCL();
  const std::vector<std::string> dtypes{"bool",     "int8",    "uint8",  "int16",  "uint16",
                                        "int32",    "uint32",  "int64",  "uint64", "float16",
                                        "bfloat16", "float32", "float64"};
  for (const std::string& from : dtypes) {
    std::string sum;
    for (const std::string& to : dtypes) {
      const std::string back = "cast(cast(%x, dtype=\"" + to + "\"), dtype=\"float64\")";
      sum = sum.empty() ? back : "add(multiply(" + sum + ", 1.25f64), " + back + ")";
    }
    expect_as_on_host(main_of("%x: Tensor[(301,), " + from + "]", sum), 1e-9, {3}, -300, 300);
  }
}

TEST(Opencl, functions) {
  NEEDS_OPENCL();
  for (const char* dtype : {"float32", "float64"}) {
    std::string sum = "%x";
    for (const char* f : {"exp", "sin", "cos", "tan", "tanh", "sigmoid", "erf", "atan", "sinh",
                          "cosh", "asinh", "floor", "ceil", "trunc", "round", "abs"}) {
      sum = "add(" + sum + ", " + f + "(%x))";
    }
    for (const char* f : {"log", "log2", "log10", "sqrt", "rsqrt"}) {
      sum = "add(" + sum + ", " + f + "(add(abs(%x), abs(%x))))";
    }
    expect_as_on_host(main_of(std::string("%x: Tensor[(40,), ") + dtype + "]", sum), 1e-5);
  }
}

TEST(Opencl, reductions) {
  NEEDS_OPENCL();
  // Cut into parts, into one item for each row, and with work of their own.
  expect_as_on_host(main_of("%x: Tensor[(3, 20000), float32]", "sum(%x, axis=[1])"));
  expect_as_on_host(main_of("%x: Tensor[(3, 60, 50), float32]", "max(%x, axis=[1, 2])"));
  expect_as_on_host(main_of("%x: Tensor[(50, 40, 30), float32]", "max(%x, axis=[0, 2])"));
  expect_as_on_host(main_of("%x: Tensor[(4, 3000), float32]", "argmax(%x, axis=[1])"));
  expect_as_on_host(main_of("%x: Tensor[(7, 100), float32]", "nn.softmax(%x)"), 1e-5, {0, 3});
  expect_as_on_host(main_of("%x: Tensor[(6, 10), float32]", "cumsum(%x, axis=1)"));
}

TEST(Opencl, contractions_and_windows) {
  NEEDS_OPENCL();
  expect_as_on_host(main_of("%x: Tensor[(33, 65), float32], %w: Tensor[(47, 65), float32]",
                            "nn.relu(nn.dense(%x, %w))"),
                    1e-4, {0, 3});
  expect_as_on_host(main_of("%x: Tensor[(2, 5, 17), float32], %w: Tensor[(2, 17, 9), float32]",
                            "nn.batch_matmul(%x, %w)"),
                    1e-4);
  expect_as_on_host(main_of("%x: Tensor[(1, 4, 9, 11), float32], %w: Tensor[(8, 2, 3, 3), float32]",
                            "nn.max_pool2d(nn.conv2d(%x, %w, padding=[1, 1, 1, 1], groups=2), "
                            "pool_size=[2, 2], strides=[2, 2])"),
                    1e-4);
}

// Kernels in groups of items with shared memory.
struct GroupCase {
  std::string text;
  std::string schedule;  // what its sentence says
  double tolerance = 1e-5;
};

std::vector<GroupCase> group_cases() {
  const std::string tiles = "in groups of 16x16 items", rows = "groups of 128 items";
  return {
      // Whole tiles, and tiles that reach over the end of rows, columns and terms.
      {main_of("%x: Tensor[(256, 16), float32], %w: Tensor[(256, 16), float32]",
               "nn.relu(nn.dense(%x, %w))"),
       tiles, 1e-4},
      {main_of("%x: Tensor[(250, 21), float16], %w: Tensor[(261, 21), float16]",
               "nn.dense(%x, %w)"),
       tiles, 2e-2},
      {main_of("%x: Tensor[(16, 41, 20), float32], %w: Tensor[(16, 20, 51), float32]",
               "nn.batch_matmul(%x, %w)"),
       tiles, 1e-4},
      {main_of("%x: Tensor[(16, 131, 21), float32], %w: Tensor[(16, 21, 71), float32]",
               "nn.batch_matmul(%x, %w)"),
       tiles, 1e-4},
      // Images with channels first, a border, strides, and what follows in the same groups; channels last; rows of an open
      // number.
      {main_of("%x: Tensor[(2, 5, 30, 31), float32], %w: Tensor[(130, 5, 3, 3), float32]",
               "nn.relu(add(nn.conv2d(%x, %w, padding=[1, 1, 1, 1], strides=[2, 2]), 1f))"),
       tiles, 1e-4},
      {main_of(
           "%x: Tensor[(2, 20, 21, 6), float32], %w: Tensor[(3, 3, 6, 70), float32]",
           "nn.conv2d(%x, %w, padding=[1, 1, 1, 1], data_layout=\"NHWC\", kernel_layout=\"HWIO\")"),
       tiles, 1e-4},
      {"def @main[n: Dim](%x: Tensor[(n, 36), float32], %w: Tensor[(70, 36), float32]) { " +
           there("nn.relu(nn.dense(%x, %w))") + " }",
       tiles, 1e-4},
      // Rows that a group reduces.
      {main_of("%x: Tensor[(40, 1030), float32]", "nn.softmax(%x)"), rows},
      {main_of("%x: Tensor[(17, 600, 2), float32]", "max(%x, axis=[1, 2])"), rows},
  };
}

TEST(Opencl, groups_of_work_items_have_no_races) {
  CompileOptions options;
  options.target = "native; opencl -device=gpu";
  options.verify = true;
  for (const GroupCase& c : group_cases()) {
    const CompiledModule compiled = compile(driver_test::parse(c.text), options);
    std::string schedules;
    for (const CompiledKernel& k : compiled.kernels) schedules += k.schedule + "\n";
    EXPECT_NE(schedules.find(c.schedule), std::string::npos) << schedules << c.text;
    expect_no_races(compiled);
  }
}

std::string weights(const std::string& shape, int count) {
  return "multiply(reshape(arange(stop=" + std::to_string(count) +
         "f, dtype=\"float32\"), newshape=" + shape + "), 0.001f)";
}

// Contractions whose neighbouring items are lanes of a processor's vectors.
std::vector<std::string> lane_cases() {
  return {
      // Panels of constant weights: images with channels first and last, strides and a border; rows; a single row.
      main_of("%x: Tensor[(2, 5, 12, 14), float32]",
              "nn.relu(nn.conv2d(%x, " + weights("[32, 5, 3, 3]", 1440) +
                  ", padding=[1, 1, 1, 1], strides=[2, 1]))"),
      main_of("%x: Tensor[(1, 9, 7, 4), float32]",
              "nn.conv2d(%x, " + weights("[3, 3, 4, 16]", 576) +
                  ", data_layout=\"NHWC\", kernel_layout=\"HWIO\")"),
      main_of("%x: Tensor[(40, 21), float32]",
              "nn.relu(nn.dense(%x, " + weights("[48, 21]", 1008) + "))"),
      main_of("%x: Tensor[(1, 70), float32]", "nn.dense(%x, " + weights("[32, 70]", 2240) + ")"),
      // Columns that are no whole panels; weights of the run; matrices of a batch; lanes along a row of an image.
      main_of("%x: Tensor[(1, 3, 8, 8), float32]",
              "nn.conv2d(%x, " + weights("[20, 3, 3, 3]", 540) + ")"),
      main_of("%x: Tensor[(30, 17), float32], %w: Tensor[(19, 17), float32]", "nn.dense(%x, %w)"),
      main_of("%x: Tensor[(3, 12, 10), float32], %w: Tensor[(3, 10, 11), float32]",
              "nn.batch_matmul(%x, %w)"),
      main_of("%x: Tensor[(1, 6, 9, 24), float32], %w: Tensor[(6, 1, 3, 3), float32]",
              "nn.conv2d(%x, %w, groups=6, padding=[1, 1, 1, 1])"),
  };
}

TEST(Opencl, items_that_are_lanes) {
  CompileOptions options;
  options.target = "native; opencl";
  options.verify = true;
  for (const std::string& text : lane_cases()) {
    const CompiledModule compiled = compile(driver_test::parse(text), options);
    std::string schedules;
    for (const CompiledKernel& k : compiled.kernels) schedules += k.schedule + "\n";
    EXPECT_NE(schedules.find("items are lanes of vectors"), std::string::npos) << schedules << text;
    expect_no_races(compiled);
  }
  // Sixteen neighbouring items read neighbouring weights; there are two panels.
  const CompiledModule panels = compile(driver_test::parse(lane_cases()[0]), options);
  EXPECT_NE(assembly_text(panels, options).find(" | 16 | 2 | "), std::string::npos)
      << assembly_text(panels, options);
}

TEST(Opencl, items_that_are_lanes_compute_what_the_host_does) {
  NEEDS_OPENCL();
  for (const std::string& text : lane_cases()) expect_as_on_host(text, 1e-4);
}

// Kernels of a device whose warps have instructions for products: with these, for all dtypes that have any, or with a reason.
TEST(Opencl, products_of_warps) {
  initialize();
  CompileOptions options;
  options.target = "native; opencl";
  auto expect_schedule = [&](const std::string& features, const std::string& text,
                             const std::string& said) {
    Target gpu;
    gpu.name = gpu.kind = "opencl";
    gpu.limits.items = nvidia_items(80);
    gpu.limits.items.units = 12;
    gpu.features = features;
    size_t products = 0;
    for (const CompiledKernel& k : device_kernels(compile(driver_test::parse(text), options))) {
      const tir::PrimFunc scheduled = schedule_kernel(k.composed, gpu, 3);
      const std::string sentence = tir::report_of(*scheduled.get()).sentence;
      if (sentence.find(said) != std::string::npos) ++products;
      // Without the target, from the parameters as they are written.
      const ScheduleRule& rule = *work_item_rules()[0];
      tir::Schedule replayed(prepared(k.composed));
      const Choice choice = choose(rule, replayed, gpu);
      const auto& decision = std::get<Decision>(choice);
      const std::string parameters = parameters_text(decision.parameters);
      EXPECT_FALSE(apply(rule, replayed, parse_parameters(rule, parameters))) << parameters;
      EXPECT_TRUE(structural_equal(replayed.func(), decision.scheduled)) << parameters;
      const tir::PrimFunc lowered = tir::lower_loops(scheduled, kind_of(gpu).lowering());
      tir::verify(lowered);
      EXPECT_EQ(tir::text_of(lowered).find("# nest = matrix") != std::string::npos,
                sentence.find("tensor cores: m") != std::string::npos)
          << sentence;
      expect_no_races(k.composed, lowered, sentence);
    }
    EXPECT_EQ(products, 1u) << said << "\n" << text;
  };
  const std::string sm75 = nvidia_matrix_features(75), sm80 = nvidia_matrix_features(80);
  auto dense = [](int m, int n, int k, const std::string& dtype, const std::string& more = {}) {
    auto shape = [&](int rows) {
      return "Tensor[(" + std::to_string(rows) + ", " + std::to_string(k) + "), " + dtype + "]";
    };
    return main_of("%x: " + shape(m) + ", %w: " + shape(n), "nn.dense(%x, %w" + more + ")");
  };
  // Whole tiles, and tiles that reach over the end of rows, columns and terms.
  expect_schedule(sm80, dense(256, 128, 64, "float16"), " on tensor cores: m16n8k16");
  expect_schedule(sm80, dense(260, 100, 43, "bfloat16"), " on tensor cores: m16n8k16");
  expect_schedule(sm75, dense(260, 100, 43, "float16"), " on tensor cores: m16n8k8");
  const std::string whole = ", out_dtype=\"int32\"";
  expect_schedule(sm80, dense(260, 100, 70, "int8", whole), " on tensor cores: m16n8k32");
  expect_schedule(sm75, dense(260, 100, 70, "int8", whole), " on tensor cores: m8n8k16");
  expect_schedule(sm80 + ",+tf32", dense(260, 100, 37, "float32"), " on tensor cores: m16n8k8");
  // Parts of the sum, which items of a second launch add.
  expect_schedule(sm80, dense(64, 64, 700, "float16"), " parts, then ");
  // What follows is computed in the same groups; operands whose terms do not adjoin; images, with borders and strides.
  expect_schedule(sm80,
                  main_of("%x: Tensor[(3, 131, 40), float16], %w: Tensor[(3, 40, 71), float16], "
                          "%b: Tensor[(71,), float16]",
                          "nn.relu(add(nn.batch_matmul(%x, %w), %b))"),
                  " on tensor cores: m16n8k16");
  expect_schedule(
      sm80,
      main_of("%x: Tensor[(2, 5, 30, 31), bfloat16], %w: Tensor[(70, 5, 3, 3), bfloat16]",
              "nn.relu(nn.conv2d(%x, %w, padding=[1, 1, 1, 1], strides=[2, 2]))"),
      "on tensor cores: m16n8k16");
  expect_schedule(
      sm80 + ",+tf32",
      main_of("%x: Tensor[(1, 24, 20, 21), float32], %w: Tensor[(70, 24, 1, 1), float32]",
              "nn.conv2d(%x, %w)"),
      " on tensor cores: m16n8k8");
  expect_schedule(
      sm80,
      main_of(
          "%x: Tensor[(2, 20, 21, 6), float16], %w: Tensor[(3, 3, 6, 70), float16]",
          "nn.conv2d(%x, %w, padding=[1, 1, 1, 1], data_layout=\"NHWC\", kernel_layout=\"HWIO\")"),
      "on tensor cores: m16n8k16");
  // Copies that run ahead: later ones, some with a border, and through registers where the terms do not adjoin.
  const std::string ahead = "copied while the ones before are multiplied";
  expect_schedule(sm80, dense(256, 128, 512, "float16"), ahead);
  expect_schedule(sm80, dense(260, 100, 328, "bfloat16"), ahead);
  expect_schedule(sm80, dense(260, 100, 333, "float16"), ahead);
  expect_schedule(sm80,
                  main_of("%x: Tensor[(3, 131, 200), float16], %w: Tensor[(3, 200, 71), float16]",
                          "nn.batch_matmul(%x, %w)"),
                  ahead);
  // Too few steps.
  expect_schedule(sm80, dense(256, 128, 32, "float16"), "bytes of shared memory");
  // Why not.
  expect_schedule(sm80, dense(250, 91, 37, "float32"),
                  "(no tensor cores: the target keeps all bits of float32; +tf32 rounds)");
  expect_schedule(sm75, dense(250, 91, 37, "bfloat16"),
                  "(no tensor cores: the device has no instruction for bfloat16 in float32)");
  expect_schedule(sm80, dense(2, 1000, 37, "float16"),
                  "(no tensor cores: an extent of 2 leaves most of a tile of ");
}

// A device with more registers gets larger tiles, whose items have several runs of elements along each axis.
TEST(Opencl, tiles_of_a_device_with_many_registers) {
  initialize();
  CompileOptions options;
  options.target = "native; opencl -device=gpu";
  Target gpu;
  gpu.name = gpu.kind = "opencl";
  gpu.limits.items = nvidia_items(90);
  auto expect_tiles = [&](const std::string& text, const std::string& said) {
    for (const CompiledKernel& k : device_kernels(compile(driver_test::parse(text), options))) {
      const tir::PrimFunc scheduled = schedule_kernel(k.composed, gpu, 3);
      const std::string sentence = tir::report_of(*scheduled.get()).sentence;
      EXPECT_NE(sentence.find(said), std::string::npos) << sentence;
      expect_no_races(k.composed, tir::lower_loops(scheduled, kind_of(gpu).lowering()), sentence);
    }
  };
  // Each multiprocessor has a group of small tiles.
  expect_tiles(main_of("%x: Tensor[(2, 4, 16, 17), float32], %w: Tensor[(70, 4, 3, 3), float32]",
                       "nn.conv2d(%x, %w, padding=[1, 1, 1, 1])"),
               "tiles of 4x4");
  expect_tiles(main_of("%x: Tensor[(64, 700), float32], %w: Tensor[(128, 700), float32]",
                       "nn.relu(nn.dense(%x, %w))"),
               " parts, then in the items of ");
  // The next terms are copied beside the product, also with the borders of images and for operands whose terms do not adjoin.
  const std::string ahead = "copied while the ones before are multiplied";
  expect_tiles(main_of("%x: Tensor[(200, 331), float32], %w: Tensor[(331, 130), float32]",
                       "nn.matmul(%x, %w)"),
               ahead);
  expect_tiles(main_of("%x: Tensor[(2, 12, 16, 17), float32], %w: Tensor[(70, 12, 3, 3), float32]",
                       "nn.conv2d(%x, %w, padding=[1, 1, 1, 1])"),
               ahead);
  // A quarter of a tile.
  expect_tiles(main_of("%x: Tensor[(16, 700), float32], %w: Tensor[(130, 700), float32]",
                       "nn.relu(nn.dense(%x, %w))"),
               " parts, then in the items of ");
  // A single row: a group sums for each element.
  expect_tiles(main_of("%x: Tensor[(1, 520), float32], %w: Tensor[(40, 520), float32]",
                       "nn.relu(nn.dense(%x, %w))"),
               "T_dense groups of 128 items");
  // Rows whose reductions are one launch, with what stands between them.
  expect_tiles(main_of("%x: Tensor[(33, 150), float32]", "nn.softmax(%x)"), "groups of 32 items");
  expect_tiles(main_of("%x: Tensor[(4, 5, 520), float32], %g: Tensor[(520,), float32], "
                       "%b: Tensor[(520,), float32]",
                       "nn.layer_norm(%x, %g, %b)"),
               "groups of 128 items");
  gpu.limits.items.units = 4;
  expect_tiles(main_of("%x: Tensor[(10, 120, 16), float16], %w: Tensor[(10, 16, 250), float16]",
                       "nn.relu(nn.batch_matmul(%x, %w))"),
               "tiles of 8x8");
}

// Items of a warp that exchange registers wait less often than items that share memory, and compute the same.
TEST(Opencl, warps_that_exchange_registers) {
  initialize();
  CompileOptions options;
  options.target = "native; opencl -device=gpu";
  Target gpu;
  gpu.name = gpu.kind = "opencl";
  auto barriers = [&](const std::string& text, bool exchange) {
    gpu.limits.items = nvidia_items(75);
    gpu.limits.items.exchanges = exchange;
    size_t out = 0;
    for (const CompiledKernel& k : device_kernels(compile(driver_test::parse(text), options))) {
      const tir::PrimFunc scheduled = schedule_kernel(k.composed, gpu, 3);
      const std::string sentence = tir::report_of(*scheduled.get()).sentence;
      EXPECT_EQ(sentence.find("registers in warps") != std::string::npos, exchange) << sentence;
      const tir::PrimFunc lowered = tir::lower_loops(scheduled, kind_of(gpu).lowering());
      expect_no_races(k.composed, lowered, sentence);
      const std::string code = tir::text_of(lowered), word = "barrier()";
      EXPECT_EQ(code.find("# nest = lanes") != std::string::npos, exchange) << code;
      // OpenCL C has no form of them: items would store to one element.
      std::string why;
      try {
        backend_of(gpu).compile({lowered}, gpu, 1, nullptr);
      } catch (const UserError& e) {
        why = e.what();
      }
      EXPECT_EQ(why.find("a reduction across a warp") != std::string::npos, exchange) << why;
      for (size_t at = code.find(word); at != std::string::npos; at = code.find(word, at + 1)) {
        ++out;
      }
    }
    return out;
  };
  const std::string softmax = "nn.softmax(%x)";
  // One warp for a row: a barrier behind each reduction, and behind what is computed of it.
  EXPECT_EQ(barriers(main_of("%x: Tensor[(33, 150), float32]", softmax), true), 3U);
  EXPECT_EQ(barriers(main_of("%x: Tensor[(33, 150), float32]", softmax), false), 7U);
  // Four warps, whose results the first item reduces.
  EXPECT_EQ(barriers(main_of("%x: Tensor[(17, 1030), float32]", softmax), true), 5U);
  EXPECT_EQ(barriers(main_of("%x: Tensor[(40, 1030), float16]", "sum(%x, axis=[1])"), true), 1U);
  EXPECT_EQ(barriers(main_of("%x: Tensor[(40, 1030), float32]", "max(%x, axis=[1])"), false), 2U);
  EXPECT_EQ(barriers(main_of("%x: Tensor[(40, 1030), bool]", "all(%x, axis=[1])"), true), 1U);
  EXPECT_EQ(barriers(main_of("%x: Tensor[(1, 520), float32], %w: Tensor[(40, 520), float32]",
                             "nn.dense(%x, %w)"),
                     true),
            1U);
}

TEST(Opencl, groups_of_work_items) {
  NEEDS_OPENCL();
  for (const GroupCase& c : group_cases()) {
    // Arguments are made for fixed sizes.
    if (c.text.find(": Dim]") == std::string::npos) {
      expect_as_on_host(c.text, c.tolerance, {3}, -2, 2, "native; opencl -device=gpu");
      expect_as_on_host(c.text, c.tolerance);
    }
  }
}

// Blocks whose order matters run in one item.
TEST(Opencl, statements_in_their_order) {
  NEEDS_OPENCL();
  expect_as_on_host(main_of("%x: Tensor[(5, 40), float32]", "sort(%x, axis=1)"));
  expect_as_on_host(main_of("%x: Tensor[(5, 40), float32]", "topk(%x, k=3, ret_type=\"values\")"));
  expect_as_on_host(main_of("%x: Tensor[(6, 4), float32], %i: Tensor[(2, 4), int64], "
                            "%u: Tensor[(2, 4), float32]",
                            "scatter_elements(%x, %i, %u, axis=0)"),
                    1e-5, {3}, 0, 5);
}

// A check that fails on the device ends the run, and the next run is right.
TEST(Opencl, a_failure_is_the_runs) {
  NEEDS_OPENCL();
  const Module mod =
      driver_test::parse(main_of("%x: Tensor[(4,), float32], %i: Tensor[(2,), int32]",
                                 "gather(%x, %i, axis=0, checked=True)"));
  CompileOptions options;
  options.target = "native; opencl";
  const runtime::Module ready = compile(mod, options).load();
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

constexpr const char* kNetwork = R"(
def @main[n: Dim](%x: Tensor[(n, 64), float32], %w: Tensor[(64, 64), float32]) {
  let %a = nn.relu(nn.dense(%x, %w));
  let %b = nn.softmax(nn.dense(%a, %w));
  (sum(%b, axis=[0]), if (sum(%b) > 0f) { negative(%b) } else { %b })
})";

// The target alone: what the device supports is there, in the artifact, too, for several sizes.
TEST(Opencl, a_program_without_places) {
  NEEDS_OPENCL();
  const Module mod = driver_test::parse(kNetwork);
  CompileOptions options;
  options.target = "opencl";
  options.verify = true;
  const CompiledModule compiled = compile(mod, options);
  int64_t there = 0;
  for (const runtime::KernelInfo& k : compiled.program.kernels) there += k.device == kOpencl;
  EXPECT_GE(there, 4);
  EXPECT_NE(assembly_text(compiled, options).find("__kernel void"), std::string::npos);
  const std::string path = ::testing::TempDir() + "/opencl.so";
  compiled.write(path, true);
  const runtime::Module loaded = runtime::Module::load(path);
  CompileOptions host;
  const runtime::Module on_host = compile(mod, host).load();
  for (int64_t n : {1, 37, 300}) {
    const Tensor x = Tensor::empty(DType::Float(32), {n, 64}),
                 w = Tensor::empty(DType::Float(32), {64, 64});
    driver_test::fill(x, -1, 1, 1);
    driver_test::fill(w, -1, 1, 2);
    const std::vector<double> want = numbers(on_host.run("main", {x, w})),
                              got = numbers(loaded.run("main", {x, w}));
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-4) << n << ": " << i;
  }
}

// A device without a form of an operator is refused where the program asks for it.
TEST(Opencl, must_fail_what_it_has_no_form_of) {
  CompileOptions options;
  options.target = "native; opencl";
  initialize();
  try {
    compile(driver_test::parse(main_of("%x: Tensor[(4,), string]", "text.concat(%x, %x)")),
            options);
    ADD_FAILURE() << "it is compiled";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("E0409"), std::string::npos) << e.what();
  }
}

// What one program gives on the device, the next takes there: nothing is copied in between.
TEST(Opencl, programs_pass_tensors_on_the_device) {
  NEEDS_OPENCL();
  auto compiled = [](const std::string& attributes, const std::string& body) {
    CompileOptions options;
    options.target = "native; opencl";
    options.verify = true;
    return compile(driver_test::parse("def @main(%x: Tensor[(80, 90), float32], " + attributes +
                                      ") { " + body + " }"),
                   options)
        .load();
  };
  constexpr int64_t kBytes = 80 * 90 * 4;
  const runtime::Module first = compiled("result_devices=[[0, \"opencl:0\"]]", "tanh(add(%x, %x))");
  const runtime::Module next = compiled(
      "param_devices=[[\"x\", \"opencl:0\"]], result_devices=[[0, \"opencl:0\"]]", "exp(%x)");
  const Tensor x = Tensor::empty(DType::Float(32), {80, 90});
  driver_test::fill(x, 0, 1, 7);
  runtime::Profiler profiler;
  runtime::RunOptions options;
  options.profiler = &profiler;
  options.keeps_on_devices = true;
  std::vector<Tensor> values = first.run("main", {x}, options);
  EXPECT_EQ(profiler.copies(), (runtime::Profiler::Copies{kBytes, 0}));
  profiler.clear();
  for (int i = 0; i < 3; ++i) values = next.run("main", values, options);
  EXPECT_EQ(profiler.copies(), runtime::Profiler::Copies{});
  ASSERT_EQ(values[0].device(), kOpencl);
  // A run that does not keep them, as from C++ without more said, gives them on the host.
  options.keeps_on_devices = false;
  const Tensor again = next.run("main", first.run("main", {x}, options), options)[0];
  EXPECT_EQ(profiler.copies(), (runtime::Profiler::Copies{2 * kBytes, 2 * kBytes}));
  const Tensor got = runtime::to_host(values[0]);
  for (int64_t i = 0; i < got.num_elements(); ++i) {
    const double want = std::exp(std::tanh(2 * x.get_as_double(i)));
    ASSERT_NEAR(again.get_as_double(i), want, 1e-4);
    ASSERT_NEAR(got.get_as_double(i), std::exp(std::exp(want)), 1e-3 * std::exp(std::exp(want)));
  }
}

}  // namespace
}  // namespace relay
