#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/codes/driver.h"
#include "base/codes/runtime.h"
#include "cli/commands.h"
#include "cli/emulate.h"
#include "cli/inputs.h"
#include "cli/kernel_work.h"
#include "cli/limits.h"
#include "cli/terminal.h"
#include "codegen/targets.h"
#include "driver/evaluate.h"
#include "driver/machine_limits.h"
#include "driver/specialise.h"
#include "run/output_files.h"
#include "runtime/core/print.h"

namespace relay::cli {
namespace {

using runtime::Tensor;

// Results of more elements are shown by a digest.
constexpr int64_t kSmallTensor = 64;

struct RunArgs {
  std::string model;
  std::string function = "main";
  std::string executor = "vm";
  std::string output;
  bool force = false;
  bool json = false;
  bool emulate = false;
  bool labels = false;
  CompileFlags flags;
  InputFlags inputs;
  LimitFlags limits;
};

std::string shape_text(const Tensor& t) {
  std::string out = "(";
  for (int64_t d : t.shape()) out += (out.size() > 1 ? ", " : "") + std::to_string(d);
  return out + (t.rank() == 1 ? ",)" : ")");
}

// The program that was run, and its results.
struct Outcome {
  runtime::Function signature;
  runtime::Value value;
  std::vector<Tensor> emulated;  // the tensors of the value, of a run under an emulator
  std::string emulator;          // its name; empty: the program ran here
  std::string version;           // of the code, of a run under an emulator
  std::string text;              // the value in text form, where the types are known
  double seconds = 0;
  std::string notes;  // inputs that were generated
  std::vector<std::pair<std::string, int64_t>> sizes;
  // Of compiled programs only.
  std::string target;
  std::string counting;  // of operations
  double flops = -1;     // negative: unknown
  int threads = 1;
};

using Clock = std::chrono::steady_clock;

std::vector<runtime::Value> input_values(Outcome& out, Arguments arguments, const RunArgs& o) {
  out.notes = arguments.notes(o.inputs.seed, "note    ");
  out.sizes = std::move(arguments.sizes);
  return std::move(arguments.values);
}

// Whether the value itself is the output: a program without inputs is run for its value.
bool shows_value(const RunArgs& o, const Outcome& out) {
  std::vector<Tensor> tensors;
  runtime::flatten_tensors(out.value, tensors);
  bool small = !out.text.empty();
  for (const Tensor& t : tensors) small = small && t.num_elements() <= kSmallTensor;
  return small && out.signature.params.empty() && o.output.empty() && !o.json;
}

Outcome run_evaluator(const RunArgs& o, const Inputs& inputs) {
  if (is_artifact(o.model)) {
    throw UserError(Diagnostic(codes::driver_option, {},
                               "the evaluator runs programs, '" +
                                   escape_for_terminal(o.model, 200) + "' is compiled")
                        .help("give the model that it was compiled from"));
  }
  if (!inputs.ranges.empty()) {
    throw UserError(Diagnostic(codes::driver_option, {},
                               "the evaluator takes no range for dimension '" +
                                   escape_for_terminal(inputs.ranges[0].name, 200) + "'")
                        .help("--executor vm checks the ranges that a program is compiled for"));
  }
  Outcome out;
  ModelOptions given_shapes = inputs.shapes;
  given_shapes.values = given_values(inputs);
  read_freeze_options(o.flags.frozen, given_shapes);
  given_shapes.weights = read_params(o.flags.params);
  read_one_specialisation(o.flags.special, given_shapes);
  LoadedModel model = read_model(o.model, o.function, given_shapes);
  out.signature = signature_of(model.module, o.function);
  if (o.function != "main") check_shapes(out.signature, inputs.shapes);
  std::vector<runtime::Value> values =
      input_values(out, make_arguments(out.signature, inputs, o.inputs.seed), o);
  o.limits.begin_run();
  runtime::RunOptions limits = o.limits.of_run();
  EvalOptions options;
  options.fuel = std::max<int64_t>(limits.fuel, 0);
  options.memory_limit = std::max<int64_t>(limits.memory_limit, 0);
  options.denormals = denormals_of(parse_program_target(o.flags.target).host);
  Evaluator evaluator(model.module, options);
  auto start = Clock::now();
  out.value = evaluator.call(o.function, std::move(values));
  out.seconds = seconds_since(start);
  out.text = result_text(model.module, o.function, out.value,
                         [&](int32_t tag) { return evaluator.closure_name(tag); });
  return out;
}

// The operations of a run: of the calls in its profile, else of the function's own straight-line
// code, without its calls. Negative if a call's operations are unknown.
double flops_of(const runtime::Function& f, const runtime::Module& module,
                const runtime::Profiler& profiler) {
  const runtime::Program& program = module.program();
  double flops = 0;
  if (profiler.num_runs() == 0) {
    for (const runtime::Instruction& i : f.code) {
      if (i.op != runtime::Opcode::invoke_kernel) continue;
      flops += static_cast<double>(program.kernels[static_cast<size_t>(i.a)].flops);
    }
    return flops;
  }
  if (profiler.dropped()) return -1;
  for (const auto& row : profiler.rows(program, work_of(module))) {
    if (row.work.flops < 0) return -1;
    flops += row.work.flops * static_cast<double>(row.calls);
  }
  return flops;
}

Outcome run_compiled(const RunArgs& o, const Inputs& inputs) {
  Outcome out;
  ModelOptions shapes = inputs.shapes;
  shapes.values = given_values(inputs);
  Ready ready = prepare(o.model, o.flags, o.function, shapes, inputs.ranges);
  const std::string function = entry_for(ready.module, o.function, shapes.values);
  out.signature = ready.module.function(function);
  out.target = ready.target;
  out.counting = counting_of(ready.module);
  out.threads = ready.module.num_threads();
  std::vector<runtime::Value> values =
      input_values(out, make_arguments(ready.module, function, inputs, o.inputs.seed), o);
  o.limits.begin_run();
  runtime::RunOptions limits = o.limits.of_run();
  // For kernels whose sizes are known only at run time, the first call determines the work.
  constexpr size_t kMostCalls = 1 << 16;
  runtime::Profiler profiler;
  profiler.limit(kMostCalls);
  runtime::RunOptions first = limits;
  const auto& kernels = ready.module.program().kernels;
  if (std::ranges::any_of(kernels, [](const auto& k) { return k.num_dims > 0; })) {
    first.profiler = &profiler;
  }
  out.value = ready.module.run_values(function, values, first);
  out.flops = flops_of(out.signature, ready.module, profiler);
  if (ready.source) {
    const auto& functions = ready.module.program().functions;
    out.text = result_text(ready.source, o.function, out.value, [&](int32_t tag) {
      auto i = static_cast<size_t>(tag);
      return i < functions.size() && !functions[i].internal ? functions[i].name : "";
    });
  }
  if (shows_value(o, out)) return out;
  // The first run pays for cold caches and pages; the time shown is the best of a few more.
  std::vector<Tensor> outputs;
  runtime::flatten_tensors(out.value, outputs);
  LimitFlags::end_compilation();  // each of these runs has the limits for itself
  out.seconds = 1e30;
  auto begin = Clock::now();
  for (int i = 0; i < 5 && Clock::now() - begin < std::chrono::seconds(2); ++i) {
    auto start = Clock::now();
    run_again(ready.module, function, values, outputs, limits);
    out.seconds = std::min(out.seconds, seconds_since(start));
  }
  return out;
}

Outcome run_under_emulator(const RunArgs& o, const Inputs& inputs) {
  constexpr int kTimedRuns = 1;
  Outcome out;
  EmulatedRun run = run_emulated(o.model, o.flags, o.function, inputs, o.inputs.seed, kTimedRuns);
  out.signature = std::move(run.function);
  out.emulated = std::move(run.outputs);
  out.emulator = std::move(run.emulator);
  out.version = std::move(run.version);
  out.target = std::move(run.target);
  out.threads = run.threads;
  out.notes = run.arguments.notes(o.inputs.seed, "note    ");
  out.sizes = std::move(run.arguments.sizes);
  out.seconds = run.seconds.at(0);
  return out;
}

// A class of a result, by its place along the last axis.
struct ScoredClass {
  int64_t place = 0;
  std::string label;  // empty for a place that has none
  double score = 0;   // of integers, the real number that they stand for
};

// The classes of the greatest scores of a result, of its first line along the last axis.
std::vector<ScoredClass> best_classes(const Tensor& scores, const ModelMetadata::Tensor& about) {
  constexpr size_t kMost = 5;
  const int64_t classes = scores.rank() == 0 ? 0 : scores.dim(static_cast<int>(scores.rank()) - 1);
  std::vector<ScoredClass> all;
  for (int64_t i = 0; i < std::min(classes, scores.num_elements()); ++i) {
    double score = scores.get_as_double(i);
    if (about.scale > 0 && scores.dtype().is_integer()) {
      score = static_cast<double>(about.scale) *
              (static_cast<double>(scores.get_as_int(i)) - static_cast<double>(about.zero));
    }
    const auto at = static_cast<size_t>(i);
    all.push_back({i, at < about.labels.size() ? about.labels[at] : "", score});
  }
  const auto shown = static_cast<std::ptrdiff_t>(std::min(all.size(), kMost));
  std::partial_sort(all.begin(), all.begin() + shown, all.end(),
                    [](const ScoredClass& a, const ScoredClass& b) {
                      return a.score != b.score ? a.score > b.score : a.place < b.place;
                    });
  all.resize(static_cast<size_t>(shown));
  return all;
}

// What the metadata says of a result; null where it has no labels.
const ModelMetadata::Tensor* labels_of(const std::optional<ModelMetadata>& metadata,
                                       const std::string& result, const Tensor& scores) {
  const ModelMetadata::Tensor* about = metadata ? metadata->output(result) : nullptr;
  if (about == nullptr || about->labels.empty() || scores.dtype().is_string()) return nullptr;
  return about;
}

void print_classes(const Outcome& out, const std::vector<Tensor>& outputs,
                   const std::optional<ModelMetadata>& metadata) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string name = result_name(out.signature, i);
    const ModelMetadata::Tensor* about = labels_of(metadata, name, outputs[i]);
    if (about == nullptr) continue;
    Table table({"class of " + escape_for_terminal(name, 40), "label", "score"});
    for (const ScoredClass& c : best_classes(outputs[i], *about)) {
      table.row(
          {std::to_string(c.place), escape_for_terminal(c.label, 60), format_number(c.score, 4)});
    }
    std::printf("%s", table.text().c_str());
  }
}

