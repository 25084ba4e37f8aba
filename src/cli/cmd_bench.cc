#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/diagnostic_codes.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/terminal.h"
#include "runtime/profiler.h"

namespace relay::cli {
namespace {

using runtime::Tensor;

struct Options {
  std::string model;
  std::string function = "main";
  std::string trace;
  std::vector<std::string> compare;
  int repeat = 0;
  uint64_t seed = 0;
  bool profile = false;
  bool force = false;
  bool json = false;
  CompileFlags flags;
};

double peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

double quantile(const std::vector<double>& sorted, double q) {
  return sorted[std::min(sorted.size() - 1,
                         static_cast<size_t>(q * static_cast<double>(sorted.size())))];
}

void compare(const Options& o) {
  std::vector<nlohmann::json> reports;
  for (const std::string& path : o.compare) {
    std::ifstream in(path);
    nlohmann::json j = nlohmann::json::parse(in, nullptr, false);
    if (j.is_discarded() || !j.contains("min_seconds") || !j["min_seconds"].is_number()) {
      throw UserError(Diagnostic(codes::driver_file, Span::place(SourceFile::make(path), "file"),
                                 "the file is no report of relay bench --json"));
    }
    reports.push_back(std::move(j));
  }
  Table table({"figure", o.compare[0], o.compare[1], "ratio"});
  for (const char* key :
       {"min_seconds", "median_seconds", "p90_seconds", "load_seconds", "peak_memory_bytes"}) {
    if (!reports[0].contains(key) || !reports[1].contains(key)) continue;
    double a = reports[0][key].get<double>(), b = reports[1][key].get<double>();
    bool time = std::string_view(key).ends_with("seconds");
    table.row({key, time ? format_seconds(a) : format_bytes(a),
               time ? format_seconds(b) : format_bytes(b), b > 0 ? format_number(a / b, 3) : ""});
  }
  std::printf("%s", table.text().c_str());
}

void run(const Options& o) {
  if (!o.compare.empty()) {
    compare(o);
    return;
  }
  if (o.model.empty()) throw CLI::RequiredError("MODEL");
  refuse_existing(o.trace, o.force);
  Ready ready = prepare(o.model, o.flags, o.function);
  const runtime::Function& f = ready.module.function(o.function);
  std::vector<Tensor> inputs = make_inputs(f, {}, o.seed);
  std::vector<Tensor> outputs = ready.module.run(o.function, inputs);
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  auto begin = Clock::now();
  // By default for two seconds, and ten runs at least.
  while (o.repeat > 0 ? times.size() < static_cast<size_t>(o.repeat)
                      : times.size() < 10 || (Clock::now() - begin < std::chrono::seconds(2) &&
                                              times.size() < 100000)) {
    auto start = Clock::now();
    ready.module.run_into(o.function, inputs, outputs);
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  int threads = ready.module.num_threads();
  double peak = measure_peak_gflops(threads);
  runtime::Profiler profiler;
  std::vector<runtime::Profiler::Row> rows;
  if (o.profile || !o.trace.empty()) {
    runtime::RunOptions options;
    options.profiler = &profiler;
    for (int i = 0; i < 5; ++i) ready.module.run_into(o.function, inputs, outputs, options);
    rows = profiler.rows(ready.module.program());
  }
  std::string trace = o.trace;
  if (o.profile && trace.empty() && !o.json) trace = "relay-trace.json";
  if (!trace.empty()) {
    write_text(trace, profiler.chrome_trace(ready.module.program()), o.force || o.trace.empty());
  }
  double total_ns = 0;
  for (const auto& r : rows) total_ns += static_cast<double>(r.total_ns);
  nlohmann::json metadata = nlohmann::json::parse(ready.module.metadata(), nullptr, false);
  auto schedule = [&](int32_t kernel) -> std::string {
    size_t i = static_cast<size_t>(kernel);
    if (!metadata.is_object() || !metadata.contains("kernels") || i >= metadata["kernels"].size())
      return "";
    return metadata["kernels"][i].value("schedule", "");
  };
  const auto& kernels = ready.module.program().kernels;
  if (o.json) {
    nlohmann::ordered_json root;
    if (!ready.target.empty()) root["target"] = ready.target;
    root["runs"] = times.size();
    root["min_seconds"] = times.front();
    root["median_seconds"] = quantile(times, 0.5);
    root["p90_seconds"] = quantile(times, 0.9);
    root["compile_seconds"] = ready.compile_seconds;
    root["load_seconds"] = ready.load_seconds;
    root["peak_memory_bytes"] = peak_memory();
    root["peak_gflops"] = peak;
    root["threads"] = threads;
    for (const auto& r : rows) {
      const auto& k = kernels[static_cast<size_t>(r.kernel)];
      double seconds = static_cast<double>(r.total_ns) / static_cast<double>(r.calls) * 1e-9;
      root["kernels"].push_back({{"name", k.name},
                                 {"origin", k.origin},
                                 {"calls", r.calls / 5},
                                 {"seconds", seconds},
                                 {"gflops", static_cast<double>(r.flops) / seconds / 1e9},
                                 {"bytes", r.bytes},
                                 {"schedule", schedule(r.kernel)}});
    }
    std::printf("%s\n",
                root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
    return;
  }
  if (!ready.target.empty()) std::printf("target  %s\n", ready.target.c_str());
  for (const std::string& name : ready.bound) {
    std::printf("note    dimension %s is set to 1; --input NAME=SHAPE sets another size\n",
                name.c_str());
  }
  std::printf("time    min %s, median %s, p90 %s (%zu runs, %d thread%s)\n",
              format_seconds(times.front()).c_str(), format_seconds(quantile(times, 0.5)).c_str(),
              format_seconds(quantile(times, 0.9)).c_str(), times.size(), threads,
              threads == 1 ? "" : "s");
  std::printf("memory  peak %s\n", format_bytes(peak_memory()).c_str());
  std::printf("peak    %s GFLOP/s (float32 multiply-add, measured)\n",
              format_number(peak, 0).c_str());
  if (rows.empty()) return;
  Table table(
      {"kernel", "calls", "time", "share %", "GFLOP/s", "% of peak", "GB/s", "nodes", "schedule"});
  table.limit(0, 40);
  table.limit(7, 40);
  table.limit(8, 60);
  for (const auto& r : rows) {
    const auto& k = kernels[static_cast<size_t>(r.kernel)];
    double seconds = static_cast<double>(r.total_ns) / static_cast<double>(r.calls) * 1e-9;
    double gflops = static_cast<double>(r.flops) / seconds / 1e9;
    table.row({k.name, std::to_string(r.calls / 5), format_seconds(seconds),
               format_number(100 * static_cast<double>(r.total_ns) / total_ns, 1),
               format_number(gflops, 1), format_number(100 * gflops / peak, 0),
               format_number(static_cast<double>(r.bytes) / seconds / 1e9, 1),
               escape_for_terminal(k.origin), schedule(r.kernel)});
  }
  std::printf("\n%s", table.text().c_str());
  double run_ns = static_cast<double>(profiler.run_ns());
  std::printf("\nbetween kernels: %s a run (%s %%)\n",
              format_seconds((run_ns - total_ns) / 5 * 1e-9).c_str(),
              format_number(100 * (run_ns - total_ns) / run_ns, 1).c_str());
  if (!trace.empty()) std::printf("trace: %s (open it in a trace viewer)\n", trace.c_str());
}

}  // namespace

void add_bench(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("bench", "Measure a model or a compiled file");
  sub->add_option("MODEL", o->model, "ONNX model, Relay text or compiled .so");
  sub->add_option("--input", o->flags.inputs, "NAME=SHAPE[:DTYPE] of an input; may be repeated");
  sub->add_option("--repeat", o->repeat, "Runs to measure; 0: for two seconds")
      ->check(CLI::Range(0, 1000000));
  sub->add_option("--function", o->function, "The function to run")->capture_default_str();
  sub->add_flag("--profile", o->profile, "Show every kernel and write a trace");
  sub->add_option("--trace", o->trace, "Where to write the trace (Trace Event JSON)");
  sub->add_option("--compare", o->compare,
                  "Two reports written with --json: ratios of the first to the second")
      ->expected(2);
  o->flags.add_to(*sub);
  sub->add_flag("--force", o->force, "Overwrite the trace file");
  sub->add_flag("--json", o->json, "Print the report as JSON");
  sub->callback([o] { run(*o); });
}

}  // namespace relay::cli
