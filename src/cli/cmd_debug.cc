#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/codes/driver.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/compile_model.h"
#include "cli/inputs.h"
#include "cli/limits.h"
#include "cli/line_reader.h"
#include "cli/saved_tensors.h"
#include "cli/terminal.h"
#include "codegen/targets.h"
#include "driver/debug_session.h"
#include "driver/evaluate.h"
#include "driver/find_nan.h"
#include "driver/native_kernels.h"

namespace relay::cli {
namespace {

struct DebugArgs {
  std::string model;
  std::string executor;
  std::string function = "main";
  std::string output = "relay-nan";
  bool nan = false;
  bool force = false;
  bool json = false;
  CompileFlags flags;
  InputFlags inputs;
  LimitFlags limits;
};

// A program that is ready to be watched.
struct Subject {
  LoadedModel model;
  std::unique_ptr<WatchedProgram> program;
  std::vector<runtime::Value> arguments;
  std::string notes;
  bool compiled = false;
};

Subject subject_of(const DebugArgs& o) {
  ModelRun run = read_model_run(o.model, o.function, o.flags, o.inputs,
                                "give the model that it was compiled from");
  Subject out;
  out.model = std::move(run.model);
  out.notes = run.arguments.notes(o.inputs.seed, "note    ");
  out.arguments = std::move(run.arguments.values);
  out.compiled = o.executor.empty() ? out.model.format != "relay" : o.executor == "vm";
  const runtime::RunOptions limits = o.limits.of_run();
  if (!out.compiled) {
    EvalOptions options;
    options.fuel = std::max<int64_t>(limits.fuel, 0);
    options.memory_limit = std::max<int64_t>(limits.memory_limit, 0);
    options.denormals = denormals_of(parse_program_target(o.flags.target).host);
    options.compile_kernel = NativeKernels(o.flags.threads).compiler();
    out.program = watch_evaluator(out.model.module, options, out.model.source_name);
    return out;
  }
  CompileOptions options = o.flags.options(run.ranges);
  options.source_name = out.model.source_name;
  if (o.function != "main") {
    options.config["relay.RemoveUnusedFunctions.entry_functions"] =
        AttrValue(ValueList{AttrValue(o.function)});
  }
  WatchLimits watch;
  watch.fuel = std::max<int64_t>(limits.fuel, 0);
  watch.memory_limit = std::max<int64_t>(limits.memory_limit, 0);
  // A session waits for its user: only a run on its own has a time limit.
  if (o.nan) watch.time_limit = limits.time_limit;
  out.program = std::make_unique<CompiledWatch>(out.model.module, std::move(options), watch);
  return out;
}

// ---- --find-nan

std::string kind_of(const NanEvent& e) { return e.is_nan ? "NaN" : "infinity"; }

Reproduction reproduction_of(const NanEvent& e, const std::string& folder) {
  Reproduction out{folder, e.program, {}};
  const Function main = e.program ? e.program->find("main") : nullptr;
  for (size_t i = 0; i < e.inputs.size(); ++i) {
    const bool named = main && i < main->params.size();
    out.inputs.emplace_back(named ? main->params[i]->name_hint : "input" + std::to_string(i),
                            e.inputs[i]);
  }
  return out;
}

int print_json(const NanReport& report, const std::vector<std::string>& files) {
  nlohmann::ordered_json root{
      {"calls", report.calls},
      {"inputs", {{"nan", report.arguments.nans}, {"infinite", report.arguments.infinities}}},
      {"results", {{"nan", report.results.nans}, {"infinite", report.results.infinities}}},
      {"found", nlohmann::ordered_json::array()}};
  for (const NanEvent& e : report.events) {
    nlohmann::ordered_json item{{"kind", kind_of(e)}, {"operation", e.operation}, {"node", e.node}};
    if (!e.kernel.empty()) item["kernel"] = e.kernel;
    for (const Tensor& t : e.inputs) item["inputs"].push_back(statistics(t));
    for (const Tensor& t : e.outputs) item["outputs"].push_back(statistics(t));
    root["found"].push_back(std::move(item));
  }
  if (!files.empty()) root["files"] = files;
  std::printf("%s\n",
              root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  return report.events.empty() ? 0 : 1;
}

std::string numbers_of(const NotFinite& n) {
  return std::to_string(n.nans) + " NaN, " + std::to_string(n.infinities) + " infinite";
}

int find(const DebugArgs& o) {
  refuse_existing_reproduction(o.output, o.force);
  Subject subject = subject_of(o);
  o.limits.begin_run();
  const NanReport report =
      find_nan(*subject.program, o.function, subject.arguments, subject.model.source_name);
  std::vector<std::string> files;
  if (!report.events.empty())
    files = save_reproduction(reproduction_of(report.events[0], o.output), o.force);
  if (o.json) return print_json(report, files);
  std::printf("%s", subject.notes.c_str());
  std::printf("run     %s, %s\n",
              counted(report.calls, subject.compiled ? "kernel" : "operator").c_str(),
              subject.compiled ? "compiled" : "on the evaluator");
  if (report.arguments.nans + report.arguments.infinities > 0)
    std::printf("inputs  %s\n", numbers_of(report.arguments).c_str());
  for (const NanEvent& e : report.events) {
    std::printf(
        "%s %s of call %lld%s\n", e.is_nan ? "NaN    " : "inf    ",
        (e.operation + (e.node.empty() ? "" : ", " + escape_for_terminal(e.node, 300)) + ",")
            .c_str(),
        static_cast<long long>(e.index),
        e.kernel.empty() || e.kernel == e.operation
            ? ""
            : (", in kernel " + escape_for_terminal(e.kernel, 100)).c_str());
    if (e.kernel_only)
      std::printf(
          "        the kernel alone makes it, not its operators on the evaluator: see relay "
          "diff\n");
    for (size_t i = 0; i < e.inputs.size(); ++i)
      std::printf("  in %zu  %s\n", i, statistics(e.inputs[i]).c_str());
    for (size_t i = 0; i < e.outputs.size(); ++i)
      std::printf("  out %zu %s\n", i, statistics(e.outputs[i]).c_str());
  }
  if (report.events.empty()) {
    const bool results = report.results.nans + report.results.infinities > 0;
    std::printf("found   no call makes a NaN or an infinity that its inputs do not have%s\n",
                results ? (", the results have " + numbers_of(report.results)).c_str() : "");
    return 0;
  }
  for (size_t i = 0; i < files.size(); ++i)
    std::printf("%s %s\n", i == 0 ? "wrote  " : "       ",
                escape_for_terminal(files[i], 300).c_str());
  return 1;
}

// ---- The session

int debug(const DebugArgs& o) {
  Subject subject = subject_of(o);
  LimitFlags::end_compilation();
  DebugOptions options;
  options.source_name = subject.model.source_name;
  options.save = [force = o.force](const std::string& path,
                                   const std::vector<std::pair<std::string, Tensor>>& tensors) {
    save_tensors(path, tensors, force);
  };
  std::printf("%s", subject.notes.c_str());
  DebugSession session(subject.model.module, std::move(subject.program), o.function,
                       std::move(subject.arguments), std::move(options));
  LineReader reader(history_file("debug_history"),
                    [&](std::string_view word) { return session.completions(word); });
  const bool good = session.interact(
      [&] {
        std::optional<std::string> line = reader.read("debug> ");
        if (line) reader.remember(*line);
        if (!line && reader.is_terminal()) std::printf("\n");
        return line;
      },
      [](const std::string& text) {
        std::fwrite(text.data(), 1, text.size(), stdout);
        std::fflush(stdout);
      });
  return good || reader.is_terminal() ? 0 : 1;
}

int run_debug(const DebugArgs& o, const Given& given) {
  o.limits.begin_compilation();
  if (o.nan) return find(o);
  given.refuse({"--json", "--output"}, "a session", "they are options of --find-nan");
  return debug(o);
}

}  // namespace

Command debug_command() {
  auto o = std::make_shared<DebugArgs>();
  Command out{
      "debug",
      "Step through the operators or kernels of a run, or find the first NaN",
      {argument("MODEL", o->model, model_kinds()).required(),
       flag("--find-nan", o->nan,
            "Name the first operator that makes a NaN or an infinity not among its inputs, and "
            "write its inputs; exit code 1 when there is one"),
       option("--executor EXECUTOR", o->executor,
              "eval goes by the operators of the program, vm by the kernels of compiled code; "
              "without, eval for Relay text")
           .choices({"vm", "eval"}),
       option("--function NAME", o->function, "The function to run"),
       option("-o,--output FOLDER", o->output, "A folder for the inputs that --find-nan writes")},
      [o](const Given& given) { return run_debug(*o, given); }};
  std::vector<Option> compile;
  for (Option& each : o->flags.table()) {
    if (each.name() != "--prepack" && each.name() != "--donate" && each.name() != "--verify")
      compile.push_back(std::move(each));
  }
  return std::move(out.add(o->inputs.table())
                       .add(std::move(compile))
                       .add(o->limits.table_of_run())
                       .add({flag("--force", o->force, "Overwrite files"),
                             flag("--json", o->json, "Print what --find-nan finds as JSON")}));
}

}  // namespace relay::cli
