#include "driver/specialise.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/codes/driver.h"
#include "base/quoted_name.h"

namespace relay {
namespace {

// Every combination of one value for each input.
std::vector<std::map<std::string, Tensor>> combinations(
    const std::map<std::string, std::vector<Tensor>>& values) {
  std::vector<std::map<std::string, Tensor>> out{{}};
  for (const auto& [name, list] : values) {
    std::vector<std::map<std::string, Tensor>> next;
    for (const auto& some : out) {
      for (const Tensor& value : list) {
        next.push_back(some);
        next.back()[name] = value;
      }
    }
    out = std::move(next);
    if (out.size() > kMaxEntries) {
      throw UserError(Diagnostic(codes::driver_option, {},
                                 "--specialise asks for too many programs in one file")
                          .expected("at most " + std::to_string(kMaxEntries) + " combinations")
                          .found(std::to_string(out.size()) + " or more"));
    }
  }
  return out;
}

bool is_for(const nlohmann::json& entry, const std::map<std::string, Tensor>& inputs) {
  for (const auto& i : entry.at("inputs")) {
    auto given = inputs.find(i.at("name").get<std::string>());
    if (given == inputs.end()) return false;
    const Tensor& t = given->second;
    if (std::vector<int64_t>(t.shape().begin(), t.shape().end()) != i.at("shape")) return false;
    if (!i.contains("value")) continue;
    if (!t.dtype().is_integer() && !t.dtype().is_bool()) return false;
    for (int64_t k = 0; k < t.num_elements(); ++k) {
      if (i.at("value").at(static_cast<size_t>(k)) != t.get_as_int(k)) return false;
    }
  }
  return true;
}

std::string text_of(const nlohmann::json& entry) {
  std::string out;
  for (const auto& i : entry.at("inputs")) {
    out +=
        (out.empty() ? "" : ", ") + i.at("name").get<std::string>() + ": " +
        (i.contains("value") ? "value " + i.at("value").dump() : "shape " + i.at("shape").dump());
  }
  return out;
}

}  // namespace

LoadedModel load_entries(const std::string& path, const ModelOptions& options,
                         const std::map<std::string, std::vector<Tensor>>& values,
                         std::vector<EntryFunction>& entries) {
  std::vector<LoadedModel> models;
  std::set<std::string> decided;
  for (const auto& combination : combinations(values)) {
    ModelOptions with = options;
    for (const auto& [name, value] : combination) with.values[name] = value;
    LoadedModel model = load_model(path, with);
    for (const SpecialisedInput& i : model.specialised) decided.insert(i.name);
    // Lists of one length may be one program.
    bool known = std::ranges::any_of(
        models, [&](const LoadedModel& m) { return m.specialised == model.specialised; });
    if (!known) models.push_back(std::move(model));
  }
  for (const auto& [name, list] : values) {
    if (decided.contains(name)) continue;
    throw UserError(Diagnostic(codes::driver_option, {},
                               "--specialise " + quoted_name(name) +
                                   ": nothing depends on it that a run could not find out")
                        .help("leave it out; --freeze makes an input a constant"));
  }
  LoadedModel out = models[0];
  const bool several = models.size() > 1;
  if (!out.specialised.empty()) {
    for (size_t i = 0; i < models.size(); ++i) {
      entries.push_back(
          {several ? "main." + std::to_string(i + 1) : "main", models[i].specialised});
    }
  }
  if (!several) return out;
  std::vector<GlobalVar> names;
  std::vector<Function> functions;
  for (size_t i = 0; i < models.size(); ++i) {
    const Function main = models[i].module->find("main");
    names.push_back(global_var(entries[i].function, main->type));
    functions.push_back(main);
  }
  // What a model needs beside @main is the importer's library, the same for all.
  std::set<std::string> met;
  std::vector<TypeData> types;
  for (const LoadedModel& m : models) {
    for (size_t i = 0; i < m.module->functions.size(); ++i) {
      const GlobalVar& name = m.module->global_vars[i];
      if (name->name_hint == "main" || !met.insert(std::string(name->name_hint)).second) continue;
      names.push_back(name);
      functions.push_back(m.module->functions[i]);
    }
    if (types.empty()) types = m.module->type_definitions;
  }
  out.module = make_module(std::move(names), std::move(functions), std::move(types));
  return out;
}

std::string entry_for(const runtime::Module& module, const std::string& function,
                      const std::map<std::string, Tensor>& inputs) {
  if (function != "main" || module.program().find_function("main") >= 0) return function;
  nlohmann::json metadata = nlohmann::json::parse(module.metadata(), nullptr, false);
  if (!metadata.is_object() || !metadata.contains("specialised")) return function;
  std::string known;
  for (const auto& entry : metadata["specialised"]) {
    if (is_for(entry, inputs)) return entry.at("function").get<std::string>();
    known += (known.empty() ? "" : "; ") + text_of(entry);
  }
  std::string found;
  std::set<std::string> told;
  for (const auto& entry : metadata["specialised"]) {
    for (const auto& i : entry.at("inputs")) {
      const auto name = i.at("name").get<std::string>();
      auto given = inputs.find(name);
      if (!told.insert(name).second) continue;
      found += (found.empty() ? "" : ", ") + name + ": " +
               (given == inputs.end()
                    ? "nothing"
                    : runtime::type_string(given->second.dtype(), given->second.shape()));
    }
  }
  throw UserError(
      Diagnostic(codes::driver_specialised, {}, "the program was not compiled for these inputs")
          .expected(known)
          .found(found)
          .help("relay compile --specialise lists what a file is for"));
}

}  // namespace relay
