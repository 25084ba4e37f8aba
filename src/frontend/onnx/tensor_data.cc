#include "frontend/onnx/tensor_data.h"

#include <onnx/onnx-ml.pb.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/codes/frontend.h"
#include "base/quantities.h"
#include "runtime/core/strings.h"

namespace relay::frontend::onnx {
namespace {

using ::onnx::TensorProto;

template <class To, class From>
void convert(const From& from, const Tensor& to) {
  To* out = to.data<To>();
  for (auto v : from) *out++ = static_cast<To>(v);
}

int64_t parse_offset(const std::string& text, const char* what, const std::string& name,
                     const Span& span) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    throw UserError(Diagnostic(codes::frontend_external_data, span,
                               std::string("the ") + what + " of the external data of " +
                                   quoted_tensor(name) + " is not a number")
                        .expected("a number of 0 or more")
                        .found(escape_for_terminal(text, 100)));
  }
  return value;
}

std::string_view external_bytes(const TensorProto& proto, int64_t needed, TensorSource& source,
                                std::shared_ptr<const MappedFile>& file, const Span& span) {
  std::string location;
  int64_t offset = 0;
  int64_t length = -1;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = parse_offset(entry.value(), "offset", proto.name(), span);
    if (entry.key() == "length") length = parse_offset(entry.value(), "length", proto.name(), span);
  }
  auto& mapped = source.external[location];
  if (mapped == nullptr) {
    static const ModelFolder nowhere("");
    mapped = (source.folder ? *source.folder : nowhere).map(location, span);
  }
  file = mapped;
  auto size = static_cast<int64_t>(file->bytes().size());
  if (length < 0) length = needed;
  if (length != needed || offset > size || length > size - offset) {
    throw UserError(
        Diagnostic(codes::frontend_external_data, span,
                   "the external data of " + quoted_tensor(proto.name()) + " does not fit its file")
            .expected(std::to_string(needed) + " bytes inside the " + std::to_string(size) +
                      " bytes of '" + escape_for_terminal(location, 200) + "'")
            .found(std::to_string(length) + " bytes from offset " + std::to_string(offset))
            .help("the data file is incomplete or belongs to another model"));
  }
  return file->bytes().substr(static_cast<size_t>(offset), static_cast<size_t>(length));
}

Tensor strings_of(const TensorProto& proto, const std::vector<int64_t>& shape, int64_t count,
                  const Span& span) {
  if (proto.data_location() == TensorProto::EXTERNAL || proto.has_raw_data()) {
    bad_tensor(span, quoted_tensor(proto.name()) + " has strings that are not in string_data");
  }
  if (proto.string_data_size() != count) {
    bad_tensor(
        span, "the data of " + quoted_tensor(proto.name()) + " does not have the size of its shape",
        counted(count, "element") + " for " + runtime::type_string(DType::String(), shape),
        counted(proto.string_data_size(), "element"));
  }
  std::vector<std::string_view> texts(proto.string_data().begin(), proto.string_data().end());
  if (!std::ranges::all_of(texts, runtime::is_utf8)) {
    bad_tensor(span, quoted_tensor(proto.name()) + " has strings that are not UTF-8");
  }
  return runtime::make_strings(shape, texts);
}

}  // namespace

std::optional<DType> dtype_of(int onnx_type) {
  switch (onnx_type) {
    case TensorProto::FLOAT:
      return DType::Float(32);
    case TensorProto::UINT8:
      return DType::UInt(8);
    case TensorProto::INT8:
      return DType::Int(8);
    case TensorProto::UINT16:
      return DType::UInt(16);
    case TensorProto::INT16:
      return DType::Int(16);
    case TensorProto::INT32:
      return DType::Int(32);
    case TensorProto::INT64:
      return DType::Int(64);
    case TensorProto::BOOL:
      return DType::Bool();
    case TensorProto::FLOAT16:
      return DType::Float(16);
    case TensorProto::DOUBLE:
      return DType::Float(64);
    case TensorProto::STRING:
      return DType::String();
    case TensorProto::UINT32:
      return DType::UInt(32);
    case TensorProto::UINT64:
      return DType::UInt(64);
    case TensorProto::BFLOAT16:
      return DType::BFloat16();
    case TensorProto::FLOAT8E4M3FN:
      return DType::Narrow(DType::kFloat8E4M3FN);
    case TensorProto::FLOAT8E4M3FNUZ:
      return DType::Narrow(DType::kFloat8E4M3FNUZ);
    case TensorProto::FLOAT8E5M2:
      return DType::Narrow(DType::kFloat8E5M2);
    case TensorProto::FLOAT8E5M2FNUZ:
      return DType::Narrow(DType::kFloat8E5M2FNUZ);
    case TensorProto::FLOAT8E8M0:
      return DType::Narrow(DType::kFloat8E8M0FNU);
    case TensorProto::FLOAT4E2M1:
      return DType::Narrow(DType::kFloat4E2M1FN);
    case TensorProto::FLOAT6E2M3:
      return DType::Narrow(DType::kFloat6E2M3FN);
    case TensorProto::FLOAT6E3M2:
      return DType::Narrow(DType::kFloat6E3M2FN);
    case TensorProto::INT4:
      return DType::Narrow(DType::kInt4);
    case TensorProto::UINT4:
      return DType::Narrow(DType::kUInt4);
    case TensorProto::INT2:
      return DType::Narrow(DType::kInt2);
    case TensorProto::UINT2:
      return DType::Narrow(DType::kUInt2);
    default:
      return std::nullopt;
  }
}

