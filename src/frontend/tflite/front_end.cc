// The row of the front end.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "frontend/tflite/importer.h"
#include "frontend/tflite/metadata.h"
#include "frontend/tflite/rows.h"

namespace relay {
namespace {

using namespace frontend::tflite;  // NOLINT: this file gives the namespace its entry point
using frontend::identifier;
using frontend::UniqueNames;

// Adds a function for each signature of a file that has several.
void add_signatures(ImportedModel& out, const std::shared_ptr<const SourceFile>& file,
                    ImportOptions budget, const Model& model) {
  const auto* signatures = model.root().signatures();
  if (signatures == nullptr || signatures->size() < 2) return;
  // What is said of inputs is said of those of @main.
  budget.shapes.clear();
  budget.dtypes.clear();
  budget.dims.clear();
  budget.numbers.clear();
  budget.frozen.clear();
  budget.specialised.clear();
  UniqueNames names;
  std::vector<GlobalVar> variables = out.module->global_vars;
  std::vector<Function> functions = out.module->functions;
  for (const GlobalVar& v : variables) names.take(v->name_hint);
  std::set<std::string> added;
  for (const schema::Signature* s : *signatures) {
    const std::string key = short_text(s->key());
    if (key.empty() || !added.insert(key).second) continue;
    Importer importer(file, budget, model);
    const Function f = importer.run(key).module->find("main");
    importer.spend(budget);
    variables.push_back(global_var(names.take(identifier(key)), f->type));
    functions.push_back(f);
  }
  out.module =
      make_module(std::move(variables), std::move(functions), out.module->type_definitions);
}

ImportedModel import_tflite(const ModelSource& source, const ImportOptions& options) {
  std::string signature;
  if (auto it = options.own.find("signature"); it != options.own.end())
    signature = *it->second.get_if<std::string>();
  const auto file = SourceFile::make(source.path);
  const Model model(open_bytes(source, options.max_file_bytes), file);
  Importer importer(file, options, model);
  ImportedModel out = importer.run(signature);
  // Weights that are parameters are those of @main.
  if (signature.empty() && options.freeze_params) {
    ImportOptions budget = options;
    importer.spend(budget);
    add_signatures(out, file, std::move(budget), model);
  }
  char text[17];
  std::snprintf(
      text, sizeof text, "%016llx",
      static_cast<unsigned long long>(XXH3_64bits(model.bytes().data(), model.bytes().size())));
  out.source_hash = text;
  if (model.mapped()) model.mapped()->check_unchanged();
  return out;
}

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

int64_t saturated_sum(int64_t a, int64_t b) { return a > kMost - b ? kMost : a + b; }

// The elements of a tensor whose sizes are not checked; kMost for more than an int64 holds.
int64_t elements_of(const schema::Tensor& t) {
  int64_t elements = 1;
  for (size_t a = 0; t.shape() != nullptr && a < t.shape()->size(); ++a) {
    const int64_t size = std::max(t.shape()->Get(static_cast<flatbuffers::uoffset_t>(a)), 0);
    if (__builtin_mul_overflow(elements, size, &elements)) return kMost;
  }
  return elements;
}

ModelSummary summarise(const std::string& path) {
  const auto file = SourceFile::make(path);
  const Model model(open_bytes({path}, ImportOptions().max_file_bytes), file);
  ModelSummary out;
  out.metadata = metadata_of(model, file);
  out.producer = std::string(text_of(model.root().description()));
  out.versions.emplace_back("tflite", model.root().version());
  std::map<std::pair<std::string, std::string>, ModelSummary::Operator> operators;
  for (size_t g = 0; g < model.num_graphs(); ++g) {
    const schema::SubGraph& graph = model.graph(g);
    for (size_t i = 0; graph.operators() != nullptr && i < graph.operators()->size(); ++i) {
      const auto& op = *graph.operators()->Get(static_cast<flatbuffers::uoffset_t>(i));
      const OperatorKind& kind = model.kind(op);
      ModelSummary::Operator& row = operators[{kind.is_custom ? "custom" : "tflite", kind.name}];
      row.domain = kind.is_custom ? "custom" : "tflite";
      row.name = kind.name;
      row.version = std::max<int64_t>(row.version, kind.version);
      row.imported = row_of(kind) != nullptr;
      ++row.nodes;
      ++out.nodes;
    }
    for (size_t i = 0; graph.tensors() != nullptr && i < graph.tensors()->size(); ++i) {
      const schema::Tensor& t = model.tensor(g, static_cast<int32_t>(i));
      const auto bytes = model.buffer(t.buffer());
      if (!bytes) continue;
      out.parameters = saturated_sum(out.parameters, elements_of(t));
      out.parameter_bytes = saturated_sum(out.parameter_bytes, static_cast<int64_t>(bytes->size()));
    }
  }
  for (auto& [key, row] : operators) out.operators.push_back(std::move(row));
  const schema::SubGraph& graph = model.graph(0);
  for (size_t i = 0; graph.inputs() != nullptr && i < graph.inputs()->size(); ++i) {
    const int32_t index = graph.inputs()->Get(static_cast<flatbuffers::uoffset_t>(i));
    const schema::Tensor& t = model.tensor(0, index);
    for (size_t a = 0; t.shape_signature() != nullptr && a < t.shape_signature()->size(); ++a) {
      if (t.shape_signature()->Get(static_cast<flatbuffers::uoffset_t>(a)) >= 0) continue;
      out.open_sizes.push_back({"", {{name_of(t), static_cast<int64_t>(a)}}});
    }
  }
  return out;
}

std::vector<SupportedOperator> supported() {
  std::vector<SupportedOperator> out;
  for (const Row& row : all_rows()) {
    const bool builtin = builtin_code(row.op) >= 0;
    out.push_back({builtin ? "tflite" : "custom", std::string(row.op), 1});
  }
  std::ranges::sort(out, {},
                    [](const SupportedOperator& o) { return std::pair(o.domain, o.name); });
  return out;
}

}  // namespace

FrontEnd tflite_front_end() {
  return {
      .name = "tflite",
      .title = "TFLite model",
      .endings = {".tflite"},
      .sniff = [](std::string_view head) { return head.size() > 8 && head.substr(4, 4) == "TFL3"; },
      .check = summarise,
      .import = import_tflite,
      .options =
          {{"signature", std::string(),
            "The name of the signature that @main is; empty for the first subgraph, and a function "
            "for each signature of a file that has several."}},
      .operators = supported,
  };
}

}  // namespace relay
