// Photographs as inputs of a run: x=photo.jpg[,resize[=HEIGHTxWIDTH]][,layout=nchw][,mean=A:B:C][,std=A:B:C].
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/common/model_metadata.h"
#include "runtime/vm/bytecode.h"

namespace relay::cli {

struct ImageInput {
  std::string file;
  bool resize = false;                              // to the sizes of the input
  std::optional<std::pair<int64_t, int64_t>> size;  // height and width, where they are given
  std::string layout;            // "nchw", "nhwc"; empty: as the input's sizes say
  std::vector<float> mean, std;  // of levels from 0 to 255
};

// Whether the value of an --input is a file of an image, with or without options behind it.
bool is_image_value(std::string_view value);
// UserError E0702 for options that cannot be read.
ImageInput read_image_input(const std::string& name, const std::string& value);

// The image as a value of the parameter: decoded, resized by linear interpolation where that is asked for or the model's
// metadata calls the input an image, (level - mean) / std, in the parameter's layout and dtype. `about` is what the
// metadata says of the parameter, null for nothing; options come before it. Integers that stand for real numbers by the
// metadata's scale are quantised; others are levels, or what the normalisation gives rounded.
// UserError E0702 for sizes, channels or a layout that do not fit; E0701 for the file.
runtime::Tensor image_value(const ImageInput& image, const runtime::Slot& slot,
                            const ModelMetadata::Tensor* about);

}  // namespace relay::cli