std::string onnx_type_name(int onnx_type) {
  if (!::onnx::TensorProto_DataType_IsValid(onnx_type)) {
    return "type " + std::to_string(onnx_type);
  }
  static const char* const names[] = {
      "UNDEFINED",      "FLOAT",      "UINT8",          "INT8",       "UINT16",    "INT16",
      "INT32",          "INT64",      "STRING",         "BOOL",       "FLOAT16",   "DOUBLE",
      "UINT32",         "UINT64",     "COMPLEX64",      "COMPLEX128", "BFLOAT16",  "FLOAT8E4M3FN",
      "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "UINT4",      "INT4",      "FLOAT4E2M1",
      "FLOAT8E8M0",     "UINT2",      "INT2",           "FLOAT6E2M3", "FLOAT6E3M2"};
  if (onnx_type < static_cast<int>(std::size(names))) return names[onnx_type];
  return "type " + std::to_string(onnx_type);
}

Tensor read_tensor(const TensorProto& proto, TensorSource& source, const Span& span) {
  auto dtype = dtype_of(proto.data_type());
  if (!dtype) {
    throw UserError(
        Diagnostic(codes::frontend_tensor, span,
                   quoted_tensor(proto.name()) + " has an element type that Relay lacks")
            .expected("a float, integer or bool type of at most 64 bits")
            .found(onnx_type_name(proto.data_type()))
            .help("export the model with another element type"));
  }
  if (proto.has_segment()) bad_tensor(span, quoted_tensor(proto.name()) + " is stored in segments");
  std::vector<int64_t> shape =
      checked_shape({proto.dims().begin(), proto.dims().end()}, proto.name(), *dtype, span);
  int64_t count = runtime::checked_num_elements(*dtype, shape);
  if (dtype->is_string()) return strings_of(proto, shape, count, span);
  const int64_t bits = stored_bits(*dtype);
  const bool packed = bits < 8;
  const int64_t needed = packed ? (count * bits + 7) / 8 : count * (bits / 8);

  auto check_bytes = [&](std::string_view bytes) {
    if (static_cast<int64_t>(bytes.size()) != needed) {
      bad_tensor(
          span,
          "the data of " + quoted_tensor(proto.name()) + " does not have the size of its shape",
          std::to_string(needed) + " bytes for " + runtime::type_string(*dtype, shape),
          std::to_string(bytes.size()) + " bytes");
    }
  };
  if (proto.data_location() == TensorProto::EXTERNAL) {
    std::shared_ptr<const MappedFile> file;
    std::string_view bytes = external_bytes(proto, needed, source, file, span);
    return packed ? unpack_narrow(bytes, *dtype, shape, bits)
                  : tensor_from_bytes(bytes, *dtype, shape, file);
  }
  if (proto.has_doc_string()) {  // put there by strip_payloads
    auto index = static_cast<size_t>(std::stoul(proto.doc_string()));
    std::string_view bytes = source.payloads.at(index);
    check_bytes(bytes);
    return packed ? unpack_narrow(bytes, *dtype, shape, bits)
                  : tensor_from_bytes(bytes, *dtype, shape, source.file);
  }
  if (proto.has_raw_data()) {
    check_bytes(proto.raw_data());
    return packed ? unpack_narrow(proto.raw_data(), *dtype, shape, bits)
                  : tensor_from_bytes(proto.raw_data(), *dtype, shape, nullptr);
  }

  int64_t given = 0;
  switch (proto.data_type()) {
    case TensorProto::FLOAT:
      given = proto.float_data_size();
      break;
    case TensorProto::INT64:
      given = proto.int64_data_size();
      break;
    case TensorProto::DOUBLE:
      given = proto.double_data_size();
      break;
    case TensorProto::UINT32:
    case TensorProto::UINT64:
      given = proto.uint64_data_size();
      break;
    default:
      given = proto.int32_data_size();
  }
  // An entry has as many elements as fill a byte.
  const int64_t in_entry = std::max<int64_t>(8 / bits, 1);
  if (given != (count + in_entry - 1) / in_entry) {
    bad_tensor(
        span, "the data of " + quoted_tensor(proto.name()) + " does not have the size of its shape",
        counted(count, "element") + " for " + runtime::type_string(*dtype, shape),
        counted(given, "element"));
  }
  if (dtype->is_narrow()) {
    std::string bytes;
    for (int32_t v : proto.int32_data()) bytes += static_cast<char>(v);
    return unpack_narrow(bytes, *dtype, shape, 8 / in_entry);
  }
  Tensor t = Tensor::empty(*dtype, shape);
  switch (proto.data_type()) {
    case TensorProto::FLOAT:
      convert<float>(proto.float_data(), t);
      break;
    case TensorProto::DOUBLE:
      convert<double>(proto.double_data(), t);
      break;
    case TensorProto::INT64:
      convert<int64_t>(proto.int64_data(), t);
      break;
    case TensorProto::UINT64:
      convert<uint64_t>(proto.uint64_data(), t);
      break;
    case TensorProto::UINT32:
      convert<uint32_t>(proto.uint64_data(), t);
      break;
    case TensorProto::INT32:
      convert<int32_t>(proto.int32_data(), t);
      break;
    case TensorProto::INT16:
      convert<int16_t>(proto.int32_data(), t);
      break;
    case TensorProto::INT8:
      convert<int8_t>(proto.int32_data(), t);
      break;
    case TensorProto::UINT8:
      convert<uint8_t>(proto.int32_data(), t);
      break;
    case TensorProto::BOOL:
      for (int64_t i = 0; i < count; ++i) {
        t.data<uint8_t>()[i] = proto.int32_data(static_cast<int>(i)) != 0;
      }
      break;
    default:  // the bits of 16-bit values
      convert<uint16_t>(proto.int32_data(), t);
  }
  return t;
}

