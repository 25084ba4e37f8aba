#include "cli/image_input.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstring>

#include "base/codes/driver.h"
#include "base/quoted_name.h"
#include "cli/literal.h"
#include "driver/compile.h"
#include "frontend/common/mapped_file.h"
#include "ir/text/text.h"
#include "types/infer.h"

namespace relay::cli {

using runtime::DType;
using runtime::Tensor;

namespace {

constexpr std::array<std::string_view, 8> kEndings{".jpg", ".jpeg", ".png", ".bmp",
                                                   ".ppm", ".pgm",  ".pbm", ".pnm"};

[[noreturn]] void refuse(const std::string& message, const std::string& expected,
                         const std::string& found = {}) {
  Diagnostic d(codes::driver_option, {}, message);
  d.expected(expected);
  if (!found.empty()) d.found(found);
  throw UserError(std::move(d));
}

std::string_view file_part(std::string_view value) { return value.substr(0, value.find(',')); }

// Parts between separators.
std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  while (true) {
    const size_t at = text.find(separator);
    out.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return out;
    text.remove_prefix(at + 1);
  }
}

std::string sizes_text(int64_t height, int64_t width) {
  return std::to_string(height) + "x" + std::to_string(width);
}

// A program of one function, run once.
Tensor computed(const std::string& text, const Tensor& input) {
  CompileOptions options;
  options.num_threads = 1;
  const Module program = infer_types(parse_module("<image>", "#[version = \"0.0.5\"]\n" + text));
  return compile(program, options).load().run("main", {input}).at(0);
}

// (height, width, channels)
Tensor decoded(const std::string& path, bool grey) {
  constexpr int64_t kMostBytes = int64_t{1} << 30;
  const auto file = frontend::MappedFile::open(path, kMostBytes);
  Tensor bytes = Tensor::empty(DType::UInt(8), {static_cast<int64_t>(file->bytes().size())});
  std::memcpy(bytes.data(), file->bytes().data(), file->bytes().size());
  return computed("def @main(%file: Tensor[(" + std::to_string(bytes.dim(0)) +
                      "), uint8]) { image.decode(%file, pixel_format=\"" +
                      (grey ? "Grayscale" : "RGB") + "\") }",
                  bytes);
}

// (height, width, channels) of float32
Tensor resized(const Tensor& pixels, int64_t height, int64_t width) {
  const std::string shape = "1, " + std::to_string(pixels.dim(0)) + ", " +
                            std::to_string(pixels.dim(1)) + ", " + std::to_string(pixels.dim(2));
  return computed("def @main(%x: Tensor[(" + shape +
                      "), uint8]) { image.resize2d(cast(%x, dtype=\"float32\"), size=[" +
                      std::to_string(height) + ", " + std::to_string(width) +
                      "], layout=\"NHWC\", method=\"linear\", "
                      "coordinate_transformation_mode=\"half_pixel\") }",
                  pixels.reshape({1, pixels.dim(0), pixels.dim(1), pixels.dim(2)}));
}

// Where the axes of an image are in a parameter.
struct Axes {
  size_t height, width, channels;
  size_t batch_axes;
};

Axes axes_of(const ImageInput& image, const runtime::Slot& slot) {
  const std::vector<int64_t>& shape = slot.tensor.shape;
  const size_t rank = shape.size();
  if (!slot.is_tensor || rank < 3 || rank > 4 || (rank == 4 && shape[0] > 1)) {
    refuse("input " + quoted_name(slot.name) + " does not take an image",
           "one image: 3 axes, or 4 with a batch of 1", slot.type_string());
  }
  const size_t first = rank - 3;
  auto is_channels = [](int64_t n) { return n == 1 || n == 3; };
  std::string layout = image.layout;
  if (layout.empty()) {
    const bool front = is_channels(shape[first]), back = is_channels(shape[rank - 1]);
    if (front == back) {
      refuse("the layout of input " + quoted_name(slot.name) + " is not known",
             "layout=nchw or layout=nhwc behind the image", slot.type_string());
    }
    layout = front ? "nchw" : "nhwc";
  }
  Axes out = layout == "nchw" ? Axes{first + 1, first + 2, first, first}
                              : Axes{first, first + 1, first + 2, first};
  const int64_t channels = shape[out.channels];
  if (channels >= 0 && !is_channels(channels)) {
    refuse("input " + quoted_name(slot.name) + " has " + std::to_string(channels) + " channels",
           "1 or 3", slot.type_string());
  }
  return out;
}

// A number for each channel.
std::array<float, 3> of_channels(const std::vector<float>& values, int64_t channels, float none,
                                 const std::string& name) {
  if (values.size() > 1 && static_cast<int64_t>(values.size()) != channels) {
    refuse("input " + quoted_name(name) + " is normalised by " + std::to_string(values.size()) +
               " numbers",
           "one, or one for each of the " + std::to_string(channels) + " channels");
  }
  std::array<float, 3> out{};
  for (size_t c = 0; c < out.size(); ++c)
    out[c] =
        values.empty() ? none : values[values.size() == 1 ? 0 : std::min(c, values.size() - 1)];
  return out;
}

}  // namespace

