// The inputs of a graph as the schema declares them.
#include <onnx/onnx-ml.pb.h>

#include "base/codes/frontend.h"
#include "frontend/common/lists.h"
#include "frontend/onnx/graph_importer.h"

namespace relay::frontend::onnx {
namespace {

// The number of dimensions of a tensor that a node puts into a sequence; nullopt where none tells it.
std::optional<int> rank_of_inserted(const ::onnx::GraphProto& graph, const std::string& sequence) {
  for (const auto& n : graph.node()) {
    if (n.op_type() != "SequenceInsert" || n.input_size() < 2 || n.input(0) != sequence) continue;
    for (const auto& i : graph.input()) {
      const auto& tensor = i.type().tensor_type();
      if (i.name() == n.input(1) && tensor.has_shape()) return tensor.shape().dim_size();
    }
  }
  return std::nullopt;
}

// A map is its keys and its values: two vectors, side by side. Null with what is missing.
Type type_of_map(const ::onnx::TypeProto::Map& map, std::string& missing) {
  auto key = dtype_of(map.key_type());
  auto value = map.value_type().has_tensor_type()
                   ? dtype_of(map.value_type().tensor_type().elem_type())
                   : std::nullopt;
  if (!key || !value) {
    missing = "a map to numbers or strings";
    return nullptr;
  }
  auto list = [](DType dtype) { return Type(tensor_type(std::vector<Dim>{dim_any()}, dtype)); };
  return tuple_type({list(*key), list(*value)});
}

// The type of a sequence, an optional or a map, from the inside out; null with what is missing. Tensors whose number of
// dimensions is not told have `rank`.
Type type_of_proto(const ::onnx::TypeProto& proto, std::optional<int> rank, int depth,
                   std::string& missing) {
  if (depth > 2) {
    missing = "at most an optional of a sequence of tensors";
    return nullptr;
  }
  if (proto.has_sequence_type()) {
    Type element = type_of_proto(proto.sequence_type().elem_type(), rank, depth + 1, missing);
    return element == nullptr ? nullptr : list_type(opened(element));
  }
  if (proto.has_optional_type()) {
    Type element = type_of_proto(proto.optional_type().elem_type(), rank, depth + 1, missing);
    return element == nullptr ? nullptr : option_type(element);
  }
  if (proto.has_map_type()) return type_of_map(proto.map_type(), missing);
  if (!proto.has_tensor_type()) {
    missing = "tensors in it";
    return nullptr;
  }
  auto dtype = dtype_of(proto.tensor_type().elem_type());
  if (!dtype) {
    missing = "elements of a type that Relay has";
    return nullptr;
  }
  if (!proto.tensor_type().has_shape() && !rank) {
    missing = "the number of dimensions of what it holds";
    return nullptr;
  }
  std::vector<Dim> shape;
  if (!proto.tensor_type().has_shape()) shape.assign(static_cast<size_t>(*rank), dim_any());
  for (const auto& d : proto.tensor_type().shape().dim()) {
    bool fixed = d.has_dim_value() && d.dim_value() >= 0;
    shape.push_back(fixed ? dim(d.dim_value()) : dim_any());
  }
  missing = "fewer dimensions";
  return static_cast<int64_t>(shape.size()) > kMaxRank
             ? nullptr
             : Type(tensor_type(std::move(shape), *dtype));
}

DeclaredInput::Structure structure_of(const ::onnx::GraphProto& graph,
                                      const ::onnx::ValueInfoProto& input) {
  DeclaredInput::Structure out;
  const ::onnx::TypeProto* type = &input.type();
  while (type->has_optional_type() || type->has_sequence_type()) {
    out.is_list = out.is_list || type->has_sequence_type();
    type = type->has_optional_type() ? &type->optional_type().elem_type()
                                     : &type->sequence_type().elem_type();
  }
  if (type != &input.type()) out.element = dtype_of(type->tensor_type().elem_type());
  out.type = type_of_proto(input.type(), rank_of_inserted(graph, input.name()), 0, out.missing);
  return out;
}

}  // namespace

std::vector<DeclaredInput> declared_inputs(const ::onnx::GraphProto& graph) {
  std::vector<DeclaredInput> out;
  for (const auto& i : graph.input()) {
    DeclaredInput input;
    input.name = i.name();
    const auto& type = i.type();
    const auto& tensor = type.tensor_type();
    input.dtype = dtype_of(tensor.elem_type());
    input.dtype_name = onnx_type_name(tensor.elem_type());
    if (tensor.has_shape()) {
      input.shape.emplace();
      for (const auto& d : tensor.shape().dim()) {
        // Some exporters write -1 for an open dimension.
        const bool open = !d.has_dim_value() || d.dim_value() == -1;
        input.shape->push_back({open ? std::nullopt : std::optional(d.dim_value()), d.dim_param()});
      }
    }
    if (type.has_sequence_type() || type.has_optional_type() || type.has_map_type()) {
      input.structure = structure_of(graph, i);
    } else if (!type.has_tensor_type()) {
      input.unusable = "a sparse tensor";
    }
    out.push_back(std::move(input));
  }
  return out;
}

}  // namespace relay::frontend::onnx
