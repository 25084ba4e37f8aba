#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "runtime/artifact.h"
#include "types/match.h"
#include "types/verify.h"

namespace relay::cli {
namespace {

struct Options {
  std::string file;
  bool json = false;
  std::vector<std::string> inputs;
};

nlohmann::ordered_json as_json(const Diagnostic& d) {
  nlohmann::ordered_json j;
  j["severity"] = d.severity == Severity::error     ? "error"
                  : d.severity == Severity::warning ? "warning"
                                                    : "note";
  j["code"] = d.code;
  j["message"] = d.message;
  j["place"] = d.span.describe();
  if (!d.expected_text.empty()) j["expected"] = d.expected_text;
  if (!d.found_text.empty()) j["found"] = d.found_text;
  if (!d.help_text.empty()) j["help"] = d.help_text;
  return j;
}

// What was found, and what is said when all is well.
struct Checked {
  std::vector<Diagnostic> found;
  std::string description;
};

// Every byte of an artifact.
Checked check_compiled(const Options& o, const Given& given) {
  given.refuse({"--input"}, "a compiled file", "its inputs were fixed when it was compiled");
  const runtime::Artifact artifact = runtime::check_artifact(o.file);
  size_t functions = 0;
  for (const runtime::Function& f : artifact.program.functions) functions += f.internal ? 0 : 1;
  return {{},
          escape_for_terminal(o.file) + " is an intact artifact\n  written by " +
              escape_for_terminal(artifact.info.compiler_version) + " for " +
              escape_for_terminal(artifact.info.arch) + "\n  id " + to_string(artifact.id) +
              "\n  functions " + std::to_string(functions) + ", kernels " +
              std::to_string(artifact.program.kernels.size()) + ", constants " +
              std::to_string(artifact.program.constants.size()) + "\n"};
}

Checked check_model(const Options& o) {
  ModelOptions options;
  for (const std::string& text : o.inputs) parse_input_option(text, options);
  LoadedModel model = load_model(o.file, options);
  // What is left after inference are warnings.
  std::vector<Diagnostic> found = check_matches(model.module);
  if (auto problem = find_ill_formed(model.module)) found.push_back(*problem);
  std::string text = escape_for_terminal(o.file) + " is well-typed\n";
  for (size_t i = 0; i < model.module->functions.size(); ++i) {
    text += "  @" + escape_for_terminal(model.module->global_vars[i]->name_hint) + ": " +
            escape_for_terminal(to_string(model.module->functions[i]->type)) + "\n";
  }
  return {std::move(found), std::move(text)};
}

int run(const Options& o, const Given& given) {
  Checked checked;
  std::vector<Diagnostic>& found = checked.found;
  try {
    checked = is_artifact(o.file) ? check_compiled(o, given) : check_model(o);
  } catch (const UserError& e) {
    if (!o.json) throw;
    found = e.diagnostics();
  }
  bool ok =
      std::ranges::all_of(found, [](const Diagnostic& d) { return d.severity != Severity::error; });
  if (o.json) {
    nlohmann::ordered_json root;
    root["ok"] = ok;
    root["diagnostics"] = nlohmann::ordered_json::array();
    for (const Diagnostic& d : found) root["diagnostics"].push_back(as_json(d));
    std::printf("%s\n",
                root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
    return ok ? 0 : 1;
  }
  if (!ok) throw UserError(found);
  for (const Diagnostic& d : found) std::fputs(d.render(stderr_is_terminal()).c_str(), stderr);
  std::fputs(checked.description.c_str(), stdout);
  return 0;
}

}  // namespace

Command check_command() {
  auto o = std::make_shared<Options>();
  return {"check",
          "Parse and type-check a model, or verify an artifact",
          {argument("FILE", o->file, "ONNX model, Relay text, or an artifact").required(),
           option("--input NAME=SHAPE[:DTYPE]", o->inputs, "Shape of an input; may be repeated"),
           flag("--json", o->json, "Print the diagnostics as JSON")},
          [o](const Given& given) { return run(*o, given); }};
}

}  // namespace relay::cli
