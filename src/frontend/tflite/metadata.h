// The metadata of a file, and the files that are appended to it as a zip archive.
#pragma once

#include <optional>

#include "frontend/common/model_metadata.h"
#include "frontend/tflite/model.h"

namespace relay::frontend::tflite {

// Of the first subgraph; nullopt for a file without metadata. E0502 for metadata or an archive that is damaged.
std::optional<ModelMetadata> metadata_of(const Model& model,
                                         const std::shared_ptr<const SourceFile>& file);

}  // namespace relay::frontend::tflite