void print_json(const Outcome& out, const std::vector<Tensor>& outputs, bool tensors,
                double peak_gflops, const std::optional<ModelMetadata>& metadata) {
  nlohmann::ordered_json root;
  if (!out.target.empty()) root["target"] = out.target;
  if (!out.emulator.empty()) {
    root["emulator"] = out.emulator;
    root["version"] = out.version;
  }
  if (tensors) {
    root["outputs"] = nlohmann::ordered_json::array();
    for (size_t i = 0; i < outputs.size(); ++i) {
      root["outputs"].push_back(
          {{"name", result_name(out.signature, i)},
           {"dtype", outputs[i].dtype().to_string()},
           {"shape", std::vector<int64_t>(outputs[i].shape().begin(), outputs[i].shape().end())},
           {"digest", digest(outputs[i])}});
      const auto* about = labels_of(metadata, result_name(out.signature, i), outputs[i]);
      if (about == nullptr) continue;
      auto& classes = root["outputs"].back()["classes"];
      for (const ScoredClass& c : best_classes(outputs[i], *about))
        classes.push_back({{"class", c.place}, {"label", c.label}, {"score", c.score}});
    }
  } else {
    root["value"] = out.text;
  }
  for (const auto& [name, size] : out.sizes) root["invented_sizes"][name] = size;
  root["seconds"] = out.seconds;
  if (peak_gflops > 0) {
    root["counting"] = out.counting;
    root["gflops"] = nullptr;
    if (out.flops >= 0) root["gflops"] = out.flops / out.seconds / 1e9;
    root["peak_gflops"] = peak_gflops;
  }
  std::printf("%s\n",
              root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

void print_notes(const Outcome& out) {
  if (!out.target.empty()) std::printf("target  %s\n", out.target.c_str());
  std::printf("%s", out.notes.c_str());
}

void print_time(const Outcome& out, double peak_gflops) {
  std::printf("time    %s", format_seconds(out.seconds).c_str());
  if (!out.emulator.empty()) std::printf(" under %s", out.emulator.c_str());
  if (peak_gflops > 0) {
    std::printf(" on %d thread%s", out.threads, out.threads == 1 ? "" : "s");
    if (out.flops > 0) {
      double gflops = out.flops / out.seconds / 1e9;
      std::printf(", %s GFLOP/s, %s %% of the machine's peak (%s)",
                  format_number(gflops, 1).c_str(),
                  format_number(100 * gflops / peak_gflops, 0).c_str(), out.counting.c_str());
    }
  }
  std::printf("\n");
}

int run_run(const RunArgs& o, const Given& given) {
  if (given.has("--output")) check_folder(o.output);
  if (is_artifact(o.model)) CompileFlags::refuse_for_artifact(given, o.model);
  if (o.emulate) {
    given.refuse({"--executor", "--prepack", "--time-limit", "--memory-limit", "--fuel"},
                 "--emulate", "the program runs in a process of the emulator");
  }
  bool compiled = o.executor == "vm" && !o.emulate;
  if (!compiled) o.flags.refuse_guests(o.emulate ? "--emulate" : "--executor eval");
  Inputs inputs = o.inputs.read(o.model);
  inputs.refuse_lists();
  std::optional<ModelMetadata> labelled;
  if (o.labels) {
    labelled = metadata_of_file(o.model);
    if (!labelled || std::ranges::all_of(labelled->outputs, [](const ModelMetadata::Tensor& t) {
          return t.labels.empty();
        })) {
      throw UserError(Diagnostic(codes::driver_option, {},
                                 "'" + escape_for_terminal(o.model, 200) + "' has no labels")
                          .expected("a model whose metadata has a file of labels"));
    }
  }
  // Standard output is for the JSON.
  std::optional<runtime::PrintScope> prints;
  if (o.json)
    prints.emplace([](const char* text, size_t size) { std::fwrite(text, 1, size, stderr); });
  Outcome out = o.emulate  ? run_under_emulator(o, inputs)
                : compiled ? run_compiled(o, inputs)
                           : run_evaluator(o, inputs);
  o.limits.begin_run();
  std::vector<Tensor> outputs = out.emulated;
  bool tensors = o.emulate || runtime::flatten_tensors(out.value, outputs);
  if (!tensors && !o.output.empty()) {
    throw UserError(Diagnostic(codes::driver_option, {},
                               "the result of @" + o.function + " is not made of tensors only")
                        .help("leave out --output: the value is printed"));
  }
  if (!o.output.empty()) write_outputs(o.output, out.signature, outputs, o.force);
  if (o.json) {
    print_json(out, outputs, tensors, compiled ? measure_peak_gflops(out.threads) : 0, labelled);
    return 0;
  }
  if (shows_value(o, out)) {
    std::printf("%s\n", out.text.c_str());
    return 0;
  }
  print_notes(out);
  if (tensors) {
    Table table({"output", "shape", "dtype", "digest", "values"});
    table.limit(0, 48);
    for (size_t i = 0; i < outputs.size(); ++i) {
      table.row({escape_for_terminal(result_name(out.signature, i)), shape_text(outputs[i]),
                 outputs[i].dtype().to_string(), digest(outputs[i]), summary(outputs[i])});
    }
    std::printf("%s", table.text().c_str());
    print_classes(out, outputs, labelled);
  } else {
    std::printf("value   %s\n", out.text.c_str());
  }
  print_time(out, compiled ? measure_peak_gflops(out.threads) : 0);
  if (!o.output.empty()) std::printf("wrote   %zu files to %s\n", outputs.size(), o.output.c_str());
  return 0;
}

}  // namespace

Command run_command() {
  auto o = std::make_shared<RunArgs>();
  Command out{"run",
              "Run a model or a compiled file",
              {argument("MODEL", o->model, model_kinds("compiled .so")).or_input().required(),
               option("--executor EXECUTOR", o->executor,
                      "vm compiles the model, eval is the reference evaluator: slow")
                   .choices({"vm", "eval"}),
               option("--function NAME", o->function, "The function to run"),
               option("--output FOLDER", o->output, "A folder for the outputs as .npy files"),
               flag("--labels", o->labels,
                    "Print the classes of the greatest scores by the labels of the model's "
                    "metadata"),
               flag("--emulate", o->emulate,
                    "Run under QEMU's emulator of the architecture that is compiled for")},
              [o](const Given& given) {
                o->limits.begin_compilation();
                return run_run(*o, given);
              }};
  return std::move(out.add(o->inputs.table())
                       .add(o->flags.size_table(/*with_dims=*/false))
                       .add(o->flags.table())
                       .add(o->flags.guest_table())
                       .add(o->limits.table_of_run())
                       .add({flag("--force", o->force, "Overwrite output files"),
                             flag("--json", o->json, "Print the result as JSON")}));
}

}  // namespace relay::cli
