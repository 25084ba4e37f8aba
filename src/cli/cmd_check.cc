#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/codes/driver.h"
#include "cli/artifact_versions.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/terminal.h"
#include "driver/check_model.h"
#include "runtime/artifact.h"
#include "types/match.h"
#include "types/verify.h"

namespace relay::cli {
namespace {

struct CheckArgs {
  std::vector<std::string> files;
  bool json = false;
  std::vector<std::string> inputs;
  std::vector<std::string> dims;
  std::vector<std::string> frozen;
  std::string params;
};

// The findings, and the message if there are none.
struct Checked {
  std::vector<Diagnostic> found;
  std::string description;
};

std::string indented(const std::string& lines) {
  std::string out;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) out += "  " + line + "\n";
  return out;
}

// Every byte of an artifact.
Checked check_compiled(const std::string& file, const Given& given) {
  given.refuse({"--input", "--dim", "--freeze", "--params"}, "a compiled file",
               "its inputs were fixed when it was compiled");
  const std::vector<runtime::Artifact> versions = runtime::check_artifact(file);
  const runtime::Artifact& artifact = versions.back();
  std::error_code ignored;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(file, ignored));
  size_t functions = 0;
  for (const runtime::Function& f : artifact.program.functions) functions += f.internal ? 0 : 1;
  return {{},
          escape_for_terminal(file) + " is an intact artifact\n  written by " +
              escape_for_terminal(artifact.info.compiler_version) + " for " +
              escape_for_terminal(artifact.info.arch) + "\n  id " + to_string(artifact.id) +
              "\n  functions " + std::to_string(functions) + ", kernels " +
              std::to_string(artifact.program.kernels.size()) + ", constants " +
              std::to_string(artifact.program.constants.size()) + "\n" +
              indented(version_lines(version_reports(versions), size))};
}

using Json = nlohmann::ordered_json;

std::string text_of(const Json& j) { return escape_for_terminal(j.get<std::string>(), 300); }

// A line of the report, wrapped: its subject, and the text.
std::string row(std::string_view about, const std::string& text) {
  constexpr size_t kText = 16, kWidth = 100;
  const size_t columns = terminal_width() == 0 ? kWidth : terminal_width();
  std::string out, before = "  " + std::string(about);
  for (const std::string& line : wrapped(text, columns > 2 * kText ? columns - kText : kText)) {
    before.resize(std::max(kText, before.size() + (before.empty() ? 0 : 1)), ' ');
    out += before + line + "\n";
    before.clear();
  }
  return out;
}

// A row for each set of operators: "ai.onnx 17: Add x14, Conv x3".
std::string rows_of_operators(const char* about, const Json& operators, bool imported) {
  std::map<std::string, std::string> by_set;
  for (const Json& op : operators) {
    if (op["imported"] != imported) continue;
    std::string set = text_of(op["domain"]) + " " + std::to_string(op["opset"].get<int64_t>());
    std::string& line = by_set[set];
    line += (line.empty() ? "" : ", ") + text_of(op["name"]) + " x" +
            std::to_string(op["nodes"].get<int64_t>());
  }
  std::string out;
  for (const auto& [set, line] : by_set) out += row(about, set + ": " + line);
  return out;
}

// "127.5", or "0.485, 0.456, 0.406".
std::string numbers_of(const Json& list) {
  std::string out;
  for (const Json& v : list) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", v.get<double>());
    out += (out.empty() ? "" : ", ") + std::string(text);
  }
  return out;
}

// What the file says about its use.
std::string text_of_metadata(const Json& metadata) {
  constexpr size_t kShownLabels = 3;
  std::string out;
  for (const char* key : {"name", "version", "description", "author", "license"})
    if (metadata.contains(key)) out += row(key, text_of(metadata[key]));
  for (const char* side : {"inputs", "outputs"}) {
    for (const Json& t : metadata[side]) {
      std::string about;
      auto add = [&](const std::string& text) { about += (about.empty() ? "" : "; ") + text; };
      if (t.contains("title")) add(text_of(t["title"]));
      if (t.contains("description")) add(text_of(t["description"]));
      if (t.contains("image")) add(text_of(t["image"]) + " image");
      if (t.contains("mean")) add("mean " + numbers_of(t["mean"]));
      if (t.contains("std")) add("std " + numbers_of(t["std"]));
      if (t.contains("labels")) {
        const Json& labels = t["labels"];
        std::string first;
        for (size_t i = 0; i < std::min(labels.size(), kShownLabels); ++i)
          first += (i == 0 ? ": " : ", ") + text_of(labels[i]);
        add(std::to_string(labels.size()) + " labels" + first +
            (labels.size() > kShownLabels ? ", ..." : ""));
      }
      if (!about.empty()) out += row("use", text_of(t["name"]) + ": " + about);
    }
  }
  for (const Json& f : metadata["files"])
    out += row("file", text_of(f["name"]) + ", " + format_bytes(f["bytes"].get<double>()));
  return out;
}

