// Tensors of a model as run-time tensors.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/common/tensor_bytes.h"

namespace onnx {
class TensorProto;
class SparseTensorProto;
}  // namespace onnx

namespace relay::frontend::onnx {

// The dtype of TensorProto.DataType; empty for those that Relay does not have.
std::optional<DType> dtype_of(int onnx_type);
// "FLOAT8E4M3FN", or "type 99".
std::string onnx_type_name(int onnx_type);

// Where the bytes of a model's tensors are.
struct TensorSource {
  std::vector<std::string_view> payloads;
  // Keeps the payloads mapped; null when they must be copied.
  std::shared_ptr<const MappedFile> file;
  std::shared_ptr<const ModelFolder> folder;
  // External files that were mapped already, by location.
  std::map<std::string, std::shared_ptr<const MappedFile>> external;
};

// The tensor's data. Large data stays mapped where it is in the file, whatever its alignment: pass
// it through `aligned` before anybody uses it as elements. Throws UserError E0508 when dims, dtype
// and data do not fit together, E0509 for external data that may not be used.
Tensor read_tensor(const ::onnx::TensorProto& proto, TensorSource& source, const Span& span);

// The same of a sparse tensor, made dense; `max_bytes` bounds the dense size.
Tensor read_sparse_tensor(const ::onnx::SparseTensorProto& proto, TensorSource& source,
                          int64_t max_bytes, const Span& span);

}  // namespace relay::frontend::onnx
