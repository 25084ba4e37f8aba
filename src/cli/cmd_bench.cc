#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>

#include "base/codes/driver.h"
#include "cli/commands.h"
#include "cli/emulate.h"
#include "cli/html/page.h"
#include "cli/inputs.h"
#include "cli/kernel_work.h"
#include "cli/python.h"
#include "cli/terminal.h"
#include "driver/machine_limits.h"
#include "driver/program_flow.h"
#include "driver/specialise.h"
#include "frontend/read_source.h"
#include "runtime/profiler.h"

namespace relay::cli {
namespace {

using runtime::Tensor;

struct BenchArgs {
  std::string model;
  std::string function = "main";
  bool wide = false;
  std::string trace;
  std::string plot;
  std::string html;
  std::vector<std::string> compare;
  int repeat = 0;
  bool profile = false;
  bool force = false;
  bool json = false;
  bool emulate = false;
  CompileFlags flags;
  InputFlags inputs;

  // Kernels are measured beside the limits of the machine.
  bool profiles() const { return profile || !html.empty(); }
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

// Whether the slowest tenth of at least 10 runs takes so much longer than the fastest run that other programs may have
// disturbed them.
bool is_noisy(const std::vector<double>& times) {
  constexpr size_t kLeastRuns = 10;
  constexpr double kMost = 1.25;
  return times.size() >= kLeastRuns && quantile(times, 0.9) > kMost * times.front();
}

// The figures that two reports, or two lines of reports, have in common; `of` names the sizes.
void compare_figures(const nlohmann::json& first, const nlohmann::json& second,
                     const std::string& of, Table& table) {
  for (const char* key :
       {"min_seconds", "median_seconds", "p90_seconds", "load_seconds", "peak_memory_bytes"}) {
    if (!first.contains(key) || !second.contains(key)) continue;
    if (!first[key].is_number() || !second[key].is_number()) continue;
    const auto a = first[key].get<double>(), b = second[key].get<double>();
    const bool time = std::string_view(key).ends_with("seconds");
    table.row({of + key, time ? format_seconds(a) : format_bytes(a),
               time ? format_seconds(b) : format_bytes(b), b > 0 ? format_number(a / b, 3) : ""});
  }
}

// The lines of a report on several sizes.
nlohmann::json lines_of(const nlohmann::json& report) {
  const bool several = report.is_object() && report.contains("sizes") && report["sizes"].is_array();
  return several ? report["sizes"] : nlohmann::json::array();
}

void compare(const BenchArgs& o) {
  std::vector<nlohmann::json> reports;
  for (const std::string& path : o.compare) {
    nlohmann::json j = nlohmann::json::parse(read_source(path)->text(), nullptr, false);
    const bool single = j.is_object() && j.contains("min_seconds") && j["min_seconds"].is_number();
    if (!single && lines_of(j).empty()) {
      throw UserError(Diagnostic(codes::driver_file, Span::place(SourceFile::make(path), "file"),
                                 "the file is not a report of relay bench --json"));
    }
    reports.push_back(std::move(j));
  }
  Table table({"figure", o.compare[0], o.compare[1], "ratio"});
  compare_figures(reports[0], reports[1], "", table);
  for (const nlohmann::json& line : lines_of(reports[0])) {
    if (!line.is_object() || !line.contains("dims") || !line["dims"].is_object()) continue;
    std::string sizes;
    for (const auto& [name, size] : line["dims"].items())
      sizes += escape_for_terminal(name, 200) + "=" + size.dump() + " ";
    for (const nlohmann::json& other : lines_of(reports[1]))
      if (other.is_object() && other.contains("dims") && other["dims"] == line["dims"])
        compare_figures(line, other, sizes, table);
  }
  std::printf("%s", table.text().c_str());
}

// Runs of a profile. The fastest call of a kernel counts: whatever else the machine does only adds.
constexpr int kProfiledRuns = 10;

// A kernel's calls beside the machine's limits.
struct KernelReport {
  size_t kernel = 0;  // of the program
  std::string name, origin, rule, schedule;
  std::vector<std::string> declined;  // see CompiledKernel
  int64_t calls = 0;                  // in one run
  double seconds = 0;                 // of the fastest call
  double mean_seconds = 0;
  double share = 0;             // of all kernels' time
  double flops = 0, bytes = 0;  // of one call; not positive: unknown, or none
  Bound bound;                  // no name: the memory that the kernel accesses is unknown