// The part of the report that holds whether or not the model can be imported.
std::string text_of_file(const Json& file) {
  auto number = [&](const char* key) { return file[key].get<int64_t>(); };
  std::string producer = text_of(file["producer"]);
  std::string out = row("nodes", std::to_string(number("nodes")) +
                                     (producer.empty() ? "" : ", written by " + producer));
  out += row("parameters", std::to_string(number("parameters")) + " (" +
                               format_bytes(static_cast<double>(number("parameter_bytes"))) + ")");
  out += rows_of_operators("operators", file["operators"], true);
  out += rows_of_operators("not imported", file["operators"], false);
  for (const Json& size : file["open_sizes"]) {
    std::string name = text_of(size["name"]), axes;
    for (const Json& a : size["axes"]) {
      axes += (axes.empty() ? "" : ", ") + text_of(a["input"]) + "[" +
              std::to_string(a["axis"].get<int64_t>()) + "]";
    }
    out += row("open size", (name.empty() ? "" : name + ": ") + axes);
  }
  if (file.contains("metadata")) out += text_of_metadata(file["metadata"]);
  return out;
}

// `path`: of the model, which the report does not repeat before each of its nodes.
std::string text_of_program(const Json& program, const std::string& path) {
  auto number = [&](const char* key) { return program[key].get<int64_t>(); };
  auto node_of = [&](const Json& node) {
    const std::string text = node.get<std::string>(), before = path + ": ";
    return text_of(text.starts_with(before) ? Json(text.substr(before.size())) : node);
  };
  std::string out;
  for (const char* side : {"inputs", "outputs"}) {
    for (const Json& v : program[side]) {
      out +=
          row(side[0] == 'i' ? "input" : "output", text_of(v["name"]) + ": " + text_of(v["type"]));
    }
  }
  for (const Json& d : program["data_dependent"]) {
    out += row("by data", text_of(d["type"]) + " of " + node_of(d["node"]));
  }
  const bool open = number("open_kernels") > 0;
  out += row("kernels",
             std::to_string(number("kernels")) +
                 (open ? ", " + std::to_string(number("open_kernels")) + " of open sizes" : ""));
  std::string work;
  if (number("flops") > 0 || !open) {
    work = format_number(static_cast<double>(number("flops")) / 1e6, 1) + " MFLOP a run";
  }
  if (program.contains("flops_by_sizes")) {
    work += (work.empty() ? "" : ", and ") + text_of(program["flops_by_sizes"]) + " FLOP";
  }
  if (const int64_t more = number("uncounted_kernels"); more > 0) {
    work += (work.empty() ? "" : ", and ") + std::string("that of ") + std::to_string(more) +
            (more == 1 ? " kernel" : " kernels") + " of open sizes: --dim NAME=SIZE fixes them";
  }
  out += row("arithmetic", work.empty() ? "none" : work);
  out += row("memory",
             "constants " + format_bytes(static_cast<double>(number("constant_bytes"))) +
                 (program.contains("working_memory")
                      ? ", working memory in bytes " + text_of(program["working_memory"])
                      : ", arena " + format_bytes(static_cast<double>(number("arena_bytes")))));
  for (const Json& library : program["libraries"]) out += row("needs", text_of(library));
  for (const Json& k : program["plain_loops"]) {
    out += row("plain loops", text_of(k["kernel"]) + ", " +
                                  format_number(k["flops"].get<double>() / 1e6, 1) +
                                  " MFLOP: no schedule rule holds for it");
    for (const Json& node : k["nodes"]) out += row("", node_of(node));
  }
  return out;
}

// What is to be printed of a file with --json, and whether it can be used.
struct FileReport {
  Json json;
  bool ok = true;
};

// The report on a model of a front end, printed or as it is.
FileReport check_imported(const std::string& file, bool json, const FrontEnd& front_end,
                          const ModelOptions& options) {
  Json report = check_imported_model(front_end, file, options);
  const bool ok = report["ok"].get<bool>();
  if (json) return {std::move(report), ok};
  // A run supplies the missing values; ahead-of-time compilation needs them as options.
  const bool special = report.contains("specialise");
  std::string deciding;
  if (special) {
    for (const Json& d : report["specialise"]) {
      deciding += row("specialised", text_of(d["by"]) + " of " + text_of(d["input"]));
    }
  }
  std::fputs((escape_for_terminal(file) +
              (ok        ? " can be run\n"
               : special ? " can be run, by a program for each case of the inputs that decide\n"
                         : " cannot be imported\n") +
              text_of_file(report["file"]) + deciding +
              (report.contains("program") ? text_of_program(report["program"], file) : ""))
                 .c_str(),
             stdout);
  if (!ok)
    load_model(file, options);  // throws the error that the report contains, with its colours
  return {{}, ok};
}

