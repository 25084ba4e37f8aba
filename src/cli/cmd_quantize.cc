// `relay quantize`: a float model and some of its inputs in, a program of 8-bit integers out.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/codes/driver.h"
#include "base/quantities.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/python.h"
#include "cli/terminal.h"
#include "driver/evaluate.h"
#include "frontend/arrays/npz.h"
#include "ir/text/text.h"
#include "quantize/report.h"
#include "run/npy.h"

namespace relay::cli {
namespace {

namespace fs = std::filesystem;

struct QuantizeArgs {
  std::string model;
  std::string output;
  std::string samples;
  std::string method = "min_max";
  std::string report;
  std::string plot;
  std::vector<std::string> keep_float;
  double percentile = 99.99;
  double max_error = 0;
  double min_agreement = 0;
  uint64_t seed = 0;
  bool per_tensor = false;
  bool no_bias_correction = false;
  bool force = false;
  bool json = false;
  std::vector<std::string> inputs;
  CompileFlags flags;
};

std::string_view extension(const std::string& path) {
  size_t dot = path.find_last_of("./");
  return dot == path.npos || path[dot] == '/' ? std::string_view()
                                              : std::string_view(path).substr(dot);
}

std::vector<Tensor> tensors_of(const Arguments& arguments) {
  std::vector<Tensor> out;
  for (const runtime::Value& v : arguments.values) out.push_back(v.tensor());
  return out;
}

// One sample for each file of a folder, in the order of their names: a .npz has an array for each input, a .npy is the
// only input.
quantize::Samples read_samples(const std::string& folder, const runtime::Function& signature) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::string path = entry.path().string();
    if (extension(path) == ".npz" || extension(path) == ".npy") paths.push_back(path);
  }
  if (error) {
    throw UserError(
        Diagnostic(codes::driver_file, {},
                   "the folder '" + escape_for_terminal(folder, 300) +
                       "' cannot be read: " + error.message())
            .help(
                "--calibrate takes a folder of .npz or .npy files, or a number of random samples"));
  }
  std::ranges::sort(paths);
  quantize::Samples out;
  for (const std::string& path : paths) {
    Inputs inputs;
    if (extension(path) == ".npz") {
      inputs.arrays = read_npz(path);
    } else if (signature.params.size() == 1) {
      inputs.arrays[signature.params[0].name] = read_npy(path);
    } else {
      throw UserError(Diagnostic(codes::driver_calibration, {},
                                 "'" + escape_for_terminal(path, 300) +
                                     "' holds one array, and the model has " +
                                     counted(signature.params.size(), "input"))
                          .help("write a .npz with one array for each, by the inputs' names"));
    }
    for (const runtime::Slot& p : signature.params) {
      if (inputs.arrays.contains(p.name)) continue;
      throw UserError(
          Diagnostic(codes::driver_calibration, {},
                     "'" + escape_for_terminal(path, 300) + "' has no array '" + p.name + "'")
              .help("a sample has a value for every input"));
    }
    out.push_back(tensors_of(make_arguments(signature, inputs, 0)));
  }
  return out;
}

quantize::Samples random_samples(size_t count, const QuantizeArgs& o,
                                 const runtime::Function& signature) {
  quantize::Samples out;
  for (size_t i = 0; i < count; ++i)
    out.push_back(tensors_of(make_arguments(signature, {}, o.seed + i)));
  return out;
}

// A number of random samples; nullopt when the text is a folder.
std::optional<size_t> count_of(const std::string& text) {
  size_t count = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  constexpr size_t kMost = 100'000;
  if (count > kMost) {
    throw UserError(Diagnostic(codes::driver_option, {}, "--calibrate " + text + " is too many")
                        .expected("at most " + std::to_string(kMost)));
  }
  return count;
}

void check_outputs(const QuantizeArgs& o) {
  refuse_existing(o.output, o.force);
  if (o.output == "-" && o.json) {
    throw UsageError(Diagnostic(codes::driver_option, {},
                                "--json and the program cannot both go to standard output")
                         .help("give --output a name"));
  }
  if (!o.plot.empty()) refuse_existing(o.plot, o.force);
  if (o.report.empty()) return;
  refuse_existing(o.report, o.force);
  if (extension(o.report) != ".html" && extension(o.report) != ".json") {
    throw UserError(Diagnostic(
        codes::driver_option, {},
        "--report " + escape_for_terminal(o.report, 200) + " is neither a .html nor a .json file"));
  }
}