bool is_image_value(std::string_view value) {
  std::string file(file_part(value));
  std::ranges::transform(file, file.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::any_of(kEndings, [&](std::string_view e) { return file.ends_with(e); });
}

ImageInput read_image_input(const std::string& name, const std::string& value) {
  ImageInput out;
  out.file = file_part(value);
  if (out.file.size() == value.size()) return out;
  for (std::string_view option :
       parts_of(std::string_view(value).substr(out.file.size() + 1), ',')) {
    const size_t equals = option.find('=');
    const std::string_view key = option.substr(0, equals), given = equals == std::string_view::npos
                                                                       ? std::string_view()
                                                                       : option.substr(equals + 1);
    bool read = true;
    if (key == "resize") {
      out.resize = true;
      if (equals != std::string_view::npos) {
        const auto sizes = parts_of(given, 'x');
        const auto height = number_of<int64_t>(sizes[0]), width = number_of<int64_t>(sizes.back());
        constexpr int64_t kMost = 1 << 15;
        read = sizes.size() == 2 && height && width && *height > 0 && *width > 0 &&
               *height <= kMost && *width <= kMost;
        if (read) out.size = {*height, *width};
      }
    } else if (key == "layout") {
      out.layout = given;
      std::ranges::transform(out.layout, out.layout.begin(),
                             [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      read = out.layout == "nchw" || out.layout == "nhwc";
    } else if (key == "mean" || key == "std") {
      std::vector<float>& list = key == "mean" ? out.mean : out.std;
      for (std::string_view part : parts_of(given, ':')) {
        const auto v = number_of<float>(part);
        read = read && v && std::isfinite(*v) && (key == "mean" || *v != 0);
        list.push_back(v.value_or(1));
      }
      read = read && (list.size() == 1 || list.size() == 3);
    } else {
      read = false;
    }
    if (!read) {
      refuse("option " + quoted_name(std::string(option)) + " of image " + quoted_name(name) +
                 " cannot be read",
             "resize, resize=HEIGHTxWIDTH, layout=nchw, layout=nhwc, mean=M, mean=R:G:B, std=S or "
             "std=R:G:B");
    }
  }
  return out;
}

Tensor image_value(const ImageInput& image, const runtime::Slot& slot,
                   const ModelMetadata::Tensor* about) {
  const Axes axes = axes_of(image, slot);
  const std::vector<int64_t>& shape = slot.tensor.shape;
  const DType dtype = slot.tensor.dtype;
  if (!dtype.is_floating() && !dtype.is_integer())
    refuse("input " + quoted_name(slot.name) + " does not take an image", "numbers",
           slot.type_string());
  int64_t channels = shape[axes.channels];
  if (channels < 0) channels = about != nullptr && about->is_grey ? 1 : 3;
  Tensor pixels = decoded(image.file, channels == 1);
  // The sizes of the input; where they are open, those that are given or the image's own.
  const int64_t own[] = {pixels.dim(0), pixels.dim(1)};
  int64_t wanted[] = {shape[axes.height], shape[axes.width]};
  for (size_t i : {0, 1}) {
    const int64_t given = !image.size ? own[i] : i == 0 ? image.size->first : image.size->second;
    if (wanted[i] < 0) {
      wanted[i] = given;
    } else if (image.size && given != wanted[i]) {
      refuse("image " + quoted_name(image.file) +
                 " is resized to other sizes than those of input " + quoted_name(slot.name),
             sizes_text(shape[axes.height], shape[axes.width]),
             sizes_text(image.size->first, image.size->second));
    }
  }
  if (wanted[0] != own[0] || wanted[1] != own[1]) {
    if (!image.resize && (about == nullptr || !about->is_image)) {
      throw UserError(Diagnostic(codes::driver_option, {},
                                 "image " + quoted_name(image.file) +
                                     " has other sizes than input " + quoted_name(slot.name))
                          .expected(sizes_text(wanted[0], wanted[1]))
                          .found(sizes_text(own[0], own[1]))
                          .help("add ,resize behind the file to resize it"));
    }
    pixels = resized(pixels, wanted[0], wanted[1]);
  }
  const bool has_mean = !image.mean.empty(), has_std = !image.std.empty();
  const std::vector<float> none;
  const std::vector<float>& mean = has_mean ? image.mean : about != nullptr ? about->mean : none;
  const std::vector<float>& std = has_std ? image.std : about != nullptr ? about->std : none;
  const bool normalised = !mean.empty() || !std.empty();
  if (dtype.is_int() && dtype.bits == 8 && !normalised) {
    refuse("input " + quoted_name(slot.name) + " of int8 does not hold the levels of an image",
           "mean= and std= behind the image", slot.type_string());
  }
  const auto means = of_channels(mean, channels, 0, slot.name),
             divisors = of_channels(std, channels, 1, slot.name);
  for (float d : divisors)
    if (!(d != 0)) refuse("input " + quoted_name(slot.name) + " is divided by 0", "std of not 0");
  const bool quantised = normalised && dtype.is_integer() && about != nullptr && about->scale > 0;
  double low = 0, high = 0;
  if (dtype.is_integer()) {
    low = dtype.is_int() ? -std::ldexp(1.0, dtype.bits - 1) : 0;
    high = low + std::ldexp(1.0, dtype.bits) - 1;
  }
  std::vector<int64_t> sizes = shape;
  if (axes.batch_axes == 1) sizes[0] = 1;
  sizes[axes.height] = wanted[0];
  sizes[axes.width] = wanted[1];
  sizes[axes.channels] = channels;
  Tensor out = Tensor::empty(dtype, sizes);
  const bool planes = axes.channels < axes.height;
  const int64_t area = wanted[0] * wanted[1];
  for (int64_t i = 0; i < area; ++i) {
    for (int64_t c = 0; c < channels; ++c) {
      const auto at = static_cast<size_t>(c);
      const double level = pixels.get_as_double(i * channels + c);
      double v = (level - static_cast<double>(means[at])) / static_cast<double>(divisors[at]);
      const int64_t place = planes ? c * area + i : i * channels + c;
      if (dtype.is_floating()) {
        out.set_from_double(place, v);
        continue;
      }
      if (quantised) v = v / static_cast<double>(about->scale) + static_cast<double>(about->zero);
      out.set_from_int(place, static_cast<int64_t>(std::clamp(std::round(v), low, high)));
    }
  }
  return out;
}

}  // namespace relay::cli
