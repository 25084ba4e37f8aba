// Small ONNX models for tests.
#pragma once

#include <onnx/onnx-ml.pb.h>

#include <string>
#include <vector>

namespace relay::test {

// A dimension of an input: a number, or a name.
struct D {
  int64_t value = -1;
  std::string name;
  D(int64_t v) : value(v) {}     // NOLINT
  D(int v) : value(v) {}         // NOLINT
  D(const char* n) : name(n) {}  // NOLINT
};

class GraphBuilder {
 public:
  using Type = ::onnx::TensorProto;

  explicit GraphBuilder(::onnx::GraphProto* graph) : graph_(graph) { graph->set_name("g"); }

  GraphBuilder& input(const std::string& name, const std::vector<D>& shape,
                      int type = Type::FLOAT) {
    fill(*graph_->add_input(), name, shape, type);
    return *this;
  }
  GraphBuilder& output(const std::string& name) {
    graph_->add_output()->set_name(name);
    return *this;
  }
  GraphBuilder& floats(const std::string& name, const std::vector<int64_t>& dims,
                       const std::vector<float>& values) {
    auto* t = graph_->add_initializer();
    t->set_name(name);
    t->set_data_type(Type::FLOAT);
    for (int64_t d : dims) t->add_dims(d);
    for (float v : values) t->add_float_data(v);
    return *this;
  }
  // A float weight of the given shape, held as raw bytes.
  GraphBuilder& weight(const std::string& name, const std::vector<int64_t>& dims,
                       float value = 0.5f) {
    auto* t = graph_->add_initializer();
    t->set_name(name);
    t->set_data_type(Type::FLOAT);
    int64_t n = 1;
    for (int64_t d : dims) {
      t->add_dims(d);
      n *= d;
    }
    std::vector<float> data(static_cast<size_t>(n), value);
    t->set_raw_data(data.data(), data.size() * sizeof(float));
    return *this;
  }
  GraphBuilder& ints(const std::string& name, const std::vector<int64_t>& values) {
    auto* t = graph_->add_initializer();
    t->set_name(name);
    t->set_data_type(Type::INT64);
    t->add_dims(static_cast<int64_t>(values.size()));
    for (int64_t v : values) t->add_int64_data(v);
    return *this;
  }
  GraphBuilder& scalar(const std::string& name, int64_t value) {
    auto* t = graph_->add_initializer();
    t->set_name(name);
    t->set_data_type(Type::INT64);
    t->add_int64_data(value);
    return *this;
  }
  // The last node added is what the attribute setters talk about.
  GraphBuilder& node(const std::string& op, const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs, const std::string& domain = {}) {
    node_ = graph_->add_node();
    node_->set_op_type(op);
    node_->set_name(outputs.empty() ? "" : outputs[0] + "_node");
    if (!domain.empty()) node_->set_domain(domain);
    for (const auto& i : inputs) node_->add_input(i);
    for (const auto& o : outputs) node_->add_output(o);
    return *this;
  }
  GraphBuilder& attr(const std::string& name, int64_t v) {
    auto* a = add(name, ::onnx::AttributeProto::INT);
    a->set_i(v);
    return *this;
  }
  GraphBuilder& attr_f(const std::string& name, float v) {
    add(name, ::onnx::AttributeProto::FLOAT)->set_f(v);
    return *this;
  }
  GraphBuilder& attr_s(const std::string& name, const std::string& v) {
    add(name, ::onnx::AttributeProto::STRING)->set_s(v);
    return *this;
  }
  GraphBuilder& attr(const std::string& name, const std::vector<int64_t>& v) {
    auto* a = add(name, ::onnx::AttributeProto::INTS);
    for (int64_t x : v) a->add_ints(x);
    return *this;
  }
  ::onnx::GraphProto* attr_graph(const std::string& name) {
    return add(name, ::onnx::AttributeProto::GRAPH)->mutable_g();
  }
  ::onnx::GraphProto* graph() { return graph_; }
  ::onnx::NodeProto* last_node() { return node_; }

 protected:
  static void fill(::onnx::ValueInfoProto& v, const std::string& name, const std::vector<D>& shape,
                   int type) {
    v.set_name(name);
    auto* t = v.mutable_type()->mutable_tensor_type();
    t->set_elem_type(type);
    auto* s = t->mutable_shape();
    for (const D& d : shape) {
      auto* dim = s->add_dim();
      if (!d.name.empty()) {
        dim->set_dim_param(d.name);
      } else {
        dim->set_dim_value(d.value);
      }
    }
  }
  ::onnx::AttributeProto* add(const std::string& name, ::onnx::AttributeProto::AttributeType type) {
    auto* a = node_->add_attribute();
    a->set_name(name);
    a->set_type(type);
    return a;
  }

  ::onnx::GraphProto* graph_;
  ::onnx::NodeProto* node_ = nullptr;
};

// A base, so that it is there before GraphBuilder.
struct ModelHolder {
  ::onnx::ModelProto model_;
};

class ModelBuilder : private ModelHolder, public GraphBuilder {
 public:
  explicit ModelBuilder(int64_t opset = 17) : GraphBuilder(model_.mutable_graph()) {
    model_.set_ir_version(8);
    model_.set_producer_name("test");
    auto* o = model_.add_opset_import();
    o->set_version(opset);
  }
  ModelBuilder& domain(const std::string& name, int64_t version) {
    auto* o = model_.add_opset_import();
    o->set_domain(name);
    o->set_version(version);
    return *this;
  }
  ::onnx::ModelProto& model() { return model_; }
  std::string bytes() const { return model_.SerializeAsString(); }
};

}  // namespace relay::test