Checked check_model(const std::string& file, const ModelOptions& options) {
  LoadedModel model = load_model(file, options);
  // The findings that remain after inference are warnings.
  std::vector<Diagnostic> found = check_matches(model.module);
  if (auto problem = find_ill_formed(model.module)) found.push_back(*problem);
  std::string text = escape_for_terminal(file) + " is well-typed\n";
  for (size_t i = 0; i < model.module->functions.size(); ++i) {
    text += "  @" + escape_for_terminal(model.module->global_vars[i]->name_hint) + ": " +
            escape_for_terminal(to_string(model.module->functions[i]->type)) + "\n";
  }
  return {std::move(found), std::move(text)};
}

ModelOptions read_options(const CheckArgs& o) {
  ModelOptions options;
  for (const std::string& text : o.inputs) parse_input_option(text, options);
  if (auto ranges = read_dim_options(o.dims, options); !ranges.empty()) {
    throw UserError(Diagnostic(codes::driver_option, {},
                               "--dim " + escape_for_terminal(ranges[0], 200) + " is a range")
                        .expected("NAME=SIZE")
                        .help("relay explain says what is compiled for a range"));
  }
  read_freeze_options(o.frozen, options);
  options.weights = read_params(o.params);
  return options;
}

FileReport check_file(const std::string& file, const CheckArgs& o, const ModelOptions& options,
                      const Given& given) {
  Checked checked;
  std::vector<Diagnostic>& found = checked.found;
  try {
    const bool artifact = is_artifact(file);
    if (!artifact) {
      const FrontEnd& front_end = front_end_of(file);
      if (front_end.check) return check_imported(file, o.json, front_end, options);
    }
    checked = artifact ? check_compiled(file, given) : check_model(file, options);
  } catch (const UserError& e) {
    if (!o.json) throw;
    found = e.diagnostics();
  }
  const bool ok =
      std::ranges::all_of(found, [](const Diagnostic& d) { return d.severity != Severity::error; });
  if (o.json) {
    Json root{{"ok", ok}, {"diagnostics", Json::array()}};
    for (const Diagnostic& d : found) root["diagnostics"].push_back(to_json(d));
    return {std::move(root), ok};
  }
  if (!ok) throw UserError(found);
  for (const Diagnostic& d : found) std::fputs(d.render(stderr_is_terminal()).c_str(), stderr);
  std::fputs(checked.description.c_str(), stdout);
  return {{}, true};
}

// Each file; the errors of all of them at the end. With --json a report, or a list of reports of several files.
int run_check(const CheckArgs& o, const Given& given) {
  bool ok = true;
  Json reports = Json::array();
  std::vector<Diagnostic> problems;
  const ModelOptions options = read_options(o);
  for (const std::string& file : o.files) {
    try {
      FileReport report = check_file(file, o, options, given);
      ok &= report.ok;
      if (o.files.size() > 1) report.json["path"] = file;
      reports.push_back(std::move(report.json));
    } catch (const UserError& e) {
      problems.insert(problems.end(), e.diagnostics().begin(), e.diagnostics().end());
    }
  }
  if (!problems.empty()) throw UserError(std::move(problems));
  if (o.json) {
    const Json& root = o.files.size() > 1 ? reports : reports[0];
    std::printf("%s\n", root.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  }
  return ok ? 0 : 1;
}

}  // namespace

Command check_command() {
  auto o = std::make_shared<CheckArgs>();
  return {"check",
          "Report on a model before it is used, type-check a program, or verify an artifact",
          {argument("FILE", o->files, model_kinds("artifact")).or_input().required(),
           option("--input NAME=SHAPE[:DTYPE]", o->inputs, "Shape of an input; may be repeated"),
           option("--dim NAME=SIZE", o->dims, "The size of a named dimension; may be repeated"),
           option("--freeze INPUT=VALUE", o->frozen,
                  "Make an input a constant of the program; may be repeated"),
           params_option(o->params),
           flag("--json", o->json, "Print the report and the diagnostics as JSON")},
          [o](const Given& given) { return run_check(*o, given); }};
}

}  // namespace relay::cli
