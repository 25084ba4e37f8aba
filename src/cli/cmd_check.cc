#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/terminal.h"
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

int run(const Options& o) {
  ModelOptions options;
  for (const std::string& text : o.inputs) parse_input_option(text, options);
  std::vector<Diagnostic> found;
  LoadedModel model;
  try {
    model = load_model(o.file, options);
    // What is left after inference are warnings.
    found = check_matches(model.module);
    if (auto problem = find_ill_formed(model.module)) found.push_back(*problem);
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
  std::printf("%s is well-typed\n", escape_for_terminal(o.file).c_str());
  for (size_t i = 0; i < model.module->functions.size(); ++i) {
    std::printf("  @%s: %s\n", escape_for_terminal(model.module->global_vars[i]->name_hint).c_str(),
                escape_for_terminal(to_string(model.module->functions[i]->type)).c_str());
  }
  return 0;
}

}  // namespace

Command check_command() {
  auto o = std::make_shared<Options>();
  return {"check",
          "Parse and type-check a model",
          {argument("FILE", o->file, "ONNX model or Relay text").required(),
           option("--input NAME=SHAPE[:DTYPE]", o->inputs, "Shape of an input; may be repeated"),
           flag("--json", o->json, "Print the diagnostics as JSON")},
          [o](const Given&) { return run(*o); }};
}

}  // namespace relay::cli
