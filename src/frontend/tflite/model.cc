#include "frontend/tflite/model.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "base/codes/frontend.h"
#include "base/diagnostic.h"
#include "frontend/common/model_value.h"

namespace relay::frontend::tflite {
namespace {

struct BuiltinRow {
  int32_t code;
  std::string_view name;
  int32_t version;
};
constexpr BuiltinRow kBuiltins[] = {
#define RELAY_TFLITE_OPERATOR(code, name, version) {code, #name, version},
#include "frontend/tflite/operators.def"
#undef RELAY_TFLITE_OPERATOR
};

constexpr int32_t kCustom = 32;
// The only version of the format that exists in practice.
constexpr uint32_t kFormatVersion = 3;
// The longest names of tensors and of custom operators that are read.
constexpr size_t kMaxName = 1000;

template <class Vector>
size_t size_of(const Vector* v) {
  return v == nullptr ? 0 : v->size();
}

}  // namespace

std::string builtin_name(int32_t code) {
  const bool known = code >= 0 && static_cast<size_t>(code) < std::size(kBuiltins);
  return known ? std::string(kBuiltins[code].name) : "operator " + std::to_string(code);
}

int32_t known_version(int32_t code) {
  const bool known = code >= 0 && static_cast<size_t>(code) < std::size(kBuiltins);
  return known ? kBuiltins[code].version : 0;
}

int32_t builtin_code(std::string_view name) {
  auto row = std::ranges::find(kBuiltins, name, &BuiltinRow::name);
  return row == std::end(kBuiltins) ? -1 : row->code;
}

std::string_view text_of(const flatbuffers::String* text) {
  return text == nullptr ? std::string_view() : std::string_view(text->c_str(), text->size());
}

std::string short_text(const flatbuffers::String* text) {
  return std::string(text_of(text).substr(0, kMaxName));
}

std::string name_of(const schema::Tensor& tensor) { return short_text(tensor.name()); }

std::string interface_name(const Model& model, size_t graph, int32_t tensor) {
  std::string name = name_of(model.tensor(graph, tensor));
  return name.empty() ? "input" + std::to_string(tensor) : name;
}

const flatbuffers::Table* empty_table() {
  // A vtable of its own size alone, then the distance of the table to it.
  struct alignas(4) Bytes {
    uint16_t vtable_size = 4, table_size = 4;
    int32_t to_vtable = 4;
  };
  static const Bytes bytes;
  return reinterpret_cast<const flatbuffers::Table*>(&bytes.to_vtable);
}

ModelBytes open_bytes(const ModelSource& source, int64_t max_bytes) {
  ModelBytes out;
  if (source.bytes) {
    out.bytes = *source.bytes;
  } else {
    out.mapped = MappedFile::open(source.path, max_bytes);
    out.bytes = out.mapped->bytes();
  }
  // Numbers of eight bytes are read where they are.
  if (reinterpret_cast<uintptr_t>(out.bytes.data()) % 8 != 0) {
    out.copy = std::make_shared<const std::string>(out.bytes);
    out.bytes = *out.copy;
  }
  return out;
}

void Model::damaged(const std::string& why) const {
  throw UserError(Diagnostic(codes::frontend_damaged, place("model"),
                             "this is not a TFLite model, or it is damaged: " + why)
                      .help("check that the file was copied or downloaded completely"));
}

Model::Model(ModelBytes bytes, std::shared_ptr<const SourceFile> file)
    : bytes_(std::move(bytes)), file_(std::move(file)) {
  // A flatbuffer is smaller than 2 GiB; larger files have their weights behind it.
  constexpr size_t kMost = (size_t{1} << 31) - 1;
  const auto* data = reinterpret_cast<const uint8_t*>(bytes_.bytes.data());
  const size_t size = std::min(bytes_.bytes.size(), kMost);
  if (size < 16 || bytes_.bytes.substr(4, 4) != schema::ModelIdentifier())
    damaged("it has no mark TFL3");
  // Every table takes some bytes; the bound keeps tables that refer to one another from being verified for long.
  flatbuffers::Verifier verifier(data, size, /*max_depth=*/64,
                                 static_cast<flatbuffers::uoffset_t>(size / 4 + 16));
  if (!schema::VerifyModelBuffer(verifier)) damaged("its tables do not fit the format");
  root_ = schema::GetModel(data);
  if (root_->version() != kFormatVersion) {
    throw UserError(Diagnostic(codes::frontend_version, place("model"),
                               "the version of the file format is not supported")
                        .expected(std::to_string(kFormatVersion))
                        .found(std::to_string(root_->version())));
  }
  if (size_of(root_->subgraphs()) == 0) damaged("it has no subgraph");
  if (root_->operator_codes() != nullptr) {
    for (const schema::OperatorCode* c : *root_->operator_codes()) {
      OperatorKind kind;
      kind.code = std::max<int32_t>(c->deprecated_code(), c->code());
      kind.is_custom = kind.code == kCustom;
      if (text_of(c->custom_code()).size() > kMaxName)
        damaged("the name of an operator is too long");
      kind.name = kind.is_custom ? std::string(text_of(c->custom_code())) : builtin_name(kind.code);
      kind.version = c->version();
      kinds_.push_back(std::move(kind));
    }
  }
  for (size_t g = 0; g < num_graphs(); ++g) check_graph(g);
  if (root_->signatures() == nullptr) return;
  for (const schema::Signature* s : *root_->signatures()) {
    if (s->subgraph() >= num_graphs()) damaged("a signature names a subgraph that is not there");
    for (const auto* maps : {s->inputs(), s->outputs()}) {
      if (maps == nullptr) continue;
      for (const schema::TensorMap* m : *maps) {
        if (m->tensor() >= size_of(graph(s->subgraph()).tensors()))
          damaged("a signature names a tensor that is not there");
      }
    }
  }
}

void Model::check_graph(size_t index) const {
  const schema::SubGraph& g = graph(index);
  const auto tensors = static_cast<int64_t>(size_of(g.tensors()));
  // Operators may share a list, which is checked once.
  std::set<std::pair<const void*, int64_t>> checked;
  auto check = [&](const flatbuffers::Vector<int32_t>* list, int64_t least) {
    if (list == nullptr || !checked.emplace(list, least).second) return;
    for (int32_t t : *list) {
      if (t < least || t >= tensors) {
        damaged("subgraph " + std::to_string(index) + " refers to tensor " + std::to_string(t) +
                " of " + std::to_string(tensors));
      }
    }
  };
  check(g.inputs(), 0);
  check(g.outputs(), 0);
  if (g.tensors() != nullptr) {
    for (const schema::Tensor* t : *g.tensors()) {
      if (t->buffer() != 0 && t->buffer() >= size_of(root_->buffers()))
        damaged("a tensor names a buffer that is not there");
    }
  }
  if (g.operators() == nullptr) return;
  for (const schema::Operator* op : *g.operators()) {
    if (op->opcode_index() >= kinds_.size()) damaged("an operator names a code that is not there");
    check(op->inputs(), -1);
    check(op->outputs(), -1);
    check(op->intermediates(), -1);
  }
}

const schema::Tensor& Model::tensor(size_t graph_index, int32_t index) const {
  return *graph(graph_index).tensors()->Get(static_cast<flatbuffers::uoffset_t>(index));
}

std::optional<std::string_view> Model::buffer(uint32_t index) const {
  if (index == 0 || index >= size_of(root_->buffers())) return std::nullopt;
  const schema::Buffer* b = root_->buffers()->Get(index);
  // Offsets of 0 and 1 mean that there is none.
  if (b->offset() > 1) {
    const uint64_t all = bytes_.bytes.size();
    if (b->offset() > all || b->size() > all - b->offset()) damaged("a buffer lies behind its end");
    return bytes_.bytes.substr(b->offset(), b->size());
  }
  if (size_of(b->data()) == 0) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(b->data()->data()), b->data()->size());
}

