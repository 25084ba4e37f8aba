// The row of the front end, and the graphs that Python hands over.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <map>

#include "base/codes/frontend.h"
#include "frontend/given_weights.h"
#include "frontend/torch/archive.h"
#include "frontend/torch/complex.h"
#include "frontend/torch/importer.h"
#include "frontend/torch/node_context.h"
#include "frontend/torch/torch.h"

namespace relay {
namespace {

using namespace frontend::torch;  // NOLINT: this file gives the namespace its entry points
using frontend::MappedFile;

struct Source {
  std::shared_ptr<const MappedFile> file;
  std::string_view bytes;
};
Source open(const ModelSource& source, int64_t max_bytes) {
  if (source.bytes) return {nullptr, *source.bytes};
  auto file = MappedFile::open(source.path, max_bytes);
  return {file, file->bytes()};
}

// Puts the weights that the caller gives in place of those of the archive. Parameters and persistent buffers need a
// value; one that the module shares may have it under another name.
void replace_weights(ExportedArchive& archive, const std::optional<WeightFile>& file) {
  frontend::GivenWeights given(file);
  std::map<std::string, Tensor> by_place;
  std::vector<const InputSpec*> rest;
  for (const InputSpec& spec : archive.program.inputs) {
    if (!spec.is_weight()) continue;
    auto old = archive.tensors.find(spec.target);
    // A weight that the archive lacks has the type of the graph, with which the importer compares it.
    const auto* own =
        !file || !file->tensors.contains(spec.target) ? nullptr : &file->tensors.at(spec.target);
    const Tensor* like = old != archive.tensors.end() ? &old->second : own;
    Tensor value = like == nullptr ? Tensor()
                                   : given.take(spec.target, like->dtype(),
                                                {like->shape().begin(), like->shape().end()});
    if (!value) {
      if (spec.is_saved) rest.push_back(&spec);
      continue;
    }
    if (auto place = archive.places.find(spec.target); place != archive.places.end())
      by_place[place->second] = value;
    archive.tensors[spec.target] = value;
  }
  for (const InputSpec* spec : rest) {
    auto place = archive.places.find(spec->target);
    auto same = place == archive.places.end() ? by_place.end() : by_place.find(place->second);
    if (same == by_place.end()) {
      given.miss(spec->target);
    } else {
      archive.tensors[spec->target] = same->second;
    }
  }
  given.finish();
}

ImportedModel import_archive(const ModelSource& source, const ImportOptions& options) {
  std::string model;
  if (auto it = options.own.find("model"); it != options.own.end())
    model = *it->second.get_if<std::string>();
  const Source from = open(source, options.max_file_bytes);
  ExportedArchive archive =
      read_exported_archive(from.bytes, source.path, from.file, model, options.max_file_bytes);
  const auto file = SourceFile::make(source.path);
  if (source.weights) replace_weights(archive, source.weights);
  // An archive has all weights.
  for (const InputSpec& spec : archive.program.inputs) {
    if (spec.is_weight() && !archive.tensors.contains(spec.target)) {
      throw UserError(
          Diagnostic(codes::frontend_tensor,
                     Span::place(file, "weight " + frontend::shorten(spec.target)),
                     "the archive has no tensor '" + frontend::shorten(spec.target) + "'")
              .expected("a dense tensor, stored as its bytes")
              .help("save the program with torch.export.save"));
    }
  }
  const Program program = without_complex_values(std::move(archive.program));
  Importer importer(file, options, program, archive.tensors);
  ImportedModel out = importer.run().model;
  if (from.file) from.file->check_unchanged();
  char text[17];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(from.bytes.data(), from.bytes.size())));
  out.source_hash = text;
  return out;
}

ModelSummary summarise(const std::string& path) {
  const Source from = open({path}, ImportOptions().max_file_bytes);
  const ExportedArchive archive =
      read_exported_archive(from.bytes, path, from.file, "", ImportOptions().max_file_bytes);
  ModelSummary out;
  out.producer = "PyTorch " + archive.program.torch_version;
  std::map<std::pair<std::string, std::string>, ModelSummary::Operator> operators;
  std::vector<const Graph*> work{&archive.program.graph};
  while (!work.empty()) {
    const Graph& graph = *work.back();
    work.pop_back();
    for (const frontend::torch::Node& n : graph.nodes) {
      ++out.nodes;
      const std::string target(operator_of(n.target));
      const size_t dot = target.find('.');
      auto& op =
          operators[{target.substr(0, dot), target.substr(std::min(dot + 1, target.size()))}];
      op.domain = target.substr(0, dot);
      op.name = target.substr(std::min(dot + 1, target.size()));
      op.imported = is_imported(target);
      ++op.nodes;
      for (const auto& [name, a] : n.inputs)
        if (a.graph != nullptr) work.push_back(a.graph.get());
    }
  }
  for (auto& [key, op] : operators) out.operators.push_back(std::move(op));
  for (const auto& [name, t] : archive.tensors) {
    out.parameters += t.num_elements();
    out.parameter_bytes += static_cast<int64_t>(t.byte_size());
  }
  std::map<std::string, size_t> by_name;
  for (size_t i = 0; i < archive.program.inputs.size(); ++i) {
    const std::string* name = archive.program.graph.inputs[i].name();
    auto meta = name == nullptr ? archive.program.graph.tensors.end()
                                : archive.program.graph.tensors.find(*name);
    if (meta == archive.program.graph.tensors.end()) continue;
    for (size_t a = 0; a < meta->second.sizes.size(); ++a) {
      if (std::holds_alternative<int64_t>(meta->second.sizes[a])) continue;
      const std::string symbol = symbol_of(meta->second.sizes[a]);
      size_t at = out.open_sizes.size();
      if (!symbol.empty()) at = by_name.try_emplace(symbol, at).first->second;
      if (at == out.open_sizes.size()) out.open_sizes.push_back({symbol, {}});
      out.open_sizes[at].axes.emplace_back(*name, static_cast<int64_t>(a));
    }
  }
  return out;
}

std::vector<SupportedOperator> supported() {
  std::vector<SupportedOperator> out;
  for (const Row& row : all_rows()) {
    const size_t dot = row.target.find('.');
    out.push_back(
        {std::string(row.target.substr(0, dot)), std::string(row.target.substr(dot + 1)), 0});
  }
  return out;
}

}  // namespace

FrontEnd torch_front_end() {
  return {
      .name = "torch",
      .title = "PyTorch archive",
      .endings = {".pt2"},
      .sniff = is_exported_archive,
      .check = summarise,
      .import = import_archive,
      .options = {{"model", std::string(),
                   "The name of the program to read, of an archive that holds several."}},
      .takes_weights = true,
      .operators = supported,
  };
}

TorchProgram import_torch_graph(std::string_view json, const std::map<std::string, Tensor>& tensors,
                                const std::string& name, const ImportOptions& options) {
  const auto file = SourceFile::make(name);
  const Program program = without_complex_values(read_program(json, file));
  return Importer(file, options, program, tensors).run();
}

std::vector<TorchGap> torch_gaps(std::string_view json, const std::string& name,
                                 const ImportOptions& options) {
  const auto file = SourceFile::make(name);
  const Program program = without_complex_values(read_program(json, file));
  return Importer(file, options, program, {}).gaps();
}

}  // namespace relay