  double gflops() const { return flops / seconds / 1e9; }
  double gbytes() const { return bytes / seconds / 1e9; }
  double of_bound() const { return bound.seconds / seconds; }
  // How much longer the average call takes than the fastest.
  double spread() const { return seconds > 0 ? mean_seconds / seconds - 1 : 0; }
};

// Bytes of constants that one call of each kernel gets.
std::vector<double> constant_bytes(const runtime::Program& program) {
  std::vector<double> out(program.kernels.size(), 0);
  for (const runtime::Function& f : program.functions) {
    for (const runtime::Instruction& i : f.code) {
      if (i.op != runtime::Opcode::invoke_kernel) continue;
      const auto& bytes = program.kernels[static_cast<size_t>(i.a)].buffer_bytes;
      double total = 0;
      for (size_t n = 0; n < std::min<size_t>(i.count, bytes.size()); ++n) {
        const runtime::Operand& operand = f.operands[static_cast<size_t>(i.b) + n];
        if (operand.kind == runtime::Operand::kConstant && bytes[n] > 0) {
          total += static_cast<double>(bytes[n]);
        }
      }
      out[static_cast<size_t>(i.a)] = total;
    }
  }
  return out;
}

std::vector<KernelReport> kernel_reports(const runtime::Profiler& profiler,
                                         const runtime::Module& module,
                                         const MachineLimits& limits) {
  const runtime::Program& program = module.program();
  nlohmann::json metadata = nlohmann::json::parse(module.metadata(), nullptr, false);
  nlohmann::json described = metadata.is_object()
                                 ? metadata.value("kernels", nlohmann::json::array())
                                 : nlohmann::json::array();
  double footprint = 0;
  for (const Tensor& t : program.constants) footprint += static_cast<double>(t.byte_size());
  double arenas = 0;
  for (const auto& f : program.functions) arenas += static_cast<double>(f.arena_bytes);
  footprint += std::max(arenas, static_cast<double>(profiler.peak_bytes()));
  std::vector<double> constants = constant_bytes(program);
  std::vector<KernelReport> out;
  double total = 0;
  for (const runtime::Profiler::Row& r : profiler.rows(program, work_of(module))) {
    auto i = static_cast<size_t>(r.kernel);
    KernelReport k;
    k.kernel = i;
    k.name = program.kernels[i].name;
    k.origin = program.kernels[i].origin;
    double executed = 1;
    if (i < described.size()) {
      executed = described[i].value("arithmetic", 1.0);
      k.rule = described[i].value("rule", "");
      k.schedule = described[i].value("schedule", "");
      k.declined = described[i].value("declined", std::vector<std::string>());
    }
    k.calls = r.calls / kProfiledRuns;
    k.seconds = static_cast<double>(r.min_ns) * 1e-9;
    k.mean_seconds = static_cast<double>(r.total_ns) * 1e-9 / static_cast<double>(r.calls);
    k.share = k.seconds * static_cast<double>(k.calls);
    k.flops = r.work.flops;
    k.bytes = r.work.bytes;
    double weights = std::clamp(constants[i], 0.0, std::max(k.bytes, 0.0));
    // Work is counted as the operators define it; an algorithm may execute less.
    const double arithmetic = k.flops * executed;
    if (k.bytes > 0) {
      k.bound =
          bound_of({std::max(arithmetic, 0.0), weights, k.bytes - weights}, footprint, limits);
    }
    // Faster than all its data can be read: it reads a part of them, as a lookup in a table does.
    constexpr double kMeasurementError = 1.5;
    if (k.of_bound() > kMeasurementError) k.bound = Bound{};
    total += k.share;
    out.push_back(std::move(k));
  }
  for (KernelReport& k : out) k.share /= total;
  std::stable_sort(out.begin(), out.end(),
                   [](const KernelReport& a, const KernelReport& b) { return a.share > b.share; });
  return out;
}

// A kernel's name with its middle omitted: kernels often differ only at the end of their names.
std::string shortened(const std::string& name, size_t width) {
  constexpr size_t kEnd = 8;
  if (name.size() <= width) return name;
  return name.substr(0, width - kEnd - 1) + "\u2026" + name.substr(name.size() - kEnd);
}

// "nn_conv2d_add" of "fused_nn_conv2d_add_12".
std::string operators_of(std::string name) {
  if (name.starts_with("fused_")) name.erase(0, 6);
  const size_t end = name.find_last_not_of("0123456789");
  if (end != std::string::npos && end + 1 < name.size() && name[end] == '_') name.resize(end);
  return name;
}

// What kernels of the same operators take together, where several have the same.
void print_totals(const std::vector<KernelReport>& reports) {
  struct Total {
    std::string operators;
    int64_t kernels = 0, calls = 0;
    double share = 0;
  };
  std::vector<Total> totals;
  for (const KernelReport& k : reports) {
    const std::string operators = operators_of(k.name);
    auto found = std::ranges::find(totals, operators, &Total::operators);
    if (found == totals.end()) found = totals.insert(found, {operators});
    ++found->kernels;
    found->calls += k.calls;
    found->share += k.share;
  }
  if (totals.size() == reports.size()) return;
  std::ranges::stable_sort(totals, std::greater<>(), &Total::share);
  constexpr size_t kMost = 8;
  Table table({"operators", "kernels", "calls", "share %"});
  for (size_t i = 0; i < std::min(totals.size(), kMost); ++i) {
    const Total& t = totals[i];
    table.row({shortened(t.operators, 44), std::to_string(t.kernels), std::to_string(t.calls),
               format_number(100 * t.share, 1)});
  }
  std::printf("\n%s", table.text().c_str());
}

void print_profile(const std::vector<KernelReport>& reports, const MachineLimits& limits,
                   const std::string& counting, bool wide) {
  std::string bandwidths;
  for (const MachineLimits::Level& l : limits.levels) {
    bandwidths +=
        (bandwidths.empty() ? "" : ", ") + l.name + " " + format_number(l.gbytes_per_second, 0);
  }
  std::printf("bandwidth  %s GB/s (measured)\ncounted    %s\n\n", bandwidths.c_str(),
              counting.c_str());
  enum Column : size_t {
    kernel,
    calls,
    time,
    spread,
    share,
    flops,
    data,
    rate,
    limit,
    of_limit,
    nodes,
    schedule
  };
  Table table({"kernel", "calls", "time", "spread %", "share %", "GFLOP/s", "data", "GB/s", "limit",
               "% of limit", "nodes", "schedule"});
  // A pipe has no width: the two sentences then share the rest of a wide terminal's line.
  constexpr size_t kFullName = 36, kShortName = 24, kWideTerminal = 150, kPipe = 220;
  const size_t terminal = terminal_width() == 0 ? kPipe : terminal_width();
  const size_t name = wide ? std::string::npos : terminal < kWideTerminal ? kShortName : kFullName;
  // Kernels that take next to nothing are one row.
  constexpr double kNegligible = 0.005;
  constexpr ptrdiff_t kLeastRest = 4;
  const auto rest =
      std::ranges::find_if(reports, [](const KernelReport& k) { return k.share < kNegligible; });
  const bool all = wide || reports.end() - rest < kLeastRest;
  const std::span<const KernelReport> shown(reports.begin(), all ? reports.end() : rest);
  for (const KernelReport& k : shown) {
    bool known = !k.bound.name.empty();
    // A kernel with a negligible share has no colour.
    Tone tone = !known || k.share < 0.01 ? Tone::plain
                : k.of_bound() >= 0.8    ? Tone::good
                : k.of_bound() >= 0.5    ? Tone::fair
                                         : Tone::poor;
    table.row(
        {shortened(k.name, name), std::to_string(k.calls), format_seconds(k.seconds),
         format_number(100 * k.spread(), 0), format_number(100 * k.share, 1),
         k.flops > 0 ? format_number(k.gflops(), 1) : "", k.bytes > 0 ? format_bytes(k.bytes) : "",
         k.bytes > 0 ? format_number(k.gbytes(), 1) : "", k.bound.name,
         known ? format_number(100 * k.of_bound(), 0) : "", escape_for_terminal(k.origin),
         k.schedule},
        tone);
  }
  if (!all) {
    KernelReport sum;
    for (auto k = rest; k != reports.end(); ++k) sum.calls += k->calls, sum.share += k->share;
    table.row({counted(reports.end() - rest, "other kernel"), std::to_string(sum.calls), "", "",
               format_number(100 * sum.share, 1), "", "", "", "", "", "", ""});
  }
  const std::vector<std::string> dropped =
      table.fit(wide ? 0 : terminal, {data, rate, spread, schedule, calls, nodes, limit, flops},
                {nodes, schedule});
  std::printf("%s", table.text().c_str());
  if (!dropped.empty()) {
    std::string names;
    for (const std::string& d : dropped) names += (names.empty() ? "" : ", ") + d;
    std::printf("\nleft out for the width of the terminal: %s; --wide shows all\n", names.c_str());
  }
  print_totals(reports);
  for (const KernelReport& k : reports) {
    constexpr double kNotable = 0.05, kFar = 0.5;
    if (k.bound.name.empty() || k.share < kNotable || k.of_bound() >= kFar) continue;
    std::printf("\nbelow 50 %% of its roofline: %s\n  nodes     %s\n  schedule  %s\n",
                k.name.c_str(), escape_for_terminal(k.origin).c_str(), k.schedule.c_str());
    if (k.rule != "loops") continue;
    for (const std::string& d : k.declined) std::printf("  declined  %s\n", d.c_str());
  }
}

// A figure in a report; null where the work that it is of is unknown.
nlohmann::ordered_json known(double work, double figure) {
  return work < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(figure);
}

nlohmann::ordered_json limits_json(const MachineLimits& limits) {
  nlohmann::ordered_json out;
  out["gflops"] = limits.gflops;
  for (const MachineLimits::Level& l : limits.levels) {
    out["read_gbytes_per_second"][l.name] = l.gbytes_per_second;
  }
  return out;
}

// The times of runs, shortest first; `outputs` are the results. By default runs for two seconds, and ten at least.
std::vector<double> measure(const BenchArgs& o, const runtime::Module& module,
                            const Arguments& arguments, std::vector<Tensor>& outputs) {
  runtime::flatten_tensors(module.run_values(o.function, arguments.values), outputs);
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  auto begin = Clock::now();
  while (o.repeat > 0 ? times.size() < static_cast<size_t>(o.repeat)
                      : times.size() < 10 || (Clock::now() - begin < std::chrono::seconds(2) &&
                                              times.size() < 100000)) {
    auto start = Clock::now();
    run_again(module, o.function, arguments.values, outputs);
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  return times;
}

// A profile, a trace and a report on kernels are of one size.
void refuse_details_of_several(const Given& given, const Inputs& inputs) {
  if (inputs.lists.empty()) return;
  for (const char* name : {"--profile", "--trace", "--plot", "--html"}) {
    if (!given.has(name)) continue;
    throw UserError(
        Diagnostic(codes::driver_option, {}, std::string(name) + " shows a run of one size")
            .found("several sizes of dimension '" +
                   escape_for_terminal(inputs.lists.begin()->first, 200) + "'"));
  }
}

// A line, or an object, for each combination of sizes.
void measure_sizes(const BenchArgs& o, const Ready& ready, const Inputs& inputs) {
  std::vector<std::string> header;
  for (const auto& [name, sizes] : inputs.lists) header.push_back(escape_for_terminal(name, 200));
  for (const char* figure : {"min", "median", "p90", "runs"}) header.emplace_back(figure);
  Table table(header);
  nlohmann::ordered_json root;
  if (!ready.target.empty()) root["target"] = ready.target;
  root["compile_seconds"] = ready.compile_seconds;
  root["load_seconds"] = ready.load_seconds;
  root["threads"] = ready.module.num_threads();
  for (const Inputs& one : inputs.single()) {
    Arguments arguments = make_arguments(ready.module, o.function, one, o.inputs.seed);
    std::vector<Tensor> outputs;
    std::vector<double> times = measure(o, ready.module, arguments, outputs);
    std::vector<std::string> cells;
    nlohmann::ordered_json line;
    for (const auto& [name, sizes] : inputs.lists) {
      cells.push_back(std::to_string(one.dims.at(name)));
      line["dims"][name] = one.dims.at(name);
    }
    line["runs"] = times.size();
    line["min_seconds"] = times.front();
    line["median_seconds"] = quantile(times, 0.5);
    line["p90_seconds"] = quantile(times, 0.9);
    for (double seconds : {times.front(), quantile(times, 0.5), quantile(times, 0.9)}) {
      cells.push_back(format_seconds(seconds));
    }
    cells.push_back(std::to_string(times.size()));
    table.row(std::move(cells));
    root["sizes"].push_back(std::move(line));
  }
  if (o.json) {
    std::printf("%s\n",
                root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
    return;
  }
  if (!ready.target.empty()) std::printf("target  %s\n", ready.target.c_str());
  std::printf("%s", table.text().c_str());
}

// The times are the emulator's, and not those of a machine of the architecture.
int bench_under_emulator(const BenchArgs& o, const Inputs& inputs) {
  constexpr int kRuns = 3;
  EmulatedRun run = run_emulated(o.model, o.flags, o.function, inputs, o.inputs.seed,
                                 o.repeat > 0 ? o.repeat : kRuns);
  std::sort(run.seconds.begin(), run.seconds.end());
  const double median = quantile(run.seconds, 0.5), p90 = quantile(run.seconds, 0.9);
  if (o.json) {
    nlohmann::ordered_json root;
    if (!run.target.empty()) root["target"] = run.target;
    root["emulator"] = run.emulator;
    for (const auto& [name, size] : run.arguments.sizes) root["invented_sizes"][name] = size;
    root["runs"] = run.seconds.size();
    root["min_seconds"] = run.seconds.front();
    root["median_seconds"] = median;
    root["p90_seconds"] = p90;
    root["threads"] = run.threads;
    std::printf("%s\n",
                root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
    return 0;
  }
  if (!run.target.empty()) std::printf("target  %s\n", run.target.c_str());
  std::printf("%s", run.arguments.notes(o.inputs.seed, "note    ").c_str());
  std::printf("time    min %s, median %s, p90 %s (%zu runs, %d thread%s) under %s\n",
              format_seconds(run.seconds.front()).c_str(), format_seconds(median).c_str(),
              format_seconds(p90).c_str(), run.seconds.size(), run.threads,
              run.threads == 1 ? "" : "s", run.emulator.c_str());
  return 0;
}

// What --json prints.
nlohmann::ordered_json report_of(const BenchArgs& o, const Ready& ready, const Arguments& arguments,
                                 const std::vector<double>& times, double memory,
                                 const MachineLimits& limits,
                                 const std::vector<KernelReport>& reports) {
  nlohmann::ordered_json root;
  if (!ready.target.empty()) root["target"] = ready.target;
  for (const auto& [name, size] : arguments.sizes) root["invented_sizes"][name] = size;
  root["runs"] = times.size();
  root["min_seconds"] = times.front();
  root["median_seconds"] = quantile(times, 0.5);
  root["p90_seconds"] = quantile(times, 0.9);
  root["noisy"] = is_noisy(times);
  root["compile_seconds"] = ready.compile_seconds;
  root["load_seconds"] = ready.load_seconds;
  root["peak_memory_bytes"] = memory;
  root["peak_gflops"] = limits.gflops;
  root["threads"] = ready.module.num_threads();
  root["counting"] = counting_of(ready.module);
  if (o.profiles()) root["limits"] = limits_json(limits);
  for (const KernelReport& k : reports) {
    root["kernels"].push_back({{"kernel", k.kernel},
                               {"name", k.name},
                               {"origin", k.origin},
                               {"calls", k.calls},
                               {"seconds", k.seconds},
                               {"mean_seconds", k.mean_seconds},
                               {"share", k.share},
                               {"gflops", known(k.flops, k.gflops())},
                               {"bytes", known(k.bytes, k.bytes)},
                               {"gbytes_per_second", known(k.bytes, k.gbytes())},
                               {"limit", k.bound.name},
                               {"limit_seconds", k.bound.seconds},
                               {"of_limit", k.of_bound()},
                               {"rule", k.rule},
                               {"schedule", k.schedule}});
  }
  return root;
}

// Which bytes of the arena hold something, kernel by kernel.
nlohmann::ordered_json memory_of(const runtime::Module& module, const std::string& function) {
  const runtime::Program& program = module.program();
  const ProgramFlow flow = program_flow(
      program, static_cast<size_t>(program.find_function(function)), module.metadata());
  nlohmann::ordered_json out{{"arena_bytes", flow.arena_bytes}, {"alive_bytes", flow.alive}};
  for (const FlowStep& s : flow.steps) {
    out["steps"].push_back(s.name);
    out["kernels"].push_back(s.kernel);
  }
  return out;
}

void write_page(const BenchArgs& o, const Ready& ready, const nlohmann::ordered_json& report) {
  PageContent content{.title = std::filesystem::path(o.model).filename().string(),
                      .model = ready.source,
                      .compiled = ready.compiled.get(),
                      .profile = &report};
  if (ready.compiled == nullptr) content.stored = &ready.module;
  write_text(o.html, page_html(content), o.force);
}

// The report as a figure, drawn by the Python package.
void draw(const BenchArgs& o, const runtime::Module& module, nlohmann::ordered_json report,
          const std::vector<double>& times) {
  report["memory"] = memory_of(module, o.function);
  report["model"] = std::filesystem::path(o.model).filename().string();
  report["times"] = times;
  draw_figure(report.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace),
              o.plot);
}

int run_bench(const BenchArgs& options, const Given& given) {
  BenchArgs o = options;
  if (!o.compare.empty()) {
    compare(o);
    return 0;
  }
  if (!given.has("MODEL")) {
    throw UsageError(
        Diagnostic(codes::driver_usage, {}, "MODEL is missing")
            .help("relay bench [OPTIONS] MODEL, or relay bench --compare REPORT REPORT"));
  }
  if (o.wide && (!o.profile || o.json)) {
    throw UserError(Diagnostic(codes::driver_option, {}, "--wide shows the table of --profile")
                        .found(o.json ? "--json" : "no --profile"));
  }
  if (given.has("--trace")) refuse_existing(o.trace, o.force);
  if (given.has("--plot")) refuse_existing(o.plot, o.force);
  if (given.has("--html")) refuse_existing(o.html, o.force);
  if (is_artifact(o.model)) CompileFlags::refuse_for_artifact(given, o.model);
  Inputs inputs = o.inputs.read(o.model);
  refuse_details_of_several(given, inputs);
  if (o.emulate) {
    given.refuse(
        {"--profile", "--trace", "--plot", "--html", "--prepack", "--time-limit", "--memory-limit"},
        "--emulate", "the program runs in a process of the emulator");
    o.flags.refuse_guests("--emulate");
    inputs.refuse_lists();
    return bench_under_emulator(o, inputs);
  }
  ModelOptions shapes = inputs.shapes;
  shapes.values = given_values(inputs);
  Ready ready = prepare(o.model, o.flags, o.function, shapes, inputs.ranges);
  o.function = entry_for(ready.module, o.function, shapes.values);
  if (!inputs.lists.empty()) {
    measure_sizes(o, ready, inputs);
    return 0;
  }
  Arguments arguments = make_arguments(ready.module, o.function, inputs, o.inputs.seed);
  std::vector<Tensor> outputs;
  std::vector<double> times = measure(o, ready.module, arguments, outputs);
  int threads = ready.module.num_threads();
  double memory = peak_memory();
  MachineLimits limits;
  if (o.profiles()) {
    limits = measure_limits(threads);
  } else {
    limits.gflops = measure_peak_gflops(threads);
  }
  runtime::Profiler profiler;
  if (o.profiles() || !o.trace.empty()) {
    runtime::RunOptions options;
    options.profiler = &profiler;
    // The limits were measured with other data in the caches.
    run_again(ready.module, o.function, arguments.values, outputs);
    for (int i = 0; i < kProfiledRuns; ++i) {
      run_again(ready.module, o.function, arguments.values, outputs, options);
    }
  }
  std::vector<KernelReport> reports = kernel_reports(profiler, ready.module, limits);
  if (!o.trace.empty()) {
    write_text(o.trace, profiler.chrome_trace(ready.module.program(), work_of(ready.module)),
               o.force);
  }
  const nlohmann::ordered_json report =
      report_of(o, ready, arguments, times, memory, limits, reports);
  if (!o.plot.empty()) draw(o, ready.module, report, times);
  if (!o.html.empty()) write_page(o, ready, report);
  if (o.json) {
    std::printf(
        "%s\n",
        report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
    return 0;
  }
  if (!ready.target.empty()) std::printf("target  %s\n", ready.target.c_str());
  std::printf("%s", arguments.notes(o.inputs.seed, "note    ").c_str());
  std::printf("time    min %s, median %s, p90 %s (%zu runs, %d thread%s)\n",
              format_seconds(times.front()).c_str(), format_seconds(quantile(times, 0.5)).c_str(),
              format_seconds(quantile(times, 0.9)).c_str(), times.size(), threads,
              threads == 1 ? "" : "s");
  if (is_noisy(times))
    std::printf(
        "note    one run in ten takes %s %% longer than the fastest: the machine may be busy\n",
        format_number(100 * (quantile(times, 0.9) / times.front() - 1), 0).c_str());
  std::printf("memory  peak %s\n", format_bytes(memory).c_str());
  std::printf("peak    %s GFLOP/s (float32 multiply-add, measured)\n",
              format_number(limits.gflops, 0).c_str());
  if (o.profile) {
    print_profile(reports, limits, counting_of(ready.module), o.wide);
    double run = static_cast<double>(profiler.run_ns()), kernels = 0;
    for (const auto& r : profiler.rows(ready.module.program())) {
      kernels += static_cast<double>(r.total_ns);
    }
    std::printf("\nbetween kernels: %s a run (%s %%)\n",
                format_seconds((run - kernels) / kProfiledRuns * 1e-9).c_str(),
                format_number(100 * (run - kernels) / run, 1).c_str());
  }
  if (!o.trace.empty()) std::printf("trace: %s (open it in a trace viewer)\n", o.trace.c_str());
  return 0;
}

}  // namespace

Command bench_command() {
  auto o = std::make_shared<BenchArgs>();
  Command out{
      "bench",
      "Measure a model or a compiled file",
      {argument("MODEL", o->model, model_kinds("compiled .so")).or_input(),
       option("--repeat N", o->repeat, "Runs to measure; 0: for two seconds").range(0, 1000000),
       option("--function NAME", o->function, "The function to run"),
       flag("--emulate", o->emulate,
            "Run under QEMU's emulator of the architecture that is compiled for"),
       flag("--profile", o->profile, "Show every kernel beside what limits it"),
       flag("--wide", o->wide, "Show all columns of the profile, whatever the terminal's width"),
       option("--trace FILE", o->trace, "Write a trace of the runs (Trace Event JSON)"),
       option("--plot FILE", o->plot,
              "Draw the times of the runs, the memory over a run, and with --profile the kernels "
              "under "
              "the roofline (SVG)"),
       option("--html FILE", o->html,
              "Write the page of relay show with the time of each kernel and its roofline"),
       option("--compare REPORT REPORT", o->compare,
              "Two reports written with --json: ratios of the first to the second")
           .count(2)},
      [o](const Given& given) { return run_bench(*o, given); }};
  return std::move(
      out.add(o->inputs.table())
          .add(o->flags.size_table(/*with_dims=*/false))
          .add(o->flags.table())
          .add(o->flags.guest_table())
          .add({flag("--force", o->force, "Overwrite the trace, the figure and the page"),
                flag("--json", o->json, "Print the report as JSON")}));
}

}  // namespace relay::cli
