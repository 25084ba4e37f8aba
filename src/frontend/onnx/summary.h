// What an ONNX file is made of, whether or not it can be imported.
#pragma once

#include <string>

#include "frontend/common/front_end.h"

namespace relay {

// Reads a model file, but none of its weights. UserError E0507 for what is not one.
ModelSummary summarize_onnx_file(const std::string& path);

}  // namespace relay
