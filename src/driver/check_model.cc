#include "driver/check_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "codegen/backend.h"
#include "driver/compile.h"
#include "driver/kernel_work.h"
#include "ir/op.h"
#include "lower/open_work.h"
#include "node/walk.h"
#include "types/match.h"
#include "types/verify.h"

namespace relay {
namespace {

using Json = nlohmann::ordered_json;

Json describe(const ModelMetadata& m) {
  Json out = Json::object();
  auto put = [](Json& where, const char* key, const std::string& text) {
    if (!text.empty()) where[key] = text;
  };
  put(out, "name", m.name);
  put(out, "description", m.description);
  put(out, "version", m.version);
  put(out, "author", m.author);
  put(out, "license", m.license);
  for (bool inputs : {true, false}) {
    Json& list = out[inputs ? "inputs" : "outputs"] = Json::array();
    for (const ModelMetadata::Tensor& t : inputs ? m.inputs : m.outputs) {
      Json row{{"name", t.name}};
      put(row, "title", t.title);
      put(row, "description", t.description);
      if (t.is_image) row["image"] = t.is_grey ? "grey" : "RGB";
      if (!t.mean.empty()) row["mean"] = t.mean;
      if (!t.std.empty()) row["std"] = t.std;
      if (!t.labels.empty()) row["labels"] = t.labels;
      list.push_back(std::move(row));
    }
  }
  out["files"] = Json::array();
  for (const ModelMetadata::File& f : m.files)
    out["files"].push_back({{"name", f.name}, {"bytes", f.bytes}});
  return out;
}

Json describe(const ModelSummary& file) {
  Json out;
  out["producer"] = file.producer;
  out["opsets"] = Json::object();
  for (const auto& [domain, version] : file.versions) out["opsets"][domain] = version;
  out["operators"] = Json::array();
  for (const ModelSummary::Operator& op : file.operators) {
    out["operators"].push_back({{"domain", op.domain},
                                {"name", op.name},
                                {"opset", op.version},
                                {"nodes", op.nodes},
                                {"imported", op.imported}});
  }
  out["nodes"] = file.nodes;
  out["parameters"] = file.parameters;
  out["parameter_bytes"] = file.parameter_bytes;
  out["open_sizes"] = Json::array();
  for (const ModelSummary::OpenSize& s : file.open_sizes) {
    Json axes = Json::array();
    for (const auto& [input, axis] : s.axes) axes.push_back({{"input", input}, {"axis", axis}});
    out["open_sizes"].push_back({{"name", s.name}, {"axes", axes}});
  }
  if (file.metadata) out["metadata"] = describe(*file.metadata);
  return out;
}

bool has_any(const Type& type) {
  auto tensors = type ? flatten_tensor_types(type) : std::nullopt;
  if (!tensors) return false;
  return std::ranges::any_of(
      *tensors, [](const TensorType& t) { return std::ranges::any_of(t->shape, is_any); });
}

// The nodes of the model at which a size stops being known.
Json data_dependent(const Module& module) {
  Json out = Json::array();
  std::set<std::string> met;
  for (const Function& f : module->functions) {
    post_order(
        f,
        [&](const Node& n) {
          auto* call = as<CallNode>(&n);
          if (call == nullptr || !call->span || !has_any(call->type)) return;
          if (std::ranges::any_of(call->args, [](const Expr& a) { return has_any(a->type); })) {
            return;
          }
          std::string place = call->span.describe();
          if (met.insert(place).second) {
            out.push_back({{"node", place}, {"type", to_string(call->type)}});
          }
        },
        family::program);
  }
  return out;
}

// Much arithmetic on every byte.
bool is_busy(const runtime::KernelInfo& k) {
  constexpr int64_t kBusy = 4;
  return k.flops > 0 && k.bytes > 0 && k.flops / kBusy > k.bytes;
}

Json describe(const LoadedModel& model, const CompileOptions& options) {
  Json out;
  const Function main = model.module->find("main");
  out["inputs"] = Json::array();
  for (size_t i = 0; i < main->params.size(); ++i) {
    out["inputs"].push_back(
        {{"name", i < model.input_names.size() ? model.input_names[i] : main->params[i]->name_hint},
         {"type", to_string(main->params[i]->type)}});
  }
  out["outputs"] = Json::array();
  auto* tuple = as<TupleTypeNode>(main->ret_type);
  for (size_t i = 0; i < model.output_names.size(); ++i) {
    bool part = model.output_names.size() > 1 && tuple != nullptr;
    out["outputs"].push_back({{"name", model.output_names[i]},
                              {"type", to_string(part ? tuple->fields[i] : main->ret_type)}});
  }
  out["data_dependent"] = data_dependent(model.module);
  Bytecode bytecode = make_bytecode(optimize(model.module, options), options);
  std::vector<CompiledKernel> kernels = lower_kernels(bytecode);
  int64_t constants = 0, arena = 0, flops = 0, open = 0, unknown = 0;
  OpenWork::Sum open_flops;
  for (const Tensor& t : bytecode.program.constants) {
    constants += static_cast<int64_t>(t.byte_size());
  }
  for (const ArenaReport& a : bytecode.arenas) arena += a.arena_bytes;
  const std::string formula = working_memory(bytecode.arenas);
  Json plain = Json::array();
  for (size_t i = 0; i < kernels.size() && i < bytecode.program.kernels.size(); ++i) {
    const runtime::KernelInfo& info = bytecode.program.kernels[i];
    const auto calls = static_cast<int64_t>(kernels[i].sites.size());
    if (bytecode.kernels[kernels[i].kernel].signature.sizes.empty()) {
      flops += info.flops * calls;
    } else if (auto work = open_work(*kernels[i].primitive.get()); ++open, work.flops) {
      for (int64_t n = 0; n < calls; ++n) add_to(open_flops, *work.flops);
    } else {
      ++unknown;
    }
    if (kernels[i].rule != "loops" || !is_busy(info)) continue;
    Json nodes = Json::array();
    for (const KernelSite& s : kernels[i].sites) nodes.push_back(s.origin);
    plain.push_back({{"kernel", kernels[i].name}, {"flops", info.flops}, {"nodes", nodes}});
  }
  out["kernels"] = kernels.size();
  out["constant_bytes"] = constants;
  if (formula.empty()) {
    out["arena_bytes"] = arena;
  } else {
    out["working_memory"] = formula;
  }
  out["flops"] = flops;
  // Beside these, the operations of kernels whose sizes a run says.
  if (!open_flops.empty()) out["flops_by_sizes"] = to_string(open_flops);
  out["uncounted_kernels"] = unknown;
  out["open_kernels"] = open;
  out["plain_loops"] = std::move(plain);
  out["libraries"] = libraries_of(generated_functions(kernels));
  return out;
}

}  // namespace

nlohmann::ordered_json to_json(const Diagnostic& d) {
  Json j;
  j["severity"] = d.severity == Severity::error     ? "error"
                  : d.severity == Severity::warning ? "warning"
                                                    : "note";
  j["code"] = d.code;
  j["message"] = d.message;
  j["place"] = d.span.describe();
  if (!d.expected_text.empty()) j["expected"] = d.expected_text;
  if (!d.found_text.empty()) j["found"] = d.found_text;
  if (!d.help_text.empty()) j["help"] = d.help_text;
  for (const auto& [span, text] : d.notes)
    j["notes"].push_back({{"place", span.describe()}, {"message", text}});
  return j;
}

nlohmann::ordered_json check_imported_model(const FrontEnd& front_end, const std::string& path,
                                            const ModelOptions& options) {
  Json out;
  out["ok"] = true;
  out["diagnostics"] = Json::array();
  if (front_end.check) out["file"] = describe(front_end.check(path));
  try {
    ModelOptions same = options;
    same.front_end = front_end.name;
    LoadedModel model = load_model(path, same);
    for (const Diagnostic& d : check_matches(model.module)) {
      out["diagnostics"].push_back(to_json(d));
    }
    if (auto problem = find_ill_formed(model.module)) throw UserError(*problem);
    CompileOptions compile;
    compile.source_name = model.source_name;
    out["program"] = describe(model, compile);
  } catch (const RankIsOpen& e) {
    // It can be used, but as a program for each case of these.
    out["ok"] = false;
    for (const DecidingInput& d : e.deciding()) {
      static constexpr const char* kBy[] = {"sizes", "elements", "value"};
      out["specialise"].push_back({{"input", d.name}, {"by", kBy[d.by]}});
    }
    for (const Diagnostic& d : e.diagnostics()) out["diagnostics"].push_back(to_json(d));
  } catch (const UserError& e) {
    out["ok"] = false;
    for (const Diagnostic& d : e.diagnostics()) out["diagnostics"].push_back(to_json(d));
  }
  return out;
}

}  // namespace relay
