// A kind of target that is a processor with 32-bit indices: the same rules, passes and backend.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "codegen/llvm/backend.h"
#include "driver/evaluate.h"
#include "driver/test/networks.h"
#include "lower/rules/rules.h"
#include "node/walk.h"
#include "runtime/core/dlpack.h"
#include "runtime/core/kernel_abi.h"
#include "runtime/core/kernel_errors.h"
#include "tir/lower_loops.h"

namespace relay {
namespace {

// A name that ends in -wide is the machine, another one least_target().
class Reader : public TargetReader {
 public:
  explicit Reader(std::vector<std::string> names) : names_(std::move(names)) {}
  std::vector<std::string> names() const override { return names_; }
  std::span<const TargetOption> options() const override {
    static constexpr TargetOption kOptions[] = {{"-num-threads", "N", "Threads."}};
    return kOptions;
  }
  Target read(const TargetWords& words) const override {
    ++reads;
    Target t = words.name().ends_with("-wide") ? native_target() : least_target();
    t.name = words.name();
    const std::string threads = words.value_of("-num-threads");
    t.num_cores = threads.empty() ? 1 : std::stoi(threads);
    return t;
  }

  static inline int reads = 0;  // of target strings

 private:
  std::vector<std::string> names_;
};

class Backend32 : public Backend {
 public:
  explicit Backend32(std::vector<std::string> names) : reader_(std::move(names)) {}
  std::string_view name() const override { return "llvm32"; }
  bool supports(const Target& t) const override { return llvm().supports(t); }
  const TargetReader& reader() const override { return reader_; }
  bool has_intrinsic(const tir::Intrinsic& i) const override { return llvm().has_intrinsic(i); }
  std::vector<ObjectCode> compile(const std::vector<tir::PrimFunc>& kernels, const Target& target,
                                  int threads, KernelCache* cache,
                                  const std::function<void()>& each) const override {
    return llvm().compile(kernels, target, threads, cache, each);
  }
  std::string link(const std::vector<ObjectCode>& objects,
                   const std::vector<tir::PrimFunc>& kernels, const Target& target) const override {
    return llvm().link(objects, kernels, target);
  }
  LoadedKernels load(const std::vector<tir::PrimFunc>& kernels, const Target& target,
                     KernelCache* cache) const override {
    return llvm().load(kernels, target, cache);
  }
  std::string text(CodeText form, const std::vector<tir::PrimFunc>& kernels,
                   const Target& target) const override {
    return llvm().text(form, kernels, target);
  }

 private:
  static const Backend& llvm() { return codegen::llvm_backend(); }
  Reader reader_;
};

const Backend& backend() {
  static const Backend32 out({"cpu32", "cpu32-wide"});
  return out;
}
const Backend& far_backend() {
  static const Backend32 out({"far"});
  return out;
}

Module parse_program(const std::string& text) {
  static std::once_flag once;
  std::call_once(once, [] {
    TargetKind kind;
    kind.name = "cpu32";
    kind.backend = backend;
    kind.rules = processor_rules;
    kind.lowering = tir::lowering_passes;
    kind.index_bits = kind.pointer_bits = 32;
    // Addresses are the machine's; the limits of 32 bits hold all the same.
    register_target_kind(kind);
    kind.name = "far";
    kind.backend = far_backend;
    kind.device = kDLCUDA;
    register_target_kind(kind);
  });
  return driver_test::parse(text);
}

// Index arithmetic of 64 bits, but for checks, which are of sizes as a caller passes them.
std::string wide_arithmetic(const tir::PrimFunc& f) {
  std::string out;
  auto enter = [](const Node& n) { return !isa<tir::CheckNode>(&n); };
  auto visit = [&](const Node& n) {
    auto* binary = as<tir::BinaryNode>(&n);
    auto* loop = as<tir::ForNode>(&n);
    if (binary != nullptr && binary->a->dtype.element() == tir::kIndex) {
      out += tir::to_string(tir::PrimExpr(binary)) + "\n";
    }
    if (loop != nullptr && loop->var->dtype == tir::kIndex) out += "for " + loop->var->name + "\n";
  };
  post_order_if(f->body, enter, visit, family::tir_expr | family::tir_stmt);
  return out;
}

// Runs the program compiled for 32-bit indices beside the evaluator. Sizes of open dimensions are `sizes`, in order.
void expect_right(const std::string& text, const std::string& target, const std::string& name,
                  std::vector<std::vector<int64_t>> shapes, double low = -1, double high = 1) {
  Module mod = parse_program(text);
  CompileOptions options;
  options.target = target;
  options.verify = true;
  CompiledModule compiled = compile(mod, options);
  for (const CompiledKernel& k : compiled.kernels) {
    EXPECT_EQ(wide_arithmetic(k.lowered), "") << name << ", " << k.rule << "\n"
                                              << tir::to_string(k.lowered);
  }
  std::vector<Tensor> inputs;
  std::vector<runtime::Value> values;
  const auto& params = mod->find("main")->params;
  for (size_t i = 0; i < params.size(); ++i) {
    auto* type = as<TensorTypeNode>(params[i]->type);
    inputs.push_back(Tensor::empty(type->dtype, shapes.at(i)));
    driver_test::fill(inputs.back(), low, high, i + 1);
    values.emplace_back(inputs.back());
  }
  std::vector<Tensor> want;
  runtime::flatten_tensors(Evaluator(mod).call("main", values), want);
  std::vector<Tensor> got = compiled.load().run("main", inputs, {});
  ASSERT_EQ(got.size(), want.size()) << name;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].num_elements(), want[i].num_elements()) << name;
    for (int64_t j = 0; j < got[i].num_elements(); ++j) {
      const double w = want[i].get_as_double(j);
      ASSERT_NEAR(got[i].get_as_double(j), w, 1e-4 * (1 + std::abs(w))) << name << " " << j;
    }
  }
}

