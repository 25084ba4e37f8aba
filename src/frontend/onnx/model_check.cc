// What is checked before anything is imported: versions, and that every operator is known.
#include <onnx/onnx-ml.pb.h>

#include <algorithm>
#include <set>

#include "base/codes/frontend.h"
#include "base/suggest.h"
#include "frontend/onnx/graph_importer.h"
#include "ir/op.h"

namespace relay::frontend::onnx {
namespace {

constexpr int kOldestOpset = 1;
// The newest version of the default operator set that the table was checked against.
constexpr int kNewestOpset = 28;

std::string shown_domain(std::string_view domain) {
  return is_default_domain(domain) ? "ai.onnx" : escape_for_terminal(domain, 100);
}

}  // namespace

bool is_default_domain(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

std::string_view canonical_domain(std::string_view domain) {
  return is_default_domain(domain) ? std::string_view() : domain;
}

OpsetImports opsets_of(
    const google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto>& imports) {
  OpsetImports out;
  for (const auto& i : imports) {
    out.versions.emplace_back(std::string(canonical_domain(i.domain())), i.version());
  }
  return out;
}

std::string function_key(const std::string& domain, const std::string& name,
                         const std::string& overload) {
  return std::string(canonical_domain(domain)) + '\0' + name + '\0' + overload;
}

int64_t OpsetImports::of(std::string_view domain) const {
  int64_t version = 0;
  for (const auto& [d, v] : versions) {
    if (d == canonical_domain(domain)) version = std::max(version, v);
  }
  return version;
}

void Importer::check_versions(const ::onnx::ModelProto& model) {
  Span span = place("opset_import");
  for (const auto& i : model.opset_import()) {
    if (!is_default_domain(i.domain())) continue;
    if (i.version() < kOldestOpset || i.version() > kNewestOpset) {
      throw UserError(
          Diagnostic(codes::frontend_version, span,
                     "the model uses a version of the ONNX operators that cannot be imported")
              .expected("opset " + std::to_string(kOldestOpset) + " to " +
                        std::to_string(kNewestOpset))
              .found("opset " + std::to_string(i.version()))
              .help(i.version() < kOldestOpset
                        ? "convert it with onnx.version_converter.convert_version(model, 13)"
                        : "export the model with an older opset, or use a newer Relay"));
    }
  }
  if (opsets_of(model.opset_import()).of("") == 0) {
    for (const auto& n : model.graph().node()) {
      if (!is_default_domain(n.domain())) continue;
      throw UserError(Diagnostic(codes::frontend_version, span,
                                 "the model does not say which ONNX operators it uses")
                          .expected("an opset_import for the domain ai.onnx")
                          .found("none")
                          .help("the file is damaged, or is not an ONNX model"));
    }
  }
}

// Reports every operator of the model that cannot be imported, each with all of its nodes.
void Importer::check_operators(const ::onnx::ModelProto& model) {
  struct Missing {
    std::string domain, op;
    int64_t opset = 0;
    Span first;
    std::vector<std::string> nodes;
    int64_t count = 0;
    std::set<std::string> dtypes;
  };
  std::map<std::string, Missing> missing;
  std::map<std::string, std::string> dtype_of_value;
  auto note_type = [&](const ::onnx::ValueInfoProto& v) {
    if (v.type().has_tensor_type()) {
      dtype_of_value[v.name()] = onnx_type_name(v.type().tensor_type().elem_type());
    }
  };

  struct Work {
    const ::onnx::GraphProto* graph;
    const ::onnx::FunctionProto* function;
    OpsetImports opsets;
  };
  std::vector<Work> work{{&model.graph(), nullptr, opsets_of(model.opset_import())}};
  for (const auto& f : model.functions()) {
    work.push_back({nullptr, &f, opsets_of(f.opset_import())});
  }
  while (!work.empty()) {
    Work w = std::move(work.back());
    work.pop_back();
    if (w.graph != nullptr) {
      for (const auto& v : w.graph->input()) note_type(v);
      for (const auto& v : w.graph->value_info()) note_type(v);
      for (const auto& t : w.graph->initializer()) {
        dtype_of_value[t.name()] = onnx_type_name(t.data_type());
      }
    }
    const auto& nodes = w.graph != nullptr ? w.graph->node() : w.function->node();
    int index = 0;
    for (const auto& n : nodes) {
      for (const auto& a : n.attribute()) {
        if (a.has_g()) work.push_back({&a.g(), nullptr, w.opsets});
        for (const auto& g : a.graphs()) work.push_back({&g, nullptr, w.opsets});
      }
      int at = index++;
      if (find_function(n) != nullptr) continue;
      // A domain without a declared version: contributed operators have only one in practice.
      int64_t opset = w.opsets.of(n.domain());
      if (opset == 0 && !is_default_domain(n.domain())) opset = 1;
      if (find_converter(canonical_domain(n.domain()), n.op_type(), opset) != nullptr) continue;
      Missing& m = missing[function_key(n.domain(), n.op_type(), "")];
      if (m.count++ == 0) {
        m.domain = n.domain();
        m.op = n.op_type();
        m.opset = opset;
        m.first = place(node_label(n, at));
      }
      if (m.nodes.size() < 10) m.nodes.push_back(node_label(n, at));
      for (const auto& in : n.input()) {
        if (auto it = dtype_of_value.find(in); it != dtype_of_value.end()) {
          m.dtypes.insert(it->second);
        }
      }
    }
  }

  for (auto& [key, m] : missing) {
    std::vector<std::string_view> known;
    int since = 0;
    for (const ConverterRow& row : converter_table()) {
      known.push_back(row.op);
      if (row.domain == canonical_domain(m.domain) && row.op == m.op) since = row.since;
    }
    known.erase(std::unique(known.begin(), known.end()), known.end());
    std::string nodes;
    for (const std::string& n : m.nodes) nodes += (nodes.empty() ? "" : "; ") + n;
    if (m.count > static_cast<int64_t>(m.nodes.size())) {
      nodes += "; and " + std::to_string(m.count - static_cast<int64_t>(m.nodes.size())) + " more";
    }
    std::string found = shown_domain(m.domain) + " opset " + std::to_string(m.opset);
    if (!m.dtypes.empty()) {
      found += ", input types";
      for (const std::string& t : m.dtypes) found += " " + t;
    }
    found += ", used by " + nodes;
    Diagnostic d(codes::frontend_unsupported, m.first,
                 "operator " + shorten(m.op) + " cannot be imported");
    d.expected(since > 0 ? m.op + " of opset " + std::to_string(since) + " or newer"
                         : "one of the " + std::to_string(known.size()) +
                               " operators that Relay imports from ONNX");
    d.found(std::move(found));
    constexpr size_t kMaxSuggestions = 50;
    std::string near;
    if (diagnostics().error_count() < kMaxSuggestions) near = suggest(m.op, known);
    // What ONNX Runtime writes for the processor that it runs on.
    const bool one_machine = m.domain == "com.microsoft.nchwc";
    d.help(one_machine
               ? "ONNX Runtime has optimised this model for one processor: save it at the level "
                 "extended (ORT_ENABLE_EXTENDED), or give the model as it was exported"
               : (near.empty() ? "" : near + " ") +
                     "rewrite the model without it, or give it as a model-local function");
    report(std::move(d));
  }
}

}  // namespace relay::frontend::onnx