int run_quantize(const QuantizeArgs& o, const Given& given) {
  check_outputs(o);
  ModelOptions model_options;
  for (const std::string& text : o.inputs) parse_input_option(text, model_options);
  LoadedModel model = load_model(o.model, model_options);
  runtime::Function signature = signature_of(model.module, "main");
  std::optional<size_t> count = count_of(o.samples);
  quantize::Samples samples =
      count ? random_samples(*count, o, signature) : read_samples(o.samples, signature);

  quantize::Options options;
  options.calibration = *quantize::calibration_of(o.method);  // the option has these choices
  if (given.has("--percentile")) options.calibration = quantize::Calibration::percentile;
  options.percentile = o.percentile;
  options.form.per_channel = !o.per_tensor;
  options.bias_correction = !o.no_bias_correction;
  options.keep_float = o.keep_float;
  if (given.has("--max-error")) options.max_error = o.max_error;
  if (given.has("--min-agreement")) options.min_agreement = o.min_agreement;
  options.compile = o.flags.options();
  ProgressLine line(!o.flags.quiet && !o.json);
  options.compile.progress = [&](std::string_view phase, int64_t done, int64_t total) {
    line.update(phase, done, total);
  };
  quantize::Quantized result = quantize_model(model.module, samples, options);
  bool compiles = extension(o.output) == ".so";
  if (compiles) {
    CompileOptions last = o.flags.options();
    last.source_name = model.source_name;
    last.source_hash = model.source_hash;
    write_versions(compile_versions(result.module, last), o.output, o.force);
  } else {
    write_text(o.output, print_module(result.module), o.force);
  }
  line.clear();
  const quantize::Report& report = result.report;
  std::string title = model.source_name.substr(model.source_name.find_last_of('/') + 1);
  if (!o.report.empty()) {
    write_text(
        o.report,
        extension(o.report) == ".html" ? to_html(report, title + ", quantised") : to_json(report),
        o.force);
  }
  if (!o.plot.empty()) {
    nlohmann::ordered_json drawn = nlohmann::ordered_json::parse(to_json(report));
    drawn["model"] = title;
    draw_figure(drawn.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace),
                o.plot);
  }
  if (o.json) {
    std::printf("%s", to_json(report).c_str());
    return 0;
  }
  if (o.output == "-") return 0;
  quantize::Cells cells = layer_cells(report);
  Table table(cells.header);
  table.limit(0, 40);
  table.limit(2, 48);
  for (size_t i = 0; i < cells.rows.size(); ++i) {
    for (std::string& cell : cells.rows[i]) cell = escape_for_terminal(cell);
    table.row(cells.rows[i], report.layers[i].quantized ? Tone::plain : Tone::fair);
  }
  std::printf("%s\n", table.text().c_str());
  for (const auto& [name, text] : totals(report))
    std::printf("%-10s %s\n", name.c_str(), text.c_str());
  if (count) {
    std::printf(
        "note       the samples are random numbers: the ranges fit no real inputs, only the times "
        "count\n");
  }
  std::printf("wrote      %s\n", o.output.c_str());
  return 0;
}

}  // namespace

Command quantize_command() {
  auto o = std::make_shared<QuantizeArgs>();
  Command out{
      "quantize",
      "Make a float model one of 8-bit integers",
      {argument("MODEL", o->model, model_kinds()).or_input().required(),
       option("--calibrate FOLDER|N", o->samples,
              "Inputs to measure ranges with: a folder of .npz files, an array for each input, or "
              "of .npy files "
              "for a model with one; or N random inputs, to look at speed")
           .required(),
       option("-o,--output FILE", o->output,
              "The program to write: Relay text, -: on standard output; or FILE.so, compiled")
           .required(),
       option("--input NAME=SHAPE[:DTYPE]", o->inputs, "Shape of an input; may be repeated"),
       option("--method METHOD", o->method, "How ranges are chosen")
           .choices({"min_max", "percentile", "entropy"}),
       option("--percentile P", o->percentile,
              "Percent of the numbers that stay in the range; implies --method percentile")
           .range(50, 100),
       option("--keep-float LAYER", o->keep_float, "A layer that stays in floats; may be repeated"),
       option("--max-error E", o->max_error,
              "Layers go back to floats until the results' relative error is at most E")
           .range(0, 1e9),
       option(
           "--min-agreement A", o->min_agreement,
           "Layers go back to floats until this share of rows has its largest element where it was")
           .range(0, 1),
       option("--seed N", o->seed, "Of random inputs"),
       flag("--per-tensor", o->per_tensor, "One scale for all output channels of weights"),
       flag("--no-bias-correction", o->no_bias_correction,
            "Leave the mean errors of output channels"),
       option("--report FILE", o->report, "Write the report to FILE.html or FILE.json"),
       option("--plot FILE", o->plot, "Draw the error of each layer (SVG)")},
      [o](const Given& given) { return run_quantize(*o, given); }};
  return std::move(out.add(o->flags.table())
                       .add({flag("--force", o->force, "Overwrite the output files"),
                             flag("--json", o->json, "Print the report as JSON")}));
}

}  // namespace relay::cli
