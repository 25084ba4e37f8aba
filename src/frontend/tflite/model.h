// A TFLite file, verified: every number in it that refers to something refers to something that is there.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/common/front_end.h"
#include "frontend/common/mapped_file.h"
#include "frontend/common/tensor_bytes.h"
#include "frontend/tflite/schema_generated.h"

namespace relay::frontend::tflite {

// The bytes of a file: mapped, or those that a caller holds.
struct ModelBytes {
  std::shared_ptr<const MappedFile> mapped;
  std::string_view bytes;
  // A copy of bytes whose address is not aligned.
  std::shared_ptr<const std::string> copy;
};
ModelBytes open_bytes(const ModelSource& source, int64_t max_bytes);

// An operator of the file by its code, and by its name where it is a custom one.
struct OperatorKind {
  int32_t code = 0;
  std::string name;  // "ADD"; of a custom operator its own name
  int32_t version = 1;
  bool is_custom = false;
};

class Model {
 public:
  // Verifies the bytes. E0502 for a file that is damaged, E0503 for another version of the format.
  Model(ModelBytes bytes, std::shared_ptr<const SourceFile> file);

  const schema::Model& root() const { return *root_; }
  size_t num_graphs() const { return root_->subgraphs()->size(); }
  const schema::SubGraph& graph(size_t i) const {
    return *root_->subgraphs()->Get(static_cast<flatbuffers::uoffset_t>(i));
  }
  const schema::Tensor& tensor(size_t graph, int32_t index) const;
  const OperatorKind& kind(const schema::Operator& op) const { return kinds_[op.opcode_index()]; }
  // The bytes of a buffer; nullopt for one that has none.
  std::optional<std::string_view> buffer(uint32_t index) const;
  std::string_view bytes() const { return bytes_.bytes; }
  const std::shared_ptr<const MappedFile>& mapped() const { return bytes_.mapped; }

  // "operator #3 (CONV_2D) -> MobilenetV2/add"
  std::string operator_label(size_t graph, size_t index) const;
  Span place(std::string label) const { return Span::place(file_, std::move(label)); }
  [[noreturn]] void damaged(const std::string& why) const;

  // The data of a constant tensor as it is stored, made dense and unpacked; null for a tensor without data. `charge` is
  // called with the size of what is not a view of the file.
  Tensor constant(const schema::Tensor& tensor, const std::function<void(int64_t)>& charge,
                  const Span& span) const;

 private:
  void check_graph(size_t index) const;

  ModelBytes bytes_;
  std::shared_ptr<const SourceFile> file_;
  const schema::Model* root_ = nullptr;
  std::vector<OperatorKind> kinds_;
};

// The name of a builtin operator; "operator 999" for one that is not known.
std::string builtin_name(int32_t code);
// The greatest version of a builtin operator that has a kernel; 0 for none.
int32_t known_version(int32_t code);
// The code of a builtin operator by its name; -1 for none.
int32_t builtin_code(std::string_view name);

std::string_view text_of(const flatbuffers::String* text);
// A name, cut where it is long: many tensors of a file may refer to one text. Empty for none.
std::string short_text(const flatbuffers::String* text);
std::string name_of(const schema::Tensor& tensor);
// The name of an input or a result of a subgraph, before equal names are distinguished.
std::string interface_name(const Model& model, size_t graph, int32_t tensor);
// A table that stores nothing: every field has its default value.
const flatbuffers::Table* empty_table();

// The dtype of an element type; nullopt for those that Relay lacks.
std::optional<DType> dtype_of(schema::ElementType type);
std::string name_of(schema::ElementType type);

}  // namespace relay::frontend::tflite