std::string Model::operator_label(size_t graph_index, size_t index) const {
  const schema::SubGraph& g = graph(graph_index);
  const schema::Operator& op = *g.operators()->Get(static_cast<flatbuffers::uoffset_t>(index));
  std::string out = "operator #" + std::to_string(index) + " (" + shorten(kind(op).name) + ")";
  if (graph_index != 0) out = "subgraph " + std::to_string(graph_index) + ", " + out;
  if (size_of(op.outputs()) == 0 || op.outputs()->Get(0) < 0) return out;
  const std::string name = name_of(tensor(graph_index, op.outputs()->Get(0)));
  return name.empty() ? out : out + " -> " + shorten(name);
}

std::optional<DType> dtype_of(schema::ElementType type) {
  using E = schema::ElementType;
  switch (type) {
    case E::float32:
      return DType::Float(32);
    case E::float16:
      return DType::Float(16);
    case E::float64:
      return DType::Float(64);
    case E::bfloat16:
      return DType::BFloat16();
    case E::int8:
    case E::int4:  // held in a byte each
    case E::int2:
      return DType::Int(8);
    case E::uint4:
    case E::uint8:
      return DType::UInt(8);
    case E::int16:
      return DType::Int(16);
    case E::uint16:
      return DType::UInt(16);
    case E::int32:
      return DType::Int(32);
    case E::uint32:
      return DType::UInt(32);
    case E::int64:
      return DType::Int(64);
    case E::uint64:
      return DType::UInt(64);
    case E::bool_:
      return DType::Bool();
    case E::string:
      return DType::String();
    default:
      return std::nullopt;
  }
}

std::string name_of(schema::ElementType type) {
  const char* name = schema::EnumNameElementType(type);
  return *name != 0 ? name : "type " + std::to_string(static_cast<int>(type));
}

}  // namespace relay::frontend::tflite
