// The row of the front end.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <map>

#include "frontend/tflite/importer.h"
#include "frontend/tflite/rows.h"

namespace relay {
namespace {

using namespace frontend::tflite;  // NOLINT: this file gives the namespace its entry point

ImportedModel import_tflite(const ModelSource& source, const ImportOptions& options) {
  std::string signature;
  if (auto it = options.own.find("signature"); it != options.own.end())
    signature = *it->second.get_if<std::string>();
  const auto file = SourceFile::make(source.path);
  const Model model(open_bytes(source, options.max_file_bytes), file);
  ImportedModel out = Importer(file, options, model).run(signature);
  char text[17];
  std::snprintf(
      text, sizeof text, "%016llx",
      static_cast<unsigned long long>(XXH3_64bits(model.bytes().data(), model.bytes().size())));
  out.source_hash = text;
  if (model.mapped()) model.mapped()->check_unchanged();
  return out;
}

ModelSummary summarise(const std::string& path) {
  const Model model(open_bytes({path}, ImportOptions().max_file_bytes), SourceFile::make(path));
  ModelSummary out;
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
      row.imported = find_row(kind.name) != nullptr;
      ++row.nodes;
      ++out.nodes;
    }
    for (size_t i = 0; graph.tensors() != nullptr && i < graph.tensors()->size(); ++i) {
      const schema::Tensor& t = model.tensor(g, static_cast<int32_t>(i));
      const auto bytes = model.buffer(t.buffer());
      if (!bytes) continue;
      int64_t elements = 1;
      for (size_t a = 0; t.shape() != nullptr && a < t.shape()->size(); ++a)
        elements *= std::max(t.shape()->Get(static_cast<flatbuffers::uoffset_t>(a)), 0);
      out.parameters += elements;
      out.parameter_bytes += static_cast<int64_t>(bytes->size());
    }
  }
  for (auto& [key, row] : operators) out.operators.push_back(std::move(row));
  const schema::SubGraph& graph = model.graph(0);
  for (size_t i = 0; graph.inputs() != nullptr && i < graph.inputs()->size(); ++i) {
    const int32_t index = graph.inputs()->Get(static_cast<flatbuffers::uoffset_t>(i));
    const schema::Tensor& t = model.tensor(0, index);
    for (size_t a = 0; t.shape_signature() != nullptr && a < t.shape_signature()->size(); ++a) {
      if (t.shape_signature()->Get(static_cast<flatbuffers::uoffset_t>(a)) >= 0) continue;
      out.open_sizes.push_back({"", {{std::string(text_of(t.name())), static_cast<int64_t>(a)}}});
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
      .options = {{"signature", std::string(),
                   "The name of the signature to read; empty for the first subgraph."}},
      .operators = supported,
  };
}

}  // namespace relay
