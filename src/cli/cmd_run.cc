#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/diagnostic_codes.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/npy.h"
#include "cli/terminal.h"

namespace relay::cli {
namespace {

using runtime::Tensor;

struct Options {
  std::string model;
  std::string function = "main";
  std::string output;
  uint64_t seed = 0;
  bool random = false;
  bool force = false;
  bool json = false;
  CompileFlags flags;
};

std::string shape_text(const Tensor& t) {
  std::string out = "(";
  for (int64_t d : t.shape()) out += (out.size() > 1 ? ", " : "") + std::to_string(d);
  return out + (t.rank() == 1 ? ",)" : ")");
}

// A result's name as a file name: what is not a letter, digit, dot or dash becomes an underscore.
std::string file_name(const std::string& name) {
  std::string out;
  for (char c : name.substr(0, 100)) {
    bool safe = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                c == '-' || c == '_' || (c == '.' && !out.empty());
    out += safe ? c : '_';
  }
  return (out.empty() ? "output" : out) + ".npy";
}

void run(Options& o) {
  // --input NAME=FILE.npy gives a value, NAME=SHAPE a shape.
  std::vector<std::pair<std::string, std::string>> files;
  std::erase_if(o.flags.inputs, [&](const std::string& text) {
    size_t equals = text.find('=');
    if (equals == std::string::npos || !text.ends_with(".npy")) return false;
    files.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    return true;
  });
  Ready ready = prepare(o.model, o.flags);
  const runtime::Function& f = ready.module.function(o.function);
  std::vector<Tensor> inputs = make_inputs(f, files, o.seed);
  using Clock = std::chrono::steady_clock;
  std::vector<Tensor> outputs = ready.module.run(o.function, inputs);
  // The first run pays for cold caches and pages; the time shown is the best of a few more.
  double best = 1e30;
  auto begin = Clock::now();
  for (int i = 0; i < 5 && Clock::now() - begin < std::chrono::seconds(2); ++i) {
    auto start = Clock::now();
    ready.module.run_into(o.function, inputs, outputs);
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  // Of the function's own straight code; what it calls is not counted.
  double flops = 0;
  for (const runtime::Instruction& i : f.code) {
    if (i.op != runtime::Opcode::invoke_kernel) continue;
    flops += static_cast<double>(ready.module.program().kernels[static_cast<size_t>(i.a)].flops);
  }
  int threads = ready.module.num_threads();
  double gflops = flops / best / 1e9;
  double peak = measure_peak_gflops(threads);
  auto result_name = [&](size_t i) {
    return i < f.results.size() && !f.results[i].name.empty() ? f.results[i].name
                                                              : "output" + std::to_string(i);
  };
  if (!o.output.empty()) {
    std::filesystem::create_directories(o.output);
    for (size_t i = 0; i < outputs.size(); ++i) {
      refuse_existing(o.output + "/" + file_name(result_name(i)), o.force);
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      write_npy(o.output + "/" + file_name(result_name(i)), outputs[i]);
    }
  }
  if (o.json) {
    nlohmann::ordered_json root;
    if (!ready.target.empty()) root["target"] = ready.target;
    root["outputs"] = nlohmann::ordered_json::array();
    for (size_t i = 0; i < outputs.size(); ++i) {
      root["outputs"].push_back(
          {{"name", result_name(i)},
           {"dtype", outputs[i].dtype().to_string()},
           {"shape", std::vector<int64_t>(outputs[i].shape().begin(), outputs[i].shape().end())},
           {"digest", digest(outputs[i])}});
    }
    root["seconds"] = best;
    root["gflops"] = gflops;
    root["peak_gflops"] = peak;
    std::printf("%s\n",
                root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
    return;
  }
  if (!ready.target.empty()) std::printf("target  %s\n", ready.target.c_str());
  for (const std::string& name : ready.bound) {
    std::printf("note    dimension %s is set to 1; --input NAME=SHAPE sets another size\n",
                name.c_str());
  }
  if (files.size() < f.params.size()) {
    std::printf("note    %zu input%s invented (seed %llu)\n", f.params.size() - files.size(),
                f.params.size() - files.size() == 1 ? " is" : "s are",
                static_cast<unsigned long long>(o.seed));
  }
  Table table({"output", "shape", "dtype", "digest", "values"});
  table.limit(0, 48);
  for (size_t i = 0; i < outputs.size(); ++i) {
    table.row({escape_for_terminal(result_name(i)), shape_text(outputs[i]),
               outputs[i].dtype().to_string(), digest(outputs[i]), summary(outputs[i])});
  }
  std::printf("%s", table.text().c_str());
  std::printf("time    %s on %d thread%s", format_seconds(best).c_str(), threads,
              threads == 1 ? "" : "s");
  if (flops > 0) {
    std::printf(", %s GFLOP/s, %s %% of the machine's peak", format_number(gflops, 1).c_str(),
                format_number(100 * gflops / peak, 0).c_str());
  }
  std::printf("\n");
  if (!o.output.empty()) std::printf("wrote   %zu files to %s\n", outputs.size(), o.output.c_str());
}

}  // namespace

void add_run(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("run", "Run a model or a compiled file");
  sub->add_option("MODEL", o->model, "ONNX model, Relay text or compiled .so")->required();
  sub->add_option("--input", o->flags.inputs,
                  "NAME=FILE.npy gives a value, NAME=SHAPE[:DTYPE] a shape; may be repeated");
  sub->add_option("--random-inputs", o->seed, "Seed for the inputs that are not given");
  sub->add_option("--function", o->function, "The function to run")->capture_default_str();
  sub->add_option("--output", o->output, "A folder for the outputs as .npy files");
  o->flags.add_to(*sub);
  sub->add_flag("--force", o->force, "Overwrite output files");
  sub->add_flag("--json", o->json, "Print the result as JSON");
  sub->callback([o] { run(*o); });
}

}  // namespace relay::cli