TEST(IndexWidth, programs_of_constant_sizes) {
  for (const char* target : {"cpu32", "cpu32-wide -num-threads=2"}) {
    expect_right(
        "def @main(%x: Tensor[(33, 65), float32], %w: Tensor[(40, 65), float32]) {\n"
        "  nn.softmax(nn.relu(nn.dense(%x, %w))) }",
        target, "dense", {{33, 65}, {40, 65}});
    expect_right(
        "def @main(%x: Tensor[(1, 16, 14, 14), float32], %w: Tensor[(32, 16, 3, 3), float32]) {\n"
        "  let %y = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], strides=[2, 2], channels=32, "
        "kernel_size=[3, 3]);\n"
        "  nn.max_pool2d(%y, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 1, 1]) }",
        target, "convolution", {{1, 16, 14, 14}, {32, 16, 3, 3}});
    expect_right(
        "def @main(%x: Tensor[(6, 24, 10), float32]) {\n"
        "  reshape(transpose(%x, axes=[2, 0, 1]), newshape=[60, 24]) }",
        target, "transposition", {{6, 24, 10}});
    expect_right(
        "def @main(%x: Tensor[(50, 70), float32]) {\n"
        "  (sum(%x, axis=[0]), max(%x, axis=[1]), cumsum(%x, axis=1)) }",
        target, "reductions", {{50, 70}});
    expect_right(
        "def @main(%x: Tensor[(1, 3, 20, 20), float32]) {\n"
        "  nn.adaptive_avg_pool2d(nn.avg_pool2d(%x, pool_size=[3, 3], strides=[1, 1], "
        "padding=[1, "
        "1, 1, 1]), "
        "output_size=[7, 7]) }",
        target, "pooling", {{1, 3, 20, 20}});
  }
}

TEST(IndexWidth, programs_of_open_sizes) {
  for (const char* target : {"cpu32", "cpu32-wide -num-threads=2"}) {
    expect_right(
        "def @main[n: Dim, m: Dim](%x: Tensor[(n, m), float32], %y: Tensor[(n, m), float32]) {\n"
        "  tanh(add(%x, multiply(%y, %y))) }",
        target, "elementwise", {{7, 19}, {7, 19}});
    expect_right(
        "def @main[n: Dim](%x: Tensor[(n, 48), float32], %w: Tensor[(56, 48), float32]) {\n"
        "  nn.softmax(nn.dense(%x, %w)) }",
        target, "open dense", {{37, 48}, {56, 48}});
    expect_right(
        "def @main[n: Dim, m: Dim](%x: Tensor[(n, m), float32]) {\n"
        "  sum(transpose(%x, axes=[1, 0]), axis=[0]) }",
        target, "open transposition", {{9, 31}});
    expect_right(
        "def @main[n: Dim](%x: Tensor[(1, 8, n, n), float32], %w: Tensor[(16, 8, 3, 3), "
        "float32]) "
        "{\n"
        "  nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=16, kernel_size=[3, 3]) }",
        target, "open convolution", {{1, 8, 13, 13}, {16, 8, 3, 3}});
  }
}

