#include "driver/compile.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/diagnostic_codes.h"
#include "base/parallel.h"
#include "codegen/llvm/codegen.h"
#include "codegen/target.h"
#include "driver/evaluate_constant.h"
#include "driver/target_info.h"
#include "node/walk.h"
#include "ops/register_ops.h"
#include "passes/pipelines.h"
#include "runtime/cpu.h"
#include "tir/lower_loops.h"
#include "tir/verify.h"

namespace relay {
namespace {

// Measures the phases of a compilation and tells how far it is.
class Phases {
 public:
  Phases(const CompileOptions& options, std::vector<Phase>& out) : options_(options), out_(out) {}

  void begin(std::string name, int64_t total = 0) {
    end();
    if (options_.cancelled && options_.cancelled()) {
      throw UserError(Diagnostic(codes::pass_cancelled, {}, "compilation was cancelled"));
    }
    name_ = std::move(name);
    total_ = total;
    start_ = std::chrono::steady_clock::now();
    if (options_.progress) options_.progress(name_, 0, total_);
  }
  void step(int64_t done) {
    if (options_.progress) options_.progress(name_, done, total_);
  }
  void end() {
    if (name_.empty()) return;
    double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    out_.push_back({std::move(name_), seconds});
    name_.clear();
  }

 private:
  const CompileOptions& options_;
  std::vector<Phase>& out_;
  std::string name_;
  int64_t total_ = 0;
  std::chrono::steady_clock::time_point start_;
};

Target resolve_target(const CompileOptions& options) {
  Target target = Target::parse(options.target);
  if (options.num_threads > 0) target.num_cores = options.num_threads;
  return target;
}

std::string function_attr(const Function& f, const char* key) {
  auto it = f->attrs.find(key);
  if (it == f->attrs.end()) return {};
  auto* text = it->second.get_if<std::string>();
  return text == nullptr ? std::string() : *text;
}

// Provenance and kernels, for `relay show` and profiles; the same for the same input.
std::string make_metadata(const CompiledModule& compiled, const CompileOptions& options) {
  nlohmann::ordered_json root;
  root["compiler"] = std::string("relay ") + RELAY_VERSION;
  root["target"] = compiled.target;
  root["opt_level"] = options.opt_level;
  if (!options.source_name.empty()) {
    // The name without its folder: where a model lay is nobody's business.
    root["source"] = options.source_name.substr(options.source_name.find_last_of('/') + 1);
  }
  if (!options.source_hash.empty()) root["source_hash"] = options.source_hash;
  nlohmann::ordered_json& kernels = root["kernels"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < compiled.kernels.size(); ++i) {
    const CompiledKernel& k = compiled.kernels[i];
    nlohmann::ordered_json item;
    item["name"] = k.name;
    item["origin"] = compiled.program.kernels[i].origin;
    item["schedule"] = k.schedule;
    if (!k.fusion.empty()) item["fusion"] = k.fusion;
    item["flops"] = compiled.program.kernels[i].flops;
    item["bytes"] = compiled.program.kernels[i].bytes;
    kernels.push_back(std::move(item));
  }
  nlohmann::ordered_json& arenas = root["arenas"] = nlohmann::ordered_json::array();
  for (const ArenaReport& a : compiled.arenas) {
    arenas.push_back(
        {{"function", a.function}, {"bytes", a.arena_bytes}, {"lower_bound", a.lower_bound}});
  }
  return root.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

void initialize() { register_ops(); }

PassContext pass_context(const CompileOptions& options) {
  PassContext ctx;
  Target target = resolve_target(options);
  ctx.opt_level = options.opt_level;
  ctx.required_pass = options.required_pass;
  ctx.disabled_pass = options.disabled_pass;
  ctx.config = options.config;
  ctx.verify = options.verify;
  ctx.cancelled = options.cancelled;
  ctx.instruments = options.instruments;
  ctx.target.vector_lanes_f32 = target.vector_bits / 32;
  ctx.target.num_vector_registers = target.num_vector_registers;
  ctx.evaluate = constant_evaluator(options);
  return ctx;
}

Module optimize(const Module& mod, const CompileOptions& options) {
  initialize();
  PassContext ctx = pass_context(options);
  return run_passes(mod, optimize_pipeline(), ctx);
}

Bytecode plan(const Module& optimized, const CompileOptions& options) {
  Bytecode bytecode = compile_to_bytecode(optimized);
  for (StageObserver* o : options.observers) o->bytecode(bytecode);
  return bytecode;
}

std::vector<CompiledKernel> lower_kernels(Bytecode& bytecode, const CompileOptions& options) {
  Target target = resolve_target(options);
  std::vector<CompiledKernel> out(bytecode.kernels.size());
  for_each_parallel(out.size(), runtime::available_threads(), [&](size_t i) {
    ProgramKernel& k = bytecode.kernels[i];
    CompiledKernel& c = out[i];
    c.name = k.name;
    c.primitive = k.primitive;
    auto observed = [&](std::string_view stage, tir::PrimFunc f) {
      for (StageObserver* o : options.observers) f = o->kernel(stage, std::move(f));
      return f;
    };
    auto checked = [&](tir::PrimFunc f) {
      if (options.verify) tir::verify(f);
      return f;
    };
    c.composed = checked(observed("compose", k.composed.func));
    c.scheduled = checked(
        observed("schedule", schedule_kernel(c.composed, target_info(target), options.opt_level)));
    auto note = c.scheduled->attrs.find("schedule");
    if (note != c.scheduled->attrs.end()) c.schedule = note->second;
    c.fusion = function_attr(k.primitive, attr::kFusionReason);
    c.lowered = checked(tir::lower_loops(c.scheduled, observed));
  });
  return out;
}

CompiledModule compile(const Module& mod, const CompileOptions& options) {
  initialize();
  CompiledModule out;
  Phases phases(options, out.phases);
  Target target = resolve_target(options);
  out.target = target.describe();

  phases.begin("optimize");
  PassTiming timing;
  CompileOptions with_timing = options;
  with_timing.instruments.push_back(&timing);
  out.optimized = optimize(mod, with_timing);
  out.passes = timing.rows();

  phases.begin("plan");
  Bytecode bytecode = plan(out.optimized, options);
  out.arenas = bytecode.arenas;

  phases.begin("lower", static_cast<int64_t>(bytecode.kernels.size()));
  out.kernels = lower_kernels(bytecode, options);
  out.program = std::move(bytecode.program);

  phases.begin("generate", static_cast<int64_t>(out.kernels.size()));
  std::vector<tir::PrimFunc> functions;
  for (const CompiledKernel& k : out.kernels) functions.push_back(k.lowered);
  std::vector<ObjectCode> objects =
      generate_objects(functions, target, runtime::available_threads());

  phases.begin("link");
  out.elf = link_shared(objects, functions, target);
  out.info.arch = std::string(runtime::host_arch());
  out.info.features = target.required_features();
  out.info.compiler_version = std::string("relay ") + RELAY_VERSION;
  out.metadata = make_metadata(out, options);
  phases.end();
  return out;
}

ConstantEvaluator constant_evaluator(const CompileOptions& options) {
  return make_constant_evaluator(resolve_target(options));
}

namespace {

std::vector<tir::PrimFunc> lowered_kernels(const CompiledModule& compiled) {
  std::vector<tir::PrimFunc> out;
  for (const CompiledKernel& k : compiled.kernels) out.push_back(k.lowered);
  return out;
}

}  // namespace

std::string llvm_ir_text(const CompiledModule& compiled, const CompileOptions& options) {
  return llvm_ir_text(lowered_kernels(compiled), resolve_target(options));
}

std::string assembly_text(const CompiledModule& compiled, const CompileOptions& options) {
  return assembly_text(lowered_kernels(compiled), resolve_target(options));
}

double measure_peak_gflops(int threads) {
  // Twelve independent accumulators of one vector each, kept in registers by full unrolling.
  constexpr int kAccumulators = 12;
  constexpr int64_t kSteps = 100000;
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  Target target = Target::native();
  int lanes = static_cast<int>(target.vector_bits / 32);
  tir::DType vector = tir::DType::Float(32).with_lanes(lanes);
  static const relay_kernel kernel = [&] {
    tir::Buffer out = tir::buffer("out", tir::DType::Float(32), {tir::index(lanes)});
    tir::Buffer sums = tir::buffer("sums", tir::DType::Float(32),
                                   {tir::index(kAccumulators * lanes)}, tir::Scope::Register);
    auto at = [&](int i) {
      return std::vector<tir::PrimExpr>{tir::ramp(tir::index(i * lanes), tir::index(1), lanes)};
    };
    std::vector<tir::Stmt> before, step, after;
    tir::PrimExpr total;
    for (int i = 0; i < kAccumulators; ++i) {
      before.push_back(tir::store(sums, at(i), tir::imm_float(vector, 0.5 + i)));
      tir::PrimExpr v = tir::load(sums, at(i));
      step.push_back(
          tir::store(sums, at(i),
                     tir::call("fma", vector,
                               {v, tir::imm_float(vector, 0.999), tir::imm_float(vector, 0.001)})));
      total = total ? total + v : v;
    }
    after.push_back(tir::store(out, at(0), total));
    tir::Var i = tir::var("i");
    tir::Stmt body =
        tir::seq({tir::seq(before), tir::for_(i, tir::index(0), tir::index(kSteps), tir::seq(step)),
                  tir::seq(after)});
    tir::PrimFunc f = make<tir::PrimFuncNode>([&](tir::PrimFuncNode& n) {
      n.name = "relay_peak";
      n.params = {out};
      n.body = tir::allocate(sums, body);
    });
    static const JitModule jit({f}, target);
    return jit.functions()[0];
  }();
  double best = 0;
  std::vector<double> rates(static_cast<size_t>(threads));
  for (int round = 0; round < 3; ++round) {
    for_each_parallel(rates.size(), threads, [&](size_t t) {
      alignas(64) float result[64];
      void* buffers[] = {result};
      relay_kernel_context ctx{};
      ctx.abi_version = RELAY_KERNEL_ABI_VERSION;
      ctx.num_threads = 1;
      auto start = std::chrono::steady_clock::now();
      kernel(buffers, nullptr, &ctx);
      double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      rates[t] = 2.0 * kAccumulators * lanes * static_cast<double>(kSteps) / seconds / 1e9;
    });
    double sum = 0;
    for (double r : rates) sum += r;
    best = std::max(best, sum);
  }
  return best;
}

int64_t CompiledModule::constant_bytes() const {
  int64_t total = 0;
  for (const Tensor& t : program.constants) total += static_cast<int64_t>(t.byte_size());
  return total;
}

int64_t CompiledModule::arena_bytes() const {
  int64_t total = 0;
  for (const ArenaReport& a : arenas) total += a.arena_bytes;
  return total;
}

runtime::Module CompiledModule::load(const runtime::LoadOptions& options) const {
  return runtime::Module::from_elf(elf, program, metadata, info, options);
}

void CompiledModule::write(const std::string& path, bool overwrite) const {
  runtime::ArtifactContents contents;
  contents.elf = elf;
  contents.program = &program;
  contents.metadata = metadata;
  contents.info = info;
  runtime::write_artifact_file(contents, path, overwrite);
}

}  // namespace relay
