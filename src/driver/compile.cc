#include "driver/compile.h"

#include <chrono>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "analysis/loop_kernels.h"
#include "analysis/placement.h"
#include "base/budget.h"
#include "base/codes/lowering.h"
#include "base/parallel.h"
#include "codegen/backend.h"
#include "codegen/targets.h"
#include "driver/device_choice.h"
#include "driver/evaluate_constant.h"
#include "driver/interface.h"
#include "driver/kernel_work.h"
#include "driver/kinds.h"
#include "driver/options.h"
#include "driver/size_options.h"
#include "hostcode/verify.h"
#include "ir/devices.h"
#include "ir/op.h"
#include "lower/external_functions.h"
#include "lower/index_width.h"
#include "lower/interface/compute_rule.h"
#include "lower/kernel_body.h"
#include "lower/kernel_sources.h"
#include "lower/rules/work_groups.h"
#include "node/walk.h"
#include "ops/register_ops.h"
#include "passes/fusion/outline_loops.h"
#include "passes/pipelines.h"
#include "passes/placement/choose_devices.h"
#include "plan/verify.h"
#include "runtime/core/device.h"
#include "runtime/cpu.h"
#include "tir/schedule_report.h"

namespace relay {
namespace {

// Measures the phases of a compilation and tells how far it is.
class Phases {
 public:
  Phases(const CompileOptions& options, std::vector<Phase>& out) : options_(options), out_(out) {}

  void begin(std::string name, int64_t total = 0) {
    end();
    check_budget_now();
    name_ = std::move(name);
    done_ = 0;
    total_ = total;
    start_ = std::chrono::steady_clock::now();
    if (options_.progress) options_.progress(name_, 0, total_);
  }
  // Of a phase that learns it while it runs.
  void set_total(int64_t total) { total_ = total; }
  // What is told when one more of the phase is done, from any thread.
  std::function<void()> step() {
    if (!options_.progress) return nullptr;
    return [this] {
      std::lock_guard lock(mutex_);
      options_.progress(name_, ++done_, total_);
    };
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
  std::mutex mutex_;
  int64_t done_ = 0;
  int64_t total_ = 0;
  std::chrono::steady_clock::time_point start_;
};

// Told of every pass, for the progress of the phase that runs them.
class PassSteps : public PassInstrument {
 public:
  explicit PassSteps(std::function<void()> step) : step_(std::move(step)) {}
  void after(const Pass&, const Module&, const Module&, std::chrono::nanoseconds) override {
    if (step_) step_();
  }

