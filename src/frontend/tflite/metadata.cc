#include "frontend/tflite/metadata.h"

#include "frontend/common/archive.h"
#include "frontend/common/unique_names.h"
#include "frontend/tflite/metadata_generated.h"

namespace relay::frontend::tflite {
namespace {

constexpr std::string_view kBuffer = "TFLITE_METADATA";

// The buffer of the metadata; empty for none.
std::string_view metadata_bytes(const Model& model) {
  const auto* entries = model.root().metadata();
  for (size_t i = 0; entries != nullptr && i < entries->size(); ++i) {
    const auto& entry = *entries->Get(static_cast<flatbuffers::uoffset_t>(i));
    if (text_of(entry.name()) != kBuffer) continue;
    if (entry.buffer() >= model.root().buffers()->size())
      model.damaged("its metadata refers to a buffer that is not there");
    return model.buffer(entry.buffer()).value_or(std::string_view());
  }
  return {};
}

// The files behind the model; null where the file ends with it.
std::unique_ptr<Archive> appended_files(const Model& model,
                                        const std::shared_ptr<const SourceFile>& file) {
  // The last record of an archive, before a comment.
  constexpr std::string_view kEnd("PK\5\6", 4);
  constexpr size_t kReach = (1 << 16) + 32;
  const std::string_view bytes = model.bytes();
  const std::string_view tail = bytes.substr(bytes.size() - std::min(bytes.size(), kReach));
  if (tail.find(kEnd) == std::string_view::npos) return nullptr;
  Archive::Limits limits;
  limits.entries = 10'000;
  limits.bytes = uint64_t{256} << 20;
  return std::make_unique<Archive>(bytes, file, limits);
}

// The lines of a file, of which the last may be without an end.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.pop_back();
    out.push_back(std::move(line));
    at = end + 1;
  }
  return out;
}

void read_tensor(const metadata::Tensor& from, const Archive* archive, ModelMetadata::Tensor& to) {
  to.title = text_of(from.name());
  to.description = text_of(from.description());
  if (from.content() != nullptr) {
    if (const auto* image = from.content()->properties_as_ImageProperties()) {
      to.is_image = true;
      to.is_grey = image->colour_space() == metadata::ColourSpace::greyscale;
    }
  }
  auto numbers = [](const auto* list) {
    return list == nullptr ? std::vector<float>() : std::vector<float>(list->begin(), list->end());
  };
  for (size_t i = 0; from.process_units() != nullptr && i < from.process_units()->size(); ++i) {
    const auto* unit = from.process_units()->Get(static_cast<flatbuffers::uoffset_t>(i));
    if (const auto* by = unit->options_as_Normalization()) {
      to.mean = numbers(by->mean());
      to.std = numbers(by->std());
    }
  }
  for (size_t i = 0; from.files() != nullptr && i < from.files()->size(); ++i) {
    const auto* file = from.files()->Get(static_cast<flatbuffers::uoffset_t>(i));
    // Files of further languages come behind the first one.
    if (file->kind() != metadata::FileKind::axis_labels || !to.labels.empty()) continue;
    const Archive::Entry* entry =
        archive == nullptr ? nullptr : archive->find(text_of(file->name()));
    if (entry != nullptr) to.labels = lines_of(archive->read(*entry));
  }
}

// `numbers` are those of the tensors, which have the metadata in this order.
template <class Numbers, class List>
std::vector<ModelMetadata::Tensor> tensors_of(const Model& model, const Numbers* numbers,
                                              const List* list, const Archive* archive) {
  std::vector<ModelMetadata::Tensor> out;
  UniqueNames names;
  for (size_t i = 0; numbers != nullptr && i < numbers->size(); ++i) {
    const int32_t index = numbers->Get(static_cast<flatbuffers::uoffset_t>(i));
    const schema::Tensor& tensor = model.tensor(0, index);
    ModelMetadata::Tensor& t = out.emplace_back();
    t.name = names.take(interface_name(model, 0, index));
    const auto* q = tensor.quantization();
    if (q != nullptr && q->scale() != nullptr && q->scale()->size() == 1) {
      t.scale = q->scale()->Get(0);
      if (q->zero_point() != nullptr && q->zero_point()->size() == 1)
        t.zero = q->zero_point()->Get(0);
    }
    if (list != nullptr && i < list->size())
      read_tensor(*list->Get(static_cast<flatbuffers::uoffset_t>(i)), archive, t);
  }
  return out;
}

}  // namespace

std::optional<ModelMetadata> metadata_of(const Model& model,
                                         const std::shared_ptr<const SourceFile>& file) {
  const std::string_view bytes = metadata_bytes(model);
  if (bytes.empty()) return std::nullopt;
  // Numbers are read where they are: the copy is aligned.
  const std::vector<uint8_t> copy(bytes.begin(), bytes.end());
  flatbuffers::Verifier verifier(copy.data(), copy.size());
  if (!metadata::VerifyModelBuffer(verifier)) model.damaged("its metadata is damaged");
  const metadata::Model& root = *metadata::GetModel(copy.data());
  const std::unique_ptr<Archive> archive = appended_files(model, file);
  ModelMetadata out;
  out.name = text_of(root.name());
  out.description = text_of(root.description());
  out.version = text_of(root.version());
  out.author = text_of(root.author());
  out.license = text_of(root.license());
  if (archive != nullptr) {
    for (const Archive::Entry& e : archive->entries())
      out.files.push_back({e.name, static_cast<int64_t>(e.size)});
  }
  const metadata::SubGraph* graph = root.subgraphs() == nullptr || root.subgraphs()->size() == 0
                                        ? nullptr
                                        : root.subgraphs()->Get(0);
  out.inputs = tensors_of(model, model.graph(0).inputs(),
                          graph == nullptr ? nullptr : graph->inputs(), archive.get());
  out.outputs = tensors_of(model, model.graph(0).outputs(),
                           graph == nullptr ? nullptr : graph->outputs(), archive.get());
  return out;
}

}  // namespace relay::frontend::tflite