TEST(IndexWidth, what_is_computed_beside_indices_keeps_its_bits) {
  // Data of 64 bits is not an index: its arithmetic stays. The place of an element is an index that becomes data.
  Module mod = parse_program(
      "def @main(%x: Tensor[(4), int64]) {\n"
      "  let %y = multiply(add(%x, 3000000000i64), %x);\n"
      "  (%y, argmax(%x, axis=[0])) }");
  CompileOptions options;
  options.target = "cpu32";
  options.verify = true;
  Tensor x = Tensor::empty(DType::Int(64), {4});
  for (int64_t i = 0; i < 4; ++i) x.set_from_int(i, (i + 1) << 28);
  std::vector<Tensor> y = compile(mod, options).load().run("main", {x}, {});
  for (int64_t i = 0; i < 4; ++i) {
    const int64_t v = (i + 1) << 28;
    EXPECT_EQ(y.at(0).get_as_int(i), (v + 3000000000) * v);
  }
  EXPECT_EQ(y.at(1).get_as_int(0), 3);
}

TEST(IndexWidth, indices_that_are_data_are_not_cut_off) {
  Module mod = parse_program(
      "def @main(%x: Tensor[(5), float32], %i: Tensor[(3), int64]) { take(%x, %i, axis=0, "
      "mode=\"clip\") }");
  CompileOptions options;
  options.target = "cpu32";
  options.verify = true;
  Tensor x = Tensor::empty(DType::Float(32), {5}), i = Tensor::empty(DType::Int(64), {3});
  for (int64_t k = 0; k < 5; ++k) x.set_from_double(k, static_cast<double>(k));
  // In 32 bits these are 1, 0 and 2.
  for (int64_t k = 0; k < 3; ++k) {
    i.set_from_int(k, std::vector<int64_t>{(int64_t{1} << 32) + 1, -(int64_t{1} << 32), 2}[k]);
  }
  Tensor y = compile(mod, options).load().run("main", {x, i}, {}).at(0);
  EXPECT_EQ(y.get_as_double(0), 4);
  EXPECT_EQ(y.get_as_double(1), 0);
  EXPECT_EQ(y.get_as_double(2), 2);
}

TEST(IndexWidth, a_tensor_that_needs_more_is_refused_E0408) {
  auto error = [](const std::string& text) -> std::string {
    Module mod = parse_program(text);
    CompileOptions options;
    options.target = "cpu32";
    try {
      compile(mod, options);
    } catch (const UserError& e) {
      EXPECT_EQ(e.diagnostics().front().code, "E0408") << e.what();
      return e.what();
    }
    return "it is compiled";
  };
  const std::string elements = error("def @main(%x: Tensor[(65536, 32769), int8]) { add(%x, %x) }");
  EXPECT_NE(elements.find("2147549184 elements"), std::string::npos) << elements;
  EXPECT_NE(elements.find("test.relay"), std::string::npos) << elements;
  // Fewer elements than indices count, more bytes than addresses reach.
  const std::string bytes =
      error("def @main(%x: Tensor[(1024, 1024, 1024), float32]) { add(%x, %x) }");
  EXPECT_NE(bytes.find("1073741824 elements of float32"), std::string::npos) << bytes;
  compile(parse_program("def @main(%x: Tensor[(32768, 32767), int8]) { add(%x, %x) }"), [] {
    CompileOptions options;
    options.target = "cpu32";
    return options;
  }());
}

TEST(IndexWidth, sizes_that_need_more_end_the_run_E0601) {
  EXPECT_EQ(runtime::kernel_error_code(RELAY_KERNEL_INDEX_WIDTH).id, "E0601");
}

TEST(TargetKinds, a_compilation_reads_its_target_string_once) {
  Module mod = parse_program("def @main(%x: Tensor[(4), float32]) { add(%x, multiply(2f, 3f)) }");
  CompileOptions options;
  options.target = "cpu32";
  const int before = Reader::reads;
  compile(mod, options);
  EXPECT_EQ(Reader::reads, before + 1);
}

TEST(TargetKinds, a_kind_of_other_memory_has_this_machine_as_its_host) {
  Module mod = parse_program("def @main(%x: Tensor[(4), float32]) { add(%x, %x) }");
  CompileOptions options;
  options.target = "far";
  const std::string target = compile(mod, options).target;
  EXPECT_TRUE(target.starts_with("native: ")) << target;
  EXPECT_NE(target.find("; far"), std::string::npos) << target;
}

}  // namespace
}  // namespace relay
