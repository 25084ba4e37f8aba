// Exported programs in archives (.pt2), read without PyTorch.
//
// An archive is a zip file: models/NAME.json is the program, data/weights and data/constants hold the elements of its
// tensors, each in a file of its own, and JSON says which file, type and strides belong to which name.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "frontend/common/archive.h"
#include "frontend/common/mapped_file.h"
#include "frontend/torch/schema.h"
#include "runtime/core/tensor.h"

namespace relay::frontend::torch {

// Whether a file that begins so is an archive of exported programs.
bool is_exported_archive(std::string_view head);

struct ExportedArchive {
  Program program;
  std::map<std::string, Tensor> tensors;  // by the names of the signature
  // Where the elements of a tensor are: tensors that the module shares are at one place.
  std::map<std::string, std::string> places;
};

// The program of that name in the archive; with an empty name the only one. Tensors are views of a mapped `file` where
// they lie in row-major order, which it keeps alive. E0502 and E0503 for damaged archives and unknown versions, E0508
// for tensors that do not fit their files, E0515 for a name that no program has.
ExportedArchive read_exported_archive(std::string_view bytes, const std::string& path,
                                      const std::shared_ptr<const MappedFile>& file,
                                      const std::string& model, int64_t max_bytes);

}  // namespace relay::frontend::torch