Tensor read_sparse_tensor(const ::onnx::SparseTensorProto& proto, TensorSource& source,
                          int64_t max_bytes, const Span& span) {
  Tensor values = read_tensor(proto.values(), source, span);
  Tensor indices = read_tensor(proto.indices(), source, span);
  std::vector<int64_t> shape = checked_shape({proto.dims().begin(), proto.dims().end()},
                                             proto.values().name(), values.dtype(), span);
  int64_t count = runtime::checked_num_elements(values.dtype(), shape);
  if (count > max_bytes / static_cast<int64_t>(values.dtype().bytes())) {
    throw UserError(
        Diagnostic(codes::frontend_limit, span, "a sparse tensor is too large to be made dense")
            .expected("at most " + std::to_string(max_bytes) + " bytes")
            .found(runtime::type_string(values.dtype(), shape)));
  }
  int64_t n = values.num_elements();
  auto rank = static_cast<int64_t>(shape.size());
  bool linear = indices.shape().size() == 1 && indices.dim(0) == n;
  bool coordinates = indices.shape().size() == 2 && indices.dim(0) == n && indices.dim(1) == rank;
  if (values.shape().size() != 1 || indices.dtype() != DType::Int(64) ||
      (!linear && !coordinates)) {
    bad_tensor(span, "a sparse tensor's values and indices do not fit together");
  }
  Tensor dense = Tensor::zeros(values.dtype(), shape);
  size_t bytes = values.dtype().bytes();
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = 0;
    if (linear) {
      at = indices.data<int64_t>()[i];
    } else {
      for (int64_t a = 0; a < rank; ++a) {
        int64_t index = indices.data<int64_t>()[i * rank + a];
        if (index < 0 || index >= shape[static_cast<size_t>(a)]) {
          bad_tensor(span, "a sparse tensor has an index out of range");
        }
        at = at * shape[static_cast<size_t>(a)] + index;
      }
    }
    if (at < 0 || at >= count) bad_tensor(span, "a sparse tensor has an index out of range");
    std::memcpy(dense.data<char>() + static_cast<size_t>(at) * bytes,
                values.data<char>() + static_cast<size_t>(i) * bytes, bytes);
  }
  return dense;
}

}  // namespace relay::frontend::onnx
