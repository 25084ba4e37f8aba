#include "frontend/onnx/summary.h"

#include <onnx/onnx-ml.pb.h>

#include <algorithm>
#include <map>
#include <set>

#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/parse.h"

namespace relay::frontend::onnx {
namespace {

// The graphs and functions of a model, each with the operator sets that it is written in.
struct Body {
  const ::onnx::GraphProto* graph = nullptr;
  const ::onnx::FunctionProto* function = nullptr;
  OpsetImports opsets;
};

class Summary {
 public:
  ModelSummary run(const ::onnx::ModelProto& model) {
    out_.producer = model.producer_name();
    for (const auto& o : model.opset_import()) {
      out_.versions.emplace_back(shown(o.domain()), o.version());
    }
    std::vector<Body> work{{&model.graph(), nullptr, opsets_of(model.opset_import())}};
    for (const auto& f : model.functions()) {
      own_.insert(function_key(f.domain(), f.name(), f.overload()));
      work.push_back({nullptr, &f, opsets_of(f.opset_import())});
    }
    while (!work.empty()) {
      Body b = std::move(work.back());
      work.pop_back();
      if (b.graph != nullptr) {
        for (const auto& t : b.graph->initializer()) count(t);
      }
      for (const auto& n : b.graph != nullptr ? b.graph->node() : b.function->node()) {
        add(n, b.opsets);
        for (const auto& a : n.attribute()) {
          if (a.has_g()) work.push_back({&a.g(), nullptr, b.opsets});
          for (const auto& g : a.graphs()) work.push_back({&g, nullptr, b.opsets});
        }
      }
    }
    for (auto& [key, op] : operators_) out_.operators.push_back(std::move(op));
    open_sizes(model.graph());
    return std::move(out_);
  }

 private:
  static std::string shown(const std::string& domain) {
    return is_default_domain(domain) ? "ai.onnx" : domain;
  }

  void count(const ::onnx::TensorProto& t) {
    int64_t elements = 1;
    for (int64_t d : t.dims()) {
      if (d < 0 || __builtin_mul_overflow(elements, d, &elements)) return;
    }
    auto dtype = dtype_of(t.data_type());
    out_.parameters += elements;
    if (dtype) out_.parameter_bytes += elements * static_cast<int64_t>(dtype->bytes());
  }

  void add(const ::onnx::NodeProto& n, const OpsetImports& opsets) {
    ++out_.nodes;
    int64_t opset = opsets.of(n.domain());
    if (opset == 0 && !is_default_domain(n.domain())) opset = 1;
    auto& op = operators_[{shown(n.domain()), n.op_type()}];
    if (op.nodes++ > 0) return;
    op.domain = shown(n.domain());
    op.name = n.op_type();
    op.version = opset;
    op.imported = own_.contains(function_key(n.domain(), n.op_type(), n.overload())) ||
                  find_converter(canonical_domain(n.domain()), n.op_type(), opset) != nullptr;
  }

  void open_sizes(const ::onnx::GraphProto& graph) {
    std::set<std::string> weights;
    for (const auto& t : graph.initializer()) weights.insert(t.name());
    std::map<std::string, size_t> by_name;
    for (const auto& i : graph.input()) {
      if (weights.contains(i.name())) continue;
      const auto& dims = i.type().tensor_type().shape().dim();
      for (int a = 0; a < dims.size(); ++a) {
        if (dims[a].has_dim_value() && dims[a].dim_value() != -1) continue;
        const std::string& name = dims[a].dim_param();
        size_t at = out_.open_sizes.size();
        if (!name.empty()) at = by_name.try_emplace(name, at).first->second;
        if (at == out_.open_sizes.size()) out_.open_sizes.push_back({name, {}});
        out_.open_sizes[at].axes.emplace_back(i.name(), a);
      }
    }
  }

  ModelSummary out_;
  std::set<std::string> own_;
  std::map<std::pair<std::string, std::string>, ModelSummary::Operator> operators_;
};

}  // namespace
}  // namespace relay::frontend::onnx

namespace relay {

ModelSummary summarize_onnx_file(const std::string& path) {
  return frontend::onnx::with_parsed_file(
      path, [](const ::onnx::ModelProto& model) { return frontend::onnx::Summary().run(model); });
}

}  // namespace relay