 private:
  std::function<void()> step_;
};

ProgramTarget resolve_targets(const CompileOptions& options) {
  ProgramTarget all = parse_program_target(options.target);
  if (options.num_threads > 0) all.host.num_cores = options.num_threads;
  return all;
}

// The targets of a program's devices by the devices: those of one kind are counted from 0 on.
std::vector<std::pair<runtime::Device, Target>> devices_of(const ProgramTarget& all) {
  std::vector<std::pair<runtime::Device, Target>> out;
  for (const Target& t : all.devices) {
    runtime::Device device{kind_of(t).device, 0};
    if (device.is_host()) {
      throw UserError(
          Diagnostic(codes::lower_unsupported, {},
                     "'" + t.name + "' cannot be a device: its kernels read memory of the host")
              .expected("a kind of target with memory of its own")
              .help("compile for '" + all.host.name + "' alone"));
    }
    for (const auto& [known, target] : out) device.id += known.type == device.type ? 1 : 0;
    out.emplace_back(device, t);
  }
  return out;
}

// "nn.conv2d: data_layout=NHWC, kernel_layout=OHWI32o" for each operator that has layouts.
std::vector<std::string> layouts_of(const Function& primitive) {
  std::vector<std::string> out;
  post_order(
      primitive->body,
      [&](const Node& n) {
        auto* c = as<CallNode>(&n);
        auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
        if (op == nullptr || !c->attrs) return;
        std::string layouts;
        for (const auto& [name, value] : attr_values(c->attrs)) {
          auto* text = value.get_if<std::string>();
          if (!name.ends_with("layout") || text == nullptr || text->empty()) continue;
          layouts += (layouts.empty() ? "" : ", ") + name + "=" + *text;
        }
        if (!layouts.empty()) out.push_back(std::string(op->name) + ": " + layouts);
      },
      family::expr);
  return out;
}

// A kernel's nodes without the model's file where that is clear, and never with its folder: where a
// model lay is private.
std::string without_folder(std::string origin, const std::string& source) {
  if (source.empty()) return origin;
  auto replace_all = [&](const std::string& from, const std::string& to) {
    for (size_t at = 0; (at = origin.find(from, at)) != std::string::npos; at += to.size()) {
      origin.replace(at, from.size(), to);
    }
  };
  replace_all(source + ": node ", "");
  replace_all(source + ": ", "");
  replace_all(source, source.substr(source.find_last_of('/') + 1));
  return origin;
}

// Why ChooseDevices has left a lowered kernel on the host. Sizes that only a run tells have names in it.
std::string why_it_stays(const DeviceChoice& choice, const FunctionNode& primitive) {
  auto* c = as<CallNode>(primitive.body);
  auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
  if (op != nullptr && data_decides_shape(*op->row))
    return "the size of its result is data-dependent";
  return stays_because(choice, primitive);
}

// Provenance and kernels, for `relay show` and profiles; the same for the same input. `choice`: where ChooseDevices has placed
// the kernels.
std::string make_metadata(const CompiledModule& compiled,
                          const std::vector<plan::ProgramKernel>& lowered,
                          const CompileOptions& options,
                          const std::optional<DeviceChoice>& choice) {
  nlohmann::ordered_json root;
  root["compiler"] = std::string("relay ") + RELAY_VERSION;
  root["target"] = compiled.target;
  root["opt_level"] = options.opt_level;
  if (!options.source_name.empty()) {
    root["source"] = options.source_name.substr(options.source_name.find_last_of('/') + 1);
  }
  if (!options.source_hash.empty()) root["source_hash"] = options.source_hash;
  for (const EntryFunction& e : options.entries) {
    nlohmann::ordered_json inputs = nlohmann::ordered_json::array();
    for (const SpecialisedInput& i : e.inputs) {
      inputs.push_back({{"name", i.name}, {"shape", i.shape}});
      if (i.value) inputs.back()["value"] = *i.value;
    }
    root["specialised"].push_back({{"function", e.function}, {"inputs", std::move(inputs)}});
  }
  std::string interface = interface_text(compiled.optimized, compiled.program);
  if (!interface.empty()) root["interface"] = std::move(interface);
  nlohmann::ordered_json& kernels = root["kernels"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < compiled.kernels.size(); ++i) {
    const CompiledKernel& k = compiled.kernels[i];
    nlohmann::ordered_json item;
    item["name"] = k.name;
    item["origin"] = compiled.program.kernels[i].origin;
    if (k.primitive && is_loop_kernel(*k.primitive.get())) item["loop"] = true;
    if (const runtime::Device& d = compiled.program.kernels[i].device; !d.is_host()) {
      item["device"] = d.to_string();
    } else if (choice && k.primitive) {
      if (std::string why = why_it_stays(*choice, *k.primitive.get()); !why.empty())
        item["stays"] = std::move(why);
    }
    item["schedule"] = k.schedule;
    item["rule"] = k.rule;
    if (k.arithmetic != 1) item["arithmetic"] = k.arithmetic;
    if (!k.source.empty()) item["source"] = k.source;
    if (!k.version.empty()) item["version"] = k.version;
    item["code_bytes"] = k.code_bytes;
    if (!k.declined.empty()) item["declined"] = k.declined;
    if (k.composed && !tir::report_of(*k.composed).copies.empty())
      item["copies"] = tir::report_of(*k.composed).copies;
    if (!k.layouts.empty()) item["layouts"] = k.layouts;
    for (const KernelSite& site : k.sites) {
      item["sites"].push_back({{"nodes", site.origin}, {"ends", site.ends}});
    }
    item["flops"] = compiled.program.kernels[i].flops;
    item["bytes"] = compiled.program.kernels[i].bytes;
    if (!lowered[k.kernel].signature.sizes.empty()) {
      // A part that does not depend on sizes is in the formulas.
      item.erase("flops");
      item.erase("bytes");
      describe_work(lowered[k.kernel], item);
    }
    kernels.push_back(std::move(item));
  }
  nlohmann::ordered_json& arenas = root["arenas"] = nlohmann::ordered_json::array();
  for (const ArenaReport& a : compiled.arenas) {
    arenas.push_back({{"function", a.function},
                      {"bytes", a.arena_bytes},
                      {"lower_bound", a.lower_bound},
                      {"pieces", a.sub_buffers},
                      {"reused", a.reused}});
    if (!a.formula.empty()) arenas.back()["working_memory"] = a.formula;
  }
  for (const DonationReport& d : compiled.donations) {
    root["donations"].push_back({{"function", d.function},
                                 {"input", d.input},
                                 {"output", d.output},
                                 {"in_place", d.in_place},
                                 {"reason", d.reason}});
  }
  for (const CopyReport& c : compiled.copies) {
    root["copies"].push_back({{"function", c.function}, {"place", c.place}});
  }
  std::unordered_set<std::string_view> natives;
  for (const FunctionReport& f : compiled.functions) {
    if (f.native) natives.insert(f.function);
    root["functions"].push_back({{"function", f.function}, {"native", f.native}});
    if (!f.native) root["functions"].back()["reason"] = f.reason;
  }
  for (size_t i = 0; i < compiled.optimized->functions.size(); ++i) {
    const Function& f = compiled.optimized->functions[i];
    auto reason = f->attrs.find(kInterpreted);
    if (reason == f->attrs.end()) continue;
    const std::string& name = compiled.optimized->global_vars[i]->name_hint;
    if (natives.contains(name)) continue;
    root["interpreted"].push_back(
        {{"function", name}, {"reason", *reason->second.get_if<std::string>()}});
  }
  return root.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// Machine code of the generated kernels, in their order, each for its target, as objects of the host. All is linked into one image.
std::vector<ObjectCode> generate(const std::vector<CompiledKernel>& kernels,
                                 const KernelProvider& provider,
                                 const std::vector<plan::ProgramKernel>& variants,
                                 const Target& host_target, const CompileOptions& options,
                                 const std::function<void()>& step) {
  const Backend& host = backend_of(host_target);
  // The kernels of each target, by their order among the generated ones.
  std::map<const Target*, std::pair<std::vector<tir::PrimFunc>, std::vector<size_t>>> by_target;
  size_t count = 0;
  for (const CompiledKernel& k : kernels) {
    if (!k.is_generated()) continue;
    auto& [functions, places] = by_target[&provider.variant_target(variants[k.kernel].variant)];
    functions.push_back(k.lowered);
    places.push_back(count++);
  }
  std::vector<ObjectCode> out(count);
  for (const auto& [target, work] : by_target) {
    const Backend& backend = backend_of(*target);
    if (backend.makes_objects() && backend.name() != host.name()) {
      throw UserError(Diagnostic(codes::lower_unsupported, {},
                                 "code for '" + target->name + "' cannot be linked with the host's")
                          .help("a device's backend must make object code for the host, or code "
                                "that the driver of the device compiles"));
    }
    check_intrinsics(backend, work.first);
    std::vector<ObjectCode> objects = backend.compile(
        work.first, *target, runtime::available_threads(), options.cache.get(), step);
    for (size_t i = 0; i < objects.size(); ++i) {
      out[work.second[i]] = backend.makes_objects()
                                ? std::move(objects[i])
                                : host.embed(work.first[i], objects[i], host_target);
    }
  }
  return out;
}

NativeLimits native_limits(const CompileOptions& options, const Target& target) {
  if (!options.native) return {.refused = "native code is off (--no-native)"};
  if (auto most = backend_of(target).most_host_params(target)) return {.most_params = *most};
  return {.refused =
              "there is no native code for " + std::string(target.arch) + " between kernels"};
}

// Marks the functions of the program that the interpreter enters natively, and reports on all of a program with control
// flow.
void mark_natives(CompiledModule& out, const HostCode& host) {
  for (int32_t entry : host.program.entries) {
    const int32_t index = host.program.functions[static_cast<size_t>(entry)].index;
    out.program.functions[static_cast<size_t>(index)].native = true;
  }
  for (size_t i = 0; i < host.reasons.size(); ++i) {
    const bool native = host.program.bodies[i] >= 0;
    if (!native && host.reasons[i].empty()) continue;
    out.functions.push_back({out.program.functions[i].name, native, host.reasons[i]});
  }
}

// The entries of a kernel in the program: one for each of its launches.
std::vector<CompiledKernel> compiled_kernels(const plan::ProgramKernel& k, size_t index,
                                             KernelProvider& provider) {
  const KernelBody& body = provider.lower(k.variant);
  std::vector<CompiledKernel> out;
  for (size_t l = 0; l < k.signature.launches.size(); ++l) {
    CompiledKernel& c = out.emplace_back();
    c.name = k.signature.launches[l].name;
    c.kernel = index;
    c.primitive = k.primitive;
    if (auto* tir = std::get_if<TirKernel>(&body)) {
      c.composed = tir->launches[l].composed;
      c.scheduled = tir->launches[l].scheduled;
      c.lowered = tir->launches[l].lowered;
      const tir::ScheduleReportNode& report = tir::report_of(*c.scheduled);
      c.schedule = report.sentence;
      c.rule = report.rule;
      c.arithmetic = report.arithmetic;
      c.declined = report.declined;
    }
    c.source = provider.variant_source(k.variant);
    c.version = provider.variant_version(k.variant);
    c.layouts = layouts_of(k.primitive);
    c.sites = k.sites;
  }
  return out;
}

// `each` (may be null) is called behind each kernel.
std::vector<CompiledKernel> lower_each(const Bytecode& bytecode,
                                       const std::function<void()>& each) {
  std::vector<std::vector<CompiledKernel>> entries(bytecode.kernels.size());
  for_each_parallel(entries.size(), runtime::available_threads(), [&](size_t i) {
    entries[i] = compiled_kernels(bytecode.kernels[i], i, *bytecode.provider);
    if (each) each();
  });
  std::vector<CompiledKernel> out;
  for (auto& of_kernel : entries) std::ranges::move(of_kernel, std::back_inserter(out));
  return out;
}

// The kernels of an optimised program.
std::shared_ptr<KernelProvider> make_provider(const CompileOptions& options,
                                              const ProgramTarget& targets) {
  ProviderOptions out{
      .target = targets.host, .devices = devices_of(targets), .opt_level = options.opt_level};
  out.verify = options.verify;
  out.threads = runtime::available_threads();
  out.sources = options.kernel_sources;
  out.sources.push_back(external_functions());
  for (auto& source : kernel_sources()) out.sources.push_back(std::move(source));
  if (!options.observers.empty()) {
    out.observer = [observers = options.observers](std::string_view stage, tir::PrimFunc f) {
      for (StageObserver* o : observers) f = o->kernel(stage, std::move(f));
      return f;
    };
  }
  return std::make_shared<KernelProvider>(std::move(out));
}

Bytecode make_bytecode(const Module& optimized, const CompileOptions& options,
                       const ProgramTarget& targets, const KernelProvider::Steps& schedule_steps) {
  PassContext ctx;
  ctx.disabled_pass = options.disabled_pass;
  check_takes(optimized, kOptimizedForm, "the compiler", ctx);
  BudgetScope budget;
  const bool versions = options.opt_level > 0;
  const int64_t large = versions ? targets.host.l2_bytes / 2 : std::numeric_limits<int64_t>::max();
  LoweredProgram lowered(optimized, make_provider(options, targets), large);
  plan::PlanProgram plan = plan::make_plan(optimized, lowered, schedule_steps);
  for (plan::ProgramKernel& k : plan.kernels) {
    for (KernelSite& site : k.sites) {
      site.origin = without_folder(std::move(site.origin), options.source_name);
    }
  }
  for (StageObserver* o : options.observers) o->plan(plan);
  if (options.verify) plan::verify(plan);
  Bytecode bytecode = compile_to_bytecode(std::move(plan), native_limits(options, targets.host));
  if (options.verify) hostcode::verify(bytecode.host.program);
  for (StageObserver* o : options.observers) o->bytecode(bytecode);
  return bytecode;
}

PassContext pass_context(const CompileOptions& options, const ProgramTarget& targets) {
  const Target& target = targets.host;
  PassContext ctx;
  ctx.opt_level = options.opt_level;
  ctx.required_pass = options.required_pass;
  ctx.disabled_pass = options.disabled_pass;
  ctx.config = options.config;
  if (options.entries.size() > 1) {
    ValueList names;
    for (const EntryFunction& e : options.entries) names.emplace_back(e.function);
    ctx.config["relay.RemoveUnusedFunctions.entry_functions"] = AttrValue(std::move(names));
  }
  ctx.verify = options.verify;
  ctx.instruments = options.instruments;
  ctx.target = target;
  const auto devices = devices_of(targets);
  if (!devices.empty()) {
    const auto& [device, device_target] = devices.front();
    ctx.device_choice = choice_of(device, device_target);
    // Values have one layout, wherever they are.
    ctx.target.has_blocked_kernels &= device_target.has_blocked_kernels;
    // Items of a processor's vectors are neighbours along the columns (lower/rules/item_lanes.h).
    if (!runs_side_by_side(device_target.limits.items)) {
      ctx.config.try_emplace("relay.AlterOpLayout.columns_last", AttrValue(true));
      ctx.config.try_emplace("relay.ConvertLayout.channels_last", AttrValue(true));
    }
  }
  ctx.evaluate = make_constant_evaluator(options.cache, denormals_of(target));
  return ctx;
}

// Where ChooseDevices computes kernels of the program: who places operators leaves the others on the host.
std::optional<DeviceChoice> choice_for(const Module& mod, const ProgramTarget& targets) {
  const auto devices = devices_of(targets);
  if (devices.empty() || uses_devices(mod)) return std::nullopt;
  return choice_of(devices.front().first, devices.front().second);
}

// A primitive function as another function that calls it, and may be a value.
Function calling(const FunctionNode& kernel) {
  std::vector<Var> params;
  for (const Var& p : kernel.params) params.push_back(var(p->name_hint, p->type, p->span));
  Expr body = call(Expr(&kernel), {params.begin(), params.end()}, nullptr, kernel.span);
  return function(std::move(params), std::move(body), kernel.ret_type, {}, {}, kernel.span);
}

// The kernels that a program has before any pass has made one: they are called where they stand. That a kernel's result is
// written over before anything reads it is only known where a pass has shown it, not where the program says so.
Module with_plain_kernels(const Module& mod) {
  return map_functions(mod, [](const GlobalVar&, const Function& f) {
    std::unordered_map<const Node*, Expr> kernels;  // by the functions that call them
    auto plain = [&](const NodeRef& original, NodeRef rebuilt) -> NodeRef {
      auto* c = as<CallNode>(rebuilt);
      if (auto called = kernels.find(c == nullptr ? nullptr : c->op.get()); called != kernels.end())
        return call(called->second, c->args, c->attrs, c->span, c->type_args);
      auto* kernel = as<FunctionNode>(rebuilt);
      if (kernel == nullptr || original == f || !kernel->is_primitive()) return rebuilt;
      if (kernel->has_attr(attr::kUnwritten)) {
        Dict attrs = kernel->attrs;
        attrs.erase(attr::kUnwritten);
        rebuilt = function(kernel->params, kernel->body, kernel->ret_type, kernel->type_params,
                           attrs, kernel->span);
        kernel = as<FunctionNode>(rebuilt);
      }
      if (!kernel->type_params.empty()) return rebuilt;
      const Function caller = calling(*kernel);
      kernels.emplace(caller.get(), Expr(kernel));
      return caller;
    };
    return Function::unchecked(rewrite(f, plain, family::expr));
  });
}

Module optimize(const Module& mod, const CompileOptions& options, const ProgramTarget& targets) {
  BudgetScope budget;
  check_options(options);
  PassContext ctx = pass_context(options, targets);
  ctx.device_choice = choice_for(mod, targets);
  return run_passes(with_size_hints(with_plain_kernels(mod), options.sizes), optimize_pipeline(),
                    ctx);
}

}  // namespace

void initialize() {
  register_ops();
  register_kinds();
}

runtime::Denormals denormals_of(const Target& target) {
  return target.keeps_denormals ? runtime::Denormals::keep : runtime::Denormals::flush;
}

PassContext pass_context(const CompileOptions& options) {
  return pass_context(options, resolve_targets(options));
}

Module optimize(const Module& mod, const CompileOptions& options) {
  initialize();
  return optimize(mod, options, resolve_targets(options));
}

Bytecode make_bytecode(const Module& optimized, const CompileOptions& options) {
  return make_bytecode(optimized, options, resolve_targets(options), nullptr);
}

std::vector<CompiledKernel> lower_kernels(const Bytecode& bytecode) {
  return lower_each(bytecode, nullptr);
}

CompiledModule compile(const Module& mod, const CompileOptions& options) {
  initialize();
  BudgetScope budget;
  CompiledModule out;
  Phases phases(options, out.phases);
  const ProgramTarget targets = resolve_targets(options);
  const Target& target = targets.host;
  backend_of(target).check_installed(target);
  out.target = target.describe();
  for (const Target& t : targets.devices) out.target += "; " + t.describe();

  phases.begin("optimize");
  PassTiming timing;
  PassSteps steps(phases.step());
  CompileOptions with_timing = options;
  with_timing.instruments.push_back(&timing);
  with_timing.instruments.push_back(&steps);
  out.optimized = optimize(mod, with_timing, targets);
  out.passes = timing.rows();

  phases.begin("plan");
  Bytecode bytecode = make_bytecode(out.optimized, options, targets, [&](size_t count) {
    phases.set_total(static_cast<int64_t>(count));
    return phases.step();
  });
  out.arenas = bytecode.arenas;
  for (const ArenaReport& a : out.arenas) {
    check_pointer_width("intermediate results of @" + a.function, a.arena_bytes, target);
  }
  out.donations = bytecode.donations;
  out.copies = bytecode.copies;

  phases.begin("lower", static_cast<int64_t>(bytecode.kernels.size()));
  out.kernels = lower_each(bytecode, phases.step());
  out.program = std::move(bytecode.program);
  check_pointer_width("constants", out.constant_bytes(), target);

  const std::vector<tir::PrimFunc> functions = generated_functions(out.kernels);
  phases.begin("generate", static_cast<int64_t>(functions.size()));
  const Backend& backend = backend_of(target);
  std::vector<ObjectCode> objects =
      generate(out.kernels, *bytecode.provider, bytecode.kernels, target, options, phases.step());
  size_t next = 0;
  for (CompiledKernel& k : out.kernels) {
    if (k.is_generated()) k.code_bytes = static_cast<int64_t>(objects[next++].size());
  }

  mark_natives(out, bytecode.host);
  if (!bytecode.host.program.empty()) {
    objects.push_back(backend.compile_host(bytecode.host.program, target, options.cache.get()));
  }

  phases.begin("link");
  out.elf = backend.link(objects, functions, target);
  out.info.arch = target.arch;
  out.info.features = target.required_features();
  for (const Target& t : targets.devices) {
    for (std::string& f : t.required_features()) {
      if (std::ranges::find(out.info.features, f) == out.info.features.end())
        out.info.features.push_back(std::move(f));
    }
  }
  for (std::string& f : features_of(functions)) out.info.features.push_back(std::move(f));
  out.info.libraries = libraries_of(functions);
  out.info.denormals = denormals_of(target);
  out.info.version = options.target;
  out.info.compiler_version = std::string("relay ") + RELAY_VERSION;
  out.metadata = make_metadata(out, bytecode.kernels, options, choice_for(mod, targets));
  phases.end();
  return out;
}

std::vector<CompiledModule> compile_versions(const Module& mod, const CompileOptions& options) {
  initialize();
  std::vector<CompiledModule> out;
  for (const TargetVersion& version : target_versions(options.target)) {
    CompileOptions one = options;
    one.target = version.text;
    out.push_back(compile(mod, one));
    out.back().info.version = version.name;
  }
  return out;
}

size_t version_for_machine(std::span<const CompiledModule> versions) {
  for (size_t v = versions.size(); v-- > 0;) {
    const runtime::ArtifactInfo& info = versions[v].info;
    if (!runtime::machine_refuses("", info.arch, info.features)) return v;
  }
  return versions.size() - 1;
}

std::vector<tir::PrimFunc> generated_functions(const std::vector<CompiledKernel>& kernels) {
  std::vector<tir::PrimFunc> out;
  for (const CompiledKernel& k : kernels) {
    if (k.is_generated()) out.push_back(k.lowered);
  }
  return out;
}

void PlanText::plan(plan::PlanProgram& plan) { text = plan::to_string(plan); }

std::string scheduled_text(const CompiledKernel& k) {
  if (!k.is_generated()) return "# " + k.name + ": " + k.source + "\n\n";
  return "# " + k.name + (k.schedule.empty() ? "" : ": " + k.schedule) + "\n" +
         tir::to_string(k.scheduled) + "\n";
}

namespace {

// The kernels of the host, then those of each device, as their backends print them.
std::vector<std::pair<runtime::Device, Target>> code_targets(const CompileOptions& options) {
  const ProgramTarget targets = resolve_targets(options);
  std::vector<std::pair<runtime::Device, Target>> out{{runtime::Device::cpu(), targets.host}};
  for (auto& device : devices_of(targets)) out.push_back(std::move(device));
  return out;
}

std::string code_text(CodeText form, const CompiledModule& compiled,
                      const CompileOptions& options) {
  std::string out;
  for (const auto& [device, target] : code_targets(options)) {
    std::vector<tir::PrimFunc> kernels;
    for (const CompiledKernel& k : compiled.kernels) {
      if (k.is_generated() && kernel_device(*k.primitive.get()) == device)
        kernels.push_back(k.lowered);
    }
    if (!kernels.empty()) out += backend_of(target).text(form, kernels, target);
  }
  return out;
}

}  // namespace

std::string llvm_ir_text(const CompiledModule& compiled, const CompileOptions& options) {
  return code_text(CodeText::Intermediate, compiled, options);
}

std::string assembly_text(const CompiledModule& compiled, const CompileOptions& options) {
  return code_text(CodeText::Assembly, compiled, options);
}

std::vector<std::string> kernel_assembly(const CompiledModule& compiled,
                                         const CompileOptions& options) {
  std::vector<std::string> out(compiled.kernels.size());
  for (const auto& [device, target] : code_targets(options)) {
    for (size_t i = 0; i < compiled.kernels.size(); ++i) {
      const CompiledKernel& k = compiled.kernels[i];
      if (k.is_generated() && kernel_device(*k.primitive.get()) == device)
        out[i] = backend_of(target).text(CodeText::Assembly, {k.lowered}, target);
    }
  }
  return out;
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
  write_versions({this, 1}, path, overwrite);
}

void write_versions(std::span<const CompiledModule> versions, const std::string& path,
                    bool overwrite) {
  std::vector<runtime::ArtifactContents> contents;
  for (const CompiledModule& v : versions) {
    contents.push_back({v.elf, &v.program, v.metadata, v.info});
  }
  runtime::write_artifact_file(contents, path, overwrite);
}

}  // namespace relay
