#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/codes/driver.h"
#include "cli/commands.h"
#include "cli/compile_model.h"
#include "cli/inputs.h"
#include "cli/limits.h"
#include "cli/terminal.h"
#include "codegen/kernel_cache.h"
#include "driver/evaluate.h"
#include "driver/size_options.h"
#include "frontend/arrays/weights.h"
#include "ir/donation.h"
#include "ir/prepack.h"
#include "passes/external/external_codegen.h"
#include "passes/pass_list.h"
#include "run/output_files.h"
#include "runtime/core/print.h"
#include "runtime/temporary_file.h"
#include "target/processor_text.h"

namespace relay::cli {

namespace {

// The architectures and their levels, which are targets by name.
std::vector<std::string> level_names() {
  std::vector<std::string> out;
  for (const Architecture& a : architectures()) {
    out.push_back(architecture_target(a));
    for (const Architecture::Level& l : a.levels) out.emplace_back(l.name);
  }
  return out;
}

}  // namespace

std::vector<std::string> pass_names() {
  std::vector<std::string> out;
  for (const Pass* p : all_passes()) out.push_back(p->name);
  return out;
}

std::vector<Option> CompileFlags::target_table() {
  std::vector<std::string> targets = level_names();
  std::string levels;
  for (const std::string& name : targets) levels += (levels.empty() ? "" : ", ") + name;
  targets.insert(targets.begin(), "native");
  return {
      option("--target TARGET", target,
             "What to compile for: native, an architecture or a level of one (" + levels +
                 "), 'llvm -mcpu=CPU'; with -mattr=+FEATURE, -mtune=CPU, -l1=SIZE, -l2=SIZE, "
                 "-l3=SIZE, -num-threads=N, "
                 "-denormals=keep; LEVEL+LEVEL for several versions; opencl or cuda for a device, "
                 "behind that of the host and a semicolon. Of a compiled file, the version to run")
          .offers(std::move(targets)),
      option("--opt-level LEVEL", opt_level, "0 (as written) to 3 (everything)").range(0, 3),
      option("--threads N", threads, "Threads to run kernels on; 0: all that the machine offers")
          .range(0, 1024)};
}

std::vector<Option> CompileFlags::table() {
  std::vector<Option> out = target_table();
  std::vector<Option> more = {
      option("--disable-pass PASS", disabled, "Skip a pass; may be repeated").offers(pass_names()),
      option(
          "--freeze INPUT=VALUE", frozen,
          "Make an input a constant of the program: a number, a list or FILE.npy; may be repeated"),
      params_option(params),
      option("--specialise INPUT=VALUE,...", special,
             "Values of an input that decides how many dimensions something has: a program for "
             "each; numbers, or lists such as [0],[0,1]; may be repeated"),
      option("--prepack INPUT", prepacked,
             "An input that is set once for many runs, such as weights: what follows from it alone "
             "is computed by main.prepack, whose results main takes; may be repeated"),
      option(
          "--donate INPUT=OUTPUT", donated,
          "Write an output into the memory of an input, which its caller gives up; the output by "
          "name or number; may be repeated"),
      flag("--verify", verify, "Check the program after every pass, its plan and its kernels"),
      flag("--no-native", no_native, "Interpret the functions between kernels"),
      flag("--no-cache", no_cache, "Neither use nor keep compiled kernels (relay cache)"),
      flag("-q,--quiet", quiet, "Print no progress"),
  };
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

std::vector<Option> CompileFlags::size_table(bool with_dims) {
  std::vector<Option> out;
  if (with_dims) {
    out.push_back(option("--dim NAME=SIZE|LOW..HIGH", dims,
                         "The size of a named dimension, or the range that its sizes lie in, which "
                         "a run checks; may be repeated"));
  }
  out.push_back(option("--hot NAME=SIZE,SIZE", likely,
                       "Likely sizes of an open dimension: kernels that sum have a version for "
                       "each; may be repeated"));
  return out;
}

std::vector<Option> CompileFlags::guest_table() {
  return {option("--guest NAME", guests,
                 "An external code generator, which computes what it supports of the program: "
                 "onednn, or one of an installed plug-in; may be repeated, and the first has the "
                 "most")
              .offers({"onednn"})};
}

CompileOptions CompileFlags::options(std::vector<SizeHint> sizes) const {
  CompileOptions out;
  ModelOptions fixed;  // which the program has already
  for (const std::string& text : read_dim_options(dims, fixed)) read_range(text, sizes);
  for (const std::string& text : likely) {
    auto [name, likely_sizes] = read_sizes("--hot", text);
    SizeHint& hint = hint_of(sizes, name);
    hint.likely.insert(hint.likely.end(), likely_sizes.begin(), likely_sizes.end());
  }
  out.sizes = std::move(sizes);
  out.target = target;
  out.opt_level = opt_level;
  out.num_threads = threads;
  out.verify = verify;
  out.native = !no_native;
  if (!no_cache) out.cache = KernelCache::of_user();
  for (const std::string& name : disabled) {
    find_pass(name);  // a misspelt name is an error, not a silent nothing
    out.disabled_pass.insert(name);
  }
  return out;
}

Module CompileFlags::with_inputs(const Module& mod) const {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& text : donated) {
    size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      throw UsageError(Diagnostic(codes::driver_option, {},
                                  "--donate " + escape_for_terminal(text, 200) + " cannot be read")
                           .help("type --donate INPUT=OUTPUT, the output by name or number"));
    }
    pairs.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return divide_for(with_prepacked(with_donations(mod, pairs), prepacked), guests);
}

void CompileFlags::refuse_guests(const std::string& what) const {
  if (guests.empty()) return;
  throw UserError(
      Diagnostic(codes::driver_option, {}, "--guest does not apply to " + what)
          .help("external code generators take part in a compilation for this machine"));
}

void CompileFlags::refuse_for_artifact(const Given& given, const std::string& path) {
  given.refuse(
      {"--opt-level", "--disable-pass", "--freeze", "--specialise", "--params", "--prepack",
       "--donate", "--hot", "--guest", "--verify", "--no-native", "--no-cache"},
      "a compiled file",
      "'" + escape_for_terminal(path, 200) +
          "' was compiled before; relay compile takes these options");
}

Option params_option(std::string& path) {
  return option("--params FILE", path,
                "Values of the weights by their names, in place of the model's: a safetensors "
                "file, a NumPy archive (.npz) or a state dictionary (.pt)");
}

std::optional<WeightFile> read_params(const std::string& path) {
  if (path.empty()) return std::nullopt;
  return WeightFile{path, read_weights(path)};
}

bool is_artifact(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  char magic[4] = {};
  in.read(magic, 4);
  return in && std::string_view(magic, 4) ==
                   "\x7f"
                   "ELF";
}

LoadedModel read_model(const std::string& path, const std::string& function,
                       const ModelOptions& shapes) {
  ModelOptions others;
  others.weights = shapes.weights;
  return load_model(path, function == "main" ? shapes : others);
}

void run_again(const runtime::Module& module, const std::string& function,
               std::span<const runtime::Value> inputs, std::span<const Tensor> outputs,
               const runtime::RunOptions& options) {
  // The first run has printed the program's output.
  runtime::PrintScope quiet([](const char*, size_t) {});
  // Strings cannot be written into an existing buffer.
  auto is_string = [](const Tensor& t) { return t.dtype().is_string(); };
  if (!module.function(function).writes_outputs || std::ranges::any_of(outputs, is_string)) {
    module.run_values(function, inputs, options);
    return;
  }
  std::vector<Tensor> tensors;
  for (const runtime::Value& v : inputs) tensors.push_back(v.tensor());
  module.run_into(function, tensors, outputs, options);
}

std::string donation_line(const std::string& input, const std::string& output, bool in_place,
                          const std::string& reason) {
  return escape_for_terminal(input, 200) + " -> " + escape_for_terminal(output, 200) +
         (in_place ? ", in place" : ", copied: " + escape_for_terminal(reason, 300));
}

std::string counting_of(const runtime::Module& module) {
  nlohmann::json metadata = nlohmann::json::parse(module.metadata(), nullptr, false);
  bool fewer = false;
  if (metadata.is_object() && metadata.contains("kernels")) {
    for (const auto& k : metadata["kernels"])
      fewer |= k.is_object() && k.value("arithmetic", 1.0) < 1;
  }
  return fewer ? "operations as the operators define them, of which some kernels execute fewer"
               : "operations as the operators define them";
}

namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

namespace {

// The model of a file, with what these flags say of its sizes, weights and constants.
LoadedModel read_input(const std::string& path, const CompileFlags& flags,
                       const std::string& function, ModelOptions given) {
  read_freeze_options(flags.frozen, given);
  given.weights = read_params(flags.params);
  read_one_specialisation(flags.special, given);
  return read_model(path, function, given);
}

}  // namespace

ModelRun read_model_run(const std::string& path, const std::string& function,
                        const CompileFlags& flags, const InputFlags& given, const char* help) {
  if (is_artifact(path)) {
    throw UserError(
        Diagnostic(codes::driver_option, {}, "'" + escape_for_terminal(path, 200) + "' is compiled")
            .help(help));
  }
  Inputs inputs = given.read(path);
  inputs.refuse_lists();
  ModelOptions options = inputs.shapes;
  options.values = given_values(inputs);
  ModelRun out;
  out.model = read_input(path, flags, function, std::move(options));
  out.signature = signature_of(out.model.module, function);
  if (function != "main") check_shapes(out.signature, inputs.shapes);
  out.arguments = make_arguments(out.signature, inputs, given.seed);
  out.ranges = std::move(inputs.ranges);
  return out;
}

CompiledInput compile_input(const std::string& path, const CompileFlags& flags,
                            const std::string& function, const ModelOptions& shapes,
                            const std::vector<SizeHint>& sizes, Versions versions) {
  auto start = Clock::now();
  ModelOptions given = shapes;
  read_dim_options(flags.dims, given);
  CompiledInput out;
  out.model = read_input(path, flags, function, std::move(given));
  out.model.module = flags.with_inputs(out.model.module);
  out.import_seconds = seconds_since(start);
  CompileOptions options = flags.options(sizes);
  if (function != "main") {
    options.config["relay.RemoveUnusedFunctions.entry_functions"] =
        AttrValue(ValueList{AttrValue(function)});
  }
  options.source_name = out.model.source_name;
  options.source_hash = out.model.source_hash;
  ProgressLine line(!flags.quiet);
  options.progress = [&](std::string_view phase, int64_t done, int64_t total) {
    line.update(phase, done, total);
  };
  if (versions == Versions::all) {
    out.versions = compile_versions(out.model.module, options);
  } else {
    out.versions.push_back(compile(out.model.module, options));
  }
  LimitFlags::end_compilation();
  line.clear();
  return out;
}

Ready prepare(const std::string& path, const CompileFlags& flags, const std::string& function,
              const ModelOptions& shapes, const std::vector<SizeHint>& sizes, Versions versions) {
  runtime::LoadOptions load;
  load.num_threads = flags.threads;
  if (is_artifact(path)) {
    refuse_ranges(path, sizes);
    auto start = Clock::now();
    load.version = flags.version_of_artifact();
    runtime::Module module = runtime::Module::load(path, load);
    LimitFlags::end_compilation();
    if (function != "main" || module.program().find_function("main") >= 0) {
      check_shapes(module.function(function), shapes);
    }
    Ready out{module, nullptr, "", 0, seconds_since(start), {}, {}, {}, nullptr};
    if (versions == Versions::all) out.versions = version_reports(path);
    return out;
  }
  auto start = Clock::now();
  CompiledInput input = compile_input(path, flags, function, shapes, sizes, versions);
  CompiledModule& compiled = input.versions[version_for_machine(input.versions)];
  double compile_seconds = seconds_since(start);
  start = Clock::now();
  runtime::Module module = compiled.load(load);
  compiled.phases.insert(compiled.phases.begin(), Phase{"import", input.import_seconds});
  if (function != "main") check_shapes(module.function(function), shapes);
  Ready out{module,          input.model.module,      compiled.target,
            compile_seconds, seconds_since(start),    compiled.phases,
            compiled.passes, input.model.specialised, nullptr};
  if (versions == Versions::all) out.versions = version_reports(input.versions);
  out.compiled = std::make_shared<const CompiledModule>(std::move(compiled));
  return out;
}

void refuse_ranges(const std::string& path, const std::vector<SizeHint>& sizes) {
  if (sizes.empty()) return;
  throw UserError(Diagnostic(codes::driver_option, {},
                             "'" + escape_for_terminal(path, 200) +
                                 "' was compiled before: its dimensions have their ranges")
                      .help("--dim NAME=SIZE says the size of a run"));
}

void refuse_existing(const std::string& path, bool force) {
  if (path != "-") refuse_existing_file(path, force);
}

void write_text(const std::string& path, const std::string& text, bool force) {
  if (path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  refuse_existing(path, force);
  runtime::TemporaryFile file(path);
  file.write(text.data(), text.size());
  file.rename_to_target(force);
}

}  // namespace relay::cli
