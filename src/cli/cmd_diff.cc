#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/codes/driver.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/limits.h"
#include "cli/python.h"
#include "cli/saved_tensors.h"
#include "cli/terminal.h"
#include "driver/diff.h"
#include "driver/evaluate.h"
#include "frontend/arrays/npz.h"
#include "ir/text/text.h"

namespace relay::cli {
namespace {

using runtime::Tensor;
using Named = std::vector<std::pair<std::string, Tensor>>;

struct DiffArgs {
  std::string model;
  std::string against = "evaluator";
  std::string function = "main";
  std::string output = "relay-diff";
  double rtol = -1, atol = -1;
  bool force = false;
  bool json = false;
  CompileFlags flags;
  InputFlags inputs;
};

// A folder that goes with its owner.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "relay-diff-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr)
      throw UserError(
          Diagnostic(codes::driver_file, {}, "no folder can be made for temporary files")
              .help("set TMPDIR to a folder that can be written"));
    path_ = path;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The values of all nodes in another runtime, by the Python package, which knows the names of those.
Trace run_reference(const DiffArgs& o, const Named& inputs) {
  TemporaryFolder folder;
  const std::string given = folder.path() + "/inputs.npz";
  save_tensors(given, inputs, false);
  if (run_python("relay._node_values", "other runtimes are run by Relay's Python package",
                 {o.against, o.model, given, folder.path()}) != 0) {
    throw UserError(
        Diagnostic(codes::driver_option, {},
                   "--against " + escape_for_terminal(o.against, 200) + " gives no reference")
            .help("the message before this one says why"));
  }
  const std::map<std::string, Tensor> values = read_npz(folder.path() + "/values.npz");
  std::ifstream in(folder.path() + "/steps.json");
  const nlohmann::json report = nlohmann::json::parse(in);
  auto value_of = [&](const nlohmann::json& key) {
    return key.is_string() ? values.at(key.get<std::string>()) : Tensor();
  };
  Trace out;
  out.has_producers = true;
  for (const auto& row : report["steps"]) {
    TraceStep& step = out.steps.emplace_back();
    step.operation = row["operation"].get<std::string>();
    step.node = step.origin = row["node"].get<std::string>();
    for (const auto& key : row["outputs"]) step.outputs.push_back(value_of(key));
    step.producers = row["producers"].get<std::vector<size_t>>();
  }
  for (const auto& row : report["results"]) {
    out.results.push_back(value_of(row["value"]));
    out.result_producers.push_back(row["step"].is_number() ? row["step"].get<size_t>()
                                                           : out.steps.size());
  }
  return out;
}

Trace run_artifact(const DiffArgs& o, const std::vector<runtime::Value>& args) {
  runtime::LoadOptions load;
  load.num_threads = o.flags.threads;
  const runtime::Module module = runtime::Module::load(o.against, load);
  Trace out;
  if (!runtime::flatten_tensors(module.run_values(o.function, args), out.results)) {
    throw UserError(Diagnostic(codes::driver_option, {},
                               "the result of @" + o.function + " is not made of tensors only"));
  }
  return out;
}

// What is wrong, in a sentence.
std::string verdict(const DiffReport& r, const DiffArgs& o) {
  switch (r.fault) {
    case DiffFault::none:
      return "the results agree";
    case DiffFault::front_end:
      return "the program as it was read is not what " + escape_for_terminal(o.against, 100) +
             " runs: the front end, or the operator's definition";
    case DiffFault::kernel:
      return "the code of kernel " + r.operation +
             ": the evaluator computes another result from the same inputs";
    case DiffFault::pass:
      return "pass " + r.pass +
             ": the program before it gives the expected results, the program "
             "after it does not";
    case DiffFault::plan:
      return "between kernels: each computes what its inputs say, but the inputs are not those of "
             "the program";
    case DiffFault::rounding:
      return "none: every stage agrees with the one before it, rounding adds up";
  }
  return "";
}

std::string name_of(DiffFault fault) {
  static constexpr const char* kNames[] = {"none", "front end", "kernel",
                                           "pass", "plan",      "rounding"};
  return kNames[static_cast<size_t>(fault)];
}

// The command that shows the difference again.
std::string command_of(const DiffReport& r, const DiffArgs& o, const Named& inputs) {
  const bool alone = static_cast<bool>(r.program);
  std::string out = "relay diff " + (alone ? o.output + "/program.relay" : o.model);
  for (const auto& [name, tensor] : inputs) {
    if (tensor) {
      out += " --input " + o.output + "/inputs.npz";
      break;
    }
  }
  const bool outside = o.against != "evaluator" && o.against != "opt0";
  if (!(alone && outside) && o.against != "evaluator") out += " --against " + o.against;
  if (o.flags.target != "native") out += " --target '" + o.flags.target + "'";
  if (o.flags.opt_level != 3) out += " --opt-level " + std::to_string(o.flags.opt_level);
  for (const std::string& pass : o.flags.disabled) out += " --disable-pass " + pass;
  if (o.function != "main" && r.fault != DiffFault::kernel) out += " --function " + o.function;
  return escape_for_terminal(out, 2000);
}

using Rows = std::vector<std::pair<std::string, std::string>>;

void print(const Rows& rows) {
  for (const auto& [name, text] : rows) {
    std::string row = name;
    row.resize(9, ' ');
    std::printf("%s%s\n", row.c_str(), text.c_str());
  }
}

int report(const DiffReport& r, const DiffArgs& o, const runtime::Function& signature,
           const Tolerances& tolerances) {
  const bool ok = r.fault == DiffFault::none;
  const bool saves = !ok && r.fault != DiffFault::rounding;
  Named inputs;
  for (const auto& [name, tensor] : r.inputs) inputs.emplace_back(name, tensor);
  std::vector<std::string> files;
  if (saves) files = save_reproduction({o.output, r.program, inputs}, o.force);
  auto result_name = [&](size_t i) {
    const auto& results = signature.results;
    return i < results.size() && !results[i].name.empty() ? results[i].name
                                                          : "output" + std::to_string(i);
  };
  auto text_of = [&](size_t i) {
    if (i >= r.results.size() || i >= r.expected.size()) return std::string("only one has it");
    if (!r.expected[i]) return std::string("the reference gives no tensor");
    return difference(r.results[i], r.expected[i], tolerances).text(r.expected[i]);
  };
  const size_t count = std::max(r.results.size(), r.expected.size());
  if (o.json) {
    nlohmann::ordered_json root{{"agree", ok}, {"fault", name_of(r.fault)}};
    for (size_t i = 0; i < count; ++i)
      root["results"].push_back({{"name", result_name(i)}, {"difference", text_of(i)}});
    for (const auto& [key, text] : {std::pair("node", r.node), std::pair("origin", r.origin),
                                    std::pair("operation", r.operation), std::pair("pass", r.pass)})
      if (!text.empty()) root[key] = text;
    if (!ok) root["verdict"] = verdict(r, o);
    if (saves) {
      root["files"] = files;
      root["command"] = command_of(r, o, inputs);
    }
    std::printf("%s\n",
                root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
    return ok ? 0 : 1;
  }
  Rows rows;
  for (size_t i = 0; i < count; ++i) {
    rows.emplace_back(i == 0 ? "results" : "",
                      escape_for_terminal(result_name(i), 60) + ": " + text_of(i));
  }
  rows.emplace_back(ok ? "verdict" : "fault", verdict(r, o));
  if (!r.node.empty()) {
    const bool more = r.fault != DiffFault::kernel && !r.operation.empty();
    rows.emplace_back("node",
                      escape_for_terminal(r.node, 300) + (more ? ", operator " + r.operation : ""));
  }
  if (!r.origin.empty() && r.origin != r.node)
    rows.emplace_back("nodes", escape_for_terminal(r.origin, 600));
  if (r.got) rows.emplace_back("found", statistics(r.got));
  if (r.want) rows.emplace_back("expected", statistics(r.want));
  for (size_t i = 0; i < files.size(); ++i)
    rows.emplace_back(i == 0 ? "wrote" : "", escape_for_terminal(files[i], 300));
  if (saves) rows.emplace_back("again", command_of(r, o, inputs));
  print(rows);
  return ok ? 0 : 1;
}

int run_diff(const DiffArgs& o) {
  if (is_artifact(o.model)) {
    throw UserError(Diagnostic(codes::driver_option, {},
                               "'" + escape_for_terminal(o.model, 200) + "' is compiled")
                        .help("give the model, and the compiled file as --against"));
  }
  const bool outside = o.against != "evaluator" && o.against != "opt0";
  refuse_existing_reproduction(o.output, o.force);
  Inputs inputs = o.inputs.read(o.model);
  inputs.refuse_lists();
  ModelOptions shapes = inputs.shapes;
  shapes.values = given_values(inputs);
  read_freeze_options(o.flags.frozen, shapes);
  shapes.weights = read_params(o.flags.params);
  read_one_specialisation(o.flags.special, shapes);
  const LoadedModel model = read_model(o.model, o.function, shapes);
  const runtime::Function signature = signature_of(model.module, o.function);
  if (o.function != "main") check_shapes(signature, inputs.shapes);
  const Arguments arguments = make_arguments(signature, inputs, o.inputs.seed);

  DiffOptions options;
  options.compile = o.flags.options(inputs.ranges);
  options.compile.source_name = options.source_name = model.source_name;
  options.function = o.function;
  options.against_level_0 = o.against == "opt0";
  if (o.rtol >= 0) options.tolerances.relative = o.rtol;
  if (o.atol >= 0) options.tolerances.absolute = o.atol;
  std::optional<Trace> reference;
  const bool artifact = outside && is_artifact(o.against);
  if (outside && !artifact) {
    Named named;
    for (size_t i = 0; i < arguments.values.size(); ++i) {
      if (arguments.values[i].is_tensor())
        named.emplace_back(signature.params[i].name, arguments.values[i].tensor());
    }
    reference = run_reference(o, named);
  } else if (artifact) {
    reference = run_artifact(o, arguments.values);
  }
  const DiffReport found =
      diff(model.module, arguments.values, options, reference ? &*reference : nullptr);
  if (!o.json) std::printf("%s", arguments.notes(o.inputs.seed, "note     ").c_str());
  return report(found, o, signature, options.tolerances);
}

}  // namespace

Command diff_command() {
  auto o = std::make_shared<DiffArgs>();
  Command out{
      "diff",
      "Compile a model beside a reference, and find the first node, kernel or pass that is wrong",
      {argument("MODEL", o->model, model_kinds()).required(),
       option("--against REFERENCE", o->against,
              "What the results should be: evaluator, opt0 (compiled as written), a compiled .so, "
              "or a runtime that the Python package runs: that of the model's format"),
       option("--function NAME", o->function, "The function to run"),
       option("--rtol NUMBER", o->rtol,
              "Allowed difference relative to a number; without, what rounding accounts for: 2e-4 "
              "for float32")
           .range(0, 1e30),
       option("--atol NUMBER", o->atol,
              "Allowed difference relative to the greatest number of the tensor; without, 2e-5 for "
              "float32")
           .range(0, 1e30),
       option("-o,--output FOLDER", o->output, "A folder for what reproduces a difference")},
      [o](const Given&) { return run_diff(*o); }};
  std::vector<Option> compile;
  for (Option& each : o->flags.table()) {
    if (each.name() != "--prepack" && each.name() != "--donate" && each.name() != "--verify")
      compile.push_back(std::move(each));
  }
  return std::move(out.add(o->inputs.table())
                       .add(std::move(compile))
                       .add({flag("--force", o->force, "Overwrite files of the folder"),
                             flag("--json", o->json, "Print the report as JSON")}));
}

}  // namespace relay::cli
